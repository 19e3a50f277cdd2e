"""Matching of tool results with tool calls by call id.

If several calls have the same id, a result belongs to the oldest of these calls that has no result.
"""

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
"""Index of a message in a conversation, and index of a block in this message."""


@dataclass(slots=True)
class Matches:
    """Result of matching the tool results of a conversation with the tool calls.

    Attributes:
        results: Maps the index of each matched call to the index of its result.
        unmatched: Maps the index of each unmatched result to the tool name of the result.
        duplicates: Indexes of unmatched results that repeat the last result with the same call id.
    """

    results: dict[BlockIndex, BlockIndex] = field(default_factory=dict[BlockIndex, BlockIndex])
    unmatched: dict[BlockIndex, str] = field(default_factory=dict[BlockIndex, str])
    duplicates: set[BlockIndex] = field(default_factory=set[BlockIndex])


def match_results(msgs: Sequence[Msg]) -> Matches:
    """Matches each tool result with the oldest tool call that has the same id and no result.

    Several servers use the same call ids again in later turns. Messages without tool blocks therefore divide the
    conversation into phases. If a later phase uses a call id again, results after the later call are never matched
    with calls of earlier phases.
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
    """Tool calls with the same id.

    Attributes:
        open: The indexes of the calls without a result.
        phase: The phase of the last call. Messages without tool blocks divide a conversation into phases.
        tool_name: The tool name of the last call.
        last_result: The phase and the block of the last result. None if there is no result.
    """

    open: deque[BlockIndex] = field(default_factory=deque[BlockIndex])
    phase: int = 0
    tool_name: str = ""
    last_result: tuple[int, ToolResultBlock] | None = None


@dataclass(slots=True)
class _Matching:
    """State of `match_results`. `phase` is the number of earlier messages without tool blocks."""

    matches: Matches = field(default_factory=Matches)
    calls: dict[str, _Calls] = field(default_factory=dict[str, _Calls])
    phase: int = 0

    def add_message(self, index: int, msg: Msg) -> None:
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
    """Tool calls that come after their results in the same message. Some logs contain such messages."""

    def __init__(self, msg: Msg) -> None:
        self.msg = msg
        self.claimed: set[int] = set()
        self._indexes: dict[str, deque[int]] | None = None

    def claim(self, call_id: str, result_index: int) -> int | None:
        """Assigns a result to the first later call in the message that has the same id and no result.

        Returns the index of the call, or None if there is no such call.
        """
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
