"""`read_inputs`: returns the checked values of the inputs of a request or an example."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from agentkit.argument_checks import check_option
from agentkit.errors import MessageError
from agentkit.prompts.bound_request import get_inputs
from agentkit.prompts.signature import Signature

__all__ = ["read_inputs"]

_AnySignature: TypeAlias = type[Signature[Any]]


def read_inputs(
    signature: _AnySignature, inputs: Mapping[str, Any] | Signature[Any], place: str = ""
) -> Mapping[str, Any]:
    """Returns the values of the inputs, by name.

    An input without a value gets its default. A required input without a value is omitted.

    Args:
        signature: Signature with the fields that the prompt shows.
        inputs: Values by name, which pydantic validates, or a request that is bound to this signature.
        place: Place of the example in errors. Empty for a request.

    Raises:
        MessageError: A value does not fit its type.
        OptionError: `inputs` is neither a dict nor a bound request.
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
