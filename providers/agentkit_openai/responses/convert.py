"""OpenAI Responses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Unpack, assert_never

from agentkit.provider_kit import (
    Base64Source,
    Block,
    CacheBreakpoints,
    Capabilities,
    ConversionError,
    Feature,
    FormatterBase,
    FormatterOptions,
    LegalConversation,
    ModelFact,
    Msg,
    MultiAgentHistory,
    Request,
    RequestSpec,
    TextBlock,
    Tool,
    ToolChoice,
    ToolResultBlock,
    check_cache_breakpoints,
    copy_json,
    split_results,
    stable_blocks,
    write_output,
)
from agentkit_openai._media_parts import came_with, file_name, wire_url
from agentkit_openai._prompt_cache import mark_latest
from agentkit_openai._roles import role_of
from agentkit_openai.convert import named_schema
from agentkit_openai.responses._turn_items import ItemWriter
from agentkit_openai.responses.capabilities import OUTPUT_FIELDS, RESPONSES, RESPONSES_FACTS

__all__ = ["OpenAIResponsesFormatter", "OpenAIResponsesMultiAgentFormatter"]


class OpenAIResponsesFormatter(FormatterBase):
    """`await AsyncOpenAI().responses.create(model=…, **request)`, with or without `store`.

    Reasoning is sent with its `encrypted_content`, right before the item that the model produced after it. Both
    have their ids, and so have the items after them: the service ties stored items together by id, and unless
    `store` is false it refuses reasoning with an id before an item without. Where that item is missing, was
    rewritten or has no known id, as in histories of earlier versions, reasoning is sent without its id: the
    encrypted content is enough then. Messages and calls without such reasoning before them have no ids, which any
    server accepts. Items of hosted tools, such as `web_search_call`, need their ids: where the reasoning before
    them cannot be sent, they are left out too, and a generated image is sent as an image. So ask for
    `include=["reasoning.encrypted_content"]`.

    cache_breakpoints    `"auto"` marks content parts for the prompt cache, if the model is known to take markers
                         (see `mark_latest`); texts that are not the assistant's are lists of one part then
    """

    base: ClassVar[Capabilities] = RESPONSES
    facts: ClassVar[tuple[ModelFact, ...]] = RESPONSES_FACTS

    def __init__(
        self,
        model: str | None = None,
        *,
        cache_breakpoints: CacheBreakpoints = "off",
        **options: Unpack[FormatterOptions],
    ) -> None:
        check_cache_breakpoints(cache_breakpoints)
        super().__init__(model, **options)
        self.cache_breakpoints: CacheBreakpoints = cache_breakpoints

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        """The request: input items, and tools, tool_choice and text where asked for."""
        writer = ItemWriter({*legal.call_ids, *legal.tool_names})
        if self.cache_breakpoints == "auto" and task.capabilities.cache_breakpoints:
            items = _marked_items(legal, writer)
        else:
            items = [item for msg in (*legal.system.msgs, *legal.turns.msgs) for item in _items(msg, writer)]
        return {"input": items, **_options(task)}


class OpenAIResponsesMultiAgentFormatter(OpenAIResponsesFormatter):
    """The same for many speakers."""

    default_history = MultiAgentHistory


def _items(msg: Msg, writer: ItemWriter) -> Iterator[dict[str, Any]]:
    """The items of one turn."""
    if msg.features & Feature.RESULT:
        results, other = split_results(msg)
        for block in results:
            kind = "custom_tool_call_output" if block.id in writer.custom else "function_call_output"
            output = write_output(block, _part)
            yield {"type": kind, "call_id": block.id, "output": output, **_beside_output(block)}
        if other:
            yield from _items(other, writer)
    elif msg.role == "assistant" or msg.features & Feature.CALL:
        yield from writer.items(msg)
    else:
        content = msg.content
        yield _message(role_of(msg), content if isinstance(content, str) else _content(content))


def _message(role: str, content: str | list[dict[str, Any]]) -> dict[str, Any]:
    """A message; some servers refuse one without its `type` (llama.cpp: "Cannot determine type of 'item'")."""
    return {"type": "message", "role": role, "content": content}


def _content(blocks: tuple[Block, ...]) -> str | list[dict[str, Any]]:
    if len(blocks) == 1 and isinstance(blocks[0], TextBlock):
        return blocks[0].text
    return [_part(block) for block in blocks]


def _part(block: Block) -> dict[str, Any]:
    """A content part (SDK: ResponseInputContentParam); `image_url` is a string here."""
    match block.type:
        case "text":
            return {"type": "input_text", "text": block.text}
        case "image":
            made = {"type": "input_image", "image_url": wire_url(block.source), "detail": "auto"}
            return {**made, **came_with(block, "detail")}
        case "document" if isinstance(block.source, Base64Source):
            made = {"type": "input_file", "filename": file_name(block), "file_data": block.source.data_url}
            return {**made, **came_with(block, "detail")}
        case "document":
            return {"type": "input_file", "file_url": wire_url(block.source), **came_with(block, "detail")}
        case "opaque":
            return {**copy_json(block.data)}
        case "audio" | "video" | "thinking" | "tool_use" | "tool_result" | "invalid":
            raise ConversionError(block.type, "a user turn or a tool result")
        case _:
            assert_never(block)


def _beside_output(block: ToolResultBlock) -> dict[str, Any]:
    """What a result came with besides its output."""
    if isinstance(block.output, str):
        return {}
    first = next((item for item in block.output if isinstance(item, TextBlock)), None)
    return came_with(first, *OUTPUT_FIELDS) if first else {}


def _marked_items(legal: LegalConversation, writer: ItemWriter) -> list[dict[str, Any]]:
    """The items with their markers: on what is settled in the turns of others, and in results."""
    items: list[dict[str, Any]] = []
    parts: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for draft in (legal.system, legal.turns):
        for msg, flags in stable_blocks(draft):
            made = [*_items(msg, writer)]
            items.extend(made)
            if not msg.features & Feature.ASSISTANT:
                parts[draft is legal.system].extend(_markable(made, flags))
    mark_latest(parts[True], parts[False])
    return items


def _markable(made: list[dict[str, Any]], flags: tuple[bool, ...]) -> Iterator[dict[str, Any]]:
    """The settled parts of one turn's items; each text becomes a list of one part, marked or not."""
    rest = iter(flags)
    for item in made:
        key = "output" if "output" in item else "content"
        whole = key == "output"  # one item a result, one part a block of any other turn
        if isinstance(item[key], str):
            if not item[key].strip():
                next(rest, None)
                continue
            item[key] = [{"type": "input_text", "text": item[key]}]
        flag = whole and next(rest)
        for part in item[key]:
            if flag if whole else next(rest):
                yield part


def _options(task: RequestSpec) -> dict[str, Any]:
    options = task.write_tools(_tool, _choice)
    if task.output:
        options["text"] = {"format": {"type": "json_schema", **named_schema(task)}}
    return options


def _tool(tool: Tool) -> dict[str, Any]:
    """A flat function tool; `strict` is set, since the service tries strict mode where it is missing."""
    made: dict[str, Any] = {
        "type": "function",
        "name": tool.name,
        "parameters": copy_json(tool.parameters),
        "strict": bool(tool.strict),
    }
    return {**made, "description": tool.description} if tool.description else made


def _choice(choice: ToolChoice) -> str | dict[str, Any]:
    """SDK: ToolChoiceAllowedParam, ToolChoiceFunctionParam, ToolChoiceOptions."""
    if choice.names:
        tools = [{"type": "function", "name": name} for name in choice.names]
        return {"type": "allowed_tools", "mode": choice.mode, "tools": tools}
    return {"type": "function", "name": choice.name} if choice.mode == "tool" else choice.mode
