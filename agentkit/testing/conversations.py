"""Conversations for the provider checks. Each text contains a unique word, so that a check can find the text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from agentkit.messages.blocks import (
    AudioBlock,
    DocumentBlock,
    ImageBlock,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    VideoBlock,
)
from agentkit.messages.message import Msg

__all__ = ["CONVERSATIONS"]

_PNG: Final = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d49444154789c636064f8ff1f0003020180e4b1a2bd0000000049454e44ae426082"
)
_PICTURE: Final = ImageBlock.from_bytes(_PNG, "image/png")
_OTHER_PICTURE: Final = ImageBlock.from_bytes(_PNG + b"other", "image/png")
_LONG: Final = f"markLong{' word' * 6_000}"


def _call(id: str, mark: str, name: str = "look") -> ToolUseBlock:
    return ToolUseBlock(id, name, {"place": mark})


def _results(*results: ToolResultBlock) -> Msg:
    return Msg("system", results, "system")


_SYSTEM: Final = Msg("system", "markSystem be brief", "system")
_ASKED: Final = Msg("Ann", "markAsked where?", "user")

CONVERSATIONS: Final[Mapping[str, list[Msg]]] = {
    "system prompt and three turns": [
        _SYSTEM,
        _ASKED,
        Msg("Friday", "markAnswer near you", "assistant"),
        Msg("Ann", "markThanks", "user"),
    ],
    "many speakers": [
        _SYSTEM,
        _ASKED,
        Msg("Bob", "markBob\nsays: this", "user"),
        Msg("Eve: Ann", "markEve", "user"),
        Msg("Friday", "markFriday", "assistant"),
        Msg("Bob", "markLast", "user"),
    ],
    "parallel tool calls": [
        _ASKED,
        Msg("Friday", [TextBlock("markLooking"), _call("c1", "callOne"), _call("c2", "callTwo")], "assistant"),
        _results(ToolResultBlock("c1", "look", "resultOne"), ToolResultBlock("c2", "look", "resultTwo")),
        Msg("Friday", "markFound", "assistant"),
        Msg("Ann", "markNext", "user"),
    ],
    "unpaired calls and results": [
        _ASKED,
        _results(ToolResultBlock("c9", "look", "resultOfNothing")),
        Msg("Friday", [_call("c1", "callOne")], "assistant"),
        Msg("Ann", "markImpatient", "user"),
        _results(ToolResultBlock("c1", "look", "resultOne")),
        Msg("Friday", [_call("c2", "callTwo")], "assistant"),
        Msg("Ann", "markLast", "user"),
    ],
    "call id and tool name of another API": [
        _ASKED,
        Msg("Friday", [_call(f"functions.look:0 {'x' * 80}", "callOne", "look.at / it")], "assistant"),
        _results(ToolResultBlock(f"functions.look:0 {'x' * 80}", "look.at / it", "resultOne")),
        Msg("Ann", "markLast", "user"),
    ],
    "media": [
        Msg("Ann", [TextBlock("markBefore"), _PICTURE, TextBlock("markAfter")], "user"),
        Msg("Friday", [_call("c1", "callOne")], "assistant"),
        _results(ToolResultBlock("c1", "look", [TextBlock("resultOne"), _OTHER_PICTURE])),
        Msg("Ann", "markLast", "user"),
    ],
    "all kinds of media": [
        Msg(
            "Ann",
            [
                TextBlock("markBefore"),
                ImageBlock.from_url("https://example.com/picture.png"),
                AudioBlock.from_bytes(b"RIFF\x24\x00\x00\x00WAVEfmt sound", "audio/wav"),
                VideoBlock.from_bytes(b"\x00\x00\x00\x18ftypmp42film", "video/mp4"),
                DocumentBlock.from_bytes(b"%PDF-1.4 paper", "application/pdf"),
                DocumentBlock.from_bytes(b"markDocument of text", "text/plain"),
                TextBlock("markAfter"),
            ],
            "user",
        ),
    ],
    "special characters and a long text": [
        Msg("Ann", 'markQuoted "so" \\ <b>&amp;</b> {{x}} %s \u2028 \U0001f600 Köln', "user"),
        Msg("Friday", _LONG, "assistant"),
        Msg("Ann", "markLast", "user"),
    ],
    "system message after the first turn": [
        _SYSTEM,
        _ASKED,
        Msg("Friday", "markAnswer", "assistant"),
        Msg("system", "markLater be kind", "system"),
        Msg("Ann", "markLast", "user"),
    ],
    "thinking from another provider": [
        _ASKED,
        Msg(
            "Friday",
            [ThinkingBlock("hm", OpaqueState("elsewhere", signature="xyz")), TextBlock("markSaid")],
            "assistant",
        ),
        Msg("Ann", "markLast", "user"),
    ],
    "blank messages": [_ASKED, Msg("Friday", "", "assistant"), Msg("Ann", " \n", "user")],
    "assistant messages at both ends": [
        Msg("Friday", "markFirst", "assistant"),
        _ASKED,
        Msg("Friday", "markLast", "assistant"),
    ],
}
"""Conversations for the provider checks. Each key describes the special feature of its conversation.

Each text contains a unique word that begins with `mark`. The unique words in the arguments of tool calls begin
with `call`, and those in tool results begin with `result`.
"""
