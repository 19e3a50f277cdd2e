"""Groups of fields in `Capabilities`: rules for turns, tools, media, thinking and opaque blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agentkit.capabilities.media_rules import Kind, MediaRule
from agentkit.capabilities.name_rules import NameRule
from agentkit.messages.message import Role
from agentkit.reprs import bounded_repr

__all__ = [
    "MediaCapabilities",
    "OpaqueCapabilities",
    "StrictRules",
    "ThinkingCapabilities",
    "ToolCapabilities",
    "TurnCapabilities",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCapabilities:
    """Rules for the turns of a request, their texts, and the system prompt.

    Attributes:
        text_joining: How several texts of a turn reach the model. "apart": as separate parts. "glued": as parts
            that the API joins with line breaks. "string": as one string, in which the formatter joins the texts
            with line breaks.
        text_notes: Function that takes a text and the role of its message, and returns notes for the ledger about
            how the request changes the text. None if requests never change texts.
        merge: True if consecutive turns of one role are joined into one turn.
        alternate: True if user and assistant turns must alternate. With `ToolCapabilities.results="each"`, results
            do not count as turns, and an assistant turn is added between a result and a user turn. With
            `results="together"`, results are part of a user turn. True implies `merge`, `first_user`, `one_system`
            and `late_system="line"`.
        first_user: True if the first turn must be a user turn.
        last_user: True if the last turn must be a user turn.
        needs_user: True if the request must have at least one user turn.
        resumable: True if a request can end with an assistant turn whose last block is a provider-run tool
            call without a result (see `OpaqueCapabilities.pair_key`). The API then continues this turn, so no user
            turn is added after the assistant turn.
        system_role: True if the API has a system role. If False, the first user turn starts with the system
            prompt, and `late_system` is set to "line".
        late_system: How system messages after the first turn are sent. "native": with the system role. "line": as
            a line `NAME: TEXT` of a user turn.
        one_system: True if the system prompt must be a single message.
        speaker_names: True if messages have a field for the name of the speaker. If `merge` is True,
            `speaker_names` is set to False, because a joined turn may have several speakers but has only one field
            for a name.
        speaker_refused: Characters that the API refuses in a speaker name. The value is the content of a character
            class `[…]` in a regular expression, such as `<>|`. Empty if the API accepts all names.
    """

    text_joining: Literal["apart", "glued", "string"] = "apart"
    text_notes: Callable[[str, Role], tuple[str, ...]] | None = None
    merge: bool = False
    alternate: bool = False
    first_user: bool = False
    last_user: bool = False
    needs_user: bool = False
    resumable: bool = False
    system_role: bool = True
    late_system: Literal["native", "line"] = "native"
    one_system: bool = False
    speaker_names: bool = False
    speaker_refused: str = r"\s<|\\/>"

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        if self.alternate:
            for name in ("merge", "first_user", "one_system"):
                object.__setattr__(self, name, True)
        if self.merge:
            object.__setattr__(self, "speaker_names", False)
        if self.alternate or not self.system_role:
            object.__setattr__(self, "late_system", "line")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StrictRules:
    """Rules of a target for JSON schemas with `strict: true`.

    All targets require `additionalProperties: false` in these schemas. A schema that breaks a rule is sent without
    strict mode.

    Attributes:
        keywords: JSON Schema keywords that the target accepts. Other keywords are omitted if they are only
            annotations, such as `default`.
        formats: Values of `format` that the target accepts.
        can_omit_properties: True if a schema may have optional properties, which `required` does not list.
        can_recurse: True if a definition may refer to itself.
        max_depth: Maximum number of levels of nested objects and arrays. 0 if no limit is known.
        has_output_flag: True if the API has the flag `strict` for response formats too.
        is_request_wide: True if the request has one flag for all its tools. The flag is set only if all tools are
            strict.
    """

    keywords: frozenset[str]
    formats: frozenset[str]
    can_omit_properties: bool = False
    can_recurse: bool = True
    max_depth: int = 0
    has_output_flag: bool = False
    is_request_wide: bool = False

    __repr__ = bounded_repr


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCapabilities:
    """Rules for tool declarations, tool calls and tool results.

    Attributes:
        role: True if the API has roles for tool calls and results. If False, calls and results are sent as texts.
        declarations: True if requests can declare tools. If False, the request declares none, which is a loss.
        choices: Modes of `ToolChoice` that the API accepts. If "tool" is missing, the request declares only the
            tool that the model must call, and uses the mode "required". If "required" is missing too, an
            instruction at the end of the request asks for the call.
        allowed: Modes ("auto" or "required") in which the API can limit the model to some of the declared tools.
            In any other mode, the request declares only the allowed tools.
        strict: Rules for schemas under `strict: true`. None if the API has no flag `strict`.
        needs_declarations: True if the API refuses a request that has tool calls and declares no tools.
        names: Rule for tool names. None if the API accepts any non-empty name.
        call_ids: Rule for call ids. None if the API accepts any non-empty id.
        parallel_calls: True if a turn may have several calls. If False, each call gets a separate turn, followed
            by its result.
        call_texts: True if a turn with calls may have texts. If False, the request omits these texts, which is a
            loss.
        results: "each" if every result is a separate message without other content. "together" if all results of a
            turn are in one user message, in which texts of the user may follow the results. If an API requires one
            message that contains all results and nothing else, use "each" and join the messages in `convert`.
        results_in_order: True if results must have the same order as their calls.
    """

    role: bool = True
    declarations: bool = True
    choices: frozenset[str] = frozenset({"auto", "none", "required", "tool"})
    allowed: frozenset[str] = frozenset()
    strict: StrictRules | None = None
    needs_declarations: bool = False
    names: NameRule | None = None
    call_ids: NameRule | None = None
    parallel_calls: bool = True
    call_texts: bool = True
    results: Literal["each", "together"] = "each"
    results_in_order: bool = False

    __repr__ = bounded_repr


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaCapabilities:
    """Rules for images, audio, video and documents.

    If the API accepts media in user turns, but not in another turn or a tool result, the media move to a separate
    user turn.

    Attributes:
        image: Rule for images in user turns. None if the API accepts no images.
        audio: Rule for audio in user turns. None if the API accepts no audio.
        video: Rule for video in user turns. None if the API accepts no video.
        document: Rule for documents in user turns. None if the API accepts no documents.
        roles: Roles whose turns may have media.
        result_kinds: Kinds of media that a tool result may have.
        result_types: Media types that a tool result may have. If empty, a tool result may have all types that the
            rule for the kind of media accepts.
        result_urls: Function that takes a URL and returns True if a tool result may have the URL. None: a tool
            result may have any URL that the rule for the kind of media accepts.
        error_results: True if a tool result that reports an error may have media.
        total: Maximum length of the base64 text of all media in a request, in characters. 0 if no limit is known.
        audio_by_id: True if requests contain the id of audio from an earlier reply instead of the audio data. The
            id is in `OpaqueState.fields`.
        generated_by_id: True if the API accepts other media that the model generated, such as an image, as items
            of the earlier reply. Each of these items has an id, which is in `OpaqueState.item_id`.
    """

    image: MediaRule | None = None
    audio: MediaRule | None = None
    video: MediaRule | None = None
    document: MediaRule | None = None
    roles: frozenset[Role] = frozenset({"user"})
    result_kinds: frozenset[Kind] = frozenset()
    result_types: frozenset[str] = frozenset()
    result_urls: Callable[[str], bool] | None = None
    error_results: bool = True
    total: int = 0
    audio_by_id: bool = False
    generated_by_id: bool = False

    __repr__ = bounded_repr

    @property
    def rules(self) -> Mapping[str, MediaRule | None]:
        """Rule for each kind of media. The rule is None if the API does not accept the kind."""
        return {"image": self.image, "audio": self.audio, "video": self.video, "document": self.document}

    @property
    def has_limits(self) -> bool:
        """True if a limit for one kind of media, or for all media together, is known."""
        return bool(self.total) or any(rule and rule.limits for rule in self.rules.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingCapabilities:
    """Rules for the thinking of earlier replies.

    Attributes:
        mode: Condition for sending the thinking of earlier replies. "never": requests contain no thinking.
            "signed": requests contain thinking if the target issued the thinking with a signature or other proof.
            "text": requests contain thinking as plain text if the target issued the thinking, or if the issuer is
            unknown.
        required_proof: Fields of `OpaqueState` that prove the origin of thinking. In the mode "signed", thinking
            must have at least one of these fields. Empty if no proof is required.
        scope: Messages whose thinking is part of requests. "all": all messages. "turn": messages after the last
            message of a user. "message": the last message.
        beside_call_texts: True if a message with tool calls may have both thinking and texts. If False, the
            request omits the thinking.
        binds_prefix: True if the API accepts thinking only after the same system prompt, tools and turns as in
            the request that produced the thinking.
    """

    mode: Literal["never", "signed", "text"] = "never"
    required_proof: frozenset[str] = frozenset()
    scope: Literal["all", "turn", "message"] = "all"
    beside_call_texts: bool = True
    binds_prefix: bool = False

    __repr__ = bounded_repr


@dataclass(frozen=True, slots=True, kw_only=True)
class OpaqueCapabilities:
    """Rules for opaque blocks, and for the opaque state of other blocks.

    An opaque block contains data that only one wire format can represent. Opaque state is data that a provider
    adds to a block, such as a signature.

    Attributes:
        is_reply_data: Function that takes the data of an opaque block, and returns True if the data can only come
            from a reply. Only assistant turns can contain such a block. In any other place, the block is omitted,
            which is not a loss. None if no opaque data is limited to replies.
        places: Function that takes the data of an opaque block, and returns the places that can contain the block.
            A place is "assistant", "user", "system" or "result" (a tool result). In any other place, the block is
            omitted, which is a loss. None if all places can contain all opaque blocks.
        pair_key: Function that takes the data of an opaque block. For a request, such as a call of a tool that the
            provider runs, the function returns ("request", id). For the response to a request, the function
            returns ("response", id). For any other block, the function returns None. A request and its response
            have the same id, and neither is sent without the other. `pair_key` is None if the API has no such
            pairs.
        needs_thinking: Function that takes the data of an opaque block, and returns True if the API requires the
            thinking that preceded the block in the reply. The block is omitted if this thinking is not sent. None
            if no block needs thinking.
        passthrough_keys: Maps block types to the additional keys that requests contain for blocks of the type.
            Keys that are not listed are omitted, and the ledger names them. An entry is a key of
            `OpaqueState.fields`, `*` for all keys, or `message.*` for all keys with this prefix. An entry such as
            `-detail` excludes a key. The most specific entry decides. For documents, the entry `title` means that
            the API has a field for the title of a document with data. The entry `title of a URL` means the same
            for documents that are sent by URL.
        signed_parts: True if each text and each tool call of a reply can have a separate signature.
        placeholder_signature: Value (base64) that is sent in place of the signature if a tool call has no
            signature. None if the API requires no signature.
    """

    is_reply_data: Callable[[Mapping[str, Any]], bool] | None = None
    places: Callable[[Mapping[str, Any]], frozenset[str]] | None = None
    pair_key: Callable[[Mapping[str, Any]], tuple[Literal["request", "response"], str] | None] | None = None
    needs_thinking: Callable[[Mapping[str, Any]], bool] | None = None
    passthrough_keys: Mapping[str, frozenset[str]] = field(default_factory=dict[str, "frozenset[str]"])
    signed_parts: bool = False
    placeholder_signature: str | None = None

    __repr__ = bounded_repr

    def accepts_key(self, block_type: str, key: str) -> bool:
        """Returns True if `passthrough_keys` allows `key` in blocks of the type `block_type`."""
        keys = self.passthrough_keys.get(block_type, frozenset())
        group, dot, _ = key.partition(".")
        names = (key, f"{group}.*", "*") if dot else (key, "*")
        return next((name for name in names if name in keys or f"-{name}" in keys), None) in keys
