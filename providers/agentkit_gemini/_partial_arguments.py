"""ArgumentBuffer that Vertex streams piece by piece, each under its JSON path (SDK: PartialArg)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, cast

from agentkit.provider_kit import as_text
from agentkit_gemini._parts import shallow

__all__ = ["PartialArguments"]

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]")
_DEEPEST = 100
"""Steps of a path: JSON that is nested more deeply is read by no tool."""
_MOST_SKIPPED = 1_000
"""Items of lists that the paths of one call may skip. The API names the items of a list one after the other."""
_INDEX_DIGITS = 9


class PartialArguments:
    """The arguments of one call so far. Its texts may have lone surrogates: two pieces may share a character."""

    def __init__(self) -> None:
        self._found: dict[str, Any] = {}
        self._skipped = 0  # items of lists that no path has named
        self._texts: dict[str, tuple[Any, str | int, list[str]]] = {}  # by path: strings that go on, in pieces

    @property
    def found(self) -> dict[str, Any]:
        """The arguments as an object."""
        for home, step, pieces in self._texts.values():
            home[step] = "".join(pieces)
        return self._found

    def update(self, arguments: Mapping[str, Any]) -> None:
        """Set whole arguments by name."""
        self._found.update(arguments)

    def grow(self, part: dict[str, Any]) -> bool:
        """Take a part that is what most are, more of one text and nothing else, as the API spells it."""
        call: dict[str, Any] | None = part.get("functionCall")
        if len(part) > 1 or not isinstance(call, dict) or len(call) > 2 or not call.get("willContinue"):
            return False
        pieces: list[dict[str, Any] | None] | None = call.get("partialArgs")
        if not isinstance(pieces, list) or len(pieces) != 1 or not isinstance(piece := pieces[0], dict):
            return False
        path, text = piece.get("jsonPath"), piece.get("stringValue")
        if not piece.get("willContinue") or type(path) is not str or type(text) is not str:
            return False
        if begun := self._texts.get(path):
            begun[2].append(text)
        return begun is not None

    def add(self, piece: Mapping[str, Any]) -> None:
        """Take one piece. A path that leads nowhere is passed over."""
        told = shallow(piece)
        path, item = as_text(told.get("json_path")), _value(told)
        if path in self._texts and isinstance(item, str):
            self._texts[path][2].append(item)
        else:
            self._begin(path, item)
        if path in self._texts and not told.get("will_continue"):
            home, step, pieces = self._texts.pop(path)
            home[step] = "".join(pieces)

    def _begin(self, path: str, item: Any) -> None:
        steps = _steps(path)
        home = self._home(steps) if steps and not isinstance(steps[0], int) else None
        if home is None or isinstance(steps[-1], int) != isinstance(home, list):
            return
        if self._put(home, steps[-1], item) and isinstance(item, str):
            self._texts[path] = (home, steps[-1], [item])

    def _home(self, steps: list[str | int]) -> Any:
        """The container of a path's last step, created on the way; None where something else is in its place."""
        home: Any = self._found
        for step, following in pairwise(steps):
            inner: Any = _get(home, step)
            if inner is None:
                inner = [] if isinstance(following, int) else {}
                if not self._put(home, step, inner):
                    return None
            if not isinstance(inner, list if isinstance(following, int) else dict):
                return None
            home = cast("Any", inner)
        return home

    def _put(self, home: Any, step: str | int, item: Any) -> bool:
        """Set an item. Returns False where the path skips more items of lists than a call may."""
        if isinstance(step, int) and (skipped := step - len(home)) >= 0:
            self._skipped += skipped
            if self._skipped > _MOST_SKIPPED:
                return False
            home.extend([None] * (skipped + 1))
        home[step] = item
        return True


def _value(told: Mapping[str, Any]) -> Any:
    if "string_value" in told:
        text = told["string_value"]
        return text if isinstance(text, str) else ""
    if "number_value" in told:
        number = told["number_value"]
        return int(number) if isinstance(number, float) and number.is_integer() else number
    return told.get("bool_value")


def _steps(path: str) -> list[str | int]:
    """`$.a.b[0]['c d']` as its steps; none for what is no such path."""
    steps: list[str | int] = []
    at = 1 if path.startswith("$") else 0
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None or len(found[2] or "") > _INDEX_DIGITS or len(steps) >= _DEEPEST:
            return []
        name = found[1] or found[3] or found[4]
        steps.append(int(found[2]) if found[2] else re.sub(r"\\(.)", r"\1", name or ""))
        at = found.end()
    return steps


def _get(home: Any, step: str | int) -> Any:
    if isinstance(step, int):
        return home[step] if step < len(home) else None
    return home.get(step)
