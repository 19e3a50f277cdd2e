"""Logs with every feature of each API. No two texts of a log are equal."""

from __future__ import annotations

import base64
from typing import Any, Final

from tests.providers import JPEG, OTHER_PNG, PDF, PNG, PNG_URL, WAV

__all__ = ["RICH_LOGS"]

_ARGUMENTS: Final = '{"place": "argument-1"}'
_SIGNATURE: Final = "RXVzX3NpZ25hdHVyZQ=="
_NOTES: Final = base64.b64encode(b"Words of a note.").decode("ascii")


def _chat(*parts: dict[str, Any], **assistant: Any) -> list[dict[str, Any]]:
    call = {"id": "call_1", "type": "function", "function": {"name": "look_1", "arguments": _ARGUMENTS}}
    return [
        {"role": "system", "content": "Text of the system."},
        {"role": "user", "name": "Bob", "content": [{"type": "text", "text": "Bob asks."}, *parts]},
        {"role": "user", "name": "Zoe_Ann", "content": "Zoe asks."},
        {"role": "assistant", "name": "Friday", "content": "I look.", "tool_calls": [call], **assistant},
        {"role": "tool", "tool_call_id": "call_1", "content": "Result text."},
        {"role": "assistant", "name": "Friday", "content": None, "refusal": "I refuse."},
        {"role": "user", "name": "Bob", "content": "Bob thanks."},
    ]


_PICTURE: Final = {"type": "image_url", "image_url": {"url": "https://x.org/a.png", "detail": "detail-1"}}

_OPENAI: Final = [
    {"role": "developer", "content": "Text of the developer."},
    *_chat(
        {"type": "file", "file": {"filename": "title-1.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}},
        {"type": "file", "file": {"file_id": "file-id-1"}},
        _PICTURE,
    ),
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_2", "type": "custom", "custom": {"name": "sh_1", "input": "ls-1"}}],
    },
    {"role": "tool", "tool_call_id": "call_2", "content": "Result of ls."},
    {"role": "user", "content": "And?"},
]

_RESPONSES: Final[dict[str, Any]] = {
    "instructions": "Text of the system.",
    "input": [
        {"role": "developer", "content": "Text of the developer."},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Bob asks."},
                {"type": "input_image", "image_url": PNG_URL, "detail": "detail-1"},
                {
                    "type": "input_file",
                    "filename": "title-1.pdf",
                    "file_data": f"data:application/pdf;base64,{PDF}",
                },
                {"type": "input_file", "file_url": "https://x.org/b.pdf", "detail": "detail-2"},
                {"type": "input_file", "file_id": "file-id-1"},
            ],
        },
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "A thought."}],
            "encrypted_content": "gAAAAB",
        },
        {
            "type": "message",
            "role": "assistant",
            "phase": "phase-1",
            "content": [
                {
                    "type": "output_text",
                    "text": "I look.",
                    "annotations": [{"type": "url_citation", "url": "https://x.org/cited", "title": "cited-1"}],
                },
                {"type": "refusal", "refusal": "I refuse."},
            ],
        },
        {
            "type": "function_call",
            "call_id": "call_1",
            "name": "look_1",
            "namespace": "namespace-1",
            "arguments": _ARGUMENTS,
        },
        {
            "type": "function_call_output",
            "call_id": "call_1",
            "output": [
                {"type": "input_text", "text": "Result text."},
                {"type": "input_image", "image_url": "https://x.org/c.png", "detail": "detail-3"},
            ],
        },
        {"type": "custom_tool_call", "call_id": "call_2", "name": "sh_1", "input": "ls-1"},
        {"type": "custom_tool_call_output", "call_id": "call_2", "output": "Result of ls."},
        {"type": "web_search_call", "id": "ws_1", "action": {"type": "search", "query": "query-1"}},
        {"role": "assistant", "content": "I found it."},
        {"role": "user", "content": "And?"},
    ],
}

_CITATION: Final = {
    "type": "char_location",
    "cited_text": "cited-1",
    "document_index": 0,
    "document_title": "cited-title-1",
    "start_char_index": 0,
    "end_char_index": 4,
}

_ANTHROPIC: Final[dict[str, Any]] = {
    "system": [{"type": "text", "text": "Text of the system."}],
    "messages": [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "Bob asks."},
                {
                    "type": "image",
                    "source": {"type": "base64", "media_type": "image/png", "data": PNG},
                    "transformations": {"oversized": "transformed-1"},
                },
                {"type": "image", "source": {"type": "url", "url": "https://x.org/a.png"}},
                {"type": "image", "source": {"type": "file", "file_id": "file-id-1"}},
                {
                    "type": "document",
                    "source": {"type": "base64", "media_type": "application/pdf", "data": PDF},
                    "title": "title-1",
                    "context": "context-1",
                    "citations": {"enabled": True},
                },
                {
                    "type": "document",
                    "source": {"type": "text", "media_type": "text/plain", "data": "Words of a text."},
                    "title": "title-2",
                },
                {
                    "type": "document",
                    "source": {"type": "url", "url": "https://x.org/b.pdf"},
                    "title": "title-3",
                },
                {
                    "type": "document",
                    "source": {"type": "content", "content": [{"type": "text", "text": "Words of a part."}]},
                    "title": "title-4",
                },
                {
                    "type": "search_result",
                    "source": "https://x.org/found",
                    "title": "found-1",
                    "content": [{"type": "text", "text": "Found words."}],
                    "citations": {"enabled": True},
                },
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "A thought.", "signature": _SIGNATURE},
                {"type": "redacted_thinking", "data": "redacted-1"},
                {"type": "text", "text": "I look.", "citations": [_CITATION]},
                {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "query-1"}},
                {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []},
                {
                    "type": "tool_use",
                    "id": "call_1",
                    "name": "look_1",
                    "input": {"place": "argument-1"},
                    "toolset_name": "toolset-1",
                },
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "call_1",
                    "toolset_name": "toolset-1",
                    "content": [
                        {"type": "text", "text": "Result text."},
                        {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": JPEG}},
                        {
                            "type": "document",
                            "source": {"type": "text", "media_type": "text/plain", "data": "Words of a result."},
                            "title": "title-5",
                            "context": "context-5",
                        },
                        {
                            "type": "search_result",
                            "source": "https://x.org/found2",
                            "title": "found-2",
                            "content": [{"type": "text", "text": "Found more."}],
                        },
                    ],
                }
            ],
        },
        {"role": "assistant", "content": "There."},
        {"role": "user", "content": "And?"},
    ],
}

_GEMINI: Final[dict[str, Any]] = {
    "systemInstruction": {"parts": [{"text": "Text of the system."}]},
    "contents": [
        {
            "role": "user",
            "parts": [
                {"text": "Bob asks.", "partMetadata": {"kept": "metadata-1"}},
                {
                    "inlineData": {"mimeType": "image/png", "data": PNG, "displayName": "name-1"},
                    "mediaResolution": {"level": "resolution-1"},
                },
                {
                    "fileData": {"mimeType": "video/mp4", "fileUri": "gs://bucket/a.mp4", "displayName": "name-2"},
                    "videoMetadata": {"startOffset": "offset-1"},
                },
                {"inlineData": {"mimeType": "audio/wav", "data": WAV}},
                {"inlineData": {"mimeType": "application/pdf", "data": PDF, "displayName": "title-1.pdf"}},
                {"inlineData": {"mimeType": "text/plain", "data": _NOTES, "displayName": "title-2.txt"}},
            ],
        },
        {
            "role": "model",
            "parts": [
                {"text": "A thought.", "thought": True},
                {"text": "I look.", "thoughtSignature": "c2lnbmVk"},
                {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "ran-1"}},
                {
                    "functionCall": {"id": "call_1", "name": "look_1", "args": {"place": "argument-1"}},
                    "thoughtSignature": _SIGNATURE,
                },
            ],
        },
        {
            "role": "user",
            "parts": [
                {
                    "functionResponse": {
                        "id": "call_1",
                        "name": "look_1",
                        "response": {"found": "Result text."},
                        "scheduling": "WHEN_IDLE",
                        "parts": [
                            {"inlineData": {"mimeType": "image/jpeg", "data": JPEG, "displayName": "name-3"}}
                        ],
                    }
                }
            ],
        },
        {
            "role": "model",
            "parts": [{"text": "There."}, {"inlineData": {"mimeType": "image/png", "data": OTHER_PNG}}],
        },
        {"role": "user", "parts": [{"text": "And?"}]},
    ],
}

_OLLAMA: Final[list[dict[str, Any]]] = [
    {"role": "system", "content": "Text of the system."},
    {"role": "user", "content": "Bob asks.", "images": [PNG]},
    {
        "role": "assistant",
        "content": "I look.",
        "thinking": "A thought.",
        "tool_calls": [{"id": "call_1", "function": {"name": "look_1", "arguments": {"place": "argument-1"}}}],
    },
    {"role": "tool", "content": "Result text.", "tool_name": "look_1", "tool_call_id": "call_1"},
    {"role": "assistant", "content": "There."},
    {"role": "user", "content": "And?"},
]

_DASHSCOPE: Final[list[dict[str, Any]]] = [
    {"role": "system", "content": [{"text": "Text of the system."}]},
    {
        "role": "user",
        "content": [
            {"text": "Bob asks."},
            {"image": PNG_URL, "max_pixels": "pixels-1"},
            {"video": "https://x.org/a.mp4", "fps": "fps-1"},
            {"audio": f"data:audio/wav;base64,{WAV}"},
            {"video": ["https://x.org/1.png", "https://x.org/2.png"]},
        ],
    },
    {
        "role": "assistant",
        "content": [{"text": "I look."}],
        "reasoning_content": "A thought.",
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "look_1", "arguments": _ARGUMENTS}}
        ],
    },
    {"role": "tool", "content": "Result text.", "tool_call_id": "call_1", "name": "look_1"},
    {"role": "assistant", "content": [{"text": "There."}]},
    {"role": "user", "content": [{"text": "And?"}]},
]

RICH_LOGS: Final[dict[str, Any]] = {
    "anthropic": _ANTHROPIC,
    "dashscope": _DASHSCOPE,
    "dashscope-compatible": _chat(
        {"type": "video_url", "video_url": {"url": "https://x.org/a.mp4"}, "fps": "fps-1"},
        _PICTURE,
        reasoning_content="A thought.",
    ),
    "deepseek": _chat(reasoning_content="A thought."),
    "gemini": _GEMINI,
    "ollama": _OLLAMA,
    "openai": _OPENAI,
    "openai-responses": _RESPONSES,
    "vllm": _chat({**_PICTURE, "uuid": "uuid-1"}, reasoning="A thought."),
}
