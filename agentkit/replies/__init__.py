"""Converts a provider's stream or complete reply to agentkit's events and a `Msg`.

The input is the raw bytes of a stream, native events, or a complete native reply. The output consists of the
events that the module `events` defines, followed by one message. A stream results in the same message as the
complete reply, however the bytes of the stream are split. The package performs no I/O and imports no SDK.

Read `events` first, then `parser` (the base class of all parsers) and `builder` (the assembly of the message).
"""

from __future__ import annotations

__all__: list[str] = []
