"""Digests of the prefix of a request."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, cast

from agentkit.argument_checks import check_option
from agentkit.capabilities.wire_layout import CACHE_MARKERS
from agentkit.json_values import as_object

__all__ = ["prefix_digest"]

_HEAD = ("system", "instructions", "system_instruction", "tools")


_TURNS = ("messages", "input", "contents")


_LONG = 4_096


def prefix_digest(request: Mapping[str, Any]) -> str:
    """The digest of a request as the prefix of its reply: 32 hexadecimal digits.

    Keep it with the thinking of the reply, `OpaqueState("anthropic", signature=…, prefix=prefix_digest(request))`,
    and a formatter knows whether that thinking may still go back.
    """
    check_option("request", request, Mapping, "Pass the request of a plan: plan.request.")
    chain = _Chain(request)
    for turn in _turns(request):
        chain.add(turn)
    return chain.digest


class _Chain:
    """The digest of a prefix that grows turn by turn: it begins with the prompt and the tools."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._sum = sha256()
        config: object = request.get("config")
        head = {**request, **(cast("dict[str, Any]", config) if isinstance(config, dict) else {})}  # Gemini's
        for name in _HEAD:
            found = head.get(name)
            if found:
                self.add({name: _as_parts(found) if name == "system" else found})

    def add(self, found: Any) -> None:
        for turn in _as_said(found):
            self._add(turn)

    def _add(self, found: Any) -> None:
        text = json.dumps(_plain(found), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        self._sum.update(text.encode("utf-8", "surrogatepass") + b"\n")

    @property
    def digest(self) -> str:
        return self._sum.hexdigest()[:32]


def _turns(request: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
    return next((request[name] for name in _TURNS if isinstance(request.get(name), list)), ())


_STORED = frozenset({"message", "function_call", "custom_tool_call"})


def _as_said(turn: Any) -> Iterator[Any]:
    """Yields what a turn says to the model, without what ties it to stored items (OpenAI Responses).

    A message and a call say the same with the id of their item and without; a message says its texts one by one.
    """
    item = cast("dict[str, Any]", turn) if isinstance(turn, dict) else {}
    if item.get("type") not in _STORED:
        yield turn
        return
    kept = {key: value for key, value in item.items() if key not in ("id", "status")}
    if kept.pop("type") != "message":
        yield {**kept, "type": item["type"]}
    elif item.get("role") == "assistant" and isinstance(item.get("content"), list):
        for part in cast("list[dict[str, Any]]", item["content"]):
            is_text = as_object(part).get("type") == "output_text"
            yield {**kept, "content": part.get("text") if is_text else [part]}
    else:
        yield kept


def _plain(found: Any) -> Any:
    """A JSON value without cache markers, long texts as their digests."""
    if isinstance(found, str):
        return found if len(found) < _LONG else _digest(found)
    if isinstance(found, dict):
        pairs = cast("dict[str, Any]", found).items()
        return {key: _plain(item) for key, item in pairs if key not in CACHE_MARKERS}
    if isinstance(found, list):
        return [_plain(item) for item in cast("list[Any]", found)]
    return found


def _as_parts(system: Any) -> Any:
    """A prompt that is one text is the same as a list of that one text."""
    return [{"type": "text", "text": system}] if isinstance(system, str) else system


@lru_cache(64)
def _digest(text: str) -> str:
    """A long text's digest. A request shares its long texts with the one before: they are read once."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
