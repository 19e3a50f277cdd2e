"""Model calls: a formatter builds the request, the provider's SDK client sends it, and a parser parses the reply.

The arguments of a model call are messages or a `Plan`, and options. The result is a `Msg`, or a `ModelStream` of
events. A failed call raises a `ModelError`, whose class depends on the provider's `ErrorPatterns`. The SDK handles
retries, credentials and transport.

Read `chat_model` first, then:

- `call`: one request and its reply
- `stream`: the events of a streamed reply
- `context_length_retry`: the second attempt with a shorter prompt
- `endpoint`: the methods that a provider implements to send requests
- `registry`: the functions that load providers
"""

from __future__ import annotations

__all__: list[str] = []
