"""Multi-agent conversations for the APIs of LLM providers.

agentkit converts one list of messages (several speakers, tools, media, thinking) to the exact request of each
provider. agentkit keeps the prompt within a token budget, and reports the outcome of every block in a ledger.
agentkit also parses complete and streamed replies into messages.

Example:
    >>> from agentkit import Msg, load_provider
    >>> msgs = [Msg("system", "Be brief.", "system"), Msg("Bob", "Hello.", "user")]
    >>> plan = load_provider("anthropic").chat_formatter().lower(msgs)
    >>> plan.request
    {'messages': [{'role': 'user', 'content': [{'type': 'text', 'text': 'Hello.'}]}], 'system': 'Be brief.'}

    `ChatModel` also calls the model: `reply = await ChatModel("anthropic:claude-opus-5").generate(msgs)`.

Main classes and functions by task:

- Write a conversation: `Msg`; `TextBlock`, `ThinkingBlock`, `ToolUseBlock`, `ToolResultBlock`; `ImageBlock`,
  `AudioBlock`, `VideoBlock`, `DocumentBlock`; `URLSource`, `Base64Source`.
- Build a request: the formatters of a provider package, such as `agentkit_openai.OpenAIChatFormatter`.
  `load_provider` finds formatters by the name of the provider. Formatters return a `Plan` with a `Ledger`.
- Call a model: `ChatModel`, `ModelStream`, `compare`; errors derive from `AgentkitError`.
- Use tools: `Tool`, `ToolChoice`, `run_tool_calls`.
- Format the messages of several agents: `MultiAgentHistory`, `ChatHistory`, `HistoryPolicy`, `read_history`.
- Limit the prompt: `Budget`; the strategies `OldestFirstInSteps`, `OldestFirst`, `ClearResults`, `ShrinkResults`,
  `DropMedia`, `Summarize`; the counters `CharacterTokenCounter`, `TiktokenCounter`, `HuggingFaceTokenCounter`,
  `UsageAnchoredCounter`.
- Load and store: `load_messages`, `dump_messages`, `load_native`, `load_agentscope`, `load_langchain`.
- Download media: `Fetch`, `MediaCache`.
- Declare the rules of a local model: `ModelRules`.

Further packages: `agentkit.prompts` has typed prompts, `agentkit.chat_templates` writes conversations in the text
format of a model, and `agentkit.training` creates training data. `agentkit.testing` has fake models and fake
servers for tests. `agentkit.provider_kit` is the API for authors of providers.

agentkit imports each of these names on first use, so a program loads only the modules that it uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.lazy_names import import_on_first_use

__version__ = "0.4.0"

if TYPE_CHECKING:
    from agentkit.budget.budget import Budget as Budget
    from agentkit.budget.media_strategies import DropMedia as DropMedia
    from agentkit.budget.result_strategies import ClearResults as ClearResults
    from agentkit.budget.result_strategies import ShrinkResults as ShrinkResults
    from agentkit.budget.strategies import CutStrategy as CutStrategy
    from agentkit.budget.strategies import OldestFirst as OldestFirst
    from agentkit.budget.strategies import OldestFirstInSteps as OldestFirstInSteps
    from agentkit.budget.summaries import Summarize as Summarize
    from agentkit.budget.units import Units as Units
    from agentkit.capabilities.local_model_rules import ModelRules as ModelRules
    from agentkit.capabilities.prefix_digest import prefix_digest as prefix_digest
    from agentkit.comparison.comparison import compare as compare
    from agentkit.comparison.prices import Price as Price
    from agentkit.comparison.results import ComparisonResult as ComparisonResult
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
    from agentkit.errors import NoAnswerError as NoAnswerError
    from agentkit.errors import OptionError as OptionError
    from agentkit.errors import OverloadedError as OverloadedError
    from agentkit.errors import ParseError as ParseError
    from agentkit.errors import ProviderError as ProviderError
    from agentkit.errors import RateLimitError as RateLimitError
    from agentkit.errors import TemplateError as TemplateError
    from agentkit.errors import TemplateNotFoundError as TemplateNotFoundError
    from agentkit.errors import VersionError as VersionError
    from agentkit.formatting.formatter import RequestOptions as RequestOptions
    from agentkit.history.frame_parsing import read_history as read_history
    from agentkit.history.policies import ChatHistory as ChatHistory
    from agentkit.history.policies import HistoryPolicy as HistoryPolicy
    from agentkit.history.policies import MultiAgentHistory as MultiAgentHistory
    from agentkit.history.speaker_prefix import strip_speaker_prefix as strip_speaker_prefix
    from agentkit.ledger.entries import Disposition as Disposition
    from agentkit.ledger.entries import LedgerEntry as LedgerEntry
    from agentkit.ledger.entries import Synthesis as Synthesis
    from agentkit.ledger.ledger import Ledger as Ledger
    from agentkit.ledger.plan import Cut as Cut
    from agentkit.ledger.plan import Plan as Plan
    from agentkit.legalize.alternating_turns import BEGIN_TURN as BEGIN_TURN
    from agentkit.legalize.alternating_turns import CONTINUE_TURN as CONTINUE_TURN
    from agentkit.legalize.media import OnLoss as OnLoss
    from agentkit.logs.native import list_cache_markers as list_cache_markers
    from agentkit.logs.native import list_server_tools as list_server_tools
    from agentkit.logs.native import load_agentscope as load_agentscope
    from agentkit.logs.native import load_langchain as load_langchain
    from agentkit.logs.native import load_native as load_native
    from agentkit.logs.native import load_request_options as load_request_options
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
    from agentkit.messages.message import Msg as Msg
    from agentkit.messages.serialization import dump_messages as dump_messages
    from agentkit.messages.serialization import load_messages as load_messages
    from agentkit.messages.sources import Base64Source as Base64Source
    from agentkit.messages.sources import Source as Source
    from agentkit.messages.sources import URLSource as URLSource
    from agentkit.messages.usage import FinishReason as FinishReason
    from agentkit.messages.usage import Usage as Usage
    from agentkit.models.chat_model import ChatModel as ChatModel
    from agentkit.models.registry import available_providers as available_providers
    from agentkit.models.registry import load_provider as load_provider
    from agentkit.models.stream import ModelStream as ModelStream
    from agentkit.repair.pairing import INTERRUPTED_RESULT as INTERRUPTED_RESULT
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
    from agentkit.tokens.counters import LocalTokenCounter as LocalTokenCounter
    from agentkit.tokens.counters import TokenCount as TokenCount
    from agentkit.tokens.counters import TokenCounterBase as TokenCounterBase
    from agentkit.tokens.hugging_face import HuggingFaceTokenCounter as HuggingFaceTokenCounter
    from agentkit.tokens.text_counters import CharacterTokenCounter as CharacterTokenCounter
    from agentkit.tokens.tiktoken_counter import TiktokenCounter as TiktokenCounter
    from agentkit.tokens.usage_anchored import UsageAnchoredCounter as UsageAnchoredCounter
    from agentkit.tools.choices import ToolChoice as ToolChoice
    from agentkit.tools.concurrent_calls import run_tool_call as run_tool_call
    from agentkit.tools.concurrent_calls import run_tool_calls as run_tool_calls
    from agentkit.tools.tool import Tool as Tool
    from agentkit.tools.tool import ToolLike as ToolLike
else:
    __all__, __getattr__, __dir__ = import_on_first_use(
        __name__,
        {
            "agentkit.budget.budget": "Budget",
            "agentkit.budget.media_strategies": "DropMedia",
            "agentkit.budget.result_strategies": "ClearResults ShrinkResults",
            "agentkit.budget.strategies": "CutStrategy OldestFirst OldestFirstInSteps",
            "agentkit.budget.summaries": "Summarize",
            "agentkit.budget.units": "Units",
            "agentkit.capabilities.local_model_rules": "ModelRules",
            "agentkit.capabilities.prefix_digest": "prefix_digest",
            "agentkit.comparison.comparison": "compare",
            "agentkit.comparison.prices": "Price",
            "agentkit.comparison.results": "ComparisonResult",
            "agentkit.errors": (
                "AgentkitError AuthError BadRequestError BudgetError ContextLengthError ConversionError "
                "EmptyConversationError InputError LossError MessageError MissingExtraError ModelError "
                "NetworkError NoAnswerError OptionError OverloadedError ParseError ProviderError RateLimitError "
                "TemplateError TemplateNotFoundError VersionError"
            ),
            "agentkit.formatting.formatter": "RequestOptions",
            "agentkit.history.frame_parsing": "read_history",
            "agentkit.history.policies": "ChatHistory HistoryPolicy MultiAgentHistory",
            "agentkit.history.speaker_prefix": "strip_speaker_prefix",
            "agentkit.ledger.entries": "Disposition LedgerEntry Synthesis",
            "agentkit.ledger.ledger": "Ledger",
            "agentkit.ledger.plan": "Cut Plan",
            "agentkit.legalize.alternating_turns": "BEGIN_TURN CONTINUE_TURN",
            "agentkit.legalize.media": "OnLoss",
            "agentkit.logs.native": (
                "list_cache_markers list_server_tools load_agentscope load_langchain load_native "
                "load_request_options"
            ),
            "agentkit.media.cache": "MediaCache",
            "agentkit.media.fetching": "Fetch",
            "agentkit.messages.blocks": (
                "AudioBlock Block DocumentBlock ImageBlock InvalidBlock MediaBlock OpaqueBlock OpaqueState "
                "TextBlock ThinkingBlock ToolResultBlock ToolUseBlock VideoBlock"
            ),
            "agentkit.messages.message": "Msg",
            "agentkit.messages.serialization": "dump_messages load_messages",
            "agentkit.messages.sources": "Base64Source Source URLSource",
            "agentkit.messages.usage": "FinishReason Usage",
            "agentkit.models.chat_model": "ChatModel",
            "agentkit.models.registry": "available_providers load_provider",
            "agentkit.models.stream": "ModelStream",
            "agentkit.repair.pairing": "INTERRUPTED_RESULT",
            "agentkit.replies.events": (
                "ErrorEvent MediaEvent MessageEnd MessageStart OpaqueEvent StreamEvent TextDelta TextEnd "
                "TextStart ThinkingDelta ThinkingEnd ThinkingStart ToolUseDelta ToolUseEnd ToolUseStart "
                "UsageEvent"
            ),
            "agentkit.tokens.counters": "LocalTokenCounter TokenCount TokenCounterBase",
            "agentkit.tokens.hugging_face": "HuggingFaceTokenCounter",
            "agentkit.tokens.text_counters": "CharacterTokenCounter",
            "agentkit.tokens.tiktoken_counter": "TiktokenCounter",
            "agentkit.tokens.usage_anchored": "UsageAnchoredCounter",
            "agentkit.tools.choices": "ToolChoice",
            "agentkit.tools.concurrent_calls": "run_tool_call run_tool_calls",
            "agentkit.tools.tool": "Tool ToolLike",
        },
    )
