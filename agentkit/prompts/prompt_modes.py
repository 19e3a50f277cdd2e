"""`PromptMode`: the templates and the parser of one mode of a `PromptAdapter`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from agentkit.argument_checks import check_option
from agentkit.errors import OptionError
from agentkit.prompts.adapter import Adapter
from agentkit.prompts.bound_parser import BoundParser, bind_parser
from agentkit.prompts.field_types import History
from agentkit.prompts.parser import Parser
from agentkit.prompts.prefix_inputs import is_prefix
from agentkit.prompts.prompt_templates import PromptTemplates
from agentkit.prompts.prompt_texts import PromptTexts
from agentkit.prompts.signature import Signature

__all__ = ["PromptMode", "check_mode"]

_AnySignature: TypeAlias = type[Signature[Any]]


@dataclass(frozen=True)
class PromptMode:
    """Templates and parser of one mode.

    Attributes:
        name: Name of the mode. None for replies without a mode.
        names: Names of all modes, beginning with None: the template variable `available_modes`.
        parser: Parser of the replies.
        templates: Folders with templates and data.
        texts: Maps the kinds `system`, `instance` and `feedback` to the templates in the options of the adapter.
            None means that an option has no template.
        params: Template variable `params`.
    """

    name: str | None
    names: tuple[str | None, ...]
    parser: Parser[Any]
    templates: PromptTemplates
    texts: Mapping[str, str | None]
    params: Mapping[str, Any]

    def bind_parser(self, signature: _AnySignature) -> BoundParser:
        """Returns the parser for the outputs of a signature.

        Raises:
            OptionError: The parser does not fit the outputs.
        """
        return bind_parser(self.parser, signature)

    def create_texts(
        self, signature: _AnySignature, values: Mapping[str, Any], number: int | None = None
    ) -> PromptTexts:
        """Returns the prompts of a request or an example.

        Args:
            signature: Signature with the fields that the prompt shows.
            values: Values of the inputs. Conversations, such as the input `prefix`, are not passed to templates.
            number: Number of the example. None for a request.
        """
        hidden = {name for name, item in signature.input_fields.items() if item.type is History or is_prefix(item)}
        variables = {
            "mode": self.name,
            "available_modes": [*self.names],
            "params": self.params,
            "format": self.bind_parser(signature).format_variable if signature.output_fields else None,
            "example": number is not None,
            "example_id": number,
        }
        query = {name: value for name, value in values.items() if name not in hidden}
        return PromptTexts(signature, query, variables, self.templates, self.texts)


_OUTER: Final[Mapping[str, Any]] = {
    "modes": {},
    "mode": None,
    "fallback": None,
    "native_tools": True,
    "native_reasoning": False,
    "native_citations": False,
    "order": "given",
    "observe": None,
}
"""Options that the adapter of a mode cannot have, with their defaults. The outer adapter has these options."""


def check_mode(name: object, adapter: object, adapter_class: type[Adapter]) -> None:
    """Checks one entry of the option `modes`.

    Raises:
        OptionError: The name is not a string, the adapter is not an `adapter_class`, or the adapter has an option
            for the outer adapter.
    """
    check_option("modes", name, str, "Pass a dict that maps names of modes to adapters.")
    place = f"modes[{name!r}]"
    check_option(place, adapter, adapter_class, f"Pass a {adapter_class.__name__}.")
    for option, default in _OUTER.items():
        if getattr(adapter, option) != default:
            reason = "the adapter of a mode cannot have this option"
            raise OptionError(f"{place}.{option}", reason, "Pass the option to the outer adapter.")
