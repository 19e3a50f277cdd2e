"""`OptionLayout`, the keys of tools, tool choice and output schema in the requests of an API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["OptionLayout"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OptionLayout:
    """Keys of tools, tool choice and output schema in a request.

    By default, the tool choice has the path `tool_choice`, and the output schema has the path `response_format`. A
    path is one key, or several nested keys separated by dots.

    Attributes:
        function_types: Types of tools that the application runs. The provider runs tools of any other type. A tool
            without a type is a function if it has a name.
        functions: Keys of further lists of function declarations, in addition to the list of tools.
        choices: Paths of the tool choice. The first path that is present is used.
        read_choice: Function that converts the value at a path in `choices` to a value for `tool_choice=`. None if
            no conversion is needed.
        outputs: Paths of the output schema. The first path that leads to a schema of an object is used. The value
            may be the JSON text of the schema.
        read_schemas: Map from keys of schemas in another format, such as OpenAPI's, to functions that convert the
            schema to a JSON schema. For the schema at a path in `outputs`, the key is the last key of the path.
    """

    function_types: frozenset[str] = frozenset({"function"})
    functions: tuple[str, ...] = ()
    choices: tuple[str, ...] = ("tool_choice",)
    read_choice: Callable[[Any], Any] | None = None
    outputs: tuple[str, ...] = ("response_format",)
    read_schemas: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict[str, Callable[[Any], Any]])
