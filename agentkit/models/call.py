"""`ModelCall`: one call of a model: what is sent, and how its answer is read."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any

from agentkit.budget.budget import Budget
from agentkit.credentials.redaction import Redactor, create_redactor, redact_error
from agentkit.errors import (
    AgentkitError,
    BadRequestError,
    ContextLengthError,
    MessageError,
    ModelError,
    NetworkError,
    OptionError,
    ProviderError,
)
from agentkit.history.speaker_prefix import strip_speaker_prefix
from agentkit.json_values import native_to_json
from agentkit.ledger.plan import Plan
from agentkit.messages.message import Msg
from agentkit.messages.usage import FinishReason
from agentkit.models.endpoint import EndpointBase, OutgoingRequest
from agentkit.models.failures import as_model_error, get_error_class
from agentkit.models.locate import locate_block
from agentkit.models.registry import Provider, available_providers
from agentkit.models.stream import ModelStream
from agentkit.replies.error_bodies import Failure
from agentkit.replies.parser import StreamParserBase
from agentkit.tokens.usage_anchored import UsageAnchoredCounter

__all__ = ["ModelCall"]

_STRAY = re.compile(r"no running event loop|different (event )?loop|loop is closed|called from async context")
"""What asyncio, trio and HTTP clients say of connections and locks that a loop before made."""
_OVER = re.compile(r"client has been closed|client is closed|session is closed", re.IGNORECASE)
_ONE_EACH = "Make a client in each event loop, or give none: ChatModel opens its own in each."


@dataclass(slots=True)
class ModelCall:
    """One call: its plan, and how to send it.

    viewer   whose reply it is, in a history of many agents
    budget   its counter is told what the provider counted
    shorter  makes a shorter plan, after an error that says that this one is too long; it is asked once. None: the
             plan stays as it is
    """

    provider: Provider
    model: str
    endpoint: EndpointBase
    plan: Plan
    parameters: Mapping[str, Any] = field(repr=False)  # headers may hold keys
    viewer: str | None = None
    budget: Budget | None = None
    shorter: Callable[[Plan, ContextLengthError], Awaitable[Plan | None]] | None = None

    def parser(self) -> StreamParserBase:
        """A reader for the reply to `plan`."""
        return self._reader(**self._reading())

    @property
    def _reader(self) -> type[StreamParserBase]:
        if self.provider.parser is None:
            raise ProviderError(self.provider.name, "it has no reader of replies", available_providers())
        return self.provider.parser

    def _reading(self) -> dict[str, Any]:
        return {
            "request": self.plan.request,
            "name": self.viewer or "assistant",
            "tool_names": self.plan.tool_names,
            "redact": self.create_redactor(),
        }

    def _outgoing(self, *, stream: bool) -> OutgoingRequest:
        if self.endpoint.closed:
            raise self._closed()
        return self.endpoint.build_request(self.model, self.plan.request, self.parameters, stream=stream)

    async def chunks(self) -> AbstractAsyncContextManager[AsyncIterator[Any]]:
        """The reply to `plan`, not opened yet."""
        return self.endpoint.stream(self._outgoing(stream=True))

    async def whole(self) -> Msg:
        """The reply, whole, if need be to a shorter plan."""
        try:
            return await self._reply()
        except ContextLengthError as error:
            if not await self.replan(error):
                raise
        return await self._reply()

    async def _reply(self) -> Msg:
        outgoing = self._outgoing(stream=False)
        if self.endpoint.requires_stream(outgoing):
            return await self._gathered()
        try:
            answer = await self.endpoint.send(outgoing)
            if isinstance(answer, bytes | str) and not answer.strip():
                raise self._error(Failure("the answer is empty", network=True))
            found = native_to_json(answer)
            failure = self.endpoint.failure_from_reply(found)
            if failure is None:
                return self.settled(self._reader.parse_response(found, **self._reading()))
            ours = self.error_of(failure)
        except Exception as error:
            ours = self.error_of(error)
            if (ours is None or ours is error) and not self.endpoint.requires_stream(outgoing):
                raise
        if self.endpoint.requires_stream(outgoing):  # the error taught it
            return await self._gathered()
        assert ours is not None
        raise ours  # outside the handler, so that an error that shows a key does not become its context

    async def _gathered(self) -> Msg:
        """The whole reply, from a stream. What is cut off is no whole reply."""
        async with ModelStream(self._itself) as stream:
            reply = await stream.finish()
        if reply.finish_reason is FinishReason.INTERRUPTED:
            said = "the stream ended before the reply did"
            raise NetworkError(self.provider.name, said, request_id=stream.request_id)
        return reply

    async def _itself(self) -> ModelCall:
        return self

    def settled(self, msg: Msg) -> Msg:
        """The message as the conversation keeps it."""
        counter, usage = self.budget and self.budget.counter, msg.usage
        if isinstance(counter, UsageAnchoredCounter) and usage and usage.input_tokens:
            counter.anchor(self.plan.request, usage.input_tokens, self.provider)
        return strip_speaker_prefix(msg, self.viewer) if self.viewer else msg

    def error_of(self, error: BaseException | Failure) -> AgentkitError | None:
        """Returns the agentkit error for a failed call, or None if the provider and its SDK did not raise it.

        Neither error shows a credential afterwards. The SDK's error becomes the cause, unless it still shows one.
        """
        redact = self.create_redactor(error)
        if isinstance(error, Failure):
            ours: AgentkitError | None = self._error(error)
            is_clean = True
        else:
            ours = self._known_error(error)
            is_clean = redact_error(error, redact)
            if ours is None and not is_clean:
                ours = ModelError(self.provider.name, f"{type(error).__name__}: {error}")
        if ours is not None and ours is not error:
            redact_error(ours, redact)
            ours.__cause__ = error if isinstance(error, BaseException) and is_clean else None
        return ours

    def create_redactor(self, *more: object) -> Redactor:
        """Returns a function that removes the credentials of the client, the call and its error from a text."""
        return create_redactor(self.endpoint.client, self.parameters, *more)

    def _known_error(self, error: BaseException) -> AgentkitError | None:
        """The error of ours that it is; None for one that is neither the provider's nor the transport's."""
        if isinstance(error, ModelError):
            return error
        if isinstance(error, MessageError):
            return ModelError(self.provider.name, f"an answer that is none: {error.reason}")
        if isinstance(error, TypeError) and "JSON serializable" in str(error):
            return OptionError("parameters", str(error), "Give values that JSON has a word for.")
        if _is_header_error(error):
            reason = "a key or a header has a character that HTTP headers cannot carry"
            return OptionError("client", reason, "Pass the key exactly as the provider shows it.")
        failure, runtime = self.endpoint.failure_from_exception(error), _runtime_error(error)
        if self.endpoint.closed and (runtime or (failure and failure.network)):
            return self._closed()
        if runtime and _OVER.search(str(runtime)):
            said, advice = f"the client is closed ({runtime})", "Keep it open for as long as the model is used."
            return NetworkError(self.provider.name, said, retryable=False, advice=advice)
        if runtime and _STRAY.search(str(runtime)):
            said = f"the client has connections of another event loop ({runtime})"
            return NetworkError(self.provider.name, said, retryable=False, advice=_ONE_EACH)
        if failure and failure.network and _is_address_error(error):
            advice = "Pass a base_url that begins with 'http://' or 'https://'."
            return NetworkError(self.provider.name, failure.message, retryable=False, advice=advice)
        return None if failure is None else self._error(failure)

    def _closed(self) -> ModelError:
        said, advice = "the model was closed during the call", "Close it when its calls are over."
        return NetworkError(self.provider.name, said, retryable=False, advice=advice)

    def _error(self, failure: Failure) -> ModelError:
        patterns = self.provider.error_patterns
        place = self._place(failure) if get_error_class(failure, patterns) is BadRequestError else ""
        return as_model_error(failure, self.provider.name, patterns, place)

    def _place(self, failure: Failure) -> str:
        plan = self.plan
        said = f"{failure.message} {failure.param or ''}"
        return locate_block(said, plan.request, self.provider.layout, plan.ledger.msgs, call_ids=plan.call_ids)

    @property
    def may_replan(self) -> bool:
        """Whether a prompt that is too long will be made shorter."""
        return self.shorter is not None

    async def replan(self, error: ContextLengthError) -> bool:
        """Make `plan` a shorter one, if it may be; whether it was."""
        shorter, self.shorter = self.shorter, None
        plan = await shorter(self.plan, error) if shorter else None
        if plan is None:
            return False
        self.plan = plan
        return True


_ADDRESS_ERRORS = frozenset({"InvalidURL", "NonHttpUrlClientError", "UnsupportedProtocol"})  # httpx, aiohttp


def _is_address_error(error: BaseException | None) -> bool:
    """Returns True if an HTTP client refused the URL, which no retry changes."""
    while error is not None and type(error).__name__ not in _ADDRESS_ERRORS:
        error = error.__cause__ or error.__context__
    return error is not None


def _is_header_error(error: BaseException | None) -> bool:
    """Returns True if an HTTP client refused the value of a header (httpx, aiohttp: UnicodeEncodeError; h11)."""
    while error is not None:
        if isinstance(error, UnicodeEncodeError) or "Illegal header" in str(error):
            return True
        error = error.__cause__
    return False


def _runtime_error(error: BaseException) -> RuntimeError | None:
    """The RuntimeError, and none of its kinds, that an error is, or that an SDK has wrapped in its own."""
    return next((one for one in (error, error.__cause__) if type(one) is RuntimeError), None)
