"""Streams of OpenAI's APIs as raw server-sent events and as objects of the SDK."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import httpx2
from openai import OpenAI

__all__ = ["sdk_events", "sse"]


def sse(events: Iterable[dict[str, Any]], break_: str = "\n") -> bytes:
    """Returns events as the bytes that a server sends."""
    lines = [f"data: {json.dumps(event, default=repr)}{break_}{break_}" for event in events]
    return "".join((f": keep-alive{break_}{break_}", *lines, f"data: [DONE]{break_}{break_}")).encode()


_body: list[bytes] = [b""]


@cache
def _client() -> OpenAI:
    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=_body[0])

    return OpenAI(api_key="none", http_client=httpx2.Client(transport=httpx2.MockTransport(answer)))


def sdk_events(api: str, body: bytes) -> Iterator[Any]:
    """Returns the objects that the SDK's client decodes from a body."""
    _body[0] = body
    client = _client()
    if api == "chat":
        yield from client.chat.completions.create(model="m", messages=[], stream=True)
    else:
        yield from client.responses.create(model="m", input="x", stream=True)
