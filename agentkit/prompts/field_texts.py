"""Texts about a field in a prompt: its entry in the list of fields, its placeholder, and the type in the reminder.

The texts are those of DSPy 3.4.1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, Final, Literal, cast, get_args, get_origin

from agentkit.messages.blocks import DocumentBlock
from agentkit.prompts.field_types import Code, Reasoning
from agentkit.prompts.fields import SignatureField
from agentkit.prompts.type_names import is_tool_calls, type_name

__all__ = ["field_list", "list_entry", "placeholder", "schema_text", "type_requirement"]


def field_list(fields: Mapping[str, SignatureField]) -> str:
    """Returns the numbered list of the fields. The list has no white space at its start and end."""
    return "\n".join(list_entry(number, field) for number, field in enumerate(fields.values(), 1)).strip()


def list_entry(number: int, field: SignatureField) -> str:
    """Returns the entry of a field in the list of fields: number, name, type, description and constraints.

    An entry without a description ends in a space. `field_list` removes the space after the last entry.
    """
    entry = f"{number}. `{field.name}` ({type_name(field.type)}): {field.description}"
    for name, text in _type_descriptions(field.type):
        entry += f"\n    Type description of {name}: {text}"
    constraints = field.constraint_text
    return f"{entry}\nConstraints: {constraints}" if constraints else entry


def placeholder(field: SignatureField) -> str:
    """Returns the placeholder of a field, such as `{score}`. For some outputs, a note about the value follows."""
    note = _value_note(field) if field.is_output else ""
    return f"{{{field.name}}}        # note: the value you produce {note}" if note else f"{{{field.name}}}"


def type_requirement(field: SignatureField) -> str:
    """Returns the text about an output's type, for the reminder in a request. The text is empty for `str`."""
    if field.type is str:
        return ""
    if is_tool_calls(field.type):
        return '(must be a JSON object like {"tool_calls": [{"name": "...", "args": {...}}]})'
    return f"(must be formatted as a valid Python {type_name(field.type)})"


def schema_text(field: SignatureField) -> str:
    """Returns the JSON schema of a field's type on one line. Keys are sorted, but `type` is the first key.

    The schema does not contain the constraints of the field. `list_entry` writes the constraints.

    Raises:
        OptionError: The type has no JSON schema.
    """
    if is_tool_calls(field.type):
        return _TOOL_CALLS_SCHEMA
    return json.dumps(_sort_keys(field.json_schema()), ensure_ascii=False)


def _value_note(field: SignatureField) -> str:
    """Returns the rule for the value of an output, such as `must be True or False`. Empty for texts and code."""
    expected = field.type
    if expected is str or _is_text_type(expected):
        return ""
    if expected is bool:
        return "must be True or False"
    if expected in (int, float):
        return f"must be a single {expected.__name__} value"
    if isinstance(expected, type) and issubclass(expected, Enum):
        return f"must be one of: {'; '.join(str(member.value) for member in expected)}"
    if get_origin(expected) is Literal:
        return f"must exactly match (no extra characters) one of: {'; '.join(map(str, get_args(expected)))}"
    return f"must adhere to the JSON schema: {schema_text(field)}"


def _sort_keys(schema: Any) -> Any:
    if isinstance(schema, dict):
        pairs = cast("dict[str, Any]", schema).items()
        return {
            key: _sort_keys(item) for key, item in sorted(pairs, key=lambda pair: (pair[0] != "type", pair[0]))
        }
    if isinstance(schema, list):
        return [_sort_keys(item) for item in cast("list[Any]", schema)]
    return schema


def _is_text_type(expected: Any) -> bool:
    return expected is Reasoning or (isinstance(expected, type) and issubclass(expected, Code))


def _type_descriptions(annotation: Any) -> Iterator[tuple[str, str]]:
    """Yields the name and description of each special type, such as `Code`, in a type or its type arguments."""
    description = _describe_type(annotation)
    if description:
        yield type_name(annotation), description
        return
    for item in get_args(annotation):
        yield from _type_descriptions(item)


def _describe_type(annotation: Any) -> str:
    if is_tool_calls(annotation):
        return _TOOL_CALLS
    if annotation is DocumentBlock:
        return _DOCUMENT
    if isinstance(annotation, type) and issubclass(annotation, Code):
        language = annotation.language
        return _CODE.format(fence=language.lower(), language=language)
    return ""


_TOOL_CALLS: Final = (
    "Tool calls must be a JSON object with `tool_calls`, a list of calls. "
    "Each call must include `name` and `args`. "
    'Example: {"tool_calls": [{"name": "search", "args": {"query": "cats"}}]}'
)
_DOCUMENT: Final = (
    "A document containing text content that can be referenced and cited. "
    "Include the full text content and optionally a title for proper referencing."
)
_CODE: Final = (
    "Code represented in a string, specified in the `code` field. If this is an output field, "
    "the code field should follow the markdown code block format, e.g. \n```{fence}\n{{code}}\n```\n"
    "Programming language: {language}"
)
_TOOL_CALLS_SCHEMA: Final = (
    '{"type": "object", "$defs": {"ToolCall": {"type": "object", "properties": {"args": {"type": "object", '
    '"additionalProperties": true, "title": "Args"}, "name": {"type": "string", "title": "Name"}}, '
    '"required": ["name", "args"], "title": "ToolCall"}}, "properties": {"tool_calls": {"type": "array", '
    '"items": {"$ref": "#/$defs/ToolCall"}, "title": "Tool Calls"}}, "required": ["tool_calls"], '
    '"title": "ToolCalls"}'
)
"""JSON schema of the tool calls that a reply contains as text: the schema of DSPy's type `ToolCalls`."""
