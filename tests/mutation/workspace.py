"""Copy of the tree in which mutants are applied, and the test runs in it."""

from __future__ import annotations

import gc
import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.mutation.coverage import CoverageRecorder
from tests.mutation.mutants import Mutant
from tests.mutation.stages import Stage, StagePlanner

__all__ = ["TestRun", "Workspace", "preload_packages"]

_PACKAGES: Final = (
    *("hypothesis", "pydantic", "anyio", "trio", "PIL.Image", "pytest", "jinja2", "starlette", "uvicorn"),
    *("openai", "anthropic", "google.genai", "ollama", "dashscope"),
)

_NO_TESTS: Final = 5 << 8  # status of a process that exits with pytest's code for an empty selection


def preload_packages() -> None:
    """Imports the packages that every test run imports. The runs are forks of this process."""
    for name in _PACKAGES:
        importlib.import_module(name)
    gc.freeze()


@dataclass(frozen=True, slots=True)
class TestRun:
    """Outcome of a test run.

    Attributes:
        is_failed: True if a test failed, the tests did not load, or the time was over.
        failure: First failed test, or the reason of the failure.
    """

    __test__ = False

    is_failed: bool
    failure: str = ""


class Workspace:
    """Copy of the tracked and the new files of a work tree.

    Args:
        source: Root of the work tree.
        folder: Empty folder for the copy.
    """

    def __init__(self, source: Path, folder: Path) -> None:
        self.root = folder
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=source, capture_output=True, text=True, check=True)
        for name in listed.stdout.splitlines():
            if (source / name).is_file():
                (folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source / name, folder / name)

    def record_coverage(self, planner: StagePlanner, path: Path) -> TestRun:
        """Runs all tests on instrumented modules, and writes the blocks that each test enters to a file."""
        sources = planner.get_instrumented()
        originals = {name: (self.root / name).read_text("utf-8") for name in sources}
        try:
            for name, source in sources.items():
                self._write(name, source)
            return self.run_tests(planner.get_all(), CoverageRecorder(path, planner.digest))
        finally:
            for name, source in originals.items():
                self._write(name, source)

    def run_mutant(self, mutant: Mutant, stages: Sequence[Stage]) -> TestRun:
        """Returns the first failed run of the stages on a mutant, or the last run."""
        source = (self.root / mutant.path).read_text("utf-8")
        run = TestRun(is_failed=False)
        try:
            self._write(mutant.path, mutant.apply(source))
            for stage in filter(lambda stage: stage.files, stages):
                run = self.run_tests(stage)
                if run.is_failed:
                    return run
            return run
        finally:
            self._write(mutant.path, source)

    def _write(self, path: str, source: str) -> None:
        """Writes a module, and removes its compiled file: sources of one second and one size look unchanged."""
        module = self.root / path
        module.write_text(source, "utf-8")
        for compiled in (module.parent / "__pycache__").glob(f"{module.stem}.*"):
            compiled.unlink()

    def run_tests(self, stage: Stage, recorder: CoverageRecorder | None = None) -> TestRun:
        """Runs a group of tests in a fork of this process, up to the first failure if nothing records the run."""
        output = self.root / ".mutation_output"
        process = os.fork()
        if not process:
            self._run_in_fork(stage, recorder, output)
        status = _wait(process, stage.time_limit)
        if status is None:
            return TestRun(is_failed=True, failure=f"more than {stage.time_limit:.0f} s")
        text = output.read_text("utf-8", "replace")
        match = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - |$)", text, re.MULTILINE)
        is_failed = status not in (0, _NO_TESTS)
        return TestRun(is_failed, match[1] if match else text[-300:] if is_failed else "")

    def _run_in_fork(self, stage: Stage, recorder: CoverageRecorder | None, output: Path) -> None:
        code = 70
        try:
            os.setsid()
            with output.open("wb") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            sys.stdout = sys.stderr = os.fdopen(1, "w", closefd=False)
            code = self._run_pytest(stage, recorder)
        except BaseException:
            traceback.print_exc()
        finally:
            with suppress(ValueError, OSError):
                sys.stdout.flush()
            os._exit(code)

    def _run_pytest(self, stage: Stage, recorder: CoverageRecorder | None) -> int:
        import hypothesis
        import pytest

        roots = [str(self.root), str(self.root / "providers")]
        os.chdir(self.root)
        os.environ["PYTHONPATH"] = os.pathsep.join(roots)
        sys.dont_write_bytecode = False
        sys.path[:0] = roots
        for name in [name for name in sys.modules if name.split(".")[0] == "tests"]:
            del sys.modules[name]
        # A failing example is enough: its reduction takes minutes.
        phases = [hypothesis.Phase.explicit, hypothesis.Phase.generate]
        hypothesis.settings.register_profile("mutation", phases=phases, database=None)
        hypothesis.settings.load_profile("mutation")
        options = ["--exitfirst"] if recorder is None else []
        options += ["-q", "-n", "0", "--tb=no", "-p", "no:cacheprovider", f"--rootdir={self.root}"]
        options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of the packages imported before
        return int(pytest.main([*options, *stage.files], [stage, recorder] if recorder else [stage]))


def _wait(process: int, seconds: float) -> int | None:
    """Returns the exit status of a process; None if its time was over and it was ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            return status
        time.sleep(0.05)
    with suppress(ProcessLookupError):
        os.killpg(process, signal.SIGKILL)
    os.waitpid(process, 0)
    return None
