"""The examples of the guides run; the links and the terms of all documents are right."""

import re
import sys
from pathlib import Path

import pytest

from agentkit import load_provider
from tests.cases import each_case
from tests.documents.pages import GUIDES, README, ROOT, read_examples, run_page, write_distribution

PAGES = [README, *GUIDES]
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
AVOIDED = re.compile(r"\b(behind|nobody|anybody|anew|mend)\b", re.IGNORECASE)


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_examples_run_and_print_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = set(sys.modules)
    if write_distribution(page.read_text("utf-8"), tmp_path):
        monkeypatch.syspath_prepend(str(tmp_path))  # pyright: ignore[reportUnknownMemberType]
    load_provider.cache_clear()
    try:
        run_page(page, monkeypatch)
    finally:
        load_provider.cache_clear()
        for name in {*sys.modules} - loaded:
            if name.startswith("agentkit_murmur"):
                del sys.modules[name]


@each_case("page", PAGES)
def test_links_lead_to_files_of_the_project(page: Path) -> None:
    links = [link for link in LINK.findall(page.read_text("utf-8")) if "://" not in link]
    assert [link for link in links if not (page.parent / link).exists()] == []


@each_case("page", PAGES)
def test_prose_avoids_the_words_that_the_project_does_not_use(page: Path) -> None:
    assert AVOIDED.findall(FENCED.sub("", page.read_text("utf-8"))) == []


def test_the_readme_links_to_every_guide() -> None:
    links = {(ROOT / link).resolve() for link in LINK.findall(README.read_text("utf-8"))}
    assert set(GUIDES) <= links


@pytest.mark.parametrize("text", ["a\n\n```python\nx = 1\n```\n\n```text\none\n```\n"])
def test_an_example_has_its_line_and_its_output(text: str) -> None:
    (example,) = read_examples(text)
    assert (example.line, example.code, example.output) == (3, "x = 1\n", "one\n")
