"""Tool choices: the tool that a model may or must call, in every form that callers pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias, cast

from agentkit.errors import MessageError, OptionError
from agentkit.messages.validation import Text, Validated, validated_dataclass
from agentkit.tools.tool import Tool

__all__ = ["ToolChoice", "ToolChoiceLike", "as_tool_choice", "read_allowed_tools"]


@validated_dataclass
class ToolChoice(Validated):
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
