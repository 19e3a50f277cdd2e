"""Tests of the escapes of texts and section markers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agentkit.prompts.value_escapes import escape_markers, escape_text, unescape_markers, unescape_text
from tests.cases import each_case
from tests.profiles import examples

MARKER = "[[ ## why ## ]]"


def _is_none(text: str) -> bool:
    return text == "None"


@each_case(
    ("text", "escaped"),
    [
        ("", ""),
        ("text", "text"),
        ('say "hi"', 'say "hi"'),
        ("a\\b", "a\\b"),
        ("\\", "\\"),
        ("\\begin", "\\begin"),
        (" a", "\\ a"),
        ("a\n", "a\n\\"),
        (" ", "\\ \\"),
        ("\\ a", "\\\\ a"),
        ("a \\", "a \\\\"),
        ("None", "\\None"),
        ("\\None", "\\\\None"),
        (" None", "\\ None"),
        ("none", "none"),
        ("None.", "None."),
    ],
)
def test_a_text_has_exactly_this_escape(text: str, escaped: str) -> None:
    assert escape_text(text, _is_none) == escaped
    assert unescape_text(escaped, _is_none) == text


@each_case(
    ("text", "escaped"),
    [
        ("a", "a"),
        ("[[ boats ]]", "[[ boats ]]"),
        ("see [[ ## why ## ]]", "see [[ ## why ## ]]"),
        ("[[ ## two words ## ]]", "[[ ## two words ## ]]"),
        (MARKER, f"\\{MARKER}"),
        (f"\\{MARKER}", f"\\\\{MARKER}"),
        (f"ok\n  {MARKER} x", f"ok\n  \\{MARKER} x"),
        (f"ok\r{MARKER}", f"ok\r\\{MARKER}"),
        (f"ok\u2028{MARKER}", f"ok\u2028\\{MARKER}"),
        (f"{MARKER}{MARKER}", f"\\{MARKER}{MARKER}"),
        (f"\\ {MARKER}", f"\\ {MARKER}"),
    ],
)
def test_a_marker_at_the_start_of_a_line_gets_one_backslash(text: str, escaped: str) -> None:
    assert escape_markers(text) == escaped
    assert unescape_markers(escaped) == text


PIECES = st.lists(
    st.sampled_from([" ", "\n", "\r", "\t", "\u2028", "\\", "None", "[[ ## a ## ]]", "[[ ##", "x", '"', "\xa0"]),
    max_size=8,
).map("".join)


@given(PIECES | st.text())
@examples(500)
def test_every_text_is_restored_and_keeps_no_outer_white_space(text: str) -> None:
    escaped = escape_text(text, _is_none)
    assert escaped == escaped.strip()
    assert escaped != "None"
    assert unescape_text(escaped, _is_none) == text


@given(PIECES | st.text())
@examples(500)
def test_every_text_with_markers_is_restored_and_no_line_begins_with_a_marker(text: str) -> None:
    escaped = escape_markers(text)
    assert not any(line.strip().startswith("[[ ## a ## ]]") for line in escaped.splitlines())
    assert unescape_markers(escaped) == text


@given(PIECES | st.text())
@examples(500)
def test_both_escapes_together_are_restored(text: str) -> None:
    section = escape_markers(escape_text(text, _is_none))
    assert section == section.strip()
    assert unescape_text(unescape_markers(section), _is_none) == text
