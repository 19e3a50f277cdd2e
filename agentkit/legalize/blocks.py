"""Single messages as a target accepts them. Other content is described, dropped, or set aside for a user turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import is_
from typing import Any, cast

from agentkit.capabilities.capabilities import Capabilities
from agentkit.history.frame_texts import frame_tag, mark_frame
from agentkit.ledger.entries import Disposition
from agentkit.ledger.places import BlockPath
from agentkit.legalize.media import Changes, LegalMessage, MediaLegalizer, OnLoss, passing_key
from agentkit.media.acceptance import sanitize
from agentkit.media.message_media import media_of
from agentkit.media.resolution import ResolvedMedia, is_base64
from agentkit.messages.blocks import (
    Block,
    InvalidBlock,
    MediaBlock,
    OpaqueBlock,
    ResultItem,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
)
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, Role, build_trusted, get_cached, set_cached
from agentkit.messages.sources import Base64Source, URLSource
from agentkit.reprs import shorten

__all__ = ["legalize_message", "thinking_obstacle"]


def legalize_message(
    msg: Msg, capabilities: Capabilities, on_loss: OnLoss, shelf: ResolvedMedia, changes: Changes | None = None
) -> LegalMessage:
    """Returns a message as a target accepts it, without regard to other messages.

    `changes` are those that the limits of a whole request ask for. Kept with the message for the next time,
    unless it is a frame or turns on something that may be another then.
    """
    key = _key(capabilities, on_loss)
    kept = None if changes else cast("_Kept | None", get_cached(msg, key))
    if kept is not None and kept.closed:
        return kept.tidied
    files = None if changes or frame_tag(msg) else _files(msg, shelf)
    if files is None:
        known = None if changes else _as_it_is(msg, capabilities)
        return known or _Tidying(capabilities, on_loss, shelf, changes or {}).run(msg)
    if kept is None or len(kept.files) != len(files) or not all(map(is_, kept.files, files)):
        kept = _Kept(_Tidying(capabilities, on_loss, shelf, {}).run(msg), files, media_of(msg).closed)
        set_cached(msg, key, kept)
    return kept.tidied


@lru_cache(512)
def _key(capabilities: Capabilities, on_loss: OnLoss) -> object:
    """Returns the cache key of legal messages: one object for equal rules, which compares by identity."""
    return object()


def _as_it_is(msg: Msg, capabilities: Capabilities) -> LegalMessage | None:
    """Returns the legal message for texts and data that are known to pass unchanged; None for other messages."""
    passing, out = passing_key(capabilities, _role_of(msg)), LegalMessage(msg)
    for at, block in enumerate(msg.blocks):
        if type(block) is TextBlock:
            if block.state is not None or not block.text or block.text.isspace():
                return None
            continue
        source: object = getattr(block, "source", None)
        if type(source) is not Base64Source or source.cache.get(passing) != block.type:
            return None
        medium = cast("MediaBlock", block)
        if medium.state is not None:
            return None
        out.carry((at,), medium.type, source)
    out.origins = tuple(range(len(msg.blocks)))
    return out if out.media else None


def _role_of(msg: Msg) -> Role:
    return "assistant" if msg.features & Feature.CALL else msg.role


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is kept with a message: good for as long as the same was read for its files, if it has any.

    `closed` says that all media are in the message itself.
    """

    tidied: LegalMessage
    files: Sequence[object]
    closed: bool


def _files(msg: Msg, shelf: ResolvedMedia) -> list[object] | None:
    """Returns the content of a message's files. Returns None if a URL is needed too, or no file was read yet."""
    found: list[object] = []
    for block in media_of(msg).blocks:
        if isinstance(block.source, URLSource) and (scheme := block.source.scheme) != "data":
            fetched = scheme != "file" and (shelf.fetches or block.source in shelf.files)
            if fetched or (scheme == "file" and shelf.assume):
                return None
            if scheme == "file":
                found.append(shelf.resolve(block.source))
    return found


_UNREAD = "it could not be read when the history was loaded"
"""Text of the request for an invalid block. The block's own reason may quote the block: only the ledger has it."""


def _why_invalid(block: InvalidBlock) -> str:
    return f"invalid block: {shorten(block.reason, 300)}"


def thinking_obstacle(block: ThinkingBlock, form: Capabilities, role: Role) -> str | None:
    """Returns the reason why a thinking block is not sent back; None if it is sent."""
    state = block.state
    if form.thinking.mode == "never" or role != "assistant":
        return "the target does not accept thinking"
    if state is not None and state.issuer != form.issuer:
        return f"thinking issued by {sanitize(state.issuer)}, not by this target"
    if form.thinking.mode == "signed":
        proven = state is not None and any(getattr(state, name) for name in form.thinking.required_proof)
        if state is None or (form.thinking.required_proof and not proven):
            return "thinking lacks the proof that its issuer requires"
        if state.thought_signature is not None and not is_base64(state.thought_signature):
            return "the thinking signature is not base64 text"
        if not form.thinking.required_proof and not block.thinking and not state.thought_signature:
            return "thinking has neither text nor a signature"
    return None


class _Tidying(MediaLegalizer):
    """Rules of a target for the blocks of one message."""

    def run(self, msg: Msg) -> LegalMessage:
        self.frame = frame_tag(msg)
        self.role = _role_of(msg)
        pairs: list[tuple[Block, int]] = []
        for at, old in enumerate(msg.blocks):
            if type(old) is TextBlock and old.state is None and old.text and not old.text.isspace():
                pairs.append((old, at))  # what most blocks are
            else:
                pairs.extend((block, at) for block in self._block(old, at, msg))
        pairs = self._without_dangling_thinking(pairs)
        if not pairs:
            return self.out
        unchanged = len(pairs) == len(msg.blocks) and all(
            new is old for (new, _), old in zip(pairs, msg.blocks, strict=True)
        )
        if isinstance(msg.content, str) or unchanged:
            self.out.msg = msg
        else:
            self.out.msg = build_trusted(msg.name, tuple(block for block, _ in pairs), msg.role)
            if self.frame:
                mark_frame(self.out.msg, self.frame)
        self.out.origins = tuple(at for _, at in pairs)
        return self.out

    def _block(self, block: Block, at: int, msg: Msg) -> Iterator[Block]:
        match block:
            case TextBlock():
                yield from self._text(block, at)
            case ThinkingBlock():
                yield from self._thinking(block, at)
            case ToolUseBlock():
                yield self._call(block, at)
            case ToolResultBlock():
                yield self._result(block, at)
            case OpaqueBlock():
                yield from self._opaque(block, (at,))
            case InvalidBlock():
                yield from self._lose((at,), "block", _UNREAD, noted=_why_invalid(block))
            case _:
                yield from self._medium(block, (at,), f"from the message of '{sanitize(msg.name)}'")

    def _text(self, block: TextBlock, at: int) -> Iterator[TextBlock]:
        kept = self._without_foreign_state(block, (at,))
        blank = not block.text or block.text.isspace()
        signed = self.capabilities.opaque.signed_parts and kept.state and kept.state.thought_signature
        if blank and not signed:
            self._note((at,), Disposition.DROPPED, "blank text")
        else:
            yield kept

    def _thinking(self, block: ThinkingBlock, at: int) -> Iterator[ThinkingBlock]:
        refusal = thinking_obstacle(block, self.capabilities, self.role)
        if refusal is None:
            yield block
        else:
            self._note((at,), Disposition.DROPPED, refusal)

    def _opaque(
        self, block: OpaqueBlock, path: BlockPath, result: ToolResultBlock | None = None
    ) -> Iterator[OpaqueBlock | TextBlock]:
        """Yields opaque blocks. Other targets omit them from assistant turns; elsewhere, this is a loss."""
        form, own = self.capabilities, block.wire == self.capabilities.wire
        place = "result" if result is not None else self.role
        plain_error = result is not None and result.is_error and not form.media.error_results
        replys = bool(own and form.opaque.is_reply_data and form.opaque.is_reply_data(block.data))
        fits = own and (form.opaque.places is None or place in form.opaque.places(block.data))
        if fits and (place == "assistant" or not (replys or plain_error)):
            yield block
        elif replys or (place == "assistant" and not own):
            self._note(
                path, Disposition.DROPPED, f"opaque block of a reply: only {sanitize(block.wire)} accepts it"
            )
        elif plain_error:
            yield from self._lose(path, "part", "a failed result holds text alone")
        elif own:
            where = "a tool result" if result is not None else f"a message of role {self.role!r}"
            yield from self._lose(path, "part", f"{form.name} has no place for it in {where}")
        else:
            yield from self._lose(path, "part", f"only {sanitize(block.wire)} knows it")

    def _without_dangling_thinking(self, pairs: list[tuple[Block, int]]) -> list[tuple[Block, int]]:
        """Thinking behind which its turn says nothing is refused by the wires that check it.

        Anthropic: the final block in an assistant message cannot be thinking. OpenAI Responses: a reasoning
        item without its required following item.
        """
        signed = self.capabilities.thinking.mode == "signed"
        while pairs and isinstance(pairs[-1][0], ThinkingBlock):
            if not signed and any(not isinstance(block, ThinkingBlock) for block, _ in pairs):
                break
            self._note((pairs[-1][1],), Disposition.DROPPED, "no text or tool call follows this thinking block")
            pairs = pairs[:-1]
        return pairs

    def _call(self, block: ToolUseBlock, at: int) -> ToolUseBlock:
        block = self._without_foreign_state(block, (at,))
        wire_id, name = self._fit_id(block.id), self._fit_name(block.name)
        if block.raw_is_broken:
            self._note((at,), Disposition.REPAIRED, "argument text is not the JSON object of `input`")
            if not block.input:
                block = replace(block, input={"raw_input": block.raw_input}, raw_input=None)
        if (wire_id, name) != (block.id, block.name):
            self._note((at,), Disposition.CARRIED, "call id or tool name rewritten: not allowed by the API")
            block = replace(block, id=wire_id, name=name)
        return block

    def _fit_name(self, found: str) -> str:
        rule = self.capabilities.tools.names
        fit = rule.fit(found) if rule else found or "unnamed_tool"
        if fit != found:
            self.out.tool_names[fit] = found
        return fit

    def _result(self, block: ToolResultBlock, at: int) -> ToolResultBlock:
        changes: dict[str, Any] = {}
        if (wire_id := self._fit_id(block.id)) != block.id:
            changes["id"] = wire_id
        if block.name and (name := self._fit_name(block.name)) != block.name:
            changes["name"] = name
        if not isinstance(block.output, str):
            items = tuple(kept for k, item in enumerate(block.output) for kept in self._item(item, (at, k), block))
            if len(items) != len(block.output) or any(
                a is not b for a, b in zip(items, block.output, strict=True)
            ):
                changes["output"] = items
        return replace(block, **changes) if changes else block

    def _item(self, item: ResultItem, path: BlockPath, result: ToolResultBlock) -> Iterator[ResultItem]:
        if isinstance(item, TextBlock):
            if item.text and not item.text.isspace():
                yield self._without_foreign_state(item, path)
            else:
                self._note(path, Disposition.DROPPED, "blank text")
        elif isinstance(item, OpaqueBlock):
            yield from self._opaque(item, path, result)
        elif isinstance(item, InvalidBlock):
            yield from self._lose(path, "block", _UNREAD, noted=_why_invalid(item))
        else:
            call = sanitize(self._fit_id(result.id))
            label = f"from the tool result of '{sanitize(result.name) or 'tool'}', call {call}"
            yield from cast("Iterator[ResultItem]", self._medium(item, path, label, result))
