"""`FormatterBase`: what every provider's formatter is and does."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, TypedDict, Unpack

import anyio.lowlevel

from agentkit.argument_checks import check_names, check_option, check_text
from agentkit.budget.budget import Budget
from agentkit.budget.units import Weigher
from agentkit.capabilities.capabilities import Capabilities
from agentkit.capabilities.model_facts import ModelFact, apply_facts
from agentkit.capabilities.model_rules import ModelRules
from agentkit.errors import EmptyConversationError, MessageError, OptionError
from agentkit.formatting.budget_fitting import BudgetFitter
from agentkit.formatting.lowering import Lowering, Request, RequestSpec, holds_media
from agentkit.formatting.plan_log import log_plan
from agentkit.history.policies import ChatHistory, HistoryPolicy
from agentkit.ledger.entries import Synthesis
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.plan import Plan
from agentkit.ledger.provenance import TracedConversation
from agentkit.legalize.conversation import LegalConversation
from agentkit.legalize.media import OnLoss
from agentkit.legalize.tool_options import fit_choice, fit_output, fit_tools
from agentkit.media.fetching import Fetch
from agentkit.media.loading import check_roots, settle_media
from agentkit.media.resolution import ResolvedMedia
from agentkit.messages.message import Msg
from agentkit.repair.pairing import IncrementalRepair, Unmatched
from agentkit.tokens.counters import prepare_counter
from agentkit.tools.choices import ToolChoiceLike, as_tool_choice
from agentkit.tools.json_schema import OutputLike, as_output_schema
from agentkit.tools.tool import ToolLike, as_tools

__all__ = ["FormatterBase", "FormatterOptions", "RequestOptions"]


class RequestOptions(TypedDict, total=False):
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
    fetch: Fetch | None
    model_rules: ModelRules | None


class FormatterBase(ABC):
    """Turns a list of Msg into one provider's request.

    model        the model the request is for; `format` and `plan` may name another
    history      how speakers become turns: `ChatHistory()`, `MultiAgentHistory(…)`, or a policy of your own
    budget       the limit to keep the request within; None: no limit
    on_loss      what happens to content that the target cannot carry: `describe` it in a short sentence in
                 its place, `drop` it, or `raise` LossError. The ledger names every case
    media_roots  the folders that `file:` sources may be read from; none by default
    fetch        how media at URLs are downloaded that the target cannot open by itself; None: not at all
    model_rules  what the chat template of a local model refuses (system or tool role, parallel calls, media …)

    A provider's class gives `base`, `facts` and `convert`. Nothing here calls a provider or needs its SDK.
    """

    base: ClassVar[Capabilities]
    facts: ClassVar[tuple[ModelFact, ...]] = ()
    default_history: ClassVar[type[HistoryPolicy]] = ChatHistory

    def __init__(
        self,
        model: str | None = None,
        **options: Unpack[FormatterOptions],
    ) -> None:
        check_names(type(self).__name__, options, _options_of(type(self)))
        history, budget, fetch = options.get("history"), options.get("budget"), options.get("fetch")
        on_loss = options.get("on_loss", "describe")
        if on_loss not in ("describe", "drop", "raise"):
            raise OptionError("on_loss", f"{on_loss!r} is unknown", "Use describe, drop or raise.")
        check_text("model", model)
        check_option("history", history, HistoryPolicy | None)
        check_option("budget", budget, Budget | None)
        check_option("fetch", fetch, Fetch | None)
        check_option("model_rules", options.get("model_rules"), ModelRules | None)
        if fetch is not None:
            fetch.check_installed()
        self.model = model
        self.history: HistoryPolicy = self.default_history() if history is None else history
        self._budget = budget
        self.on_loss: OnLoss = on_loss
        self.media_roots = check_roots(options.get("media_roots", ()))
        self.fetch = fetch
        self.model_rules = options.get("model_rules")
        self._watch = IncrementalRepair()
        self._weigher = Weigher(budget.counter.local_counter, frozenset(budget.never_cut)) if budget else None

    @property
    def budget(self) -> Budget | None:
        """The budget that every request is kept within: another one is another formatter's."""
        return self._budget

    @abstractmethod
    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        """Legal messages as the SDK call's keyword arguments: the one part a provider writes by hand."""

    def capabilities(self, model: str | None = None) -> Capabilities:
        """The form of the target that the request is for."""
        form = _form_of(type(self), self.model if model is None else model)
        return form if self.model_rules is None else self.model_rules.apply(form)

    async def format(self, msgs: Sequence[Msg], **asked: Unpack[RequestOptions]) -> Request:
        """The request: keyword arguments for the SDK's call, JSON values alone, the caller's own to change.

        tools            Tools, typed functions, or dicts in a provider's form
        tool_choice      `auto`, `none`, `required`, a tool's name, or a list of names of which one must be called
                         (see ToolChoice)
        response_format  a pydantic model or a JSON schema that the answer must obey
        model            the model, if not the formatter's own

        Where the wire takes a tool's name or a call's id in another spelling only, `plan` maps it back. Raises
        InputError for bad input, LossError under `on_loss="raise"`, BudgetError when nothing fits.
        """
        return (await self.plan(msgs, **asked)).request

    async def plan(self, msgs: Sequence[Msg], **asked: Unpack[RequestOptions]) -> Plan:
        """The request with its ledger, its size, what was cut, and the history to go on with."""
        given = _checked(msgs)
        lowering = self._lowering(asked)
        ledger = Ledger(given)
        whole = self._watch.repair(TracedConversation.of(given), ledger, self._unmatched)
        await anyio.lowlevel.checkpoint()
        if (self.budget is not None or self.on_loss == "raise") and holds_media(whole):
            await settle_media(given)
        if self.budget is not None and self._weigher is not None:
            await prepare_counter(self.budget.counter.local_counter)
            cutting = await BudgetFitter.of(lowering, self.budget, self._weigher, whole, ledger)
            return log_plan(await cutting.plan())
        if self.on_loss == "raise" and holds_media(whole):
            lowering.raise_on_loss(lowering.lower_without_io(whole, ledger).ledger)
        lowered = await lowering.read_and_lower(whole, ledger)
        lowering.raise_on_loss(lowered.ledger)
        return log_plan(lowered.plan(tuple(given)))

    def lower(self, msgs: Sequence[Msg], **asked: Unpack[RequestOptions]) -> Plan:
        """The synchronous core: a plan without I/O. No file is read and nothing fetched, no picture
        made smaller, and no budget is applied.
        """
        given = _checked(msgs)
        lowering = self._lowering(asked)
        ledger = Ledger(given)
        whole = self._watch.repair(TracedConversation.of(given), ledger, self._unmatched)
        lowered = lowering.lower(whole, ledger, ResolvedMedia())
        lowering.raise_on_loss(lowered.ledger)
        return log_plan(lowered.plan(tuple(given)))

    @property
    def _unmatched(self) -> Unmatched:
        """How tool results without a call are treated."""
        return "drop" if self.on_loss == "drop" else "describe"

    def _lowering(self, asked: RequestOptions) -> Lowering:
        check_names("format()", asked, RequestOptions.__annotations__)
        tools = as_tools(asked.get("tools"))
        model = asked.get("model")
        name = self.model if model is None else model
        check_text("model", name)
        choice = as_tool_choice(asked.get("tool_choice"), tools)
        form, notes = self.capabilities(name), list[Synthesis]()
        output = fit_output(as_output_schema(asked.get("response_format")), form, notes)
        tools, choice = fit_choice(tools, choice, form, notes)
        tools = fit_tools(tools, form, notes)
        task = RequestSpec(form, name, tools, choice, output, tuple(notes))
        return Lowering(task, self.history, self.on_loss, self.media_roots, self.convert, self.fetch)


@lru_cache(256)
def _options_of(formatter: type[FormatterBase]) -> frozenset[str]:
    """Returns the names of a formatter's options: those of every formatter, and its own."""
    from inspect import signature

    own = signature(formatter).parameters.keys() - {"options"}
    return frozenset({*FormatterOptions.__annotations__, *own})


@lru_cache(512)
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
