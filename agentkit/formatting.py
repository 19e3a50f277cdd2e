"""`FormatterBase`: the pipeline from messages to a provider's request."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, TypedDict, Unpack

import anyio.lowlevel

from agentkit.blocks import ToolUseBlock
from agentkit.budget import Budget, Units, Weigher, checked_order, place_cut, search_cut
from agentkit.capabilities import Capabilities
from agentkit.errors import (
    BudgetError,
    EmptyConversationError,
    LossError,
    MessageError,
    OptionError,
    check_option,
    check_text,
)
from agentkit.exchanges import Draft, Origin, block_origins, repair
from agentkit.history import ChatHistory, HistoryPolicy
from agentkit.ledger import Cut, Disposition, Ledger, Note, Plan, place_of
from agentkit.legalize import Legal, OnLoss, legalize
from agentkit.media import OUTSIDE, Shelf, check_roots, load_media
from agentkit.messages import Msg, Trait, derive
from agentkit.model_facts import ModelFact, apply_facts
from agentkit.tokens import LocalTokenCounter
from agentkit.tools import (
    OutputLike,
    OutputSchema,
    Tool,
    ToolChoice,
    ToolChoiceLike,
    ToolLike,
    as_output_schema,
    as_tool_choice,
    as_tools,
    renamed,
)

__all__ = ["Asked", "FormatterBase", "FormatterOptions", "Request", "Task"]

Request: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Task:
    """What a request asks for besides the conversation, in the wire's spelling, and who it is for."""

    capabilities: Capabilities
    model: str | None = None
    tools: tuple[Tool, ...] = ()
    tool_choice: ToolChoice | None = None
    output: OutputSchema | None = None


class Asked(TypedDict, total=False):
    """What a caller may ask for besides the conversation."""

    tools: Sequence[ToolLike] | None
    tool_choice: ToolChoiceLike | None
    response_format: OutputLike | None
    model: str | None


class FormatterOptions(TypedDict, total=False):
    """The options of every formatter besides its model: see FormatterBase."""

    history: HistoryPolicy | None
    budget: Budget | None
    on_loss: OnLoss
    media_roots: Iterable[str | Path]


class FormatterBase(ABC):
    """Turns a list of Msg into one provider's request.

    model        the model the request is for; `format` and `plan` may name another
    history      how speakers become turns: `ChatHistory()`, `MultiAgentHistory(…)`, or a policy of your own
    budget       the limit to keep the request within; None: no limit
    on_loss      what happens to content that the target cannot carry: `describe` it in a short sentence in
                 its place, `drop` it, or `raise` LossError. The ledger names every case
    media_roots  the folders that `file:` sources may be read from; none by default

    A provider's class gives `base`, `facts` and `convert`. Nothing here calls a provider or needs its SDK.
    """

    base: ClassVar[Capabilities]
    facts: ClassVar[tuple[ModelFact, ...]] = ()
    default_history: ClassVar[type[HistoryPolicy]] = ChatHistory

    def __init__(
        self,
        model: str | None = None,
        *,
        history: HistoryPolicy | None = None,
        budget: Budget | None = None,
        on_loss: OnLoss = "describe",
        media_roots: Iterable[str | Path] = (),
    ) -> None:
        if on_loss not in ("describe", "drop", "raise"):
            raise OptionError("on_loss", f"{on_loss!r} is unknown", "Use describe, drop or raise.")
        check_text("model", model)
        check_option("history", history, HistoryPolicy | None)
        check_option("budget", budget, Budget | None)
        self.model = model
        self.history: HistoryPolicy = self.default_history() if history is None else history
        self.budget = budget
        self.on_loss: OnLoss = on_loss
        self.media_roots = check_roots(media_roots)
        self._weigher = Weigher(budget.counter) if budget else None

    @abstractmethod
    def convert(self, legal: Legal, task: Task) -> Request:
        """Legal messages as the SDK call's keyword arguments: the one part a provider writes by hand."""

    def capabilities(self, model: str | None = None) -> Capabilities:
        """The form of the target that the request is for."""
        return _form_of(type(self), self.model if model is None else model)

    async def format(self, msgs: Sequence[Msg], **asked: Unpack[Asked]) -> Request:
        """The request: keyword arguments for the SDK's call, JSON values alone, the caller's own to change.

        tools            Tools, typed functions, or dicts in a provider's form
        tool_choice      `auto`, `none`, `required`, or a tool's name
        response_format  a pydantic model or a JSON schema that the answer must obey
        model            the model, if not the formatter's own

        Where the wire takes a tool's name or a call's id in another spelling only, `plan` maps it back. Raises
        InputError for bad input, LossError under `on_loss="raise"`, BudgetError when nothing fits.
        """
        return (await self.plan(msgs, **asked)).request

    async def plan(self, msgs: Sequence[Msg], **asked: Unpack[Asked]) -> Plan:
        """The request with its ledger, its size, what was cut, and the history to go on with."""
        given = _checked(msgs)
        task = self._task(asked)
        ledger = Ledger(given)
        whole = repair(Draft.of(given), ledger)
        await anyio.lowlevel.checkpoint()
        if self.budget is None or self._weigher is None:
            attempt = await self._attempt(whole, ledger, task)
            self._refuse_loss(attempt.ledger, task)
            return attempt.plan(tuple(given))
        return await _Cutting(self, self.budget, self._weigher, whole, ledger, task).run()

    def lower(self, msgs: Sequence[Msg], **asked: Unpack[Asked]) -> Plan:
        """The synchronous core: a plan without I/O. Local files are not read and no budget is applied."""
        given = _checked(msgs)
        ledger = Ledger(given)
        task = self._task(asked)
        lowered = self._lower(repair(Draft.of(given), ledger), ledger, task, Shelf())
        self._refuse_loss(ledger, task)
        return lowered.plan(tuple(given))

    def _task(self, asked: Asked) -> Task:
        unknown = asked.keys() - Asked.__annotations__.keys()
        if unknown:
            raise TypeError(f"unexpected keyword argument {min(unknown)!r}")
        tools = as_tools(asked.get("tools"))
        model = asked.get("model")
        name = self.model if model is None else model
        check_text("model", name)
        choice = as_tool_choice(asked.get("tool_choice"), tools)
        return Task(self.capabilities(name), name, tools, choice, as_output_schema(asked.get("response_format")))

    async def _attempt(self, draft: Draft, ledger: Ledger, task: Task, final: bool = True) -> _Lowered:
        """Lower a draft with its files read; loss that needs no reading to be known raises before any is read."""
        if not _needs_reading(draft.msgs):
            return self._lower(draft, ledger, task, Shelf())
        if final and self.on_loss == "raise":
            guess = ledger.copy()
            self._lower(draft, guess, task, self._unread_shelf())
            self._refuse_loss(guess, task)
        return self._lower(draft, ledger, task, await load_media(draft.msgs, self.media_roots))

    def _unread_shelf(self) -> Shelf:
        """What can be known of files before any is read: without roots, that they will not be."""
        return Shelf(assume=bool(self.media_roots), unread=OUTSIDE)

    def _refuse_loss(self, ledger: Ledger, task: Task) -> None:
        if self.on_loss == "raise" and (losses := ledger.losses):
            raise LossError(task.capabilities.target, losses)

    def _lower(self, draft: Draft, ledger: Ledger, task: Task, shelf: Shelf) -> _Lowered:
        shown = repair(self.history.render(draft, ledger, task.capabilities), ledger)
        legal = legalize(shown, ledger, task.capabilities, self.on_loss, shelf)
        _note_speakers(draft.msgs, self.history, ledger, task.capabilities)
        return _Lowered(self.convert(legal, _settle(task, legal, ledger)), ledger, legal)


@dataclass(slots=True)
class _Lowered:
    """A request and how it came about."""

    request: Request
    ledger: Ledger
    legal: Legal

    def plan(self, history: tuple[Msg, ...], tokens: int | None = None, cut: Cut | None = None) -> Plan:
        legal = self.legal
        return Plan(self.request, self.ledger, history, tokens, cut, legal.call_ids, legal.tool_names)


@cache
def _form_of(formatter: type[FormatterBase], model: str | None) -> Capabilities:
    return apply_facts(formatter.base, model, formatter.facts)


def _checked(msgs: Sequence[Msg]) -> list[Msg]:
    if isinstance(msgs, str | bytes) or not isinstance(msgs, Iterable):
        raise MessageError("msgs", f"expected a list of Msg, got {type(msgs).__name__}", "Pass a list.")
    found = list(msgs)
    for kind in {*map(type, found)}:
        if not issubclass(kind, Msg):
            at = next(at for at, msg in enumerate(found) if type(msg) is kind)
            reason = f"expected a Msg, got {kind.__name__}"
            raise MessageError(f"msgs[{at}]", reason, "Use Msg.from_dict or load_messages for stored ones.")
    if not found:
        raise EmptyConversationError
    return found


def _needs_reading(msgs: Sequence[Msg]) -> bool:
    mask = Trait.MEDIA | Trait.RESULT_MEDIA
    return any(msg.traits & mask for msg in msgs)


def _note_speakers(
    msgs: Sequence[Msg], history: HistoryPolicy, ledger: Ledger, capabilities: Capabilities
) -> None:
    """Say it when a chat of several users goes to a wire that has no place for their names."""
    if capabilities.speakers or not isinstance(history, ChatHistory):
        return
    names = {msg.name for msg in msgs if msg.role == "user"}
    if len(names) > 1:
        ledger.invent("unnamed speakers", "the wire has no field for a name: use MultiAgentHistory to keep them")


# -- tools, choice and output, as the target takes them -----------------------------------------------------------


def _settle(task: Task, legal: Legal, ledger: Ledger) -> Task:
    """The task in the target's terms: names in its spelling, no choice that it refuses, declared tools."""
    form = task.capabilities
    tools, choice = task.tools, task.tool_choice
    if tools and form.tool_names:
        fitted = [form.tool_names.fit(tool.name) for tool in tools]
        if len({*fitted}) < len(fitted):
            at = next(at for at, name in enumerate(fitted) if name in fitted[:at])
            reason = f"{tools[at].name!r} is {fitted[at]!r} on this wire, and so is another tool's name"
            raise MessageError(f"tools[{at}].name", reason, "Rename one.")
        legal.tool_names.update(
            {new: tool.name for new, tool in zip(fitted, tools, strict=True) if new != tool.name}
        )
        tools = tuple(renamed(tool, new) for tool, new in zip(tools, fitted, strict=True))
        if choice and choice.name is not None:
            choice = ToolChoice("tool", form.tool_names.fit(choice.name))
    if choice and choice.mode not in form.tool_choices:
        ledger.invent("tool choice", f"{form.target} has no choice {choice.mode!r}")
        tools, choice = ((), None) if choice.mode == "none" else (tools, None)
    if not tools and form.tools_declared:
        tools = _declared(legal, ledger)
        choice = ToolChoice("none") if tools else choice
    if task.output and form.output != "schema":
        _instruct(task.output, legal, ledger)
    return Task(form, task.model, tools, choice, task.output)


def _declared(legal: Legal, ledger: Ledger) -> tuple[Tool, ...]:
    """Bare declarations of the tools that the history calls, where the wire wants any."""
    called = (msg.blocks for msg in legal.turns.msgs if msg.traits & Trait.CALL)
    names = dict.fromkeys(block.name for blocks in called for block in blocks if isinstance(block, ToolUseBlock))
    if names:
        ledger.invent("declared tools", "calls in the history need tools in the request; none may be called")
    return tuple(Tool(name) for name in names)


def _instruct(output: OutputSchema, legal: Legal, ledger: Ledger) -> None:
    """The schema in words, where the wire cannot enforce it."""
    from pydantic_core import to_json

    # DeepSeek and DashScope refuse json_object unless a message says json.
    text = f"Answer in json, with one object that matches this JSON schema:\n{to_json(output.schema).decode()}"
    ledger.invent("output instruction", "the target enforces no JSON schema")
    legal.system.add(derive("system", text, "system"), ("output instruction",))


# A conversation that weighs more than so many times the limit is cut without being measured whole. Media may
# weigh a thousand tokens and be described in twenty.
_FAR, _FAR_WITH_MEDIA = 1.3, 4


# -- the cut ------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Cutting:
    """One conversation brought within one budget."""

    formatter: FormatterBase
    budget: Budget
    weigher: Weigher
    whole: Draft
    ledger: Ledger
    task: Task
    units: Units = field(init=False)
    order: Sequence[int] = field(init=False)
    found: dict[int, tuple[_Lowered, int]] = field(default_factory=dict[int, "tuple[_Lowered, int]"])

    async def run(self) -> Plan:
        self.units = self.weigher.units(self.whole.msgs)
        self.order = checked_order(self.budget.strategy, self.units)
        counter = self.budget.counter
        least = await self._by_weight(counter) if isinstance(counter, LocalTokenCounter) else 0
        most = len(self.order)
        if not await self._fits(least):
            if not await self._fits(most):
                self._refuse((await self._size(most))[1])

            async def fits(drop: int) -> bool:
                return drop >= least and await self._fits(drop)

            least = await search_cut(fits, 0, most)
        return await self._plan(least)

    async def _by_weight(self, counter: LocalTokenCounter) -> int:
        """How many units must go, by their weights and the measured size of the smallest request.

        Weights err upwards, so a conversation that is not far above the limit is measured whole first.
        """
        most = len(self.order)
        smallest = self._lower_unread(self.whole.part(self._kept(most)), self.ledger.copy())
        room = self.budget.limit - counter.measure(smallest.request)
        least = most if room < 0 else place_cut(self.units, self.order, room)
        far = _FAR_WITH_MEDIA if _needs_reading(self.whole.msgs) else _FAR
        if least and self.units.sums[-1] < far * self.budget.limit and await self._fits(0):
            least = 0
        if self.formatter.on_loss == "raise":
            self._refuse_loss(least)
        return least

    def _lower_unread(self, draft: Draft, ledger: Ledger) -> _Lowered:
        return self.formatter._lower(draft, ledger, self.task, self.formatter._unread_shelf())  # pyright: ignore[reportPrivateUsage]

    async def _fits(self, drop: int) -> bool:
        return (await self._size(drop))[1] <= self.budget.limit

    async def _size(self, drop: int) -> tuple[_Lowered, int]:
        """The request without the first `drop` units of the order, and its tokens."""
        if drop not in self.found:
            draft = self.whole.part(self._kept(drop)) if drop else self.whole
            ledger = self.ledger.copy()
            lowered = await self.formatter._attempt(draft, ledger, self.task, final=False)  # pyright: ignore[reportPrivateUsage]
            tokens: object = await self.budget.counter.count(lowered.request)
            if not isinstance(tokens, int):
                reason = f"it counted {tokens!r}, which is no whole number"
                raise OptionError("budget.counter", reason, "Return an int.")
            self.found[drop] = (lowered, tokens)
        return self.found[drop]

    def _kept(self, drop: int) -> list[int]:
        """The numbers of the messages that stay when the first `drop` units of the order go."""
        gone = set(self.order[:drop])
        ends = [*self.units.starts[1:], len(self.whole.msgs)][: len(self.units)]
        spans = enumerate(zip(self.units.starts, ends, strict=True))
        return [at for unit, (start, end) in spans if unit not in gone for at in range(start, end)]

    def _refuse(self, needed: int) -> None:
        most = len(self.order)
        places = {_place(self.whole.origins[at]) for at in self._kept(most)}
        raise BudgetError(self.budget.limit, needed, sorted(places - {""}, key=_by_number))

    def _refuse_loss(self, drop: int) -> None:
        """Loss that needs no file to be known, before any is read."""
        ledger = self.ledger.copy()
        self._lower_unread(self.whole.part(self._kept(drop)), ledger)
        self.formatter._refuse_loss(ledger, self.task)  # pyright: ignore[reportPrivateUsage]

    async def _plan(self, drop: int) -> Plan:
        lowered, tokens = await self._size(drop)
        self.formatter._refuse_loss(lowered.ledger, self.task)  # pyright: ignore[reportPrivateUsage]
        if not drop:
            return lowered.plan(tuple(self.ledger.msgs), tokens)
        kept = self._kept(drop)
        gone = sorted({*range(len(self.whole.msgs))} - {*kept})
        note = Note(Disposition.DROPPED, "cut to keep the request within the budget")
        paths = [
            origin
            for at in gone
            for origin in block_origins(self.whole.msgs[at], self.whole.origins[at])
            if not isinstance(origin, str)
        ]
        for path in paths:
            lowered.ledger.note(path, note)
        weight = sum(self.units.weight(unit) for unit in self.order[:drop])
        saved = self.found[0][1] - tokens if 0 in self.found else weight
        whole = (origin for at in gone if isinstance(origin := self.whole.origins[at], int))
        numbers = sorted({*(path[0] for path in paths), *whole})
        cut = Cut(tuple(place_of((number,)) for number in numbers), drop, saved)
        return lowered.plan(tuple(self.whole.msgs[at] for at in kept), tokens, cut)


def _place(origin: int | tuple[Origin, ...]) -> str:
    if isinstance(origin, int):
        return place_of((origin,))
    paths = [path for path in origin if not isinstance(path, str)]
    return place_of((paths[0][0],)) if paths else ""


def _by_number(place: str) -> int:
    return int(place[5:-1])
