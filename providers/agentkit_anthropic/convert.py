"""Anthropic Messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, Literal, Unpack, assert_never

from agentkit.provider_kit import (
    Base64Source,
    Block,
    Capabilities,
    ConversionError,
    DocumentBlock,
    Feature,
    FormatterBase,
    FormatterOptions,
    LegalConversation,
    MediaBlock,
    ModelFact,
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
    check_cache_breakpoints,
    copy_json,
    declare_tool,
    get_state_fields,
    map_schema,
)
from agentkit_anthropic._output_schema import in_subset
from agentkit_anthropic._parts import carried, content_text, search_text
from agentkit_anthropic._prompt_cache import mark
from agentkit_anthropic.capabilities import FACTS, MESSAGES

__all__ = ["AnthropicChatFormatter", "AnthropicMultiAgentFormatter"]

# SDK: CacheControlEphemeralParam; a missing ttl is five minutes.
_MARKERS = {"auto": {"type": "ephemeral"}, "auto-1h": {"type": "ephemeral", "ttl": "1h"}}


class AnthropicChatFormatter(FormatterBase):
    """`await AsyncAnthropic().messages.create(model=…, max_tokens=…, **request)`.

    cache_breakpoints    `"auto"` marks at most four blocks for the prompt cache, where the next request of the
                         conversation finds them: the end of the system prompt, the last block that stays, the
                         last before the assistant's last turn, and one further back. `"auto-1h"` keeps them an
                         hour, not five minutes. Off by default, since writing costs 1.25 times the input price
                         (twice for an hour) and pays only where a request follows in time
    """

    base: ClassVar[Capabilities] = MESSAGES
    facts: ClassVar[tuple[ModelFact, ...]] = FACTS

    def __init__(
        self,
        model: str | None = None,
        *,
        cache_breakpoints: Literal["off", "auto", "auto-1h"] = "off",
        **options: Unpack[FormatterOptions],
    ) -> None:
        check_cache_breakpoints(cache_breakpoints, "auto-1h")
        super().__init__(model, **options)
        self.cache_breakpoints = cache_breakpoints

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        """The request: messages, and system, tools, tool_choice and output_config where there are any."""
        assistant = Feature.ASSISTANT
        messages: list[dict[str, Any]] = [
            _message(msg.content, "assistant" if msg.features & assistant else "user") for msg in legal.turns.msgs
        ]
        if legal.turns.normal_form is None or legal.turns.normal_form.features & Feature.STATE:
            _link(messages)
        request: Request = {"messages": messages, **_system(legal.system.msgs), **_options(task)}
        _strip_prefill(messages)
        if self.cache_breakpoints != "off" and task.capabilities.cache_breakpoints:
            mark(request, legal, _MARKERS[self.cache_breakpoints])
        return request


class AnthropicMultiAgentFormatter(AnthropicChatFormatter):
    """The same for many speakers."""

    default_history = MultiAgentHistory


def _link(messages: list[dict[str, Any]]) -> None:
    """Results under "the toolset family of the paired tool_use" (SDK: ToolResultBlockParam.toolset_name); no call
    by a server's tool that is not there (SDK: ServerToolCallerParam.tool_id).
    """
    names: dict[str, str | None] = {}
    servers: set[str] = set()
    for block in (block for message in messages for block in message["content"]):
        if block["type"] == "server_tool_use":
            servers.add(as_text(block.get("id")))
        elif block["type"] == "tool_use":
            names[block["id"]] = block.get("toolset_name")
            maker = as_object(block.get("caller")).get("tool_id")
            if maker is not None and as_text(maker) not in servers:
                del block["caller"]
        elif block["type"] == "tool_result" and (name := names.get(block["tool_use_id"])):
            block["toolset_name"] = name


def _strip_prefill(messages: list[dict[str, Any]]) -> None:
    """On the models that take a prefill: "final assistant content cannot end with trailing whitespace"."""
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
"""Where blocks stand: in whose turn, or where texts are texts and nothing else."""


def _message(content: str | Iterable[Block], role: Literal["assistant", "user"]) -> dict[str, Any]:
    return {"role": role, "content": _content(content, role)}


def _content(content: str | Iterable[Block], place: _Place = "plain") -> list[dict[str, Any]]:
    """A turn's content blocks (SDK: ContentBlockParam)."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    blocks: list[dict[str, Any]] = []
    add = blocks.append
    for block in content:
        match block.type:
            case "text":
                add({"type": "text", "text": block.text} if block.state is None else _text(block, place))
            case "tool_use":
                made = {"type": "tool_use", "id": block.id, "name": block.name, "input": block.copy_input()}
                add({**made, **_carried(block)} if block.state else made)
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
                raise ConversionError(block.type, "a message or a tool result")
            case _:
                assert_never(block)
    return blocks


def _carried(block: ToolUseBlock | MediaBlock) -> dict[str, Any]:
    """What a block came with besides what every provider knows."""
    return carried(block.type, block.state.fields) if block.state and block.state.fields else {}


def _text(block: TextBlock, place: _Place) -> dict[str, Any]:
    """A text with what it came with: a model's citations, or the search result that it was made from."""
    made = {"type": "text", "text": block.text}
    if place == "assistant":
        return made | carried("text", get_state_fields(block.state))
    found = as_object(get_state_fields(block.state).get("search_result"))
    return {**copy_json(found)} if place == "user" and found and search_text(found) == block.text else made


def _thinking(block: ThinkingBlock) -> dict[str, Any]:
    """Byte for byte as it was issued, an empty text included (preserved-thinking)."""
    state = block.state
    assert state is not None
    if state.redacted_data:
        return {"type": "redacted_thinking", "data": state.redacted_data}
    return {"type": "thinking", "thinking": block.thinking, "signature": state.signature}


def _result(block: ToolResultBlock) -> dict[str, Any]:
    """A tool result; an empty one leaves `content` out, a failed one has to say something."""
    output = block.output
    if not isinstance(output, str):
        content: Any = _content(output, "plain" if block.is_error else "user")
    elif output and not block.is_error and not output.isspace():
        return {"type": "tool_result", "tool_use_id": block.id, "content": output}
    else:
        content = None if not output or output.isspace() else output
    made: dict[str, Any] = {"type": "tool_result", "tool_use_id": block.id}
    if block.is_error:
        made["is_error"] = True
        content = content or "The tool failed without a message."
    if content:
        made["content"] = content
    return made


def _source(source: Source) -> dict[str, Any]:
    if isinstance(source, Base64Source):
        return {"type": "base64", "media_type": source.media_type, "data": source.data}
    return {"type": "url", "url": source.url}


def _document(block: DocumentBlock) -> dict[str, Any]:
    parts = as_object(get_state_fields(block.state).get("source"))
    made = {"type": "document", "source": _document_source(block.source, parts), **_carried(block)}
    return {**made, "title": block.title} if block.title else made


def _document_source(source: Source, parts: dict[str, Any]) -> dict[str, Any]:
    """PDF as it is; text of any kind as plain text, or in the parts that it came in."""
    if isinstance(source, Base64Source) and parts and content_text(parts) == source.text:
        return {**copy_json(parts)}
    if isinstance(source, Base64Source) and source.media_type != "application/pdf":
        return {"type": "text", "media_type": "text/plain", "data": source.text}
    return _source(source)


def _options(task: RequestSpec) -> dict[str, Any]:
    options = task.write_tools(_tool, _choice)
    if task.output:
        schema = map_schema(task.output.schema, in_subset)
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
