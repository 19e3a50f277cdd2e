"""Parsers for finish reasons, usage and errors in replies from OpenAI and compatible servers."""

from __future__ import annotations

from typing import Any, TypeAlias, cast

from agentkit.provider_kit import FinishReason, Usage, as_list, as_object, as_text, as_token_count

__all__ = ["FINISH_REASONS", "add_token_ids", "parse_error", "parse_usage"]

FINISH_REASONS = {
    # Source: openai-python, ChatCompletion.choices[].finish_reason.
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_USE,
    "function_call": FinishReason.TOOL_USE,
    "content_filter": FinishReason.CONTENT_FILTER,
    # The server does not have enough resources to continue (api-docs.deepseek.com/api/create-chat-completion).
    "insufficient_system_resource": FinishReason.ERROR,
    "aborted": FinishReason.INTERRUPTED,
    "model_length": FinishReason.LENGTH,  # mistralai SDK 3.7: the context window is full
    # Source: vLLM, FINISH_REASON_STRINGS.
    "abort": FinishReason.INTERRUPTED,
    "error": FinishReason.ERROR,
    # Source: openai-python, Response.status and Response.incomplete_details.reason.
    "completed": FinishReason.STOP,
    "cancelled": FinishReason.INTERRUPTED,
    "queued": FinishReason.INTERRUPTED,
    "in_progress": FinishReason.INTERRUPTED,
    "max_output_tokens": FinishReason.LENGTH,
}


_Path: TypeAlias = tuple[str, ...]

_USAGE_PATHS: dict[str, tuple[_Path, ...]] = {
    # Maps each field of `Usage` to paths in the `usage` object of a reply. The first count above 0 is used.
    "input_tokens": (("prompt_tokens",), ("input_tokens",)),  # openai-python: CompletionUsage; ResponseUsage
    "output_tokens": (("completion_tokens",), ("output_tokens",)),
    "cache_read_tokens": (
        ("prompt_tokens_details", "cached_tokens"),
        ("input_tokens_details", "cached_tokens"),
        ("prompt_cache_hit_tokens",),  # key of DeepSeek (api-docs.deepseek.com/guides/kv_cache)
    ),
    "cache_write_tokens": (
        ("prompt_tokens_details", "cache_write_tokens"),
        ("input_tokens_details", "cache_write_tokens"),
        ("prompt_tokens_details", "cache_creation_input_tokens"),  # key of DashScope (model-studio/context-cache)
    ),
    "reasoning_tokens": (
        ("completion_tokens_details", "reasoning_tokens"),
        ("output_tokens_details", "reasoning_tokens"),
    ),
}


def parse_usage(usage: object) -> Usage | None:
    """Parses the `usage` object of a reply. Returns None if the object reports no tokens.

    Input tokens include cached tokens, and output tokens include reasoning tokens.
    """
    counts = {name: _find_count(as_object(usage), paths) for name, paths in _USAGE_PATHS.items()}
    parsed = Usage(**counts)
    return parsed if parsed != Usage() else None


def _find_count(usage: dict[str, Any], paths: tuple[_Path, ...]) -> int:
    for *outer, name in paths:
        fields = usage
        for outer_name in outer:
            fields = as_object(fields.get(outer_name))
        if count := as_token_count(fields.get(name)):
            return count
    return 0


def add_token_ids(notes: dict[str, Any], fields: dict[str, Any]) -> None:
    """Adds the token ids of a reply, or of a chunk of a stream, to the metadata of the reply.

    vLLM returns the ids if a request sets `return_token_ids` (vLLM, entrypoints/openai, protocol.py). The first
    chunk of a stream has the ids of the prompt. Each chunk has the ids of its own tokens.
    """
    for key in ("prompt_token_ids", "token_ids"):
        if ids := as_list(fields.get(key)):
            notes.setdefault(key, []).extend(ids)


def parse_error(body: dict[str, Any]) -> tuple[str, str | None] | None:
    """Returns the message and the code of an error, or None if the body reports no error.

    OpenAI sends the error object under the key `error`. Older vLLM servers send the error object as the body, with
    `"object": "error"`. Gateways also send the error object as the body of a stream event, with `message` and
    `code`.
    """
    error: Any = body.get("error")
    is_bare = isinstance(body.get("message"), str) and "code" in body and not body.keys() & {"choices", "id"}
    if not error and (body.get("object") == "error" or body.get("type") == "error" or is_bare):
        error = body
    if not error:
        return None
    if not isinstance(error, dict):
        return as_text(error) or str(error)[:500], None
    fields = cast("dict[str, Any]", error)
    code = fields.get("code") or fields.get("type")
    message = as_text(fields.get("message")) or "the error has no message"
    return message, None if code in (None, "", "error") else as_text(str(code))
