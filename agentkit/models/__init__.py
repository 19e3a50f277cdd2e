"""Calls models with a formatter, the provider's official SDK client, and a parser for replies.

A call accepts messages or a `Plan`, and options. It returns the reply as a `Msg`, or as a `ModelStream` of events.
A failed call raises a `ModelError`, whose class depends on the provider's `ErrorPatterns`. The SDK handles
retries, credentials and transport.

Read `chat_model` first, then `call` (one request and its reply), `generation` and `stream` (two ways to read the
reply), `endpoint` (what a provider implements) and `registry` (how providers are loaded).
"""

from __future__ import annotations

__all__: list[str] = []
