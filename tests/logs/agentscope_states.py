"""States that AgentScope 1.0.21 and 2.0.11 wrote, with each of their block types. Ids and times are replaced."""

from typing import Any, Final

__all__ = ["AGENT", "SESSION"]

SESSION: Final[dict[str, Any]] = {
    "agent": {
        "memory": {
            "_compressed_summary": "<summary>Before.</summary>",
            "content": [
                [
                    {
                        "id": "id-1",
                        "name": "system",
                        "role": "system",
                        "content": "You are Friday.",
                        "metadata": {},
                        "timestamp": "2026-11-22 10:00:00.000",
                    },
                    [],
                ],
                [
                    {
                        "id": "id-2",
                        "name": "Bob",
                        "role": "user",
                        "content": [
                            {"type": "text", "text": "What is in this?"},
                            {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
                            {
                                "type": "image",
                                "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="},
                            },
                            {
                                "type": "audio",
                                "source": {"type": "base64", "media_type": "audio/wav", "data": "UklGRg=="},
                            },
                            {"type": "video", "source": {"type": "url", "url": "https://example.org/v.mp4"}},
                        ],
                        "metadata": {"k": 1},
                        "timestamp": "2026-11-22 10:00:00.000",
                    },
                    [],
                ],
                [
                    {
                        "id": "id-3",
                        "name": "Friday",
                        "role": "assistant",
                        "content": [
                            {"type": "thinking", "thinking": "hm"},
                            {"type": "text", "text": "I look."},
                            {
                                "type": "tool_use",
                                "id": "c1",
                                "name": "look",
                                "input": {"place": "sea"},
                                "raw_input": '{"place": "sea"}',
                            },
                            {"type": "tool_use", "id": "c2", "name": "look", "input": {}},
                        ],
                        "metadata": {},
                        "timestamp": "2026-11-22 10:00:00.000",
                    },
                    ["hint"],
                ],
                [
                    {
                        "id": "id-4",
                        "name": "system",
                        "role": "system",
                        "content": [
                            {
                                "type": "tool_result",
                                "id": "c1",
                                "name": "look",
                                "output": [
                                    {"type": "text", "text": "calm"},
                                    {
                                        "type": "image",
                                        "source": {"type": "url", "url": "https://example.org/b.png"},
                                    },
                                ],
                            }
                        ],
                        "metadata": {},
                        "timestamp": "2026-11-22 10:00:00.000",
                    },
                    [],
                ],
                [
                    {
                        "id": "id-5",
                        "name": "system",
                        "role": "system",
                        "content": [
                            {"type": "tool_result", "id": "c2", "name": "look", "output": "Error: no place"}
                        ],
                        "metadata": {},
                        "timestamp": "2026-11-22 10:00:00.000",
                    },
                    [],
                ],
                [
                    {
                        "id": "id-6",
                        "name": "Friday",
                        "role": "assistant",
                        "content": "Calm.",
                        "metadata": {"answer": {"calm": True}},
                        "timestamp": "2026-11-22 10:00:00.000",
                    },
                    [],
                ],
                [
                    {
                        "id": "id-7",
                        "name": "Friday",
                        "role": "assistant",
                        "content": [],
                        "metadata": {},
                        "timestamp": "2026-11-22 10:00:00.000",
                    },
                    [],
                ],
            ],
        },
        "name": "Friday",
        "_sys_prompt": "You are Friday",
    },
    "other": {"x": 1},
}
"""State that `JSONSession` of 1.x saves: an agent with its memory."""

AGENT: Final[dict[str, Any]] = {
    "session_id": "id-8",
    "summary": [
        {
            "type": "text",
            "text": "Before.",
            "id": "id-9",
            "created_at": "2026-11-22T10:00:00.000000",
            "finished_at": None,
        }
    ],
    "context": [
        {
            "name": "system",
            "content": [
                {
                    "type": "text",
                    "text": "You are Friday.",
                    "id": "id-10",
                    "created_at": "2026-11-22T10:00:00.000000",
                    "finished_at": None,
                }
            ],
            "role": "system",
            "id": "id-11",
            "metadata": {},
            "created_at": "2026-11-22T10:00:00.000000",
            "usage": None,
            "finished_at": None,
            "finished_reason": None,
            "structured_output": None,
            "error": None,
        },
        {
            "name": "Bob",
            "content": [
                {
                    "type": "text",
                    "text": "What is in this?",
                    "id": "id-12",
                    "created_at": "2026-11-22T10:00:00.000000",
                    "finished_at": None,
                },
                {
                    "type": "data",
                    "id": "id-13",
                    "source": {"type": "url", "url": "https://example.org/a.png", "media_type": "image/png"},
                    "name": "a.png",
                    "created_at": "2026-11-22T10:00:00.000000",
                    "finished_at": None,
                },
                {
                    "type": "data",
                    "id": "id-14",
                    "source": {"type": "base64", "data": "iVBORw==", "media_type": "image/png"},
                    "name": None,
                    "created_at": "2026-11-22T10:00:00.000000",
                    "finished_at": None,
                },
                {
                    "type": "data",
                    "id": "id-15",
                    "source": {"type": "base64", "data": "UklGRg==", "media_type": "audio/wav"},
                    "name": None,
                    "created_at": "2026-11-22T10:00:00.000000",
                    "finished_at": None,
                },
                {
                    "type": "data",
                    "id": "id-16",
                    "source": {"type": "url", "url": "https://example.org/v.mp4", "media_type": "video/mp4"},
                    "name": None,
                    "created_at": "2026-11-22T10:00:00.000000",
                    "finished_at": None,
                },
                {
                    "type": "data",
                    "id": "id-17",
                    "source": {"type": "base64", "data": "JVBERg==", "media_type": "application/pdf"},
                    "name": "paper.pdf",
                    "created_at": "2026-11-22T10:00:00.000000",
                    "finished_at": None,
                },
                {
                    "type": "data",
                    "id": "id-18",
                    "source": {"type": "url", "url": "file:///notes/x.txt", "media_type": "text/plain"},
                    "name": None,
                    "created_at": "2026-11-22T10:00:00.000000",
                    "finished_at": None,
                },
            ],
            "role": "user",
            "id": "id-19",
            "metadata": {"k": 1},
            "created_at": "2026-11-22T10:00:00.000000",
            "usage": None,
            "finished_at": None,
            "finished_reason": None,
            "structured_output": None,
            "error": None,
        },
        {
            "name": "Friday",
            "content": [
                {
                    "type": "thinking",
                    "thinking": "hm",
                    "id": "id-20",
                    "created_at": "2026-11-22T10:00:00.000000",
                    "finished_at": None,
                    "signature": "EsQC",
                },
                {
                    "type": "thinking",
                    "thinking": "",
                    "id": "id-21",
                    "created_at": "2026-11-22T10:00:00.000000",
                    "finished_at": None,
                    "redacted_thinking_data": "xyz",
                },
                {
                    "type": "text",
                    "text": "I look.",
                    "id": "id-22",
                    "created_at": "2026-11-22T10:00:00.000000",
                    "finished_at": None,
                },
                {
                    "type": "tool_call",
                    "id": "c1",
                    "name": "look",
                    "input": '{"place": "sea"}',
                    "state": "finished",
                    "suggested_rules": [],
                    "created_at": "2026-11-22T10:00:00.000000",
                    "finished_at": None,
                },
                {
                    "type": "tool_call",
                    "id": "c2",
                    "name": "look",
                    "input": '{"pla',
                    "state": "pending",
                    "suggested_rules": [],
                    "created_at": "2026-11-22T10:00:00.000000",
                    "finished_at": None,
                },
                {
                    "type": "tool_result",
                    "id": "c1",
                    "name": "look",
                    "output": [
                        {
                            "type": "text",
                            "text": "calm",
                            "id": "id-23",
                            "created_at": "2026-11-22T10:00:00.000000",
                            "finished_at": None,
                        },
                        {
                            "type": "data",
                            "id": "id-24",
                            "source": {
                                "type": "url",
                                "url": "https://example.org/b.png",
                                "media_type": "image/png",
                            },
                            "name": None,
                            "created_at": "2026-11-22T10:00:00.000000",
                            "finished_at": None,
                        },
                    ],
                    "state": "success",
                    "metadata": {"took": 3},
                    "created_at": "2026-11-22T10:00:00.000000",
                    "finished_at": None,
                },
                {
                    "type": "tool_result",
                    "id": "c2",
                    "name": "look",
                    "output": "no such place",
                    "state": "error",
                    "metadata": {},
                    "created_at": "2026-11-22T10:00:00.000000",
                    "finished_at": None,
                },
                {
                    "type": "hint",
                    "hint": "Answer now.",
                    "id": "id-25",
                    "source": "alice",
                    "created_at": "2026-11-22T10:00:00.000000",
                    "finished_at": "2026-11-22T10:00:00.000000",
                },
                {
                    "type": "hint",
                    "hint": [
                        {
                            "type": "text",
                            "text": "see",
                            "id": "id-26",
                            "created_at": "2026-11-22T10:00:00.000000",
                            "finished_at": None,
                        },
                        {
                            "type": "data",
                            "id": "id-27",
                            "source": {"type": "base64", "data": "iVBORw==", "media_type": "image/png"},
                            "name": None,
                            "created_at": "2026-11-22T10:00:00.000000",
                            "finished_at": None,
                        },
                    ],
                    "id": "id-28",
                    "source": None,
                    "created_at": "2026-11-22T10:00:00.000000",
                    "finished_at": "2026-11-22T10:00:00.000000",
                },
                {
                    "type": "text",
                    "text": "Calm.",
                    "id": "id-29",
                    "created_at": "2026-11-22T10:00:00.000000",
                    "finished_at": None,
                },
            ],
            "role": "assistant",
            "id": "id-30",
            "metadata": {},
            "created_at": "2026-11-22T10:00:00.000000",
            "usage": {
                "input_tokens": 10,
                "output_tokens": 5,
                "cache_input_tokens": 4,
                "cache_creation_input_tokens": 0,
            },
            "finished_at": "2026-11-22T10:00:00.000000",
            "finished_reason": "completed",
            "structured_output": {"calm": True},
            "error": None,
        },
        {
            "name": "Friday",
            "content": [],
            "role": "assistant",
            "id": "id-31",
            "metadata": {},
            "created_at": "2026-11-22T10:00:00.000000",
            "usage": None,
            "finished_at": None,
            "finished_reason": "error",
            "structured_output": None,
            "error": {"type": "unknown", "message": "it broke"},
        },
    ],
    "reply_context": {"reply_id": "id-32", "cur_iter": 0, "structured_schema": None, "structured_output": None},
    "permission_context": {
        "mode": "default",
        "working_directories": {},
        "allow_rules": {},
        "deny_rules": {},
        "ask_rules": {},
    },
    "tool_context": {
        "max_cache_files": 100,
        "max_cache_bytes": 25000.0,
        "read_file_cache": [],
        "activated_groups": [],
    },
    "tasks_context": {"tasks": []},
    "middle_context": {},
}
"""Result of `AgentState.model_dump(mode="json")` of 2.x."""
