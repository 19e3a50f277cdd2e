"""The body of the REST API for a request that is written as google-genai's arguments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, cast

from agentkit.provider_kit import native_to_json

__all__ = ["rest_body"]

# GenerateContentRequest (ai.google.dev/api/generate-content): what stands beside generationConfig, and what only
# the SDK knows.
_BESIDE = frozenset({"safety_settings", "labels", "cached_content", "service_tier", "store"})
_SDK_ONLY = frozenset(
    {"automatic_function_calling", "automatic_continuation", "http_options", "should_return_http_response"}
)
_TEXT = {"text"}  # the keys of most parts, the same on both sides
_PLACED = frozenset({"system_instruction", "tools", "tool_config"})

_FREE = frozenset(
    {"args", "response", "part_metadata", "labels", "headers", "parameters_json_schema", "response_json_schema"}
)
"""Objects whose keys are the caller's or a tool's: their spelling stays."""

_SCHEMAS = frozenset({"parameters", "response_schema"})
"""Objects of the type Schema: their keys are the API's, but the names of properties are the caller's."""

_NAMED = frozenset({"properties", "defs", "$defs"})  # SDK: Schema


def rest_body(request: Mapping[str, Any]) -> dict[str, Any]:
    """`contents` and `config` as the body of `POST models/MODEL:generateContent`.

    All keys of the API are in camelCase, at any depth: the service takes both spellings, but a proxy in between
    may leave out what it does not know. Bytes stay standard base64, which the service takes as well as the
    URL-safe alphabet.
    """
    config: Mapping[str, Any] = request.get("config") or {}
    body: dict[str, Any] = {"contents": [_content(content) for content in request["contents"]]}
    system = config.get("system_instruction")
    if system is not None:
        body["systemInstruction"] = _system(system)
    if config.get("tools"):
        body["tools"] = _tools(config["tools"])
    if config.get("tool_config"):
        body["toolConfig"] = _in_camel_case(config["tool_config"])
    body |= {_camel(name): _item(name, config[name]) for name in _BESIDE if config.get(name) is not None}
    own = {name: item for name, item in config.items() if name not in _BESIDE | _SDK_ONLY | _PLACED}
    if own:
        body["generationConfig"] = _in_camel_case(own)
    return body


@lru_cache(512)
def _camel(key: str) -> str:
    head, *tail = key.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in tail)


def _in_camel_case(found: Any) -> Any:
    """Returns a value with the API's keys in camelCase; an object of the SDK's as JSON, which has them so."""
    if isinstance(found, list | tuple):
        return [_in_camel_case(item) for item in cast("list[Any]", found)]
    if isinstance(found, dict):
        return {_camel(key): _item(key, item) for key, item in cast("dict[str, Any]", found).items()}
    return native_to_json(found) if hasattr(found, "model_dump") else found


def _item(key: str, item: Any) -> Any:
    if key in _FREE:
        return native_to_json(item) if hasattr(item, "model_dump") else item
    return _schema(item) if key in _SCHEMAS else _in_camel_case(item)


def _schema(found: Any) -> Any:
    """Returns a Schema with its keys in camelCase."""
    if isinstance(found, list):
        return [_schema(item) for item in cast("list[Any]", found)]
    if not isinstance(found, dict):
        return native_to_json(found) if hasattr(found, "model_dump") else found
    made: dict[str, Any] = {}
    for key, item in cast("dict[str, Any]", found).items():
        if key in _NAMED and isinstance(item, dict):
            made[_camel(key)] = {name: _schema(one) for name, one in cast("dict[str, Any]", item).items()}
        else:
            made[_camel(key)] = item if key in ("default", "example", "enum", "required") else _schema(item)
    return made


def _content(content: dict[str, Any]) -> dict[str, Any]:
    """Returns a turn with its parts in camelCase."""
    parts: list[dict[str, Any]] | None = content.get("parts")
    if parts is None or (len(parts) == 1 and parts[0].keys() == _TEXT):
        return content
    return {**content, "parts": [part if part.keys() == _TEXT else _in_camel_case(part) for part in parts]}


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
        rest: dict[str, Any] = _in_camel_case(tool)
        declared += rest.pop("functionDeclarations", None) or []
        if rest:
            others.append(rest)
    return [*others, {"functionDeclarations": declared}] if declared else others
