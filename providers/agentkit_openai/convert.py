"""Formatters for OpenAI Chat Completions, and the base class for formatters of compatible vendors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar, Literal, TypeAlias, Unpack, assert_never

from agentkit.provider_kit import (
    Block,
    Capabilities,
    ConversionError,
    Feature,
    FormatterBase,
    FormatterOptions,
    LegalConversation,
    Msg,
    MultiAgentHistory,
    Request,
    RequestSpec,
    ThinkingBlock,
    ToolUseBlock,
    check_choice,
    copy_json,
    split_results,
    write_output,
)
from agentkit_openai._audio import get_audio_id
from agentkit_openai._custom_calls import custom_text
from agentkit_openai._media_parts import get_part_keys, write_media_part
from agentkit_openai._message_keys import get_message_keys, get_role
from agentkit_openai._reasoning import write_reasoning
from agentkit_openai._refusals import is_refusal, is_refusal_part, refusal_part
from agentkit_openai._tool_options import write_chat_options
from agentkit_openai.compatible import OPENAI, OpenAICompatible

__all__ = ["OpenAIChatFormatter", "OpenAIMultiAgentFormatter"]

_MAY_HAVE_KEYS = Feature.STATE | Feature.MEDIA
"""Message features. Only a message with one of these features can have blocks that store message keys of a log."""

_ASSISTANT_KEYS = Feature.OPAQUE | Feature.STATE | Feature.AUDIO
"""Message features. An assistant message with one of these features can need message keys other than `content`."""


_AssistantParts: TypeAlias = tuple[
    list[Block], list[dict[str, Any]], list[ThinkingBlock], dict[str, Any], list[str]
]
"""Content of an assistant turn, grouped by the message keys that will contain it.

The tuple has five items:

1. The blocks for the key `content`.
2. The tool calls in the API's format.
3. The thinking blocks for the vendor's reasoning keys.
4. A dict of other message keys, such as `audio`.
5. The texts for the key `refusal`.
"""


class OpenAIChatFormatter(FormatterBase):
    """Formatter for Chat Completions. Send a request with `chat.completions.create(model=…, **request)`.

    The formatter for an OpenAI-compatible vendor is a subclass whose attribute `vendor` describes the vendor.

    Args:
        model: Name of the model. If None, requests use only features that all current models accept.
        cache_breakpoints: `"auto"` adds markers for the prompt cache if the model accepts them. Each text is then
            written as a list of one part. Most vendors and older models cache prompts without markers. `"off"`
            adds no markers.
        spoken_replies: `"id"` replaces the audio of OpenAI's earlier replies with the audio's id. OpenAI accepts
            the id until it expires, about an hour after the reply (`expires_at` in the metadata of the audio
            block). `"transcript"` replaces the audio with its transcript. Other vendors always get the transcript.
        options: Options of all formatters (see `FormatterOptions`).

    Raises:
        OptionError: An option has an invalid value.
    """

    vendor: ClassVar[OpenAICompatible] = OPENAI
    """Description of the vendor. A subclass that sets `vendor` gets the vendor's capabilities and model facts."""
    base = OPENAI.capabilities
    facts = OPENAI.facts
    cache_options = ("off", "auto")

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "vendor" in vars(cls):
            cls.base, cls.facts = cls.vendor.capabilities, cls.vendor.facts

    def __init__(
        self,
        model: str | None = None,
        *,
        spoken_replies: Literal["id", "transcript"] = "id",
        **options: Unpack[FormatterOptions],
    ) -> None:
        check_choice("spoken_replies", spoken_replies, ("id", "transcript"))
        super().__init__(model, **options)
        self.spoken_replies: Literal["id", "transcript"] = spoken_replies

    def capabilities(self, model: str | None = None) -> Capabilities:
        """Returns the capabilities of a model, adjusted to the options of the formatter."""
        capabilities = super().capabilities(model)
        if self.cache_breakpoints == "auto" and capabilities.cache_breakpoints:
            # Only content parts can have cache markers, so texts are not joined into one string.
            capabilities = _override(capabilities, "turns.text_joining", "apart")
        if self.spoken_replies == "transcript":
            return _override(capabilities, "media.audio_by_id", False)
        return capabilities

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        """Writes a conversation as a request with the key `messages`.

        The request also has `tools`, `tool_choice` and `response_format` if `task` has values for these keys.
        """
        capabilities, vendor = task.capabilities, self.vendor
        names = legal.speakers if capabilities.turns.speaker_names else None
        messages = [self._message(msg, capabilities, names) for msg in legal.system.msgs]
        add = messages.append
        result, call, writes_reasoning = Feature.RESULT, Feature.CALL, vendor.writes_reasoning
        for msg in legal.turns.msgs:
            features = msg.features
            if features & result:
                results, other = split_results(msg)
                for block in results:
                    message = {
                        "role": "tool",
                        "tool_call_id": block.id,
                        "content": write_output(block, self._part),
                    }
                    add(message if isinstance(block.output, str) else self._add_keys(message, block.output))
                if other:
                    add(self._message(other, capabilities, names))
            elif features & call or (msg.role == "assistant" and (writes_reasoning or features & _ASSISTANT_KEYS)):
                add(self._assistant_message(msg, capabilities, names))
            else:
                add(self._message(msg, capabilities, names))
        if legal.turns.msgs and legal.turns.msgs[-1].role == "assistant":
            keys = get_message_keys(legal.turns.msgs[-1].blocks).items()
            messages[-1] |= {**{key: value for key, value in keys if key in vendor.last_keys}, **vendor.prefill}
        if self.cache_breakpoints == "auto" and capabilities.cache_breakpoints:
            vendor.mark_breakpoints(messages, legal)
        if task.tools or task.output:
            return {"messages": messages, **write_chat_options(task)}
        return {"messages": messages}

    def _message(self, msg: Msg, capabilities: Capabilities, names: Mapping[str, str] | None) -> dict[str, Any]:
        """Writes a turn without tool calls as a message.

        `names` contains a legal name for each speaker name that the API refuses. `names` is None if the API has no
        field for speaker names.
        """
        content = msg.content
        item: dict[str, Any] = {
            "role": get_role(msg) if msg.role == "system" else msg.role,
            "content": content if isinstance(content, str) else self._content(content, capabilities),
        }
        if names is not None and msg.name and msg.name != msg.role:
            item["name"] = names.get(msg.name, msg.name)
        return self._add_keys(item, msg.blocks) if msg.features & _MAY_HAVE_KEYS else item

    def _assistant_message(
        self, msg: Msg, capabilities: Capabilities, names: Mapping[str, str] | None
    ) -> dict[str, Any]:
        """Writes an assistant turn as a message with tool calls, reasoning and additional keys."""
        vendor = self.vendor
        always = vendor.reasoning_always and capabilities.thinking.mode != "never"
        if isinstance(msg.content, str):
            message = self._message(msg, capabilities, names)
            if always:
                message[str(vendor.reasoning_field)] = ""
            return message
        content, calls, thoughts, fields, refusals = self._sort_blocks(msg.content)
        item: dict[str, Any] = {"role": "assistant"}
        if content or not fields:
            empty = vendor.empty_content if calls else None if refusals else ""
            item["content"] = self._content(content, capabilities) if content else empty
        item |= {**fields, "refusal": "\n".join(refusals)} if refusals else fields
        if names is not None and msg.name and msg.name != "assistant":
            item["name"] = names.get(msg.name, msg.name)
        if thoughts:
            write_reasoning(item, thoughts, vendor, always=always)
        elif always:
            item[str(vendor.reasoning_field)] = ""
        if calls:
            item["tool_calls"] = calls
        return self._add_keys(item, msg.content) if msg.features & _MAY_HAVE_KEYS else item

    def _sort_blocks(self, blocks: Sequence[Block]) -> _AssistantParts:
        """Groups the content of an assistant turn by the message keys that will contain it.

        Audio of an earlier reply is written as its id (openai-python: ChatCompletionAssistantMessageParam.audio).
        """
        content: list[Block] = []
        calls: list[dict[str, Any]] = []
        thoughts: list[ThinkingBlock] = []
        fields: dict[str, Any] = {}
        refusals: list[str] = []
        for block in blocks:
            match block.type:
                case "tool_use":
                    calls.append(_tool_call(block, self.vendor.custom_tools))
                case "text" if block.state is None or not is_refusal(block) or is_refusal_part(block):
                    content.append(block)
                case "text":
                    refusals.append(block.text)
                case "thinking" if self.vendor.writes_reasoning:
                    thoughts.append(block)
                case "opaque" if "type" not in block.data:
                    fields |= copy_json(block.data)
                case "audio" if audio_id := get_audio_id(block):
                    fields["audio"] = {"id": audio_id}
                case "image" | "audio" | "video" | "document" | "opaque":
                    content.append(block)
                case "thinking" | "tool_result" | "invalid":
                    raise ConversionError(block.type, "assistant turn")
                case _:
                    assert_never(block)
        return content, calls, thoughts, fields, refusals

    def _add_keys(self, message: dict[str, Any], blocks: Sequence[object]) -> dict[str, Any]:
        """Returns the message with the additional keys that `blocks` store. Existing keys do not change."""
        keys = get_message_keys(blocks)
        if not keys:
            return message
        excluded = {*message, *self.vendor.last_keys}
        return message | {key: value for key, value in keys.items() if key not in excluded}

    def _content(self, blocks: Sequence[Block], capabilities: Capabilities) -> str | list[dict[str, Any]]:
        """Writes blocks as the content of a message: a string or a list of content parts.

        A single text becomes a string. Several texts become one string if the target joins texts.
        """
        block = blocks[0] if len(blocks) == 1 else None
        if block and block.type == "text" and block.state is None:
            return block.text
        texts = [block.text for block in blocks if block.type == "text" and not is_refusal_part(block)]
        if len(texts) == len(blocks) and (len(blocks) == 1 or capabilities.turns.text_joining != "apart"):
            return "\n".join(texts)
        return [self._part(block) for block in blocks]

    def _part(self, block: Block) -> dict[str, Any]:
        """Writes a block as a content part, with the additional keys that the part had in a log."""
        match block.type:
            case "text":
                return refusal_part(block) if is_refusal_part(block) else {"type": "text", "text": block.text}
            case "image" | "audio" | "video" | "document":
                write = self.vendor.media_parts.get(block.type, write_media_part)
                return {**write(block), **get_part_keys(block)}
            case "opaque":
                return {**copy_json(block.data)}
            case "tool_use" | "tool_result" | "thinking" | "invalid":
                raise ConversionError(block.type, "content part")
            case _:
                assert_never(block)


class OpenAIMultiAgentFormatter(OpenAIChatFormatter):
    """Formatter for conversations of many agents, with the request format of `OpenAIChatFormatter`."""

    default_history = MultiAgentHistory


@lru_cache(256)
def _override(capabilities: Capabilities, name: str, value: object) -> Capabilities:
    return capabilities.override({name: value})


def _tool_call(block: ToolUseBlock, has_custom_tools: bool) -> dict[str, Any]:
    """Writes a tool call (openai-python: ChatCompletionMessageToolCallUnionParam)."""
    text = custom_text(block) if has_custom_tools and block.state is not None else None
    if text is not None:
        return {"id": block.id, "type": "custom", "custom": {"name": block.name, "input": text}}
    function = {"name": block.name, "arguments": block.arguments}
    return {"id": block.id, "type": "function", "function": function}
