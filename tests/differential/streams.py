"""Generated streams and whole replies of each wire format: complete, cut, with errors, and malformed."""

from __future__ import annotations

import base64
import json
from random import Random
from typing import Any, Final

from tests.differential.mutation import mutate_items, mutate_value
from tests.differential.recordings import draw_recording
from tests.differential.vocabulary import PROVIDERS
from tests.differential.wires import create_error, create_events, create_reply, create_whole, write_events

__all__ = ["create_streams"]

_OPTIONS: Final[tuple[dict[str, Any], ...]] = (
    {},
    {},
    {"name": "Friday"},
    {"tool_names": {"look": "look it up"}},
    {"request": {}},
)
_HELLO: Final = [{"role": "user", "content": "Hello."}]
_REQUESTS: Final[dict[str, dict[str, Any]]] = {
    "openai-responses": {"model": "m", "input": _HELLO, "instructions": "Be brief."},
    "gemini": {"model": "m", "contents": [{"role": "user", "parts": [{"text": "Hello."}]}]},
}
"""Requests that are not of the form of Chat Completions."""


def create_streams(seed: int) -> dict[str, Any]:
    """Returns the case with this number: chunks and whole replies for the parsers of some providers."""
    rng = Random(seed)
    runs = [run for provider in rng.sample(PROVIDERS, 3) for run in _create_runs(rng, provider)]
    return {"kind": "streams", "seed": seed, "runs": [*runs, *_replay(rng, "stream"), *_replay(rng, "reply")]}


def _create_runs(rng: Random, provider: str) -> list[dict[str, Any]]:
    reply = create_reply(rng)
    events = create_events(rng, provider, reply)
    whole = create_whole(rng, provider, reply)
    data = write_events(provider, events, is_complete=rng.random() < 0.9)
    at = rng.randint(0, len(events))
    failing = [*events[:at], create_error(rng, provider), *events[at:][: rng.choice((0, 99))]]
    options = dict(rng.choice(_OPTIONS))
    if "request" in options:
        options["request"] = _REQUESTS.get(provider, {"model": "m", "messages": _HELLO})
    made = {
        "events": _as_values(events),
        "bytes": _as_bytes(rng, data),
        "cut events": _as_values(events[:at]),
        "cut bytes": _as_bytes(rng, data[: rng.randint(0, len(data))]),
        "error": _as_values(failing),
        "error as bytes": _as_bytes(rng, write_events(provider, failing, is_complete=True)),
        "mutated": _as_values(mutate_items(rng, events)),
        "mutated as bytes": _as_bytes(rng, write_events(provider, mutate_items(rng, events), is_complete=True)),
        "whole as bytes": _as_bytes(rng, json.dumps(whole, indent=rng.choice((None, 1))).encode()),
    }
    runs: list[dict[str, Any]] = [
        {"provider": provider, "label": label, "options": options, "chunks": chunks}
        for label, chunks in made.items()
    ]
    wholes = {
        "whole": whole,
        "mutated whole": mutate_value(rng, whole),
        "whole error": create_error(rng, provider),
    }
    more = (
        {"provider": provider, "label": label, "options": options, "reply": {"value": one}}
        for label, one in wholes.items()
    )
    return [*runs, *more]


def _as_values(events: list[Any]) -> list[Any]:
    return [{"value": event} for event in events]


def _as_bytes(rng: Random, data: bytes) -> list[Any]:
    """Returns the bytes in chunks of random sizes."""
    sizes = rng.choice(((1_000_000,), (64, 256, 1_024), (1, 5, 40)))
    chunks: list[Any] = []
    while data:
        size = rng.choice(sizes)
        chunks.append({"bytes": base64.b64encode(data[:size]).decode()})
        data = data[size:]
    return chunks


def _replay(rng: Random, kind: str) -> list[dict[str, Any]]:
    """Returns a recorded run, and the same with a random change."""
    recorded = draw_recording(rng, kind)
    head = {"provider": recorded["provider"], "options": recorded["options"]}
    if kind == "reply":
        reply = recorded["reply"]
        changed = {"value": mutate_value(rng, reply["value"])} if "value" in reply else reply
        return [
            {**head, "label": "recorded reply", "reply": reply},
            {**head, "label": "mutated recorded reply", "reply": changed},
        ]
    chunks = recorded["chunks"]
    events = [chunk["value"] for chunk in chunks if "value" in chunk]
    runs = [{**head, "label": "recorded stream", "chunks": chunks}]
    if events:
        runs.append({**head, "label": "mutated recorded stream", "chunks": _as_values(mutate_items(rng, events))})
    return runs
