"""Multi-agent conversations for the APIs of LLM providers.

agentkit turns one list of messages (several speakers, tools, media, thinking) into the exact request of each
provider. It keeps the prompt within a token budget, and reports the outcome of every block in a ledger. It parses
the reply, whole or streamed, into a message.

Example:
    >>> from agentkit import Msg, load_provider
    >>> msgs = [Msg("system", "Be brief.", "system"), Msg("Bob", "Hello.", "user")]
    >>> plan = load_provider("anthropic").chat_formatter().lower(msgs)
    >>> plan.request
    {'messages': [{'role': 'user', 'content': 'Hello.'}], 'system': 'Be brief.'}

    `ChatModel` also calls the model: `reply = await ChatModel("anthropic:claude-opus-5").generate(msgs)`.

Main classes and functions by task:

- Write a conversation: `Msg`; `TextBlock`, `ThinkingBlock`, `ToolUseBlock`, `ToolResultBlock`; `ImageBlock`,
  `AudioBlock`, `VideoBlock`, `DocumentBlock`; `URLSource`, `Base64Source`.
- Build a request: the formatters of a provider package, such as `agentkit_openai.OpenAIChatFormatter`.
  `load_provider` finds them by the name of the provider. They return a `Plan` with a `Ledger`.
- Call a model: `ChatModel`, `ModelStream`, `compare`; errors derive from `AgentkitError`.
- Use tools: `Tool`, `ToolChoice`, `run_tool_calls`.
- Format the messages of several agents: `MultiAgentHistory`, `ChatHistory`, `HistoryPolicy`, `read_history`.
- Limit the prompt: `Budget`; the strategies `OldestFirstInSteps`, `OldestFirst`, `ClearResults`, `ShrinkResults`,
  `DropMedia`, `Summarize`; the counters `CharacterTokenCounter`, `TiktokenCounter`, `HuggingFaceTokenCounter`,
  `UsageAnchoredCounter`.
- Load and store: `load_messages`, `dump_messages`, `load_native`, `load_agentscope`, `load_langchain`.
- Download media: `Fetch`, `MediaCache`.
- Declare the rules of a local model: `ModelRules`.

`agentkit.testing` has fake models and fake servers for tests. `agentkit.provider_kit` is the API for authors of
providers.

Each name is imported from its module when it is first used, so a program loads only the modules that it uses.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentkit.budget.budget import Budget
    from agentkit.budget.media_strategies import DropMedia
    from agentkit.budget.result_strategies import ClearResults, ShrinkResults
    from agentkit.budget.strategies import CutStrategy, OldestFirst, OldestFirstInSteps
    from agentkit.budget.summaries import Summarize
    from agentkit.budget.units import Units
    from agentkit.capabilities.model_rules import ModelRules
    from agentkit.capabilities.prefix_digest import prefix_digest
    from agentkit.comparison.comparison import compare
    from agentkit.comparison.results import ComparisonResult, Price
    from agentkit.errors import (
        AgentkitError,
        AuthError,
        BadRequestError,
        BudgetError,
        ContextLengthError,
        ConversionError,
        EmptyConversationError,
        InputError,
        LossError,
        MessageError,
        MissingExtraError,
        ModelError,
        NetworkError,
        OptionError,
        OverloadedError,
        ProviderError,
        RateLimitError,
        VersionError,
    )
    from agentkit.formatting.formatter import RequestOptions
    from agentkit.history.policies import ChatHistory, HistoryPolicy, MultiAgentHistory
    from agentkit.history.speaker_prefix import strip_speaker_prefix
    from agentkit.history.transcript import read_history
    from agentkit.ledger.entries import Disposition, LedgerEntry, Synthesis
    from agentkit.ledger.ledger import Ledger
    from agentkit.ledger.plan import Cut, Plan
    from agentkit.legalize.media import OnLoss
    from agentkit.legalize.turns import BEGIN_TURN, CONTINUE_TURN
    from agentkit.logs.native import (
        list_cache_markers,
        list_server_tools,
        load_agentscope,
        load_langchain,
        load_native,
        load_request_options,
    )
    from agentkit.media.cache import MediaCache
    from agentkit.media.fetching import Fetch
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
    from agentkit.messages.message import Msg
    from agentkit.messages.serialization import dump_messages, load_messages
    from agentkit.messages.sources import Base64Source, Source, URLSource
    from agentkit.messages.usage import FinishReason, Usage
    from agentkit.models.chat_model import ChatModel
    from agentkit.models.registry import available_providers, load_provider
    from agentkit.models.stream import ModelStream
    from agentkit.repair.pairing import INTERRUPTED_RESULT
    from agentkit.replies.events import (
        ErrorEvent,
        MediaEvent,
        MessageEnd,
        MessageStart,
        OpaqueEvent,
        StreamEvent,
        TextDelta,
        TextEnd,
        TextStart,
        ThinkingDelta,
        ThinkingEnd,
        ThinkingStart,
        ToolUseDelta,
        ToolUseEnd,
        ToolUseStart,
        UsageEvent,
    )
    from agentkit.tokens.counters import LocalTokenCounter, TokenCount, TokenCounterBase
    from agentkit.tokens.hugging_face import HuggingFaceTokenCounter
    from agentkit.tokens.text_counters import CharacterTokenCounter
    from agentkit.tokens.tiktoken_counter import TiktokenCounter
    from agentkit.tokens.usage_anchored import UsageAnchoredCounter
    from agentkit.tools.calls import run_tool_call, run_tool_calls
    from agentkit.tools.choices import ToolChoice
    from agentkit.tools.tool import Tool, ToolLike

__version__ = "0.4.0"

_MODULES = {
    "budget.budget": "Budget",
    "budget.media_strategies": "DropMedia",
    "budget.result_strategies": "ClearResults ShrinkResults",
    "budget.strategies": "CutStrategy OldestFirst OldestFirstInSteps",
    "budget.summaries": "Summarize",
    "budget.units": "Units",
    "capabilities.model_rules": "ModelRules",
    "capabilities.prefix_digest": "prefix_digest",
    "comparison.comparison": "compare",
    "comparison.results": "ComparisonResult Price",
    "errors": "AgentkitError AuthError BadRequestError BudgetError ContextLengthError ConversionError "
    "EmptyConversationError InputError LossError MessageError MissingExtraError ModelError "
    "NetworkError OptionError OverloadedError ProviderError RateLimitError VersionError",
    "formatting.formatter": "RequestOptions",
    "history.policies": "ChatHistory HistoryPolicy MultiAgentHistory",
    "history.speaker_prefix": "strip_speaker_prefix",
    "history.transcript": "read_history",
    "ledger.entries": "Disposition LedgerEntry Synthesis",
    "ledger.ledger": "Ledger",
    "ledger.plan": "Cut Plan",
    "legalize.media": "OnLoss",
    "legalize.turns": "BEGIN_TURN CONTINUE_TURN",
    "logs.native": "list_cache_markers list_server_tools load_agentscope load_langchain load_native "
    "load_request_options",
    "media.cache": "MediaCache",
    "media.fetching": "Fetch",
    "messages.blocks": "AudioBlock Block DocumentBlock ImageBlock InvalidBlock MediaBlock OpaqueBlock OpaqueState "
    "TextBlock ThinkingBlock ToolResultBlock ToolUseBlock VideoBlock",
    "messages.message": "Msg",
    "messages.serialization": "dump_messages load_messages",
    "messages.sources": "Base64Source Source URLSource",
    "messages.usage": "FinishReason Usage",
    "models.chat_model": "ChatModel",
    "models.registry": "available_providers load_provider",
    "models.stream": "ModelStream",
    "repair.pairing": "INTERRUPTED_RESULT",
    "replies.events": "ErrorEvent MediaEvent MessageEnd MessageStart OpaqueEvent StreamEvent TextDelta TextEnd "
    "TextStart ThinkingDelta ThinkingEnd ThinkingStart ToolUseDelta ToolUseEnd ToolUseStart "
    "UsageEvent",
    "tokens.counters": "LocalTokenCounter TokenCount TokenCounterBase",
    "tokens.hugging_face": "HuggingFaceTokenCounter",
    "tokens.text_counters": "CharacterTokenCounter",
    "tokens.tiktoken_counter": "TiktokenCounter",
    "tokens.usage_anchored": "UsageAnchoredCounter",
    "tools.calls": "run_tool_call run_tool_calls",
    "tools.choices": "ToolChoice",
    "tools.tool": "Tool ToolLike",
}
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "AgentkitError",
    "AudioBlock",
    "AuthError",
    "BEGIN_TURN",
    "BadRequestError",
    "Base64Source",
    "Block",
    "Budget",
    "BudgetError",
    "CONTINUE_TURN",
    "CharacterTokenCounter",
    "ChatHistory",
    "ChatModel",
    "ClearResults",
    "ComparisonResult",
    "ContextLengthError",
    "ConversionError",
    "Cut",
    "CutStrategy",
    "Disposition",
    "DocumentBlock",
    "DropMedia",
    "EmptyConversationError",
    "ErrorEvent",
    "Fetch",
    "FinishReason",
    "HistoryPolicy",
    "HuggingFaceTokenCounter",
    "INTERRUPTED_RESULT",
    "ImageBlock",
    "InputError",
    "InvalidBlock",
    "Ledger",
    "LedgerEntry",
    "LocalTokenCounter",
    "LossError",
    "MediaBlock",
    "MediaCache",
    "MediaEvent",
    "MessageEnd",
    "MessageError",
    "MessageStart",
    "MissingExtraError",
    "ModelError",
    "ModelRules",
    "ModelStream",
    "Msg",
    "MultiAgentHistory",
    "NetworkError",
    "OldestFirst",
    "OldestFirstInSteps",
    "OnLoss",
    "OpaqueBlock",
    "OpaqueEvent",
    "OpaqueState",
    "OptionError",
    "OverloadedError",
    "Plan",
    "Price",
    "ProviderError",
    "RateLimitError",
    "RequestOptions",
    "ShrinkResults",
    "Source",
    "StreamEvent",
    "Summarize",
    "Synthesis",
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
    "URLSource",
    "Units",
    "Usage",
    "UsageAnchoredCounter",
    "UsageEvent",
    "VersionError",
    "VideoBlock",
    "available_providers",
    "compare",
    "dump_messages",
    "list_cache_markers",
    "list_server_tools",
    "load_agentscope",
    "load_langchain",
    "load_messages",
    "load_native",
    "load_provider",
    "load_request_options",
    "prefix_digest",
    "read_history",
    "run_tool_call",
    "run_tool_calls",
    "strip_speaker_prefix",
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
