"""`Msg`: one message of a conversation.

The constructor `Msg(…)` validates its arguments. For parts that are already valid, the pipeline uses
`build_trusted`, which skips validation.

Expensive results are cached on the message (see `cache_result`). The cache does not affect equality,
`repr` or JSON. Copies and pickles do not contain the cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar, cast, get_args, overload

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
from agentkit.messages.features import Feature, scan_features, scan_text
from agentkit.messages.foreign_block_dicts import adopt_block
from agentkit.messages.usage import FinishReason, Usage
from agentkit.messages.validation import (
    ORDINARY_BUILDERS,
    SEQUENCE_TYPES,
    JsonObject,
    Text,
    Validated,
    copy_object,
    is_text,
    slot_setter,
    validated_dataclass,
)
from agentkit.reprs import describe_value

__all__ = [
    "Msg",
    "Role",
    "build_part",
    "build_trusted",
    "cache_result",
    "get_cached",
    "set_cached",
]

Role: TypeAlias = Literal["user", "assistant", "system"]
_Result = TypeVar("_Result")


def _adopt_content(content: object) -> object:
    if isinstance(content, list | tuple):
        return tuple(adopt_block(block) for block in cast("Iterable[object]", content))
    if not isinstance(content, str):
        reason = f"expected a string or a list of blocks, got {describe_value(content)}"
        raise MessageError("", reason, "Pass a string or a list of blocks.")
    return content


Content: TypeAlias = Annotated[Text | tuple[Block, ...], BeforeValidator(_adopt_content)]


class _Computed(Validated):
    """Base class that adds slots for results computed from the fields of a message."""

    __slots__ = ("_cache", "features")

    _cache: tuple[Any, ...]
    features: int
    """Properties of the message, as bits of `Feature`."""


@validated_dataclass
class Msg(_Computed):
    """Message of a conversation, with the name of the speaker, the content and the role.

    Attributes:
        name: Name of the speaker.
        content: A string, or a sequence of blocks. A block may be passed as a dict. The sequence is stored as a
            tuple.
        role: `user`, `assistant` or `system`.
        id: Id that the application chooses. None if there is no id.
        timestamp: Time that the application chooses, as text. None if there is no time.
        metadata: JSON object with data of the application. Requests never contain the metadata.
        pinned: True if a budget must not drop the message.

    Raises:
        MessageError: If an argument is invalid. The error has the path of the invalid value.

    Example:
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
        _set_features(self, _scan(self.content, self.role))
        _set_cache(self, ())

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The content as blocks. A string becomes one text block."""
        return (build_trusted_text(self.content),) if isinstance(self.content, str) else self.content

    @property
    def text(self) -> str:
        """The text of all text blocks, joined by line breaks."""
        if isinstance(self.content, str):
            return self.content
        return "\n".join(block.text for block in self.content if isinstance(block, TextBlock))

    @property
    def thinking(self) -> str:
        """The readable text of the thinking blocks, joined by line breaks."""
        return "\n".join(block.thinking for block in self.blocks if isinstance(block, ThinkingBlock))

    @property
    def tool_uses(self) -> tuple[ToolUseBlock, ...]:
        """The tool calls of the message."""
        if not self.features & Feature.CALL:
            return ()
        return tuple([block for block in self.blocks if isinstance(block, ToolUseBlock)])

    @property
    def tool_results(self) -> tuple[ToolResultBlock, ...]:
        """The tool results of the message."""
        if not self.features & Feature.RESULT:
            return ()
        return tuple([block for block in self.blocks if isinstance(block, ToolResultBlock)])

    @property
    def tool_ids(self) -> tuple[str, ...]:
        """The call ids of the tool calls and tool results, in order."""
        if not self.features & Feature.OTHER:  # all blocks are tool calls or tool results
            content: Any = self.content
            return (content[0].id,) if len(content) == 1 else tuple(map(_get_id, content))
        return tuple([block.id for block in self.blocks if isinstance(block, _TOOL_BLOCKS)])

    @property
    def media(self) -> tuple[MediaBlock, ...]:
        """The image, audio, video and document blocks. Media inside tool results are not included."""
        return tuple(block for block in self.blocks if isinstance(block, MediaBlock))

    @property
    def usage(self) -> Usage | None:
        """The token usage of the model call that returned the message. None if no usage was reported."""
        return Usage.from_dict(self._reply.get("usage"))

    @property
    def finish_reason(self) -> FinishReason | None:
        """The reason why the reply ended, from `metadata["reply"]`. None if there is no known reason."""
        reason = self._reply.get("finish_reason")
        return FinishReason(reason) if isinstance(reason, str) and reason in _FINISH_REASONS else None

    @property
    def _reply(self) -> dict[str, Any]:
        reply = (self.metadata or {}).get("reply")
        return cast("dict[str, Any]", reply) if isinstance(reply, dict) else {}

    @overload
    def parsed(self, output: type[_Result]) -> _Result: ...
    @overload
    def parsed(self, output: Any) -> Any: ...
    def parsed(self, output: Any) -> Any:
        """Parses the JSON text of a reply to a value of the given type. The JSON text may be in a code fence.

        Args:
            output: Type that was passed as `response_format`: any type that pydantic supports, such as a model,
                `list[Answer]` or a `Literal`.

        Raises:
            OptionError: If pydantic does not support the type.
            ParseError: If the reply has no value of this type.

        Example:
            >>> Msg("Friday", '{"value": [1, 2]}', "assistant").parsed(list[int])
            [1, 2]
        """
        from agentkit.messages.parsed_reply import parse_reply

        return parse_reply(self, output)

    def to_dict(self) -> dict[str, Any]:
        """Converts the message to a dict of JSON values. `Msg.from_dict` loads such a dict."""
        from agentkit.messages.serialization import dump_message

        return dump_message(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Msg:
        """Loads a message from a dict that `to_dict` or AgentScope wrote.

        A block that cannot be read becomes an InvalidBlock.

        Raises:
            MessageError: If the dict is not a message.
        """
        from agentkit.messages.serialization import load_message

        return load_message(data)


_FINISH_REASONS: Final = frozenset(map(str, FinishReason))
_get_id: Final[Callable[[Any], str]] = attrgetter("id")
_TOOL_BLOCKS: Final = (ToolUseBlock, ToolResultBlock)


# -- construction without pydantic ----------------------------------------------------------------------------

_new = object.__new__
_set_name = slot_setter(Msg, "name")
_set_content = slot_setter(Msg, "content")
_set_role = slot_setter(Msg, "role")
_set_id = slot_setter(Msg, "id")
_set_timestamp = slot_setter(Msg, "timestamp")
_set_metadata = slot_setter(Msg, "metadata")
_set_pinned = slot_setter(Msg, "pinned")
_set_features = slot_setter(_Computed, "features")
_set_cache = slot_setter(_Computed, "_cache")


def build_trusted(
    name: str,
    content: str | tuple[Block, ...],
    role: Role,
    pinned: bool = False,
    features: int = 0,
    *,
    id: str | None = None,
    timestamp: str | None = None,
    metadata: dict[str, Any] | None = None,
) -> Msg:
    """Builds a message from parts that are already valid, without validation.

    `features` are the `Feature` bits of the message. If `features` is 0, the bits are computed. `metadata` is not
    copied.
    """
    msg = _new(Msg)
    _set_name(msg, name)
    _set_content(msg, content)
    _set_role(msg, role)
    _set_id(msg, id)
    _set_timestamp(msg, timestamp)
    _set_metadata(msg, metadata)
    _set_pinned(msg, pinned)
    _set_features(msg, features or _scan(content, role))
    _set_cache(msg, ())
    return msg


def _build_ordinary(
    name: Any,
    content: Any,
    role: Any,
    id: Any = None,
    timestamp: Any = None,
    metadata: Any = None,
    pinned: Any = False,
) -> Msg | None:
    """Builds a message without pydantic, because validation by pydantic takes several times as long.

    Returns None if an argument is invalid, or has a type that only pydantic checks.
    """
    if type(content) in SEQUENCE_TYPES:
        content = tuple(content)
        is_valid = _BLOCK_TYPES.issuperset(map(type, content))
    else:
        is_valid = is_text(content)
    if not (is_valid and is_text(name) and is_text(role) and role in _ROLES and type(pinned) is bool):
        return None
    if id is None is timestamp is metadata:
        return build_trusted(name, content, role, pinned)
    copied = None if metadata is None else copy_object(metadata)
    is_valid = (id is None or is_text(id)) and (timestamp is None or is_text(timestamp))
    if not is_valid or (copied is None and metadata is not None):
        return None
    return build_trusted(name, content, role, pinned, id=id, timestamp=timestamp, metadata=copied)


_ROLES: Final = frozenset(get_args(Role))
_BLOCK_TYPES: Final = frozenset(get_args(get_args(Block)[0]))
ORDINARY_BUILDERS[Msg] = _build_ordinary


def build_part(msg: Msg, blocks: tuple[Block, ...], role: Role, mark: str = "") -> Msg:
    """Returns a copy of a message in which the given role and blocks replace the original role and blocks.

    Unless `mark` is empty, `metadata[mark]` of the copy is True.
    """
    metadata = {**(msg.metadata or {}), mark: True} if mark else msg.metadata
    return build_trusted(msg.name, blocks, role, msg.pinned, id=msg.id, timestamp=msg.timestamp, metadata=metadata)


_ROLE_FEATURES: Final = {"assistant": Feature.ASSISTANT, "system": Feature.SYSTEM, "user": 0}
"""Maps each role to the `Feature` bit of a message with this role and without tool blocks. 0 means no bit."""


def _scan(content: str | tuple[Block, ...], role: Role) -> int:
    if isinstance(content, str):
        return scan_text(content) | _ROLE_FEATURES[role]
    features = scan_features(content)
    if features & Feature.CALL or (role == "assistant" and not features & Feature.RESULT):
        return features | Feature.ASSISTANT
    if role == "system" and not features & Feature.TOOL:
        return features | Feature.SYSTEM
    return features


# -- cache ----------------------------------------------------------------------------------------------------

_MAX_CACHE: Final = 32  # maximum length of the cache tuple: 16 keys, each followed by its result


def get_cached(msg: Msg, key: object) -> Any:
    """Returns the result that is cached on a message under a key. Returns None if there is no such result."""
    cache = msg._cache  # pyright: ignore[reportPrivateUsage]
    if cache and cache[0] is key:  # fast path, because most messages have one cached result
        return cache[1]
    for index in range(0, len(cache), 2):
        if cache[index] is key or cache[index] == key:
            return cache[index + 1]
    return None


def set_cached(msg: Msg, key: object, result: _Result) -> _Result:
    """Caches a result on a message and returns the result. Each message keeps its 16 newest results."""
    _set_cache(msg, (*msg._cache[2 - _MAX_CACHE :], key, result))  # pyright: ignore[reportPrivateUsage]
    return result


def cache_result(msg: Msg, key: object, compute: Callable[[Msg], _Result]) -> _Result:
    """Returns the result that is cached under `key`. If there is no result, computes the result and caches it."""
    result: _Result | None = get_cached(msg, key)
    return set_cached(msg, key, compute(msg)) if result is None else result
