"""`Tool`: name, description and JSON schema of a tool, and optionally its function."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any, TypeAlias, cast

from pydantic import TypeAdapter
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

from agentkit.errors import MessageError
from agentkit.json_values import copy_json, make_json_safe
from agentkit.messages.blocks import ToolResultBlock, ToolUseBlock
from agentkit.messages.validation import JsonObject, Text, Validated, validated_dataclass
from agentkit.reprs import shorten_repr
from agentkit.tools.docstrings import split_docstring
from agentkit.tools.json_schema import check_schema, map_schema, remove_titles

__all__ = ["Tool", "ToolLike", "as_tools", "declare_tool", "rename_tool"]

_NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}


@validated_dataclass
class Tool(Validated):
    """Tool that a model may call.

    Attributes:
        name: Name of the tool.
        description: Description for the model.
        parameters: JSON schema of the arguments object. The keyword `"type": "object"` is optional.
        strict: True requests strict mode, in which the provider forces the arguments to match the schema. Strict
            mode demands a schema that requires all its properties and forbids others. If the schema requires all
            its properties, agentkit adds the rule that forbids others. If the provider cannot accept the schema,
            or has no strict mode, the flag is omitted and `ledger.syntheses` has an entry. None omits the flag.
        function: Function that runs the tool. None if the application runs the tool itself.
        metadata: JSON object with data of the application. Requests never contain the metadata, and comparisons of
            tools ignore it. `from_dict` stores the unknown keys of a definition here, such as `annotations`, and a
            `type` other than `function`. Unknown keys inside the object `function` are under the key `function`.

    Raises:
        MessageError: The name is empty, or the schema is malformed or not a schema of an object.
    """

    name: Text
    description: Text = ""
    parameters: JsonObject = field(default_factory=_NO_PARAMETERS.copy)
    strict: bool | None = None
    function: Any = field(default=None, repr=False, compare=False)
    metadata: JsonObject | None = field(default=None, kw_only=True, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.name:
            raise MessageError("name", "the name of the tool is empty", "Pass a name.")
        if check_schema(self.parameters, "parameters"):
            object.__setattr__(self, "parameters", map_schema(self.parameters, dict))
        root_type = self.parameters.get("type", "object")
        if root_type != "object" and not (isinstance(root_type, list) and "object" in root_type):
            reason = f'the root type must be "object", got {shorten_repr(cast("object", root_type), 60)}'
            raise MessageError("parameters", reason, "Pass a schema of an object.")

    @property
    def takes_arguments(self) -> bool:
        """True if the schema has properties, a reference, or a combination of schemas that may have properties."""
        return any(self.parameters.get(key) for key in ("properties", "$ref", "anyOf", "allOf", "oneOf"))

    async def run(self, block: ToolUseBlock) -> ToolResultBlock:
        """Runs the tool for a tool call. A failure of the tool becomes a result, not an exception.

        The arguments are validated and converted according to the parameter types of the function. A synchronous
        function runs in a worker thread with the context variables of the current task. A cancellation does not
        wait for the thread. Of the errors during the run, only a cancellation and a keyboard interrupt are raised.

        A string, a block or an MCP result becomes the output. A list that contains a block becomes a list of
        blocks. Any other value becomes JSON text. Any failure becomes a result with `is_error=True`. Examples of
        failures are invalid or truncated arguments, an exception of the function, and a tool without a function.

        Args:
            block: Tool call of a reply. To select the tool among several tools by its name, use `run_tool_call`.
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
        """Creates a tool from a typed function. pydantic derives the JSON schema from the parameter types.

        Args:
            function: Function to run. Annotate its parameters with types that JSON can express. To describe a
                parameter, use `Annotated[int, Field(description=…)]`.
            name: Name of the tool. If None, the name of the function is used.
            description: Description of the tool. If None, the docstring of the function is used.
            parse_docstring: True reads the descriptions of parameters from the sections of a Google, NumPy or reST
                docstring. A description in `Annotated` takes precedence. The description of the tool is then the
                docstring without its sections. Requires the extra `tools`.

        Raises:
            MessageError: A parameter cannot be passed by keyword, or its type has no JSON schema.
            MissingExtraError: `parse_docstring` is True and the extra `tools` is not installed.
        """
        tool_name = name or _function_name(function)
        signed: Any = _find_signed_callable(function)
        adapter = _adapt(signed, f"tool {tool_name!r}")
        schema = cast("dict[str, Any]", remove_titles(adapter.json_schema()))
        schema.setdefault("type", "object")
        schema.setdefault("properties", {})
        documented = _docstring(function)
        if parse_docstring:
            # the schema uses the aliases of parameters, but docstrings use the names of parameters
            names = adapter.json_schema(by_alias=False).get("properties", {})
            properties = dict(zip(names, schema["properties"].values(), strict=False))
            documented = _describe_parameters(documented, _docstring(signed), properties)
        return cls(tool_name, documented if description is None else description, schema, function=function)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], place: str = "tool") -> Tool:
        """Creates a tool from a dict in the format of agentkit, OpenAI (nested or flat), Anthropic, MCP or Gemini.

        Args:
            data: Definition of the tool.
            place: Place of the dict in errors.

        Raises:
            MessageError: The dict is not a tool definition.
        """
        if not isinstance(data, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise MessageError(place, f"expected a dict, got {shorten_repr(data, 60)}", "Pass a dict.")
        inner = data.get("function")
        fields: Mapping[str, Any] = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else data
        schema_key = next((key for key in _SCHEMA_KEYS if fields.get(key) is not None), "parameters")
        keys = ("name", "description", "strict", schema_key)
        declared = {key: fields[key] for key in keys if fields.get(key) is not None}
        others = _list_others(fields, keys)
        if fields is inner:
            outer = _list_others(data, ("function",))
            others = {**outer, "function": others} if others else outer
        try:
            return cls(
                declared.get("name", ""),
                declared.get("description", ""),
                declared.get(schema_key, _NO_PARAMETERS),
                declared.get("strict"),
                metadata=make_json_safe(others) if others else None,
            )
        except MessageError as error:
            raise MessageError(f"{place}{error.place.removeprefix('Tool')}", error.reason, error.advice) from None


def _adapt(function: Callable[..., Any], place: str) -> TypeAdapter[Any]:
    """Returns pydantic's adapter for a function.

    Raises:
        MessageError: A parameter cannot be passed by keyword, or has no JSON schema.
    """
    try:
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in _UNNAMED:
                reason = f"parameter {str(parameter)!r} cannot be passed by keyword"
                raise MessageError(place, reason, "Use only parameters that can be passed by keyword.")
        adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", function))
        adapter.json_schema()
    except (PydanticUserError, PydanticUndefinedAnnotation, NameError, TypeError, ValueError) as error:
        if isinstance(error, MessageError):
            raise
        reason = str(error).partition("\n")[0].rstrip(".")
        raise MessageError(place, reason, "Use parameter types that JSON can express.") from None
    return adapter


def _function_name(function: Callable[..., Any]) -> str:
    """Returns the name of a function, or the class name of a callable object. Returns "" for a `partial`."""
    default = "" if type(function) is partial else type(function).__name__
    return str(getattr(function, "__name__", default))


def _find_signed_callable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the callable whose signature describes the parameters of a tool.

    For a callable object, this callable is `__call__`. For a `functools` cache, this callable is the cached
    function.
    """
    target: Any = function
    if hasattr(target, "cache_info") and hasattr(target, "__wrapped__"):
        return cast("Callable[..., Any]", target.__wrapped__)
    if inspect.isroutine(target) or isinstance(target, type | partial):
        return function
    return cast("Callable[..., Any]", getattr(target, "__call__", target))  # noqa: B004


def _docstring(function: Callable[..., Any]) -> str:
    while isinstance(function, partial):
        function = cast("partial[Any]", function).func
    return inspect.getdoc(function) or ""


def _describe_parameters(docstring: str, method_docstring: str, properties: Mapping[str, dict[str, Any]]) -> str:
    """Adds descriptions from docstrings to the schemas in `properties`. Returns the description of the tool.

    The class of a callable object and its `__call__` can both describe parameters, so there are two docstrings.
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


def _list_others(fields: Mapping[str, Any], keys: Collection[str]) -> dict[str, Any]:
    """Returns the fields whose keys are not in `keys`. Omits fields with the value None.

    Also omits `type` if its value is `function`.
    """
    items = fields.items()
    return {key: v for key, v in items if key not in keys and v is not None and (key, v) != ("type", "function")}


ToolLike: TypeAlias = Tool | Callable[..., Any] | Mapping[str, Any]


def as_tools(tools: Sequence[ToolLike] | None) -> tuple[Tool, ...]:
    """Converts typed functions and dicts to `Tool` values, and checks that the names are unique.

    Raises:
        MessageError: `tools` is not a list, an item is not a tool, or two tools have the same name.
    """
    if tools is None or tools == ():
        return ()
    if isinstance(tools, str | Mapping | Tool) or not isinstance(cast("object", tools), Iterable):
        reason = f"expected a list of tools, got {shorten_repr(tools, 60)}"
        raise MessageError("tools", reason, "Pass the tools in a list.")
    converted = tuple(_as_tool(tool, f"tools[{index}]") for index, tool in enumerate(tools))
    names: set[str] = set()
    for index, tool in enumerate(converted):
        if tool.name in names:
            reason = f"another tool has the name {tool.name!r}"
            raise MessageError(f"tools[{index}].name", reason, "Use a different name for each tool.")
        names.add(tool.name)
    return converted


def _as_tool(tool: object, place: str) -> Tool:
    if isinstance(tool, Tool):
        return tool
    if isinstance(tool, Mapping):
        return Tool.from_dict(cast("Mapping[str, Any]", tool), place)
    if callable(tool):
        return Tool.from_function(tool)
    reason = f"expected a tool, got {shorten_repr(tool, 60)}"
    raise MessageError(place, reason, "Pass a Tool, a function or a dict.")


def rename_tool(tool: Tool, name: str) -> Tool:
    """Returns a copy of a tool with another name."""
    return tool if tool.name == name else replace(tool, name=name)


def declare_tool(tool: Tool, schema_key: str | None) -> dict[str, Any]:
    """Returns the declaration of a tool for a request. The declaration contains a copy of the schema.

    An empty description is omitted. If `schema_key` is None, the schema is omitted. The strict flag is never
    written, because its key differs between APIs. If `tool.strict` is not None, the converter writes the flag.
    """
    declaration: dict[str, Any] = {"name": tool.name}
    if tool.description:
        declaration["description"] = tool.description
    if schema_key:
        declaration[schema_key] = copy_json(tool.parameters)
    return declaration
