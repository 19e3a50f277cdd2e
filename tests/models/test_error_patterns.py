"""Error patterns of providers: combination, and token counts in error texts."""

from dataclasses import replace

from agentkit import load_provider
from agentkit.provider_kit import ErrorPatterns
from tests.cases import each_case


def test_two_pattern_tables_can_be_merged() -> None:
    first = ErrorPatterns(auth_code="no_key", overload_code="busy", context_sizes=(r"(?P<limit>\d+) at most",))
    second = ErrorPatterns(auth_code="bad_key", quota_text="empty", context_sizes=(r"up to (?P<limit>\d+)",))
    first, second = replace(first, statuses={498: 401}), replace(second, statuses={499: 408})
    both = first | second
    assert both.statuses == {498: 401, 499: 408}
    assert (both.auth_code, both.overload_code, both.quota_text) == ("no_key|bad_key", "busy", "empty")
    assert both.parse_sizes("8 at most") == (8, None)
    assert both.parse_sizes("up to 9") == (9, None)


def test_providers_and_their_patterns_are_hashable() -> None:
    assert hash(ErrorPatterns(statuses={498: 401})) == hash(ErrorPatterns(statuses={498: 401}))
    assert hash(load_provider("openai")) == hash(load_provider("openai"))


def test_an_excess_is_added_to_the_limit() -> None:
    pattern = r"exceeded by (?P<excess>\d+) tokens.* limit for this model is (?P<limit>\d+)"
    text = "too many tokens: size limit exceeded by 712 tokens. The limit for this model is 288000 tokens."
    assert ErrorPatterns(context_sizes=(pattern,)).parse_sizes(text) == (288_000, 288_712)


def test_without_patterns_a_text_has_no_token_counts() -> None:
    assert ErrorPatterns().parse_sizes("prompt is too long: 210000 tokens > 200000 maximum") is None


@each_case(
    ("provider", "text", "expected"),
    [
        ("anthropic", "prompt is too long: 210000 tokens > 200000 maximum", (200_000, 210_000)),
        ("anthropic", "prompt is too long: 210,000 tokens > 200,000 maximum", (200_000, 210_000)),
        ("anthropic", "exceed context limit: 190000 + 20000 > 200000, decrease", (180_000, 190_000)),
        (
            "openai",
            "maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens",
            (8192, 9000),
        ),
        (
            "deepseek",
            "maximum context length is 8192 tokens. However, you requested 9096 tokens (8096 in the messages, "
            "1000 in the completion)",
            (7192, 8096),
        ),
        (
            "vllm",
            "maximum context length is 16384 tokens. However, you requested 8192 output tokens and your prompt "
            "contains at least 8193 input tokens, for a total of at least 16385 tokens.",
            (8192, 8193),
        ),
        ("vllm", "maximum context length is 4096 tokens.", (4096, None)),
        (
            "vllm",
            "You passed 5000 input tokens and requested 10 output tokens. However, the model's context length is "
            "only 4096 tokens, resulting in a maximum input length of 4086 tokens.",
            (4086, 5000),
        ),
        (
            "vllm",
            "The decoder prompt (length 5000) is longer than the maximum model length of 4096.",
            (4096, 5000),
        ),
        ("gemini", "The input token count (9) exceeds the maximum number of tokens allowed (8).", (8, 9)),
        ("dashscope", "Range of input length should be [1, 30720]", (30_720, None)),
        (
            "llamacpp",
            "request (20022 tokens) exceeds the available context size (16384 tokens), try",
            (16_384, 20_022),
        ),
        (
            "vllm",
            "The input (61709 tokens) is longer than the model's context length (40960 tokens).",
            (40_960, 61_709),
        ),
        (
            "vllm",
            "Input length (160062 tokens) exceeds the maximum allowed length (59862 tokens).",
            (59_862, 160_062),
        ),
        (
            "vllm",
            "(total length 25938) is too long to fit into the model (context length 4096). Make",
            (4_096, 25_938),
        ),
        (
            "compatible",
            "`inputs` tokens + `max_new_tokens` must be <= 2048. Given: 1887 `inputs` tokens and 1024 "
            "`max_new_tokens`",
            (1_024, 1_887),
        ),
        (
            "openai",
            "maximum context length is 10 tokens. However, you requested 20 output tokens … 5 input tokens",
            None,
        ),
        ("openai", "Your input exceeds the context window of this model.", None),
    ],
)
def test_the_token_counts_of_an_error_text_are_parsed(
    provider: str, text: str, expected: tuple[int, int | None] | None
) -> None:
    assert load_provider(provider).error_patterns.parse_sizes(text) == expected
