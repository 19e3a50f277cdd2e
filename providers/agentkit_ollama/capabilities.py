"""Capabilities of Ollama /api/chat."""

from __future__ import annotations

from agentkit.provider_kit import (
    Capabilities,
    MediaCapabilities,
    MediaRule,
    ThinkingCapabilities,
    ToolCapabilities,
    TurnCapabilities,
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
    turns=TurnCapabilities(
        text_joining="string",
        late_system="line",  # templates may drop a second system message without a word (ollama: api/types.go)
        one_system=True,
    ),
    tools=ToolCapabilities(
        results="each",
        results_in_order=True,  # the SDK loses ids: results are matched by order (ollama-python)
        choices=frozenset({"auto"}),  # there is no tool_choice: "none" means no tools
    ),
    media=MediaCapabilities(
        image=MediaRule(types=media_types("image", "png jpeg gif webp"), magic=_PICTURE),
        audio=MediaRule(types=media_types("audio", "wav mpeg"), magic=_SOUND),
    ),
    thinking=ThinkingCapabilities(mode="text"),
)
