"""`get_prefix`: returns the conversation that a caller passes as the input `prefix` of a signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import UnionType
from typing import Any, TypeAlias, Union, get_args, get_origin

from agentkit.messages.message import Msg
from agentkit.prompts.adapter import HistoryItem
from agentkit.prompts.examples import Example
from agentkit.prompts.feedback import Feedback
from agentkit.prompts.fields import SignatureField
from agentkit.prompts.signature import Signature

__all__ = ["get_prefix", "is_prefix"]

_AnySignature: TypeAlias = type[Signature[Any]]


def is_prefix(item: SignatureField) -> bool:
    """Returns True if an input has the name `prefix` and a type such as `list[Msg | Feedback]`.

    The items of the list may be `Msg`, `Feedback` and `Example` objects.
    """
    arguments = get_args(item.type)
    if item.name != "prefix" or len(arguments) != 1 or get_origin(item.type) is not list:
        return False
    is_union = get_origin(arguments[0]) in (Union, UnionType)
    types = get_args(arguments[0]) if is_union else arguments
    return set(types) <= {Msg, Feedback, Example}


def get_prefix(signature: _AnySignature, values: Mapping[str, Any]) -> Sequence[HistoryItem]:
    """Returns the conversation in the input `prefix`. Empty if the input is absent or has no value."""
    names = [name for name, item in signature.input_fields.items() if is_prefix(item)]
    return values.get(names[0]) or () if names else ()
