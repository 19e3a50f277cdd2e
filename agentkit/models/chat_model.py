"""`ChatModel`, which sends messages to a model through the official SDK client of a provider."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Self, TypeVar, Unpack, cast, overload

from agentkit.argument_checks import check_names
from agentkit.credentials.credential_checks import clean_options
from agentkit.errors import ContextLengthError, NetworkError, OptionError
from agentkit.event_loop import run_to_completion
from agentkit.formatting.formatter import FormatterBase, FormatterOptions, RequestOptions
from agentkit.history.policies import MultiAgentHistory
from agentkit.ledger.plan import Plan
from agentkit.messages.message import Msg
from agentkit.messages.usage import FinishReason
from agentkit.models.call import ModelCall
from agentkit.models.client import CLOSE_SECONDS, ModelClient
from agentkit.models.context_length_retry import ContextLengthRetry
from agentkit.models.failures import is_stream_only
from agentkit.models.model_options import (
    NO_PARAMETERS,
    PARAMETER_ADVICE,
    CallOptions,
    ModelOptions,
    check_call_options,
    check_model_options,
    get_formatter_options,
)
from agentkit.models.registry import Provider, resolve_model
from agentkit.models.stream import ModelStream
from agentkit.reprs import shorten_repr
from agentkit.tokens.counters import TokenCount, count_request
from agentkit.tokens.text_counters import CharacterTokenCounter

__all__ = ["ChatModel"]

_Value = TypeVar("_Value")


class ChatModel:
    """One model of one provider. `generate` and `stream` send messages to the model and return its reply.

        model = ChatModel("anthropic:claude-opus-5", budget=Budget(100_000))
        reply = await model.generate(msgs, tools=[search])

        friday = MultiAgentHistory(viewer="Friday")
        model = ChatModel("openai", "gpt-6-luna", client=AsyncAzureOpenAI(…), history=friday)

    The first call imports the SDK, which handles retries, credentials and transport. An error from the SDK is
    raised as a ModelError, whose `__cause__` is the SDK's error. Errors about the conversation (InputError,
    LossError, BudgetError) are raised before anything is sent.

    The speaker of a reply is the viewer of the history policy, or `assistant` if the policy has no viewer. If a
    reply starts with the viewer's name (`NAME:`), that prefix is removed. If the budget has a
    `UsageAnchoredCounter`, the counter receives the token usage of each reply.

    Args:
        provider: `"PROVIDER:MODEL"`, the name of a provider, or a `Provider`. With a name or a `Provider`, `model`
            is required.
        model: Name of the model.
        client: Async client of the SDK. `ChatModel` never closes this client. If None, the first call opens a
            client for the running event loop. After that loop has ended, the next call opens a new client. Two
            event loops that run at the same time need two `ChatModel` objects. `aclose`, or the end of
            `async with model`, closes only a client that the `ChatModel` opened.
        **options: Options of the model:

            - `history`, `budget`, `on_loss`, `media_roots`, `fetch`, `model_rules`: options of the formatter; see
              FormatterBase.
            - `cache_breakpoints`: markers for the prompt cache, if the provider's formatter has this option.
            - `template`: chat template of a local model, for providers whose requests contain the prompt text. A
              `ChatTemplate`, the name of a built-in template, or the path of a folder with the files of the model.
            - `formatter_options`: further options of the formatter, by name.
            - `max_tokens`: maximum tokens of a reply. The request uses the provider's own name for this limit.
            - `parameters`: parameters for every call, under the provider's own names, such as
              `{"temperature": 0}`. A call may pass other values, or None to omit a parameter.
            - `client_options`: options of the SDK's client, such as `api_key` and `base_url`.
            - `replan`: True to shorten a prompt that the provider rejects as too long, and to send the request
              once more. The default is True if the model has a budget, and False otherwise.
            - `timeout`: seconds to wait for a connection, and for each piece of the reply. None means the default
              of the SDK: ten minutes for OpenAI and Anthropic, five minutes for DashScope, and no limit for
              Ollama and Gemini.

    Raises:
        OptionError: If an option is unknown or invalid.
        ProviderError: If the provider is not installed or does not load, or if `client` is passed and the provider
            has no endpoint. Without `client`, the first call raises the error about the endpoint.
    """

    def __init__(
        self,
        provider: str | Provider,
        model: str | None = None,
        *,
        client: Any = None,
        **options: Unpack[ModelOptions],
    ) -> None:
        check_model_options(options)
        self.provider, self.model = resolve_model(provider, model)
        client_options = options.get("client_options")
        if client is not None and client_options:
            raise OptionError("client_options", "cannot be combined with `client`", "Pass one of them.")
        self._options = get_formatter_options(options)
        self.formatter: FormatterBase = self.provider.chat_formatter(
            self.model, **cast("FormatterOptions", self._options)
        )
        self.max_tokens = options.get("max_tokens")
        self.parameters = dict(options.get("parameters") or {})
        self.timeout = options.get("timeout")
        replan = options.get("replan")
        self.replan = self.formatter.budget is not None if replan is None else replan
        self._client = ModelClient(self.provider, client, client_options or {})

    def __repr__(self) -> str:
        viewer = f", viewer={shorten_repr(self.viewer, 60)}" if self.viewer is not None else ""
        return f"{type(self).__name__}({shorten_repr(f'{self.provider.name}:{self.model}', 200)}{viewer})"

    @property
    def viewer(self) -> str | None:
        """Name of the agent for which the model replies. None if the history policy has no viewer."""
        history = self.formatter.history
        return history.viewer if isinstance(history, MultiAgentHistory) else None

    async def plan(self, msgs: Sequence[Msg], **options: Unpack[RequestOptions]) -> Plan:
        """Returns the plan of a request without sending the request. `generate` and `stream` accept the plan.

        Raises:
            InputError: If the messages or options are invalid.
            LossError: If the model does not accept some content, and `on_loss` is "raise".
            BudgetError: If no request fits the budget.
        """
        check_names("plan()", options, RequestOptions.__annotations__, NO_PARAMETERS)
        return await self.formatter.plan(msgs, **options)

    async def count(self, msgs: Sequence[Msg] | Plan, **options: Unpack[RequestOptions]) -> TokenCount:
        """Returns the token count of a request.

        The budget's counter counts the tokens. Without a budget, the result is an estimate.
        """
        check_names("count()", options, RequestOptions.__annotations__, NO_PARAMETERS)
        plan = msgs if isinstance(msgs, Plan) else await self.plan(msgs, **options)
        return await self._count(plan)

    async def generate(self, msgs: Sequence[Msg] | Plan, **options: Unpack[CallOptions]) -> Msg:
        """Returns the complete reply.

        Args:
            msgs: Messages, or a plan from `plan`. A plan already contains `tools`, `tool_choice` and
                `response_format`, so these options cannot be passed with a plan. If the provider rejects the
                prompt of a plan as too long, the call fails, because a plan is never shortened.
            **options: Options of the call:

                - `tools`: tools that the model may call.
                - `tool_choice`: choice among the tools (see `ToolChoice`).
                - `response_format`: JSON schema that the reply must match, or a type, such as a pydantic model or
                  `list[Answer]`. `"json_object"` asks for any JSON object. `reply.parsed(TYPE)` parses the reply
                  and returns the value.
                - `max_tokens`: maximum tokens of the reply. None means the `max_tokens` of this `ChatModel`.
                - `parameters`: parameters under the provider's own names, such as `{"temperature": 0}`.

        Raises:
            ModelError: If the call fails.
            InputError: If the messages or options are invalid.
            LossError: If the model does not accept some content, and `on_loss` is "raise".
            BudgetError: If no request fits the budget.
        """
        check_names("generate()", options, CallOptions.__annotations__, PARAMETER_ADVICE)
        return await _generate(await self._call(msgs, options))

    @overload
    async def generate_as(
        self, output: type[_Value], msgs: Sequence[Msg], **options: Unpack[CallOptions]
    ) -> _Value: ...
    @overload
    async def generate_as(self, output: Any, msgs: Sequence[Msg], **options: Unpack[CallOptions]) -> Any: ...
    async def generate_as(self, output: Any, msgs: Sequence[Msg], **options: Unpack[CallOptions]) -> Any:
        """Returns the reply as a value of a type. The request asks for JSON that matches the schema of the type.

        Args:
            output: Any type that pydantic supports, such as a pydantic model, `list[Answer]` or a `Literal`.
            msgs: Messages of the conversation.
            **options: Options of the call, as in `generate`, except `response_format`.

        Raises:
            ParseError: If the reply has no value of this type. `error.message` is the reply.
            ModelError: If the call fails.
            InputError: If the messages or options are invalid.
            LossError: If the model does not accept some content, and `on_loss` is "raise".
            BudgetError: If no request fits the budget.
        """
        if options.get("response_format") is not None:
            advice = "Remove this option, and pass the type as the first argument."
            raise OptionError("response_format", "`generate_as` sets this option", advice)
        reply = await self.generate(msgs, **{**options, "response_format": output})
        return reply.parsed(output)

    def stream(self, msgs: Sequence[Msg] | Plan, **options: Unpack[CallOptions]) -> ModelStream:
        """Returns the stream of a reply, for `async with model.stream(msgs, …) as stream`. See `ModelStream`.

        Args:
            msgs: Messages, or a plan from `plan`.
            **options: Options of the call, as in `generate`.
        """
        check_names("stream()", options, CallOptions.__annotations__, PARAMETER_ADVICE)
        return ModelStream(partial(self._call, msgs, options))

    async def open(self) -> Self:
        """Opens the client, so that the first call does not wait for the import of the SDK (a second or more)."""
        await self._client.open()
        return self

    async def aclose(self) -> None:
        """Closes the client that this object opened. The next model call opens a new client.

        A model call that is in progress raises a NetworkError. A client that the application passed stays open.
        """
        await self._client.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await run_to_completion(self.aclose, CLOSE_SECONDS)

    async def _call(self, msgs: Sequence[Msg] | Plan, options: CallOptions) -> ModelCall:
        max_tokens, parameters = options.get("max_tokens"), options.get("parameters")
        check_call_options(max_tokens, parameters)
        values = {name: options.get(name) for name in RequestOptions.__annotations__}
        request_options = cast("RequestOptions", values)
        budget, retry = self.formatter.budget, None
        if not isinstance(msgs, Plan):
            plan = await self.plan(msgs, **request_options)
            if self.replan:
                retry = ContextLengthRetry(
                    self.provider, self.model, budget, self._options, request_options, self._count
                )
        elif passed := [name for name, value in values.items() if value is not None]:
            advice = "Pass tools, tool_choice and response_format to model.plan()."
            raise OptionError(passed[0], "cannot be combined with a plan", advice)
        else:
            plan = msgs
        endpoint = await self._client.open()
        limit = self.max_tokens if max_tokens is None else max_tokens
        merged = {"timeout": self.timeout, **self.parameters, **(parameters or {})}
        merged = clean_options("parameters", {name: value for name, value in merged.items() if value is not None})
        if "stream" in merged:
            raise OptionError("parameters.stream", "reserved", "Call `generate()` or `stream()` instead.")
        if limit is not None:
            merged = _add_limit(endpoint.max_tokens_parameter(limit), merged)
        return ModelCall(
            self.provider, self.model, endpoint, plan, merged, self.viewer, budget, retry, self.formatter
        )

    async def _count(self, plan: Plan) -> TokenCount:
        budget = self.formatter.budget
        counter = budget.counter if budget else CharacterTokenCounter()
        tokens = await count_request(counter, plan.request, self.formatter.layout)
        return tokens if isinstance(tokens, TokenCount) else TokenCount(tokens)


def _add_limit(limit: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Returns `parameters` with the token limit added. A parameter with the same name overrides the limit."""
    merged = {**limit, **parameters}
    for name, value in limit.items():
        if isinstance(value, Mapping) and isinstance(merged[name], Mapping):
            merged[name] = {**value, **merged[name]}
    return merged


async def _generate(call: ModelCall) -> Msg:
    """Returns the complete reply of a model call.

    If the provider refuses the prompt as too long, sends a shorter prompt once, unless `call.retry` is None. If
    the model accepts only requests for a stream, requests a stream and reads the stream to its end.

    Raises:
        ModelError: If the call fails.

    """
    try:
        return await _generate_once(call)
    except ContextLengthError as error:
        if not await call.replan(error):
            raise
    return await _generate_once(call)


async def _generate_once(call: ModelCall) -> Msg:
    outgoing = call.build_request(stream=False)
    if call.model in call.endpoint.stream_only_models or call.endpoint.requires_stream(outgoing):
        return await _read_stream(call)
    try:
        return await call.send(outgoing)
    except Exception as error:
        raised = call.as_agentkit_error(error)
        requires_stream = is_stream_only(raised, call.provider.error_patterns)
        if not requires_stream and (raised is None or raised is error):
            raise
    if not requires_stream:
        assert raised is not None
        # An error that is raised inside the `except` block has the SDK's error as its `__context__`. The SDK's
        # error may contain an API key, so agentkit's error is raised after the block.
        raise raised
    call.endpoint.stream_only_models.add(call.model)
    return await _read_stream(call)


async def _read_stream(call: ModelCall) -> Msg:
    """Requests a stream and returns the complete message. Raises NetworkError if the stream breaks off."""

    async def get_call() -> ModelCall:
        return call

    async with ModelStream(get_call) as stream:
        reply = await stream.finish()
    if reply.finish_reason is FinishReason.INTERRUPTED:
        reason = "the stream ended before the reply was complete"
        raise NetworkError(call.provider.name, reason, request_id=stream.request_id)
    return reply
