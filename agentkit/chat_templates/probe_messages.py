"""Messages of the small conversations that test a chat template. Each text is a unique word such as `Userword`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

__all__ = [
    "CALL",
    "CALL_WITH_TEXT",
    "LONG_CALL",
    "LONG_RESULT",
    "REPLY",
    "RESULT",
    "SECOND_RESULT",
    "SYSTEM",
    "THINKING",
    "TOOL",
    "TWO_CALLS",
    "USER",
    "USER_WITH_PARTS",
    "create_message",
    "create_text_part",
    "has_words",
]


def create_message(role: str, content: Any, **others: Any) -> dict[str, Any]:
    """Returns a message in the format of OpenAI Chat Completions."""
    return {"role": role, "content": content, **others}


def create_text_part(text: str) -> dict[str, Any]:
    """Returns a text part of the content of a message."""
    return {"type": "text", "text": text}


def _create_call(id: str, word: str) -> dict[str, Any]:
    return {"type": "function", "id": id, "function": {"name": "probe_tool", "arguments": {"word": word}}}


SYSTEM: Final = create_message("system", "Systemword")
USER: Final = create_message("user", "Userword")
USER_WITH_PARTS: Final = create_message("user", [create_text_part("Userword")])
REPLY: Final = create_message("assistant", "Replyword")
THINKING: Final = {**REPLY, "reasoning_content": "Thinkingword"}
CALL: Final = create_message("assistant", "", tool_calls=[_create_call("abcde1234", "Firstword")])
CALL_WITH_TEXT: Final = {**CALL, "content": "Besideword"}
LONG_CALL: Final = create_message("assistant", "", tool_calls=[_create_call("call_abcdefghijkl", "Firstword")])
TWO_CALLS: Final = create_message(
    "assistant", "", tool_calls=[_create_call("abcde1234", "Firstword"), _create_call("abcde1235", "Secondword")]
)
RESULT: Final = create_message("tool", "Resultword", tool_call_id="abcde1234", name="probe_tool")
SECOND_RESULT: Final = {**RESULT, "tool_call_id": "abcde1235"}
LONG_RESULT: Final = {**RESULT, "tool_call_id": "call_abcdefghijkl"}
TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": "probe_tool",
        "description": "Toolword",
        "parameters": {"type": "object", "properties": {"word": {"type": "string", "description": "A word."}}},
    },
}


def has_words(text: str, words: Sequence[str]) -> bool:
    """Returns True if a text contains the words in the given order."""
    position = 0
    for word in words:
        position = text.find(word, position)
        if position < 0:
            return False
    return True
