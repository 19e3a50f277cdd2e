r"""`XMLAdapter`: writes each field between its tags. The prompts have the same wording as in DSPy 3.4.1.

The section of a field is a line `<name>`, the value, and a line `</name>`. An output that is a list, a dict, a
TypedDict or a pydantic model is written as nested tags on one line: `<stops><item>Oslo</item></stops>`.

The table lists the differences from DSPy. A row separates values that DSPy writes or reads as the same value, or
keeps a value from changing another field. All other values are written as DSPy writes them. The rows 1 to 9 and 11
of the table in `value_escapes` apply to values between tags too.

1. Reference such as `&lt;`, tag of the field itself, CDATA section or comment. The row applies to inputs, and to
   outputs that are neither `str` nor nested. If a parser would read another text, `&` and `<` become `&amp;` and
   `&lt;` everywhere in the text. DSPy escapes only outputs of the type `str` and nested outputs, and always
   escapes them.
   Input `x`: "R&amp;D" becomes `R&amp;amp;D`, and "a</x>b" becomes `a&lt;/x>b`. "<b>R&D</b>" is unchanged.
2. Tag in a value of a type that is not a text type, such as an input of the type `Any`. The value is escaped as in
   row 1. JSON with tags in its strings is unchanged.
   `Any`: "<b>a</b>" becomes `&lt;b>a&lt;/b>`. DSPy reads {"b": "a"}.
3. Empty text as an output whose type allows None. The section contains an empty CDATA section.
   `str | None`: "" becomes `<![CDATA[]]>`, and None becomes `None`. DSPy reads an empty section as None.
4. Nested value that tags cannot represent. The section contains JSON, which DSPy reads too. Examples are outer
   white space, an empty text or list if None is allowed, and a text such as "5" if numbers are allowed.
   `list[str]`: [" a"] becomes `[" a"]`. DSPy writes `<item> a</item>`, and reads "a".
5. None as the value of a nested type. The text `None` is read as None.
   `list[str] | None`: DSPy writes `None`, and reads ["None"].
6. Number, boolean, None or list in a part whose type is `Any` or a union. The tags are read as these values.
   `dict[str, Any]`: `<a>1</a><b /><c><item>x</item></c>` is read as {"a": 1, "b": None, "c": ["x"]}. DSPy reads
   {"a": "1", "b": "", "c": {"item": "x"}}.
7. In a reply: opening tag without a closing tag, closing tag without an opening tag, and `&` that begins no known
   reference. They are read as text. DSPy refuses the reply.
   `<x>if a < b && c</x>` is read as "if a < b && c".
8. Carriage return, other line breaks and control characters. They are unchanged. DSPy reads a line feed instead of
   a carriage return, and refuses control characters.
9. Repeated section of an output that is a text. The first section counts. DSPy returns the list of all texts as
   one text.
10. Text with tags. From the first tag on, the text is read unchanged, without the outer white space of the
   section. DSPy changes quotes, spaces and `>`, and keeps the outer white space.
   `<x> <b a='c'>d</b> </x>` is read as "<b a='c'>d</b>". DSPy reads ` <b a="c">d</b> `.
11. Union. The names of the tags select the member of the union. A section without tags is a text if the union
   contains `str`.
   `list[str] | str`: `hi` is read as "hi". DSPy reads ["hi"].

A reply that declares a document type or an entity is refused, as in DSPy.

>>> escape_section("x", "R&D <b>a</b>")
'R&D <b>a</b>'
>>> escape_section("x", "a</x><y>b</y>")
'a&lt;/x>&lt;y>b&lt;/y>'
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_args

from agentkit.errors import OptionError, ParseError
from agentkit.prompts.chat_adapter import STRUCTURE, ChatAdapter, parse_field
from agentkit.prompts.field_content import Segment, write_content
from agentkit.prompts.field_texts import placeholder
from agentkit.prompts.fields import SignatureField
from agentkit.prompts.signature import Signature
from agentkit.prompts.type_names import is_tool_calls
from agentkit.prompts.value_parsing import parse_value
from agentkit.prompts.value_types import as_json_value
from agentkit.prompts.xml_elements import Element, has_declaration, read_elements
from agentkit.prompts.xml_references import escape_references
from agentkit.prompts.xml_values import describe_tags, has_tags, is_list, is_text_field, read_tags, write_tags

if TYPE_CHECKING:
    from agentkit.prompts.field_stream_parser import FieldStreamParser

__all__ = ["XMLAdapter", "escape_section"]

_AnySignature: TypeAlias = type[Signature[Any]]

_EMPTY: Final = "<![CDATA[]]>"
_JSON_STARTS: Final = ("[", "{")


@dataclass(frozen=True)
class XMLAdapter(ChatAdapter):
    """Adapter whose prompts and replies have each field between tags such as `<answer>` and `</answer>`.

    In a reply, the text outside the tags of the outputs is ignored. In a prompt, values are escaped, so that a
    value cannot add the section of another field (see the table in `xml_adapter`).

    Raises:
        MissingExtraError: The package json-repair of the extra `prompts` is not installed.
    """

    def format_field_structure(self, signature: _AnySignature) -> str:
        """Returns the sections of all fields, with placeholders for the values."""
        inputs = "\n\n".join(map(_describe_section, signature.input_fields.values()))
        outputs = "\n\n".join(map(_describe_section, signature.output_fields.values()))
        return "\n\n".join((STRUCTURE, inputs, outputs))

    def format_field_with_value(self, field: SignatureField, value: object) -> list[Segment]:
        """Returns the section of one input: its tags and its value, as texts and media blocks."""
        content = [
            escape_section(field.name, item, is_text=is_text_field(field)) if isinstance(item, str) else item
            for item in write_content(field, value)
        ]
        return [f"<{field.name}>\n", *content, f"\n</{field.name}>"]

    def user_message_output_requirements(self, signature: _AnySignature) -> str:
        """Returns the sentence that reminds the model of the tags of the outputs.

        Empty if there are no outputs.
        """
        fields = signature.output_fields.values()
        if not fields:
            return ""
        names = ", then ".join(f"`<{field.name}>`" for field in fields)
        nested = " ".join(_describe_nested(field) for field in fields if has_tags(field.type))
        suffix = f" Use this nested XML structure: {nested}" if nested else ""
        return f"Respond with the corresponding output fields wrapped in XML tags {names}.{suffix}"

    def format_assistant_message_content(
        self, signature: _AnySignature, outputs: Mapping[str, Any], missing: str | None = None
    ) -> str:
        """Returns the text of a reply: one section for each output."""
        return "\n\n".join(
            write_section(field.name, missing)
            if missing is not None and field.name not in outputs
            else _write_output(field, outputs.get(field.name))
            for field in signature.output_fields.values()
        )

    def stream_parser(self, signature: _AnySignature) -> FieldStreamParser:
        """Returns a parser that reports the texts between the tags of a streamed reply as they arrive.

        If a subclass overrides `parse_text`, the parser reports all fields at the end of the reply.
        """
        from agentkit.prompts.xml_stream_parser import XMLStreamParser

        if type(self).parse_text is not XMLAdapter.parse_text:
            return super().stream_parser(signature)
        return XMLStreamParser(self, signature)

    def parse_text(self, signature: _AnySignature, text: str) -> dict[str, Any]:
        """Returns the outputs in the sections of a reply. Other elements are ignored.

        Raises:
            ParseError: The text lacks an output, a value is invalid, or the text declares a document type or an
                entity.
        """
        elements = [*read_elements(text, signature.output_fields)]
        if has_declaration(text, elements):
            reason = "expected tags of the outputs, but the reply declares a document type or an entity"
            raise ParseError(reason, failure="no_structure", text=text)
        outputs: dict[str, Any] = {}
        for name, field in signature.output_fields.items():
            sections = [element for element in elements if element.name == name]
            if sections:
                outputs[name] = _read_output(field, sections, outputs)
        return self.fill_outputs(signature, outputs, text)


def write_section(name: str, text: str) -> str:
    """Returns the section of a field: a text between the tags of the field."""
    return f"<{name}>\n{text}\n</{name}>"


def _describe_section(field: SignatureField) -> str:
    if field.is_output and has_tags(field.type):
        return _describe_nested(field)
    return write_section(field.name, placeholder(field))


def _describe_nested(field: SignatureField) -> str:
    try:
        return describe_tags(field.name, field.type)
    except OptionError as error:
        raise OptionError(field.name, error.reason, error.advice) from None


# -- writing --------------------------------------------------------------------------------------------------


def escape_section(name: str, text: str, *, is_text: bool = True) -> str:
    """Escapes `&` and `<` if a parser would otherwise read a changed text, or end the section too early.

    Args:
        name: Name of the field.
        text: Text of the section.
        is_text: True if tags in the section belong to a text. False if they belong to a nested value.
    """
    return text if _reads_as_text(name, text, is_text) else escape_references(text)


def _reads_as_text(name: str, text: str, is_text: bool) -> bool:
    if "<" not in text and "&" not in text:
        return True
    # The suffix `--> ]]> </NAME>` closes each comment, CDATA section and tag that the text leaves open.
    element = next(read_elements(f"{write_section(name, text)}--> ]]> </{name}>"), None)
    if element is None or element.source != f"\n{text}\n" or element.text != text.strip():
        return False
    return is_text or not element.children or element.text.startswith(_JSON_STARTS)


def _write_output(field: SignatureField, value: object) -> str:
    if has_tags(field.type):
        json_value = as_json_value(value)
        if type(json_value) in (list, dict):
            tags = write_tags(json_value, field.name)
            if _reads_as_value(field, tags, json_value):
                return tags
    text = "".join(item for item in write_content(field, value) if isinstance(item, str))
    if field.type is str:
        text = escape_references(text)
    elif not text and _allows_none(field):
        text = _EMPTY
    else:
        text = escape_section(field.name, text, is_text=is_text_field(field))
    return write_section(field.name, text)


def _reads_as_value(field: SignatureField, tags: str, json_value: object) -> bool:
    """Returns True if nested tags are read as the value, or if the value does not fit the type."""
    try:
        expected = parse_value(json_value, field.type)
    except ParseError:
        return True
    try:
        found = _read_nested(field, field.type, [*read_elements(tags)])
    except ParseError:
        return False
    return json.dumps(as_json_value(found)) == json.dumps(as_json_value(expected))


# -- reading --------------------------------------------------------------------------------------------------


def _allows_none(field: SignatureField) -> bool:
    return NoneType in get_args(field.type)


def _read_output(field: SignatureField, sections: Sequence[Element], partial: Mapping[str, Any]) -> Any:
    """Reads the value of an output from its sections.

    Raises:
        ParseError: The value does not fit the type or the constraints.
    """
    section = sections[0]
    if section.is_blank and _allows_none(field):
        return None
    if is_tool_calls(field.type):
        value = section.text if _is_json(section) else next(read_tags(sections, Any))
        return parse_field(field, value, partial)
    if is_text_field(field):
        return parse_field(field, section.text, partial)
    try:
        return _read_nested(field, field.annotation, sections)
    except ParseError as error:
        error.partial = dict(partial)
        raise


def _is_json(section: Element) -> bool:
    """Returns True if a section contains JSON or a text without tags. Returns False if it contains nested tags."""
    return not section.children or section.text.startswith(_JSON_STARTS)


def _read_nested(field: SignatureField, annotation: Any, sections: Sequence[Element]) -> Any:
    errors: list[ParseError] = []
    for value in _list_candidates(field.type, sections):
        try:
            return parse_value(value, annotation, place=field.name)
        except ParseError as error:
            errors.append(error)
    raise errors[0]


def _list_candidates(annotation: Any, sections: Sequence[Element]) -> Iterator[Any]:
    """Yields the possible values of an output: values of the nested tags, and the text of the first section."""
    text = sections[0].text
    if len(sections) > 1 or not _is_json(sections[0]):
        yield from read_tags(sections, annotation)
        return
    is_item = is_list(annotation) and not text.startswith("[") and text not in ("None", "null")
    if not is_item:
        yield text
    yield from read_tags(sections, annotation)
    yield text
