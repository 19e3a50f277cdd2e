"""Parts of blocks and messages for which a request has no field, as details of the ledger."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentkit.budget.units import SUMMARY_MARK
from agentkit.capabilities.capabilities import Capabilities
from agentkit.history.policies import HistoryPolicy
from agentkit.ledger.entries import FRAME_LINE, SYSTEM_LINE, Disposition, Note
from agentkit.ledger.places import BlockPath
from agentkit.ledger.provenance import (
    FrameOrigins,
    MessageOrigin,
    TracedConversation,
    block_origins,
    prompt_length,
)
from agentkit.legalize.media import OMITTED_SUFFIX
from agentkit.media.acceptance import sanitize
from agentkit.messages.blocks import (
    Block,
    DocumentBlock,
    MediaBlock,
    OpaqueState,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg
from agentkit.messages.sources import URLSource
from agentkit.repair.unmatched_results import UNMATCHED_MARK

__all__ = ["OmittedDetails", "OmittedNames", "name_omitted"]


@dataclass(frozen=True, slots=True)
class OmittedDetails:
    """Function that computes ledger details for a target. It runs only when the ledger is read."""

    form: Capabilities
    policy: HistoryPolicy

    def __call__(self, path: BlockPath, msg: Msg, block: Block, notes: Sequence[Note]) -> tuple[str, ...]:
        """Returns the parts of a block and its speaker that are not sent."""
        fates = [note.disposition for note in notes if note.lost or note.disposition is Disposition.DROPPED]
        if any(fate <= Disposition.DESCRIBED for fate in fates):
            return ()
        found: list[str] = []
        if len(path) == 2 and not isinstance(block, ToolResultBlock) and self._unnamed(msg, notes):
            found.append(name_omitted(msg.name))
        found += [f"{sanitize(key)} omitted: the API has no field for it" for key in self._keys(block, notes)]
        spoken = len(path) == 2 and isinstance(block, TextBlock) and FRAME_LINE not in notes
        if spoken and self.form.turns.text_notes and isinstance(block, TextBlock):
            found += self.form.turns.text_notes(block.text, msg.role)
        return tuple(found)

    def _unnamed(self, msg: Msg, notes: Sequence[Note]) -> bool:
        """Returns True if neither a field nor a line states the speaker's name."""
        if (
            self.form.turns.speaker_names
            or not msg.name
            or msg.name == msg.role
            or any(note.lost for note in notes)
        ):
            return False  # a name that is lost has a note of its own
        own = msg.role == "assistant" and msg.name == getattr(self.policy, "viewer", None)
        return not own and FRAME_LINE not in notes and SYSTEM_LINE not in notes

    def _keys(self, block: Block, notes: Sequence[Note]) -> list[str]:
        """Returns the keys of a block that are not sent."""
        if not isinstance(block, TextBlock | ToolUseBlock | MediaBlock):
            return []
        state = block.state
        says = self.form.opaque.passthrough_keys.get(block.type, _NOTHING)
        own = state is not None and state.issuer == self.form.issuer
        left = any(note.reason.endswith(OMITTED_SUFFIX) for note in notes)
        framed = FRAME_LINE in notes and isinstance(block, TextBlock)
        fields = _fields(state)
        going = {key for key in fields if own and not left and not framed and _says(says, key)}
        unsaid = [key for key in fields if key not in going]
        if isinstance(block, DocumentBlock) and block.title:
            as_text = any(note.disposition is Disposition.DESCRIBED for note in notes)
            key = "title of a URL" if isinstance(block.source, URLSource) else "title"
            told = key in says and not as_text
            if not told and block.title not in [fields[key] for key in going]:
                unsaid.append("title")
        if (block.metadata or {}).get("citations") and "citations" not in {*going, *unsaid}:
            unsaid.append("citations")
        return unsaid


_NOTHING: frozenset[str] = frozenset()


def _says(says: frozenset[str], key: str) -> bool:
    """Returns True if the passthrough keys include a key, by its name, by its group or by `*`."""
    names = {key, f"{key.partition('.')[0]}.*"} if "." in key else {key}
    return bool(names & says) or ("*" in says and not {f"-{name}" for name in names} & says)


def _fields(state: OpaqueState | None) -> dict[str, object]:
    return dict(state.fields or {}) if state else {}


_ROLES: Mapping[int, str] = {0: "user", Feature.ASSISTANT: "assistant", Feature.SYSTEM: "system"}


_ROLE_FEATURES = Feature.ASSISTANT | Feature.SYSTEM | Feature.RESULT


_MARKS = frozenset({UNMATCHED_MARK, SUMMARY_MARK})


_SILENT = Feature.BLANK | Feature.EMPTY | Feature.THINKING | Feature.OTHER | Feature.SYSTEM | Feature.ASSISTANT


def name_omitted(name: str) -> str:
    """Returns the ledger's reason for a speaker name that no field and no text states."""
    return f"speaker name '{sanitize(name)}' omitted: the API has no field for it"


@dataclass(frozen=True, slots=True)
class OmittedNames:
    """Notes of the names that are lost where an API without a name field gets several speakers in one role.

    History frames and lines state their speakers' names, and the role `assistant` stands for the viewer. The notes
    are computed when the ledger is read: most requests are sent without that.
    """

    draft: TracedConversation
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
            role = shared.get(msg.features & _ROLE_FEATURES)
            if role and msg.features & ~_SILENT and not _has_no_speaker(msg, origins[at]):
                found.setdefault(role, {}).setdefault(msg.name or role, []).append(at)
        return found

    def _find_shared_roles(self) -> dict[int, str]:
        """Finds the roles that may have several speakers, without a closer look at any message."""
        pairs = {(msg.features & _ROLE_FEATURES, msg.name) for msg in self.draft.msgs}
        if self.viewer is not None:
            pairs.add((Feature.ASSISTANT, self.viewer))
        counts = Counter(role for role, _ in pairs)
        lines = self.capabilities.turns.late_system != "native"
        return {
            feature: role
            for feature, role in _ROLES.items()
            if counts[feature] > 1 and not (lines and feature == Feature.SYSTEM)
        }

    def _find_paths(self, numbers: Sequence[int]) -> Iterator[BlockPath]:
        for at in numbers:
            for origin in block_origins(self.draft.msgs[at], self.draft.origins[at]):
                if not isinstance(origin, str):
                    yield origin


def _has_no_speaker(msg: Msg, origin: MessageOrigin) -> bool:
    """Returns True for history frames, tool results as text, summaries and other synthesized messages."""
    is_synthesized = isinstance(origin, tuple) and all(isinstance(source, str) for source in origin)
    return is_synthesized or isinstance(origin, FrameOrigins) or not _MARKS.isdisjoint(msg.metadata or ())
