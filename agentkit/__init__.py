"""agentkit: from a conversation of many speakers to each provider's exact request.

This front door is lazy: a name is imported from its room when it is first asked for, so that a program pays
for what it uses. To read the library, take the rooms in this order: `errors`, `values`, `usage`, `sources`,
`blocks`, `adopting`, `traits`, `messages`, `tool_running`, `storage`, `native`, `data_urls`, `partial`,
`failures`, `blame`, `events`, `endpoints`, `schemas`, `object_schemas`, `strict_schemas`, `tools`, `tool_choices`,
`text_counts`, `text_estimate`,
`request_parts`, `drafts`, `tokens`, `encodings`, `image_tokens`, `tokenizers`, `hugging_face`,
`usage_anchored`, `remote_counts`, `ledger`, `exchanges`, `units`, `strategies`, `binding`, `schedule`,
`summaries`, `edition`, `capabilities`, `model_facts`, `composing`, `assembly`, `streaming`, `echoes`,
`frames`, `caching`, `framing`, `history`, `sniffing`, `charsets`, `addresses`, `media_cache`, `resizing`,
`shelf`, `held_media`, `fetching`, `local_files`, `media`, `budget`, `obstacles`, `tidied`, `tidy`,
`media_limits`, `part_pairs`, `result_order`, `turn_taking`, `legalize`, `unsaid`, `lowering`, `cutting`,
`formatting`, `registry`, `native_logs`, `loops`, `model_stream`, `calls`, `chat_model`, `recordings`,
`comparison`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentkit.adopting import parse_arguments as parse_arguments
    from agentkit.adopting import read_arguments as read_arguments
    from agentkit.assembly import Assembly as Assembly
    from agentkit.binding import prefix_digest as prefix_digest
    from agentkit.blame import guess_place as guess_place
    from agentkit.blocks import AudioBlock as AudioBlock
    from agentkit.blocks import Block as Block
    from agentkit.blocks import DocumentBlock as DocumentBlock
    from agentkit.blocks import ImageBlock as ImageBlock
    from agentkit.blocks import InvalidBlock as InvalidBlock
    from agentkit.blocks import MediaBlock as MediaBlock
    from agentkit.blocks import OpaqueBlock as OpaqueBlock
    from agentkit.blocks import OpaqueState as OpaqueState
    from agentkit.blocks import TextBlock as TextBlock
    from agentkit.blocks import ThinkingBlock as ThinkingBlock
    from agentkit.blocks import ToolResultBlock as ToolResultBlock
    from agentkit.blocks import ToolUseBlock as ToolUseBlock
    from agentkit.blocks import VideoBlock as VideoBlock
    from agentkit.budget import Budget as Budget
    from agentkit.caching import CacheBreakpoints as CacheBreakpoints
    from agentkit.caching import breakpoints as breakpoints
    from agentkit.caching import check_breakpoints as check_breakpoints
    from agentkit.caching import settled as settled
    from agentkit.capabilities import Capabilities as Capabilities
    from agentkit.capabilities import MediaLimits as MediaLimits
    from agentkit.capabilities import MediaRule as MediaRule
    from agentkit.capabilities import NameRule as NameRule
    from agentkit.capabilities import fit_speaker as fit_speaker
    from agentkit.capabilities import fit_speakers as fit_speakers
    from agentkit.capabilities import media_types as media_types
    from agentkit.capabilities import short_hash as short_hash
    from agentkit.chat_model import ChatModel as ChatModel
    from agentkit.comparison import Price as Price
    from agentkit.comparison import Trial as Trial
    from agentkit.comparison import compare as compare
    from agentkit.data_urls import source_of as source_of
    from agentkit.echoes import strip_echo as strip_echo
    from agentkit.endpoints import EndpointBase as EndpointBase
    from agentkit.endpoints import Incoming as Incoming
    from agentkit.endpoints import Outgoing as Outgoing
    from agentkit.endpoints import merged as merged
    from agentkit.errors import AgentkitError as AgentkitError
    from agentkit.errors import AuthError as AuthError
    from agentkit.errors import BadRequestError as BadRequestError
    from agentkit.errors import BudgetError as BudgetError
    from agentkit.errors import ContextLengthError as ContextLengthError
    from agentkit.errors import ConversionError as ConversionError
    from agentkit.errors import EmptyConversationError as EmptyConversationError
    from agentkit.errors import InputError as InputError
    from agentkit.errors import LossError as LossError
    from agentkit.errors import MessageError as MessageError
    from agentkit.errors import MissingExtraError as MissingExtraError
    from agentkit.errors import ModelError as ModelError
    from agentkit.errors import NetworkError as NetworkError
    from agentkit.errors import OptionError as OptionError
    from agentkit.errors import OverloadedError as OverloadedError
    from agentkit.errors import ProviderError as ProviderError
    from agentkit.errors import RateLimitError as RateLimitError
    from agentkit.errors import VersionError as VersionError
    from agentkit.events import ErrorEvent as ErrorEvent
    from agentkit.events import MediaEvent as MediaEvent
    from agentkit.events import MessageEnd as MessageEnd
    from agentkit.events import MessageStart as MessageStart
    from agentkit.events import OpaqueEvent as OpaqueEvent
    from agentkit.events import StreamEvent as StreamEvent
    from agentkit.events import TextDelta as TextDelta
    from agentkit.events import TextEnd as TextEnd
    from agentkit.events import TextStart as TextStart
    from agentkit.events import ThinkingDelta as ThinkingDelta
    from agentkit.events import ThinkingEnd as ThinkingEnd
    from agentkit.events import ThinkingStart as ThinkingStart
    from agentkit.events import ToolUseDelta as ToolUseDelta
    from agentkit.events import ToolUseEnd as ToolUseEnd
    from agentkit.events import ToolUseStart as ToolUseStart
    from agentkit.events import UsageEvent as UsageEvent
    from agentkit.exchanges import INTERRUPTED as INTERRUPTED
    from agentkit.failures import Failure as Failure
    from agentkit.failures import failure_in as failure_in
    from agentkit.failures import request_id_in as request_id_in
    from agentkit.failures import retry_after as retry_after
    from agentkit.fetching import Fetch as Fetch
    from agentkit.formatting import Asked as Asked
    from agentkit.formatting import FormatterBase as FormatterBase
    from agentkit.formatting import FormatterOptions as FormatterOptions
    from agentkit.frames import frame_tag as frame_tag
    from agentkit.frames import read_history as read_history
    from agentkit.history import ChatHistory as ChatHistory
    from agentkit.history import HistoryPolicy as HistoryPolicy
    from agentkit.history import MultiAgentHistory as MultiAgentHistory
    from agentkit.hugging_face import HuggingFaceTokenCounter as HuggingFaceTokenCounter
    from agentkit.ledger import Cut as Cut
    from agentkit.ledger import Disposition as Disposition
    from agentkit.ledger import Entry as Entry
    from agentkit.ledger import Ledger as Ledger
    from agentkit.ledger import Plan as Plan
    from agentkit.ledger import Synthesis as Synthesis
    from agentkit.legalize import Legal as Legal
    from agentkit.legalize import split_results as split_results
    from agentkit.log_forms import check_log_form as check_log_form
    from agentkit.log_forms import check_log_message as check_log_message
    from agentkit.log_forms import check_log_request as check_log_request
    from agentkit.log_forms import describe_log_form as describe_log_form
    from agentkit.lowering import Request as Request
    from agentkit.lowering import Task as Task
    from agentkit.media_cache import MediaCache as MediaCache
    from agentkit.messages import Msg as Msg
    from agentkit.model_facts import ModelFact as ModelFact
    from agentkit.model_rules import ModelRules as ModelRules
    from agentkit.model_stream import ModelStream as ModelStream
    from agentkit.native import items_of as items_of
    from agentkit.native import mapping_of as mapping_of
    from agentkit.native import plain as plain
    from agentkit.native import plain_values as plain_values
    from agentkit.native import text_of as text_of
    from agentkit.native_logs import list_cache_markers as list_cache_markers
    from agentkit.native_logs import load_agentscope as load_agentscope
    from agentkit.native_logs import load_langchain as load_langchain
    from agentkit.native_logs import load_native as load_native
    from agentkit.native_logs import load_tools as load_tools
    from agentkit.native_logs import tools_left_out as tools_left_out
    from agentkit.registry import Provider as Provider
    from agentkit.registry import available_providers as available_providers
    from agentkit.registry import load_provider as load_provider
    from agentkit.remote_counts import RemoteTokenCounter as RemoteTokenCounter
    from agentkit.request_parts import Medium as Medium
    from agentkit.request_parts import RequestParts as RequestParts
    from agentkit.schemas import OutputSchema as OutputSchema
    from agentkit.schemas import close_schema as close_schema
    from agentkit.schemas import map_schema as map_schema
    from agentkit.sniffing import sniffed_type as sniffed_type
    from agentkit.sources import Base64Source as Base64Source
    from agentkit.sources import Source as Source
    from agentkit.sources import URLSource as URLSource
    from agentkit.storage import dump_messages as dump_messages
    from agentkit.storage import load_messages as load_messages
    from agentkit.strategies import ClearResults as ClearResults
    from agentkit.strategies import CutStrategy as CutStrategy
    from agentkit.strategies import DropMedia as DropMedia
    from agentkit.strategies import OldestFirst as OldestFirst
    from agentkit.strategies import ShrinkResults as ShrinkResults
    from agentkit.strategies import Stepped as Stepped
    from agentkit.streaming import ReadOptions as ReadOptions
    from agentkit.streaming import StreamParserBase as StreamParserBase
    from agentkit.strict_schemas import StrictRules as StrictRules
    from agentkit.summaries import Summarise as Summarise
    from agentkit.tidied import OnLoss as OnLoss
    from agentkit.tokenizers import TiktokenCounter as TiktokenCounter
    from agentkit.tokens import CharacterTokenCounter as CharacterTokenCounter
    from agentkit.tokens import LocalTokenCounter as LocalTokenCounter
    from agentkit.tokens import TokenCount as TokenCount
    from agentkit.tokens import TokenCounterBase as TokenCounterBase
    from agentkit.tool_calls import run_tool_calls as run_tool_calls
    from agentkit.tool_choices import ToolChoice as ToolChoice
    from agentkit.tool_texts import CALL_TEXT as CALL_TEXT
    from agentkit.tool_texts import ERROR_TEXT as ERROR_TEXT
    from agentkit.tool_texts import RESULT_TEXT as RESULT_TEXT
    from agentkit.tools import Tool as Tool
    from agentkit.tools import ToolLike as ToolLike
    from agentkit.tools import run_call as run_call
    from agentkit.traits import Trait as Trait
    from agentkit.turn_taking import BEGIN_TURN as BEGIN_TURN
    from agentkit.turn_taking import CONTINUE_TURN as CONTINUE_TURN
    from agentkit.turn_taking import RESULT_TURN as RESULT_TURN
    from agentkit.units import Units as Units
    from agentkit.usage import FinishReason as FinishReason
    from agentkit.usage import Usage as Usage
    from agentkit.usage import token_count as token_count
    from agentkit.usage_anchored import UsageAnchoredCounter as UsageAnchoredCounter
    from agentkit.values import copied as copied

_ROOMS = {
    "adopting": "parse_arguments read_arguments",
    "assembly": "Assembly",
    "binding": "prefix_digest",
    "blame": "guess_place",
    "blocks": "AudioBlock Block DocumentBlock ImageBlock InvalidBlock MediaBlock OpaqueBlock OpaqueState "
    "TextBlock ThinkingBlock ToolResultBlock ToolUseBlock VideoBlock",
    "budget": "Budget",
    "caching": "CacheBreakpoints breakpoints check_breakpoints settled",
    "capabilities": "Capabilities MediaLimits MediaRule NameRule fit_speaker fit_speakers media_types short_hash",
    "chat_model": "ChatModel",
    "comparison": "Price Trial compare",
    "data_urls": "source_of",
    "echoes": "strip_echo",
    "endpoints": "EndpointBase Incoming Outgoing merged",
    "errors": "AgentkitError AuthError BadRequestError BudgetError ContextLengthError ConversionError "
    "EmptyConversationError InputError LossError MessageError MissingExtraError ModelError "
    "NetworkError OptionError OverloadedError ProviderError RateLimitError VersionError",
    "events": "ErrorEvent MediaEvent MessageEnd MessageStart OpaqueEvent StreamEvent TextDelta TextEnd "
    "TextStart ThinkingDelta ThinkingEnd ThinkingStart ToolUseDelta ToolUseEnd ToolUseStart "
    "UsageEvent",
    "exchanges": "INTERRUPTED",
    "failures": "Failure failure_in request_id_in retry_after",
    "fetching": "Fetch",
    "formatting": "Asked FormatterBase FormatterOptions",
    "frames": "frame_tag read_history",
    "history": "ChatHistory HistoryPolicy MultiAgentHistory",
    "hugging_face": "HuggingFaceTokenCounter",
    "ledger": "Cut Disposition Entry Ledger Plan Synthesis",
    "legalize": "Legal split_results",
    "turn_taking": "BEGIN_TURN CONTINUE_TURN RESULT_TURN",
    "log_forms": "check_log_form check_log_message check_log_request describe_log_form",
    "lowering": "Request Task",
    "media_cache": "MediaCache",
    "messages": "Msg",
    "model_facts": "ModelFact",
    "model_rules": "ModelRules",
    "model_stream": "ModelStream",
    "native": "items_of mapping_of plain plain_values text_of",
    "native_logs": "list_cache_markers load_agentscope load_langchain load_native load_tools tools_left_out",
    "registry": "Provider available_providers load_provider",
    "remote_counts": "RemoteTokenCounter",
    "request_parts": "Medium RequestParts",
    "schemas": "OutputSchema close_schema map_schema",
    "sniffing": "sniffed_type",
    "sources": "Base64Source Source URLSource",
    "storage": "dump_messages load_messages",
    "strategies": "ClearResults CutStrategy DropMedia OldestFirst ShrinkResults Stepped",
    "streaming": "ReadOptions StreamParserBase",
    "strict_schemas": "StrictRules",
    "summaries": "Summarise",
    "tidied": "OnLoss",
    "tokenizers": "TiktokenCounter",
    "tokens": "CharacterTokenCounter LocalTokenCounter TokenCount TokenCounterBase",
    "tool_calls": "run_tool_calls",
    "tool_texts": "CALL_TEXT ERROR_TEXT RESULT_TEXT",
    "tool_choices": "ToolChoice",
    "tools": "Tool ToolLike run_call",
    "traits": "Trait",
    "units": "Units",
    "usage": "FinishReason Usage token_count",
    "usage_anchored": "UsageAnchoredCounter",
    "values": "copied",
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names.split()}

__all__ = [
    "AgentkitError",
    "Asked",
    "Assembly",
    "AudioBlock",
    "AuthError",
    "BEGIN_TURN",
    "BadRequestError",
    "Base64Source",
    "Block",
    "Budget",
    "BudgetError",
    "CALL_TEXT",
    "CONTINUE_TURN",
    "CacheBreakpoints",
    "Capabilities",
    "CharacterTokenCounter",
    "ChatHistory",
    "ChatModel",
    "ClearResults",
    "ContextLengthError",
    "ConversionError",
    "Cut",
    "CutStrategy",
    "Disposition",
    "DocumentBlock",
    "DropMedia",
    "ERROR_TEXT",
    "EmptyConversationError",
    "EndpointBase",
    "Entry",
    "ErrorEvent",
    "Failure",
    "Fetch",
    "FinishReason",
    "FormatterBase",
    "FormatterOptions",
    "HistoryPolicy",
    "HuggingFaceTokenCounter",
    "INTERRUPTED",
    "ImageBlock",
    "Incoming",
    "InputError",
    "InvalidBlock",
    "Ledger",
    "Legal",
    "LocalTokenCounter",
    "LossError",
    "MediaBlock",
    "MediaCache",
    "MediaEvent",
    "MediaLimits",
    "MediaRule",
    "Medium",
    "MessageEnd",
    "MessageError",
    "MessageStart",
    "MissingExtraError",
    "ModelError",
    "ModelFact",
    "ModelRules",
    "ModelStream",
    "Msg",
    "MultiAgentHistory",
    "NameRule",
    "NetworkError",
    "OldestFirst",
    "OnLoss",
    "OpaqueBlock",
    "OpaqueEvent",
    "OpaqueState",
    "OptionError",
    "Outgoing",
    "OutputSchema",
    "OverloadedError",
    "Plan",
    "Price",
    "Provider",
    "ProviderError",
    "RESULT_TEXT",
    "RESULT_TURN",
    "RateLimitError",
    "ReadOptions",
    "RemoteTokenCounter",
    "Request",
    "RequestParts",
    "ShrinkResults",
    "Source",
    "Stepped",
    "StreamEvent",
    "StreamParserBase",
    "StrictRules",
    "Summarise",
    "Synthesis",
    "Task",
    "TextBlock",
    "TextDelta",
    "TextEnd",
    "TextStart",
    "ThinkingBlock",
    "ThinkingDelta",
    "ThinkingEnd",
    "ThinkingStart",
    "TiktokenCounter",
    "TokenCount",
    "TokenCounterBase",
    "Tool",
    "ToolChoice",
    "ToolLike",
    "ToolResultBlock",
    "ToolUseBlock",
    "ToolUseDelta",
    "ToolUseEnd",
    "ToolUseStart",
    "Trait",
    "Trial",
    "URLSource",
    "Units",
    "Usage",
    "UsageAnchoredCounter",
    "UsageEvent",
    "VersionError",
    "VideoBlock",
    "available_providers",
    "breakpoints",
    "check_breakpoints",
    "check_log_form",
    "check_log_message",
    "check_log_request",
    "close_schema",
    "compare",
    "copied",
    "describe_log_form",
    "dump_messages",
    "failure_in",
    "fit_speaker",
    "fit_speakers",
    "frame_tag",
    "guess_place",
    "items_of",
    "list_cache_markers",
    "load_agentscope",
    "load_langchain",
    "load_messages",
    "load_native",
    "load_provider",
    "load_tools",
    "map_schema",
    "mapping_of",
    "media_types",
    "merged",
    "parse_arguments",
    "plain",
    "plain_values",
    "prefix_digest",
    "read_arguments",
    "read_history",
    "request_id_in",
    "retry_after",
    "run_call",
    "run_tool_calls",
    "settled",
    "short_hash",
    "sniffed_type",
    "source_of",
    "split_results",
    "strip_echo",
    "text_of",
    "token_count",
    "tools_left_out",
]


def __getattr__(name: str) -> object:
    room = _HOME.get(name)
    if room is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{room}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
