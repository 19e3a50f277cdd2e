"""What an SDK's error says, and which of our errors it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from time import time
from typing import Any, cast

from pydantic_core import to_json

from agentkit.errors import (
    AuthError,
    BadRequestError,
    ContextLengthError,
    ModelError,
    NetworkError,
    OverloadedError,
    RateLimitError,
)
from agentkit.json_values import text_of
from agentkit.reprs import bounded_repr

__all__ = ["Failure", "failure_in", "request_id_in", "retry_after", "room_in"]

# The sentences and codes of the providers' own documents and of recorded answers; none is a contract. A code says
# more than a sentence, which may quote the request: what stands in quotation marks is never looked at.
_TOO_LONG_CODE = r"context_(length|window|size)|input_too_long|prompt_too_long"
_TOO_LONG = (
    r"maximum context length is|context length is only|longer than the maximum model length"
    r"|exceed(s|ed|ing)? ([\w']+ ){0,3}context[ _](window|length|limit|size)"
    r"|Range of input length should be|input is too long|prompt is too long"
    r"|exceeds? the maximum number of tokens|input token count"
    r"|longer than the model's context length|exceeds the maximum allowed length"  # SGLang
    r"|too long to fit into the model|`inputs` tokens \+ `max_new_tokens` must be"  # vLLM of old; TGI
)
_NOT_TOO_LONG = r"_above_max_length|Range of max_tokens|max_(completion_|output_)?tokens\W+is too large"
_OF_A_PART = (  # a code that says which part of the request is wrong: its size is no matter
    r"(?!invalid_(request|parameter|argument|params)(_error)?$)"
    r"(invalid|unsupported|empty|missing|unknown|string|array|integer|image|file|model)_\w+"
)
_NO_QUOTA = r"insufficient_quota|spend_limit|billing|Arrearage|AllocationQuota"
_NO_QUOTA_SAID = r"insufficient_quota|spend limit|exceeded your current quota"
_NO_KEY = (
    r"API_KEY_INVALID|InvalidApiKey|invalid_api_key|Arrearage|authentication_error"
    r"|permission_error|billing_error|UNAUTHENTICATED|PERMISSION_DENIED|AccessDenied"
    r"|ExpiredToken|UnrecognizedClient|(Invalid|Incomplete)Signature|InvalidClientTokenId"  # AWS: common errors
)
_NO_KEY_SAID = r"api[ _]?key not valid|credit balance is too low"
_BUSY = (
    r"overloaded|UNAVAILABLE|server_error|insufficient_system_resource|InternalError\b|\bapi_error|timeout_error"
    r"|DEADLINE_EXCEEDED|InternalServer|Model(Stream)?Error|ModelTimeout"  # AWS: ResponseStream
    r"|\bRequestTimeOut|\bSystemError"  # DashScope: error codes
)
_LIMITED = r"rate_limit|insufficient_quota|RESOURCE_EXHAUSTED|Throttling|ModelNotReady"
_REFUSED = (
    r"invalid_request_error|INVALID_ARGUMENT|InvalidParameter|DataInspectionFailed|data_inspection_failed"
    r"|invalid_prompt|ValidationException|ResourceNotFound|\b(invalid|unsupported|empty)_(image|base64|value|parameter)"
)
_TEMPLATE = (  # refusals of chat templates, as llama.cpp and vLLM pass them on, with status 400 or 500
    r"Jinja Exception|raise_exception|TemplateError|roles must alternate|only supports single tool-calls"
    r"|Tool call IDs should be|System role (is )?not supported|Only [\w, ]*\buser\b[\w, ]* roles are supported"
)
_TEMPLATE_ADVICE = (
    "The chat template of the model refuses the request. Pass model_rules=ModelRules(…) to declare what the "
    "template takes: system_role, tool_role, parallel_tool_calls, images, alternating_turns, call_ids."
)
_QUOTED = r"(?<!\w)'[^']*'(?!\w)|\"[^\"]*\"|“[^”]*”"
_UNSAID = (None, 200)  # an error within a stream, or within an answer that calls itself good
_LONGEST_WAIT = 1e9  # seconds
_READ = 4_000
"""Characters of an error that are searched: the patterns take quadratic time on a text that is made for that."""
_MOST_DIGITS = 12  # of a number of tokens
_AGAIN = frozenset({408, 409, 424, 425})  # what every SDK tries again; 424 is a model of Bedrock's that failed


@dataclass(frozen=True, slots=True)
class Failure:
    """What is known of a call that failed.

    said         the provider's text, or the transport's
    status       the HTTP status; None where there was no answer, or the error came within a stream
    code         the provider's own code or type
    request_id   the provider's name for the call
    retry_after  seconds
    network      whether no answer came at all
    param        the part of the request that the provider names
    advice       what to do, where more is known than the kind of error tells
    """

    said: str
    status: int | None = None
    code: str | None = None
    request_id: str | None = None
    retry_after: float | None = None
    network: bool = False
    param: str | None = None
    advice: str | None = None

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        """Whatever a body had in these places, they are texts that UTF-8 can carry, numbers in range, or None."""
        object.__setattr__(self, "said", _told(self.said) or "")
        for name in ("code", "request_id", "param"):
            object.__setattr__(self, name, _told(getattr(self, name)))
        if type(self.status) is not int or not 100 <= self.status < 1_000:
            object.__setattr__(self, "status", None)
        if self.retry_after is not None and not 0 <= self.retry_after < _LONGEST_WAIT:
            object.__setattr__(self, "retry_after", None)

    def error(self, provider: str, place: str = "") -> ModelError:
        """The error of ours that it is."""
        kind = self.kind
        return kind(
            provider,
            self.said or "no reason is given",
            status=self.status,
            code=self.code,
            request_id=self.request_id,
            retry_after=self.retry_after,
            place=place if kind is BadRequestError else "",
            retryable=False if kind is RateLimitError and self._is_quota else None,
            advice=self.advice or (_TEMPLATE_ADVICE if self._is_refused_by_template else None),
        )

    @property
    def kind(self) -> type[ModelError]:
        """Its class. The code counts before the status, and the text where both say too little."""
        if self.network:
            return NetworkError
        status = self.status
        if status in _UNSAID and re.fullmatch(r"[45]\d\d", self.code or ""):
            status = int(self.code or 0)  # a status is the code of some
        if status in (*_UNSAID, 400, 413, 422, 500) and self._is_too_long:
            return ContextLengthError
        if self._is_refused_by_template:
            return BadRequestError
        if status in _UNSAID:
            return _kind_by_words(self.code or self._plain)
        return _kind_by_status(status or 0, self.code or "", self._plain)

    @property
    def _plain(self) -> str:
        """What is said, but for what it quotes."""
        return re.sub(_QUOTED, "…", self.said[:_READ])

    @property
    def _is_too_long(self) -> bool:
        code = self.code or ""
        if _says(_TOO_LONG_CODE, code):
            return True
        of_a_part = re.fullmatch(_OF_A_PART, code, re.IGNORECASE) is not None
        if of_a_part or _says(_NOT_TOO_LONG, f"{code} {self.said[:_READ]}"):
            return False
        return _says(_TOO_LONG, self._plain)

    @property
    def _is_refused_by_template(self) -> bool:
        """True if the chat template of a local model refuses the request, which no retry changes."""
        return self.status in (*_UNSAID, 400, 422, 500) and _says(_TEMPLATE, self._plain)

    @property
    def _is_quota(self) -> bool:
        """Whether a quota is used up that no waiting fills. Who says how long to wait means another."""
        if self.code is not None:
            return _says(_NO_QUOTA, self.code)
        return self.retry_after is None and _says(_NO_QUOTA_SAID, self._plain)


def _says(pattern: str, text: str) -> bool:
    """Whether a text has one of these words. Compiled when first asked: most programs never meet an error."""
    return re.search(pattern, text, re.IGNORECASE) is not None


def _kind_by_words(words: str) -> type[ModelError]:
    rules: tuple[tuple[str, type[ModelError]], ...] = (
        (_NO_KEY, AuthError),
        (_LIMITED, RateLimitError),
        (_BUSY, OverloadedError),
        (_REFUSED, BadRequestError),
    )
    return next((kind for pattern, kind in rules if _says(pattern, words)), ModelError)


def _kind_by_status(status: int, code: str, said: str) -> type[ModelError]:
    if status in (401, 402, 403) or (status == 400 and (_says(_NO_KEY, code) or _says(_NO_KEY_SAID, said))):
        return AuthError
    if status == 429:
        return RateLimitError
    if status >= 500 or status in _AGAIN:
        return OverloadedError
    return BadRequestError if 400 <= status < 500 else ModelError


def retry_after(headers: Mapping[str, Any] | None) -> float | None:
    """The seconds that headers ask to wait: `retry-after-ms`, or `retry-after`, which may be a date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        said = (headers or {}).get(name)
        if not said:
            continue
        try:
            found = float(said)
        except (TypeError, ValueError):
            found = _until(str(said))
        if 0 <= found / unit < _LONGEST_WAIT:
            return found / unit
    return None


_REQUEST_IDS = (  # by its provider's documents or its SDK's source
    "request-id",  # Anthropic
    "x-request-id",  # OpenAI, and most servers of its shape
    "x-amzn-requestid",  # Bedrock
    "x-dashscope-request-id",
    "apim-request-id",  # Azure
    "x-ms-request-id",
    "x-goog-request-id",
)


def request_id_in(headers: Mapping[str, Any] | None) -> str | None:
    """The provider's name for the call, which stands in a header of any answer. Header names in lower case."""
    found = ((headers or {}).get(name) for name in _REQUEST_IDS)
    return next((str(name) for name in found if name), None)


def _told(found: object) -> str | None:
    """A text of a body's; a number, or anything else, as the text that it is in JSON."""
    if found is None or isinstance(found, str):
        return text_of(found) or None
    return to_json(found, fallback=str, inf_nan_mode="constants").decode()


def _until(date: str) -> float:
    """The seconds until a date of HTTP's; less than none for what is no date."""
    from email.utils import parsedate_to_datetime  # of the size of all the rest here, and hardly ever asked

    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time())
    except (TypeError, ValueError):
        return -1.0


def failure_in(body: object, status: int | None = None) -> Failure | None:
    """The error in a body, in any of the providers' forms; None for a body that says none.

    `{"error": {message, code | type | status, param}}`, also behind `"type": "error"` or in a list;
    `{"error": text}`; `{"code", "message", "request_id"}`; `{"message"}` alone where the status is an error's.
    """
    if isinstance(body, list) and len(cast("list[Any]", body)) == 1:
        body = cast("list[Any]", body)[0]
    if not isinstance(body, dict):
        return None
    found = cast("dict[str, Any]", body)
    inner = found.get("error")
    if isinstance(inner, str) and inner:
        return Failure(inner, status, request_id=_text(found, "request_id"))
    if isinstance(inner, dict) and inner:
        return _failure_of(cast("dict[str, Any]", inner), found, status)
    message = found.get("message")
    told = found.get("code") or "type" in found or (status or 0) >= 400
    if isinstance(message, str) and (message or found.get("code")) and told:
        return _failure_of(found, found, status)
    return None


def _failure_of(error: dict[str, Any], around: dict[str, Any], status: int | None) -> Failure:
    number = error.get("code")
    if status is None and isinstance(number, int) and 400 <= number < 600:
        status = number  # vLLM's and Google's codes are the HTTP status
    names = (number if isinstance(number, str) else None, error.get("type"), error.get("status"))
    code = next((name for name in names if isinstance(name, str) and name), None)
    said = _text(error, "message") or code or ""
    request_id = _text(around, "request_id")
    return Failure(said, status, code, request_id, param=_text(error, "param"))


def _text(found: Mapping[str, Any], name: str) -> str | None:
    item = found.get(name)
    return item if isinstance(item, str) and item else None


# How much of a context there is, and how much a request took: (the room, what was found), by name in a pattern.
_SIZES = (
    # vLLM: the reply's own limit is part of it
    r"maximum context length is (?P<room>\d+) tokens.*?requested (?P<reply>\d+) output tokens"
    r".*?(?P<found>\d+) input tokens",
    # OpenAI of old and DeepSeek: "(A in the messages, B in the completion)"
    r"maximum context length is (?P<room>\d+) tokens.*?\((?P<found>\d+) in the messages, "
    r"(?P<reply>\d+) in the completion\)",
    r"maximum context length is (?P<room>\d+) tokens"
    r"(?:.*?(?:resulted in|requested|request has) (?P<found>\d+))?",
    r"passed (?P<found>\d+) input tokens.*?maximum input length of (?P<room>\d+) tokens",
    r"\(length (?P<found>\d+)\) is longer than the maximum model length of (?P<room>\d+)",
    r"prompt is too long: (?P<found>\d+) tokens > (?P<room>\d+)",
    r"exceed context limit: (?P<found>\d+) \+ (?P<reply>\d+) > (?P<room>\d+)",
    r"input token count \((?P<found>\d+)\) exceeds .*?\((?P<room>\d+)\)",
    r"Range of input length should be \[\d+, ?(?P<room>\d+)\]",
    r"\((?P<found>\d+) tokens\) exceeds the available context size \((?P<room>\d+) tokens\)",  # llama.cpp
    # SGLang, with "longer than the model's context length" too
    r"input( length)? \((?P<found>\d+) tokens\) (is longer|exceeds) [^()]*length \((?P<room>\d+) tokens\)",
    r"total length (?P<found>\d+)\) is too long [^()]*\(context length (?P<room>\d+)\)",  # vLLM of old
    # text-generation-inference
    r"`max_new_tokens` must be <= (?P<room>\d+)\. Given: (?P<found>\d+) `inputs` tokens and (?P<reply>\d+)",
)


def room_in(said: str) -> tuple[int, int | None] | None:
    """The tokens that a prompt may have, and how many it had, as the text of an overflow tells.

    >>> room_in("prompt is too long: 210000 tokens > 200000 maximum")
    (200000, 210000)
    """
    said = re.sub(r"(?<=\d),(?=\d{3}\b)", "", said[:_READ])
    for pattern in _SIZES:
        match = re.search(pattern, said, re.IGNORECASE | re.DOTALL)
        if match:
            sizes = {name: int(number[:_MOST_DIGITS]) for name, number in match.groupdict().items() if number}
            room = sizes["room"] - sizes.get("reply", 0)
            return (room, sizes.get("found")) if room > 0 else None
    return None
