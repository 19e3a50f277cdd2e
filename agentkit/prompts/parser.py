r"""`Parser`: converts a reply to a typed value, or raises `ParseError`.

The methods of a parser, except `parse`, return new parsers. The attributes `response_format`, `tools` and
`tool_choice` are options that the request for the reply needs. The module `parsers` has parsers for common
replies.

>>> from agentkit.prompts.parsers import last_code_block
>>> last_code_block.strip().as_type(int).parse("I think so.\n```\n42\n```")
42
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar, cast, overload

from pydantic import ValidationError

from agentkit.errors import InputError, OptionError, ParseError
from agentkit.messages.blocks import ToolUseBlock
from agentkit.messages.message import Msg
from agentkit.messages.validation_errors import describe_error
from agentkit.prompts.lenient_json import require_json_repair
from agentkit.prompts.reply_texts import Reply, check_reply_end, get_reply_text
from agentkit.prompts.safe_yaml import require_yaml
from agentkit.prompts.value_parsing import parse_value
from agentkit.prompts.value_types import get_value_type
from agentkit.reprs import describe_value, shorten, shorten_repr
from agentkit.tools.choices import ToolChoice
from agentkit.tools.json_schema import remove_titles
from agentkit.tools.tool import Tool, ToolLike, as_tools

__all__ = ["Parser", "ReplyFormat", "ToolRequests"]

T = TypeVar("T")
U = TypeVar("U")


@dataclass(frozen=True)
class ReplyFormat:
    """Format that a parser expects, for templates that describe the format to the model.

    Attributes:
        where: Part of the reply that contains the value: `full_answer`, `last_code_block` or `tool_call`.
        what: Syntax of this part: `text`, `yaml`, `json` or `one_word`.
        type: Type of the value. `Any` if any value is accepted.
    """

    where: Literal["full_answer", "last_code_block", "tool_call"] = "full_answer"
    what: Literal["text", "yaml", "json", "one_word"] = "text"
    type: Any = Any

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the type, without generated titles."""
        schema: dict[str, Any] = remove_titles(get_value_type(self.type).adapter.json_schema())
        return schema


@dataclass(frozen=True)
class ToolRequests:
    """Tool calls that a reply has instead of a value. See `Parser.with_tools`.

    Attributes:
        tool_calls: The tool calls, in the order of the reply.
    """

    tool_calls: tuple[ToolUseBlock, ...]


@dataclass(frozen=True, eq=False, repr=False)
class Parser(Generic[T]):
    """Immutable converter of a reply to a value, with the options that the request for the reply needs.

    Attributes:
        name: Expression that creates the parser, for `repr`.
        read: Function that reads the value, or raises ParseError if the reply does not contain the value.
        response_format: Response format of the request: a type, or `json_object`. None means that the request has
            no response format.
        tools: Tools that the request must offer.
        tool_choice: Tool choice of the request. None if the model decides.
        format: Format of the reply.
    """

    name: str
    read: Callable[[Reply], T]
    response_format: Any = None
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    format: ReplyFormat = ReplyFormat()

    def parse(self, reply: Reply) -> T:
        """Returns the value of a reply.

        Raises:
            ParseError: The reply was cut off, refused or filtered, or the value is missing or invalid. The
                attribute `message` is the reply if the reply is a `Msg`.
            OptionError: The reply is neither a `Msg` nor a string, or the parser needs a type and has none.
        """
        if not isinstance(cast("object", reply), Msg | str):
            reason = f"expected a Msg or a string, got {describe_value(reply)}"
            raise OptionError("reply", reason, "Pass the message that the model returned.")
        try:
            return self.read(reply)
        except ParseError as error:
            raise _add_reply(error, reply) from error.__cause__

    def strip(self: Parser[str]) -> Parser[str]:
        """Returns a parser that removes white space at both ends of the text."""
        return self._then("strip()", lambda value: _check_text(value, "strip").strip())

    def map(self, function: Callable[[T], U]) -> Parser[U]:
        """Returns a parser that applies a function to the value.

        Args:
            function: Function that receives the value, and may raise a ParseError. If the function raises a
                ValueError other than an InputError, `parse` raises a ParseError.
        """
        return self._then(f"map({_get_name(function)})", lambda value: _call(function, value))

    def validate(self, function: Callable[[T], ParseError | None]) -> Parser[T]:
        """Returns a parser that checks the value with a function.

        Args:
            function: Function that returns None if the value is valid. Otherwise, the function returns or raises a
                ParseError. If the function raises a ValueError other than an InputError, `parse` raises a
                ParseError.
        """
        return self._then(f"validate({_get_name(function)})", lambda value: _check(function, value))

    @overload
    def as_type(self, type: type[U]) -> Parser[U]: ...

    @overload
    def as_type(self, type: Any) -> Parser[Any]: ...

    def as_type(self, type: Any) -> Parser[Any]:
        """Returns a parser that converts the value to a type, by the rules of `parse_value`.

        Args:
            type: Any type that pydantic supports. The parser `structured` also requests JSON with the schema of
                the type. The parser `tool_call` also offers a tool whose parameters are this schema.

        Raises:
            OptionError: pydantic does not support the type.
            MissingExtraError: A package is not installed: json-repair, or pyyaml for the parser `yaml`.
        """
        get_value_type(type).adapter  # noqa: B018 - raises OptionError for an unsupported type
        require_json_repair()
        if self.format.what == "yaml":
            require_yaml()
        is_json = self.format.what in ("json", "yaml")
        convert = self._then(
            f"as_type({_get_name(type)})", lambda value: parse_value(value, type, is_json=is_json)
        )
        return replace(convert, format=replace(self.format, type=type))

    def or_error(self) -> Parser[T | ParseError]:
        """Returns a parser that returns a ParseError as a value, instead of raising it."""

        def read(reply: Reply) -> T | ParseError:
            try:
                return self.read(reply)
            except ParseError as error:
                return _add_reply(error, reply)

        return self._replace("or_error()", read)

    def with_tools(self, *tools: ToolLike) -> Parser[T | ToolRequests]:
        """Returns a parser for replies that have either a value or tool calls.

        If the reply calls at least one of the tools, and no other tool, the value is a `ToolRequests`. If the
        arguments of a tool call are incomplete or invalid, `parse` raises a ParseError. The arguments in the
        `ToolRequests` are the JSON values of the reply, which `run_tool_call` converts to the parameter types. A
        reply that calls any other tool is parsed as if `with_tools` had not been called. Call this method last.
        Methods that are called later, such as `map`, would also process the `ToolRequests`.

        Args:
            *tools: Tools that the model may call: functions, `Tool` values or dicts.

        Raises:
            MessageError: A tool is invalid, or two tools have the same name.
        """
        new_tools = as_tools(tools)
        names = {tool.name: tool for tool in new_tools}

        def read(reply: Reply) -> T | ToolRequests:
            check_reply_end(reply)
            calls = reply.tool_uses if isinstance(reply, Msg) else ()
            if not calls or not all(call.name in names for call in calls):
                return self.read(reply)
            for index, call in enumerate(calls):
                _check_call(names[call.name], call, index)
            return ToolRequests(calls)

        choice = ToolChoice("required") if self.tool_choice else None
        name = f"with_tools({', '.join(names)})"
        return replace(self._replace(name, read), tools=as_tools((*self.tools, *new_tools)), tool_choice=choice)

    def __repr__(self) -> str:
        return f"<Parser {shorten(self.name, 200)}>"

    def _then(self, step: str, convert: Callable[[T], U]) -> Parser[U]:
        return self._replace(step, lambda reply: convert(self.read(reply)))

    def _replace(self, step: str, read: Callable[[Reply], U]) -> Parser[U]:
        """Returns a parser with a new function `read`, and the same options for requests."""
        options = (self.response_format, self.tools, self.tool_choice, self.format)
        return Parser(f"{self.name}.{step}", read, *options)


# -- steps ----------------------------------------------------------------------------------------------------


def _add_reply(error: ParseError, reply: Reply) -> ParseError:
    """Returns a copy of an error with the reply and the text of the reply, if the error lacks one of them."""
    is_message = isinstance(reply, Msg)
    if error.text and (error.message is not None or not is_message):
        return error
    completed = copy(error)  # a function of the application may return the same error for several replies
    completed.text = error.text or get_reply_text(reply)
    completed.message = error.message or (reply if is_message else None)
    return completed


def _get_name(value: object) -> str:
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else shorten(str(value), 60)


def _check_text(value: object, step: str) -> str:
    if not isinstance(value, str):
        reason = f"expected a value of type str, got {describe_value(value)}"
        raise OptionError(f"parser.{step}", reason, f"Call {step}() before as_type() and map().")
    return value


def _call(function: Callable[[T], U], value: T) -> U:
    try:
        return function(value)
    except ValidationError as error:
        path, reason = describe_error(error)
        raise ParseError(reason, place=path or "reply") from error
    except InputError:  # an error of the application, which a new reply cannot correct
        raise
    except ValueError as error:
        raise ParseError(str(error) or type(error).__name__) from error


def _check(function: Callable[[T], ParseError | None], value: T) -> T:
    result: object = _call(function, value)
    if isinstance(result, ParseError):
        raise result
    if result is not None:
        reason = f"expected None or a ParseError from {_get_name(function)}, got {shorten_repr(result, 60)}"
        advice = "Return None for a valid value, and a ParseError for an invalid value."
        raise OptionError("parser.validate", reason, advice)
    return value


# -- tool calls ------------------------------------------------------------------------------------------------


def _check_call(tool: Tool, call: ToolUseBlock, index: int) -> None:
    """Checks that the arguments of a tool call are a JSON object with all required arguments and valid values.

    The values are not checked if the tool has no function.
    """
    place = f"tool_calls[{index}].input"
    if call.raw_is_broken and not call.input:
        raise ParseError(
            f"the arguments of the tool {call.name} are not a JSON object", place=place, text=call.raw_input or ""
        )
    names = tool.parameters.get("required")
    missing = (
        [name for name in cast("list[Any]", names) if name not in call.input] if isinstance(names, list) else []
    )
    if missing:
        reason = f"the arguments of the tool {call.name} lack {shorten_repr(missing[0], 60)}"
        raise ParseError(reason, place=place, text=call.arguments)
    if tool.function is not None:
        _check_values(tool.function, call, place)


def _check_values(function: Callable[..., Any], call: ToolUseBlock, place: str) -> None:
    from agentkit.tools.execution import validate_arguments

    try:
        validate_arguments(function, call)
    except ValidationError as error:
        path, reason = describe_error(error)
        reason = f"invalid argument of the tool {call.name}: {reason}"
        raise ParseError(reason, place=f"{place}.{path}" if path else place, text=call.arguments) from None
    except Exception:  # an error of the function or of a validator, which `run_tool_call` reports
        pass
