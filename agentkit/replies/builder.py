"""`ReplyBuilder`: assembles a reply from pieces, and creates the events that report the pieces.

Idea
    The parser of a provider translates native events into a few method calls: add a piece, close a block, end the
    reply. Each piece has the key of its block, which is a tuple of integers. A block begins with its first piece.
    Events number the blocks in the order in which the blocks begin. In the message, the blocks are sorted by key.
    So a provider may send pieces of several blocks in any order. Parsers call the same methods for a complete
    reply.

    The pieces of a text are joined once, at the end. Argument text is parsed at growing intervals, so that long
    arguments take little time. See the module `arguments`.

Invariants
    - A stream and a complete reply with the same content result in equal messages, even if the stream is split
      within a character. If a piece ends with half of a surrogate pair, the builder stores this half until the
      other half arrives.
    - A closed block accepts no more pieces, and an ended reply accepts no more blocks. Text that arrives too late
      is not added to the content of the message, but is stored in its metadata under `text_after_end`.
    - Every block that begins ends exactly once. The exception is a tool call that is incomplete when the stream
      breaks off. Only a `UsageEvent` may follow `MessageEnd`.
    - `message` returns a message even if the stream broke off. The finish reason of this message is `interrupted`
      or `error`.
    - If a provider sends the id, the model or a tool name again, the first value is used. If a provider sends the
      usage or an opaque state again, the last value is used.

Cost
    The time to add a piece is constant. The time to build the message is proportional to the length of the reply.

Example:
    OpenAI-compatible servers can alternate the pieces of two blocks. Here the tool call begins before the text.
    But the message begins with the text, because the key of the text is smaller:

    >>> builder = ReplyBuilder(
    ...     name="Friday", provider="demo", issuer="demo", request=None, tool_names={}, raw_arguments=False,
    ...     layout=WireLayout(),
    ... )
    >>> builder.add_tool_call((1, 0), id="c1", name="search", piece='{"q": ')
    >>> builder.add_text((0, 0), "Let me look")
    >>> builder.add_tool_call((1, 0), piece='"cats"}')
    >>> builder.add_text((0, 0), " that up.")
    >>> builder.end(FinishReason.STOP)
    >>> [event.type for event in builder.drain()]  # doctest: +NORMALIZE_WHITESPACE
    ['message-start', 'tool-use-start', 'tool-use-delta', 'text-start', 'text-delta', 'tool-use-delta',
     'text-delta', 'tool-use-end', 'text-end', 'message-end']
    >>> msg = builder.message()
    >>> msg.blocks[0].text, msg.blocks[1].input, str(msg.finish_reason)
    ('Let me look that up.', {'q': 'cats'}, 'tool_use')

"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar, cast

from pydantic_core import to_json

from agentkit.capabilities.wire_layout import WireLayout
from agentkit.json_values import as_text, make_json_safe
from agentkit.messages.blocks import Block, MediaBlock, OpaqueBlock
from agentkit.messages.message import Msg, build_trusted
from agentkit.messages.usage import FinishReason, Usage
from agentkit.replies.arguments import ArgumentBuffer
from agentkit.replies.block_builder import BlockBuilder
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
    CompleteBlock,
    PartialBlock,
    PartialPlainText,
    PartialText,
    PartialThinking,
    PartialToolCall,
)

__all__ = ["BlockKey", "ReplyBuilder"]


BlockKey: TypeAlias = tuple[int, ...]
"""Key of a block in a reply. The message contains the blocks in the order of their keys."""

_Partial = TypeVar("_Partial", bound=PartialBlock)

_MAX_CREATED = 64  # maximum length of a creation time in characters


class ReplyBuilder:
    """Builder of one reply. The parser of a provider passes each piece of the reply to the builder.

    Attributes:
        name: Speaker of the message.
        provider: Name of the provider.
        id: Id of the reply. None until the id arrives.
        model: Name of the model that wrote the reply. None until the name arrives.
        usage: Latest token counts from the provider. None before the first report.
        finish_reason: Finish reason of the reply. None until the reply ends.
        native_reason: Finish reason as the provider spells it. None until the reply ends.
        error: Error that the provider reported. The keys are `message`, `code`, `request_id`, `status` and
            `retry_after`. Keys without a value are omitted. None if there is no error.
        notes: Further metadata of the reply, such as `safety_ratings`.
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
        layout: WireLayout,
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
        self._redact = redact
        self._blocks = BlockBuilder(issuer, request, raw_arguments, layout, binds_thinking)
        self._tool_names = tool_names
        self._partials: dict[BlockKey, PartialBlock] = {}
        self._events: list[StreamEvent] = []
        self._begun = False
        self._count = 0
        self._late: list[str] = []  # text that arrived after the end of its block or of the reply

    def drain(self) -> list[StreamEvent]:
        """Returns the events that were created after the previous call of `drain`."""
        events = self._events
        self._events = []
        return events

    def begin(self, id: object = None, model: object = None, created: object = None) -> None:
        """Begins the reply and sets its id, model and creation time.

        Further calls set only the values that are still missing.
        """
        blocks = self._blocks
        blocks.created = blocks.created or (str(created)[:_MAX_CREATED] if isinstance(created, str | int) else "")
        blocks.id = self.id = self.id or as_text(id) or None
        blocks.model = self.model = self.model or as_text(model) or None
        if not self._begun:
            self._begun = True
            self._events.append(MessageStart(self.id, self.model))

    def add_text(self, key: BlockKey, piece: str, kind: type[PartialText] = PartialPlainText) -> None:
        """Adds a piece to a text block. The first piece begins the block, even if the piece is empty."""
        partial = self._partials.get(key)
        if partial is None:
            if self.finish_reason is not None:
                self._late.append(piece)
                return
            partial = self._open(key, kind(self._next_index()))
            self._events.append(partial.start(partial.index))
        if not piece:
            return
        if partial.closed or not isinstance(partial, PartialText):
            self._late.append(piece)
            return
        if partial.half or not piece.isascii():
            piece = partial.clean(piece)
        partial.pieces.append(piece)
        self._events.append(partial.delta(partial.index, piece))

    def add_late_text(self, text: str) -> None:
        """Adds text that belongs to no block, because the model wrote the text after the end of its reply."""
        self._late.append(text)

    def add_thinking(self, key: BlockKey, piece: str) -> None:
        """Adds a piece to a thinking block. The first piece begins the block, even if the piece is empty."""
        self.add_text(key, piece, PartialThinking)

    def add_tool_call(self, key: BlockKey, id: object = None, name: object = None, piece: str = "") -> None:
        """Adds a piece to the argument text of a tool call.

        If several pieces have an id or a name, the tool call keeps the first id and the first name.
        """
        partial = self._partials.get(key)
        if partial is None:
            if self.finish_reason is not None:
                self._late.append(f"{as_text(name)}{piece}")
                return
            partial = self._open(key, PartialToolCall(self._next_index()))
            partial.id, partial.name = as_text(id), self._tool_name(name)
            self._events.append(ToolUseStart(partial.index, partial.id, partial.name))
        elif partial.closed or not isinstance(partial, PartialToolCall):
            self._late.append(piece)
            return
        else:
            if id and not partial.id:
                partial.id = as_text(id)
            if name and not partial.name:
                partial.name = self._tool_name(name)
        if piece:
            if partial.half or not piece.isascii():
                piece = partial.clean(piece)
            self._add_arguments(partial, piece)

    def _add_arguments(self, partial: PartialToolCall, piece: str) -> None:
        arguments = partial.arguments
        arguments.add(piece)
        self._events.append(ToolUseDelta(partial.index, piece, arguments, arguments.length))

    def replace_text(self, key: BlockKey, text: str) -> None:
        """Replaces the text of an open text or thinking block with its complete text.

        Some providers send the complete text after its pieces. If the complete text begins with the earlier
        pieces, the method creates a delta event with the remaining text.
        """
        partial = self._partials.get(key)
        if not isinstance(partial, PartialText) or partial.closed:
            return
        before, text = partial.text, partial.clean_all(text)
        partial.pieces = [text]
        if text != before and text.startswith(before):
            self._events.append(partial.delta(partial.index, text[len(before) :]))

    def replace_arguments(self, key: BlockKey, arguments: object) -> None:
        """Replaces the arguments of a tool call that has begun. `arguments` is a dict or JSON text."""
        partial = self._partials.get(key)
        if not isinstance(partial, PartialToolCall):
            return
        if isinstance(arguments, dict):
            partial.input = _clean_object(cast("dict[str, Any]", arguments))
        elif isinstance(arguments, str) and (text := partial.clean_all(arguments)) != partial.arguments.text:
            partial.arguments = ArgumentBuffer()
            partial.arguments.add(text)

    def get_arguments(self, key: BlockKey) -> str:
        """Returns the part of a tool call's argument text that has arrived. Empty if there is no such call."""
        partial = self._partials.get(key)
        return partial.arguments.text if isinstance(partial, PartialToolCall) else ""

    def has_complete_arguments(self, key: BlockKey) -> bool:
        """Returns True if the arguments that have arrived for a tool call form one complete JSON object.

        Returns False for arguments that `replace_arguments` set to an empty dict. Repeated calls of this method
        are cheap.
        """
        partial = self._partials.get(key)
        return isinstance(partial, PartialToolCall) and (bool(partial.input) or partial.arguments.is_object)

    def get_call_id(self, key: BlockKey) -> str:
        """Returns the id of a tool call, or an empty string if the id has not arrived."""
        partial = self._partials.get(key)
        return partial.id if isinstance(partial, PartialToolCall) else ""

    def add_block(self, key: BlockKey, block: MediaBlock | OpaqueBlock) -> None:
        """Adds a complete block. Does nothing if a block with this key exists, or if the reply has ended."""
        if self.finish_reason is None and key not in self._partials:
            self._events.append(self._open(key, CompleteBlock(self._next_index(), block)).event)

    def replace_block(self, key: BlockKey, block: MediaBlock | OpaqueBlock) -> None:
        """Replaces a block with a complete block. The new block gets the index of the old block.

        Does nothing if no block with this key exists, or if the reply has ended.
        """
        if self.finish_reason is None and key in self._partials:
            self._events.append(self._open(key, CompleteBlock(self._partials[key].index, block)).event)

    def add_state(self, key: BlockKey, **state: Any) -> None:
        """Adds fields of `OpaqueState` to a block. A later value of a field replaces the earlier value.

        Do not pass the fields `issuer`, `model` and `prefix`, because the builder sets them.
        """
        partial = self._partials.get(key)
        if partial is not None:
            fields = {name: make_json_safe(value) for name, value in state.items() if value is not None}
            partial.state = {**partial.state, **fields}

    def add_metadata(self, key: BlockKey, **metadata: Any) -> None:
        """Adds metadata to a block, such as `citations`.

        If the old and the new value of a name are lists, the new items are appended to the old list. Otherwise,
        the new value replaces the old value.
        """
        partial = self._partials.get(key)
        if partial is None:
            return
        merged: dict[str, Any] = {**partial.metadata}
        for name, value in make_json_safe(metadata).items():
            before = merged.get(name)
            are_lists = isinstance(before, list) and isinstance(value, list)
            merged[name] = [*cast("list[Any]", before), *value] if are_lists else value
        partial.metadata = merged

    def has_block(self, key: BlockKey) -> bool:
        """Returns True if a block with this key has begun."""
        return key in self._partials

    def close(self, key: BlockKey) -> None:
        """Marks a block as complete. The block accepts no more pieces afterwards."""
        partial = self._partials.get(key)
        if partial is None or partial.closed:
            return
        if partial.half:
            self._add_half(partial)
        partial.closed = True
        if isinstance(partial, PartialText):
            self._events.append(partial.end(partial.index, partial.text))
        elif isinstance(partial, PartialToolCall):
            self._close_call(partial)

    def set_usage(self, usage: Usage) -> None:
        """Replaces the token counts of the reply with the latest counts from the provider."""
        if usage != self.usage:
            self.usage = usage
            self._events.append(UsageEvent(usage))

    def end(self, reason: FinishReason, native: str | None = None) -> None:
        """Ends the reply and closes all open blocks. Further calls of `end` have no effect."""
        if self.finish_reason is not None:
            return
        for key, partial in self._partials.items():
            if not partial.closed:
                self.close(key)
        if reason in (FinishReason.STOP, FinishReason.OTHER) and self.has_calls:
            reason = FinishReason.TOOL_USE
        self.begin()
        self.finish_reason, self.native_reason = reason, native
        self._events.append(MessageEnd(reason, native))

    def fail(
        self, message: str, code: str | None = None, request_id: str | None = None, **details: float | None
    ) -> None:
        """Records an error that the provider reported. Blocks that are still open remain incomplete.

        `details` can contain the HTTP status (`status`) and the waiting time in seconds (`retry_after`).
        """
        message = self._redact(as_text(message)) or "the error has no message"
        code = self._redact(as_text(code)) or None
        fields: dict[str, Any] = {"code": code, "request_id": self._redact(as_text(request_id)), **details}
        present = {name: value for name, value in fields.items() if value not in ("", None)}
        self.error = {"message": message, **present}
        if self.finish_reason is None:
            self.begin()
            self._events.append(ErrorEvent(message, code))

    @property
    def has_calls(self) -> bool:
        """True if at least one tool call has begun in the reply."""
        return PartialToolCall in map(type, self._partials.values())

    def message(self) -> Msg:
        """Returns a message with the part of the reply that has arrived.

        If the reply has not ended, the finish reason is `error` after a reported error, and `interrupted`
        otherwise.
        """
        partials = self._partials
        for partial in partials.values():
            if partial.half and not partial.closed:
                self._add_half(partial)
        blocks: list[Block] = []
        for key in sorted(partials):
            blocks += self._blocks.build(partials[key])
        if self.finish_reason is None:
            self.begin()
            self.finish_reason = FinishReason.ERROR if self.error else FinishReason.INTERRUPTED
            self._end_open_blocks()
            self._events.append(MessageEnd(self.finish_reason, self.native_reason))
        return build_trusted(self.name, tuple(blocks), "assistant", metadata={"reply": self._metadata()})

    def _add_half(self, partial: PartialBlock) -> None:
        """Adds a replacement character if the text ended with only one half of a surrogate pair."""
        piece = partial.take_half()
        if isinstance(partial, PartialText):
            partial.pieces.append(piece)
            self._events.append(partial.delta(partial.index, piece))
        elif isinstance(partial, PartialToolCall):
            self._add_arguments(partial, piece)

    def _close_call(self, partial: PartialToolCall) -> None:
        partial.blocks = self._blocks.build_calls(partial, complete=True)
        self._events.append(ToolUseEnd(partial.index, partial.blocks[0]))
        for block in partial.blocks[1:]:
            index = self._next_index()
            self._events.append(ToolUseStart(index, block.id, block.name))
            self._events.append(ToolUseEnd(index, block))

    def _open(self, key: BlockKey, partial: _Partial) -> _Partial:
        if not self._begun:
            self.begin()
        self._partials[key] = partial
        return partial

    def _next_index(self) -> int:
        self._count += 1
        return self._count - 1

    def _tool_name(self, name: object) -> str:
        text = as_text(name)
        return self._tool_names.get(text, text)

    def _end_open_blocks(self) -> None:
        """Adds end events for open text blocks and thinking blocks.

        Open tool calls get no end event, because they are incomplete. If an argument text contains several calls,
        adds start events for the calls after the first.
        """
        for partial in [partial for partial in self._partials.values() if not partial.closed]:
            if isinstance(partial, PartialText):
                self._events.append(partial.end(partial.index, partial.text))
            elif isinstance(partial, PartialToolCall):
                further = partial.blocks[1:]
                self._events += [ToolUseStart(self._next_index(), block.id, block.name) for block in further]

    def _metadata(self) -> dict[str, Any]:
        optional = {
            "native_finish_reason": self.native_reason,
            "id": self.id,
            "model": self.model,
            "usage": self.usage.to_dict() if self.usage else None,
            "error": self.error,
            "text_after_end": as_text("".join(self._late)).strip() or None,
            **self.notes,
        }
        present = {name: value for name, value in make_json_safe(optional).items() if value is not None}
        return {"provider": self.provider, "finish_reason": str(self.finish_reason), **present}


def _clean_object(value: dict[str, Any]) -> dict[str, Any]:
    """Returns a JSON object in which lone surrogates are replaced, so that UTF-8 can encode every string."""
    try:
        to_json(value)
    except ValueError:
        return cast("dict[str, Any]", make_json_safe(value))
    return value
