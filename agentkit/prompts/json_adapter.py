"""`JSONAdapter`: writes each input as a section, and all outputs as one JSON object.

The prompts have the same wording as in DSPy 3.4.1.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from pydantic import BaseModel, TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic_core import PydanticSerializationError

from agentkit.argument_checks import check_choice
from agentkit.errors import OptionError, ParseError
from agentkit.messages.blocks import ToolUseBlock
from agentkit.prompts.chat_adapter import STRUCTURE, ChatAdapter, parse_field, write_section
from agentkit.prompts.compact_schema import compact_type
from agentkit.prompts.field_content import Segment
from agentkit.prompts.field_texts import placeholder, type_requirement
from agentkit.prompts.field_types import Code, Reasoning
from agentkit.prompts.fields import SignatureField
from agentkit.prompts.json_stream_parser import JSONStreamParser
from agentkit.prompts.lenient_json import read_json
from agentkit.prompts.signature import Signature
from agentkit.prompts.tool_texts import as_tool_calls
from agentkit.prompts.type_names import is_tool_calls
from agentkit.prompts.value_escapes import escape_markers
from agentkit.prompts.value_types import as_json_value, get_value_type
from agentkit.tools.json_schema import OutputSchema, close_schema, remove_titles
from agentkit.tools.tool import ToolLike

if TYPE_CHECKING:
    from agentkit.capabilities.capabilities import Capabilities
    from agentkit.formatting.formatter import RequestOptions
    from agentkit.prompts.field_stream_parser import FieldStreamParser

__all__ = ["JSONAdapter"]

_AnySignature: TypeAlias = type[Signature[Any]]


@dataclass(frozen=True)
class JSONAdapter(ChatAdapter):
    """Adapter for replies that are one JSON object with all outputs.

    The request asks for JSON through the response format of the API, which is usually the schema of the outputs.
    In two cases, the response format is the API's mode for any JSON object: the API accepts no schema, or an
    output has tool calls or an open mapping such as `dict[str, int]`.

    Attributes:
        schema_style: Style in which the prompt describes the outputs. `json` writes an object with JSON schemas.
            `compact` writes a shorter listing with comments, such as `name: string or null`. `compact` also writes
            inputs that are pydantic models as indented JSON, in which the items of a set have no fixed order.
            Inputs of the types `Code` and `Reasoning` become JSON strings.
    """

    native_tools: bool = True
    schema_style: Literal["json", "compact"] = "json"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("schema_style", self.schema_style, ("json", "compact"))

    def format_field_structure(self, signature: _AnySignature) -> str:
        """Returns the sections of the inputs and the JSON object of the outputs, with placeholders for the values.

        Raises:
            OptionError: The schema style is `compact`, and a pydantic model in the type of an output contains
                itself.
        """
        if self.schema_style == "compact":
            return _describe_compact(signature)
        inputs = [write_section(field.name, placeholder(field)) for field in signature.input_fields.values()]
        outputs = {name: placeholder(field) for name, field in signature.output_fields.items()}
        return "\n\n".join(
            (
                STRUCTURE,
                "Inputs will have the following structure:",
                *inputs,
                "Outputs will be a JSON object with the following fields.",
                _dump(outputs),
            )
        )

    def format_field_with_value(self, field: SignatureField, value: object) -> list[Segment]:
        """Returns the section of one input: its header and its value, as texts and media blocks."""
        content = super().format_field_with_value(field, value)
        has_media = len(content) > 2  # without media, the content consists of a header and one text
        if self.schema_style == "json" or has_media or not isinstance(value, BaseModel | Code | Reasoning):
            return content
        text = _dump_indented(value)
        return [content[0], escape_markers(text)] if text else content

    def user_message_output_requirements(self, signature: _AnySignature) -> str:
        """Returns the sentence that reminds the model of the keys of the JSON object.

        Empty if there are no outputs.
        """
        if not signature.output_fields:
            return ""
        names = ", then ".join(
            " ".join(filter(None, (f"`{name}`", type_requirement(field))))
            for name, field in signature.output_fields.items()
        )
        return f"Respond with a JSON object in the following order of fields: {names}."

    def format_assistant_message_content(
        self, signature: _AnySignature, outputs: Mapping[str, Any], missing: str | None = None
    ) -> str:
        """Returns the text of a reply: a JSON object with all outputs."""
        values = {name: _as_json(field, outputs.get(name)) for name, field in signature.output_fields.items()}
        if missing is not None:
            values = {name: value if name in outputs else missing for name, value in values.items()}
        return _dump(values)

    def request_options(
        self, signature: _AnySignature, capabilities: Capabilities, tools: Sequence[ToolLike] = ()
    ) -> RequestOptions:
        """Returns the tools and the response format, which is the schema of the outputs or `json_object`.

        If the signature has no outputs, there is no response format.
        """
        options = super().request_options(signature, capabilities, tools)
        shown = self.select_fields(signature)
        if not shown.output_fields:
            return options
        schema = _create_schema(shown) if capabilities.output == "schema" else None
        return {**options, "response_format": schema or "json_object"}

    def stream_parser(self, signature: _AnySignature) -> FieldStreamParser:
        """Returns a parser that reports the fields in a streamed JSON object as they arrive.

        If a subclass overrides `parse_text`, the parser reports all fields at the end of the reply.
        """
        if type(self).parse_text is not JSONAdapter.parse_text:
            return super().stream_parser(signature)
        return JSONStreamParser(self, signature)

    def parse_text(self, signature: _AnySignature, text: str) -> dict[str, Any]:
        """Returns the outputs in the JSON object of a reply. Unknown keys are ignored.

        If the reply contains several values of one output, the first value counts, as in a stream.

        Raises:
            ParseError: The text has no JSON object, the object lacks an output, or a value is invalid.
        """
        found = read_json(text)
        if not isinstance(found, dict):
            found = read_json(_find_object(text))
        if not isinstance(found, dict):
            reason = "expected a JSON object, but the reply has none"
            raise ParseError(reason, failure="no_structure", text=text)
        values, outputs = cast("dict[str, Any]", found), dict[str, Any]()
        if _may_repeat(signature.output_fields, text):
            values = {**values, **JSONStreamParser.read_first_values(self, signature, text)}
        for name, field in signature.output_fields.items():
            if name in values:
                outputs[name] = parse_field(field, values[name], outputs, is_json=True)
        return self.fill_outputs(signature, outputs, text)


def _may_repeat(names: Iterable[str], text: str) -> bool:
    """Returns True if a name may occur more than once as a key in a JSON text."""
    return "\\u" in text or any(text.count(f'"{name}"') > 1 for name in names)


def _describe_compact(signature: _AnySignature) -> str:
    """Returns a text with one section for each field. The section of an output states its compact type."""
    inputs = [f"{write_section(name, placeholder(field))}\n" for name, field in signature.input_fields.items()]
    outputs = [
        f"{write_section(name, f'Output field `{name}` should be of type: {compact_type(field.type, name)}')}\n"
        for name, field in signature.output_fields.items()
    ]
    return "\n".join((f"{STRUCTURE}\n", *inputs, *outputs, "[[ ## completed ## ]]"))


def _dump_indented(value: BaseModel | Code | Reasoning) -> str:
    """Returns a value as JSON text, or an empty string if JSON cannot represent the value.

    The JSON of a pydantic model is indented, and its keys are the aliases of the fields.
    """
    if not isinstance(value, BaseModel):  # Code and Reasoning are pydantic models in DSPy, so they become JSON too
        return json.dumps(as_json_value(value), ensure_ascii=False)
    try:
        return value.model_dump_json(indent=2, by_alias=True)
    except (PydanticSerializationError, UnicodeError):  # for example, the pydantic model contains a function
        return ""


def _dump(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


def _as_json(field: SignatureField, value: object) -> Any:
    if is_tool_calls(field.type) and isinstance(value, list | tuple):
        return as_tool_calls(cast("Sequence[ToolUseBlock]", value))
    return as_json_value(value)


def _create_schema(signature: _AnySignature) -> OutputSchema | None:
    """Returns the schema of an object with the outputs as its only keys.

    Returns None if an output has tool calls or an open mapping such as `dict[str, int]`.

    Raises:
        OptionError: pydantic does not support a type or a constraint, or a type has no JSON schema.
    """
    fields = signature.output_fields
    if any(is_tool_calls(field.type) for field in fields.values()):
        return None
    adapters = [(name, "validation", _get_adapter(field)) for name, field in fields.items()]
    try:
        schemas, definitions = TypeAdapter.json_schemas(cast("Any", adapters))
    except PydanticInvalidForJsonSchema as error:
        reason = f"a type has no JSON schema ({error.message.partition(chr(10))[0]})"
        raise OptionError(signature.__name__, reason, "Use types that JSON can express.") from None
    properties = {name: schemas[cast("Any", (name, "validation"))] for name in fields}
    schema = close_schema(remove_titles({"type": "object", "properties": properties, **definitions}))
    output = OutputSchema(schema, signature.__name__)
    return output if output.closed else None


def _get_adapter(field: SignatureField) -> TypeAdapter[Any]:
    try:
        return get_value_type(field.annotation).adapter
    except OptionError as error:
        raise OptionError(field.name, error.reason, error.advice) from None


def _find_object(text: str) -> str:
    """Returns the first part of a text that begins with `{` and ends with the matching `}`.

    If the text has no such part, the result is empty.
    """
    open_indexes: list[int] = []
    spans: list[tuple[int, int]] = []
    for index, character in enumerate(text):
        if character == "{":
            open_indexes.append(index)
        elif character == "}" and open_indexes:
            spans.append((open_indexes.pop(), index + 1))
    start, end = min(spans, default=(0, 0))
    return text[start:end]
