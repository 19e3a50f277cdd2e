"""Formatters for Ollama's `/api/chat`, and the conversion of legal messages to its request."""

from __future__ import annotations

from typing import Any, ClassVar, assert_never

from agentkit.provider_kit import (
    Base64Source,
    Capabilities,
    ConversionError,
    Feature,
    FormatterBase,
    LegalConversation,
    MediaBlock,
    Msg,
    MultiAgentHistory,
    Request,
    RequestSpec,
    TextBlock,
    Tool,
    ToolResultBlock,
    copy_json,
    split_results,
)
from agentkit_ollama.capabilities import CHAT

__all__ = ["OllamaChatFormatter", "OllamaMultiAgentFormatter"]


class OllamaChatFormatter(FormatterBase):
    """Formatter for Ollama chat: `await ollama.AsyncClient().chat(model=…, **request)`.

    Content is always a string. Images and audio go into `images`, and a mark in the text shows their position.
    The request has call ids and complete schemas, which the server accepts. ollama-python 0.6 omits ids, empty
    strings and nested schemas when it sends a request.
    """

    base: ClassVar[Capabilities] = CHAT

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        """Returns the request: `messages`, and `tools` and `format` if requested."""
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
            request["tools"] = [_tool(tool) for tool in task.tools]
        if task.output:
            request["format"] = copy_json(task.output.schema)
        return request


class OllamaMultiAgentFormatter(OllamaChatFormatter):
    """Formatter for Ollama chat with many speakers in one history frame."""

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
                raise ConversionError(block.type, "a message")
            case _:
                assert_never(block)
    message: dict[str, Any] = {"role": role, "content": "\n".join(lines)}
    if thinking:
        message["thinking"] = "\n".join(thinking)
    if images:
        message["images"] = images
    return {**message, "tool_calls": calls} if calls else message


def _mark(block: MediaBlock, images: list[str]) -> str:
    """Appends a media item to `images`, and returns the mark for its position in the text."""
    images.append(block.source.data if isinstance(block.source, Base64Source) else block.source.url)
    return f"[{block.type} {len(images)}]"


def _result(block: ToolResultBlock, names: dict[str, str]) -> dict[str, Any]:
    """Returns a tool message. The server matches it by `tool_name` and order, or by `tool_call_id`."""
    images: list[str] = []
    text = _output(block, images)
    name = names.get(block.id, block.name)
    message = {"role": "tool", "content": text, "tool_name": name, "tool_call_id": block.id}
    return {**message, "images": images} if images else message


def _output(block: ToolResultBlock, images: list[str]) -> str:
    if isinstance(block.output, str) or all(isinstance(item, TextBlock) for item in block.output):
        return block.marked_listing
    lines = ["[error]"] if block.is_error else list[str]()
    for item in block.output:
        match item.type:
            case "text":
                lines.append(item.text)
            case "image" | "audio" | "video" | "document":
                lines.append(_mark(item, images))
            case "opaque" | "invalid":
                raise ConversionError(item.type, "a tool result")
            case _:
                assert_never(item)
    return "\n".join(lines)


def _tool(tool: Tool) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    return {"type": "function", "function": {**function, "parameters": copy_json(tool.parameters)}}
