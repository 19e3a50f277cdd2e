"""Formatters that convert messages to requests for Ollama's `/api/chat`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

from agentkit.provider_kit import (
    Base64Source,
    Block,
    ConversionError,
    Feature,
    FormatterBase,
    LegalConversation,
    MediaBlock,
    Msg,
    MultiAgentHistory,
    OptionError,
    Request,
    RequestSpec,
    ToolResultBlock,
    copy_json,
    declare_tool,
    split_results,
    write_output,
)
from agentkit_ollama.capabilities import CHAT

__all__ = ["OllamaChatFormatter", "OllamaMultiAgentFormatter", "place_parameters"]

_TOP_LEVEL_FIELDS = frozenset(
    {"options", "keep_alive", "think", "format", "truncate", "shift", "logprobs", "top_logprobs"}
)
"""Parameters that are sent at the top level of a request (Ollama source: api/types.go, ChatRequest).

All other parameters are sent in the field `options`.
"""


class OllamaChatFormatter(FormatterBase):
    """Formatter for Ollama's `/api/chat`.

    Send the request with the SDK: `await ollama.AsyncClient().chat(model=…, **request)`. The content of a message
    is always a string. The field `images` contains images and audio. A mark in the text, such as `[image 1]`,
    shows the position of each item.

    The request contains call ids and complete schemas, which the server accepts. Before sending, ollama-python 0.6
    removes call ids, empty strings and nested schemas.
    """

    base = CHAT

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        """Returns the request with `messages`, and if needed `tools` and `format`."""
        messages: list[dict[str, Any]] = [_message(msg) for msg in legal.system.msgs]
        names: dict[str, str] = {}
        for msg in legal.turns.msgs:
            if msg.features & Feature.RESULT:
                results, other = split_results(msg)
                messages.extend(_result(block, names) for block in results)
                if other:
                    messages.append(_message(other))
            else:
                if msg.features & Feature.CALL:
                    names = {block.id: block.name for block in msg.tool_uses}
                messages.append(_message(msg))
        request: Request = {"messages": messages}
        if task.tools:
            functions = [declare_tool(tool, "parameters") for tool in task.tools]
            request["tools"] = [{"type": "function", "function": function} for function in functions]
        if task.output:
            request["format"] = "json" if task.output.is_any_object else copy_json(task.output.schema)
        return request


class OllamaMultiAgentFormatter(OllamaChatFormatter):
    """Formatter for Ollama's `/api/chat`. Writes the texts of several speakers into one user turn."""

    default_history = MultiAgentHistory


def _message(msg: Msg) -> dict[str, Any]:
    role = "assistant" if msg.features & Feature.CALL else msg.role
    if isinstance(msg.content, str):
        return {"role": role, "content": msg.content}
    lines: list[str] = []
    images: list[str] = []
    thinking: list[str] = []
    calls: list[dict[str, Any]] = []
    for block in msg.content:
        match block.type:
            case "text":
                lines.append(block.text)
            case "thinking":
                thinking.append(block.thinking)
            case "tool_use":
                function = {"name": block.name, "arguments": block.copy_input()}
                calls.append({"id": block.id, "function": function})
            case "image" | "audio" | "video" | "document":
                lines.append(_mark(block, images))
            case "tool_result" | "opaque" | "invalid":
                raise ConversionError(block.type, "message")
            case _:
                assert_never(block)
    message: dict[str, Any] = {"role": role, "content": "\n".join(lines)}
    if thinking:
        message["thinking"] = "\n".join(thinking)
    if images:
        message["images"] = images
    return {**message, "tool_calls": calls} if calls else message


def _mark(block: MediaBlock, images: list[str]) -> str:
    """Appends a media item to `images`. Returns the mark that shows the position of the item in the text."""
    images.append(block.source.data if isinstance(block.source, Base64Source) else block.source.url)
    return f"[{block.type} {len(images)}]"


def _result(block: ToolResultBlock, names: dict[str, str]) -> dict[str, Any]:
    """Converts a tool result to a message with the role `tool`.

    The server finds the tool call of a result by `tool_call_id`, or by `tool_name` and the order of the results.
    """
    images: list[str] = []
    output = write_output(block, lambda item: _write_item(item, images))
    text = output if isinstance(output, str) else "\n".join(output)
    name = names.get(block.id, block.name)
    message = {"role": "tool", "content": text, "tool_name": name, "tool_call_id": block.id}
    return {**message, "images": images} if images else message


def _write_item(item: Block, images: list[str]) -> str:
    """Returns the text of a text block in a tool result, or the mark of a media item, such as `[image 1]`.

    Appends the data of a media item to `images`.
    """
    match item.type:
        case "text":
            return item.text
        case "image" | "audio" | "video" | "document":
            return _mark(item, images)
        case "opaque" | "thinking" | "tool_use" | "tool_result" | "invalid":
            raise ConversionError(item.type, "tool result")
        case _:
            assert_never(item)


def place_parameters(parameters: Mapping[str, Any], request: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the parameters of a model call as request fields. Most parameters are sent in the field `options`.

    Raises:
        OptionError: A parameter for `options` has the name of a key that the request already sets.
    """
    fields = {name: item for name, item in parameters.items() if name in _TOP_LEVEL_FIELDS}
    inner = {name: item for name, item in parameters.items() if name not in _TOP_LEVEL_FIELDS}
    if clash := sorted(inner.keys() & {*request, "model", "stream", "tools"}):
        raise OptionError(f"parameters.{clash[0]}", "already set by the request", "Remove the parameter.")
    if inner:
        fields["options"] = {**inner, **(fields.get("options") or {})}
    return fields
