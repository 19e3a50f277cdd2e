"""OpenAI Responses: output items are sent back with their ids in pairs, or without ids.

A recorded request had reasoning with its id before an item without an id. OpenAI returned status 400: "Item 'rs_…'
of type 'reasoning' was provided without its required following item". In all 47 accepted requests, the next item
had its id.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from agentkit import (
    Disposition,
    ImageBlock,
    Msg,
    OpaqueBlock,
    OpaqueState,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    dump_messages,
    load_messages,
    load_native,
)
from agentkit_openai import (
    OpenAIChatFormatter,
    OpenAIResponsesFormatter,
    OpenAIResponsesStreamParser,
)
from tests.cases import each_case
from tests.profiles import examples
from tests.providers import PNG, assistant, chat, problems, user

Json = dict[str, Any]


def _thought(number: int = 1) -> Json:
    return {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": f"gAAA{number}"}


def _message(number: int = 1, *texts: str) -> Json:
    parts: list[Json] = [{"type": "output_text", "text": text, "annotations": []} for text in texts or ("Hi.",)]
    message = {"type": "message", "id": f"msg_{number}", "role": "assistant"}
    return {**message, "status": "completed", "content": parts}


def _call(number: int = 1) -> Json:
    call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}"}
    return {**call, "name": "look", "arguments": "{}"}


def _custom(number: int = 1) -> Json:
    call = {"type": "custom_tool_call", "id": f"ctc_{number}", "call_id": f"call_{number}"}
    return {**call, "name": "sh", "input": "ls"}


def _search(number: int = 1) -> Json:
    action = {"type": "search", "query": "cats"}
    return {"type": "web_search_call", "id": f"ws_{number}", "status": "completed", "action": action}


def _image(number: int = 1) -> Json:
    item = {"type": "image_generation_call", "id": f"ig_{number}", "status": "completed", "output_format": "png"}
    return {**item, "revised_prompt": "A cat.", "result": PNG}


TOOL_SEARCH: Final[list[Json]] = [
    {"type": "tool_search_call", "id": "tsc_1", "call_id": None, "execution": "server", "status": "completed",
     "arguments": {"paths": ["crm"]}},
    {"type": "tool_search_output", "id": "tso_1", "call_id": None, "execution": "server", "status": "completed",
     "tools": [{"type": "function", "name": "look", "parameters": {}, "strict": False}]},
]  # fmt: skip


def _reply(output: list[Json]) -> Json:
    return {"id": "resp_1", "object": "response", "model": "gpt-x", "status": "completed", "output": output}


def _parse_reply(output: list[Json]) -> Msg:
    return OpenAIResponsesStreamParser.parse_response(_reply(output), name="Friday")


def _read_stream(output: list[Json]) -> Msg:
    parser = OpenAIResponsesStreamParser(name="Friday")
    for index, item in enumerate(output):
        started = {**item, **{key: empty for key, empty in _EMPTY.items() if key in item}}
        parser.feed({"type": "response.output_item.added", "output_index": index, "item": started})
        parser.feed({"type": "response.output_item.done", "output_index": index, "item": item})
    parser.feed({"type": "response.completed", "response": _reply(output)})
    return parser.finish()


_EMPTY: Final[Json] = {"content": [], "arguments": "", "input": "", "result": None, "encrypted_content": "g"}


def _load_reply(output: list[Json]) -> Msg:
    (msg,) = load_native("openai-responses", output)
    return replace(msg, name="Friday")


READERS: Final = {"whole": _parse_reply, "streamed": _read_stream, "loaded": _load_reply}
EVERY_READER: Final = each_case("read", READERS)


def _list_sent_items(*msgs: Msg, model: str | None = None) -> list[Json]:
    """Returns the items of a conversation with these replies and a result for each call."""
    history = [user("Go.")]
    for msg in msgs:
        answers = [ToolResultBlock(call.id, output="A.") for call in msg.tool_uses]
        history += [msg, *([Msg("tool", answers, "system")] if answers else []), user("On.")]
    request = OpenAIResponsesFormatter(model).lower(history).request
    assert problems("openai-responses", request) == []
    return [
        item
        for item in request["input"]
        if item.get("role") not in ("user", "system") and not item["type"].endswith("_call_output")
    ]


OUTPUTS: Final[dict[str, list[Json]]] = {
    "a message": [_thought(), _message()],
    "a message of parts": [_thought(), _message(1, "One.", "Two.")],
    "a call": [_thought(), _call()],
    "parallel calls": [_thought(), _message(), _call(1), _call(2), _custom(3)],
    "reasoning between calls": [_thought(1), _call(1), _thought(2), _call(2)],
    "reasoning in two parts": [_thought(1), _thought(2), _message()],
    "a search": [_thought(1), _search(), _thought(2), _message()],
    "an image": [_thought(), _image(), _message()],
    "tools of a tool search": [_thought(1), *TOOL_SEARCH, _thought(2), _call()],
    "a refusal": [_thought(), {**_message(), "content": [{"type": "refusal", "refusal": "No."}]}],
    "a phase": [_thought(), {**_message(), "phase": "commentary"}, _call()],
}


@EVERY_READER
@each_case("output", OUTPUTS)
def test_a_reply_is_sent_back_as_its_items(output: list[Json], read: Any) -> None:
    assert _list_sent_items(read(output)) == output


@EVERY_READER
@each_case("output", OUTPUTS)
def test_a_stored_reply_is_sent_back_with_its_ids(output: list[Json], read: Any) -> None:
    assert _list_sent_items(*load_messages(dump_messages([read(output)]))) == output


@EVERY_READER
def test_without_reasoning_messages_and_calls_have_no_ids(read: Any) -> None:
    msg = read([_message(), _call()])
    assert [getattr(block, "state", None) for block in msg.blocks] == [None, None]
    assert [item.get("id") for item in _list_sent_items(msg)] == [None, None]


# -- the item after reasoning is removed, changed or unknown -----------------------------------------------------


@EVERY_READER
@each_case("removed", [0, 1, 2])
def test_reasoning_whose_next_item_was_removed_has_no_id(removed: int, read: Any) -> None:
    output = [_thought(), _message(), _call(1), _call(2)]
    msg = read(output)
    remaining = tuple(block for index, block in enumerate(msg.blocks) if index != removed + 1)
    items = _list_sent_items(replace(msg, content=remaining))
    if removed == 0:
        assert [item.get("id") for item in items] == [None, None, None]
        assert items[0] == {key: value for key, value in _thought().items() if key != "id"}
    else:
        assert items == [item for index, item in enumerate(output) if index != removed + 1]


def test_a_message_without_one_of_its_parts_keeps_its_id() -> None:
    msg = _parse_reply([_thought(), _message(1, "One.", "Two.")])
    assert _list_sent_items(replace(msg, content=(msg.blocks[0], msg.blocks[2]))) == [
        _thought(),
        _message(1, "Two."),
    ]


@pytest.mark.parametrize("changes", [{"call_id": "c" * 80}, {"name": "functions.look"}])
def test_a_renamed_call_and_the_reasoning_before_it_have_no_ids(changes: Json) -> None:
    thought, call = _list_sent_items(_parse_reply([_thought(), {**_call(), **changes}]))
    assert "id" not in thought
    assert "id" not in call


def test_of_two_calls_with_the_same_call_id_only_the_first_has_its_item_id() -> None:
    again = {**_call(2), "call_id": "call_1"}
    items = _list_sent_items(_parse_reply([_thought(), _call(1), again]))
    assert [item.get("id") for item in items] == ["rs_1", "fc_1", None]


def test_a_repeated_reply_has_its_ids_only_once() -> None:
    msg = _parse_reply([_thought(), _message()])
    assert [item.get("id") for item in _list_sent_items(msg, msg)] == ["rs_1", "msg_1", None, None]


@pytest.mark.parametrize("id", ["call_1", "fc_" + "x" * 80, "msg_1"])
def test_an_id_that_openai_refuses_for_the_type_is_not_sent(id: str) -> None:
    assert [item.get("id") for item in _list_sent_items(_parse_reply([_thought(), {**_call(), "id": id}]))] == [
        None,
        None,
    ]


def test_reasoning_in_a_history_of_earlier_versions_has_no_id() -> None:
    state = OpaqueState("openai", encrypted_content="gAAA1", item_id="rs_1")
    items = _list_sent_items(assistant(ThinkingBlock("", state), "Hi."))
    assert items == [
        {"type": "reasoning", "summary": [], "encrypted_content": "gAAA1"},
        {"type": "message", "role": "assistant", "content": "Hi."},
    ]


def test_reasoning_without_a_proof_is_omitted_with_its_id() -> None:
    reasoning: Json = {"type": "reasoning", "id": "rs_1", "summary": [], "content": [], "encrypted_content": ""}
    assert _list_sent_items(_parse_reply([reasoning, _message()])) == [
        {"type": "message", "role": "assistant", "content": "Hi."}
    ]


def test_the_item_after_stale_thinking_has_no_id() -> None:
    formatter = OpenAIResponsesFormatter("gpt-6.2")
    request = formatter.lower([user("Go.")]).request
    reply = OpenAIResponsesStreamParser.parse_response(_reply([_thought(), _message()]), request=request)
    fresh = formatter.lower([user("Go."), reply, user("On.")]).request["input"]
    assert [item.get("id") for item in fresh] == [None, "rs_1", "msg_1", None]
    stale = formatter.lower([user("Go!"), reply, user("On.")]).request["input"]
    assert [item.get("id") for item in stale] == [None, None, None]


def test_thinking_stays_valid_after_reasoning_with_the_id_of_its_next_item() -> None:
    formatter = OpenAIResponsesFormatter("gpt-6.2")
    first = replace(_parse_reply([_thought(), _message(1, "One.", "Two.")]), content=())
    reply = OpenAIResponsesStreamParser.parse_response(
        _reply([_thought(), _message(1, "One.", "Two."), _call()]), request={"input": []}
    )
    assert first.content == ()
    start = [user("Go."), reply, Msg("tool", [ToolResultBlock("call_1", output="A.")], "system")]
    request = formatter.lower(start).request
    assert all("id" not in item for item in request["input"])  # the thinking of the reply is stale
    second = OpenAIResponsesStreamParser.parse_response(_reply([_thought(2), _message(2)]), request=request)
    items = formatter.lower([*start, second, user("On.")]).request["input"]
    assert [item.get("id") for item in items if "id" in item] == ["rs_2", "msg_2"]


def test_thinking_between_a_hosted_tool_search_and_a_call_is_valid() -> None:
    formatter = OpenAIResponsesFormatter("gpt-6.2")
    request = formatter.lower([user("Go.")]).request
    others = [{**item, "id": f"{item['id']}0"} for item in TOOL_SEARCH]
    output = [*TOOL_SEARCH, _thought(1), *others, _thought(2), _message()]
    reply = OpenAIResponsesStreamParser.parse_response(_reply(output), request=request)
    items = formatter.lower([user("Go."), reply, user("On.")]).request["input"]
    assert [item["id"] for item in items if item["type"] == "reasoning"] == ["rs_1", "rs_2"]


HOSTED: Final[dict[str, list[Json]]] = {
    name: OUTPUTS[name] for name in ("a search", "an image", "tools of a tool search")
}


@EVERY_READER
@each_case("output", HOSTED)
def test_an_item_of_a_hosted_tool_is_not_sent_without_the_reasoning_before_it(
    output: list[Json], read: Any
) -> None:
    # "Item 'ws_…' of type 'web_search_call' was provided without its required 'reasoning' item" (error text).
    unproven = [{key: value for key, value in item.items() if key != "encrypted_content"} for item in output]
    history = [user("Go."), read(unproven), user("On.")]
    plan = OpenAIResponsesFormatter(on_loss="raise").lower(history)
    assert not [item for item in plan.request["input"] if "id" in item]
    assert (PNG in str(plan.request)) == (PNG in str(output))
    reasons = {entry.reason for entry in plan.ledger.entries if entry.kind == "opaque"}
    assert all("the API requires the thinking before this block" in reason for reason in reasons)


def test_an_item_without_reasoning_before_it_keeps_its_id() -> None:
    assert _list_sent_items(_parse_reply([_search(), _message()]))[0] == _search()
    assert _list_sent_items(_parse_reply([_search(), _thought(), _message()])) == [
        _search(),
        _thought(),
        _message(),
    ]


def test_thinking_stays_valid_after_a_search_that_was_dropped_with_its_reasoning() -> None:
    formatter = OpenAIResponsesFormatter("gpt-6.2")
    first = OpenAIResponsesStreamParser.parse_response(
        _reply([_thought(), _search(), _message(), _call()]), request={"input": []}
    )
    start = [user("Go."), first, Msg("tool", [ToolResultBlock("call_1", output="A.")], "system")]
    plan = formatter.lower(start)
    assert all("id" not in item for item in plan.request["input"])
    assert "web_search_call" not in str(plan.request)
    second = OpenAIResponsesStreamParser.parse_response(
        _reply([_thought(2), _search(2), _message(2)]), request=plan.request
    )
    items = formatter.lower([*start, second, user("On.")]).request["input"]
    assert [item["id"] for item in items if "id" in item] == ["rs_2", "ws_2", "msg_2"]


ITEM_BUILDERS: Final = (_thought, _message, _call, _custom, _search, _image)


@st.composite
def outputs(draw: DrawFn) -> list[Json]:
    kinds = draw(st.lists(st.sampled_from(ITEM_BUILDERS), min_size=1, max_size=7))
    return [make(number) for number, make in enumerate(kinds, 1)]


@examples(150)
@given(output=outputs(), read=st.sampled_from(list(READERS.values())), data=st.data())
def test_reasoning_has_an_id_only_before_its_original_next_item(
    output: list[Json], read: Any, data: st.DataObject
) -> None:
    msg = read(output)
    positions = data.draw(st.lists(st.sampled_from(range(len(msg.blocks))), unique=True)) if msg.blocks else []
    edited = replace(msg, content=tuple(msg.blocks[index] for index in sorted(positions)))
    followers = {first["id"]: other["id"] for first, other in pairwise(output)}
    items = _list_sent_items(edited)
    for item, following in pairwise([*items, {}]):
        if item["type"] == "reasoning" and "id" in item:
            assert following["id"] == followers[item["id"]]
        assert item["type"] != "reasoning" or following.get("type") not in (None, "user")


# -- images that the model generated -----------------------------------------------------------------------------


def test_a_generated_image_is_an_image_for_other_apis() -> None:
    msg = _parse_reply([_thought(), _image(), _message()])
    history = [user("Draw."), msg, user("Thanks.")]
    for provider in ("openai", "anthropic", "gemini", "dashscope"):
        plan = chat(provider, on_loss="raise").lower(history)
        assert PNG in str(plan.request), provider
        assert "image_generation_call" not in str(plan.request), provider
        assert problems(provider, plan.request) == []


def test_a_generated_image_in_a_turn_of_another_speaker_is_content() -> None:
    image = ImageBlock(_parse_reply([_image()]).blocks[0].source, state=OpaqueState("openai", item_id="ig_1"))  # type: ignore[union-attr]
    plan = OpenAIResponsesFormatter().lower([user("See.", image)])
    assert [part["type"] for part in plan.request["input"][0]["content"]] == ["input_text", "input_image"]
    assert "ig_1" not in str(plan.request)


def test_the_ledger_records_an_image_that_is_sent_by_id() -> None:
    plan = OpenAIResponsesFormatter(on_loss="raise").lower(
        [user("Draw."), _parse_reply([_image()]), user("Thanks.")]
    )
    (entry,) = [entry for entry in plan.ledger.entries if entry.place == "msgs[1].content[0]"]
    assert entry.disposition is Disposition.CARRIED
    assert entry.reason == "sent as the id of the reply item that contains the media"


def test_an_image_item_counts_as_an_image() -> None:
    formatter = OpenAIResponsesFormatter()
    assert PNG not in str(OpenAIChatFormatter().lower([_parse_reply([_message()])]).request)
    request = formatter.lower([user("Draw."), _parse_reply([_image()]), user("Thanks.")]).request
    from agentkit.tokens.request_parts import RequestParts

    parts = RequestParts.of(request, formatter)
    assert [(medium.kind, medium.data) for medium in parts.media] == [("image", PNG)]
    assert PNG not in parts.texts


# -- items are messages by name ----------------------------------------------------------------------------------


def test_every_item_has_a_type() -> None:
    history = [
        Msg("system", "Be brief.", "system"),
        user("Go."),
        assistant(TextBlock("I look."), ToolUseBlock("call_1", "look", {})),
        Msg("tool", [ToolResultBlock("call_1", output="A.")], "system"),
        assistant("Done."),
        user("On."),
    ]
    for marked in (False, True):
        formatter = OpenAIResponsesFormatter("gpt-5.6", cache_breakpoints="auto" if marked else "off")
        items = formatter.lower(history).request["input"]
        assert [item["type"] for item in items] == [
            *("message", "message", "message", "function_call", "function_call_output", "message", "message")
        ]


def test_reasoning_and_outputs_of_hosted_tools_get_no_markers() -> None:
    shell: list[Json] = [
        {"type": "local_shell_call", "id": "lsh_1", "call_id": "s1", "status": "completed", "action": {}},
        {"type": "local_shell_call_output", "id": "s1", "output": "a.txt"},
    ]
    thought = {**_thought(), "content": [{"type": "reasoning_text", "text": "Hm."}]}
    msg = assistant(
        *_parse_reply([thought, _message()]).blocks, *(OpaqueBlock("openai-responses", item) for item in shell)
    )
    formatter = OpenAIResponsesFormatter("gpt-5.6", cache_breakpoints="auto")
    items = formatter.lower([user("Go."), msg, user("On.")]).request["input"]
    assert items[1:5] == [thought, _message(), *shell]
