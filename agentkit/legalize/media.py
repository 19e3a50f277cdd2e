"""Rules of a target for the media of one message, and for the opaque state of its blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Literal, TypeAlias, TypeVar, cast

from agentkit.capabilities.capabilities import Capabilities
from agentkit.capabilities.media_rules import Kind
from agentkit.history.frame_escaping import safe_text
from agentkit.json_values import as_object, as_text
from agentkit.ledger.entries import Disposition, Note
from agentkit.ledger.places import BlockPath
from agentkit.legalize.call_ids import legal_call_id
from agentkit.legalize.legal_message import Changes, LegalMessage, PromotedMedia
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
from agentkit.messages.message import Role
from agentkit.messages.opaque_state import get_state_fields
from agentkit.messages.sources import Base64Source, Source, URLSource

__all__ = ["MediaLegalizer", "OnLoss", "WAS_OMITTED", "accepted_key"]

_Stateful = TypeVar("_Stateful", TextBlock, ToolUseBlock, MediaBlock)

OnLoss: TypeAlias = Literal["describe", "drop", "raise"]
"""Treatment of content that an API does not accept.

`describe` sends a short text instead of the content, `drop` omits the content, and `raise` raises LossError.
"""

WAS_OMITTED = "was omitted"
"""End of each ledger reason for a block that is sent without its opaque state, such as a signature."""


@lru_cache(512)
def accepted_key(capabilities: Capabilities, role: Role) -> object:
    """Returns the cache key for media sources that the target accepts unchanged in messages with a given role.

    Calls with equal arguments return the same object, which makes cache lookups fast.
    """
    return object()


class MediaLegalizer:
    """Rewriter that applies the target's rules to the media of one message.

    Attributes:
        changes: The changes to this message that keep the whole request within the target's media limits.
        has_audio_id: True if the rewritten message already contains the id of an audio clip.
        frame_tag: The tag name of the history frame. Empty if the message is not a history frame.
    """

    def __init__(
        self,
        capabilities: Capabilities,
        on_loss: OnLoss,
        media: ResolvedMedia,
        changes: Changes,
        role: Role,
        frame_tag: str,
    ) -> None:
        self.capabilities = capabilities
        self.on_loss: OnLoss = on_loss
        self.media = media
        self.changes = changes
        self.out = LegalMessage(None)
        self.has_audio_id = False
        self.frame_tag = frame_tag
        self.role: Role = role

    def _note(self, path: BlockPath, disposition: Disposition, reason: str, lost: bool = False) -> None:
        self.out.notes.append((path, Note(disposition, reason, lost)))

    def _legalize_id(self, call_id: str) -> str:
        legal_id = legal_call_id(self.capabilities, call_id)
        if legal_id != call_id:
            self.out.call_ids[legal_id] = call_id
        return legal_id

    # -- opaque state ------------------------------------------------------------------------------------------

    def _without_foreign_state(self, block: _Stateful, path: BlockPath) -> _Stateful:
        """Returns the block without the opaque state that the target does not accept.

        Opaque state is sent only to its issuer, the system that produced it. A signature is sent only in assistant
        turns, and not in tool results. Other fields are sent only if the target accepts their keys. The ledger
        lists the omitted fields (see `OmittedDetails`).
        """
        state = block.state
        if state is None:
            return block
        if state.thought_signature is not None and not is_base64(state.thought_signature):
            self._note(path, Disposition.CARRIED, f"a signature that is not base64 text {WAS_OMITTED}")
            return replace(block, state=None)
        is_in_reply = self.role == "assistant" and len(path) == 1
        is_allowed = is_in_reply or (state.fields and not state.is_proof)
        if state.issuer == self.capabilities.issuer and is_allowed:
            fields, opaque = get_state_fields(state), self.capabilities.opaque
            accepted = {key: value for key, value in fields.items() if opaque.accepts_key(block.type, key)}
            return block if len(accepted) == len(fields) else replace(block, state=replace(state, fields=accepted))
        reason = f"data issued by {sanitize(state.issuer)}, such as a signature, {WAS_OMITTED}"
        self._note(path, Disposition.CARRIED, reason)
        return replace(block, state=None)

    def _without_stale_state(self, block: MediaBlock, path: BlockPath, is_changed: bool) -> MediaBlock:
        """Returns the media item without opaque state that the target does not accept.

        If `is_changed` is True, a signature is also removed, because the signature is valid only for the original.
        """
        if block.state is None:
            return block
        if is_changed and block.state.is_proof:
            reason = f"the signature of a changed or moved media item {WAS_OMITTED}"
            self._note(path, Disposition.CARRIED, reason)
            return replace(block, state=None)
        return self._without_foreign_state(block, path)

    # -- media -------------------------------------------------------------------------------------------------

    def _legalize_media(
        self, block: MediaBlock, path: BlockPath, label: str, result: ToolResultBlock | None = None
    ) -> Iterator[Block]:
        """Yields a media item that the target accepts, or a text that replaces the media item.

        The text is the content of a text document, the transcript of audio, a note that the media item was moved,
        or a short description. `label` tells the model where a moved media item comes from. `result` is the tool
        result with the media item, or None if the media item is not in a tool result.
        """
        state = block.state
        if state is not None and block.type == "audio" and "audio" in get_state_fields(state):
            yield from self._legalize_reply_audio(block, state, path, label, result)
            return
        if self._is_generated(block, path, result):
            self._note(path, Disposition.CARRIED, "sent as the id of the reply item that contains the media")
            self.out.add_media(path, block.type, cast("Base64Source", block.source))
            yield block
            return
        source = self.media.resolve_for(self.capabilities, block.type, block.source)
        if isinstance(source, str):
            reason = f"the source is {source}" if source.startswith(("a ", "an ")) else source
            yield from self._lose(path, block.type, reason)
            return
        self._note_type(path, block.source, source)
        rejection = rejection_reason(self.capabilities, block.type, source)
        change = self.changes.get(path)
        if isinstance(change, Base64Source):
            self._note(path, Disposition.SHRUNK, describe_resize(source, change))
            source = change
        elif rejection is None:
            rejection = change
        if rejection is None:
            yield self._send(block, path, source, label, result)
        elif (text := _find_text(block, source)) is not None:
            yield from self._write_document(block, path, source, text)
        else:
            yield from self._lose(path, block.type, rejection, source)

    def _send(
        self,
        block: MediaBlock,
        path: BlockPath,
        source: Base64Source | URLSource,
        label: str,
        result: ToolResultBlock | None,
    ) -> Block:
        """Returns the media item. Returns a text instead if the media item must move to a separate user turn."""
        self.out.add_media(path, block.type, source)
        sent = block if source is block.source else replace(block, source=source)
        if self._is_accepted_here(block.type, source, result):
            sent = self._without_stale_state(sent, path, isinstance(self.changes.get(path), Base64Source))
            if sent is block and result is None and isinstance(block.source, Base64Source):
                block.source.cache[accepted_key(self.capabilities, self.role)] = block.type
            return sent
        sent = self._without_stale_state(sent, path, is_changed=True)
        call_id = self._legalize_id(result.id) if result else ""
        self.out.promoted.append(PromotedMedia(sent, path, label, call_id))
        position = "after the results" if result else "after this one"
        return build_trusted_text(f"({block.type} shown in the user turn {position})")

    def _write_document(
        self, block: MediaBlock, path: BlockPath, source: Base64Source | URLSource, text: str
    ) -> Iterator[TextBlock]:
        """Yields the text of a text document, or a short description if the text is too long."""
        if len(text) > LONGEST_TEXT:
            reason = f"the document has more than {LONGEST_TEXT} characters"
            yield from self._lose(path, block.type, reason, source)
        else:
            self._note(
                path, Disposition.DESCRIBED, "document sent as text, because the API does not accept the file"
            )
            yield build_trusted_text(self._format_line("[document, as text]", text))

    def _is_generated(self, block: MediaBlock, path: BlockPath, result: ToolResultBlock | None) -> bool:
        """Returns True if a media item is sent as an item of the earlier reply that contained the media."""
        state, target = block.state, self.capabilities
        if not target.media.generated_by_id or state is None or result is not None or path in self.changes:
            return False
        is_own = state.issuer == target.issuer and state.item_id is not None
        return is_own and self.role == "assistant" and isinstance(block.source, Base64Source)

    def _legalize_reply_audio(
        self, block: MediaBlock, state: OpaqueState, path: BlockPath, label: str, result: ToolResultBlock | None
    ) -> Iterator[Block]:
        """Yields audio that a model generated, or the transcript of the audio.

        A request to the provider that generated the audio contains only the id of the audio. Any other request
        contains the data, or the transcript if the target does not accept audio.
        """
        audio = as_object(get_state_fields(state).get("audio"))
        is_own = self.capabilities.media.audio_by_id and state.issuer == self.capabilities.issuer
        is_in_reply = self.role == "assistant" and result is None
        transcript = as_text(audio.get("transcript"))
        omitted = f"data issued by {sanitize(state.issuer)}, such as a signature, {WAS_OMITTED}"
        if is_own and is_in_reply and as_text(audio.get("id")) and not self.has_audio_id:
            self.has_audio_id = True  # the API accepts only one audio id in each message
            self._note(path, Disposition.CARRIED, "audio sent as the id under which the provider stores the audio")
            yield block
        elif not transcript or transcript.isspace() or self._can_send_data(block, path, result):
            self._note(path, Disposition.CARRIED, omitted)
            yield from self._legalize_media(replace(block, state=None), path, label, result)
        else:
            self._note(path, Disposition.DESCRIBED, f"audio sent as its transcript; {omitted}")
            text = transcript if is_in_reply else self._format_line("[audio, as its transcript]", transcript)
            yield build_trusted_text(text)

    def _can_send_data(self, block: MediaBlock, path: BlockPath, result: ToolResultBlock | None) -> bool:
        """Returns True if the target accepts the data of the media item in this message."""
        source = self.media.resolve_for(self.capabilities, block.type, block.source)
        if isinstance(source, str) or path in self.changes:
            return False
        if rejection_reason(self.capabilities, block.type, source):
            return False
        return self._is_accepted_here(block.type, source, result)

    def _note_type(self, path: BlockPath, declared: Source, source: Base64Source | URLSource) -> None:
        media_type = declared.media_type if isinstance(declared, Base64Source) else declared.guessed_type
        if isinstance(source, URLSource) or not media_type:
            return
        if canonical_media_type(media_type) != source.media_type:
            is_fetched = isinstance(declared, URLSource) and declared.scheme in {"http", "https"}
            evidence = "content or server" if is_fetched else "content"
            new, old = sanitize(source.media_type), sanitize(media_type)
            reason = f"media type sent as {new} instead of {old}, according to the {evidence}"
            self._note(path, Disposition.CARRIED, reason)

    def _is_accepted_here(
        self, kind: Kind, source: Base64Source | URLSource, result: ToolResultBlock | None
    ) -> bool:
        """Returns True if the target accepts media of this kind and type in this message or tool result."""
        rules = self.capabilities.media
        if result is None:
            is_remote = self.role == "assistant" and isinstance(source, URLSource)
            return self.role in rules.roles and not is_remote
        if kind not in rules.result_kinds or (result.is_error and not rules.error_results):
            return False
        media_type = source.media_type if isinstance(source, Base64Source) else source.guessed_type
        if isinstance(source, URLSource) and rules.result_urls and not rules.result_urls(source.url):
            return False
        return not rules.result_types or media_type in rules.result_types

    # -- loss --------------------------------------------------------------------------------------------------

    def _lose(
        self,
        path: BlockPath,
        noun: str,
        reason: str,
        source: Base64Source | URLSource | None = None,
        ledger_reason: str = "",
    ) -> Iterator[TextBlock]:
        """Yields a text that describes omitted content. Yields nothing if `on_loss` is not `describe`.

        The text includes `reason` and the URL of `source`. The ledger entry has `ledger_reason`, or `reason` if
        `ledger_reason` is empty.
        """
        if self.on_loss == "describe":
            self._note(path, Disposition.DESCRIBED, ledger_reason or reason, lost=True)
            location = address(source)
            suffix = f"; it is at {location}" if location else ""
            yield build_trusted_text(self._format_line(f"[{noun} left out because {reason}{suffix}]"))
        else:
            self._note(path, Disposition.DROPPED, ledger_reason or reason, lost=True)

    def _format_line(self, label: str, text: str | None = None) -> str:
        """Joins a label and an optional text.

        Inside a history frame, the label begins a new line, and the text is escaped.
        """
        if not self.frame_tag:
            return label if text is None else f"{label}\n{text}"
        lead = "\n" if self.capabilities.turns.text_joining == "apart" else ""
        if text is None:
            return lead + label
        return f"{lead}{label}{safe_text(chr(10) + text, self.frame_tag)}"


def _find_text(block: MediaBlock, source: Base64Source | URLSource) -> str | None:
    """Returns the text of a text document, or "" if the file is not read yet. Returns None for other media.

    Also returns None for a document that is blank or not valid UTF-8.
    """
    if block.type != "document" or isinstance(source, URLSource) or not is_text_type(source.media_type):
        return None
    return source.text if source.data else ""
