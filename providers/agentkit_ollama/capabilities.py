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

# Only base64 text that begins with one of these values is sent as an image or as audio. The server detects the
# media type from the first bytes. Any other string could be the path of a file, and ollama-python would open the
# file.
_IMAGE_STARTS = ("iVBORw0KGgo", "/9j/", "R0lGODlh", "R0lGODdh", "UklGR")

_AUDIO_STARTS = ("UklGR", "SUQz")

LAYOUT = WireLayout(
    turns="messages",
    tool_wrapper="function",
    silent=frozenset({"id", "tool_call_id", "index"}),
    media={"images": "image"},
    error_paths=frozenset({"message"}),
    options=OptionLayout(choices=(), outputs=("format",), object_formats=frozenset({"json"})),
)
"""Keys of Ollama's requests (ollama-python: Message)."""

CHAT = Capabilities(
    name="Ollama",
    issuer="ollama",
    # Without an instruction to write JSON, models can reply with white space (Ollama docs, API).
    json_object="stated",
    layout=LAYOUT,
    turns=TurnCapabilities(
        text_joining="string",
        late_system="line",  # chat templates can drop a second system message (Ollama source: api/types.go)
        one_system=True,
    ),
    tools=ToolCapabilities(
        results_in_order=True,  # ollama-python drops call ids, so results must be in the order of their calls
        choices=frozenset({"auto"}),  # the API has no tool_choice; with "none", the request contains no tools
    ),
    media=MediaCapabilities(
        image=MediaRule(types=media_types("image", "png jpeg gif webp"), magic=_IMAGE_STARTS),
        audio=MediaRule(types=media_types("audio", "wav mpeg"), magic=_AUDIO_STARTS),
    ),
    thinking=ThinkingCapabilities(mode="text"),
)
