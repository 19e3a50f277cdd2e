"""`ReplyBlocks`: collects the pieces of a reply's blocks, and creates an event for each piece."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, TypeVar, cast

from pydantic_core import to_json

from agentkit.json_values import as_text, make_json_safe
from agentkit.messages.blocks import MediaBlock, OpaqueBlock
from agentkit.messages.usage import FinishReason
from agentkit.replies.arguments import ArgumentBuffer
from agentkit.replies.block_builder import BlockBuilder
from agentkit.replies.events import MessageStart, StreamEvent, ToolUseDelta, ToolUseEnd, ToolUseStart
from agentkit.replies.partial_blocks import (
    CompleteBlock,
    PartialBlock,
    PartialPlainText,
    PartialText,
    PartialThinking,
    PartialToolCall,
)

__all__ = ["BlockKey", "ReplyBlocks"]

BlockKey: TypeAlias = tuple[int, ...]
"""Key of a block in a reply. The message contains the blocks in the order of their keys."""

_Partial = TypeVar("_Partial", bound=PartialBlock)

_MAX_CREATED = 64  # maximum length of a creation time in characters


class ReplyBlocks:
    """Blocks of one reply while their pieces arrive.

    The subclass `ReplyBuilder` adds all data that belong to no block, such as usage and errors.
    """

    def __init__(self, blocks: BlockBuilder, tool_names: Mapping[str, str]) -> None:
        self.id: str | None = None
        self.model: str | None = None
        self.finish_reason: FinishReason | None = None
        self._blocks = blocks
        self._tool_names = tool_names
        self._partials: dict[BlockKey, PartialBlock] = {}
        self._events: list[StreamEvent] = []
        self._begun = False
        self._count = 0
        self._late: list[str] = []  # text that arrived after the end of its block or of the reply

    def drain(self) -> list[StreamEvent]:
        """Returns the events since the previous call of `drain`."""
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
        piece = partial.clean(piece)
        partial.pieces.append(piece)
        self._events.append(partial.delta(partial.index, piece))

    def add_thinking(self, key: BlockKey, piece: str) -> None:
        """Adds a piece to a thinking block. The first piece begins the block, even if the piece is empty."""
        self.add_text(key, piece, PartialThinking)

    def add_tool_call(self, key: BlockKey, id: object = None, name: object = None, piece: str = "") -> None:
        """Adds a piece to the argument text of a tool call.

        If several pieces have an id or a name, the call keeps the first id and the first name.
        """
        partial = self._partials.get(key)
        if partial is None:
            if self.finish_reason is not None:
                self._late.append(f"{as_text(name)}{piece}")
                return
            partial = self._open(key, PartialToolCall(self._next_index()))
            partial.id, partial.name = as_text(id), self._tool_name(name)
            self._events.append(ToolUseStart(partial.index, partial.id, partial.name))
        if partial.closed or not isinstance(partial, PartialToolCall):
            self._late.append(piece)
            return
        partial.id = partial.id or as_text(id)
        partial.name = partial.name or self._tool_name(name)
        if piece:
            self._add_arguments(partial, partial.clean(piece))

    def _add_arguments(self, partial: PartialToolCall, piece: str) -> None:
        arguments = partial.arguments
        arguments.add(piece)
        self._events.append(ToolUseDelta(partial.index, piece, arguments, arguments.length))

    def replace_text(self, key: BlockKey, text: str) -> None:
        """Replaces the text of an open text or thinking block with its complete text.

        Some providers send the complete text after its pieces. If the complete text begins with the earlier
        pieces, a delta event contains only the remaining text.
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
        """Returns the part of a tool call's argument text that has arrived."""
        partial = self._partials.get(key)
        return partial.arguments.text if isinstance(partial, PartialToolCall) else ""

    def has_complete_arguments(self, key: BlockKey) -> bool:
        """Returns True if the arguments that have arrived for a tool call form one complete JSON object.

        Arguments that `replace_arguments` set to an empty dict are treated as incomplete. Repeated calls of this
        method are cheap.
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
        """Replaces a block with a complete block. The new block gets the index of the old block."""
        if self.finish_reason is None and key in self._partials:
            self._events.append(self._open(key, CompleteBlock(self._partials[key].index, block)).event)

    def add_state(self, key: BlockKey, **state: Any) -> None:
        """Adds fields of `OpaqueState` to a block. A later value of a field replaces the earlier value.

        Do not pass the fields `issuer`, `model` and `prefix`, because the builder sets them.
        """
        partial = self._partials.get(key)
        if partial is not None:
            fields = {name: make_json_safe(value) for name, value in state.items() if value is not None}
            partial.state.update(fields)

    def add_metadata(self, key: BlockKey, **metadata: Any) -> None:
        """Adds metadata to a block, such as `citations`.

        If the old and the new value of a name are lists, the new items are appended to the old list. Otherwise,
        the new value replaces the old value.
        """
        partial = self._partials.get(key)
        if partial is None:
            return
        for name, value in make_json_safe(metadata).items():
            before = partial.metadata.get(name)
            are_lists = isinstance(before, list) and isinstance(value, list)
            partial.metadata[name] = [*cast("list[Any]", before), *value] if are_lists else value

    def has_block(self, key: BlockKey) -> bool:
        """Returns True if a block with this key has begun."""
        return key in self._partials

    def close(self, key: BlockKey) -> None:
        """Marks a block as complete. The block accepts no more pieces afterwards."""
        partial = self._partials.get(key)
        if partial is None or partial.closed:
            return
        self._add_half(partial)
        partial.closed = True
        if isinstance(partial, PartialText):
            self._events.append(partial.end(partial.index, partial.text))
        elif isinstance(partial, PartialToolCall):
            self._close_call(partial)

    def _add_half(self, partial: PartialBlock) -> None:
        """Adds a replacement character if the text ended with only one half of a surrogate pair."""
        piece = partial.take_half()
        if piece and isinstance(partial, PartialText):
            partial.pieces.append(piece)
            self._events.append(partial.delta(partial.index, piece))
        elif piece and isinstance(partial, PartialToolCall):
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


def _clean_object(value: dict[str, Any]) -> dict[str, Any]:
    """Returns a JSON object in which lone surrogates are replaced, so that UTF-8 can encode every string."""
    try:
        to_json(value)
    except ValueError:
        return cast("dict[str, Any]", make_json_safe(value))
    return value
