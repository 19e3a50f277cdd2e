"""Fake `/api/generate` service for `agentkit.testing.LoopbackServer`. Streams have one JSON object per line.

The JSON has the fields of `GenerateResponse` (Ollama source: api/types.go). The field `response` has the text of
the message that a test passed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from agentkit.testing import NormalizedReply, ReceivedCall, Route
from agentkit_ollama.testing import FakeOllama, end_fields, head_fields

__all__ = ["FakeGenerate", "ROUTES"]

_TYPES: Final = frozenset({"text"})


class FakeGenerate(FakeOllama):
    """Fake service for Ollama's `POST /api/generate`."""

    prompt_keys = ("prompt",)

    def build_reply(self, reply: NormalizedReply, call: ReceivedCall) -> dict[str, Any]:
        reply.check_blocks("/api/generate", _TYPES)
        return {**head_fields(call), "response": reply.text, **end_fields(reply)}

    def build_events(self, reply: NormalizedReply, call: ReceivedCall) -> Iterator[dict[str, Any]]:
        reply.check_blocks("/api/generate", _TYPES)
        for piece in reply.split(reply.text):
            yield {**head_fields(call), "response": piece, "done": False}
        yield {**head_fields(call), "response": "", **end_fields(reply)}

    def find_fault(self, call: ReceivedCall) -> str | None:
        return None if call.body.get("raw") is True else "raw: must be true, because the service has no templates"


ROUTES: Final = (Route("ollama-raw", r"/api/generate", FakeGenerate()),)
