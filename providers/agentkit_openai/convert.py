"""OpenAI Chat Completions, and the frame that OpenAI-shaped vendors fill with other facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
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
    NameRule,
    OptionError,
    Request,
    RequestSpec,
    ThinkingBlock,
    Tool,
    ToolChoice,
    ToolUseBlock,
    check_cache_breakpoints,
    copy_json,
    declare_tool,
    split_results,
    write_output,
)
from agentkit_openai._audio import spoken_id
from agentkit_openai._custom_calls import custom_text
from agentkit_openai._media_parts import beside, media_part
from agentkit_openai._message_keys import keys_in, last_keys
from agentkit_openai._reasoning import write_reasoning
from agentkit_openai._refusals import is_refusal, is_refusal_part, refusal_part
from agentkit_openai._roles import role_of
from agentkit_openai.compatible import OPENAI, OpenAICompatible

__all__ = ["OpenAIChatFormatter", "OpenAIMultiAgentFormatter", "named_schema", "write_tool_choice"]

_KEYED = Feature.STATE | Feature.MEDIA  # what the keys of a message may be kept with
_OWN = Feature.OPAQUE | Feature.STATE | Feature.AUDIO  # what an assistant's message may carry beside its content


class OpenAIChatFormatter(FormatterBase):
    """`await AsyncOpenAI().chat.completions.create(model=…, **request)`.

    spoken_replies       sounds that OpenAI's models spoke go back by their `id`, which OpenAI refuses once it has
                         expired (`expires_at` in the block's metadata, about an hour after the reply); or as their
                         `transcript`, as they do to everybody else
    cache_breakpoints    `"auto"` marks content parts for the prompt cache, if the model is known to take markers
                         (see `mark_latest`); texts are lists of one part then. Otherwise nothing is written: the
                         cache of the other models, and of most vendors, needs no markers

    The formatter of an OpenAI-compatible vendor is a subclass with the vendor's row as `vendor`.
    """

    vendor: ClassVar[OpenAICompatible] = OPENAI
    """Facts about the vendor. A subclass that sets them has the row's capabilities and model facts."""
    base: ClassVar[Capabilities] = OPENAI.capabilities
    facts: ClassVar[tuple[ModelFact, ...]] = OPENAI.facts

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "vendor" in vars(cls):
            cls.base, cls.facts = cls.vendor.capabilities, cls.vendor.facts

    def __init__(
        self,
        model: str | None = None,
        *,
        cache_breakpoints: CacheBreakpoints = "off",
        spoken_replies: Literal["id", "transcript"] = "id",
        **options: Unpack[FormatterOptions],
    ) -> None:
        check_cache_breakpoints(cache_breakpoints)
        if spoken_replies not in ("id", "transcript"):
            raise OptionError(
                "spoken_replies", f"expected 'id' or 'transcript', got {spoken_replies!r}", "Pass one of them."
            )
        super().__init__(model, **options)
        self.cache_breakpoints: CacheBreakpoints = cache_breakpoints
        self.spoken_replies: Literal["id", "transcript"] = spoken_replies

    def capabilities(self, model: str | None = None) -> Capabilities:
        """The form of the target that the request is for."""
        form = super().capabilities(model)
        if self.cache_breakpoints == "auto" and form.cache_breakpoints and form.turns.text_joining == "string":
            form = _with_parts(form)
        return _in_words(form) if form.media.audio_by_id and self.spoken_replies == "transcript" else form

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        """The request: messages, and tools, tool_choice and response_format where asked for."""
        names = legal.speakers if task.capabilities.turns.speaker_names else None
        messages = [self._spoken(msg, task.capabilities, names) for msg in legal.system.msgs]
        add = messages.append
        form, result, call = task.capabilities, Feature.RESULT, Feature.CALL
        vendor = self.vendor
        reasons = vendor.writes_reasoning
        for msg in legal.turns.msgs:
            features = msg.features
            if features & result:
                results, other = split_results(msg)
                for block in results:
                    item = {"role": "tool", "tool_call_id": block.id, "content": write_output(block, self.part)}
                    add(item if isinstance(block.output, str) else _beside(item, block.output))
                if other:
                    add(self._spoken(other, form, names))
            elif features & call or (msg.role == "assistant" and (reasons or features & _OWN)):
                add(self._assistant(msg, form, names))
            else:
                add(self._spoken(msg, form, names))
        if (vendor.last_keys or vendor.prefill) and legal.turns.msgs and legal.turns.msgs[-1].role == "assistant":
            messages[-1] |= {**last_keys(legal.turns.msgs[-1].blocks, vendor.last_keys), **vendor.prefill}
        if self.cache_breakpoints == "auto" and form.cache_breakpoints:
            vendor.mark_breakpoints(messages, legal)
        return {"messages": messages, **self._options(task)}

    def _spoken(self, msg: Msg, form: Capabilities, names: Mapping[str, str] | None) -> dict[str, Any]:
        """A turn without calls. `names` are other spellings of speakers; None where there is no field for any."""
        content = msg.content
        item: dict[str, Any] = {
            "role": role_of(msg) if self.vendor.developer_role else msg.role,
            "content": content if isinstance(content, str) else self._content(content, form),
        }
        if names is not None and msg.name and msg.name != msg.role:
            item["name"] = names.get(msg.name, msg.name)
        return _beside(item, msg.blocks) if msg.features & _KEYED else item

    def _assistant(self, msg: Msg, form: Capabilities, names: Mapping[str, str] | None) -> dict[str, Any]:
        """The assistant's turn: texts, calls, reasoning where the vendor has a field for it, and what stood beside
        the content as it came (`audio`: a sound by its id; SDK: ChatCompletionAssistantMessageParam.audio).
        """
        vendor = self.vendor
        always = vendor.reasoning_always and form.thinking.mode != "never"
        if isinstance(msg.content, str):
            spoken = self._spoken(msg, form, names)
            return {**spoken, str(vendor.reasoning_field): ""} if always else spoken
        said: list[Block] = []
        calls: list[dict[str, Any]] = []
        thoughts: list[ThinkingBlock] = []
        fields: dict[str, Any] = {}
        refused: list[str] = []
        for block in msg.content:
            match block.type:
                case "text" if block.state is None or not is_refusal(block) or is_refusal_part(block):
                    said.append(block)
                case "text":
                    refused.append(block.text)
                case "tool_use":
                    custom = vendor.custom_tools and block.state is not None
                    calls.append(_call(block, custom_text(block) if custom else None))
                case "thinking" if vendor.writes_reasoning:
                    thoughts.append(block)
                case "opaque" if "type" not in block.data:
                    fields |= copy_json(block.data)
                case "audio" if audio := spoken_id(block):
                    fields["audio"] = {"id": audio}
                case "image" | "audio" | "video" | "document" | "opaque":
                    said.append(block)
                case "thinking" | "tool_result" | "invalid":
                    raise ConversionError(block.type, "an assistant's turn")
                case _:
                    assert_never(block)
        item: dict[str, Any] = {"role": "assistant"}
        if said or not fields:
            nothing = vendor.empty_content if calls else None if refused else ""
            item["content"] = self._content(said, form) if said else nothing
        item |= {**fields, "refusal": "\n".join(refused)} if refused else fields
        if names is not None and msg.name and msg.name != "assistant":
            item["name"] = names.get(msg.name, msg.name)
        if thoughts or always:
            write_reasoning(item, thoughts, vendor, always=always)
        if calls:
            item["tool_calls"] = calls
        return _beside(item, msg.content) if msg.features & _KEYED else item

    def _content(self, blocks: Sequence[Block], form: Capabilities) -> str | list[dict[str, Any]]:
        """One text as a string; several as the target wants them; media as parts."""
        only = blocks[0] if len(blocks) == 1 else None
        if only and only.type == "text" and only.state is None:
            return only.text
        texts = [block.text for block in blocks if block.type == "text" and not is_refusal_part(block)]
        if len(texts) == len(blocks) and (len(blocks) == 1 or form.turns.text_joining != "apart"):
            return "\n".join(texts)
        return [self.part(block) for block in blocks]

    def part(self, block: Block) -> dict[str, Any]:
        """One content part. The media kinds that reach it are those that the capabilities let through."""
        match block.type:
            case "text":
                return refusal_part(block) if is_refusal_part(block) else {"type": "text", "text": block.text}
            case "image" | "audio" | "video" | "document":
                return self.media_part(block)
            case "opaque":
                return {**copy_json(block.data)}
            case "tool_use" | "tool_result" | "thinking" | "invalid":
                raise ConversionError(block.type, "a turn or a tool result")
            case _:
                assert_never(block)

    def media_part(self, block: MediaBlock) -> dict[str, Any]:
        """One media part (SDK: ChatCompletionContentPartParam), and what stood beside the medium in it."""
        write = self.vendor.media_parts.get(block.type, media_part)
        return {**write(block), **beside(block)}

    def _options(self, task: RequestSpec) -> dict[str, Any]:
        options = task.write_tools(_tool, write_tool_choice)
        if task.output and task.capabilities.output == "object":
            options["response_format"] = {"type": "json_object"}
        elif task.output and task.capabilities.output == "schema":
            options["response_format"] = {"type": "json_schema", "json_schema": named_schema(task)}
        return options


@lru_cache(256)
def _in_words(form: Capabilities) -> Capabilities:
    return form.override({"media.audio_by_id": False})


@lru_cache(256)
def _with_parts(form: Capabilities) -> Capabilities:
    """Returns capabilities in which texts of a turn are separate parts, since only parts can carry markers."""
    return form.override({"turns.text_joining": "apart"})


class OpenAIMultiAgentFormatter(OpenAIChatFormatter):
    """The same for many speakers."""

    default_history = MultiAgentHistory


def _beside(item: dict[str, Any], blocks: Sequence[object]) -> dict[str, Any]:
    """A message, and the keys that it came with besides those that are written here."""
    return {**item, **{key: found for key, found in keys_in(blocks).items() if key not in item}}


def _call(block: ToolUseBlock, text: str | None) -> dict[str, Any]:
    """A call of a function, or a text for a custom tool (SDK: ChatCompletionMessageToolCallUnionParam)."""
    if text is not None:
        return {"id": block.id, "type": "custom", "custom": {"name": block.name, "input": text}}
    function = {"name": block.name, "arguments": block.arguments}
    return {"id": block.id, "type": "function", "function": function}


def _tool(tool: Tool) -> dict[str, Any]:
    function = declare_tool(tool, "parameters")
    if tool.strict is not None:
        function["strict"] = tool.strict
    return {"type": "function", "function": function}


def write_tool_choice(choice: ToolChoice) -> str | dict[str, Any]:
    """Writes a tool choice (SDK: ChatCompletionToolChoiceOptionParam)."""
    if choice.names:
        tools = [{"type": "function", "function": {"name": name}} for name in choice.names]
        return {"type": "allowed_tools", "allowed_tools": {"mode": choice.mode, "tools": tools}}
    return {"type": "function", "function": {"name": choice.name}} if choice.mode == "tool" else choice.mode


_schema_names = NameRule(limit=64)


def named_schema(task: RequestSpec) -> dict[str, Any]:
    """The answer's schema under a legal name, with its flag for strict mode."""
    output = task.output
    assert output is not None
    named: dict[str, Any] = {
        "name": _schema_names.fit(output.name),
        "schema": copy_json(output.schema),
        "strict": bool(output.strict),
    }
    if output.description:
        named["description"] = output.description
    return named
