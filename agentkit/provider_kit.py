"""API for authors of providers.

A provider package imports this module and no other module of agentkit, except `agentkit.testing` in its tests.
Applications import `agentkit`. The guide `examples/guides/write_a_provider.md` shows a complete provider.

A provider is a `Provider` object, which an entry point in the group `agentkit.providers` names. The names of this
module are listed by task. Call `help()` on a name to read about its fields and arguments.

To declare what an API accepts:

- Rules of a target: `Capabilities`, with the groups `TurnCapabilities`, `ToolCapabilities`, `MediaCapabilities`,
  `ThinkingCapabilities` and `OpaqueCapabilities`.
- Parts of these rules: `MediaRule`, `MediaLimits`, `NameRule`, `StrictRules`, `media_types`.
- Rules of single models: `ModelFact`, and `ModelRules` for the chat templates of local models.
- Keys of requests: `WireLayout`, `OptionLayout`.

To write a converter, from messages to a request:

- Base class: `FormatterBase`, `FormatterOptions`, `MultiAgentHistory`. The method `convert` takes a
  `LegalConversation` and a `RequestSpec`, and returns a `Request`.
- Messages: `Msg`, `Block`, `TextBlock`, `ThinkingBlock`, `ToolUseBlock`, `ToolResultBlock`, `MediaBlock`,
  `ImageBlock`, `AudioBlock`, `VideoBlock`, `DocumentBlock`, `OpaqueBlock`, `InvalidBlock`, `Feature`.
- Media sources: `Source`, `Base64Source`, `URLSource`.
- Tools, schemas: `Tool`, `ToolChoice`, `OutputSchema`, `declare_tool`, `copy_json`, `close_schema`, `map_schema`.
- Tool results: `split_results`, `write_output`, `RESULT_TURN`.
- Opaque state of blocks: `OpaqueState`, `get_state_fields`.
- Texts for APIs without tool roles: `CALL_TEXT`, `RESULT_TEXT`, `ERROR_TEXT`.
- Prompt caches: `CacheBreakpoints`, `place_cache_breakpoints`, `stable_blocks`.
- Errors: `ConversionError`, `InputError`, `OptionError`, `AgentkitError`, and `check_choice` for an option.

To write a parser, from native events to a message:

- Base class: `StreamParserBase`, `ParserOptions`. The parser adds blocks to a `ReplyBuilder`, by `BlockKey`.
- Contents of a reply: `Usage`, `FinishReason`, `StreamEvent`, `ToolCallIndex`.
- Values of any type: `as_object`, `as_list`, `as_text`, `as_token_count`, `parse_arguments`, `native_to_json`.
- Errors in a reply: `Failure`, `parse_failure`, `reported_error`.

To write an endpoint, which calls the API:

- Base classes: `HttpEndpoint` for an API without an SDK, `SDKEndpoint` for an SDK client with a method `post`,
  `HttpResponseEndpoint` for any other client that returns HTTP responses, and `EndpointBase` for all remaining
  clients.
- Values: `OutgoingRequest`, `IncomingStream`, `merge_parameters`, `split_http_options`, `dump_body`.
- Classes of errors: `ErrorPatterns`, `ProviderError`, `AuthError`, `MissingExtraError`.
- Failures of connections and responses: `as_network_failure`, `is_transport_error`, `find_request_id`,
  `parse_retry_after`.

To write a loader, from a native log to messages:

- Messages of the log: `parse_log_text`, `read_log_entries`.
- Check of the format: `check_log_request`, `check_log_message`, `check_log_format`, `describe_log_format`,
  `MessageError`.
- Contents: `parse_function_call`, `read_arguments`, `split_error_mark`, `source_from_url`, `sniff_media_type`.
- Values that are missing or not JSON: `derive_call_id`, `short_hash`, `ensure_json_safe`, `make_json_safe`,
  `get_set_fields`.

To write a token counter:

- Base classes: `RemoteTokenCounter` for an API that counts tokens, `LocalTokenCounter`, `TokenCounterBase`.
- Values: `TokenCount`, `RequestParts`, `MediaPart`.

To write tests, use `agentkit.testing`: `check_provider` finds faults, and a `FakeService` imitates the API.
"""

from __future__ import annotations

from agentkit.argument_checks import check_choice
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
from agentkit.capabilities.name_rules import NameRule, short_hash
from agentkit.capabilities.wire_layout import OptionLayout, WireLayout
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
    place_cache_breakpoints,
    stable_blocks,
)
from agentkit.history.policies import MultiAgentHistory
from agentkit.json_values import (
    as_list,
    as_object,
    as_text,
    copy_json,
    ensure_json_safe,
    get_set_fields,
    make_json_safe,
    native_to_json,
    parse_arguments,
    read_arguments,
)
from agentkit.legalize.alternating_turns import RESULT_TURN
from agentkit.legalize.conversation import LegalConversation, split_results
from agentkit.legalize.request_spec import Request, RequestSpec
from agentkit.logs.parsing import parse_function_call, parse_log_text, read_log_entries
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
from agentkit.messages.log_checks import (
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
from agentkit.models.http_response_endpoint import HttpResponseEndpoint
from agentkit.models.registry import Provider
from agentkit.models.response_headers import find_request_id, parse_retry_after
from agentkit.models.sdk_endpoint import SDKEndpoint
from agentkit.replies.builder import BlockKey, ReplyBuilder
from agentkit.replies.error_bodies import Failure, parse_failure, reported_error
from agentkit.replies.events import StreamEvent
from agentkit.replies.missing_call_ids import derive_call_id
from agentkit.replies.parser import ParserOptions, StreamParserBase
from agentkit.replies.tool_call_index import ToolCallIndex
from agentkit.tokens.counters import LocalTokenCounter, TokenCount, TokenCounterBase
from agentkit.tokens.remote import RemoteTokenCounter
from agentkit.tokens.request_parts import MediaPart, RequestParts
from agentkit.tools.choices import ToolChoice
from agentkit.tools.error_marks import split_error_mark, write_output
from agentkit.tools.json_schema import OutputSchema, close_schema, map_schema
from agentkit.tools.result_texts import CALL_TEXT, ERROR_TEXT, RESULT_TEXT
from agentkit.tools.tool import Tool, declare_tool

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
    "HttpResponseEndpoint",
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
    "check_choice",
    "check_log_format",
    "check_log_message",
    "check_log_request",
    "close_schema",
    "copy_json",
    "declare_tool",
    "derive_call_id",
    "describe_log_format",
    "dump_body",
    "ensure_json_safe",
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
    "parse_log_text",
    "parse_retry_after",
    "place_cache_breakpoints",
    "read_arguments",
    "read_log_entries",
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
