"""Logs of one conversation in formats without a loader. Each log contains all `WORDS`."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["FOREIGN_LOGS", "WORDS"]

WORDS: Final = ("system-word", "question-word", "argument-word", "result-word", "answer-word")

_SYSTEM, _QUESTION, _ARGUMENT, _RESULT, _ANSWER = WORDS
_INPUT: Final = {"place": _ARGUMENT}

FOREIGN_LOGS: Final[dict[str, list[dict[str, Any]]]] = {
    "pydantic-ai": [
        {
            "kind": "request",
            "parts": [
                {"part_kind": "system-prompt", "content": _SYSTEM, "timestamp": "2026-11-20T10:00:00Z"},
                {"part_kind": "user-prompt", "content": _QUESTION, "timestamp": "2026-11-20T10:00:00Z"},
            ],
        },
        {
            "kind": "response",
            "model_name": "m",
            "parts": [{"part_kind": "tool-call", "tool_name": "look", "args": _INPUT, "tool_call_id": "c1"}],
        },
        {
            "kind": "request",
            "parts": [
                {"part_kind": "tool-return", "tool_name": "look", "content": _RESULT, "tool_call_id": "c1"},
            ],
        },
        {"kind": "response", "parts": [{"part_kind": "text", "content": _ANSWER}]},
    ],
    "OpenTelemetry GenAI": [
        {"role": "system", "parts": [{"type": "text", "content": _SYSTEM}]},
        {"role": "user", "parts": [{"type": "text", "content": _QUESTION}]},
        {
            "role": "assistant",
            "parts": [{"type": "tool_call", "id": "c1", "name": "look", "arguments": _INPUT}],
            "finish_reason": "tool_call",
        },
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "result": _RESULT}]},
        {"role": "assistant", "parts": [{"type": "text", "content": _ANSWER}], "finish_reason": "stop"},
    ],
    "Vercel AI SDK UI messages": [
        {"id": "m0", "role": "system", "parts": [{"type": "text", "text": _SYSTEM}]},
        {"id": "m1", "role": "user", "parts": [{"type": "text", "text": _QUESTION}]},
        {
            "id": "m2",
            "role": "assistant",
            "parts": [
                {"type": "step-start"},
                {
                    "type": "tool-look",
                    "toolCallId": "c1",
                    "state": "output-available",
                    "input": _INPUT,
                    "output": _RESULT,
                },
                {"type": "text", "text": _ANSWER, "state": "done"},
            ],
        },
    ],
    "Vercel AI SDK UI messages of version 4": [
        {"id": "m0", "role": "system", "content": _SYSTEM, "parts": [{"type": "text", "text": _SYSTEM}]},
        {"id": "m1", "role": "user", "content": _QUESTION, "parts": [{"type": "text", "text": _QUESTION}]},
        {
            "id": "m2",
            "role": "assistant",
            "content": _ANSWER,
            "toolInvocations": [
                {"state": "result", "toolCallId": "c1", "toolName": "look", "args": _INPUT, "result": _RESULT}
            ],
        },
    ],
    "Vercel AI SDK model messages": [
        {"role": "system", "content": _SYSTEM},
        {"role": "user", "content": [{"type": "text", "text": _QUESTION}]},
        {
            "role": "assistant",
            "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "look", "input": _INPUT}],
        },
        {
            "role": "tool",
            "content": [
                {
                    "type": "tool-result",
                    "toolCallId": "c1",
                    "toolName": "look",
                    "output": {"type": "text", "value": _RESULT},
                }
            ],
        },
        {"role": "assistant", "content": _ANSWER},
    ],
    "Google ADK": [
        {"author": "user", "content": {"role": "user", "parts": [{"text": f"{_SYSTEM} {_QUESTION}"}]}},
        {
            "author": "friday",
            "content": {
                "role": "model",
                "parts": [{"functionCall": {"id": "c1", "name": "look", "args": _INPUT}}],
            },
        },
        {
            "author": "friday",
            "content": {
                "role": "user",
                "parts": [{"functionResponse": {"id": "c1", "name": "look", "response": {"result": _RESULT}}}],
            },
        },
        {"author": "friday", "content": {"role": "model", "parts": [{"text": _ANSWER}]}},
    ],
    "A2A": [
        {"kind": "message", "role": "user", "messageId": "1", "parts": [{"kind": "text", "text": _QUESTION}]},
        {
            "kind": "message",
            "role": "agent",
            "messageId": "2",
            "parts": [
                {"kind": "data", "data": {"seen": f"{_SYSTEM} {_RESULT} {_ARGUMENT}"}},
                {"kind": "text", "text": _ANSWER},
            ],
        },
    ],
    "Bedrock Converse": [
        {"role": "user", "content": [{"text": f"{_SYSTEM} {_QUESTION}"}]},
        {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "look", "input": _INPUT}}]},
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "c1", "content": [{"text": _RESULT}], "status": "success"}}],
        },
        {"role": "assistant", "content": [{"text": _ANSWER}]},
    ],
    "ShareGPT": [
        {"from": "system", "value": _SYSTEM},
        {"from": "human", "value": _QUESTION},
        {"from": "function_call", "value": f'{{"name": "look", "arguments": "{_ARGUMENT}"}}'},
        {"from": "observation", "value": _RESULT},
        {"from": "gpt", "value": _ANSWER},
    ],
    "LlamaIndex": [
        {"role": "system", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": _SYSTEM}]},
        {"role": "user", "additional_kwargs": {}, "blocks": [{"block_type": "text", "text": _QUESTION}]},
        {
            "role": "assistant",
            "additional_kwargs": {
                "tool_calls": [{"id": "c1", "function": {"name": "look", "arguments": _ARGUMENT}}]
            },
            "blocks": [{"block_type": "text", "text": f"{_RESULT} {_ANSWER}"}],
        },
    ],
    "Haystack": [
        {"_role": "system", "_content": [{"text": _SYSTEM}], "_meta": {}},
        {"_role": "user", "_content": [{"text": _QUESTION}], "_meta": {}},
        {
            "_role": "assistant",
            "_content": [{"tool_call": {"tool_name": "look", "arguments": _INPUT, "id": "c1"}}],
            "_meta": {},
        },
        {"_role": "tool", "_content": [{"tool_call_result": {"result": _RESULT, "error": False}}], "_meta": {}},
        {"_role": "assistant", "_content": [{"text": _ANSWER}], "_meta": {}},
    ],
    "OpenAI Assistants": [
        {
            "id": "msg_1",
            "object": "thread.message",
            "role": role,
            "content": [{"type": "text", "text": {"value": text, "annotations": []}}],
        }
        for role, text in (("user", f"{_SYSTEM} {_QUESTION}"), ("assistant", f"{_ARGUMENT} {_RESULT} {_ANSWER}"))
    ],
    "OpenInference": [
        {"message": {"role": "system", "content": _SYSTEM}},
        {"message": {"role": "user", "content": _QUESTION}},
        {
            "message": {
                "role": "assistant",
                "tool_calls": [{"tool_call": {"function": {"name": "look", "arguments": _ARGUMENT}}}],
            }
        },
        {"message": {"role": "tool", "content": _RESULT}},
        {"message": {"role": "assistant", "content": _ANSWER}},
    ],
    "Cohere": [
        {"role": "SYSTEM", "message": _SYSTEM},
        {"role": "USER", "message": _QUESTION},
        {
            "role": "CHATBOT",
            "message": "",
            "tool_calls": [{"name": "look", "parameters": _INPUT}],
        },
        {"role": "TOOL", "tool_results": [{"call": {"name": "look"}, "outputs": [{"text": _RESULT}]}]},
        {"role": "CHATBOT", "message": _ANSWER},
    ],
    "MCP sampling": [
        {"role": "user", "content": {"type": "text", "text": f"{_SYSTEM} {_QUESTION} {_RESULT} {_ARGUMENT}"}},
        {"role": "assistant", "content": {"type": "text", "text": _ANSWER}},
    ],
    "AutoGen": [
        {"source": "system", "type": "SystemMessage", "content": _SYSTEM},
        {"source": "user", "type": "TextMessage", "content": _QUESTION, "models_usage": None},
        {
            "source": "friday",
            "type": "ToolCallRequestEvent",
            "content": [{"id": "c1", "name": "look", "arguments": _ARGUMENT}],
        },
        {
            "source": "friday",
            "type": "ToolCallExecutionEvent",
            "content": [{"call_id": "c1", "name": "look", "content": _RESULT, "is_error": False}],
        },
        {"source": "friday", "type": "TextMessage", "content": _ANSWER},
    ],
    "Semantic Kernel": [
        {"$type": "ChatMessageContent", "role": role, "items": [{"$type": "TextContent", "text": text}]}
        for role, text in (("user", f"{_SYSTEM} {_QUESTION}"), ("assistant", f"{_ARGUMENT} {_RESULT} {_ANSWER}"))
    ],
    "texts without roles": [{"text": word} for word in WORDS],
}
