"""`Msg`: one utterance, the intermediate language of everything."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, TypeVar, cast

from pydantic import BeforeValidator

from agentkit.blocks import (
    Block,
    MediaBlock,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    plain_text,
)
from agentkit.errors import MessageError
from agentkit.usage import FinishReason, Usage
from agentkit.values import Checked, JsonObject, Text, value

__all__ = ["Msg", "Role", "Trait"]

Role: TypeAlias = Literal["user", "assistant", "system"]


class Trait:
    """What a message holds, as bits worked out once when it is made.

    Every later stage asks `msg.traits & mask` and lets the many messages that need nothing pass untouched.
    """

    BLANK = 1 << 0  # a text block, or the content string, is empty or white space
    EMPTY = 1 << 1  # no block at all
    THINKING = 1 << 2
    CALL = 1 << 3
    RESULT = 1 << 4
    IMAGE = 1 << 5
    AUDIO = 1 << 6
    VIDEO = 1 << 7
    DOCUMENT = 1 << 8
    INVALID = 1 << 9
    STATE = 1 << 10  # a text, of a result too, or a call carries opaque state
    RESULT_PARTS = 1 << 11  # a result whose output is a list
    RESULT_MEDIA = 1 << 12  # … that holds media, an opaque or an invalid block
    RESULT_ERROR = 1 << 13
    RESULT_BLANK = 1 << 14  # a result with no text, or with a blank text block
    RESULT_NAMELESS = 1 << 15
    ODD_ID = 1 << 16  # a call id that is not 1 to 40 of [A-Za-z0-9_-]
    ODD_NAME = 1 << 17  # a tool name that is not 1 to 63 of [A-Za-z0-9_-], begins with no letter or _
    ODD_ARGUMENTS = 1 << 18  # raw argument text that does not say what `input` says
    OTHER = 1 << 19  # anything but calls and results
    TEXT = 1 << 20
    REPEATED = 1 << 21  # calls of one id
    SYSTEM = 1 << 22  # role system, and no tool block: a system prompt, or a late system message
    ASSISTANT = 1 << 23  # the assistant's turn: calls, or its role without results

    RESERVED_NAME = 1 << 24  # a tool name that some wire keeps for itself
    OPAQUE = 1 << 25  # a part that only one wire knows

    TOOL = CALL | RESULT
    MEDIA = IMAGE | AUDIO | VIDEO | DOCUMENT


_MEDIA_TRAITS = {
    "image": Trait.IMAGE,
    "audio": Trait.AUDIO,
    "video": Trait.VIDEO,
    "document": Trait.DOCUMENT,
}

RESERVED_NAMES = frozenset({"search"})
"""Tool names that some wire keeps for itself."""

_plain_id = re.compile(r"[A-Za-z0-9_-]{1,40}", re.ASCII).fullmatch
_plain_name = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,62}", re.ASCII).fullmatch

_BLOCK_KEYS: dict[str, frozenset[str]] = {
    "text": frozenset({"text", "state"}),
    "thinking": frozenset({"thinking", "state"}),
    "tool_use": frozenset({"id", "name", "input", "raw_input", "state"}),
    "tool_result": frozenset({"id", "name", "output", "is_error"}),
    "image": frozenset({"source", "state"}),
    "audio": frozenset({"source", "state"}),
    "video": frozenset({"source", "state"}),
    "document": frozenset({"source", "title", "state"}),
    "opaque": frozenset({"wire", "data"}),
    "invalid": frozenset({"data", "reason", "place"}),
}


def adopt_block(found: object) -> object:
    """A block as another library stores it, in our keys; anything but a dict as it is.

    Keys that we have no field for go into `metadata`, where they never reach a provider (AgentScope D19).
    A null `output` is an empty one, a call's `input` may be the argument text alone.
    """
    if not isinstance(found, dict):
        return found
    block = dict(cast("dict[str, Any]", found))
    kind = block.get("type")
    known = _BLOCK_KEYS.get(kind) if isinstance(kind, str) else None
    if known is None:
        return block
    adopt_state(block)
    extra = {key: block.pop(key) for key in list(block) if key not in known and key not in _COMMON_KEYS}
    adopt_extra(block, extra)
    if block["type"] == "tool_use":
        _adopt_call(block)
    elif block["type"] == "tool_result":
        _adopt_result(block)
    return block


def adopt_state(block: dict[str, Any]) -> None:
    """The proofs that AgentScope keeps beside the text: a thinking block's `signature` is Anthropic's, a
    `thought_signature` Gemini's.
    """
    kind, found = block["type"], {}
    if kind == "thinking" and isinstance(block.get("signature"), str):
        found = {"issuer": "anthropic", "signature": block.pop("signature")}
    elif kind in {"text", "thinking", "tool_use"} and isinstance(block.get("thought_signature"), str):
        found = {"issuer": "gemini", "thought_signature": block.pop("thought_signature")}
    if found:
        block.setdefault("state", found)


def adopt_extra(holder: dict[str, Any], extra: dict[str, Any]) -> None:
    """Put keys without a field of their own into the metadata, unless that is broken and will be refused."""
    own = holder.get("metadata")
    if extra and (own is None or isinstance(own, dict)):
        holder["metadata"] = {**extra, **cast("dict[str, Any]", own or {})}


_COMMON_KEYS = frozenset({"type", "metadata"})


def _adopt_call(block: dict[str, Any]) -> None:
    given = block.get("input")
    if isinstance(given, str):
        block["raw_input"] = given
        block["input"] = parse_arguments(given) or {}
    elif given is None:
        block["input"] = {}


def _adopt_result(block: dict[str, Any]) -> None:
    output = block.get("output")
    if output is None:
        block["output"] = ""
    elif isinstance(output, list):
        block["output"] = [_adopt_item(item) for item in cast("list[object]", output)]
    if block.get("name") is None:
        block["name"] = ""


def _adopt_item(item: object) -> object:
    """An item of a result; results do not nest."""
    kind: object = cast("dict[str, Any]", item).get("type") if isinstance(item, dict) else None
    return cast("object", item) if kind == "tool_result" else adopt_block(cast("object", item))


def parse_arguments(text: str) -> dict[str, Any] | None:
    """Argument text as an object; None when it is none."""
    from pydantic_core import from_json

    try:
        parsed = from_json(text, allow_inf_nan=False)
    except ValueError:
        return None
    return cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else None


def _adopt_content(content: object) -> object:
    if isinstance(content, list | tuple):
        return tuple(adopt_block(block) for block in cast("Iterable[object]", content))
    if not isinstance(content, str):
        reason = f"expected a string or a list of blocks, got {type(content).__name__}"
        raise MessageError("", reason, "Put blocks in a list.")
    return content


Content: TypeAlias = Annotated[Text | tuple[Block, ...], BeforeValidator(_adopt_content)]


@value
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
    traits: int = field(default=0, init=False, repr=False, compare=False)
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
        _note_traits(self)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The content as blocks; a string is one text block."""
        return (plain_text(self.content),) if isinstance(self.content, str) else self.content

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
        from agentkit.storage import dump_message

        return dump_message(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Msg:
        """A message from its stored form, or from AgentScope's; an unreadable block is kept as InvalidBlock."""
        from agentkit.storage import load_message

        return load_message(data)


_REASONS = frozenset(map(str, FinishReason))

_set_traits = Msg.__dict__["traits"].__set__
_set_tool_ids = Msg.__dict__["tool_ids"].__set__
_set_memo = Msg.__dict__["memo"].__set__
_set_first = Msg.__dict__["first"].__set__
_set_first_key = Msg.__dict__["first_key"].__set__
_set_weight = Msg.__dict__["weight"].__set__
_set_weight_key = Msg.__dict__["weight_key"].__set__


def continues(msgs: Sequence[Msg], known: Sequence[Msg]) -> bool:
    """Whether a conversation begins with one that is known.

    Lists compare identical messages at once; the ends tell a conversation that was loaded anew, which would be
    compared word for word.
    """
    count = len(known)
    if not count or count > len(msgs):
        return not count
    return msgs[0] is known[0] and msgs[count - 1] is known[-1] and msgs[:count] == known


def weight_of(msg: Msg, key: object, weigh: Callable[[Msg], int]) -> int:
    """What a message weighs, worked out once: on the terms it was first weighed on in the least room."""
    known = getattr(msg, "weight_key", None)  # a message that the pipeline derived has none yet
    if known is key or known == key:
        return msg.weight
    if known is None:
        found = weigh(msg)
        _set_weight(msg, found)
        _set_weight_key(msg, key)
        return found
    other = recall(msg, key)
    return remember(msg, key, weigh(msg)) if other is None else cast("int", other)


def recall(msg: Msg, key: object) -> Any:
    """What was worked out of a message under a key, and travels with it; None if nothing was."""
    first = getattr(msg, "first_key", None)  # a message that the pipeline derived has none yet
    if first is key or first == key:
        return msg.first
    memo = msg.memo
    for at in range(0, len(memo), 2):
        if memo[at] is key or memo[at] == key:
            return memo[at + 1]
    return None


def remember(msg: Msg, key: object, found: _Found) -> _Found:
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


def derive(name: str, content: str | tuple[Block, ...], role: Role, pinned: bool = False, traits: int = 0) -> Msg:
    """A message made of parts that were checked before: no validation, for the stages of the pipeline.

    `traits`, of a turn without calls and results, saves looking through its blocks.
    """
    msg = _new(Msg)
    _set_name(msg, name)
    _set_content(msg, content)
    _set_role(msg, role)
    for setter, default in _REST:
        setter(msg, default)
    if pinned:
        _REST[3][0](msg, True)
    if traits:
        _set_traits(msg, traits)
        _set_tool_ids(msg, _NO_IDS)
    else:
        _note_traits(msg)
    return msg


def part_of(msg: Msg, blocks: tuple[Block, ...], role: Role) -> Msg:
    """Some blocks of a message as a message of their own, with all else that was said of it."""
    part = derive(msg.name, blocks, role, msg.pinned)
    for setter, kept in zip(_ABOUT, (msg.id, msg.timestamp, msg.metadata), strict=True):
        setter(part, kept)
    return part


_ABOUT = [Msg.__dict__[name].__set__ for name in ("id", "timestamp", "metadata")]


def _note_traits(msg: Msg) -> None:
    if isinstance(msg.content, str):
        traits, ids = _said_traits(msg.content), _NO_IDS
    else:
        traits, ids = _survey(msg.content)
    if traits & Trait.CALL or (msg.role == "assistant" and not traits & Trait.RESULT):
        traits |= Trait.ASSISTANT
    elif msg.role == "system" and not traits & Trait.TOOL:
        traits |= Trait.SYSTEM
    _set_traits(msg, traits)
    _set_tool_ids(msg, ids)


_NO_IDS: tuple[str, ...] = ()


def _said_traits(text: str) -> int:
    return Trait.TEXT | Trait.OTHER if _is_said(text) else Trait.OTHER | Trait.BLANK


def _is_said(text: str) -> bool:
    return bool(text) and not text.isspace()


def _survey(blocks: tuple[Block, ...]) -> tuple[int, tuple[str, ...]]:
    """The traits of a content, and the ids of its calls and results in their order."""
    traits = 0 if blocks else Trait.EMPTY
    ids: list[str] = []
    for block in blocks:
        kind = block.type
        if kind == "text":
            traits |= _text_traits(cast("TextBlock", block))
        elif kind == "tool_use":
            ids.append(cast("ToolUseBlock", block).id)
            traits |= _call_traits(cast("ToolUseBlock", block))
        elif kind == "tool_result":
            ids.append(cast("ToolResultBlock", block).id)
            traits |= _result_traits(cast("ToolResultBlock", block))
        elif kind == "thinking":
            traits |= Trait.THINKING | Trait.OTHER
        elif kind == "invalid":
            traits |= Trait.INVALID | Trait.OTHER
        elif kind == "opaque":
            traits |= Trait.OPAQUE | Trait.OTHER
        else:
            traits |= _MEDIA_TRAITS[kind] | Trait.OTHER
    if traits & Trait.CALL and len(ids) > 1 and len({*ids}) < len(ids):
        traits |= Trait.REPEATED
    return traits, tuple(ids)


def _text_traits(block: TextBlock) -> int:
    traits = _said_traits(block.text)
    return traits | Trait.STATE if block.state is not None else traits


def _call_traits(block: ToolUseBlock) -> int:
    traits = Trait.CALL
    if not _plain_id(block.id):
        traits |= Trait.ODD_ID
    if not _plain_name(block.name):
        traits |= Trait.ODD_NAME
    elif block.name in RESERVED_NAMES:
        traits |= Trait.RESERVED_NAME
    if block.raw_is_broken:
        traits |= Trait.ODD_ARGUMENTS
    return traits | Trait.STATE if block.state is not None else traits


def _result_traits(block: ToolResultBlock) -> int:
    traits = Trait.RESULT
    if not _plain_id(block.id):
        traits |= Trait.ODD_ID
    if not block.name:
        traits |= Trait.RESULT_NAMELESS
    elif not _plain_name(block.name):
        traits |= Trait.ODD_NAME
    elif block.name in RESERVED_NAMES:
        traits |= Trait.RESERVED_NAME
    if block.is_error:
        traits |= Trait.RESULT_ERROR
    if isinstance(block.output, str):
        return traits if _is_said(block.output) else traits | Trait.RESULT_BLANK
    traits |= Trait.RESULT_PARTS
    for item in block.output:
        if not isinstance(item, TextBlock):
            traits |= Trait.RESULT_MEDIA
        elif not _is_said(item.text):
            traits |= Trait.RESULT_BLANK
        elif item.state is not None:
            traits |= Trait.STATE
    return traits if block.output else traits | Trait.RESULT_BLANK
