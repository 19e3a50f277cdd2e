"""The checkers of requests, tested with handwritten requests: valid requests pass, invalid requests do not."""

import asyncio
import base64
import copy
import json
import re
from typing import Any, Final, cast

from tests.cases import each_case
from tests.wire.loopback import SDK_CHANGES, get_expected_body, send
from tests.wire.rules import RULES, check_order
from tests.wire.shapes import EXTENSIONS, check_request

PNG: Final = base64.b64encode(b"\x89PNG\r\n\xff\xfe\xfb\xfa").decode()
PDF: Final = base64.b64encode(b"%PDF-1.7").decode()
WAV: Final = base64.b64encode(b"RIFF\xff\xff\xff\xffWAVE").decode()
PNG_URL: Final = f"data:image/png;base64,{PNG}"
SIGNATURE: Final = base64.b64encode(b"skip_thought_signature_validator").decode()
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "limit": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
    "required": ["query", "limit"],
    "additionalProperties": False,
}
FUNCTION: Final[dict[str, Any]] = {"name": "search_web", "description": "Search.", "parameters": SCHEMA}
TOOL: Final[dict[str, Any]] = {"type": "function", "function": FUNCTION}


def _create_call(call_id: str) -> dict[str, Any]:
    function = {"name": "search_web", "arguments": '{"query": "x"}'}
    return {"id": call_id, "type": "function", "function": function}


def _create_chat(*user_parts: dict[str, Any], **assistant: Any) -> list[dict[str, Any]]:
    """Returns a Chat Completions conversation with two parallel calls."""
    content: Any = [{"type": "text", "text": "Alice: look"}, *user_parts] if user_parts else "Alice: look"
    return [
        {"role": "system", "content": "You are Friday."},
        {"role": "user", "content": content},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [_create_call("call_1"), _create_call("call_2")],
            **assistant,
        },
        {"role": "tool", "tool_call_id": "call_2", "content": "two"},
        {"role": "tool", "tool_call_id": "call_1", "content": ""},
        {"role": "assistant", "content": "Done.", **assistant},
        {"role": "user", "content": "Bob: thanks"},
    ]


OPENAI: Final[dict[str, Any]] = {
    "messages": _create_chat(
        {"type": "image_url", "image_url": {"url": PNG_URL, "detail": "low"}},
        {"type": "input_audio", "input_audio": {"data": WAV, "format": "wav"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"}},
    ),
    "tools": [{"type": "function", "function": FUNCTION | {"strict": True}}],
    "tool_choice": {"type": "function", "function": {"name": "search_web"}},
    "response_format": {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True},
    },
}
OPENAI_RESPONSES: Final[dict[str, Any]] = {
    "instructions": "You are Friday.",
    "input": [
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "look"},
                {"type": "input_image", "detail": "auto", "image_url": PNG_URL},
                {
                    "type": "input_file",
                    "filename": "a.pdf",
                    "file_data": f"data:application/pdf;base64,{PDF}",
                },
            ],
        },
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "opaque", "status": None},
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "I look.", "annotations": []}],
        },
        {"type": "function_call", "call_id": "call_1", "name": "search_web", "arguments": "{}"},
        {"type": "function_call", "call_id": "call_2", "name": "search_web", "arguments": "{}"},
        {
            "type": "function_call_output",
            "call_id": "call_1",
            "output": [{"type": "input_text", "text": "one"}, {"type": "input_image", "image_url": PNG_URL}],
        },
        {"type": "function_call_output", "call_id": "call_2", "output": "two"},
        {"role": "assistant", "content": "Done.", "phase": "final_answer"},
        {"role": "user", "content": "thanks"},
    ],
    "tools": [{"type": "function", "name": "search_web", "parameters": SCHEMA, "strict": True}],
    "tool_choice": "auto",
    "text": {"format": {"type": "json_schema", "name": "answer", "schema": SCHEMA, "strict": True}},
    "include": ["reasoning.encrypted_content"],
    "store": False,
}
IMAGE_BLOCK: Final = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
ANTHROPIC: Final[dict[str, Any]] = {
    "system": [{"type": "text", "text": "You are Friday.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {
            "role": "user",
            "content": [
                IMAGE_BLOCK,
                {"type": "document", "source": {"type": "url", "url": "https://example.org/a.pdf"}},
                {"type": "text", "text": "Alice: look", "cache_control": {"type": "ephemeral", "ttl": "5m"}},
            ],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "", "signature": "sig"},
                {"type": "text", "text": "I look."},
                {
                    "type": "tool_use",
                    "id": "toolu_1",
                    "name": "search_web",
                    "input": {"query": "x", "tags": []},
                },
                {"type": "tool_use", "id": "toolu_2", "name": "search_web", "input": {}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": [IMAGE_BLOCK]},
                {"type": "tool_result", "tool_use_id": "toolu_2", "content": "no", "is_error": True},
                {"type": "text", "text": "Bob: go on"},
            ],
        },
        {"role": "system", "content": "Be brief."},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": "Bob: thanks"},
    ],
    "tools": [{"name": "search_web", "description": "Search.", "input_schema": SCHEMA}],
    "tool_choice": {"type": "tool", "name": "search_web"},
    "output_config": {"format": {"type": "json_schema", "schema": SCHEMA}},
}
GEMINI: Final[dict[str, Any]] = {
    "contents": [
        {
            "role": "user",
            "parts": [{"text": "look"}, {"inline_data": {"mime_type": "image/png", "data": PNG}}],
        },
        {
            "role": "model",
            "parts": [
                {"text": "hm", "thought": True},
                {
                    "function_call": {
                        "id": "c1",
                        "name": "search_web",
                        "args": {"query": "x", "limit": None},
                    },
                    "thought_signature": SIGNATURE,
                },
                {"function_call": {"id": "c2", "name": "search_web", "args": {}}},
            ],
        },
        {
            "role": "user",
            "parts": [
                {
                    "function_response": {
                        "id": "c1",
                        "name": "search_web",
                        "response": {"output": "one", "rows": [None, {"a_b": 1}]},
                        "parts": [{"inline_data": {"mime_type": "image/png", "data": PNG, "display_name": "a"}}],
                    }
                },
                {"function_response": {"id": "c2", "name": "search_web", "response": {"error": "no"}}},
            ],
        },
        {
            "role": "user",
            "parts": [{"file_data": {"file_uri": "https://example.org/a.pdf"}}, {"text": "thanks"}],
        },
        {"role": "model", "parts": [{"text": "Done.", "thought_signature": PNG}]},
        {"role": "user", "parts": [{"text": "more"}]},
    ],
    "config": {
        "system_instruction": "You are Friday.",
        "tools": [
            {
                "function_declarations": [
                    {"name": "search_web", "description": "S.", "parameters_json_schema": SCHEMA}
                ]
            }
        ],
        "tool_config": {"function_calling_config": {"mode": "ANY", "allowed_function_names": ["search_web"]}},
        "response_mime_type": "application/json",
        "response_json_schema": SCHEMA,
        "automatic_function_calling": {"disable": True},
    },
}
OLLAMA: Final[dict[str, Any]] = {
    "messages": [
        {"role": "system", "content": "You are Friday."},
        {"role": "user", "content": "look", "images": [PNG]},
        {
            "role": "assistant",
            "content": "",
            "thinking": "hm",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "search_web", "arguments": {"limit": None}},
                },
                {"id": "c2", "type": "function", "function": {"name": "search_web", "arguments": {}}},
            ],
        },
        {"role": "tool", "tool_name": "search_web", "tool_call_id": "c1", "content": "one"},
        {"role": "tool", "tool_name": "search_web", "tool_call_id": "c2", "content": ""},
        {"role": "user", "content": "thanks"},
    ],
    "tools": [TOOL],
    "format": SCHEMA,
}
DASHSCOPE: Final[dict[str, Any]] = {
    "messages": [
        {"role": "system", "content": [{"text": "You are Friday."}]},
        {
            "role": "user",
            "content": [
                {"text": "Alice: look", "cache_control": {"type": "ephemeral"}},
                {"image": PNG_URL, "max_pixels": 1003520},
                {"audio": f"data:audio/wav;base64,{WAV}"},
                {"video": [f"https://example.org/{i}.png" for i in range(4)], "fps": 2},
            ],
        },
        {"role": "assistant", "content": "", "tool_calls": [_create_call("c1"), _create_call("c2")]},
        {"role": "tool", "tool_call_id": "c1", "content": "one", "name": "search_web"},
        {"role": "tool", "tool_call_id": "c2", "content": [{"text": "two"}]},
        {"role": "assistant", "content": [{"text": "Done."}], "reasoning_content": "hm"},
        {"role": "user", "content": [{"text": "Bob: thanks"}]},
    ],
    "tools": [TOOL],
    "tool_choice": "auto",
    "result_format": "message",
}
DASHSCOPE_TEXT: Final[dict[str, Any]] = {
    "messages": [
        {"role": "system", "content": "You are Friday."},
        {"role": "user", "content": "/etc/hostname as json"},
        {"role": "assistant", "content": "", "tool_calls": [_create_call("c1")]},
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
    ],
    "tools": [TOOL],
    "result_format": "message",
    "response_format": {"type": "json_object"},
    "incremental_output": True,
}
DASHSCOPE_COMPATIBLE: Final[dict[str, Any]] = {
    "messages": _create_chat(
        {"type": "image_url", "image_url": {"url": PNG_URL}, "max_pixels": 1003520},
        {"type": "video_url", "video_url": {"url": "https://example.org/a.mp4"}, "fps": 2},
        {"type": "video", "video": [PNG_URL] * 4, "fps": 0.5},
        {"type": "input_audio", "input_audio": {"data": f"data:;base64,{WAV}", "format": "wav"}},
        {"type": "text", "text": "all", "cache_control": {"type": "ephemeral"}},
        reasoning_content="hm",
    ),
    "tools": [TOOL],
    "extra_body": {"enable_thinking": True, "preserve_thinking": True},
}
DEEPSEEK: Final[dict[str, Any]] = {
    "messages": _create_chat(reasoning_content=""),
    "tools": [TOOL],
    "tool_choice": "auto",
    "extra_body": {"thinking": {"type": "enabled"}},
}
VLLM: Final[dict[str, Any]] = {
    "messages": _create_chat(
        {"type": "image_url", "image_url": {"url": PNG_URL}},
        {"type": "audio_url", "audio_url": {"url": f"data:audio/wav;base64,{WAV}"}},
        {"type": "video_url", "video_url": {"url": "https://example.org/a.mp4"}},
        reasoning="hm",
    ),
    "tools": [TOOL],
    "tool_choice": "required",
    "extra_body": {"chat_template_kwargs": {"enable_thinking": False}},
}
VALID_REQUESTS: Final[dict[str, dict[str, Any]]] = {
    "openai": OPENAI,
    "openai-responses": OPENAI_RESPONSES,
    "anthropic": ANTHROPIC,
    "gemini": GEMINI,
    "ollama": OLLAMA,
    "dashscope": DASHSCOPE,
    "dashscope-compatible": DASHSCOPE_COMPATIBLE,
    "deepseek": DEEPSEEK,
    "vllm": VLLM,
}
ABSENT: Final = object()

Breakage = tuple[str, str, object, str]
"""Provider, place in its valid request, invalid value for this place (or ABSENT), and beginning of the problem."""

BROKEN_SHAPES: Final[list[Breakage]] = [
    ("openai", "messages[1].foo", 1, "messages[1]: unknown key 'foo'"),
    ("openai", "messages[1].content[0].foo", 1, "messages[1].content[0]: unknown key 'foo'"),
    ("openai", "messages[1].content[1].image_url", PNG_URL, "messages[1].content[1].image_url: text"),
    ("openai", "messages[1].content[0].type", "video_url", "messages[1].content[0].type: 'video_url'"),
    ("openai", "messages[1].content[0].text", True, "messages[1].content[0].text: a bool"),
    ("openai", "messages[1].content", {"type": "text"}, "messages[1].content: an object"),
    ("openai", "messages[1].content", None, "messages[1].content: null"),
    ("openai", "messages[0].role", "narrator", "messages[0].role: 'narrator'"),
    ("openai", "messages[3].tool_call_id", ABSENT, "messages[3]: missing key 'tool_call_id'"),
    (
        "openai",
        "messages[2].tool_calls[0].function.arguments",
        {},
        "messages[2].tool_calls[0].function.arguments:",
    ),
    ("openai", "messages[2].reasoning_content", "hm", "messages[2]: unknown key 'reasoning_content'"),
    ("openai", "tool_choice", "any", "tool_choice: 'any'"),
    ("openai", "model", "gpt-6", "request: unknown key 'model'"),
    ("openai", "messages", ABSENT, "request: missing key 'messages'"),
    ("openai", "messages[0].content", b"bytes", "messages[0].content: type bytes is not a JSON value"),
    ("openai", "extra_body", {"top_k": 1}, "extra_body: unknown key 'top_k'"),
    ("openai-responses", "input[0].content[1].detail", ABSENT, "input[0].content[1]: missing key 'detail'"),
    ("openai-responses", "input[0].content[0].type", "text", "input[0].content[0].type: 'text'"),
    ("openai-responses", "input[0].name", "Alice", "input[0]: unknown key 'name'"),
    ("openai-responses", "input[3].name", ABSENT, "input[3]: missing key 'name'"),
    ("openai-responses", "tools[0].function", FUNCTION, "tools[0]: unknown key 'function'"),
    ("openai-responses", "store", 0, "store: a number"),
    (
        "anthropic",
        "messages[0].content[0].source.media_type",
        "image/bmp",
        "messages[0].content[0].source.media_type:",
    ),
    (
        "anthropic",
        "messages[1].content[0].signature",
        ABSENT,
        "messages[1].content[0]: missing key 'signature'",
    ),
    ("anthropic", "messages[1].content[2].input", "{}", "messages[1].content[2].input: text"),
    ("anthropic", "messages[0].name", "Alice", "messages[0]: unknown key 'name'"),
    ("anthropic", "tools[0].input_schema", ABSENT, "tools[0]: missing key 'input_schema'"),
    ("anthropic", "temperature", 1, "request: unknown key 'temperature'"),
    ("gemini", "contents[0].parts[0].inlineData", {}, "contents[0].parts[0]: unknown key 'inlineData'"),
    (
        "gemini",
        "contents[0].parts[1].inline_data.data",
        "_-8=",
        "contents[0].parts[1].inline_data.data: not padded",
    ),
    (
        "gemini",
        "contents[1].parts[1].function_call.args",
        "{}",
        "contents[1].parts[1].function_call.args: text",
    ),
    (
        "gemini",
        "config.tools[0].function_declarations[0].strict",
        True,
        "config.tools[0].function_declarations[0]:",
    ),
    (
        "gemini",
        "config.tool_config.function_calling_config.mode",
        "any",
        "config.tool_config.function_calling_config",
    ),
    ("ollama", "messages[1].content", [{"type": "text"}], "messages[1].content: a list"),
    ("ollama", "messages[1].name", "Alice", "messages[1]: unknown key 'name'"),
    (
        "ollama",
        "messages[2].tool_calls[0].function.arguments",
        "{}",
        "messages[2].tool_calls[0].function.arguments:",
    ),
    ("ollama", "tools[0].function.parameters.type", "array", "tools[0].function.parameters.type:"),
    ("gemini", "contents[0].role", None, "contents[0].role: null, which the SDK drops"),
    ("ollama", "tool_choice", "auto", "request: unknown key 'tool_choice'"),
    ("dashscope", "messages[1].content[0].type", "text", "messages[1].content[0]: unknown key 'type'"),
    ("dashscope", "messages[1].content[0].image", PNG_URL, "messages[1].content[0]: unknown key"),
    ("dashscope", "messages[2].content", None, "messages[2].content: null"),
    ("dashscope", "messages[4].content", [{"image": PNG_URL}], "messages[4].content[0]: "),
    ("dashscope", "tool_choice", "required", "tool_choice: 'required'"),
    ("dashscope-compatible", "messages[1].content[2].fps", "2", "messages[1].content[2].fps: text"),
    ("deepseek", "messages[2].reasoning", "hm", "messages[2]: unknown key 'reasoning'"),
    ("vllm", "extra_body.enable_thinking", True, "extra_body: unknown key 'enable_thinking'"),
]

BROKEN_ORDERS: Final[list[Breakage]] = [
    ("openai", "messages", [], "request: no message"),
    ("openai", "tools", [], "request: 'tools' is an empty list"),
    ("openai", "messages[1].content", [], "messages[1]: 'content' is an empty list"),
    ("openai", "messages[4]", {"role": "user", "content": "x"}, "messages[2]: calls without a result"),
    ("openai", "messages[4].tool_call_id", "call_2", "messages[4]: answers no open call 'call_2'"),
    ("openai", "messages[2].tool_calls[0].id", "x" * 46, "messages[2].tool_calls[0].id: 46 characters"),
    (
        "openai",
        "messages[2].tool_calls[0].function.name",
        "a.b",
        "messages[2].tool_calls[0].function.name: 'a.b'",
    ),
    (
        "openai",
        "messages[2].tool_calls[0].function.arguments",
        "",
        "messages[2].tool_calls[0].function.arguments:",
    ),
    ("openai", "messages[1].name", "Alice B", "messages[1].name: 'Alice B'"),
    (
        "openai",
        "messages[0].content",
        [{"type": "image_url", "image_url": {"url": PNG_URL}}],
        "messages[0].content[0]:",
    ),
    (
        "openai",
        "messages[1].content[1].image_url.url",
        "data:image/bmp;base64,AA==",
        "messages[1].content[1].image_url",
    ),
    (
        "openai",
        "messages[1].content[2].input_audio.data",
        f"data:;base64,{WAV}",
        "messages[1].content[2].input_audio",
    ),
    ("openai", "messages[1].content[3].file.filename", ABSENT, "messages[1].content[3].file: no filename"),
    ("openai", "messages[1].content[0].text", "", "messages[1].content[0]: empty text"),
    ("openai", "messages[5].content", None, "messages[5]: neither content nor calls"),
    ("openai", "tool_choice.function.name", "other", "tool_choice: 'other' is not among the tools"),
    (
        "openai",
        "tools[0].function.parameters.required",
        [],
        "tools[0].function.schema: a strict schema requires",
    ),
    ("openai", "response_format", {"type": "json_object"}, "response_format: json_object without"),
    (
        "openai-responses",
        "input[6]",
        {"role": "user", "content": "x"},
        "input[6]: a message while calls are open",
    ),
    ("openai-responses", "input[6].call_id", "call_3", "input[6]: answers no open call 'call_3'"),
    ("openai-responses", "input[3].call_id", "", "input[3].call_id: 0 characters"),
    ("openai-responses", "input[3].id", "call_1", "input[3].id: 'call_1'"),
    (
        "openai-responses",
        "input[2]",
        {"role": "user", "content": "x"},
        "input[1]: reasoning without its following",
    ),
    ("openai-responses", "input[1].encrypted_content", None, "input[1]: reasoning without encrypted_content"),
    (
        "openai-responses",
        "input[2].content[0]",
        {"type": "input_text", "text": "x"},
        "input[2].content[0]: input_text",
    ),
    ("openai-responses", "input[0].content[2].filename", ABSENT, "input[0].content[2].file_data:"),
    ("anthropic", "messages[0]", {"role": "assistant", "content": "hi"}, "messages[0]: the first message"),
    ("anthropic", "messages[5]", {"role": "assistant", "content": "hi"}, "messages[5]: the last message"),
    ("anthropic", "messages[4].role", "user", "messages[4]: role 'user' after 'system'"),
    ("anthropic", "messages[0].content[2].text", " \n", "messages[0].content[2]: blank text"),
    ("anthropic", "system", "", "system: blank"),
    (
        "anthropic",
        "messages[2].content[0].tool_use_id",
        "toolu_9",
        "messages[2].content[0]: unexpected tool_use_id",
    ),
    (
        "anthropic",
        "messages[2].content[1]",
        {"type": "text", "text": "x"},
        "messages[1]: tool_use without tool_result",
    ),
    (
        "anthropic",
        "messages[2].content[0]",
        {"type": "text", "text": "x"},
        "messages[2].content[1]: a tool_result after",
    ),
    (
        "anthropic",
        "messages[4].content",
        [{"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}],
        "messages[4].content[0]: server_tool_use 'srvtoolu_1' without",
    ),
    (
        "anthropic",
        "messages[4].content",
        [{"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}],
        "messages[4].content[0]: no server_tool_use 'srvtoolu_1'",
    ),
    ("anthropic", "messages[1].content[2].id", "call|1", "messages[1].content[2].id: 'call|1'"),
    ("anthropic", "messages[2].content[0].is_error", True, "messages[2].content[0]: is_error with content"),
    ("anthropic", "messages[2].content[0].content", [], "messages[2].content[0]: 'content' is an empty list"),
    ("anthropic", "tools", ABSENT, "tools: missing"),
    ("anthropic", "messages[4].content", [IMAGE_BLOCK], "messages[4].content[0]: image in a message of role"),
    (
        "anthropic",
        "messages[1].content[0].signature",
        "",
        "messages[1].content[0]: thinking without a signature",
    ),
    (
        "anthropic",
        "messages[0].content[0].source.data",
        PNG_URL,
        "messages[0].content[0].source.data: not plain base64",
    ),
    (
        "anthropic",
        "output_config.format.schema.additionalProperties",
        True,
        "output_config.format.schema: a strict",
    ),
    ("gemini", "contents[0].role", "system", "contents[0].role: 'system'"),
    ("gemini", "contents[5].role", "model", "contents[5]: the last content"),
    (
        "gemini",
        "contents[0]",
        {"role": "model", "parts": [{"function_call": {"name": "f"}}]},
        "contents[0]: a function_",
    ),
    ("gemini", "contents[0].parts", [], "contents[0]: no parts"),
    ("gemini", "contents[0].parts[0].text", "", "contents[0].parts[0]: empty text"),
    ("gemini", "contents[0].parts[1].text", "x", "contents[0].parts[1]: expected one kind of data"),
    ("gemini", "contents[2].parts[1]", {"text": "x"}, "contents[2]: function responses beside other parts"),
    (
        "gemini",
        "contents[2].parts[2]",
        {"function_response": {"name": "f", "response": {}}},
        "contents[2]: 3 function",
    ),
    (
        "gemini",
        "contents[2].parts[1].function_response.name",
        "other",
        "contents[2].parts[1]: answers 'other'",
    ),
    (
        "gemini",
        "contents[1].parts[2].function_call.name",
        "1 b",
        "contents[1].parts[2].function_call: function name",
    ),
    (
        "gemini",
        "contents[0].parts[1].inline_data.mime_type",
        "image/gif",
        "contents[0].parts[1].inline_data.mime_type",
    ),
    ("gemini", "config.response_mime_type", ABSENT, "config: response_json_schema without"),
    (
        "gemini",
        "config.tool_config.function_calling_config.mode",
        "AUTO",
        "config.tool_config: allowed_function_names",
    ),
    ("gemini", "config.system_instruction", "", "config.system_instruction[0]: expected text"),
    ("ollama", "tools[0].function", ABSENT, "tools[0]: no function name"),
    ("ollama", "messages[1].images[0]", PNG_URL, "messages[1].images[0]: not plain base64"),
    ("ollama", "messages[3].tool_name", "other", "messages[3]: answers 'other'"),
    ("ollama", "messages[4]", {"role": "user", "content": "x"}, "messages[2]: calls without a result"),
    ("ollama", "messages[1]", {"role": "user", "content": ""}, "messages[1]: neither content nor images"),
    (
        "dashscope",
        "messages[1].content[1].image",
        "/etc/hostname",
        "messages[1].content[1].image: '/etc/hostname'",
    ),
    ("dashscope", "messages[1].content[0].text", __file__, "messages[1].content[0].text: "),
    (
        "dashscope",
        "messages[1].content[0].text",
        "file:///a",
        "messages[1].content[0].text: 'file:///a' names",
    ),
    ("dashscope", "messages[1].content[3].video", [PNG_URL], "messages[1].content[3].video: 1 frames"),
    ("dashscope", "messages[0].content", "text", "messages: content is text in one message"),
    ("dashscope", "tools[0].function.name", "search", "tools[0]: the tool name 'search' is reserved"),
    ("dashscope", "result_format", "text", "result_format: expected 'message'"),
    ("dashscope-compatible", "messages[0].role", "developer", "messages[0].role: 'developer'"),
    (
        "dashscope-compatible",
        "messages[1].content[4].input_audio.data",
        WAV,
        "messages[1].content[4].input_audio.data",
    ),
    ("deepseek", "messages[5].reasoning_content", ABSENT, "messages[5]: no reasoning_content"),
    (
        "deepseek",
        "messages[1].content",
        [{"type": "text", "text": "x"}],
        "messages[1].content: a list without media",
    ),
    ("deepseek", "tool_choice", "required", "tool_choice: 'required' in thinking mode"),
    (
        "vllm",
        "messages[1].content[1]",
        {"type": "file", "file": {"file_id": "1"}},
        "messages[1].content[1]: part type",
    ),
    ("vllm", "messages[6].role", "system", "messages[6]: a system message after the first"),
]


def _replace_value(request: dict[str, Any], place: str, value: object) -> dict[str, Any]:
    """Returns a copy of `request` with `value` at `place`. An index after the last item appends it."""
    copied = copy.deepcopy(request)
    *steps, last = [int(step) if step.isdigit() else step for step in re.findall(r"\w+", place)]
    target: Any = copied
    for step in steps:
        target = target[step]
    if value is ABSENT:
        del target[last]
    elif isinstance(target, list) and last == len(cast("list[object]", target)):
        cast("list[object]", target).append(value)
    else:
        target[last] = value
    return copied


@each_case("provider", [*VALID_REQUESTS])
def test_a_valid_request_has_the_types_of_its_sdk(provider: str) -> None:
    assert check_request(provider, VALID_REQUESTS[provider]) == []


@each_case("provider", [*VALID_REQUESTS])
def test_a_valid_request_obeys_every_rule(provider: str) -> None:
    assert check_order(provider, VALID_REQUESTS[provider]) == []


def test_a_valid_request_passes_on_the_text_path_of_dashscope() -> None:
    assert check_request("dashscope", DASHSCOPE_TEXT) == []
    assert check_order("dashscope", DASHSCOPE_TEXT) == []


def test_the_text_path_of_dashscope_refuses_lists_of_parts() -> None:
    problems = check_request("dashscope", DASHSCOPE, path="text")
    assert "messages[0].content: a list, expected text" in problems


@each_case(("provider", "place", "value", "problem"), BROKEN_SHAPES)
def test_a_wrong_type_is_reported_with_its_place(provider: str, place: str, value: object, problem: str) -> None:
    problems = check_request(provider, _replace_value(VALID_REQUESTS[provider], place, value))
    assert [line for line in problems if line.startswith(problem)], problems


@each_case(("provider", "place", "value", "problem"), BROKEN_ORDERS)
def test_a_broken_rule_is_reported_with_its_place(provider: str, place: str, value: object, problem: str) -> None:
    problems = check_order(provider, _replace_value(VALID_REQUESTS[provider], place, value))
    assert [line for line in problems if line.startswith(problem)], problems


def test_a_missing_signature_is_reported_only_in_the_current_turn() -> None:
    unsigned = _replace_value(GEMINI, "contents[1].parts[1].thought_signature", ABSENT)
    assert check_order("gemini", unsigned) == []
    current = unsigned | {"contents": unsigned["contents"][:3]}
    assert check_order("gemini", current) == [
        "contents[1].parts[1]: the first function_call of its step has no thought_signature"
    ]


def test_a_fifth_cache_marker_is_reported() -> None:
    system = [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}] * 4
    problems = check_order("anthropic", ANTHROPIC | {"system": system})
    assert problems == ["messages[0].content[2]: cache_control number 5 of 5, expected at most 4"]


def test_every_rule_has_a_description_and_a_source() -> None:
    for provider, rules in RULES.items():
        for rule in rules:
            assert rule.check.__doc__, (provider, rule)
            assert rule.source, (provider, rule)


def test_all_tables_have_the_same_providers() -> None:
    assert set(VALID_REQUESTS) == set(RULES) == set(EXTENSIONS) == set(SDK_CHANGES)


@each_case("provider", [*VALID_REQUESTS])
def test_the_sdk_sends_the_expected_body(provider: str) -> None:
    captured = asyncio.run(send(provider, VALID_REQUESTS[provider]))
    assert captured.other_paths == []
    assert captured.body == get_expected_body(provider, VALID_REQUESTS[provider])


def test_the_text_path_of_dashscope_has_a_separate_endpoint() -> None:
    captured = asyncio.run(send("dashscope", DASHSCOPE_TEXT, path="text"))
    assert captured.path == "/api/v1/services/aigc/text-generation/generation"
    assert captured.other_paths == []
    assert captured.body == get_expected_body("dashscope", DASHSCOPE_TEXT)


@each_case("provider", [*VALID_REQUESTS])
def test_sending_changes_no_request(provider: str) -> None:
    request = copy.deepcopy(VALID_REQUESTS[provider])
    asyncio.run(send(provider, request))
    assert request == VALID_REQUESTS[provider]
    assert json.loads(json.dumps(request)) == request


def test_a_user_text_that_names_a_file_would_be_uploaded() -> None:
    request = {"messages": [{"role": "user", "content": [{"text": __file__}]}]}
    captured = asyncio.run(send("dashscope", request))
    assert captured.path == ""
    assert [path.partition("?")[0] for path in captured.other_paths] == ["/api/v1/uploads"]


def test_bytes_arrive_unchanged_at_gemini() -> None:
    captured = asyncio.run(send("gemini", GEMINI))
    call = captured.body["contents"][1]["parts"][1]
    assert base64.urlsafe_b64decode(call["thoughtSignature"]) == b"skip_thought_signature_validator"
    inline = captured.body["contents"][0]["parts"][1]["inlineData"]
    assert base64.urlsafe_b64decode(inline["data"]) == base64.b64decode(PNG)
