"""Runs of both versions over all cases, in parallel lanes, with the records of the base version kept on disk."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from queue import Queue
from typing import Any, Final, TypeAlias

from tests.differential.environment import Worker, create_media

__all__ = ["CHUNK", "Case", "Lane", "Result", "run_chunks"]

Case: TypeAlias = dict[str, Any]
Result: TypeAlias = tuple[Case, str, str]
"""A case, and the lines that the base version and the version under test wrote."""

CHUNK: Final = 20
"""Cases that are run and stored together."""


class Lane:
    """A pair of workers, one in either version, started when they are first needed.

    Attributes:
        base: Interpreter with the base version.
        candidate: Interpreter with the version under test.
        folder: Folder for media and for the stored records of the base version.
        uses_cache: False to run the base version again.

    """

    def __init__(self, base: Path, candidate: Path, folder: Path, *, uses_cache: bool = True) -> None:
        self.base = base
        self.candidate = candidate
        self.folder = folder
        self.uses_cache = uses_cache
        self._stack = ExitStack()
        self._workers: dict[str, Worker] = {}
        create_media(folder / "media")

    def close(self) -> None:
        """Ends the workers."""
        self._stack.close()

    def run(self, name: str, create: Callable[[Lane], Sequence[Case]]) -> list[Result]:
        """Runs a chunk of cases in both versions."""
        cases = create(self)
        known = self._load(name)
        if known is not None:
            worker = self._worker("candidate")
            return [(case, base, _ask(worker, case)) for case, base in zip(cases, known, strict=True)]
        results = [self._run_both(case) for case in cases]
        self._store(name, [base for _, base, _ in results])
        return results

    def run_base(self, name: str, cases: Sequence[Case]) -> list[str]:
        """Returns the records of the base version alone, which other cases are made from."""
        known = self._load(name)
        if known is None:
            known = [_ask(self._worker("base"), case) for case in cases]
            self._store(name, known)
        return known

    def _run_both(self, case: Case) -> Result:
        workers = self._worker("base"), self._worker("candidate")
        for worker in workers:
            worker.send(case)
        base, candidate = (worker.receive() for worker in workers)
        return case, base, candidate

    def _worker(self, version: str) -> Worker:
        if version not in self._workers:
            python, seed = (self.base, 1) if version == "base" else (self.candidate, 2)
            worker = Worker(python, self.folder / "media", seed)
            self._workers[version] = self._stack.enter_context(worker)
        return self._workers[version]

    # -- stored records ------------------------------------------------------------------------------------------

    def _path(self, name: str) -> Path:
        return self.folder / f"records-{fingerprint_sources()}" / f"{name}.z"

    def _load(self, name: str) -> list[str] | None:
        path = self._path(name)
        if not self.uses_cache or not path.exists():
            return None
        return zlib.decompress(path.read_bytes()).decode().split("\n")

    def _store(self, name: str, lines: Sequence[str]) -> None:
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}")
        part.write_bytes(zlib.compress("\n".join(lines).encode(), 3))
        part.replace(path)


def _ask(worker: Worker, case: Case) -> str:
    worker.send(case)
    return worker.receive()


def fingerprint_sources() -> str:
    """Returns a digest of all sources and data that records of the base version depend on."""
    folder, digest = Path(__file__).parent, hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".py", ".json", ".xz") and path.name not in _OTHER_SOURCES:
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


_OTHER_SOURCES: Final = frozenset(
    {
        "__init__.py", "__main__.py", "comparison.py", "coverage.py", "environment.py", "mappings.py", "runs.py",
        "test_differential.py",
    }
)  # fmt: skip
"""Sources that change no record."""


def run_chunks(
    lanes: Sequence[Lane], chunks: Sequence[tuple[str, Callable[[Lane], Sequence[Case]]]]
) -> Iterator[list[Result]]:
    """Yields the results of each chunk, in order; every lane runs one chunk at a time."""
    free: Queue[Lane] = Queue()
    for lane in lanes:
        free.put(lane)

    def run(chunk: tuple[str, Callable[[Lane], Sequence[Case]]]) -> list[Result]:
        lane = free.get()
        try:
            return lane.run(*chunk)
        finally:
            free.put(lane)

    with ThreadPoolExecutor(len(lanes)) as pool:
        ahead = 2 * len(lanes)
        running = [pool.submit(run, chunk) for chunk in chunks[:ahead]]
        for number in range(len(chunks)):
            yield running.pop(0).result()
            if number + ahead < len(chunks):
                running.append(pool.submit(run, chunks[number + ahead]))
