"""Model calls: a formatter builds the request, the provider's SDK client sends it, and a parser parses the reply.

The arguments of a call are messages or a `Plan`, and options. The result is a `Msg`, or a `ModelStream` of events.
A failed call raises a `ModelError`, whose class depends on the provider's `ErrorPatterns`. The SDK handles
retries, credentials and transport.

Read `chat_model` first, then `call` (one request and its reply), `generation` and `stream` (two ways to read the
reply), `context_length_retry` (the second try with a shorter prompt), `endpoint` (what a provider implements) and
`registry` (how providers are loaded).
"""

from __future__ import annotations

__all__: list[str] = []
