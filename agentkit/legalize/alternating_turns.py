"""Merges consecutive turns of one role, and adds turns that a target requires."""

from __future__ import annotations

from agentkit.capabilities.capabilities import Capabilities
from agentkit.ledger.entries import Disposition, Note
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.provenance import TracedConversation
from agentkit.legalize.conversation import LegalConversation, StageContext
from agentkit.legalize.opaque_pairs import ends_with_request
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, Role, build_trusted

__all__ = ["BEGIN_TURN", "CONTINUE_TURN", "RESULT_TURN", "apply_turn_rules"]

BEGIN_TURN = "(The conversation begins here.)"
"""Text of the user turn that is added at the start if an API requires a user turn there."""

CONTINUE_TURN = "(Please continue.)"
"""Text of the user turn that is added at the end if an API requires a user turn there."""

RESULT_TURN = "(I have the result.)"
"""Text of the assistant turn that is added between a tool result and a user turn if the API requires one there."""

_MERGED = Note(Disposition.MERGED, "merged into the previous turn of the same role")


def apply_turn_rules(conversation: LegalConversation, context: StageContext) -> LegalConversation:
    """Merges consecutive turns of one role, and adds turns that the target requires. This is a pipeline stage."""
    rules = _TurnRules(conversation.turns, context.ledger, context.spec.capabilities)
    turns = rules.run(bool(conversation.system.msgs))
    return conversation if turns is conversation.turns else conversation.with_turns(turns)


class _TurnRules:
    def __init__(self, turns: TracedConversation, ledger: Ledger, capabilities: Capabilities) -> None:
        self.turns = turns
        self.ledger = ledger
        self.capabilities = capabilities

    def run(self, has_system: bool) -> TracedConversation:
        capabilities = self.capabilities
        if capabilities.turns.merge:
            self._merge()
        if capabilities.turns.alternate:
            self._separate_results()
        msgs = self.turns.msgs
        if not msgs and (capabilities.turns.needs_user or not has_system):
            reason = "no turn to send, but the API requires one, so a user turn was added"
            self._fill(len(msgs), BEGIN_TURN, reason)
        elif msgs and capabilities.turns.first_user and not _is_user_turn(msgs[0]):
            self._fill(0, BEGIN_TURN, "the API requires a user turn at the start, so one was added")
        ends_open = capabilities.turns.last_user and msgs and not _is_user_turn(msgs[-1], results=True)
        if ends_open and capabilities.turns.resumable and ends_with_request(msgs[-1], capabilities):
            return self.turns
        if ends_open or (capabilities.turns.needs_user and not any(map(_is_user_turn, msgs))):
            reason = "user turn added at the end, because the API refuses the request without this turn"
            self._fill(len(msgs), CONTINUE_TURN, reason)
        return self.turns

    def _separate_results(self) -> None:
        """Adds an assistant turn wherever a user turn directly follows a tool result."""
        msgs = self.turns.msgs
        for index in range(len(msgs) - 1, 0, -1):
            if msgs[index - 1].features & Feature.RESULT and _is_user_turn(msgs[index]):
                reason = "the API requires an assistant turn between a tool result and a user turn"
                self._fill(index, RESULT_TURN, reason, "assistant")

    def _fill(self, index: int, text: str, reason: str, role: Role = "user") -> None:
        self.ledger.add_synthesis("filler turn", reason)
        self.turns.msgs.insert(index, build_trusted(role, text, role))
        self.turns.origins.insert(index, ("filler turn",))

    def _merge(self) -> None:
        turns = self.turns
        joins_results = self.capabilities.tools.results == "together"
        if turns.normal_form and turns.normal_form.alternating:
            return
        roles = [_find_turn_role(msg, joins_results) for msg in turns.msgs]
        out = TracedConversation([], [])
        start = 0
        for stop in range(1, len(roles) + 1):
            if stop == len(roles) or roles[stop] is None or roles[stop] != roles[start]:
                self._join(out, turns.part(start, stop), roles[start])
                start = stop
        self.turns = out

    def _join(self, out: TracedConversation, run: TracedConversation, turn_role: str | None) -> None:
        """Adds consecutive messages of one role to `out` as one turn."""
        if len(run.msgs) == 1:
            out.extend(run)
            return
        self.ledger.note_messages([origin for origin in run.origins[1:] if isinstance(origin, int)], _MERGED)
        for origin in run.origins[1:]:
            self.ledger.note_origins(() if isinstance(origin, int) else origin, _MERGED)
        blocks = tuple(block for msg in run.msgs for block in msg.blocks)
        origins = tuple(origin for traced in run for origin in traced.block_origins)
        role: Role = "assistant" if turn_role == "assistant" else "user"
        out.add(build_trusted(run.msgs[0].name, blocks, role), origins)


def _find_turn_role(msg: Msg, joins_results: bool) -> str | None:
    """Returns the role of the turn into which a message can be merged.

    Returns None for a message that is never merged, such as a system message after the system prompt.
    """
    if msg.features & Feature.ASSISTANT:
        return "assistant"
    if msg.features & Feature.RESULT:
        return "user" if joins_results else None
    return None if msg.features & Feature.SYSTEM else "user"


def _is_user_turn(msg: Msg, results: bool = False) -> bool:
    if msg.features & Feature.TOOL:
        return results and bool(msg.features & Feature.RESULT)
    return msg.role == "user"
