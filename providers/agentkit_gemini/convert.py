"""Gemini generateContent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, assert_never

from agentkit.provider_kit import (
    Base64Source,
    Block,
    Capabilities,
    ConversionError,
    Feature,
    FormatterBase,
    LegalConversation,
    MediaBlock,
    ModelFact,
    Msg,
    MultiAgentHistory,
    OpaqueState,
    Request,
    RequestSpec,
    Tool,
    ToolChoice,
    ToolResultBlock,
    copy_json,
    split_results,
)
from agentkit_gemini._tool_responses import response_fields
from agentkit_gemini.capabilities import FACTS, GENERATE

__all__ = ["GeminiChatFormatter", "GeminiMultiAgentFormatter"]


class GeminiChatFormatter(FormatterBase):
    """`await client.aio.models.generate_content(model=…, **request)` of google-genai.

    Bytes are standard base64 text, which the SDK's dict form decodes. `config` may be extended by the caller.
    """

    base: ClassVar[Capabilities] = GENERATE
    facts: ClassVar[tuple[ModelFact, ...]] = FACTS

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        """The request: contents, and config where there is anything to say."""
        stand_in = task.capabilities.opaque.placeholder_signature
        contents: list[dict[str, Any]] = []
        names: dict[str, str] = {}
        for msg in legal.turns.msgs:
            content, features = msg.content, msg.features
            role = "model" if msg.role == "assistant" or features & Feature.CALL else "user"
            if features & Feature.RESULT:
                results, other = split_results(msg)
                contents.append({"role": "user", "parts": [_response(block, names) for block in results]})
                if other is None:
                    continue
                role, parts = "user", [_part(block) for block in other.blocks]
            elif isinstance(content, str):
                parts = [{"text": content}]
            else:
                parts = [_part(block) for block in content]
                if features & Feature.CALL:
                    names = {block.id: block.name for block in msg.tool_uses}
                    _stand_in(parts, stand_in)
            contents.append({"role": role, "parts": parts})
        config = {**_system(legal.system.msgs), **_options(task)}
        return {"contents": contents, "config": config} if config else {"contents": contents}


class GeminiMultiAgentFormatter(GeminiChatFormatter):
    """The same for many speakers."""

    default_history = MultiAgentHistory


def _system(msgs: Iterable[Msg]) -> dict[str, Any]:
    said = [_part(block) for msg in msgs for block in msg.blocks]
    return {"system_instruction": {"parts": said}} if said else {}


def _part(block: Block) -> dict[str, Any]:
    """One part (SDK: Part), its signature on the very part that it came with."""
    match block.type:
        case "text":
            return {"text": block.text, **_signature(block.state)}
        case "thinking":
            return {"text": block.thinking, "thought": True, **_signature(block.state)}
        case "tool_use":
            call = {"id": block.id, "name": block.name, "args": block.copy_input()}
            return {"function_call": call, **_signature(block.state)}
        case "image" | "audio" | "video" | "document":
            return {**_media(block), **_signature(block.state)}
        case "opaque":
            return {**copy_json(block.data)}
        case "tool_result" | "invalid":
            raise ConversionError(block.type, "a content")
        case _:
            assert_never(block)


def _signature(state: OpaqueState | None) -> dict[str, Any]:
    """The signature of a part, and what else it came with."""
    if state is None:
        return {}
    fields = {key: copy_json(item) for key, item in (state.fields or {}).items() if key != "display_name"}
    return {**fields, "thought_signature": state.thought_signature} if state.thought_signature else fields


def _stand_in(parts: list[dict[str, Any]], stand_in: str | None) -> None:
    """The first call of a step must be signed; parallel siblings are not (thought-signatures)."""
    first = next(part for part in parts if "function_call" in part)
    if stand_in and "thought_signature" not in first:
        first["thought_signature"] = stand_in


def _media(block: MediaBlock) -> dict[str, Any]:
    source, fields = block.source, block.state.fields if block.state else None
    name = {"display_name": fields["display_name"]} if fields and "display_name" in fields else {}
    if isinstance(source, Base64Source):
        return {"inline_data": {"mime_type": source.media_type, "data": source.data, **name}}
    known = source.guessed_type
    return {"file_data": {"file_uri": source.url, **({"mime_type": known} if known else {}), **name}}


def _response(block: ToolResultBlock, names: dict[str, str]) -> dict[str, Any]:
    """A function response under its call's name: the object that it came as, else one with `output`, or `error`
    (SDK: FunctionResponse).
    """
    made: dict[str, Any] = {"id": block.id, "name": names.get(block.id, block.name), **response_fields(block)}
    items = () if isinstance(block.output, str) else block.output
    media = [part for item in items for part in _response_part(item)]
    return {"function_response": {**made, "parts": media} if media else made}


def _response_part(item: Block) -> Iterator[dict[str, Any]]:
    """What a function response holds beside its object (SDK: FunctionResponsePart)."""
    match item.type:
        case "text":
            pass  # in the object
        case "image" | "audio" | "video" | "document":
            yield {**_media(item), **_signature(item.state)}
        case "opaque":
            yield {**copy_json(item.data)}
        case "thinking" | "tool_use" | "tool_result" | "invalid":
            raise ConversionError(item.type, "a function response")
        case _:
            assert_never(item)


def _options(task: RequestSpec) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if task.tools:
        options["tools"] = [{"function_declarations": [_declaration(tool) for tool in task.tools]}]
        options["automatic_function_calling"] = {"disable": True}
        if task.tool_choice:
            options["tool_config"] = {"function_calling_config": _choice(task.tool_choice)}
    if task.output:
        options["response_mime_type"] = "application/json"
        options["response_json_schema"] = copy_json(task.output.schema)
    return options


def _declaration(tool: Tool) -> dict[str, Any]:
    """A declaration by plain JSON schema; none for a function without parameters (FunctionDeclaration)."""
    made: dict[str, Any] = {"name": tool.name}
    if tool.description:
        made["description"] = tool.description
    if tool.takes_arguments:
        made["parameters_json_schema"] = copy_json(tool.parameters)
    return made


_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY", "tool": "ANY"}


def _choice(choice: ToolChoice) -> dict[str, Any]:
    """Names go with ANY and VALIDATED alone (SDK: FunctionCallingConfig): with VALIDATED, text is allowed too."""
    names = [*choice.names] if choice.name is None else [choice.name]
    if not names:
        return {"mode": _MODES[choice.mode]}
    return {"mode": "VALIDATED" if choice.mode == "auto" else "ANY", "allowed_function_names": names}
