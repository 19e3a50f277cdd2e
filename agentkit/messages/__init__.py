"""Messages: `Msg`, its blocks, media sources and token usage; JSON in and out.

Input: values of the application, or stored JSON. Output: immutable, validated messages, or JSON values. Read
`message` first, then `blocks`. `serialization` dumps and loads conversations. `features` computes the properties
that the pipeline tests.
"""

from __future__ import annotations

__all__: list[str] = []
