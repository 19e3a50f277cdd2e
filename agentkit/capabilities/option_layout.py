"""`OptionLayout`: the keys of tools, tool choice and output schema in the requests of an API."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["OptionLayout"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OptionLayout:
    """Keys of tools, tool choice and output schema in a request.

    A path is one key, or several nested keys separated by dots. The default path of the tool choice is
    `tool_choice`, and the default path of the output schema is `response_format`.

    Attributes:
        function_types: Types of tools that the application runs. The provider runs tools of any other type. A tool
            that has a name and no type runs in the application.
        functions: Keys of other lists of function declarations, in addition to the list of tools.
        choices: Paths of the tool choice. Requests are written with the first path, and read with the first path
            that has a value.
        read_choice: Function that converts a tool choice from a request to a value for the option `tool_choice`.
            None if no conversion is needed.
        outputs: Paths of the output schema. The first path with a valid schema of an object is used. The value may
            be the JSON text of the schema.
        read_schemas: Functions that convert a schema from another format, such as OpenAPI's, to a JSON schema. The
            keys of the map are the request keys that contain the schemas, such as `parameters`. For a path in
            `outputs`, the map contains the last key of the path.
    """

    function_types: frozenset[str] = frozenset({"function"})
    functions: tuple[str, ...] = ()
    choices: tuple[str, ...] = ("tool_choice",)
    read_choice: Callable[[Any], Any] | None = None
    outputs: tuple[str, ...] = ("response_format",)
    read_schemas: Mapping[str, Callable[[Any], Any]] = field(default_factory=dict[str, Callable[[Any], Any]])
