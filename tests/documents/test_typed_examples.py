"""Values and requests of the examples with typed prompts. `test_examples` runs each example as a script."""

import base64
import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

from agentkit import MultiAgentHistory, NoAnswerError, TemplateError
from agentkit.testing import ScriptedModel
from tests.documents.test_examples import load_example

pytestmark = pytest.mark.anyio


def get_turns(request: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Returns the role and the text of each message of a request of OpenAI Chat Completions."""
    return [(turn["role"], get_text(turn["content"])) for turn in request["messages"]]


def get_text(content: str | list[dict[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


async def test_the_extraction_returns_the_bars_of_the_drawn_chart() -> None:
    extraction = load_example("typed_extraction")
    too_high = extraction.REPLY.replace("80", "101")
    model = ScriptedModel([too_high, extraction.REPLY])
    chart = await extraction.read_chart(model, extraction.draw_chart())
    assert [(bar.color, bar.height) for bar in chart.bars] == [("red", 30), ("green", 80), ("blue", 55)]

    first, second = model.requests
    (image,) = [part for part in first["messages"][1]["content"] if part["type"] == "image_url"]
    media_type, _, data = image["image_url"]["url"].partition(",")
    assert media_type == "data:image/png;base64"
    pixels = Image.open(BytesIO(base64.b64decode(data))).convert("RGB")
    for x, (color, height) in zip((40, 100, 160), extraction.BARS, strict=True):
        column = [pixels.getpixel((x, y)) for y in range(pixels.height)]
        assert column == [extraction.WHITE] * (100 - height) + [color] * height
    assert "answer.bars[1].height" in get_turns(second)[-1][1]
    schema = first["response_format"]["json_schema"]["schema"]
    assert schema["$defs"]["Bar"]["properties"]["color"]["enum"] == ["red", "green", "blue"]


async def test_the_classifier_sends_examples_in_the_language_of_the_message() -> None:
    classifier = load_example("typed_classifier")
    model = ScriptedModel(classifier.REPLIES)
    topics = [await classifier.classify(model, text, language) for language, text in classifier.MESSAGES]
    assert topics == ["roads", "waste", "library", "other"]
    assert classifier.FindTopic.choices() == ("roads", "waste", "library", "other")

    examples = [
        [text.split("\n")[1] for role, text in get_turns(request)[1:-1] if role == "user"]
        for request in model.requests
    ]
    texts = [example.inputs["message"] for example in classifier.EXAMPLES]
    assert examples == [texts[:3], texts[:2], texts[3:], texts[3:]]


async def test_the_classifier_refuses_an_unknown_topic_twice() -> None:
    classifier = load_example("typed_classifier")
    model = ScriptedModel(["[[ ## answer ## ]]\nbridges"] * 2)
    with pytest.raises(NoAnswerError) as caught:
        await classifier.classify(model, "The bridge is closed.", "en")
    assert [attempt.error.place for attempt in caught.value.attempts] == ["answer", "answer"]


async def test_the_query_has_two_modes_and_sends_feedback_on_a_short_window() -> None:
    query = load_example("typed_query")
    model = ScriptedModel(query.REPLIES)
    request = query.FindWindow(harbor="Brest", draft=2.0)
    brief, reasoned = [await query.find_window(model, request, mode) for mode in ("brief", "reasoned")]
    assert brief.value == reasoned.value == query.Window(start=8, end=12)
    assert (len(brief.attempts), len(reasoned.attempts)) == (1, 2)

    first, second, third = model.requests
    assert first["response_format"]["json_schema"]["name"] == "Window"
    assert "response_format" not in second
    assert ["code block" in get_turns(sent)[0][1] for sent in model.requests] == [False, True, True]
    assert get_turns(first)[1] == get_turns(second)[1]
    assert get_turns(first)[1][1].splitlines()[:4] == [
        "Harbor: Brest",
        "Draft of the boat: 2.0 m",
        "Depth of the water:",
        "- 6:00: 2.2 m",
    ]
    assert get_turns(third) == [
        *get_turns(second),
        ("assistant", query.REPLIES[1]),
        (
            "user",
            "This window is not possible: the window has 2 hours, and 3 hours are necessary.\n"
            "Please find another window.",
        ),
    ]


async def test_the_query_refuses_a_harbor_without_tides() -> None:
    query = load_example("typed_query")
    model = ScriptedModel(query.REPLIES)
    with pytest.raises(TemplateError, match=r"FindWindow\.instance\.jinja, line 2: there are no tides for Oslo"):
        await query.find_window(model, query.FindWindow(harbor="Oslo", draft=2.0), "brief")
    assert model.calls == []


async def test_the_judges_read_the_verdicts_of_the_others_and_the_majority_decides() -> None:
    judges = load_example("typed_judges")
    models = {name: judges.create_model(name, None) for name in judges.JUDGES}
    verdicts = await judges.judge_answer(models)
    assert {name: (item.verdict, item.score) for name, item in verdicts.items()} == {
        "Ada": ("reject", 1),
        "Ben": ("revise", 6),
        "Cleo": ("reject", 3),
    }
    assert judges.find_majority(verdicts) == "reject"

    first, second = [get_turns(request) for request in models["Ben"].requests]
    assert [role for role, _ in first] == ["system", "user"]
    assert "\nAda: [[ ## answer ## ]]" in first[1][1]
    assert "Cleo" not in first[1][1]
    assert [role for role, _ in second] == ["system", "user", "assistant", "user"]
    assert json.loads(second[2][1].split("\n")[1])["verdict"] == "accept"
    assert "\nCleo: " in second[3][1]
    assert "\nAda: " in second[3][1]
    assert judges.JUDGES["Ben"] in second[3][1]


async def test_judges_without_a_majority_ask_for_a_revision() -> None:
    judges = load_example("typed_judges")
    words = {"Ada": "accept", "Ben": "reject", "Cleo": "revise"}
    models = {
        name: ScriptedModel(
            [f'[[ ## answer ## ]]\n{{"verdict": "{word}", "score": 5, "reason": "Because."}}'],
            history=MultiAgentHistory(viewer=name),
        )
        for name, word in words.items()
    }
    verdicts = await judges.judge_answer(models, rounds=1)
    assert {name: item.verdict for name, item in verdicts.items()} == words
    assert judges.find_majority(verdicts) == "revise"
