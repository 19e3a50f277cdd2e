"""Converts a provider's stream or complete reply to agentkit's events and a `Msg`.

The input is the raw bytes of a stream, native events, or a complete native reply. The output is the events of the
module `events`, and at the end one message. A stream gives the same message as the complete reply, however the
bytes of the stream are split. The package performs no I/O and imports no SDK.

Read `events` first, then `parser`, which has the base class of all parsers, and `builder`, which assembles the
message.
"""

from __future__ import annotations

__all__: list[str] = []
