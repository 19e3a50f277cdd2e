"""Speaker names that a request omits: a loss where several speakers share a role."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentkit.capabilities import Capabilities
from agentkit.exchanges import Draft, Origin, prompt_length
from agentkit.frames import frame_tag
from agentkit.ledger import Disposition, Ledger, Note
from agentkit.messages import Msg
from agentkit.obstacles import shown
from agentkit.traits import Trait
from agentkit.units import SUMMARY_MARK
from agentkit.unmatched_results import UNMATCHED_MARK

__all__ = ["name_omitted", "note_omitted_names"]

_ROLES: Mapping[int, str] = {0: "user", Trait.ASSISTANT: "assistant", Trait.SYSTEM: "system"}
_ROLE_TRAITS = Trait.ASSISTANT | Trait.SYSTEM | Trait.RESULT
_MARKS = frozenset({UNMATCHED_MARK, SUMMARY_MARK})
_SILENT = Trait.BLANK | Trait.EMPTY | Trait.THINKING | Trait.OTHER | Trait.SYSTEM | Trait.ASSISTANT


def name_omitted(name: str) -> str:
    """Returns the ledger's reason for a speaker name that no field and no text states."""
    return f"speaker name '{shown(name)}' omitted: the API has no field for it"


def note_omitted_names(draft: Draft, ledger: Ledger, capabilities: Capabilities, viewer: str | None) -> None:
    """Notes names as lost where an API without a name field gets several speakers in one role.

    History frames and lines state their speakers' names, and the role `assistant` stands for the viewer.
    """
    pairs = {(msg.traits & _ROLE_TRAITS, msg.name) for msg in draft.msgs}
    if viewer is not None:
        pairs |= {(role, viewer) for role, _ in pairs if role == Trait.ASSISTANT}
    roles = [role for role, _ in pairs if role in _ROLES]
    if len(roles) == len({*roles}):
        return  # one name each, as in most requests
    for role, speakers in _find_speakers(draft, capabilities).items():
        own = viewer if role == "assistant" else None
        if len(speakers) > 1 or (own is not None and own not in speakers):
            for name in [name for name in speakers if name not in (own, role)]:
                _note_lost(draft, speakers[name], Note(Disposition.CARRIED, name_omitted(name), True), ledger)


def _find_speakers(draft: Draft, capabilities: Capabilities) -> dict[str, dict[str, list[int]]]:
    """Finds the messages of each speaker by role; the system prompt has no speaker, an empty name is the role."""
    found: dict[str, dict[str, list[int]]] = {}
    for at in range(prompt_length(draft.msgs), len(draft.msgs)):
        msg = draft.msgs[at]
        role = _ROLES.get(msg.traits & _ROLE_TRAITS)
        if role is None or (role == "system" and capabilities.late_system != "native"):
            continue
        if msg.traits & ~_SILENT and not _has_no_speaker(msg, draft.origins[at]):
            found.setdefault(role, {}).setdefault(msg.name or role, []).append(at)
    return found


def _has_no_speaker(msg: Msg, origin: int | tuple[Origin, ...]) -> bool:
    """Returns True for history frames, tool results as text, summaries and other synthesized messages."""
    made = isinstance(origin, tuple) and all(isinstance(source, str) for source in origin)
    return made or bool(frame_tag(msg)) or not _MARKS.isdisjoint(msg.metadata or ())


def _note_lost(draft: Draft, numbers: Sequence[int], note: Note, ledger: Ledger) -> None:
    """Adds the note to every block of some messages of the draft."""
    origins = [draft.origins[at] for at in numbers]
    ledger.note_messages([origin for origin in origins if isinstance(origin, int)], note)
    for origin in origins:
        for source in () if isinstance(origin, int) else origin:
            if not isinstance(source, str):
                ledger.note(source, note)
