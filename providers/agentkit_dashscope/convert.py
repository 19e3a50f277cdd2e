"""Formatters that convert messages to requests for DashScope's native API.

The API has two paths. The content of messages is a string on the text path, and a list of parts on the multimodal
path. Each model accepts requests on only one path.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from operator import attrgetter
from typing import Any, Literal, Unpack, assert_never

from agentkit.provider_kit import (
    Block,
    Capabilities,
    ConversionError,
    Feature,
    FormatterBase,
    FormatterOptions,
    LegalConversation,
    MediaBlock,
    Msg,
    MultiAgentHistory,
    Request,
    RequestSpec,
    TextBlock,
    Tool,
    ToolResultBlock,
    check_choice,
    copy_json,
    get_state_fields,
    split_results,
    write_output,
)
from agentkit_dashscope._upload_guard import guard_text
from agentkit_dashscope.capabilities import FACTS, MULTIMODAL, TEXT, TEXT_PATH
from agentkit_openai import get_message_keys, mark_cache_control, source_url, write_tool_choice

__all__ = ["DashScopeChatFormatter", "DashScopeMultiAgentFormatter"]


class DashScopeChatFormatter(FormatterBase):
    """Formatter for DashScope's native API.

    Send the request with the SDK: `await AioMultiModalConversation.call(model=…, **request)`. For a model on the
    text path, use `AioGeneration` instead. Both classes require asyncio.

    The SDK's multimodal classes upload a local file if the text of a user message is the path of the file (Model
    Studio docs). The formatter therefore adds a line break before each text that can be a path.

    Args:
        model: Name of the model. None if each call names a model.
        path: API path of the model: "text" or "multimodal". "auto" selects the path by the name of the model.
            Unknown models get the multimodal path. `get_path` returns the selected path.
        cache_breakpoints: "auto" marks at most four content parts for the explicit context cache. Requests on the
            text path get no markers because their content is a string.
        **options: Options of `FormatterBase`.

    Raises:
        OptionError: An option has an invalid value.
    """

    base = MULTIMODAL
    facts = FACTS
    cache_options = ("off", "auto")

    def __init__(
        self,
        model: str | None = None,
        *,
        path: Literal["auto", "text", "multimodal"] = "auto",
        **options: Unpack[FormatterOptions],
    ) -> None:
        check_choice("path", path, ("auto", "text", "multimodal"))
        super().__init__(model, **options)
        self.path: Literal["auto", "text", "multimodal"] = path

    def capabilities(self, model: str | None = None) -> Capabilities:
        """Returns the capabilities of a model, with the rules of its path (text or multimodal)."""
        capabilities = super().capabilities(model)
        return capabilities if self.path == "auto" else _override_path(capabilities, self.path)

    def get_path(self, model: str | None = None) -> Literal["text", "multimodal"]:
        """Returns the API path of requests for a model. If `model` is None, uses the formatter's model."""
        return "text" if self.capabilities(model).turns.text_joining == "string" else "multimodal"

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        """Returns the request with `messages` and `result_format`.

        The request also has `tools`, `tool_choice` and `response_format` if `task` has values for these keys.
        """
        is_text_path = task.capabilities.turns.text_joining == "string"
        messages: list[dict[str, Any]] = []
        for traced in (*legal.system, *legal.turns):
            msg = traced.msg
            if msg.features & Feature.RESULT:
                results, other = split_results(msg)
                messages.extend(_result(block) for block in results)
                if other:
                    messages.append(_message(other, is_text_path))
            else:
                messages.append(_message(msg, is_text_path, is_frame=bool(traced.frame_tag)))
        if legal.turns.msgs and _is_partial(legal.turns.msgs[-1]):
            messages[-1]["partial"] = True
        if self.cache_breakpoints == "auto" and task.capabilities.cache_breakpoints:
            mark_cache_control(messages, legal, lambda text: {"text": text})
        return {"messages": messages, "result_format": "message", **_options(task)}


class DashScopeMultiAgentFormatter(DashScopeChatFormatter):
    """Formatter for DashScope's native API. Writes the texts of several speakers into one user turn."""

    default_history = MultiAgentHistory


@lru_cache(256)
def _override_path(capabilities: Capabilities, path: Literal["text", "multimodal"]) -> Capabilities:
    """Returns a copy of the capabilities with the rules of an API path, "text" or "multimodal"."""
    on_path = TEXT if path == "text" else MULTIMODAL
    return capabilities.override({name: attrgetter(name)(on_path) for name in TEXT_PATH})


def _message(msg: Msg, is_text_path: bool, *, is_frame: bool = False) -> dict[str, Any]:
    role = "assistant" if msg.features & Feature.CALL else msg.role
    content: list[Block] = []
    thinking: list[str] = []
    calls: list[dict[str, Any]] = []
    for block in msg.blocks:
        match block.type:
            case "text" | "image" | "audio" | "video" | "document" | "opaque":
                content.append(block)
            case "thinking":
                thinking.append(block.thinking)
            case "tool_use":
                function = {"name": block.name, "arguments": block.arguments}
                calls.append({"id": block.id, "type": "function", "function": function})
            case "tool_result" | "invalid":
                raise ConversionError(block.type, "message")
            case _:
                assert_never(block)
    # DashScope's SDK treats a text as a file path if a file with this path exists. `guard_text` prevents this with
    # a line break. A history frame does not need the line break: it begins with a line break or a preamble.
    guard = role == "user" and not is_text_path and not is_frame
    message: dict[str, Any] = {"role": role, "content": _content(content, is_text_path, guard)}
    if thinking:
        message["reasoning_content"] = "\n".join(thinking)
    return {**message, "tool_calls": calls} if calls else message


def _content(blocks: Sequence[Block], is_text_path: bool, guard: bool) -> str | list[dict[str, Any]]:
    """Converts the blocks of a message to a string (text path) or to a list of parts (multimodal path).

    Without blocks, returns an empty string on both paths.
    """
    if not is_text_path and blocks:
        return [_part(block, guard) for block in blocks]
    for block in blocks:
        if block.type != "text":
            raise ConversionError(block.type, "text-path message")
    return "\n".join(block.text for block in blocks if isinstance(block, TextBlock))


def _part(block: Block, guard: bool) -> dict[str, Any]:
    match block.type:
        case "text":
            return {"text": guard_text(block.text) if guard else block.text, **_extra_fields(block)}
        case "image" | "audio" | "video":
            return {block.type: source_url(block.source), **_extra_fields(block)}
        case "opaque":
            return {**copy_json(block.data)}
        case "document" | "thinking" | "tool_use" | "tool_result" | "invalid":
            raise ConversionError(block.type, "message content")
        case _:
            assert_never(block)


def _extra_fields(block: TextBlock | MediaBlock) -> dict[str, Any]:
    """Returns the additional fields of a part, such as `fps`, from the state of a block (Model Studio docs)."""
    return {
        key: copy_json(item)
        for key, item in get_state_fields(block.state).items()
        if key not in _NO_PART_KEYS and not key.startswith("message.")
    }


_NO_PART_KEYS = frozenset({"text", "image", "audio", "video", "partial"})
"""Keys of opaque state that are not written as additional keys of a part.

The key of a part's content (such as `text`) is already written, and `partial` is a key of messages.
"""


def _is_partial(msg: Msg) -> bool:
    """Returns True if an assistant message asks the model to continue the message.

    Source: Model Studio docs, partial mode.
    """
    return msg.role == "assistant" and get_message_keys(msg.blocks[-1:]).get("partial") is True


def _result(block: ToolResultBlock) -> dict[str, Any]:
    content = write_output(block, partial(_part, guard=False))
    message = {"role": "tool", "tool_call_id": block.id, "content": content}
    return {**message, "name": block.name} if block.name else message


def _options(task: RequestSpec) -> dict[str, Any]:
    options = task.write_tools(_tool, write_tool_choice)
    if task.output:
        options["response_format"] = {"type": "json_object"}
    return options


def _tool(tool: Tool) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": copy_json(tool.parameters)}
    return {"type": "function", "function": function}
