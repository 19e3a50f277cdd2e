"""`type_name`: returns the name of a type in prompts, such as `list[str]` or `Literal['yes', 'no']`."""

from __future__ import annotations

from types import UnionType
from typing import Any, Final, Literal, Union, cast, get_args, get_origin

from agentkit.messages.blocks import AudioBlock, DocumentBlock, ImageBlock, ToolUseBlock, VideoBlock
from agentkit.prompts.field_types import Reasoning

__all__ = ["is_tool_calls", "type_name"]


def type_name(annotation: Any) -> str:
    """Returns the name of a type as DSPy 3.4.1 writes it.

    - A class has its own name. Media blocks have the names of DSPy's types: `Image`, `Audio`, `Document`. A video
      block has the name `Video`. `list[ToolUseBlock]` has the name `ToolCalls`. `Reasoning` has the name `str`.
    - `X | None` and `Optional[X]` are both `Union[X, NoneType]`.
    - A string in a `Literal` is in single quotes. If the string contains single quotes but no double quotes, it is
      in double quotes. If the string contains both, it is in single quotes, and a backslash precedes each of its
      own single quotes.

    >>> type_name(dict[str, int | None])
    'dict[str, Union[int, NoneType]]'
    """
    if is_tool_calls(annotation):
        return "ToolCalls"
    origin = get_origin(annotation)
    if origin is None:
        return _plain_name(annotation)
    is_literal = origin is Literal
    members = (
        _quote(item) if is_literal and isinstance(item, str) else type_name(item) for item in get_args(annotation)
    )
    name = _plain_name(Union if origin is UnionType else origin)
    return f"{name}[{', '.join(members)}]"


def is_tool_calls(annotation: Any) -> bool:
    """Returns True if a type is `list[ToolUseBlock]`, the type of a field for tool calls."""
    return get_origin(annotation) is list and get_args(annotation) == (ToolUseBlock,)


def _plain_name(annotation: Any) -> str:
    if annotation is Reasoning:
        return "str"
    if isinstance(annotation, type) and annotation in _BLOCK_NAMES:
        return _BLOCK_NAMES[annotation]
    name = getattr(annotation, "__name__", None)
    return str(annotation) if name is None else cast("str", name)


_BLOCK_NAMES: Final[dict[type, str]] = {
    ImageBlock: "Image",
    AudioBlock: "Audio",
    VideoBlock: "Video",
    DocumentBlock: "Document",
}


def _quote(text: str) -> str:
    if "'" not in text:
        return f"'{text}'"
    if '"' not in text:
        return f'"{text}"'
    escaped = text.replace("'", "\\'")
    return f"'{escaped}'"
