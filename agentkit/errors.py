"""Exceptions of agentkit, as one tree.

    AgentkitError
    ├── InputError (ValueError)         an invalid argument
    │   ├── MessageError                an invalid message, block, source or tool
    │   ├── VersionError                stored JSON whose format version is too new
    │   ├── EmptyConversationError      a conversation without messages
    │   └── OptionError                 an invalid option of a formatter, a policy, a budget or the command
    ├── ConversionError                 a converter cannot write a block that the capabilities accept
    ├── LossError                       the target cannot represent some content (on_loss="raise")
    ├── BudgetError                     the smallest legal request exceeds the budget
    ├── ProviderError                   a provider is missing or does not load
    ├── ModelError                      a model call failed; `__cause__` is the SDK's error
    │   ├── ContextLengthError          the prompt is too long for the model
    │   ├── RateLimitError              too many calls or tokens, or an exhausted quota
    │   ├── OverloadedError             the provider is overloaded or has an internal error
    │   ├── AuthError                   the provider rejects the API key, denies a permission or asks for a payment
    │   ├── BadRequestError             the provider refuses the request
    │   └── NetworkError                no complete response arrived
    ├── ParseError                      a reply does not contain the expected value
    ├── NoAnswerError                   no attempt of `ask` returned a value
    ├── TemplateError                   a template is invalid, or its rendering failed
    ├── TemplateNotFoundError           no template file has the requested name
    └── MissingExtraError (ImportError) an optional package is not installed

Each error text names the place (`msgs[3].content[1]`), says what is wrong, and ends with advice. The values in the
text are also attributes of the error. A text of more than 1,500 characters is shortened. Attributes are never
shortened.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

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
    "NoAnswerError",
    "OptionError",
    "OverloadedError",
    "ParseError",
    "ParseFailure",
    "ProviderError",
    "RateLimitError",
    "TemplateError",
    "TemplateNotFoundError",
    "VersionError",
]

_MAX_TEXT: Final = 1_500  # maximum length of an error text, in characters


class AgentkitError(Exception):
    """Base class of all errors that agentkit raises."""

    def __init__(self, text: str = "") -> None:
        super().__init__(shorten(text, _MAX_TEXT))

    def __reduce__(self) -> tuple[object, ...]:
        """Returns the text and the attributes of the error for pickle.

        By default, pickle would pass the text to the constructor, but most subclasses have other parameters.
        """
        return (_restore, (type(self), str(self), self.__dict__))


def _restore(cls: type[AgentkitError], text: str, attributes: dict[str, object]) -> AgentkitError:
    error = cls.__new__(cls, text)
    error.__dict__.update(attributes)
    return error


class InputError(AgentkitError, ValueError):
    """Invalid argument. agentkit raises this error before it sends a request.

    Attributes:
        place: Place of the argument, such as `msgs[3].content[1]`.
        reason: Description of the problem.
        advice: Sentence that says how to fix the argument.
    """

    def __init__(self, place: str, reason: str, advice: str) -> None:
        self.place = place
        self.reason = reason
        self.advice = advice
        super().__init__(f"{place}: {reason}. {advice}")


class MessageError(InputError):
    """Invalid message, block, source or tool."""

    def with_prefix(self, place: str) -> MessageError:
        """Returns a copy of this error whose attribute `place` begins with the argument `place`."""
        dot = "" if self.place.startswith("[") or not self.place else "."
        return MessageError(f"{place}{dot}{self.place}", self.reason, self.advice)


class VersionError(InputError):
    """Stored JSON whose format version is newer than this version of agentkit supports.

    Attributes:
        version: Format version of the JSON.
        supported: Newest format version that this version of agentkit can load.
    """

    def __init__(self, place: str, version: int, supported: int) -> None:
        self.version = version
        self.supported = supported
        reason = f"expected a format version of at most {supported}, got {version}"
        super().__init__(place, reason, "Upgrade agentkit-middleware.")


class EmptyConversationError(InputError):
    """Conversation without messages, for which no request can be built."""

    def __init__(self) -> None:
        super().__init__("msgs", "the conversation has no messages", "Pass at least one Msg.")


class OptionError(InputError):
    """Invalid option of a formatter, a history policy, a budget or the command `agentkit`."""


class ConversionError(AgentkitError):
    """The method `convert` of a formatter cannot write a block that the formatter's capabilities accept.

    The cause is a bug in the formatter.

    Attributes:
        block_type: Type of the block, such as `image`.
        place: Part of the request that cannot contain the block, such as `tool result`.
    """

    def __init__(self, block_type: str, place: str) -> None:
        self.block_type = block_type
        self.place = place
        super().__init__(
            f"{place}: the capabilities accept a block of type {block_type!r} here, but the converter cannot "
            "write the block. Change the capabilities of the formatter, or override convert()."
        )


class LossError(AgentkitError):
    """The target cannot represent some content, and the formatter has `on_loss="raise"`.

    Attributes:
        target: Name of the target.
        losses: Pairs `(place, reason)` in input order, one for each loss.
        place: Place of the first loss.
        reason: Reason for the first loss.
    """

    def __init__(self, target: str, losses: Sequence[tuple[str, str]]) -> None:
        self.target = target
        self.losses = tuple(losses)
        self.place, self.reason = self.losses[0]
        more = f" (and {len(self.losses) - 1} more)" if len(self.losses) > 1 else ""
        super().__init__(
            f"{self.place}: {target} cannot represent this content: {self.reason}{more}. "
            'Remove the content, use another target, or pass on_loss="describe".'
        )


class BudgetError(AgentkitError):
    """The smallest legal request exceeds the budget.

    The smallest legal request contains the system prompt, the pinned messages, the last message, and any other
    message that the budget must keep. If one of these messages has tool results, the request also contains the
    matching tool calls and all their results.

    Attributes:
        limit: Maximum size of the prompt in tokens: the budget's `max_tokens` minus `reserve`.
        needed: Size of the smallest legal request in tokens. With a limit of this size, no error occurs.
        required: Places of the messages that the smallest legal request contains.
        place: Last place in `required`, or `msgs` if `required` is empty.
    """

    def __init__(self, limit: int, needed: int, required: Sequence[str]) -> None:
        self.limit = limit
        self.needed = needed
        self.required = tuple(required)
        self.place = self.required[-1] if self.required else "msgs"
        super().__init__(
            f"{self.place}: the smallest legal request has {needed} tokens, but the budget has only {limit} for "
            "the prompt. Raise max_tokens, lower reserve, or shorten or unpin a message that cannot be dropped."
        )


class ProviderError(AgentkitError):
    """No provider with the requested name is installed, or the provider fails to load.

    Attributes:
        name: Name of the provider that was requested.
        available: Names of the installed providers.
    """

    def __init__(self, name: str, reason: str, available: Sequence[str]) -> None:
        self.name = name
        self.available = tuple(available)
        self.place = "provider"
        end = "" if reason.endswith((".", "?")) else "."
        advice = f"Use one of: {', '.join(available)}." if available else "Install a package with a provider."
        super().__init__(f"provider {name!r}: {reason}{end} {advice}")


class MissingExtraError(AgentkitError, ImportError):
    """An optional package is not installed.

    Attributes:
        package: Name of the package.
        extra: Name of the extra of `agentkit-middleware` that installs the package.
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.package = package
        self.extra = extra
        self.place = "environment"
        super().__init__(
            f"{purpose} needs the package {package!r}. Install it with: pip install 'agentkit-middleware[{extra}]'"
        )


ParseFailure: TypeAlias = Literal["no_structure", "wrong_value", "cut_off", "refused", "filtered"]
"""Kind of a `ParseError`. The attribute `ParseError.failure` describes the values."""

_PARSE_ADVICE: Final[dict[ParseFailure, str]] = {
    "no_structure": "Ask the model again, or state the expected format in the prompt.",
    "wrong_value": "Ask the model again, with this error as feedback.",
    "cut_off": "Raise max_tokens, or ask for a shorter reply.",
    "refused": "Change the request, or use another model.",
    "filtered": "Change the request, or use another model.",
}


class ParseError(AgentkitError):
    """A reply does not contain the expected value. A parser may also return this error instead of raising it.

    Attributes:
        description: Description of the problem.
        failure: `no_structure` if the reply lacks the expected format or a field. `wrong_value` if a value is
            invalid. `cut_off`, `refused` or `filtered` if the reply ended early.
        label: Short name of the error, for the application.
        meta: JSON values for the application. None if there are no values.
        place: Field and path of the invalid value, such as `score` or `answer.items[2]`. `reply` for the complete
            reply.
        text: Text from which the value was to be parsed.
        partial: Maps the names of fields to the values that were parsed before the error.
        message: The reply, a `Msg`. None if only a text was parsed.
    """

    def __init__(
        self,
        description: str = "",
        *,
        failure: ParseFailure = "wrong_value",
        label: str = "parse_error",
        meta: Mapping[str, Any] | None = None,
        place: str = "reply",
        text: str = "",
        partial: Mapping[str, Any] | None = None,
        message: Any = None,
    ) -> None:
        self.description = description
        self.failure: ParseFailure = failure
        self.label = label
        self.meta = meta
        self.place = place
        self.text = text
        self.partial = dict(partial or {})
        self.message = message
        reason = (description or label).rstrip(".")
        super().__init__(f"{place}: {reason}. {_PARSE_ADVICE[failure]}")


class NoAnswerError(AgentkitError):
    """No attempt of `ask` returned a value. `__cause__` is the error of the last attempt.

    Attributes:
        attempts: The attempts in order. Each attempt has its messages, its reply and its error.
        place: Always `reply`.
    """

    def __init__(self, attempts: Sequence[Any], error: ParseError) -> None:
        self.attempts = tuple(attempts)
        self.place = "reply"
        count = len(self.attempts)
        tries = "1 attempt" if count == 1 else f"{count} attempts"
        reason = (error.description or error.label).rstrip(".")
        super().__init__(
            f"reply: no value after {tries}: {error.place}: {reason}. Raise `retries`, or use another model."
        )


class TemplateError(AgentkitError):
    """A template is invalid, or its rendering failed. `__cause__` is the error of the template engine.

    Attributes:
        name: Name of the template, such as `Judge.system.jinja`.
        reason: Description of the problem.
        place: Name of the template, and the line if it is known.
    """

    def __init__(self, name: str, reason: str, line: int | None = None) -> None:
        self.name = name
        self.reason = reason
        self.place = name if line is None else f"{name}, line {line}"
        advice = "Fix the template, or pass other messages or variables."
        super().__init__(f"{self.place}: {reason.rstrip('.')}. {advice}")


class TemplateNotFoundError(AgentkitError):
    """No template file has the requested name.

    Attributes:
        file: Name of the file, such as `Judge.system.jinja`.
        folders: Folders that were searched.
        place: Name of the file.
    """

    def __init__(self, file: str, folders: Sequence[str] = ()) -> None:
        self.file = file
        self.folders = tuple(folders)
        self.place = file
        searched = f" in {', '.join(self.folders)}" if folders else ""
        super().__init__(f"{file}: no such template{searched}. Create the file, or pass a default text.")


class ModelError(AgentkitError):
    """A model call failed. `__cause__` is the SDK's error, if there is one.

    Attributes:
        provider: Name of the provider.
        provider_message: Error text from the provider.
        status: HTTP status. None if no response arrived.
        code: Error code from the provider. None if the provider sent no code.
        request_id: Provider's id for the request. None if unknown.
        retry_after: Seconds to wait before the next attempt. None if the provider states no time.
        place: Probable place of the block that the provider refuses. Empty if unknown.
        retryable: True if the same call may succeed later. The error is raised only after the SDK's own retries.
        advice: Sentence that says how to fix the problem.
    """

    advice = "Check the error text of the provider."
    retryable = False

    def __init__(
        self,
        provider: str,
        provider_message: str,
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
        self.provider_message = provider_message
        self.status = status
        self.code = code
        self.request_id = request_id
        self.retry_after = retry_after
        self.place = place
        if retryable is not None:
            self.retryable = retryable
        if advice is not None:
            self.advice = advice
        prefix = f"{place} (probable place): " if place else ""
        codes = " ".join(str(item) for item in (status, code) if item is not None)
        text = provider_message.strip()
        sentence = text if text.endswith((".", "!", "?")) else f"{text}."
        super().__init__(f"{prefix}{provider}{f' ({codes})' if codes else ''}: {sentence} {self.advice}")


class ContextLengthError(ModelError):
    """The prompt is too long for the model."""

    advice = "Pass a Budget below the context length of the model, or use a model with a longer context."


class RateLimitError(ModelError):
    """Too many calls or tokens in a short time. If `retryable` is False, a quota is exhausted."""

    advice = "Wait before the next call, or raise the limit of the account."
    retryable = True


class OverloadedError(ModelError):
    """The provider is overloaded, or has an internal error."""

    advice = "Retry later."
    retryable = True


class AuthError(ModelError):
    """The provider rejects the API key, denies a permission, or asks for a payment."""

    advice = "Check the API key, its region, and the account."


class BadRequestError(ModelError):
    """The provider refuses the request. `place` is the probable place of the refused block."""

    advice = "Check `plan.request`, and the entry of the refused block in `plan.ledger`."


class NetworkError(ModelError):
    """No complete response arrived, because the connection failed, broke or timed out."""

    advice = "Check the base URL and the network connection."
    retryable = True
