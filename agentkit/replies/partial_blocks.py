"""The blocks of a reply in the making: what came of each so far, and which events tell of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

from pydantic_core import to_json

from agentkit.capabilities.name_rules import short_hash
from agentkit.capabilities.prefix_digest import prefix_digest
from agentkit.errors import MessageError
from agentkit.json_values import as_text, make_json_safe, parse_arguments
from agentkit.messages.blocks import (
    Block,
    MediaBlock,
    OpaqueBlock,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from agentkit.messages.validation import same_json
from agentkit.replies.arguments import ArgumentBuffer, objects_in
from agentkit.replies.events import (
    MediaEvent,
    OpaqueEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
)

__all__ = [
    "BlockBuilder",
    "CompleteBlock",
    "PartialBlock",
    "PartialPlainText",
    "PartialText",
    "PartialThinking",
    "PartialToolCall",
]


class PartialBlock:
    """A block in the making."""

    __slots__ = ("closed", "half", "index", "metadata", "state")

    def __init__(self, index: int) -> None:
        self.index = index
        self.state: dict[str, Any] = {}
        self.metadata: dict[str, Any] = {}
        self.closed = False
        self.half = ""  # the first half of a character that was cut in two

    def take(self, piece: str) -> str:
        """A piece as UTF-8 can carry it: half a character at its end waits for the other half."""
        if piece.isascii() and not self.half:
            return piece
        piece, self.half = self.half + piece, ""
        if "\ud800" <= piece[-1:] <= "\udbff":
            piece, self.half = piece[:-1], piece[-1]
        return as_text(piece, f"reply.content[{self.index}]") if not piece.isascii() else piece

    def take_whole(self, text: str) -> str:
        """A text that replaces all pieces so far, as UTF-8 can carry it: half a character at its end waits."""
        self.half = ""
        return self.take(text)

    def take_rest(self) -> str:
        """The replacement of half a character that never got its other half; empty if there is none."""
        half, self.half = self.half, ""
        return as_text(half, f"reply.content[{self.index}]")


class PartialText(PartialBlock):
    """A text, or thinking, in pieces."""

    __slots__ = ("pieces",)

    start: ClassVar[type[TextStart | ThinkingStart]]
    delta: ClassVar[type[TextDelta | ThinkingDelta]]
    end: ClassVar[type[TextEnd | ThinkingEnd]]

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.pieces: list[str] = []

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self.pieces)


class PartialPlainText(PartialText):
    """A block of text."""

    __slots__ = ()
    start = TextStart
    delta = TextDelta
    end = TextEnd


class PartialThinking(PartialText):
    """A block of thinking."""

    __slots__ = ()
    start = ThinkingStart
    delta = ThinkingDelta
    end = ThinkingEnd


class PartialToolCall(PartialBlock):
    """A call: its argument text in pieces, or its input as an object. `blocks` are made when it is complete."""

    __slots__ = ("arguments", "blocks", "id", "input", "name")

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.id = ""
        self.name = ""
        self.arguments = ArgumentBuffer()
        self.input: dict[str, Any] | None = None
        self.blocks: list[ToolUseBlock] = []


class CompleteBlock(PartialBlock):
    """A block that came whole; what is said of it may come later."""

    __slots__ = ("block",)

    def __init__(self, index: int, block: MediaBlock | OpaqueBlock) -> None:
        super().__init__(index)
        self.block = block
        self.closed = True

    @property
    def event(self) -> MediaEvent | OpaqueEvent:
        """What tells of it."""
        if isinstance(self.block, OpaqueBlock):
            return OpaqueEvent(self.index, self.block)
        return MediaEvent(self.index, self.block)


_PROOFS = ("signature", "redacted_data", "encrypted_content")
"""Fields of OpaqueState that prove where thinking comes from."""


class BlockBuilder:
    """Makes the blocks of one reply. `model`, `id` and `made_at` are the reply's, as far as they are known."""

    def __init__(
        self, *, issuer: str, request: Mapping[str, Any] | None, raw_arguments: bool, binds_thinking: bool
    ) -> None:
        self.model: str | None = None
        self.id: str | None = None
        self.made_at = ""
        self._issuer = issuer
        self._request = request
        self._raw_arguments = raw_arguments
        self._binds_thinking = binds_thinking
        self._nameless: Counter[str] = Counter()  # calls without an id, by what they say

    def blocks(self, draft: PartialBlock) -> list[Block]:
        """The blocks that a draft is in the end: none for nothing, several for calls that were sent as one."""
        if isinstance(draft, PartialToolCall):
            draft.blocks = draft.blocks or self.calls(draft, complete=False)
            return [*draft.blocks]
        if isinstance(draft, CompleteBlock):
            return [self._whole(draft)]
        if isinstance(draft, PartialText) and (draft.state or draft.text):
            return [self._said(draft)]
        return []

    def calls(self, draft: PartialToolCall, *, complete: bool) -> list[ToolUseBlock]:
        """The calls that one draft says: one, or several, where a server wrote them one behind the other."""
        if draft.input is not None:
            return [self._call(draft, 0, draft.input, None)]
        text = draft.arguments.text
        parsed = parse_arguments(text) if text.strip() else {}
        if parsed is not None and (complete or text.strip()):
            return [self._call(draft, 0, parsed, text if text and self._raw_arguments else None)]
        if several := _told_apart(objects_in(text)):
            kept = self._raw_arguments
            return [self._call(draft, at, said, raw if kept else None) for at, (said, raw) in enumerate(several)]
        draft.metadata["incomplete"] = True
        return [self._call(draft, 0, {}, text)]

    def _call(self, draft: PartialToolCall, at: int, said: dict[str, Any], raw: str | None) -> ToolUseBlock:
        id = draft.id if draft.id and not at else self._made_up_id(draft.name, raw or to_json(said).decode())
        state = self._state(draft.state) if draft.state and not at else None
        metadata = draft.metadata or None
        try:
            return ToolUseBlock(id, draft.name, said, raw, state, metadata=metadata)
        except MessageError:  # a number that is none, or too deep a nest
            return ToolUseBlock(id, draft.name, make_json_safe(said), raw, state, metadata=metadata)

    def _made_up_id(self, name: str, arguments: str) -> str:
        """An id for a call that came without: the same for the same reply, however it was cut into pieces, and
        another for the same call of another turn, as far as the request or the reply tells the turns apart.

        Not of the key: a whole reply counts its calls from 0, a stream as its server likes.
        """
        said = repr((self._prefix, self.id, self.made_at, name, arguments))
        self._nameless[said] += 1
        return f"call_{short_hash(f'{said}{self._nameless[said]}', 24)}"

    def _said(self, draft: PartialText) -> Block:
        metadata = draft.metadata or None
        if isinstance(draft, PartialThinking):
            return ThinkingBlock(draft.text, self._thought(draft.state), metadata=metadata)
        return TextBlock(draft.text, state=self._state(draft.state) if draft.state else None, metadata=metadata)

    def _whole(self, draft: CompleteBlock) -> Block:
        """A block that came whole, with what was said of it since."""
        block = draft.block
        if draft.state and not isinstance(block, OpaqueBlock):
            block = replace(block, state=self._state(draft.state))
        return replace(block, metadata=draft.metadata) if draft.metadata else block

    def _thought(self, fields: Mapping[str, Any]) -> OpaqueState:
        proven = any(fields.get(name) for name in _PROOFS)
        return self._state(fields, self._prefix if proven and self._binds_thinking else None)

    def _state(self, fields: Mapping[str, Any], prefix: str | None = None) -> OpaqueState:
        return OpaqueState(self._issuer, model=self.model, prefix=prefix, **fields)

    @cached_property
    def _prefix(self) -> str | None:
        if self._request is None:
            return None
        try:
            return prefix_digest(self._request)
        except (TypeError, AttributeError):  # the SDK's objects in it
            return prefix_digest(make_json_safe(self._request))


def _told_apart(found: list[tuple[dict[str, Any], str]]) -> list[tuple[dict[str, Any], str]]:
    """Objects one behind the other as calls. Empty ones before a full one are placeholders, and an object that
    is repeated at once is one call that was sent twice.
    """
    full = [pair for pair in found if pair[0]] or found[:1]
    return [pair for at, pair in enumerate(full) if not at or not same_json(pair[0], full[at - 1][0])]
