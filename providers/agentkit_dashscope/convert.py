"""DashScope's own wire, with its two paths."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any, ClassVar, Literal, Unpack, assert_never

from agentkit.provider_kit import (
    Block,
    CacheBreakpoints,
    Capabilities,
    ConversionError,
    Feature,
    FormatterBase,
    FormatterOptions,
    LegalConversation,
    MediaBlock,
    ModelFact,
    Msg,
    MultiAgentHistory,
    OptionError,
    Request,
    RequestSpec,
    TextBlock,
    Tool,
    ToolResultBlock,
    check_cache_breakpoints,
    copy_json,
    frame_tag,
    get_state_fields,
    split_results,
    write_output,
)
from agentkit_dashscope._path_guard import guard_text
from agentkit_dashscope.capabilities import FACTS, MULTIMODAL, TEXT, TEXT_PATH
from agentkit_openai import mark_cache_control, wire_url, write_tool_choice

__all__ = ["DashScopeChatFormatter", "DashScopeMultiAgentFormatter"]

PathOption = Literal["auto", "text", "multimodal"]


class DashScopeChatFormatter(FormatterBase):
    """`await AioMultiModalConversation.call(model=…, **request)`, or `AioGeneration.call` on the text path.

    path    which of the two the model is bound to. `"auto"` knows the text path's models by name and takes
            the multimodal path, that of all newer ones, for the rest; `path_of(model)` tells
    cache_breakpoints    `"auto"` marks at most four content parts for the explicit context cache (see
            `mark_cache_control`). The text path takes strings, which no marker fits on: nothing is
            written there; the compatible mode has markers for its models

    The SDK's multimodal classes upload a user's text that is the path of a local file (model-studio). A text
    that could be one begins with a line break here, which no such path does. The SDK is asyncio only.
    """

    base: ClassVar[Capabilities] = MULTIMODAL
    facts: ClassVar[tuple[ModelFact, ...]] = FACTS

    def __init__(
        self,
        model: str | None = None,
        *,
        path: PathOption = "auto",
        cache_breakpoints: CacheBreakpoints = "off",
        **options: Unpack[FormatterOptions],
    ) -> None:
        check_cache_breakpoints(cache_breakpoints)
        if path not in ("auto", "text", "multimodal"):
            raise OptionError(
                "path", f"expected 'auto', 'text' or 'multimodal', got {path!r}", "Pass one of them."
            )
        super().__init__(model, **options)
        self.path = path
        self.cache_breakpoints: CacheBreakpoints = cache_breakpoints

    def capabilities(self, model: str | None = None) -> Capabilities:
        """The form of the path that the model is bound to."""
        form = super().capabilities(model)
        return form if self.path == "auto" else _on_path(form, self.path)

    def path_of(self, model: str | None = None) -> Literal["text", "multimodal"]:
        """The path that a request for the model is made for."""
        return "text" if self.capabilities(model).turns.text_joining == "string" else "multimodal"

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        """The request: messages, result_format, and tools, tool_choice and response_format where asked for."""
        as_text = task.capabilities.turns.text_joining == "string"
        messages: list[dict[str, Any]] = []
        for msg in (*legal.system.msgs, *legal.turns.msgs):
            if msg.features & Feature.RESULT:
                results, other = split_results(msg)
                messages.extend(_result(block) for block in results)
                if other:
                    messages.append(_message(other, as_text))
            else:
                messages.append(_message(msg, as_text))
        if legal.turns.msgs and _is_begun(legal.turns.msgs[-1]):
            messages[-1]["partial"] = True
        if self.cache_breakpoints == "auto" and task.capabilities.cache_breakpoints:
            mark_cache_control(messages, legal, lambda text: {"text": text})
        return {"messages": messages, "result_format": "message", **_options(task)}


@lru_cache(256)
def _on_path(form: Capabilities, path: Literal["text", "multimodal"]) -> Capabilities:
    """The capabilities on the path that the caller chose, with what is known of the model besides its path."""
    chosen = TEXT if path == "text" else MULTIMODAL
    return form.override({name: attrgetter(name)(chosen) for name in TEXT_PATH})


class DashScopeMultiAgentFormatter(DashScopeChatFormatter):
    """The same for many speakers."""

    default_history = MultiAgentHistory


def _message(msg: Msg, as_text: bool) -> dict[str, Any]:
    role = "assistant" if msg.features & Feature.CALL else msg.role
    said: list[Block] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    for block in msg.blocks:
        match block.type:
            case "text" | "image" | "audio" | "video" | "document" | "opaque":
                said.append(block)
            case "thinking":
                thoughts.append(block.thinking)
            case "tool_use":
                function = {"name": block.name, "arguments": block.arguments}
                calls.append({"id": block.id, "type": "function", "function": function})
            case "tool_result" | "invalid":
                raise ConversionError(block.type, "a message")
            case _:
                assert_never(block)
    # What a frame says begins with a line break or with the frame's own words.
    guard = role == "user" and not as_text and not frame_tag(msg)
    message: dict[str, Any] = {"role": role, "content": _content(said, as_text, guard)}
    if thoughts:
        message["reasoning_content"] = "\n".join(thoughts)
    return {**message, "tool_calls": calls} if calls else message


def _content(said: Sequence[Block], as_text: bool, guard: bool) -> str | list[dict[str, Any]]:
    """A string on the text path, and where there is nothing to say; single-key parts on the other."""
    if not as_text and said:
        return [_part(block, guard) for block in said]
    for block in said:
        if block.type != "text":
            raise ConversionError(block.type, "a message on the text path")
    return "\n".join(block.text for block in said if isinstance(block, TextBlock))


def _part(block: Block, guard: bool) -> dict[str, Any]:
    match block.type:
        case "text":
            return {"text": guard_text(block.text) if guard else block.text, **_carried(block)}
        case "image" | "audio" | "video":
            return {block.type: wire_url(block.source), **_carried(block)}
        case "opaque":
            return {**copy_json(block.data)}
        case "document" | "thinking" | "tool_use" | "tool_result" | "invalid":
            raise ConversionError(block.type, "a message or a tool result")
        case _:
            assert_never(block)


def _carried(block: TextBlock | MediaBlock) -> dict[str, Any]:
    """What a part came with besides what it says (model-studio: `fps`, `min_pixels`, `max_pixels`)."""
    return {
        key: copy_json(item)
        for key, item in get_state_fields(block.state).items()
        if key not in _NO_FIELDS and not key.startswith("message.")
    }


_NO_FIELDS = frozenset({"text", "image", "audio", "video", "type", "partial", "detail", "refusal", "role"})
"""What would say something else, or is a message's, or of the compatible mode alone."""


def _is_begun(msg: Msg) -> bool:
    """Whether the model is to go on with the text of this last message (model-studio, partial mode)."""
    last = msg.blocks[-1] if msg.blocks and msg.role == "assistant" else None
    return isinstance(last, TextBlock) and get_state_fields(last.state).get("partial") is True


def _result(block: ToolResultBlock) -> dict[str, Any]:
    made = {"role": "tool", "tool_call_id": block.id, "content": write_output(block, partial(_part, guard=False))}
    return {**made, "name": block.name} if block.name else made


def _options(task: RequestSpec) -> dict[str, Any]:
    options = task.write_tools(_tool, write_tool_choice)
    if task.output:
        options["response_format"] = {"type": "json_object"}
    return options


def _tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": copy_json(tool.parameters)}
    return {"type": "function", "function": function}
