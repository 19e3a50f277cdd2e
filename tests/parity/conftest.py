"""The process with DSPy, and the names that the source code of the cases uses."""

from __future__ import annotations

import datetime
import enum
import json
import os
import subprocess
import typing
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, cast

import pydantic
import pytest
import typing_extensions

from agentkit import Tool, ToolUseBlock
from agentkit.prompts.field_types import Code, History, Reasoning
from agentkit.prompts.fields import InputField, OutputField
from agentkit.prompts.signature import Signature
from tests.parity.cases import Case

__all__ = ["ask_dspy", "run_source"]

_NAMES: Final[dict[str, Any]] = {
    **{name: getattr(typing, name) for name in ("Any", "Literal", "Optional", "Union")},
    "Signature": Signature,
    "InputField": InputField,
    "OutputField": OutputField,
    "History": History,
    "TypedDict": typing_extensions.TypedDict,
    "BaseModel": pydantic.BaseModel,
    "Field": pydantic.Field,
    "Enum": enum.Enum,
    "datetime": datetime,
    "Code": Code,
    "Reasoning": Reasoning,
    "because": Reasoning("Because."),
    "Tool": Tool.from_function,
    "Tools": list[Tool],
    "ToolCalls": list[ToolUseBlock],
}


@pytest.fixture(scope="session")
def worker() -> Iterator[subprocess.Popen[str]]:
    """A process with DSPy. The variable AGENTKIT_DSPY names its interpreter."""
    python = os.environ.get("AGENTKIT_DSPY")
    if python is None:
        pytest.fail("Set AGENTKIT_DSPY to the interpreter of an environment with the extra `parity`.")
    command = [python, str(Path(__file__).with_name("dspy_worker.py"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        process.kill()


def ask_dspy(
    worker: subprocess.Popen[str], case: Case, adapter: str, texts: Sequence[str] = (), **options: object
) -> dict[str, Any]:
    """Returns the answer of the process with DSPy to a case (see `dspy_worker`)."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    question = {**case._asdict(), "adapter": adapter, "texts": texts, **options}
    worker.stdin.write(json.dumps(question) + "\n")
    worker.stdin.flush()
    line = worker.stdout.readline()
    assert line, "the process with DSPy ended"
    return cast("dict[str, Any]", json.loads(line))


@cache
def run_source(source: str) -> dict[str, Any]:
    """Returns the names that the source code of a case defines."""
    names = dict(_NAMES)
    # Without `dont_inherit`, the annotations of the source would be texts, as those of this module are.
    exec(compile(source, "<case>", "exec", dont_inherit=True), names)
    return names
