"""`Capabilities`: rules for media and names, changes of single fields, and facts about models."""

from __future__ import annotations

import dataclasses
import inspect
import os
import re
import subprocess
import sys
from typing import Any

import pytest

from agentkit.capabilities.model_facts import apply_facts
from agentkit.provider_kit import (
    Capabilities,
    MediaCapabilities,
    MediaRule,
    ModelFact,
    NameRule,
    OptionError,
    media_types,
)
from tests.cases import each_case
from tests.conftest import ANY, ECHO, EchoFormatter, target, text_msg


def test_media_types_are_created_from_a_family_and_names() -> None:
    assert media_types("image", "png jpeg") == {"image/png", "image/jpeg"}


@each_case(
    ("rule", "media_type", "taken"),
    [
        (MediaRule(), "image/png", True),
        (MediaRule(types=frozenset({"image/png"})), "image/png", True),
        (MediaRule(types=frozenset({"image/png"})), "image/bmp", False),
        (MediaRule(embed=False), "image/png", False),
        (MediaRule(), "audio/wav", False),
    ],
)
def test_a_media_rule_accepts_data(rule: MediaRule, media_type: str, taken: bool) -> None:
    assert rule.takes("image", media_type) is taken


@each_case(
    ("rule", "media_type", "fetched"),
    [
        (MediaRule(), "image/png", True),
        (MediaRule(types=frozenset({"image/png"})), "image/bmp", False),
        (MediaRule(types=frozenset({"image/png"})), None, True),
        (MediaRule(types=frozenset({"image/a"}), url_types=frozenset({"image/b"})), "image/b", True),
        (MediaRule(types=frozenset({"image/a"}), url_types=frozenset({"image/b"})), "image/a", False),
    ],
)
def test_a_media_rule_accepts_urls(rule: MediaRule, media_type: str | None, fetched: bool) -> None:
    assert rule.fetches("image", media_type) is fetched


NAMES = [
    "search",
    "a b",
    "a/b",
    "ü",
    "x" * 200,
    "",
    "漢字",
    "a_b",
    "a-b",
    "call_1",
    "  ",
    "a\nb",
    "1a",
    "A b",
    "a_b_",
]


@each_case("name", NAMES)
@each_case(
    "rule",
    {
        "plain": NameRule(),
        "prefixed": NameRule(limit=40, prefix="call_"),
        "nine": NameRule(pattern=r"[A-Za-z0-9]{9}", limit=9),
        "letter first": NameRule(pattern="[A-Za-z_][A-Za-z0-9_-]*", prefix="t_"),
    },
)
def test_a_changed_name_is_legal(rule: NameRule, name: str) -> None:
    fitted = rule.fit(name)
    assert re.fullmatch(rule.pattern, fitted, re.ASCII)
    assert len(fitted) <= rule.limit
    assert rule.fit(fitted) == fitted
    if re.fullmatch(rule.pattern, name, re.ASCII) and len(name) <= rule.limit:
        assert fitted == name


def test_different_names_have_different_legal_names() -> None:
    rule = NameRule()
    assert len({rule.fit(name) for name in NAMES}) == len(NAMES)
    assert len({NameRule(limit=9, pattern="[A-Za-z0-9]{9}").fit(name) for name in NAMES}) == len(NAMES)


def test_a_reserved_name_is_changed() -> None:
    rule = NameRule(reserved=frozenset({"json"}))
    assert rule.fit("json") != "json"
    assert rule.fit("jsonl") == "jsonl"


def test_a_changed_name_is_the_same_in_every_process() -> None:
    script = "from agentkit.provider_kit import NameRule; print(NameRule().fit('a b/ü'))"
    seed = "0" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONHASHSEED": seed},
    )
    assert done.stdout.strip() == NameRule().fit("a b/ü")


def test_capabilities_are_frozen_and_compare_by_identity() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        ECHO.name = "other"  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        ECHO.media.image = None  # type: ignore[misc]
    assert dataclasses.replace(ECHO) != ECHO
    assert hash(ECHO) != hash(dataclasses.replace(ECHO))


@each_case("value", [ECHO, ECHO.turns, ECHO.tools, ECHO.media, ECHO.thinking, ECHO.opaque])
def test_the_docstring_lists_each_field(value: Any) -> None:
    doc = inspect.getdoc(value.__class__) or ""
    for field in dataclasses.fields(value):
        assert f"\n    {field.name}: " in doc, field.name


def test_override_changes_single_fields_of_groups() -> None:
    changed = ECHO.override({"name": "Other", "media.image": None, "media.total": 5, "turns.merge": True})
    assert (changed.name, changed.media.image, changed.media.total) == ("Other", None, 5)
    assert (changed.media.audio, changed.tools) == (ECHO.media.audio, ECHO.tools)
    assert not changed.turns.speaker_names


def test_override_applies_fields_after_their_group() -> None:
    changed = ECHO.override({"media.image": None, "media": MediaCapabilities(total=5)})
    assert changed.media == MediaCapabilities(total=5)


@each_case(
    ("name", "advice"),
    [("media.imege", "'media.image'"), ("image", "'media.image'"), ("a.b.c", "Use")],
)
def test_an_unknown_field_is_an_error_that_names_the_field(name: str, advice: str) -> None:
    with pytest.raises(OptionError) as error:
        ECHO.override({name: None})
    assert str(error.value).startswith(f"changes.{name}: Capabilities has no field with this name")
    assert advice in str(error.value)
    with pytest.raises(OptionError, match=rf"ModelFact\.changes\.{re.escape(name)}: "):
        ModelFact("x", {name: None}, "sheet", "2026-11-20")


def test_a_group_of_another_class_is_refused() -> None:
    with pytest.raises(OptionError, match=r"capabilities\.media: expected MediaCapabilities, got MediaRule"):
        Capabilities(name="x", media=ANY)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


# -- facts -------------------------------------------------------------------------------------------

FACTS = (
    ModelFact("wise-", {"media.image": None}, "sheet 1", "2026-11-20"),
    ModelFact("wise-2", {"turns.last_user": True}, "sheet 2", "2026-11-20"),
)


@each_case(
    ("model", "image", "last_user"),
    [
        (None, True, False),
        ("other", True, False),
        ("wise-1", False, False),
        ("wise-2", False, True),
        ("WISE-2-large", False, True),
        ("vendor/wise-2", False, True),
        ("likewise-2", True, False),
    ],
)
def test_every_matching_row_changes_the_capabilities(model: str | None, image: bool, last_user: bool) -> None:
    form = apply_facts(ECHO, model, FACTS)
    assert (form.media.image is not None, form.turns.last_user) == (image, last_user)


def test_an_unknown_model_has_the_capabilities_of_its_provider() -> None:
    assert apply_facts(ECHO, "other", FACTS) is ECHO


@each_case(
    ("own", "per_call", "expected"),
    [(None, None, False), ("wise-2", None, True), ("wise-2", "other", False), ("other", "wise-2", True)],
)
def test_the_model_of_the_call_overrides_the_model_of_the_formatter(
    own: str | None, per_call: str | None, expected: bool
) -> None:
    formatter = target(*FACTS)(own)
    plan = formatter.lower([text_msg("Friday", "done", "assistant")], model=per_call)
    assert (len(plan.request["messages"]) == 2) is expected
    assert formatter.capabilities(per_call).turns.last_user is expected


def test_capabilities_are_computed_once_per_model() -> None:
    formatter: type[EchoFormatter] = target(*FACTS)
    first: Any = formatter("wise-2").capabilities()
    assert formatter("wise-2").capabilities() is first
    assert formatter().capabilities("wise-2") is first
