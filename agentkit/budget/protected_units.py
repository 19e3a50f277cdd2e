"""Units that a cut must keep, such as the system prompt, pinned messages and the newest message."""

from __future__ import annotations

from agentkit.budget.units import SUMMARY_MARK, UnitNumber, Units, get_example
from agentkit.messages.features import Feature
from agentkit.repair.unmatched_results import UNMATCHED_MARK

__all__ = ["find_protected_units", "find_summaries", "find_task"]


def find_protected_units(units: Units, keep_task: bool = False) -> set[UnitNumber]:
    """Returns the indexes of the units that a cut must keep.

    A cut keeps the units of the system prompt, the pinned units, and the examples of the task. A cut also keeps
    the newest unit, and the newest unit that the viewer sees. The viewer is the agent that the request is for. If
    `keep_task` is True, a cut also keeps the unit of the first user message, which states the task. The strategy
    `DropExamples` may nevertheless drop examples that are not pinned.
    """
    numbers = units.numbers
    protected = {*numbers[: units.system], *units.pinned, *units.examples, *numbers[-1:]}
    if units.newest_visible is not None:
        protected.add(units.newest_visible)
    if keep_task and (task := find_task(units)) is not None:
        protected.add(task)
    return protected


def find_task(units: Units) -> UnitNumber | None:
    """Returns the index of the unit with the task, which is the first user message.

    Ignores messages of examples, messages with tool blocks, and tool results that became user text. Returns None
    if there is no other user message.
    """
    return next(
        (
            number
            for number in units.numbers
            if (msg := units.msgs[units.starts[number]]).role == "user"
            and not msg.features & Feature.TOOL
            and UNMATCHED_MARK not in (msg.metadata or {})
            and get_example(msg) is None
        ),
        None,
    )


def find_summaries(units: Units) -> list[UnitNumber]:
    """Returns the indexes of the units that consist of one summary message, which `Summarize` wrote."""
    return [
        number
        for number in units.pinned
        if [SUMMARY_MARK in (msg.metadata or {}) for msg in units.unit(number)] == [True]
    ]
