"""Recorded replies, streams and logs: the input that the tests of 0.3.0 gave to parsers and loaders."""

from __future__ import annotations

import json
import lzma
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

__all__ = ["draw_recording", "load_recordings"]

_FILE = Path(__file__).with_name("recordings.json.xz")


def draw_recording(rng: Random, kind: str) -> dict[str, Any]:
    """Returns one of the recordings of a kind: each provider is as likely as any other."""
    by_provider = load_recordings()[kind]
    return rng.choice(by_provider[rng.choice(list(by_provider))])


@cache
def load_recordings() -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Returns all recordings by kind (stream, reply, log, request, stored) and provider."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for line in lzma.decompress(_FILE.read_bytes()).splitlines():
        recording = json.loads(line)
        found.setdefault(recording["kind"], {}).setdefault(recording.get("provider", ""), []).append(recording)
    return found
