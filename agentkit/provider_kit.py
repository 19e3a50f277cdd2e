"""API for authors of providers.

A provider package imports this module and no other module of agentkit, except `agentkit.testing` in its tests.
Applications import `agentkit`. The guide `examples/guides/write_a_provider.md` shows a complete provider.

A provider is a `Provider` object. An entry point in the group `agentkit.providers` refers to this object. The
names of this module are listed by task below. Call `help()` on a name to read about its fields and arguments.

To declare what an API accepts:

- Rules of a target: `Capabilities`, with the groups `TurnCapabilities`, `ToolCapabilities`, `MediaCapabilities`,
  `ThinkingCapabilities` and `OpaqueCapabilities`.
- Parts of these rules: `MediaRule`, `MediaLimits`, `NameRule`, `StrictRules`, `media_types`.
- Rules of single models: `ModelFact`, and `ModelRules` for the chat templates of local models.
- Keys of requests: `WireLayout`, `OptionLayout`.

To write a converter, from messages to a request:

- Base class: `FormatterBase`, `FormatterOptions`, `MultiAgentHistory`. The method `convert` takes a
  `LegalConversation` and a `RequestSpec`, and returns a `Request`.
- Base class for an API that continues the text of a prompt: `ChatTemplateFormatter`.
- Messages: `Msg`, `Block`, `TextBlock`, `ThinkingBlock`, `ToolUseBlock`, `ToolResultBlock`, `MediaBlock`,
  `ImageBlock`, `AudioBlock`, `VideoBlock`, `DocumentBlock`, `OpaqueBlock`, `InvalidBlock`, `Feature`.
- Media sources: `Source`, `Base64Source`, `URLSource`.
- Tools, schemas: `Tool`, `ToolChoice`, `OutputSchema`, `declare_tool`, `copy_json`, `close_schema`, `map_schema`.
- Tool results: `split_results`, `write_output`, `RESULT_TURN`.
- Opaque state of blocks: `OpaqueState`, `get_state_fields`.
- Texts for APIs without tool roles: `CALL_TEXT`, `RESULT_TEXT`, `ERROR_TEXT`.
- Prompt caches: `CacheBreakpoints`, `place_cache_breakpoints`, `stable_blocks`.
- Changes that `convert` makes itself: append a `Provenance` and a `Note` with a `Disposition` to
  `LegalConversation.notes`, so that the ledger lists the change.
- Errors: `ConversionError`, `InputError`, `OptionError`, `AgentkitError`. `check_choice` checks an option's value.

To write a parser, from native events to a message:

- Base class: `StreamParserBase`, `ParserOptions`. The parser adds blocks with a `BlockKey` to a `ReplyBuilder`.
- Base class for an API that continues the text of a prompt: `PromptReplyParser`.
- Contents of a reply: `Usage`, `FinishReason`, `StreamEvent`, `ToolCallIndex`.
- Values of any type: `as_object`, `as_list`, `as_text`, `as_token_count`, `parse_arguments`, `native_to_json`.
- Errors in a reply: `Failure`, `parse_failure`, `reported_error`.
- Values in the text of an error: `describe_value`, `list_keys`.

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

To write the `__init__` of a large provider package, so that a program loads only the modules that it uses:
`import_on_first_use`.

To write tests, use `agentkit.testing`: `check_provider` finds faults in a provider, and a `FakeService` imitates
the API.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.lazy_names import import_on_first_use as import_on_first_use

if TYPE_CHECKING:
    from agentkit.argument_checks import check_choice as check_choice
    from agentkit.capabilities.capabilities import Capabilities as Capabilities
    from agentkit.capabilities.groups import MediaCapabilities as MediaCapabilities
    from agentkit.capabilities.groups import OpaqueCapabilities as OpaqueCapabilities
    from agentkit.capabilities.groups import StrictRules as StrictRules
    from agentkit.capabilities.groups import ThinkingCapabilities as ThinkingCapabilities
    from agentkit.capabilities.groups import ToolCapabilities as ToolCapabilities
    from agentkit.capabilities.groups import TurnCapabilities as TurnCapabilities
    from agentkit.capabilities.local_model_rules import ModelRules as ModelRules
    from agentkit.capabilities.media_rules import MediaLimits as MediaLimits
    from agentkit.capabilities.media_rules import MediaRule as MediaRule
    from agentkit.capabilities.media_rules import media_types as media_types
    from agentkit.capabilities.model_facts import ModelFact as ModelFact
    from agentkit.capabilities.name_rules import NameRule as NameRule
    from agentkit.capabilities.name_rules import short_hash as short_hash
    from agentkit.capabilities.wire_layout import OptionLayout as OptionLayout
    from agentkit.capabilities.wire_layout import WireLayout as WireLayout
    from agentkit.chat_templates.prompt_reply_parser import PromptReplyParser as PromptReplyParser
    from agentkit.chat_templates.template_formatter import ChatTemplateFormatter as ChatTemplateFormatter
    from agentkit.errors import AgentkitError as AgentkitError
    from agentkit.errors import AuthError as AuthError
    from agentkit.errors import ConversionError as ConversionError
    from agentkit.errors import InputError as InputError
    from agentkit.errors import MessageError as MessageError
    from agentkit.errors import MissingExtraError as MissingExtraError
    from agentkit.errors import OptionError as OptionError
    from agentkit.errors import ProviderError as ProviderError
    from agentkit.formatting.formatter import FormatterBase as FormatterBase
    from agentkit.formatting.formatter import FormatterOptions as FormatterOptions
    from agentkit.formatting.prompt_cache import CacheBreakpoints as CacheBreakpoints
    from agentkit.formatting.prompt_cache import place_cache_breakpoints as place_cache_breakpoints
    from agentkit.formatting.prompt_cache import stable_blocks as stable_blocks
    from agentkit.history.policies import MultiAgentHistory as MultiAgentHistory
    from agentkit.json_values import as_list as as_list
    from agentkit.json_values import as_object as as_object
    from agentkit.json_values import as_text as as_text
    from agentkit.json_values import copy_json as copy_json
    from agentkit.json_values import ensure_json_safe as ensure_json_safe
    from agentkit.json_values import get_set_fields as get_set_fields
    from agentkit.json_values import make_json_safe as make_json_safe
    from agentkit.json_values import native_to_json as native_to_json
    from agentkit.json_values import parse_arguments as parse_arguments
    from agentkit.json_values import read_arguments as read_arguments
    from agentkit.ledger.entries import Disposition as Disposition
    from agentkit.ledger.entries import Note as Note
    from agentkit.ledger.provenance import Provenance as Provenance
    from agentkit.legalize.alternating_turns import RESULT_TURN as RESULT_TURN
    from agentkit.legalize.conversation import LegalConversation as LegalConversation
    from agentkit.legalize.conversation import split_results as split_results
    from agentkit.legalize.request_spec import Request as Request
    from agentkit.legalize.request_spec import RequestSpec as RequestSpec
    from agentkit.logs.parsing import parse_function_call as parse_function_call
    from agentkit.logs.parsing import parse_log_text as parse_log_text
    from agentkit.logs.parsing import read_log_entries as read_log_entries
    from agentkit.messages.blocks import AudioBlock as AudioBlock
    from agentkit.messages.blocks import Block as Block
    from agentkit.messages.blocks import DocumentBlock as DocumentBlock
    from agentkit.messages.blocks import ImageBlock as ImageBlock
    from agentkit.messages.blocks import InvalidBlock as InvalidBlock
    from agentkit.messages.blocks import MediaBlock as MediaBlock
    from agentkit.messages.blocks import OpaqueBlock as OpaqueBlock
    from agentkit.messages.blocks import OpaqueState as OpaqueState
    from agentkit.messages.blocks import TextBlock as TextBlock
    from agentkit.messages.blocks import ThinkingBlock as ThinkingBlock
    from agentkit.messages.blocks import ToolResultBlock as ToolResultBlock
    from agentkit.messages.blocks import ToolUseBlock as ToolUseBlock
    from agentkit.messages.blocks import VideoBlock as VideoBlock
    from agentkit.messages.features import Feature as Feature
    from agentkit.messages.log_checks import check_log_format as check_log_format
    from agentkit.messages.log_checks import check_log_message as check_log_message
    from agentkit.messages.log_checks import check_log_request as check_log_request
    from agentkit.messages.log_checks import describe_log_format as describe_log_format
    from agentkit.messages.message import Msg as Msg
    from agentkit.messages.opaque_state import get_state_fields as get_state_fields
    from agentkit.messages.sniffing import sniff_media_type as sniff_media_type
    from agentkit.messages.sources import Base64Source as Base64Source
    from agentkit.messages.sources import Source as Source
    from agentkit.messages.sources import URLSource as URLSource
    from agentkit.messages.sources import source_from_url as source_from_url
    from agentkit.messages.usage import FinishReason as FinishReason
    from agentkit.messages.usage import Usage as Usage
    from agentkit.messages.usage import as_token_count as as_token_count
    from agentkit.models.endpoint import EndpointBase as EndpointBase
    from agentkit.models.endpoint import IncomingStream as IncomingStream
    from agentkit.models.endpoint import OutgoingRequest as OutgoingRequest
    from agentkit.models.endpoint import dump_body as dump_body
    from agentkit.models.endpoint import merge_parameters as merge_parameters
    from agentkit.models.error_patterns import ErrorPatterns as ErrorPatterns
    from agentkit.models.http_client import as_network_failure as as_network_failure
    from agentkit.models.http_client import is_transport_error as is_transport_error
    from agentkit.models.http_client import split_http_options as split_http_options
    from agentkit.models.http_endpoint import HttpEndpoint as HttpEndpoint
    from agentkit.models.http_response_endpoint import HttpResponseEndpoint as HttpResponseEndpoint
    from agentkit.models.registry import Provider as Provider
    from agentkit.models.response_headers import find_request_id as find_request_id
    from agentkit.models.response_headers import parse_retry_after as parse_retry_after
    from agentkit.models.sdk_endpoint import SDKEndpoint as SDKEndpoint
    from agentkit.replies.builder import BlockKey as BlockKey
    from agentkit.replies.builder import ReplyBuilder as ReplyBuilder
    from agentkit.replies.error_bodies import Failure as Failure
    from agentkit.replies.error_bodies import parse_failure as parse_failure
    from agentkit.replies.error_bodies import reported_error as reported_error
    from agentkit.replies.events import StreamEvent as StreamEvent
    from agentkit.replies.missing_call_ids import derive_call_id as derive_call_id
    from agentkit.replies.parser import ParserOptions as ParserOptions
    from agentkit.replies.parser import StreamParserBase as StreamParserBase
    from agentkit.replies.tool_call_index import ToolCallIndex as ToolCallIndex
    from agentkit.reprs import describe_value as describe_value
    from agentkit.reprs import list_keys as list_keys
    from agentkit.tokens.counters import LocalTokenCounter as LocalTokenCounter
    from agentkit.tokens.counters import TokenCount as TokenCount
    from agentkit.tokens.counters import TokenCounterBase as TokenCounterBase
    from agentkit.tokens.remote import RemoteTokenCounter as RemoteTokenCounter
    from agentkit.tokens.request_parts import MediaPart as MediaPart
    from agentkit.tokens.request_parts import RequestParts as RequestParts
    from agentkit.tools.choices import ToolChoice as ToolChoice
    from agentkit.tools.error_marks import split_error_mark as split_error_mark
    from agentkit.tools.error_marks import write_output as write_output
    from agentkit.tools.json_schema import OutputSchema as OutputSchema
    from agentkit.tools.json_schema import close_schema as close_schema
    from agentkit.tools.json_schema import map_schema as map_schema
    from agentkit.tools.result_texts import CALL_TEXT as CALL_TEXT
    from agentkit.tools.result_texts import ERROR_TEXT as ERROR_TEXT
    from agentkit.tools.result_texts import RESULT_TEXT as RESULT_TEXT
    from agentkit.tools.tool import Tool as Tool
    from agentkit.tools.tool import declare_tool as declare_tool
else:
    __all__, __getattr__, __dir__ = import_on_first_use(
        __name__,
        {
            "agentkit.argument_checks": "check_choice",
            "agentkit.capabilities.capabilities": "Capabilities",
            "agentkit.capabilities.groups": (
                "MediaCapabilities OpaqueCapabilities StrictRules ThinkingCapabilities ToolCapabilities "
                "TurnCapabilities"
            ),
            "agentkit.capabilities.media_rules": "MediaLimits MediaRule media_types",
            "agentkit.capabilities.model_facts": "ModelFact",
            "agentkit.capabilities.local_model_rules": "ModelRules",
            "agentkit.capabilities.name_rules": "NameRule short_hash",
            "agentkit.capabilities.wire_layout": "OptionLayout WireLayout",
            "agentkit.chat_templates.prompt_reply_parser": "PromptReplyParser",
            "agentkit.chat_templates.template_formatter": "ChatTemplateFormatter",
            "agentkit.errors": (
                "AgentkitError AuthError ConversionError InputError MessageError MissingExtraError OptionError "
                "ProviderError"
            ),
            "agentkit.formatting.formatter": "FormatterBase FormatterOptions",
            "agentkit.formatting.prompt_cache": "CacheBreakpoints place_cache_breakpoints stable_blocks",
            "agentkit.history.policies": "MultiAgentHistory",
            "agentkit.json_values": (
                "as_list as_object as_text copy_json ensure_json_safe get_set_fields make_json_safe "
                "native_to_json parse_arguments read_arguments"
            ),
            "agentkit.lazy_names": "import_on_first_use",
            "agentkit.ledger.entries": "Disposition Note",
            "agentkit.ledger.provenance": "Provenance",
            "agentkit.legalize.alternating_turns": "RESULT_TURN",
            "agentkit.legalize.conversation": "LegalConversation split_results",
            "agentkit.legalize.request_spec": "Request RequestSpec",
            "agentkit.logs.parsing": "parse_function_call parse_log_text read_log_entries",
            "agentkit.messages.blocks": (
                "AudioBlock Block DocumentBlock ImageBlock InvalidBlock MediaBlock OpaqueBlock OpaqueState "
                "TextBlock ThinkingBlock ToolResultBlock ToolUseBlock VideoBlock"
            ),
            "agentkit.messages.features": "Feature",
            "agentkit.messages.log_checks": (
                "check_log_format check_log_message check_log_request describe_log_format"
            ),
            "agentkit.messages.message": "Msg",
            "agentkit.messages.opaque_state": "get_state_fields",
            "agentkit.messages.sniffing": "sniff_media_type",
            "agentkit.messages.sources": "Base64Source Source URLSource source_from_url",
            "agentkit.messages.usage": "FinishReason Usage as_token_count",
            "agentkit.models.endpoint": "EndpointBase IncomingStream OutgoingRequest dump_body merge_parameters",
            "agentkit.models.error_patterns": "ErrorPatterns",
            "agentkit.models.http_client": "as_network_failure is_transport_error split_http_options",
            "agentkit.models.http_endpoint": "HttpEndpoint",
            "agentkit.models.http_response_endpoint": "HttpResponseEndpoint",
            "agentkit.models.registry": "Provider",
            "agentkit.models.response_headers": "find_request_id parse_retry_after",
            "agentkit.models.sdk_endpoint": "SDKEndpoint",
            "agentkit.replies.builder": "BlockKey ReplyBuilder",
            "agentkit.replies.error_bodies": "Failure parse_failure reported_error",
            "agentkit.replies.events": "StreamEvent",
            "agentkit.replies.missing_call_ids": "derive_call_id",
            "agentkit.replies.parser": "ParserOptions StreamParserBase",
            "agentkit.replies.tool_call_index": "ToolCallIndex",
            "agentkit.reprs": "describe_value list_keys",
            "agentkit.tokens.counters": "LocalTokenCounter TokenCount TokenCounterBase",
            "agentkit.tokens.remote": "RemoteTokenCounter",
            "agentkit.tokens.request_parts": "MediaPart RequestParts",
            "agentkit.tools.choices": "ToolChoice",
            "agentkit.tools.error_marks": "split_error_mark write_output",
            "agentkit.tools.json_schema": "OutputSchema close_schema map_schema",
            "agentkit.tools.result_texts": "CALL_TEXT ERROR_TEXT RESULT_TEXT",
            "agentkit.tools.tool": "Tool declare_tool",
        },
    )
