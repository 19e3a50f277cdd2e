"""The estimate without a tokenizer, beside the counts of the real encodings."""

from __future__ import annotations

import pytest

from agentkit import CharacterTokenCounter, Msg
from agentkit.provider_kit import WireLayout
from agentkit.tokens.encodings import load_encoding
from agentkit.tokens.estimate import estimate_text
from tests.tokens.corpus import CORPUS, OTHERS

LIMITS = {"prose": 0.10, "json": 0.10, "code": 0.10, "chinese": 0.25, "mixed": 0.25}


def ratio(text: str, encoding: str = "o200k_base") -> float:
    return estimate_text(text) / 100 / load_encoding(encoding)(text)


@pytest.mark.parametrize(
    ("kind", "at"), [(kind, at) for kind, texts in CORPUS.items() for at in range(len(texts))]
)
def test_each_text_is_estimated_within_what_is_promised(kind: str, at: int) -> None:
    assert abs(ratio(CORPUS[kind][at]) - 1) <= LIMITS[kind]


@pytest.mark.parametrize("kind", CORPUS)
def test_a_kind_as_a_whole_is_estimated_no_lower_than_three_per_cent_below(kind: str) -> None:
    assert ratio("\n".join(CORPUS[kind])) >= 0.97


@pytest.mark.parametrize("kind", CORPUS)
def test_what_is_promised_holds_for_the_older_encoding_too(kind: str) -> None:
    assert abs(ratio("\n".join(CORPUS[kind]), "cl100k_base") - 1) <= LIMITS[kind]


@pytest.mark.parametrize("kind", OTHERS)
def test_other_scripts_and_kinds_are_never_far_below(kind: str) -> None:
    assert 0.80 <= ratio(OTHERS[kind]) <= 1.60


@pytest.mark.parametrize("character", [*"a A0.,\n_é漢あ한яعक😀", "\ufeff", "\U0010ffff"])
def test_more_of_a_character_never_counts_less(character: str) -> None:
    counts = [estimate_text(character * length) for length in range(200)]
    assert counts == sorted(counts)
    assert counts[-1] > counts[0] == 0


def test_a_half_of_a_pair_of_surrogates_is_counted_too() -> None:
    assert estimate_text("broken \ud800 text") > estimate_text("broken  text")


def test_a_message_weighs_what_it_adds_to_a_request() -> None:
    counter = CharacterTokenCounter()
    for text in (text for texts in CORPUS.values() for text in texts):
        request = {"messages": [{"role": "user", "name": "Bob", "content": text}]}
        measured = counter.measure(request, WireLayout())
        assert measured <= counter.weigh(Msg("Bob", text, "user")) <= 1.2 * measured
