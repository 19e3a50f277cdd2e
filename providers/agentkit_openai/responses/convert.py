"""Formatters for OpenAI Responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_never

from agentkit.provider_kit import (
    Base64Source,
    Block,
    ConversionError,
    Feature,
    FormatterBase,
    LegalConversation,
    Msg,
    MultiAgentHistory,
    Request,
    RequestSpec,
    TextBlock,
    Tool,
    ToolChoice,
    ToolResultBlock,
    copy_json,
    split_results,
    stable_blocks,
    write_output,
)
from agentkit_openai._media_parts import choose_file_name, copy_state_fields, source_url
from agentkit_openai._message_keys import get_role
from agentkit_openai._prompt_cache import mark_latest
from agentkit_openai._tool_options import write_schema
from agentkit_openai.responses._turn_items import ItemWriter
from agentkit_openai.responses.capabilities import OUTPUT_FIELDS, RESPONSES, RESPONSES_FACTS

__all__ = ["OpenAIResponsesFormatter", "OpenAIResponsesMultiAgentFormatter"]


class OpenAIResponsesFormatter(FormatterBase):
    """Formatter for OpenAI Responses. Send a request with `responses.create(model=…, **request)`.

    The requests are valid with `store=True` and with `store=False`. Pass `include=["reasoning.encrypted_content"]`
    with each request, so that the reasoning in the reply can be sent back.

    Reasoning is sent with its `encrypted_content`, directly before the item that the model produced after the
    reasoning. The reasoning, this item and the items after it are sent with their ids, because OpenAI connects
    stored items by id. Unless `store` is false, OpenAI refuses reasoning with an id before an item without an id.

    Reasoning is sent without its id if the next item is missing, was rewritten or has no id. The encrypted content
    is then sufficient. Messages and tool calls that do not follow reasoning with an id are sent without ids.

    Calls of tools that OpenAI runs, such as `web_search_call`, require their ids and any reasoning before them. If
    this reasoning cannot be sent, the formatter omits the calls. In the same case, a generated image is sent as an
    ordinary image.

    Args:
        model: Name of the model. If None, requests use only features that all current models accept.
        cache_breakpoints: `"auto"` adds markers for the prompt cache if the model accepts them. Each text outside
            of assistant messages is then written as a list of one part. `"off"` adds no markers.
        options: Options of all formatters (see `FormatterOptions`).

    Raises:
        OptionError: An option has an invalid value.
    """

    base = RESPONSES
    facts = RESPONSES_FACTS
    cache_options = ("off", "auto")

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        """Writes a conversation as a request with the key `input`.

        The request also has `tools`, `tool_choice` and `text` if `task` has values for these keys.
        """
        writer = ItemWriter({*legal.call_ids, *legal.tool_names})
        if self.cache_breakpoints == "auto" and task.capabilities.cache_breakpoints:
            items = _write_marked_items(legal, writer)
        else:
            items = [item for msg in (*legal.system.msgs, *legal.turns.msgs) for item in _write_items(msg, writer)]
        return {"input": items, **_write_options(task)}


class OpenAIResponsesMultiAgentFormatter(OpenAIResponsesFormatter):
    """Formatter for conversations of many agents, with the request format of `OpenAIResponsesFormatter`."""

    default_history = MultiAgentHistory


def _write_items(msg: Msg, writer: ItemWriter) -> Iterator[dict[str, Any]]:
    if msg.features & Feature.RESULT:
        results, other = split_results(msg)
        for block in results:
            item_type = "custom_tool_call_output" if block.id in writer.custom_ids else "function_call_output"
            output = write_output(block, _write_part)
            yield {"type": item_type, "call_id": block.id, "output": output, **_get_output_fields(block)}
        if other:
            yield from _write_items(other, writer)
    elif msg.role == "assistant" or msg.features & Feature.CALL:
        yield from writer.write(msg)
    else:
        # Some servers refuse a message without the key `type` (llama.cpp: "Cannot determine type of 'item'").
        content: object = msg.content
        if not isinstance(msg.content, str):
            only = msg.content[0] if len(msg.content) == 1 else None
            content = only.text if isinstance(only, TextBlock) else [_write_part(block) for block in msg.content]
        yield {"type": "message", "role": get_role(msg), "content": content}


def _write_part(block: Block) -> dict[str, Any]:
    """Writes a block as a content part (openai-python: ResponseInputContentParam)."""
    match block.type:
        case "text":
            return {"type": "input_text", "text": block.text}
        case "image":
            part = {"type": "input_image", "image_url": source_url(block.source), "detail": "auto"}
            return {**part, **copy_state_fields(block, "detail")}
        case "document" if isinstance(block.source, Base64Source):
            part = {"type": "input_file", "filename": choose_file_name(block), "file_data": block.source.data_url}
            return {**part, **copy_state_fields(block, "detail")}
        case "document":
            part = {"type": "input_file", "file_url": source_url(block.source)}
            return {**part, **copy_state_fields(block, "detail")}
        case "opaque":
            return {**copy_json(block.data)}
        case "audio" | "video" | "thinking" | "tool_use" | "tool_result" | "invalid":
            raise ConversionError(block.type, "content part")
        case _:
            assert_never(block)


def _get_output_fields(block: ToolResultBlock) -> dict[str, Any]:
    """Returns the additional keys of a tool result from the opaque state of its first text."""
    if isinstance(block.output, str):
        return {}
    text = next((item for item in block.output if isinstance(item, TextBlock)), None)
    return copy_state_fields(text, *OUTPUT_FIELDS) if text else {}


def _write_marked_items(legal: LegalConversation, writer: ItemWriter) -> list[dict[str, Any]]:
    """Writes the items of a request, with cache markers at content parts outside of assistant messages.

    Parts that the next request omits or moves get no markers.
    """
    items: list[dict[str, Any]] = []
    sections: list[list[dict[str, Any]]] = []
    for conversation in (legal.system, legal.turns):
        parts: list[dict[str, Any]] = []
        for msg, flags in stable_blocks(conversation):
            turn_items = [*_write_items(msg, writer)]
            items.extend(turn_items)
            if not msg.features & Feature.ASSISTANT:
                parts.extend(_open_stable_parts(turn_items, flags))
        sections.append(parts)
    mark_latest(*sections)
    return items


def _open_stable_parts(items: list[dict[str, Any]], flags: tuple[bool, ...]) -> Iterator[dict[str, Any]]:
    """Yields those content parts of a turn that the next request repeats.

    Each item whose content is a string gets a list of one part instead, because only parts can have cache markers.

    Args:
        items: Items of the turn. A tool result is one item, and any other block is one part of an item.
        flags: One flag for each block of the turn. A flag is True if the next request repeats the block.
    """
    remaining = iter(flags)
    for item in items:
        is_result = "output" in item
        key = "output" if is_result else "content"
        if isinstance(item[key], str):
            if not item[key].strip():
                next(remaining, None)
                continue
            item[key] = [{"type": "input_text", "text": item[key]}]
        is_stable = is_result and next(remaining)
        for part in item[key]:
            if is_stable if is_result else next(remaining):
                yield part


def _write_options(task: RequestSpec) -> dict[str, Any]:
    """Writes the tools and the output schema of a Responses request.

    Returns a dict with the keys `tools`, `tool_choice` and `text`, without the keys that have no value.
    """
    options = task.write_tools(_write_tool, _write_tool_choice)
    if task.output and task.capabilities.output == "object":
        options["text"] = {"format": {"type": "json_object"}}
    elif task.output:
        options["text"] = {"format": {"type": "json_schema", **write_schema(task.output)}}
    return options


def _write_tool(tool: Tool) -> dict[str, Any]:
    """Writes a tool for Responses (openai-python: FunctionToolParam).

    `strict` is always set, because the API tries to use strict mode if the key is missing.
    """
    item: dict[str, Any] = {
        "type": "function",
        "name": tool.name,
        "parameters": copy_json(tool.parameters),
        "strict": bool(tool.strict),
    }
    return {**item, "description": tool.description} if tool.description else item


def _write_tool_choice(choice: ToolChoice) -> str | dict[str, Any]:
    """Writes a tool choice for Responses (openai-python: ToolChoiceAllowedParam, ToolChoiceFunctionParam)."""
    if choice.names:
        tools = [{"type": "function", "name": name} for name in choice.names]
        return {"type": "allowed_tools", "mode": choice.mode, "tools": tools}
    return {"type": "function", "name": choice.name} if choice.mode == "tool" else choice.mode
