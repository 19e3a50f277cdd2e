"""The README's examples run as they stand, and its commands are those of the project."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_runs(number: int) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", EXAMPLES[number]], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_first_command_formats_for_every_provider() -> None:
    commands = re.findall(r"^pip install .*? && (agentkit .*)$", README.read_text("utf-8"), re.MULTILINE)
    arguments = commands[0].split()[1:]
    done = subprocess.run(
        [sys.executable, "-c", "from agentkit.cli import main; main()", *arguments],
        cwd=README.parent,
        capture_output=True,
        check=True,
    )
    assert len(json.loads(done.stdout)) == 9
