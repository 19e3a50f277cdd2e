"""Tests of the provider packages, and builders of their conversations."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from agentkit import (
    Base64Source,
    Block,
    ImageBlock,
    Msg,
    TextBlock,
    Tool,
    ToolResultBlock,
    ToolUseBlock,
    available_providers,
    load_provider,
)
from agentkit.provider_kit import FormatterBase
from tests.wire.rules import check_order
from tests.wire.shapes import check_request

PROVIDERS: Final = (
    "anthropic",
    "dashscope",
    "dashscope-compatible",
    "deepseek",
    "gemini",
    "ollama",
    "openai",
    "openai-responses",
    "vllm",
)
MESSAGE_PROVIDERS: Final = tuple(
    name for name in available_providers() if not load_provider(name).layout.is_rendered
)
"""All installed providers whose requests have messages. The others take the text of a prompt."""
PREAMBLE: Final = (
    "# Conversation History\nThe content between <history></history> tags contains your conversation history\n"
)


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


PNG: Final = _encoded(b"\x89PNG\r\n\x1a\n first")
OTHER_PNG: Final = _encoded(b"\x89PNG\r\n\x1a\n other")
JPEG: Final = _encoded(b"\xff\xd8\xff\xe0 third")
UNKNOWN: Final = _encoded(b"in a format of its own")
WAV: Final = _encoded(b"RIFF\x04\0\0\0WAVE")
MP3: Final = _encoded(b"ID3\x04\0\0\0\0\0\0")
MP4: Final = _encoded(b"\0\0\0\x18ftypmp42")
PDF: Final = _encoded(b"%PDF-1.7 one page")
TEXT: Final = _encoded(b"Milk, bread.")
PNG_URL: Final = f"data:image/png;base64,{PNG}"


def _content(content: Sequence[str | Block]) -> str | tuple[Block, ...]:
    if len(content) == 1 and isinstance(content[0], str):
        return content[0]
    return tuple(TextBlock(item) if isinstance(item, str) else item for item in content)


def user(*content: str | Block, name: str = "Bob") -> Msg:
    """Returns a message of a user."""
    return Msg(name, _content(content), "user")


def assistant(*content: str | Block, name: str = "Friday") -> Msg:
    """Returns a message of an agent."""
    return Msg(name, _content(content), "assistant")


def system(*content: str | Block) -> Msg:
    """Returns a system prompt, or a tool result as AgentScope stores it."""
    return Msg("system", _content(content), "system")


def call(call_id: str, name: str = "look", **arguments: Any) -> ToolUseBlock:
    """Returns a tool call."""
    return ToolUseBlock(call_id, name, arguments)


def result(
    call_id: str, *output: str | TextBlock | ImageBlock, name: str = "look", is_error: bool = False
) -> ToolResultBlock:
    """Returns a tool result: one text, or texts and images."""
    return ToolResultBlock(call_id, name, cast("Any", _content(output)), is_error)


def picture(data: str = PNG, media_type: str = "image/png") -> ImageBlock:
    """Returns an image with its data in the message."""
    return ImageBlock(Base64Source(media_type, data))


LOOK: Final = Tool(
    "look",
    "Look at a place.",
    {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
)


def chat(provider: str, model: str | None = None, **options: Any) -> FormatterBase:
    """Returns the chat formatter of a provider."""
    return load_provider(provider).chat_formatter(model, **options)


def multi_agent(provider: str, model: str | None = None, **options: Any) -> FormatterBase:
    """Returns the multi-agent formatter of a provider."""
    return load_provider(provider).multi_agent_formatter(model, **options)


def turns(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the turns of a request of any API."""
    return cast(
        "list[dict[str, Any]]", next(request[key] for key in ("messages", "contents", "input") if key in request)
    )


def get_texts(turn: Mapping[str, Any]) -> list[str]:
    """Returns the texts of a turn of any API."""
    content = next((turn[key] for key in ("content", "parts", "output") if key in turn), None)
    if isinstance(content, str):
        return [content]
    parts = cast("list[dict[str, Any]]", content or [])
    return [part["text"] for part in parts if isinstance(part.get("text"), str)]


def get_text(turn: Mapping[str, Any]) -> str:
    """Returns the joined texts of a turn."""
    return "".join(get_texts(turn))


def problems(provider: str, request: Mapping[str, Any]) -> list[str]:
    """Returns the problems that the independent checkers report for a request."""
    return check_request(provider, request) + check_order(provider, request)
