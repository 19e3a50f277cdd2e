"""Tools, and the choice among them, as data."""

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
    """A tool that a model may call: a name, what it does, and a JSON schema of its arguments.

    `parameters` is a JSON schema of an object; `"type": "object"` may be missing. `strict` asks the provider to
    hold the model to it. Strict mode takes only closed schemas: one that requires all its properties is closed
    (`additionalProperties: false`). Any other schema, and any for a provider without strict mode, is sent without
    the flag, and `ledger.syntheses` says so.
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
        """Whether the schema names any property, or refers to one that may."""
        return any(self.parameters.get(key) for key in ("properties", "$ref", "anyOf", "allOf", "oneOf"))

    async def run(self, block: ToolUseBlock) -> ToolResultBlock:
        """What the tool answers to a call of it: never an exception, but a cancellation.

        The arguments are checked, and converted, as the function's types say. A function that is not async runs in
        a worker thread, with this task's context variables; a cancellation does not wait for it. A string is the
        output as it is, and so are a text or media block and a list of them; anything else goes out as JSON.

        What goes wrong is the output of a result with `is_error`: arguments that are refused or were cut off, an
        error that the function raises, a call of another tool, a tool without a function. Of several tools,
        `run_tool_call` finds that of a call.
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
        """A tool from a typed function: its name, its docstring, and its parameters through pydantic.

        Describe a parameter with `Annotated[int, Field(description=…)]`, or in the docstring with
        `parse_docstring=True`: the parameter sections of Google, NumPy and reST style then describe the parameters
        that have no `Field(description=…)`, and the tool's description is the docstring without any section. This
        needs the extra `tools`, and raises MissingExtraError without it.

        Raises MessageError for a function whose parameters cannot be given by keyword or have a type that no JSON
        schema describes.
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
        """A tool from its JSON form: ours, OpenAI's (nested or flat), Anthropic's, MCP's, or Gemini's."""
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
    """What a callable's parameters are read from: an object's own method, the function behind a cache."""
    given: Any = function
    if hasattr(given, "cache_info") and hasattr(given, "__wrapped__"):
        found: Callable[..., Any] = given.__wrapped__
        return found
    if inspect.isroutine(given) or isinstance(given, type | partial):
        return function
    return cast("Callable[..., Any]", getattr(given, "__call__", given))  # noqa: B004


def _docstring(function: Callable[..., Any]) -> str:
    """The docstring of a function, of the function in a `partial`, or of an object's class."""
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
    """Tools from what callers give: Tools, typed functions, or dicts. Names must differ."""
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
    """The tool under another name."""
    return tool if tool.name == name else replace(tool, name=name)
