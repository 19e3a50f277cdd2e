"""`ChatTemplate.render`: the prompt, the spans, the places of media, and errors."""

from __future__ import annotations

import json
import pickle
from datetime import datetime
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentkit import (
    AudioBlock,
    Base64Source,
    EmptyConversationError,
    ImageBlock,
    MessageError,
    Msg,
    OpaqueBlock,
    OptionError,
    TemplateError,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
)
from agentkit.chat_templates import ChatTemplate
from tests.cases import each_case
from tests.profiles import examples

USER: Final = Msg("Bob", "Where?", "user")
REPLY: Final = Msg("Friday", "There.", "assistant")
CALL: Final = Msg(
    "Friday", [ThinkingBlock("Hm."), TextBlock("Wait."), ToolUseBlock("c1", "look", {"q": "é"})], "assistant"
)
RESULT: Final = Msg("system", [ToolResultBlock("c1", "look", "found")], "system")
IMAGE: Final = ImageBlock(URLSource("https://example.org/a.png"))

SHOW: Final = ChatTemplate("{{ messages | tojson }}{{ tools | tojson }}{{ add_generation_prompt }}", name="show")
PARTS: Final = ChatTemplate(
    "{% for message in messages %}{{ message.role }}:"
    "{% if message.content is string %}{{ message.content }}{% else %}{% for part in message.content %}"
    "{% if part.type == 'text' %}{{ part.text }}{% elif part.type == 'image' %}<image>{% endif %}"
    "{% endfor %}{% endif %};{% endfor %}"
)
MARKED: Final = ChatTemplate(
    "{% for message in messages %}[{{ message.role }}]"
    "{% if message.role == 'assistant' %}{% generation %}{{ message.content }}</s>{% endgeneration %}"
    "{% else %}{{ message.content }}{% endif %}{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}"
)


def look(q: str) -> str:
    """Looks."""
    return q


def test_messages_have_the_form_of_chat_completions() -> None:
    text = SHOW.render([USER, CALL, RESULT, Msg("system", "Be brief.", "system")], tools=[look]).text
    assert text == (
        '[{"role": "user", "content": "Where?", "name": "Bob"}, '
        '{"thinking": "Hm.", "role": "assistant", "content": "Wait.", "name": "Friday", '
        '"reasoning_content": "Hm.", "tool_calls": '
        '[{"type": "function", "id": "c1", "function": {"name": "look", "arguments": {"q": "é"}}}]}, '
        '{"role": "tool", "content": "found", "tool_call_id": "c1", "name": "look"}, '
        '{"role": "system", "content": "Be brief."}]'
        '[{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": '
        '{"additionalProperties": false, "properties": {"q": {"type": "string"}}, "required": ["q"], '
        '"type": "object"}}}]False'
    )


@each_case(
    ("last", "prompt", "expected"),
    [
        (USER, None, True),
        (RESULT, None, True),
        (REPLY, None, False),
        (Msg("system", "x", "system"), None, False),
        (REPLY, True, True),
        (USER, False, False),
    ],
)
def test_the_generation_prompt_follows_a_user_or_a_result(last: Msg, prompt: bool | None, expected: bool) -> None:
    msgs = [USER, CALL, last]
    assert SHOW.render(msgs, add_generation_prompt=prompt).text.endswith(str(expected))


def test_results_and_texts_of_one_message_become_several_messages() -> None:
    result = ToolResultBlock("c1", "look", [TextBlock("a"), TextBlock("b")])
    msg = Msg("Bob", [result, TextBlock("Thanks.")], "user")
    text = SHOW.render([USER, CALL, msg]).text
    assert '{"role": "tool", "content": "- a\\n- b", "tool_call_id": "c1", "name": "look"}' in text
    assert '{"role": "user", "content": "Thanks.", "name": "Bob"}]' in text


def test_replies_are_spans_and_the_prompt_ends_before_the_last_reply() -> None:
    rendered = MARKED.render([USER, REPLY, USER, REPLY])
    assert [rendered.text[start:end] for start, end in rendered.spans] == ["There.</s>"] * 2
    assert rendered.text[: rendered.prompt_end] == "[user]Where?[assistant]There.</s>[user]Where?[assistant]"
    rendered = MARKED.render([USER])
    assert (rendered.spans, rendered.prompt_end) == ((), len(rendered.text))
    rendered = ChatTemplate.from_tags({"user": ("U:", "\n")}).render([USER, REPLY])
    assert rendered.text[: rendered.prompt_end] == "U:Where?\n"


def test_the_prompt_end_without_spans_is_the_end_of_the_rendered_prompt() -> None:
    source = MARKED.jinja or ""
    plain = ChatTemplate(source.replace("{% generation %}", "").replace("{% endgeneration %}", ""))
    rendered = plain.render([USER, REPLY])
    assert (rendered.spans, rendered.text[: rendered.prompt_end]) == ((), "[user]Where?[assistant]")
    assert plain.render([REPLY]).prompt_end is None
    assert ChatTemplate("{{ messages | length }}").render([USER, REPLY]).prompt_end is None


TURN: Final = "{% for m in messages %}<{{ m.role }}>{% if m.role == 'assistant' %}"
OTHER: Final = "{% else %}{{ m.content }}{% endif %}{% endfor %}"
PROMPT: Final = "{% if add_generation_prompt %}<assistant>{% endif %}"
SPAN: Final = "{% generation %}{{ m.content }}|{% endgeneration %}"


@each_case(
    ("source", "prompt"),
    {
        "a later span of the end token": (
            f"{TURN}{SPAN}{OTHER}{PROMPT}{{% if not add_generation_prompt %}}{{% generation %}}</s>"
            "{% endgeneration %}{% endif %}",
            "<user>Where?<assistant>",
        ),
        "one span for thinking and one for text": (
            f"{TURN}{{% generation %}}{{{{ m.thinking }}}}{{% endgeneration %}}/{SPAN}{OTHER}{PROMPT}",
            "<user>Where?<assistant>",
        ),
        "a span with the generation prompt": (
            "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}<assistant>{{ m.content }}"
            f"{{% endgeneration %}}{{% else %}}<user>{{{{ m.content }}}}{{% endif %}}{{% endfor %}}{PROMPT}",
            "<user>Where?<assistant>",
        ),
        "no span for the last reply": (
            f"{TURN}{{% if loop.last %}}{{{{ m.content }}}}{{% else %}}{SPAN}{{% endif %}}{OTHER}{PROMPT}",
            "<user>Where?<assistant>",
        ),
        "a template that ignores add_generation_prompt": (f"{TURN}{SPAN}{OTHER}", "<user>Where?<assistant>"),
        "another generation prompt": (
            f"{TURN}{SPAN}{OTHER}{PROMPT.replace('<assistant>', '<assistant><think>')}",
            "<user>Where?<assistant>",
        ),
        "a line break after the prompt": (
            f"{TURN}{SPAN}{OTHER}{PROMPT.replace('<assistant>', '<assistant><think>')}{{{{ newline }}}}",
            "<user>Where?<assistant>",
        ),
    },
)
def test_the_prompt_contains_no_part_of_the_last_reply(source: str, prompt: str) -> None:
    reply = Msg("Friday", [ThinkingBlock("Hm."), TextBlock("There.")], "assistant")
    rendered = ChatTemplate(source).render([USER, REPLY, USER, reply], newline="\n")
    assert rendered.text[: rendered.prompt_end].endswith(prompt)
    assert rendered.text[: rendered.prompt_end].count("There.") == 1
    assert "Hm." not in rendered.text[: rendered.prompt_end]


@each_case(
    "source",
    [
        "{% set x %}{% generation %}  {{ messages[0].content }} {% endgeneration %}{% endset %}[{{ x }}]",
        "{% macro say(m) %}{% generation %}{{ m.content }}{% endgeneration %}{% endmacro %}{{ say(messages[0]) }}",
        "[{% filter upper %}{% generation %}{{ messages[0].content }}{% endgeneration %}{% endfilter %}]",
        "{% set x %}{% generation %}{% generation %}{{ messages[0].content }}{% endgeneration %}"
        "{% endgeneration %}{% endset %}[{{ x }}]",
    ],
)
def test_a_span_inside_a_macro_or_a_variable_has_its_place(source: str) -> None:
    rendered = ChatTemplate(source).render([REPLY])
    assert len(rendered.spans) == 1
    start, end = rendered.spans[0]
    assert rendered.text[start:end].strip().lower() == "there."


def test_a_template_that_writes_the_characters_of_marks_keeps_its_text() -> None:
    source = "\U0010ff00{% generation %}a{{ messages[0].content }}{% endgeneration %}\U0010ff01"
    rendered = ChatTemplate(source).render([Msg("Bob", "\x02", "user")])
    assert (rendered.text, rendered.spans) == ("\U0010ff00a\x02\U0010ff01", ())
    assert ChatTemplate(source).render([USER]).spans == ((1, 8),)


def test_a_variable_cannot_replace_the_marks_of_spans() -> None:
    source = "{% set text %}{% generation %}a{% endgeneration %}{% endset %}{{ text }}{{ messages[0].content }}"
    names: Any = {"0_span_start": "x", "0_span_end": "y"}
    for template in (ChatTemplate(source, special_tokens=names), ChatTemplate(source)):
        rendered = template.render([USER], **names)
        assert (rendered.text, rendered.spans) == ("aWhere?", ((0, 1),))


def test_a_filter_that_sees_the_marks_of_spans_gets_the_text_without_them() -> None:
    source = "{% set x %}{% generation %}{{ messages[0].content }}{% endgeneration %}{% endset %}{{ x | length }}"
    rendered = ChatTemplate(source).render([REPLY])
    assert (rendered.text, rendered.spans) == ("6", ())


@examples(200)
@given(st.text(max_size=20), st.text(max_size=20))
def test_spans_are_exact_for_any_text(first: str, second: str) -> None:
    texts = [text.encode("utf-8", "ignore").decode() + "\U0010ff00\U0010ff02" for text in (first, second)]
    rendered = MARKED.render([Msg("Bob", texts[0], "user"), Msg("Friday", texts[1], "assistant")])
    assert rendered.text == f"[user]{texts[0]}[assistant]{texts[1]}</s>"
    assert [rendered.text[start:end] for start, end in rendered.spans] == [f"{texts[1]}</s>"]


# -- media and omitted content ------------------------------------------------------------------------------------


def test_media_have_the_places_of_their_placeholders() -> None:
    msgs = [Msg("Bob", [TextBlock("See "), IMAGE, IMAGE, TextBlock("!")], "user"), REPLY]
    rendered = PARTS.render(msgs)
    assert rendered.text == "user:See <image><image>!;assistant:There.;"
    assert [(media.block, media.offset) for media in rendered.media] == [(IMAGE, 9), (IMAGE, 16)]
    assert rendered.omitted == ()


@each_case(
    ("source", "text", "offset"),
    [
        (  # media come first, as in llava_next of trl
            "{% for p in messages[0].content if p.type == 'image' %}<image>\n{% endfor %}"
            "{% for p in messages[0].content if p.type == 'text' %}{{ p.text }}{% endfor %}",
            "<image>\nno <image> x",
            0,
        ),
        (  # the type of the first part changes the text, as in idefics3 of trl
            "{{ 'A' if messages[0].content[0].type == 'image' else 'B ' }}"
            "{% for p in messages[0].content %}{{ p.text if p.type == 'text' else '<image>' }}{% endfor %}",
            "A<image>no <image> x",
            1,
        ),
    ],
)
def test_a_template_can_move_media(source: str, text: str, offset: int) -> None:
    rendered = ChatTemplate(source).render([Msg("Bob", [IMAGE, TextBlock("no <image> x")], "user")])
    assert (rendered.text, [media.offset for media in rendered.media]) == (text, [offset])


def test_media_that_a_template_prints_as_json_are_omitted() -> None:
    template = ChatTemplate(
        "{{ messages[0].content if messages[0].content is string else messages[0].content | tojson }}"
    )
    rendered = template.render([Msg("Bob", [TextBlock("x"), IMAGE], "user")])
    assert (rendered.text, rendered.media, template.check().media) == ("x", (), frozenset())
    assert [item.place for item in rendered.omitted] == ["msgs[0].content[1]"]


def test_media_without_a_placeholder_and_opaque_blocks_are_omitted() -> None:
    audio = AudioBlock(Base64Source("audio/wav", "UklGRg=="))
    msg = Msg("Bob", [TextBlock("Hear "), audio, OpaqueBlock("openai", {"type": "x"})], "user")
    rendered = PARTS.render([msg])
    assert (rendered.text, rendered.media) == ("user:Hear ;", ())
    assert [(item.place, item.reason) for item in rendered.omitted] == [
        ("msgs[0].content[1]", "the chat template has no placeholder for audio blocks"),
        ("msgs[0].content[2]", "a chat template cannot write a block of the type opaque"),
    ]


def test_texts_that_the_template_does_not_write_are_omitted() -> None:
    rendered = ChatTemplate("{{ messages[0].content }}").render([USER, CALL, RESULT])
    assert [item.place for item in rendered.omitted] == [
        *(f"msgs[1].content[{index}]" for index in range(3)),
        "msgs[2].content[0]",
    ]


def test_thinking_and_calls_are_omitted_even_if_their_texts_stand_elsewhere() -> None:
    reply = ThinkingBlock("look"), TextBlock("I look."), ToolUseBlock("call_1", "look", {"q": "x"})
    msgs = [Msg("Bob", "Please look.", "user"), Msg("Friday", [*reply], "assistant")]
    rendered = ChatTemplate.builtin("chatml").render(msgs)
    assert [item.place for item in rendered.omitted] == ["msgs[1].content[0]", "msgs[1].content[2]"]


def test_a_template_that_changes_text_beside_media_leaves_their_place_unknown() -> None:
    template = ChatTemplate(
        "{% for part in messages[0].content %}{{ part.text | length if part.text else '<image>' }}|{% endfor %}"
    )
    assert [media.offset for media in template.render([Msg("Bob", [TextBlock("a"), IMAGE], "user")]).media] == [
        None
    ]


# -- options ----------------------------------------------------------------------------------------------------


def test_the_model_can_continue_the_last_message() -> None:
    template = ChatTemplate.builtin("im_start")
    rendered = template.render([USER, Msg("Friday", "The answer ", "assistant")], continue_final_message=True)
    assert rendered.text.endswith("assistant\nThe answer ")
    assert rendered.prompt_end == len(rendered.text)
    with pytest.raises(OptionError, match="add_generation_prompt=False"):
        template.render([USER], continue_final_message=True, add_generation_prompt=True)
    with pytest.raises(TemplateError, match="'thinking' to continue"):
        template.render([USER, CALL], continue_final_message="thinking")
    with pytest.raises(TemplateError, match="not in the rendered text"):
        ChatTemplate("content").render([USER], continue_final_message=True)


def test_the_time_is_an_argument() -> None:
    template = ChatTemplate("{{ strftime_now('%d %b %Y') }}")
    assert template.render([USER], now=datetime(2026, 11, 26)).text == "26 Nov 2026"
    assert template.render([USER]).text == datetime.now().strftime("%d %b %Y")


def test_variables_and_special_tokens_are_variables_of_the_template() -> None:
    template = ChatTemplate("{{ bos_token }}{{ mood }}{{ documents }}", special_tokens={"bos_token": "<s>"})
    assert template.render([USER], mood={"a": 1}).text == "<s>{'a': 1}None"
    assert template.render([USER], bos_token="!", documents=[{"title": "T"}]).text == "![{'title': 'T'}]"
    with pytest.raises(OptionError, match="messages"):
        template.render([USER], messages=[])
    with pytest.raises(OptionError, match=r"^strftime_now: .* Pass the time as `now`\."):
        template.render([USER], strftime_now=None)


@each_case(
    ("mode", "text"),
    [("keep", "Hi <|im_end|> <|im_start|>"), ("space", "Hi < |im_end|> < |im_start|>")],
)
def test_control_tokens_of_users_can_be_spaced_apart(mode: Any, text: str) -> None:
    msg = Msg("Bob", "Hi <|im_end|> <|im_start|>", "user")
    rendered = ChatTemplate.builtin("im_start").render([msg], on_special_tokens=mode, add_generation_prompt=False)
    assert rendered.text == f"<|im_start|>user\n{text}<|im_end|>\n"
    assert rendered.omitted == ()


@each_case(
    ("msg", "place"),
    [
        (Msg("Bob", [TextBlock("a"), TextBlock("x<|im_end|>")], "user"), "msgs[0].content[1]"),
        (Msg("<|im_end|>", "x", "user"), "msgs[0].name"),
        (Msg("Bob", [ToolResultBlock("c1", "look", "<|im_end|>")], "user"), "msgs[0].content[0]"),
    ],
)
def test_control_tokens_of_users_can_be_refused(msg: Msg, place: str) -> None:
    template = ChatTemplate.builtin("im_start")
    with pytest.raises(MessageError, match=r"<\|im_end\|>") as caught:
        template.render([msg], on_special_tokens="raise", validate=False)
    assert caught.value.place == place
    assert template.render([USER, Msg("Friday", "<|im_end|>", "assistant")], on_special_tokens="raise").text


@each_case(
    ("template", "tokens"),
    [
        (ChatTemplate.builtin("zephyr"), ["<|user|>", "<|system|>", "<|assistant|>", "</s>"]),
        (ChatTemplate.builtin("mistral"), ["<s>", "</s>", "[INST]", "[/INST]"]),
        (ChatTemplate.builtin("torchtune_llama_2"), ["<s>", "</s>", "[/INST]", "<<SYS>>"]),
        (ChatTemplate("[gMASK]<sop>{{ messages[0].content }}"), ["[gMASK]", "<sop>"]),
        (ChatTemplate("<|turn>{{ messages[0].content }}<turn|>[|end|]"), ["<|turn>", "<turn|>", "[|end|]"]),
        (
            ChatTemplate.from_function(lambda messages, _: "".join(f"<|{m['role']}|>" for m in messages)),
            ["<|user|>", "<|assistant|>", "<|system|>", "<|tool|>"],
        ),
    ],
)
def test_tokens_that_a_template_writes_are_known(template: ChatTemplate, tokens: list[str]) -> None:
    for token in tokens:
        msgs = [Msg("Bob", f"x {token} y", "user")]
        with pytest.raises(MessageError, match="the control token"):
            template.render(msgs, on_special_tokens="raise")
        assert f"x {token} y" not in template.render(msgs, on_special_tokens="space").text
    markup = [Msg("Bob", "<b>|x|</b> [TODO] List<int> a<b|c> <T>", "user")]
    assert template.render(markup, on_special_tokens="raise").spaced_places == ()


def test_tokens_of_each_named_template_are_known() -> None:
    built = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
    template = ChatTemplate("{{ messages[0].content }}", additional_templates={"tool_use": "</s>", "rag": built})
    for token in ("</s>", "<|user|>"):
        with pytest.raises(MessageError, match="the control token"):
            template.render([Msg("Bob", f"x {token} y", "user")], on_special_tokens="raise")


def test_a_declaration_of_a_tool_has_no_control_tokens() -> None:
    tool: Any = {"name": "look", "description": "<s>", "parameters": {"type": "object", "properties": {"<s>": {}}}}
    template = ChatTemplate("{{ tools | tojson }}", control_tokens=frozenset({"<s>"}))
    assert "<s>" not in template.render([USER], tools=[tool], on_special_tokens="space").text
    with pytest.raises(MessageError) as caught:
        template.render([USER], tools=[tool], on_special_tokens="raise")
    assert caught.value.place.startswith("tools[0].function")


@examples(200)
@given(st.lists(st.sampled_from(["<|a|>", "<", "|a|>", "a b", "ab", " ", "a"]), max_size=8))
def test_no_token_is_left_after_spacing(pieces: list[str]) -> None:
    tokens = frozenset({"<|a|>", "ab", "a b", "|a|>"})
    template = ChatTemplate("{{ messages[0].content }}", control_tokens=tokens)
    text = template.render([Msg("Bob", "".join(pieces), "user")], on_special_tokens="space").text
    assert not any(token in text for token in tokens)
    assert text.replace(" ", "") == "".join(pieces).replace(" ", "")


# -- choice of a template ---------------------------------------------------------------------------------------


@each_case("token", ["  ", " </s>", "</s> ", "\n\n"])
def test_white_space_around_a_control_token_is_no_token(token: str) -> None:
    template = ChatTemplate("{{ messages[0].content }}", control_tokens=frozenset({token}))
    text = template.render([Msg("Bob", "a  b\n\n </s> c", "user")], on_special_tokens="space").text
    assert text == ("a  b\n\n < /s> c" if "s" in token else "a  b\n\n </s> c")


def test_a_function_can_change_its_arguments() -> None:
    def write(messages: Any, variables: Any) -> str:
        for message in messages:
            for call in message.get("tool_calls", ()):
                call["function"]["arguments"] = json.dumps(call["function"]["arguments"])
        text = json.dumps([messages, variables["documents"]])
        messages.clear()
        return text

    reports = [ChatTemplate.from_function(write).check() for _ in range(2)]
    assert reports[0] == reports[1]
    assert reports[0].calls
    texts = "{% for m in messages %}{{ m.content }}{% for c in m.tool_calls %}{{ c.function.name }}"
    texts += "{{ c.function.arguments.word }}{% endfor %}{% endfor %}"
    assert ChatTemplate(texts).check().calls  # the report renders the conversations that the function changed


def test_a_lone_surrogate_of_a_template_is_an_error() -> None:
    for template in (ChatTemplate(r"{{ '\ud800' }}", name="half"), ChatTemplate("\ud800", name="half")):
        with pytest.raises(TemplateError, match=r"^half: the text has a lone surrogate"):
            template.render([USER])
    with pytest.raises(TemplateError, match="lone surrogate"):
        ChatTemplate.from_function(lambda messages, variables: "\ud800").render([USER])


def test_documents_keep_keys_that_spaces_make_equal() -> None:
    template = ChatTemplate("{{ documents[0] | tojson }}", control_tokens=frozenset({"<|x|>"}))
    documents = [{"<|x|>": 1, "< |x|>": 2, "< |x|> ": 3}]
    text = template.render([USER], documents=documents, on_special_tokens="space").text
    assert list(json.loads(text).values()) == [1, 2, 3]
    assert "<|x|>" not in text


def test_documents_have_no_control_tokens() -> None:
    template = ChatTemplate("{{ documents[0].text }}", control_tokens=frozenset({"</s>"}))
    documents = [{"title": "A", "text": "Hi.</s>"}]
    assert template.render([USER], documents=documents, on_special_tokens="space").text == "Hi.< /s>"
    with pytest.raises(MessageError, match=r"documents\[0\]\.text: the text contains the control token '</s>'"):
        template.render([USER], documents=documents, on_special_tokens="raise")


def test_a_template_is_chosen_by_name_or_for_tools() -> None:
    template = ChatTemplate("default", additional_templates={"tool_use": "tools", "rag": "rag"})
    assert template.render([USER]).text == "default"
    assert template.render([USER], tools=[look]).text == "tools"
    assert template.render([USER], tools=[look], chat_template="rag").text == "rag"
    for name in ("other", ""):
        with pytest.raises(OptionError, match="'default', 'rag', 'tool_use'"):
            template.render([USER], chat_template=name)
    with pytest.raises(OptionError, match=r"no template is named 'default' \(existing names: 'rag'\)"):
        ChatTemplate(None, additional_templates={"rag": "x"}).render([USER])


def test_a_function_can_write_the_text() -> None:
    def write(messages: Any, variables: Any) -> str:
        return f"{[message['role'] for message in messages]} {variables['add_generation_prompt']} {variables['x']}"

    template = ChatTemplate.from_function(write)
    assert template.render([USER, REPLY], x=1).text == "['user', 'assistant'] False 1"
    with pytest.raises(TemplateError, match="must return a string"):
        ChatTemplate.from_function(lambda messages, variables: 3).render([USER])  # type: ignore[arg-type, return-value]


def test_tags_are_written_around_messages() -> None:
    template = ChatTemplate.from_tags({"user": ('U"\\{{: ', "\n"), "assistant": ("A: ", "")})
    rendered = template.render([USER, REPLY, RESULT])
    assert rendered.text == 'U"\\{{: Where?\nA: There.found'
    assert [rendered.text[start:end] for start, end in rendered.spans] == ["A: There."]
    wrapped = template.wrap([USER, REPLY, RESULT])
    assert [block.text for block in wrapped[0].blocks if isinstance(block, TextBlock)] == [
        'U"\\{{: ',
        "Where?",
        "\n",
    ]
    assert wrapped[2] == RESULT
    assert "".join(msg.text.replace("\n", "") for msg in wrapped[:2]) == rendered.text.replace("\n", "")[:-5]
    with pytest.raises(OptionError, match="from_tags"):
        SHOW.wrap([USER])
    for tags in ({"bot": ("", "")}, {"user": ("a",)}, {"user": ("a", 1)}, {"user": "ab c"}, [("user", ("", ""))]):
        with pytest.raises(OptionError, match="tags"):
            ChatTemplate.from_tags(tags)  # type: ignore[arg-type]


# -- errors -----------------------------------------------------------------------------------------------------


@each_case(
    ("source", "reason", "line"),
    [
        ("a\n{{ raise_exception('No system role.') }}", "No system role.", 2),
        ("{{ messages[0].content + missing }}", "missing", 1),
        ("{{ raise_exception('No.') }}\n\n\n{{ 'a' }}\n", "No.", 1),
        ("{% for m in messages %}\n{{ m.role }}\n{{ raise_exception('No.') }}\n\n{{ 1 }}{% endfor %}", "No.", 3),
        ("{{ messages[0].content.missing.x }}", "missing", 1),
        ("{% for m in messages %}{{ m.append(1) }}{% endfor %}", "append", 1),
        ("{{ ''.__class__ }}{{ ''.__class__.x }}", "__class__", 1),
        ("{{ namespace(_x=1) }}", "_x", 1),
    ],
)
def test_an_error_of_a_template_has_its_line(source: str, reason: str, line: int) -> None:
    with pytest.raises(TemplateError, match=reason) as caught:
        ChatTemplate(source, name="qwen").render([USER])
    assert caught.value.place == f"qwen, line {line}"


def test_an_invalid_template_is_refused_before_it_is_used() -> None:
    with pytest.raises(TemplateError, match=r"^qwen, line 2: "):
        ChatTemplate("a\n{% if %}", name="qwen")
    with pytest.raises(TemplateError, match="bad"):
        ChatTemplate("x", additional_templates={"bad": "{% bad %}"})
    with pytest.raises(TemplateError):
        ChatTemplate("{{" + "(" * 5_000 + ")" * 5_000 + "}}")


def test_invalid_messages_and_options_are_refused() -> None:
    with pytest.raises(EmptyConversationError):
        SHOW.render([])
    with pytest.raises(MessageError, match=r"msgs\[1\]"):
        SHOW.render([USER, {"role": "user"}])  # type: ignore[list-item]
    with pytest.raises(MessageError, match=r"Use load_native\('openai', …\)"):
        SHOW.render([{"role": "user", "content": "Hi."}])  # type: ignore[list-item]
    with pytest.raises(OptionError, match="on_special_tokens"):
        SHOW.render([USER], on_special_tokens="drop")  # type: ignore[arg-type]
    wrong: dict[str, Any] = {"documents": "x", "validate": "x", "add_generation_prompt": "yes"}
    wrong["continue_final_message"] = 3
    for name, value in wrong.items():
        with pytest.raises(OptionError, match=f"^{name}: expected "):
            SHOW.render([USER], **{name: value})
    with pytest.raises(OptionError, match="jinja"):
        ChatTemplate(3)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="now: expected datetime, got str"):
        SHOW.render([USER], now="today")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="documents: expected a list, got int"):
        SHOW.render([USER], documents=3)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"special_tokens\['bos_token'\]: expected str, got dict"):
        ChatTemplate("", special_tokens={"bos_token": {"content": "<s>"}})  # type: ignore[dict-item]
    with pytest.raises(OptionError, match=r"special_tokens: expected str, got int"):
        ChatTemplate("", special_tokens={5: "a"})  # type: ignore[dict-item]
    with pytest.raises(OptionError, match=r"additional_templates: expected str, got int"):
        ChatTemplate("", additional_templates={5: "a"})  # type: ignore[dict-item]


@each_case(
    ("jinja", "arguments", "error"),
    [
        (None, {}, "jinja: expected the text of a template, got None. Pass `jinja`, `additional_templates` or "),
        ("a", {"additional_templates": {"default": "b"}}, "additional_templates['default']: `jinja` is already"),
        ("a", {"function": len}, "function: cannot be combined with `jinja` or `additional_templates`"),
        (None, {"additional_templates": {"rag": "a"}, "function": len}, "function: cannot be combined with "),
        ("a", {"tags": {"user": ("U: ", "")}}, "tags: `jinja` is not the template that writes these tags"),
        (None, {"tags": {}, "function": len}, "tags: `jinja` is not the template that writes these tags"),
        (None, {"function": 5}, "function: expected Callable, got int 5. Pass a function that takes the messages"),
        ("a", {"name": 5}, "name: expected str, got int 5"),
        ("a", {"adds_bos": "yes"}, "adds_bos: expected bool, got str 'yes'"),
        ("{% bad", {"adds_bos": "yes"}, "adds_bos: expected bool, got str 'yes'"),
        ("a", {"validates": "x"}, "validates: expected bool, got str 'x'"),
        ("a", {"response_template": 5}, "response_template: expected Mapping, got int 5"),
        ("a", {"tags": 5}, "tags: expected Mapping, got int 5"),
        ("a", {"tags": {"user": 5}}, "tags['user']: expected two strings, got 5"),
        ("a", {"tags": {"bot": ("", "")}}, "tags['bot']: there is no role with this name"),
        (
            "a",
            {"control_tokens": "<|im_end|>"},
            "control_tokens: expected Set | list | tuple, got str '<|im_end|>'",
        ),
        (
            "a",
            {"special_tokens": {"messages": "x"}},
            "special_tokens['messages']: a special token cannot have the",
        ),
    ],
)
def test_wrong_arguments_and_contradictions_are_refused(
    jinja: str | None, arguments: dict[str, Any], error: str
) -> None:
    with pytest.raises(OptionError) as caught:
        ChatTemplate(jinja, **arguments)
    assert str(caught.value).startswith(error)


def test_a_dict_that_changes_later_does_not_change_the_template() -> None:
    tokens, others, tags = {"bos_token": "<s>"}, {"rag": "rag"}, {"user": ("U: ", "\n")}
    declaration: dict[str, Any] = {"start_anchor": "A:", "fields": {"content": {}}}
    template = ChatTemplate(
        "{{ bos_token }}",
        special_tokens=tokens,
        additional_templates=others,
        response_template=declaration,
    )
    tagged = ChatTemplate.from_tags(tags)
    tokens["bos_token"], others["rag"], tags["user"] = "!", "{% bad %}", ("", "")
    declaration["fields"]["content"] = {"close": "x"}
    assert template.render([USER]).text == "<s>"
    assert template.render([USER], chat_template="rag").text == "rag"
    assert tagged.tags == {"user": ("U: ", "\n")}
    assert template.response_template == {"start_anchor": "A:", "fields": {"content": {}}}


def test_a_declaration_of_replies_that_is_nested_deeply_is_read() -> None:
    nested: Any = []
    for _ in range(3_000):
        nested = [nested]
    declaration: dict[str, Any] = {"fields": {"content": {}}, "x": nested}
    assert ChatTemplate("", response_template=declaration).response_template is not None
    cyclic: dict[str, Any] = {"fields": {}}
    cyclic["x"] = cyclic
    assert ChatTemplate("", response_template=cyclic).response_template is not None


def test_named_templates_can_contain_the_default_template() -> None:
    template = ChatTemplate(None, additional_templates={"default": "a", "rag": "b"})
    assert template.render([USER]).text == "a"
    assert template.render([USER], chat_template="rag").text == "b"


def test_templates_are_equal_after_pickling_and_inputs_do_not_change() -> None:
    template = ChatTemplate.builtin("zephyr")
    report = template.check()
    copied: ChatTemplate = pickle.loads(pickle.dumps(template))
    assert (copied.jinja, copied.check()) == (template.jinja, report)
    msgs = [USER, CALL, RESULT]
    before = [msg.to_dict() for msg in msgs]
    assert SHOW.render(msgs).text == SHOW.render(msgs).text
    assert [msg.to_dict() for msg in msgs] == before


def test_two_texts_cannot_form_a_control_token() -> None:
    template = ChatTemplate.from_tags({"user": ("<|im_start|>", "<|im_end|>")})
    msgs = [Msg("Bob", [TextBlock(text="<|im_"), TextBlock(text="end|>")], "user")]
    rendered = template.render(msgs, on_special_tokens="space")
    assert rendered.text == "<|im_start|><|im_ end|><|im_end|>"
    assert (rendered.omitted, rendered.spaced_places) == ((), ("msgs[0].content[1]",))
    place = r"msgs\[0\]\.content\[1\]: the text contains"
    with pytest.raises(MessageError, match=place):
        template.check_control_tokens(msgs)
    with pytest.raises(MessageError, match=place):
        template.render(msgs, on_special_tokens="raise")


def test_an_error_of_a_function_is_a_template_error() -> None:
    template = ChatTemplate.from_function(lambda messages, variables: messages[9]["content"])
    with pytest.raises(TemplateError, match="the function raised IndexError") as caught:
        template.render([USER])
    assert isinstance(caught.value.__cause__, IndexError)
    assert not template.check().system
