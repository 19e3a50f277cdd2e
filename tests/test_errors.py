"""Errors: one tree, facts as attributes, a sentence that begins with the place and ends with what to do."""

from __future__ import annotations

import copy
import pickle

import pytest

import agentkit
from agentkit import (
    AgentkitError,
    AuthError,
    BadRequestError,
    BudgetError,
    ContextLengthError,
    ConversionError,
    EmptyConversationError,
    InputError,
    LossError,
    MessageError,
    MissingExtraError,
    ModelError,
    NetworkError,
    OptionError,
    OverloadedError,
    ProviderError,
    RateLimitError,
    VersionError,
)
from agentkit import errors as room

TREE: list[tuple[type[AgentkitError], tuple[type[BaseException], ...]]] = [
    (AgentkitError, (Exception,)),
    (InputError, (AgentkitError, ValueError)),
    (MessageError, (InputError,)),
    (VersionError, (InputError,)),
    (EmptyConversationError, (InputError,)),
    (OptionError, (InputError,)),
    (LossError, (AgentkitError,)),
    (ConversionError, (AgentkitError,)),
    (BudgetError, (AgentkitError,)),
    (ProviderError, (AgentkitError,)),
    (ModelError, (AgentkitError,)),
    (ContextLengthError, (ModelError,)),
    (RateLimitError, (ModelError,)),
    (OverloadedError, (ModelError,)),
    (AuthError, (ModelError,)),
    (BadRequestError, (ModelError,)),
    (NetworkError, (ModelError,)),
    (MissingExtraError, (AgentkitError, ImportError)),
]

SPECIMENS: list[tuple[AgentkitError, str, dict[str, object]]] = [
    (
        InputError("msgs[3].content[1]", "it is wrong", "Mend it."),
        "msgs[3].content[1]: it is wrong. Mend it.",
        {"place": "msgs[3].content[1]", "reason": "it is wrong", "advice": "Mend it."},
    ),
    (MessageError("Msg.role", "no role", "Give one."), "Msg.role: no role. Give one.", {"place": "Msg.role"}),
    (
        VersionError("agentkit", 7, 1),
        "agentkit: the data has format version 7, this agentkit reads up to 1. "
        "Upgrade agentkit-middleware to read it.",
        {"place": "agentkit", "found": 7, "supported": 1},
    ),
    (
        EmptyConversationError(),
        "msgs: the conversation has no message. Pass at least one Msg.",
        {"place": "msgs"},
    ),
    (OptionError("tags", "no tag", "Use letters."), "tags: no tag. Use letters.", {"place": "tags"}),
    (
        LossError("Echo", [("msgs[0].content[1]", "Echo takes no video")]),
        "msgs[0].content[1]: Echo would lose this: Echo takes no video. "
        'Take it out, choose a target that carries it, or use on_loss="describe".',
        {
            "target": "Echo",
            "place": "msgs[0].content[1]",
            "reason": "Echo takes no video",
            "losses": (("msgs[0].content[1]", "Echo takes no video"),),
        },
    ),
    (
        LossError("Echo", [("msgs[0].content[1]", "a"), ("msgs[2].content[0]", "b")]),
        "msgs[0].content[1]: Echo would lose this: a (and 1 more). "
        'Take it out, choose a target that carries it, or use on_loss="describe".',
        {"losses": (("msgs[0].content[1]", "a"), ("msgs[2].content[0]", "b"))},
    ),
    (
        ConversionError("video", "a tool result"),
        "a tool result: the capabilities accept a block of type 'video' here, but the converter cannot write it. "
        "Change the formatter's capabilities, or override convert().",
        {"kind": "video", "place": "a tool result"},
    ),
    (
        BudgetError(100, 140, ["msgs[0]", "msgs[4]"]),
        "msgs[4]: the smallest legal request has 140 tokens, the budget leaves 100. "
        "Raise max_tokens, lower reserve, or shorten or unpin a message that must stay.",
        {"limit": 100, "needed": 140, "kept": ("msgs[0]", "msgs[4]"), "place": "msgs[4]"},
    ),
    (
        ProviderError("nimbus", "it is not installed", ["gemini", "openai"]),
        "provider 'nimbus': it is not installed. Choose one of: gemini, openai.",
        {"name": "nimbus", "available": ("gemini", "openai"), "place": "provider"},
    ),
    (
        ProviderError("nimbus", "it is not installed", []),
        "provider 'nimbus': it is not installed. Choose one of: none.",
        {"available": ()},
    ),
    (
        RateLimitError("openai", "slow down", status=429, code="rate_limit_exceeded", retry_after=3.5),
        "openai (429 rate_limit_exceeded): slow down. Wait as long as it says, and try again.",
        {"status": 429, "retry_after": 3.5, "retryable": True, "place": ""},
    ),
    (
        BadRequestError("gemini", "no such part", status=400, place="msgs[2].content[0]"),
        "msgs[2].content[0]: gemini (400): no such part. Look at `plan.request`, and at the ledger for what "
        "became of the block.",
        {"place": "msgs[2].content[0]", "retryable": False, "provider_message": "no such part"},
    ),
    (
        MissingExtraError("openai", "openai", "Calling OpenAI"),
        "Calling OpenAI needs the package 'openai'. Install it with: pip install 'agentkit-middleware[openai]'",
        {"package": "openai", "extra": "openai", "place": "environment"},
    ),
]
SPECIMEN = pytest.mark.parametrize(
    ("error", "sentence", "facts"), SPECIMENS, ids=lambda found: type(found).__name__
)


@pytest.mark.parametrize(("error", "parents"), TREE, ids=lambda found: getattr(found, "__name__", ""))
def test_the_tree_is_as_it_is_drawn(error: type[AgentkitError], parents: tuple[type[BaseException], ...]) -> None:
    assert error.__bases__ == parents


def test_every_class_of_the_tree_is_at_the_front_door_and_in_the_drawing() -> None:
    names = [name for name in room.__all__ if isinstance(getattr(room, name), type)]
    assert sorted(error.__name__ for error, _ in TREE) == sorted(names)
    assert set(names) <= set(agentkit.__all__)
    assert room.__doc__ is not None
    assert all(name in room.__doc__ for name in names)


@SPECIMEN
def test_an_error_owns_its_sentence(error: AgentkitError, sentence: str, facts: dict[str, object]) -> None:
    assert str(error) == sentence
    assert isinstance(error, AgentkitError)


@SPECIMEN
def test_the_facts_are_attributes(error: AgentkitError, sentence: str, facts: dict[str, object]) -> None:
    assert {name: getattr(error, name) for name in facts} == facts


@SPECIMEN
def test_every_error_names_a_place(error: AgentkitError, sentence: str, facts: dict[str, object]) -> None:
    assert isinstance(getattr(error, "place", None), str)


@SPECIMEN
def test_an_error_survives_the_way_between_processes(
    error: AgentkitError, sentence: str, facts: dict[str, object]
) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert str(again) == sentence
        assert {name: getattr(again, name) for name in facts} == facts


@pytest.mark.parametrize(
    ("inner", "outer"),
    [("text", "msgs[1].content[0].text"), ("[2]", "msgs[1].content[0][2]"), ("", "msgs[1].content[0]")],
)
def test_a_message_error_can_be_seen_from_outside(inner: str, outer: str) -> None:
    seen = MessageError(inner, "no", "Mend it.").with_prefix("msgs[1].content[0]")
    assert (seen.place, seen.reason, seen.advice) == (outer, "no", "Mend it.")
