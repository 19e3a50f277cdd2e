"""Environments: an interpreter with the base version, and worker processes in either version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tempfile
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from tests.differential.vocabulary import FILES

__all__ = ["BASE", "REPOSITORY", "Worker", "create_media", "find_default_folder", "prepare_environment"]

BASE: Final = "1128bd1"
"""The last commit before the restructuring: version 0.3.0 with the fixes that followed it."""

REPOSITORY: Final = Path(__file__).parents[2]
_WORKER: Final = Path(__file__).with_name("worker.py")


_PINNED: Final = ("anyio", "pillow", "pydantic", "pydantic-core")


def find_default_folder(revision: str) -> Path:
    """Returns the folder that keeps the environment and the records of a base revision."""
    return Path(tempfile.gettempdir()) / f"agentkit-differential-{revision}"


def prepare_environment(folder: Path, revision: str) -> Path:
    """Returns an interpreter with the base version; the first call creates its virtual environment.

    The base version is installed from git. The libraries that its output depends on get the versions of this
    interpreter: another Pillow writes other bytes for a picture that was made smaller.
    """
    python = folder / "venv" / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = folder / "installed"
    if not done.exists():
        sources = folder / "sources"
        archive = _run("git", "-C", str(REPOSITORY), "archive", revision)
        with tarfile.open(fileobj=BytesIO(archive)) as tar:
            tar.extractall(sources, filter="data")
        _run(sys.executable, "-m", "venv", str(folder / "venv"))
        pinned = [f"{name}=={version(name)}" for name in _PINNED]
        _run(str(python), "-m", "pip", "install", "--quiet", f"{sources}[media]", *pinned)
        done.touch()
    return python


def _run(*command: str) -> bytes:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout


def create_media(folder: Path) -> None:
    """Writes the files that workers may read media from."""
    (folder / "folder").mkdir(parents=True, exist_ok=True)
    for name, content in FILES.items():
        (folder / name).write_bytes(content)


class Worker:
    """A process that runs cases in one version of agentkit.

    Attributes:
        python: Interpreter with this version.
        media: Folder with the files of `vocabulary.FILES`: the working directory of the process.
        hash_seed: Seed of Python's string hashes; versions get different ones, since no output may depend on it.

    """

    def __init__(self, python: Path, media: Path, hash_seed: int) -> None:
        environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
        environment["PYTHONHASHSEED"] = str(hash_seed)
        self._process = subprocess.Popen(
            (str(python), "-P", "-W", "error", str(_WORKER)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=media,
            env=environment,
        )

    def send(self, case: dict[str, Any]) -> None:
        """Starts a case."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(case).encode() + b"\n")
        self._process.stdin.flush()

    def receive(self) -> str:
        """Waits for the records of the case that was sent."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            raise RuntimeError(f"worker {self._process.args!r} ended with code {self._process.wait()}.")
        return line.rstrip().decode()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        if kind is not None:
            self._process.kill()
        self._process.wait()
