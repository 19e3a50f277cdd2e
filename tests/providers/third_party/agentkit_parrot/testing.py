"""Fake Parrot service for `agentkit.testing.LoopbackServer`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from agentkit.testing import FakeService, LoopbackError, NormalizedReply, ReceivedCall, Route

__all__ = ["FakeParrot", "ROUTES"]


class FakeParrot(FakeService):
    """Fake of `POST /parrot/squawk`."""

    prompt_keys: ClassVar[tuple[str, ...]] = ("rules", "squawks", "tricks")

    def build_reply(self, reply: NormalizedReply, call: ReceivedCall) -> dict[str, Any]:
        reply.check_blocks("Parrot", {"text"})
        return {"squawk": reply.text, "crackers": reply.usage.output_tokens}

    def build_events(self, reply: NormalizedReply, call: ReceivedCall) -> Iterator[dict[str, Any]]:
        reply.check_blocks("Parrot", {"text"})
        yield from ({"squawk": piece} for piece in reply.split(reply.text))
        yield {"crackers": reply.usage.output_tokens}

    def build_error(self, error: LoopbackError) -> dict[str, Any]:
        return {"screech": error.message}

    def find_fault(self, call: ReceivedCall) -> str | None:
        return None if call.body.get("squawks") else "The parrot has heard nothing."

    def is_streamed(self, verb: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> bool:
        return headers.get("x-parrot") == "chatty"

    def count(self, verb: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
        return {"crackers": self.count_prompt(body)} if verb == "count" else None


ROUTES = (Route("parrot", r"/parrot/squawk(?:/(?P<verb>count))?", FakeParrot(), base="/parrot"),)
