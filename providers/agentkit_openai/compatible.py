"""`OpenAICompatible`: a vendor whose API is OpenAI Chat Completions, as one row of facts.

A row is enough for a complete provider: formatters, stream parser, endpoint and loader of logs. A vendor needs
code only for differences that no attribute describes.

Example:
    >>> from agentkit_openai import TEMPLATE_CHAT >>> capabilities = TEMPLATE_CHAT.override({"name": "Demo",
    "issuer": "demo", "wire": "demo"}) >>> row = OpenAICompatible( ...     name="demo", title="Demo",
    capabilities=capabilities, address="http://localhost:9000/v1", keyless="none" ... ) >>> row.provider().name
    'demo'

"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, Unpack, cast

from agentkit.provider_kit import (
    Capabilities,
    ErrorPatterns,
    LegalConversation,
    MediaBlock,
    ModelFact,
    Msg,
    MultiAgentHistory,
    ParserOptions,
    Provider,
)
from agentkit_openai._error_patterns import CHAT_ERRORS
from agentkit_openai._prompt_cache import mark_chat
from agentkit_openai.capabilities import CHAT, CHAT_FACTS

if TYPE_CHECKING:
    from agentkit_openai.convert import OpenAIChatFormatter
    from agentkit_openai.replies import OpenAIChatStreamParser

__all__ = ["BreakpointWriter", "MediaPartWriter", "OPENAI", "OpenAICompatible"]

_T = TypeVar("_T")

BreakpointWriter: TypeAlias = Callable[[list[dict[str, Any]], LegalConversation], None]
"""Function that marks finished chat messages for a prompt cache, in place."""

MediaPartWriter: TypeAlias = Callable[[MediaBlock], dict[str, Any]]
"""Function that writes one media block as a content part."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenAICompatible:
    """Row of facts about a vendor whose API is OpenAI Chat Completions.

    Attributes:
        name: Provider name, as in `load_provider("NAME")` and `ChatModel("NAME:MODEL")`.
        title: Vendor name that the names of the formatter classes begin with, such as `DeepSeek`.
        capabilities: Rules of the vendor's API. They include the issuer of opaque state.
        facts: Facts about single models.
        models: Regular expression that matches the beginning of the vendor's model names. None: the names do not
            show the vendor.
        address: Base URL of the API. None: the SDK's own, unless `address_variable` is set.
        address_variable: Environment variable with another base URL.
        address_path: Path to append to the URL in `address_variable`.
        needs_address: True if there is no default address, so that users must pass `base_url`.
        key: Environment variable with the API key. None: the SDK's own.
        keyless: Key that is sent if no key is set. None: a missing key is an error.
        max_tokens: Request parameter that limits the tokens of a reply.
        stream_usage: True if a streamed request must ask for token usage (`stream_options`).
        stream_only: Pattern of the error text of models that accept only streamed requests.
        reasoning_field: Message key in which reasoning is sent back. None: reasoning is not sent in a key.
        reasoning_fields: Keys of replies that may contain reasoning. The first key with text is read.
        reasoning_always: True if each assistant message needs `reasoning_field`, even with an empty text.
        reasoning_parts: True if reasoning is in content parts of the type `thinking`, before the text.
        reasoning_details: True if replies have `reasoning_details`, a list that must be sent back unchanged.
        empty_content: Content of an assistant turn that has tool calls and no text.
        developer_role: True if the API has the role `developer`. For other APIs, the role becomes `system`.
        custom_tools: True if the API has custom tools, whose input is text.
        last_keys: Keys that only the last message may have. They ask the model to continue its text.
        prefill: Keys that the last message must have if it is an assistant message.
        media_parts: Writers of content parts by media kind, where the vendor's parts differ from OpenAI's.
        testing: Module with the fake service of the vendor, for `agentkit.testing.LoopbackServer`.
        mark_breakpoints: Writer of the markers for the vendor's prompt cache.
        error_patterns: Codes and texts of the vendor's errors.
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
    stream_only: re.Pattern[str] | None = None
    reasoning_field: str | None = None
    reasoning_fields: tuple[str, ...] = ("reasoning_content", "reasoning")
    reasoning_always: bool = False
    reasoning_parts: bool = False
    reasoning_details: bool = False
    empty_content: str | None = None
    developer_role: bool = False
    custom_tools: bool = False
    last_keys: frozenset[str] = frozenset()
    prefill: Mapping[str, Any] = field(default_factory=dict[str, Any])
    media_parts: Mapping[str, MediaPartWriter] = field(default_factory=dict[str, MediaPartWriter])
    mark_breakpoints: BreakpointWriter = mark_chat
    testing: str | None = None
    error_patterns: ErrorPatterns = CHAT_ERRORS

    @property
    def issuer(self) -> str:
        """Issuer of the opaque state in this vendor's replies."""
        return self.capabilities.issuer or self.name

    @property
    def writes_reasoning(self) -> bool:
        """True if requests can carry reasoning."""
        return self.reasoning_field is not None or self.reasoning_parts

    @property
    def parser(self) -> type[OpenAIChatStreamParser]:
        """Stream parser of the vendor's replies."""
        return _parser(self)

    def parse_response(self, reply: object, **options: Unpack[ParserOptions]) -> Msg:
        """Parses a complete reply of the vendor as a message.

        Args:
            reply: The SDK's object, its dict, or JSON text.
            options: See `ParserOptions`.

        Raises:
            MessageError: The value is not a reply, or it is an error.
        """
        return self.parser.parse_response(reply, **options)

    def load_native(self, log: object) -> list[Msg]:
        """Loads the messages of a log: a list of native messages, or a complete request.

        Raises:
            MessageError: The value is not a log of Chat Completions.
        """
        from agentkit_openai.logs import load_chat

        return load_chat(log, self.parser)

    def provider(
        self,
        chat_formatter: type[OpenAIChatFormatter] | None = None,
        multi_agent_formatter: type[OpenAIChatFormatter] | None = None,
    ) -> Provider:
        """Returns the provider that this row describes.

        Args:
            chat_formatter: Formatter class with this row as its `vendor`. None: a new class.
            multi_agent_formatter: Subclass of it for many agents. None: a new class.
        """
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
            endpoint=_subclass(self, OpenAIChatEndpoint, "Endpoint"),
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
    """Returns a subclass of `base` for the vendor of a row."""
    doc = f"`{base.__name__}` for {row.title}: see `OpenAICompatible`."
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
    developer_role=True,
    custom_tools=True,
)
"""Row of OpenAI. All attributes of other rows describe differences from it or from the defaults."""
