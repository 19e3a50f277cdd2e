"""Checks the names and types of options. The error for an unknown name suggests a similar option."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from agentkit.errors import OptionError
from agentkit.reprs import describe_value, shorten_repr

__all__ = [
    "check_choice",
    "check_int",
    "check_names",
    "check_option",
    "check_parameters",
    "check_text",
    "find_closest",
]

_RESULT_MEDIA = "Remove this option. If an API refuses media in tool results, agentkit moves them to a user turn."
_BUDGET = "Pass budget=Budget(max_tokens, counter=…) to limit the prompt."
_CLIENT = "Pass client_options={NAME: …} to ChatModel."

_AGENTSCOPE = {
    "api_key": _CLIENT,
    "base_http_api_url": "Pass client_options={'base_url': …} to ChatModel.",
    "base_url": _CLIENT,
    "client_args": "Pass client_options={…} to ChatModel.",
    "client_kwargs": "Pass client_options={…} to ChatModel.",
    "conversation_history_prompt": "Pass history=MultiAgentHistory(preamble=…).",
    "formatter": "Remove this option: ChatModel creates the formatter of its provider.",
    "generate_kwargs": "Pass parameters={…}.",
    "host": _CLIENT,
    "max_tokens": _BUDGET,
    "messages": "Pass the messages as the first argument.",
    "model_name": "Pass model=….",
    "organization": _CLIENT,
    "promote_tool_result_audios": _RESULT_MEDIA,
    "promote_tool_result_images": _RESULT_MEDIA,
    "promote_tool_result_videos": _RESULT_MEDIA,
    "stream": "Call stream() for a streamed reply, or generate() for a complete reply.",
    "structured_model": "Pass response_format=….",
    "token_counter": _BUDGET,
}
"""Advice for each option of AgentScope 1.x that agentkit does not have. The keys are option names."""

_CALL = ("max_tokens", "response_format", "tool_choice", "tools")
# A parameter counts as a misspelled option if its similarity to the option is at least this value (0 to 1).
# The value must be above 0.8, the highest similarity of a provider's parameter to an option (vLLM's `min_tokens`).
_MISSPELLED = 0.85


def check_names(
    owner: str, names: Iterable[str], options: Collection[str], advice: str = "Remove this option."
) -> None:
    """Raises `OptionError` for the first name in `names` that is not in `options`.

    For an option of AgentScope, the error names the replacement in agentkit. For a misspelled name, the error
    suggests the most similar option. Otherwise, the error ends with `advice`. If `advice` contains the word
    `NAME`, the unknown name replaces this word.
    """
    for name in names:
        if name not in options:
            closest = find_closest(name, options)
            advice = _AGENTSCOPE.get(name) or (f"Did you mean {closest!r}?" if closest else advice)
            raise OptionError(name, f"{owner} has no such option", advice.replace("NAME", repr(name)))


def check_parameters(parameters: Mapping[str, Any] | None) -> None:
    """Raises `OptionError` if the name of a provider parameter looks like a misspelled option of agentkit.

    Also raises `OptionError` if a name is not a string.
    """
    for name in parameters or ():
        check_option("parameters", name, str, "Pass parameter names as strings.")
        option = _find_misspelled(name)
        if option is not None:
            reason = "no known provider has this parameter"
            raise OptionError(f"parameters.{name}", reason, f"Did you mean the keyword argument {option!r}?")


@lru_cache(512)
def _find_misspelled(name: str) -> str | None:
    return None if name in _CALL else find_closest(name, _CALL, _MISSPELLED)


def find_closest(name: str, candidates: Iterable[str], similarity: float = 0.7) -> str | None:
    """Returns the candidate that is most similar to `name`. Returns None if no candidate is similar enough."""
    from difflib import get_close_matches  # imported here because only error messages need `difflib`

    return next(iter(get_close_matches(name, candidates, 1, similarity)), None)


def check_option(name: str, value: object, expected_type: Any, advice: str = "") -> None:
    """Raises `OptionError` if the value of an option does not have the expected type."""
    if not isinstance(value, expected_type):
        expected = getattr(expected_type, "__name__", str(expected_type).replace(" | None", "").rpartition(".")[2])
        reason = f"expected {expected}, got {describe_value(value)}"
        raise OptionError(name, reason, advice or f"Pass a value of type {expected}, or omit the option.")


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Raises `OptionError` if the value of an option is not one of the choices."""
    if value not in choices:
        *others, last = choices
        advice = f"Use {', '.join(others)} or {last}." if others else f"Use {last}."
        raise OptionError(name, f"unknown value {shorten_repr(value, 60)}", advice)


def check_int(name: str, value: object, minimum: int, advice: str = "") -> None:
    """Raises `OptionError` if the value of an option is not an integer of at least `minimum`."""
    if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
        reason = f"must be an integer of at least {minimum}, got {shorten_repr(value, 60)}"
        raise OptionError(name, reason, advice or f"Pass an integer of at least {minimum}.")


def check_text(name: str, text: str | None) -> None:
    """Raises `OptionError` if the value of an option is neither None nor a string that UTF-8 can encode."""
    if text is None:
        return
    check_option(name, text, str)
    try:
        text.encode()
    except UnicodeEncodeError:
        reason = f"the string {shorten_repr(text, 60)} has a lone surrogate"
        raise OptionError(name, reason, "Pass a string that UTF-8 can encode.") from None
