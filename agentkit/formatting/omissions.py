"""Ledger details about keys, titles and speaker names that a request has no field for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agentkit.budget.units import SUMMARY_MARK
from agentkit.capabilities.capabilities import Capabilities
from agentkit.history.policies import HistoryPolicy
from agentkit.ledger.entries import FRAME_LINE, SYSTEM_LINE, Disposition, Note
from agentkit.ledger.places import BlockPath
from agentkit.ledger.provenance import FrameOrigins, MessageOrigin, TracedConversation
from agentkit.legalize.media import WAS_OMITTED
from agentkit.media.acceptance import sanitize
from agentkit.messages.blocks import Block, DocumentBlock, MediaBlock, TextBlock, ToolResultBlock, ToolUseBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg
from agentkit.messages.sources import URLSource
from agentkit.messages.system_prompt import prompt_length
from agentkit.repair.unmatched_results import UNMATCHED_MARK

__all__ = ["OmittedDetails", "OmittedNames", "format_name_reason"]


@dataclass(frozen=True, slots=True)
class OmittedDetails:
    """Callable that a ledger uses to list the omitted fields of a block, such as the title of a document."""

    target: Capabilities
    policy: HistoryPolicy

    def __call__(self, path: BlockPath, msg: Msg, block: Block, notes: Sequence[Note]) -> tuple[str, ...]:
        """Returns a ledger reason for each omitted field of a block, and one for an omitted speaker name.

        If the request changes the text of the block, the result also has notes about these changes. The result is
        empty if the request omits the whole block.
        """
        if any(_is_omitted(note) for note in notes):
            return ()
        is_in_message = len(path) == 2
        details: list[str] = []
        if is_in_message and not isinstance(block, ToolResultBlock) and self._omits_name(msg, notes):
            details.append(format_name_reason(msg.name))
        keys = self._list_omitted_keys(block, notes)
        details += [f"{sanitize(key)} omitted: the API has no field for it" for key in keys]
        text_notes = self.target.turns.text_notes
        if text_notes and is_in_message and isinstance(block, TextBlock) and FRAME_LINE not in notes:
            details += text_notes(block.text, msg.role)
        return tuple(details)

    def _omits_name(self, msg: Msg, notes: Sequence[Note]) -> bool:
        """Returns True if the ledger must report that the request does not contain the speaker's name."""
        if self.target.turns.speaker_names or not msg.name or msg.name == msg.role:
            return False
        if any(note.lost for note in notes):
            return False  # another note already reports the lost name
        is_viewer = msg.role == "assistant" and msg.name == getattr(self.policy, "viewer", None)
        return not is_viewer and FRAME_LINE not in notes and SYSTEM_LINE not in notes

    def _list_omitted_keys(self, block: Block, notes: Sequence[Note]) -> list[str]:
        if not isinstance(block, TextBlock | ToolUseBlock | MediaBlock):
            return []
        state = block.state
        fields: dict[str, object] = dict((state.fields or {}) if state else {})
        is_own = state is not None and state.issuer == self.target.issuer
        is_state_omitted = any(note.reason.endswith(WAS_OMITTED) for note in notes)
        is_line = FRAME_LINE in notes and not isinstance(block, MediaBlock)
        is_text = is_line or any(note.disposition is Disposition.DESCRIBED for note in notes)
        is_state_sent = is_own and not is_state_omitted and not is_text
        sent = {key for key in fields if is_state_sent and self.target.opaque.accepts_key(block.type, key)}
        omitted = [key for key in fields if key not in sent]
        if isinstance(block, DocumentBlock) and block.title:
            title_key = "title of a URL" if isinstance(block.source, URLSource) else "title"
            has_field = title_key in self.target.opaque.passthrough_keys.get(block.type, ()) and not is_text
            if not has_field and block.title not in [fields[key] for key in sent]:
                omitted.append("title")
        if (block.metadata or {}).get("citations") and "citations" not in {*sent, *omitted}:
            omitted.append("citations")
        return omitted


def _is_omitted(note: Note) -> bool:
    is_dropped = note.disposition is Disposition.DROPPED
    return is_dropped or (note.lost and note.disposition is Disposition.DESCRIBED)


def format_name_reason(name: str) -> str:
    """Returns the ledger's reason for a speaker name that the request does not contain."""
    return f"speaker name '{sanitize(name)}' omitted: the API has no field for it"


# -- names of several speakers -----------------------------------------------------------------------------------

_ROLES: Final[Mapping[int, str]] = {0: "user", Feature.ASSISTANT: "assistant", Feature.SYSTEM: "system"}
"""The roles that may have several speakers. The keys are the `Feature` bits of the roles."""

_ROLE_FEATURES: Final = Feature.ASSISTANT | Feature.SYSTEM | Feature.RESULT

_NO_CONTENT: Final = (
    Feature.BLANK | Feature.EMPTY | Feature.THINKING | Feature.OTHER | Feature.SYSTEM | Feature.ASSISTANT
)
"""Bits of `Feature` that a message without content can have. Any other bit means that the message has content."""

_MARKS: Final = frozenset({UNMATCHED_MARK, SUMMARY_MARK})
"""Metadata keys of messages that no speaker wrote, such as summaries."""


@dataclass(frozen=True, slots=True)
class OmittedNames:
    """Callable that creates ledger notes about lost speaker names, for an API without a field for speaker names.

    A name is lost if several speakers share a role. Names in the texts of history frames and system lines are not
    lost. The name of the agent that the request is for is not lost either, because that agent has the role
    `assistant`. To save time, the notes are created only when the ledger is read, because most callers never read
    the ledger.
    """

    conversation: TracedConversation
    capabilities: Capabilities
    viewer: str | None

    def __call__(self) -> dict[BlockPath, Note]:
        """Returns a note for each block whose speaker name is lost. The keys are the paths of the blocks."""
        notes: dict[BlockPath, Note] = {}
        for role, speakers in self._find_speakers().items():
            viewers = {self.viewer} if role == "assistant" and self.viewer is not None else set[str]()
            if len(viewers | speakers.keys()) > 1:
                for name in [name for name in speakers if name not in viewers and name != role]:
                    note = Note(Disposition.CARRIED, format_name_reason(name), True)
                    notes |= dict.fromkeys(self._list_paths(speakers[name]), note)
        return notes

    def _find_speakers(self) -> dict[str, dict[str, list[int]]]:
        """Returns the indexes of the messages after the system prompt, grouped by role and speaker name."""
        roles = self._find_shared_roles()
        if not roles:
            return {}
        speakers: dict[str, dict[str, list[int]]] = {}
        msgs, origins = self.conversation.msgs, self.conversation.origins
        for index in range(prompt_length(msgs), len(msgs)):
            msg = msgs[index]
            role = roles.get(msg.features & _ROLE_FEATURES)
            if role and msg.features & ~_NO_CONTENT and not _has_no_speaker(msg, origins[index]):
                speakers.setdefault(role, {}).setdefault(msg.name or role, []).append(index)
        return speakers

    def _find_shared_roles(self) -> dict[int, str]:
        """Returns the roles that may have several speakers. The keys are the `Feature` bits of the roles.

        This check is fast, and shows for most conversations that no role has several speakers. A slower check of
        the messages is then unnecessary.
        """
        pairs = {(msg.features & _ROLE_FEATURES, msg.name) for msg in self.conversation.msgs}
        if self.viewer is not None:
            pairs.add((Feature.ASSISTANT, self.viewer))
        counts = Counter(role_features for role_features, _ in pairs)
        has_system_lines = self.capabilities.turns.late_system != "native"
        return {
            features: role
            for features, role in _ROLES.items()
            if counts[features] > 1 and not (has_system_lines and features == Feature.SYSTEM)
        }

    def _list_paths(self, indexes: Sequence[int]) -> Iterator[BlockPath]:
        for index in indexes:
            for origin in self.conversation.get(index).block_origins:
                if not isinstance(origin, str):
                    yield origin


def _has_no_speaker(msg: Msg, origin: MessageOrigin) -> bool:
    """Returns True if no single speaker wrote the message. Examples are history frames and summaries."""
    is_synthesized = isinstance(origin, tuple) and all(isinstance(source, str) for source in origin)
    return is_synthesized or isinstance(origin, FrameOrigins) or not _MARKS.isdisjoint(msg.metadata or ())
