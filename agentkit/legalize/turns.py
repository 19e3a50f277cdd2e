"""Rules of a target for turns: merging, alternation, and the first and last turn."""

from __future__ import annotations

from collections.abc import Iterable

from agentkit.capabilities.capabilities import Capabilities
from agentkit.ledger.entries import Disposition, Note
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.provenance import Provenance, TracedConversation, block_origins
from agentkit.legalize.opaque_pairs import ends_asking
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, Role, build_trusted

__all__ = ["BEGIN_TURN", "CONTINUE_TURN", "RESULT_TURN", "TurnRules"]

BEGIN_TURN = "(The conversation begins here.)"
"""First user turn where the target requires one and the conversation begins with another turn."""

CONTINUE_TURN = "(Please continue.)"
"""Last user turn where the target requires one and the conversation ends with an assistant turn."""

RESULT_TURN = "(I have the result.)"
"""Assistant turn between a tool result and a user turn, where turns must alternate strictly."""


class TurnRules:
    """Rules of a target for the turns of one request."""

    def __init__(self, turns: TracedConversation, ledger: Ledger, capabilities: Capabilities) -> None:
        self.turns = turns
        self.ledger = ledger
        self.capabilities = capabilities

    def run(self, has_system: bool) -> TracedConversation:
        """Returns the turns, merged and with the filler turns that the target requires."""
        capabilities = self.capabilities
        if capabilities.turns.merge:
            self._merge()
        if capabilities.turns.alternate:
            self._part_results()
        msgs = self.turns.msgs
        if not msgs and (capabilities.turns.needs_user or not has_system):
            self._fill(0, BEGIN_TURN, "the conversation has no turn")
        elif msgs and capabilities.turns.first_user and not _is_users(msgs[0]):
            self._fill(0, BEGIN_TURN, "the conversation begins without a user turn")
        ends_open = capabilities.turns.last_user and msgs and not _is_users(msgs[-1], results=True)
        if ends_open and capabilities.turns.resumable and ends_asking(msgs[-1], capabilities):
            return self.turns
        if ends_open or (capabilities.turns.needs_user and not any(map(_is_users, msgs))):
            self._fill(len(msgs), CONTINUE_TURN, "the conversation ends without a user turn")
        return self.turns

    def _part_results(self) -> None:
        """Adds the assistant turn that stands between a result and a user turn."""
        msgs = self.turns.msgs
        for at in range(len(msgs) - 1, 0, -1):
            if msgs[at - 1].features & Feature.RESULT and _is_users(msgs[at]):
                self._fill(at, RESULT_TURN, "a user turn follows a tool result", "assistant")

    def _fill(self, at: int, text: str, reason: str, role: Role = "user") -> None:
        self.ledger.add_synthesis("filler turn", reason)
        self.turns.msgs.insert(at, build_trusted(role, text, role))
        self.turns.origins.insert(at, ("filler turn",))

    def _merge(self) -> None:
        turns = self.turns
        joins_results = self.capabilities.tools.results == "together"
        if turns.normal_form and turns.normal_form.alternating:
            return
        sides = [_side(msg, joins_results) for msg in turns.msgs]
        out = TracedConversation([], [])
        start = 0
        for at in range(1, len(sides) + 1):
            if at == len(sides) or sides[at] is None or sides[at] != sides[start]:
                self._join(out, turns.part(start, at), sides[start])
                start = at
        self.turns = out

    def _join(self, out: TracedConversation, run: TracedConversation, side: str | None) -> None:
        """Adds a run of messages of one role as one turn."""
        if len(run.msgs) == 1:
            out.add(run.msgs[0], run.origins[0])
            return
        note = Note(Disposition.MERGED, "merged into the turn before it")
        self.ledger.note_messages([whole for whole in run.origins[1:] if isinstance(whole, int)], note)
        for whole in run.origins[1:]:
            self._note(() if isinstance(whole, int) else whole, note)
        origins = [block_origins(*pair) for pair in zip(run.msgs, run.origins, strict=True)]
        blocks = tuple(block for msg in run.msgs for block in msg.blocks)
        role: Role = "assistant" if side == "assistant" else "user"
        out.add(
            build_trusted(run.msgs[0].name, blocks, role), tuple(origin for part in origins for origin in part)
        )

    def _note(self, origins: Iterable[Provenance], note: Note) -> None:
        for origin in origins:
            if not isinstance(origin, str):
                self.ledger.note(origin, note)


def _side(msg: Msg, joins_results: bool) -> str | None:
    """Returns the role for merging; None for messages that merge with no other, such as late system messages."""
    if msg.features & Feature.ASSISTANT:
        return "assistant"
    if msg.features & Feature.RESULT:
        return "user" if joins_results else None
    return None if msg.features & Feature.SYSTEM else "user"


def _is_users(msg: Msg, results: bool = False) -> bool:
    if msg.features & Feature.TOOL:
        return results and bool(msg.features & Feature.RESULT)
    return msg.role == "user"
