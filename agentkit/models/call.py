"""`ModelCall`, which sends one request to a model, parses the reply, and converts errors of the SDK."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agentkit.budget.budget import Budget
from agentkit.credentials.redaction import create_redactor, redact_error
from agentkit.errors import (
    AgentkitError,
    BadRequestError,
    ContextLengthError,
    MessageError,
    ModelError,
    OptionError,
    ProviderError,
)
from agentkit.formatting.formatter import FormatterBase
from agentkit.history.speaker_prefix import strip_speaker_prefix
from agentkit.json_values import native_to_json
from agentkit.ledger.plan import Plan
from agentkit.messages.message import Msg
from agentkit.models.client_errors import create_closed_error, find_client_error
from agentkit.models.context_length_retry import ContextLengthRetry
from agentkit.models.endpoint import EndpointBase, OutgoingRequest
from agentkit.models.error_location import locate_block
from agentkit.models.failures import as_model_error, get_error_class
from agentkit.models.registry import Provider, available_providers
from agentkit.replies.error_bodies import Failure
from agentkit.replies.parser import StreamParserBase
from agentkit.tokens.usage_anchored import UsageAnchoredCounter

__all__ = ["ModelCall"]


@dataclass(slots=True)
class ModelCall:
    """One model call, with all values needed to send the planned request and to parse the reply.

    Attributes:
        provider: Provider of the model.
        model: Name of the model.
        endpoint: Endpoint that sends the request.
        plan: Plan of the request. `replan` replaces the plan.
        parameters: Parameters under the provider's own names, and HTTP options such as `timeout`.
        viewer: Name of the agent for which the model replies. None if the history policy has no viewer.
        budget: Budget of the plan. If its counter is a `UsageAnchoredCounter`, the counter receives the token
            usage of the reply. None without a budget.
        retry: Retry with a shorter prompt. `replan` uses this retry at most once. None if the plan is never
            shortened.
        formatter: Formatter that built the plan. It can add options for the parser. None: no options are added.

    """

    provider: Provider
    model: str
    endpoint: EndpointBase
    plan: Plan
    parameters: Mapping[str, Any] = field(repr=False)  # may contain API keys
    viewer: str | None = None
    budget: Budget | None = None
    retry: ContextLengthRetry | None = None
    formatter: FormatterBase | None = None

    def create_parser(self) -> StreamParserBase:
        """Returns a parser for the streamed reply."""
        return self._parser_class(**self._parser_options())

    def finish_message(self, msg: Msg) -> Msg:
        """Returns the reply without the viewer's name (`NAME:`) at the start of the text.

        Passes the token usage of the reply to the budget's counter, if the counter is a `UsageAnchoredCounter`.
        """
        counter, usage = self.budget and self.budget.counter, msg.usage
        if isinstance(counter, UsageAnchoredCounter) and usage and usage.input_tokens:
            counter.anchor(self.plan.request, usage.input_tokens, self.provider)
        return strip_speaker_prefix(msg, self.viewer) if self.viewer else msg

    def as_agentkit_error(
        self, error: BaseException | Failure, request_id: str | None = None
    ) -> AgentkitError | None:
        """Returns the agentkit error for a failed call, or None if neither the provider nor its SDK failed.

        Credentials are removed from the texts of `error` and of the agentkit error. `error` becomes the
        `__cause__` of the agentkit error, unless a credential cannot be removed from `error`. A ModelError without
        a request id gets `request_id`.
        """
        redact = create_redactor(self.endpoint.client, self.parameters, error)
        if isinstance(error, Failure):
            raised: AgentkitError | None = self._as_model_error(error)
            is_clean = True
        else:
            raised = self._classify(error)
            is_clean = redact_error(error, redact)
            if raised is None and not is_clean:
                raised = ModelError(self.provider.name, f"{type(error).__name__}: {error}")
        if raised is not None and raised is not error:
            if isinstance(raised, ModelError):
                raised.request_id = raised.request_id or request_id
            redact_error(raised, redact)
            raised.__cause__ = error if isinstance(error, BaseException) and is_clean else None
        return raised

    async def replan(self, error: ContextLengthError) -> bool:
        """Replaces the plan with a shorter plan. Returns False if `retry` is None, or if no shorter plan fits."""
        retry, self.retry = self.retry, None
        plan = await retry.shorten(self.plan, error) if retry else None
        if plan is None:
            return False
        self.plan = plan
        return True

    @property
    def _parser_class(self) -> type[StreamParserBase]:
        if self.provider.parser is None:
            raise ProviderError(self.provider.name, "the package has no parser for replies", available_providers())
        return self.provider.parser

    def _parser_options(self) -> dict[str, Any]:
        return {
            "request": self.plan.request,
            "name": self.viewer or "assistant",
            "tool_names": self.plan.tool_names,
            "redact": create_redactor(self.endpoint.client, self.parameters),
            **({} if self.formatter is None else self.formatter.get_parser_options(self.plan)),
        }

    def build_request(self, *, stream: bool) -> OutgoingRequest:
        """Returns the finished request of the plan. Raises NetworkError if the client was closed."""
        if self.endpoint.closed:
            raise create_closed_error(self.provider.name)
        return self.endpoint.build_request(self.model, self.plan.request, self.parameters, stream=stream)

    async def send(self, outgoing: OutgoingRequest) -> Msg:
        """Sends a request for a complete reply, and returns the reply as a message for the conversation.

        Raises:
            ModelError: If the reply is empty, or reports an error.
        """
        answer = await self.endpoint.send(outgoing)
        if isinstance(answer, bytes | str) and not answer.strip():
            raise self._as_model_error(Failure("the reply is empty", network=True))
        reply = native_to_json(answer)
        failure = self.endpoint.failure_from_reply(reply)
        if failure is not None:
            raise self._as_model_error(failure)
        return self.finish_message(self._parser_class.parse_response(reply, **self._parser_options()))

    def _classify(self, error: BaseException) -> AgentkitError | None:
        """Returns the agentkit error for an exception of the provider or its SDK, otherwise None."""
        if isinstance(error, ModelError):
            return error
        if isinstance(error, MessageError):
            return ModelError(self.provider.name, f"unreadable reply: {error.reason}")
        if isinstance(error, TypeError) and "JSON serializable" in str(error):
            return OptionError("parameters", str(error), "Pass JSON values.")
        failure = self.endpoint.failure_from_exception(error)
        client_error = find_client_error(error, failure, self.provider.name, closed=self.endpoint.closed)
        return client_error or (None if failure is None else self._as_model_error(failure))

    def _as_model_error(self, failure: Failure) -> ModelError:
        patterns = self.provider.error_patterns
        is_refusal = get_error_class(failure, patterns) is BadRequestError
        return as_model_error(failure, self.provider.name, patterns, self._locate(failure) if is_refusal else "")

    def _locate(self, failure: Failure) -> str:
        plan = self.plan
        text = f"{failure.message} {failure.param or ''}"
        return locate_block(text, plan.request, self.provider.layout, plan.ledger.msgs, call_ids=plan.call_ids)
