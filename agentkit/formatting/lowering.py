"""From messages in normal form to a request: view, legalize, settle, convert.

What is dear is worked out once and travels with its message: argument text, media as base64 and data URLs, a
message tidied for a target, its lines in a frame, its weight. Native dicts are not kept: a request is its
caller's to change, and copying finished dicts takes longer than making them (see tests/benchmarks).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from pydantic_core import to_json

from agentkit.argument_checks import check_option
from agentkit.capabilities.capabilities import Capabilities
from agentkit.capabilities.name_rules import legal_speaker_names
from agentkit.errors import LossError, MessageError
from agentkit.formatting.omissions import OmittedDetails, OmittedNames
from agentkit.formatting.thinking_prefix import stale_thinking
from agentkit.history.policies import HistoryPolicy
from agentkit.ledger.entries import Disposition, Note, Synthesis
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.places import BlockPath
from agentkit.ledger.plan import Cut, Plan
from agentkit.ledger.provenance import TracedConversation, block_origins, prompt_length
from agentkit.legalize.conversation import LegalConversation, legalize_conversation
from agentkit.legalize.media import OnLoss
from agentkit.legalize.thinking_pairs import orphaned_parts, without_blocks
from agentkit.media.fetching import Fetch
from agentkit.media.loading import OUTSIDE, load_media, needs_loading, weigh_texts
from agentkit.media.resizing import can_resize
from agentkit.media.resolution import ResolvedMedia
from agentkit.messages.blocks import ToolUseBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, build_trusted
from agentkit.messages.sources import Base64Source, URLSource
from agentkit.repair.normal_form import find_normal_form
from agentkit.repair.pairing import repair_pairing
from agentkit.reprs import bounded_repr
from agentkit.tools.choices import ToolChoice
from agentkit.tools.json_schema import OutputSchema
from agentkit.tools.tool import Tool, rename_tool

__all__ = [
    "CALL_A_TOOL",
    "CALL_ONE_OF",
    "CALL_TOOL",
    "Lowered",
    "Lowering",
    "Request",
    "RequestSpec",
    "holds_media",
]

CALL_A_TOOL = "(Answer by calling a tool.)"
CALL_TOOL = "(Answer by calling the tool {}.)"
CALL_ONE_OF = "(Answer by calling one of the tools {}.)"
"""What the user says last where a call is asked for and the target takes no such choice of tool."""

Request: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """What a request asks for besides the conversation, in the wire's spelling, and who it is for.

    `syntheses` are what had to be changed of the caller's tools, choice and schema for the target.
    """

    capabilities: Capabilities
    model: str | None = None
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    output: OutputSchema | None = None
    syntheses: tuple[Synthesis, ...] = ()

    __repr__ = bounded_repr


@dataclass(frozen=True, slots=True)
class Lowered:
    """A request and how it came about."""

    request: Request
    ledger: Ledger
    legal: LegalConversation
    frames: object = None  # see Plan
    stale: frozenset[BlockPath] = frozenset()  # thinking that may not go back any more, and what needs it

    def plan(self, history: tuple[Msg, ...], tokens: int | None = None, cut: Cut | None = None) -> Plan:
        """The plan that this request makes."""
        legal = self.legal
        names = legal.call_ids, legal.tool_names
        return Plan(self.request, self.ledger, history, tokens, cut, *names, self.frames)


@dataclass(frozen=True, slots=True)
class Lowering:
    """One task for one target, ready to lower any draft of its conversation."""

    task: RequestSpec
    history: HistoryPolicy
    on_loss: OnLoss
    media_roots: tuple[Path, ...]
    convert: Callable[[LegalConversation, RequestSpec], Request]
    fetch: Fetch | None = None
    fetched: dict[URLSource, Base64Source | str] = field(default_factory=dict[URLSource, "Base64Source | str"])
    weighed: dict[URLSource, Base64Source | str] = field(default_factory=dict[URLSource, "Base64Source | str"])

    def lower(
        self, draft: TracedConversation, ledger: Ledger, shelf: ResolvedMedia, changed: int | None = None
    ) -> Lowered:
        """The pure part: with what was read, without any I/O.

        `changed` is the number of the first input message that a cut took or altered. The ledger that comes
        back goes on from the one given, which may be used no more.
        """
        if not (self.task.capabilities.thinking.binds_prefix and _holds(draft, Feature.THINKING)):
            return self._lower(draft, ledger, shelf)
        lowered = self._lower(draft, ledger.copy(), shelf)
        form, turns = self.task.capabilities, lowered.legal.turns
        stale = stale_thinking(lowered.request, turns, changed, form.opaque.needs_thinking)
        if not stale:
            return lowered
        for path in sorted(stale):
            ledger.note(path, Note(Disposition.DROPPED, "thinking bound to a prefix that has changed"))
        stale |= orphaned_parts(turns, ledger, form, lambda _, origin: origin in stale)
        lowered = self._lower(without_blocks(draft, stale), ledger, shelf)
        return replace(lowered, stale=frozenset(stale))

    def _lower(self, draft: TracedConversation, ledger: Ledger, shelf: ResolvedMedia) -> Lowered:
        form = self.task.capabilities
        ledger.details = OmittedDetails(form, self.history)
        task, names = _settle(self.task, ledger)
        rendered = self.history.render(draft, ledger, form)
        check_option(
            "history.render()", rendered, TracedConversation, "Return the draft, or override `view` instead."
        )
        shown = repair_pairing(rendered, ledger, "omit")
        task, asking = _say_choice(task, shown, ledger)
        asking = _say_output(task, asking, ledger)
        legal = legalize_conversation(asking, ledger, form, self.on_loss, shelf)
        legal.tool_names.update(names)
        if form.turns.speaker_names:
            spoken = chain(legal.system.msgs, legal.turns.msgs)
            legal.speakers.update(legal_speaker_names((msg.name for msg in spoken), form.turns.speaker_refused))
            _note_renamed(legal.turns, legal.speakers, ledger)
        else:
            ledger.late_notes = OmittedNames(shown, form, getattr(self.history, "viewer", None))
        request = self.convert(legal, _complete(task, legal, ledger))
        check_option("convert()", request, dict, "Return the request as a dict.")
        return Lowered(request, ledger, legal, self.history.frames(legal.turns))

    def needs_loading(self, draft: TracedConversation) -> bool:
        """Whether media have to be read, fetched or made smaller before the request is what it will be."""
        return holds_media(draft) and needs_loading(draft.msgs, self.task.capabilities, self.fetch)

    async def read_and_lower(
        self, draft: TracedConversation, ledger: Ledger, changed: int | None = None
    ) -> Lowered:
        """The same with the draft's media loaded."""
        if not holds_media(draft):
            return self.lower(draft, ledger, ResolvedMedia(), changed)
        form, shown = self.task.capabilities, self._shown(draft, ledger)
        shelf = await load_media(shown.msgs, form, self.media_roots, self.fetch, self.fetched)
        return self.lower(draft, ledger, shelf, changed)

    async def weigh_texts(self, draft: TracedConversation, ledger: Ledger) -> bool:
        """Find out how large the draft's text files are, for `foresee`; whether there are any."""
        shown = self._shown(draft, ledger)
        self.weighed.update(await weigh_texts(shown.msgs, self.task.capabilities, self.media_roots))
        return bool(self.weighed)

    def _shown(self, draft: TracedConversation, ledger: Ledger) -> TracedConversation:
        """What the history policy shows: the rest is nobody's to read or fetch."""
        if self.history.shows_everything:
            return draft
        return self.history.render(draft, ledger.copy(), self.task.capabilities)

    def lower_without_io(self, draft: TracedConversation, ledger: Ledger, changed: int | None = None) -> Lowered:
        """What can be known before any file is read or URL fetched: without roots, that no file will be.

        Text files count as much as `weigh_texts` found.
        """
        fetches = self.fetch is not None
        shelf = ResolvedMedia(self.weighed, bool(self.media_roots), OUTSIDE, fetches, can_resize())
        return self.lower(draft, ledger.copy(), shelf, changed)

    def raise_on_loss(self, ledger: Ledger) -> None:
        """Let no lossy request out under `on_loss="raise"`."""
        if self.on_loss == "raise" and (losses := ledger.losses):
            raise LossError(self.task.capabilities.name, losses)


def holds_media(draft: TracedConversation) -> bool:
    """Whether any message holds media, which may have to be read or checked."""
    return _holds(draft, Feature.MEDIA | Feature.RESULT_MEDIA)


def _holds(draft: TracedConversation, mask: int) -> bool:
    """Whether any message has one of the features; what was looked at is not looked at again."""
    if draft.normal_form is None:
        return any(msg.features & mask for msg in draft.msgs)
    return bool(draft.normal_form.features & mask) or any(
        msg.features & mask for msg in draft.msgs[: prompt_length(draft.msgs)]
    )


def _note_renamed(turns: TracedConversation, renamed: Mapping[str, str], ledger: Ledger) -> None:
    """Say it when a speaker has another name on the wire."""
    for msg, whole in zip(turns.msgs, turns.origins, strict=True) if renamed else ():
        if msg.name in renamed and not msg.features & Feature.RESULT:
            for origin in block_origins(msg, whole):
                if not isinstance(origin, str):
                    note = Note(Disposition.CARRIED, f"its speaker is named {renamed[msg.name]!r} on the wire")
                    ledger.note(origin, note)


def _settle(task: RequestSpec, ledger: Ledger) -> tuple[RequestSpec, dict[str, str]]:
    """The task in the target's terms, and what its tools were called: legal names, no choice that it refuses."""
    form = task.capabilities
    tools, choice = task.tools, task.tool_choice
    ledger.syntheses.extend(task.syntheses)
    names: dict[str, str] = {}
    if tools and form.tools.names:
        fitted = [form.tools.names.fit(tool.name) for tool in tools]
        if len({*fitted}) < len(fitted):
            at = next(at for at, name in enumerate(fitted) if name in fitted[:at])
            reason = f"{tools[at].name!r} is {fitted[at]!r} on this wire, and so is another tool's name"
            raise MessageError(f"tools[{at}].name", reason, "Rename one.")
        names = {new: tool.name for new, tool in zip(fitted, tools, strict=True) if new != tool.name}
        tools = tuple(rename_tool(tool, new) for tool, new in zip(tools, fitted, strict=True))
        if choice and choice.name is not None:
            choice = ToolChoice("tool", form.tools.names.fit(choice.name))
        elif choice and choice.names:
            choice = ToolChoice(choice.mode, names=tuple(map(form.tools.names.fit, choice.names)))
    if choice and choice.mode == "none" and "none" not in form.tools.choices:
        ledger.add_synthesis("tool choice", f"{form.name} has no choice 'none': the tools are left out")
        tools, choice = (), None
    return RequestSpec(form, task.model, tools, choice, task.output), names


def _say_choice(
    task: RequestSpec, shown: TracedConversation, ledger: Ledger
) -> tuple[RequestSpec, TracedConversation]:
    """A forced choice of tool that the target refuses, in words at the end, where it changes no prefix."""
    form, choice = task.capabilities, task.tool_choice
    if choice is None or choice.mode in form.tools.choices:
        return task, shown
    ledger.add_synthesis("tool choice", f"{form.name} has no choice {choice.mode!r}: asked for in words")
    text = CALL_A_TOOL if choice.name is None else CALL_TOOL.format(choice.name)
    if choice.names:
        text = CALL_ONE_OF.format(", ".join(choice.names))
    said = TracedConversation(
        [*shown.msgs, build_trusted("user", text, "user")], [*shown.origins, ("tool choice",)]
    )
    said.normal_form = find_normal_form(said)
    return replace(task, tool_choice=None), said


def _complete(task: RequestSpec, legal: LegalConversation, ledger: Ledger) -> RequestSpec:
    """The task with the tools that the history needs, and its output schema in words if it must be."""
    form = task.capabilities
    if not task.tools and form.tools.needs_declarations and (tools := _declared(legal, ledger)):
        task = replace(task, tools=tools, tool_choice=ToolChoice("none"))
    if task.output and form.output != "schema" and form.turns.system_role:
        ledger.add_synthesis("output instruction", _UNENFORCED)
        legal.system.add(build_trusted("system", _instruction(task.output), "system"), ("output instruction",))
    return task


def _say_output(task: RequestSpec, shown: TracedConversation, ledger: Ledger) -> TracedConversation:
    """Adds the instruction for the answer to a system prompt that becomes the start of the first user turn."""
    if not task.output or task.capabilities.output == "schema" or task.capabilities.turns.system_role:
        return shown
    ledger.add_synthesis("output instruction", _UNENFORCED)
    at = prompt_length(shown.msgs)
    told = build_trusted("system", _instruction(task.output), "system")
    msgs = [*shown.msgs[:at], told, *shown.msgs[at:]]
    return TracedConversation(
        msgs, [*shown.origins[:at], ("output instruction",), *shown.origins[at:]], shown.normal_form
    )


def _declared(legal: LegalConversation, ledger: Ledger) -> tuple[Tool, ...]:
    """Bare declarations of the tools that the history calls, where the wire wants any."""
    called = (msg.blocks for msg in legal.turns.msgs if msg.features & Feature.CALL)
    names = dict.fromkeys(block.name for blocks in called for block in blocks if isinstance(block, ToolUseBlock))
    if names:
        ledger.add_synthesis(
            "declared tools", "calls in the history need tools in the request; none may be called"
        )
    return tuple(map(_bare, names))


@lru_cache(1_024)
def _bare(name: str) -> Tool:
    return Tool(name)


_UNENFORCED = "the target enforces no JSON schema"


def _instruction(output: OutputSchema) -> str:
    """The schema in words, where the wire cannot enforce it."""
    # DeepSeek and DashScope refuse json_object unless a message says json.
    return f"Answer in json, with one object that matches this JSON schema:\n{to_json(output.schema).decode()}"
