"""`OpenAICompatible`, the description of a vendor whose API follows OpenAI Chat Completions.

A description is enough to create a complete provider, with formatters, a stream parser, an endpoint and a loader
for logs. A vendor needs code only for differences that no attribute describes. `VENDOR_CHAT` and `TEMPLATE_CHAT`
are the capabilities with which a description usually begins.

Example:
    >>> from agentkit_openai import TEMPLATE_CHAT
    >>> demo = OpenAICompatible(
    ...     name="demo",
    ...     title="Demo",
    ...     capabilities=TEMPLATE_CHAT.override({"name": "Demo"}),
    ...     address="http://localhost:9000/v1",
    ...     keyless="none",
    ... )
    >>> demo.provider().name
    'demo'
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from agentkit.provider_kit import (
    Capabilities,
    ErrorPatterns,
    LegalConversation,
    MediaBlock,
    ModelFact,
    Msg,
    MultiAgentHistory,
    NameRule,
)
from agentkit_openai._error_patterns import CHAT_ERRORS
from agentkit_openai._message_keys import MESSAGE_KEYS
from agentkit_openai._prompt_cache import mark_chat
from agentkit_openai.capabilities import CHAT, CHAT_FACTS

if TYPE_CHECKING:
    from agentkit.provider_kit import Provider
    from agentkit_openai.convert import OpenAIChatFormatter
    from agentkit_openai.replies import OpenAIChatStreamParser

__all__ = [
    "BreakpointWriter",
    "CLOSED_KEYS",
    "MediaPartWriter",
    "OPENAI",
    "OpenAICompatible",
    "TEMPLATE_CHAT",
    "VENDOR_CHAT",
    "VENDOR_KEYS",
]

_T = TypeVar("_T")

BreakpointWriter: TypeAlias = Callable[[list[dict[str, Any]], LegalConversation], None]
"""Function that adds markers for a prompt cache to finished chat messages, in place."""

MediaPartWriter: TypeAlias = Callable[[MediaBlock], dict[str, Any]]
"""Function that writes one media block as a content part."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenAICompatible:
    """Description of a vendor whose API follows OpenAI Chat Completions.

    Attributes:
        name: Provider name, as in `load_provider("NAME")` and `ChatModel("NAME:MODEL")`.
        title: Vendor name at the beginning of class names, such as `DeepSeek`.
        capabilities: Rules of the vendor's API. A missing `issuer` or `wire` defaults to the provider name.
        facts: Rules that differ from `capabilities` for some models.
        models: Regular expression for the beginning of the vendor's model names. None if model names do not
            identify the vendor.
        address: Base URL of the API. If None, the SDK uses its default URL, unless `needs_address` is True.
        address_variable: Environment variable with a base URL that replaces `address`.
        address_path: Path that is appended to the URL from `address_variable`.
        needs_address: True if the vendor has no default address. Users then pass `base_url`, or set
            `address_variable` if the vendor has one.
        key: Environment variable with the API key. If both `key` and `keyless` are None, the SDK reads its own
            environment variable.
        keyless: API key that is sent if the user sets no key. None if the vendor always requires a key.
        max_tokens: Name of the request parameter that limits the tokens of a reply.
        stream_usage: True if a streamed request must ask for token usage through `stream_options`.
        reasoning_field: Message key in which requests contain earlier reasoning. None if requests have no such
            key.
        reasoning_fields: Keys of reply messages that can contain reasoning. The first key with text is read.
        reasoning_always: True if each assistant message requires `reasoning_field`, even with an empty text.
        reasoning_parts: True if reasoning is in content parts of the type `thinking`, which precede all texts.
        reasoning_details: True if replies have `reasoning_details`, a list that must be sent back unchanged.
        empty_content: Content of an assistant message that has tool calls and no text. None becomes JSON null.
        custom_tools: True if the API has custom tools, whose input is text instead of JSON.
        last_keys: Message keys that ask the model to continue the text of the last message. Other messages cannot
            have these keys.
        prefill: Keys, with their values, that the API requires in the last message if it is an assistant message.
        media_parts: Maps a kind of media to the function that writes media blocks of this kind as content parts.
            If a kind has no function, media blocks of this kind are written in OpenAI's format.
        testing: Module with a fake service of the vendor, for `agentkit.testing.LoopbackServer`. None if there is
            no such module.
        mark_breakpoints: Function that adds markers for the vendor's prompt cache.
        error_patterns: Patterns for the codes and texts of the vendor's errors.
    """

    name: str
    title: str
    capabilities: Capabilities
    facts: tuple[ModelFact, ...] = ()
    models: str | None = None
    address: str | None = None
    address_variable: str | None = None
    address_path: str = ""
    needs_address: bool = False
    key: str | None = None
    keyless: str | None = None
    max_tokens: str = "max_tokens"
    stream_usage: bool = True
    reasoning_field: str | None = None
    reasoning_fields: tuple[str, ...] = ("reasoning_content", "reasoning")
    reasoning_always: bool = False
    reasoning_parts: bool = False
    reasoning_details: bool = False
    empty_content: str | None = None
    custom_tools: bool = False
    last_keys: frozenset[str] = frozenset()
    prefill: Mapping[str, Any] = field(default_factory=dict[str, Any])
    media_parts: Mapping[str, MediaPartWriter] = field(default_factory=dict[str, MediaPartWriter])
    mark_breakpoints: BreakpointWriter = mark_chat
    testing: str | None = None
    error_patterns: ErrorPatterns = CHAT_ERRORS

    def __post_init__(self) -> None:
        rules = self.capabilities
        owner = {"issuer": rules.issuer or self.name, "wire": rules.wire or self.name}
        object.__setattr__(self, "capabilities", rules.override(owner))

    @property
    def issuer(self) -> str:
        """Issuer of the opaque state in replies from the vendor."""
        return self.capabilities.issuer or self.name

    @property
    def writes_reasoning(self) -> bool:
        """True if requests to the vendor can contain reasoning."""
        return self.reasoning_field is not None or self.reasoning_parts

    @property
    def parser(self) -> type[OpenAIChatStreamParser]:
        """Stream parser class for replies from the vendor."""
        return _parser(self)

    def load_native(self, log: object) -> list[Msg]:
        """Loads messages from a log of the vendor's API.

        Args:
            log: List of messages in the vendor's format, or a complete request.

        Raises:
            MessageError: `log` is not a log of Chat Completions.
        """
        from agentkit_openai.logs import load_chat

        return load_chat(log, self.parser)

    def provider(
        self,
        chat_formatter: type[OpenAIChatFormatter] | None = None,
        multi_agent_formatter: type[OpenAIChatFormatter] | None = None,
    ) -> Provider:
        """Creates the provider for the vendor.

        Args:
            chat_formatter: Formatter class whose `vendor` is this description. If None, a new class is created.
            multi_agent_formatter: Subclass of `chat_formatter` for conversations of many agents. If None, a new
                class is created.
        """
        from agentkit.provider_kit import Provider
        from agentkit_openai.convert import OpenAIChatFormatter
        from agentkit_openai.endpoint import OpenAIChatEndpoint

        chat = chat_formatter or _subclass(self, OpenAIChatFormatter, "ChatFormatter")
        agents = multi_agent_formatter or _subclass(
            self, chat, "MultiAgentFormatter", default_history=MultiAgentHistory
        )
        return Provider(
            self.name,
            chat,
            agents,
            parser=self.parser,
            endpoint=_subclass(self, OpenAIChatEndpoint, "Endpoint", provider=self.name),
            load_native=self.load_native,
            models=self.models,
            testing=self.testing,
            error_patterns=self.error_patterns,
        )


@cache
def _parser(row: OpenAICompatible) -> type[OpenAIChatStreamParser]:
    from agentkit_openai.replies import OpenAIChatStreamParser

    return _subclass(row, OpenAIChatStreamParser, "ChatStreamParser")


def _subclass(row: OpenAICompatible, base: type[_T], suffix: str, **members: Any) -> type[_T]:
    doc = f"`{base.__name__}` for {row.title}, created from an `OpenAICompatible` description."
    members |= {"vendor": row, "__doc__": doc, "__module__": __name__}
    return cast("type[_T]", type(f"{row.title}{suffix}", (base,), members))


OPENAI = OpenAICompatible(
    name="openai",
    title="OpenAI",
    capabilities=CHAT,
    facts=CHAT_FACTS,
    models=r"(chat)?gpt-|o\d(-|$)|codex-",
    max_tokens="max_completion_tokens",  # API reference: `max_tokens` is deprecated
    testing="agentkit_openai.testing",
    custom_tools=True,
)
"""Description of OpenAI's Chat Completions API."""

VENDOR_KEYS = {
    **CHAT.opaque.passthrough_keys,
    "text": frozenset({"refusal", "type", MESSAGE_KEYS, "-message.role"}),
    "tool_use": frozenset({MESSAGE_KEYS}),
}
"""Maps block types to the keys of opaque state that are sent back to OpenAI-compatible vendors.

Keys of developer messages and custom tools are missing, because these vendors support neither.
"""

CLOSED_KEYS = {"image": frozenset({"detail"}), "document": frozenset({"title", "filename"})}
"""Maps block types to the keys of opaque state that are sent back even to APIs that refuse unknown keys."""

VENDOR_CHAT = CHAT.override(
    {
        "issuer": None,  # defaults to the vendor's provider name
        "wire": None,  # defaults to the vendor's provider name
        "turns.speaker_names": False,
        "tools.allowed": frozenset(),
        "media.audio_by_id": False,
        "media.document": None,
        "media.total": 0,  # 0: the limit is unknown
        "opaque.passthrough_keys": VENDOR_KEYS,
    }
)
"""Capabilities that most OpenAI-compatible vendors share."""

TEMPLATE_CHAT = VENDOR_CHAT.override(
    {
        # vLLM joins the parts of a message with line breaks if the chat template expects a string (vLLM's docs)
        "turns.text_joining": "glued",
        "turns.late_system": "line",  # several chat templates accept only one system message, at the start
        "turns.one_system": True,
        "turns.merge": True,
        "turns.first_user": True,
        "turns.needs_user": True,
        # Chat templates of Mistral and Gemma require alternating turns. Error text: "Conversation roles must
        # alternate". These templates ignore tool results when they check the order.
        "turns.alternate": True,
        # Mistral's chat templates (mistral-common, and those on Hugging Face) require call ids of nine letters or
        # digits. Other templates accept any id.
        "tools.call_ids": NameRule(pattern=r"[A-Za-z0-9]{9}", limit=9),
    }
)
"""Capabilities of servers that write the prompt with a model's chat template.

The rules are those of the strictest common templates, so that all common templates accept the requests.
"""
