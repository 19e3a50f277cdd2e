"""`Capabilities`: the form that a target (provider, API, model) fills in, for `legalize` to obey."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agentkit.capabilities.media_rules import Kind, MediaRule
from agentkit.capabilities.name_rules import NameRule
from agentkit.capabilities.strict_rules import StrictRules
from agentkit.messages.blocks import Block, OpaqueBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Role
from agentkit.reprs import bounded_repr

__all__ = ["Capabilities"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Capabilities:
    """What a target carries, where, and under which rules. Two forms are equal only if they are one object.

    name            what errors and descriptions call it
    issuer          the system whose opaque state may go back to it
    wire            the wire whose opaque blocks may go back to it, in anybody's turn; None: none do
    is_reply_data      which of their data belong to replies: such a block is nothing in anybody else's turn
    part_places     where such a block may stand, by its data: in a turn of the `assistant`, the `user`, the
                    `system`, or in a `result`; elsewhere it is a loss. None: anywhere
    pair_key        what such a block's data belong to: ("asks", id) of what a later part must answer, or
                    ("answers", id) of what an earlier one asks. Half a pair is not sent
    needs_thinking  which of their data are refused without the thinking before them in their reply. They are not
                    sent if that thinking is not; media that came as such data are then media like any other
    thinking        `never` sent back; `signed`: only with a proof from `issuer`; `text`: as plain text,
                    from `issuer` or unmarked
    binds_thinking  whether thinking goes back only behind the very prefix that it was issued for
    required_proof  the fields of OpaqueState of which a signed thinking block needs one; none: the issuer suffices
    image … document    how each kind goes into user turns; None: not at all
    audio_by_id     whether a sound that the target's own model spoke goes back by its id (`OpaqueState.fields`)
    reply_media     whether media that the target's own model made are sent back in its turns, as the items that
                    they came as (`OpaqueState.item_id`)
    media_roles     in whose turns media may stand; elsewhere it is promoted into a user turn
    result_media    which kinds tool results carry natively, and `result_types` of which types (empty: as the rule)
    result_urls     which URLs media of results may have; None: any that the rule of their kind fetches
    error_media     whether a result marked as an error may hold media
    media_total     the base64 text of all media of a request together, in characters (0: no known limit)
    text_documents  whether a text document that the wire has no place for is sent as text
    results         `each` in a message of its own, or `together` in one turn
    call_order      whether results must stand in the order of their calls
    text_joining    how texts of one turn reach the model: `apart`; `glued` by a line break; one `string`
    late_system     a system message behind the first turn goes `native`, or as a named `line` of the user's
    one_system      whether the system prompt must be a single message
    merge_turns     whether consecutive turns of one side are joined
    resumable       whether a turn that ends in a part that asks (`pair_key`) is gone on with: nothing follows it
                    then, and what that turn asks may be unanswered
    alternates      whether turns of the user and the assistant alternate strictly, results being neither's: a
                    turn of the assistant stands between a result and a user's turn. Such a target joins turns of
                    one side, begins with a user's turn, and takes one system message, at the start
    system_role     whether there is a role for the system; without one the prompt begins the first user turn
    tool_role       whether there is a role for tools; without one calls and results are texts
    parallel_calls  whether a turn may hold several calls; without them each call is followed by its result
    first_user, last_user, needs_user    whether the first, the last, any turn must be the user's
    blank           which texts are refused: `empty` ones, or `whitespace` too
    passthrough_keys  by kind of block: the keys beside its content that the API has a place for, in the
                    turn where they belong. A document's `title` (`title of a URL`: of one that stays a URL too),
                    or keys of what it came with (`OpaqueState.fields`): `*` any of these, `message.*`
                    any that begins so, `-key` but not that one
    text_notes      what else the ledger is to say of a text in a role: how the wire's text differs from it
    speaker_names   whether messages have a field for the speaker's name; never where turns are joined, since one
                    field cannot name several speakers
    speaker_refused    the characters that the field refuses, as the inside of a character class
    call_ids, tool_names    which identifiers the wire takes; None: any that is not empty
    tool_choices    the modes it takes; a forced choice that it refuses is asked for in words at the end
    allowed_tools   the modes, `auto` or `required`, that it can limit to some of the tools; in any other mode only
                    these tools are offered
    strict          what it demands of a schema under `strict: true`; None: it has no such flag
    output          a structured answer by `schema`, as any JSON `object`, or `prompt` alone
    tools_declared  whether calls in the history need tools in the request
    signed_parts    whether texts and calls carry a signature of their own
    placeholder_signature  what a call carries that comes without the proof its target wants (base64)
    cache_breakpoints  whether content parts may carry a marker for the prompt cache
    """

    name: str
    issuer: str | None = None
    wire: str | None = None
    is_reply_data: Callable[[Mapping[str, Any]], bool] | None = None
    part_places: Callable[[Mapping[str, Any]], frozenset[str]] | None = None
    pair_key: Callable[[Mapping[str, Any]], tuple[Literal["asks", "answers"], str] | None] | None = None
    needs_thinking: Callable[[Mapping[str, Any]], bool] | None = None
    thinking: Literal["never", "signed", "text"] = "never"
    binds_thinking: bool = False
    required_proof: frozenset[str] = frozenset()
    image: MediaRule | None = None
    audio: MediaRule | None = None
    video: MediaRule | None = None
    document: MediaRule | None = None
    audio_by_id: bool = False
    reply_media: bool = False
    media_roles: frozenset[Role] = frozenset({"user"})
    result_media: frozenset[Kind] = frozenset()
    result_types: frozenset[str] = frozenset()
    result_urls: Callable[[str], bool] | None = None
    error_media: bool = True
    media_total: int = 0
    text_documents: bool = True
    results: Literal["each", "together"] = "each"
    call_order: bool = False
    text_joining: Literal["apart", "glued", "string"] = "apart"
    late_system: Literal["native", "line"] = "native"
    one_system: bool = False
    merge_turns: bool = False
    first_user: bool = False
    last_user: bool = False
    needs_user: bool = False
    alternates: bool = False
    system_role: bool = True
    tool_role: bool = True
    parallel_calls: bool = True
    resumable: bool = False
    blank: Literal["empty", "whitespace"] = "whitespace"
    passthrough_keys: Mapping[str, frozenset[str]] = field(default_factory=dict[str, "frozenset[str]"])
    text_notes: Callable[[str, Role], tuple[str, ...]] | None = None
    speaker_names: bool = False
    speaker_refused: str = r"\s<|\\/>"
    call_ids: NameRule | None = None
    tool_names: NameRule | None = None
    tool_choices: frozenset[str] = frozenset({"auto", "none", "required", "tool"})
    allowed_tools: frozenset[str] = frozenset()
    strict: StrictRules | None = None
    output: Literal["schema", "object", "prompt"] = "schema"
    tools_declared: bool = False
    signed_parts: bool = False
    placeholder_signature: str | None = None
    cache_breakpoints: bool = False
    feature_mask: int = field(default=0, init=False)

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        mask = Feature.EMPTY | Feature.BLANK | Feature.INVALID | Feature.THINKING | Feature.STATE | Feature.MEDIA
        mask |= Feature.RESULT_MEDIA | Feature.RESULT_BLANK | Feature.ODD_ARGUMENTS
        mask |= Feature.ODD_ID | Feature.ODD_NAME | Feature.OPAQUE
        if self.tool_names and self.tool_names.reserved:
            mask |= Feature.RESERVED_NAME
        if not all(rule is None or rule.takes_plain for rule in (self.call_ids, self.tool_names)):
            mask |= Feature.TOOL
        object.__setattr__(self, "feature_mask", mask)
        implied = ("merge_turns", "first_user", "one_system") if self.alternates else ()
        for name in implied:
            object.__setattr__(self, name, True)
        object.__setattr__(self, "speaker_names", self.speaker_names and not self.merge_turns)
        if self.alternates or not self.system_role:
            object.__setattr__(self, "late_system", "line")

    def pair_of(self, block: Block) -> tuple[str, str]:
        """What a block of this target's own belongs to (`part_pair`): two empty texts for any other."""
        if self.pair_key is None or not isinstance(block, OpaqueBlock) or block.wire != self.wire:
            return "", ""
        return self.pair_key(block.data) or ("", "")

    @property
    def limits_media(self) -> bool:
        """Whether any limit on media is known."""
        return bool(self.media_total) or any(rule and rule.limits for rule in self.media.values())

    @property
    def media(self) -> Mapping[str, MediaRule | None]:
        """The rule for each kind of media."""
        return {kind: getattr(self, kind) for kind in ("image", "audio", "video", "document")}
