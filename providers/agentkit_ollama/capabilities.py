"""Capabilities of Ollama /api/chat."""

from __future__ import annotations

from agentkit.provider_kit import (
    Capabilities,
    MediaCapabilities,
    MediaRule,
    OptionLayout,
    ThinkingCapabilities,
    ToolCapabilities,
    TurnCapabilities,
    WireLayout,
    media_types,
)

__all__ = ["CHAT", "LAYOUT"]

# The API names no media type. The server detects the type from the first bytes, and the SDK opens a string that is
# the path of a file (ollama-python). So only base64 text with these beginnings is sent.
_IMAGE_STARTS = ("iVBORw0KGgo", "/9j/", "R0lGODlh", "R0lGODdh", "UklGR")

_AUDIO_STARTS = ("UklGR", "SUQz")

LAYOUT = WireLayout(
    turns="messages",
    tool_wrapper="function",
    silent=frozenset({"id", "tool_call_id", "index"}),
    media={"images": "image"},
    error_paths=frozenset({"message"}),
    options=OptionLayout(choices=(), outputs=("format",)),
)
"""Layout of a request (ollama-python: Message)."""

CHAT = Capabilities(
    name="Ollama",
    issuer="ollama",
    layout=LAYOUT,
    turns=TurnCapabilities(
        text_joining="string",
        late_system="line",  # templates may drop a second system message silently (ollama: api/types.go)
        one_system=True,
    ),
    tools=ToolCapabilities(
        results="each",
        results_in_order=True,  # the SDK loses ids: results are matched by order (ollama-python)
        choices=frozenset({"auto"}),  # there is no tool_choice: "none" means no tools
    ),
    media=MediaCapabilities(
        image=MediaRule(types=media_types("image", "png jpeg gif webp"), magic=_IMAGE_STARTS),
        audio=MediaRule(types=media_types("audio", "wav mpeg"), magic=_AUDIO_STARTS),
    ),
    thinking=ThinkingCapabilities(mode="text"),
)
