"""Assembly of server parts (blocks that the provider's server creates) from the pieces of a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from agentkit.provider_kit import make_json_safe

__all__ = ["ServerPart"]


class ServerPart:
    """Server part of a streamed reply while it arrives, such as a server tool call or a compaction."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data: dict[str, Any] = make_json_safe(data)
        self.pieces: list[str] = []

    def read(self, delta: Mapping[str, Any]) -> None:
        """Adds a piece of a tool call's arguments, or sets the content of a compaction.

        Source: SDK, BetaCompactionContentBlockDelta.
        """
        if delta.get("type") == "compaction_delta":
            fields = {key: delta.get(key) for key in ("content", "encrypted_content")}
            self.data |= make_json_safe({key: item for key, item in fields.items() if item is not None})
        elif isinstance(piece := delta.get("partial_json"), str):
            self.pieces.append(piece)

    def build(self) -> dict[str, Any] | None:
        """Returns the complete part with parsed arguments, or None if the arguments are not a JSON object."""
        text = "".join(self.pieces)
        if not text.strip():
            return self.data
        try:
            arguments = make_json_safe(from_json(text.encode("utf-8", "replace")))
        except ValueError:
            return None
        return {**self.data, "input": arguments} if isinstance(arguments, dict) else None

    def build_incomplete(self) -> dict[str, Any]:
        """Returns an interrupted part. Its `partial_input` has the text of the arguments that arrived."""
        return {**self.data, "partial_input": "".join(self.pieces)}
