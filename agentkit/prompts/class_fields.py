"""`ClassFields`: the fields that the `class` statement of a signature declares."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from inspect import cleandoc
from types import SimpleNamespace
from typing import Any, ClassVar, Final, TypeVar, cast, get_args, get_origin, get_type_hints

from agentkit.errors import OptionError
from agentkit.prompts.fields import FieldDeclaration, SignatureField, check_field_name
from agentkit.reprs import describe_value

__all__ = ["ClassFields", "UndefinedTypeError"]

_MISSING: Final = object()


class UndefinedTypeError(OptionError):
    """Error for an undefined name in the type of a field. The module may define the name later."""


@dataclass
class ClassFields:
    """Fields and instructions that a signature class itself declares, without inherited fields and instructions.

    Attributes:
        owner: Name of the class.
        annotations: Types of the fields, by field name. A type may be a string with the source code of the type.
        values: Values that the class body assigns to fields, by name.
        answer_type: Type T of a subclass of `Signature[T]`. None if the class does not set T.
        is_query: True if the class or a base class is a subclass of `Signature[T]`.
        namespaces: Global and local variables that the source code of types may use.
        instructions: Instructions of the class. Empty if the class has none.
        edited: All fields, including inherited fields, if a method such as `Signature.append` derived the class.
            None if a `class` statement defines the class.
    """

    owner: str
    annotations: Mapping[str, Any] = field(default_factory=dict[str, Any])
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    answer_type: Any = None
    is_query: bool = False
    namespaces: tuple[dict[str, Any], dict[str, Any]] = field(default=({}, {}), repr=False)
    instructions: str = ""
    edited: Mapping[str, SignatureField] | None = None
    _types: dict[str, Any] | None = field(default=None, repr=False)

    @classmethod
    def from_namespace(cls, owner: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> ClassFields:
        """Returns the fields that the namespace of a class body declares.

        Raises:
            OptionError: A field has an invalid name. Or a field has no `InputField` or `OutputField`, and the
                class is not a subclass of `Signature[T]`. Or a subclass of `Signature[T]` declares an output with
                a name other than `answer`, or an input with the name `answer`.
        """
        is_root = not any("_own" in base.__dict__ for base in bases)
        if is_root:  # the docstring of the class Signature is for programmers, not for the model
            return cls(owner)
        answer_type = _find_answer_type(namespace)
        is_query = answer_type is not None or any(base.__dict__["_own"].is_query for base in _list_bases(bases))
        annotations = {
            name: annotation
            for name, annotation in _read_annotations(namespace).items()
            if not _is_class_variable(annotation)
        }
        values = {
            name: value
            for name, value in namespace.items()
            if name in annotations or isinstance(value, FieldDeclaration | SignatureField)
        }
        docstring = namespace.get("__doc__")
        own = cls(
            owner,
            annotations,
            values,
            None if isinstance(answer_type, TypeVar) else answer_type,
            is_query,
            _find_namespaces(namespace),
            cleandoc(docstring) if isinstance(docstring, str) else "",
        )
        own._check()
        return own

    @property
    def names(self) -> set[str]:
        """Names of the fields that the class declares."""
        return {*self.annotations, *self.values}

    def apply_to(self, inherited: Mapping[str, SignatureField]) -> dict[str, SignatureField]:
        """Returns all fields of the class, by name.

        The fields that the class declares replace inherited fields of the same name. If a method
        such as `Signature.append` derived the class, the result is a copy of `edited`.

        Raises:
            UndefinedTypeError: The name of a type is not defined.
            OptionError: A type is invalid.
        """
        if self.edited is not None:
            return dict(self.edited)
        if self._types is None:
            self._types = self._resolve_types()
            self.namespaces = ({}, {})  # releases the local variables, which are no longer needed
        fields = dict(inherited)
        for name in self._order_names():
            fields[name] = self._create_field(name, fields.get(name), self._types)
        return fields

    def _check(self) -> None:
        for name in self.names:
            check_field_name(name)
            value = self.values.get(name, _MISSING)
            is_declared = isinstance(value, FieldDeclaration | SignatureField)
            if not self.is_query and not is_declared:
                found = "no value" if value is _MISSING else describe_value(value)
                reason = f"expected InputField() or OutputField() as the value of the attribute, got {found}"
                raise OptionError(f"{self.owner}.{name}", reason, "Assign InputField() or OutputField().")
            is_output = is_declared and cast("FieldDeclaration", value).is_output
            if self.is_query and is_output != (name == "answer"):
                kind = "output" if is_output else "input"
                reason = f"the only output of Signature[T] is 'answer', got the {kind} {name!r}"
                raise OptionError(f"{self.owner}.{name}", reason, "Use Signature instead of Signature[T].")

    def _create_field(
        self, name: str, inherited: SignatureField | None, types: Mapping[str, Any]
    ) -> SignatureField:
        """Creates a field. If the class sets no type, the type is that of the inherited field, or else `str`."""
        value = self.values.get(name, FieldDeclaration(is_output=name not in self.annotations))
        if isinstance(value, SignatureField):
            return value.with_name(name).with_options({}, types.get(name))
        declaration = value if isinstance(value, FieldDeclaration) else FieldDeclaration(False, default=value)
        untyped = str if inherited is None else inherited.annotation
        return declaration.with_type(name, types.get(name, untyped))

    def _order_names(self) -> Iterator[str]:
        """Yields the names of the fields in the order of their declaration.

        A class body stores names that have values in one dict, and names that have types in another dict.
        """
        pending = list(self.annotations)
        for name in self.values:
            while name in pending:
                yield pending.pop(0)
            if name not in self.annotations:
                yield name
        yield from pending
        if self.answer_type is not None and "answer" not in self.values:
            yield "answer"

    def _resolve_types(self) -> dict[str, Any]:
        annotations = dict(self.annotations)
        if self.answer_type is not None:
            annotations.setdefault("answer", self.answer_type)
        holder: Any = SimpleNamespace(__annotations__=annotations)
        try:
            return get_type_hints(holder, *self.namespaces, include_extras=True)
        except NameError as error:
            reason = f"the type {error.name!r} is not defined"
            advice = f"Define or import the type before the first use of {self.owner}."
            raise UndefinedTypeError(self.owner, reason, advice) from None
        except (TypeError, SyntaxError, AttributeError) as error:
            reason = f"a type is invalid ({error})"
            raise OptionError(self.owner, reason, "Annotate each field with a type.") from None


def _list_bases(bases: tuple[type, ...]) -> Iterator[type]:
    return (base for base in bases if "_own" in base.__dict__)


def _find_answer_type(namespace: Mapping[str, Any]) -> Any:
    """Returns T if a base class is `Signature[T]`. Returns None if there is no such base class."""
    for base in namespace.get("__orig_bases__", ()):
        origin = get_origin(base)
        if isinstance(origin, type) and "_own" in origin.__dict__:
            (answer_type,) = get_args(base)
            return answer_type
    return None


def _read_annotations(namespace: Mapping[str, Any]) -> Mapping[str, Any]:
    if sys.version_info >= (3, 14) and "__annotations__" not in namespace:
        library = import_module("annotationlib")  # new in Python 3.14
        annotate = library.get_annotate_from_class_namespace(namespace)
        return library.call_annotate_function(annotate, library.Format.FORWARDREF) if annotate else {}
    return cast("Mapping[str, Any]", namespace.get("__annotations__", {}))


def _is_class_variable(annotation: object) -> bool:
    if isinstance(annotation, str):
        return annotation.partition("[")[0] in ("ClassVar", "typing.ClassVar")
    return annotation is ClassVar or get_origin(annotation) is ClassVar


def _find_namespaces(namespace: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the global and the local variables that the `class` statement can use."""
    module = sys.modules.get(namespace.get("__module__", ""))
    global_names = vars(module) if module is not None else {}
    frame = sys._getframe(3)  # the frame of the `class` statement  # pyright: ignore[reportPrivateUsage]
    local_names = {} if frame.f_locals is frame.f_globals else dict(frame.f_locals)
    return global_names, local_names
