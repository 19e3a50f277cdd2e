# ruff: noqa: D102 - the methods without a docstring are those of jinja's sandbox
"""`BoundedEnvironment`: jinja's sandbox with limits, and with faster access to JSON values.

For values of JSON types, the sandbox of jinja refuses only attributes that start with `_`, and methods that change
the value. `BoundedEnvironment` checks these values in a faster way. The sandbox of jinja checks all other values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import wraps
from types import BuiltinMethodType, MethodType
from typing import Any, Final, cast

from jinja2 import Template, nodes
from jinja2.runtime import BlockReference, LoopContext, Macro
from jinja2.sandbox import ImmutableSandboxedEnvironment

from agentkit.jinja_environments.limited_filters import limit_filters
from agentkit.jinja_environments.limits import (
    DICT,
    Counters,
    count_read,
    count_steps,
    end_rendering,
    enter_call,
    leave_call,
    measure,
    start_rendering,
)
from agentkit.jinja_environments.namespaces import MISSING, Namespace
from agentkit.jinja_environments.operators import OPERATORS, check_brace_format, join_pieces
from agentkit.jinja_environments.template_code import BoundedCodeGenerator, insert_step_counters
from agentkit.jinja_environments.text_methods import DICT_ATTRIBUTES, REFUSED_METHODS, call_text_method

__all__ = ["BoundedEnvironment", "PromptEnvironment"]

_LISTS: Final[Any] = (list, tuple)
_JSON_TYPES: Final[Any] = (str, int, float, list, tuple, dict)
_METHOD_TYPES: Final = (BuiltinMethodType, MethodType)
_CALLING_TYPES: Final = (Macro, LoopContext, BlockReference)
"""Types of values whose call can contain further calls of the template."""
_DICT_METHODS: Final = frozenset({"copy", "get", "items", "keys", "values"})
_CHECKED_NAMES: Final = REFUSED_METHODS | {"format", "format_map"}
_TEXT_NAMES: Final = frozenset(dir(str))
_UNDEFINED: Final = 20  # steps for the creation of an undefined value
_SLOW: Final = 100  # steps of a call or of an attribute access that has no fast path


class BoundedTemplate(Template):
    """Jinja template whose renderings have limits."""

    def render(self, *args: Any, **kwargs: Any) -> str:
        variables = dict(*args, **kwargs)
        lengths = [len(value) for value in variables.values() if isinstance(value, _LISTS)]
        token = start_rendering(Counters(max(lengths) if lengths else 0))
        try:
            return super().render(variables)
        finally:
            end_rendering(token)


class BoundedEnvironment(ImmutableSandboxedEnvironment):
    """Sandbox that limits the steps and the size of a rendering, and has no functions with random results.

    For types that are neither in `readable_types` nor in `hidden_types`, the rules of the base class apply.

    Args:
        filters: Further filters by name.
        functions: Further functions by name.
        options: Further options of jinja's `Environment`.

    Attributes:
        readable_types: Types whose attributes templates can read, except names that start with `_` and the names
            in `_CHECKED_NAMES`.
        hidden_types: Types whose attributes templates cannot read.
    """

    intercepted_binops = frozenset({*OPERATORS, "+"})
    default_binop_table = ImmutableSandboxedEnvironment.default_binop_table | OPERATORS
    code_generator_class = BoundedCodeGenerator
    template_class = BoundedTemplate
    concat = staticmethod(join_pieces)
    readable_types: Collection[type] = frozenset({str, int, float, LoopContext, Namespace})
    hidden_types: tuple[type, ...] = ()

    def __init__(
        self, filters: Mapping[str, Callable[..., Any]], functions: Mapping[str, Any], **options: Any
    ) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            autoescape=False,
            optimized=False,  # jinja then runs no expressions when a template is compiled
            **options,
        )
        global_names = cast("dict[str, Any]", self.globals)
        del global_names["lipsum"], self.filters["random"]
        global_names.update(functions, namespace=Namespace)
        self.filters.update(filters)
        limit_filters(self)

    def _generate(
        self, source: nodes.Template, name: str | None, filename: str | None, defer_init: bool = False
    ) -> str:
        insert_step_counters(source)
        return super()._generate(source, name, filename, defer_init)

    def make_globals(self, d: Any) -> Any:
        """Returns the global variables of a template as a dict, which is copied faster than jinja's `ChainMap`."""
        names: dict[str, Any] = dict(cast("Any", self.globals))
        names.update(d or {})
        return names

    def getattr(self, obj: Any, attribute: str) -> Any:
        if type(obj) is DICT:
            if attribute not in DICT_ATTRIBUTES:
                return obj[attribute] if attribute in obj else self.undefine(obj, attribute)
            if attribute in _DICT_METHODS:
                return getattr(obj, attribute)
        elif type(obj) in self.readable_types and not (attribute in _CHECKED_NAMES or attribute.startswith("_")):
            value = getattr(obj, attribute, MISSING)
            if value is not MISSING:
                return value
        count_steps(_SLOW)
        return super().getattr(obj, attribute)

    def getitem(self, obj: Any, argument: Any) -> Any:
        if type(obj) is DICT and type(argument) is str:
            if argument in obj:
                return obj[argument]
            if argument not in DICT_ATTRIBUTES:
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
        if isinstance(function, _CALLING_TYPES):
            return self._call_template(context, function, args, kwargs)
        if function is Namespace:
            return function(*map(count_read, args), **kwargs)
        if isinstance(function, BuiltinMethodType):
            count_read(function.__self__)
        return measure(super().call(context, function, *map(count_read, args), **kwargs))

    def _call_template(self, context: Any, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls a macro, a recursive loop or a block, which can contain further calls."""
        enter_call()
        try:
            if not isinstance(function, Macro):
                return super().call(context, function, *args, **kwargs)
            if function.catch_varargs or function.catch_kwargs:
                measure([*args, *kwargs.values()])
            return function(context.eval_ctx, *args, **kwargs)
        finally:
            leave_call()

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        function = super().wrap_str_format(value)
        return None if function is None else _limit_format(function, value.__self__)


class PromptEnvironment(BoundedEnvironment):
    """Environment in which the keys of a dict take precedence over its methods."""

    def getattr(self, obj: Any, attribute: str) -> Any:
        if isinstance(obj, dict) and attribute in obj:
            return cast("dict[str, Any]", obj)[attribute]
        return super().getattr(obj, attribute)


def _call_method(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Calls a method of a JSON value. Checks the size of the result, and counts steps for the size."""
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
