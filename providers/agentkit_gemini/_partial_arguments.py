"""Parser for tool call arguments that Vertex AI streams in pieces.

Each piece contains a JSON path, and a value or a part of a string value (google-genai: PartialArg).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, cast

from agentkit.provider_kit import as_text
from agentkit_gemini._part_reader import normalize_keys

__all__ = ["PartialArguments"]

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\[\"((?:[^\"\\]|\\.)*)\"\]")
_MAX_STEPS = 100
"""Maximum number of keys and indices in a JSON path. A longer path is invalid."""
_MAX_SKIPPED = 1_000
"""Maximum total number of missing list items in the arguments of one tool call.

Items are missing if the index in a JSON path is beyond the end of the list. The limit prevents very large lists.
Valid arguments have no missing items, because the API sends the items of a list in order.
"""
_MAX_INDEX_DIGITS = 9


class PartialArguments:
    """Collector for the pieces of one tool call's arguments.

    The collected strings can contain lone surrogates, because a character can be split between two pieces.
    """

    def __init__(self) -> None:
        self._arguments: dict[str, Any] = {}
        self._skipped = 0  # number of missing list items (see `_MAX_SKIPPED`)
        # Maps the JSON path of each unfinished string to its object or list, its key or index, and its pieces.
        self._texts: dict[str, tuple[Any, str | int, list[str]]] = {}

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments from all pieces that were added, including unfinished strings."""
        for container, step, pieces in self._texts.values():
            container[step] = "".join(pieces)
        return self._arguments

    def update(self, arguments: Mapping[str, Any]) -> None:
        """Adds complete arguments, which replace earlier arguments with the same names."""
        self._arguments.update(arguments)

    def append_text(self, part: dict[str, Any]) -> bool:
        """Appends the text in a part of a reply, if the part only continues an unfinished string.

        Returns True if the text was appended. This method is a fast path for the most common parts, and does not
        recognize parts with snake_case keys.
        """
        call: dict[str, Any] | None = part.get("functionCall")
        if len(part) > 1 or not isinstance(call, dict) or len(call) > 2 or not call.get("willContinue"):
            return False
        pieces: list[dict[str, Any] | None] | None = call.get("partialArgs")
        if not isinstance(pieces, list) or len(pieces) != 1 or not isinstance(piece := pieces[0], dict):
            return False
        path, text = piece.get("jsonPath"), piece.get("stringValue")
        if not piece.get("willContinue") or type(path) is not str or type(text) is not str:
            return False
        if unfinished := self._texts.get(path):
            unfinished[2].append(text)
        return unfinished is not None

    def add(self, piece: Mapping[str, Any]) -> None:
        """Adds one piece of the arguments. Ignores a piece with an invalid JSON path."""
        fields = normalize_keys(piece)
        path, item = as_text(fields.get("json_path")), _parse_value(fields)
        if path in self._texts and isinstance(item, str):
            self._texts[path][2].append(item)
        else:
            self._begin(path, item)
        if path in self._texts and not fields.get("will_continue"):
            container, step, pieces = self._texts.pop(path)
            container[step] = "".join(pieces)

    def _begin(self, path: str, item: Any) -> None:
        steps = _parse_path(path)
        container = self._find_container(steps) if steps and not isinstance(steps[0], int) else None
        if container is None or isinstance(steps[-1], int) != isinstance(container, list):
            return
        if self._put(container, steps[-1], item) and isinstance(item, str):
            self._texts[path] = (container, steps[-1], [item])

    def _find_container(self, steps: list[str | int]) -> Any:
        """Returns the object or list that contains the value at the end of a path.

        Creates missing objects and lists on the path. Returns None if a value on the path has the wrong type, or
        if too many list items are missing.
        """
        container: Any = self._arguments
        for step, next_step in pairwise(steps):
            inner: Any = _get_item(container, step)
            if inner is None:
                inner = [] if isinstance(next_step, int) else {}
                if not self._put(container, step, inner):
                    return None
            if not isinstance(inner, list if isinstance(next_step, int) else dict):
                return None
            container = cast("Any", inner)
        return container

    def _put(self, container: Any, step: str | int, item: Any) -> bool:
        """Sets a value in an object or list. Missing list items before the value become None.

        Returns False, without setting the value, if too many list items are missing.
        """
        if isinstance(step, int) and (skipped := step - len(container)) >= 0:
            self._skipped += skipped
            if self._skipped > _MAX_SKIPPED:
                return False
            container.extend([None] * (skipped + 1))
        container[step] = item
        return True


def _parse_value(fields: Mapping[str, Any]) -> Any:
    if "string_value" in fields:
        text = fields["string_value"]
        return text if isinstance(text, str) else ""
    if "number_value" in fields:
        number = fields["number_value"]
        return int(number) if isinstance(number, float) and number.is_integer() else number
    return fields.get("bool_value")


def _parse_path(path: str) -> list[str | int]:
    """Returns the keys and indices of a JSON path such as `$.a.b[0]['c d']`.

    Returns an empty list if the path is invalid.
    """
    steps: list[str | int] = []
    index = 1 if path.startswith("$") else 0
    while index < len(path):
        match = _STEP.match(path, index)
        if match is None or len(match[2] or "") > _MAX_INDEX_DIGITS or len(steps) >= _MAX_STEPS:
            return []
        name = match[1] or match[3] or match[4]
        steps.append(int(match[2]) if match[2] else re.sub(r"\\(.)", r"\1", name or ""))
        index = match.end()
    return steps


def _get_item(container: Any, step: str | int) -> Any:
    if isinstance(step, int):
        return container[step] if step < len(container) else None
    return container.get(step)
