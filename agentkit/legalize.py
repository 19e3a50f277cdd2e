"""`legalize`: rewrite messages until a target's capabilities hold.

First each message by itself (`tidy`, worked out once per target and kept with the message): what the target
cannot carry is described, dropped or set aside for promotion. Then the sequence: ids, promoted media, the
order of results, late system messages, turns.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, groupby
from typing import Any, Literal, TypeAlias, TypeVar, cast

from agentkit.blocks import (
    Base64Source,
    Block,
    InvalidBlock,
    MediaBlock,
    ResultItem,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
    is_text_type,
    plain_text,
)
from agentkit.capabilities import Capabilities, Kind, NameRule
from agentkit.exchanges import Draft, Origin, block_origins, is_normal, prompt_length
from agentkit.history import frame_tag, safe_text
from agentkit.ledger import BlockPath, Disposition, Ledger, Note
from agentkit.media import Shelf, is_base64
from agentkit.messages import Msg, Role, Trait, derive, memo_of

__all__ = ["BEGIN_TURN", "CONTINUE_TURN", "Legal", "OnLoss", "legalize"]

OnLoss: TypeAlias = Literal["describe", "drop", "raise"]

BEGIN_TURN = "(The conversation begins here.)"
"""The user turn put first where a wire wants one there and the conversation begins otherwise."""

CONTINUE_TURN = "(Please continue.)"
"""The user turn put last where a wire wants one there and the conversation ends on the assistant."""


_Stateful = TypeVar("_Stateful", TextBlock, ToolUseBlock)


_AS_LINE = "a late system message, as a line of the user's under its name"

_ANY_ID = NameRule(prefix="call_")


def wire_id(capabilities: Capabilities, found: str) -> str:
    """A call id as the target takes it."""
    rule = capabilities.call_ids
    return rule.fit(found) if rule else found or "call_unnamed"


@dataclass(slots=True)
class Legal:
    """Messages that obey a target's capabilities: the system prompt, then the turns.

    A turn with results holds results first; a turn of calls is the assistant's whatever its `role` says.
    """

    system: Draft
    turns: Draft
    call_ids: dict[str, str] = field(default_factory=dict[str, str])
    tool_names: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(slots=True)
class _Promoted:
    """Media set aside for a user turn of its own, with the source of its label."""

    block: MediaBlock
    path: BlockPath
    label: str
    result: str = ""


@dataclass(slots=True)
class _Tidied:
    """A message after `tidy`. Paths are relative: (block,), or (block, item)."""

    msg: Msg | None
    origins: tuple[int, ...] = ()
    notes: list[tuple[BlockPath, Note]] = field(default_factory=list[tuple[BlockPath, Note]])
    promoted: list[_Promoted] = field(default_factory=list[_Promoted])
    call_ids: dict[str, str] = field(default_factory=dict[str, str])
    tool_names: dict[str, str] = field(default_factory=dict[str, str])


def legalize(draft: Draft, ledger: Ledger, capabilities: Capabilities, on_loss: OnLoss, shelf: Shelf) -> Legal:
    """Messages in normal form as the target takes them, with everything done to them in the ledger."""
    return _Legalizing(ledger, capabilities, on_loss, shelf).run(draft)


class _Legalizing:
    """One pass over one conversation."""

    def __init__(self, ledger: Ledger, capabilities: Capabilities, on_loss: OnLoss, shelf: Shelf) -> None:
        self.ledger = ledger
        self.capabilities = capabilities
        self.on_loss: OnLoss = on_loss
        self.shelf = shelf
        self.promoted: list[tuple[_Promoted, Origin]] = []
        self.calls: tuple[str, ...] = ()  # the ids of the exchange that is being written
        self.legal = Legal(Draft([], []), Draft([], []))

    def run(self, draft: Draft) -> Legal:
        at = prompt_length(draft.msgs)
        self._take_system(draft.part(range(at)))
        turns = Draft(draft.msgs[at:], draft.origins[at:], draft.look)
        line = Trait.SYSTEM if self.capabilities.late_system == "line" else 0
        wanted = self.capabilities.attention | Trait.REPEATED | line
        if self.promoted or turns.look is None or turns.look.traits & wanted:
            self._tidy_all(turns, self.capabilities.attention, line)
        else:
            self.legal.turns = turns
        self._match_results()
        self._take_turns()
        return self.legal

    def _tidy_all(self, draft: Draft, attention: int, line: int) -> None:
        turns = self.legal.turns
        self._promote()
        for msg, origin in zip(draft.msgs, draft.origins, strict=True):
            if self.promoted and not msg.traits & Trait.RESULT:
                self._promote()
            if msg.traits & attention:
                tidied = self._tidied(msg, origin)
                if tidied is None:
                    continue
                msg, origin = tidied
            if msg.traits & Trait.CALL:
                self.calls = msg.tool_ids
            if msg.traits & Trait.REPEATED:
                msg = self._distinct(msg)
            elif msg.traits & line:
                self._note_all(block_origins(msg, origin), Note(Disposition.CARRIED, _AS_LINE))
                msg = self._as_line(msg)
            turns.add(msg, origin)
        self._promote()
        is_normal(self.legal.turns)

    # -- one message ---------------------------------------------------------------------------------------

    def _take_system(self, prompt: Draft) -> None:
        for msg, origin in zip(prompt.msgs, prompt.origins, strict=True):
            tidied = self._tidied(msg, origin) if msg.traits & self.capabilities.attention else (msg, origin)
            if tidied:
                self.legal.system.add(*tidied)
        if self.capabilities.one_system:
            self._join_system()

    def _join_system(self) -> None:
        system = self.legal.system
        if len(system.msgs) > 1:
            whole = tuple(b for msg in system.msgs for b in msg.blocks)
            origins = tuple(
                o for pair in zip(system.msgs, system.origins, strict=True) for o in block_origins(*pair)
            )
            self._note_all(origins, Note(Disposition.MERGED, "joined with the system prompt before it"))
            self.legal.system = Draft([derive(system.msgs[0].name, whole, "system")], [origins])

    def _tidied(self, msg: Msg, origin: int | tuple[Origin, ...]) -> tuple[Msg, int | tuple[Origin, ...]] | None:
        """The message as the target takes it, with the account; None if nothing of it is left."""
        tidied = self._tidy(msg)
        self.legal.call_ids.update(tidied.call_ids)
        self.legal.tool_names.update(tidied.tool_names)
        if tidied.msg is msg and not tidied.notes:
            return msg, origin
        blocks = block_origins(msg, origin)
        for path, note in tidied.notes:
            home = blocks[path[0]]
            if not isinstance(home, str):
                self.ledger.note(home + path[1:] if len(home) == 2 else home, note)
        for promoted in tidied.promoted:
            home = blocks[promoted.path[0]]
            self.promoted.append((promoted, home if isinstance(home, str) else home + promoted.path[1:]))
        if tidied.msg is None:
            return None
        return tidied.msg, origin if tidied.msg is msg else tuple(blocks[at] for at in tidied.origins)

    def _tidy(self, msg: Msg) -> _Tidied:
        """Kept with the message for the next time, unless it turns on a file's content or is a frame."""
        if frame_tag(msg) or _names_file(msg):
            return _Tidying(self.capabilities, self.on_loss, self.shelf).run(msg)
        memo = memo_of(msg)
        key = (self.capabilities, self.on_loss)
        found = memo.get(key)
        if found is None:
            found = memo[key] = _Tidying(self.capabilities, self.on_loss, self.shelf).run(msg)
        return cast("_Tidied", found)

    def _distinct(self, msg: Msg) -> Msg:
        """Calls of one turn under ids that differ; `_match_results` gives the results the same."""
        taken = {*msg.tool_ids}
        seen: set[str] = set()
        blocks: list[Block] = []
        for block in msg.blocks:
            if isinstance(block, ToolUseBlock):
                if block.id in seen:
                    block = replace(block, id=self._another(block.id, taken))
                    taken.add(block.id)
                seen.add(block.id)
            blocks.append(block)
        return derive(msg.name, tuple(blocks), msg.role)

    def _another(self, repeated: str, taken: set[str]) -> str:
        """A legal id for one more call of a repeated id: the first that the turn does not have."""
        rule = self.capabilities.call_ids or _ANY_ID
        candidates = (rule.fit(f"{repeated}#{number}") for number in count(2))
        fresh = next(candidate for candidate in candidates if candidate not in taken)
        self.legal.call_ids[fresh] = self.legal.call_ids.get(repeated, repeated)
        return fresh

    def _as_line(self, msg: Msg) -> Msg:
        """A late system message as a line of the user's, under its name."""
        self.ledger.invent("system line", "the target takes a system message at the start only")
        name = msg.name or msg.role
        blocks = tuple(
            replace(block, text=f"{name}: {block.text}") if isinstance(block, TextBlock) else block
            for block in msg.blocks
        )
        return derive(msg.name, blocks, "user")

    # -- promoted media --------------------------------------------------------------------------------------

    def _promote(self) -> None:
        """Media that could not stay where it was, in one user turn behind the exchange, labelled."""
        if not self.promoted:
            return
        if self.capabilities.call_order:
            place = {call: at for at, call in enumerate(self.calls)}
            self.promoted.sort(key=lambda pair: place.get(pair[0].result, -1))
        blocks: list[Block] = []
        origins: list[Origin] = []
        for label, group in groupby(self.promoted, key=lambda pair: pair[0].label):
            found = list(group)
            what = "image" if all(item.block.type == "image" for item, _ in found) else "media"
            blocks.append(plain_text(f"<system-info>The following are the {what} contents {label}:"))
            origins.append("promotion")
            for item, origin in found:
                address = _address(item.block.source)
                shown = f" from '{address}'" if address else ""
                blocks.extend((plain_text(f"\n- The {item.block.type}{shown}: "), item.block))
                origins.extend(("promotion", origin))
                if not isinstance(origin, str):
                    self.ledger.note(origin, Note(Disposition.MOVED, "media moved into a user turn of its own"))
            blocks.append(plain_text("</system-info>"))
            origins.append("promotion")
        self.ledger.invent("promotion", "the label of media that was moved")
        self.legal.turns.add(derive("user", tuple(blocks), "user"), tuple(origins))
        self.promoted = []

    # -- results -----------------------------------------------------------------------------------------------

    def _match_results(self) -> None:
        """Results under the ids of their calls, in their order and in one turn, where the target wants that."""
        turns = self.legal.turns
        together = self.capabilities.results == "together"
        in_order = turns.look is not None and turns.look.ordered
        if in_order or not (together or self.capabilities.call_order or self.legal.call_ids):
            return
        out = Draft([], [])
        at = 0
        while at < len(turns.msgs):
            msg = turns.msgs[at]
            out.add(msg, turns.origins[at])
            at += 1
            if not msg.traits & Trait.CALL:
                continue
            stop = at
            while stop < len(turns.msgs) and turns.msgs[stop].traits & Trait.RESULT:
                stop += 1
            self._add_results(out, msg, turns.part(range(at, stop)), together)
            at = stop
        self.legal.turns = out

    def _add_results(self, out: Draft, call: Msg, results: Draft, together: bool) -> None:
        found = tuple(answered for msg in results.msgs for answered in msg.tool_ids)
        in_place = found == call.tool_ids
        if not in_place and not together and not self.capabilities.call_order:
            in_place = Counter(found) == Counter(call.tool_ids)  # the wire takes any order: keep the arrival's
        if in_place and not (together and len(results.msgs) > 1):
            out.msgs.extend(results.msgs)
            out.origins.extend(results.origins)
            return
        blocks = [
            (cast("ToolResultBlock", block), origin)
            for msg, whole in zip(results.msgs, results.origins, strict=True)
            for block, origin in zip(msg.blocks, block_origins(msg, whole), strict=True)
        ]
        ordered = self._in_call_order(call, blocks)
        if together:
            joined = derive(results.msgs[0].name, tuple(block for block, _ in ordered), "system")
            out.add(joined, tuple(origin for _, origin in ordered))
        else:
            for block, origin in ordered:
                out.add(derive(results.msgs[0].name, (block,), "system"), (origin,))

    def _in_call_order(
        self, call: Msg, results: list[tuple[ToolResultBlock, Origin]]
    ) -> list[tuple[ToolResultBlock, Origin]]:
        """Each call's result; the k-th call of a repeated id takes the k-th result of that id."""
        left: dict[str, deque[tuple[ToolResultBlock, Origin]]] = {}
        for pair in results:
            left.setdefault(pair[0].id, deque()).append(pair)
        ordered: list[tuple[ToolResultBlock, Origin]] = []
        for wanted in call.tool_ids:
            original = self.legal.call_ids.get(wanted, wanted)
            names = (wanted, original, self._fit_id(original))
            block, origin = next(left[name] for name in names if left.get(name)).popleft()
            ordered.append((block if block.id == wanted else replace(block, id=wanted), origin))
        return ordered

    def _fit_id(self, found: str) -> str:
        return wire_id(self.capabilities, found)

    # -- turns -------------------------------------------------------------------------------------------------

    def _take_turns(self) -> None:
        """Join turns of one side, and put a user turn first, last, or anywhere, where the target wants it."""
        capabilities = self.capabilities
        if capabilities.merge_turns:
            self._merge()
        msgs = self.legal.turns.msgs
        if not msgs and (capabilities.needs_user or not self.legal.system.msgs):
            self._fill(0, BEGIN_TURN, "there is no turn")
        elif msgs and capabilities.first_user and not _is_users(msgs[0]):
            self._fill(0, BEGIN_TURN, "the conversation begins without a user turn")
        ends_open = capabilities.last_user and msgs and not _is_users(msgs[-1], results=True)
        if ends_open or (capabilities.needs_user and not any(map(_is_users, msgs))):
            self._fill(len(msgs), CONTINUE_TURN, "the conversation ends without a user turn")

    def _fill(self, at: int, text: str, reason: str) -> None:
        self.ledger.invent("filler turn", reason)
        self.legal.turns.msgs.insert(at, derive("user", text, "user"))
        self.legal.turns.origins.insert(at, ("filler turn",))

    def _merge(self) -> None:
        turns = self.legal.turns
        joins_results = self.capabilities.results == "together"
        if turns.look and turns.look.alternating:
            return
        sides = [_side(msg, joins_results) for msg in turns.msgs]
        out = Draft([], [])
        start = 0
        for at in range(1, len(sides) + 1):
            if at == len(sides) or sides[at] is None or sides[at] != sides[start]:
                self._join(out, turns.part(range(start, at)), sides[start])
                start = at
        self.legal.turns = out

    def _join(self, out: Draft, run: Draft, side: str | None) -> None:
        """One turn made of a run of messages of one side."""
        if len(run.msgs) == 1:
            out.add(run.msgs[0], run.origins[0])
            return
        note = Note(Disposition.MERGED, "joined with the turn before it")
        self.ledger.note_messages([whole for whole in run.origins[1:] if isinstance(whole, int)], note)
        for whole in run.origins[1:]:
            if not isinstance(whole, int):
                self._note_all(whole, note)
        origins = [block_origins(*pair) for pair in zip(run.msgs, run.origins, strict=True)]
        blocks = tuple(block for msg in run.msgs for block in msg.blocks)
        role: Role = "assistant" if side == "assistant" else "user"
        out.add(derive(run.msgs[0].name, blocks, role), tuple(origin for part in origins for origin in part))

    def _note_all(self, origins: Sequence[Origin], note: Note) -> None:
        for origin in origins:
            if not isinstance(origin, str):
                self.ledger.note(origin, note)


def _side(msg: Msg, joins_results: bool) -> str | None:
    """Whose turn a message is; None for one that joins no other (a late system message, a tool message)."""
    if msg.traits & Trait.ASSISTANT:
        return "assistant"
    if msg.traits & Trait.RESULT:
        return "user" if joins_results else None
    return None if msg.traits & Trait.SYSTEM else "user"


def _is_users(msg: Msg, results: bool = False) -> bool:
    if msg.traits & Trait.TOOL:
        return results and bool(msg.traits & Trait.RESULT)
    return msg.role == "user"


def _names_file(msg: Msg) -> bool:
    if not msg.traits & (Trait.MEDIA | Trait.RESULT_MEDIA):
        return False
    return any(
        isinstance(block.source, URLSource) and block.source.scheme == "file"
        for outer in msg.blocks
        for block in (outer.items if isinstance(outer, ToolResultBlock) else (outer,))
        if isinstance(block, MediaBlock)
    )


class _Tidying:
    """One message as one target takes it, with no regard to what stands around it."""

    def __init__(self, capabilities: Capabilities, on_loss: OnLoss, shelf: Shelf) -> None:
        self.capabilities = capabilities
        self.on_loss: OnLoss = on_loss
        self.shelf = shelf
        self.out = _Tidied(None)
        self.frame = ""  # the tag of the frame that the message is, if it is one
        self.role: Role = "user"

    def run(self, msg: Msg) -> _Tidied:
        self.frame = frame_tag(msg)
        self.role = "assistant" if msg.traits & Trait.CALL else msg.role
        pairs = [(block, at) for at, old in enumerate(msg.blocks) for block in self._block(old, at, msg)]
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
                set_metadata(self.out.msg, msg.metadata)
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
            case InvalidBlock():
                yield from self._lose((at,), "block", "it could not be read when the history was loaded")
            case _:
                yield from self._medium(block, (at,), f"from the message of '{_shown(msg.name)}'")

    def _text(self, block: TextBlock, at: int) -> Iterator[TextBlock]:
        kept = self._without_foreign_state(block, at)
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

    def _refusal(self, block: ThinkingBlock) -> str | None:
        """Why a thinking block may not go back; None if it may."""
        form, state = self.capabilities, block.state
        if form.thinking == "never" or self.role != "assistant":
            return "thinking, which this target does not take back"
        if state is not None and state.issuer != form.issuer:
            return f"thinking issued by {_shown(state.issuer)}, not by this target"
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
        block = self._without_foreign_state(block, at)
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

    def _without_foreign_state(self, block: _Stateful, at: int) -> _Stateful:
        """The block, its opaque state taken off unless it is this target's own."""
        state = block.state
        if state is None:
            return block
        if state.thought_signature is not None and not is_base64(state.thought_signature):
            self._note((at,), Disposition.CARRIED, "a signature that is no base64 text was left off")
            return replace(block, state=None)
        if state.issuer == self.capabilities.issuer and self.role == "assistant":
            return block
        self._note((at,), Disposition.CARRIED, f"state issued by {_shown(state.issuer)} was left off")
        return replace(block, state=None)

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
                yield item
            else:
                self._note(path, Disposition.DROPPED, "a blank text")
        elif isinstance(item, InvalidBlock):
            yield from self._lose(path, "block", "it could not be read when the history was loaded")
        else:
            call = _shown(self._fit_id(result.id))
            label = f"from the tool result of '{_shown(result.name) or 'tool'}', call {call}"
            yield from cast("Iterator[ResultItem]", self._medium(item, path, label, result))

    def _medium(
        self, block: MediaBlock, path: BlockPath, label: str, result: ToolResultBlock | None = None
    ) -> Iterator[Block]:
        """Media as the target takes it: in its place, set aside for promotion, as text, or not at all."""
        source = self.shelf.resolve(block.source)
        if isinstance(source, str):
            yield from self._lose(
                path, block.type, f"it is {source}" if source.startswith(("a ", "an ")) else source
            )
            return
        reason = self._obstacle(block.type, source)
        if reason is None:
            kept = block if source is block.source else replace(block, source=source)
            if self._stays(block.type, source, result):
                yield kept
            else:
                owner = self._fit_id(result.id) if result else ""
                self.out.promoted.append(_Promoted(kept, path, label, owner))
                where = "after the results" if result else "after this one"
                yield plain_text(f"({block.type} shown in the user turn {where})")
        elif self.capabilities.text_documents and (text := _text_of(block, source)) is not None:
            self._note(path, Disposition.DESCRIBED, "a text document, sent as its text")
            yield plain_text(self._in_place("[document, as text]", text))
        else:
            yield from self._lose(path, block.type, reason, source)

    def _obstacle(self, kind: Kind, source: Base64Source | URLSource) -> str | None:
        """Why the target cannot take this source of media in any turn; None if it can."""
        rule, target = self.capabilities.media[kind], self.capabilities.target
        if rule is None:
            return f"{target} takes no {kind}"
        if isinstance(source, URLSource):
            if source.scheme in {"http", "https"} and not _HAS_HOST.match(source.url):
                return "its URL names no host"
            if source.scheme not in rule.schemes:
                remote = source.scheme in {"http", "https"}
                return "it is a remote URL, which was not fetched" if remote else f"{target} cannot open its URL"
            known = source.guessed_type
            return None if rule.fetches(kind, known) else f"{target} takes no {_shown(known)} by URL"
        if not rule.takes(kind, source.media_type):
            return f"{target} takes no {_shown(source.media_type) or kind}"
        if kind == "document" and is_text_type(source.media_type) and source.text is None:
            return "it holds no UTF-8 text"
        if rule.magic and source.data and not source.data.startswith(rule.magic):
            return f"its data is no {kind} that {target} knows"
        return None

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
            address = _address(source)
            at = f"; it is at {address}" if address else ""
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


def _shown(name: str | None) -> str:
    """An identifier of the caller's as a sentence may show it: nothing that could end the sentence."""
    return re.sub(r"[^\w.+/ -]+", "_", name or "")[:64]


_HAS_HOST = re.compile(r"https?://[^/?#\s]", re.IGNORECASE)
_PLAIN_URL = re.compile(r"https?://[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=%-]{1,300}", re.ASCII)


def _address(source: Base64Source | URLSource | None) -> str:
    """A URL that can be shown in a sentence; nothing for any other source."""
    if isinstance(source, URLSource) and _PLAIN_URL.fullmatch(source.url):
        return source.url
    return ""


def _text_of(block: MediaBlock, source: Base64Source | URLSource) -> str | None:
    """The text of a text document; None for anything else."""
    if block.type != "document" or isinstance(source, URLSource):
        return None
    return source.text if is_text_type(source.media_type) else None


set_metadata = Msg.__dict__["metadata"].__set__
