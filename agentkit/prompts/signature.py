"""`Signature`, a typed task: instructions, inputs and outputs. A bound request also has values of the inputs.

`SignatureMeta` has the operations on signature classes. The operations are not attributes of bound requests, so
that a field may have the name of an operation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import FrozenInstanceError
from inspect import cleandoc
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, NoReturn, cast, dataclass_transform, overload

from agentkit.argument_checks import check_option, check_text, find_closest
from agentkit.errors import OptionError
from agentkit.prompts import bound_request
from agentkit.prompts.class_fields import ClassFields, UndefinedTypeError
from agentkit.prompts.fields import FieldDeclaration, InputField, OutputField, SignatureField
from agentkit.prompts.signature_parsing import read_signature_text
from agentkit.reprs import shorten, shorten_repr

if TYPE_CHECKING:
    from typing import Self

    # The type parameter has a default, so that `class Judge(Signature)` needs no parameter.
    from typing_extensions import TypeVar

    AnswerT = TypeVar("AnswerT", default=Any)
else:
    from typing import TypeVar

    AnswerT = TypeVar("AnswerT")

_Class = TypeVar("_Class")

__all__ = ["Signature", "SignatureMeta"]

_Fields = Mapping[str, SignatureField]


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(InputField, OutputField))
class SignatureMeta(type):
    """Metaclass of signatures. The operations return new signatures and never change an existing signature."""

    _own: ClassFields
    _resolved: tuple[_Fields, _Fields, _Fields] | None

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: Any
    ) -> SignatureMeta:
        """Creates a signature from a `class` statement."""
        own = ClassFields.from_namespace(name, bases, namespace)
        attributes = {key: value for key, value in namespace.items() if key not in own.names}
        if not hasattr(attributes.get("tags", _Tags()), "__get__"):
            attributes["tags"] = _check_tags(name, attributes["tags"])
        cls = super().__new__(mcs, name, bases, attributes, **options)
        cls._own, cls._resolved = own, None
        with suppress(UndefinedTypeError):  # undefined types are resolved at the first use of the fields
            cls._resolve()
        return cls

    @overload
    def __call__(cls, text: str, /, instructions: str = "", *, types: Mapping[str, Any] | None = None) -> Any: ...

    @overload
    def __call__(cls: type[_Class], /, **values: Any) -> _Class: ...

    def __call__(cls: Any, /, *args: Any, **values: Any) -> Any:
        """Binds a signature to values of its inputs. A call of `Signature` itself creates a signature from a text.

        Raises:
            MessageError: A value is missing or invalid, or a name is not the name of an input.
            OptionError: The signature text is invalid, a value is passed without its name, or the output of a
                `Signature[T]` has no type.
        """
        if cls is Signature:
            return _read_signature(*args, **values)
        if args:
            reason = f"expected values by name, got {shorten_repr(args[0], 60)}"
            raise OptionError(cls.__name__, reason, "Pass keyword arguments.")
        if not cls.output_fields and cls.is_query:
            name = cls.__name__
            reason = "the base class is Signature[T] with a type variable, so the output has no type"
            advice = f"Declare a class with a type, such as `class {name}Int({name}[int])`, and call this class."
            raise OptionError(name, reason, advice)
        return bound_request.bind(cls, values)

    def __repr__(cls) -> str:
        try:
            return shorten(f"<signature {cls.__name__}: {cls.signature}>", 1_000)
        except UndefinedTypeError:
            return f"<signature {cls.__name__}>"

    @property
    def fields(cls) -> Mapping[str, SignatureField]:
        """Fields by name, inputs first."""
        return (cls._resolved or cls._resolve())[0]

    @property
    def input_fields(cls) -> Mapping[str, SignatureField]:
        """Input fields by name."""
        return (cls._resolved or cls._resolve())[1]

    @property
    def output_fields(cls) -> Mapping[str, SignatureField]:
        """Outputs by name."""
        return (cls._resolved or cls._resolve())[2]

    @property
    def signature(cls) -> str:
        """Names of the fields, such as `question, context -> answer`."""
        return f"{', '.join(cls.input_fields)} -> {', '.join(cls.output_fields)}"

    @property
    def is_query(cls) -> bool:
        """True if the class is a subclass of `Signature[T]`, directly or through other classes.

        The only output of such a class is `answer`, and `Prediction.value` is the value of this output.
        """
        return cls._own.is_query

    @property
    def instructions(cls) -> str:
        """Docstring or explicit instructions of the signature. Without them, a sentence that names the fields."""
        return cls._find_instructions() or cls._describe_fields()

    def with_instructions(cls: type[_Class], instructions: str) -> type[_Class]:
        """Returns a signature with other instructions. An empty string selects the default instructions."""
        check_text("signature.instructions", instructions)
        signature = cast("SignatureMeta", cls)
        return signature._derive(signature.fields, cleandoc(instructions))

    def append_instructions(cls: type[_Class], instructions: str) -> type[_Class]:
        """Returns a signature with a text appended to its instructions, after a blank line."""
        check_text("signature.instructions", instructions)
        signature = cast("SignatureMeta", cls)
        return signature._derive(signature.fields, f"{signature.instructions}\n\n{cleandoc(instructions)}")

    def with_updated_fields(cls, name: str, type: Any = None, **options: Any) -> type[Any]:
        """Returns a signature whose field `name` has another type or other options.

        Args:
            name: Name of the field.
            type: New type. None keeps the type.
            **options: Options of `InputField` with their new values. A constraint with the value None is not
                changed.

        Raises:
            OptionError: No field has this name, or an option is invalid.
        """
        field = cls.fields.get(name)
        if field is None:
            closest = find_closest(name, cls.fields)
            names = ", ".join(cls.fields)
            others = f"Use one of: {names}." if names else "Add a field with append()."
            advice = f"Did you mean {closest!r}?" if closest else others
            raise OptionError("name", f"{cls.__name__} has no field {shorten_repr(name, 60)}", advice)
        return cls._edit({**cls.fields, name: field.with_options(options, type)})

    def prepend(cls, name: str, field: Any, type: Any = None) -> type[Any]:
        """Returns a signature with a new field before the other inputs or outputs. See `insert`."""
        return cls.insert(0, name, field, type)

    def append(cls, name: str, field: Any, type: Any = None) -> type[Any]:
        """Returns a signature with a new field after the other inputs or outputs. See `insert`."""
        return cls.insert(-1, name, field, type)

    def insert(cls, index: int, name: str, field: Any, type: Any = None) -> type[Any]:
        """Returns a signature with a new field.

        Args:
            index: Position among the inputs or among the outputs. -1 is the position after the last field.
            name: Name of the field.
            field: `InputField(…)`, `OutputField(…)`, or a field of a signature.
            type: Type of the field. None means the type of `field`, or `str` if `field` has no type.

        Raises:
            OptionError: The index is out of range, the name is invalid or is the name of another field, or `field`
                is not a field.
        """
        new = _as_field(name, field, type)
        if name in cls.fields:
            reason = f"{cls.__name__} already has a field {name!r}"
            raise OptionError("name", reason, "Use another name, or call with_updated_fields().")
        fields = list((cls.output_fields if new.is_output else cls.input_fields).values())
        check_option("index", index, int)
        position = index + len(fields) + 1 if index < 0 else index
        if not 0 <= position <= len(fields):
            reason = f"expected a position from {-len(fields) - 1} to {len(fields)}, got {index}"
            raise OptionError("index", reason, "Pass -1 for the last position.")
        fields.insert(position, new)
        others = cls.input_fields if new.is_output else cls.output_fields
        return cls._edit({item.name: item for item in (*others.values(), *fields)})

    def delete(cls, name: str) -> type[Any]:
        """Returns a signature without the field `name`. If no field has this name, the fields stay the same."""
        return cls._edit({key: field for key, field in cls.fields.items() if key != name})

    def equals(cls, other: object) -> bool:
        """Returns True if another signature has the same instructions and the same fields in the same order."""
        if not isinstance(other, SignatureMeta) or cls.instructions != other.instructions:
            return False
        return list(cls.fields.values()) == list(other.fields.values())

    def _describe_fields(cls) -> str:
        """Returns the default instructions."""
        inputs, outputs = (
            ", ".join(f"`{name}`" for name in fields) for fields in (cls.input_fields, cls.output_fields)
        )
        return f"Given the fields {inputs}, produce the fields {outputs}."

    def _find_instructions(cls) -> str:
        """Returns the explicit instructions, or an empty string if there are none."""
        for base in cls.__mro__:
            own = base.__dict__.get("_own")
            if own is not None and (own.instructions or own.edited is not None):
                return cast("str", own.instructions)
        return ""

    def _edit(cls, fields: _Fields) -> type[Any]:
        """Returns a signature with other fields and the same instructions, as in DSPy."""
        return cls._derive(fields, cls.instructions)

    def _derive(cls, fields: _Fields, instructions: str) -> type[Any]:
        """Returns a subclass with exactly these fields and instructions, and with the name of this class."""
        base = cls.__mro__[1] if cls._own.edited is not None and cls is not Signature else cls
        namespace = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": instructions}
        edited = type.__new__(type(cls), cls.__name__, (base,), namespace)
        is_query = cls._own.is_query and [name for name, field in fields.items() if field.is_output] == ["answer"]
        edited._own = ClassFields(cls.__name__, is_query=is_query, edited=fields, instructions=instructions)
        edited._resolve()
        return cast("type[Any]", edited)

    def _resolve(cls) -> tuple[_Fields, _Fields, _Fields]:
        """Returns all fields, the inputs and the outputs, and stores them in `_resolved`."""
        fields: dict[str, SignatureField] = {}
        for base in reversed(cls.__mro__):
            own: ClassFields | None = base.__dict__.get("_own")
            if own is not None:
                if own.edited is not None:
                    _check_other_bases(cls, cast("SignatureMeta", base), fields)
                fields = own.apply_to(fields)
        inputs = {name: field for name, field in fields.items() if not field.is_output}
        outputs = {name: field for name, field in fields.items() if field.is_output}
        cls._resolved = resolved = (
            MappingProxyType({**inputs, **outputs}),
            MappingProxyType(inputs),
            MappingProxyType(outputs),
        )
        return resolved


def _check_other_bases(cls: SignatureMeta, edited: SignatureMeta, inherited: Collection[str]) -> None:
    """Raises OptionError if an edited base class would hide fields of other base classes.

    An edited signature has exactly its own fields, and ignores inherited fields.
    """
    original = cast("SignatureMeta", edited.__mro__[1])
    lost = [name for name in inherited if name not in original.fields]
    if lost and edited is not cls:
        reason = f"the edited signature {edited.__name__} hides the fields {', '.join(lost)} of the other bases"
        raise OptionError(cls.__name__, reason, "List the edited signature after the other base classes.")


class _Tags:
    """Descriptor that returns the default of the attribute `tags` of a signature.

    The class has no `__set__`, so that the value of a field named `tags` replaces the default.
    """

    def __get__(self, instance: object, owner: type) -> tuple[str, ...]:
        return (owner.__name__,)


class Signature(Generic[AnswerT], metaclass=SignatureMeta):
    """Typed task for a model: instructions, inputs and outputs.

    A subclass declares its fields with `InputField` and `OutputField`, and the instructions in its docstring. A
    call with values of the inputs returns a bound request. A bound request is immutable, and has the values as
    attributes.

    A subclass of `Signature[T]` declares inputs only, with or without `InputField`. The only output has the name
    `answer` and the type T. If T is a type variable, a further subclass must set the type:
    `class Extract(Signature[T])`, then `class ExtractInt(Extract[int])`. A call such as `Extract[int](…)` is an
    error.

    `Signature(text, instructions, types=…)` returns a new signature class. In the text, a colon and a type may
    follow the name of a field. A type is from the standard set, such as `str`, `list[int]` or `Literal['a', 'b']`,
    or is a key of `types`.

    Attributes:
        tags: Tags of the signature. A subclass may set this attribute. The default is the name of the class.

    Raises:
        MessageError: A value is missing or invalid, or a name is not the name of an input.
        OptionError: A field or a signature text is invalid.

    Example:
        >>> class Judge(Signature):
        ...     "Is the answer correct?"
        ...     answer: str = InputField()
        ...     score: int = OutputField(ge=0, le=10)
        >>> Judge(answer="Paris")
        Judge(answer='Paris')
        >>> Signature("question, context: list[str] -> answer: int").signature
        'question, context -> answer'
    """

    # The type is Any, because a subclass may declare a field `tags` of any type.
    tags = cast("Any", _Tags())

    if TYPE_CHECKING:
        # These declarations are for mypy, which ignores the method `__call__` of a metaclass.
        @overload
        def __new__(
            cls, text: str, /, instructions: str = "", *, types: Mapping[str, Any] | None = None
        ) -> Any: ...
        @overload
        def __new__(cls, **values: Any) -> Any: ...
        def __new__(cls, *args: Any, **values: Any) -> Any: ...  # noqa: D102

    def to_dict(self) -> dict[str, Any]:
        """Returns the values of the inputs as JSON values. See `agentkit.prompts.to_dict`."""
        return bound_request.to_dict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Creates a bound request from a dict of JSON values. See `agentkit.prompts.from_dict`."""
        return bound_request.from_dict(cls, data)

    def replace(self, /, **changes: Any) -> Self:
        """Returns a copy of the bound request with other values. See `agentkit.prompts.replace`."""
        return bound_request.replace(self, **changes)

    @classmethod
    def choices(cls) -> tuple[Any, ...]:
        """Returns the possible values of the only output. See `agentkit.prompts.choices`."""
        return bound_request.choices(cls)

    @classmethod
    def default(cls) -> Any:
        """Returns the default of the only output. See `agentkit.prompts.default`."""
        return bound_request.default(cls)

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return bound_request.get_inputs(self) == bound_request.get_inputs(cast("Any", other))

    def __hash__(self) -> int:
        return hash((type(self), *bound_request.get_inputs(self).values()))

    def __repr__(self) -> str:
        return bound_request.describe(self)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise FrozenInstanceError(f"cannot assign to {name!r}; call replace() for a copy")

    def __delattr__(self, name: str) -> NoReturn:
        raise FrozenInstanceError(f"cannot delete {name!r}; a bound request is immutable")


def _read_signature(
    text: str = "", /, instructions: str = "", types: Mapping[str, Any] | None = None, **others: object
) -> type[Any]:
    """Returns the signature that a text describes."""
    if others or not text:
        reason = f"expected a signature text, got {shorten_repr(others or text, 60)}"
        raise OptionError("signature", reason, "Pass a text such as 'question -> answer', or declare a subclass.")
    check_text("signature.instructions", instructions)
    check_option("types", types, Mapping | None, "Pass a dict of types by name.")
    fields = read_signature_text(text, types)
    own = {"__module__": __name__, "__qualname__": _TEXT_NAME, "__doc__": instructions or None}
    blank: Any = SignatureMeta(_TEXT_NAME, (Signature,), own)
    return cast("type[Any]", blank._derive(fields, cleandoc(instructions)))


_TEXT_NAME: Final = "StringSignature"  # class name of a signature from a text, as in DSPy


def _as_field(name: str, field: object, type: Any) -> SignatureField:
    if isinstance(field, FieldDeclaration):
        return field.with_type(name, str if type is None else type)
    if isinstance(field, SignatureField):
        return field.with_name(name).with_options({}, type)
    reason = f"expected InputField(…) or OutputField(…), got {shorten_repr(field, 60)}"
    raise OptionError("field", reason, "Pass InputField(…) or OutputField(…).")


def _check_tags(name: str, value: object) -> tuple[str, ...]:
    if isinstance(value, list | tuple) and all(isinstance(tag, str) for tag in cast("list[object]", value)):
        return tuple(cast("list[str]", value))
    reason = f"expected a tuple or list of strings, got {shorten_repr(cast('object', value), 60)}"
    raise OptionError(f"{name}.tags", reason, "Assign a tuple of strings.")
