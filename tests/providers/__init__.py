"""Tests of each provider's wire, and the words in which they say a conversation."""

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
    load_provider,
)
from agentkit.provider_kit import FormatterBase
from tests.wire.rules import check_order
from tests.wire.walker import check_request

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


def _content(said: Sequence[str | Block]) -> str | tuple[Block, ...]:
    if len(said) == 1 and isinstance(said[0], str):
        return said[0]
    return tuple(TextBlock(one) if isinstance(one, str) else one for one in said)


def user(*said: str | Block, name: str = "Bob") -> Msg:
    """What a person says."""
    return Msg(name, _content(said), "user")


def assistant(*said: str | Block, name: str = "Friday") -> Msg:
    """What an agent says."""
    return Msg(name, _content(said), "assistant")


def system(*said: str | Block) -> Msg:
    """A system prompt, or AgentScope's way to store a tool result."""
    return Msg("system", _content(said), "system")


def call(call_id: str, name: str = "look", **arguments: Any) -> ToolUseBlock:
    """A call of a tool."""
    return ToolUseBlock(call_id, name, arguments)


def result(
    call_id: str, *output: str | TextBlock | ImageBlock, name: str = "look", is_error: bool = False
) -> ToolResultBlock:
    """A tool's answer: one text, or texts and pictures."""
    return ToolResultBlock(call_id, name, cast("Any", _content(output)), is_error)


def picture(data: str = PNG, media_type: str = "image/png") -> ImageBlock:
    """A picture held in the message."""
    return ImageBlock(Base64Source(media_type, data))


LOOK: Final = Tool(
    "look",
    "Look at a place.",
    {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]},
)


def chat(provider: str, model: str | None = None, **options: Any) -> FormatterBase:
    """The provider's formatter for a chat."""
    return load_provider(provider).chat_formatter(model, **options)


def multi_agent(provider: str, model: str | None = None, **options: Any) -> FormatterBase:
    """The provider's formatter for many speakers."""
    return load_provider(provider).multi_agent_formatter(model, **options)


def turns(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The list of turns, whatever the wire calls it."""
    return cast(
        "list[dict[str, Any]]", next(request[key] for key in ("messages", "contents", "input") if key in request)
    )


def texts_of(turn: Mapping[str, Any]) -> list[str]:
    """The texts of one turn, on any wire."""
    content = next((turn[key] for key in ("content", "parts", "output") if key in turn), None)
    if isinstance(content, str):
        return [content]
    parts = cast("list[dict[str, Any]]", content or [])
    return [part["text"] for part in parts if isinstance(part.get("text"), str)]


def text_of(turn: Mapping[str, Any]) -> str:
    """The texts of one turn as the model reads them."""
    return "".join(texts_of(turn))


def problems(provider: str, request: Mapping[str, Any]) -> list[str]:
    """Everything that the independent checkers have against a request."""
    return check_request(provider, request) + check_order(provider, request)
