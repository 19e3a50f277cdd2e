"""What a block or its message has that a request has no place for, in the words of the ledger."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentkit.capabilities.capabilities import Capabilities
from agentkit.formatting.speaker_names import name_omitted
from agentkit.history.policies import HistoryPolicy
from agentkit.ledger.ledger import AS_LINE, FRAMED, BlockPath, Disposition, Note
from agentkit.legalize.media import LEFT_OFF
from agentkit.media.acceptance import shown
from agentkit.messages.blocks import (
    Block,
    DocumentBlock,
    MediaBlock,
    OpaqueState,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from agentkit.messages.message import Msg
from agentkit.messages.sources import URLSource

__all__ = ["Unsaid"]


@dataclass(frozen=True, slots=True)
class Unsaid:
    """The remarks that a target's ledger makes, block by block: asked for only when somebody reads it."""

    form: Capabilities
    policy: HistoryPolicy

    def __call__(self, path: BlockPath, msg: Msg, block: Block, notes: Sequence[Note]) -> tuple[str, ...]:
        """What of a block and its speaker is not said; nothing for one that went with all that it had."""
        fates = [note.disposition for note in notes if note.lost or note.disposition is Disposition.DROPPED]
        if any(fate <= Disposition.DESCRIBED for fate in fates):
            return ()
        found: list[str] = []
        if len(path) == 2 and not isinstance(block, ToolResultBlock) and self._unnamed(msg, notes):
            found.append(name_omitted(msg.name))
        found += [f"the wire has no place for its {shown(key)}" for key in self._keys(block, notes)]
        spoken = len(path) == 2 and isinstance(block, TextBlock) and FRAMED not in notes
        if spoken and self.form.remarks and isinstance(block, TextBlock):
            found += self.form.remarks(block.text, msg.role)
        return tuple(found)

    def _unnamed(self, msg: Msg, notes: Sequence[Note]) -> bool:
        """Whether somebody speaks who has a name, and neither a field nor a line says it."""
        if self.form.speakers or not msg.name or msg.name == msg.role or any(note.lost for note in notes):
            return False  # a name that is lost has a note of its own
        own = msg.role == "assistant" and msg.name == getattr(self.policy, "viewer", None)
        return not own and FRAMED not in notes and AS_LINE not in notes

    def _keys(self, block: Block, notes: Sequence[Note]) -> list[str]:
        """The keys of a block that do not go with it."""
        if not isinstance(block, TextBlock | ToolUseBlock | MediaBlock):
            return []
        state = block.state
        says = self.form.says.get(block.type, _NOTHING)
        own = state is not None and state.issuer == self.form.issuer
        left = any(note.reason.endswith(LEFT_OFF) for note in notes)
        framed = FRAMED in notes and isinstance(block, TextBlock)
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
    """Whether keys are named one by one, by what stands before their dot, or all but some."""
    names = {key, f"{key.partition('.')[0]}.*"} if "." in key else {key}
    return bool(names & says) or ("*" in says and not {f"-{name}" for name in names} & says)


def _fields(state: OpaqueState | None) -> dict[str, object]:
    return dict(state.fields or {}) if state else {}
