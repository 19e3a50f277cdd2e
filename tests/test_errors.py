"""Errors: the tree, the attributes, and texts that start with the place and end with advice."""

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
    NoAnswerError,
    OptionError,
    OverloadedError,
    ParseError,
    ProviderError,
    RateLimitError,
    TemplateError,
    TemplateNotFoundError,
    VersionError,
)
from agentkit import errors as module
from tests.cases import each_case

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
    (ParseError, (AgentkitError,)),
    (NoAnswerError, (AgentkitError,)),
    (TemplateError, (AgentkitError,)),
    (TemplateNotFoundError, (AgentkitError,)),
    (MissingExtraError, (AgentkitError, ImportError)),
]

EXAMPLES: list[tuple[AgentkitError, str, dict[str, object]]] = [
    (
        InputError("msgs[3].content[1]", "it is wrong", "Fix it."),
        "msgs[3].content[1]: it is wrong. Fix it.",
        {"place": "msgs[3].content[1]", "reason": "it is wrong", "advice": "Fix it."},
    ),
    (MessageError("Msg.role", "no role", "Pass one."), "Msg.role: no role. Pass one.", {"place": "Msg.role"}),
    (
        VersionError("agentkit", 7, 1),
        "agentkit: expected a format version of at most 1, got 7. Upgrade agentkit-middleware.",
        {"place": "agentkit", "version": 7, "supported": 1},
    ),
    (
        EmptyConversationError(),
        "msgs: the conversation has no messages. Pass at least one Msg.",
        {"place": "msgs"},
    ),
    (OptionError("tags", "no tag", "Use letters."), "tags: no tag. Use letters.", {"place": "tags"}),
    (
        LossError("Echo", [("msgs[0].content[1]", "Echo does not accept videos")]),
        "msgs[0].content[1]: Echo cannot represent this content: Echo does not accept videos. "
        'Remove the content, use another target, or pass on_loss="describe".',
        {
            "target": "Echo",
            "place": "msgs[0].content[1]",
            "reason": "Echo does not accept videos",
            "losses": (("msgs[0].content[1]", "Echo does not accept videos"),),
        },
    ),
    (
        LossError("Echo", [("msgs[0].content[1]", "a"), ("msgs[2].content[0]", "b")]),
        "msgs[0].content[1]: Echo cannot represent this content: a (and 1 more). "
        'Remove the content, use another target, or pass on_loss="describe".',
        {"losses": (("msgs[0].content[1]", "a"), ("msgs[2].content[0]", "b"))},
    ),
    (
        ConversionError("video", "a tool result"),
        "a tool result: the capabilities accept a block of type 'video' here, but the converter cannot write "
        "the block. Change the capabilities of the formatter, or override convert().",
        {"block_type": "video", "place": "a tool result"},
    ),
    (
        BudgetError(100, 140, ["msgs[0]", "msgs[4]"]),
        "msgs[4]: the smallest legal request has 140 tokens, but the budget has only 100 for the prompt. "
        "Raise max_tokens, lower reserve, or shorten or unpin a message that cannot be dropped.",
        {"limit": 100, "needed": 140, "required": ("msgs[0]", "msgs[4]"), "place": "msgs[4]"},
    ),
    (
        ProviderError("nimbus", "it is not installed", ["gemini", "openai"]),
        "provider 'nimbus': it is not installed. Use one of: gemini, openai.",
        {"name": "nimbus", "available": ("gemini", "openai"), "place": "provider"},
    ),
    (
        ProviderError("nimbus", "it is not installed", []),
        "provider 'nimbus': it is not installed. Install a package with a provider.",
        {"available": ()},
    ),
    (
        RateLimitError("openai", "slow down", status=429, code="rate_limit_exceeded", retry_after=3.5),
        "openai (429 rate_limit_exceeded): slow down. "
        "Wait before the next call, or raise the limit of the account.",
        {"status": 429, "retry_after": 3.5, "retryable": True, "place": ""},
    ),
    (
        BadRequestError("gemini", "no such part", status=400, place="msgs[2].content[0]"),
        "msgs[2].content[0] (probable place): gemini (400): no such part. Check `plan.request`, and the entry of "
        "the refused block in `plan.ledger`.",
        {"place": "msgs[2].content[0]", "retryable": False, "provider_message": "no such part"},
    ),
    (
        MissingExtraError("openai", "openai", "Calling OpenAI"),
        "Calling OpenAI needs the package 'openai'. Install it with: pip install 'agentkit-middleware[openai]'",
        {"package": "openai", "extra": "openai", "place": "environment"},
    ),
    (
        ParseError("expected at most 10, got 11", place="score", text="11", partial={"verdict": "invented"}),
        "score: expected at most 10, got 11. Ask the model again, with this error as feedback.",
        {
            "description": "expected at most 10, got 11",
            "failure": "wrong_value",
            "label": "parse_error",
            "meta": None,
            "place": "score",
            "text": "11",
            "partial": {"verdict": "invented"},
            "message": None,
        },
    ),
    (
        ParseError(label="cheeky", failure="refused", meta={"try": 2}),
        "reply: cheeky. Change the request, or use another model.",
        {"label": "cheeky", "description": "", "failure": "refused", "meta": {"try": 2}, "partial": {}},
    ),
    (
        NoAnswerError([1, 2], ParseError("expected at most 10, got 11.", place="score")),
        "reply: no value after 2 attempts: score: expected at most 10, got 11. Raise `retries`, or use another "
        "model.",
        {"attempts": (1, 2), "place": "reply"},
    ),
    (
        TemplateError("Judge.system.jinja", "'score' is undefined", 3),
        "Judge.system.jinja, line 3: 'score' is undefined. Fix the template, or pass other messages or variables.",
        {"name": "Judge.system.jinja", "reason": "'score' is undefined", "place": "Judge.system.jinja, line 3"},
    ),
    (
        TemplateNotFoundError("Judge.more.jinja", ["prompts"]),
        "Judge.more.jinja: no such template in prompts. Create the file, or pass a default text.",
        {"file": "Judge.more.jinja", "folders": ("prompts",), "place": "Judge.more.jinja"},
    ),
]
EXAMPLE = pytest.mark.parametrize(("error", "text", "facts"), EXAMPLES, ids=lambda value: type(value).__name__)


@each_case(("error", "parents"), TREE)
def test_error_classes_have_the_documented_bases(
    error: type[AgentkitError], parents: tuple[type[BaseException], ...]
) -> None:
    assert error.__bases__ == parents


def test_every_error_class_is_exported_and_in_the_documented_tree() -> None:
    names = [name for name in module.__all__ if isinstance(getattr(module, name), type)]
    assert sorted(error.__name__ for error, _ in TREE) == sorted(names)
    assert set(names) <= set(dir(agentkit))
    assert module.__doc__ is not None
    assert all(name in module.__doc__ for name in names)


@EXAMPLE
def test_an_error_builds_its_text(error: AgentkitError, text: str, facts: dict[str, object]) -> None:
    assert str(error) == text
    assert isinstance(error, AgentkitError)


@EXAMPLE
def test_the_facts_are_attributes(error: AgentkitError, text: str, facts: dict[str, object]) -> None:
    assert {name: getattr(error, name) for name in facts} == facts


@EXAMPLE
def test_every_error_names_a_place(error: AgentkitError, text: str, facts: dict[str, object]) -> None:
    assert isinstance(getattr(error, "place", None), str)


@EXAMPLE
def test_an_error_can_be_pickled_and_copied(error: AgentkitError, text: str, facts: dict[str, object]) -> None:
    for restored in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(restored) is type(error)
        assert str(restored) == text
        assert {name: getattr(restored, name) for name in facts} == facts


@each_case(
    ("inner", "outer"),
    [("text", "msgs[1].content[0].text"), ("[2]", "msgs[1].content[0][2]"), ("", "msgs[1].content[0]")],
)
def test_a_message_error_gets_an_outer_place(inner: str, outer: str) -> None:
    error = MessageError(inner, "no", "Fix it.").with_prefix("msgs[1].content[0]")
    assert (error.place, error.reason, error.advice) == (outer, "no", "Fix it.")
