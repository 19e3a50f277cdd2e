# ruff: noqa: D102 - the methods without a docstring are those of jinja's sandbox
"""`BoundedAccess`: the access of templates to attributes, items and functions.

For values of JSON types, the sandbox of jinja refuses only attributes that start with `_`, and methods that change
the value. `BoundedAccess` checks these values in a faster way. The sandbox of jinja checks all other values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import wraps
from types import BuiltinMethodType, MethodType
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from agentkit.jinja_environments.functions import MAX_TIME_FORMAT, get_namespace_class, raise_error
from agentkit.jinja_environments.limits import count_read, count_steps, enter_call, leave_call, measure
from agentkit.jinja_environments.operators import check_brace_format
from agentkit.jinja_environments.template_code import count_bodies
from agentkit.jinja_environments.text_methods import DICT_NAMES, REFUSED_METHODS, call_text_method

if TYPE_CHECKING:
    from jinja2 import nodes
    from jinja2.sandbox import ImmutableSandboxedEnvironment
else:
    ImmutableSandboxedEnvironment = object  # jinja2 is an optional package

__all__ = ["BoundedAccess"]

_DICT_METHODS: Final = frozenset({"copy", "get", "items", "keys", "values"})
_CHECKED_NAMES: Final = REFUSED_METHODS | {"format", "format_map"}
_UNDEFINED: Final = 20  # steps for the creation of an undefined value
_TEXT_NAMES: Final = frozenset(dir(str))
_METHOD_TYPES: Final = (BuiltinMethodType, MethodType)
_JSON_TYPES: Final[Any] = (str, int, float, list, tuple, dict)
_SLOW: Final = 100  # steps of a call, or of an access to an attribute, without a fast path
_DICT: Final[Any] = dict
_MISSING: Final = object()


class BoundedAccess(ImmutableSandboxedEnvironment):
    """Methods of an environment that decide which attributes, items and functions a template can use.

    This class does not inherit from the sandbox of jinja at run time, because jinja2 is an optional package. A
    subclass must add `ImmutableSandboxedEnvironment` as a base class.

    Attributes:
        plain_types: Types whose only unsafe attributes are those that start with `_`.
        nested_types: Types of values whose call can contain further calls of the template.
        macro_type: Type of macros.
        hidden_types: Types of values whose attributes a template cannot read.
    """

    plain_types: ClassVar[Collection[type]]
    nested_types: ClassVar[tuple[type, ...]]
    macro_type: ClassVar[Any]
    hidden_types: tuple[type, ...] = ()

    def _generate(
        self, source: nodes.Template, name: str | None, filename: str | None, defer_init: bool = False
    ) -> str:
        count_bodies(source)
        return super()._generate(source, name, filename, defer_init)

    def make_globals(self, d: Any) -> Any:
        """Returns the variables of a template as a dict, which is copied faster than a `ChainMap`."""
        names: dict[str, Any] = dict(cast("Any", self.globals))
        names.update(d or {})
        return names

    def getattr(self, obj: Any, attribute: str) -> Any:
        if type(obj) is _DICT:
            if attribute not in DICT_NAMES:
                return obj[attribute] if attribute in obj else self.undefine(obj, attribute)
            if attribute in _DICT_METHODS:
                return getattr(obj, attribute)
        elif type(obj) in self.plain_types and attribute not in _CHECKED_NAMES and not attribute.startswith("_"):
            value = getattr(obj, attribute, _MISSING)
            if value is not _MISSING:
                return value
        count_steps(_SLOW)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if type(obj) is _DICT and type(argument) is str:
            if argument in obj:
                return obj[argument]
            if argument not in DICT_NAMES:
                return self.undefine(obj, argument)
        elif type(obj) is str and type(argument) is str and argument not in _TEXT_NAMES:
            return self.undefine(obj, argument)
        return super().getitem(obj, argument)

    def undefine(self, obj: Any, name: str) -> Any:
        """Returns jinja's undefined value for a name that an object does not have."""
        count_steps(_UNDEFINED)
        return self.undefined(obj=obj, name=name)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if attr in REFUSED_METHODS or isinstance(obj, self.hidden_types):
            return False
        return super().is_safe_attribute(obj, attr, value)

    def call(self, context: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        if type(function) in _METHOD_TYPES and isinstance(function.__self__, _JSON_TYPES):
            return _call_method(function, args, kwargs)
        count_steps(_SLOW)
        if isinstance(function, self.nested_types):
            return self._call_nested(context, function, args, kwargs)
        if function is get_namespace_class():
            return function(*map(count_read, args), **kwargs)
        if isinstance(function, BuiltinMethodType):
            count_read(function.__self__)
        if type(function) is BuiltinMethodType and any(len(str(value)) > MAX_TIME_FORMAT for value in args):
            # The only such function is `strftime` of the time that the caller passed.
            raise_error(f"the format of a time is too large. The limit is {MAX_TIME_FORMAT:,} characters")
        return measure(super().call(context, function, *map(count_read, args), **kwargs))

    def _call_nested(self, context: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        enter_call()
        try:
            if not isinstance(function, self.macro_type):
                return super().call(context, function, *args, **kwargs)
            if function.catch_varargs or function.catch_kwargs:
                measure([*args, *kwargs.values()])
            return function(context.eval_ctx, *args, **kwargs)
        finally:
            leave_call()

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        function = super().wrap_str_format(value)
        return None if function is None else _limit_format(function, value.__self__)


def _call_method(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls a method of a JSON value, and counts the size of its result."""
    owner, name = function.__self__, function.__name__
    if isinstance(owner, str):
        return call_text_method(owner, name, *args, **kwargs)
    result = function(*map(count_read, args), **kwargs)
    return result if name == "get" else measure(result)


def _limit_format(function: Callable[..., str], text: str) -> Callable[..., str]:
    """Adds a limit to the method `format` or `format_map` of a text."""

    @wraps(function)
    def format_limited(*args: Any, **kwargs: Any) -> str:
        values = args[0].values() if function.__name__ == "format_map" else (*args, *kwargs.values())
        check_brace_format(text, values)
        return cast("str", measure(function(*args, **kwargs)))

    return format_limited
