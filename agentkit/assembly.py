"""`Assembly`: a reply put together from pieces, with the events of its making; every reader fills one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias, cast

from pydantic_core import to_json

from agentkit.binding import prefix_digest
from agentkit.blocks import (
    Block,
    MediaBlock,
    OpaqueBlock,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
)
from agentkit.capabilities import short_hash
from agentkit.errors import MessageError
from agentkit.events import (
    ErrorEvent,
    MediaEvent,
    MessageEnd,
    MessageStart,
    OpaqueEvent,
    StreamEvent,
    TextDelta,
    TextEnd,
    TextStart,
    ThinkingDelta,
    ThinkingEnd,
    ThinkingStart,
    ToolUseDelta,
    ToolUseEnd,
    ToolUseStart,
    UsageEvent,
)
from agentkit.messages import Msg, parse_arguments
from agentkit.native import plain_values, text_of
from agentkit.partial import Arguments, objects_in
from agentkit.usage import FinishReason, Usage

__all__ = ["Assembly", "Key"]

Key: TypeAlias = tuple[int, ...]
"""A block's place among the blocks of the reply: blocks stand in the order of their keys."""


class _Part:
    """A block in the making."""

    __slots__ = ("closed", "held", "index", "metadata", "pieces", "state")

    def __init__(self, index: int) -> None:
        self.index = index
        self.pieces: list[str] = []
        self.held = ""  # the first half of a character that was cut in two
        self.state: dict[str, Any] = {}
        self.metadata: dict[str, Any] = {}
        self.closed = False

    @property
    def text(self) -> str:
        return "".join(self.pieces)


class _Text(_Part):
    __slots__ = ()


class _Thinking(_Part):
    __slots__ = ()


class _Call(_Part):
    __slots__ = ("arguments", "blocks", "id", "input", "name")

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.id = ""
        self.name = ""
        self.arguments = Arguments()
        self.input: dict[str, Any] | None = None
        self.blocks: list[ToolUseBlock] = []


class _Whole(_Part):
    __slots__ = ("block",)

    def __init__(self, index: int, block: MediaBlock | OpaqueBlock) -> None:
        super().__init__(index)
        self.block = block


class Assembly:
    """One reply in the making.

    The methods take pieces in any order and write down the events that they make, for `drain`. A block begins
    with its first piece, under a key that says where it stands among the others. `message` puts all together.
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
    ) -> None:
        self.name = name
        self.provider = provider
        self.issuer = issuer
        self.id: str | None = None
        self.model: str | None = None
        self.usage: Usage | None = None
        self.finish_reason: FinishReason | None = None
        self.native_reason: str | None = None
        self.error: dict[str, str] | None = None
        self.notes: dict[str, Any] = {}
        """What else the reply's metadata say: `input_transformations`, `safety_ratings`, and so on."""
        self._made_at = ""
        self._request = request
        self._binds_thinking = binds_thinking
        self._tool_names = tool_names
        self._raw_arguments = raw_arguments
        self._parts: dict[Key, _Part] = {}
        self._events: list[StreamEvent] = []
        self._begun = False
        self._count = 0
        self._nameless: Counter[str] = Counter()  # calls without an id, by what they say

    def drain(self) -> list[StreamEvent]:
        """The events since the last time."""
        events = self._events
        self._events = []
        return events

    # -- the reply as a whole ----------------------------------------------------------------------------------

    def begin(self, id: object = None, model: object = None, made: object = None) -> None:
        """The reply begins, or says who it is and when it was made: the first that comes of each is kept."""
        self._made_at = self._made_at or (str(made)[:64] if isinstance(made, str | int) else "")
        self.id = self.id or text_of(id) or None
        self.model = self.model or text_of(model) or None
        if not self._begun:
            self._begun = True
            self._events.append(MessageStart(self.id, self.model))

    def use(self, usage: Usage) -> None:
        """The tokens so far."""
        if usage != self.usage:
            self.usage = usage
            self._events.append(UsageEvent(usage))

    def end(self, reason: FinishReason, native: str | None = None) -> None:
        """The reply is over: every block that is open is complete."""
        self.close_all()
        if self.finish_reason is not None:
            return
        if reason in (FinishReason.STOP, FinishReason.OTHER) and self.has_calls:
            reason = FinishReason.TOOL_USE
        self.finish_reason, self.native_reason = reason, native
        self.begin()
        self._events.append(MessageEnd(reason, native))

    def fail(self, message: str, code: str | None = None, request_id: str | None = None) -> None:
        """The provider reported an error: nothing that is open is complete."""
        message = text_of(message) or "an error without a message"
        more = {"code": text_of(code), "request_id": text_of(request_id)}
        self.error = {"message": message, **{name: said for name, said in more.items() if said}}
        self.begin()
        self._events.append(ErrorEvent(message, code))

    @property
    def has_calls(self) -> bool:
        """Whether the reply calls tools."""
        return any(isinstance(part, _Call) for part in self._parts.values())

    # -- blocks ------------------------------------------------------------------------------------------------

    def text(self, key: Key, piece: str) -> None:
        """A piece of a text block; an empty one begins it."""
        part = self._parts.get(key)
        if part is None:
            part = self._open(key, _Text(self._number()))
            self._events.append(TextStart(part.index))
        if piece:
            if not piece.isascii() or part.held:
                piece = _whole_characters(part, piece)
            part.pieces.append(piece)
            self._events.append(TextDelta(part.index, piece))

    def think(self, key: Key, piece: str) -> None:
        """A piece of a thinking block; an empty one begins it."""
        part = self._parts.get(key)
        if part is None:
            part = self._open(key, _Thinking(self._number()))
            self._events.append(ThinkingStart(part.index))
        if piece:
            if not piece.isascii() or part.held:
                piece = _whole_characters(part, piece)
            part.pieces.append(piece)
            self._events.append(ThinkingDelta(part.index, piece))

    def call(self, key: Key, id: object = None, name: object = None, piece: str = "") -> None:
        """A piece of a call's argument text. The first id and the first name that come are kept."""
        part = self._parts.get(key)
        if part is None:
            part = self._open(key, _Call(self._number()))
            assert isinstance(part, _Call)
            part.id, part.name = text_of(id), self._tool_name(name)
            self._events.append(ToolUseStart(part.index, part.id, part.name))
        assert isinstance(part, _Call)
        part.id = part.id or text_of(id)
        part.name = part.name or self._tool_name(name)
        if piece:
            if not piece.isascii() or part.held:
                piece = _whole_characters(part, piece)
            part.arguments.add(piece)
            self._events.append(ToolUseDelta(part.index, piece, part.arguments, part.arguments.length))

    def set_text(self, key: Key, whole: str) -> None:
        """The whole of a text or thinking block, where the provider repeats it: the truth over its pieces."""
        part = self._parts.get(key)
        if part is not None and part.text != whole:
            self._catch_up(part, whole)

    def set_input(self, key: Key, found: object) -> None:
        """The whole arguments of a call that has begun: an object as it is, or its text."""
        part = self._parts[key]
        assert isinstance(part, _Call)
        if isinstance(found, dict):
            part.input = _json_object(cast("dict[str, Any]", found))
        elif isinstance(found, str) and found != part.arguments.text:
            part.arguments = Arguments()
            part.arguments.add(text_of(found))

    def arguments_of(self, key: Key) -> str:
        """The argument text of a call so far."""
        part = self._parts.get(key)
        return part.arguments.text if isinstance(part, _Call) else ""

    def id_of(self, key: Key) -> str:
        """The id of a call, as far as it is known."""
        part = self._parts.get(key)
        return part.id if isinstance(part, _Call) else ""

    def add(self, key: Key, block: MediaBlock | OpaqueBlock) -> None:
        """A block that came whole."""
        part = self._open(key, _Whole(self._number(), block))
        part.closed = True
        event = OpaqueEvent if isinstance(block, OpaqueBlock) else MediaEvent
        self._events.append(event(part.index, block))  # type: ignore[arg-type]

    def swap(self, key: Key, block: MediaBlock | OpaqueBlock) -> None:
        """Another block in the place of one that turns out to be something else."""
        part = _Whole(self._parts[key].index, block)
        part.closed = True
        self._parts[key] = part
        event = OpaqueEvent if isinstance(block, OpaqueBlock) else MediaEvent
        self._events.append(event(part.index, block))  # type: ignore[arg-type]

    def sign(self, key: Key, **state: Any) -> None:
        """Opaque state of a block: the fields of OpaqueState but issuer, model and prefix. The last ones count."""
        part = self._parts.get(key)
        if part is not None:
            part.state.update({name: plain_values(item) for name, item in state.items() if item is not None})

    def note(self, key: Key, **metadata: Any) -> None:
        """Metadata of a block, in JSON values: `citations`, `refusal`. Lists grow, the rest is replaced."""
        part = self._parts.get(key)
        if part is None:
            return
        for name, item in plain_values(metadata).items():
            known = part.metadata.get(name)
            part.metadata[name] = [*known, *item] if isinstance(known, list) and isinstance(item, list) else item

    def holds(self, key: Key) -> bool:
        """Whether a block has begun under a key."""
        return key in self._parts

    def close(self, key: Key) -> None:
        """A block is complete."""
        part = self._parts.get(key)
        if part is None or part.closed:
            return
        part.closed = True
        if isinstance(part, _Text):
            self._events.append(TextEnd(part.index, part.text))
        elif isinstance(part, _Thinking):
            self._events.append(ThinkingEnd(part.index, part.text))
        elif isinstance(part, _Call):
            part.blocks = self._calls(key, part, complete=True)
            self._events.append(ToolUseEnd(part.index, part.blocks[0]))
            for block in part.blocks[1:]:
                index = self._number()
                self._events.append(ToolUseStart(index, block.id, block.name))
                self._events.append(ToolUseEnd(index, block))

    def close_all(self) -> None:
        """Every block that is open is complete."""
        for key in [key for key, part in self._parts.items() if not part.closed]:
            self.close(key)

    def _open(self, key: Key, part: _Part) -> _Part:
        if not self._begun:
            self.begin()
        self._parts[key] = part
        return part

    def _number(self) -> int:
        self._count += 1
        return self._count - 1

    def _catch_up(self, part: _Part, whole: str) -> None:
        """Take the whole for the pieces; what is new at its end is one more piece."""
        known = part.text
        part.pieces = [whole]
        if whole.startswith(known) and not part.closed:
            delta = ThinkingDelta if isinstance(part, _Thinking) else TextDelta
            self._events.append(delta(part.index, whole[len(known) :]))

    def _tool_name(self, name: object) -> str:
        found = text_of(name)
        return self._tool_names.get(found, found)

    # -- the message -------------------------------------------------------------------------------------------

    def message(self) -> Msg:
        """All that came, as a message. Without an end it was interrupted, or failed."""
        if self.finish_reason is None:
            self.finish_reason = FinishReason.ERROR if self.error else FinishReason.INTERRUPTED
            blocks = self._blocks()
            self._end_open()
            self._events.append(MessageEnd(self.finish_reason, self.native_reason))
        else:
            blocks = self._blocks()
        return Msg(self.name, blocks, "assistant", metadata={"reply": self._metadata()})

    def _end_open(self) -> None:
        """The ends of the texts that were left open; a call that was left open has none."""
        for part in self._parts.values():
            if not part.closed and isinstance(part, _Text | _Thinking):
                end = ThinkingEnd if isinstance(part, _Thinking) else TextEnd
                self._events.append(end(part.index, part.text))

    def _metadata(self) -> dict[str, Any]:
        found: dict[str, Any] = {"provider": self.provider, "finish_reason": str(self.finish_reason)}
        rest = {
            "native_finish_reason": self.native_reason,
            "id": self.id,
            "model": self.model,
            "usage": self.usage.to_dict() if self.usage else None,
            "error": self.error,
            **plain_values(self.notes),
        }
        return found | {name: item for name, item in rest.items() if item is not None}

    def _blocks(self) -> tuple[Block, ...]:
        return tuple(block for key in sorted(self._parts) for block in self._made(key, self._parts[key]))

    def _made(self, key: Key, part: _Part) -> list[Block]:
        metadata = part.metadata or None
        if isinstance(part, _Whole):
            return [self._whole(part.block, part.state, metadata)]
        if isinstance(part, _Call):
            return [*(part.blocks or self._calls(key, part, complete=False))]
        text = part.text
        if isinstance(part, _Thinking):
            return (
                [ThinkingBlock(text, self._thought(part.state), metadata=metadata)] if text or part.state else []
            )
        state = self._state(part.state) if part.state else None
        return [TextBlock(text, state=state, metadata=metadata)] if text or state else []

    def _whole(
        self, block: MediaBlock | OpaqueBlock, state: Mapping[str, Any], metadata: dict[str, Any] | None
    ) -> Block:
        """A block that came whole, with what was said of it since."""
        if state and not isinstance(block, OpaqueBlock):
            block = replace(block, state=self._state(state))
        return replace(block, metadata=metadata) if metadata else block

    def _state(self, fields: Mapping[str, Any], prefix: str | None = None) -> OpaqueState:
        return OpaqueState(self.issuer, model=self.model, prefix=prefix, **fields)

    def _thought(self, fields: Mapping[str, Any]) -> OpaqueState:
        proven = any(fields.get(name) for name in ("signature", "redacted_data", "encrypted_content"))
        return self._state(fields, self._prefix if proven and self._binds_thinking else None)

    @cached_property
    def _prefix(self) -> str | None:
        if self._request is None:
            return None
        try:
            return prefix_digest(self._request)
        except (TypeError, AttributeError):  # the SDK's objects in it
            return prefix_digest(plain_values(self._request))

    def _calls(self, key: Key, part: _Call, *, complete: bool) -> list[ToolUseBlock]:
        """The calls that one part says: one, or several, where a server wrote them one behind the other."""
        if part.input is not None:
            return [self._block(key, part, 0, part.input, None)]
        text = part.arguments.text
        parsed = parse_arguments(text) if text.strip() else {}
        if parsed is not None and (complete or text.strip()):
            return [self._block(key, part, 0, parsed, text if text and self._raw_arguments else None)]
        several = _told_apart(objects_in(text))
        if several:
            kept = self._raw_arguments
            return [
                self._block(key, part, at, found, raw if kept else None) for at, (found, raw) in enumerate(several)
            ]
        part.metadata["incomplete"] = True
        return [self._block(key, part, 0, {}, text)]

    def _block(self, key: Key, part: _Call, at: int, found: dict[str, Any], raw: str | None) -> ToolUseBlock:
        state = self._state(part.state) if part.state and not at else None
        made_up = not part.id or at
        id = self._made_up_id(part.name, raw or to_json(found).decode()) if made_up else part.id
        try:
            return ToolUseBlock(id, part.name, found, raw, state, metadata=part.metadata or None)
        except MessageError:  # a number that is none, or too deep a nest
            return ToolUseBlock(id, part.name, plain_values(found), raw, state, metadata=part.metadata or None)

    def _made_up_id(self, name: str, arguments: str) -> str:
        """An id for a call that came without: the same for the same reply, however it was cut into pieces, and
        another for the same call of another turn, as far as the request or the reply tells the turns apart.

        Not of the key: a whole reply counts its calls from 0, a stream as its server likes.
        """
        said = repr((self._prefix, self.id, self._made_at, name, arguments))
        self._nameless[said] += 1
        return f"call_{short_hash(f'{said}{self._nameless[said]}', 24)}"


def _told_apart(found: list[tuple[dict[str, Any], str]]) -> list[tuple[dict[str, Any], str]]:
    """Objects one behind the other as calls. Empty ones before a full one are placeholders, and an object that
    is repeated at once is one call that was sent twice.
    """
    full = [pair for pair in found if pair[0]] or found[:1]
    return [pair for at, pair in enumerate(full) if not at or pair[0] != full[at - 1][0]]


def _json_object(found: dict[str, Any]) -> dict[str, Any]:
    """An object of the wire with strings that UTF-8 can carry."""
    try:
        to_json(found)
    except ValueError:
        return cast("dict[str, Any]", plain_values(found))
    return found


def _whole_characters(part: _Part, piece: str) -> str:
    """A piece without the first half of a character at its end, which waits for the second."""
    piece, part.held = part.held + piece, ""
    if "\ud800" <= piece[-1:] <= "\udbff":
        piece, part.held = piece[:-1], piece[-1]
    return text_of(piece)
