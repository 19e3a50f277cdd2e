"""`RequestSpec`: the target of a request, its tools, its tool choice and its output schema."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from agentkit.capabilities.capabilities import Capabilities
from agentkit.errors import MessageError
from agentkit.ledger.entries import Synthesis
from agentkit.ledger.ledger import Ledger
from agentkit.reprs import bounded_repr
from agentkit.tools.choices import ToolChoice
from agentkit.tools.json_schema import OutputSchema
from agentkit.tools.tool import Tool, rename_tool

__all__ = ["Request", "RequestSpec", "fit_tool_names"]

Request: TypeAlias = dict[str, Any]
"""Keyword arguments of the SDK method that calls the model, as JSON values."""


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """Options of one request, converted to values that the target accepts. The conversation is not included.

    Attributes:
        capabilities: The rules of the target.
        model: The name of the model. None if the application itself passes the name to the SDK.
        tools: The tools to declare.
        tool_choice: The tool choice. None means the provider's default.
        output: The JSON schema of the reply. None means a reply in free text.
        syntheses: Ledger notes about changes to the tools, the tool choice and the output schema.
    """

    capabilities: Capabilities
    model: str | None = None
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    output: OutputSchema | None = None
    syntheses: tuple[Synthesis, ...] = ()

    __repr__ = bounded_repr

    def write_tools(
        self, write_tool: Callable[[Tool], object], write_choice: Callable[[ToolChoice], object]
    ) -> Request:
        """Returns the part of the request with the tools and the tool choice.

        The part is empty if there are no tools, and has no tool choice if `tool_choice` is None. The keys come
        from the `WireLayout` of the target. There, the first path of `OptionLayout.choices` must be a single key.
        """
        if not self.tools:
            return {}
        layout = self.capabilities.layout
        tools = {layout.tools: [write_tool(tool) for tool in self.tools]}
        return {**tools, layout.options.choices[0]: write_choice(self.tool_choice)} if self.tool_choice else tools


def fit_tool_names(spec: RequestSpec, ledger: Ledger) -> tuple[RequestSpec, dict[str, str]]:
    """Returns the spec with tool names that the API accepts, and a dict from new to original tool names.

    If the tool choice is "none" and the target does not accept this choice, the returned spec has no tools.

    Raises:
        MessageError: Two tools would have the same name.
    """
    capabilities, tools, choice = spec.capabilities, spec.tools, spec.tool_choice
    ledger.syntheses.extend(spec.syntheses)
    original_names: dict[str, str] = {}
    if capabilities.tools.names:
        fit = capabilities.tools.names.fit
        _check_distinct(tools, [fit(tool.name) for tool in tools])
        original_names = {fit(tool.name): tool.name for tool in tools if fit(tool.name) != tool.name}
        tools = tuple(rename_tool(tool, fit(tool.name)) for tool in tools)
        if choice and choice.name is not None:
            choice = ToolChoice("tool", fit(choice.name))
        elif choice:
            choice = ToolChoice(choice.mode, names=tuple(map(fit, choice.names)))
    if choice and choice.mode == "none" and "none" not in capabilities.tools.choices:
        reason = f"{capabilities.name} does not accept tool_choice 'none', so the request declares no tools"
        ledger.add_synthesis("tool choice", reason)
        tools, choice = (), None
    return RequestSpec(capabilities, spec.model, tools, choice, spec.output), original_names


def _check_distinct(tools: tuple[Tool, ...], names: list[str]) -> None:
    if len({*names}) < len(names):
        index = next(index for index, name in enumerate(names) if name in names[:index])
        other = tools[names.index(names[index])].name
        reason = f"the names {other!r} and {tools[index].name!r} would both become {names[index]!r} for this API"
        raise MessageError(f"tools[{index}].name", reason, "Rename one of the tools.")
