"""Table of known log formats, and functions that recognize the format of a message.

Each loader uses the table to refuse messages in other formats. The table is part of the core, so that a loader
does not import the packages of other providers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, cast

__all__ = ["FIRST_KEYS", "LOADERS", "LogFormat", "find_log_format", "may_match"]


class LogFormat(NamedTuple):
    """Format of message logs, with the patterns that identify the format.

    A pattern is a list of features, separated by spaces. A message matches the pattern if it has all these
    features. The feature `key` means that the message has this key. The feature `key=text` means that the value of
    the key is this text. `key.inner` is a key of an object under `key`, or of an object in a list under `key`.

    Attributes:
        name: Name of the format in error messages.
        loader: First argument of `load_native` for this format. Empty if agentkit has no loader for the format.
        signatures: Patterns that only messages of this format match.
        hints: Patterns that messages of this format usually match. Hints are only used to suggest a format.

    """

    name: str
    loader: str
    signatures: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


_FORMATS = (
    LogFormat("pydantic-ai messages", "", ("kind=request parts", "kind=response parts", "parts.part_kind")),
    LogFormat("A2A messages", "", ("kind=message parts", "parts.kind")),
    LogFormat(
        "OpenTelemetry GenAI messages",
        "",
        ("parts.type parts.content", "parts.type=tool_call", "parts.type=tool_call_response"),
    ),
    LogFormat(
        "Vercel AI SDK messages",
        "",
        ("parts.type", "toolInvocations", "content.type=tool-call", "content.type=tool-result"),
    ),
    LogFormat("Google ADK events", "", ("author content.parts", "author content.role")),
    LogFormat(
        "Bedrock Converse messages",
        "",
        ("content.toolUse", "content.toolResult", "content.reasoningContent"),
        ("content.image.source", "content.document.source"),
    ),
    LogFormat("ShareGPT messages", "", ("from value",)),
    LogFormat("LlamaIndex messages", "", ("blocks.block_type",)),
    LogFormat("Haystack messages", "", ("_role _content",)),
    LogFormat("OpenAI Assistants messages", "", ("object=thread.message", "content.text.value")),
    LogFormat("OpenInference messages", "", ("message.role message.content",)),
    LogFormat("Gemini contents", "gemini", ("parts",), ("contents",)),
    LogFormat(
        "LangChain messages",
        "langchain",
        ("lc kwargs", "type=human", "type=ai", "data.content type", "additional_kwargs", "response_metadata"),
        ("type=system content", "type=tool content", "kwargs.messages"),
    ),
    LogFormat(
        "AgentScope messages",
        "agentscope",
        ("content.type=tool_result content.output", "content.type=tool_call content.input"),
        ("name role content.type=tool_use",),
    ),
    LogFormat(
        "Anthropic messages",
        "anthropic",
        ("content.type=tool_use", "content.type=tool_result", "content.type=image content.source"),
        ("content.type=thinking", "content.type=document", "system"),
    ),
    LogFormat("a DashScope request", "dashscope", (), ("input.messages", "input.prompt")),
    LogFormat(
        "OpenAI Responses items",
        "openai-responses",
        ("content.type=input_text", "content.type=output_text", "content.type=input_image"),
        ("call_id type", "type=reasoning", "type=message", "input instructions", "input", "previous_response_id"),
    ),
    LogFormat("Ollama messages", "ollama", (), ("role images", "role thinking", "role tool_name")),
    LogFormat(
        "OpenAI Chat messages",
        "openai",
        ("content.type=image_url", "content.type=input_audio"),
        ("role content.type", "role tool_calls", "tool_call_id", "role function_call"),
    ),
    LogFormat(
        "DashScope or Bedrock Converse messages", "dashscope", (), ("role content.text", "role content.image")
    ),
    LogFormat("OpenAI Chat messages", "openai", (), ("role content", "messages")),
)
"""Known log formats. If a message matches several formats, the first of these formats is used."""

LOADERS = frozenset(log_format.loader for log_format in _FORMATS)
"""First arguments of `load_native` for the known formats."""


class _Pattern(NamedTuple):
    features: frozenset[str]
    log_format: LogFormat
    is_certain: bool


_PATTERNS = [
    _Pattern(frozenset(pattern.split()), log_format, pattern in log_format.signatures)
    for log_format in _FORMATS
    for pattern in log_format.signatures + log_format.hints
]
_FEATURES = frozenset(feature for pattern in _PATTERNS for feature in pattern.features)
_VALUED = frozenset(feature.partition("=")[0] for feature in _FEATURES if "=" in feature)
"""Keys, such as `content.type`, for which a pattern requires a certain text as the value (`key=text`)."""


def _first_key(feature: str) -> str:
    return feature.partition("=")[0].partition(".")[0]


FIRST_KEYS = frozenset(map(_first_key, _FEATURES))
"""Message keys that occur in the patterns of log formats."""


def find_log_format(message: Mapping[str, Any], *, certain: bool = False) -> LogFormat | None:
    """Returns the first known format that a message matches, or None.

    Args:
        message: Message or request from a log.
        certain: True to use only the `signatures` of a format, and not the `hints`.

    """
    keys = FIRST_KEYS.intersection(message)
    nested = frozenset(key for key in keys if isinstance(message[key], dict | list))
    if not may_match(keys, nested, certain):  # fast path, because the keys of most messages match no pattern
        return None
    return _match_format(_FEATURES.intersection(_list_features(message)), certain)


@lru_cache(512)
def may_match(keys: frozenset[str], nested: frozenset[str], certain: bool) -> bool:
    """Returns True if a message with these keys may match a pattern of a log format.

    Args:
        keys: Keys of the message.
        nested: Keys of the message whose values are objects or lists.
        certain: True to use only the `signatures` of a format, and not the `hints`.

    """
    return any(
        all(_first_key(feature) in (nested if "." in feature else keys) for feature in pattern.features)
        for pattern in _PATTERNS
        if pattern.is_certain or not certain
    )


@lru_cache(512)
def _match_format(features: frozenset[str], certain: bool) -> LogFormat | None:
    matches = (pattern for pattern in _PATTERNS if pattern.features <= features)
    return next((pattern.log_format for pattern in matches if pattern.is_certain or not certain), None)


def _list_features(message: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Yields the features of a message (see `LogFormat`): all keys, and the texts that patterns may require."""
    for key, item in message.items():
        name = f"{prefix}{key}"
        yield name
        if isinstance(item, str):
            if name in _VALUED and len(item) < 30:
                yield f"{name}={item}"
        elif prefix.count(".") < 2:
            inner = cast("list[Any]", item) if isinstance(item, list) else [item]
            for part in inner[:100]:
                if isinstance(part, dict):
                    yield from _list_features(cast("dict[str, Any]", part), f"{name}.")
