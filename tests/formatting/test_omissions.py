"""Tests of ledger details about keys, titles, citations and speaker names that a request has no field for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agentkit import (
    Block,
    DocumentBlock,
    HistoryPolicy,
    ImageBlock,
    Msg,
    MultiAgentHistory,
    OpaqueBlock,
    OpaqueState,
    Plan,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
)
from tests.cases import each_case
from tests.conftest import call, lower, result, text_msg

BOB = text_msg("Bob", "hi")
SYSTEM = text_msg("system", "Be brief.", "system")
GUIDE = text_msg("Guide", "Be kind.", "system")
FRAMES = MultiAgentHistory(viewer="Friday")
PNG = ImageBlock.from_bytes(b"\x89PNG\r\n\x1a\n" + bytes(40), "image/png").source
URL = URLSource("https://example.com/a.pdf")
PDF = DocumentBlock.from_bytes(b"%PDF-1.7 one page", "application/pdf").source
NOTES = DocumentBlock.from_bytes(b"Milk, bread.", "text/plain").source
PHASE = {"text": frozenset({"phase"}), "image": frozenset({"phase"}), "tool_use": frozenset({"phase"})}


def state(issuer: str = "echo", **values: Any) -> OpaqueState:
    return OpaqueState(issuer, fields={"phase": "final"}, **values)


def list_details(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Returns the details of each entry without the end that is the same for all."""
    end = " omitted: the API has no field for it"
    return {
        entry.place: tuple(detail.removesuffix(end) for detail in entry.details) for entry in plan.ledger.entries
    }


def details(*blocks: Block, role: Any = "user", history: HistoryPolicy | None = None, **changes: Any) -> Any:
    """Returns the details of the only block of a message, or of all its blocks."""
    changes = {"opaque__passthrough_keys": PHASE, **changes}
    values = [*list_details(lower([Msg("Bob", blocks, role)], history, **changes)).values()]
    return values[0] if len(values) == 1 else values


# -- keys ---------------------------------------------------------------------------------------------------------


@each_case("role", ["user", "assistant"])
@each_case(
    "block",
    {
        "text": TextBlock("hi", state=state()),
        "image": ImageBlock(PNG, state=state()),
    },
)
def test_a_key_is_a_detail_unless_the_request_contains_the_key(block: Block, role: Any) -> None:
    rules: dict[str, Any] = {"role": role, "media__roles": frozenset({"user", "assistant"})}
    assert details(block, **rules) == ()
    assert details(block, **rules, opaque__passthrough_keys={}) == ("phase",)
    assert details(block, **rules, issuer="another") == ("phase",)


def test_a_key_of_a_state_with_a_signature_is_a_detail_outside_replies() -> None:
    signed = TextBlock("hi", state=state(thought_signature="c2ln"))
    assert details(signed, role="user") == ("phase",)
    assert details(signed, role="assistant") == ()
    assert details(TextBlock("hi", state=OpaqueState("echo", thought_signature="c2ln")), role="assistant") == ()


def test_keys_of_texts_in_a_frame_are_details_and_keys_of_media_are_sent() -> None:
    assert details(TextBlock("hi", state=state()), ImageBlock(PNG, state=state()), history=FRAMES) == [
        ("phase",),
        (),
    ]


@pytest.mark.parametrize("issuer", ["echo", "another"])
def test_keys_of_calls_in_a_frame_and_of_documents_that_are_sent_as_text_are_details(issuer: str) -> None:
    use = Msg("Ann", [ToolUseBlock("c", "search", {}, state=state(issuer))], "assistant")
    plan = lower([use, result("c")], FRAMES, opaque__passthrough_keys=PHASE)
    assert list_details(plan)["msgs[0].content[0]"] == ("phase",)
    passthrough = {"document": frozenset({"phase"})}
    document = DocumentBlock(NOTES, state=state(issuer))
    assert details(document, media__document=None, opaque__passthrough_keys=passthrough) == ("phase",)


def test_citations_in_the_metadata_are_a_detail_once() -> None:
    metadata: dict[str, Any] = {"citations": [{"url": "https://example.com"}]}
    assert details(TextBlock("hi", metadata=metadata)) == ("citations",)
    cited = OpaqueState("echo", fields={"citations": [1]})
    assert details(TextBlock("hi", state=cited, metadata=metadata)) == ("citations",)
    passthrough = {"text": frozenset({"citations"})}
    assert details(TextBlock("hi", state=cited, metadata=metadata), opaque__passthrough_keys=passthrough) == ()
    assert details(TextBlock("hi", metadata={"citations": []})) == ()


# -- titles -------------------------------------------------------------------------------------------------------


@each_case(
    "source",
    {
        "URL": URL,
        "data": PDF,
    },
)
@each_case("key", ["title", "title of a URL"])
def test_a_title_is_a_detail_if_the_api_has_no_field_for_titles_of_such_sources(source: Any, key: str) -> None:
    document = DocumentBlock(source, title="A bill")
    has_field = (key == "title") == (source is PDF)
    assert details(document, opaque__passthrough_keys={"document": frozenset({key})}) == (
        () if has_field else ("title",)
    )


def test_the_title_of_a_document_that_is_sent_as_text_is_a_detail() -> None:
    passthrough = {"document": frozenset({"title"})}
    changes: dict[str, Any] = {"opaque__passthrough_keys": passthrough}
    document = DocumentBlock(NOTES, title="A list")
    assert details(document, **changes) == ()
    assert details(document, **changes, media__document=None) == ("title",)
    foreign = DocumentBlock(PDF, title="A list", state=OpaqueState("another", fields={}))
    assert details(foreign, **changes) == ()


def test_a_title_that_another_key_states_is_no_detail() -> None:
    document = DocumentBlock(PDF, title="final", state=state())
    assert details(document, opaque__passthrough_keys={"document": frozenset({"phase"})}) == ()


@pytest.mark.parametrize("on_loss", ["describe", "drop"])
def test_a_block_that_the_request_does_not_contain_has_no_details(on_loss: str) -> None:
    document = DocumentBlock(URL, title="A bill")
    plan = lower(
        [Msg("Bob", [document], "user")], on_loss=on_loss, media__document=None, turns__speaker_names=False
    )
    assert list_details(plan) == {"msgs[0].content[0]": ()}


# -- speaker names ------------------------------------------------------------------------------------------------


def name_details(
    msgs: Sequence[Msg], history: HistoryPolicy | None = None, **changes: Any
) -> list[tuple[str, ...]]:
    return [*list_details(lower(msgs, history, turns__speaker_names=False, **changes)).values()]


BOB_NAME = ("speaker name 'Bob'",)
FRIDAY_NAME = ("speaker name 'Friday'",)


def test_a_name_is_a_detail_unless_it_is_the_role_or_empty() -> None:
    assert name_details([BOB, text_msg("user", "hi")])[1] == ()
    assert name_details([BOB, BOB]) == [BOB_NAME, BOB_NAME]
    assert name_details([text_msg("", "hi")]) == [()]
    assert name_details([text_msg("user", "hi")]) == [()]


def test_the_name_of_the_viewer_is_a_detail_only_outside_replies() -> None:
    late = text_msg("Friday", "It is noon.", "system")
    own = text_msg("Friday", "yes", "assistant")
    assert name_details([BOB, late, own], FRAMES, turns__late_system="native") == [(), FRIDAY_NAME, ()]
    assert name_details([BOB, own]) == [BOB_NAME, FRIDAY_NAME]


def note_text(text: str, role: str) -> tuple[str, ...]:
    return (f"{role} wrote {text}",)


def test_results_and_their_media_have_no_detail_about_a_name_or_a_text() -> None:
    output = (TextBlock("here", state=state("another")), ImageBlock(PNG))
    msgs = [
        Msg("user", [TextBlock("look")], "user"),
        Msg("assistant", [ToolUseBlock("c", "look", {})], "assistant"),
        Msg("Zed", [ToolResultBlock("c", "look", output)], "system"),
    ]
    notes: dict[str, Any] = {"turns__text_notes": note_text}
    plan = lower(msgs, turns__speaker_names=False, media__result_kinds=frozenset(), **notes)
    assert list_details(plan) == {
        "msgs[0].content[0]": ("user wrote look",),
        "msgs[1].content[0]": (),
        "msgs[2].content[0]": (),
        "msgs[2].content[0].output[0]": ("phase",),
        "msgs[2].content[0].output[1]": (),
    }
    framed = lower(msgs[:1], FRAMES, turns__speaker_names=False, **notes)
    assert list_details(framed) == {"msgs[0].content[0]": ()}


# -- several speakers ---------------------------------------------------------------------------------------------


class Narrated(HistoryPolicy):
    """Policy that adds a message of another user."""

    def view(self, msgs: Sequence[Msg]) -> Sequence[Msg]:
        return [text_msg("Narrator", "Before."), *msgs]


def find_pair(data: Any) -> Any:
    return next(iter(data.items()))


def test_messages_that_no_speaker_wrote_are_not_a_second_speaker() -> None:
    assert lower([BOB], Narrated(), turns__speaker_names=False).ledger.losses == []
    assert len(lower([BOB, text_msg("Al", "ho")], Narrated(), turns__speaker_names=False).ledger.losses) == 2
    picture = Msg("Bob", [ImageBlock(PNG)], "user")
    request = Msg("Ann", [OpaqueBlock("echo", {"request": "1"}), *call("c").blocks], "assistant")
    response = Msg("Zed", [OpaqueBlock("echo", {"response": "1"})], "user")
    plan = lower(
        [picture, request, result("c"), response],
        MultiAgentHistory(),
        turns__speaker_names=False,
        wire="echo",
        opaque__pair_key=find_pair,
    )
    assert plan.ledger.losses == []
    assert len(plan.request["messages"]) == 4


def test_the_viewer_is_a_second_speaker_only_of_replies() -> None:
    changes: dict[str, Any] = {"turns__speaker_names": False, "turns__late_system": "native"}
    assert lower([SYSTEM, BOB, GUIDE], FRAMES, **changes).ledger.losses == []
    other = MultiAgentHistory(viewer="Friday", other_agents_tools="native")
    assert [
        place
        for place, _ in lower(
            [SYSTEM, BOB, GUIDE, call("c", name="Ann"), result("c")], other, **changes
        ).ledger.losses
    ] == ["msgs[3].content[0]"]
