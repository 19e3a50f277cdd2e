"""Logs of one conversation with a tool call, an image and thinking, in the native format of each provider."""

from __future__ import annotations

from typing import Any, Final

from tests.providers import PNG, PNG_URL

__all__ = ["LOGS", "TEXTS"]

TEXTS: Final = ("You are Friday.", "What is here?", "I look.", "A black cat.", "There is a cat.")
"""Texts of each log, in order. Each log also has a call of `look`, an image, and thinking."""

_SYSTEM, _ASKED, _CALLING, _FOUND, _ANSWER = TEXTS
_THOUGHT: Final = "They want me to look."
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"place": {"type": "string"}},
    "required": ["place"],
}
_FUNCTION: Final[dict[str, Any]] = {"name": "look", "description": "Look at a place.", "parameters": _SCHEMA}
_NESTED: Final = [{"type": "function", "function": _FUNCTION}]
_ARGUMENTS: Final = '{"place": "here"}'
_CALL: Final = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": _ARGUMENTS}}
_SIGNATURE: Final = "RXVzX3NpZ25hdHVyZQ=="


def _chat(**assistant: Any) -> dict[str, Any]:
    """Returns a log of Chat Completions or of a compatible API."""
    asked = [{"type": "text", "text": _ASKED}, {"type": "image_url", "image_url": {"url": PNG_URL}}]
    return {
        "model": "m",
        "messages": [
            {"role": "system", "content": _SYSTEM},
            {"role": "user", "content": asked},
            {"role": "assistant", "content": _CALLING, "tool_calls": [_CALL], **assistant},
            {"role": "tool", "tool_call_id": "call_1", "content": _FOUND},
            {"role": "assistant", "content": _ANSWER},
            {"role": "user", "content": "Thanks."},
        ],
        "tools": _NESTED,
        "tool_choice": "auto",
    }


_RESPONSES: Final[dict[str, Any]] = {
    "model": "m",
    "instructions": _SYSTEM,
    "input": [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": _ASKED},
                {"type": "input_image", "image_url": PNG_URL, "detail": "auto"},
            ],
        },
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": _THOUGHT}],
            "encrypted_content": "gAAAAB",
        },
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": _CALLING, "annotations": []}],
        },
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": _ARGUMENTS},
        {"type": "function_call_output", "call_id": "call_1", "output": _FOUND},
        {"role": "assistant", "content": _ANSWER},
        {"role": "user", "content": "Thanks."},
    ],
    "tools": [{"type": "function", **_FUNCTION, "strict": False}],
}

_ANTHROPIC: Final[dict[str, Any]] = {
    "model": "m",
    "max_tokens": 1024,
    "system": _SYSTEM,
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": _ASKED},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": _THOUGHT, "signature": _SIGNATURE},
                {"type": "text", "text": _CALLING},
                {"type": "tool_use", "id": "call_1", "name": "look", "input": {"place": "here"}},
            ],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": _FOUND}]},
        {"role": "assistant", "content": _ANSWER},
        {"role": "user", "content": "Thanks."},
    ],
    "tools": [{"name": "look", "description": "Look at a place.", "input_schema": _SCHEMA}],
    "tool_choice": {"type": "auto"},
}

_GEMINI: Final[dict[str, Any]] = {
    "systemInstruction": {"parts": [{"text": _SYSTEM}]},
    "contents": [
        {"role": "user", "parts": [{"text": _ASKED}, {"inlineData": {"mimeType": "image/png", "data": PNG}}]},
        {
            "role": "model",
            "parts": [
                {"text": _THOUGHT, "thought": True},
                {"text": _CALLING},
                {
                    "functionCall": {"id": "call_1", "name": "look", "args": {"place": "here"}},
                    "thoughtSignature": _SIGNATURE,
                },
            ],
        },
        {
            "role": "user",
            "parts": [{"functionResponse": {"id": "call_1", "name": "look", "response": {"output": _FOUND}}}],
        },
        {"role": "model", "parts": [{"text": _ANSWER}]},
        {"role": "user", "parts": [{"text": "Thanks."}]},
    ],
    "tools": [{"functionDeclarations": [{"name": "look", "parametersJsonSchema": _SCHEMA}]}],
}

_OLLAMA: Final[dict[str, Any]] = {
    "model": "m",
    "messages": [
        {"role": "system", "content": _SYSTEM},
        {"role": "user", "content": _ASKED, "images": [PNG]},
        {
            "role": "assistant",
            "content": _CALLING,
            "thinking": _THOUGHT,
            "tool_calls": [{"function": {"name": "look", "arguments": {"place": "here"}}}],
        },
        {"role": "tool", "content": _FOUND, "tool_name": "look"},
        {"role": "assistant", "content": _ANSWER},
        {"role": "user", "content": "Thanks."},
    ],
    "tools": _NESTED,
}

_DASHSCOPE: Final[dict[str, Any]] = {
    "model": "m",
    "input": {
        "messages": [
            {"role": "system", "content": [{"text": _SYSTEM}]},
            {"role": "user", "content": [{"text": _ASKED}, {"image": PNG_URL}]},
            {
                "role": "assistant",
                "content": [{"text": _CALLING}],
                "reasoning_content": _THOUGHT,
                "tool_calls": [_CALL],
            },
            {"role": "tool", "content": _FOUND, "tool_call_id": "call_1"},
            {"role": "assistant", "content": [{"text": _ANSWER}]},
            {"role": "user", "content": [{"text": "Thanks."}]},
        ]
    },
    "parameters": {"result_format": "message", "tools": _NESTED, "tool_choice": "auto"},
}

_AGENTSCOPE: Final[list[dict[str, Any]]] = [
    {"name": "system", "role": "system", "content": _SYSTEM},
    {
        "name": "Bob",
        "role": "user",
        "content": [
            {"type": "text", "text": _ASKED},
            {"type": "image", "source": {"type": "url", "url": PNG_URL}},
        ],
    },
    {
        "name": "Friday",
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": _THOUGHT},
            {"type": "text", "text": _CALLING},
            {"type": "tool_use", "id": "call_1", "name": "look", "input": {"place": "here"}},
        ],
    },
    {
        "name": "system",
        "role": "system",
        "content": [{"type": "tool_result", "id": "call_1", "name": "look", "output": _FOUND}],
    },
    {"name": "Friday", "role": "assistant", "content": _ANSWER},
    {"name": "Bob", "role": "user", "content": "Thanks."},
]

_LANGCHAIN: Final[list[dict[str, Any]]] = [
    {"type": "system", "data": {"content": _SYSTEM}},
    {
        "type": "human",
        "data": {
            "content": [
                {"type": "text", "text": _ASKED},
                {"type": "image", "base64": PNG, "mime_type": "image/png"},
            ]
        },
    },
    {
        "type": "ai",
        "data": {
            "content": [{"type": "reasoning", "reasoning": _THOUGHT}, {"type": "text", "text": _CALLING}],
            "tool_calls": [{"name": "look", "args": {"place": "here"}, "id": "call_1", "type": "tool_call"}],
        },
    },
    {"type": "tool", "data": {"content": _FOUND, "tool_call_id": "call_1", "status": "success"}},
    {"type": "ai", "data": {"content": _ANSWER}},
    {"type": "human", "data": {"content": "Thanks."}},
]

LOGS: Final[dict[str, Any]] = {
    "anthropic": _ANTHROPIC,
    "dashscope": _DASHSCOPE,
    "dashscope-compatible": _chat(reasoning_content=_THOUGHT),
    "deepseek": _chat(reasoning_content=_THOUGHT),
    "gemini": _GEMINI,
    "ollama": _OLLAMA,
    "openai": _chat(),
    "openai-responses": _RESPONSES,
    "vllm": _chat(reasoning=_THOUGHT),
    "agentscope": _AGENTSCOPE,
    "langchain": _LANGCHAIN,
}
