"""Replies: from the native events or the complete native reply of a provider to events and a `Msg`.

Input: raw bytes of a stream, native events, or a complete native reply. Output: the events of `events`, and at the
end one message. A stream gives the same message as the complete reply, however its bytes are split. The package
does no I/O and imports no SDK.

Read `events` first, then `parser` (the base class of the parsers of providers) and `builder`, which assembles the
message.
"""

from __future__ import annotations

__all__: list[str] = []
