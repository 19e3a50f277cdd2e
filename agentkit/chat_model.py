"""`ChatModel`: a formatter, a provider's official SDK client, and a reader of its replies."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Self, TypedDict, Unpack, cast

import anyio
import anyio.to_thread

from agentkit.blame import guess_place
from agentkit.budget import Budget
from agentkit.echoes import strip_echo
from agentkit.endpoints import EndpointBase, Outgoing
from agentkit.errors import (
    BadRequestError,
    BudgetError,
    ContextLengthError,
    MessageError,
    ModelError,
    OptionError,
    ProviderError,
    check_option,
    check_text,
)
from agentkit.failures import Failure, room_in
from agentkit.formatting import Asked, FormatterBase
from agentkit.history import HistoryPolicy, MultiAgentHistory
from agentkit.ledger import Plan
from agentkit.messages import Msg
from agentkit.model_stream import ModelStream
from agentkit.native import plain
from agentkit.registry import Provider, available_providers, load_provider
from agentkit.streaming import StreamParserBase
from agentkit.tokens import CharacterTokenCounter, TokenCount
from agentkit.tools import OutputLike, ToolChoiceLike, ToolLike
from agentkit.usage_anchored import UsageAnchoredCounter

__all__ = ["ChatModel", "Wanted"]

_CLOSING = 5.0  # seconds that open connections have to say goodbye

_SHORTER = 0.75
"""How much of a prompt is kept where the provider does not say how much it can be."""
_SLACK = 0.97
"""How much of the room that a provider names is used: its count and ours differ from message to message."""


class ChatModel:
    """One model of one provider: messages in, a message out.

        model = ChatModel("anthropic:claude-opus-5", budget=Budget(100_000))
        reply = await model.generate(msgs, tools=[search])

        friday = MultiAgentHistory(viewer="Friday")
        model = ChatModel("openai", "gpt-6-luna", client=AsyncAzureOpenAI(…), history=friday)

    provider        `"NAME:MODEL"`, or a provider's name or a Provider, with `model` beside it
    client          the SDK's own async client: yours, which stays open. Without one the SDK's client is opened at
                    the first call, with `client_options` (`api_key`, `base_url` …), in the running event loop: a
                    model belongs to one loop. `aclose`, or leaving `async with model`, closes that one alone
    history, budget, and any other option of the provider's formatter: see FormatterBase
    max_tokens      the limit of a reply, under the name that the provider has for it (`max_completion_tokens`
                    for OpenAI's chat: a server of another's may want it as one of the `parameters`)
    parameters      further parameters of the provider's, by its own names, for every call; a call may give others,
                    or None to leave one out
    replan          whether a prompt that the provider finds too long is cut and sent once more. By default, if
                    there is a budget

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
        history: HistoryPolicy | None = None,
        budget: Budget | None = None,
        max_tokens: int | None = None,
        client_options: Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        replan: bool | None = None,
        **options: Any,
    ) -> None:
        self.provider, self.model = _named(provider, model)
        check_option("client_options", client_options, Mapping | None)
        check_option("parameters", parameters, Mapping | None)
        check_option("replan", replan, bool | None)
        _check_limit(max_tokens)
        if client is not None and client_options:
            raise OptionError("client_options", "there is a client already", "Give either.")
        self.formatter: FormatterBase = self.provider.chat(self.model, history=history, budget=budget, **options)
        self.max_tokens = max_tokens
        self.parameters = dict(parameters or {})
        self.replan = budget is not None if replan is None else replan
        self._options: dict[str, Any] = {"history": history, **options}
        self._client_options = dict(client_options or {})
        self._owns = client is None
        self._endpoint: EndpointBase | None = None if client is None else _endpoint_of(self.provider)(client)
        self._opening = anyio.Lock()

    @property
    def viewer(self) -> str | None:
        """Whose replies these are, in a history of many agents."""
        history = self.formatter.history
        return history.viewer if isinstance(history, MultiAgentHistory) else None

    async def plan(self, msgs: Sequence[Msg], **asked: Unpack[Wanted]) -> Plan:
        """What would be sent, without sending it. `generate` and `stream` take it instead of messages."""
        return await self.formatter.plan(msgs, **cast("Asked", asked))

    async def count(self, msgs: Sequence[Msg] | Plan, **asked: Unpack[Wanted]) -> TokenCount:
        """The tokens of the request, by the budget's counter, else by an estimate."""
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
        **parameters: Any,
    ) -> Msg:
        """The reply, whole. `parameters` are the provider's own: `temperature`, `reasoning` …

        For the plan that was sent, make it first: `reply = await model.generate(plan)`; that one is sent as it is
        and never cut further. Raises ModelError where the call fails.
        """
        wanted = Wanted(tools=tools, tool_choice=tool_choice, response_format=response_format)
        call = await self._call(msgs, wanted, max_tokens, parameters)
        try:
            return await call.reply()
        except ContextLengthError as error:
            if not await call.replan(error):
                raise
        return await call.reply()

    def stream(
        self,
        msgs: Sequence[Msg] | Plan,
        *,
        tools: Sequence[ToolLike] | None = None,
        tool_choice: ToolChoiceLike | None = None,
        response_format: OutputLike | None = None,
        max_tokens: int | None = None,
        **parameters: Any,
    ) -> ModelStream:
        """The reply as it comes: `async with model.stream(msgs) as stream`. See ModelStream."""
        wanted = Wanted(tools=tools, tool_choice=tool_choice, response_format=response_format)
        return ModelStream(partial(self._call, msgs, wanted, max_tokens, parameters))

    async def open(self) -> Self:
        """Open the client now, not at the first call: importing an SDK takes a second or more."""
        if self._endpoint is None:
            await self._open()
        return self

    async def aclose(self) -> None:
        """Close the client, if it was opened here. The next call would open another."""
        async with self._opening:
            endpoint = self._endpoint
            if endpoint is not None and self._owns:
                self._endpoint = None
                await endpoint.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        with anyio.move_on_after(_CLOSING, shield=True):
            await self.aclose()

    # -- inside --------------------------------------------------------------------------------------------------

    async def _call(
        self,
        msgs: Sequence[Msg] | Plan,
        wanted: Wanted,
        max_tokens: int | None,
        parameters: Mapping[str, Any],
    ) -> _Call:
        _check_limit(max_tokens)
        planned = isinstance(msgs, Plan)
        if planned and any(item is not None for item in wanted.values()):
            raise OptionError("tools", "the plan was made without them", "Give them to model.plan.")
        plan = msgs if isinstance(msgs, Plan) else await self.plan(msgs, **wanted)
        endpoint = self._endpoint or await self._open()
        limit = self.max_tokens if max_tokens is None else max_tokens
        given = {name: item for name, item in {**self.parameters, **parameters}.items() if item is not None}
        if limit is not None:
            given = {**endpoint.limit(limit), **given}
        return _Call(self, endpoint, plan, given, None if planned else wanted)

    async def _open(self) -> EndpointBase:
        """The client, opened once: importing an SDK takes a second, and holds up no loop here."""
        async with self._opening:
            if self._endpoint is None:
                opening = partial(_endpoint_of(self.provider).open, **self._client_options)
                self._endpoint = await anyio.to_thread.run_sync(opening)
            return self._endpoint

    async def _count(self, plan: Plan) -> TokenCount:
        budget = self.formatter.budget
        counter = budget.counter if budget else CharacterTokenCounter()
        return TokenCount(count) if type(count := await counter.count(plan.request)) is int else count  # type: ignore[return-value]

    async def _shorter(self, plan: Plan, wanted: Wanted, error: ContextLengthError) -> Plan | None:
        """The same conversation within a budget that the provider can be expected to take."""
        tokens = int(await self._count(plan)) if plan.tokens is None else plan.tokens
        limit = _next_limit(tokens, error.said)
        budget = self.formatter.budget
        if limit <= 0:
            return None
        smaller = replace(budget, max_tokens=limit + budget.reserve) if budget else Budget(limit)
        formatter = self.provider.chat(self.model, budget=smaller, **self._options)
        try:
            return await formatter.plan(tuple(plan.ledger.msgs), **cast("Asked", wanted))
        except BudgetError:
            return None


class Wanted(TypedDict, total=False):
    """What a caller may ask for besides the conversation."""

    tools: Sequence[ToolLike] | None
    tool_choice: ToolChoiceLike | None
    response_format: OutputLike | None


@dataclass(slots=True)
class _Call:
    """One call: its plan, and how to send it. It may be planned anew once."""

    model: ChatModel
    endpoint: EndpointBase
    plan: Plan
    parameters: Mapping[str, Any]
    wanted: Wanted | None  # None: the plan was the caller's
    replanned: bool = field(default=False)

    def parser(self) -> StreamParserBase:
        return _parser_of(self.model.provider)(**self._reading())

    def _reading(self) -> dict[str, Any]:
        return {
            "request": self.plan.request,
            "name": self.model.viewer or "assistant",
            "tool_names": self.plan.tool_names,
        }

    def _outgoing(self, *, stream: bool) -> Outgoing:
        return self.endpoint.body(self.model.model, self.plan.request, self.parameters, stream=stream)

    async def chunks(self) -> AbstractAsyncContextManager[AsyncIterator[Any]]:
        return self.endpoint.stream(self._outgoing(stream=True))

    async def reply(self) -> Msg:
        outgoing = self._outgoing(stream=False)
        if self.endpoint.wants_stream(outgoing):
            return await self._gathered()
        try:
            found = plain(await self.endpoint.send(outgoing))
            failure = self.endpoint.failure_in(found)
            if failure is None:
                return self.settled(_parser_of(self.model.provider).parse_response(found, **self._reading()))
        except Exception as error:
            ours = self.error_of(error)
            if self.endpoint.wants_stream(outgoing):  # the error taught it
                return await self._gathered()
            if ours is None or ours is error:
                raise
            raise ours from error
        raise self.error_of(failure) or AssertionError

    async def _gathered(self) -> Msg:
        """The whole reply, from a stream."""
        async with ModelStream(self._itself) as stream:
            return await stream.finish()

    async def _itself(self) -> _Call:
        return self

    def settled(self, msg: Msg) -> Msg:
        budget, usage = self.model.formatter.budget, msg.usage
        if (
            budget is not None
            and isinstance(budget.counter, UsageAnchoredCounter)
            and usage
            and usage.input_tokens
        ):
            budget.counter.anchor(self.plan.request, usage.input_tokens)
        viewer = self.model.viewer
        return strip_echo(msg, viewer) if viewer else msg

    def error_of(self, error: BaseException | Failure) -> ModelError | None:
        name = self.model.provider.name
        if isinstance(error, ModelError):
            return error
        if isinstance(error, MessageError):
            return ModelError(name, f"an answer that is none: {error.reason}")
        failure = error if isinstance(error, Failure) else self.endpoint.failure(error)
        if failure is None:
            return None
        return failure.error(name, self._place(failure) if failure.kind is BadRequestError else "")

    def _place(self, failure: Failure) -> str:
        plan = self.plan
        said = f"{failure.said} {failure.param or ''}"
        return guess_place(said, plan.request, plan.ledger.msgs, call_ids=plan.call_ids)

    @property
    def may_replan(self) -> bool:
        return self.model.replan and not self.replanned and self.wanted is not None

    async def replan(self, error: ContextLengthError) -> bool:
        """Make the plan shorter, if the model may; whether it was."""
        if not self.may_replan or self.wanted is None:
            return False
        self.replanned = True
        plan = await self.model._shorter(self.plan, self.wanted, error)  # pyright: ignore[reportPrivateUsage]
        if plan is None:
            return False
        self.plan = plan
        return True


def _next_limit(tokens: int, said: str) -> int:
    """The limit for the next plan, in our own count: `tokens` were too many by it."""
    told = room_in(said)
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


def _endpoint_of(provider: Provider) -> type[EndpointBase]:
    if provider.endpoint is None:
        raise ProviderError(provider.name, "it has no endpoint to call", available_providers())
    return provider.endpoint


def _parser_of(provider: Provider) -> type[StreamParserBase]:
    if provider.parser is None:
        raise ProviderError(provider.name, "it has no reader of replies", available_providers())
    return provider.parser
