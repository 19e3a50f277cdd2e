"""Matching of tool results with tool calls, by id and in order of arrival."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from agentkit.messages.blocks import ToolResultBlock, ToolUseBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg

__all__ = ["BlockIndex", "Matches", "match_results"]

BlockIndex: TypeAlias = tuple[int, int]
"""Indexes (message, block) in the conversation under repair."""


@dataclass(slots=True)
class Matches:
    """Results and their calls.

    Attributes:
        results: The result of each call that has one.
        unmatched: The results that belong to no call, with the names of their tools.
        duplicates: The unmatched results that equal the last result of their call.

    """

    results: dict[BlockIndex, BlockIndex] = field(default_factory=dict[BlockIndex, BlockIndex])
    unmatched: dict[BlockIndex, str] = field(default_factory=dict[BlockIndex, str])
    duplicates: set[BlockIndex] = field(default_factory=set[BlockIndex])


def match_results(msgs: Sequence[Msg]) -> Matches:
    """Matches each result with the oldest open call of its id.

    Messages without tool blocks divide the conversation into phases. A call with an id of an earlier phase begins
    a new turn: the calls of the earlier phase stay without a result. Several servers repeat ids from turn to turn.
    """
    matching = _Matching()
    for index, msg in enumerate(msgs):
        if msg.features & Feature.TOOL:
            matching.add_message(index, msg)
        else:
            matching.phase += 1
    return matching.matches


@dataclass(slots=True)
class _Calls:
    """Calls of one id.

    Attributes:
        open: The calls without a result.
        phase: The phase of the last call.
        tool_name: The tool of the last call.
        last_result: The last result, with its phase; None if there is no result.

    """

    open: deque[BlockIndex] = field(default_factory=deque[BlockIndex])
    phase: int = 0
    tool_name: str = ""
    last_result: tuple[int, ToolResultBlock] | None = None


@dataclass(slots=True)
class _Matching:
    """State of one pass over a conversation. `phase` counts the messages without tool blocks so far."""

    matches: Matches = field(default_factory=Matches)
    calls: dict[str, _Calls] = field(default_factory=dict[str, _Calls])
    phase: int = 0

    def add_message(self, index: int, msg: Msg) -> None:
        """Adds the calls and results of a message."""
        later_calls = _LaterCalls(msg)
        for block_index, block in enumerate(msg.blocks):
            if isinstance(block, ToolUseBlock):
                if block_index not in later_calls.claimed:
                    self._add_call(block, (index, block_index))
            elif isinstance(block, ToolResultBlock):
                self._add_result(block, (index, block_index), later_calls)

    def _add_call(self, block: ToolUseBlock, index: BlockIndex) -> None:
        calls = self.calls.setdefault(block.id, _Calls())
        if calls.phase != self.phase:
            calls.open.clear()
        calls.phase, calls.tool_name = self.phase, block.name
        calls.open.append(index)

    def _add_result(self, block: ToolResultBlock, index: BlockIndex, later_calls: _LaterCalls) -> None:
        calls = self.calls.setdefault(block.id, _Calls())
        if calls.open:
            self.matches.results[calls.open.popleft()] = index
        elif (later := later_calls.claim(block.id, index[1])) is not None:
            self.matches.results[index[0], later] = index
        else:
            self.matches.unmatched[index] = block.name or calls.tool_name
            if calls.last_result == (self.phase, block):
                self.matches.duplicates.add(index)
            return
        calls.last_result = (self.phase, block)


class _LaterCalls:
    """Calls of one message that come after their own results, as in some logs."""

    def __init__(self, msg: Msg) -> None:
        self.msg = msg
        self.claimed: set[int] = set()
        self._indexes: dict[str, deque[int]] | None = None

    def claim(self, call_id: str, result_index: int) -> int | None:
        """Returns the index of the first call with this id after the result that no other result has claimed."""
        if self._indexes is None:
            self._indexes = {}
            for index, block in enumerate(self.msg.blocks):
                if isinstance(block, ToolUseBlock):
                    self._indexes.setdefault(block.id, deque()).append(index)
        indexes = self._indexes.get(call_id, deque())
        while indexes and indexes[0] < result_index:
            indexes.popleft()
        if not indexes:
            return None
        self.claimed.add(indexes[0])
        return indexes.popleft()
