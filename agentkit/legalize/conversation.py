"""`legalize`: rewrite messages until a target's capabilities hold.

First each message by itself (`tidy`), then the sequence: ids, promoted media, the order of results, late
system messages, turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, count, groupby
from typing import cast

from agentkit.capabilities.capabilities import Capabilities
from agentkit.ledger.entries import SYSTEM_LINE, Disposition, Note
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.provenance import Provenance, TracedConversation, block_origins
from agentkit.legalize.blocks import legalize_message
from agentkit.legalize.media import ANY_ID, Changes, LegalMessage, OnLoss, PromotedMedia
from agentkit.legalize.media_limits import limit_media
from agentkit.legalize.opaque_pairs import drop_half_pairs
from agentkit.media.acceptance import address
from agentkit.media.resolution import ResolvedMedia
from agentkit.messages.blocks import Block, TextBlock, ToolResultBlock, ToolUseBlock, build_trusted_text
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, build_trusted
from agentkit.repair.normal_form import find_normal_form
from agentkit.reprs import bounded_repr

__all__ = ["LegalConversation", "legalize_messages", "move_system_prompt", "split_results"]


@dataclass(slots=True)
class LegalConversation:
    """Messages that obey a target's capabilities: the system prompt, then the turns.

    A turn with results holds results first; a turn of calls is the assistant's whatever its `role` says.
    `speakers` are the names that the target takes in another spelling only, and that spelling.
    """

    system: TracedConversation
    turns: TracedConversation
    call_ids: dict[str, str] = field(default_factory=dict[str, str])
    tool_names: dict[str, str] = field(default_factory=dict[str, str])
    speakers: dict[str, str] = field(default_factory=dict[str, str])

    __repr__ = bounded_repr

    def with_turns(self, turns: TracedConversation) -> LegalConversation:
        """Returns the conversation with other turns."""
        if turns is self.turns:
            return self
        return LegalConversation(self.system, turns, self.call_ids, self.tool_names, self.speakers)


def split_results(msg: Msg) -> tuple[tuple[ToolResultBlock, ...], Msg | None]:
    """Returns the results of a legal turn, and what else the user says in it: None if that is nothing."""
    if not msg.features & (Feature.OTHER | Feature.CALL):
        return cast("tuple[ToolResultBlock, ...]", msg.content), None
    others = tuple(block for block in msg.blocks if not isinstance(block, ToolResultBlock))
    return msg.tool_results, build_trusted(msg.name, others, "user")


def legalize_messages(
    conversation: LegalConversation,
    ledger: Ledger,
    capabilities: Capabilities,
    on_loss: OnLoss,
    media: ResolvedMedia,
) -> LegalConversation:
    """Returns the conversation with each message as the target accepts it.

    Applies the limits for the media of the whole request, the rules for single blocks, and the rules for repeated
    call ids and late system messages. Media that cannot stay in their message move to a user turn.
    """
    return _Legalizing(ledger, capabilities, on_loss, media).run(conversation)


def move_system_prompt(conversation: LegalConversation, ledger: Ledger) -> LegalConversation:
    """Returns the conversation with the system prompt at the start of the first user turn."""
    system, turns = conversation.system, conversation.turns
    if not system.msgs:
        return conversation
    blocks = [block for msg in system.msgs for block in msg.blocks]
    origins = [origin for traced in system for origin in traced.block_origins]
    moved = Note(Disposition.MOVED, "moved into the first user turn: the target has no system role")
    ledger.note_origins(origins, moved)
    joins = bool(turns.msgs) and turns.msgs[0].role == "user" and not turns.msgs[0].features & Feature.TOOL
    if joins:
        blocks += turns.msgs[0].blocks
        origins += turns.get(0).block_origins
    first = TracedConversation([build_trusted("user", tuple(blocks), "user")], [tuple(origins)])
    first.extend(turns.part(1 if joins else 0))
    return replace(conversation, system=TracedConversation([], []), turns=first)


class _Legalizing:
    """One pass over one conversation.

    Attributes:
        promoted: The media to move to the next user turn, with their origins.
        has_promoted: True if any media were moved.
        calls: The call ids of the current exchange.
        legal_messages: The messages with media, by index, before the limits of the request.
        changes: The changes that the limits of the request require, by index of the message.

    """

    def __init__(self, ledger: Ledger, capabilities: Capabilities, on_loss: OnLoss, shelf: ResolvedMedia) -> None:
        self.ledger = ledger
        self.capabilities = capabilities
        self.on_loss: OnLoss = on_loss
        self.shelf = shelf
        self.promoted: list[tuple[PromotedMedia, Provenance]] = []
        self.has_promoted = False
        self.calls: tuple[str, ...] = ()
        self.legal_messages: dict[int, LegalMessage] = {}
        self.changes: Mapping[int, Changes] = {}
        self.legal = LegalConversation(TracedConversation([], []), TracedConversation([], []))

    def run(self, conversation: LegalConversation) -> LegalConversation:
        system, turns = conversation.system, conversation.turns
        start = len(system.msgs)
        self._limit_media(system, turns)
        self._take_system(system)
        line = Feature.SYSTEM if self.capabilities.turns.late_system == "line" else 0
        mask = self.capabilities.feature_mask | Feature.REPEATED | line
        if self.promoted or turns.normal_form is None or turns.normal_form.features & mask:
            self._legalize_turns(turns, start, self.capabilities.feature_mask, line)
        else:
            self.legal.turns = turns
        if self.has_promoted:  # a turn of media may be inside a pair of opaque blocks
            self.legal.turns = drop_half_pairs(self.legal.turns, self.ledger, self.capabilities)
        return self.legal

    def _limit_media(self, system: TracedConversation, turns: TracedConversation) -> None:
        """Finds the changes that the limits for all media of the request require."""
        media, facts = Feature.MEDIA | Feature.RESULT_MEDIA, turns.normal_form
        has_media = facts is None or facts.features & media or any(msg.features & media for msg in system.msgs)
        if not has_media or not self.capabilities.media.has_limits:
            return
        for index, msg in enumerate(chain(system.msgs, turns.msgs)):
            if msg.features & media:
                legal = legalize_message(msg, self.capabilities, self.on_loss, self.shelf)
                self.legal_messages[index] = legal
        self.changes = limit_media(self.legal_messages, self.capabilities, self.shelf)

    def _legalize_turns(self, draft: TracedConversation, start: int, attention: int, line: int) -> None:
        turns = self.legal.turns
        skipped = self._untouched(draft, start, attention | Feature.REPEATED | line)
        if skipped == len(draft.msgs) and not self.promoted:
            self.legal.turns = draft
            return
        turns.msgs, turns.origins = draft.msgs[:skipped], draft.origins[:skipped]
        self.calls = next((msg.tool_ids for msg in reversed(turns.msgs) if msg.features & Feature.CALL), ())
        unchanged = not self.promoted
        self._promote()
        rest = zip(draft.msgs[skipped:], draft.origins[skipped:], strict=True)
        for number, (msg, origin) in enumerate(rest, start + skipped):
            if self.promoted and not msg.features & Feature.RESULT:
                self._promote()
            if msg.features & attention:
                tidied = self._tidied(msg, origin, number)
                if tidied is None:
                    unchanged = False
                    continue
                unchanged = unchanged and tidied[0] is msg and not self.promoted
                msg, origin = tidied
            if msg.features & Feature.CALL:
                self.calls = msg.tool_ids
            if msg.features & Feature.REPEATED:
                unchanged = False
                msg = self._distinct(msg)
            elif msg.features & line:
                self.ledger.note_origins(block_origins(msg, origin), SYSTEM_LINE)
                unchanged = False
                msg = self._as_line(msg)
            turns.add(msg, origin)
        self._promote()
        if unchanged:
            turns.normal_form = draft.normal_form
        else:
            turns.normal_form = find_normal_form(turns)

    def _untouched(self, draft: TracedConversation, start: int, wanted: int) -> int:
        """Returns the number of messages before the first one that changes or needs a note."""
        if self.promoted:
            return 0
        for at in [at for at, msg in enumerate(draft.msgs) if msg.features & wanted]:
            msg = draft.msgs[at]
            if msg.features & wanted & ~self.capabilities.feature_mask or self.changes.get(start + at):
                return at
            seen = self.legal_messages.get(start + at) or legalize_message(
                msg, self.capabilities, self.on_loss, self.shelf
            )
            if seen.msg is not msg or seen.notes or seen.promoted or seen.call_ids or seen.tool_names:
                return at
        return len(draft.msgs)

    # -- one message ---------------------------------------------------------------------------------------

    def _take_system(self, prompt: TracedConversation) -> None:
        for number, (msg, origin) in enumerate(zip(prompt.msgs, prompt.origins, strict=True)):
            looked_at = msg.features & self.capabilities.feature_mask
            tidied = self._tidied(msg, origin, number) if looked_at else (msg, origin)
            if tidied:
                self.legal.system.add(*tidied)
        if self.capabilities.turns.one_system:
            self._join_system()

    def _join_system(self) -> None:
        system = self.legal.system
        if len(system.msgs) > 1:
            whole = tuple(b for msg in system.msgs for b in msg.blocks)
            parts = [block_origins(*pair) for pair in zip(system.msgs, system.origins, strict=True)]
            origins = tuple(origin for part in parts for origin in part)
            joined = Note(Disposition.MERGED, "merged into the system message before it")
            self.ledger.note_origins(origins[len(parts[0]) :], joined)
            self.legal.system = TracedConversation(
                [build_trusted(system.msgs[0].name, whole, "system")], [origins]
            )

    def _tidied(
        self, msg: Msg, origin: int | tuple[Provenance, ...], number: int
    ) -> tuple[Msg, int | tuple[Provenance, ...]] | None:
        """Returns the legal message with its origins, and adds its notes; None if no block remains."""
        tidied = self.legal_messages.get(number)
        if tidied is None or number in self.changes:
            changes = self.changes.get(number)
            tidied = legalize_message(msg, self.capabilities, self.on_loss, self.shelf, changes)
        self.legal.call_ids.update(tidied.call_ids)
        self.legal.tool_names.update(tidied.tool_names)
        if tidied.msg is msg and not tidied.notes:
            return msg, origin
        blocks = block_origins(msg, origin)
        for path, note in tidied.notes:
            home = blocks[path[0]]
            if not isinstance(home, str):
                self.ledger.note(home + path[1:] if len(home) == 2 else home, note)
        for promoted in tidied.promoted:
            home = blocks[promoted.path[0]]
            self.promoted.append((promoted, home if isinstance(home, str) else home + promoted.path[1:]))
        if tidied.msg is None:
            return None
        return tidied.msg, origin if tidied.msg is msg else tuple(blocks[at] for at in tidied.origins)

    def _distinct(self, msg: Msg) -> Msg:
        """Returns a turn of calls with distinct ids. `order_results` gives the results the same ids."""
        taken = {*msg.tool_ids}
        seen: dict[str, Iterator[int]] = {}
        blocks: list[Block] = []
        for block in msg.blocks:
            if isinstance(block, ToolUseBlock):
                if block.id in seen:
                    block = replace(block, id=self._another(block.id, seen[block.id], taken))
                    taken.add(block.id)
                seen.setdefault(block.id, count(2))
            blocks.append(block)
        return build_trusted(msg.name, tuple(blocks), msg.role)

    def _another(self, repeated: str, numbers: Iterator[int], taken: set[str]) -> str:
        """Returns the first legal id for another call with a repeated id that the turn does not have yet."""
        rule = self.capabilities.tools.call_ids or ANY_ID
        candidates = (rule.fit(f"{repeated}#{number}") for number in numbers)
        fresh = next(candidate for candidate in candidates if candidate not in taken)
        self.legal.call_ids[fresh] = self.legal.call_ids.get(repeated, repeated)
        return fresh

    def _as_line(self, msg: Msg) -> Msg:
        """Returns a late system message as a user message whose texts begin with its name."""
        self.ledger.add_synthesis("system line", "the target accepts a system message only at the start")
        name = msg.name or msg.role
        blocks = tuple(
            replace(block, text=f"{name}: {block.text}") if isinstance(block, TextBlock) else block
            for block in msg.blocks
        )
        return build_trusted(msg.name, blocks, "user")

    # -- promoted media --------------------------------------------------------------------------------------

    def _promote(self) -> None:
        """Adds one user turn with labeled media that could not stay in their messages."""
        if not self.promoted:
            return
        if self.capabilities.tools.results_in_order:
            place = {call: at for at, call in enumerate(self.calls)}
            self.promoted.sort(key=lambda pair: place.get(pair[0].result, -1))
        blocks: list[Block] = []
        origins: list[Provenance] = []
        for label, group in groupby(self.promoted, key=lambda pair: pair[0].label):
            found = list(group)
            what = "image" if all(item.block.type == "image" for item, _ in found) else "media"
            blocks.append(build_trusted_text(f"<system-info>The following are the {what} contents {label}:"))
            origins.append("promotion")
            for item, origin in found:
                found_at = address(item.block.source)
                source = f" from '{found_at}'" if found_at else ""
                blocks.extend((build_trusted_text(f"\n- The {item.block.type}{source}: "), item.block))
                origins.extend(("promotion", origin))
                if not isinstance(origin, str):
                    self.ledger.note(origin, Note(Disposition.MOVED, "media moved into a separate user turn"))
            blocks.append(build_trusted_text("</system-info>"))
            origins.append("promotion")
        self.ledger.add_synthesis("promotion", "the label of moved media")
        self.legal.turns.add(build_trusted("user", tuple(blocks), "user"), tuple(origins))
        self.promoted, self.has_promoted = [], True
