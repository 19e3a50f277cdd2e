"""Tools for tests: a loopback server for real SDK clients, a scripted model, and conformance checks for providers.

For applications:

- `LoopbackServer` is a local HTTP server that imitates the APIs of all installed providers. Each prepared reply is
  a `PlayableReply`, such as a message, a string, a `Reply` with delays and faults, or a `LoopbackError`. The
  server stores each request as a `RecordedRequest`.
- `ScriptedModel` is a `ChatModel` that returns prepared replies (`ScriptedReply`) without HTTP. The model stores
  each call as a `ScriptedCall`.
- `demo_reply` creates replies, including tool calls, by simple rules. `python -m agentkit.testing` serves such
  replies on a local port.

For authors of providers:

- `check_provider` checks a provider. If the provider has faults, the function raises a `ConformanceError` that
  lists the faults. A `Sample` for the checks of the parser is a complete reply and its stream, both in the
  provider's wire format.
- `FakeService` is the base class of a fake API. Its methods convert a `NormalizedReply` to the wire format of the
  API. A `ReceivedCall` is the model call that the fake API replies to. The module that `Provider.testing` names
  has a tuple `ROUTES`. Each `Route` in this tuple assigns a URL path to a fake service.
- `encode_json`, `get_citations`, `hash_text`, `is_refusal` and `unsupported_block` are helper functions for fake
  services.
"""

from __future__ import annotations

from agentkit.testing.demo_agent import demo_reply
from agentkit.testing.parser_checks import Sample
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
from agentkit.testing.service import FakeService, encode_json

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
    "Sample",
    "ScriptedCall",
    "ScriptedModel",
    "ScriptedReply",
    "check_provider",
    "demo_reply",
    "encode_json",
    "get_citations",
    "hash_text",
    "is_refusal",
    "unsupported_block",
]
