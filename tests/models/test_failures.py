"""Classification of failed calls, by the error patterns of each provider.

The texts come from the providers' documents and from recorded errors.
"""

import pickle

from agentkit import (
    AuthError,
    BadRequestError,
    ContextLengthError,
    ModelError,
    NetworkError,
    OverloadedError,
    RateLimitError,
    load_provider,
)
from agentkit.models.failures import as_model_error, get_error_class
from agentkit.provider_kit import ErrorPatterns, Failure
from tests.cases import each_case

CONTEXT_ERRORS = [
    ("openai", 400, "context_length_exceeded", "Too much."),
    (
        "openai",
        400,
        None,
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.",
    ),
    (
        "deepseek",
        400,
        "invalid_request_error",
        "This model's maximum context length is 65536 tokens. However, you requested …",
    ),
    (
        "vllm",
        400,
        "400",
        "This model's maximum context length is 16384 tokens. However, your request has 20000 input tokens.",
    ),
    (
        "openai",
        None,
        None,
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
    ),
    (
        "dashscope",
        400,
        "InvalidParameter",
        "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 30720]",
    ),
    ("dashscope-compatible", 400, "invalid_parameter_error", "Range of input length should be [1, 30720]"),
    ("anthropic", 400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
    (
        "anthropic",
        400,
        "invalid_request_error",
        "input length and `max_tokens` exceed context limit: 9 + 2 > 10, decrease input",
    ),
    (
        "gemini",
        400,
        "INVALID_ARGUMENT",
        "The input token count (9) exceeds the maximum number of tokens allowed (8).",
    ),
    ("ollama", 500, None, "the input length exceeds the context length"),
    ("llamacpp", 400, None, "request (9 tokens) exceeds the available context size (8 tokens), try increasing it"),
    ("anthropic", 413, None, "the input is too long"),
    (
        "vllm",
        400,
        "BadRequestError",
        "You passed 5000 input tokens and requested 10 output tokens. However, the model's context length is only "
        "4096 tokens, resulting in a maximum input length of 4086 tokens.",
    ),
    ("vllm", 400, None, "The decoder prompt (length 5000) is longer than the maximum model length of 4096."),
    ("llamacpp", 400, "exceed_context_size_error", "Try another one."),
    ("anthropic", 400, "ValidationException", "Input is too long for requested model."),
    (
        "vllm",
        400,
        "BadRequestError",
        "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
    ),
    ("vllm", 400, "400", "Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens)."),
    (
        "vllm",
        400,
        "BadRequestError",
        "The prompt (total length 25938) is too long to fit into the model (context length 4096).",
    ),
    (
        "compatible",
        422,
        "validation",
        "`inputs` tokens + `max_new_tokens` must be <= 2048. Given: 1887 `inputs` tokens and 1024",
    ),
]

OTHER_LIMITS = [
    ("openai", 400, "string_above_max_length", "Invalid 'messages[0].content': maximum context length …"),
    ("openai", 400, "array_above_max_length", "Invalid 'messages': array too long, see the context window"),
    ("dashscope", 400, "InvalidParameter", "Range of max_tokens should be [1, 8192]"),
    (
        "anthropic",
        400,
        "invalid_request_error",
        "max_tokens: 99999 > 64000, which is the maximum allowed number of output tokens",
    ),
    (
        "deepseek",
        400,
        "invalid_request_error",
        "Invalid max_tokens value, the valid range of max_tokens is [1, 393216]",
    ),
    ("anthropic", 413, "request_too_large", "Request exceeds the maximum allowed number of bytes."),
    ("vllm", 400, None, "Invalid value: 'what is a context window'."),
    (
        "openai",
        400,
        None,
        "Invalid value for 'messages[0].content': the user asked about the context window of models",
    ),
    (
        "openai",
        400,
        "invalid_image_url",
        "The picture of the page “the prompt is too long” … the prompt is too long",
    ),
    (
        "vllm",
        400,
        "400",
        "'max_tokens' or 'max_completion_tokens' is too large: 20000. This model's maximum context length is "
        "16384 tokens and your request has 30 input tokens (20000 > 16384 - 30).",
    ),
    ("openai", 400, "invalid_image_url", "Failed to download image from https://x.example/billing/arrearage.png"),
    (
        "anthropic",
        400,
        "invalid_request_error",
        "messages.0: your input mentions 'permission_error' and authentication_error",
    ),
]

OTHER_ERRORS: list[tuple[str, type[ModelError], int | None, str | None, str]] = [
    ("openai", AuthError, 401, "invalid_api_key", "Incorrect API key provided."),
    ("anthropic", AuthError, 403, "permission_error", "Your key may not use this model."),
    ("deepseek", AuthError, 402, None, "Insufficient Balance"),
    (
        "anthropic",
        AuthError,
        400,
        "invalid_request_error",
        "Your credit balance is too low to access the Anthropic API.",
    ),
    ("gemini", AuthError, 400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key."),
    ("gemini", AuthError, 400, "API_KEY_INVALID", "Bad."),
    (
        "dashscope",
        AuthError,
        400,
        "Arrearage",
        "Access denied, please make sure your account is in good standing.",
    ),
    ("dashscope", AuthError, 403, "AccessDenied.Unpurchased", "Access to model denied."),
    ("anthropic", AuthError, None, "authentication_error", "invalid bearer token"),
    ("openai", RateLimitError, 429, "rate_limit_exceeded", "Rate limit reached."),
    ("dashscope", RateLimitError, 429, "Throttling.RateQuota", "Requests rate limit exceeded."),
    ("gemini", RateLimitError, 429, "RESOURCE_EXHAUSTED", "Quota exceeded."),
    ("anthropic", RateLimitError, None, "rate_limit_error", "Slow down."),
    ("dashscope", RateLimitError, 200, "Throttling", "Slow down."),
    ("anthropic", OverloadedError, 529, "overloaded_error", "Overloaded"),
    ("anthropic", OverloadedError, None, "overloaded_error", "Overloaded"),
    ("openai", OverloadedError, None, "server_error", "The server had an error."),
    ("anthropic", OverloadedError, None, "api_error", "Internal server error"),
    ("vllm", OverloadedError, None, "503", "The server is overloaded."),
    ("dashscope", OverloadedError, 200, "RequestTimeOut", "Request timed out, please try again later."),
    ("dashscope", OverloadedError, None, "SystemError", "An system error has occurred, please try again later."),
    ("vllm", RateLimitError, None, "429", "Slow down."),
    ("gemini", OverloadedError, 503, "UNAVAILABLE", "The model is overloaded."),
    ("gemini", OverloadedError, 504, "DEADLINE_EXCEEDED", "Deadline expired."),
    ("dashscope", OverloadedError, 500, "InternalError", "An internal error has occured."),
    ("openai", OverloadedError, 408, None, "Request timeout"),
    ("openai", OverloadedError, 409, None, "Conflict"),
    ("deepseek", OverloadedError, None, "insufficient_system_resource", "…"),
    ("openai", BadRequestError, 404, "model_not_found", "The model does not exist."),
    ("dashscope", BadRequestError, 400, "DataInspectionFailed", "Output data may contain inappropriate content."),
    ("openai", BadRequestError, 422, None, "Unprocessable"),
    (
        "anthropic",
        BadRequestError,
        None,
        "invalid_request_error",
        "messages: text content blocks must be non-empty",
    ),
    ("openai", ModelError, None, None, "Something."),
    ("openai", ModelError, 302, None, "Elsewhere."),
]


def _error(provider: str, failure: Failure, place: str = "") -> ModelError:
    return as_model_error(failure, provider, load_provider(provider).error_patterns, place)


@each_case(("provider", "status", "code", "text"), CONTEXT_ERRORS)
def test_a_prompt_that_is_too_long_is_a_context_length_error(
    provider: str, status: int | None, code: str | None, text: str
) -> None:
    assert type(_error(provider, Failure(text, status, code))) is ContextLengthError


@each_case(("provider", "status", "code", "text"), OTHER_LIMITS)
def test_another_limit_is_a_bad_request(provider: str, status: int, code: str | None, text: str) -> None:
    assert type(_error(provider, Failure(text, status, code))) is BadRequestError


@each_case(("provider", "error_class", "status", "code", "text"), OTHER_ERRORS)
def test_status_code_and_text_select_the_error_class(
    provider: str, error_class: type[ModelError], status: int | None, code: str | None, text: str
) -> None:
    error = _error(provider, Failure(text, status, code))
    assert type(error) is error_class
    assert error.retryable is (error_class in (RateLimitError, OverloadedError))


@each_case(
    ("status", "error_class"),
    [
        (400, BadRequestError),
        (401, AuthError),
        (403, AuthError),
        (404, BadRequestError),
        (429, RateLimitError),
        (500, OverloadedError),
        (200, ModelError),
        (None, ModelError),
    ],
)
def test_without_patterns_the_status_decides(status: int | None, error_class: type[ModelError]) -> None:
    failure = Failure("The prompt is too long.", status, "overloaded_error")
    assert get_error_class(failure, ErrorPatterns()) is error_class


def test_a_third_party_provider_declares_its_own_patterns() -> None:
    patterns = ErrorPatterns(context_length_text="song is too long", overload_code="busy")
    assert get_error_class(Failure("The song is too long: 9 bars", 400), patterns) is ContextLengthError
    assert get_error_class(Failure("The song is too loud", 400), patterns) is BadRequestError
    assert get_error_class(Failure("Later.", code="busy"), patterns) is OverloadedError


@each_case(
    ("status", "code", "error_class"),
    [(498, None, AuthError), (499, None, OverloadedError), (None, "498", AuthError), (400, None, BadRequestError)],
)
def test_a_special_status_has_the_meaning_that_the_provider_declares(
    status: int | None, code: str | None, error_class: type[ModelError]
) -> None:
    patterns = ErrorPatterns(statuses={498: 401, 499: 408})
    error = as_model_error(Failure("no", status, code), "cohere", patterns)
    assert type(error) is error_class
    assert error.status == status


def test_the_patterns_of_another_provider_do_not_apply() -> None:
    assert type(_error("anthropic", Failure("Range of input length should be [1, 9]", 400))) is BadRequestError


@each_case(
    ("provider", "code"),
    [
        ("openai", "insufficient_quota"),
        ("anthropic", "enforced_spend_limit_reached"),
        ("dashscope", "Throttling.AllocationQuota"),
    ],
)
def test_an_exhausted_quota_is_not_retryable(provider: str, code: str) -> None:
    error = _error(provider, Failure("You exceeded your current quota.", 429, code))
    assert type(error) is RateLimitError
    assert not error.retryable


@each_case(
    ("provider", "code", "text", "seconds"),
    [
        (
            "gemini",
            "RESOURCE_EXHAUSTED",
            "You exceeded your current quota, please check your plan and billing details. Please retry in 37s.",
            37.0,
        ),
        (
            "openai",
            "rate_limit_exceeded",
            "Rate limit reached on tokens per min. Add a payment method at https://x.example/account/billing.",
            None,
        ),
        ("gemini", None, "You exceeded your current quota. Please retry in 37s.", 37.0),
    ],
)
def test_a_rate_limit_is_retryable(provider: str, code: str | None, text: str, seconds: float | None) -> None:
    error = _error(provider, Failure(text, 429, code, retry_after=seconds))
    assert type(error) is RateLimitError
    assert error.retryable


@each_case(
    ("status", "text"),
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
def test_the_refusal_of_a_chat_template_names_the_option_for_its_rules(status: int | None, text: str) -> None:
    error = _error("vllm", Failure(text, status))
    assert type(error) is BadRequestError
    assert not error.retryable
    assert "model_rules=ModelRules(" in str(error)


def test_a_quoted_template_error_is_not_a_template_error() -> None:
    error = _error("openai", Failure("Invalid value: 'roles must alternate'.", 400))
    assert "model_rules" not in str(error)


def test_a_network_failure_is_a_retryable_network_error() -> None:
    error = _error("openai", Failure("", network=True))
    assert type(error) is NetworkError
    assert error.retryable
    assert "the provider sent no error text" in str(error)


def test_an_error_has_the_facts_of_its_failure_before_and_after_pickling() -> None:
    failure = Failure("No.", 400, "bad", "req_1", 2.5, param="messages", advice="Pass a text.")
    error = _error("openai", failure, "msgs[0]")
    again = pickle.loads(pickle.dumps(error))
    for copy in (error, again):
        assert (copy.provider_message, copy.status, copy.code, copy.request_id, copy.retry_after) == (
            "No.",
            400,
            "bad",
            "req_1",
            2.5,
        )
        assert str(copy) == "msgs[0] (probable place): openai (400 bad): No. Pass a text."
