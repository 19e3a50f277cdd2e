"""Parsers for common replies: `text`, `json`, `yaml`, `last_code_block`, `first_word`, `structured`, `tool_call`.

The methods of `Parser` create further parsers, such as `last_code_block.strip().as_type(int)`.
"""

from __future__ import annotations

from dataclasses import replace
from inspect import cleandoc
from typing import Any, Final, TypeVar, get_origin, overload

from agentkit.errors import OptionError, ParseError
from agentkit.json_values import as_object
from agentkit.messages.message import Msg
from agentkit.messages.parsed_reply import VALUE_KEY, find_root, has_object_root
from agentkit.prompts.code_blocks import find_last_code_block, unfence
from agentkit.prompts.lenient_json import read_json
from agentkit.prompts.parser import Parser, ReplyFormat
from agentkit.prompts.reply_texts import Reply, check_reply_end, read_reply_text
from agentkit.prompts.safe_yaml import load_yaml
from agentkit.prompts.value_parsing import parse_value
from agentkit.prompts.value_types import get_value_type
from agentkit.reprs import shorten, shorten_repr
from agentkit.tools.choices import ToolChoice
from agentkit.tools.tool import Tool

__all__ = ["first_word", "json", "last_code_block", "structured", "text", "tool_call", "yaml"]

U = TypeVar("U")


def _read_json(reply: Reply) -> Any:
    source = unfence(read_reply_text(reply))
    value = read_json(source, _NOTHING)
    if value is _NOTHING:
        raise ParseError("expected JSON, but the text contains none", failure="no_structure", text=source)
    return value


_NOTHING: Final = object()


def _read_yaml(reply: Reply) -> Any:
    return load_yaml(unfence(read_reply_text(reply)))


def _read_last_code_block(reply: Reply) -> str:
    source = read_reply_text(reply)
    code = find_last_code_block(source)
    if code is None:
        raise ParseError("expected a code block, but the text has none", failure="no_structure", text=source)
    return code


def _read_first_word(reply: Reply) -> str:
    source = read_reply_text(reply)
    words = source.split(None, 1)
    if not words:
        raise ParseError("expected a word, but the text is empty", failure="no_structure", text=source)
    return words[0]


class _FirstWordParser(Parser[str]):
    """Class of the parser `first_word`.

    If the type of the parser is a `Literal` or an enum, the word must equal the text of a member.
    """

    @overload
    def as_type(self, type: type[U]) -> Parser[U]: ...

    @overload
    def as_type(self, type: Any) -> Parser[Any]: ...

    def as_type(self, type: Any) -> Parser[Any]:
        members = get_value_type(type).members
        if not members:
            return super().as_type(type)

        def read(reply: Reply) -> Any:
            return _find_member(self.read(reply), type)

        return replace(super().as_type(type), read=read)


def _find_member(word: str, type: Any) -> Any:
    """Returns the member of a `Literal` or an enum whose text equals the word."""
    value_type = get_value_type(type)
    if word not in map(str, map(_get_member_value, value_type.members)):
        options = ", ".join(shorten_repr(_get_member_value(member), 60) for member in value_type.members)
        raise ParseError(
            f"expected one of {shorten(options, 300)} as the first word, got {shorten_repr(word, 60)}"
        )
    return parse_value(word, type)


def _get_member_value(member: Any) -> Any:
    return getattr(member, "value", member)


class _StructuredParser(Parser[Any]):
    """Class of the parser `structured`. The request asks for JSON that fits the type of the parser."""

    @overload
    def as_type(self, type: type[U]) -> Parser[U]: ...

    @overload
    def as_type(self, type: Any) -> Parser[Any]: ...

    def as_type(self, type: Any) -> Parser[Any]:
        def read(reply: Reply) -> Any:
            return _unwrap(self.read(reply), type)

        return replace(super().as_type(type), read=read, response_format=type)


def _unwrap(value: object, type: Any) -> Any:
    """Converts a JSON value to a type.

    APIs accept only schemas of objects. If the type is not an object, the JSON value may therefore be an object
    with the actual value as its property `value`.
    """
    fields = as_object(value)
    if [*fields] != [VALUE_KEY] or has_object_root(ReplyFormat(type=type).schema):
        return parse_value(value, type, is_json=True)
    try:
        return parse_value(fields[VALUE_KEY], type, is_json=True, place=f"reply.{VALUE_KEY}")
    except ParseError as error:
        try:
            return parse_value(value, type, is_json=True)
        except ParseError:
            raise error from None


class _ToolCallParser(Parser[Any]):
    """Class of the parser `tool_call`. The request offers a tool with the schema of the parser's type."""

    @overload
    def as_type(self, type: type[U]) -> Parser[U]: ...

    @overload
    def as_type(self, type: Any) -> Parser[Any]: ...

    def as_type(self, type: Any) -> Parser[Any]:
        tool = _make_tool(type)

        def read(reply: Reply) -> Any:
            return _read_call(reply, tool.name, type)

        return replace(super().as_type(type), read=read, tools=(tool,), tool_choice=ToolChoice("tool", tool.name))


def _make_tool(type: Any) -> Tool:
    """Returns a tool whose parameters are the fields of a type.

    If the type is not an object with fields, the tool has one parameter of this type, with the name `value`.
    """
    schema = ReplyFormat(type=type).schema
    description = cleandoc(str(schema.pop("description", "")))
    if not has_object_root(schema):
        definitions = {"$defs": schema.pop("$defs")} if "$defs" in schema else {}
        schema = {"type": "object", "properties": {VALUE_KEY: schema}, "required": [VALUE_KEY], **definitions}
    # The name of a generic type, such as "Literal", tells the model nothing about the purpose of the tool.
    name = str(getattr(type, "__name__", "")) if get_origin(type) is None else ""
    return Tool(name if _is_tool_name(name) else "answer", description, find_root(schema))


def _is_tool_name(name: str) -> bool:
    return name.isidentifier() and name[:1].isupper()


def _read_call(reply: Reply, name: str, type: Any) -> Any:
    """Converts the arguments of the only tool call of a reply to a type."""
    check_reply_end(reply)
    calls = reply.tool_uses if isinstance(reply, Msg) else ()
    if len(calls) != 1 or calls[0].name != name:
        actual = ", ".join(call.name for call in calls) or "no call"
        reason = f"expected one call of the tool {name}, got {shorten(actual, 200)}"
        raise ParseError(reason, failure="no_structure")
    call = calls[0]
    arguments: object = read_json(call.raw_input or "", {}) if call.raw_is_broken else call.copy_input()
    try:
        return _unwrap(arguments, type)
    except ParseError as error:
        error.text = call.arguments if not call.raw_is_broken else call.raw_input or ""
        raise


def _needs_type(reply: Reply) -> Any:
    reason = "the parser needs a Python type for the arguments of the tool call"
    raise OptionError("tool_call", reason, "Use tool_call.as_type(TYPE).")


text: Final[Parser[str]] = Parser("text", read_reply_text)
"""Parser that returns the text of the reply. For a reply with tool calls, `parse` raises a ParseError."""

json: Final[Parser[Any]] = Parser("json", _read_json, format=ReplyFormat(what="json"))
"""Parser that returns the JSON value in the text of the reply. The JSON may be damaged, or between other words."""

yaml: Final[Parser[Any]] = Parser("yaml", _read_yaml, format=ReplyFormat(what="yaml"))
"""Parser that reads the text of the reply as YAML. The text may be in a code fence. Aliases are not supported."""

last_code_block: Final[Parser[str]] = Parser(
    "last_code_block", _read_last_code_block, format=ReplyFormat(where="last_code_block")
)
"""Parser that returns the content of the last code block of the reply."""

first_word: Final[Parser[str]] = _FirstWordParser(
    "first_word", _read_first_word, format=ReplyFormat(what="one_word")
)
"""Parser that returns the first word of the reply.

If the type of the parser is a `Literal` or an enum, the word must equal the text of a member.
"""

structured: Final[Parser[Any]] = _StructuredParser(
    "structured", _read_json, response_format="json_object", format=ReplyFormat(what="json")
)
"""Parser that returns the JSON value of a reply. The request asks the provider for structured output.

Without a type, the request asks for any JSON object.
"""

tool_call: Final[Parser[Any]] = _ToolCallParser(
    "tool_call", _needs_type, format=ReplyFormat(where="tool_call", what="json")
)
"""Parser that returns the arguments of the only tool call of a reply, as a value of the type of the parser.

Use `tool_call.as_type(TYPE)`, because the parser needs a type.
"""
