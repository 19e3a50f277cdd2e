"""Rewrites tool calls and results for APIs that accept only one call per turn, or have no roles for tools."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import TypeAlias, cast

from agentkit.ledger.entries import Disposition, Note
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.provenance import Provenance, TracedConversation, block_origins
from agentkit.legalize.conversation import LegalConversation, StageContext
from agentkit.legalize.media import WAS_OMITTED
from agentkit.media.acceptance import sanitize
from agentkit.messages.blocks import (
    Block,
    OpaqueBlock,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    build_trusted_text,
)
from agentkit.messages.features import Feature
from agentkit.messages.message import build_part, build_trusted
from agentkit.repair.normal_form import find_normal_form
from agentkit.tools.result_texts import call_text, result_text

__all__ = ["rewrite_exchanges"]

_AS_TEXT = Note(Disposition.CARRIED, "written as text, because the API has no roles for tool calls and results")
_APART = Note(Disposition.MOVED, "moved into a separate turn, because the API accepts only one tool call per turn")

_Result: TypeAlias = tuple[ToolResultBlock, Provenance, str]
"""A tool result, the path of its input block, and the speaker of its message."""


def rewrite_exchanges(conversation: LegalConversation, context: StageContext) -> LegalConversation:
    """Writes tool calls and their results as text, or with one call in each turn. This is a pipeline stage.

    If the API has no roles for tools, calls become texts of the assistant and results become texts of the user. If
    the API has such roles, but accepts only one call per turn, each call gets a separate turn, followed by its
    result.
    """
    turns, has_role = conversation.turns, context.spec.capabilities.tools.role
    out = TracedConversation([], [])
    start = 0
    while start < len(turns.msgs):
        msg, stop = turns.msgs[start], start + 1
        while stop < len(turns.msgs) and turns.msgs[stop].features & Feature.RESULT:
            stop += 1
        unit = turns.part(start, stop)
        if not msg.features & Feature.CALL or (has_role and len(msg.tool_uses) == 1):
            out.extend(unit)
        elif has_role:
            _add_one_by_one(out, unit, context.ledger)
        else:
            _TextExchange(context).add(out, unit)
        start = stop
    out.normal_form = find_normal_form(out)
    return conversation.with_turns(out)


def _add_one_by_one(out: TracedConversation, exchange: TracedConversation, ledger: Ledger) -> None:
    """Adds, for each tool call, a turn with the call and a turn with the result of the call.

    The turn with a call also has the blocks between the previous call and this call. The turn with the last call
    also has the blocks after the call.
    """
    msg = exchange.msgs[0]
    origins = block_origins(msg, exchange.origins[0])
    calls = [index for index, block in enumerate(msg.blocks) if isinstance(block, ToolUseBlock)]
    waiting = _results_by_id(exchange)
    start = 0
    for call in calls:
        stop = len(msg.blocks) if call == calls[-1] else call + 1
        out.add(build_part(msg, msg.blocks[start:stop], msg.role), origins[start:stop])
        result, origin, speaker = waiting[cast("ToolUseBlock", msg.blocks[call]).id].popleft()
        out.add(build_trusted(speaker, (result,), "system"), (origin,))
        ledger.note_origins([*origins[start:stop] * (start > 0), origin], _APART)
        start = stop


def _results_by_id(exchange: TracedConversation) -> dict[str, deque[_Result]]:
    waiting: dict[str, deque[_Result]] = {}
    for traced in exchange.part(1):
        for block, origin in zip(traced.msg.tool_results, traced.block_origins, strict=True):
            waiting.setdefault(block.id, deque()).append((block, origin, traced.msg.name))
    return waiting


class _TextExchange:
    """Writer that turns tool calls into assistant text, and their results into user text."""

    def __init__(self, context: StageContext) -> None:
        self.ledger = context.ledger
        self.on_loss = context.on_loss
        self.lead = "\n" if context.spec.capabilities.turns.text_joining == "apart" else ""
        self.names: dict[str, str] = {}

    def add(self, out: TracedConversation, exchange: TracedConversation) -> None:
        self.names = {call.id: call.name for call in exchange.msgs[0].tool_uses}
        for traced in exchange:
            msg, pairs = traced.msg, list[tuple[Block, Provenance]]()
            for block, origin in traced.traced_blocks:
                pairs.extend(self._pairs(block, origin, self.lead if pairs else ""))
            is_call = bool(msg.features & Feature.CALL)
            blocks, origins = tuple(block for block, _ in pairs), tuple(origin for _, origin in pairs)
            out.add(
                build_trusted(msg.name, blocks, "assistant") if is_call else build_trusted("user", blocks, "user"),
                origins,
            )

    def _pairs(self, block: Block, origin: Provenance, lead: str) -> Iterator[tuple[Block, Provenance]]:
        """Yields the blocks that replace a block of the exchange, each with the path of its input block."""
        if isinstance(block, ToolUseBlock):
            self.ledger.note_origins([origin], _AS_TEXT)
            if block.state is not None:
                reason = f"data issued by {sanitize(block.state.issuer)}, such as a signature, {WAS_OMITTED}"
                self.ledger.note_origins([origin], Note(Disposition.CARRIED, reason))
            yield build_trusted_text(lead + call_text(block)), origin
        elif isinstance(block, ToolResultBlock):
            self.ledger.note_origins([origin], _AS_TEXT)
            yield build_trusted_text(lead + result_text(block, block.name or self.names[block.id])), origin
            for index, item in enumerate(block.items):
                item_origin = origin if isinstance(origin, str) else (*origin, index)
                if isinstance(item, OpaqueBlock):
                    yield from self._omit(item_origin)
                elif not isinstance(item, TextBlock):
                    yield item, item_origin
        else:
            yield block, origin

    def _omit(self, origin: Provenance) -> Iterator[tuple[Block, Provenance]]:
        """Yields a short text that replaces an opaque item. Yields nothing if `on_loss` is not `describe`."""
        reason = "the API accepts this type of block only in tool results, but tool results are sent as text here"
        if self.on_loss == "describe":
            self.ledger.note_origins([origin], Note(Disposition.DESCRIBED, reason, lost=True))
            yield (
                build_trusted_text(f"{self.lead}[part left out because only a tool result can contain it]"),
                origin,
            )
        else:
            self.ledger.note_origins([origin], Note(Disposition.DROPPED, reason, lost=True))
