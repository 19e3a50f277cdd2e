"""Capabilities of OpenAI Responses, and facts about its models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, cast

from agentkit.provider_kit import (
    Capabilities,
    MediaCapabilities,
    MediaRule,
    ModelFact,
    NameRule,
    OpaqueCapabilities,
    OptionLayout,
    ThinkingCapabilities,
    ToolCapabilities,
    WireLayout,
    as_object,
    media_types,
)
from agentkit_openai.capabilities import ALLOWED_TOOLS, BREAKPOINTS, FILE_LIMITS, IMAGE_LIMITS, MEDIA_TOTAL, STRICT
from agentkit_openai.responses._turn_items import CALL_FIELDS, IMAGE_CALL

__all__ = ["LAYOUT", "OUTPUT_FIELDS", "RESPONSES", "RESPONSES_FACTS"]

_WEB = frozenset({"http", "https"})

OUTPUT_FIELDS = ("caller", "name", "namespace")
"""Additional keys of a tool result that are sent back (openai-python: FunctionCallOutput).

The opaque state of the first text in the result stores these keys.
"""

# OpenAI accepts PDF, office documents, text and code (guides/file-inputs, api-mode=responses).
_FILES = frozenset(
    {
        "application/pdf",
        "application/json",
        "application/xml",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    }
) | media_types("text", "plain markdown csv html")

# -- pairs of items -------------------------------------------------------------------------------------------
#
# In a pair, the request is an item in which the model asks for an action, such as `computer_call`. The response is
# the item with the outcome of the action.

_REQUEST_ID_KEYS = {
    # Maps the type of a request item to the key of the id that both items of the pair share (openai-python:
    # ResponseInputItemParam).
    "computer_call": "call_id",
    "local_shell_call": "call_id",
    "shell_call": "call_id",
    "apply_patch_call": "call_id",
    "tool_search_call": "call_id",  # the id is null if OpenAI runs the search
    "mcp_approval_request": "id",
    "function_call": "call_id",  # the call is an opaque block only if a program of OpenAI created the call
    "custom_tool_call": "call_id",
}
_RESPONSE_ID_KEYS = {
    # Maps the type of a response item to the key of the id that both items of the pair share.
    "computer_call_output": "call_id",
    "local_shell_call_output": "id",  # "the unique ID of the local shell tool call" (openai-python)
    "shell_call_output": "call_id",
    "apply_patch_call_output": "call_id",
    "tool_search_output": "call_id",
    "mcp_approval_response": "approval_request_id",
    "function_call_output": "call_id",
    "custom_tool_call_output": "call_id",
}


def _part_pair(data: Mapping[str, Any]) -> tuple[Literal["request", "response"], str] | None:
    """Returns `("request", ID)` or `("response", ID)` for an item of a pair, and None for any other item.

    The items of a pair are the request for an action and the outcome of the action. Both have the same ID. OpenAI
    refuses an input that contains only one item of a pair.
    """
    item_type = str(data.get("type"))
    id = data.get(_REQUEST_ID_KEYS.get(item_type, ""))
    if isinstance(id, str):
        return "request", id
    id = data.get(_RESPONSE_ID_KEYS.get(item_type, ""))
    return ("response", id) if isinstance(id, str) else None


def _needs_thinking(data: Mapping[str, Any]) -> bool:
    """Returns True if OpenAI refuses an item without the reasoning that preceded the item in the reply.

    Error text: "Item 'ws_…' of type 'web_search_call' was provided without its required 'reasoning' item". Calls
    of functions and custom tools do not need the reasoning, because they can be sent without their ids.
    """
    item_type = str(data.get("type"))
    if item_type == "tool_search_output":
        return data.get("execution") == "server"
    return item_type == "mcp_approval_request" or (item_type.endswith("_call") and item_type not in _CALLS)


_CALLS = frozenset({"function_call", "custom_tool_call"})

_PARTS = frozenset({"output_text", "output_audio", "output_image", "refusal", "summary_text", "reasoning_text"})
"""Types of content parts inside the items of a reply. No item has one of these types."""


def _part_places(data: Mapping[str, Any]) -> frozenset[str]:
    """Returns the kinds of turns that can contain an opaque content part or item, such as `user`.

    User turns, system messages and tool results (`result`) can contain content parts. Only assistant turns can
    contain items.

    Source: openai-python, ResponseInputContentParam, ResponseFunctionCallOutputItemParam and
    ResponseInputItemParam.
    """
    part_type = str(data.get("type"))
    if part_type.startswith("input_"):
        return frozenset({"user", "system", "result"} if part_type == "input_text" else {"user", "result"})
    return frozenset() if part_type in _PARTS else frozenset({"assistant"})


_REPLY_TYPES = frozenset(
    {"reasoning", "program", "program_output", "compaction", "mcp_list_tools", "mcp_approval_request"}
)
"""Types of reply items that do not end in `_call` (openai-python: ResponseOutputItem)."""


def _is_reply_item(item: Mapping[str, Any]) -> bool:
    """Returns True if an item without a role belongs to a reply of the model."""
    item_type = str(item.get("type", ""))
    if item_type == "tool_search_output":
        return item.get("execution") == "server"
    return item_type in _REPLY_TYPES or item_type.endswith("_call")


_STORED_TYPES = frozenset({"message", "function_call", "custom_tool_call"})


def _split_stored_item(item: Any) -> Iterator[Any]:
    """Yields a message or tool call without its id and status. Yields any other item unchanged.

    Each text of an assistant message is yielded separately. The digest (a hash) of a prompt is computed from these
    values, because ids do not change the prompt.
    """
    fields: dict[str, Any] = as_object(item)
    if fields.get("type") not in _STORED_TYPES:
        yield item
        return
    content = {key: value for key, value in fields.items() if key not in ("id", "status")}
    if content.pop("type") != "message":
        yield {**content, "type": fields["type"]}
    elif fields.get("role") == "assistant" and isinstance(fields.get("content"), list):
        for part in cast("list[dict[str, Any]]", fields["content"]):
            is_text = as_object(part).get("type") == "output_text"
            yield {**content, "content": part.get("text") if is_text else [part]}
    else:
        yield content


# -- the API --------------------------------------------------------------------------------------------------

LAYOUT = WireLayout(
    turns="input",
    prompt="instructions",
    silent=frozenset({"id", "call_id", "detail", "format", "filename"}),
    json=frozenset({"arguments", "input"}),
    media={
        "image_url": "image",
        "result": "image",
        "input_audio": "audio",
        "file_data": "document",
        "file_url": "document",
    },
    media_data=("url", "data"),
    sealed=frozenset({"encrypted_content"}),
    proofs={"reasoning": "encrypted_content"},
    is_reply_item=_is_reply_item,
    result_labels=frozenset({("type", "function_call_output")}),
    containers=("extra_body",),
    options=OptionLayout(outputs=("text.format",)),
    cache_markers=frozenset({"prompt_cache_breakpoint"}),
    digest_turn=_split_stored_item,
)
"""Keys of requests and their items (openai-python: ResponseInputItemParam).

In an `image_generation_call`, the key `result` contains the image.
"""

RESPONSES = Capabilities(
    name="OpenAI Responses",
    issuer="openai",
    wire="openai-responses",
    json_object="stated",  # with `json_object`, a message in `input` must contain the word "json" (API reference)
    layout=LAYOUT,
    tools=ToolCapabilities(
        call_ids=NameRule(limit=64, prefix="call_"),  # OpenAPI specification: 1 to 64 characters
        names=NameRule(limit=64),
        allowed=ALLOWED_TOOLS,
        strict=STRICT,
    ),
    media=MediaCapabilities(
        generated_by_id=True,  # generated images are sent as reply items (openai-python: ImageGenerationCall)
        image=MediaRule(types=media_types("image", "png jpeg webp gif"), schemes=_WEB, limits=IMAGE_LIMITS),
        document=MediaRule(types=_FILES, schemes=_WEB, limits=FILE_LIMITS),
        total=MEDIA_TOTAL,
        # guides/file-inputs: tool results can contain images and files
        result_kinds=frozenset({"image", "document"}),
    ),
    thinking=ThinkingCapabilities(
        mode="signed",
        # If the content before reasoning changed, gpt-6.2 removes the reasoning and reports no error
        # (guides/reasoning).
        binds_prefix=True,
        # With store=false, the API refuses reasoning that has only an id (status 404; guides/reasoning).
        required_proof=frozenset({"encrypted_content"}),
    ),
    opaque=OpaqueCapabilities(
        # Content parts of requests have types that begin with `input_` (openai-python: ResponseInputContentParam).
        is_reply_data=lambda data: not str(data.get("type")).startswith("input_"),
        places=_part_places,
        pair_key=_part_pair,
        needs_thinking=_needs_thinking,
        passthrough_keys={
            # agentkit 0.3.0 stored the key `message.role` as `role`. Both keys are accepted.
            "text": frozenset({"message.role", "role", "refusal", "type", "phase", *OUTPUT_FIELDS}),
            "tool_use": frozenset({"type", *CALL_FIELDS}),
            "image": frozenset({"detail", IMAGE_CALL}),
            "document": frozenset({"title", "detail", "filename"}),  # files with a URL are sent without a name
        },
    ),
)

RESPONSES_FACTS = (
    BREAKPOINTS,
    ModelFact(
        r"(chat)?gpt-([345]|oss)|gpt-6(?![.-]?[2-9])|codex-|o\d",
        {"thinking.binds_prefix": False},
        "only gpt-6.2 and later models remove reasoning if the content before it changed (guides/latest-model)",
        "2026-11-20",
    ),
)
