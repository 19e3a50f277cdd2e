"""`parse_reply`: parses the JSON text of a reply to a value of a Python type.

APIs accept only JSON schemas of objects. For any other type, such as `list[str]`, agentkit therefore sends the
schema of an object with one property (`VALUE_KEY`), which contains the value. `parse_reply` reads the value from
this property. Some models write the value without the object, or put the JSON into a code fence. `parse_reply`
also accepts such replies.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from inspect import isroutine
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic_core import SchemaError, to_json

from agentkit.errors import MessageError, OptionError, ParseError, ParseFailure
from agentkit.json_values import as_object, parse_json
from agentkit.messages.basic_blocks import TextBlock
from agentkit.messages.usage import FinishReason
from agentkit.messages.validation_errors import describe_error
from agentkit.reprs import as_one_line, shorten_repr

if TYPE_CHECKING:
    from agentkit.messages.message import Msg

__all__ = [
    "EARLY_ENDS",
    "VALUE_KEY",
    "create_adapter",
    "explain_error",
    "find_root",
    "has_object_root",
    "parse_reply",
    "read_text",
]

VALUE_KEY: Final = "value"
"""Name of the object property that contains the value if the type of the value is not an object type."""

EARLY_ENDS: Final[Mapping[FinishReason | None, tuple[ParseFailure, str]]] = {
    FinishReason.LENGTH: ("cut_off", "the reply reached the maximum number of tokens"),
    FinishReason.INTERRUPTED: ("cut_off", "the stream ended before the reply was complete"),
    FinishReason.ERROR: ("cut_off", "the provider reported an error inside the reply"),
    FinishReason.PAUSE: ("cut_off", "the provider paused the turn before the reply was complete"),
    FinishReason.REFUSAL: ("refused", "the model refused to answer"),
    FinishReason.CONTENT_FILTER: ("filtered", "a filter of the provider withheld or truncated the reply"),
}
"""Maps each finish reason of a reply that ended early to the failure and the description for a `ParseError`."""


class _Expected(NamedTuple):
    adapter: TypeAdapter[Any]
    is_wrapped: bool


def parse_reply(msg: Msg, expected: Any) -> Any:
    """Returns the value of the JSON text in a reply.

    Args:
        msg: Reply of a model.
        expected: Type of the value: any type for which pydantic can create a JSON schema.

    Raises:
        OptionError: If pydantic does not support the type.
        ParseError: If the text is not JSON, or the value does not match the type. A possible cause is that the
            reply was cut off, refused or filtered.
    """
    reader, text = _find_expected(expected), read_text(msg)
    partial: dict[str, Any] = {}
    try:
        value = _read_json(text)
        partial = as_object(value)
        return _validate(reader, value)
    except MessageError as error:
        failed = ParseError(error.reason, failure="no_structure", text=text)
    except ValidationError as error:
        place, reason = describe_error(error)
        failed = ParseError(reason, place=place or "reply", text=text, partial=partial)
    raise explain_error(failed, msg)


def read_text(msg: Msg, line_start: str | None = None) -> str:
    """Returns the text of a reply.

    Adjacent text blocks are one text, because Anthropic splits a text at its citations. If a block of a different
    type is between two text blocks, a line break separates the texts.

    Args:
        msg: Reply of a model.
        line_start: Text that may occur only at the start of a line. A line break is inserted before each text
            block that begins with this text, except the first text block. None if there is no such text.
    """
    if isinstance(msg.content, str):
        return msg.content
    texts: list[str] = []
    is_adjacent = True
    for block in msg.content:
        if isinstance(block, TextBlock):
            is_part = is_adjacent and not (line_start and block.text.startswith(line_start))
            texts.append(block.text if is_part or not texts else f"\n{block.text}")
        is_adjacent = isinstance(block, TextBlock)
    return "".join(texts)


def explain_error(error: ParseError, msg: Msg) -> ParseError:
    """Returns a copy of an error that contains the reply.

    If the reply ended early or has no text, the description of the copy states this cause.
    """
    failure, description = error.failure, error.description
    finish_reason = msg.finish_reason
    if finish_reason in EARLY_ENDS:
        failure, cause = EARLY_ENDS[finish_reason]
        description = f"{cause} ({description})"
    elif not msg.text.strip():
        description = "the reply has only tool calls" if msg.tool_uses else "the reply has no text"
    return ParseError(
        description,
        failure=failure,
        label=error.label,
        meta=error.meta,
        place=error.place,
        text=error.text,
        partial=error.partial,
        message=msg,
    )


def _read_json(text: str) -> Any:
    """Parses a text as JSON. If the text is not JSON, parses the content of its first code fence."""
    try:
        return parse_json(text)
    except MessageError:
        fenced = _find_fenced(text)
        if fenced is None:
            raise
    return parse_json(fenced)


def _find_fenced(text: str) -> str | None:
    """Returns the content of the first code fence. Returns None if there is no fence.

    The end of the fence may be missing, or may be at the end of the last line of the content.
    """
    content: list[str] | None = None
    for line in text.split("\n"):  # `splitlines` also splits at U+2028, which JSON strings may contain
        if line.lstrip().startswith("```"):
            if content is not None:
                break
            content = []
        elif content is not None:
            stripped = line.rstrip()
            content.append(stripped.removesuffix("```"))
            if stripped.endswith("```"):
                break
    return None if content is None else "\n".join(content)


def _validate(expected: _Expected, value: Any) -> Any:
    adapter, is_wrapped = expected
    if is_wrapped and isinstance(value, dict) and cast("dict[str, Any]", value).keys() == {VALUE_KEY}:
        try:
            return _validate_json(adapter, value[VALUE_KEY])
        except ValidationError as error:
            try:
                return _validate_json(adapter, value)
            except ValidationError:
                raise error from None
    return _validate_json(adapter, value)


def _validate_json(adapter: TypeAdapter[Any], value: Any) -> Any:
    # The value is validated as JSON text, because JSON represents a value such as a date as a string.
    return adapter.validate_json(to_json(value, inf_nan_mode="constants"))


# -- types and schemas -----------------------------------------------------------------------------------------


def create_adapter(expected: Any, place: str) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    """Returns pydantic's adapter for a type, and the JSON schema of the type.

    `place` is the name of the option in error texts.

    Raises:
        OptionError: If pydantic does not support the type.
    """
    try:
        if isroutine(expected):
            raise PydanticUserError(f"expected a type, got the function {expected.__name__!r}", code=None)
        adapter: TypeAdapter[Any] = TypeAdapter(expected)
        return adapter, adapter.json_schema()
    except (PydanticUserError, PydanticUndefinedAnnotation, SchemaError, TypeError) as error:
        text = as_one_line(str(error)) if isinstance(error, SchemaError) else str(error)
        reason = text.partition("\n")[0].rstrip(".")
    except RecursionError:
        reason = f"{shorten_repr(expected, 60)} is nested too deeply"
    raise OptionError(place, reason, "Pass a type that pydantic supports, such as a pydantic model.")


def _create_expected(expected: Any) -> _Expected:
    adapter, schema = create_adapter(expected, "parsed()")
    return _Expected(adapter, not has_object_root(schema))


@lru_cache(256)
def _cached_expected(expected: Any, name: str) -> _Expected:
    return _create_expected(expected)


def _find_expected(expected: Any) -> _Expected:
    try:
        # `A | B` and `B | A` are equal, but pydantic reads them differently, so the cache key contains the repr.
        return _cached_expected(expected, repr(expected))
    except TypeError:  # some annotations cannot be hashed, so the result is not cached
        return _create_expected(expected)


def find_root(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a copy of a schema. If the root is a `$ref`, the referenced definition replaces the root.

    APIs require the schema of an object at the root, and not a reference.
    """
    for holder in ("$defs", "definitions"):
        name = str(schema.get("$ref", "")).removeprefix(f"#/{holder}/")
        if name in schema.get(holder, {}):
            return {**schema[holder][name], holder: schema[holder]}
    return dict(schema)


def has_object_root(schema: Mapping[str, Any]) -> bool:
    """Returns True if the root of a schema describes an object. APIs accept only such schemas.

    A root without `type` counts as an object, unless the root has `anyOf`, `oneOf`, `enum` or `const`.
    """
    root = find_root(schema)
    if "type" in root:
        return bool(root["type"] == "object")
    return not root.keys() & {"anyOf", "oneOf", "enum", "const"}
