"""`ReplyCallIds`: chooses the ids of the tool calls in the text of a reply."""

from __future__ import annotations

import hashlib

from agentkit.json_values import as_text

__all__ = ["ReplyCallIds"]


class ReplyCallIds:
    """Ids of the tool calls of one reply.

    A call keeps the id that the model wrote. If the id is missing or repeated, a new id is computed from the
    prompt and the text before the call. So equal texts get equal ids, and two equal calls of a reply get two ids.

    Args:
        prompt: Text before the reply.
    """

    def __init__(self, prompt: str) -> None:
        self._digest = hashlib.sha256(prompt.encode("utf-8", "surrogatepass"))
        self._used: set[str] = set()

    def add_text(self, text: str) -> None:
        """Adds the next text of the reply, up to the start of a region with calls."""
        self._digest.update(as_text(text).encode())

    def choose(self, id: str, index: int) -> str:
        """Returns the id of a tool call.

        Args:
            id: Id that the model wrote. Empty if there is none.
            index: Index of the call in its region.
        """
        if not id or id in self._used:
            id = f"call_{self._digest.hexdigest()[:24]}{f'_{index}' if index else ''}"
        self._used.add(id)
        return id
