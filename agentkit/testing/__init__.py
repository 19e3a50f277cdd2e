"""Tools for tests: a loopback server for real SDK clients, a scripted model, and conformance checks for providers.

    LoopbackServer(replies, agent=, validate=, port=)    context manager: .url(provider), .requests, .play(…)
    Reply(content, usage=, finish_reason=, delay=, …)    reply with delays and simulated connection faults
    LoopbackError(status, message, code=, retry_after=)  error in the provider's wire format
    RecordedRequest                                      request that the server received
    ScriptedModel(replies, provider=)                    ChatModel that plays replies: .calls, .play(…)
    check_provider(provider, samples=, model=)           checks a provider; raises ConformanceError
    demo_reply(provider, body)                           rule-based model, for agents

A reply is a `Msg` or a text, a native reply as a dict or bytes, a `Reply`, or a `LoopbackError`. It may also be a
function that takes the decoded request and returns one of these. `python -m agentkit.testing` serves `demo_reply`
on a local port.

A provider adds its API to the server with a module that has subclasses of `FakeService`. The constant `ROUTES` of
the module assigns paths to the subclasses as a tuple of `Route`. `Provider.testing` is the name of the module.
Read `agentkit.testing.service` first.
"""

from __future__ import annotations

from agentkit.testing.demo import demo_reply
from agentkit.testing.provider_checks import ConformanceError, check_provider
from agentkit.testing.recorded_request import RecordedRequest
from agentkit.testing.replies import (
    LoopbackError,
    NormalizedReply,
    PlayableReply,
    ReceivedCall,
    Reply,
    get_citations,
    hash_text,
    is_refusal,
    unsupported_block,
)
from agentkit.testing.routes import Route
from agentkit.testing.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from agentkit.testing.server import LoopbackServer
from agentkit.testing.service import FakeService, encode_json, encode_named_event

__all__ = [
    "ConformanceError",
    "FakeService",
    "LoopbackError",
    "LoopbackServer",
    "NormalizedReply",
    "PlayableReply",
    "ReceivedCall",
    "RecordedRequest",
    "Reply",
    "Route",
    "ScriptedCall",
    "ScriptedModel",
    "ScriptedReply",
    "check_provider",
    "demo_reply",
    "encode_json",
    "encode_named_event",
    "get_citations",
    "hash_text",
    "is_refusal",
    "unsupported_block",
]
