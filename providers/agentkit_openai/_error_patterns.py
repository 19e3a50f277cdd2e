"""Regular expressions that classify errors of servers with OpenAI's APIs.

The same patterns are used for all servers, because the `base_url` of a client can be the address of any server.
Gateways such as LiteLLM and OpenRouter also pass on the errors of other vendors. The patterns match texts from
documents, source code and recorded errors. No server guarantees that its error texts stay the same.
"""

from __future__ import annotations

import re
from typing import Final

from agentkit.provider_kit import ErrorPatterns

__all__ = ["CHAT_ERRORS", "TOOLS_ADVICE", "TOOLS_REFUSED"]

_OPENAI = ErrorPatterns(
    context_length_code=r"context_(length|window|size)|input_too_long|prompt_too_long",
    context_length_text=(
        r"maximum context length is|exceed(s|ed|ing)? ([\w']+ ){0,3}context[ _](window|length|limit|size)"
    ),
    other_limit=r"_above_max_length|max_(completion_|output_)?tokens\W+is too large",
    part_code=(
        r"(?!invalid_(request|parameter|argument|params)(_error)?$)"
        r"(invalid|unsupported|empty|missing|unknown|string|array|integer|image|file|model)_\w+"
    ),
    context_sizes=(
        # Error text of vLLM. The limit in this text includes the tokens of the reply.
        r"maximum context length is (?P<limit>\d+) tokens.*?requested (?P<reply>\d+) output tokens"
        r".*?(?P<count>\d+) input tokens",
        # Error text of DeepSeek, and of OpenAI before 2025: "(A in the messages, B in the completion)".
        r"maximum context length is (?P<limit>\d+) tokens.*?\((?P<count>\d+) in the messages, "
        r"(?P<reply>\d+) in the completion\)",
        r"maximum context length is (?P<limit>\d+) tokens"
        r"(?:.*?(?:resulted in|requested(?: about)?|request has) (?P<count>\d+))?",
    ),
    auth_code=r"invalid_api_key|authentication_error|permission_error|billing_error",
    rate_limit_code=r"rate_limit|insufficient_quota",
    overload_code=(
        r"overloaded|server_error|\bapi_error|timeout_error|UNAVAILABLE|InternalError\b|InternalServer"
        r"|insufficient_system_resource"  # error code of DeepSeek
    ),
    bad_request_code=(
        r"invalid_request_error|invalid_prompt|\b(invalid|unsupported|empty)_(image|base64|value|parameter)"
    ),
    quota_code=r"insufficient_quota|spend_limit|billing",
    quota_text=r"insufficient_quota|spend limit|exceeded your current quota",
)

_SERVERS = ErrorPatterns(
    context_length_text=(
        # Error texts of vLLM.
        r"context length is only|longer than the maximum model length|too long to fit into the model"
        # Error texts of SGLang.
        r"|longer than the model's context length|exceeds the maximum allowed length"
        # Error text of Mistral.
        r"|too large for model with \d+ maximum context length"
        # Error text of text-generation-inference.
        r"|`inputs` tokens \+ `max_new_tokens` must be"
    ),
    context_sizes=(
        # Error text of Mistral.
        r"Prompt contains (?P<count>\d+) tokens .*?too large for model with (?P<limit>\d+) maximum",
        # Error texts of vLLM. The third pattern matches the text of versions before 0.5.
        r"passed (?P<count>\d+) input tokens.*?maximum input length of (?P<limit>\d+) tokens",
        r"\(length (?P<count>\d+)\) is longer than the maximum model length of (?P<limit>\d+)",
        r"total length (?P<count>\d+)\) is too long [^()]*\(context length (?P<limit>\d+)\)",
        # Error text of llama.cpp.
        r"\((?P<count>\d+) tokens\) exceeds the available context size \((?P<limit>\d+) tokens\)",
        # Error text of SGLang.
        r"input( length)? \((?P<count>\d+) tokens\) (is longer|exceeds) [^()]*length \((?P<limit>\d+) tokens\)",
        # Error text of text-generation-inference.
        r"`max_new_tokens` must be <= (?P<limit>\d+)\. Given: (?P<count>\d+) `inputs` tokens and (?P<reply>\d+)",
    ),
    # Errors that chat templates raise. llama.cpp and vLLM pass on the error texts with status 400 or 500.
    template_text=(
        r"Jinja Exception|raise_exception|TemplateError|roles must alternate|only supports single tool-calls"
        r"|Tool call IDs should be|System role (is )?not supported|Only [\w, ]*\buser\b[\w, ]* roles are supported"
    ),
)

_GATEWAYS = ErrorPatterns(
    # Gateways pass on the error texts of Anthropic and Google.
    context_length_text=r"(input|prompt) is too long|exceeds? the maximum number of tokens|input token count",
    context_sizes=(
        r"prompt is too long: (?P<count>\d+) tokens > (?P<limit>\d+)",
        r"exceed context limit: (?P<count>\d+) \+ (?P<reply>\d+) > (?P<limit>\d+)",
        r"input token count \((?P<count>\d+)\) exceeds .*?\((?P<limit>\d+)\)",
    ),
    auth_code=r"API_KEY_INVALID|UNAUTHENTICATED|PERMISSION_DENIED|AccessDenied",
    auth_text=r"api[ _]?key not valid|credit balance is too low",
    rate_limit_code=r"RESOURCE_EXHAUSTED|Throttling",
    overload_code=r"DEADLINE_EXCEEDED|Model(Stream)?Error|ModelTimeout",
    bad_request_code=r"INVALID_ARGUMENT|ValidationException|ResourceNotFound",
)

# Errors of DashScope, which also serves models of other vendors. Source: model-studio, "error codes".
_DASHSCOPE = ErrorPatterns(
    context_length_text=r"Range of input length should be",
    other_limit=r"Range of max_tokens",
    context_sizes=(r"Range of input length should be \[\d+, ?(?P<limit>\d+)\]",),
    auth_code=r"InvalidApiKey|Arrearage|AccessDenied",
    rate_limit_code=r"Throttling",
    overload_code=r"InternalError\b|\bRequestTimeOut|\bSystemError",
    bad_request_code=r"InvalidParameter|DataInspectionFailed|data_inspection_failed",
    quota_code=r"Arrearage|AllocationQuota",
    stream_only_text=r"only support stream mode|must be set to false for non-streaming calls",
)

CHAT_ERRORS: Final = _OPENAI | _SERVERS | _GATEWAYS | _DASHSCOPE
"""Error patterns for OpenAI's APIs and for compatible servers."""

TOOLS_REFUSED = re.compile(r"function tools with reasoning_effort|use /v1/responses", re.IGNORECASE)
"""Pattern for an error text of GPT-5.4 and later models.

The text is 'Function tools with reasoning_effort are not supported for … in /v1/chat/completions'.
"""
TOOLS_ADVICE = (
    "Use the Responses API: ChatModel('openai-responses:…'). In Chat Completions, some models accept tools only "
    "with reasoning_effort='none'."
)
"""Advice for errors that match `TOOLS_REFUSED`."""
