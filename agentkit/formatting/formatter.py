"""`FormatterBase`: base class of all formatters, with the steps from messages to a request."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, TypedDict, Unpack, cast

import anyio.lowlevel

from agentkit.argument_checks import check_choice, check_names, check_option, check_text
from agentkit.budget.budget import Budget
from agentkit.budget.units import Weigher
from agentkit.capabilities.capabilities import Capabilities
from agentkit.capabilities.local_model_rules import ModelRules
from agentkit.capabilities.model_facts import ModelFact, apply_facts
from agentkit.capabilities.wire_layout import WireLayout
from agentkit.errors import EmptyConversationError, MessageError
from agentkit.formatting.budget_fitting import BudgetFitter
from agentkit.formatting.pipeline import select_stages
from agentkit.formatting.plan_log import log_plan
from agentkit.formatting.prompt_cache import CacheBreakpoints
from agentkit.formatting.request_builder import RequestBuilder, has_media
from agentkit.history.policies import ChatHistory, HistoryPolicy
from agentkit.ledger.entries import Synthesis
from agentkit.ledger.ledger import Ledger
from agentkit.ledger.plan import Plan
from agentkit.ledger.provenance import TracedConversation
from agentkit.legalize.conversation import LegalConversation
from agentkit.legalize.media import OnLoss
from agentkit.legalize.request_spec import Request, RequestSpec
from agentkit.legalize.tool_options import fit_choice, fit_output, fit_tools, select_output
from agentkit.media.fetching import Fetch
from agentkit.media.loading import check_media, check_roots
from agentkit.media.resolution import ResolvedMedia
from agentkit.messages.log_recognition import find_log_format
from agentkit.messages.message import Msg
from agentkit.repair.pairing import IncrementalRepair, Unmatched
from agentkit.reprs import describe_value
from agentkit.tokens.counters import prepare_counter
from agentkit.tools.choices import ToolChoiceLike, as_tool_choice
from agentkit.tools.json_schema import OutputLike, as_output_schema
from agentkit.tools.tool import ToolLike, as_tools

__all__ = ["FormatterBase", "FormatterOptions", "RequestOptions", "check_messages"]


class RequestOptions(TypedDict, total=False):
    """Options of a single request, in addition to the conversation. See `FormatterBase.format`."""

    tools: Sequence[ToolLike] | None
    tool_choice: ToolChoiceLike | None
    response_format: OutputLike | None


class FormatterOptions(TypedDict, total=False):
    """Options of every formatter, in addition to the model name. See `FormatterBase`."""

    history: HistoryPolicy | None
    budget: Budget | None
    on_loss: OnLoss
    media_roots: Iterable[str | Path]
    fetch: Fetch | None
    model_rules: ModelRules | None
    cache_breakpoints: CacheBreakpoints


class FormatterBase(ABC):
    """Base class of formatters, which convert a list of Msg to the request of one provider's API.

    A provider's subclass defines `base`, `facts` and `convert`. Formatters send no requests and need no SDK.

    Args:
        model: Name of the model that requests are for. `format` and `plan` can use another model.
        history: Policy that decides how messages of several speakers become turns, such as `ChatHistory()` or
            `MultiAgentHistory(…)`. None means the formatter's default.
        budget: The limit for the size of requests. None means no limit.
        on_loss: Treatment of content that the target does not accept. `describe` replaces the content with a short
            sentence, `drop` omits the content, and `raise` raises LossError. The ledger lists all such content.
        media_roots: The folders from which `file:` sources may be read. By default, no file may be read.
        fetch: Settings for downloads of media whose URLs the target cannot open. None means no downloads.
        model_rules: Rules of the chat template of a local model, for example that the template accepts no system
            role or no media. None means that only the rules of the provider apply.
        cache_breakpoints: `"auto"` adds markers for the provider's prompt cache. `"off"`, the default, adds no
            markers. The formatter of the provider defines which values are allowed.

    Attributes:
        base: Rules of the API for all current models.
        facts: Rules that differ for some models.
        default_history: Class of the history policy that a formatter uses if the argument `history` is None.
        cache_options: Values of `cache_breakpoints` that the formatter accepts.

    Raises:
        OptionError: If an option is unknown, or has a value that is not allowed.
        MissingExtraError: If `fetch` needs a package that is not installed.
    """

    base: ClassVar[Capabilities]
    facts: ClassVar[tuple[ModelFact, ...]] = ()
    default_history: ClassVar[type[HistoryPolicy]] = ChatHistory
    cache_options: ClassVar[tuple[CacheBreakpoints, ...]] = ("off",)

    def __init__(
        self,
        model: str | None = None,
        **options: Unpack[FormatterOptions],
    ) -> None:
        check_names(type(self).__name__, options, _list_options(type(self)))
        history, budget, fetch = options.get("history"), options.get("budget"), options.get("fetch")
        on_loss = options.get("on_loss", "describe")
        cache_breakpoints = options.get("cache_breakpoints", "off")
        check_choice("on_loss", on_loss, ("describe", "drop", "raise"))
        check_choice("cache_breakpoints", cache_breakpoints, self.cache_options)
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
        self.cache_breakpoints: CacheBreakpoints = cache_breakpoints
        self.model_rules = options.get("model_rules")
        select_stages(_find_capabilities(type(self), model))  # fills the cache before the first request
        self._repair = IncrementalRepair()
        self._weigher = Weigher(budget.counter.local_counter, frozenset(budget.never_cut)) if budget else None

    @property
    def budget(self) -> Budget | None:
        """The budget, which limits the size of requests. To use another budget, create another formatter."""
        return self._budget

    @property
    def layout(self) -> WireLayout:
        """The names and meaning of the keys in the requests."""
        return self.base.layout

    @abstractmethod
    def convert(self, legal: LegalConversation, task: RequestSpec) -> Request:
        """Converts a conversation that obeys the target's rules to keyword arguments for the SDK's call."""

    def get_parser_options(self, plan: Plan) -> dict[str, Any]:
        """Returns options that the provider's parser needs, in addition to those of `ParserOptions`.

        By default, there are no such options. A formatter overrides this method if the form of the replies depends
        on the formatter, for example on its chat template. `ChatModel` passes the options to the parser.

        Args:
            plan: Plan of the request that the reply answers.
        """
        return {}

    def capabilities(self, model: str | None = None) -> Capabilities:
        """Returns the rules of the target for a model. None means the formatter's model."""
        capabilities = _find_capabilities(type(self), self.model if model is None else model)
        return capabilities if self.model_rules is None else self.model_rules.apply(capabilities)

    async def format(
        self, msgs: Sequence[Msg], *, model: str | None = None, **options: Unpack[RequestOptions]
    ) -> Request:
        """Returns the request: keyword arguments for the SDK's call, as JSON values.

        The caller may change the request. If the API does not accept a tool name or a call id, the request
        contains a replacement. `plan()` also returns the original names and ids.

        Args:
            msgs: The conversation.
            model: Name of the model. None means the formatter's model.
            **options: `tools` are Tools, typed functions, or dicts in a provider's format. `tool_choice` is
                `auto`, `none`, `required`, the name of a tool, or a list of tool names (see `ToolChoice`).
                `response_format` is a type, such as a pydantic model, or a JSON schema for the reply.
                `"json_object"` asks for any JSON object.

        Raises:
            InputError: If the messages or options are invalid.
            LossError: If content would be lost and `on_loss` is `raise`.
            BudgetError: If even the smallest request does not fit the budget.
        """
        return (await self.plan(msgs, model=model, **options)).request

    async def plan(
        self, msgs: Sequence[Msg], *, model: str | None = None, **options: Unpack[RequestOptions]
    ) -> Plan:
        """Returns a `Plan`: the request, its ledger, its size, its cut, and the remaining messages.

        The method takes the options of `format`, and raises the same errors.
        """
        checked = check_messages(msgs)
        builder = self._create_builder(options, model)
        ledger = Ledger(checked)
        conversation = self._repair.repair(TracedConversation.of(checked), ledger, self._unmatched)
        await anyio.lowlevel.checkpoint()
        if (self.budget is not None or self.on_loss == "raise") and has_media(conversation):
            await check_media(checked)
        if self.budget is not None and self._weigher is not None:
            await prepare_counter(self.budget.counter.local_counter)
            fitter = await BudgetFitter.create(builder, self.budget, self._weigher, conversation, ledger)
            return log_plan(await fitter.plan())
        if self.on_loss == "raise" and has_media(conversation):
            builder.raise_on_loss(builder.build_without_io(conversation, ledger).ledger)
        built = await builder.load_and_build(conversation, ledger)
        builder.raise_on_loss(built.ledger)
        return log_plan(built.plan(tuple(checked)))

    def lower(self, msgs: Sequence[Msg], *, model: str | None = None, **options: Unpack[RequestOptions]) -> Plan:
        """Returns a `Plan` without any I/O. This is the synchronous part of `plan`.

        No file is read, no URL is fetched, no image is resized, and no budget is applied. The method takes the
        options of `format`.

        Raises:
            InputError: If the messages or options are invalid.
            LossError: If content would be lost and `on_loss` is `raise`.
        """
        checked = check_messages(msgs)
        builder = self._create_builder(options, model)
        ledger = Ledger(checked)
        conversation = self._repair.repair(TracedConversation.of(checked), ledger, self._unmatched)
        built = builder.build(conversation, ledger, ResolvedMedia())
        builder.raise_on_loss(built.ledger)
        return log_plan(built.plan(tuple(checked)))

    @property
    def _unmatched(self) -> Unmatched:
        return "drop" if self.on_loss == "drop" else "describe"

    def _create_builder(self, options: RequestOptions, model: str | None) -> RequestBuilder:
        if options or model is not None:
            spec = self._create_spec(options, model)
        else:
            spec = RequestSpec(self.capabilities(), self.model)
        return RequestBuilder(spec, self.history, self.on_loss, self.media_roots, self.convert, self.fetch)

    def _create_spec(self, options: RequestOptions, model: str | None) -> RequestSpec:
        check_names("format()", options, (*RequestOptions.__annotations__, "model"))
        tools = as_tools(options.get("tools"))
        name = self.model if model is None else model
        check_text("model", name)
        choice = as_tool_choice(options.get("tool_choice"), tools)
        notes = list[Synthesis]()
        output = as_output_schema(options.get("response_format"))
        capabilities = select_output(output, bool(tools), self.capabilities(name))
        output = fit_output(output, capabilities, notes)
        tools, choice = fit_choice(tools, choice, capabilities, notes)
        tools = fit_tools(tools, capabilities, notes)
        return RequestSpec(capabilities, name, tools, choice, output, tuple(notes))


@lru_cache(256)
def _list_options(formatter: type[FormatterBase]) -> frozenset[str]:
    from inspect import signature

    own = signature(formatter).parameters.keys() - {"options"}
    return frozenset({*FormatterOptions.__annotations__, *own})


@lru_cache(512)
def _find_capabilities(formatter: type[FormatterBase], model: str | None) -> Capabilities:
    return apply_facts(formatter.base, model, formatter.facts)


def _describe_loader(item: object) -> str:
    """Returns advice that names the loader for the format of a dict."""
    if isinstance(item, dict) and "name" not in item:  # a message that agentkit stored has a name
        log_format = find_log_format(cast("dict[str, Any]", item))
    else:
        log_format = None
    if log_format is None or not log_format.loader:
        return "Use load_messages for stored messages, or load_native for messages of a provider."
    return f"The dict looks like {log_format.name}. Use load_native({log_format.loader!r}, …)."


def check_messages(msgs: Sequence[Msg]) -> list[Msg]:
    """Returns the messages of a conversation as a list.

    Raises:
        MessageError: `msgs` is not a list of `Msg`.
        EmptyConversationError: There are no messages.
    """
    if isinstance(msgs, str | bytes) or not isinstance(msgs, Iterable):
        raise MessageError("msgs", f"expected a list of Msg, got {describe_value(msgs)}", "Pass a list of Msg.")
    checked = list(msgs)
    for kind in {*map(type, checked)} - {Msg}:
        if not issubclass(kind, Msg):
            index = next(index for index, msg in enumerate(checked) if type(msg) is kind)
            reason = f"expected a Msg, got {describe_value(checked[index])}"
            raise MessageError(f"msgs[{index}]", reason, _describe_loader(checked[index]))
    if not checked:
        raise EmptyConversationError
    return checked
