"""agentkit: from a conversation of many speakers to each provider's exact request.

Names are imported from their modules when they are first used, so a program loads only what it uses.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentkit.budget.budget import Budget as Budget
    from agentkit.budget.strategies import ClearResults as ClearResults
    from agentkit.budget.strategies import CutStrategy as CutStrategy
    from agentkit.budget.strategies import DropMedia as DropMedia
    from agentkit.budget.strategies import OldestFirst as OldestFirst
    from agentkit.budget.strategies import ShrinkResults as ShrinkResults
    from agentkit.budget.strategies import Stepped as Stepped
    from agentkit.budget.summaries import Summarise as Summarise
    from agentkit.budget.units import Units as Units
    from agentkit.capabilities.capabilities import Capabilities as Capabilities
    from agentkit.capabilities.media_rules import MediaLimits as MediaLimits
    from agentkit.capabilities.media_rules import MediaRule as MediaRule
    from agentkit.capabilities.media_rules import media_types as media_types
    from agentkit.capabilities.model_facts import ModelFact as ModelFact
    from agentkit.capabilities.model_rules import ModelRules as ModelRules
    from agentkit.capabilities.name_rules import NameRule as NameRule
    from agentkit.capabilities.name_rules import fit_speaker as fit_speaker
    from agentkit.capabilities.name_rules import fit_speakers as fit_speakers
    from agentkit.capabilities.name_rules import short_hash as short_hash
    from agentkit.capabilities.prefix_digest import prefix_digest as prefix_digest
    from agentkit.capabilities.strict_rules import StrictRules as StrictRules
    from agentkit.comparison.comparison import Price as Price
    from agentkit.comparison.comparison import Trial as Trial
    from agentkit.comparison.comparison import compare as compare
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
    from agentkit.formatting.formatter import Asked as Asked
    from agentkit.formatting.formatter import FormatterBase as FormatterBase
    from agentkit.formatting.formatter import FormatterOptions as FormatterOptions
    from agentkit.formatting.lowering import Request as Request
    from agentkit.formatting.lowering import Task as Task
    from agentkit.formatting.prompt_cache import CacheBreakpoints as CacheBreakpoints
    from agentkit.formatting.prompt_cache import breakpoints as breakpoints
    from agentkit.formatting.prompt_cache import check_breakpoints as check_breakpoints
    from agentkit.formatting.prompt_cache import settled as settled
    from agentkit.history.policies import ChatHistory as ChatHistory
    from agentkit.history.policies import HistoryPolicy as HistoryPolicy
    from agentkit.history.policies import MultiAgentHistory as MultiAgentHistory
    from agentkit.history.transcript import frame_tag as frame_tag
    from agentkit.history.transcript import read_history as read_history
    from agentkit.history.transcript import strip_echo as strip_echo
    from agentkit.json_values import copied as copied
    from agentkit.json_values import items_of as items_of
    from agentkit.json_values import mapping_of as mapping_of
    from agentkit.json_values import parse_arguments as parse_arguments
    from agentkit.json_values import plain as plain
    from agentkit.json_values import plain_values as plain_values
    from agentkit.json_values import read_arguments as read_arguments
    from agentkit.json_values import text_of as text_of
    from agentkit.ledger.ledger import Disposition as Disposition
    from agentkit.ledger.ledger import Entry as Entry
    from agentkit.ledger.ledger import Ledger as Ledger
    from agentkit.ledger.ledger import Synthesis as Synthesis
    from agentkit.ledger.plan import Cut as Cut
    from agentkit.ledger.plan import Plan as Plan
    from agentkit.legalize.conversation import Legal as Legal
    from agentkit.legalize.conversation import split_results as split_results
    from agentkit.legalize.media import OnLoss as OnLoss
    from agentkit.legalize.turns import BEGIN_TURN as BEGIN_TURN
    from agentkit.legalize.turns import CONTINUE_TURN as CONTINUE_TURN
    from agentkit.legalize.turns import RESULT_TURN as RESULT_TURN
    from agentkit.logs.native import list_cache_markers as list_cache_markers
    from agentkit.logs.native import load_agentscope as load_agentscope
    from agentkit.logs.native import load_langchain as load_langchain
    from agentkit.logs.native import load_native as load_native
    from agentkit.logs.native import load_tools as load_tools
    from agentkit.logs.native import tools_left_out as tools_left_out
    from agentkit.media.cache import MediaCache as MediaCache
    from agentkit.media.fetching import Fetch as Fetch
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
    from agentkit.messages.features import Trait as Trait
    from agentkit.messages.log_formats import check_log_form as check_log_form
    from agentkit.messages.log_formats import check_log_message as check_log_message
    from agentkit.messages.log_formats import check_log_request as check_log_request
    from agentkit.messages.log_formats import describe_log_form as describe_log_form
    from agentkit.messages.message import Msg as Msg
    from agentkit.messages.serialization import dump_messages as dump_messages
    from agentkit.messages.serialization import load_messages as load_messages
    from agentkit.messages.sniffing import sniffed_type as sniffed_type
    from agentkit.messages.sources import Base64Source as Base64Source
    from agentkit.messages.sources import Source as Source
    from agentkit.messages.sources import URLSource as URLSource
    from agentkit.messages.sources import source_of as source_of
    from agentkit.messages.usage import FinishReason as FinishReason
    from agentkit.messages.usage import Usage as Usage
    from agentkit.messages.usage import token_count as token_count
    from agentkit.models.chat_model import ChatModel as ChatModel
    from agentkit.models.endpoint import EndpointBase as EndpointBase
    from agentkit.models.endpoint import Incoming as Incoming
    from agentkit.models.endpoint import Outgoing as Outgoing
    from agentkit.models.endpoint import merged as merged
    from agentkit.models.failures import request_id_in as request_id_in
    from agentkit.models.failures import retry_after as retry_after
    from agentkit.models.locate import guess_place as guess_place
    from agentkit.models.registry import Provider as Provider
    from agentkit.models.registry import available_providers as available_providers
    from agentkit.models.registry import load_provider as load_provider
    from agentkit.models.stream import ModelStream as ModelStream
    from agentkit.repair.pairing import INTERRUPTED as INTERRUPTED
    from agentkit.replies.builder import Assembly as Assembly
    from agentkit.replies.error_bodies import Failure as Failure
    from agentkit.replies.error_bodies import failure_in as failure_in
    from agentkit.replies.events import ErrorEvent as ErrorEvent
    from agentkit.replies.events import MediaEvent as MediaEvent
    from agentkit.replies.events import MessageEnd as MessageEnd
    from agentkit.replies.events import MessageStart as MessageStart
    from agentkit.replies.events import OpaqueEvent as OpaqueEvent
    from agentkit.replies.events import StreamEvent as StreamEvent
    from agentkit.replies.events import TextDelta as TextDelta
    from agentkit.replies.events import TextEnd as TextEnd
    from agentkit.replies.events import TextStart as TextStart
    from agentkit.replies.events import ThinkingDelta as ThinkingDelta
    from agentkit.replies.events import ThinkingEnd as ThinkingEnd
    from agentkit.replies.events import ThinkingStart as ThinkingStart
    from agentkit.replies.events import ToolUseDelta as ToolUseDelta
    from agentkit.replies.events import ToolUseEnd as ToolUseEnd
    from agentkit.replies.events import ToolUseStart as ToolUseStart
    from agentkit.replies.events import UsageEvent as UsageEvent
    from agentkit.replies.parser import ReadOptions as ReadOptions
    from agentkit.replies.parser import StreamParserBase as StreamParserBase
    from agentkit.tokens.counters import CharacterTokenCounter as CharacterTokenCounter
    from agentkit.tokens.counters import LocalTokenCounter as LocalTokenCounter
    from agentkit.tokens.counters import TokenCount as TokenCount
    from agentkit.tokens.counters import TokenCounterBase as TokenCounterBase
    from agentkit.tokens.hugging_face import HuggingFaceTokenCounter as HuggingFaceTokenCounter
    from agentkit.tokens.remote import RemoteTokenCounter as RemoteTokenCounter
    from agentkit.tokens.request_parts import Medium as Medium
    from agentkit.tokens.request_parts import RequestParts as RequestParts
    from agentkit.tokens.tiktoken_counter import TiktokenCounter as TiktokenCounter
    from agentkit.tokens.usage_anchored import UsageAnchoredCounter as UsageAnchoredCounter
    from agentkit.tools.calls import run_call as run_call
    from agentkit.tools.calls import run_tool_calls as run_tool_calls
    from agentkit.tools.choices import ToolChoice as ToolChoice
    from agentkit.tools.json_schema import OutputSchema as OutputSchema
    from agentkit.tools.json_schema import close_schema as close_schema
    from agentkit.tools.json_schema import map_schema as map_schema
    from agentkit.tools.tool import Tool as Tool
    from agentkit.tools.tool import ToolLike as ToolLike
    from agentkit.tools.tool_texts import CALL_TEXT as CALL_TEXT
    from agentkit.tools.tool_texts import ERROR_TEXT as ERROR_TEXT
    from agentkit.tools.tool_texts import RESULT_TEXT as RESULT_TEXT

_MODULES = {
    "budget.budget": "Budget",
    "budget.strategies": "ClearResults CutStrategy DropMedia OldestFirst ShrinkResults Stepped",
    "budget.summaries": "Summarise",
    "budget.units": "Units",
    "capabilities.capabilities": "Capabilities",
    "capabilities.media_rules": "MediaLimits MediaRule media_types",
    "capabilities.model_facts": "ModelFact",
    "capabilities.model_rules": "ModelRules",
    "capabilities.name_rules": "NameRule fit_speaker fit_speakers short_hash",
    "capabilities.prefix_digest": "prefix_digest",
    "capabilities.strict_rules": "StrictRules",
    "comparison.comparison": "Price Trial compare",
    "errors": "AgentkitError AuthError BadRequestError BudgetError ContextLengthError ConversionError "
    "EmptyConversationError InputError LossError MessageError MissingExtraError ModelError "
    "NetworkError OptionError OverloadedError ProviderError RateLimitError VersionError",
    "formatting.formatter": "Asked FormatterBase FormatterOptions",
    "formatting.lowering": "Request Task",
    "formatting.prompt_cache": "CacheBreakpoints breakpoints check_breakpoints settled",
    "history.policies": "ChatHistory HistoryPolicy MultiAgentHistory",
    "history.transcript": "frame_tag read_history strip_echo",
    "json_values": "copied items_of mapping_of parse_arguments plain plain_values read_arguments text_of",
    "ledger.ledger": "Disposition Entry Ledger Synthesis",
    "ledger.plan": "Cut Plan",
    "legalize.conversation": "Legal split_results",
    "legalize.media": "OnLoss",
    "legalize.turns": "BEGIN_TURN CONTINUE_TURN RESULT_TURN",
    "logs.native": "list_cache_markers load_agentscope load_langchain load_native load_tools tools_left_out",
    "media.cache": "MediaCache",
    "media.fetching": "Fetch",
    "messages.blocks": "AudioBlock Block DocumentBlock ImageBlock InvalidBlock MediaBlock OpaqueBlock OpaqueState "
    "TextBlock ThinkingBlock ToolResultBlock ToolUseBlock VideoBlock",
    "messages.features": "Trait",
    "messages.log_formats": "check_log_form check_log_message check_log_request describe_log_form",
    "messages.message": "Msg",
    "messages.serialization": "dump_messages load_messages",
    "messages.sniffing": "sniffed_type",
    "messages.sources": "Base64Source Source URLSource source_of",
    "messages.usage": "FinishReason Usage token_count",
    "models.chat_model": "ChatModel",
    "models.endpoint": "EndpointBase Incoming Outgoing merged",
    "models.failures": "request_id_in retry_after",
    "models.locate": "guess_place",
    "models.registry": "Provider available_providers load_provider",
    "models.stream": "ModelStream",
    "repair.pairing": "INTERRUPTED",
    "replies.builder": "Assembly",
    "replies.error_bodies": "Failure failure_in",
    "replies.events": "ErrorEvent MediaEvent MessageEnd MessageStart OpaqueEvent StreamEvent TextDelta TextEnd "
    "TextStart ThinkingDelta ThinkingEnd ThinkingStart ToolUseDelta ToolUseEnd ToolUseStart "
    "UsageEvent",
    "replies.parser": "ReadOptions StreamParserBase",
    "tokens.counters": "CharacterTokenCounter LocalTokenCounter TokenCount TokenCounterBase",
    "tokens.hugging_face": "HuggingFaceTokenCounter",
    "tokens.remote": "RemoteTokenCounter",
    "tokens.request_parts": "Medium RequestParts",
    "tokens.tiktoken_counter": "TiktokenCounter",
    "tokens.usage_anchored": "UsageAnchoredCounter",
    "tools.calls": "run_call run_tool_calls",
    "tools.choices": "ToolChoice",
    "tools.json_schema": "OutputSchema close_schema map_schema",
    "tools.tool": "Tool ToolLike",
    "tools.tool_texts": "CALL_TEXT ERROR_TEXT RESULT_TEXT",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}

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
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
