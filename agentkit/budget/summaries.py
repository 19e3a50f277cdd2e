"""`Summarize`: a cut strategy that replaces the dropped messages with a summary."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from hashlib import sha256
from inspect import isawaitable
from typing import ClassVar, cast

import anyio
import anyio.lowlevel
from pydantic_core import to_json

from agentkit.argument_checks import check_text
from agentkit.budget.protected_units import find_summaries
from agentkit.budget.strategies import CutStrategy, OldestFirstInSteps, check_number, shorten_middle
from agentkit.budget.units import SUMMARY_MARK, UnitNumber, Units
from agentkit.errors import OptionError
from agentkit.messages.message import Msg, get_cached, set_cached
from agentkit.reprs import bounded_repr, describe_value, shorten_repr
from agentkit.tokens.estimate import estimate_text

__all__ = ["Summarize"]

_MAX_SUMMARIES = 4  # if a conversation has this many summaries, one new summary replaces them
_MAX_CACHED = 4_096  # maximum number of cached lists of summaries; the least recently used list is removed first
_MESSAGE_TOKENS = 20  # estimated number of tokens that a summary message needs in addition to its text


@dataclass(frozen=True)
class Summarize(CutStrategy):
    """Cut strategy that drops the oldest messages in steps and replaces them with a summary.

    A summary is a pinned user message in `plan.history`. Each summary is written once and cached. The cache key is
    a digest of the messages that the summary replaces. The caller may continue with `plan.history`, or with the
    original messages, for which the cached summary is used again. Messages that are dropped later get a new
    summary after the existing summaries, so that the prefix of the prompt stays unchanged.

    If `summarizer` raises an error, the caller of the formatter gets the error.

    Attributes:
        summarizer: Async function that takes messages and returns the text of their summary. If four summaries
            already exist, the messages include these summaries, and the new summary replaces them.
        max_tokens: Maximum number of tokens for all summaries together, at least 200. The middle of a summary that
            is too long is removed.
        step: Distance in tokens between the points of the history at which a cut may end. See
            `OldestFirstInSteps.step`.
        keep_task: True to keep the first user message.
        name: Speaker name of the summaries.
    """

    summarizer: Callable[[Sequence[Msg]], Awaitable[str]]
    max_tokens: int = 1_000
    step: int | None = None
    keep_task: bool = True
    name: str = "summary"
    order_is_stable: ClassVar[bool] = True
    _cache: dict[str, tuple[Msg, ...]] = field(
        default_factory=dict[str, "tuple[Msg, ...]"], init=False, repr=False, compare=False
    )
    _pending: dict[tuple[str, object], anyio.Event] = field(
        default_factory=dict["tuple[str, object]", anyio.Event], init=False, repr=False, compare=False
    )

    __repr__ = bounded_repr

    def __post_init__(self) -> None:
        check_number("step", self.step)
        check_text("strategy.name", self.name)
        if not callable(self.summarizer):
            reason = f"expected an async function, got {describe_value(self.summarizer)}"
            advice = "Pass an async function that takes messages and returns the text of their summary."
            raise OptionError("strategy.summarizer", reason, advice)
        if type(self.max_tokens) is not int or self.max_tokens < 200:
            reason = f"must be an integer of at least 200, got {shorten_repr(self.max_tokens, 60)}"
            raise OptionError("strategy.max_tokens", reason, "Pass an integer of at least 200.")

    def order(self, units: Units) -> Sequence[int]:
        """Returns the indexes of the units that may be dropped, the oldest unit first.

        If `_MAX_SUMMARIES` summaries exist, the result begins with their units, because one new summary replaces
        all of these summaries.
        """
        dropped = OldestFirstInSteps(self.keep_task, self.step).order(units)
        return [*_surplus(units), *dropped] if _surplus(units) else dropped

    def protected(self, units: Units) -> AbstractSet[int]:
        """Returns the indexes of the units that a cut must not drop.

        These include earlier summaries, except the summaries that a new summary replaces.
        """
        return super().protected(units) - {*_surplus(units)}

    async def summaries(self, dropped: Sequence[Msg]) -> tuple[Msg, ...]:
        """Returns summary messages that together replace the dropped messages.

        Cached summaries are used for as many messages as possible, beginning with the first message. `summarizer`
        is called for the other messages.

        Args:
            dropped: Dropped messages, in order. At least one message is required.

        Raises:
            OptionError: If `summarizer` is not asynchronous, or returns a blank string or no string.
        """
        digests = _digest_prefixes(dropped)
        digest = digests[-1]
        # The key includes the event loop, because a task can wait only for tasks in the same event loop.
        task_key = (digest, anyio.lowlevel.current_token())
        while digest not in self._cache:
            if task_key in self._pending:
                await self._pending[task_key].wait()  # another task is writing this summary
                continue
            self._pending[task_key] = anyio.Event()
            try:
                self._cache_summaries(digest, await self._write(dropped, digests))
            finally:
                self._pending.pop(task_key).set()
        summaries = self._cache[digest]
        self._cache_summaries(digest, summaries)
        return summaries

    async def _write(self, dropped: Sequence[Msg], digests: Sequence[str]) -> tuple[Msg, ...]:
        """Returns cached summaries of as many messages as possible, and a new summary of the other messages."""
        count = next((end for end, digest in reversed([*enumerate(digests, 1)]) if digest in self._cache), 0)
        earlier = self._cache[digests[count - 1]] if count else ()
        new = list(dropped[count:])
        if len(earlier) >= _MAX_SUMMARIES:
            earlier, new = (), [*earlier, *new]
        text: object = self.summarizer(new)
        if not isawaitable(text):
            reason = f"expected an async function, got a function that returned {describe_value(text)}"
            raise OptionError("strategy.summarizer", reason, "Use `async def` to define the function.")
        return (*earlier, self._message(await text, digests[-1]))

    def _cache_summaries(self, digest: str, summaries: tuple[Msg, ...]) -> None:
        self._cache.pop(digest, None)
        while len(self._cache) >= _MAX_CACHED:
            self._cache.pop(next(iter(self._cache)), None)
        self._cache[digest] = summaries

    def _message(self, text: object, digest: str) -> Msg:
        if not isinstance(text, str) or not text.strip():
            reason = f"must return a string that is not blank, got {describe_value(text)}"
            raise OptionError("strategy.summarizer", reason, "Return the text of the summary.")
        # `estimate_text` returns hundredths of a token
        limit = 100 * self.max_tokens // _MAX_SUMMARIES - 100 * _MESSAGE_TOKENS
        if (size := estimate_text(text)) > limit:
            text = shorten_middle(text, len(text) * limit // size, "(Part of the summary was left out here.)")
        return Msg(self.name, text, "user", metadata={SUMMARY_MARK: digest}, pinned=True)


def _surplus(units: Units) -> list[UnitNumber]:
    """Returns the unit indexes of all summaries, or an empty list if fewer than `_MAX_SUMMARIES` exist."""
    summaries = find_summaries(units)
    return summaries if len(summaries) >= _MAX_SUMMARIES else []


def _digest_prefixes(msgs: Sequence[Msg]) -> list[str]:
    """Returns the digest of each non-empty prefix of `msgs`, the shortest prefix first."""
    chain, digests = sha256(), list[str]()
    for msg in msgs:
        chain.update(_digest(msg))
        digests.append(chain.hexdigest())
    return digests


def _digest(msg: Msg) -> bytes:
    cached = get_cached(msg, "digest")
    return cast("bytes", cached or set_cached(msg, "digest", sha256(to_json(msg.to_dict())).digest()))
