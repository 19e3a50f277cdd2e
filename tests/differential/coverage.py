"""Coverage of the corpus: which dispositions and which reasons of the base version's ledger the cases reach."""

from __future__ import annotations

import ast
import re
import subprocess
import tarfile
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from io import BytesIO
from typing import Any, Final, cast

from tests.differential.environment import REPOSITORY

__all__ = ["Coverage", "find_reasons"]

_OTHER_MODULES: Final = re.compile(
    r"agentkit/(cli|testing|native_logs|errors|assembly|streaming|fetching|tools\.)"
)
"""Modules whose sentences are not ledger reasons."""

_SENTENCE: Final = re.compile(r"(?=([^ ]+ ){2})[a-z{][^|\n=()<>?*\\]*(\([^()]*\))?")
"""Three words or more, and nothing that only patterns and code have."""


class Coverage:
    """Number of ledger entries by disposition, and the reasons among them."""

    def __init__(self) -> None:
        self.dispositions: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.syntheses: Counter[str] = Counter()
        self.outcomes: Counter[str] = Counter()
        self.cut_count = 0

    def add(self, value: Any) -> None:
        """Counts the plans and errors among the records of the base version."""
        if isinstance(value, list):
            for item in cast("list[Any]", value):
                self.add(item)
        elif isinstance(value, dict):
            record = cast("dict[str, Any]", value)
            if "entries" in record:
                self._add_plan(record)
            if "error" in record:
                self.outcomes[record["error"]] += 1
                self._add_losses(record.get("facts", {}).get("losses", ()))
            for key in ("earlier", "formatted"):
                self.add(record.get(key))

    def _add_plan(self, record: dict[str, Any]) -> None:
        self.outcomes["a plan"] += 1
        self.cut_count += record["cut"] is not None
        for _, _, disposition, is_lost, reason, details in record["entries"]:
            self.dispositions[f"{disposition}, content lost" if is_lost else disposition] += 1
            self.reasons.update((reason, *details))
        for name, reason in record["syntheses"]:
            self.syntheses[name] += 1
            self.reasons[reason] += 1
        self._add_losses(record["losses"])

    def _add_losses(self, losses: Any) -> None:
        self.reasons.update(reason for _, reason in losses)

    def describe(self, revision: str) -> str:
        """Returns the counts, and the sentences of the base version's sources that no reason matches."""
        known = find_reasons(revision)
        hits: Counter[str] = Counter()
        for reason, count in self.reasons.items():
            for template in known:
                if _compile(template).fullmatch(reason):
                    hits[template] += count
        lines = [f"{count:>9,} {outcome}" for outcome, count in self.outcomes.most_common()]
        lines.append(f"{self.cut_count:>9,} plans with a cut")
        lines += [f"{count:>9,} {disposition}" for disposition, count in self.dispositions.most_common()]
        lines += [f"{count:>9,} synthesis: {name}" for name, count in self.syntheses.most_common()]
        lines += [f"{count:>9,} {template}" for template, count in hits.most_common()]
        lines += [f"    never {template}" for template in sorted(known - hits.keys())]
        return "\n".join(lines)


@lru_cache(1)
def find_reasons(revision: str) -> frozenset[str]:
    """Returns the sentences of a revision's sources that may be ledger reasons, with {} for what varies."""
    archive = subprocess.run(
        ("git", "-C", str(REPOSITORY), "archive", revision, "agentkit", "providers"),
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    found: set[str] = set()
    with tarfile.open(fileobj=BytesIO(archive)) as tar:
        for member in tar.getmembers():
            file = tar.extractfile(member) if member.name.endswith(".py") else None
            if file is not None and not _OTHER_MODULES.match(member.name):
                source = file.read().decode()
                if "ledger" in source or "obstacle" in source or "Shelf" in source or "reason" in source:
                    found.update(_find_sentences(ast.parse(source)))
    return frozenset(found)


def _find_sentences(tree: ast.AST) -> Iterator[str]:
    """Yields the texts of a module that read like reasons, without those of docstrings and errors."""
    if isinstance(tree, ast.Raise | ast.Assert):
        return
    if isinstance(tree, ast.Constant | ast.JoinedStr):
        template = _as_template(tree)
        if _SENTENCE.fullmatch(template):
            yield template
        return
    is_text = isinstance(tree, ast.Expr) and isinstance(tree.value, ast.Constant)
    for child in () if is_text else ast.iter_child_nodes(tree):
        yield from _find_sentences(child)


def _as_template(node: ast.Constant | ast.JoinedStr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    return "".join(_as_template(part) if isinstance(part, ast.Constant) else "{}" for part in node.values)


@lru_cache(4096)
def _compile(template: str) -> re.Pattern[str]:
    """Returns a pattern for a template; a reason may begin or end with another sentence."""
    return re.compile(f".*{'.*'.join(map(re.escape, template.split('{}')))}.*", re.DOTALL)
