"""Exchanges for targets that accept one call at a time, or have no role for tools."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import TypeAlias, cast

from agentkit.capabilities.capabilities import Capabilities
from agentkit.ledger.entries import Disposition, Note
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.provenance import Provenance, TracedConversation, block_origins
from agentkit.legalize.media import OMITTED_SUFFIX, OnLoss
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
from agentkit.tools.tool_texts import call_text, result_text

__all__ = ["fit_exchanges"]

_AS_TEXT = Note(Disposition.CARRIED, "written as text: the target has no role for tools")
_APART = Note(Disposition.MOVED, "moved into a separate turn: the target accepts one tool call at a time")

_Result: TypeAlias = tuple[ToolResultBlock, Provenance, str]
"""A result, its origin, and the speaker of its message."""


def fit_exchanges(
    draft: TracedConversation, ledger: Ledger, capabilities: Capabilities, on_loss: OnLoss
) -> TracedConversation:
    """Rewrites the exchanges of messages in normal form as the target takes them.

    Without a role for tools, calls become texts of the assistant and results become texts of the user. Without
    parallel calls, each call gets a turn of its own, followed by its result.
    """
    out = TracedConversation([], [])
    at = 0
    while at < len(draft.msgs):
        msg, stop = draft.msgs[at], at + 1
        while stop < len(draft.msgs) and draft.msgs[stop].features & Feature.RESULT:
            stop += 1
        unit = draft.part(at, stop)
        if not msg.features & Feature.CALL or (capabilities.tools.role and len(msg.tool_uses) == 1):
            out.msgs.extend(unit.msgs)
            out.origins.extend(unit.origins)
        elif capabilities.tools.role:
            _add_one_by_one(out, unit, ledger)
        else:
            _TextExchange(ledger, capabilities, on_loss).add(out, unit)
        at = stop
    out.normal_form = find_normal_form(out)
    return out


def _add_one_by_one(out: TracedConversation, exchange: TracedConversation, ledger: Ledger) -> None:
    """Adds each call with the blocks before it, then its result. The last call keeps the blocks after it."""
    msg = exchange.msgs[0]
    origins = block_origins(msg, exchange.origins[0])
    calls = [at for at, block in enumerate(msg.blocks) if isinstance(block, ToolUseBlock)]
    waiting = _results_by_id(exchange)
    start = 0
    for call in calls:
        stop = len(msg.blocks) if call == calls[-1] else call + 1
        out.add(build_part(msg, msg.blocks[start:stop], msg.role), origins[start:stop])
        result, origin, speaker = waiting[cast("ToolUseBlock", msg.blocks[call]).id].popleft()
        out.add(build_trusted(speaker, (result,), "system"), (origin,))
        _note_all(ledger, [*origins[start:stop] * (start > 0), origin], _APART)
        start = stop


def _results_by_id(exchange: TracedConversation) -> dict[str, deque[_Result]]:
    waiting: dict[str, deque[_Result]] = {}
    for msg, whole in zip(exchange.msgs[1:], exchange.origins[1:], strict=True):
        for block, origin in zip(msg.tool_results, block_origins(msg, whole), strict=True):
            waiting.setdefault(block.id, deque()).append((block, origin, msg.name))
    return waiting


class _TextExchange:
    """Writer of one exchange as text of the assistant and of the user."""

    def __init__(self, ledger: Ledger, capabilities: Capabilities, on_loss: OnLoss) -> None:
        self.ledger = ledger
        self.on_loss = on_loss
        self.lead = "\n" if capabilities.turns.text_joining == "apart" else ""
        self.names: dict[str, str] = {}

    def add(self, out: TracedConversation, exchange: TracedConversation) -> None:
        """Adds the turn of calls, and a user turn for each message of results."""
        self.names = {call.id: call.name for call in exchange.msgs[0].tool_uses}
        for msg, whole in zip(exchange.msgs, exchange.origins, strict=True):
            pairs: list[tuple[Block, Provenance]] = []
            for block, origin in zip(msg.blocks, block_origins(msg, whole), strict=True):
                pairs.extend(self._pairs(block, origin, self.lead if pairs else ""))
            is_call = bool(msg.features & Feature.CALL)
            blocks, origins = tuple(block for block, _ in pairs), tuple(origin for _, origin in pairs)
            out.add(
                build_trusted(msg.name, blocks, "assistant") if is_call else build_trusted("user", blocks, "user"),
                origins,
            )

    def _pairs(self, block: Block, origin: Provenance, lead: str) -> Iterator[tuple[Block, Provenance]]:
        """Yields what stands for a block, with the origin of each part."""
        if isinstance(block, ToolUseBlock):
            _note_all(self.ledger, [origin], _AS_TEXT)
            if block.state is not None:
                reason = f"state issued by {sanitize(block.state.issuer)} {OMITTED_SUFFIX}"
                _note_all(self.ledger, [origin], Note(Disposition.CARRIED, reason))
            yield build_trusted_text(lead + call_text(block)), origin
        elif isinstance(block, ToolResultBlock):
            _note_all(self.ledger, [origin], _AS_TEXT)
            yield build_trusted_text(lead + result_text(block, block.name or self.names[block.id])), origin
            for number, item in enumerate(block.items):
                place = origin if isinstance(origin, str) else (*origin, number)
                if isinstance(item, OpaqueBlock):
                    yield from self._omit(place)
                elif not isinstance(item, TextBlock):
                    yield item, place
        else:
            yield block, origin

    def _omit(self, place: Provenance) -> Iterator[tuple[Block, Provenance]]:
        """Describes or drops an opaque item of a result, which a user turn cannot have."""
        reason = "only a tool result may hold it"
        if self.on_loss == "describe":
            _note_all(self.ledger, [place], Note(Disposition.DESCRIBED, reason, lost=True))
            yield build_trusted_text(f"{self.lead}[part left out because {reason}]"), place
        else:
            _note_all(self.ledger, [place], Note(Disposition.DROPPED, reason, lost=True))


def _note_all(ledger: Ledger, origins: Sequence[Provenance], note: Note) -> None:
    for origin in origins:
        if not isinstance(origin, str):
            ledger.note(origin, note)
