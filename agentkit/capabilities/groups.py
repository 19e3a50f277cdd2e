"""The groups of `Capabilities`: rules for turns, tools, media, thinking and opaque blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agentkit.capabilities.media_rules import Kind, MediaRule
from agentkit.capabilities.name_rules import NameRule
from agentkit.capabilities.strict_rules import StrictRules
from agentkit.messages.message import Role
from agentkit.reprs import bounded_repr

__all__ = [
    "MediaCapabilities",
    "OpaqueCapabilities",
    "ThinkingCapabilities",
    "ToolCapabilities",
    "TurnCapabilities",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCapabilities:
    """Rules for the turns of a request, their texts, and the system prompt.

    Attributes:
        text_joining: How the texts of a turn reach the model: "apart" as parts of their own, "glued" by a line
            break, or as one "string".
        text_notes: Returns notes for the ledger that say how the API's text differs from the text of a block in a
            message of the role. None if it never differs.
        merge: True if consecutive turns of one role are joined.
        alternate: True if user and assistant turns must alternate, tool results not counted. An assistant turn
            is then added between a tool result and a user turn. True implies `merge`, `first_user`, `one_system`
            and `late_system="line"`.
        first_user: True if the first turn must be the user's.
        last_user: True if the last turn must be the user's.
        needs_user: True if at least one turn must be the user's.
        resumable: True if the API continues an assistant turn that ends in an open request of a hosted tool
            (`OpaqueCapabilities.pair_key`). No user turn is then added after such a turn.
        system_role: True if the API has a system role. False puts the system prompt into the first user turn.
        late_system: How the API takes a system message after the first turn: "native", or as a "line" of a user
            turn that names the speaker.
        one_system: True if the system prompt must be a single message.
        speaker_names: True if messages have a field for the name of the speaker. Always False if turns are joined,
            because one field cannot name several speakers.
        speaker_refused: Characters that the field for the speaker name refuses, as the inside of a regular
            expression's character class.

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCapabilities:
    """Rules for tool declarations, tool calls and tool results.

    Attributes:
        role: True if the API has roles for tools. False sends calls and results as texts.
        choices: Modes of `ToolChoice` that the API accepts. A text at the end asks for a forced choice that the
            API refuses.
        allowed: Modes of `ToolChoice`, of "auto" and "required", that the API can limit to some of the tools. In
            any other mode the request declares these tools only.
        strict: Rules for schemas under `strict: true`. None if the API has no such flag.
        needs_declarations: True if calls in the history require tool declarations in the request.
        names: Tool names that the API accepts. None: any non-empty name.
        call_ids: Call ids that the API accepts. None: any non-empty id.
        parallel_calls: True if a turn may hold several calls. False puts each result right after its call.
        results: Where results are sent: "each" in a message of its own, or "together" in one turn.
        results_in_order: True if results must have the order of their calls.

    """

    role: bool = True
    choices: frozenset[str] = frozenset({"auto", "none", "required", "tool"})
    allowed: frozenset[str] = frozenset()
    strict: StrictRules | None = None
    needs_declarations: bool = False
    names: NameRule | None = None
    call_ids: NameRule | None = None
    parallel_calls: bool = True
    results: Literal["each", "together"] = "each"
    results_in_order: bool = False

    __repr__ = bounded_repr


@dataclass(frozen=True, slots=True, kw_only=True)
class MediaCapabilities:
    """Rules for images, audio, video and documents. Media that a turn must not hold move to a user turn.

    Attributes:
        image: Rule for images in user turns. None if the API accepts no images.
        audio: Rule for audio in user turns. None if the API accepts no audio.
        video: Rule for video in user turns. None if the API accepts no video.
        document: Rule for documents in user turns. None if the API accepts no documents.
        roles: Roles whose turns may hold media.
        result_kinds: Kinds of media that a tool result may hold.
        result_types: Media types that a tool result may hold. Empty: the types of the rule of the kind.
        result_urls: Returns True for a URL that a tool result may hold. None: any URL that the rule of the kind
            accepts.
        error_results: True if a result that is marked as an error may hold media.
        total: Limit of the base64 text of all media of a request, in characters; 0 if no limit is known.
        audio_by_id: True if audio that the target's own model generated is sent back by its id
            (`OpaqueState.fields`).
        generated_by_id: True if other media that the target's own model generated are sent back by the id of their
            item (`OpaqueState.item_id`).

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
        """The rule for each kind of media."""
        return {"image": self.image, "audio": self.audio, "video": self.video, "document": self.document}

    @property
    def has_limits(self) -> bool:
        """True if a limit is known for any media."""
        return bool(self.total) or any(rule and rule.limits for rule in self.rules.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkingCapabilities:
    """Rules for the thinking of earlier replies.

    Attributes:
        mode: "never" sent back; "signed": sent back to its issuer with a required proof; "text": sent back as
            plain text if the target issued it or no issuer is known.
        required_proof: Fields of `OpaqueState` of which signed thinking needs at least one. Empty if the issuer
            suffices.
        binds_prefix: True if thinking is sent back only after the same prefix that it was issued for.

    """

    mode: Literal["never", "signed", "text"] = "never"
    required_proof: frozenset[str] = frozenset()
    binds_prefix: bool = False

    __repr__ = bounded_repr


@dataclass(frozen=True, slots=True, kw_only=True)
class OpaqueCapabilities:
    """Rules for opaque blocks of the target's wire format and for opaque state of other blocks.

    Attributes:
        is_reply_data: Returns True if the data of an opaque block belong to replies. Such a block is omitted from
            any other turn without loss. None: no data do.
        places: Returns the places that the data of an opaque block may have: "assistant", "user", "system"
            (turns) and "result". In any other place the block is a loss. None: any place.
        pair_key: Returns ("request", id) if a later block must answer the data of an opaque block, ("response",
            id) if the data answer an earlier block. Half a pair is not sent. None: no block has a counterpart.
        needs_thinking: Returns True if the API refuses the data of an opaque block without the thinking before it
            in its reply. Without that thinking the block is not sent, and media with such data are sent like any
            other media. None: no data need it.
        passthrough_keys: By block type, the further keys that the wire format has a place for: `title` of a
            document (`title of a URL`: also of one that is sent by URL), or keys of `OpaqueState.fields`. `*`
            matches any key, `message.*` any key with that prefix, and `-key` excludes a key.
        signed_parts: True if texts and calls carry a signature of their own.
        placeholder_signature: Signature (base64) of a call that comes without one. None if the API needs none.

    """

    is_reply_data: Callable[[Mapping[str, Any]], bool] | None = None
    places: Callable[[Mapping[str, Any]], frozenset[str]] | None = None
    pair_key: Callable[[Mapping[str, Any]], tuple[Literal["request", "response"], str] | None] | None = None
    needs_thinking: Callable[[Mapping[str, Any]], bool] | None = None
    passthrough_keys: Mapping[str, frozenset[str]] = field(default_factory=dict[str, "frozenset[str]"])
    signed_parts: bool = False
    placeholder_signature: str | None = None

    __repr__ = bounded_repr
