"""Counting by a provider's endpoint: what its counters share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import isawaitable
from typing import Any, ClassVar

from agentkit.argument_checks import check_option, check_text
from agentkit.capabilities.wire_layout import WireLayout
from agentkit.credentials.redaction import create_redactor, redact_error
from agentkit.errors import InputError, ModelError, OptionError
from agentkit.json_values import as_object
from agentkit.tokens.counters import CharacterTokenCounter, LocalTokenCounter, TokenCounterBase, count_request

__all__ = ["RemoteTokenCounter"]

_MOST = 2**53  # tokens


class RemoteTokenCounter(TokenCounterBase):
    """A counter that asks an endpoint through the SDK: auth, retries and errors stay the SDK's.

    call    the bound method of an async client that counts
    model   the model that the request is for
    local   who estimates what the endpoint refuses, and places cuts; by default an estimate by characters

    A provider's class gives `count`.
    """

    deterministic: ClassVar[bool] = True
    layout: ClassVar[WireLayout] = WireLayout()
    """Keys of the requests that the endpoint counts."""
    media_tokens: ClassVar[int] = 1_600
    """What a medium is taken to cost where the endpoint does not count it."""

    def __init__(self, call: Callable[..., Any], *, model: str, local: LocalTokenCounter | None = None) -> None:
        if not callable(call):
            reason = f"expected a client's bound method, got {type(call).__name__}"
            raise OptionError("call", reason, "Pass the method itself, without calling it.")
        check_option("model", model, str)
        check_text("model", model)
        check_option("local", local, LocalTokenCounter | None)
        self.call = call
        self.model = model
        self.local: LocalTokenCounter = CharacterTokenCounter(self.media_tokens) if local is None else local

    @property
    def local_counter(self) -> LocalTokenCounter:
        """The local counter."""
        return self.local

    def part(self, request: Mapping[str, Any], name: str) -> Any:
        """What the endpoint cannot do without. Raises InputError for a request of another wire."""
        if name not in request:
            reason = f"it has no {name}: it is no request that {type(self).__name__} counts"
            raise InputError("request", reason, "Count it with the counter of the provider that it is for.")
        return request[name]

    async def ask(self, *args: Any, **named: Any) -> Any:
        """What the endpoint answers. The SDK's errors are raised without the credentials of its client."""
        try:
            found = self.call(*args, **named)
            if isawaitable(found):
                return await found
        except Exception as error:
            redact_error(error, create_redactor(getattr(self.call, "__self__", None), named, error))
            raise
        raise OptionError("call", "it is not asynchronous", "Pass the method of the async client.")

    def read_count(self, answer: object, name: str) -> int:
        """Returns the number of tokens that an answer has under a name. Raises ModelError for anything else."""
        found: object = as_object(answer).get(name, getattr(answer, name, None))
        if isinstance(found, int | float) and not isinstance(found, bool) and 0 <= found < _MOST:
            return int(found)
        said = f"the endpoint sent {type(found).__name__} in the place of a number of tokens, {name!r}"
        raise ModelError(type(self).__name__, said)

    async def estimate(self, parts: Sequence[Any]) -> int:
        """What parts that were not sent cost, by the local counter."""
        return (
            await self.estimate_request({self.layout.turns: [{self.layout.parts[0]: list(parts)}]}) if parts else 0
        )

    async def estimate_request(self, request: Mapping[str, Any]) -> int:
        """Returns what a part of a request costs, by the local counter."""
        return await count_request(self.local, request, self.layout)
