"""The examples and the commands of the README run, and its first screen stays short."""

import json
import re
import sys

import pytest

from agentkit.cli import main
from tests.documents.pages import README, run_page
from tests.providers import MESSAGE_PROVIDERS

TEXT = README.read_text("utf-8")


def test_examples_run_and_print_what_the_page_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    run_page(README, monkeypatch)


def test_the_readme_has_at_most_250_lines() -> None:
    assert len(TEXT.splitlines()) <= 250


def test_the_first_command_formats_for_every_provider(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = re.findall(r"^pip install .*? && (agentkit .*)$", TEXT, re.MULTILINE)
    monkeypatch.chdir(README.parent)
    monkeypatch.setattr(sys, "argv", commands[0].split())
    with pytest.raises(SystemExit) as exit_info:
        main()
    assert not exit_info.value.code
    assert set(json.loads(capsys.readouterr().out)) == set(MESSAGE_PROVIDERS)
