"""Legal messages, and the rules of a target for media in one message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, TypeAlias, TypeVar, cast

from agentkit.capabilities.capabilities import Capabilities
from agentkit.capabilities.media_rules import Kind
from agentkit.capabilities.name_rules import NameRule
from agentkit.history.safe_frame import safe_text
from agentkit.json_values import as_object, as_text
from agentkit.ledger.entries import Disposition, Note
from agentkit.ledger.places import BlockPath
from agentkit.media.acceptance import address, describe_resize, rejection_reason, sanitize
from agentkit.media.resolution import LONGEST_TEXT, ResolvedMedia, is_base64
from agentkit.messages.blocks import (
    Block,
    MediaBlock,
    OpaqueState,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    build_trusted_text,
)
from agentkit.messages.media_types import canonical_media_type, is_text_type
from agentkit.messages.message import Msg, Role
from agentkit.messages.sources import Base64Source, Source, URLSource

__all__ = [
    "ANY_ID",
    "Changes",
    "LegalMessage",
    "MediaLegalizer",
    "OMITTED_SUFFIX",
    "OnLoss",
    "PromotedMedia",
    "passing_key",
    "wire_id",
]

_Stateful = TypeVar("_Stateful", TextBlock, ToolUseBlock, MediaBlock)

OnLoss: TypeAlias = Literal["describe", "drop", "raise"]


ANY_ID = NameRule(prefix="call_")

OMITTED_SUFFIX = "was omitted"
"""End of the reasons for blocks that are sent without their opaque state."""


def wire_id(capabilities: Capabilities, found: str) -> str:
    """Returns a call id as the API accepts it."""
    rule = capabilities.tools.call_ids
    return rule.fit(found) if rule else found or "call_unnamed"


Changes: TypeAlias = Mapping[BlockPath, str | Base64Source]
"""Changes to media of a message, by path: a smaller image, or the reason for omitting the media."""


@dataclass(slots=True)
class PromotedMedia:
    """Media item to move to a separate user turn, with the text of its label."""

    block: MediaBlock
    path: BlockPath
    label: str
    result: str = ""


@dataclass(slots=True)
class LegalMessage:
    """A message after `tidy`. Paths are relative: (block,), or (block, item).

    `media` are those that go as what they are, in place or promoted; `loads` says how many of each kind they
    are and how much base64 text they hold, `held` what was found out about their sizes.
    """

    msg: Msg | None
    origins: tuple[int, ...] = ()
    notes: list[tuple[BlockPath, Note]] = field(default_factory=list[tuple[BlockPath, Note]])
    promoted: list[PromotedMedia] = field(default_factory=list[PromotedMedia])
    media: list[tuple[BlockPath, Kind, Base64Source | URLSource]] = field(default_factory=list[Any])
    loads: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    held: dict[object, bool] = field(default_factory=dict[object, bool])

    def carry(self, path: BlockPath, kind: Kind, source: Base64Source | URLSource) -> None:
        """Adds a media item that is sent as media."""
        self.media.append((path, kind, source))
        count, data = self.loads.get(kind, (0, 0))
        more = len(source.data) if isinstance(source, Base64Source) else 0
        self.loads[kind] = (count + 1, data + more)

    call_ids: dict[str, str] = field(default_factory=dict[str, str])
    tool_names: dict[str, str] = field(default_factory=dict[str, str])


@lru_cache(512)
def passing_key(capabilities: Capabilities, role: Role) -> object:
    """Returns the cache key for data that pass unchanged in messages of a role."""
    return object()


class MediaLegalizer:
    """Rules of a target for the media of one message."""

    def __init__(
        self, capabilities: Capabilities, on_loss: OnLoss, shelf: ResolvedMedia, changes: Changes
    ) -> None:
        self.capabilities = capabilities
        self.on_loss: OnLoss = on_loss
        self.shelf = shelf
        self.changes = changes
        self.out = LegalMessage(None)
        self.spoke = False  # whether a sound goes by its id
        self.frame = ""  # the tag of the frame that the message is, if it is one
        self.role: Role = "user"

    def _note(self, path: BlockPath, disposition: Disposition, reason: str, lost: bool = False) -> None:
        self.out.notes.append((path, Note(disposition, reason, lost)))

    def _fit_id(self, found: str) -> str:
        fit = wire_id(self.capabilities, found)
        if fit != found:
            self.out.call_ids[fit] = found
        return fit

    def _without_foreign_state(self, block: _Stateful, path: BlockPath) -> _Stateful:
        """The block, its opaque state taken off unless it is this target's own, where a turn may carry it.

        A result is no place for what proves that a model made something.
        """
        state = block.state
        if state is None:
            return block
        if state.thought_signature is not None and not is_base64(state.thought_signature):
            self._note(path, Disposition.CARRIED, f"a signature that is not base64 text {OMITTED_SUFFIX}")
            return replace(block, state=None)
        models = self.role == "assistant" and len(path) == 1
        belongs = models or (state.fields and not state.is_proof)
        if state.issuer == self.capabilities.issuer and belongs:
            return block
        self._note(path, Disposition.CARRIED, f"state issued by {sanitize(state.issuer)} {OMITTED_SUFFIX}")
        return replace(block, state=None)

    def _with_own_state(self, block: MediaBlock, path: BlockPath, changed: bool) -> MediaBlock:
        """Returns media without opaque state of another issuer, and without signatures of other data."""
        if block.state is None:
            return block
        if changed and block.state.is_proof:
            reason = f"the signature of a picture that was changed or moved {OMITTED_SUFFIX}"
            self._note(path, Disposition.CARRIED, reason)
            return replace(block, state=None)
        return self._without_foreign_state(block, path)

    def _medium(
        self, block: MediaBlock, path: BlockPath, label: str, result: ToolResultBlock | None = None
    ) -> Iterator[Block]:
        """Yields media as the target accepts it: in its place, promoted, as text, or described."""
        if block.state is not None and block.type == "audio" and "audio" in (block.state.fields or {}):
            yield from self._spoken(block, block.state, path, label, result)
            return
        if self._is_reply_item(block, path, result):
            self._note(path, Disposition.CARRIED, "sent as the item that the model made it in")
            self.out.carry(path, block.type, cast("Base64Source", block.source))
            yield block
            return
        source = self.shelf.resolve_for(self.capabilities, block.type, block.source)
        if isinstance(source, str):
            yield from self._lose(
                path, block.type, f"it is {source}" if source.startswith(("a ", "an ")) else source
            )
            return
        self._note_type(path, block.source, source)
        reason = rejection_reason(self.capabilities, block.type, source)
        change = self.changes.get(path)
        if isinstance(change, Base64Source):
            self._note(path, Disposition.SHRUNK, describe_resize(source, change))
            source = change
        elif reason is None:
            reason = change
        if reason is None:
            self.out.carry(path, block.type, source)
            kept = block if source is block.source else replace(block, source=source)
            if self._stays(block.type, source, result):
                kept = self._with_own_state(kept, path, isinstance(change, Base64Source))
                if kept is block and result is None:
                    self._pass(block)
                yield kept
            else:
                kept = self._with_own_state(kept, path, changed=True)
                owner = self._fit_id(result.id) if result else ""
                self.out.promoted.append(PromotedMedia(kept, path, label, owner))
                where = "after the results" if result else "after this one"
                yield build_trusted_text(f"({block.type} shown in the user turn {where})")
        elif (text := _text_of(block, source)) is not None:
            if len(text) > LONGEST_TEXT:
                long = f"it is a text of more than {LONGEST_TEXT} characters"
                yield from self._lose(path, block.type, long, source)
                return
            self._note(path, Disposition.DESCRIBED, "text document sent as text")
            yield build_trusted_text(self._in_place("[document, as text]", text))
        else:
            yield from self._lose(path, block.type, reason, source)

    def _is_reply_item(self, block: MediaBlock, path: BlockPath, result: ToolResultBlock | None) -> bool:
        """Returns True if the target's own model made the media and takes them back unchanged, in its own turn."""
        state, form = block.state, self.capabilities
        if not form.media.generated_by_id or state is None or result is not None or path in self.changes:
            return False
        own = state.issuer == form.issuer and state.item_id is not None
        return own and self.role == "assistant" and isinstance(block.source, Base64Source)

    def _spoken(
        self, block: MediaBlock, state: OpaqueState, path: BlockPath, label: str, result: ToolResultBlock | None
    ) -> Iterator[Block]:
        """Yields audio of a model: by its id for its issuer, as data where allowed, or as its transcript."""
        said = as_object((state.fields or {}).get("audio"))
        own = self.capabilities.media.audio_by_id and state.issuer == self.capabilities.issuer
        replys = self.role == "assistant" and result is None
        words, left = as_text(said.get("transcript")), f"state issued by {sanitize(state.issuer)} {OMITTED_SUFFIX}"
        if own and replys and as_text(said.get("id")) and not self.spoke:
            self.spoke = True  # a message has room for one
            self._note(path, Disposition.CARRIED, "audio sent by the id that its issuer gave it")
            yield block
        elif not words or words.isspace() or self._carries(block, path, result):
            self._note(path, Disposition.CARRIED, left)
            yield from self._medium(replace(block, state=None), path, label, result)
        else:
            self._note(path, Disposition.DESCRIBED, f"audio sent as its transcript; {left}")
            yield build_trusted_text(words if replys else self._in_place("[audio, as its transcript]", words))

    def _carries(self, block: MediaBlock, path: BlockPath, result: ToolResultBlock | None) -> bool:
        """Returns True if the media item can be sent as media in its place."""
        source = self.shelf.resolve_for(self.capabilities, block.type, block.source)
        if (
            isinstance(source, str)
            or path in self.changes
            or rejection_reason(self.capabilities, block.type, source)
        ):
            return False
        return self._stays(block.type, source, result)

    def _pass(self, block: MediaBlock) -> None:
        """Caches that the data pass unchanged in messages of this role."""
        if isinstance(block.source, Base64Source):
            block.source.cache[passing_key(self.capabilities, self.role)] = block.type

    def _note_type(self, path: BlockPath, named: Source, found: Base64Source | URLSource) -> None:
        """Notes a media type that differs from the declared one."""
        declared = named.media_type if isinstance(named, Base64Source) else named.guessed_type
        if isinstance(found, Base64Source) and declared and canonical_media_type(declared) != found.media_type:
            fetched = isinstance(named, URLSource) and named.scheme in {"http", "https"}
            who = "which its bytes or its server say it is" if fetched else "which its bytes are"
            self._note(
                path, Disposition.CARRIED, f"sent as {sanitize(found.media_type)}, {who}, not {sanitize(declared)}"
            )

    def _stays(self, kind: Kind, source: Base64Source | URLSource, result: ToolResultBlock | None) -> bool:
        form = self.capabilities
        if result is None:
            remote = self.role == "assistant" and isinstance(source, URLSource)
            return self.role in form.media.roles and not remote
        if kind not in form.media.result_kinds or (result.is_error and not form.media.error_results):
            return False
        media_type = source.media_type if isinstance(source, Base64Source) else source.guessed_type
        if isinstance(source, URLSource) and form.media.result_urls and not form.media.result_urls(source.url):
            return False
        return not form.media.result_types or media_type in form.media.result_types

    def _lose(
        self,
        path: BlockPath,
        kind: str,
        reason: str,
        source: Base64Source | URLSource | None = None,
        noted: str = "",
    ) -> Iterator[TextBlock]:
        """Yields a short text for content that is not sent, or nothing. `noted` is a ledger reason."""
        if self.on_loss == "describe":
            self._note(path, Disposition.DESCRIBED, noted or reason, lost=True)
            found = address(source)
            at = f"; it is at {found}" if found else ""
            yield build_trusted_text(self._in_place(f"[{kind} left out because {reason}{at}]"))
        else:
            self._note(path, Disposition.DROPPED, noted or reason, lost=True)

    def _in_place(self, label: str, text: str | None = None) -> str:
        """Returns a label and its text as a separate line. In a frame, the line has no speaker."""
        if not self.frame:
            return label if text is None else f"{label}\n{text}"
        lead = "\n" if self.capabilities.turns.text_joining == "apart" else ""
        if text is None:
            return lead + label
        return f"{lead}{label}{safe_text(chr(10) + text, self.frame)}"


def _text_of(block: MediaBlock, source: Base64Source | URLSource) -> str | None:
    """Returns the text of a text document, empty if it was not read yet; None for other media."""
    if block.type != "document" or isinstance(source, URLSource) or not is_text_type(source.media_type):
        return None
    return source.text if source.data else ""
