"""Names of options: an unknown name is refused, with the name that was probably meant."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any

from agentkit.errors import OptionError

__all__ = ["check_names", "check_parameters", "closest"]

_RESULT_MEDIA = "Leave it out: media of tool results go into a user turn where the API needs that."
_BUDGET = "Pass budget=Budget(max_tokens, counter=…) to limit the prompt."
_CLIENT = "Pass client_options={NAME: …} to ChatModel."

_AGENTSCOPE = {
    "api_key": _CLIENT,
    "base_http_api_url": "Pass client_options={'base_url': …} to ChatModel.",
    "base_url": _CLIENT,
    "client_args": "Pass client_options={…} to ChatModel.",
    "client_kwargs": "Pass client_options={…} to ChatModel.",
    "conversation_history_prompt": "Pass history=MultiAgentHistory(preamble=…).",
    "formatter": "Leave it out: ChatModel has the formatter of its provider.",
    "generate_kwargs": "Pass parameters={…}.",
    "host": _CLIENT,
    "max_tokens": _BUDGET,
    "messages": "Pass the messages as the first argument.",
    "model_name": "Pass model=….",
    "organization": _CLIENT,
    "promote_tool_result_audios": _RESULT_MEDIA,
    "promote_tool_result_images": _RESULT_MEDIA,
    "promote_tool_result_videos": _RESULT_MEDIA,
    "stream": "Call stream() for a reply in events, generate() for a whole reply.",
    "structured_model": "Pass response_format=….",
    "token_counter": _BUDGET,
}
"""Options of AgentScope 1.x, and what has their place here."""

_CALL = ("max_tokens", "response_format", "tool_choice", "tools")
_ALMOST = 0.85  # similarity; `max_output_tokens` has 0.74, `tool_config` 0.73, vLLM's `min_tokens` 0.8


def check_names(owner: str, given: Iterable[str], known: Collection[str], advice: str = "Leave it out.") -> None:
    """Refuses a name that is not a known option of `owner`.

    The OptionError says what has the place of an option of AgentScope, else which known name is most similar, else
    `advice`, in which `NAME` stands for the name.
    """
    for name in given:
        if name not in known:
            near = closest(name, known)
            advice = _AGENTSCOPE.get(name) or (f"Did you mean {near!r}?" if near else advice)
            raise OptionError(name, f"{owner} has no such option", advice.replace("NAME", repr(name)))


def check_parameters(parameters: Mapping[str, Any] | None) -> None:
    """Refuses a parameter of the provider's that is an option of a call, misspelled. Raises OptionError."""
    for name in parameters or ():
        near = _misspelled(name)
        if near is not None:
            reason = "no provider is known to have this parameter"
            raise OptionError(f"parameters.{name}", reason, f"Did you mean {near!r}, an option of the call?")


@lru_cache(512)
def _misspelled(name: str) -> str | None:
    return None if name in _CALL else closest(name, _CALL, _ALMOST)


def closest(name: str, known: Iterable[str], similarity: float = 0.7) -> str | None:
    """Returns the known name that is most similar to a name; None if none is similar."""
    from difflib import get_close_matches  # only needed for errors

    return next(iter(get_close_matches(name, known, 1, similarity)), None)
