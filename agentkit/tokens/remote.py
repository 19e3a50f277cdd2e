"""`RemoteTokenCounter`: base class of counters that call a token-counting endpoint of a provider."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import isawaitable
from typing import Any, ClassVar

from agentkit.argument_checks import check_option, check_text
from agentkit.capabilities.wire_layout import WireLayout
from agentkit.credentials.redaction import create_redactor, redact_error
from agentkit.errors import InputError, ModelError, OptionError
from agentkit.json_values import as_object
from agentkit.reprs import shorten_repr
from agentkit.tokens.counters import LocalTokenCounter, TokenCounterBase, count_request
from agentkit.tokens.text_counters import CharacterTokenCounter

__all__ = ["RemoteTokenCounter"]

_LIMIT = 2**53  # in tokens; a larger number cannot be a count
_ADVICE = "Use the counter of the provider that the request is for."


class RemoteTokenCounter(TokenCounterBase):
    """Base class of counters that call a token-counting endpoint of a provider.

    The provider's SDK handles authentication and retries, and raises its usual errors. A subclass for each
    provider implements `count`.

    Attributes:
        call: Bound method of an async client that counts tokens.
        model: Model that the requests are for.
        local: Local counter for individual messages, and for parts of requests that the endpoint does not count.
    """

    deterministic: ClassVar[bool] = True
    layout: ClassVar[WireLayout] = WireLayout()
    """Layout that names the keys of the requests that the endpoint counts."""
    media_tokens: ClassVar[int] = 1_600
    """Assumed number of tokens of a media item that the endpoint does not count."""

    def __init__(self, call: Callable[..., Any], *, model: str, local: LocalTokenCounter | None = None) -> None:
        """Creates the counter.

        Args:
            call: Bound method of an async client, such as `client.messages.count_tokens`.
            model: Model that the requests are for.
            local: Local counter for individual messages, and for parts of requests that the endpoint does not
                count. If None, a `CharacterTokenCounter` is used.

        Raises:
            OptionError: An option has a wrong type.
        """
        if not callable(call):
            reason = f"expected a bound method of a client, got {type(call).__name__}"
            raise OptionError("call", reason, "Pass the method itself, without calling it.")
        check_option("model", model, str)
        check_text("model", model)
        check_option("local", local, LocalTokenCounter | None)
        self.call = call
        self.model = model
        self.local: LocalTokenCounter = CharacterTokenCounter(self.media_tokens) if local is None else local

    @property
    def local_counter(self) -> LocalTokenCounter:
        """The counter `local`, which a budget uses to decide how many messages to omit."""
        return self.local

    def part(self, request: Mapping[str, Any], name: str, advice: str = _ADVICE) -> Any:
        """Returns the value of the key `name`, which the endpoint requires in each request.

        `advice` is the last sentence of the error text if the key is missing.

        Raises:
            InputError: The request does not have the key, probably because the request is for another provider.
        """
        if name not in request:
            keys = shorten_repr(list(request), 80)
            reason = f"{type(self).__name__} expects a request with the key {name!r}, got the keys {keys}"
            raise InputError("request", reason, advice)
        return request[name]

    async def ask(self, *args: Any, **named: Any) -> Any:
        """Passes the arguments to the method `call`. Returns the response of the endpoint.

        Raises:
            OptionError: The method `call` is not asynchronous.
            Exception: Any error of the SDK, with the credentials of the client redacted.
        """
        try:
            result = self.call(*args, **named)
            if isawaitable(result):
                return await result
        except Exception as error:
            redact_error(error, create_redactor(getattr(self.call, "__self__", None), named, error))
            raise
        raise OptionError("call", "the method is not asynchronous", "Pass a method of an async client.")

    def read_count(self, answer: object, name: str) -> int:
        """Returns the number of tokens in the field `name` of the endpoint's response.

        Raises:
            ModelError: The field is missing or is not a number of tokens.
        """
        tokens: object = as_object(answer).get(name, getattr(answer, name, None))
        if isinstance(tokens, int | float) and not isinstance(tokens, bool) and 0 <= tokens < _LIMIT:
            return int(tokens)
        reason = f"the endpoint returned {shorten_repr(tokens, 60)} as {name!r}, expected a number of tokens"
        raise ModelError(type(self).__name__, reason)

    async def estimate(self, parts: Sequence[Any]) -> int:
        """Estimates, with the local counter, the tokens of parts that the endpoint does not count."""
        turn = {self.layout.parts[0]: list(parts)}
        return await self.estimate_request({self.layout.turns: [turn]}) if parts else 0

    async def estimate_request(self, request: Mapping[str, Any]) -> int:
        """Estimates the tokens of a request with the local counter."""
        return await count_request(self.local, request, self.layout)
