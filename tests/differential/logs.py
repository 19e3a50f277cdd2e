"""Logs to load: requests that the base version wrote, and recorded logs, some of them changed at random."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any, Final, cast

from tests.differential.mutation import mutate_value
from tests.differential.options import draw_options
from tests.differential.recordings import draw_recording
from tests.differential.vocabulary import PROVIDERS

__all__ = ["create_logs", "create_stored"]

_FORMS: Final = ("chat", "multi-agent", "viewer")
_RECORDED: Final = 4
"""Number of recorded logs in a case."""


def create_logs(seed: int, conversation: dict[str, Any], records: Sequence[Any]) -> dict[str, Any]:
    """Returns the case with this number: logs to load, to format for their provider, and for another one.

    `records` are those of the base version for `conversation`. Their requests in chat form are logs.
    """
    rng = Random(seed)
    pairs = zip(conversation["requests"], records[1:], strict=len(records) > 1)
    requests = [
        (options["provider"], record["request"])
        for options, record in pairs
        if options["form"] == "chat" and "request" in record
    ]
    logs = [_create_log(rng, provider, request, has_formats=True) for provider, request in requests]
    for _ in range(_RECORDED):
        recorded = draw_recording(rng, "log")
        logs.append(_create_log(rng, recorded["provider"], recorded["log"]["value"], has_formats=True))
        changed = mutate_value(rng, recorded["log"]["value"])
        logs.append(_create_log(rng, recorded["provider"], changed, has_formats=False))
    if requests:
        provider, request = rng.choice(requests)
        logs.append(_create_log(rng, provider, mutate_value(rng, request), has_formats=False))
        logs.append(_create_log(rng, rng.choice(PROVIDERS), request, has_formats=False))
    return {"kind": "logs", "seed": seed, "logs": logs}


def _create_log(rng: Random, provider: str, log: Any, *, has_formats: bool) -> dict[str, Any]:
    targets = (provider if provider in PROVIDERS else "openai", rng.choice(PROVIDERS)) if has_formats else ()
    formats = [_strip(draw_options(rng, target, "chat", [])) for target in targets[:1]]
    formats += [_strip(draw_options(rng, target, rng.choice(_FORMS), _NO_MESSAGES)) for target in targets[1:]]
    return {"provider": provider, "log": log, "as_text": rng.random() < 0.2, "formats": formats}


_NO_MESSAGES: Final[list[dict[str, Any]]] = [{"name": "assistant", "content": ""}]


def _strip(options: dict[str, Any]) -> dict[str, Any]:
    """Returns options without those that depend on the messages, and on the tools that a log brings along."""
    return {
        key: value
        for key, value in options.items()
        if key not in ("budget", "tools", "tool_choice", "before", "adopted")
    }


def create_stored(seed: int, logs: dict[str, Any], records: Sequence[Any]) -> dict[str, Any]:
    """Returns the case with this number: messages that the base version loaded from logs, and stored.

    `records` are those of the base version for the case `logs`. Every other case is a list that the tests stored.
    """
    rng = Random(seed)
    stored = [record["messages"] for record in records if record.get("messages")]
    has_loaded = stored and rng.random() < 0.6
    messages: Any = rng.choice(stored) if has_loaded else draw_recording(rng, "stored")["messages"]
    if rng.random() < 0.15:
        messages = mutate_value(rng, messages)
    known = _find_plain(messages) or _NO_MESSAGES
    requests = [draw_options(rng, provider, rng.choice(_FORMS), known) for provider in PROVIDERS]
    return {"kind": "stored", "seed": seed, "messages": messages, "requests": requests}


def _find_plain(stored: Any) -> list[dict[str, Any]]:
    """Returns those of the stored messages that options can be drawn from: with a name, and with content."""
    listed = cast("dict[str, Any]", stored).get("messages") if isinstance(stored, dict) else stored
    items = cast("list[Any]", listed) if isinstance(listed, list) else []
    return [item for item in items if isinstance(item, dict) and _is_plain(cast("dict[str, Any]", item))]


def _is_plain(message: dict[str, Any]) -> bool:
    return isinstance(message.get("name"), str) and isinstance(message.get("content"), str | list)
