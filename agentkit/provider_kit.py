"""API for authors of providers.

A provider package imports this module and no other module of agentkit, except `agentkit.testing` in its tests.
Applications import `agentkit`.

A provider consists of these parts, in the order in which a message passes through them:

- `Provider`: the object to which an entry point of the group `agentkit.providers` refers.
- `WireLayout`: the names of the keys of a request. They are needed to count tokens, to compute prefix digests, and
  to locate errors in a request.
- `Capabilities`: the rules of the target, in groups: `TurnCapabilities`, `ToolCapabilities`, `MediaCapabilities`,
  `ThinkingCapabilities` and `OpaqueCapabilities`. `ModelFact` changes the rules for single models.
- `FormatterBase`: its method `convert` converts a `LegalConversation` and a `RequestSpec` to a `Request`.
- `EndpointBase`: sends an `OutgoingRequest` through the SDK client, and returns the reply or an `IncomingStream`.
  `HttpEndpoint` is the endpoint for an API without an SDK. `SDKEndpoint` is the endpoint for an SDK that Stainless
  generates, such as OpenAI's and Anthropic's.
- `ErrorPatterns`: codes and texts of the API's errors, which select the error class of a failed call.
- `StreamParserBase`: parses native events and replies with a `ReplyBuilder`. `parse_failure` parses error bodies.
- `RemoteTokenCounter`: counts the tokens of a request by calling the provider's API.

All other functions help to write converters, parsers and loaders. The message and error classes are the same as in
`agentkit`. `agentkit.testing.check_provider` tests a provider.
"""

from __future__ import annotations

from agentkit.capabilities.capabilities import Capabilities
from agentkit.capabilities.groups import (
    MediaCapabilities,
    OpaqueCapabilities,
    StrictRules,
    ThinkingCapabilities,
    ToolCapabilities,
    TurnCapabilities,
)
from agentkit.capabilities.media_rules import MediaLimits, MediaRule, media_types
from agentkit.capabilities.model_facts import ModelFact
from agentkit.capabilities.model_rules import ModelRules
from agentkit.capabilities.name_rules import NameRule, derive_call_id, short_hash
from agentkit.capabilities.option_layout import OptionLayout
from agentkit.capabilities.wire_layout import WireLayout
from agentkit.errors import (
    AgentkitError,
    AuthError,
    ConversionError,
    InputError,
    MessageError,
    MissingExtraError,
    OptionError,
    ProviderError,
)
from agentkit.formatting.formatter import FormatterBase, FormatterOptions
from agentkit.formatting.prompt_cache import (
    CacheBreakpoints,
    check_cache_breakpoints,
    place_cache_breakpoints,
    stable_blocks,
)
from agentkit.formatting.request_spec import Request, RequestSpec
from agentkit.history.policies import MultiAgentHistory
from agentkit.json_values import (
    as_list,
    as_object,
    as_text,
    copy_json,
    get_set_fields,
    make_json_safe,
    native_to_json,
    parse_arguments,
    read_arguments,
)
from agentkit.legalize.conversation import LegalConversation, split_results
from agentkit.legalize.turns import RESULT_TURN
from agentkit.logs.function_calls import parse_function_call
from agentkit.messages.blocks import (
    AudioBlock,
    Block,
    DocumentBlock,
    ImageBlock,
    InvalidBlock,
    MediaBlock,
    OpaqueBlock,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    VideoBlock,
)
from agentkit.messages.features import Feature
from agentkit.messages.log_formats import (
    check_log_format,
    check_log_message,
    check_log_request,
    describe_log_format,
)
from agentkit.messages.message import Msg
from agentkit.messages.opaque_state import get_state_fields
from agentkit.messages.sniffing import sniff_media_type
from agentkit.messages.sources import Base64Source, Source, URLSource, source_from_url
from agentkit.messages.usage import FinishReason, Usage, as_token_count
from agentkit.models.endpoint import EndpointBase, IncomingStream, OutgoingRequest, dump_body, merge_parameters
from agentkit.models.error_patterns import ErrorPatterns
from agentkit.models.http_client import as_network_failure, is_transport_error, split_http_options
from agentkit.models.http_endpoint import HttpEndpoint
from agentkit.models.registry import Provider
from agentkit.models.response_headers import find_request_id, parse_retry_after
from agentkit.models.sdk_endpoint import SDKEndpoint
from agentkit.replies.builder import BlockKey, ReplyBuilder
from agentkit.replies.error_bodies import Failure, parse_failure, reported_error
from agentkit.replies.events import StreamEvent
from agentkit.replies.parser import ParserOptions, StreamParserBase
from agentkit.replies.tool_call_index import ToolCallIndex
from agentkit.tokens.counters import LocalTokenCounter, TokenCount, TokenCounterBase
from agentkit.tokens.remote import RemoteTokenCounter
from agentkit.tokens.request_parts import MediaPart, RequestParts
from agentkit.tools.choices import ToolChoice
from agentkit.tools.declarations import declare_tool
from agentkit.tools.json_schema import OutputSchema, close_schema, map_schema
from agentkit.tools.tool import Tool
from agentkit.tools.tool_texts import CALL_TEXT, ERROR_TEXT, RESULT_TEXT, split_error_mark, write_output

__all__ = [
    "AgentkitError",
    "AudioBlock",
    "AuthError",
    "Base64Source",
    "Block",
    "BlockKey",
    "CALL_TEXT",
    "CacheBreakpoints",
    "Capabilities",
    "ConversionError",
    "DocumentBlock",
    "ERROR_TEXT",
    "EndpointBase",
    "ErrorPatterns",
    "Failure",
    "Feature",
    "FinishReason",
    "FormatterBase",
    "FormatterOptions",
    "HttpEndpoint",
    "ImageBlock",
    "IncomingStream",
    "InputError",
    "InvalidBlock",
    "LegalConversation",
    "LocalTokenCounter",
    "MediaBlock",
    "MediaCapabilities",
    "MediaLimits",
    "MediaPart",
    "MediaRule",
    "MessageError",
    "MissingExtraError",
    "ModelFact",
    "ModelRules",
    "Msg",
    "MultiAgentHistory",
    "NameRule",
    "OpaqueBlock",
    "OpaqueCapabilities",
    "OpaqueState",
    "OptionError",
    "OptionLayout",
    "OutgoingRequest",
    "OutputSchema",
    "ParserOptions",
    "Provider",
    "ProviderError",
    "RESULT_TEXT",
    "RESULT_TURN",
    "RemoteTokenCounter",
    "ReplyBuilder",
    "Request",
    "RequestParts",
    "RequestSpec",
    "SDKEndpoint",
    "Source",
    "StreamEvent",
    "StreamParserBase",
    "StrictRules",
    "TextBlock",
    "ThinkingBlock",
    "ThinkingCapabilities",
    "TokenCount",
    "TokenCounterBase",
    "Tool",
    "ToolCallIndex",
    "ToolCapabilities",
    "ToolChoice",
    "ToolResultBlock",
    "ToolUseBlock",
    "TurnCapabilities",
    "URLSource",
    "Usage",
    "VideoBlock",
    "WireLayout",
    "as_list",
    "as_network_failure",
    "as_object",
    "as_text",
    "as_token_count",
    "check_cache_breakpoints",
    "check_log_format",
    "check_log_message",
    "check_log_request",
    "close_schema",
    "copy_json",
    "declare_tool",
    "derive_call_id",
    "describe_log_format",
    "dump_body",
    "find_request_id",
    "get_set_fields",
    "get_state_fields",
    "is_transport_error",
    "make_json_safe",
    "map_schema",
    "media_types",
    "merge_parameters",
    "native_to_json",
    "parse_arguments",
    "parse_failure",
    "parse_function_call",
    "parse_retry_after",
    "place_cache_breakpoints",
    "read_arguments",
    "reported_error",
    "short_hash",
    "sniff_media_type",
    "source_from_url",
    "split_http_options",
    "split_error_mark",
    "split_results",
    "stable_blocks",
    "write_output",
]
