"""Model calls through a formatter, the official SDK client of a provider, and a parser for its replies.

Input: messages, or a `Plan`, and the options of one call. Output: a reply as a `Msg`, a `ModelStream` of its
events, or a `ModelError` whose class depends on the provider's `ErrorPatterns`. The SDK handles retries,
credentials and transport.

Read `chat_model` first, then `call` (one request and its reply), `stream`, `endpoint` (what a provider implements)
and `registry` (how providers are loaded).
"""

from __future__ import annotations

__all__: list[str] = []
