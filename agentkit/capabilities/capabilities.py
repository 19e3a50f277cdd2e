"""`Capabilities`: the rules that a request to a provider, API and model must follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from agentkit.argument_checks import check_option, find_closest
from agentkit.capabilities.groups import (
    MediaCapabilities,
    OpaqueCapabilities,
    ThinkingCapabilities,
    ToolCapabilities,
    TurnCapabilities,
)
from agentkit.capabilities.wire_layout import WireLayout
from agentkit.errors import OptionError
from agentkit.messages.blocks import Block, OpaqueBlock
from agentkit.reprs import bounded_repr

__all__ = ["Capabilities", "check_changes"]

_GROUPS = {
    "turns": TurnCapabilities,
    "tools": ToolCapabilities,
    "media": MediaCapabilities,
    "thinking": ThinkingCapabilities,
    "opaque": OpaqueCapabilities,
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Capabilities:
    """Rules of a target (provider, API and model) for the content of requests.

    The defaults describe an API that accepts texts and tools without further restrictions. Two `Capabilities`
    objects are compared by identity, not by their fields.

    An opaque block contains data that only one wire format can represent. Opaque state is data that a provider
    adds to a block, such as a signature.

    Attributes:
        name: Name of the target in errors and descriptions.
        issuer: Name of the system that issues opaque state and accepts it in later requests. None: the target
            accepts no opaque state.
        wire: Wire format whose opaque blocks the target accepts. None: the target accepts no opaque blocks.
        output: Response format that the API enforces: "schema" for a JSON schema, or "object" for any JSON object.
            With "prompt", the API enforces no format, and an instruction in the prompt asks for the format.
        json_object: How the API is asked for a JSON object without a schema. "native": with a field of the
            request. "stated": with a field, and the prompt must mention JSON. "prompt": with an instruction in the
            prompt.
        can_combine_output: False if the API refuses a response format in a request with tools. For a request with
            tools, `output` is then treated as "prompt".
        needs_closed_output: True if each object in an output schema must forbid additional properties. If a schema
            has an object that allows additional properties, `output` is then treated as "prompt".
        output_recursion: Where an output schema may refer to itself: "any" (everywhere), "optional" (only in
            properties that are not required), or "none". For other recursive schemas, `output` is treated as
            "prompt".
        cache_breakpoints: True if content parts can have a marker for the prompt cache. Only the method `convert`
            of formatters reads this field. A `convert` for a single server and model does not need the field.
        layout: Names and meaning of the keys in the requests.
        turns: Rules for turns, their texts, and the system prompt.
        tools: Rules for tool declarations, calls and results.
        media: Rules for images, audio, video and documents.
        thinking: Rules for the thinking of earlier replies.
        opaque: Rules for opaque blocks and opaque state.
    """

    name: str
    issuer: str | None = None
    wire: str | None = None
    output: Literal["schema", "object", "prompt"] = "schema"
    json_object: Literal["native", "stated", "prompt"] = "prompt"
    can_combine_output: bool = True
    needs_closed_output: bool = False
    output_recursion: Literal["any", "optional", "none"] = "any"
    cache_breakpoints: bool = False
    layout: WireLayout = field(default_factory=WireLayout)
    turns: TurnCapabilities = field(default_factory=TurnCapabilities)
    tools: ToolCapabilities = field(default_factory=ToolCapabilities)
    media: MediaCapabilities = field(default_factory=MediaCapabilities)
    thinking: ThinkingCapabilities = field(default_factory=ThinkingCapabilities)
    opaque: OpaqueCapabilities = field(default_factory=OpaqueCapabilities)

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        for group, expected in _GROUPS.items():
            check_option(f"capabilities.{group}", getattr(self, group), expected, f"Pass {expected.__name__}(…).")

    def override(self, changes: Mapping[str, Any]) -> Capabilities:
        """Returns a copy in which the fields named in `changes` have new values.

        Args:
            changes: Maps the names of fields to new values, such as `{"name": "vLLM", "media.image": None}`.
                The name of a field in a group is `GROUP.FIELD`.

        Raises:
            OptionError: `changes` is not a mapping, or has a key that is not a field of `Capabilities` or of a
                group.
        """
        check_changes("changes", changes)
        values = {name: value for name, value in changes.items() if "." not in name}
        for group in _GROUPS:
            inner = {name.partition(".")[2]: changes[name] for name in changes if name.startswith(f"{group}.")}
            if inner:
                values[group] = replace(values.get(group, getattr(self, group)), **inner)
        return replace(self, **values)

    def find_pair(self, block: Block) -> tuple[str, str]:
        """Returns ("request", id) or ("response", id) if the block belongs to a pair, otherwise ("", "").

        A pair consists of two opaque blocks with the same id: a request and its response. An example of a request
        is a call of a tool that the provider runs. `OpaqueCapabilities.pair_key` reads both values from the data
        of the block.
        """
        find = self.opaque.pair_key
        if find is None or not isinstance(block, OpaqueBlock) or block.wire != self.wire:
            return "", ""
        return find(block.data) or ("", "")


def check_changes(owner: str, changes: Mapping[str, Any]) -> None:
    """Raises OptionError unless `changes` is a mapping with names of fields, such as `media.image`, as keys."""
    check_option(owner, changes, Mapping, "Pass a dict from fields to new values, such as {'media.image': None}.")
    for name in changes:
        if name not in _FIELDS:
            inner = next((field for field in sorted(_FIELDS) if field.endswith(f".{name}")), None)
            closest = inner or find_closest(name, _FIELDS)
            advice = (
                f"Did you mean {closest!r}?"
                if closest
                else "Use the name of a field, such as 'output' or 'media.image'."
            )
            raise OptionError(f"{owner}.{name}", "Capabilities has no field with this name", advice)


_FIELDS = frozenset(
    {rule.name for rule in fields(Capabilities)}
    | {f"{group}.{rule.name}" for group, cls in _GROUPS.items() for rule in fields(cls)}
)
