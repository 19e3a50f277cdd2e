"""Parses the text of a field in a reply, and applies the `transform` of the field to the parsed value.

The formats of these texts, such as `json`, and the options of the formats are those of `response_template` in
transformers 5.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from agentkit.argument_checks import check_choice, check_option
from agentkit.chat_templates.responses.python_calls import parse_python_calls
from agentkit.chat_templates.responses.response_markers import compile_pattern
from agentkit.errors import MessageError, OptionError
from agentkit.json_values import parse_json

__all__ = ["CONTENTS", "apply_transform", "check_content_args", "check_transform", "parse_content"]

_PLACEHOLDER: Final = re.compile(r"\{(\w+(?:\.\w+)*)\}")
_END_TAG: Final = re.compile(r"</[^<>]*>")
_WORD: Final = re.compile(r"\w")
_QUOTED_OR_KEY: Final = re.compile(r'"(?:\\.|[^"\\])*"|(?<=[{,])(\s*)(\w+)(\s*):', re.DOTALL)


def parse_content(text: str, content: str, arguments: Mapping[str, Any]) -> Any:
    """Parses the text of a field.

    Args:
        text: Text between the markers of the field.
        content: Name of the format of the text, such as `json`. One of `CONTENTS`.
        arguments: Options of this format.

    Raises:
        ValueError: The text does not have this format.
        RecursionError: The text is nested too deeply.
    """
    return _PARSERS[content](text, arguments)


def check_content_args(content: str, arguments: Mapping[str, Any], place: str) -> None:
    """Checks the options of a text format, such as `json`.

    Args:
        content: Name of the format. One of `CONTENTS`.
        arguments: Options of this format.
        place: Place of the options in errors.

    Raises:
        OptionError: An option is missing or invalid.
    """
    if content == "xml-inline":
        pattern = compile_pattern(arguments.get("tag_pattern"), f"{place}.tag_pattern")
        if "key" not in pattern.groupindex:
            reason = f"the pattern {pattern.pattern!r:.80} has no group `key`"
            raise OptionError(f"{place}.tag_pattern", reason, "Use the groups (?P<key>…) and (?P<value>…).")
    nested = arguments.get("value_parser")
    if nested is not None:
        check_option(f"{place}.value_parser", nested, dict)
        options = nested.get("args", {})
        check_choice(f"{place}.value_parser.name", nested.get("name", "text"), CONTENTS)
        check_option(f"{place}.value_parser.args", options, dict)
        check_content_args(nested.get("name", "text"), options, f"{place}.value_parser.args")


def check_transform(transform: Any, place: str) -> None:
    """Checks that each string in a transform is one placeholder, or has no placeholder.

    A transform is a JSON value with placeholders such as `{content}`.

    Raises:
        OptionError: A string has a placeholder and other text.
    """
    if isinstance(transform, dict | list):
        items = cast("dict[str, Any] | list[Any]", transform)
        for item in items.values() if isinstance(items, dict) else items:
            check_transform(item, place)
    elif isinstance(transform, str) and _PLACEHOLDER.search(transform) and not _PLACEHOLDER.fullmatch(transform):
        reason = f"the string {transform!r:.80} has a placeholder and other text"
        raise OptionError(place, reason, 'Pass a placeholder alone, such as "{content}".')


def apply_transform(transform: Any, scope: Mapping[str, Any]) -> Any:
    """Returns a transform with values in place of its placeholders.

    Args:
        transform: JSON value with placeholders such as `{content}`. The placeholder `{a.b}` stands for the value
            `b` of the object `a`.
        scope: Maps the names of placeholders to their values.

    Raises:
        ValueError: There is no value for a placeholder.
    """
    if isinstance(transform, dict):
        items = cast("dict[str, Any]", transform)
        return {key: apply_transform(item, scope) for key, item in items.items()}
    if isinstance(transform, list):
        return [apply_transform(item, scope) for item in cast("list[Any]", transform)]
    match = _PLACEHOLDER.fullmatch(transform) if isinstance(transform, str) else None
    if match is None:
        return transform
    value: Any = scope
    for key in match[1].split("."):
        if not isinstance(value, Mapping) or key not in value:
            raise ValueError(f"there is no value for the placeholder {{{match[1]}}}")
        value = cast("Mapping[str, Any]", value)[key]
    return value


def _strip(text: str, arguments: Mapping[str, Any]) -> str:
    return text.strip() if arguments.get("strip", True) else text


def _parse_int(text: str, arguments: Mapping[str, Any]) -> int:
    return int(_strip(text, arguments))


def _parse_float(text: str, arguments: Mapping[str, Any]) -> float:
    return float(_strip(text, arguments))


def _parse_bool(text: str, arguments: Mapping[str, Any]) -> bool:
    return _strip(text, arguments).lower() in ("true", "1")


def _parse_json(text: str, arguments: Mapping[str, Any]) -> Any:
    """Parses JSON.

    The option `string_delims` allows other quotation marks, and `unquoted_keys` allows keys without quotation
    marks. With `allow_non_json`, text that is not JSON becomes a string.
    """
    source, strings = text, list[str]()
    for opening, closing in arguments.get("string_delims", ()):
        source = _replace_strings(source, opening, closing, strings)
    if arguments.get("unquoted_keys"):
        source = _QUOTED_OR_KEY.sub(_quote_key, source)
    for index, string in enumerate(strings):
        source = source.replace(f"\x01{index}\x02", string)
    try:
        return parse_json(source)
    except MessageError as error:
        if arguments.get("allow_non_json"):
            return _strip(text, arguments)
        raise ValueError(error.reason) from None


def _replace_strings(text: str, opening: str, closing: str, strings: list[str]) -> str:
    """Replaces each text from `opening` to `closing` with a placeholder. Appends the text as JSON to `strings`."""
    from json import dumps

    if not strings and ("\x01" in text or "\x02" in text):
        raise ValueError(
            "the text contains U+0001 or U+0002, characters that the parser uses as placeholders of quoted texts"
        )
    pieces: list[str] = []
    start = 0
    while (first := text.find(opening, start)) >= 0:
        last = text.find(closing, first + len(opening))
        if last < 0:
            break
        pieces += [text[start:first], f"\x01{len(strings)}\x02"]
        strings.append(dumps(text[first + len(opening) : last]))
        start = last + len(closing)
    return "".join([*pieces, text[start:]])


def _quote_key(match: re.Match[str]) -> str:
    return match[0] if match[2] is None else f'{match[1]}"{match[2]}"{match[3]}:'


def _parse_nested(text: str, nested: Mapping[str, Any] | None) -> Any:
    return text if nested is None else parse_content(text, nested.get("name", "text"), nested.get("args", {}))


def _parse_tags(text: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Parses tags, such as `<city>Rome</city>`, to a dict. The groups of `tag_pattern` are `key` and `value`."""
    values: dict[str, list[Any]] = {}
    pattern = compile_pattern(arguments["tag_pattern"], "tag_pattern")
    for match in pattern.finditer(text):
        groups = match.groupdict()
        value = _parse_nested(groups.get("value") or "", arguments.get("value_parser"))
        values.setdefault(groups["key"], []).append(value)
    if _WORD.search(_END_TAG.sub("", pattern.sub("", text))):
        raise ValueError("the text has words outside of its tags")
    repeated = [key for key, items in values.items() if len(items) > 1]
    if repeated and not arguments.get("merge_duplicates", False):
        raise ValueError(f"the tag {repeated[0]!r} is repeated")
    return {key: items if len(items) > 1 else items[0] for key, items in values.items()}


def _parse_lines(text: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Parses lines that contain a key, a separator and a value. Lines without a separator are ignored."""
    values: dict[str, Any] = {}
    for line in text.split(arguments.get("line_sep", "\n")):
        key, separator, value = _strip(line, arguments).partition(arguments.get("kv_sep", ":"))
        if separator:
            values[_strip(key, arguments)] = _parse_nested(_strip(value, arguments), arguments.get("value_parser"))
    return values


def _parse_calls(text: str, arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    return parse_python_calls(text)


_PARSERS: Final[dict[str, Callable[[str, Mapping[str, Any]], Any]]] = {
    "text": _strip,
    "int": _parse_int,
    "float": _parse_float,
    "bool": _parse_bool,
    "json": _parse_json,
    "xml-inline": _parse_tags,
    "kv-lines": _parse_lines,
    "python-call-list": _parse_calls,
}

CONTENTS: Final = tuple(_PARSERS)
"""Names of the formats that the text of a field can have."""
