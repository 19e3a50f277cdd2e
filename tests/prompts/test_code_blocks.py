"""Tests of finding code blocks in texts."""

from __future__ import annotations

import pytest

from agentkit.prompts.code_blocks import find_last_code_block, unfence
from tests.cases import each_case


@each_case(
    ("text", "code"),
    [
        ("```\na\n```", "a"),
        ("```py\na\n\n```\n", "a\n"),
        ("x\n```py\na\n```\ny\n```sql\nb\n```\nz", "b"),
        ("Answer: ```\n42\n```", "42"),
        ("a stray ```\n\n```py\na\n```", "a"),
        ("```py\na\n```\nand\n```py\nb", "b"),
        ("```py\nb", "b"),
        ("```\nb", "b"),
        ("```\n```", ""),
        ("  ```py\n  a\n  ```", "  a\n  "),
        ("````\na\n````", "a"),
        ("```py\r\na\r\nb\r\n```", "a\nb"),
        ("```a```", None),
        ("no fence", None),
        ("", None),
        ("```", None),
    ],
)
def test_the_last_fence_has_this_content(text: str, code: str | None) -> None:
    assert find_last_code_block(text) == code


@each_case(
    ("text", "content"),
    [
        ("```json\n[1]\n```", "[1]"),
        ("\n```\n3\n```\n", "3"),
        ("x ```\n3\n```", "x ```\n3\n```"),
        ("```\n1\n```\n```\n2\n```", "```\n1\n```\n```\n2\n```"),
        ("3", "3"),
    ],
)
def test_only_a_fence_around_the_complete_text_is_removed(text: str, content: str) -> None:
    assert unfence(text) == content


@pytest.mark.parametrize("unit", ["`", "```", "```\n", "``` a ", "```py\na\n```\n"])
def test_a_long_text_of_backticks_is_read_in_linear_time(unit: str) -> None:
    text = unit * (200_000 // len(unit)) + "x`"
    find_last_code_block(text)
    assert unfence(text) == text
