"""`ChatAdapter`: writes each field as a section with the header `[[ ## name ## ]]`.

The prompts have the same wording as in DSPy 3.4.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from agentkit.errors import ParseError
from agentkit.prompts.adapter import Adapter
from agentkit.prompts.field_content import Segment, write_content
from agentkit.prompts.field_texts import field_list, placeholder, type_requirement
from agentkit.prompts.fields import SignatureField
from agentkit.prompts.lenient_json import require_json_repair
from agentkit.prompts.signature import Signature
from agentkit.prompts.tool_call_values import read_tool_calls
from agentkit.prompts.value_escapes import escape_markers, unescape_markers
from agentkit.prompts.value_parsing import parse_value

if TYPE_CHECKING:
    from agentkit.prompts.field_stream_parser import FieldStreamParser

__all__ = ["ChatAdapter", "STRUCTURE", "parse_field", "read_sections", "write_section"]

_AnySignature: TypeAlias = type[Signature[Any]]

_HEADER: Final = re.compile(r"\[\[ ## (\w+) ## \]\]")
_COMPLETED: Final = "[[ ## completed ## ]]"
STRUCTURE: Final = (
    "All interactions will be structured in the following way, with the appropriate values filled in."
)


@dataclass(frozen=True)
class ChatAdapter(Adapter):
    """Adapter whose prompts and replies have one section for each field.

    A section is the header line `[[ ## name ## ]]` with the value below it. If a line of a value looks like a
    header, the adapter writes a backslash before the header. The line then cannot begin the section of another
    field.

    Raises:
        MissingExtraError: The package json-repair of the extra `prompts` is not installed.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        require_json_repair()

    def format_field_description(self, signature: _AnySignature) -> str:
        """Returns the lists of the inputs and outputs, with types and descriptions."""
        inputs, outputs = field_list(signature.input_fields), field_list(signature.output_fields)
        return f"Your input fields are:\n{inputs}\nYour output fields are:\n{outputs}"

    def format_field_structure(self, signature: _AnySignature) -> str:
        """Returns the sections of all fields, with placeholders for the values."""
        sections = [write_section(field.name, placeholder(field)) for field in signature.fields.values()]
        return "\n\n".join((STRUCTURE, *sections, _COMPLETED))

    def format_task_description(self, signature: _AnySignature) -> str:
        """Returns the instructions of the signature, indented by eight spaces."""
        lines = "".join(f"\n        {line}" for line in signature.instructions.split("\n"))
        return f"In adhering to this structure, your objective is: {lines}"

    def format_field_with_value(self, field: SignatureField, value: object) -> list[Segment]:
        """Returns the section of one input: its header and its value, as texts and media blocks."""
        content = write_content(field, value)
        escaped = [escape_markers(item) if isinstance(item, str) else item for item in content]
        return [f"[[ ## {field.name} ## ]]\n", *escaped]

    def user_message_output_requirements(self, signature: _AnySignature) -> str:
        """Returns the sentence that reminds the model of the section headers of the outputs.

        Empty if there are no outputs.
        """
        if not signature.output_fields:
            return ""
        names = ", then ".join(
            " ".join(filter(None, (f"`[[ ## {field.name} ## ]]`", type_requirement(field))))
            for field in signature.output_fields.values()
        )
        return (
            f"Respond with the corresponding output fields, starting with the field {names}, "
            f"and then ending with the marker for `{_COMPLETED}`."
        )

    def format_assistant_message_content(
        self, signature: _AnySignature, outputs: Mapping[str, Any], missing: str | None = None
    ) -> str:
        """Returns the text of a reply: one section for each output, and the marker `[[ ## completed ## ]]`."""
        sections = "\n\n".join(
            write_section(field.name, self._write_output(field, outputs, missing))
            for field in signature.output_fields.values()
        )
        return f"{sections.strip()}\n\n{_COMPLETED}\n"

    def _write_output(self, field: SignatureField, outputs: Mapping[str, Any], missing: str | None) -> str:
        if missing is not None and field.name not in outputs:
            return missing
        value = outputs.get(field.name)
        return escape_markers("".join(item for item in write_content(field, value) if isinstance(item, str)))

    def stream_parser(self, signature: _AnySignature) -> FieldStreamParser:
        """Returns a parser that reports the sections of a streamed reply as they arrive.

        If a subclass overrides `parse_text`, the parser returns all events at the end of the reply.
        """
        from agentkit.prompts.chat_stream_parser import ChatStreamParser

        if type(self).parse_text is not ChatAdapter.parse_text:
            return super().stream_parser(signature)
        return ChatStreamParser(self, signature)

    def parse_text(self, signature: _AnySignature, text: str) -> dict[str, Any]:
        """Returns the outputs in a reply. Only the first section of each output is read.

        Raises:
            ParseError: The text lacks an output, or a value is invalid.
        """
        outputs: dict[str, Any] = {}
        fields = signature.output_fields
        for name, section in read_sections(text):
            field = fields.get(name)
            if field is not None and name not in outputs:
                outputs[name] = parse_field(field, unescape_markers(section), outputs)
        return self.fill_outputs(signature, outputs, text)


def write_section(name: str, text: str) -> str:
    """Returns the section of a field: the header of the field, and the text below the header."""
    return f"[[ ## {name} ## ]]\n{text}"


def read_sections(text: str) -> Iterator[tuple[str, str]]:
    """Yields the name and the stripped text of each section. The text before the first header is ignored.

    A header at the start of a line opens a section. White space may precede the header. If text follows the header
    on the same line, this text is the first line of the section.
    """
    name, start = "", 0
    for match in _HEADER.finditer(text):
        end, next_start = match.span()
        if end and text[end - 1] != "\n" and not _begins_line(text, end):
            continue
        if name:
            yield name, text[start:end].strip()
        name, start = match[1], next_start
    if name:
        yield name, text[start:].strip()


def _begins_line(text: str, index: int) -> bool:
    """Returns True if the line that contains the index has only white space before the index."""
    while index and text[index - 1] not in _LINE_BREAKS:
        index -= 1
        if not text[index].isspace():
            return False
    return True


_LINE_BREAKS: Final = frozenset("\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029")
"""Characters that `str.splitlines` recognizes as the end of a line."""


def parse_field(field: SignatureField, value: object, partial: Mapping[str, Any], *, is_json: bool = False) -> Any:
    """Parses the value of an output.

    Args:
        field: The output.
        value: Text of the section, or a JSON value.
        partial: Outputs that were parsed earlier. An error contains them in its attribute `partial`.
        is_json: True if `value` is a JSON value.

    Raises:
        ParseError: The value does not fit the type or the constraints.
    """
    try:
        if field.has_tool_calls:
            return field.validate(read_tool_calls(field.name, value))
        return parse_value(value, field.annotation, is_json=is_json, place=field.name)
    except ParseError as error:
        error.partial = dict(partial)
        raise
