"""One message as one target takes it: what it cannot carry is described, dropped, or set aside for promotion."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from operator import is_
from typing import Any, Literal, TypeAlias, TypeVar, cast

from agentkit.blocks import (
    Base64Source,
    Block,
    InvalidBlock,
    MediaBlock,
    OpaqueBlock,
    OpaqueState,
    ResultItem,
    Source,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
    canonical_media_type,
    is_text_type,
    plain_text,
)
from agentkit.capabilities import Capabilities, Kind, NameRule
from agentkit.frames import frame_tag, mark_frame, safe_text
from agentkit.held_media import media_of
from agentkit.ledger import BlockPath, Disposition, Note
from agentkit.messages import Msg, Role, Trait, derive, recall, remember
from agentkit.native import mapping_of, text_of
from agentkit.shelf import LONGEST_TEXT, Shelf, is_base64
from agentkit.sniffing import image_size

__all__ = [
    "ANY_ID",
    "Changes",
    "LEFT_OFF",
    "OnLoss",
    "Promoted",
    "Tidied",
    "address",
    "obstacle",
    "shown",
    "tidy",
    "wire_id",
]

_Stateful = TypeVar("_Stateful", TextBlock, ToolUseBlock, MediaBlock)


OnLoss: TypeAlias = Literal["describe", "drop", "raise"]


ANY_ID = NameRule(prefix="call_")

LEFT_OFF = "was left off"
"""How a note ends that says that a block goes without its opaque state."""


def wire_id(capabilities: Capabilities, found: str) -> str:
    """A call id as the target takes it."""
    rule = capabilities.call_ids
    return rule.fit(found) if rule else found or "call_unnamed"


Changes: TypeAlias = Mapping[BlockPath, str | Base64Source]
"""What becomes of some media of a message: a smaller picture, or the reason why they stay away."""


@dataclass(slots=True)
class Promoted:
    """Media set aside for a user turn of its own, with the source of its label."""

    block: MediaBlock
    path: BlockPath
    label: str
    result: str = ""


@dataclass(slots=True)
class Tidied:
    """A message after `tidy`. Paths are relative: (block,), or (block, item).

    `media` are those that go as what they are, in place or promoted; `loads` says how many of each kind they
    are and how much base64 text they hold, `held` what was found out about their sizes.
    """

    msg: Msg | None
    origins: tuple[int, ...] = ()
    notes: list[tuple[BlockPath, Note]] = field(default_factory=list[tuple[BlockPath, Note]])
    promoted: list[Promoted] = field(default_factory=list[Promoted])
    media: list[tuple[BlockPath, Kind, Base64Source | URLSource]] = field(default_factory=list[Any])
    loads: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    held: dict[object, bool] = field(default_factory=dict[object, bool])

    def carry(self, path: BlockPath, kind: Kind, source: Base64Source | URLSource) -> None:
        """Write down a medium that goes as what it is."""
        self.media.append((path, kind, source))
        count, data = self.loads.get(kind, (0, 0))
        more = len(source.data) if isinstance(source, Base64Source) else 0
        self.loads[kind] = (count + 1, data + more)

    call_ids: dict[str, str] = field(default_factory=dict[str, str])
    tool_names: dict[str, str] = field(default_factory=dict[str, str])


def tidy(
    msg: Msg, capabilities: Capabilities, on_loss: OnLoss, shelf: Shelf, changes: Changes | None = None
) -> Tidied:
    """A message as one target takes it, with no regard to what stands around it.

    `changes` are those that the limits of a whole request ask for. Kept with the message for the next time,
    unless it is a frame or turns on something that may be another then.
    """
    key = _key(capabilities, on_loss)
    kept = None if changes else cast("_Kept | None", recall(msg, key))
    if kept is not None and kept.closed:
        return kept.tidied
    files = None if changes or frame_tag(msg) else _files(msg, shelf)
    if files is None:
        known = None if changes else _as_it_is(msg, capabilities)
        return known or _Tidying(capabilities, on_loss, shelf, changes or {}).run(msg)
    if kept is None or len(kept.files) != len(files) or not all(map(is_, kept.files, files)):
        kept = _Kept(_Tidying(capabilities, on_loss, shelf, {}).run(msg), files, media_of(msg).closed)
        remember(msg, key, kept)
    return kept.tidied


@cache
def _key(capabilities: Capabilities, on_loss: OnLoss) -> object:
    """What tidied messages are kept under: one object for equal terms, quick to look up."""
    return object()


def _as_it_is(msg: Msg, capabilities: Capabilities) -> Tidied | None:
    """A message of texts, and of data that are known to go as they are; None for any other."""
    passing, out = _passing_key(capabilities, _role_of(msg)), Tidied(msg)
    for at, block in enumerate(msg.blocks):
        if type(block) is TextBlock:
            if block.state is not None or not block.text or block.text.isspace():
                return None
            continue
        source: object = getattr(block, "source", None)
        if type(source) is not Base64Source or source.facts.get(passing) != block.type:
            return None
        medium = cast("MediaBlock", block)
        if medium.state is not None:
            return None
        out.carry((at,), medium.type, source)
    out.origins = tuple(range(len(msg.blocks)))
    return out if out.media else None


def _role_of(msg: Msg) -> Role:
    return "assistant" if msg.traits & Trait.CALL else msg.role


@cache
def _passing_key(capabilities: Capabilities, role: Role) -> object:
    """What data remember under that they pass in messages of a role: one object, quick to look up."""
    return object()


@dataclass(frozen=True, slots=True)
class _Kept:
    """What is kept with a message: good for as long as the same was read for its files, if it has any.

    `closed` says that all media are in the message itself.
    """

    tidied: Tidied
    files: Sequence[object]
    closed: bool


def _files(msg: Msg, shelf: Shelf) -> list[object] | None:
    """What was read for a message's files; None if more than files were asked for, or nothing was read yet."""
    found: list[object] = []
    for block in media_of(msg).blocks:
        if isinstance(block.source, URLSource) and (scheme := block.source.scheme) != "data":
            fetched = scheme != "file" and (shelf.fetches or block.source in shelf.files)
            if fetched or (scheme == "file" and shelf.assume):
                return None
            if scheme == "file":
                found.append(shelf.resolve(block.source))
    return found


class _Tidying:
    """One message as one target takes it, with no regard to what stands around it."""

    def __init__(self, capabilities: Capabilities, on_loss: OnLoss, shelf: Shelf, changes: Changes) -> None:
        self.capabilities = capabilities
        self.on_loss: OnLoss = on_loss
        self.shelf = shelf
        self.changes = changes
        self.out = Tidied(None)
        self.frame = ""  # the tag of the frame that the message is, if it is one
        self.role: Role = "user"

    def run(self, msg: Msg) -> Tidied:
        self.frame = frame_tag(msg)
        self.role = _role_of(msg)
        pairs: list[tuple[Block, int]] = []
        for at, old in enumerate(msg.blocks):
            if type(old) is TextBlock and old.state is None and old.text and not old.text.isspace():
                pairs.append((old, at))  # what most blocks are
            else:
                pairs.extend((block, at) for block in self._block(old, at, msg))
        pairs = self._without_dangling_thinking(pairs)
        if not pairs:
            return self.out
        unchanged = len(pairs) == len(msg.blocks) and all(
            new is old for (new, _), old in zip(pairs, msg.blocks, strict=True)
        )
        if isinstance(msg.content, str) or unchanged:
            self.out.msg = msg
        else:
            self.out.msg = derive(msg.name, tuple(block for block, _ in pairs), msg.role)
            if self.frame:
                mark_frame(self.out.msg, self.frame)
        self.out.origins = tuple(at for _, at in pairs)
        return self.out

    def _note(self, path: BlockPath, disposition: Disposition, reason: str, lost: bool = False) -> None:
        self.out.notes.append((path, Note(disposition, reason, lost)))

    def _block(self, block: Block, at: int, msg: Msg) -> Iterator[Block]:
        match block:
            case TextBlock():
                yield from self._text(block, at)
            case ThinkingBlock():
                yield from self._thinking(block, at)
            case ToolUseBlock():
                yield self._call(block, at)
            case ToolResultBlock():
                yield self._result(block, at)
            case OpaqueBlock():
                yield from self._opaque(block, (at,))
            case InvalidBlock():
                yield from self._lose((at,), "block", "it could not be read when the history was loaded")
            case _:
                yield from self._medium(block, (at,), f"from the message of '{shown(msg.name)}'")

    def _text(self, block: TextBlock, at: int) -> Iterator[TextBlock]:
        kept = self._without_foreign_state(block, (at,))
        blank = not block.text or (self.capabilities.blank == "whitespace" and block.text.isspace())
        signed = self.capabilities.signed_parts and kept.state and kept.state.thought_signature
        if blank and not signed:
            self._note((at,), Disposition.DROPPED, "a blank text")
        else:
            yield kept

    def _thinking(self, block: ThinkingBlock, at: int) -> Iterator[ThinkingBlock]:
        refusal = self._refusal(block)
        if refusal is None:
            yield block
        else:
            self._note((at,), Disposition.DROPPED, refusal)

    def _opaque(
        self, block: OpaqueBlock, path: BlockPath, result: ToolResultBlock | None = None
    ) -> Iterator[OpaqueBlock | TextBlock]:
        """What only its wire knows: a reply's is nothing to any other, anybody else's is content."""
        form, own = self.capabilities, block.wire == self.capabilities.wire
        plain_error = result is not None and result.is_error and not form.error_media
        replys = self.role == "assistant" or bool(own and form.reply_part and form.reply_part(block.data))
        if own and (self.role == "assistant" or not (replys or plain_error)):
            yield block
        elif replys:
            self._note(path, Disposition.DROPPED, f"a part of a reply that only {shown(block.wire)} knows")
        elif plain_error:
            yield from self._lose(path, "part", "a failed result holds text alone")
        else:
            yield from self._lose(path, "part", f"only {shown(block.wire)} knows it")

    def _refusal(self, block: ThinkingBlock) -> str | None:
        """Why a thinking block may not go back; None if it may."""
        form, state = self.capabilities, block.state
        if form.thinking == "never" or self.role != "assistant":
            return "thinking, which this target does not take back"
        if state is not None and state.issuer != form.issuer:
            return f"thinking issued by {shown(state.issuer)}, not by this target"
        if form.thinking == "signed":
            proven = state is not None and any(getattr(state, name) for name in form.proof)
            if state is None or (form.proof and not proven):
                return "thinking without the proof that its issuer wants back"
            if state.thought_signature is not None and not is_base64(state.thought_signature):
                return "thinking whose signature is no base64 text"
            if not form.proof and not block.thinking and not state.thought_signature:
                return "thinking that neither says nor proves anything"
        return None

    def _without_dangling_thinking(self, pairs: list[tuple[Block, int]]) -> list[tuple[Block, int]]:
        """Thinking behind which its turn says nothing is refused by the wires that check it.

        Anthropic: the final block in an assistant message cannot be thinking. OpenAI Responses: a reasoning
        item without its required following item.
        """
        signed = self.capabilities.thinking == "signed"
        while pairs and isinstance(pairs[-1][0], ThinkingBlock):
            if not signed and any(not isinstance(block, ThinkingBlock) for block, _ in pairs):
                break
            self._note((pairs[-1][1],), Disposition.DROPPED, "thinking with nothing behind it")
            pairs = pairs[:-1]
        return pairs

    def _call(self, block: ToolUseBlock, at: int) -> ToolUseBlock:
        block = self._without_foreign_state(block, (at,))
        wire_id, name = self._fit_id(block.id), self._fit_name(block.name)
        if block.raw_is_broken:
            self._note((at,), Disposition.REPAIRED, "its argument text is not the JSON object of its input")
            if not block.input:
                block = replace(block, input={"raw_input": block.raw_input}, raw_input=None)
        if (wire_id, name) != (block.id, block.name):
            self._note((at,), Disposition.CARRIED, "its id or tool name in the wire's spelling")
            block = replace(block, id=wire_id, name=name)
        return block

    def _fit_id(self, found: str) -> str:
        fit = wire_id(self.capabilities, found)
        if fit != found:
            self.out.call_ids[fit] = found
        return fit

    def _fit_name(self, found: str) -> str:
        rule = self.capabilities.tool_names
        fit = rule.fit(found) if rule else found or "unnamed_tool"
        if fit != found:
            self.out.tool_names[fit] = found
        return fit

    def _without_foreign_state(self, block: _Stateful, path: BlockPath) -> _Stateful:
        """The block, its opaque state taken off unless it is this target's own, in a turn that may carry it."""
        state = block.state
        if state is None:
            return block
        if state.thought_signature is not None and not is_base64(state.thought_signature):
            self._note(path, Disposition.CARRIED, f"a signature that is no base64 text {LEFT_OFF}")
            return replace(block, state=None)
        belongs = self.role == "assistant" or (state.fields and not state.proves)
        if state.issuer == self.capabilities.issuer and belongs:
            return block
        self._note(path, Disposition.CARRIED, f"state issued by {shown(state.issuer)} {LEFT_OFF}")
        return replace(block, state=None)

    def _with_own_state(self, block: MediaBlock, path: BlockPath, changed: bool) -> MediaBlock:
        """Media with what was signed onto them, unless it is another target's, or they are not what was signed."""
        if block.state is None:
            return block
        if changed and block.state.proves:
            reason = f"the signature of a picture that was changed or moved {LEFT_OFF}"
            self._note(path, Disposition.CARRIED, reason)
            return replace(block, state=None)
        return self._without_foreign_state(block, path)

    def _result(self, block: ToolResultBlock, at: int) -> ToolResultBlock:
        changes: dict[str, Any] = {}
        if (wire_id := self._fit_id(block.id)) != block.id:
            changes["id"] = wire_id
        if block.name and (name := self._fit_name(block.name)) != block.name:
            changes["name"] = name
        if not isinstance(block.output, str):
            items = tuple(kept for k, item in enumerate(block.output) for kept in self._item(item, (at, k), block))
            if len(items) != len(block.output) or any(
                a is not b for a, b in zip(items, block.output, strict=True)
            ):
                changes["output"] = items
        return replace(block, **changes) if changes else block

    def _item(self, item: ResultItem, path: BlockPath, result: ToolResultBlock) -> Iterator[ResultItem]:
        if isinstance(item, TextBlock):
            if item.text and not item.text.isspace():
                yield self._without_foreign_state(item, path)
            else:
                self._note(path, Disposition.DROPPED, "a blank text")
        elif isinstance(item, OpaqueBlock):
            yield from self._opaque(item, path, result)
        elif isinstance(item, InvalidBlock):
            yield from self._lose(path, "block", "it could not be read when the history was loaded")
        else:
            call = shown(self._fit_id(result.id))
            label = f"from the tool result of '{shown(result.name) or 'tool'}', call {call}"
            yield from cast("Iterator[ResultItem]", self._medium(item, path, label, result))

    def _medium(
        self, block: MediaBlock, path: BlockPath, label: str, result: ToolResultBlock | None = None
    ) -> Iterator[Block]:
        """Media as the target takes it: in its place, set aside for promotion, as text, or not at all."""
        if block.state is not None and block.type == "audio" and "audio" in (block.state.fields or {}):
            yield from self._spoken(block, block.state, path, label, result)
            return
        source = self.shelf.resolve_for(self.capabilities, block.type, block.source)
        if isinstance(source, str):
            yield from self._lose(
                path, block.type, f"it is {source}" if source.startswith(("a ", "an ")) else source
            )
            return
        self._note_type(path, block.source, source)
        reason = obstacle(self.capabilities, block.type, source)
        change = self.changes.get(path)
        if isinstance(change, Base64Source):
            self._note(path, Disposition.SHRUNK, _shrunk(source, change))
            source = change
        elif reason is None:
            reason = change
        if reason is None:
            self.out.carry(path, block.type, source)
            kept = block if source is block.source else replace(block, source=source)
            if self._stays(block.type, source, result):
                kept = self._with_own_state(kept, path, isinstance(change, Base64Source))
                if kept is block and result is None:
                    self._pass(block)
                yield kept
            else:
                kept = self._with_own_state(kept, path, changed=True)
                owner = self._fit_id(result.id) if result else ""
                self.out.promoted.append(Promoted(kept, path, label, owner))
                where = "after the results" if result else "after this one"
                yield plain_text(f"({block.type} shown in the user turn {where})")
        elif self.capabilities.text_documents and (text := _text_of(block, source)) is not None:
            if len(text) > LONGEST_TEXT:
                long = f"it is a text of more than {LONGEST_TEXT} characters"
                yield from self._lose(path, block.type, long, source)
                return
            self._note(path, Disposition.DESCRIBED, "a text document, sent as its text")
            yield plain_text(self._in_place("[document, as text]", text))
        else:
            yield from self._lose(path, block.type, reason, source)

    def _spoken(
        self, block: MediaBlock, state: OpaqueState, path: BlockPath, label: str, result: ToolResultBlock | None
    ) -> Iterator[Block]:
        """A sound that a model spoke: by its id to its issuer, as data where they may stand, else in words."""
        said = mapping_of((state.fields or {}).get("audio"))
        own = self.capabilities.spoken and state.issuer == self.capabilities.issuer
        replys = self.role == "assistant" and result is None
        words, left = text_of(said.get("transcript")), f"state issued by {shown(state.issuer)} {LEFT_OFF}"
        if own and replys and text_of(said.get("id")):
            self._note(path, Disposition.CARRIED, "a sound, by the id under which its service keeps it")
            yield block
        elif not words or words.isspace() or self._carries(block, path, result):
            self._note(path, Disposition.CARRIED, left)
            yield from self._medium(replace(block, state=None), path, label, result)
        else:
            self._note(path, Disposition.DESCRIBED, f"a sound, sent as its transcript; {left}")
            yield plain_text(words if replys else self._in_place("[audio, as its transcript]", words))

    def _carries(self, block: MediaBlock, path: BlockPath, result: ToolResultBlock | None) -> bool:
        """Whether a medium can go as what it is, where it stands."""
        source = self.shelf.resolve_for(self.capabilities, block.type, block.source)
        if isinstance(source, str) or path in self.changes or obstacle(self.capabilities, block.type, source):
            return False
        return self._stays(block.type, source, result)

    def _pass(self, block: MediaBlock) -> None:
        """Keep with data that they go as they are in messages of this role, whatever is read meanwhile."""
        if isinstance(block.source, Base64Source):
            block.source.facts[_passing_key(self.capabilities, self.role)] = block.type

    def _note_type(self, path: BlockPath, named: Source, found: Base64Source | URLSource) -> None:
        """Say it when the bytes told another type than the message, the server or the file's name."""
        declared = named.media_type if isinstance(named, Base64Source) else named.guessed_type
        if isinstance(found, Base64Source) and declared and canonical_media_type(declared) != found.media_type:
            fetched = isinstance(named, URLSource) and named.scheme in {"http", "https"}
            who = "which its bytes or its server say it is" if fetched else "which its bytes are"
            self._note(
                path, Disposition.CARRIED, f"sent as {shown(found.media_type)}, {who}, not {shown(declared)}"
            )

    def _stays(self, kind: Kind, source: Base64Source | URLSource, result: ToolResultBlock | None) -> bool:
        form = self.capabilities
        if result is None:
            remote = self.role == "assistant" and isinstance(source, URLSource)
            return self.role in form.media_roles and not remote
        if kind not in form.result_media or (result.is_error and not form.error_media):
            return False
        media_type = source.media_type if isinstance(source, Base64Source) else source.guessed_type
        return not form.result_types or media_type in form.result_types

    def _lose(
        self, path: BlockPath, kind: str, reason: str, source: Base64Source | URLSource | None = None
    ) -> Iterator[TextBlock]:
        """What cannot go: a short sentence in its place, or nothing."""
        if self.on_loss == "describe":
            self._note(path, Disposition.DESCRIBED, reason, lost=True)
            found = address(source)
            at = f"; it is at {found}" if found else ""
            yield plain_text(self._in_place(f"[{kind} left out because {reason}{at}]"))
        else:
            self._note(path, Disposition.DROPPED, reason, lost=True)

    def _in_place(self, label: str, text: str | None = None) -> str:
        """A label, and text behind it, as a line of their own; in a frame they are nobody's utterance."""
        if not self.frame:
            return label if text is None else f"{label}\n{text}"
        lead = "\n" if self.capabilities.parts == "apart" else ""
        if text is None:
            return lead + label
        return f"{lead}{label}{safe_text(chr(10) + text, self.frame)}"


def obstacle(form: Capabilities, kind: Kind, source: Base64Source | URLSource) -> str | None:
    """Why the target cannot take this source of media in any turn; None if it can."""
    rule, target = form.media[kind], form.target
    if rule is None:
        return f"{target} takes no {kind}"
    if isinstance(source, URLSource):
        if source.scheme in {"http", "https"} and not _HAS_HOST.match(source.url):
            return "its URL names no host"
        if source.scheme not in rule.schemes:
            remote = source.scheme in {"http", "https"}
            return "it is a remote URL, which was not fetched" if remote else f"{target} cannot open its URL"
        known = source.guessed_type
        return None if rule.fetches(kind, known) else f"{target} takes no {shown(known)} by URL"
    if not rule.takes(kind, source.media_type):
        return f"{target} takes no {shown(source.media_type) or kind}"
    if kind == "document" and source.data and is_text_type(source.media_type) and source.text is None:
        return "it holds no UTF-8 text"
    if rule.magic and source.data and not source.data.startswith(rule.magic):
        return f"its data is no {kind} that {target} knows"
    return None


def shown(name: str | None) -> str:
    """An identifier of the caller's as a sentence may show it: nothing that could end the sentence."""
    return re.sub(r"[^\w.+/ -]+", "_", name or "")[:64]


def _shrunk(before: Base64Source | URLSource, after: Base64Source) -> str:
    old = image_size(before) if isinstance(before, Base64Source) else None
    new = image_size(after)
    if old is None or new is None or old == new:
        return "a picture encoded anew, in less data"
    return f"a picture of {old[0]} x {old[1]} pixels, made {new[0]} x {new[1]}"


_HAS_HOST = re.compile(r"https?://[^/?#\s]", re.IGNORECASE)
# Without credentials: what stands before an @ is nobody's business.
_PLAIN_URL = re.compile(r"https?://(?![^/?#]*@)[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]{1,300}", re.ASCII)


def address(source: Base64Source | URLSource | None) -> str:
    """A URL that can be shown in a sentence; nothing for any other source."""
    if isinstance(source, URLSource) and _PLAIN_URL.fullmatch(source.url):
        return source.url
    return ""


def _text_of(block: MediaBlock, source: Base64Source | URLSource) -> str | None:
    """The text of a text document, empty as long as it was not read; None for anything else."""
    if block.type != "document" or isinstance(source, URLSource) or not is_text_type(source.media_type):
        return None
    return source.text if source.data else ""
