"""`prompt_environment` and `model_environment`: the sandboxed jinja environments for prompts and chat templates.

Both environments run templates in jinja's sandbox. A template has no access to private attributes, modules and
files. Templates of prompts are strict, so an undefined name is an error. Chat templates of models are lenient, as
in transformers.

Limits. Rendered texts and results of operators have at most 10,000,000 characters or items. A width or
count that a template passes to a filter or string method is at most 100,000, which is also jinja's limit for
`range`. A loop keeps only the values that the template stores, so these limits also bound the memory of a loop.
There is no limit for time, or for the results of `replace` and `join`. Render templates of unknown origin in a
process with limited time and memory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from agentkit.errors import MissingExtraError, OptionError

if TYPE_CHECKING:
    from jinja2 import BaseLoader
    from jinja2.ext import Extension
    from jinja2.sandbox import ImmutableSandboxedEnvironment

__all__ = ["TemplateRecord", "dump_yaml", "model_environment", "prompt_environment"]

_MAX_SIZE: Final = 10_000_000  # limit for characters of a text, items of a list, and bits of an integer
_MAX_WIDTH: Final = 100_000  # limit for widths and counts, equal to `jinja2.sandbox.MAX_RANGE`


# -- environments ---------------------------------------------------------------------------------------------


def prompt_environment(loader: BaseLoader | None = None) -> ImmutableSandboxedEnvironment:
    """Returns the environment for templates of prompts.

    The line break after a statement `{% … %}`, the spaces before a statement, and the last line break of a
    template are removed. An undefined name is an error. Only texts, numbers, None, lists and dicts can be printed.
    If a dict `query` has the key `items`, `query.items` is the value of this key and not the method of the dict.

    The filters `yaml` and `json` convert a value to text. Both have the options `exclude_defaults`, `exclude_none`
    and `exclude_fields`. The filter `json` also has the option `indent`. The function `fail(message)` ends the
    rendering with an error. There are no random functions, so equal variables give equal texts.

    Args:
        loader: Loader of the templates that can be included. None if no template can be included.

    Raises:
        MissingExtraError: A package of the extra `prompts` is not installed.
    """
    _import_yaml()
    environment_class = _get_prompt_class()
    from jinja2 import StrictUndefined

    environment = environment_class(
        loader=loader,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
        undefined=StrictUndefined,
        finalize=_check_printable,
    )
    _limit_sizes(environment)
    environment.filters.update(yaml=_write_yaml, json=_write_json)
    cast("dict[str, Any]", environment.globals)["fail"] = _raise_error
    del environment.globals["lipsum"], environment.filters["random"]
    return environment


def model_environment(strftime_now: Callable[[str], str] | None = None) -> ImmutableSandboxedEnvironment:
    """Returns the environment for chat templates of models.

    The environment has the options, filters and functions of `transformers.utils.chat_template_utils`: the
    statements `break` and `continue`, the block `generation`, the filter `tojson` without HTML escapes, and the
    functions `raise_exception` and `strftime_now`. An undefined name prints nothing.

    Args:
        strftime_now: Function that formats the current time with a format of `strftime`. None means local time.

    Raises:
        MissingExtraError: The package jinja2 is not installed.
    """
    environment_class = _get_sandbox_class("tokens", "Rendering a chat template")
    environment = environment_class(
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,
        extensions=["jinja2.ext.loopcontrols", _get_generation_block()],
    )
    _limit_sizes(environment)
    environment.filters["tojson"] = _dump_json
    functions = cast("dict[str, Any]", environment.globals)
    functions.update(raise_exception=_raise_error, strftime_now=strftime_now or _format_local_time)
    return environment


@cache
def _get_sandbox_class(extra: str, purpose: str) -> type[ImmutableSandboxedEnvironment]:
    """Returns the base class of both environments: jinja's sandbox with limits for the operator `~` and widths.

    The class is created inside this function, because jinja2 is an optional package.
    """
    try:
        from jinja2 import nodes
        from jinja2.sandbox import ImmutableSandboxedEnvironment
        from jinja2.visitor import NodeTransformer
    except ImportError:
        raise MissingExtraError("jinja2", extra, purpose) from None

    class TextJoins(NodeTransformer):
        """Transformer that replaces `a ~ b` with `[a, b] | concatenate`, because jinja cannot intercept `~`."""

        def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:  # noqa: N802 - jinja's name
            self.generic_visit(node)
            items = nodes.List(node.nodes, lineno=node.lineno)
            return nodes.Filter(items, "concatenate", [], [], None, None, lineno=node.lineno)

    class BoundedEnvironment(ImmutableSandboxedEnvironment):
        """Sandbox with limits for the operator `~`, for string methods and for formats."""

        intercepted_binops = frozenset(["*", "**", "%", "+"])

        def _generate(
            self, source: nodes.Template, name: str | None, filename: str | None, defer_init: bool = False
        ) -> str:
            TextJoins().visit(source)
            source.set_environment(self)
            return super()._generate(source, name, filename, defer_init)

        def call(self, context: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
            if isinstance(getattr(function, "__self__", None), str):
                _check_widths((*args, *kwargs.values()))
            return super().call(context, function, *args, **kwargs)

        def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
            function = super().wrap_str_format(value)
            if function is None:
                return None
            _check_format(value.__self__, _BRACE_WIDTH)
            return _limit_widths(function, 0) if _NESTED_FIELD.search(value.__self__) else function

    return BoundedEnvironment


@cache
def _get_prompt_class() -> type[ImmutableSandboxedEnvironment]:
    sandbox_class = _get_sandbox_class("prompts", "Rendering a prompt template")

    class PromptEnvironment(sandbox_class):  # type: ignore[misc, valid-type]  # the class is created at run time
        """Environment in which the keys of a dict take precedence over its methods."""

        def getattr(self, obj: Any, attribute: str) -> Any:
            if isinstance(obj, dict) and attribute in obj:
                return cast("dict[str, Any]", obj)[attribute]
            return super().getattr(obj, attribute)

    return PromptEnvironment


@cache
def _get_generation_block() -> type[Extension]:
    """Returns the extension for the block `generation`, which contains text that the model writes."""
    from jinja2 import nodes
    from jinja2.ext import Extension
    from jinja2.parser import Parser

    class GenerationBlock(Extension):
        """Statement that renders its body unchanged."""

        tags = {"generation"}  # noqa: RUF012 - declared by jinja

        def parse(self, parser: Parser) -> nodes.Node:
            line = next(parser.stream).lineno
            body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
            return nodes.Scope(body, lineno=line)

    return GenerationBlock


# -- functions of templates -----------------------------------------------------------------------------------


def _raise_error(message: str) -> NoReturn:
    from jinja2 import TemplateRuntimeError

    raise TemplateRuntimeError(str(message))


def _format_local_time(pattern: str) -> str:
    return datetime.now().strftime(pattern)


def _dump_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _check_printable(value: object) -> object:
    """Refuses to print values such as functions and generators, because their texts differ between processes."""
    from jinja2 import Undefined

    printable = (str, int, float, list, tuple, dict, Undefined)
    if not (value is None or isinstance(value, printable)):
        _raise_error(f"a value of type {type(value).__name__} cannot be printed")
    return cast("object", value)


# -- limits ---------------------------------------------------------------------------------------------------


def _limit_sizes(environment: ImmutableSandboxedEnvironment) -> None:
    operators = cast("dict[str, Any]", environment.binop_table)
    operators.update({"*": _multiply, "**": _raise_to_power, "%": _compute_remainder, "+": _add})
    filters = environment.filters
    filters.update(concatenate=_concatenate, format=_format)
    for name in ("batch", "center", "indent", "slice"):
        filters[name] = _limit_widths(filters[name], 1)
    environment.concat = _join_pieces  # type: ignore[method-assign]  # jinja joins all pieces of a rendered text with it


def _check_size(size: float) -> None:
    if size > _MAX_SIZE:
        _raise_error(f"a value of the template is too large ({size:,.0f}). The limit is {_MAX_SIZE:,}")


def _check_widths(values: Iterable[object]) -> None:
    for value in values:
        if isinstance(value, int) and value > _MAX_WIDTH:
            _raise_error(f"a width or count of the template is too large ({value:,}). The limit is {_MAX_WIDTH:,}")


def _limit_widths(function: Callable[..., Any], start: int) -> Callable[..., Any]:
    """Wraps a function so that an integer argument above `_MAX_WIDTH` is an error.

    Arguments before the position `start` are not checked.
    """

    @wraps(function)
    def call_limited(*args: Any, **kwargs: Any) -> Any:
        _check_widths((*args[start:], *kwargs.values()))
        return function(*args, **kwargs)

    return call_limited


_PERCENT_WIDTH: Final = re.compile(r"%[^%a-zA-Z]*(?:\*|\d{6})")  # six digits, or a width from an argument
_BRACE_WIDTH: Final = re.compile(r"\{[^{}]*:[^{}]*\d{6}")
_NESTED_FIELD: Final = re.compile(r"\{[^{}]*:[^{}]*\{")


def _check_format(text: str, large_width: re.Pattern[str]) -> None:
    if large_width.search(text):
        _raise_error(f"a width in a format is too large, or is not a constant. The limit is {_MAX_WIDTH - 1:,}")


def _format(text: object, *args: Any, **kwargs: Any) -> str:
    return str(_compute_remainder(str(text), kwargs or args))


def _concatenate(items: Iterable[object]) -> str:
    return _join_pieces(map(str, items))


def _join_pieces(pieces: Iterable[str]) -> str:
    texts: list[str] = []
    size = 0
    for piece in pieces:
        size += len(piece)
        _check_size(size)
        texts.append(piece)
    return "".join(texts)


def _multiply(left: Any, right: Any) -> Any:
    for value, factor in ((left, right), (right, left)):
        if isinstance(factor, int) and isinstance(value, str | list | tuple):
            _check_size(len(cast("Sequence[object]", value)) * factor)
    if isinstance(left, int) and isinstance(right, int):
        _check_size(left.bit_length() + right.bit_length())
    return left * right


def _raise_to_power(base: Any, exponent: Any) -> Any:
    if isinstance(base, int) and isinstance(exponent, int):
        _check_size(base.bit_length() * exponent)
    return base**exponent


def _compute_remainder(left: Any, right: Any) -> Any:
    if isinstance(left, str):
        _check_format(left, _PERCENT_WIDTH)
    return left % right


def _add(left: Any, right: Any) -> Any:
    total = left + right
    if isinstance(total, str | list | tuple):
        _check_size(len(cast("Sequence[object]", total)))
    return cast("Any", total)


# -- the filters `yaml` and `json` ----------------------------------------------------------------------------


class TemplateRecord(dict[str, Any]):
    """Dict of the fields of a model or dataclass. The object also stores which fields have their default value.

    The filters `yaml` and `json` omit the fields with their default value if `exclude_defaults` is True.
    """

    __slots__ = ("_defaults",)

    def __init__(self, fields: Mapping[str, Any], defaults: Iterable[str] = ()) -> None:
        super().__init__(fields)
        self._defaults = frozenset(defaults)

    @staticmethod
    def get_defaults(fields: Mapping[str, Any]) -> frozenset[str]:
        """Returns the names of the fields whose value is the default. Returns no names for a plain dict."""
        return fields._defaults if isinstance(fields, TemplateRecord) else frozenset()


def _write_yaml(
    value: object,
    exclude_defaults: bool = False,
    exclude_none: bool = False,
    exclude_fields: str | Sequence[str] = (),
) -> str:
    return dump_yaml(_select_fields(_exclude_fields(value, exclude_fields), exclude_defaults, exclude_none))


def _write_json(
    value: object,
    exclude_defaults: bool = False,
    exclude_none: bool = False,
    exclude_fields: str | Sequence[str] = (),
    indent: int | None = None,
) -> str:
    _check_widths([indent])
    selected = _select_fields(_exclude_fields(value, exclude_fields), exclude_defaults, exclude_none)
    return json.dumps(selected, ensure_ascii=False, indent=indent)


def _exclude_fields(value: object, names: str | Sequence[str]) -> object:
    """Returns a value without some of its fields. The fields must exist, so that a misspelled name is an error."""
    excluded = [names] if isinstance(names, str) else list(names)
    if not excluded:
        return value
    if not isinstance(value, dict):
        _raise_error(f"exclude_fields: a value of type {type(value).__name__} has no fields")
    fields = cast("dict[str, Any]", value)
    unknown = [name for name in excluded if name not in fields]
    if unknown:
        _raise_error(f"exclude_fields: there is no field {unknown[0]!r}")
    remaining = {name: item for name, item in fields.items() if name not in excluded}
    return TemplateRecord(remaining, TemplateRecord.get_defaults(fields))


def _select_fields(value: object, exclude_defaults: bool, exclude_none: bool) -> Any:
    """Returns a copy of a value with only dicts, lists and scalars, and without the fields to exclude."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        excluded = TemplateRecord.get_defaults(fields) if exclude_defaults else ()
        return {
            name: _select_fields(item, exclude_defaults, exclude_none)
            for name, item in fields.items()
            if name not in excluded and not (exclude_none and item is None)
        }
    if isinstance(value, list | tuple | Iterator):
        items = cast("Iterable[object]", value)
        return [_select_fields(item, exclude_defaults, exclude_none) for item in items]
    _check_printable(value)
    return str(value)  # the value is undefined here, so `str` raises the error of jinja


# -- YAML -----------------------------------------------------------------------------------------------------


def dump_yaml(value: object) -> str:
    """Writes a JSON value as YAML text. The text ends with a line break.

    Dicts and lists are written as blocks. A string with line breaks is written as a `|` block if YAML can
    represent the string in this way. Other strings are broken at the first space after 100 characters. The order
    of keys and all characters are kept.

    Raises:
        OptionError: The value is not a JSON value, or is nested too deeply.
        MissingExtraError: The package pyyaml is not installed.

    Example:
        >>> print(dump_yaml({"port": "Brest", "tides": [1.5, 7]}), end="")
        port: Brest
        tides:
          - 1.5
          - 7
    """
    yaml = _import_yaml()
    try:
        text: str = yaml.dump(
            value,
            Dumper=_get_dumper_class(),
            default_flow_style=False,
            allow_unicode=True,
            sort_keys=False,
            width=100,
        )
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = "the value is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise OptionError("value", f"cannot be written as YAML ({reason})", "Pass a JSON value.") from None
    return text[: -len("...\n")] if text.endswith("\n...\n") else text  # PyYAML ends some documents with `...`


def _import_yaml() -> Any:
    try:
        import yaml
    except ImportError:
        raise MissingExtraError("pyyaml", "prompts", "Writing YAML") from None
    return yaml


_FRAGILE: Final = re.compile("[\r\x85\u2028\u2029]")
"""Pattern of the line breaks that YAML changes in a text without quotation marks."""


@cache
def _get_dumper_class() -> Any:
    yaml = _import_yaml()

    class Dumper(yaml.SafeDumper):  # type: ignore[misc, name-defined]  # the class is known only at run time
        """Dumper that indents the items of a list, and writes repeated values in full, without references."""

        def ignore_aliases(self, data: object) -> bool:
            return True

        def increase_indent(self, flow: bool = False, indentless: bool = False) -> Any:
            return super().increase_indent(flow, False)  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]

    def represent_text(dumper: Any, text: str) -> Any:
        style = '"' if _FRAGILE.search(text) else "|" if "\n" in text else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style=style)

    Dumper.add_representer(str, represent_text)
    Dumper.add_multi_representer(str, represent_text)
    Dumper.add_multi_representer(dict, yaml.SafeDumper.represent_dict)
    return Dumper
