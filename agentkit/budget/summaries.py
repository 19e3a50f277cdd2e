"""`Summarise`: a cut that leaves a summary of what it dropped, written by a function of the caller's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from inspect import isawaitable
from typing import ClassVar, cast

import anyio
import anyio.lowlevel
from pydantic_core import to_json

from agentkit.argument_checks import check_text
from agentkit.budget.strategies import CutStrategy, OldestFirstInSteps, check_number, head_and_tail
from agentkit.budget.units import SUMMARY_MARK, Units
from agentkit.errors import OptionError
from agentkit.messages.message import Msg, get_cached, set_cached
from agentkit.reprs import bounded_repr
from agentkit.tokens.estimate import estimate_text

__all__ = ["Summarize"]

_PIECES = 4  # so many summaries stand side by side before they are summarised themselves
_KEPT = 4_096  # so many summaries are remembered, those last asked for


@dataclass(frozen=True)
class Summarize(CutStrategy):
    """Drop the oldest units in steps, and put a summary of them in their place.

    summarizer  an async function of the messages that go, which gives the text of their summary. Among them
                may be earlier summaries, when there are too many to keep
    max_tokens  the room that all summaries together may take; one that is too long loses its middle
    step        as with `Stepped`, and so is `keep_task`
    name        the summary's speaker

    The summary is an ordinary pinned user message in `plan.history`. It is written once: adopt that history,
    or go on with your own, where the summary is found again by the digest of what it replaces. What is dropped
    later gets a summary of its own behind it, so that the prefix stands. Errors of `summarizer` are raised.
    """

    summarizer: Callable[[Sequence[Msg]], Awaitable[str]]
    max_tokens: int = 1_000
    step: int | None = None
    keep_task: bool = True
    name: str = "summary"
    order_is_stable: ClassVar[bool] = True
    _bought: dict[str, tuple[Msg, ...]] = field(
        default_factory=dict[str, "tuple[Msg, ...]"], init=False, repr=False, compare=False
    )
    _writing: dict[tuple[str, object], anyio.Event] = field(
        default_factory=dict["tuple[str, object]", anyio.Event], init=False, repr=False, compare=False
    )

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        check_number("step", self.step)
        check_text("strategy.name", self.name)
        if not callable(self.summarizer):
            reason = f"{self.summarizer!r} is no function"
            raise OptionError("strategy.write", reason, "Give an async function of messages.")
        if type(self.max_tokens) is not int or self.max_tokens < 200:
            reason = f"{self.max_tokens!r} leaves no room for a summary"
            raise OptionError("strategy.max_tokens", reason, "Give 200 or more.")

    def order(self, units: Units) -> Sequence[int]:
        """What may go from the oldest on, earlier summaries first once there are too many of them."""
        old = units.summaries
        rest = OldestFirstInSteps(self.keep_task, self.step).order(units)
        return [*old, *rest] if len(old) >= _PIECES else rest

    def protected(self, units: Units) -> set[int]:
        """What every cut keeps, but for summaries that are to be summarised again."""
        old = units.summaries
        return super().protected(units) - {*(old if len(old) >= _PIECES else ())}

    async def summaries(self, gone: Sequence[Msg]) -> tuple[Msg, ...]:
        """The summaries that stand for the messages, in order: those known of their beginning, and one new."""
        marks = _digests(gone)
        whole = marks[-1]
        here = (whole, anyio.lowlevel.current_token())  # tasks of one event loop wait for each other
        while whole not in self._bought:
            if here in self._writing:
                await self._writing[here].wait()  # somebody else buys it
                continue
            self._writing[here] = anyio.Event()
            try:
                self._keep(whole, await self._written(gone, marks))
            finally:
                self._writing.pop(here).set()
        found = self._bought[whole]
        self._keep(whole, found)
        return found

    async def _written(self, gone: Sequence[Msg], marks: Sequence[str]) -> tuple[Msg, ...]:
        done = next((at for at in range(len(marks), 0, -1) if marks[at - 1] in self._bought), 0)
        before = self._bought[marks[done - 1]] if done else ()
        new = list(gone[done:])
        if len(before) >= _PIECES:
            before, new = (), [*before, *new]
        writing: object = self.summarizer(new)
        if not isawaitable(writing):
            raise OptionError("strategy.write", "the function is not asynchronous", "Write it as `async def`.")
        return (*before, self._message(await writing, marks[-1]))

    def _keep(self, mark: str, found: tuple[Msg, ...]) -> None:
        """Remember it as the one that was asked for last."""
        self._bought.pop(mark, None)
        while len(self._bought) >= _KEPT:
            self._bought.pop(next(iter(self._bought)), None)
        self._bought[mark] = found

    def _message(self, text: object, mark: str) -> Msg:
        if not isinstance(text, str) or not text.strip():
            reason = f"it wrote {type(text).__name__ if text else 'nothing'}, not a summary"
            raise OptionError("strategy.write", reason, "Return the summary as a string that is not blank.")
        room = self.max_tokens * 100 // _PIECES - 2_000  # hundredths, less what its message and the gap take
        if (size := estimate_text(text)) > room:
            text = head_and_tail(
                text, max(1, len(text) * room // size), "(Part of the summary was left out here.)"
            )
        return Msg(self.name, text, "user", metadata={SUMMARY_MARK: mark}, pinned=True)


def _digests(msgs: Sequence[Msg]) -> list[str]:
    """Of each beginning of the messages, a digest of what was said in it."""
    chain, found = sha256(), list[str]()
    for msg in msgs:
        chain.update(_digest(msg))
        found.append(chain.hexdigest())
    return found


def _digest(msg: Msg) -> bytes:
    found = get_cached(msg, "digest")
    return cast("bytes", found or set_cached(msg, "digest", sha256(to_json(msg.to_dict())).digest()))
