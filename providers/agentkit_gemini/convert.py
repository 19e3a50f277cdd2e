"""Formatters that convert messages to requests for Gemini's `generateContent` API."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, assert_never

from agentkit.provider_kit import (
    Base64Source,
    Block,
    ConversionError,
    Feature,
    FormatterBase,
    LegalConversation,
    MediaBlock,
    Msg,
    MultiAgentHistory,
    OpaqueState,
    Request,
    RequestSpec,
    ToolChoice,
    ToolResultBlock,
    copy_json,
    declare_tool,
    get_state_fields,
    map_schema,
    split_results,
)
from agentkit_gemini._tool_responses import build_response_fields
from agentkit_gemini.capabilities import FACTS, GENERATE

__all__ = ["GeminiChatFormatter", "GeminiMultiAgentFormatter"]


class GeminiChatFormatter(FormatterBase):
    """Formatter for Gemini's `generateContent` API.

    Send the request with google-genai: `await client.aio.models.generate_content(model=…, **request)`. Media data
    in the request is standard base64 text, which the SDK decodes. The application may add keys to `config`.
    """

    base = GENERATE
    facts = FACTS

    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        """Returns the request with `contents`, and if needed `config`.

        `config` contains the system instruction, the tools and the output schema.
        """
        placeholder = task.capabilities.opaque.placeholder_signature
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
                    _sign_first_call(parts, placeholder)
            contents.append({"role": role, "parts": parts})
        config = {**_system(legal.system.msgs), **_options(task)}
        return {"contents": contents, "config": config} if config else {"contents": contents}


class GeminiMultiAgentFormatter(GeminiChatFormatter):
    """Formatter for Gemini's `generateContent`. Writes the texts of several speakers into one user turn."""

    default_history = MultiAgentHistory


def _system(msgs: Iterable[Msg]) -> dict[str, Any]:
    parts = [_part(block) for msg in msgs for block in msg.blocks]
    return {"system_instruction": {"parts": parts}} if parts else {}


def _part(block: Block) -> dict[str, Any]:
    """Converts a block and its signature to a part (google-genai: Part)."""
    match block.type:
        case "text":
            return {"text": block.text, **_state_fields(block.state)}
        case "thinking":
            return {"text": block.thinking, "thought": True, **_state_fields(block.state)}
        case "tool_use":
            call = {"id": block.id, "name": block.name, "args": block.copy_input()}
            return {"function_call": call, **_state_fields(block.state)}
        case "image" | "audio" | "video" | "document":
            return {**_media(block), **_state_fields(block.state)}
        case "opaque":
            return {**copy_json(block.data)}
        case "tool_result" | "invalid":
            raise ConversionError(block.type, "content")
        case _:
            assert_never(block)


def _state_fields(state: OpaqueState | None) -> dict[str, Any]:
    """Returns the signature and the additional fields of a part from the opaque state of its block."""
    if state is None:
        return {}
    fields = {key: copy_json(item) for key, item in get_state_fields(state).items() if key != "display_name"}
    return {**fields, "thought_signature": state.thought_signature} if state.thought_signature else fields


def _sign_first_call(parts: list[dict[str, Any]], placeholder: str | None) -> None:
    """Adds the placeholder signature to the first tool call of a turn, if this call has no signature.

    Some models require a signature in the first of several parallel calls (Gemini docs: thought-signatures). For
    other models, `placeholder` is None, and the function does nothing.
    """
    first = next(part for part in parts if "function_call" in part)
    if placeholder and "thought_signature" not in first:
        first["thought_signature"] = placeholder


def _media(block: MediaBlock) -> dict[str, Any]:
    source, fields = block.source, get_state_fields(block.state)
    name = {"display_name": fields["display_name"]} if "display_name" in fields else {}
    if isinstance(source, Base64Source):
        return {"inline_data": {"mime_type": source.media_type, "data": source.data, **name}}
    media_type = source.guessed_type
    return {"file_data": {"file_uri": source.url, **({"mime_type": media_type} if media_type else {}), **name}}


def _response(block: ToolResultBlock, names: dict[str, str]) -> dict[str, Any]:
    """Converts a tool result to a function response (google-genai: FunctionResponse).

    `names` maps call ids to tool names. The function response contains the tool name of the matching tool call.
    """
    name = names.get(block.id, block.name)
    response: dict[str, Any] = {"id": block.id, "name": name, **build_response_fields(block)}
    items = () if isinstance(block.output, str) else block.output
    media = [part for item in items for part in _response_part(item)]
    return {"function_response": {**response, "parts": media} if media else response}


def _response_part(item: Block) -> Iterator[dict[str, Any]]:
    """Yields a part for a media item or opaque block in a tool result (google-genai: FunctionResponsePart)."""
    match item.type:
        case "text":
            pass  # the field `response` of the function response already contains the text
        case "image" | "audio" | "video" | "document":
            yield {**_media(item), **_state_fields(item.state)}
        case "opaque":
            yield {**copy_json(item.data)}
        case "thinking" | "tool_use" | "tool_result" | "invalid":
            raise ConversionError(item.type, "function response")
        case _:
            assert_never(item)


def _options(task: RequestSpec) -> dict[str, Any]:
    options: dict[str, Any] = {}
    if task.tools:
        # The declaration of a tool without parameters has no schema (google-genai: FunctionDeclaration).
        keys = ["parameters_json_schema" if tool.takes_arguments else None for tool in task.tools]
        options["tools"] = [{"function_declarations": [*map(declare_tool, task.tools, keys)]}]
        options["automatic_function_calling"] = {"disable": True}
        if task.tool_choice:
            options["tool_config"] = {"function_calling_config": _choice(task.tool_choice)}
    if task.output:
        options["response_mime_type"] = "application/json"
        if task.capabilities.output == "schema":
            options["response_json_schema"] = map_schema(task.output.schema, _separate_reference)
    return options


def _separate_reference(schema: dict[str, Any]) -> dict[str, Any]:
    """Moves the `$ref` of a schema into an `anyOf` if the schema has other keywords, such as `description`.

    In a schema with a `$ref`, the API allows only keys that begin with `$` (google-genai: GenerateContentConfig).
    A schema with both `$ref` and `anyOf` is sent unchanged.
    """
    if "$ref" not in schema or "anyOf" in schema or all(key.startswith("$") for key in schema):
        return schema
    others = {key: item for key, item in schema.items() if key != "$ref"}
    return {"anyOf": [{"$ref": schema["$ref"]}], **others}


_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY", "tool": "ANY"}


def _choice(choice: ToolChoice) -> dict[str, Any]:
    """Converts a tool choice to a function calling config (google-genai: FunctionCallingConfig).

    Only the modes ANY and VALIDATED accept names of tools. With VALIDATED, the model can also reply with text.
    """
    names = [*choice.names] if choice.name is None else [choice.name]
    if not names:
        return {"mode": _MODES[choice.mode]}
    return {"mode": "VALIDATED" if choice.mode == "auto" else "ANY", "allowed_function_names": names}
