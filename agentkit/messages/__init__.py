"""Messages: `Msg`, the blocks of its content, media sources and token usage.

Input: values from the application, or stored JSON. Output: immutable, validated messages, or JSON values.

Read `message` first, then `blocks`. `serialization` converts conversations to JSON and back. `features` computes
properties of a message, such as the presence of images.
"""

from __future__ import annotations

__all__: list[str] = []
