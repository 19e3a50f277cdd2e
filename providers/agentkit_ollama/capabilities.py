"""Capabilities of Ollama's `/api/chat`."""

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

# Beginnings of base64 text that can be sent. The server detects the media type from the first bytes. Strings with
# other beginnings are not sent, because the SDK opens a file if a string is the path of the file (ollama-python).
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
"""Keys of Ollama's requests (ollama-python: Message)."""

CHAT = Capabilities(
    name="Ollama",
    issuer="ollama",
    layout=LAYOUT,
    turns=TurnCapabilities(
        text_joining="string",
        late_system="line",  # templates can drop a second system message silently (ollama: api/types.go)
        one_system=True,
    ),
    tools=ToolCapabilities(
        results="each",
        results_in_order=True,  # ollama-python drops call ids, so only the order pairs results with calls
        choices=frozenset({"auto"}),  # the API has no tool_choice; for "none", no tools are sent
    ),
    media=MediaCapabilities(
        image=MediaRule(types=media_types("image", "png jpeg gif webp"), magic=_IMAGE_STARTS),
        audio=MediaRule(types=media_types("audio", "wav mpeg"), magic=_AUDIO_STARTS),
    ),
    thinking=ThinkingCapabilities(mode="text"),
)
