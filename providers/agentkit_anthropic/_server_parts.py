"""Parts that the server made, in the making: what it asked of itself, piece by piece."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from agentkit.provider_kit import make_json_safe

__all__ = ["ServerPart"]


class ServerPart:
    """A part that the server made, until it is complete."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data: dict[str, Any] = make_json_safe(data)
        self.pieces: list[str] = []

    def read(self, delta: Mapping[str, Any]) -> None:
        """A piece of a use's arguments, or what a compaction is told anew (BetaCompactionContentBlockDelta)."""
        if delta.get("type") == "compaction_delta":
            told = {key: delta.get(key) for key in ("content", "encrypted_content")}
            self.data |= make_json_safe({key: item for key, item in told.items() if item is not None})
        elif isinstance(piece := delta.get("partial_json"), str):
            self.pieces.append(piece)

    def whole(self) -> dict[str, Any] | None:
        """The part with its arguments; None if they are no JSON object."""
        text = "".join(self.pieces)
        if not text.strip():
            return self.data
        try:
            found = make_json_safe(from_json(text.encode("utf-8", "replace")))
        except ValueError:
            return None
        return {**self.data, "input": found} if isinstance(found, dict) else None

    def cut(self) -> dict[str, Any]:
        """What came of a part that broke off."""
        return {**self.data, "partial_input": "".join(self.pieces)}
