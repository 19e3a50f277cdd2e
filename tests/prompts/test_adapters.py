"""Messages and values of the chat and JSON adapters: texts, examples, history, tools, media, and replies."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum
from typing import Any, Final, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agentkit import (
    AudioBlock,
    ImageBlock,
    MessageError,
    Msg,
    OptionError,
    ParseError,
    TextBlock,
    ThinkingBlock,
    Tool,
    ToolUseBlock,
    URLSource,
    load_provider,
)
from agentkit.prompts import (
    Adapter,
    ChatAdapter,
    Citation,
    Example,
    Feedback,
    History,
    InputField,
    JSONAdapter,
    OutputField,
    Reasoning,
    Signature,
)
from agentkit.provider_kit import OutputSchema
from tests.cases import each_case
from tests.profiles import examples


class Judge(Signature):
    """Is the answer grounded in the passages?"""

    passages: list[str] = InputField()
    answer: str = InputField(desc="what the agent said")
    verdict: Literal["grounded", "invented"] = OutputField()
    score: int = OutputField(ge=0, le=10)


CHAT: Final = ChatAdapter()
JSON: Final = JSONAdapter()
INPUTS: Final[dict[str, Any]] = {"passages": ["It rains."], "answer": "Rain."}
SYSTEM: Final = (
    "Your input fields are:\n"
    "1. `passages` (list[str]): \n"
    "2. `answer` (str): what the agent said\n"
    "Your output fields are:\n"
    "1. `verdict` (Literal['grounded', 'invented']): \n"
    "2. `score` (int): \n"
    "Constraints: greater than or equal to: 0, less than or equal to: 10\n"
    "All interactions will be structured in the following way, with the appropriate values filled in.\n\n"
    "[[ ## passages ## ]]\n{passages}\n\n"
    "[[ ## answer ## ]]\n{answer}\n\n"
    "[[ ## verdict ## ]]\n{verdict}        # note: the value you produce must exactly match (no extra characters) "
    "one of: grounded; invented\n\n"
    "[[ ## score ## ]]\n{score}        # note: the value you produce must be a single int value\n\n"
    "[[ ## completed ## ]]\n"
    "In adhering to this structure, your objective is: \n"
    "        Is the answer grounded in the passages?"
)
REMINDER: Final = (
    "Respond with the corresponding output fields, starting with the field `[[ ## verdict ## ]]` (must be "
    "formatted as a valid Python Literal['grounded', 'invented']), then `[[ ## score ## ]]` (must be formatted as "
    "a valid Python int), and then ending with the marker for `[[ ## completed ## ]]`."
)
USER: Final = '[[ ## passages ## ]]\n["It rains."]\n\n[[ ## answer ## ]]\nRain.'


def texts(msgs: list[Msg]) -> list[tuple[str, str]]:
    return [(msg.role, msg.text) for msg in msgs]


# -- messages -------------------------------------------------------------------------------------------------


def test_a_request_has_a_system_message_and_a_user_message() -> None:
    expected = [("system", SYSTEM), ("user", f"{USER}\n\n{REMINDER}")]
    assert texts(CHAT.format(Judge, INPUTS)) == expected
    assert texts(CHAT.format(Judge, Judge(**INPUTS))) == expected


def test_the_current_request_is_pinned() -> None:
    msgs = CHAT.format(Judge, INPUTS, history=[Msg("Bob", "Hello.", "user")])
    assert [msg.pinned for msg in msgs] == [False, False, True]


DEMOS: Final = [
    Example(INPUTS, {"verdict": "grounded", "score": 9}),
    Example({"answer": "Sun."}, {"verdict": "invented"}),
    Example({"answer": "Only an input."}, {}),
]
COMPLETE: Final = "[[ ## verdict ## ]]\ngrounded\n\n[[ ## score ## ]]\n9\n\n[[ ## completed ## ]]\n"
PARTIAL: Final = (
    "[[ ## verdict ## ]]\ninvented\n\n[[ ## score ## ]]\nNot supplied for this particular example.\n\n"
    "[[ ## completed ## ]]\n"
)
PARTIAL_USER: Final = (
    "This is an example of the task, though some input or output fields are not supplied.\n\n"
    "[[ ## answer ## ]]\nSun."
)


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("complete_last", [PARTIAL_USER, PARTIAL, USER, COMPLETE]),
        ("given", [USER, COMPLETE, PARTIAL_USER, PARTIAL]),
    ],
)
def test_examples_are_pairs_of_messages(order: Any, expected: list[str]) -> None:
    msgs = ChatAdapter(order=order).format(Judge, INPUTS, examples=DEMOS)
    assert [msg.text for msg in msgs[1:-1]] == expected
    assert [msg.role for msg in msgs[1:-1]] == ["user", "assistant"] * 2


def test_a_history_has_messages_turns_and_feedback() -> None:
    call = Msg("Friday", [ToolUseBlock("c", "look", {})], "assistant")
    history: list[Any] = [call, DEMOS[0], Feedback("parse_error", "The score is too high.")]
    msgs = CHAT.format(Judge, INPUTS, history=history)
    assert msgs[1] is call
    assert texts(msgs[2:5]) == [
        ("user", f"{USER}\n\n{REMINDER}"),
        ("assistant", COMPLETE),
        ("user", 'Error. Please try again.\n\n"""\nThe score is too high.\n"""'),
    ]


def test_a_history_entry_of_another_type_is_refused_with_its_place() -> None:
    with pytest.raises(OptionError, match=r"^history\[1\]: "):
        CHAT.format(Judge, INPUTS, history=[Msg("Bob", "Hi.", "user"), "Hi."])  # type: ignore[list-item]
    with pytest.raises(OptionError, match=r"^examples\[0\]: "):
        CHAT.format(Judge, INPUTS, examples=[{"answer": "x"}])  # type: ignore[list-item]
    with pytest.raises(OptionError, match=r"^inputs: "):
        CHAT.format(Judge, "text")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"^signature: "):
        CHAT.format("a -> b", {})  # type: ignore[arg-type]


def test_conversation_ends_with_the_reply() -> None:
    msgs = CHAT.conversation(Judge, INPUTS, {"verdict": "grounded", "score": 9})
    assert texts(msgs[1:]) == [("user", f"{USER}\n\n{REMINDER}"), ("assistant", COMPLETE)]


@pytest.mark.parametrize("adapter", [CHAT, JSON])
def test_training_data_are_the_messages_of_the_conversation(adapter: Adapter) -> None:
    outputs = {"verdict": "grounded", "score": 9}
    row = adapter.format_finetune_data(Judge, INPUTS, outputs, DEMOS)
    msgs = adapter.conversation(Judge, INPUTS, outputs, DEMOS)
    assert row == {"messages": [{"role": msg.role, "content": msg.text} for msg in msgs]}


def test_training_data_have_media_in_the_format_of_openai() -> None:
    signature: Any = Signature("picture: ImageBlock -> answer")
    user = CHAT.format_finetune_data(signature, {"picture": PICTURE}, {"answer": "A boat."})["messages"][1]
    assert user["content"][1] == {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}


def test_equal_inputs_give_equal_messages_and_stay_unchanged() -> None:
    inputs = {"passages": ["a"], "answer": "b"}
    first = CHAT.format(Judge, inputs, examples=DEMOS)
    assert CHAT.format(Judge, inputs, examples=DEMOS) == first
    assert inputs == {"passages": ["a"], "answer": "b"}


def test_adapters_are_immutable_and_check_their_options() -> None:
    with pytest.raises(AttributeError):
        CHAT.native_tools = True  # type: ignore[misc]
    assert replace(CHAT, native_tools=True).native_tools
    with pytest.raises(OptionError, match=r"^order: "):
        ChatAdapter(order="last")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"^fallback: "):
        ChatAdapter(fallback="json")  # type: ignore[arg-type]


# -- media and tools --------------------------------------------------------------------------------------------

PICTURE: Final = ImageBlock(URLSource("https://example.com/a.png"))
SOUND: Final = AudioBlock.from_bytes(b"RIFF....WAVE", "audio/wav")


class Nested(BaseModel):
    caption: str
    picture: ImageBlock


class Look(Signature):
    """Look."""

    pictures: list[ImageBlock] = InputField()
    sound: AudioBlock = InputField()
    by_name: dict[str, ImageBlock] = InputField()
    nested: Nested = InputField()
    answer: str = OutputField()


def test_media_stand_in_the_text_at_their_places() -> None:
    inputs = {
        "pictures": [PICTURE, PICTURE],
        "sound": SOUND,
        "by_name": {"k": PICTURE},
        "nested": Nested(caption='a "b"', picture=PICTURE),
    }
    content = CHAT.format(Look, inputs)[-1].content
    reminder = (
        "Respond with the corresponding output fields, starting with the field `[[ ## answer ## ]]`, and then "
        "ending with the marker for `[[ ## completed ## ]]`."
    )
    assert content == (
        TextBlock('[[ ## pictures ## ]]\n["'),
        PICTURE,
        TextBlock('", "'),
        PICTURE,
        TextBlock('"]\n\n[[ ## sound ## ]]\n'),
        SOUND,
        TextBlock('\n\n[[ ## by_name ## ]]\n{"k": "'),
        PICTURE,
        TextBlock('"}\n\n[[ ## nested ## ]]\n{"caption": "a \\"b\\"", "picture": "'),
        PICTURE,
        TextBlock(f'"}}\n\n{reminder}'),
    )


def add(a: int, b: int = 2) -> int:
    """Adds numbers.

    Carefully."""
    return a + b


ADD: Final = Tool.from_function(add)


class Agent(Signature):
    """Answer, or call a tool."""

    question: str = InputField()
    tools: list[Tool] = InputField()
    calls: list[ToolUseBlock] = OutputField()
    answer: str = OutputField()


def test_tools_are_sentences_in_the_prompt() -> None:
    text = CHAT.format(Agent, {"question": "2 + 2?", "tools": [ADD]})[-1].text
    listed = "add, whose description is <desc>Adds numbers.    Carefully.</desc>. It takes arguments "
    assert f'[[ ## tools ## ]]\n["{listed}' in text
    assert '(must be a JSON object like {"tool_calls": [{"name": "...", "args": {...}}]})' in text


@each_case(
    "section",
    [
        '{"tool_calls": [{"name": "add", "args": {"a": 1}}]}',
        '[{"name": "add", "arguments": "{\\"a\\": 1}"}]',
        '{"name": "add", "args": {"a": 1}}',
        '[{"function": {"name": "add", "arguments": {"a": 1}}}]',
        "{'tool_calls': [{'name': 'add', 'args': {'a': 1}",
    ],
)
def test_tool_calls_in_a_text_become_blocks_with_ids(section: str) -> None:
    outputs = CHAT.parse(Agent, f"[[ ## calls ## ]]\n{section}\n\n[[ ## answer ## ]]\n4")
    (call,) = outputs["calls"]
    assert (call.name, call.input, call.id[:5]) == ("add", {"a": 1}, "call_")
    assert CHAT.parse(Agent, f"[[ ## calls ## ]]\n{section}\n\n[[ ## answer ## ]]\n4") == outputs


@each_case("section", ["look it up", '[{"args": {}}]', '[{"name": "add", "args": 3}]', "[3]"])
def test_a_text_without_tool_calls_is_a_wrong_value(section: str) -> None:
    with pytest.raises(ParseError) as caught:
        CHAT.parse(Agent, f"[[ ## calls ## ]]\n{section}\n\n[[ ## answer ## ]]\n4")
    assert (caught.value.failure, caught.value.place) == ("wrong_value", "calls[0]")


def test_no_tool_calls_are_an_empty_list() -> None:
    assert CHAT.parse(Agent, '[[ ## calls ## ]]\n{"tool_calls": []}\n[[ ## answer ## ]]\n4')["calls"] == []


class TestNativeTools:
    adapter = ChatAdapter(native_tools=True)
    call = ToolUseBlock("c1", "add", {"a": 2})

    def test_the_prompt_omits_the_fields_for_tools(self) -> None:
        msgs = self.adapter.format(Agent, {"question": "2 + 2?", "tools": [ADD]})
        assert "tools" not in msgs[0].text
        assert "calls" not in "".join(msg.text for msg in msgs)

    def test_the_tool_calls_of_the_reply_are_the_output(self) -> None:
        reply = Msg("assistant", [TextBlock("Let me see."), self.call], "assistant")
        assert self.adapter.parse(Agent, reply) == {"calls": [self.call], "answer": None}

    def test_text_beside_tool_calls_is_parsed_if_possible(self) -> None:
        reply = Msg("assistant", [TextBlock("[[ ## answer ## ]]\n4"), self.call], "assistant")
        assert self.adapter.parse(Agent, reply) == {"calls": [self.call], "answer": "4"}

    def test_a_reply_without_tool_calls_must_have_the_other_outputs(self) -> None:
        assert self.adapter.parse(Agent, "[[ ## answer ## ]]\n4") == {"calls": [], "answer": "4"}
        with pytest.raises(ParseError):
            self.adapter.parse(Agent, "Four.")

    def test_a_signature_without_an_input_for_tools_is_refused(self) -> None:
        with pytest.raises(OptionError, match="no input is for tools"):
            self.adapter.format(Agent.delete("tools"), {"question": "2 + 2?"})


# -- replies ----------------------------------------------------------------------------------------------------


class Report(Signature):
    """Report."""

    topic: str = InputField()
    title: str = OutputField()
    pages: int = OutputField(default=1, ge=1)
    note: str | None = OutputField()


@each_case(
    ("text", "expected"),
    [
        ("[[ ## title ## ]]\nTides", ("Tides", 1, None)),
        ("Sure!\n[[ ## title ## ]] Tides\nat sea\n[[ ## pages ## ]]\n3", ("Tides\nat sea", 3, None)),
        ("   [[ ## title ## ]]\nTides", ("Tides", 1, None)),
        ("\t[[ ## title ## ]] Tides", ("Tides", 1, None)),
        ("[[ ## title ## ]]\na\n[[ ## title ## ]]\nb", ("a", 1, None)),
        ("[[ ## title ## ]]\na\n[[ ## other ## ]]\nb\n[[ ## completed ## ]]\nbye", ("a", 1, None)),
        ("[[ ## title ## ]]\na [[ ## pages ## ]] b", ("a [[ ## pages ## ]] b", 1, None)),
        ("[[ ## title ## ]]\na\rb\x0bc\u2028d", ("a\rb\x0bc\u2028d", 1, None)),
        ("[[ ## title ## ]]\na\n\\[[ ## pages ## ]]\n7", ("a\n[[ ## pages ## ]]\n7", 1, None)),
        ("[[ ## note ## ]]\nNone\n[[ ## title ## ]]\n", ("", 1, None)),
    ],
)
def test_sections_are_read(text: str, expected: tuple[Any, ...]) -> None:
    outputs = CHAT.parse(Report, text)
    assert [*outputs] == ["title", "pages", "note"]
    assert tuple(outputs.values()) == expected


@each_case(
    ("text", "failure", "place", "partial"),
    [
        ("", "no_structure", "title", {"pages": 1, "note": None}),
        ("Tides.", "no_structure", "title", {"pages": 1, "note": None}),
        ("[[ ## pages ## ]]\n2", "no_structure", "title", {"pages": 2, "note": None}),
        ("[[ ## title ## ]]\na\n[[ ## pages ## ]]\n0", "wrong_value", "pages", {"title": "a"}),
        ("[[ ## title ## ]]\na\n[[ ## pages ## ]]\nmany", "wrong_value", "pages", {"title": "a"}),
    ],
)
def test_a_reply_that_lacks_an_output_is_an_error(
    text: str, failure: str, place: str, partial: Mapping[str, Any]
) -> None:
    with pytest.raises(ParseError) as caught:
        CHAT.parse(Report, text)
    error = caught.value
    assert (error.failure, error.place, error.partial, error.message.text) == (failure, place, partial, text)


def test_a_reply_that_was_cut_off_says_so() -> None:
    reply = Msg("assistant", "[[ ## pa", "assistant", metadata={"reply": {"finish_reason": "length"}})
    with pytest.raises(ParseError, match="maximum number of tokens") as caught:
        CHAT.parse(Report, reply)
    assert caught.value.failure == "cut_off"


@pytest.mark.parametrize(("adapter", "text"), [(CHAT, "[[ ## title ## ]]\nTid"), (JSON, '{"title": "Tid')])
def test_a_value_that_may_lack_its_end_is_no_value(adapter: Adapter, text: str) -> None:
    reply = Msg("assistant", text, "assistant", metadata={"reply": {"finish_reason": "length"}})
    with pytest.raises(ParseError) as caught:
        adapter.parse(Report, reply)
    assert (caught.value.failure, caught.value.partial["title"], caught.value.message) == ("cut_off", "Tid", reply)


@each_case(
    ("text", "expected"),
    [
        ('{"title": "Tides"}', ("Tides", 1, None)),
        ('Sure: {"title": "Tides", "pages": "3", "more": 1} ok', ("Tides", 3, None)),
        ('```json\n{"title": "Tides", "note": "n"}\n```', ("Tides", 1, "n")),
        ("{'title': 'Tides', 'pages': 2,}", ("Tides", 2, None)),
        ('{"title": "Tides", "pages": 2', ("Tides", 2, None)),
        ('[1, {"title": "Tides"}]', ("Tides", 1, None)),
    ],
)
def test_the_json_object_of_a_reply_is_read(text: str, expected: tuple[Any, ...]) -> None:
    assert tuple(JSON.parse(Report, text).values()) == expected


@each_case(
    ("text", "failure", "place"),
    [
        ("none", "no_structure", "reply"),
        ("[1, 2]", "no_structure", "reply"),
        ("{" * 50_000, "no_structure", "reply"),
        ('{"pages": 2}', "no_structure", "title"),
        ('{"title": "a", "pages": 0}', "wrong_value", "pages"),
    ],
)
def test_a_json_reply_that_lacks_an_output_is_an_error(text: str, failure: str, place: str) -> None:
    with pytest.raises(ParseError) as caught:
        JSON.parse(Report, text)
    assert (caught.value.failure, caught.value.place) == (failure, place)


class Cited(Signature):
    """Answer with sources."""

    question: str = InputField()
    reasoning: Reasoning = OutputField()
    answer: str = OutputField()
    sources: list[Citation] = OutputField()


def test_thinking_and_citations_of_the_reply_fill_outputs_that_the_text_lacks() -> None:
    cited = TextBlock(
        "[[ ## answer ## ]]\nRain.", metadata={"citations": [{"type": "page", "cited_text": "It rains."}]}
    )
    reply = Msg("assistant", [ThinkingBlock("Clouds mean rain."), cited], "assistant")
    outputs = CHAT.parse(Cited, reply)
    assert (outputs["reasoning"], outputs["answer"]) == ("Clouds mean rain.", "Rain.")
    assert [(item.type, item.cited_text) for item in outputs["sources"]] == [("page", "It rains.")]


@pytest.mark.parametrize("adapter", [CHAT, JSON])
def test_a_reply_that_is_no_valid_text_is_refused(adapter: Adapter) -> None:
    with pytest.raises(OptionError, match=r"^reply: expected Msg \| str, got int"):
        adapter.parse(Report, 3)  # type: ignore[arg-type]
    for text in ('{"title": "\ud800"}', "[[ ## title ## ]]\n\ud800", "\ud800"):
        with pytest.raises(MessageError, match="lone surrogate"):
            adapter.parse(Report, text)


# -- request options --------------------------------------------------------------------------------------------


class Counts(Signature):
    """Count."""

    text: str = InputField()
    counts: dict[str, int] = OutputField()


@pytest.mark.parametrize("provider", ["openai", "anthropic", "gemini", "ollama"])
def test_the_json_adapter_asks_for_the_schema_of_closed_outputs(provider: str) -> None:
    capabilities = load_provider(provider).chat_formatter().capabilities()
    output = JSON.request_options(Judge, capabilities).get("response_format")
    assert isinstance(output, OutputSchema)
    assert output.schema == {
        "type": "object",
        "properties": {
            "verdict": {"type": "string", "enum": ["grounded", "invented"]},
            "score": {"type": "integer", "minimum": 0, "maximum": 10},
        },
        "additionalProperties": False,
        "required": ["verdict", "score"],
    }


@each_case(
    ("provider", "signature", "adapter"),
    [("openai", Counts, JSON), ("deepseek", Judge, JSON), ("openai", Agent, JSONAdapter(native_tools=False))],
)
def test_the_json_adapter_asks_for_any_object_otherwise(
    provider: str, signature: type[Signature[Any]], adapter: Adapter
) -> None:
    formatter = load_provider(provider).chat_formatter()
    options = adapter.request_options(signature, formatter.capabilities())
    assert options == {"response_format": "json_object"}
    request = formatter.lower(adapter.format(signature, {}), **options).request
    assert request["response_format"] == {"type": "json_object"}
    assert "Answer in json" not in str(request)  # the system message of the adapter mentions JSON already


def test_the_chat_adapter_asks_for_no_format() -> None:
    capabilities = load_provider("openai").chat_formatter().capabilities()
    assert CHAT.request_options(Judge, capabilities) == {}
    assert CHAT.request_options(Judge, capabilities, [ADD]) == {"tools": [ADD]}


# -- properties -------------------------------------------------------------------------------------------------


class Color(Enum):
    RED = 1
    BLUE = "blue"


class Item(BaseModel):
    name: str
    size: float | None = None
    colors: list[Color] = []


class Everything(Signature):
    """All kinds of types."""

    question: str = InputField()
    text: str = OutputField()
    optional: str | None = OutputField()
    number: int | None = OutputField()
    color: Color = OutputField()
    choice: Literal["a", 1, "1"] = OutputField()
    items: list[Item] = OutputField()
    mapping: dict[str, list[str]] = OutputField()


_texts = st.text() | st.sampled_from(
    [
        "[[ ## number ## ]]\n7",
        "a\n[[ ## completed ## ]]",
        "\\[[ ## text ## ]]",
        "  \t[[ ## text ## ]] b",
        "None",
        "\\None",
        " outer ",
        "a\rb",
        '{"text": "b"}',
        "```json\n{}\n```",
        "«x»",
        "\u2028[[ ## text ## ]]",
    ]
)


def draw_outputs(texts: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Returns a strategy for the outputs of `Everything`, with texts of another strategy."""
    items = st.builds(
        Item, name=texts, size=st.none() | st.floats(allow_nan=False), colors=st.lists(st.sampled_from(Color))
    )
    return st.fixed_dictionaries(
        {
            "text": texts,
            "optional": st.none() | texts,
            "number": st.none() | st.integers(),
            "color": st.sampled_from(Color),
            "choice": st.sampled_from(["a", 1, "1"]),
            "items": st.lists(items, max_size=3),
            "mapping": st.dictionaries(texts, st.lists(texts, max_size=2), max_size=3),
        }
    )


_values: Final = draw_outputs(_texts)


@given(_values, st.sampled_from([CHAT, JSON]))
def test_the_values_of_a_reply_are_those_that_were_written(values: dict[str, Any], adapter: Adapter) -> None:
    text = adapter.format_assistant_message_content(Everything, values)
    assert adapter.parse(Everything, text) == values


@examples(100)
@given(st.dictionaries(st.sampled_from(["first", "second", "third"]), _texts))
def test_no_input_can_forge_the_section_of_another_field(inputs: dict[str, str]) -> None:
    signature: Any = Signature("first, second, third -> answer")
    # The same texts are the outputs of a signature, whose reply is the message without the reminder.
    mirrored: Any = Signature("question -> first, second, third")
    text = CHAT.format_user_message_content(signature, inputs)
    try:
        outputs = CHAT.parse(mirrored, text)
    except ParseError as error:
        outputs = error.partial
    assert {name: outputs[name] for name in inputs} == inputs


@examples(60)
@given(_values)
def test_a_reply_is_json_that_other_programs_read(values: dict[str, Any]) -> None:
    text = JSON.format_assistant_message_content(Everything, values)
    assert [*json.loads(text)] == [*Everything.output_fields]


def test_an_input_of_the_type_history_becomes_turns() -> None:
    class Chat(Signature):
        """Chat."""

        question: str = InputField()
        history: History = InputField()
        answer: str = OutputField()

    rows = History([{"question": "one", "answer": "uno"}, {"question": "two"}, {"answer": "tre"}])
    msgs = CHAT.format(Chat, {"question": "four", "history": rows})
    assert [(msg.role, msg.text.partition("\n\nRespond")[0]) for msg in msgs[1:]] == [
        ("user", "[[ ## question ## ]]\none"),
        ("assistant", "[[ ## answer ## ]]\nuno\n\n[[ ## completed ## ]]\n"),
        ("user", "[[ ## question ## ]]\ntwo"),
        ("assistant", "[[ ## answer ## ]]\nNone\n\n[[ ## completed ## ]]\n"),
        ("assistant", "[[ ## answer ## ]]\ntre\n\n[[ ## completed ## ]]\n"),
        ("user", "[[ ## question ## ]]\nfour"),
    ]


@each_case("text", ["\ue0000\ue000", "\ue000", "\ue000\ue001\ue0020\ue002", "\ue0001\ue000\ue0007\ue000"])
def test_no_text_can_take_the_place_of_a_media_block(text: str) -> None:
    class Pictures(Signature):
        """Look."""

        pictures: dict[str, ImageBlock] = InputField()
        answer: str = OutputField()

    content = CHAT.format(Pictures, {"pictures": {text: PICTURE}})[-1].content
    assert [block for block in content if isinstance(block, ImageBlock)] == [PICTURE]
    assert isinstance(content[0], TextBlock)
    assert content[0].text == f'[[ ## pictures ## ]]\n{{"{text}": "'


@each_case("annotation", [dict[int], Callable[[], int], type("Handle", (), {})])  # type: ignore[misc]
def test_a_type_without_json_schema_is_an_option_error_of_a_compact_request(annotation: Any) -> None:
    signature = Signature("question -> answer").with_updated_fields("answer", annotation)
    capabilities = load_provider("openai").chat_formatter().capabilities("gpt-4o")
    with pytest.raises(OptionError):
        JSONAdapter(schema_style="compact").request_options(signature, capabilities)
