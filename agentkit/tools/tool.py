"""`Tool`: name, description and JSON schema of a tool, and optionally its function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any, TypeAlias, cast

from pydantic import TypeAdapter
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

from agentkit.errors import MessageError
from agentkit.messages.blocks import ToolResultBlock, ToolUseBlock
from agentkit.messages.validation import JsonObject, Text, Validated, validated_dataclass
from agentkit.tools.docstrings import split_docstring
from agentkit.tools.json_schema import check_schema, map_schema, remove_titles

__all__ = ["Tool", "ToolLike", "as_tools"]

_NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}


@validated_dataclass
class Tool(Validated):
    """Tool that a model may call.

    Attributes:
        name: Name of the tool.
        description: Description for the model.
        parameters: JSON schema of the arguments, which are an object. `"type": "object"` is optional.
        strict: True requests strict mode: the provider forces arguments to match the schema. agentkit closes a
            schema that requires all its properties. Any other open schema is sent without the flag, also to a
            provider without strict mode; `ledger.syntheses` then has an entry. None sends no flag.
        function: Function that runs the tool. None if the application runs it.

    Raises:
        MessageError: The name is empty, or the schema is malformed or not a schema of an object.

    """

    name: Text
    description: Text = ""
    parameters: JsonObject = field(default_factory=_NO_PARAMETERS.copy)
    strict: bool | None = None
    function: Any = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.name:
            raise MessageError("name", "the tool's name is empty", "Name the tool.")
        if check_schema(self.parameters, "parameters"):
            object.__setattr__(self, "parameters", map_schema(self.parameters, dict))
        kind = self.parameters.get("type", "object")
        if kind != "object" and not (isinstance(kind, list) and "object" in kind):
            raise MessageError("parameters", "the schema's type is not object", "Wrap it in an object.")

    @property
    def takes_arguments(self) -> bool:
        """True if the schema has properties, or a reference or combination that may have some."""
        return any(self.parameters.get(key) for key in ("properties", "$ref", "anyOf", "allOf", "oneOf"))

    async def run(self, block: ToolUseBlock) -> ToolResultBlock:
        """Runs the tool for a call. Raises no exception other than a cancellation or a keyboard interrupt.

        The arguments are validated and converted according to the types of the function. A synchronous function
        runs in a worker thread with the context variables of the task; a cancellation does not wait for it.

        Text, text and media blocks, and lists of them become the output unchanged. Any other value becomes JSON
        text. Any failure becomes a result with `is_error`: invalid or truncated arguments, an exception of the
        function, a call of another tool, or a tool without a function.

        Args:
            block: Tool call of a reply. `run_tool_call` selects the tool of a call among several tools.

        """
        from agentkit.tools.execution import run_tool

        return await run_tool(self.name, self.function, block)

    @classmethod
    def from_function(
        cls,
        function: Callable[..., Any],
        name: str | None = None,
        description: str | None = None,
        *,
        parse_docstring: bool = False,
    ) -> Tool:
        """Returns a tool for a typed function. pydantic derives the JSON schema from the parameter types.

        Args:
            function: Function to run. Annotate parameters with types that JSON can express. For a description, use
                `Annotated[int, Field(description=…)]`.
            name: Name of the tool. None uses the name of the function.
            description: Description of the tool. None uses the docstring.
            parse_docstring: True takes missing parameter descriptions from the sections of a Google, NumPy or reST
                docstring. The description of the tool is then the docstring without its sections. Requires the
                extra `tools`.

        Raises:
            MessageError: A parameter cannot be passed by keyword, or no JSON schema describes its type.
            MissingExtraError: `parse_docstring` is True and the extra `tools` is not installed.

        """
        given: Any = function
        signed: Any = _signed(given)
        called = str(name or getattr(function, "__name__", "" if type(given) is partial else type(given).__name__))
        place = f"tool {called!r}"
        try:
            for parameter in inspect.signature(signed).parameters.values():
                if parameter.kind in _UNNAMED:
                    raise MessageError(place, f"parameter {parameter} has no keyword", "Give it a name.")
            adapter: TypeAdapter[Any] = TypeAdapter(signed)
            schema = adapter.json_schema()
        except (PydanticUserError, PydanticUndefinedAnnotation, NameError, TypeError, ValueError) as error:
            if isinstance(error, MessageError):
                raise
            reason = str(error).partition("\n")[0]
            raise MessageError(place, reason, "Annotate the parameters with types of JSON.") from None
        schema = cast("dict[str, Any]", remove_titles(schema))
        schema.setdefault("type", "object")
        schema.setdefault("properties", {})
        told = _docstring(function)
        if parse_docstring:
            names = adapter.json_schema(by_alias=False).get("properties", {})  # a docstring knows no alias
            told = _describe(
                told, _docstring(signed), dict(zip(names, schema["properties"].values(), strict=False))
            )
        return cls(called, told if description is None else description, schema, function=function)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], place: str = "tool") -> Tool:
        """Returns a tool for a dict in the form of agentkit, OpenAI (nested or flat), Anthropic, MCP or Gemini.

        Args:
            data: Definition of the tool.
            place: Place of the dict, for errors.

        Raises:
            MessageError: The dict is not a tool definition.

        """
        if not isinstance(data, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise MessageError(place, f"expected an object, got {type(data).__name__}", "Give a dict.")
        inner = data.get("function")
        found: Mapping[str, Any] = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else data
        schema = next((found[key] for key in _SCHEMA_KEYS if found.get(key) is not None), None)
        try:
            parameters = _NO_PARAMETERS if schema is None else schema
            return cls(
                found.get("name") or "",
                found.get("description") or "",
                parameters,
                cast("bool | None", found.get("strict")),
            )
        except MessageError as error:
            raise MessageError(f"{place}{error.place.removeprefix('Tool')}", error.reason, error.advice) from None


def _signed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the callable that has the signature: the `__call__` of an object, or the function inside a cache."""
    given: Any = function
    if hasattr(given, "cache_info") and hasattr(given, "__wrapped__"):
        found: Callable[..., Any] = given.__wrapped__
        return found
    if inspect.isroutine(given) or isinstance(given, type | partial):
        return function
    return cast("Callable[..., Any]", getattr(given, "__call__", given))  # noqa: B004


def _docstring(function: Callable[..., Any]) -> str:
    """Returns the docstring of a function, of the function in a `partial`, or of the class of an object."""
    while isinstance(function, partial):
        function = cast("partial[Any]", function).func
    return inspect.getdoc(function) or ""


def _describe(docstring: str, method_docstring: str, properties: Mapping[str, dict[str, Any]]) -> str:
    """Adds the descriptions of parameters to their schemas. Returns the description of the tool.

    A callable object may describe its parameters at its class or at `__call__`.
    """
    description, parameters = split_docstring(docstring)
    for name, text in {**split_docstring(method_docstring)[1], **parameters}.items():
        if name in properties:
            properties[name].setdefault("description", text)
    return description


_UNNAMED = {
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
}
_SCHEMA_KEYS = ("parameters", "input_schema", "inputSchema", "parameters_json_schema", "parametersJsonSchema")

ToolLike: TypeAlias = Tool | Callable[..., Any] | Mapping[str, Any]


def as_tools(tools: Sequence[ToolLike] | None) -> tuple[Tool, ...]:
    """Converts tools, typed functions and dicts to tools.

    Raises:
        MessageError: `tools` is not a list, an item is not a tool, or two tools have the same name.

    """
    if isinstance(tools, str | Mapping | Tool) or not isinstance(tools, Iterable | None):
        raise MessageError("tools", f"expected a list of tools, got {type(tools).__name__}", "Pass a list.")
    found = tuple(_as_tool(tool, f"tools[{at}]") for at, tool in enumerate(tools or ()))
    seen: set[str] = set()
    for at, tool in enumerate(found):
        if tool.name in seen:
            raise MessageError(f"tools[{at}].name", f"{tool.name!r} is there twice", "Rename one.")
        seen.add(tool.name)
    return found


def _as_tool(found: object, place: str) -> Tool:
    if isinstance(found, Tool):
        return found
    if isinstance(found, Mapping):
        return Tool.from_dict(cast("Mapping[str, Any]", found), place)
    if callable(found):
        return Tool.from_function(found)
    raise MessageError(place, f"{type(found).__name__} is no tool", "Give a Tool, a function or a dict.")


def rename_tool(tool: Tool, name: str) -> Tool:
    """Returns the tool with another name."""
    return tool if tool.name == name else replace(tool, name=name)
