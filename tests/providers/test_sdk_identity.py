"""Every key that the types of an SDK allow in a log is restored, or this module names the exception."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, cast, get_args

import ollama
import pytest
from anthropic.types import MessageParam
from anthropic.types.content_block_param import ContentBlockParam
from dashscope.v2.types import messages as dashscope
from google.genai import types as genai
from openai.types.chat import ChatCompletionContentPartParam, ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from typing_extensions import get_type_hints

from agentkit import load_native
from tests.providers import MP3, PDF, PNG, chat
from tests.wire.sdk_types import create_values

Log = Any

_MARKERS: Final = {"cache_control", "prompt_cache_breakpoint"}
"""Markers of a prompt cache: the formatters set new markers on request."""


def _remove_keys(value: Any, keys: set[str]) -> Any:
    """Returns a log without some keys and without nulls."""
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {key: _remove_keys(item, keys) for key, item in pairs if item is not None and key not in keys}
    if isinstance(value, list):
        return [_remove_keys(item, keys) for item in cast("list[Any]", value)]
    return value


# -- Anthropic -------------------------------------------------------------------------------------------------

_HI: Final = {"role": "user", "content": [{"type": "text", "text": "Hi."}]}
_TEXT: Final = {"type": "text", "text": "So."}


def _anthropic_sample(kind: type, key: str) -> Any:
    data = {"Base64ImageSourceParam": PNG, "Base64PDFSourceParam": PDF, "PlainTextSourceParam": "Words."}
    special: dict[str, Any] = {
        "cache_control": {"type": "ephemeral"},
        "data": data.get(kind.__name__, "RXVz"),
        "url": "https://x.org/a.png" if "Image" in kind.__name__ else "https://x.org/a.pdf",
        "signature": "RXVz",
        "id": "c1",
        "tool_use_id": "c1",
    }
    if key == "media_type" and kind.__name__ == "Base64ImageSourceParam":
        return "image/png"
    return special.get(key)


def _anthropic_logs() -> Iterator[Log]:
    for kind in get_args(ContentBlockParam):
        for block in create_values(kind, _anthropic_sample):
            yield from _anthropic_places(block)


def _anthropic_places(block: dict[str, Any]) -> Iterator[Log]:
    """Yields a log with a block and the messages that it requires."""
    kind = block["type"]
    named = {"toolset_name": block["toolset_name"]} if block.get("toolset_name") else {}
    if kind == "tool_use":
        answer = {"type": "tool_result", "tool_use_id": "c1", "content": "x", **named}
        log: Log = [_HI, {"role": "assistant", "content": [block]}, {"role": "user", "content": [answer]}]
        if maker := block.get("caller", {}).get(
            "tool_id"
        ):  # a server tool made this call and continues with its result
            runs: dict[str, Any] = {"type": "server_tool_use", "id": maker, "name": "code_execution", "input": {}}
            ran: dict[str, Any] = {"type": "code_execution_tool_result", "tool_use_id": maker, "content": {}}
            log[1]["content"].insert(0, runs)
            log += [{"role": "assistant", "content": [ran, _TEXT]}, _HI]
        yield log
    elif kind == "tool_result":
        call: dict[str, Any] = {"type": "tool_use", "id": "c1", "name": "look", "input": {}, **named}
        yield [_HI, {"role": "assistant", "content": [call]}, {"role": "user", "content": [block]}]
    elif kind == "server_tool_use":
        search: dict[str, Any] = {"type": "web_search_tool_result", "tool_use_id": "c1", "content": []}
        yield [_HI, {"role": "assistant", "content": [block, search, _TEXT]}, _HI]
    elif kind.endswith("_tool_result"):
        use: dict[str, Any] = {
            "type": "server_tool_use",
            "id": "c1",
            "name": kind.removesuffix("_tool_result"),
            "input": {},
        }
        yield [_HI, {"role": "assistant", "content": [use, block, _TEXT]}, _HI]
    elif "thinking" in kind:
        yield [_HI, {"role": "assistant", "content": [block, _TEXT]}, _HI]
    elif kind == "text" and "citations" in block:  # the API refuses them in any turn but the model's
        yield [_HI, {"role": "assistant", "content": [block]}, _HI]
    else:
        yield [{"role": "user", "content": [block]}]


def _changes_at_anthropic(log: Log) -> bool:
    """Returns True for logs that change: failed results get content, and texts of results lose their citations."""
    results = [block for message in log for block in message["content"] if block["type"] == "tool_result"]
    return any(
        ("is_error" in block and "content" not in block)
        or any(item["type"] == "text" and "citations" in item for item in _parts(block.get("content")))
        for block in results
    )


def _parts(content: object) -> list[dict[str, Any]]:
    return cast("list[dict[str, Any]]", content) if isinstance(content, list) else []


def test_the_keys_of_anthropic_messages_are_role_and_content() -> None:
    assert {key for kind in get_args(MessageParam) for key in get_type_hints(kind)} == {"role", "content"}


def test_every_key_of_anthropic_blocks_is_restored() -> None:
    logs = [*_anthropic_logs()]
    assert len(logs) > 200
    for log in logs:
        if not _changes_at_anthropic(log):
            request = chat("anthropic", "claude-opus-4-1").lower(load_native("anthropic", log)).request
            assert request["messages"] == _remove_keys(log, _MARKERS)


# -- OpenAI Chat Completions -----------------------------------------------------------------------------------


def _openai_sample(kind: type, key: str) -> Any:
    special: dict[str, Any] = {
        "prompt_cache_breakpoint": {"mode": "explicit"},
        "url": "https://x.org/a.png",
        "image_url": "https://x.org/a.png" if kind.__name__.startswith("ResponseInputImage") else None,
        "file_url": "https://x.org/a.pdf",
        "file_data": f"data:application/pdf;base64,{PDF}",
        "filename": "a.pdf",
        "data": MP3,
        "format": "mp3" if kind.__name__ == "InputAudio" else None,
        "arguments": '{"a":1}',
        "tool_call_id": "c1",
        "call_id": "c1",
        "encrypted_content": "gAAAAB",
    }
    return special.get(key)


_ASKS: Final = {"role": "user", "content": "Hi."}


def _chat_logs() -> Iterator[Log]:
    for kind in get_args(ChatCompletionMessageParam):
        for message in create_values(kind, _openai_sample):
            yield from _chat_places(message)
    for part in create_values(ChatCompletionContentPartParam, _openai_sample):
        yield [{"role": "user", "content": [part]}]


def _chat_places(message: dict[str, Any]) -> Iterator[Log]:
    role = message["role"]
    if role == "assistant":
        answers = [
            {"role": "tool", "tool_call_id": call["id"], "content": "x"} for call in message.get("tool_calls", [])
        ]
        if message.get("function_call"):
            answers = [{"role": "function", "name": "text", "content": "x"}]
        yield [_ASKS, message, *answers, _ASKS]
    elif role == "tool":
        function = {"name": "look", "arguments": "{}"}
        asked: dict[str, Any] = {
            "role": "assistant",
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        }
        yield [_ASKS, asked, message]
    elif role == "function":
        call: dict[str, Any] = {"role": "assistant", "function_call": {"name": message["name"], "arguments": "{}"}}
        yield [_ASKS, call, message]
    else:
        yield [message] if role == "user" else [message, _ASKS]


def _use_text_parts(log: Log) -> Any:
    """Returns a log of Chat Completions with each text as a text part."""
    return [
        {**message, "content": [{"type": "text", "text": message["content"]}]}
        if isinstance(message.get("content"), str)
        else message
        for message in log
    ]


def _changes_in_chat(log: Log) -> bool:
    """Returns True for logs that change: legacy function calls get ids, files get names, and empty messages are
    omitted.
    """
    files = [part["file"] for message in log for part in _parts(message.get("content")) if part["type"] == "file"]
    return any("function_call" in message or message.keys() <= {"role", "name"} for message in log) or any(
        "filename" not in file for file in files if "file_data" in file
    )


def test_every_key_of_chat_completions_is_restored() -> None:
    logs = [log for log in _chat_logs() if not _changes_in_chat(log)]
    assert len(logs) > 20
    for log in logs:
        messages = chat("openai", "gpt-audio").lower(load_native("openai", log)).request["messages"]
        assert _use_text_parts(_remove_keys(messages, _MARKERS)) == _use_text_parts(_remove_keys(log, _MARKERS))


@pytest.mark.parametrize("name", ["a.pdf", "A report", "Q3/Report: <1>.pdf", "x" * 100, ".pdf"])
@pytest.mark.parametrize("provider", ["openai", "openai-responses"])
def test_the_name_of_a_file_is_restored_unchanged(provider: str, name: str) -> None:
    file = {"filename": name, "file_data": f"data:application/pdf;base64,{PDF}"}
    part = {"type": "file", "file": file} if provider == "openai" else {"type": "input_file", **file}
    log = [{**({} if provider == "openai" else {"type": "message"}), "role": "user", "content": [part]}]
    request = chat(provider).lower(load_native(provider, log)).request
    assert (request.get("messages") or request["input"]) == log


# -- OpenAI Responses ------------------------------------------------------------------------------------------


_STORED: Final = {"id", "status"}
"""Keys of stored items. Requests omit them, except ids that reasoning needs."""

_HALVES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    # Calls that the application runs, and their results.
    "computer_call": ("call_id", {"type": "computer_call_output", "call_id": "c1", "output": {}}),
    "computer_call_output": ("call_id", {"type": "computer_call", "call_id": "c1"}),
    "function_call": ("call_id", {"type": "function_call_output", "call_id": "c1", "output": "x"}),
    "function_call_output": (
        "call_id",
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
    ),
    "custom_tool_call": ("call_id", {"type": "custom_tool_call_output", "call_id": "c1", "output": "x"}),
    "custom_tool_call_output": (
        "call_id",
        {"type": "custom_tool_call", "call_id": "c1", "name": "look", "input": "x"},
    ),
    "tool_search_call": ("call_id", {"type": "tool_search_output", "call_id": "c1", "tools": []}),
    "tool_search_output": ("call_id", {"type": "tool_search_call", "call_id": "c1", "arguments": {}}),
    "local_shell_call": ("call_id", {"type": "local_shell_call_output", "id": "c1", "output": "x"}),
    "local_shell_call_output": ("id", {"type": "local_shell_call", "call_id": "c1", "action": {}}),
    "shell_call": ("call_id", {"type": "shell_call_output", "call_id": "c1", "output": []}),
    "shell_call_output": ("call_id", {"type": "shell_call", "call_id": "c1", "action": {}}),
    "apply_patch_call": ("call_id", {"type": "apply_patch_call_output", "call_id": "c1", "status": "completed"}),
    "apply_patch_call_output": ("call_id", {"type": "apply_patch_call", "call_id": "c1", "operation": {}}),
    "mcp_approval_request": ("id", {"type": "mcp_approval_response", "approval_request_id": "c1"}),
    "mcp_approval_response": ("approval_request_id", {"type": "mcp_approval_request", "id": "c1"}),
}


def _item_log(item: dict[str, Any]) -> Log:
    """Returns a log with an item between user turns, with its counterpart or the message after its reasoning."""
    kind = item.get("type", "message")
    if kind == "reasoning":
        return [_ASKS, item, {"role": "assistant", "content": "So."}, _ASKS]
    if kind not in _HALVES:
        return [_ASKS, item, _ASKS]
    key, other = _HALVES[kind]
    complete = {**item, key: "c1"}
    answers = "output" in kind or "response" in kind
    return [_ASKS, other, complete, _ASKS] if answers else [_ASKS, complete, other, _ASKS]


def _simplify_item(item: dict[str, Any]) -> dict[str, Any]:
    """Returns an item without the keys of stored items, and with a single text part as that text."""
    kind = item.get("type", "message" if "role" in item else None)
    if kind == "message":
        fields = {key: value for key, value in item.items() if key not in {*_STORED, "type"}}
        fields["content"] = _simplify_texts(item["content"])
        if item["role"] != "assistant":
            fields.pop("phase", None)  # "Not used for user messages"
        return fields
    fields = {key: value for key, value in item.items() if key not in _STORED}
    if kind in ("function_call", "custom_tool_call"):
        return fields
    if kind in ("function_call_output", "custom_tool_call_output"):
        return {**fields, "output": _simplify_texts(item["output"])}
    return fields if kind == "reasoning" else item


def _simplify_texts(content: object) -> object:
    """Returns a single text part as its text, because its citations stay in the metadata. Images get the default
    `detail`.
    """
    parts = _parts(content)
    if len(parts) == 1 and isinstance(parts[0].get("text"), str):
        return parts[0]["text"]
    return (
        [{"detail": "auto", **part} if part["type"] == "input_image" else part for part in parts]
        if parts
        else content
    )


def _changes_in_responses(log: Log) -> bool:
    """Returns True for logs that change: reasoning without an encrypted proof is omitted, and files get a name."""
    parts = [part for item in log for key in ("content", "output") for part in _parts(item.get(key))]
    files = [part for part in parts if part.get("type") == "input_file"]
    return any(item.get("type") == "reasoning" and "encrypted_content" not in item for item in log) or any(
        "filename" not in file for file in files if "file_data" in file
    )


def test_every_key_of_responses_is_restored() -> None:
    logs = [_item_log(item) for item in create_values(ResponseInputItemParam, _openai_sample)]
    expected = [log for log in logs if not _changes_in_responses(log)]
    assert len(expected) > 150
    for log in expected:
        items = chat("openai-responses").lower(load_native("openai-responses", {"input": log})).request["input"]
        assert [*map(_simplify_item, _remove_keys(items, _MARKERS))] == [
            *map(_simplify_item, _remove_keys(log, _MARKERS))
        ]


# -- Gemini ----------------------------------------------------------------------------------------------------

_BLOB: Final = {"mime_type": "image/png", "data": PNG}
_ANSWER: Final[dict[str, Any]] = {"id": "c1", "name": "look", "response": {"output": "x"}}
_CALL: Final[dict[str, Any]] = {"id": "c1", "name": "look", "args": {}}
_CONTENT: Final[dict[str, dict[str, Any]]] = {
    # Parts with content, with their required keys. Every other key is added to such a part.
    "inline_data": _BLOB,
    "file_data": {"file_uri": "https://x.org/a.png", "mime_type": "image/png"},
    "function_call": _CALL,
    "function_response": _ANSWER,
    "executable_code": {"code": "print(1)", "language": "PYTHON"},
    "code_execution_result": {"outcome": "OUTCOME_OK"},
    "tool_call": {"id": "c1"},
    "tool_response": {"id": "c1"},
}
_OTHER_HALF: Final = {
    "executable_code": "code_execution_result",
    "code_execution_result": "executable_code",
    "tool_call": "tool_response",
    "tool_response": "tool_call",
}
_STREAMED: Final = {"partial_args", "will_continue"}
"""Keys of a streamed call, which no request contains."""


_BASES: Final[dict[str, dict[str, Any]]] = {
    "FunctionResponsePartDict": {"inline_data": _BLOB},
    "FunctionResponseBlobDict": _BLOB,
    "FunctionResponseFileDataDict": {"file_uri": "https://x.org/a.png", "mime_type": "image/png"},
}


def _gemini_sample(kind: type, key: str) -> Any:
    if not key:
        return _BASES.get(kind.__name__)
    special = {**_BLOB, "file_uri": "https://x.org/a.png", "response": {"output": "x"}, "id": "c1", "name": "look"}
    return special.get(key)


def _gemini_logs() -> Iterator[Log]:
    for key, hint in get_type_hints(genai.PartDict).items():
        for value in create_values(hint, _gemini_sample):
            if key not in _CONTENT:
                yield from _gemini_logs_with_content(key, value)
            elif not (key == "function_call" and value.keys() & _STREAMED):
                yield _gemini_log(key, {key: {**_CONTENT[key], **value}})


def _gemini_logs_with_content(key: str, value: Any) -> Iterator[Log]:
    """Yields logs with a key of a part next to a text and next to an image."""
    if value in ({}, []):
        return  # without content
    own = key in ("thought", "thought_signature")  # only in turns of the model
    signed = {"text": "So.", "thought_signature": "RXVz"}
    if key == "text":
        yield [{"role": "user", "parts": [{key: value}]}]
    else:
        yield [_gemini_calls(), {"role": "model", "parts": [{"text": "x", key: value}, signed]}, _gemini_calls()]
        blob = {"inline_data": _BLOB, key: value}
        pair = [_gemini_calls(), {"role": "model", "parts": [blob]}, _gemini_calls()]
        yield pair if own else [{"role": "user", "parts": [blob]}]


def _gemini_calls() -> dict[str, Any]:
    return {"role": "user", "parts": [{"text": "Hi."}]}


def _gemini_log(key: str, part: dict[str, Any]) -> Log:
    """Returns a log with a part and its call or response."""
    call: dict[str, Any] = {"function_call": _CALL, "thought_signature": "RXVz"}
    if key == "function_call":
        signed = {**part, "thought_signature": "RXVz"}
        answer = {"role": "user", "parts": [{"function_response": _ANSWER}]}
        return [_gemini_calls(), {"role": "model", "parts": [signed]}, answer]
    if key == "function_response":
        return [_gemini_calls(), {"role": "model", "parts": [call]}, {"role": "user", "parts": [part]}]
    if key in _OTHER_HALF:
        id = part[key].get("id")
        other = {_OTHER_HALF[key]: {**_CONTENT[_OTHER_HALF[key]], **({"id": id} if id else {})}}
        parts = [part, other] if key in ("executable_code", "tool_call") else [other, part]
        return [_gemini_calls(), {"role": "model", "parts": [*parts, {"text": "So."}]}, _gemini_calls()]
    return [{"role": "user", "parts": [part]}]


def _changes_at_gemini(log: Log) -> bool:
    """Returns True for logs that change: empty parts, and two media in one part, which the API refuses."""
    parts = [part for content in log for part in content["parts"]]
    inner = [inner_part for part in parts for inner_part in _parts(part.get("function_response", {}).get("parts"))]
    return any({} in part.values() or {"inline_data", "file_data"} <= part.keys() for part in [*parts, *inner])


def test_every_key_of_gemini_parts_is_restored() -> None:
    assert {*get_type_hints(genai.ContentDict)} == {"parts", "role"}
    logs = [log for log in _gemini_logs() if not _changes_at_gemini(log)]
    assert len(logs) > 60
    for log in logs:
        assert chat("gemini", "gemini-3-pro").lower(load_native("gemini", log)).request["contents"] == log


# -- Ollama and DashScope --------------------------------------------------------------------------------------


def test_every_key_of_ollama_messages_is_restored() -> None:
    assert {*ollama.Message.model_fields} == {"role", "content", "thinking", "images", "tool_name", "tool_calls"}
    assert {*ollama.Message.ToolCall.model_fields} == {"function"}
    assert {*ollama.Message.ToolCall.Function.model_fields} == {"name", "arguments"}
    call = {"id": "c1", "function": {"name": "look", "arguments": {"a": 1}}}  # the server gives ids
    log = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "[image 1]\nHi.", "images": [PNG]},
        {"role": "assistant", "content": "So.", "thinking": "Hm.", "tool_calls": [call]},
        {"role": "tool", "content": "x", "tool_name": "look", "tool_call_id": "c1"},
    ]
    assert chat("ollama").lower(load_native("ollama", log)).request["messages"] == log


_BESIDE_MEDIA: Final = {"min_pixels", "max_pixels", "total_pixels", "fps"}


def test_every_key_of_dashscope_messages_is_restored() -> None:
    """The exceptions are `reasoning_signature`, for models of another provider, and `detail` of an image, for the
    compatible mode. The ledger records the name of a speaker.
    """
    keys = {"role", "content", "tool_calls", "tool_call_id", "reasoning_content"}
    assert {*dashscope.Message.model_fields} == keys | {"name", "reasoning_signature"}
    part_keys = {"type", "url", "data", "format", "frames", "cache_control", "detail"}
    kinds = (dashscope.ImagePart, dashscope.AudioPart, dashscope.VideoPart)
    assert {key for kind in kinds for key in kind.model_fields} == part_keys | _BESIDE_MEDIA
    function = {"name": "look", "arguments": "{}"}
    call = {"id": "c1", "type": "function", "function": function}
    media = [{kind: f"https://x.org/a.{kind}", key: 3} for kind in ("image", "video") for key in _BESIDE_MEDIA]
    log = [
        {"role": "system", "content": [{"text": "Be brief."}]},
        {"role": "user", "content": [*media, {"video": ["https://x.org/1.png"], "fps": 2}]},
        {"role": "assistant", "content": [{"text": "So."}], "reasoning_content": "Hm.", "tool_calls": [call]},
        {"role": "tool", "content": "x", "tool_call_id": "c1", "name": "look"},
    ]
    assert chat("dashscope").lower(load_native("dashscope", log)).request["messages"] == log
