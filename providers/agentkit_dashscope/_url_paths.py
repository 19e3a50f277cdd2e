"""Conversion of messages for the two URL paths of DashScope's native API, "text" and "multimodal"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from agentkit.provider_kit import as_list

__all__ = ["ModelPath", "OTHER_PATH", "PATH_URLS", "convert_content", "find_path"]

ModelPath: TypeAlias = Literal["text", "multimodal"]

PATH_URLS: Final[dict[ModelPath, str]] = {
    "text": "/services/aigc/text-generation/generation",
    "multimodal": "/services/aigc/multimodal-generation/generation",
}

OTHER_PATH: Final[dict[str, ModelPath]] = {
    PATH_URLS["text"]: "multimodal",
    PATH_URLS["multimodal"]: "text",
}
"""Name of the other path, by URL path. The endpoint tries the other path if the API refuses the first path."""


def find_path(messages: Sequence[Mapping[str, Any]]) -> ModelPath:
    """Returns "multimodal" if the content of any message is a list of parts. Otherwise returns "text"."""
    return "multimodal" if any(isinstance(message.get("content"), list) for message in messages) else "text"


def convert_content(messages: Sequence[dict[str, Any]], path: ModelPath) -> list[dict[str, Any]]:
    """Converts the content of messages to strings (text path) or to lists of parts (multimodal path)."""
    if find_path(messages) == path:
        return list(messages)
    convert = _join_parts if path == "text" else _as_parts
    return [{**message, "content": convert(message.get("content"))} for message in messages]


def _join_parts(content: Any) -> Any:
    """Joins content that has only text parts into a string. Returns any other content unchanged."""
    parts = as_list(content)
    texts = [part["text"] for part in parts if "text" in part]
    return "\n".join(texts) if parts and len(texts) == len(parts) else content


def _as_parts(content: Any) -> Any:
    return [{"text": content}] if isinstance(content, str) and content else content
