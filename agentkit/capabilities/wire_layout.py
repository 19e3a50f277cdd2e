"""`WireLayout`, in which a provider declares the meaning of the keys in its requests.

The layout lets other modules read requests in any wire format. Such modules count tokens, compute digests of
prefixes, load request options, or find the block that caused an API error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, cast

from agentkit.errors import OptionError
from agentkit.json_values import find_value
from agentkit.reprs import bounded_repr, shorten_repr

__all__ = ["HasLayout", "LayoutSource", "OptionLayout", "WireLayout", "as_layout"]


def _no_keys() -> dict[str, str]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OptionLayout:
    """Keys of tools, tool choice and output schema in a request.

    A path is one key, or several nested keys separated by dots. The default path of the tool choice is
    `tool_choice`, and the default path of the output schema is `response_format`.

    Attributes:
        function_types: Types of tools that the application runs. The provider runs tools of any other type. A tool
            that has a name and no type runs in the application.
        functions: Keys of other lists of function declarations, in addition to the list of tools.
        choices: Paths of the tool choice. Requests are written with the first path, and read with the first path
            that has a value.
        read_choice: Function that converts a tool choice from a request to a value for the option `tool_choice`.
            None if no conversion is needed.
        outputs: Paths of the output schema. The first path with a valid schema of an object is used. The value may
            be the JSON text of the schema.
        object_formats: Values at a path in `outputs` that ask for a JSON object without a schema, such as `json`.
        read_schemas: Maps the request key of a schema, such as `parameters`, to a function that converts the
            schema to a JSON schema. The request has the schema in another format, such as OpenAPI's. For a path of
            several keys, the map contains the last key.
    """

    function_types: frozenset[str] = frozenset({"function"})
    functions: tuple[str, ...] = ()
    choices: tuple[str, ...] = ("tool_choice",)
    read_choice: Callable[[Any], Any] | None = None
    outputs: tuple[str, ...] = ("response_format",)
    object_formats: frozenset[str] = frozenset()
    read_schemas: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict[str, Callable[[Any], Any]])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WireLayout:
    """Keys of the requests in one wire format.

    The defaults describe a list of `messages` with `role` and `content`. If the layout does not name a key, the
    value of the key is treated as text, or as objects that contain text.

    Example:
        >>> layout = WireLayout(turns="dialogue", media={"picture": "image"}, silent=frozenset({"id"}))
        >>> [*layout.read_turns({"dialogue": [{"role": "user", "content": "Hi"}]})]
        [{'role': 'user', 'content': 'Hi'}]

    Attributes:
        turns: Key of the list of turns.
        is_rendered: True if the key in `turns` has the text that a chat template wrote, instead of a list.
        prompt: Key of a system prompt outside the turns. Empty if the system prompt is a turn.
        tools: Key of the list of tools.
        tool_lists: Keys under which a tool object contains lists of declarations, such as Gemini's
            `function_declarations`.
        tool_wrapper: Key under which a tool object contains its declaration. Empty if the object is the
            declaration.
        tool_schemas: Paths under which a declaration can contain the JSON schema of the parameters, such as
            "parameters" or "inputSchema.json". The first path with a value is used.
        containers: Keys of objects in which a request nests other keys, such as `config`.
        parts: Keys under which a turn can contain the list of its parts.
        type: Key of the type, in a part, in a media object, or in a turn without a role. Parts that differ only in
            their keys, such as `{"text": …}` and `{"image": …}`, have no type.
        role: Key of the role of a turn.
        name: Key of the name of a speaker (in a turn) or of a tool (in a call or result).
        labels: Keys whose values are fixed words of the API, such as roles, types and media types.
        silent: Keys whose texts add no tokens to the prompt, such as ids and signatures.
        texts: Keys whose strings are always text. Listing the most frequent keys makes token counting
            faster.
        json: Keys whose values are JSON from the application or the model, such as tool arguments.
        media: Map from keys of media to the kind of media: "image", "audio", "video" or "document".
        media_data: Paths of the data or URL in a media object. A path is one key, or several nested keys separated
            by dots, such as "source.bytes". The first path with a value is used.
        media_types: Keys of the media type, or of a file suffix such as `txt`, in a media object.
        media_details: Paths of the level of detail. Each path starts in a media object, or in the part that
            contains the media object.
        media_texts: Maps the type of a media object that contains a text instead of media to the key of the text.
        sealed: Keys whose values are encrypted text in base64.
        sealed_types: Types of parts that contain only encrypted text.
        proofs: Maps the type of a part or turn to the key of the data with which the API verifies thinking. An
            example of such data is a signature. Parts without a type cannot be listed. Only a parser with
            `binds_thinking` needs this map.
        reply_roles: Roles of turns that are replies of the model.
        is_reply_item: Function that returns True if a turn without a role belongs to a reply. None if every turn
            has a role.
        result_keys: Keys that only tool results have.
        result_labels: Pairs of a key and a value that mark a tool result, such as `("role", "tool")`.
        error_paths: Names that the API's error texts use for the list of turns, in addition to `turns`. A path
            such as `messages[2].content[1]` or `messages.2.content.1` in an error text identifies the block that
            caused the error. The indexes must count from 0.
        options: Keys of tool choice and output schema, for the loaders of request options.
        cache_markers: Keys of the markers for a prompt cache, which are not part of the prompt.
        digest_turn: Function that yields the parts of a turn that enter the digest of a prefix (the start of a
            request). The function omits ids of stored items. None if the digest includes the unchanged turn.
        digest_prompt: Function that converts the system prompt to the value that enters the digest of a prefix
            (the start of a request). None if the digest includes the unchanged system prompt.
    """

    turns: str = "messages"
    is_rendered: bool = False
    prompt: str = ""
    tools: str = "tools"
    tool_lists: tuple[str, ...] = ()
    tool_wrapper: str = ""
    tool_schemas: tuple[str, ...] = ("parameters",)
    containers: tuple[str, ...] = ()
    parts: tuple[str, ...] = ("content",)
    type: str = "type"
    role: str = "role"
    name: str = "name"
    labels: frozenset[str] = frozenset({"role", "type"})
    silent: frozenset[str] = frozenset({"id"})
    texts: frozenset[str] = frozenset({"content", "text", "arguments"})
    json: frozenset[str] = frozenset({"arguments"})
    media: Mapping[str, str] = field(default_factory=_no_keys)
    media_data: tuple[str, ...] = ("data", "url")
    media_types: tuple[str, ...] = ("media_type", "mime_type")
    media_details: tuple[str, ...] = ("detail",)
    media_texts: Mapping[str, str] = field(default_factory=_no_keys)
    sealed: frozenset[str] = frozenset()
    sealed_types: frozenset[str] = frozenset()
    proofs: Mapping[str, str] = field(default_factory=_no_keys)
    reply_roles: frozenset[str] = frozenset({"assistant"})
    is_reply_item: Callable[[Mapping[str, Any]], bool] | None = None
    result_keys: frozenset[str] = frozenset()
    result_labels: frozenset[tuple[str, str]] = frozenset({("role", "tool")})
    error_paths: frozenset[str] = frozenset()
    options: OptionLayout = field(default_factory=OptionLayout)
    cache_markers: frozenset[str] = frozenset()
    digest_turn: Callable[[Any], Iterator[Any]] | None = None
    digest_prompt: Callable[[Any], Any] | None = None
    uncounted: frozenset[str] = field(default=frozenset(), init=False)
    """All keys whose strings and objects add no tokens to the prompt. Computed from other fields."""
    special: frozenset[str] = field(default=frozenset(), init=False)
    """All keys whose strings are not plain text. Computed from other fields."""
    holders: frozenset[str] = field(default=frozenset(), init=False)
    """All keys whose objects and lists are media or JSON values. Computed from other fields."""

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        object.__setattr__(self, "uncounted", self.labels | self.silent | self.cache_markers)
        object.__setattr__(self, "special", frozenset({self.name, *self.sealed, *self.media}))
        object.__setattr__(self, "holders", frozenset({*self.json, *self.media}))

    def read_turns(self, request: Mapping[str, Any]) -> list[Any]:
        """Returns the list of turns of a request, or an empty list if the request has no list of turns."""
        turns = request.get(self.turns)
        return cast("list[Any]", turns) if isinstance(turns, list) else []

    def read_items(self, request: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        """Yields each key of a request with its value.

        For a key in `containers`, yields the keys and values of the object under this key instead.
        """
        for key, value in request.items():
            if key in self.containers and isinstance(value, dict):
                yield from cast("dict[str, Any]", value).items()
            else:
                yield key, value

    def is_reply(self, turn: Mapping[str, Any]) -> bool:
        """Returns True if a turn belongs to a reply of the model."""
        if turn.get(self.role) in self.reply_roles:
            return True
        return self.is_reply_item is not None and self.is_reply_item(turn)

    def is_result(self, part: Mapping[str, Any]) -> bool:
        """Returns True if a turn or a part is a tool result."""
        return not self.result_keys.isdisjoint(part) or any(
            part.get(key) == label for key, label in self.result_labels
        )

    def find_schema(self, declaration: Mapping[str, Any]) -> tuple[str, Any]:
        """Returns the path and the value of the parameter schema in a tool declaration.

        Returns ("", None) if the declaration has no parameter schema.
        """
        values = ((path, find_value(declaration, path)) for path in self.tool_schemas)
        return next(((path, value) for path, value in values if value is not None), ("", None))

    def read_parts(self, turn: Mapping[str, Any]) -> list[Any]:
        """Returns the list of parts of a turn, or an empty list if the content of the turn is not a list."""
        values: Iterable[Any] = (turn.get(key) for key in self.parts)
        return next((cast("list[Any]", parts) for parts in values if isinstance(parts, list)), list[Any]())


class HasLayout(Protocol):
    """Protocol for objects with a request layout, such as a `Provider`, a formatter or `Capabilities`."""

    @property
    def layout(self) -> WireLayout:
        """Names of the keys in the requests."""
        ...


LayoutSource: TypeAlias = WireLayout | HasLayout
"""A `WireLayout`, or an object with a layout: a provider, a formatter or capabilities."""


def as_layout(source: LayoutSource) -> WireLayout:
    """Returns the layout of a provider, a formatter or capabilities. Returns a `WireLayout` unchanged.

    Raises:
        OptionError: The source has no layout.
    """
    layout = source if isinstance(source, WireLayout) else getattr(source, "layout", None)
    if isinstance(layout, WireLayout):
        return layout
    raise OptionError(
        "layout",
        f"expected a provider, a formatter or a WireLayout, got {shorten_repr(source, 60)}",
        "Pass load_provider(NAME), a formatter, or a WireLayout.",
    )
