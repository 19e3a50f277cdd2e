"""What can go wrong, as one tree.

    AgentkitError
    ├── InputError (ValueError)         a value that the caller gave is refused
    │   ├── MessageError                … in a message, a block, a source or a tool
    │   ├── VersionError                … stored JSON is newer than this agentkit
    │   ├── EmptyConversationError      … there is no message to send
    │   └── OptionError                 … in an option of a formatter, a policy or a budget
    ├── ConversionError                 a formatter's capabilities accept what its converter cannot write
    ├── LossError                       on_loss="raise" and the target cannot carry something
    ├── BudgetError                     nothing legal is small enough for the budget
    ├── ProviderError                   no such provider, or its package does not load
    ├── ModelError                      a call of a model failed; the SDK's own error is its cause
    │   ├── ContextLengthError          … the prompt is too long for the model
    │   ├── RateLimitError              … too many calls or tokens for now, or the quota is used up
    │   ├── OverloadedError             … the provider cannot answer now
    │   ├── AuthError                   … a key, a permission or a payment is refused
    │   ├── BadRequestError             … the provider refuses the request
    │   └── NetworkError                … no answer came
    └── MissingExtraError (ImportError) an optional package is not installed

Each class owns its sentence, keeps the facts as attributes, names the place
(`msgs[3].content[1]`) and ends with what to do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agentkit.reprs import shorten

__all__ = [
    "AgentkitError",
    "AuthError",
    "BadRequestError",
    "BudgetError",
    "ContextLengthError",
    "ConversionError",
    "EmptyConversationError",
    "InputError",
    "LossError",
    "MessageError",
    "MissingExtraError",
    "ModelError",
    "NetworkError",
    "OptionError",
    "OverloadedError",
    "ProviderError",
    "RateLimitError",
    "VersionError",
]


_SENTENCE: Final = 1_500  # characters


class AgentkitError(Exception):
    """Anything that agentkit raises on purpose. A long sentence loses its middle; the attributes lose nothing."""

    def __init__(self, sentence: str = "") -> None:
        super().__init__(shorten(sentence, _SENTENCE))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickles carry the sentence and the facts; the constructors take other arguments."""
        return (_revive, (type(self), str(self), self.__dict__))


def _revive(kind: type[AgentkitError], sentence: str, facts: dict[str, object]) -> AgentkitError:
    error = kind.__new__(kind, sentence)
    error.__dict__.update(facts)
    return error


class InputError(AgentkitError, ValueError):
    """A value that the caller gave is refused before anything is sent."""

    def __init__(self, place: str, reason: str, advice: str) -> None:
        """`place` is where (`msgs[3].content[1]`), `reason` what is wrong, `advice` what to do."""
        self.place = place
        self.reason = reason
        self.advice = advice
        super().__init__(f"{place}: {reason}. {advice}")


class MessageError(InputError):
    """A message, block, source or tool is malformed."""

    def with_prefix(self, place: str) -> MessageError:
        """Returns the same error with `place` before its own place."""
        glue = "" if self.place.startswith("[") or not self.place else "."
        return MessageError(f"{place}{glue}{self.place}", self.reason, self.advice)


class VersionError(InputError):
    """Stored JSON was written by a newer agentkit than this one."""

    def __init__(self, place: str, found: int, supported: int) -> None:
        self.found = found
        self.supported = supported
        super().__init__(
            place,
            f"the data has format version {found}, this agentkit reads up to {supported}",
            "Upgrade agentkit-middleware to read it.",
        )


class EmptyConversationError(InputError):
    """There is no message to build a request from."""

    def __init__(self) -> None:
        super().__init__("msgs", "the conversation has no message", "Pass at least one Msg.")


class OptionError(InputError):
    """An option of a formatter, a history policy, a budget or the command is refused."""


class ConversionError(AgentkitError):
    """A formatter's capabilities accept a block that its converter cannot write: a mistake in the formatter.

    Attributes:
        kind: type of the block, such as `image`.
        place: the part of the request without a form for it, such as `a tool result`.

    """

    def __init__(self, kind: str, place: str) -> None:
        self.kind = kind
        self.place = place
        super().__init__(
            f"{place}: the capabilities accept a block of type {kind!r} here, but the converter cannot write it. "
            "Change the formatter's capabilities, or override convert()."
        )


class LossError(AgentkitError):
    """`on_loss="raise"`, and the target cannot carry what `places` name.

    Attributes: `target`, and `losses`, pairs of place and reason in input order.
    """

    def __init__(self, target: str, losses: Sequence[tuple[str, str]]) -> None:
        self.target = target
        self.losses = tuple(losses)
        self.place, self.reason = self.losses[0]
        more = f" (and {len(self.losses) - 1} more)" if len(self.losses) > 1 else ""
        super().__init__(
            f"{self.place}: {target} would lose this: {self.reason}{more}. "
            'Take it out, choose a target that carries it, or use on_loss="describe".'
        )


class BudgetError(AgentkitError):
    """No legal request fits the budget.

    Attributes: `limit`, what the budget leaves for the prompt, and `needed`, how much it must leave for the same
    call to succeed: the size of the smallest legal request (system prompt, pins and newest unit), both in the
    counter's tokens; `kept`, the places of the messages in that request.
    """

    def __init__(self, limit: int, needed: int, kept: Sequence[str]) -> None:
        self.limit = limit
        self.needed = needed
        self.kept = tuple(kept)
        self.place = self.kept[-1] if self.kept else "msgs"
        super().__init__(
            f"{self.place}: the smallest legal request has {needed} tokens, the budget leaves {limit}. "
            "Raise max_tokens, lower reserve, or shorten or unpin a message that must stay."
        )


class ProviderError(AgentkitError):
    """No provider of that name is installed, or the one found does not load."""

    def __init__(self, name: str, reason: str, available: Sequence[str]) -> None:
        self.name = name
        self.available = tuple(available)
        self.place = "provider"
        end = "" if reason.endswith((".", "?")) else "."
        super().__init__(f"provider {name!r}: {reason}{end} Choose one of: {', '.join(available) or 'none'}.")


class MissingExtraError(AgentkitError, ImportError):
    """An optional package is needed and not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.package = package
        self.extra = extra
        self.place = "environment"
        super().__init__(
            f"{purpose} needs the package {package!r}. Install it with: pip install 'agentkit-middleware[{extra}]'"
        )


class ModelError(AgentkitError):
    """A call of a model failed. The SDK's own error is `__cause__`.

    provider     whose model was called
    provider_message  the provider's own text
    status       the HTTP status, if there was an answer
    code         the provider's own code, if it gave one
    request_id   the provider's name for the call, if it gave one
    retry_after  the seconds after which the provider wants the call again, if it said so
    place        for a request that is refused: our best guess at the block it is about, else ""
    retryable    whether the same call may succeed later (the SDK has done its own retries by then)
    advice       what to do: the class's, unless more is known
    """

    advice = "Read what the provider says."
    retryable = False

    def __init__(
        self,
        provider: str,
        said: str,
        *,
        status: int | None = None,
        code: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        place: str = "",
        retryable: bool | None = None,
        advice: str | None = None,
    ) -> None:
        self.provider = provider
        self.provider_message = said
        self.status = status
        self.code = code
        self.request_id = request_id
        self.retry_after = retry_after
        self.place = place
        if retryable is not None:
            self.retryable = retryable
        if advice is not None:
            self.advice = advice
        where = f"{place}: " if place else ""
        what = " ".join(str(one) for one in (status, code) if one is not None)
        sentence = said.strip() if said.strip()[-1:] in {".", "!", "?"} else f"{said.strip()}."
        super().__init__(f"{where}{provider}{f' ({what})' if what else ''}: {sentence} {self.advice}")


class ContextLengthError(ModelError):
    """The prompt is too long for the model."""

    advice = "Give the model a Budget below its context, or a smaller one."


class RateLimitError(ModelError):
    """Too many calls or tokens for now; or, where `retryable` is False, the account's quota is used up."""

    advice = "Wait as long as it says, and try again."
    retryable = True


class OverloadedError(ModelError):
    """The provider cannot answer now: it is overloaded, or failed by itself."""

    advice = "Try again later."
    retryable = True


class AuthError(ModelError):
    """A key, a permission or a payment is refused."""

    advice = "Check the key, its region, and the account."


class BadRequestError(ModelError):
    """The provider refuses the request. `place` is our best guess at the block that it is about."""

    advice = "Look at `plan.request`, and at the ledger for what became of the block."


class NetworkError(ModelError):
    """No answer came: the connection failed, broke, or took too long."""

    advice = "Check the address and the network."
    retryable = True
