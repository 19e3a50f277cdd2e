"""Exchanges: a tool-use turn with all its results, found, repaired, and never split.

After `repair` a conversation is in normal form: every message is tool-free, or a turn of calls, or holds
results and nothing else; each turn of calls is followed at once by exactly one result for each of its calls.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Literal, TypeAlias, cast

from agentkit.ledger.ledger import Disposition, Ledger, Note
from agentkit.ledger.provenance import Look, Provenance, TracedConversation, block_origins, prompt_length
from agentkit.messages.blocks import Block, ToolResultBlock, ToolUseBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg, Role, build_part, build_trusted, starts_with
from agentkit.repair.unmatched_results import UNMATCHED_MARK, describe_unmatched, drop_unmatched

__all__ = ["INTERRUPTED_RESULT", "IncrementalRepair", "repair_pairing"]

INTERRUPTED_RESULT = "The call was interrupted: no result was recorded."
"""The output of the result that answers a call which nobody answered."""


Unmatched: TypeAlias = Literal["describe", "drop", "omit"]
"""How `repair` treats a result without an open call."""


def repair_pairing(
    draft: TracedConversation, ledger: Ledger, unmatched: Unmatched = "describe"
) -> TracedConversation:
    """Bring a conversation into normal form. One that is in normal form comes back as it is.

    Calls and results pair by id in order of arrival. A result without an open call is a loss: `unmatched` says
    whether it becomes a text of the user or is dropped. A history policy that left out the call chose to: `omit`
    drops the result and is no loss; nor is an equal copy of a result, which is always dropped. A call without a
    result gets a marked one, whatever was said inside an exchange moves behind it. Deterministic and idempotent.
    """
    if draft.look or is_normal(draft):
        return draft
    return _Repair(draft, ledger, unmatched).run()


class IncrementalRepair:
    """Repairs a conversation that grows, and looks only at what is new in it.

    It is recognised by its messages; what comes out is what `repair` gives.
    """

    def __init__(self) -> None:
        self._seen: tuple[list[Msg], Look] | None = None

    def repair(
        self, draft: TracedConversation, ledger: Ledger, unmatched: Unmatched = "describe"
    ) -> TracedConversation:
        """The same as `repair`."""
        seen = self._seen
        if seen and starts_with(draft.msgs, seen[0]):
            normal = is_normal(draft, len(seen[0]), seen[1])
        else:
            normal = is_normal(draft)
        if not normal or draft.look is None:
            self._seen = None
            return _Repair(draft, ledger, unmatched).run()
        spoken = not draft.msgs[-1].features & Feature.SYSTEM  # not the system prompt alone
        self._seen = (list(draft.msgs), draft.look) if spoken else None
        return draft


def is_normal(draft: TracedConversation, start: int = 0, known: Look | None = None) -> bool:
    """Whether nothing has to be repaired; what else the look tells of a normal form is noted on the draft.

    `known` is what a look over the messages before `start` told, which are in normal form.
    """
    tool, call, result, other, assistant = (
        Feature.TOOL,
        Feature.CALL,
        Feature.RESULT,
        Feature.OTHER,
        Feature.ASSISTANT,
    )
    waiting: tuple[str, ...] = ()
    left: Counter[str] = Counter()  # which of them, once some were answered, and how many
    missing = 0
    seen, before, alternating, ordered = 0, -1, True, True
    if known:
        seen, alternating, ordered = known.features, known.alternating, known.ordered
        before = draft.msgs[start - 1].features & assistant
    for msg in draft.msgs[start or prompt_length(draft.msgs) :]:
        features = msg.features
        seen |= features
        side = features & assistant
        if side == before:
            alternating = False
        before = side
        if not features & tool:
            if waiting:
                return False
        elif features & call:
            if waiting or features & result:
                return False
            waiting = msg.tool_ids
        elif features & other:
            return False
        elif not missing and msg.tool_ids == waiting:
            waiting = ()
        else:
            ordered = False
            if not missing:
                left, missing = Counter(waiting), len(waiting)
            for answered in msg.tool_ids:
                if left[answered] <= 0:
                    return False
                left[answered] -= 1
            missing -= len(msg.tool_ids)
            if not missing:
                waiting = ()
    if waiting:
        return False
    draft.look = Look(seen, ordered, alternating)
    return True


_Place: TypeAlias = tuple[int, int]


@dataclass(slots=True)
class _Pairing:
    """Which result answers which call; places are (message, block).

    `unmatched` are the results that answer none, with the name of their tool; `repeated` those among them that
    equal the result that their call already has.
    """

    answers: dict[_Place, _Place] = field(default_factory=dict[_Place, _Place])
    unmatched: dict[_Place, str] = field(default_factory=dict[_Place, str])
    repeated: set[_Place] = field(default_factory=set[_Place])


@dataclass(slots=True)
class _Waiting:
    """Calls of one id that no result has answered, and how much talk there was when the last one came.

    `name` is the tool of the last call, `answer` the last result of the id and how much talk there was then.
    """

    calls: deque[_Place] = field(default_factory=deque[_Place])
    talk: int = 0
    name: str = ""
    answer: tuple[int, ToolResultBlock] | None = None


def _pair(msgs: Sequence[Msg]) -> _Pairing:
    """Pair in order of arrival.

    An id that is used again after somebody spoke belongs to a new turn: what waits from before will never
    be answered (ids repeat across turns on several servers).
    """
    pairing = _Pairing()
    waiting: dict[str, _Waiting] = {}
    talk = 0
    for number, msg in enumerate(msgs):
        if not msg.features & Feature.TOOL:
            talk += 1
            continue
        ahead = _Ahead(msg)
        for at, block in enumerate(msg.blocks):
            if isinstance(block, ToolUseBlock) and at not in ahead.claimed:
                queue = waiting.setdefault(block.id, _Waiting())
                if queue.talk != talk:
                    queue.calls.clear()
                queue.talk, queue.name = talk, block.name
                queue.calls.append((number, at))
            elif isinstance(block, ToolResultBlock):
                found = waiting.setdefault(block.id, _Waiting())
                if found.calls:
                    pairing.answers[found.calls.popleft()] = (number, at)
                elif (later := ahead.claim(block.id, at)) is not None:
                    pairing.answers[number, later] = (number, at)
                else:
                    pairing.unmatched[number, at] = block.name or found.name
                    if found.answer == (talk, block):
                        pairing.repeated.add((number, at))
                    continue
                found.answer = (talk, block)
    return pairing


class _Ahead:
    """The calls of one message that stand behind their own results, where some logs put them."""

    def __init__(self, msg: Msg) -> None:
        self.msg = msg
        self.claimed: set[int] = set()
        self._calls: dict[str, deque[int]] | None = None

    def claim(self, wanted: str, at: int) -> int | None:
        """The first call of the id behind the block `at` that no result has yet."""
        if self._calls is None:
            self._calls = {}
            for place, block in enumerate(self.msg.blocks):
                if isinstance(block, ToolUseBlock):
                    self._calls.setdefault(block.id, deque()).append(place)
        queue = self._calls.get(wanted, deque())
        while queue and queue[0] < at:
            queue.popleft()
        if not queue:
            return None
        self.claimed.add(queue[0])
        return queue.popleft()


class _Repair:
    """One run over a conversation that is not in normal form."""

    def __init__(self, draft: TracedConversation, ledger: Ledger, unmatched: Unmatched) -> None:
        self.draft = draft
        self.ledger = ledger
        self.unmatched: Unmatched = unmatched
        self.pairing = _pair(draft.msgs)
        self.out = TracedConversation([], [])
        self.known: dict[int, tuple[Provenance, ...]] = {}
        self.open_until = -1  # the number of the last message that brings a result to an exchange begun before

    def run(self) -> TracedConversation:
        for number, msg in enumerate(self.draft.msgs):
            if msg.features & Feature.TOOL:
                self._emit_parts(number, msg)
            else:
                self._emit(number, msg, range(len(msg.blocks)))
        return self.out

    def _emit_parts(self, number: int, msg: Msg) -> None:
        """A tool message in parts, as results stand between them; results that answer a call go with that call."""
        unmatched = {at for at in range(len(msg.blocks)) if (number, at) in self.pairing.unmatched}
        for is_result, group in groupby(range(len(msg.blocks)), lambda at: _is_result(msg.blocks[at])):
            run = [at for at in group if not is_result or at in unmatched]
            if is_result:
                self._emit_unmatched(number, msg, run)
            else:
                self._emit(number, msg, run)

    def _emit_unmatched(self, number: int, msg: Msg, run: Sequence[int]) -> None:
        """Results that answer no open call, as a message of the user."""
        blocks: list[Block] = []
        origins: list[Provenance] = []
        for at in run:
            block, origin = cast("ToolResultBlock", msg.blocks[at]), self._origins(number)[at]
            if (number, at) in self.pairing.repeated:
                self._note((number, at), Disposition.DROPPED, f"equals the result that call {block.id!r} has")
            elif self.unmatched != "describe":
                drop_unmatched(block, origin, self.ledger, lost=self.unmatched == "drop")
            else:
                name = self.pairing.unmatched[number, at]
                for part, source in describe_unmatched(block, name, origin, self.ledger):
                    blocks.append(part)
                    origins.append(source)
        if blocks:
            self.out.add(build_part(msg, tuple(blocks), "user", UNMATCHED_MARK), tuple(origins))

    def _origins(self, number: int) -> tuple[Provenance, ...]:
        """Where the blocks of one message come from: one look a message, however many parts it falls into."""
        if number not in self.known:
            self.known[number] = block_origins(self.draft.msgs[number], self.draft.origins[number])
        return self.known[number]

    def _emit(self, number: int, msg: Msg, run: Sequence[int]) -> None:
        """Part of a message, results left out; behind it the results of its calls, wherever they stand."""
        if number < self.open_until:
            for at in run:
                self._note((number, at), Disposition.MOVED, "said inside an open exchange, put behind it")
        whole = len(run) == len(msg.blocks)
        calls = [at for at in run if isinstance(msg.blocks[at], ToolUseBlock)]
        if whole:
            self.out.add(msg, self.draft.origins[number])
        elif run:
            blocks = tuple(msg.blocks[at] for at in run)
            role: Role = "user" if msg.role == "system" and not calls else msg.role
            origins = self._origins(number)
            self.out.add(build_part(msg, blocks, role), tuple(origins[at] for at in run))
        if calls:
            self._answer(number, msg, calls)

    def _answer(self, number: int, msg: Msg, calls: Sequence[int]) -> None:
        found = sorted(self.pairing.answers[at] for c in calls if (at := (number, c)) in self.pairing.answers)
        for source, places in groupby(found, key=itemgetter(0)):
            self._bring(source, [at for _, at in places])
        if found:
            self.open_until = max(self.open_until, found[-1][0])
        missing = [
            cast("ToolUseBlock", msg.blocks[at]) for at in calls if (number, at) not in self.pairing.answers
        ]
        if missing:
            self._interrupt(missing, msg.pinned)

    def _bring(self, source: int, run: Sequence[int]) -> None:
        """The results of one message that belong to the exchange being written."""
        msg = self.draft.msgs[source]
        if len(run) == len(msg.blocks):
            self.out.add(msg, self.draft.origins[source])
            return
        origins = self._origins(source)
        blocks = tuple(msg.blocks[at] for at in run)
        self.out.add(build_part(msg, blocks, msg.role), tuple(origins[at] for at in run))

    def _interrupt(self, calls: Sequence[ToolUseBlock], pinned: bool) -> None:
        """A marked result for calls that nobody answered, so that one lost result poisons nothing."""
        blocks: tuple[Block, ...] = tuple(
            ToolResultBlock(call.id, call.name, INTERRUPTED_RESULT, True, metadata={"agentkit": "interrupted"})
            for call in calls
        )
        for call in calls:
            self.ledger.add_synthesis("interrupted", f"call {call.id!r} of {call.name!r} has no result")
        self.out.add(build_trusted("system", blocks, "system", pinned), ("interrupted",) * len(blocks))

    def _note(self, place: _Place, disposition: Disposition, reason: str) -> None:
        origin = self._origins(place[0])[place[1]]
        if not isinstance(origin, str):
            self.ledger.note(origin, Note(disposition, reason))


def _is_result(block: Block) -> bool:
    return isinstance(block, ToolResultBlock)
