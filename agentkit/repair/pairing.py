"""Pairing of tool calls with tool results, so that every call has exactly one result in the correct position.

Idea. APIs refuse a whole request if a tool call has no result, or if a result has no call. Both errors occur in
interrupted conversations, edited logs and merged histories. The repair changes a copy of the conversation in two
steps. First, `match_results` matches results with calls by id. Then the messages are copied by these rules:

- The results of an assistant turn follow the turn directly. Messages between the turn and its last result move to
  the position after the results.
- A call without a result gets an error result with the text `INTERRUPTED_RESULT`.
- A result without a call becomes text of a user message, or is dropped. A repeated result is dropped.

Example with the calls `c1` and `c2`, and the results `r1` and `r9`:

    assistant: c1 c2             assistant: c1 c2
    user: "wait"         ->      tool: r1
    tool: r1, r9                 tool: (interrupted) for c2
                                 user: "wait"
                                 user: "… the text of r9 …"

Invariants. A conversation that needs no repair is returned as the same object. A repaired conversation needs no
second repair, and equal inputs produce equal outputs. The output has three kinds of messages: input messages,
parts of one input message, and messages with added error results. The blocks of a message keep their order, except
that results move to their calls.

Cost. The time for the check and the repair grows linearly with the number of messages and blocks. For a
conversation that grows, `IncrementalRepair` checks only the new messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Literal, TypeAlias, cast

from agentkit.ledger.entries import Disposition, Note
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.provenance import NormalForm, Provenance, TracedConversation, starts_with
from agentkit.messages.blocks import Block, ToolResultBlock, ToolUseBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, Role, build_part, build_trusted
from agentkit.repair.matching import match_results
from agentkit.repair.normal_form import find_normal_form
from agentkit.repair.unmatched_results import UNMATCHED_MARK, describe_unmatched, drop_unmatched

__all__ = ["INTERRUPTED_RESULT", "IncrementalRepair", "Unmatched", "repair_pairing"]

INTERRUPTED_RESULT = "The call was interrupted: no result was recorded."
"""Text of the error result that the repair adds for a tool call without a result."""

Unmatched: TypeAlias = Literal["describe", "drop", "omit"]
"""Treatment of a tool result that matches no tool call.

`describe` writes the result as text of a user message, and `drop` drops the result. The ledger records both as
losses. `omit` drops the result and records no loss, because a history policy removed the call on purpose.
"""


def repair_pairing(
    conversation: TracedConversation, ledger: Ledger, unmatched: Unmatched = "describe"
) -> TracedConversation:
    """Returns the conversation with one result for each tool call, directly after the turn with the call.

    Returns `conversation` itself if it needs no repair.
    """
    if conversation.normal_form is None:
        conversation.normal_form = find_normal_form(conversation)
    if conversation.normal_form is not None:
        return conversation
    return _Repair(conversation, ledger, unmatched).run()


class IncrementalRepair:
    """Repair of a growing conversation that checks only the messages added since the last repair.

    All messages are checked if the conversation does not start with the message objects of the last conversation.
    The results are the same as those of `repair_pairing`.
    """

    def __init__(self) -> None:
        self._previous: tuple[list[Msg], NormalForm] | None = None

    def repair(
        self, conversation: TracedConversation, ledger: Ledger, unmatched: Unmatched = "describe"
    ) -> TracedConversation:
        """Returns the conversation with one result for each tool call, directly after the turn with the call.

        Returns `conversation` itself if it needs no repair. The caller must not change `conversation.msgs` later,
        because the next repair compares messages with this list.
        """
        msgs, previous = conversation.msgs, self._previous
        if previous and starts_with(msgs, previous[0]):
            normal_form = find_normal_form(conversation, len(previous[0]), previous[1])
        else:
            normal_form = find_normal_form(conversation)
        conversation.normal_form = normal_form
        if normal_form is None:
            self._previous = None
            return _Repair(conversation, ledger, unmatched).run()
        has_turns = not msgs[-1].features & Feature.SYSTEM
        self._previous = (msgs, normal_form) if has_turns else None
        return conversation


class _Repair:
    def __init__(self, conversation: TracedConversation, ledger: Ledger, unmatched: Unmatched) -> None:
        self.conversation = conversation
        self.ledger = ledger
        self.unmatched: Unmatched = unmatched
        self.matches = match_results(conversation.msgs)
        self.out = TracedConversation([], [])
        self.origins: dict[int, tuple[Provenance, ...]] = {}
        self.open_until = -1  # index of the last input message from which a result was copied

    def run(self) -> TracedConversation:
        for index, msg in enumerate(self.conversation.msgs):
            if msg.features & Feature.TOOL:
                self._copy_parts(index, msg)
            else:
                self._copy(index, msg, range(len(msg.blocks)))
        return self.out

    def _copy_parts(self, index: int, msg: Msg) -> None:
        """Copies the blocks of a message that contains tool blocks, except results that match a call.

        `_copy_results` copies the matched results after their calls.
        """
        unmatched = {
            position for position in range(len(msg.blocks)) if (index, position) in self.matches.unmatched
        }
        for is_result, group in groupby(range(len(msg.blocks)), lambda position: _is_result(msg.blocks[position])):
            if is_result:
                self._copy_unmatched(index, msg, [position for position in group if position in unmatched])
            else:
                self._copy(index, msg, list(group))

    def _copy_unmatched(self, index: int, msg: Msg, block_indexes: Sequence[int]) -> None:
        blocks: list[Block] = []
        origins: list[Provenance] = []
        for position in block_indexes:
            block, origin = (
                cast("ToolResultBlock", msg.blocks[position]),
                self._block_origins(index)[position],
            )
            if (index, position) in self.matches.duplicates:
                reason = f"duplicate of the result of call {block.id!r}"
                self.ledger.note_origins([origin], Note(Disposition.DROPPED, reason))
            elif self.unmatched != "describe":
                drop_unmatched(block, origin, self.ledger, lost=self.unmatched == "drop")
            else:
                tool_name = self.matches.unmatched[index, position]
                for part, part_origin in describe_unmatched(block, tool_name, origin, self.ledger):
                    blocks.append(part)
                    origins.append(part_origin)
        if blocks:
            self.out.add(build_part(msg, tuple(blocks), "user", UNMATCHED_MARK), tuple(origins))

    def _block_origins(self, index: int) -> tuple[Provenance, ...]:
        if index not in self.origins:
            self.origins[index] = self.conversation.get(index).block_origins
        return self.origins[index]

    def _copy(self, index: int, msg: Msg, block_indexes: Sequence[int]) -> None:
        """Copies blocks of a message that are not results.

        If the blocks include tool calls, the results of the calls are copied too.
        """
        if index < self.open_until:
            moved = Note(Disposition.MOVED, "was between tool calls and their results; moved after the results")
            self.ledger.note_origins([self._block_origins(index)[position] for position in block_indexes], moved)
        calls = [position for position in block_indexes if isinstance(msg.blocks[position], ToolUseBlock)]
        if len(block_indexes) == len(msg.blocks):
            self.out.add(*self.conversation.get(index))
        elif block_indexes:
            role: Role = "user" if msg.role == "system" and not calls else msg.role
            self._copy_part(index, block_indexes, role)
        if calls:
            self._copy_results(index, msg, calls)

    def _copy_results(self, index: int, msg: Msg, calls: Sequence[int]) -> None:
        """Copies the results of tool calls. Adds an error result for each call without a result."""
        results = self.matches.results
        matched = sorted(results[index, call] for call in calls if (index, call) in results)
        for source, indexes in groupby(matched, key=itemgetter(0)):
            self._copy_results_from(source, [position for _, position in indexes])
        if matched:
            self.open_until = max(self.open_until, matched[-1][0])
        missing = [cast("ToolUseBlock", msg.blocks[call]) for call in calls if (index, call) not in results]
        if missing:
            self._add_interrupted(missing, msg.pinned)

    def _copy_results_from(self, source: int, block_indexes: Sequence[int]) -> None:
        msg = self.conversation.msgs[source]
        if len(block_indexes) == len(msg.blocks):
            self.out.add(*self.conversation.get(source))
        else:
            self._copy_part(source, block_indexes, msg.role)

    def _copy_part(self, index: int, block_indexes: Sequence[int], role: Role) -> None:
        msg, origins = self.conversation.msgs[index], self._block_origins(index)
        blocks = tuple(msg.blocks[position] for position in block_indexes)
        self.out.add(build_part(msg, blocks, role), tuple(origins[position] for position in block_indexes))

    def _add_interrupted(self, calls: Sequence[ToolUseBlock], pinned: bool) -> None:
        blocks: tuple[Block, ...] = tuple(
            ToolResultBlock(call.id, call.name, INTERRUPTED_RESULT, True, metadata={"agentkit": "interrupted"})
            for call in calls
        )
        for call in calls:
            reason = f"call {call.id!r} of tool {call.name!r} has no result, so an error result was added"
            self.ledger.add_synthesis("interrupted", reason)
        self.out.add(build_trusted("system", blocks, "system", pinned), ("interrupted",) * len(blocks))


def _is_result(block: Block) -> bool:
    return isinstance(block, ToolResultBlock)
