"""Tools for tests: a loopback server for real SDK clients, a scripted model, and conformance checks for providers.

For applications:

- `LoopbackServer` is a local HTTP server that imitates the APIs of all installed providers. A reply of the server
  is a `PlayableReply`: a message, a text, a native reply, a `Reply` with delays and faults, a `LoopbackError`, or
  a function that returns a `PlayableReply`. The server stores each request as a `RecordedRequest`.
- `ScriptedModel` is a `ChatModel` that returns prepared replies (`ScriptedReply`) without HTTP. The model stores
  each call as a `ScriptedCall`.
- `demo_reply` creates replies by simple rules, and calls tools. `python -m agentkit.testing` serves such replies
  on a local port.

For authors of providers:

- `check_provider` checks a provider and raises a `ConformanceError` that lists all faults. A `Sample` is a native
  reply for the checks of the parser.
- `FakeService` is the base class of a fake API. Its methods convert a `NormalizedReply` to the wire format of the
  API. A `ReceivedCall` is the model call to reply to. The module that `Provider.testing` names has a tuple
  `ROUTES`. Each `Route` in this tuple assigns a URL path to a fake service.
- `encode_json`, `get_citations`, `hash_text`, `is_refusal` and `unsupported_block` help to
  write fake services.
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
