"""The body of the REST API for a request that is written as google-genai's arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, cast

from agentkit import plain

__all__ = ["rest_body"]

# GenerateContentRequest (ai.google.dev/api/generate-content): what stands beside generationConfig, and what only
# the SDK knows.
_BESIDE = frozenset({"safety_settings", "labels", "cached_content", "service_tier", "store"})
_SDK_ONLY = frozenset(
    {"automatic_function_calling", "automatic_continuation", "http_options", "should_return_http_response"}
)
_TEXT = {"text"}  # the keys of most parts, the same on both sides
_PLACED = frozenset({"system_instruction", "tools", "tool_config"})


def rest_body(request: Mapping[str, Any]) -> dict[str, Any]:
    """`contents` and `config` as the body of `POST models/MODEL:generateContent`.

    As the SDK writes it: the keys of the body, of parts and settings in camelCase, those inside them as they are,
    which the server takes in both spellings. Bytes stay standard base64, which it takes as well.
    """
    config: Mapping[str, Any] = request.get("config") or {}
    body: dict[str, Any] = {"contents": [_content(content) for content in request["contents"]]}
    system = config.get("system_instruction")
    if system is not None:
        body["systemInstruction"] = _system(system)
    if config.get("tools"):
        body["tools"] = _tools(config["tools"])
    if config.get("tool_config"):
        inner = _settings(config["tool_config"])
        body["toolConfig"] = {
            key: _settings(cast("dict[str, Any]", item)) if isinstance(item, dict) else item
            for key, item in inner.items()
        }
    body |= {_camel(name): _value(config[name]) for name in _BESIDE if config.get(name) is not None}
    own = {name: item for name, item in config.items() if name not in _BESIDE | _SDK_ONLY | _PLACED}
    if own:
        body["generationConfig"] = _settings(own)
    return body


@lru_cache(512)
def _camel(key: str) -> str:
    head, *tail = key.split("_")
    return head + "".join(word.capitalize() for word in tail)


def _settings(found: Mapping[str, Any]) -> dict[str, Any]:
    return {_camel(key): _value(item) for key, item in cast("dict[str, Any]", _value(found)).items()}


def _value(found: Any) -> Any:
    """A JSON value; an object of the SDK's as one, also in a list."""
    if isinstance(found, list):
        return [_value(item) for item in cast("list[Any]", found)]
    return plain(found) if hasattr(found, "model_dump") else found


def _content(content: dict[str, Any]) -> dict[str, Any]:
    """A turn. Only the keys of its parts are the wire's: what a function is given and gives is its caller's."""
    parts: list[dict[str, Any]] | None = content.get("parts")
    if parts is None or (len(parts) == 1 and parts[0].keys() == _TEXT):
        return content
    return {**content, "parts": [{_camel(key): item for key, item in part.items()} for part in parts]}


def _system(system: Any) -> dict[str, Any]:
    """A system instruction (text, parts or a content) as a content, in the role that the SDK gives it."""
    if isinstance(system, Mapping) and "parts" in system:
        return _content(cast("dict[str, Any]", system))
    parts: list[Any] = [{"text": system}] if isinstance(system, str) else _listed(system)
    return _content({"role": "user", "parts": parts})


def _listed(found: Any) -> list[Any]:
    return list(cast("Iterable[Any]", found)) if isinstance(found, list | tuple) else [found]


def _tools(tools: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The tools, all declarations in the last of them."""
    declared: list[Any] = []
    others: list[dict[str, Any]] = []
    for tool in tools:
        rest = _settings(tool)
        declared += rest.pop("functionDeclarations", None) or []
        if rest:
            others.append(rest)
    return [*others, {"functionDeclarations": declared}] if declared else others
