"""Ids for tool calls that arrive without an id."""

from __future__ import annotations

from collections import Counter

from agentkit.capabilities.name_rules import short_hash

__all__ = ["MissingCallIds", "derive_call_id"]


def derive_call_id(seed: str) -> str:
    """Returns an id for a tool call that has no id. Equal seeds result in equal ids."""
    return f"call_{short_hash(seed, 24)}"


class MissingCallIds:
    """Generator of ids for one reply. Tool calls that arrive without an id get these ids.

    The ids are the same for a stream and a complete reply with the same content. Therefore, the ids do not depend
    on the key of the block, because this key can differ between a stream and a complete reply.
    """

    def __init__(self) -> None:
        self._calls: Counter[str] = Counter()  # number of calls with the same content

    def create(self, *content: str | None) -> str:
        """Returns the id of a tool call. Calls with the same content get different ids.

        Args:
            content: The name and arguments of the tool call, and values that identify the reply.
        """
        identity = repr(content)
        self._calls[identity] += 1
        return derive_call_id(f"{identity}{self._calls[identity]}")
