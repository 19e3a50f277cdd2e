"""Capabilities of Ollama /api/chat."""

from __future__ import annotations

from agentkit.provider_kit import (
    Capabilities,
    MediaRule,
    media_types,
)

__all__ = ["CHAT"]

# The wire names no media type, the server knows data by its first bytes, and the SDK opens a string that
# is the path of a file (ollama-python): only base64 text that begins like a picture or a sound goes out.
_PICTURE = ("iVBORw0KGgo", "/9j/", "R0lGODlh", "R0lGODdh", "UklGR")

_SOUND = ("UklGR", "SUQz")

CHAT = Capabilities(
    name="Ollama",
    issuer="ollama",
    thinking="text",
    image=MediaRule(types=media_types("image", "png jpeg gif webp"), magic=_PICTURE),
    audio=MediaRule(types=media_types("audio", "wav mpeg"), magic=_SOUND),
    results="each",
    call_order=True,  # the SDK loses ids: results are matched by order (ollama-python)
    text_joining="string",
    late_system="line",  # templates may drop a second system message without a word (ollama: api/types.go)
    one_system=True,
    tool_choices=frozenset({"auto"}),  # there is no tool_choice: "none" means no tools
)
