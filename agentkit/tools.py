"""Tools, and the choice among them, as data."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any, Literal, TypeAlias, cast

from pydantic import TypeAdapter
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

from agentkit.blocks import ToolResultBlock, ToolUseBlock
from agentkit.docstrings import split_docstring
from agentkit.errors import MessageError, OptionError, check_option
from agentkit.schemas import check_schema, map_schema, without_titles
from agentkit.values import Checked, JsonObject, Text, value

__all__ = [
    "Tool",
    "ToolChoice",
    "ToolLike",
    "as_tool_choice",
    "as_tools",
    "read_allowed_tools",
    "run_call",
]

_NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}


@value
class Tool(metaclass=Checked):
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
        `run_call` finds that of a call.
        """
        from agentkit.tool_running import run_tool

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
        schema = cast("dict[str, Any]", without_titles(schema))
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


async def run_call(block: ToolUseBlock, tools: Sequence[ToolLike]) -> ToolResultBlock:
    """What the tool that a call names answers: see `Tool.run`. `tools` are those that the model was given.

    A model may call what is not there, such as the `multi_tool_use.parallel` that some of OpenAI's know from their
    training. The result, with `is_error`, says which tools there are, and the model can go on.
    """
    check_option("block", block, ToolUseBlock)
    known = {tool.name: tool for tool in as_tools(tools)}
    tool = known.get(block.name)
    if tool is not None:
        return await tool.run(block)
    there_are = f"The tools are: {', '.join(map(repr, known))}." if known else "There are no tools."
    advice = " Call each tool by itself, by its name." if known else ""
    said = f"There is no tool {block.name!r}. {there_are}{advice}"
    return ToolResultBlock(block.id, block.name, said, is_error=True)


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


@value
class ToolChoice(metaclass=Checked):
    """Which tool the model may or must call: `auto`, `none`, `required` (any one), or `tool` with a name.

    `names` limits `auto` and `required` to some of the tools. OpenAI and Gemini have a field for this, and the
    tools of the request stay the same. Any other request offers only these tools, and the ledger says so: this
    changes the beginning of the prompt, so that a prompt cache misses, and thinking that is bound to its prefix is
    not sent back.
    """

    mode: Literal["auto", "none", "required", "tool"]
    name: Text | None = None
    names: tuple[Text, ...] = ()

    def __post_init__(self) -> None:
        if (self.mode == "tool") != (self.name is not None):
            raise MessageError("name", "a name goes with mode 'tool' and no other", "Give both or none.")
        if self.names and self.mode not in ("auto", "required"):
            reason = f"mode {self.mode!r} takes no list of names"
            raise MessageError("names", reason, "Pass mode 'auto' or 'required'.")


ToolChoiceLike: TypeAlias = ToolChoice | str | Sequence[str] | Mapping[str, Any]

_MODES = {"auto": "auto", "none": "none", "required": "required", "any": "required"}


def as_tool_choice(choice: ToolChoiceLike | None, tools: Sequence[Tool]) -> ToolChoice | None:
    """A choice from what callers give: a ToolChoice, a mode, a tool's name, `{"name": …}`, or a list of names.

    Of a list, one tool must be called. `{"mode": "auto", "names": […]}`, or OpenAI's `allowed_tools`, may say that
    none has to be. Without tools there is nothing to choose: `auto` and `none` mean nothing then, the others are
    refused.
    """
    if choice is None:
        return None
    found = _read_choice(choice)
    names = [tool.name for tool in tools]
    unknown = next((name for name in found.names or (found.name,) if name is not None and name not in names), None)
    if unknown is not None:
        raise OptionError("tool_choice", f"no tool is called {unknown!r}", f"There are {names}.")
    if not tools and found.mode == "required":
        raise OptionError("tool_choice", "a tool is required and none is given", "Pass tools.")
    return found if tools else None


def _read_choice(choice: ToolChoiceLike) -> ToolChoice:
    if isinstance(choice, ToolChoice):
        return choice
    if isinstance(choice, str):
        mode = _MODES.get(choice)
        return ToolChoice(cast("Any", mode)) if mode else ToolChoice("tool", choice)
    if isinstance(choice, list | tuple):
        return _among("required", cast("Sequence[object]", choice))
    if not isinstance(choice, Mapping):
        raise OptionError("tool_choice", f"{choice!r} is no choice", "Pass a mode, or names of tools.")
    limited = read_allowed_tools(choice)
    if limited is not None:
        return _among(*limited)
    said = choice.get("mode") or choice.get("type")
    mode = _MODES.get(said) if isinstance(said, str) else None
    if mode:
        return ToolChoice(cast("Any", mode))
    inner = choice.get("function")
    name = cast("Mapping[str, Any]", inner).get("name") if isinstance(inner, Mapping) else choice.get("name")
    if not isinstance(name, str):
        raise OptionError("tool_choice", f"{choice!r} names no tool", 'Write {"name": "…"} or a mode.')
    return ToolChoice("tool", name)


def read_allowed_tools(choice: Mapping[str, Any]) -> tuple[str, list[object]] | None:
    """Returns the mode and the names of a choice limited to some tools, in agentkit's form or in OpenAI's.

    Returns None for any other choice. Tools without a name, such as a provider's own tools, are omitted.
    """
    if "names" in choice:
        names = choice["names"]
        return str(choice.get("mode") or "required"), [*names] if isinstance(names, list | tuple) else [names]
    if choice.get("type") != "allowed_tools":
        return None
    inner = choice.get("allowed_tools")
    held = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else choice
    tools = held.get("tools")
    listed = cast("list[object]", tools) if isinstance(tools, list) else []
    return str(held.get("mode") or "auto"), [name for tool in listed if (name := _name_in(tool)) is not None]


def _name_in(tool: object) -> object:
    """Returns the name in OpenAI's reference to a tool, nested or flat. Returns None if there is no name."""
    if not isinstance(tool, Mapping):
        return None
    found = cast("Mapping[str, Any]", tool)
    inner = found.get("function")
    return cast("Mapping[str, Any]", inner).get("name") if isinstance(inner, Mapping) else found.get("name")


def _among(mode: str, names: Sequence[object]) -> ToolChoice:
    """Returns a choice limited to some tools, without repeated names."""
    known = [name for name in names if isinstance(name, str)]
    if not known or len(known) < len(names):
        reason = f"expected tool names (str), got {list(names)!r}" if names else "no tool is named"
        raise OptionError("tool_choice", reason, "Pass the names of tools.")
    if mode not in ("auto", "required", "any"):
        raise OptionError("tool_choice", f"mode {mode!r} takes no names", "Pass mode 'auto' or 'required'.")
    return ToolChoice("auto" if mode == "auto" else "required", names=tuple(dict.fromkeys(known)))


def renamed(tool: Tool, name: str) -> Tool:
    """The tool under another name."""
    return tool if tool.name == name else replace(tool, name=name)
