"""Real parts for tests: a server on this machine that speaks every provider's wire, and checks for a provider.

    LoopbackServer(replies, agent=, validate=, port=)    a context manager: .url(provider), .requests, .play(…)
    Reply(said, usage=, finish_reason=, piece=, delay=,  a reply with all that can be said of it, and how its
          error=, error_after=, cut_after=,              stream goes wrong
          cut_after_bytes=, headers=)
    LoopbackError(status, message, code=, retry_after=)  an error in the wire's own shape
    RecordedRequest                                      a request: provider, path, headers, body, model, streamed,
                                                         refused, disconnected, wait()
    ScriptedModel(replies, provider=)                    a ChatModel that plays replies: .calls, .play(…)
    check_provider(provider, samples=, model=)           what must hold of any provider; raises ConformanceError
    demo_reply(body)                                     a model of one rule, for agents

A reply is a `Msg` or its text, a native dict or bytes, a `Reply`, a `LoopbackError`, or a function of the decoded
request that gives one of them. `python -m agentkit.testing` serves the rule of `demo_reply` on a port.

The room knows wires by name, as it must; the rest of the core does not import it.
"""

from agentkit.testing.demo import demo_reply
from agentkit.testing.provider_checks import ConformanceError, check_provider
from agentkit.testing.replies import LoopbackError, PlayableReply, Reply
from agentkit.testing.scripted import ScriptedCall, ScriptedModel, ScriptedReply
from agentkit.testing.server import LoopbackServer, RecordedRequest

__all__ = [
    "ConformanceError",
    "LoopbackError",
    "LoopbackServer",
    "PlayableReply",
    "RecordedRequest",
    "Reply",
    "ScriptedCall",
    "ScriptedModel",
    "ScriptedReply",
    "check_provider",
    "demo_reply",
]
