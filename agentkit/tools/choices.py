"""`ToolChoice` (the tools that a model may or must call), and functions that parse a tool choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

from agentkit.errors import MessageError, OptionError
from agentkit.messages.validation import Text, Validated, validated_dataclass
from agentkit.reprs import shorten_repr
from agentkit.tools.tool import Tool

__all__ = ["ToolChoice", "ToolChoiceLike", "as_tool_choice", "read_allowed_tools", "read_tool_choice"]


@validated_dataclass
class ToolChoice(Validated):
    """Tools that the model may or must call.

    The APIs of OpenAI and Gemini have a field for `names`. For any other API, the request contains only the tools
    in `names`, and `Ledger.syntheses` has an entry.

    Omitting tools changes the beginning of the request, so the provider's prompt cache has no match for the
    request. agentkit then also omits thinking blocks that are valid only after an unchanged beginning.

    Attributes:
        mode: `auto` (the model decides), `none` (no tool call), `required` (at least one tool call) or `tool`
            (a call of the tool `name`).
        name: Name of the tool that the model must call. Only for the mode `tool`; None for any other mode.
        names: Names of the tools that the model may call, for the modes `auto` and `required`. If empty, the model
            may call all tools.

    Raises:
        MessageError: The mode `tool` has no name, another mode has a name, or the mode does not allow `names`.
    """

    mode: Literal["auto", "none", "required", "tool"]
    name: Text | None = None
    names: tuple[Text, ...] = ()

    def __post_init__(self) -> None:
        if (self.mode == "tool") != (self.name is not None):
            rule = "requires" if self.mode == "tool" else "cannot have"
            advice = "Pass a name with mode 'tool', and with no other mode."
            reason = f"mode {self.mode!r} {rule} a name, got {shorten_repr(self.name, 60)}"
            raise MessageError("name", reason, advice)
        if self.names and self.mode not in ("auto", "required"):
            reason = f"mode {self.mode!r} cannot have a list of names, got {shorten_repr(list(self.names), 200)}"
            raise MessageError("names", reason, "Pass mode 'auto' or 'required'.")


ToolChoiceLike: TypeAlias = ToolChoice | str | Sequence[str] | Mapping[str, Any]

_MODES = {"auto": "auto", "none": "none", "required": "required", "any": "required"}


def as_tool_choice(choice: ToolChoiceLike | None, tools: Sequence[Tool]) -> ToolChoice | None:
    """Converts a tool choice from the application, and checks that the chosen tools exist.

    A list of names means that the model must call at least one of these tools. To allow a reply without a tool
    call as well, use `{"mode": "auto", "names": […]}` or OpenAI's `allowed_tools`.

    Args:
        choice: ToolChoice, mode, name of a tool, `{"name": …}`, or list of names. For None, the result is None.
        tools: Tools of the request. If there are no tools, the result for the modes `auto` and `none` is None.

    Raises:
        OptionError: The choice is malformed, names a tool that does not exist, or requires a tool call although
            there are no tools.
        MessageError: The mode does not allow a name or a list of names.
    """
    if choice is None:
        return None
    parsed = read_tool_choice(choice)
    names = [tool.name for tool in tools]
    chosen = parsed.names or (parsed.name,)
    unknown = next((name for name in chosen if name not in names), None)
    if unknown is not None:
        advice = f"Use one of: {', '.join(names)}." if names else "Pass tools."
        raise OptionError("tool_choice", f"no tool has the name {unknown!r}", advice)
    if not tools and parsed.mode == "required":
        raise OptionError("tool_choice", "a tool call is required, but there are no tools", "Pass tools.")
    return parsed if tools else None


def read_tool_choice(choice: ToolChoiceLike) -> ToolChoice:
    """Parses a tool choice. Does not check that the chosen tools exist.

    Raises:
        OptionError: The choice is malformed.
        MessageError: The mode does not allow a name or a list of names.
    """
    if isinstance(choice, ToolChoice):
        return choice
    if isinstance(choice, str):
        mode = _MODES.get(choice)
        return ToolChoice(cast("Any", mode)) if mode else ToolChoice("tool", choice)
    if isinstance(choice, list | tuple):
        return _limit_to("required", cast("Sequence[object]", choice))
    if not isinstance(choice, Mapping):
        reason = f"expected a tool choice, got {shorten_repr(choice, 60)}"
        raise OptionError("tool_choice", reason, "Pass 'auto', 'none', 'required', or names of tools.")
    limited = read_allowed_tools(choice)
    if limited is not None:
        return _limit_to(*limited)
    named_mode = choice.get("mode") or choice.get("type")
    mode = _MODES.get(named_mode) if isinstance(named_mode, str) else None
    if mode:
        return ToolChoice(cast("Any", mode))
    name = _find_name(choice)
    if not isinstance(name, str):
        reason = f"expected a tool name or a mode, got {shorten_repr(choice, 60)}"
        advice = """Pass {"name": "…"}, or {"mode": …} with 'auto', 'none' or 'required'."""
        raise OptionError("tool_choice", reason, advice)
    return ToolChoice("tool", name)


def read_allowed_tools(choice: Mapping[str, Any]) -> tuple[str, list[object]] | None:
    """Returns the mode and the tool names of a tool choice that limits the model to some tools.

    The choice has the key `names`, or has OpenAI's type `allowed_tools`. Returns None for any other choice. In a
    choice of the type `allowed_tools`, tools without a name are skipped, such as tools that the provider hosts.
    """
    if "names" in choice:
        names = choice["names"]
        return str(choice.get("mode") or "required"), [*names] if isinstance(names, list | tuple) else [names]
    if choice.get("type") != "allowed_tools":
        return None
    inner = choice.get("allowed_tools")
    fields = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else choice
    tools = fields.get("tools")
    listed = cast("list[object]", tools) if isinstance(tools, list) else []
    return str(fields.get("mode") or "auto"), [name for tool in listed if (name := _find_name(tool)) is not None]


def _find_name(tool: object) -> object:
    if not isinstance(tool, Mapping):
        return None
    reference = cast("Mapping[str, Any]", tool)
    inner = reference.get("function")
    return cast("Mapping[str, Any]", inner).get("name") if isinstance(inner, Mapping) else reference.get("name")


def _limit_to(mode: str, names: Sequence[object]) -> ToolChoice:
    """Returns a tool choice that limits the model to some tools. Removes repeated names."""
    valid = [name for name in names if isinstance(name, str)]
    if not valid or len(valid) < len(names):
        reason = f"expected tool names (str), got {shorten_repr(list(names), 200)}"
        raise OptionError("tool_choice", reason, "Pass the names of tools.")
    if mode not in ("auto", "required", "any"):
        reason = f"mode {mode!r} cannot have a list of names, got {shorten_repr(valid, 200)}"
        raise OptionError("tool_choice", reason, "Pass mode 'auto' or 'required'.")
    return ToolChoice("auto" if mode == "auto" else "required", names=tuple(dict.fromkeys(valid)))
