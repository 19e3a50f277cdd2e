"""`OptionLayout`: keys of tools, tool choice and output schema in the requests of an API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["OptionLayout"]


def _no_readers() -> dict[str, Callable[[Any], Any]]:
    return {}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OptionLayout:
    """Keys of the options in a request. The defaults are `tool_choice` and `response_format`.

    A path is one key, or several nested keys separated by dots.

    Attributes:
        function_types: Types of tools that the application runs. The provider runs tools of any other type.
        tool_type: Key of the type of a tool. A tool without a type is a function if it has a name.
        functions: Keys of lists of plain function declarations, beside the list of tools.
        choices: Paths of the tool choice. The first path that is present counts.
        read_choice: Converts the value under such a path to a format that `tool_choice=` accepts. None if the
            formats are the same.
        outputs: Paths of the output schema. The first path that leads to a schema of an object counts.
        read_schemas: Functions that convert a schema in another language, such as OpenAPI's, to a JSON schema; by
            the key of the schema.

    """

    function_types: frozenset[str] = frozenset({"function"})
    tool_type: str = "type"
    functions: tuple[str, ...] = ()
    choices: tuple[str, ...] = ("tool_choice",)
    read_choice: Callable[[Any], Any] | None = None
    outputs: tuple[str, ...] = ("response_format",)
    read_schemas: Mapping[str, Callable[[Any], Any]] = field(default_factory=_no_readers)
