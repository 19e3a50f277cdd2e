"""`read_inputs`: the inputs of a request or an example. `get_prefix`: the conversation in the input `prefix`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Any, TypeAlias, Union, get_args, get_origin

from agentkit.argument_checks import check_option
from agentkit.errors import MessageError
from agentkit.messages.message import Msg
from agentkit.prompts.adapter import HistoryItem
from agentkit.prompts.bound_request import get_inputs
from agentkit.prompts.examples import Example
from agentkit.prompts.feedback import Feedback
from agentkit.prompts.fields import SignatureField
from agentkit.prompts.signature import Signature

__all__ = ["get_prefix", "is_prefix", "read_inputs"]

_AnySignature: TypeAlias = type[Signature[Any]]


def read_inputs(
    signature: _AnySignature, inputs: Mapping[str, Any] | Signature[Any], place: str = ""
) -> Mapping[str, Any]:
    """Returns the values of the inputs.

    An input without a value gets its default. A required input without a value is omitted.
    """
    if isinstance(inputs, Signature):
        return get_inputs(inputs)
    check_option("inputs", inputs, Mapping, "Pass a dict of values by field name, or a bound request.")
    values: dict[str, Any] = {}
    try:
        for name, item in signature.input_fields.items():
            if name in inputs:
                values[name] = item.validate(inputs[name], signature.__name__)
            elif not item.is_required:
                values[name] = item.get_default()
    except MessageError as error:
        raise error.with_prefix(f"{place}.inputs") if place else error from None
    return values


def is_prefix(item: SignatureField) -> bool:
    """Returns True if an input has the name `prefix` and a type such as `list[Msg | Feedback]`."""
    arguments = get_args(item.type)
    if item.name != "prefix" or len(arguments) != 1 or get_origin(item.type) is not list:
        return False
    is_union = get_origin(arguments[0]) in (Union, UnionType)
    types = get_args(arguments[0]) if is_union else arguments
    return set(types) <= {Msg, Feedback, Example}


def get_prefix(signature: _AnySignature, values: Mapping[str, Any]) -> Sequence[HistoryItem]:
    """Returns the conversation in the input `prefix`. Returns an empty tuple if there is no such input."""
    names = [name for name, item in signature.input_fields.items() if is_prefix(item)]
    return values.get(names[0]) or () if names else ()
