"""`Assembly`: a reply put together from pieces, with the events of its making; every reader fills one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar, cast

from pydantic_core import to_json

from agentkit.json_values import as_text, make_json_safe
from agentkit.messages.blocks import Block, MediaBlock, OpaqueBlock
from agentkit.messages.message import Msg
from agentkit.messages.usage import FinishReason, Usage
from agentkit.replies.arguments import ArgumentBuffer
from agentkit.replies.events import (
    ErrorEvent,
    MessageEnd,
    MessageStart,
    StreamEvent,
    ToolUseDelta,
    ToolUseEnd,
    ToolUseStart,
    UsageEvent,
)
from agentkit.replies.partial_blocks import (
    BlockBuilder,
    CompleteBlock,
    PartialBlock,
    PartialPlainText,
    PartialText,
    PartialThinking,
    PartialToolCall,
)

__all__ = ["Key", "ReplyBuilder"]

Key: TypeAlias = tuple[int, ...]
"""A block's place among the blocks of the reply: blocks stand in the order of their keys."""

_Draft = TypeVar("_Draft", bound=PartialBlock)


class ReplyBuilder:
    """One reply in the making.

    The methods take pieces in any order and write down the events that they make, for `drain`. A block begins
    with its first piece, under a key that says where it stands among the others. `message` puts all together.
    A block that is complete takes no more pieces, and a reply that is over no more blocks.
    """

    def __init__(
        self,
        *,
        name: str,
        provider: str,
        issuer: str,
        request: Mapping[str, Any] | None,
        tool_names: Mapping[str, str],
        raw_arguments: bool,
        binds_thinking: bool = False,
        redact: Callable[[str], str] = str,
    ) -> None:
        self.name = name
        self.provider = provider
        self.id: str | None = None
        self.model: str | None = None
        self.usage: Usage | None = None
        self.finish_reason: FinishReason | None = None
        self.native_reason: str | None = None
        self.error: dict[str, Any] | None = None
        self.notes: dict[str, Any] = {}
        """What else the reply's metadata say: `input_transformations`, `safety_ratings`, and so on."""
        self._composer = BlockBuilder(
            issuer=issuer, request=request, raw_arguments=raw_arguments, binds_thinking=binds_thinking
        )
        self._tool_names = tool_names
        self._redact = redact
        self._drafts: dict[Key, PartialBlock] = {}
        self._events: list[StreamEvent] = []
        self._begun = False
        self._count = 0
        self._late: list[str] = []  # what came for a block, or a reply, that was complete

    def drain(self) -> list[StreamEvent]:
        """The events since the last time."""
        events = self._events
        self._events = []
        return events

    # -- the reply as a whole ----------------------------------------------------------------------------------

    def begin(self, id: object = None, model: object = None, made: object = None) -> None:
        """The reply begins, or says who it is and when it was made: the first that comes of each is kept."""
        composer = self._composer
        composer.made_at = composer.made_at or (str(made)[:64] if isinstance(made, str | int) else "")
        composer.id = self.id = self.id or as_text(id) or None
        composer.model = self.model = self.model or as_text(model) or None
        if not self._begun:
            self._begun = True
            self._events.append(MessageStart(self.id, self.model))

    def set_usage(self, usage: Usage) -> None:
        """The tokens so far."""
        if usage != self.usage:
            self.usage = usage
            self._events.append(UsageEvent(usage))

    def end(self, reason: FinishReason, native: str | None = None) -> None:
        """The reply is over: every block that is open is complete."""
        if self.finish_reason is not None:
            return
        for key in self._drafts:
            self.close(key)
        if reason in (FinishReason.STOP, FinishReason.OTHER) and self.has_calls:
            reason = FinishReason.TOOL_USE
        self.begin()
        self.finish_reason, self.native_reason = reason, native
        self._events.append(MessageEnd(reason, native))

    def fail(
        self, message: str, code: str | None = None, request_id: str | None = None, **more: float | None
    ) -> None:
        """The provider reported an error: nothing that is open is complete. Behind the end it is only noted.

        `more` are a `status` of HTTP's and a `retry_after` in seconds, where they are told.
        """
        message = self._redact(as_text(message)) or "an error without a message"
        code = self._redact(as_text(code)) or None
        known: dict[str, Any] = {"code": code, "request_id": self._redact(as_text(request_id)), **more}
        self.error = {"message": message, **{name: said for name, said in known.items() if said not in ("", None)}}
        if self.finish_reason is None:
            self.begin()
            self._events.append(ErrorEvent(message, code))

    @property
    def has_calls(self) -> bool:
        """Whether the reply calls tools."""
        return any(isinstance(draft, PartialToolCall) for draft in self._drafts.values())

    # -- blocks ------------------------------------------------------------------------------------------------

    def add_text(self, key: Key, piece: str, kind: type[PartialText] = PartialPlainText) -> None:
        """A piece of a text block; an empty one begins it."""
        draft = self._drafts.get(key)
        if draft is None:
            if self.finish_reason is not None:
                self._late.append(piece)
                return
            draft = self._open(key, kind(self._number()))
            self._events.append(draft.start(draft.index))
        if not piece:
            return
        if draft.closed or not isinstance(draft, PartialText):
            self._late.append(piece)
            return
        piece = draft.take(piece)
        draft.pieces.append(piece)
        self._events.append(draft.delta(draft.index, piece))

    def add_thinking(self, key: Key, piece: str) -> None:
        """A piece of a thinking block; an empty one begins it."""
        self.add_text(key, piece, PartialThinking)

    def add_tool_call(self, key: Key, id: object = None, name: object = None, piece: str = "") -> None:
        """A piece of a call's argument text. The first id and the first name that come are kept."""
        draft = self._drafts.get(key)
        if draft is None:
            if self.finish_reason is not None:
                self._late.append(f"{as_text(name)}{piece}")
                return
            draft = self._open(key, PartialToolCall(self._number()))
            draft.id, draft.name = as_text(id), self._tool_name(name)
            self._events.append(ToolUseStart(draft.index, draft.id, draft.name))
        if draft.closed or not isinstance(draft, PartialToolCall):
            self._late.append(piece)
            return
        draft.id = draft.id or as_text(id)
        draft.name = draft.name or self._tool_name(name)
        if piece:
            piece = draft.take(piece)
            draft.arguments.add(piece)
            self._events.append(ToolUseDelta(draft.index, piece, draft.arguments, draft.arguments.length))

    def replace_text(self, key: Key, whole: str) -> None:
        """The whole of a text or thinking block, where the provider repeats it: the truth over its pieces.

        What is new at its end is one more piece.
        """
        draft = self._drafts.get(key)
        if not isinstance(draft, PartialText) or draft.closed:
            return
        known, whole = draft.text, draft.take_whole(whole)
        draft.pieces = [whole]
        if whole != known and whole.startswith(known):
            self._events.append(draft.delta(draft.index, whole[len(known) :]))

    def replace_arguments(self, key: Key, found: object) -> None:
        """The whole arguments of a call that has begun: an object as it is, or its text."""
        draft = self._drafts.get(key)
        if not isinstance(draft, PartialToolCall):
            return
        if isinstance(found, dict):
            draft.input = _json_object(cast("dict[str, Any]", found))
        elif isinstance(found, str) and (text := draft.take_whole(found)) != draft.arguments.text:
            draft.arguments = ArgumentBuffer()
            draft.arguments.add(text)

    def get_arguments(self, key: Key) -> str:
        """The argument text of a call so far."""
        draft = self._drafts.get(key)
        return draft.arguments.text if isinstance(draft, PartialToolCall) else ""

    def has_complete_arguments(self, key: Key) -> bool:
        """True if the argument text of a call so far is one JSON object. Asking again is cheap."""
        draft = self._drafts.get(key)
        return isinstance(draft, PartialToolCall) and draft.arguments.is_object

    def get_call_id(self, key: Key) -> str:
        """The id of a call, as far as it is known."""
        draft = self._drafts.get(key)
        return draft.id if isinstance(draft, PartialToolCall) else ""

    def add_block(self, key: Key, block: MediaBlock | OpaqueBlock) -> None:
        """A block that came whole."""
        if self.finish_reason is None and key not in self._drafts:
            self._events.append(self._open(key, CompleteBlock(self._number(), block)).event)

    def replace_block(self, key: Key, block: MediaBlock | OpaqueBlock) -> None:
        """Another block in the place of one that turns out to be something else."""
        if self.finish_reason is None and key in self._drafts:
            self._events.append(self._open(key, CompleteBlock(self._drafts[key].index, block)).event)

    def add_state(self, key: Key, **state: Any) -> None:
        """Opaque state of a block: the fields of OpaqueState but issuer, model and prefix. The last ones count."""
        draft = self._drafts.get(key)
        if draft is not None:
            draft.state.update({name: make_json_safe(item) for name, item in state.items() if item is not None})

    def add_metadata(self, key: Key, **metadata: Any) -> None:
        """Metadata of a block, in JSON values: `citations`, `refusal`. Lists grow, the rest is replaced."""
        draft = self._drafts.get(key)
        if draft is None:
            return
        for name, item in make_json_safe(metadata).items():
            known = draft.metadata.get(name)
            draft.metadata[name] = [*known, *item] if isinstance(known, list) and isinstance(item, list) else item

    def has_block(self, key: Key) -> bool:
        """Whether a block has begun under a key."""
        return key in self._drafts

    def close(self, key: Key) -> None:
        """A block is complete."""
        draft = self._drafts.get(key)
        if draft is None or draft.closed:
            return
        self._take_rest(draft)
        draft.closed = True
        if isinstance(draft, PartialText):
            self._events.append(draft.end(draft.index, draft.text))
        elif isinstance(draft, PartialToolCall):
            self._close_call(draft)

    def _take_rest(self, draft: PartialBlock) -> None:
        """A character of which only one half came is replaced where it stands."""
        piece = draft.take_rest()
        if piece and isinstance(draft, PartialText):
            draft.pieces.append(piece)
            self._events.append(draft.delta(draft.index, piece))
        elif piece and isinstance(draft, PartialToolCall):
            draft.arguments.add(piece)
            self._events.append(ToolUseDelta(draft.index, piece, draft.arguments, draft.arguments.length))

    def _close_call(self, draft: PartialToolCall) -> None:
        draft.blocks = self._composer.calls(draft, complete=True)
        self._events.append(ToolUseEnd(draft.index, draft.blocks[0]))
        for block in draft.blocks[1:]:
            index = self._number()
            self._events.append(ToolUseStart(index, block.id, block.name))
            self._events.append(ToolUseEnd(index, block))

    def _open(self, key: Key, draft: _Draft) -> _Draft:
        if not self._begun:
            self.begin()
        self._drafts[key] = draft
        return draft

    def _number(self) -> int:
        self._count += 1
        return self._count - 1

    def _tool_name(self, name: object) -> str:
        found = as_text(name)
        return self._tool_names.get(found, found)

    # -- the message -------------------------------------------------------------------------------------------

    def message(self) -> Msg:
        """All that came, as a message. Without an end it was interrupted, or failed."""
        for draft in self._drafts.values():
            if not draft.closed:
                self._take_rest(draft)
        blocks = self._blocks()
        if self.finish_reason is None:
            self.begin()
            self.finish_reason = FinishReason.ERROR if self.error else FinishReason.INTERRUPTED
            self._end_open()
            self._events.append(MessageEnd(self.finish_reason, self.native_reason))
        return Msg(self.name, blocks, "assistant", metadata={"reply": self._metadata()})

    def _blocks(self) -> tuple[Block, ...]:
        drafts = self._drafts
        return tuple(block for key in sorted(drafts) for block in self._composer.blocks(drafts[key]))

    def _end_open(self) -> None:
        """The ends of the texts that were left open. A call that was left open has none; those in it begin."""
        for draft in [draft for draft in self._drafts.values() if not draft.closed]:
            if isinstance(draft, PartialText):
                self._events.append(draft.end(draft.index, draft.text))
            elif isinstance(draft, PartialToolCall):
                self._events += [ToolUseStart(self._number(), one.id, one.name) for one in draft.blocks[1:]]

    def _metadata(self) -> dict[str, Any]:
        found: dict[str, Any] = {"provider": self.provider, "finish_reason": str(self.finish_reason)}
        rest = {
            "native_finish_reason": self.native_reason,
            "id": self.id,
            "model": self.model,
            "usage": self.usage.to_dict() if self.usage else None,
            "error": self.error,
            "behind_end": as_text("".join(self._late)) or None,
            **make_json_safe(self.notes),
        }
        return found | {name: item for name, item in rest.items() if item is not None}


def _json_object(found: dict[str, Any]) -> dict[str, Any]:
    """An object of the wire with strings that UTF-8 can carry."""
    try:
        to_json(found)
    except ValueError:
        return cast("dict[str, Any]", make_json_safe(found))
    return found
