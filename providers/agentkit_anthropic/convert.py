"""Formatters that build requests for Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, assert_never

from agentkit.provider_kit import (
    Base64Source,
    Block,
    ConversionError,
    DocumentBlock,
    Feature,
    FormatterBase,
    LegalConversation,
    MediaBlock,
    Msg,
    MultiAgentHistory,
    Request,
    RequestSpec,
    Source,
    TextBlock,
    ThinkingBlock,
    Tool,
    ToolChoice,
    ToolResultBlock,
    ToolUseBlock,
    as_object,
    as_text,
    copy_json,
    declare_tool,
    get_state_fields,
    map_schema,
)
from agentkit_anthropic._output_schema import restrict_schema
from agentkit_anthropic._parts import carried, content_text, search_text
from agentkit_anthropic._prompt_cache import mark
from agentkit_anthropic.capabilities import FACTS, MESSAGES

__all__ = ["AnthropicChatFormatter", "AnthropicMultiAgentFormatter"]

# Values of `cache_control` (Anthropic SDK: CacheControlEphemeralParam). Without `ttl`, the cache lasts 5 minutes.
_MARKERS = {"auto": {"type": "ephemeral"}, "auto-1h": {"type": "ephemeral", "ttl": "1h"}}


class AnthropicChatFormatter(FormatterBase):
    """Formatter for `AsyncAnthropic().messages.create(model=…, max_tokens=…, **request)`.

    Args:
        model: Name of the model. With None, requests use only features that all current models accept.
        cache_breakpoints: `"auto"` marks at most four blocks for the prompt cache. The first is the last block
            of the system prompt, or the last tool if there is no system prompt. The others are the last block
            that later requests repeat unchanged, the last block before the assistant's last turn, and one earlier
            block. `"auto-1h"` marks the same blocks, and extends the cache time from five minutes to one hour. The
            default is `"off"`, because a cache write costs 1.25 times the input price, or twice the input price
            with `"auto-1h"`.
        **options: See `FormatterOptions`.

    """

    base = MESSAGES
    facts = FACTS
    cache_options = ("off", "auto", "auto-1h")

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        """Returns a request with `messages`, and if needed `system`, `tools`, `tool_choice`, `output_config`."""
        messages: list[dict[str, Any]] = []
        for msg in legal.turns.msgs:
            role: Literal["assistant", "user"] = "assistant" if msg.features & Feature.ASSISTANT else "user"
            messages.append({"role": role, "content": _content(msg.content, role)})
        if legal.turns.normal_form is None or legal.turns.normal_form.features & Feature.STATE:
            _link_tool_blocks(messages)
        request: Request = {"messages": messages, **_system(legal.system.msgs), **_options(task)}
        _strip_prefill(messages)
        if self.cache_breakpoints != "off" and task.capabilities.cache_breakpoints:
            mark(request, legal, _MARKERS[self.cache_breakpoints])
        return request


class AnthropicMultiAgentFormatter(AnthropicChatFormatter):
    """Variant of `AnthropicChatFormatter` for conversations between several agents."""

    default_history = MultiAgentHistory


def _link_tool_blocks(messages: list[dict[str, Any]]) -> None:
    """Corrects the keys `toolset_name` of tool results and `caller` of tool calls.

    A result gets the `toolset_name` of its call (Anthropic SDK: ToolResultBlockParam). `caller` contains the id of
    a server tool call. If the request does not contain this server tool call, the function removes `caller`
    (Anthropic SDK: ServerToolCallerParam.tool_id).
    """
    names: dict[str, str | None] = {}
    servers: set[str] = set()
    for block in (block for message in messages for block in message["content"]):
        if block["type"] == "server_tool_use":
            servers.add(as_text(block.get("id")))
        elif block["type"] == "tool_use":
            names[block["id"]] = block.get("toolset_name")
            caller = as_object(block.get("caller")).get("tool_id")
            if caller is not None and as_text(caller) not in servers:
                del block["caller"]
        elif block["type"] == "tool_result" and (name := names.get(block["tool_use_id"])):
            block["toolset_name"] = name


def _strip_prefill(messages: list[dict[str, Any]]) -> None:
    """Removes the whitespace at the end of the request if the last turn is an assistant turn.

    API error: "final assistant content cannot end with trailing whitespace".
    """
    last = messages[-1] if messages else {}
    if last.get("role") == "assistant" and last["content"][-1]["type"] == "text":
        last["content"][-1]["text"] = last["content"][-1]["text"].rstrip()


def _system(msgs: Iterable[Msg]) -> dict[str, Any]:
    blocks = [block for msg in msgs for block in msg.blocks]
    if not blocks:
        return {}
    only = blocks[0]
    return {"system": only.text if len(blocks) == 1 and isinstance(only, TextBlock) else _content(blocks)}


_Place = Literal["assistant", "user", "plain"]
"""Position of blocks in a request: an assistant turn, a user turn, or "plain" content.

"plain" content is a system prompt or a failed tool result. Text blocks in plain content have only the keys `type`
and `text`.
"""


def _content(content: str | Iterable[Block], place: _Place = "plain") -> list[dict[str, Any]]:
    """Converts blocks to Anthropic's format (Anthropic SDK: ContentBlockParam)."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    blocks: list[dict[str, Any]] = []
    add = blocks.append
    for block in content:
        match block.type:
            case "text":
                add({"type": "text", "text": block.text} if block.state is None else _text(block, place))
            case "tool_use":
                call = {"type": "tool_use", "id": block.id, "name": block.name, "input": block.copy_input()}
                add({**call, **_carried(block)} if block.state else call)
            case "tool_result":
                add(_result(block))
            case "thinking":
                add(_thinking(block))
            case "image":
                add({"type": "image", "source": _source(block.source), **_carried(block)})
            case "document":
                add(_document(block))
            case "opaque":
                add(copy_json(block.data))
            case "audio" | "video" | "invalid":
                raise ConversionError(block.type, "message content")
            case _:
                assert_never(block)
    return blocks


def _carried(block: ToolUseBlock | MediaBlock) -> dict[str, Any]:
    return carried(block.type, block.state.fields) if block.state and block.state.fields else {}


def _text(block: TextBlock, place: _Place) -> dict[str, Any]:
    """Converts a text block to Anthropic's format. In assistant turns, the citations are included.

    `load_native` converts a search result in a user turn to a text block. If the text is unchanged, this function
    returns the original search result.
    """
    part = {"type": "text", "text": block.text}
    if place == "assistant":
        return part | carried("text", get_state_fields(block.state))
    result = as_object(get_state_fields(block.state).get("search_result"))
    return {**copy_json(result)} if place == "user" and result and search_text(result) == block.text else part


def _thinking(block: ThinkingBlock) -> dict[str, Any]:
    """Converts a thinking block to Anthropic's format.

    Blocks with an empty text are included too, because requests must repeat all thinking blocks unchanged
    (Anthropic docs: preserved-thinking).
    """
    state = block.state
    assert state is not None
    if state.redacted_data:
        return {"type": "redacted_thinking", "data": state.redacted_data}
    return {"type": "thinking", "thinking": block.thinking, "signature": state.signature}


def _result(block: ToolResultBlock) -> dict[str, Any]:
    """Converts a tool result to Anthropic's format.

    If the output is empty or only whitespace, the key `content` is omitted. If such a result is an error,
    `content` is a fixed error text.
    """
    output = block.output
    if isinstance(output, str):
        content: Any = "" if output.isspace() else output
    else:
        content = _content(output, "plain" if block.is_error else "user")
    part: dict[str, Any] = {"type": "tool_result", "tool_use_id": block.id}
    if block.is_error:
        part["is_error"] = True
        content = content or "The tool failed without a message."
    if content:
        part["content"] = content
    return part


def _source(source: Source) -> dict[str, Any]:
    if isinstance(source, Base64Source):
        return {"type": "base64", "media_type": source.media_type, "data": source.data}
    return {"type": "url", "url": source.url}


def _document(block: DocumentBlock) -> dict[str, Any]:
    parts = as_object(get_state_fields(block.state).get("source"))
    part = {"type": "document", "source": _document_source(block.source, parts), **_carried(block)}
    return {**part, "title": block.title} if block.title else part


def _document_source(source: Source, parts: dict[str, Any]) -> dict[str, Any]:
    """Converts the source of a document to Anthropic's format.

    The text of a text document is sent as one string. If `load_native` joined the text from several parts, and the
    text is unchanged, the function returns the original source (`parts`).
    """
    if isinstance(source, Base64Source) and parts and content_text(parts) == source.text:
        return {**copy_json(parts)}
    if isinstance(source, Base64Source) and source.media_type != "application/pdf":
        return {"type": "text", "media_type": "text/plain", "data": source.text}
    return _source(source)


def _options(task: RequestSpec) -> dict[str, Any]:
    options = task.write_tools(_tool, _choice)
    if task.output and task.capabilities.output == "schema":
        schema = map_schema(task.output.schema, restrict_schema)
        options["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    return options


def _tool(tool: Tool) -> dict[str, Any]:
    declaration = declare_tool(tool, "input_schema")
    declaration["input_schema"] = {"type": "object", **declaration["input_schema"]}
    return declaration if tool.strict is None else {**declaration, "strict": tool.strict}


def _choice(choice: ToolChoice) -> dict[str, Any]:
    if choice.mode == "tool":
        return {"type": "tool", "name": choice.name}
    return {"type": "any" if choice.mode == "required" else choice.mode}
