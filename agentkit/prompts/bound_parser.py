"""`BoundParser`: a parser for the outputs of a signature, which also writes the replies of examples."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import NoneType
from typing import Any, Final, TypeAlias, cast, get_args

from pydantic_core import CoreSchema, core_schema

from agentkit.errors import OptionError, ParseError
from agentkit.jinja_environments import dump_yaml
from agentkit.messages.blocks import Block, TextBlock, ToolUseBlock
from agentkit.messages.message import Msg
from agentkit.messages.parsed_reply import VALUE_KEY, has_object_root
from agentkit.prompts.chat_adapter import parse_field
from agentkit.prompts.examples import ReplyText
from agentkit.prompts.fields import SignatureField
from agentkit.prompts.parser import Parser, ToolRequests
from agentkit.prompts.signature import Signature
from agentkit.prompts.value_texts import write_value
from agentkit.prompts.value_types import as_json_value
from agentkit.replies.missing_call_ids import MissingCallIds
from agentkit.reprs import shorten_repr

__all__ = ["BoundParser", "bind_parser"]

_AnySignature: TypeAlias = type[Signature[Any]]


@dataclass(frozen=True)
class BoundParser:
    """Parser for the outputs of a signature.

    If the signature has one output, a reply contains the value of this output. If the signature has several
    outputs, a reply contains an object with one key for each output.

    Attributes:
        parser: Parser that reads this value or object from a reply.
        fields: Outputs of the signature, by name.
        type: Type of the only output, or the type of the object with all outputs.
    """

    parser: Parser[Any]
    fields: Mapping[str, SignatureField]
    type: Any

    # -- replies -----------------------------------------------------------------------------------------------

    def parse(self, reply: Msg | str) -> dict[str, Any]:
        """Returns the outputs in a reply, by name. The result may lack outputs that have a default or may be None.

        If the parser returns a `ParseError` or `ToolRequests` object, this object is the value of each output.

        Raises:
            ParseError: The reply has no value, or the value is invalid. If only a part of the value is invalid,
                the place of the error begins with the name of an output.
            OptionError: The signature has several outputs, and the parser returns neither a dict nor an object
                with attributes.
        """
        try:
            value: object = self.parser.parse(reply)
        except ParseError as error:
            raise self._name_output(error) from error.__cause__
        if isinstance(value, ParseError):
            value = self._name_output(value)
        if len(self.fields) == 1 or isinstance(value, ParseError | ToolRequests):
            return dict.fromkeys(self.fields, value)
        record: Any = cast("Any", value) if isinstance(value, Mapping) else getattr(value, "__dict__", None)
        if record is None:
            names = ", ".join(self.fields)
            reason = f"expected a dict with the outputs {names}, got {shorten_repr(cast('object', value), 60)}"
            raise OptionError("parser", reason, "Use a parser that returns a dict of the outputs.")
        values = cast("Mapping[str, Any]", record)
        return {name: values[name] for name in self.fields if name in values}

    def _name_output(self, error: ParseError) -> ParseError:
        """Returns an error whose place begins with the name of an output instead of `reply`.

        An error about the complete reply is returned unchanged.
        """
        path = error.place.removeprefix("reply")
        if not path.startswith((".", "[")) or path == error.place:
            return error
        if len(self.fields) == 1:
            wrapper = f".{VALUE_KEY}" if self._is_wrapped else ""
            place = f"{next(iter(self.fields))}{path.removeprefix(wrapper)}"
        else:
            place = path.removeprefix(".")
        return ParseError(
            error.description,
            failure=error.failure,
            label=error.label,
            meta=error.meta,
            place=place,
            text=error.text,
            partial=error.partial,
            message=error.message,
        )

    # -- replies of examples -----------------------------------------------------------------------------------

    def write(self, outputs: Mapping[str, Any]) -> str:
        """Returns the text of a reply with the given outputs. From this text, `parse` reads the same outputs.

        If the parser expects a tool call, the text is the JSON of the arguments of this tool call. If an output is
        a `ReplyText`, this output is the complete text. Without outputs, the text is empty.
        """
        text = next((value for value in outputs.values() if isinstance(value, ReplyText)), None)
        if text is not None:
            return str(text)
        values = {name: outputs[name] for name in self.fields if name in outputs}
        if not values:
            return ""
        value = values if len(self.fields) > 1 else next(iter(values.values()))
        expected = self.parser.format
        if expected.what == "json":
            return json.dumps(self._wrap(as_json_value(value)), indent=2, ensure_ascii=False)
        if expected.what == "yaml":
            return _write_yaml(as_json_value(value))
        content = write_value(value, self.type)
        return f"```\n{content}\n```" if expected.where == "last_code_block" else content

    def write_message(
        self, outputs: Mapping[str, Any], calls: Sequence[object], *, note: str | None = None, seed: str = ""
    ) -> Msg:
        """Returns a reply with the given outputs and tool calls.

        Args:
            outputs: Outputs by name.
            calls: Tool calls: blocks, or dicts with the keys `name` and `args`. Each call gets a new id.
            note: Justification of the outputs, which is written after the text and a blank line. None means that
                there is no justification.
            seed: Text that identifies the reply in its conversation. Equal tool calls in replies with different
                seeds get different ids.

        Raises:
            OptionError: A tool call is invalid.
        """
        blocks = [*map(_read_call, calls)]
        text = self.write(outputs)
        if text and self.parser.format.where == "tool_call" and not _has_text(outputs):
            text, blocks = "", [*blocks, ToolUseBlock("answer", self.parser.tools[0].name, json.loads(text))]
        text = "\n\n".join(filter(None, (text, note)))
        if not blocks:
            return Msg("assistant", text, "assistant")
        content: list[Block] = [TextBlock(text)] if text else []
        return Msg("assistant", [*content, *_replace_ids(blocks, seed)], "assistant")

    def _wrap(self, json_value: object) -> object:
        return {VALUE_KEY: json_value} if self._is_wrapped else json_value

    @cached_property
    def _is_wrapped(self) -> bool:
        """True if a reply contains the output under the key `value` of an object, because APIs require objects."""
        expected = self.parser.format
        is_requested = expected.where == "tool_call" or self.parser.response_format is not None
        return is_requested and not has_object_root(expected.schema)

    # -- templates ---------------------------------------------------------------------------------------------

    @cached_property
    def format_variable(self) -> Mapping[str, Any]:
        """Template variable `format`: the format of the reply, with a text for the model in `instructions`."""
        expected = self.parser.format
        return {
            "where": expected.where,
            "what": expected.what,
            "schema": expected.schema,
            "instructions": self._write_instructions(),
        }

    def _write_instructions(self) -> str:
        expected, schema = self.parser.format, self.parser.format.schema
        if expected.where == "tool_call":
            return f"Reply with one call of the tool `{self.parser.tools[0].name}`."
        if expected.what == "one_word":
            words = schema.get("enum", [schema["const"]] if "const" in schema else [])
            listed = f"one of these words: {', '.join(map(str, words))}" if words else "one word"
            return f"Begin the reply with {listed}."
        content = {"json": "JSON", "yaml": "YAML"}.get(expected.what, "the answer")
        is_block = expected.where == "last_code_block"
        start = f"End the reply with a code block that contains {content}" if is_block else f"Reply with {content}"
        if not schema or schema == {"type": "string"}:
            return f"{start} only."
        text = json.dumps(schema, ensure_ascii=False)
        return f"{start} only. The value must match this JSON schema:\n{text}"


def _write_yaml(json_value: object) -> str:
    text = dump_yaml(json_value)
    # The last line break of a YAML block that begins with `|` is part of the text.
    return text if "|" in text else text.removesuffix("\n")


def _has_text(outputs: Mapping[str, Any]) -> bool:
    return any(isinstance(value, ReplyText) for value in outputs.values())


def _read_call(call: object) -> ToolUseBlock:
    if isinstance(call, ToolUseBlock):
        return call
    try:
        [block] = cast("list[ToolUseBlock]", parse_field(_CALLS, [call], {}, is_json=True))
    except ParseError as error:
        advice = "Pass ToolUseBlock objects, or dicts with the keys name and args."
        raise OptionError("tool_calls", error.description, advice) from None
    return block


_CALLS: Final = SignatureField("tool_calls", list[ToolUseBlock], is_output=True)


def _replace_ids(calls: Iterable[ToolUseBlock], seed: str) -> Iterator[ToolUseBlock]:
    """Yields tool calls with new ids. Equal tool calls of one reply get different ids."""
    ids = MissingCallIds()
    for call in calls:
        values = call.copy_input()
        yield ToolUseBlock(ids.create(call.name, json.dumps(values, sort_keys=True), seed), call.name, values)


# -- types ----------------------------------------------------------------------------------------------------

_BARE: Final = re.compile(r"\w+(\.strip\(\))*")
"""Pattern for the names of parsers to which `bind_parser` adds a type, such as `structured.strip()`."""


@lru_cache(256)
def bind_parser(parser: Parser[Any], signature: _AnySignature) -> BoundParser:
    """Returns a parser for the outputs of a signature.

    A parser such as `structured` or `last_code_block.strip()` gets the type T of the outputs: `structured` becomes
    `structured.as_type(T)`. A parser with any method other than `strip()` is used unchanged.

    Raises:
        OptionError: The parser has no type, so its values would not be validated. A parser with `map` needs no
            type, because the function in `map` determines the value.
    """
    expected = _create_type(signature)
    if _BARE.fullmatch(parser.name):
        parser = parser.as_type(expected)
    elif parser.format.type is Any and ".map(" not in parser.name and not _is_untyped(parser, expected):
        first, _, steps = parser.name.partition(".")
        reason = f"{parser.name} declares no type, so the outputs of {signature.__name__} would not be validated"
        raise OptionError("parser", reason, f"Use {first}.as_type(…).{steps}.")
    return BoundParser(parser, signature.output_fields, expected)


def _is_untyped(parser: Parser[Any], expected: Any) -> bool:
    """Returns True if a parser without a type returns valid outputs: any value for `Any`, or a text for `str`."""
    return expected is Any or (expected is str and parser.format.what in ("text", "one_word"))


def _create_type(signature: _AnySignature) -> Any:
    """Returns the type of the only output, or the type of a dict with all outputs."""
    fields = signature.output_fields
    if len(fields) == 1:
        return next(iter(fields.values())).annotation

    def create_schema(cls: type, source: Any, handler: Any) -> CoreSchema:
        return core_schema.typed_dict_schema(dict(_create_items(fields, handler)))

    return type(signature.__name__, (), {"__get_pydantic_core_schema__": classmethod(create_schema)})


def _create_items(
    fields: Mapping[str, SignatureField], handler: Any
) -> Iterator[tuple[str, core_schema.TypedDictField]]:
    for name, field in fields.items():
        required = field.is_required and NoneType not in get_args(field.type)
        yield name, core_schema.typed_dict_field(handler.generate_schema(field.annotation), required=required)
