"""Messages that langchain-core 1.7.2 wrote, with each of its block types. Generated ids are replaced."""

from typing import Any, Final

__all__ = ["CONSTRUCTORS", "DICTS", "PROVIDERS_OWN", "VERSION_1"]

DICTS: Final[list[Any]] = [
    {
        "type": "system",
        "data": {
            "content": "You are Friday.",
            "additional_kwargs": {},
            "response_metadata": {},
            "type": "system",
            "name": None,
            "id": None,
        },
    },
    {
        "type": "human",
        "data": {
            "content": [
                {"type": "text", "text": "What is in this?", "id": "lc_1"},
                {"type": "image", "id": "lc_2", "url": "https://example.org/a.png"},
                {"type": "image", "id": "lc_3", "base64": "iVBORw==", "mime_type": "image/png"},
                {"type": "audio", "id": "lc_4", "base64": "UklGRg==", "mime_type": "audio/wav"},
                {"type": "video", "id": "lc_5", "url": "https://example.org/v.mp4"},
                {"type": "file", "id": "lc_6", "base64": "JVBERg==", "mime_type": "application/pdf"},
                {
                    "type": "text-plain",
                    "mime_type": "text/plain",
                    "id": "lc_7",
                    "text": "plain words",
                    "title": "notes.txt",
                    "context": "about",
                },
                {"type": "image", "id": "lc_8", "file_id": "file-1"},
                {"type": "image_url", "image_url": {"url": "https://example.org/c.png", "detail": "low"}},
                {"type": "non_standard", "value": {"odd": 1}, "id": "lc_9"},
            ],
            "additional_kwargs": {},
            "response_metadata": {},
            "type": "human",
            "name": "Bob",
            "id": "h1",
        },
    },
    {
        "type": "ai",
        "data": {
            "content": [
                {"type": "reasoning", "id": "rs_1", "reasoning": "hm", "extras": {"encrypted_content": "gAAA"}},
                {
                    "type": "text",
                    "text": "I look.",
                    "id": "lc_10",
                    "annotations": [
                        {
                            "type": "citation",
                            "id": "lc_11",
                            "url": "https://e.org",
                            "title": "E",
                            "start_index": 0,
                            "end_index": 3,
                            "cited_text": "I l",
                        }
                    ],
                },
                {"type": "tool_call", "name": "look", "args": {"place": "sea"}, "id": "c1"},
                {"type": "server_tool_call", "id": "ws_1", "name": "web_search", "args": {"query": "x"}},
                {
                    "type": "server_tool_result",
                    "id": "r",
                    "tool_call_id": "ws_1",
                    "status": "success",
                    "output": [{"url": "u"}],
                },
                {"type": "invalid_tool_call", "id": "c2", "name": "look", "args": '{"pla', "error": "bad json"},
            ],
            "additional_kwargs": {},
            "response_metadata": {
                "output_version": "v1",
                "model_provider": "openai",
                "model_name": "gpt-6",
                "finish_reason": "tool_calls",
            },
            "type": "ai",
            "name": None,
            "id": "a1",
            "tool_calls": [{"name": "look", "args": {"place": "sea"}, "id": "c1", "type": "tool_call"}],
            "invalid_tool_calls": [
                {"type": "invalid_tool_call", "id": "c2", "name": "look", "args": '{"pla', "error": "bad json"}
            ],
            "usage_metadata": {
                "input_tokens": 10,
                "output_tokens": 5,
                "total_tokens": 15,
                "input_token_details": {"cache_read": 4},
                "output_token_details": {"reasoning": 2},
            },
        },
    },
    {
        "type": "tool",
        "data": {
            "content": "calm",
            "additional_kwargs": {},
            "response_metadata": {},
            "type": "tool",
            "name": "look",
            "id": None,
            "tool_call_id": "c1",
            "artifact": {"raw": [1, 2]},
            "status": "success",
        },
    },
    {
        "type": "tool",
        "data": {
            "content": "no such place",
            "additional_kwargs": {},
            "response_metadata": {},
            "type": "tool",
            "name": None,
            "id": None,
            "tool_call_id": "c2",
            "artifact": None,
            "status": "error",
        },
    },
    {
        "type": "tool",
        "data": {
            "content": [
                {"type": "text", "text": "see"},
                {"type": "image", "id": "lc_12", "base64": "iVBORw==", "mime_type": "image/png"},
            ],
            "additional_kwargs": {},
            "response_metadata": {},
            "type": "tool",
            "name": None,
            "id": None,
            "tool_call_id": "c3",
            "artifact": None,
            "status": "success",
        },
    },
    {
        "type": "AIMessageChunk",
        "data": {
            "content": "Cal",
            "additional_kwargs": {},
            "response_metadata": {},
            "type": "AIMessageChunk",
            "name": None,
            "id": None,
            "tool_calls": [{"name": "look", "args": {"place": "sea"}, "id": "c4", "type": "tool_call"}],
            "invalid_tool_calls": [],
            "usage_metadata": None,
            "tool_call_chunks": [
                {"name": "look", "args": '{"place": "sea"}', "id": "c4", "index": 0, "type": "tool_call_chunk"}
            ],
            "chunk_position": "last",
        },
    },
    {
        "type": "chat",
        "data": {
            "content": "I am the moderator.",
            "additional_kwargs": {},
            "response_metadata": {},
            "type": "chat",
            "name": None,
            "id": None,
            "role": "moderator",
        },
    },
    {
        "type": "function",
        "data": {
            "content": "found",
            "additional_kwargs": {},
            "response_metadata": {},
            "type": "function",
            "name": "look",
            "id": None,
        },
    },
    {
        "type": "remove",
        "data": {
            "content": "",
            "additional_kwargs": {},
            "response_metadata": {},
            "type": "remove",
            "name": None,
            "id": "h1",
        },
    },
    {
        "type": "HumanMessageChunk",
        "data": {
            "content": "Thanks.",
            "additional_kwargs": {},
            "response_metadata": {},
            "type": "HumanMessageChunk",
            "name": None,
            "id": None,
        },
    },
    {
        "type": "ai",
        "data": {
            "content": "",
            "additional_kwargs": {"refusal": "I will not."},
            "response_metadata": {},
            "type": "ai",
            "name": None,
            "id": None,
            "tool_calls": [],
            "invalid_tool_calls": [],
            "usage_metadata": None,
        },
    },
]
"""Result of `messages_to_dict`."""

CONSTRUCTORS: Final[list[Any]] = [
    {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "SystemMessage"],
        "kwargs": {"content": "You are Friday.", "type": "system"},
    },
    {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "HumanMessage"],
        "kwargs": {
            "content": [
                {"type": "text", "text": "What is in this?", "id": "lc_1"},
                {"type": "image", "id": "lc_2", "url": "https://example.org/a.png"},
                {"type": "image", "id": "lc_3", "base64": "iVBORw==", "mime_type": "image/png"},
                {"type": "audio", "id": "lc_4", "base64": "UklGRg==", "mime_type": "audio/wav"},
                {"type": "video", "id": "lc_5", "url": "https://example.org/v.mp4"},
                {"type": "file", "id": "lc_6", "base64": "JVBERg==", "mime_type": "application/pdf"},
                {
                    "type": "text-plain",
                    "mime_type": "text/plain",
                    "id": "lc_7",
                    "text": "plain words",
                    "title": "notes.txt",
                    "context": "about",
                },
                {"type": "image", "id": "lc_8", "file_id": "file-1"},
                {"type": "image_url", "image_url": {"url": "https://example.org/c.png", "detail": "low"}},
                {"type": "non_standard", "value": {"odd": 1}, "id": "lc_9"},
            ],
            "type": "human",
            "name": "Bob",
            "id": "h1",
        },
    },
    {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "AIMessage"],
        "kwargs": {
            "content": [
                {"type": "reasoning", "id": "rs_1", "reasoning": "hm", "extras": {"encrypted_content": "gAAA"}},
                {
                    "type": "text",
                    "text": "I look.",
                    "id": "lc_10",
                    "annotations": [
                        {
                            "type": "citation",
                            "id": "lc_11",
                            "url": "https://e.org",
                            "title": "E",
                            "start_index": 0,
                            "end_index": 3,
                            "cited_text": "I l",
                        }
                    ],
                },
                {"type": "tool_call", "name": "look", "args": {"place": "sea"}, "id": "c1"},
                {"type": "server_tool_call", "id": "ws_1", "name": "web_search", "args": {"query": "x"}},
                {
                    "type": "server_tool_result",
                    "id": "r",
                    "tool_call_id": "ws_1",
                    "status": "success",
                    "output": [{"url": "u"}],
                },
                {"type": "invalid_tool_call", "id": "c2", "name": "look", "args": '{"pla', "error": "bad json"},
            ],
            "response_metadata": {
                "output_version": "v1",
                "model_provider": "openai",
                "model_name": "gpt-6",
                "finish_reason": "tool_calls",
            },
            "type": "ai",
            "id": "a1",
            "tool_calls": [{"name": "look", "args": {"place": "sea"}, "id": "c1", "type": "tool_call"}],
            "invalid_tool_calls": [
                {"type": "invalid_tool_call", "id": "c2", "name": "look", "args": '{"pla', "error": "bad json"}
            ],
            "usage_metadata": {
                "input_tokens": 10,
                "output_tokens": 5,
                "total_tokens": 15,
                "input_token_details": {"cache_read": 4},
                "output_token_details": {"reasoning": 2},
            },
        },
    },
    {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "ToolMessage"],
        "kwargs": {
            "content": "calm",
            "type": "tool",
            "name": "look",
            "tool_call_id": "c1",
            "artifact": {"raw": [1, 2]},
            "status": "success",
        },
    },
    {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "ToolMessage"],
        "kwargs": {"content": "no such place", "type": "tool", "tool_call_id": "c2", "status": "error"},
    },
    {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "ToolMessage"],
        "kwargs": {
            "content": [
                {"type": "text", "text": "see"},
                {"type": "image", "id": "lc_12", "base64": "iVBORw==", "mime_type": "image/png"},
            ],
            "type": "tool",
            "tool_call_id": "c3",
            "status": "success",
        },
    },
    {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "AIMessageChunk"],
        "kwargs": {
            "content": "Cal",
            "type": "AIMessageChunk",
            "tool_calls": [{"name": "look", "args": {"place": "sea"}, "id": "c4", "type": "tool_call"}],
            "tool_call_chunks": [
                {"name": "look", "args": '{"place": "sea"}', "id": "c4", "index": 0, "type": "tool_call_chunk"}
            ],
            "chunk_position": "last",
            "invalid_tool_calls": [],
        },
    },
    {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "ChatMessage"],
        "kwargs": {"content": "I am the moderator.", "type": "chat", "role": "moderator"},
    },
    {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "FunctionMessage"],
        "kwargs": {"content": "found", "type": "function", "name": "look"},
    },
    {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "RemoveMessage"],
        "kwargs": {"content": "", "type": "remove", "id": "h1"},
    },
    {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "HumanMessageChunk"],
        "kwargs": {"content": "Thanks.", "type": "HumanMessageChunk"},
    },
    {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "AIMessage"],
        "kwargs": {
            "content": "",
            "additional_kwargs": {"refusal": "I will not."},
            "type": "ai",
            "tool_calls": [],
            "invalid_tool_calls": [],
        },
    },
]
"""Result of `dumpd` for the same messages."""

PROVIDERS_OWN: Final[dict[str, Any]] = {
    "anthropic": {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "AIMessage"],
        "kwargs": {
            "content": [
                {"type": "thinking", "thinking": "t", "signature": "sig"},
                {"type": "redacted_thinking", "data": "xyz"},
                {
                    "type": "text",
                    "text": "So.",
                    "citations": [
                        {
                            "type": "char_location",
                            "cited_text": "a",
                            "document_index": 0,
                            "document_title": None,
                            "start_char_index": 0,
                            "end_char_index": 1,
                        }
                    ],
                },
                {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "q"}},
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "srv_1",
                    "content": [{"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": "e"}],
                },
                {"type": "tool_use", "id": "tu", "name": "look", "input": {"a": 1}},
            ],
            "response_metadata": {"model_provider": "anthropic", "stop_reason": "tool_use"},
            "type": "ai",
            "tool_calls": [{"name": "look", "args": {"a": 1}, "id": "tu", "type": "tool_call"}],
            "invalid_tool_calls": [],
        },
    },
    "openai": {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "AIMessage"],
        "kwargs": {
            "content": [
                {
                    "type": "reasoning",
                    "id": "rs_1",
                    "summary": [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}],
                    "encrypted_content": "gAAA",
                },
                {
                    "type": "web_search_call",
                    "id": "ws_1",
                    "status": "completed",
                    "action": {"type": "search", "query": "q"},
                },
                {
                    "type": "text",
                    "text": "So.",
                    "annotations": [
                        {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
                    ],
                    "id": "msg_1",
                },
                {"type": "function_call", "call_id": "fc", "id": "fc_1", "name": "look", "arguments": '{"a":1}'},
                {"type": "refusal", "refusal": "no"},
            ],
            "response_metadata": {"model_provider": "openai"},
            "type": "ai",
            "tool_calls": [{"name": "look", "args": {"a": 1}, "id": "fc", "type": "tool_call"}],
            "invalid_tool_calls": [],
        },
    },
    "google_genai": {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "AIMessage"],
        "kwargs": {
            "content": [
                {"type": "thinking", "thinking": "t", "signature": "AAEC"},
                {"type": "text", "text": "So."},
                {"type": "executable_code", "executable_code": "print(1)", "language": "PYTHON", "id": "x"},
            ],
            "additional_kwargs": {"__gemini_function_call_thought_signatures__": {"g1": "AAEC"}},
            "response_metadata": {"model_provider": "google_genai"},
            "type": "ai",
            "tool_calls": [{"name": "look", "args": {"a": 1}, "id": "g1", "type": "tool_call"}],
            "invalid_tool_calls": [],
        },
    },
    "bedrock_converse": {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "AIMessage"],
        "kwargs": {
            "content": [
                {"type": "reasoning_content", "reasoning_content": {"text": "t", "signature": "sig"}},
                {"type": "text", "text": "So."},
                {"type": "tool_use", "id": "b1", "name": "look", "input": {"a": 1}},
            ],
            "response_metadata": {"model_provider": "bedrock_converse"},
            "type": "ai",
            "tool_calls": [{"name": "look", "args": {"a": 1}, "id": "b1", "type": "tool_call"}],
            "invalid_tool_calls": [],
        },
    },
}
"""Results of `dumpd` for replies of the providers' packages, by provider."""

VERSION_1: Final[dict[str, Any]] = {
    "anthropic": {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "AIMessage"],
        "kwargs": {
            "content": [
                {"type": "reasoning", "reasoning": "t", "extras": {"signature": "sig"}},
                {"type": "non_standard", "value": {"type": "redacted_thinking", "data": "xyz"}},
                {
                    "type": "text",
                    "text": "So.",
                    "annotations": [
                        {
                            "type": "citation",
                            "cited_text": "a",
                            "title": None,
                            "extras": {"document_index": 0, "start_char_index": 0, "end_char_index": 1},
                        }
                    ],
                },
                {"type": "server_tool_call", "name": "web_search", "args": {"query": "q"}, "id": "srv_1"},
                {
                    "type": "server_tool_result",
                    "tool_call_id": "srv_1",
                    "status": "success",
                    "extras": {"block_type": "web_search_tool_result"},
                    "output": [{"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": "e"}],
                },
                {"type": "tool_call", "name": "look", "args": {"a": 1}, "id": "tu"},
            ],
            "response_metadata": {
                "model_provider": "anthropic",
                "stop_reason": "tool_use",
                "output_version": "v1",
            },
            "type": "ai",
            "tool_calls": [{"name": "look", "args": {"a": 1}, "id": "tu", "type": "tool_call"}],
            "invalid_tool_calls": [],
        },
    },
    "openai": {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "AIMessage"],
        "kwargs": {
            "content": [
                {"type": "reasoning", "id": "rs_1", "reasoning": "one", "encrypted_content": "gAAA"},
                {"type": "reasoning", "id": "rs_1", "reasoning": "two"},
                {
                    "type": "server_tool_call",
                    "name": "web_search",
                    "args": {"type": "search", "query": "q"},
                    "id": "ws_1",
                },
                {"type": "server_tool_result", "tool_call_id": "ws_1", "status": "success"},
                {
                    "type": "text",
                    "text": "So.",
                    "annotations": [
                        {"end_index": 1, "start_index": 0, "title": "t", "type": "citation", "url": "u"}
                    ],
                    "id": "msg_1",
                },
                {"type": "tool_call", "name": "look", "args": {"a": 1}, "id": "fc", "extras": {"item_id": "fc_1"}},
                {"type": "non_standard", "value": {"type": "refusal", "refusal": "no"}},
            ],
            "response_metadata": {"model_provider": "openai", "output_version": "v1"},
            "type": "ai",
            "tool_calls": [{"name": "look", "args": {"a": 1}, "id": "fc", "type": "tool_call"}],
            "invalid_tool_calls": [],
        },
    },
    "google_genai": {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "AIMessage"],
        "kwargs": {
            "content": [
                {"type": "reasoning", "reasoning": "t", "extras": {"signature": "AAEC"}},
                {"type": "text", "text": "So."},
                {
                    "type": "server_tool_call",
                    "name": "code_interpreter",
                    "args": {"code": "print(1)", "language": "PYTHON"},
                    "id": "x",
                },
                {"type": "tool_call", "id": "g1", "name": "look", "args": {"a": 1}},
            ],
            "additional_kwargs": {"__gemini_function_call_thought_signatures__": {"g1": "AAEC"}},
            "response_metadata": {"model_provider": "google_genai", "output_version": "v1"},
            "type": "ai",
            "tool_calls": [{"name": "look", "args": {"a": 1}, "id": "g1", "type": "tool_call"}],
            "invalid_tool_calls": [],
        },
    },
    "bedrock_converse": {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "AIMessage"],
        "kwargs": {
            "content": [
                {"type": "reasoning", "reasoning": "t", "extras": {"signature": "sig"}},
                {"type": "text", "text": "So."},
                {"type": "tool_call", "name": "look", "args": {"a": 1}, "id": "b1"},
            ],
            "response_metadata": {"model_provider": "bedrock_converse", "output_version": "v1"},
            "type": "ai",
            "tool_calls": [{"name": "look", "args": {"a": 1}, "id": "b1", "type": "tool_call"}],
            "invalid_tool_calls": [],
        },
    },
}
"""Results of `dumpd` for the same replies with `output_version="v1"`: `content_blocks` is their content."""
