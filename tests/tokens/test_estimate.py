"""The estimate without a tokenizer, compared with the counts of encodings."""

from __future__ import annotations

import pytest

from agentkit import CharacterTokenCounter, Msg
from agentkit.provider_kit import WireLayout
from agentkit.tokens.encodings import load_encoding
from agentkit.tokens.estimate import estimate_text
from tests.cases import each_case
from tests.tokens.corpus import CORPUS, OTHERS

LIMITS = {"prose": 0.10, "json": 0.10, "code": 0.10, "chinese": 0.25, "mixed": 0.25}


def ratio(text: str, encoding: str = "o200k_base") -> float:
    return estimate_text(text) / 100 / load_encoding(encoding)(text)


@pytest.mark.parametrize(
    ("kind", "index"), [(kind, index) for kind, texts in CORPUS.items() for index in range(len(texts))]
)
def test_the_estimate_of_each_text_is_within_its_limit(kind: str, index: int) -> None:
    assert abs(ratio(CORPUS[kind][index]) - 1) <= LIMITS[kind]


@each_case("kind", [*CORPUS])
def test_the_estimate_of_all_texts_of_a_kind_is_at_most_three_per_cent_too_low(kind: str) -> None:
    assert ratio("\n".join(CORPUS[kind])) >= 0.97


@pytest.mark.parametrize("kind", CORPUS)
def test_the_limits_apply_to_the_older_encoding(kind: str) -> None:
    assert abs(ratio("\n".join(CORPUS[kind]), "cl100k_base") - 1) <= LIMITS[kind]


@each_case("kind", [*OTHERS])
def test_the_estimate_of_other_scripts_is_never_far_too_low(kind: str) -> None:
    assert 0.80 <= ratio(OTHERS[kind]) <= 1.60


@each_case("character", [*"a A0.,\n_é漢あ한яعक😀", "\ufeff", "\U0010ffff"])
def test_more_characters_never_count_less(character: str) -> None:
    counts = [estimate_text(character * length) for length in range(200)]
    assert counts == sorted(counts)
    assert counts[-1] > counts[0] == 0


def test_a_lone_surrogate_is_counted() -> None:
    assert estimate_text("broken \ud800 text") > estimate_text("broken  text")


def test_the_weight_of_a_message_is_close_to_its_tokens_in_a_request() -> None:
    counter = CharacterTokenCounter()
    for text in (text for texts in CORPUS.values() for text in texts):
        request = {"messages": [{"role": "user", "name": "Bob", "content": text}]}
        measured = counter.measure(request, WireLayout())
        assert measured <= counter.weigh(Msg("Bob", text, "user")) <= 1.2 * measured
