"""Every example runs, and every conversation of the examples formats for every provider."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agentkit import available_providers, load_messages, load_provider

EXAMPLES = Path(__file__).parent.parent / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
CONVERSATIONS = sorted((EXAMPLES / "data").glob("*.json"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_runs(script: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("file", CONVERSATIONS, ids=lambda path: path.name)
@pytest.mark.parametrize("name", available_providers())
def test_a_conversation_formats(file: Path, name: str) -> None:
    msgs = load_messages(file.read_bytes())
    for formatter in (load_provider(name).chat(), load_provider(name).multi_agent()):
        assert json.dumps(formatter.lower(msgs).request, allow_nan=False)
