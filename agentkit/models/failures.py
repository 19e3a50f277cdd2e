"""Model errors: which error class a failure belongs to, and what response headers and overflow texts say."""

from __future__ import annotations

import re
from collections.abc import Mapping
from time import time
from typing import Any

from agentkit.errors import (
    AuthError,
    BadRequestError,
    ContextLengthError,
    ModelError,
    NetworkError,
    OverloadedError,
    RateLimitError,
)
from agentkit.replies.error_bodies import LONGEST_WAIT, Failure

__all__ = ["as_model_error", "find_request_id", "get_error_class", "parse_context_limit", "parse_retry_after"]

# The sentences and codes of the providers' own documents and of recorded answers; none is a contract. A code says
# more than a sentence, which may quote the request: what stands in quotation marks is never looked at.
_TOO_LONG_CODE = r"context_(length|window|size)|input_too_long|prompt_too_long"
_TOO_LONG = (
    r"maximum context length is|context length is only|longer than the maximum model length"
    r"|exceed(s|ed|ing)? ([\w']+ ){0,3}context[ _](window|length|limit|size)"
    r"|Range of input length should be|input is too long|prompt is too long"
    r"|exceeds? the maximum number of tokens|input token count"
    r"|longer than the model's context length|exceeds the maximum allowed length"  # SGLang
    r"|too large for model with \d+ maximum context length"  # Mistral
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
_READ = 4_000
"""Characters of an error that are searched: the patterns take quadratic time on a text that is made for that."""
_MOST_DIGITS = 12  # of a number of tokens
_AGAIN = frozenset({408, 409, 424, 425})  # what every SDK tries again; 424 is a model of Bedrock's that failed


def as_model_error(failure: Failure, provider: str, place: str = "") -> ModelError:
    """Returns the error of a failed model call.

    `place` is the path of the block that a refusal is about. Only a BadRequestError keeps it.
    """
    error_class = get_error_class(failure)
    is_quota = error_class is RateLimitError and _is_quota(failure)
    return error_class(
        provider,
        failure.message or "no reason is given",
        status=failure.status,
        code=failure.code,
        request_id=failure.request_id,
        retry_after=failure.retry_after,
        place=place if error_class is BadRequestError else "",
        retryable=False if is_quota else None,
        advice=failure.advice or (_TEMPLATE_ADVICE if _is_refused_by_template(failure) else None),
    )


def get_error_class(failure: Failure) -> type[ModelError]:
    """Returns the error class of a failure.

    The code decides before the status. The text decides where both say too little.
    """
    if failure.network:
        return NetworkError
    status = failure.status
    if status in _UNSAID and re.fullmatch(r"[45]\d\d", failure.code or ""):
        status = int(failure.code or 0)  # some servers put the status in the code
    if status in (*_UNSAID, 400, 413, 422, 500) and _is_too_long(failure):
        return ContextLengthError
    if _is_refused_by_template(failure):
        return BadRequestError
    text = _without_quotes(failure)
    if status in _UNSAID:
        return _kind_by_words(failure.code or text)
    return _kind_by_status(status or 0, failure.code or "", text)


def _without_quotes(failure: Failure) -> str:
    """Returns the message without quoted text, which may come from the request."""
    return re.sub(_QUOTED, "…", failure.message[:_READ])


def _is_too_long(failure: Failure) -> bool:
    code = failure.code or ""
    if _says(_TOO_LONG_CODE, code):
        return True
    is_of_a_part = re.fullmatch(_OF_A_PART, code, re.IGNORECASE) is not None
    if is_of_a_part or _says(_NOT_TOO_LONG, f"{code} {failure.message[:_READ]}"):
        return False
    return _says(_TOO_LONG, _without_quotes(failure))


def _is_refused_by_template(failure: Failure) -> bool:
    """Returns True if the chat template of a local model refuses the request. A retry cannot help."""
    return failure.status in (*_UNSAID, 400, 422, 500) and _says(_TEMPLATE, _without_quotes(failure))


def _is_quota(failure: Failure) -> bool:
    """Returns True if a quota is used up that waiting does not refill.

    A message that says how long to wait is about a rate limit, not a quota.
    """
    if failure.code is not None:
        return _says(_NO_QUOTA, failure.code)
    return failure.retry_after is None and _says(_NO_QUOTA_SAID, _without_quotes(failure))


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


def parse_retry_after(headers: Mapping[str, Any] | None) -> float | None:
    """The seconds that headers ask to wait: `retry-after-ms`, or `retry-after`, which may be a date."""
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        said = (headers or {}).get(name)
        if not said:
            continue
        try:
            found = float(said)
        except (TypeError, ValueError):
            found = _until(str(said))
        if 0 <= found / unit < LONGEST_WAIT:
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


def find_request_id(headers: Mapping[str, Any] | None) -> str | None:
    """The provider's name for the call, which stands in a header of any answer. Header names in lower case."""
    found = ((headers or {}).get(name) for name in _REQUEST_IDS)
    return next((str(name) for name in found if name), None)


def _until(date: str) -> float:
    """The seconds until a date of HTTP's; less than none for what is no date."""
    from email.utils import parsedate_to_datetime  # of the size of all the rest here, and hardly ever asked

    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time())
    except (TypeError, ValueError):
        return -1.0


# How much of a context there is, and how much a request took: (the room, what was found), by name in a pattern.

_SIZES = (
    # vLLM: the reply's own limit is part of it
    r"maximum context length is (?P<room>\d+) tokens.*?requested (?P<reply>\d+) output tokens"
    r".*?(?P<found>\d+) input tokens",
    # OpenAI of old and DeepSeek: "(A in the messages, B in the completion)"
    r"maximum context length is (?P<room>\d+) tokens.*?\((?P<found>\d+) in the messages, "
    r"(?P<reply>\d+) in the completion\)",
    r"maximum context length is (?P<room>\d+) tokens"
    r"(?:.*?(?:resulted in|requested(?: about)?|request has) (?P<found>\d+))?",
    r"Prompt contains (?P<found>\d+) tokens .*?too large for model with (?P<room>\d+) maximum",  # Mistral
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


def parse_context_limit(said: str) -> tuple[int, int | None] | None:
    """The tokens that a prompt may have, and how many it had, as the text of an overflow tells.

    >>> parse_context_limit("prompt is too long: 210000 tokens > 200000 maximum")
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
