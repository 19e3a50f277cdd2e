"""What a provider's words say of a call that failed: the sentences of their documents and of recorded answers."""

import pickle
from email.utils import formatdate
from time import time
from typing import Any

import pytest

from agentkit import (
    AuthError,
    BadRequestError,
    ContextLengthError,
    ModelError,
    NetworkError,
    OverloadedError,
    RateLimitError,
)
from agentkit.models.failures import as_model_error, get_error_class, parse_context_limit
from agentkit.provider_kit import Failure, find_request_id, parse_failure, parse_retry_after

TOO_LONG = [
    (400, "context_length_exceeded", "Too much."),
    (
        400,
        None,
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    ),
    (
        400,
        "invalid_request_error",
        "This model's maximum context length is 65536 tokens. However, you requested …",
    ),
    (
        400,
        "400",
        "This model's maximum context length is 16384 tokens. However, your request has 20000 input tokens.",
    ),
    (None, None, "Your input exceeds the context window of this model. Please adjust your input and try again."),
    (
        400,
        "InvalidParameter",
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]",
    ),
    (400, "invalid_parameter_error", "Range of input length should be [1, 30720]"),
    (400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
    (
        400,
        "invalid_request_error",
        "input length and `max_tokens` exceed context limit: 9 + 2 > 10, decrease input",
    ),
    (400, "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number of tokens allowed (8)."),
    (500, None, "the input length exceeds the context length"),
    (400, None, "request (9 tokens) exceeds the available context size (8 tokens), try increasing it"),
    (413, None, "the input is too long"),
    (
        400,
        "BadRequestError",
        "You passed 5000 input tokens and requested 10 output tokens. However, the model's context length is only "
        "4096 tokens, resulting in a maximum input length of 4086 tokens.",
    ),
    (400, None, "The decoder prompt (length 5000) is longer than the maximum model length of 4096."),
    (400, "exceed_context_size_error", "Try another one."),
    (400, "ValidationException", "Input is too long for requested model."),
    (400, "BadRequestError", "The input (61709 tokens) is longer than the model's context length (40960 tokens)."),
    (400, "400", "Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens)."),
    (
        400,
        "BadRequestError",
        "The prompt (total length 25938) is too long to fit into the model (context length 4096).",
    ),
    (
        422,
        "validation",
        "`inputs` tokens + `max_new_tokens` must be <= 2048. Given: 1887 `inputs` tokens and 1024",
    ),
]

NOT_TOO_LONG = [
    (400, "string_above_max_length", "Invalid 'messages[0].content': maximum context length …"),
    (400, "array_above_max_length", "Invalid 'messages': array too long, see the context window"),
    (400, "InvalidParameter", "Range of max_tokens should be [1, 8192]"),
    (
        400,
        "invalid_request_error",
        "max_tokens: 99999 > 64000, which is the maximum allowed number of output tokens",
    ),
    (400, "invalid_request_error", "Invalid max_tokens value, the valid range of max_tokens is [1, 393216]"),
    (413, "request_too_large", "Request exceeds the maximum allowed number of bytes."),
    (400, None, "Invalid value: 'what is a context window'."),
    (400, None, "Invalid value for 'messages[0].content': the user asked about the context window of models"),
    (400, "invalid_image_url", "The picture of the page “the prompt is too long” … the prompt is too long"),
    (
        400,
        "400",
        "'max_tokens' or 'max_completion_tokens' is too large: 20000. This model's maximum context length is "
        "16384 tokens and your request has 30 input tokens (20000 > 16384 - 30).",
    ),
    (400, "invalid_image_url", "Failed to download image from https://x.example/billing/arrearage.png"),
    (400, "invalid_request_error", "messages.0: your input mentions 'permission_error' and authentication_error"),
]

OTHERS: list[tuple[type[ModelError], int | None, str | None, str]] = [
    (AuthError, 401, "invalid_api_key", "Incorrect API key provided."),
    (AuthError, 403, "permission_error", "Your key may not use this model."),
    (AuthError, 402, None, "Insufficient Balance"),
    (AuthError, 400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
    (AuthError, 400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
    (AuthError, 400, "API_KEY_INVALID", "Bad."),
    (AuthError, 400, "Arrearage", "Access denied, please make sure your account is in good standing."),
    (AuthError, 403, "AccessDenied.Unpurchased", "Access to model denied."),
    (AuthError, None, "authentication_error", "invalid bearer token"),
    (RateLimitError, 429, "rate_limit_exceeded", "Rate limit reached."),
    (RateLimitError, 429, "Throttling.RateQuota", "Requests rate limit exceeded."),
    (RateLimitError, 429, "RESOURCE_EXHAUSTED", "Quota exceeded."),
    (RateLimitError, None, "rate_limit_error", "Slow down."),
    (RateLimitError, 200, "Throttling", "Slow down."),
    (OverloadedError, 529, "overloaded_error", "Overloaded"),
    (OverloadedError, None, "overloaded_error", "Overloaded"),
    (OverloadedError, None, "server_error", "The server had an error."),
    (OverloadedError, None, "api_error", "Internal server error"),
    (OverloadedError, None, "503", "The server is overloaded."),
    (OverloadedError, 200, "RequestTimeOut", "Request timed out, please try again later."),
    (OverloadedError, None, "SystemError", "An system error has occurred, please try again later."),
    (RateLimitError, None, "429", "Slow down."),
    (OverloadedError, 503, "UNAVAILABLE", "The model is overloaded."),
    (OverloadedError, 504, "DEADLINE_EXCEEDED", "Deadline expired."),
    (OverloadedError, 500, "InternalError", "An internal error has occured."),
    (OverloadedError, 408, None, "Request timeout"),
    (OverloadedError, 409, None, "Conflict"),
    (OverloadedError, None, "insufficient_system_resource", "…"),
    (BadRequestError, 404, "model_not_found", "The model does not exist."),
    (BadRequestError, 400, "DataInspectionFailed", "Output data may contain inappropriate content."),
    (BadRequestError, 422, None, "Unprocessable"),
    (BadRequestError, None, "invalid_request_error", "messages: text content blocks must be non-empty"),
    (ModelError, None, None, "Something."),
    (ModelError, 302, None, "Elsewhere."),
]


@pytest.mark.parametrize(("status", "code", "said"), TOO_LONG)
def test_a_prompt_that_is_too_long(status: int | None, code: str | None, said: str) -> None:
    assert type(as_model_error(Failure(said, status, code), "somebody")) is ContextLengthError


@pytest.mark.parametrize(("status", "code", "said"), NOT_TOO_LONG)
def test_a_limit_that_is_not_the_contexts(status: int, code: str, said: str) -> None:
    assert type(as_model_error(Failure(said, status, code), "somebody")) is BadRequestError


@pytest.mark.parametrize(("kind", "status", "code", "said"), OTHERS)
def test_any_other_failure(kind: type[ModelError], status: int | None, code: str | None, said: str) -> None:
    error = as_model_error(Failure(said, status, code), "somebody")
    assert type(error) is kind
    assert error.retryable is (kind in (RateLimitError, OverloadedError))


@pytest.mark.parametrize(
    "code", ["insufficient_quota", "enforced_spend_limit_reached", "Throttling.AllocationQuota"]
)
def test_a_quota_that_is_used_up_is_not_to_be_tried_again(code: str) -> None:
    error = as_model_error(Failure("You exceeded your current quota.", 429, code), "somebody")
    assert type(error) is RateLimitError
    assert not error.retryable


@pytest.mark.parametrize(
    ("code", "said", "seconds"),
    [
        (
            "RESOURCE_EXHAUSTED",
            "You exceeded your current quota, please check your plan and billing details. Please retry in 37s.",
            37.0,
        ),
        (
            "rate_limit_exceeded",
            "Rate limit reached on tokens per min. Add a payment method at https://x.example/account/billing.",
            None,
        ),
        (None, "You exceeded your current quota. Please retry in 37s.", 37.0),
    ],
)
def test_a_limit_that_ends_is_to_be_tried_again(code: str | None, said: str, seconds: float | None) -> None:
    error = as_model_error(Failure(said, 429, code, retry_after=seconds), "somebody")
    assert type(error) is RateLimitError
    assert error.retryable


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "Conversation roles must alternate user/assistant/user/assistant/..."),
        (
            500,
            "After the optional system message, conversation roles must alternate user/assistant/user/…",
        ),
        (400, "System role not supported"),
        (500, "This model only supports single tool-calls at once!"),
        (400, "Tool call IDs should be alphanumeric strings with length 9!"),
        (400, "Only user and assistant roles are supported!"),
        (
            500,
            "Only user and assistant roles are supported, with the exception of an initial system message!",
        ),
        (500, "While executing CallExpression at line 9: Jinja Exception: Invalid content type"),
        (None, "jinja2.exceptions.TemplateError: no"),
    ],
)
def test_a_refusal_by_a_chat_template_names_the_option_that_declares_its_rules(
    status: int | None, said: str
) -> None:
    error = as_model_error(Failure(said, status), "vllm")
    assert type(error) is BadRequestError
    assert not error.retryable
    assert "model_rules=ModelRules(" in str(error)


def test_a_refusal_that_only_quotes_a_template_is_none() -> None:
    error = as_model_error(Failure("Invalid value: 'roles must alternate'.", 400), "openai")
    assert "model_rules" not in str(error)


def test_a_failure_of_the_network() -> None:
    error = as_model_error(Failure("", network=True), "somebody")
    assert type(error) is NetworkError
    assert error.retryable
    assert "no reason is given" in str(error)


def test_the_error_keeps_the_facts_and_survives_a_pickle() -> None:
    failure = Failure("No.", 400, "bad", "req_1", 2.5, param="messages", advice="Say it otherwise.")
    error = as_model_error(failure, "somebody", "msgs[0]")
    again = pickle.loads(pickle.dumps(error))
    for found in (error, again):
        assert (found.provider_message, found.status, found.code, found.request_id, found.retry_after) == (
            "No.",
            400,
            "bad",
            "req_1",
            2.5,
        )
        assert str(found) == "msgs[0]: somebody (400 bad): No. Say it otherwise."


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "1500", "retry-after": "7"}, 1.5),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7.0),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "tomorrow"}, None),
        ({}, None),
        (None, None),
    ],
)
def test_the_seconds_to_wait(headers: dict[str, str] | None, seconds: float | None) -> None:
    assert parse_retry_after(headers) == seconds


def test_a_date_to_wait_for() -> None:
    assert 50 < (parse_retry_after({"retry-after": formatdate(time() + 60, usegmt=True)}) or 0) <= 60
    assert parse_retry_after({"retry-after": formatdate(0, usegmt=True)}) == 0


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            {"error": {"message": "No.", "type": "t", "code": None, "param": "p"}},
            Failure("No.", None, "t", param="p"),
        ),
        (
            {"error": {"message": "No.", "type": "BadRequestError", "code": 400}},
            Failure("No.", 400, "BadRequestError"),
        ),
        ({"error": {"message": "No.", "status": "UNAVAILABLE", "code": 503}}, Failure("No.", 503, "UNAVAILABLE")),
        ([{"error": {"message": "No.", "code": 503}}], Failure("No.", 503)),
        ({"error": "No."}, Failure("No.")),
        ({"error": {"code": "only_a_code"}}, Failure("only_a_code", None, "only_a_code")),
        (
            {"type": "error", "error": {"type": "t", "message": "No."}, "request_id": "r"},
            Failure("No.", None, "t", "r"),
        ),
        (
            {"code": "InvalidParameter", "message": "No.", "request_id": "r"},
            Failure("No.", None, "InvalidParameter", "r"),
        ),
        ({"object": "error", "message": "No.", "type": "t", "code": 404}, Failure("No.", 404, "t")),
        ({"error": None, "output": []}, None),
        ({"code": "", "message": "", "output": {"choices": []}}, None),
        ({"message": {"role": "assistant", "content": "hi"}, "done": True}, None),
        ({"error": {}}, None),
        ({}, None),
        ("No.", None),
        ([], None),
    ],
)
def test_an_error_in_a_body(body: Any, expected: Failure | None) -> None:
    assert parse_failure(body) == expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("prompt is too long: 210000 tokens > 200000 maximum", (200_000, 210_000)),
        ("prompt is too long: 210,000 tokens > 200,000 maximum", (200_000, 210_000)),
        ("exceed context limit: 190000 + 20000 > 200000, decrease", (180_000, 190_000)),
        ("maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens", (8192, 9000)),
        (
            "maximum context length is 8192 tokens. However, you requested 9096 tokens (8096 in the messages, "
            "1000 in the completion)",
            (7192, 8096),
        ),
        (
            "maximum context length is 16384 tokens. However, you requested 8192 output tokens and your prompt "
            "contains at least 8193 input tokens, for a total of at least 16385 tokens.",
            (8192, 8193),
        ),
        ("maximum context length is 4096 tokens.", (4096, None)),
        (
            "You passed 5000 input tokens and requested 10 output tokens. However, the model's context length is "
            "only 4096 tokens, resulting in a maximum input length of 4086 tokens.",
            (4086, 5000),
        ),
        ("The decoder prompt (length 5000) is longer than the maximum model length of 4096.", (4096, 5000)),
        ("The input token count (9) exceeds the maximum number of tokens allowed (8).", (8, 9)),
        ("Range of input length should be [1, 30720]", (30_720, None)),
        ("request (20022 tokens) exceeds the available context size (16384 tokens), try", (16_384, 20_022)),
        ("The input (61709 tokens) is longer than the model's context length (40960 tokens).", (40_960, 61_709)),
        ("Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).", (59_862, 160_062)),
        ("(total length 25938) is too long to fit into the model (context length 4096). Make", (4_096, 25_938)),
        (
            "`inputs` tokens + `max_new_tokens` must be <= 2048. Given: 1887 `inputs` tokens and 1024 "
            "`max_new_tokens`",
            (1_024, 1_887),
        ),
        ("maximum context length is 10 tokens. However, you requested 20 output tokens … 5 input tokens", None),
        ("Your input exceeds the context window of this model.", None),
    ],
)
def test_how_much_room_there_is(said: str, expected: tuple[int, int | None] | None) -> None:
    assert parse_context_limit(said) == expected


@pytest.mark.parametrize(
    ("headers", "name"),
    [
        ({"request-id": "req_1"}, "req_1"),
        ({"x-request-id": "2"}, "2"),
        ({"x-amzn-requestid": "3", "date": "today"}, "3"),
        ({"x-dashscope-request-id": "4"}, "4"),
        ({"apim-request-id": "5", "x-request-id": "6"}, "6"),
        ({"x-request-id": ""}, None),
        ({}, None),
        (None, None),
    ],
)
def test_the_name_of_a_call_is_found_in_its_answers_headers(headers: Any, name: str | None) -> None:
    assert find_request_id(headers) == name


def test_a_bare_message_is_an_error_where_the_status_is_one() -> None:
    body = {"message": "Too many tokens, please wait before trying again."}
    found = parse_failure(body, 429)
    assert found is not None
    assert (found.message, found.code, get_error_class(found)) == (body["message"], None, RateLimitError)
    assert parse_failure(body) is None
    assert parse_failure(body, 200) is None
