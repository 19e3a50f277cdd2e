"""Comparison of the records of two versions: intended differences are mapped away, all others are shown."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from difflib import unified_diff
from functools import lru_cache
from typing import Any, Final, cast

from tests.differential import mappings

__all__ = ["Comparison", "Difference", "count_records", "describe_record", "drop_error_texts", "map_reason"]

_SHOWN_LINES: Final = 24
_SHOWN_CHARACTERS: Final = 300


@dataclass(frozen=True, slots=True)
class Difference:
    """One part of a record that is not the same in both versions.

    Attributes:
        case: Kind and seed of the case, and what distinguishes the record within the case.
        provider: Name of the provider, empty if the record belongs to none.
        section: Part of the record that differs, such as "request".
        base: This part in the base version, as JSON values.
        candidate: This part in the version under test.

    """

    case: str
    provider: str
    section: str
    base: Any
    candidate: Any

    def __str__(self) -> str:
        """Returns a unified diff."""
        lines = unified_diff(_lines(self.base), _lines(self.candidate), "base", "candidate", lineterm="", n=2)
        shown = [line[:_SHOWN_CHARACTERS] for line in lines]
        more = len(shown) - _SHOWN_LINES
        rest = [f"… {more} more lines"] if more > 0 else []
        return "\n".join((f"== {self.case}: {self.section}", *shown[:_SHOWN_LINES], *rest))


def _lines(value: Any) -> list[str]:
    return json.dumps(value, indent=1, ensure_ascii=False).splitlines()


@dataclass(frozen=True, slots=True)
class Comparison:
    """Rules of a comparison.

    Attributes:
        with_texts: True to compare the texts of errors, too.
        reasons: Old and new ledger reasons, see `mappings.REASONS`.
        texts: Old and new texts of requests, see `mappings.TEXTS`.

    """

    with_texts: bool = False
    reasons: Sequence[tuple[str, str]] = field(default=mappings.REASONS)
    texts: Sequence[tuple[str, str]] = field(default=mappings.TEXTS)

    def compare(self, case: dict[str, Any], base: str, candidate: str) -> Iterator[Difference]:
        """Yields the differences between the records of a case, given as the lines that workers wrote."""
        if base == candidate:
            return
        old, new = json.loads(base), json.loads(candidate)
        title = f"{case['kind']} {case['seed']}"
        if len(old) != len(new):
            yield Difference(title, "", "records", len(old), len(new))
            return
        for number, (one, other) in enumerate(zip(old, new, strict=True)):
            part: dict[str, Any] | None = next(
                (case[key][number] for key in ("runs", "logs") if key in case), None
            )
            if part is not None and mappings.is_removed(part):
                continue
            provider, label = describe_record(case, number)
            yield from self._compare_record(f"{title} {label}", provider, one, other, _writes_texts(case, number))

    def _compare_record(
        self, title: str, provider: str, old: Any, new: Any, writes_texts: bool
    ) -> Iterator[Difference]:
        if not self.with_texts:
            old, new = drop_error_texts(old), drop_error_texts(new)
        old, new = mappings.drop_foreign_options(old), mappings.drop_foreign_options(new)
        old = self._map_reasons(old)
        if title.startswith(("stored ", "conversations ")):
            # a message that the base version stored keeps its reasons of invalid blocks and its keys
            new = self._map_reasons(new)
        texts = self._map_texts(old)
        if texts != old:
            # a stored message can quote a text of the base version, so both records are mapped
            old, new = _without_counts(texts), _without_counts(self._map_texts(new))
        old, new = sort_notes(old), sort_notes(new)
        old, new = _drop_found_values(old), _drop_found_values(new)
        old = mappings.add_omitted_keys(old, new)
        old = mappings.map_refusals(old, new, counts_texts=writes_texts and bool(self.texts))
        if json.dumps(old) == json.dumps(new):
            return
        if ("error" in old) != ("error" in new) or list(old) != list(new):
            yield Difference(title, provider, "outcome", old, new)
            return
        for section in old:
            if json.dumps(old[section]) != json.dumps(new[section]):
                yield Difference(title, provider, section, old[section], new[section])

    def _map_texts(self, value: Any) -> Any:
        if isinstance(value, str):
            return map_text(value, tuple(self.texts)) if self.texts else value
        if isinstance(value, list):
            return [self._map_texts(item) for item in cast("list[Any]", value)]
        if isinstance(value, dict):
            return {key: self._map_texts(item) for key, item in cast("dict[str, Any]", value).items()}
        return value

    def _map_reasons(self, value: Any) -> Any:
        """Returns JSON values with each old reason replaced, and each stored message in its new form."""
        if isinstance(value, str):
            return map_reason(value, tuple(self.reasons)) if self.reasons else value
        if isinstance(value, list):
            return [self._map_reasons(item) for item in cast("list[Any]", value)]
        if isinstance(value, dict):
            pairs = cast("dict[str, Any]", value).items()
            held = {key: item if key == "request" else self._map_reasons(item) for key, item in pairs}
            if "entries" in held:
                held["entries"] = [mappings.drop_repeated_details(entry) for entry in held["entries"]]
            return mappings.move_native_keys(held) if held.keys() >= {"name", "role", "content"} else held
        return value


_INVALID: Final = "invalid block: "


@lru_cache(65_536)
def map_reason(reason: str, rows: tuple[tuple[str, str], ...]) -> str:
    """Returns the new wording of a ledger reason, and of the reason that an invalid block brings along."""
    if reason.startswith(_INVALID):
        reason = _INVALID + map_reason(reason.removeprefix(_INVALID), rows)
    for old, new in rows:
        match = re.fullmatch(old, reason, re.DOTALL)
        if match:
            return match.expand(new)
    return reason


@lru_cache(65_536)
def map_text(text: str, rows: tuple[tuple[str, str], ...]) -> str:
    """Returns a text of a request in its new wording."""
    for old, new in rows:
        text = re.sub(old, new, text)
    return text


def count_records(case: dict[str, Any]) -> int:
    """Returns the number of records of a case; a conversation has one about loading its messages besides."""
    held = case.get("runs") or case.get("logs")
    return len(held) if held else len(case["requests"]) + 1


def describe_record(case: dict[str, Any], number: int) -> tuple[str, str]:
    """Returns the provider and the label of a record. The first record of a conversation is about loading it."""
    if "runs" in case:
        run = case["runs"][number]
        return run["provider"], f"{run['provider']} {run['label']}"
    if "logs" in case:
        log = case["logs"][number]
        return log["provider"], f"{log['provider']} {json.dumps(log['log'])[:_SHOWN_CHARACTERS]}"
    if number == 0:
        return "", "loading"
    options = case["requests"][number - 1]
    more = {key: value for key, value in options.items() if key not in ("provider", "form", "tools")}
    return options["provider"], f"{options['provider']} {options['form']} {json.dumps(more)[:_SHOWN_CHARACTERS]}"


def _writes_texts(case: dict[str, Any], number: int) -> bool:
    """Returns True if a text replaces content that the target of a record cannot represent."""
    return (
        number > 0 and "requests" in case and case["requests"][number - 1].get("on_loss", "describe") == "describe"
    )


def drop_error_texts(value: Any) -> Any:
    """Returns JSON values without the texts of errors."""
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value)
        is_error = {"error", "facts", "texts"} <= held.keys()
        return {key: drop_error_texts(item) for key, item in held.items() if not (is_error and key == "texts")}
    if isinstance(value, list):
        return [drop_error_texts(item) for item in cast("list[Any]", value)]
    return value


def sort_notes(record: Any) -> Any:
    """Returns a record with sorted syntheses and sorted details of ledger entries. Their order has no meaning."""
    if isinstance(record, list):
        return [sort_notes(item) for item in cast("list[Any]", record)]
    if not isinstance(record, dict):
        return record
    items = cast("dict[str, Any]", record).items()
    fields = {key: item if key == "request" else sort_notes(item) for key, item in items}
    if not {"entries", "syntheses"} <= fields.keys():
        return fields
    entries = [[*entry[:-1], sorted(entry[-1])] for entry in fields["entries"]]
    return {**fields, "entries": entries, "syntheses": sorted(fields["syntheses"])}


_FOUND: Final = re.compile(r"((?:invalid block: )?(?:[\w.\[\]]+: )?expected .*?), got .*", re.DOTALL)


def _drop_found_values(value: Any) -> Any:
    """Returns JSON values without the value that a reason names as found, which the base version does not name."""
    if isinstance(value, str):
        match = _FOUND.fullmatch(value)
        return match[1] if match else value
    if isinstance(value, dict):
        return {key: _drop_found_values(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_drop_found_values(item) for item in cast("list[Any]", value)]
    return value


_COUNTS: Final = frozenset({"tokens", "uncached", "digest", "needed"})


def _without_counts(value: Any) -> Any:
    """Returns JSON values without what follows from the length of texts."""
    if isinstance(value, dict):
        held = cast("dict[str, Any]", value)
        return {key: _without_counts(item) for key, item in held.items() if key not in _COUNTS}
    if isinstance(value, list):
        return [_without_counts(item) for item in cast("list[Any]", value)]
    return value
