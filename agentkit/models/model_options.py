"""Types and checks for the options of a `ChatModel`."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

from agentkit.argument_checks import check_int, check_names, check_option, check_parameters
from agentkit.errors import OptionError
from agentkit.formatting.formatter import FormatterOptions, RequestOptions
from agentkit.reprs import describe_value

__all__ = [
    "CallOptions",
    "ModelOptions",
    "NO_PARAMETERS",
    "PARAMETER_ADVICE",
    "check_call_options",
    "check_model_options",
    "get_formatter_options",
]


class ModelOptions(FormatterOptions, total=False):
    """Keyword options of `ChatModel`, except `client`. The docstring of `ChatModel` describes each option."""

    template: object
    formatter_options: Mapping[str, Any] | None
    max_tokens: int | None
    client_options: Mapping[str, Any] | None
    parameters: Mapping[str, Any] | None
    replan: bool | None
    timeout: float | None


class CallOptions(RequestOptions, total=False):
    """Keyword options of one model call. The docstring of `ChatModel.generate` describes each option."""

    max_tokens: int | None
    parameters: Mapping[str, Any] | None


PARAMETER_ADVICE = "Pass a parameter of the provider as parameters={NAME: …}."
NO_PARAMETERS = "Pass the option to generate() or stream()."

_MODEL_OPTIONS = frozenset({"provider", "model", "client", *ModelOptions.__annotations__})
_ADVICE = (
    "Pass a parameter of the provider as parameters={NAME: …}, an option of the SDK's client as "
    "client_options={NAME: …}, or an option of the formatter as formatter_options={NAME: …}."
)


def check_model_options(options: ModelOptions) -> None:
    """Raises OptionError for an unknown or invalid option of `ChatModel`.

    The formatter checks its own options.
    """
    check_names("ChatModel", options, _MODEL_OPTIONS, _ADVICE)
    _check_dict("client_options", options.get("client_options"))
    check_option("replan", options.get("replan"), bool | None)
    _check_timeout(options.get("timeout"))
    check_call_options(options.get("max_tokens"), options.get("parameters"))


def check_call_options(max_tokens: int | None, parameters: Mapping[str, Any] | None) -> None:
    """Raises OptionError if the token limit or a parameter of a model call is invalid."""
    _check_dict("parameters", parameters)
    check_parameters(parameters)
    if max_tokens is not None:
        check_int("max_tokens", max_tokens, 0, "Pass the maximum number of tokens of a reply.")


def _check_dict(name: str, value: object) -> None:
    """Raises OptionError if an option is not a dict. The error hides the value, which can contain an API key."""
    if not isinstance(value, Mapping | None):
        reason = f"expected a dict, got a value of type {type(value).__name__}"
        raise OptionError(name, reason, "Pass a dict, or omit the option.")


def _check_timeout(timeout: float | None) -> None:
    if timeout is None:
        return
    if not isinstance(timeout, int | float) or isinstance(timeout, bool) or not 0 < timeout < inf:
        reason = f"expected a positive number of seconds, got {describe_value(timeout)}"
        raise OptionError("timeout", reason, "Pass a number such as 60.")


def get_formatter_options(options: ModelOptions) -> dict[str, Any]:
    """Returns those `ChatModel` options that the formatter receives, including the items of `formatter_options`.

    Raises:
        OptionError: If `formatter_options` is not a mapping with strings as keys, or contains the key `model`.
    """
    further = options.get("formatter_options")
    check_option("formatter_options", further, Mapping | None)
    for name in further or ():
        if not isinstance(name, str):
            reason = f"expected names of formatter options, got {describe_value(name)}"
            raise OptionError("formatter_options", reason, "Pass a dict whose keys are strings.")
        if name == "model":
            advice = "Pass the name of the model to ChatModel."
            raise OptionError("formatter_options", "must not contain the key 'model'", advice)
    own = {name: value for name, value in options.items() if name in FormatterOptions.__annotations__}
    if (template := options.get("template")) is not None:  # only some formatters have this option
        own["template"] = template
    return {**own, **(further or {})}
