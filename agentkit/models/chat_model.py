"""`ChatModel`: a formatter, a provider's official SDK client, and a reader of its replies."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from math import inf
from threading import Lock
from typing import Any, Literal, Never, Self, TypedDict, Unpack, cast

import anyio
import anyio.to_thread

from agentkit.argument_checks import check_names, check_option, check_parameters, check_text
from agentkit.budget.budget import Budget
from agentkit.credentials.client_options import check_client, clean_options, find_variable
from agentkit.credentials.redaction import create_redactor, redact_error
from agentkit.errors import AgentkitError, BudgetError, ContextLengthError, InputError, OptionError, ProviderError
from agentkit.event_loop import get_running_loop, has_ended, run_to_completion
from agentkit.formatting.formatter import FormatterBase, FormatterOptions, RequestOptions
from agentkit.history.policies import MultiAgentHistory
from agentkit.ledger.plan import Plan
from agentkit.loggers import get_logger
from agentkit.messages.message import Msg
from agentkit.models.call import ModelCall
from agentkit.models.endpoint import EndpointBase
from agentkit.models.failures import parse_context_limit
from agentkit.models.registry import Provider, available_providers, load_provider
from agentkit.models.stream import ModelStream
from agentkit.reprs import shorten_repr
from agentkit.tokens.counters import CharacterTokenCounter, TokenCount, count_request
from agentkit.tools.choices import ToolChoiceLike
from agentkit.tools.json_schema import OutputLike
from agentkit.tools.tool import ToolLike

__all__ = ["ChatModel", "ModelOptions", "Wanted"]

_log = get_logger("models")

_CLOSING = 5.0  # seconds that open connections have to say goodbye

_SHORTER = 0.75
"""How much of a prompt is kept where the provider does not say how much it can be."""
_SLACK = 0.97
"""How much of the room that a provider names is used: its count and ours differ from message to message."""


class ModelOptions(FormatterOptions, total=False):
    """Options of a ChatModel besides its client: see ChatModel."""

    cache_breakpoints: Literal["off", "auto", "auto-1h"]
    formatter_options: Mapping[str, Any] | None
    max_tokens: int | None
    client_options: Mapping[str, Any] | None
    parameters: Mapping[str, Any] | None
    replan: bool | None
    timeout: float | None


class ChatModel:
    """One model of one provider: messages in, a message out.

        model = ChatModel("anthropic:claude-opus-5", budget=Budget(100_000))
        reply = await model.generate(msgs, tools=[search])

        friday = MultiAgentHistory(viewer="Friday")
        model = ChatModel("openai", "gpt-6-luna", client=AsyncAzureOpenAI(…), history=friday)

    provider        `"NAME:MODEL"`, or a provider's name or a Provider, with `model` beside it
    client          the SDK's own async client: yours, which stays open. Without one the SDK's client is opened at
                    the first call, with `client_options` (`api_key`, `base_url` …), in the running event loop, and
                    again in the next loop when that one has ended; two loops at once need two models. `aclose`, or
                    leaving `async with model`, closes that one alone
    history, budget, on_loss, media_roots, fetch, model_rules
                    options of the formatter: see FormatterBase
    cache_breakpoints, formatter_options
                    whether requests are marked for the prompt cache, where the provider's formatter has that
                    option; and further options of that formatter, by name
    max_tokens      the limit of a reply, under the name that the provider has for it (`max_completion_tokens`
                    for OpenAI's chat: a server of another's may want it as one of the `parameters`)
    parameters      parameters of the provider, by its own names, for every call: `{"temperature": 0}`. A call may
                    pass others, or None to leave one out
    replan          whether a prompt that the provider finds too long is cut and sent once more. By default, if
                    there is a budget
    timeout         seconds to wait for the server: to connect, and then for each piece of the answer. Then the SDK
                    tries again, or the call fails with NetworkError. None: the SDK's own limit: ten minutes for
                    OpenAI and Anthropic, five for DashScope. The SDKs of Ollama and Gemini have none

    Nothing of the SDK is imported before the first call. Retries, credentials and transport are the SDK's; its
    errors come as ModelError, with the SDK's own as the cause. Errors of the conversation itself (InputError,
    LossError, BudgetError) are raised before anything is sent.

    The speaker of the replies is the viewer of the history, else `assistant`; a reply that begins with the
    viewer's `NAME:` loses it. A UsageAnchoredCounter of the budget is anchored to the usage of each reply.
    """

    def __init__(
        self,
        provider: str | Provider,
        model: str | None = None,
        *,
        client: Any = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        check_names("ChatModel", options, _MODEL_OPTIONS, _NEITHER)
        self.provider, self.model = _named(provider, model)
        client_options, parameters = options.get("client_options"), options.get("parameters")
        replan, max_tokens = options.get("replan"), options.get("max_tokens")
        check_option("client_options", client_options, Mapping | None)
        check_option("parameters", parameters, Mapping | None)
        check_option("replan", replan, bool | None)
        timeout = options.get("timeout")
        _check_timeout(timeout)
        check_parameters(parameters)
        _check_limit(max_tokens)
        if client is not None and client_options:
            raise OptionError("client_options", "there is a client already", "Give either.")
        self._options = _formatter_options(options)
        self.formatter: FormatterBase = self.provider.chat_formatter(
            self.model, **cast("FormatterOptions", self._options)
        )
        self.max_tokens = max_tokens
        self.parameters = dict(parameters or {})
        self.timeout = timeout
        self.replan = self.formatter.budget is not None if replan is None else replan
        self._client_options = dict(client_options or {})
        self._owns = client is None
        self._endpoint: EndpointBase | None = None
        if client is not None:
            endpoint = _endpoint_of(self.provider)
            endpoint.check(client)
            check_client(client)
            self._endpoint = endpoint(client)
        self._loop: Any = None  # whose client it is, if it is opened here
        self._left: EndpointBase | None = None  # of a loop that has ended
        self._binding = Lock()
        self._opening = anyio.Lock()

    def __repr__(self) -> str:
        viewer = f", viewer={shorten_repr(self.viewer, 60)}" if self.viewer is not None else ""
        return f"{type(self).__name__}({shorten_repr(f'{self.provider.name}:{self.model}', 200)}{viewer})"

    @property
    def viewer(self) -> str | None:
        """Whose replies these are, in a history of many agents."""
        history = self.formatter.history
        return history.viewer if isinstance(history, MultiAgentHistory) else None

    async def plan(self, msgs: Sequence[Msg], **asked: Unpack[Wanted]) -> Plan:
        """What would be sent, without sending it. `generate` and `stream` take it instead of messages."""
        check_names("plan()", asked, Wanted.__annotations__, _NO_PARAMETERS)
        return await self.formatter.plan(msgs, **cast("RequestOptions", asked))

    async def count(self, msgs: Sequence[Msg] | Plan, **asked: Unpack[Wanted]) -> TokenCount:
        """The tokens of the request, by the budget's counter, else by an estimate."""
        check_names("count()", asked, Wanted.__annotations__, _NO_PARAMETERS)
        plan = msgs if isinstance(msgs, Plan) else await self.plan(msgs, **asked)
        return await self._count(plan)

    async def generate(
        self,
        msgs: Sequence[Msg] | Plan,
        *,
        tools: Sequence[ToolLike] | None = None,
        tool_choice: ToolChoiceLike | None = None,
        response_format: OutputLike | None = None,
        max_tokens: int | None = None,
        parameters: Mapping[str, Any] | None = None,
        **unknown: Never,
    ) -> Msg:
        """The reply, whole. `parameters` are the provider's, by its own names: `{"temperature": 0}`.

        For the plan that was sent, make it first: `reply = await model.generate(plan)`; that one is sent as it is
        and never cut further. Raises ModelError where the call fails.
        """
        check_names("generate()", unknown, _CALL_OPTIONS, _PARAMETER)
        wanted = Wanted(tools=tools, tool_choice=tool_choice, response_format=response_format)
        call = await self._call(msgs, wanted, max_tokens, parameters)
        return await call.whole()

    def stream(
        self,
        msgs: Sequence[Msg] | Plan,
        *,
        tools: Sequence[ToolLike] | None = None,
        tool_choice: ToolChoiceLike | None = None,
        response_format: OutputLike | None = None,
        max_tokens: int | None = None,
        parameters: Mapping[str, Any] | None = None,
        **unknown: Never,
    ) -> ModelStream:
        """The reply as it comes: `async with model.stream(msgs) as stream`. See ModelStream."""
        check_names("stream()", unknown, _CALL_OPTIONS, _PARAMETER)
        wanted = Wanted(tools=tools, tool_choice=tool_choice, response_format=response_format)
        return ModelStream(partial(self._call, msgs, wanted, max_tokens, parameters))

    async def open(self) -> Self:
        """Open the client now, not at the first call: importing an SDK takes a second or more."""
        await self._opened()
        return self

    async def aclose(self) -> None:
        """Close the client, if it was opened here. The next call would open another.

        A call that is under way ends with a NetworkError that says so.
        """
        if not self._owns or self._loop is None:
            return
        self._bind()
        async with self._opening:
            await self._leave()
            endpoint, self._endpoint = self._endpoint, None
            if endpoint is not None:
                endpoint.closed = True
                await run_to_completion(endpoint.aclose, _CLOSING)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await run_to_completion(self.aclose, _CLOSING)

    # -- inside --------------------------------------------------------------------------------------------------

    async def _call(
        self,
        msgs: Sequence[Msg] | Plan,
        wanted: Wanted,
        max_tokens: int | None,
        parameters: Mapping[str, Any] | None,
    ) -> ModelCall:
        _check_limit(max_tokens)
        check_option("parameters", parameters, Mapping | None)
        check_parameters(parameters)
        planned = isinstance(msgs, Plan)
        if planned and any(item is not None for item in wanted.values()):
            raise OptionError("tools", "the plan was made without them", "Give them to model.plan.")
        plan = msgs if isinstance(msgs, Plan) else await self.plan(msgs, **wanted)
        endpoint = await self._opened()
        limit = self.max_tokens if max_tokens is None else max_tokens
        told = {"timeout": self.timeout, **self.parameters, **(parameters or {})}
        given = {name: item for name, item in told.items() if item is not None}
        given = clean_options("parameters", given)
        if "stream" in given:
            raise OptionError("parameters.stream", "how a reply comes is no parameter", "Call generate or stream.")
        if limit is not None:
            given = {**endpoint.max_tokens_parameter(limit), **given}
        shorter = None if planned or not self.replan else partial(self._shorter, wanted)
        budget = self.formatter.budget
        return ModelCall(self.provider, self.model, endpoint, plan, given, self.viewer, budget, shorter)

    async def _opened(self) -> EndpointBase:
        """The client, opened once: importing an SDK takes a second, and holds up no loop here."""
        if self._owns:
            self._bind()
        if self._endpoint is not None:
            return self._endpoint
        async with self._opening:
            await self._leave()
            if self._endpoint is None:
                await run_to_completion(
                    self._open, inf
                )  # cancelled or not: else nobody would have the client, nor close it
            assert self._endpoint is not None
            return self._endpoint

    async def _open(self) -> None:
        opening = partial(_opened, _endpoint_of(self.provider), self._client_options)
        self._endpoint = await anyio.to_thread.run_sync(opening)

    def _bind(self) -> None:
        """Belong to the loop that is running. The connections of another are of no use in it, nor is a lock."""
        loop = get_running_loop()
        with self._binding:
            if self._loop is loop:
                return
            if self._loop is not None and not has_ended(self._loop):
                advice = "Make a ChatModel for each event loop."
                raise InputError("model", "its client belongs to another event loop, which still runs", advice)
            self._loop, self._opening = loop, anyio.Lock()
            self._left, self._endpoint = self._endpoint, None

    async def _leave(self) -> None:
        """Let go of the client of a loop that has ended. Its connections ended too, and closing them may fail."""
        left, self._left = self._left, None
        if left is not None:
            with suppress(Exception):
                await left.aclose()

    async def _count(self, plan: Plan) -> TokenCount:
        budget = self.formatter.budget
        counter = budget.counter if budget else CharacterTokenCounter()
        tokens = await count_request(counter, plan.request)
        return tokens if isinstance(tokens, TokenCount) else TokenCount(tokens)

    async def _shorter(self, wanted: Wanted, plan: Plan, error: ContextLengthError) -> Plan | None:
        """The same conversation within a budget that the provider can be expected to take."""
        tokens = int(await self._count(plan)) if plan.tokens is None else plan.tokens
        limit = _next_limit(tokens, error.provider_message)
        budget = self.formatter.budget
        if limit <= 0:
            return None
        smaller = replace(budget, max_tokens=limit + budget.reserve) if budget else Budget(limit)
        options = cast("FormatterOptions", {**self._options, "budget": smaller})
        formatter = self.provider.chat_formatter(self.model, **options)
        try:
            shorter = await formatter.plan(tuple(plan.ledger.msgs), **cast("RequestOptions", wanted))
        except BudgetError:
            _log.info("%s:%s: the prompt is too long, and nothing fits in %d tokens", *self._names, limit)
            return None
        _log.info("%s:%s: the prompt is too long, planned again for %d tokens", *self._names, limit)
        return shorter

    @property
    def _names(self) -> tuple[str, str]:
        return self.provider.name, self.model


class Wanted(TypedDict, total=False):
    """What a caller may ask for besides the conversation."""

    tools: Sequence[ToolLike] | None
    tool_choice: ToolChoiceLike | None
    response_format: OutputLike | None


_MODEL_OPTIONS = {"provider", "model", "client", *ModelOptions.__annotations__}
_CALL_OPTIONS = {*Wanted.__annotations__, "max_tokens", "parameters"}
_PARAMETER = "Pass a parameter of the provider as parameters={NAME: …}."
_NO_PARAMETERS = "Pass it to generate() or stream()."
_NEITHER = (
    "Pass a parameter of the provider as parameters={NAME: …}, an option of its SDK's client as "
    "client_options={NAME: …}, one of its formatter as formatter_options={NAME: …}."
)


def _formatter_options(options: ModelOptions) -> dict[str, Any]:
    """Returns the options for the formatter."""
    further = options.get("formatter_options")
    check_option("formatter_options", further, Mapping | None)
    for name in further or ():
        if name == "model" or not isinstance(name, str):
            reason = f"{name!r} is no option of a formatter of a ChatModel"
            raise OptionError("formatter_options", reason, "Pass the model's name to ChatModel.")
    names = {*FormatterOptions.__annotations__, "cache_breakpoints"}
    return {**{name: item for name, item in options.items() if name in names}, **(further or {})}


def _next_limit(tokens: int, said: str) -> int:
    """The limit for the next plan, in our own count: `tokens` were too many by it."""
    told = parse_context_limit(said)
    if told is None:
        return int(tokens * _SHORTER)
    room, found = told
    if found and found > room:
        return int(tokens * room / found * _SLACK)
    return min(int(room * _SLACK), int(tokens * _SHORTER))


def _named(provider: str | Provider, model: str | None) -> tuple[Provider, str]:
    check_option("provider", provider, str | Provider)
    check_text("model", model)
    if isinstance(provider, str):
        name, _, behind = provider.partition(":")
        if behind and model is not None:
            raise OptionError("model", f"{provider!r} names one already", "Name the model once.")
        model = model if model is not None else behind or None
        provider = load_provider(name)
    if not model:
        advice = f"Write 'PROVIDER:MODEL', as in '{provider.name}:…', or give model=."
        raise OptionError("model", "it is not named", advice)
    return provider, model


def _check_limit(max_tokens: int | None) -> None:
    if max_tokens is not None and (
        not isinstance(max_tokens, int) or isinstance(max_tokens, bool) or max_tokens < 0
    ):
        raise OptionError("max_tokens", f"{max_tokens!r} is no number of tokens", "Give a whole number.")


def _check_timeout(timeout: float | None) -> None:
    if timeout is None:
        return
    if not isinstance(timeout, int | float) or isinstance(timeout, bool) or not 0 < timeout < inf:
        raise OptionError("timeout", f"expected a positive number of seconds, got {timeout!r}", "Pass seconds.")


def _opened(endpoint: type[EndpointBase], options: Mapping[str, Any]) -> EndpointBase:
    """Returns an endpoint with a new client. Raises OptionError if the SDK refuses the options.

    No error shows a credential of the options or of the environment.
    """
    try:
        opened = endpoint.open(**clean_options("client_options", options))
    except Exception as error:
        ours = _opening_error(error, options)
    else:
        check_client(opened.client)
        return opened
    raise ours  # outside the handler, so that an error that shows a key does not become its context


def _opening_error(error: Exception, options: Mapping[str, Any]) -> AgentkitError:
    """Returns the error for an SDK that refuses its options, without credentials of options or environment."""
    place = find_variable(error.object) if isinstance(error, UnicodeEncodeError) else None
    is_clean = redact_error(error, create_redactor(options, error, os.environ))
    if isinstance(error, AgentkitError):
        return error
    reason = str(error) if is_clean else f"{type(error).__name__} (its text shows a credential)"
    ours = OptionError(place or "client_options", reason, "Pass what the SDK's client takes.")
    if is_clean:
        ours.__cause__ = error
    return ours


def _endpoint_of(provider: Provider) -> type[EndpointBase]:
    if provider.endpoint is None:
        raise ProviderError(provider.name, "it has no endpoint to call", available_providers())
    return provider.endpoint
