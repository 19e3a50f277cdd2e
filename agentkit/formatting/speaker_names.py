"""Speaker names that a request omits: a loss where several speakers share a role."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentkit.budget.units import SUMMARY_MARK
from agentkit.capabilities.capabilities import Capabilities
from agentkit.history.transcript import frame_tag
from agentkit.ledger.ledger import BlockPath, Disposition, Note
from agentkit.media.acceptance import shown
from agentkit.messages.features import Trait
from agentkit.messages.message import Msg
from agentkit.repair.pairing import Draft, Origin, block_origins, prompt_length
from agentkit.repair.unmatched_results import UNMATCHED_MARK

__all__ = ["OmittedNames", "name_omitted"]

_ROLES: Mapping[int, str] = {0: "user", Trait.ASSISTANT: "assistant", Trait.SYSTEM: "system"}
_ROLE_TRAITS = Trait.ASSISTANT | Trait.SYSTEM | Trait.RESULT
_MARKS = frozenset({UNMATCHED_MARK, SUMMARY_MARK})
_SILENT = Trait.BLANK | Trait.EMPTY | Trait.THINKING | Trait.OTHER | Trait.SYSTEM | Trait.ASSISTANT


def name_omitted(name: str) -> str:
    """Returns the ledger's reason for a speaker name that no field and no text states."""
    return f"speaker name '{shown(name)}' omitted: the API has no field for it"


@dataclass(frozen=True, slots=True)
class OmittedNames:
    """Notes of the names that are lost where an API without a name field gets several speakers in one role.

    History frames and lines state their speakers' names, and the role `assistant` stands for the viewer. The notes
    are computed when the ledger is read: most requests are sent without that.
    """

    draft: Draft
    capabilities: Capabilities
    viewer: str | None

    def __call__(self) -> dict[BlockPath, Note]:
        """Returns the note of each block whose speaker name is lost."""
        notes: dict[BlockPath, Note] = {}
        for role, speakers in self._find_speakers().items():
            own = {self.viewer} if role == "assistant" and self.viewer is not None else set[str]()
            if len(own | speakers.keys()) > 1:
                for name in [name for name in speakers if name not in own and name != role]:
                    note = Note(Disposition.CARRIED, name_omitted(name), True)
                    notes |= dict.fromkeys(self._find_paths(speakers[name]), note)
        return notes

    def _find_speakers(self) -> dict[str, dict[str, list[int]]]:
        """Finds the messages of each speaker by role; the system prompt has none, an empty name is the role."""
        found: dict[str, dict[str, list[int]]] = {}
        msgs, origins = self.draft.msgs, self.draft.origins
        shared = self._find_shared_roles()
        for at in range(prompt_length(msgs), len(msgs)) if shared else ():
            msg = msgs[at]
            role = shared.get(msg.traits & _ROLE_TRAITS)
            if role and msg.traits & ~_SILENT and not _has_no_speaker(msg, origins[at]):
                found.setdefault(role, {}).setdefault(msg.name or role, []).append(at)
        return found

    def _find_shared_roles(self) -> dict[int, str]:
        """Finds the roles that may have several speakers, without a closer look at any message."""
        pairs = {(msg.traits & _ROLE_TRAITS, msg.name) for msg in self.draft.msgs}
        if self.viewer is not None:
            pairs.add((Trait.ASSISTANT, self.viewer))
        counts = Counter(role for role, _ in pairs)
        lines = self.capabilities.late_system != "native"
        return {
            trait: role
            for trait, role in _ROLES.items()
            if counts[trait] > 1 and not (lines and trait == Trait.SYSTEM)
        }

    def _find_paths(self, numbers: Sequence[int]) -> Iterator[BlockPath]:
        for at in numbers:
            for origin in block_origins(self.draft.msgs[at], self.draft.origins[at]):
                if not isinstance(origin, str):
                    yield origin


def _has_no_speaker(msg: Msg, origin: int | tuple[Origin, ...]) -> bool:
    """Returns True for history frames, tool results as text, summaries and other synthesized messages."""
    made = isinstance(origin, tuple) and all(isinstance(source, str) for source in origin)
    return made or bool(frame_tag(msg)) or not _MARKS.isdisjoint(msg.metadata or ())
