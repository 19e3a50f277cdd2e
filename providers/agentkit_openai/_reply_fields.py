"""OpenAI's words for why a reply ended and what it took, and those of the servers that speak its wire."""

from __future__ import annotations

from typing import Any, cast

from agentkit.provider_kit import FinishReason, Usage, as_object, as_text, as_token_count

__all__ = ["error_of", "reason_of", "usage_of"]

_REASONS = {
    # SDK: ChatCompletion.choices[].finish_reason
    "stop": FinishReason.STOP,
    "length": FinishReason.LENGTH,
    "tool_calls": FinishReason.TOOL_USE,
    "function_call": FinishReason.TOOL_USE,
    "content_filter": FinishReason.CONTENT_FILTER,
    # api-docs.deepseek.com/api/create-chat-completion: the system had no resources left to go on
    "insufficient_system_resource": FinishReason.ERROR,
    "aborted": FinishReason.INTERRUPTED,
    "model_length": FinishReason.LENGTH,  # mistralai SDK 3.7: the context is full
    # vLLM: FINISH_REASON_STRINGS
    "abort": FinishReason.INTERRUPTED,
    "error": FinishReason.ERROR,
    # SDK: Response.status, and Response.incomplete_details.reason
    "completed": FinishReason.STOP,
    "cancelled": FinishReason.INTERRUPTED,
    "queued": FinishReason.INTERRUPTED,
    "in_progress": FinishReason.INTERRUPTED,
    "max_output_tokens": FinishReason.LENGTH,
}


def reason_of(word: str) -> FinishReason:
    """The provider's word as one of ours."""
    return _REASONS.get(word, FinishReason.OTHER)


_FIGURES: dict[str, tuple[tuple[str, ...], ...]] = {
    # By field of Usage: where the figure may stand; the first that is more than nothing counts.
    "input_tokens": (("prompt_tokens",), ("input_tokens",)),  # SDK: CompletionUsage; ResponseUsage
    "output_tokens": (("completion_tokens",), ("output_tokens",)),
    "cache_read_tokens": (
        ("prompt_tokens_details", "cached_tokens"),
        ("input_tokens_details", "cached_tokens"),
        ("prompt_cache_hit_tokens",),  # DeepSeek (api-docs.deepseek.com/guides/kv_cache)
    ),
    "cache_write_tokens": (
        ("prompt_tokens_details", "cache_write_tokens"),
        ("input_tokens_details", "cache_write_tokens"),
        ("prompt_tokens_details", "cache_creation_input_tokens"),  # DashScope (model-studio/context-cache)
    ),
    "reasoning_tokens": (
        ("completion_tokens_details", "reasoning_tokens"),
        ("output_tokens_details", "reasoning_tokens"),
    ),
}


def usage_of(found: object) -> Usage | None:
    """The tokens that a `usage` object reports; None if it reports none.

    The prompt includes what came from a cache and the reply its reasoning, as in `Usage` itself.
    """
    usage = Usage(**{name: _figure(as_object(found), paths) for name, paths in _FIGURES.items()})
    return usage if usage != Usage() else None


def _figure(found: dict[str, Any], paths: tuple[tuple[str, ...], ...]) -> int:
    return next((number for path in paths if (number := as_token_count(_at(found, path)))), 0)


def _at(found: dict[str, Any], path: tuple[str, ...]) -> object:
    for name in path[:-1]:
        found = as_object(found.get(name))
    return found.get(path[-1])


def _is_bare(found: dict[str, Any]) -> bool:
    """Whether this is an error without anything around it, as gateways send it in a stream."""
    return isinstance(found.get("message"), str) and "code" in found and not found.keys() & {"choices", "id"}


def error_of(found: dict[str, Any]) -> tuple[str, str | None] | None:
    """The message and the code of an error body; None for what is none.

    OpenAI wraps them in `error`; older vLLM servers send them bare, with `"object": "error"`.
    """
    error: Any = found.get("error")
    if not error and (found.get("object") == "error" or found.get("type") == "error" or _is_bare(found)):
        error = found
    if not error:
        return None
    if not isinstance(error, dict):
        return as_text(error) or str(error)[:500], None
    held = cast("dict[str, Any]", error)
    code = held.get("code") or held.get("type")
    message = as_text(held.get("message")) or "an error without a message"
    return message, None if code in (None, "", "error") else as_text(str(code))
