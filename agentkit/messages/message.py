"""`Msg`: one utterance, the intermediate language of everything."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar, cast

from pydantic import BeforeValidator

from agentkit.errors import MessageError
from agentkit.messages.blocks import (
    Block,
    MediaBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    build_trusted_text,
)
from agentkit.messages.coercion import adopt_block
from agentkit.messages.features import Feature, scan_features, scan_text
from agentkit.messages.usage import FinishReason, Usage
from agentkit.messages.validation import Checked, JsonObject, Text, validated_dataclass

__all__ = ["Msg", "Role"]

Role: TypeAlias = Literal["user", "assistant", "system"]


def _adopt_content(content: object) -> object:
    if isinstance(content, list | tuple):
        return tuple(adopt_block(block) for block in cast("Iterable[object]", content))
    if not isinstance(content, str):
        reason = f"expected a string or a list of blocks, got {type(content).__name__}"
        raise MessageError("", reason, "Put blocks in a list.")
    return content


Content: TypeAlias = Annotated[Text | tuple[Block, ...], BeforeValidator(_adopt_content)]


@validated_dataclass
class Msg(metaclass=Checked):
    """One utterance: who said it, what, and in which role.

    `content` is a string or a sequence of blocks (kept as a tuple). `id` and `timestamp` are what you give
    and None otherwise; `metadata` is yours and never sent; `pinned` keeps the message through every cut.

    Raises MessageError, which names the place, for anything that is not of this shape.

    >>> Msg("Bob", "Where is the library?", "user").text
    'Where is the library?'
    """

    name: Text
    content: Content
    role: Role
    id: Text | None = None
    timestamp: Text | None = None
    metadata: JsonObject | None = None
    pinned: bool = False
    features: int = field(default=0, init=False, repr=False, compare=False)
    tool_ids: tuple[str, ...] = field(default=(), init=False, repr=False, compare=False)
    memo: tuple[Any, ...] = field(default=(), init=False, repr=False, compare=False)
    weight: int = field(default=0, init=False, repr=False, compare=False)
    weight_key: object = field(default=None, init=False, repr=False, compare=False)
    first: object = field(default=None, init=False, repr=False, compare=False)
    first_key: object = field(default=None, init=False, repr=False, compare=False)

    if TYPE_CHECKING:

        def __init__(
            self,
            name: str,
            content: str | Sequence[Block | Mapping[str, Any]],
            role: Role,
            id: str | None = None,
            timestamp: str | None = None,
            metadata: dict[str, Any] | None = None,
            pinned: bool = False,
        ) -> None: ...

    def __post_init__(self) -> None:
        _note_features(self)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The content as blocks; a string is one text block."""
        return (build_trusted_text(self.content),) if isinstance(self.content, str) else self.content

    @property
    def text(self) -> str:
        """The text blocks, joined by line breaks."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(block.text for block in self.content if isinstance(block, TextBlock))

    @property
    def thinking(self) -> str:
        """The readable text of the thinking blocks, joined by line breaks."""
        return "\n".join(block.thinking for block in self.blocks if isinstance(block, ThinkingBlock))

    @property
    def tool_uses(self) -> tuple[ToolUseBlock, ...]:
        """The calls that this message makes."""
        return tuple(block for block in self.blocks if isinstance(block, ToolUseBlock))

    @property
    def tool_results(self) -> tuple[ToolResultBlock, ...]:
        """The results that this message brings."""
        return tuple(block for block in self.blocks if isinstance(block, ToolResultBlock))

    @property
    def media(self) -> tuple[MediaBlock, ...]:
        """The images, sounds, films and documents, those inside tool results left out."""
        return tuple(block for block in self.blocks if isinstance(block, MediaBlock))

    @property
    def usage(self) -> Usage | None:
        """The tokens of the call that this message is the reply of; None if no provider reported any."""
        return Usage.from_dict(self._reply.get("usage"))

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why this reply ended; None for a message that is no reply. `metadata["reply"]` says more."""
        found = self._reply.get("finish_reason")
        return FinishReason(found) if found in _REASONS else None

    @property
    def _reply(self) -> dict[str, Any]:
        found = (self.metadata or {}).get("reply")
        return cast("dict[str, Any]", found) if isinstance(found, dict) else {}

    def __reduce__(self) -> tuple[object, ...]:
        """Copies and pickles carry what was said, and leave the private notebook behind."""
        values = (self.name, self.content, self.role, self.id, self.timestamp, self.metadata, self.pinned)
        return (Msg, values)

    def to_dict(self) -> dict[str, Any]:
        """This message as JSON values; `Msg.from_dict` reads it back."""
        from agentkit.messages.serialization import dump_message

        return dump_message(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Msg:
        """A message from its stored form, or from AgentScope's; an unreadable block is kept as InvalidBlock."""
        from agentkit.messages.serialization import load_message

        return load_message(data)


_REASONS = frozenset(map(str, FinishReason))

_set_features = Msg.__dict__["features"].__set__
_set_tool_ids = Msg.__dict__["tool_ids"].__set__
_set_memo = Msg.__dict__["memo"].__set__
_set_first = Msg.__dict__["first"].__set__
_set_first_key = Msg.__dict__["first_key"].__set__
_set_weight = Msg.__dict__["weight"].__set__
_set_weight_key = Msg.__dict__["weight_key"].__set__


def starts_with(msgs: Sequence[Msg], known: Sequence[Msg]) -> bool:
    """Whether a conversation begins with one that is known.

    Lists compare identical messages at once; the ends tell a conversation that was loaded anew, which would be
    compared word for word.
    """
    count = len(known)
    if not count or count > len(msgs):
        return not count
    return msgs[0] is known[0] and msgs[count - 1] is known[-1] and msgs[:count] == known


def cache_weight(msg: Msg, key: object, weigh: Callable[[Msg], int]) -> int:
    """What a message weighs, worked out once: on the terms it was first weighed on in the least room."""
    known = getattr(msg, "weight_key", None)  # a message that the pipeline derived has none yet
    if known is key or known == key:
        return msg.weight
    if known is None:
        found = weigh(msg)
        _set_weight(msg, found)
        _set_weight_key(msg, key)
        return found
    other = get_cached(msg, key)
    return set_cached(msg, key, weigh(msg)) if other is None else cast("int", other)


def get_cached(msg: Msg, key: object) -> Any:
    """What was worked out of a message under a key, and travels with it; None if nothing was."""
    first = getattr(msg, "first_key", None)  # a message that the pipeline derived has none yet
    if first is key or first == key:
        return msg.first
    memo = msg.memo
    for at in range(0, len(memo), 2):
        if memo[at] is key or memo[at] == key:
            return memo[at + 1]
    return None


def set_cached(msg: Msg, key: object, found: _Found) -> _Found:
    """Keep what was worked out of a message with it: the first thing and the last few, in the least room."""
    if getattr(msg, "first_key", None) is None:
        _set_first(msg, found)
        _set_first_key(msg, key)
        return found
    _set_memo(msg, (*msg.memo[2 - _KEPT :], key, found))
    return found


_Found = TypeVar("_Found")
_KEPT = 32  # keys and what was found under them, in turn


_new = object.__new__
_set_name = Msg.__dict__["name"].__set__
_set_content = Msg.__dict__["content"].__set__
_set_role = Msg.__dict__["role"].__set__
_REST = [
    (Msg.__dict__["id"].__set__, None),
    (Msg.__dict__["timestamp"].__set__, None),
    (Msg.__dict__["metadata"].__set__, None),
    (Msg.__dict__["pinned"].__set__, False),
    (Msg.__dict__["memo"].__set__, ()),
]


def build_trusted(
    name: str, content: str | tuple[Block, ...], role: Role, pinned: bool = False, features: int = 0
) -> Msg:
    """A message made of parts that were checked before: no validation, for the stages of the pipeline.

    `features`, of a turn without calls and results, saves looking through its blocks.
    """
    msg = _new(Msg)
    _set_name(msg, name)
    _set_content(msg, content)
    _set_role(msg, role)
    for setter, default in _REST:
        setter(msg, default)
    if pinned:
        _REST[3][0](msg, True)
    if features:
        _set_features(msg, features)
        _set_tool_ids(msg, _NO_IDS)
    else:
        _note_features(msg)
    return msg


def build_part(msg: Msg, blocks: tuple[Block, ...], role: Role, mark: str = "") -> Msg:
    """Some blocks of a message as a message of their own, with all else that was said of it.

    `mark` is a key that the part's metadata have beside those of the message.
    """
    part = build_trusted(msg.name, blocks, role, msg.pinned)
    metadata = {**(msg.metadata or {}), mark: True} if mark else msg.metadata
    for setter, kept in zip(_ABOUT, (msg.id, msg.timestamp, metadata), strict=True):
        setter(part, kept)
    return part


_ABOUT = [Msg.__dict__[name].__set__ for name in ("id", "timestamp", "metadata")]


def _note_features(msg: Msg) -> None:
    if isinstance(msg.content, str):
        features, ids = scan_text(msg.content), _NO_IDS
    else:
        features, ids = scan_features(msg.content)
    if features & Feature.CALL or (msg.role == "assistant" and not features & Feature.RESULT):
        features |= Feature.ASSISTANT
    elif msg.role == "system" and not features & Feature.TOOL:
        features |= Feature.SYSTEM
    _set_features(msg, features)
    _set_tool_ids(msg, ids)


_NO_IDS: tuple[str, ...] = ()
