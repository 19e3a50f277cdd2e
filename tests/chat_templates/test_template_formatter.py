"""`ChatTemplate.formatter`: the pipeline repairs what a template refuses, and the ledger lists the changes."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any, Final, cast

import pytest
import tokenizers
from tokenizers import models, pre_tokenizers

from agentkit import (
    Budget,
    DocumentBlock,
    HuggingFaceTokenCounter,
    LossError,
    MessageError,
    Msg,
    MultiAgentHistory,
    OptionError,
    TemplateError,
    TextBlock,
    ThinkingBlock,
    Tool,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
    load_provider,
)
from agentkit.chat_templates import ChatTemplate, ChatTemplateFormatter
from tests.cases import each_case
from tests.chat_templates.test_template_report import (
    ALTERNATING,
    CALLS,
    EITHER,
    FIRST_IS_USER,
    LAST_SYSTEM,
    NAMES,
    NEEDS_USER,
    NINE,
    SYSTEM_OF_USER,
    THINKING,
)
from tests.conftest import dispositions, ledger_lines

pytestmark = pytest.mark.anyio

SYSTEM: Final = Msg("system", "Be brief.", "system")
BOB: Final = Msg("Bob", "Where?", "user")
EVE: Final = Msg("Eve", "When?", "user")
REPLY: Final = Msg("Friday", "There.", "assistant")
CALL: Final = Msg("Friday", [ThinkingBlock("Hm."), ToolUseBlock("call_0123456", "look", {"q": "x"})], "assistant")
RESULT: Final = Msg("system", [ToolResultBlock("call_0123456", "look", "found")], "system")


def look(q: str) -> str:
    """Looks."""
    return q


async def test_the_request_is_the_prompt() -> None:
    template = ChatTemplate.builtin("im_start")
    plan = await template.formatter().plan([SYSTEM, BOB, REPLY])
    assert plan.request == {"prompt": template.render([SYSTEM, BOB, REPLY], add_generation_prompt=True).text}


async def test_many_speakers_are_lines_of_one_turn() -> None:
    formatter = ChatTemplate.builtin("zephyr").formatter(history=MultiAgentHistory(viewer="Friday"))
    request = await formatter.format([SYSTEM, BOB, EVE, REPLY, BOB])
    assert request["prompt"].count("<|user|>") == 2
    assert "Bob: Where?\nEve: When?" in request["prompt"]
    assert request["prompt"].endswith("</history></s>\n<|assistant|>\n")


def test_turns_alternate_and_the_system_prompt_moves_if_the_template_requires_it() -> None:
    plan = ChatTemplate(ALTERNATING).formatter().lower([SYSTEM, BOB, EVE, REPLY])
    assert plan.request == {"prompt": "Be brief.\nWhere?\nWhen?</s>There.</s>"}
    assert dispositions(plan) == {
        "msgs[0].content[0]": "moved",
        "msgs[1].content[0]": "carried",
        "msgs[2].content[0]": "merged",
        "msgs[3].content[0]": "carried",
    }


def test_texts_beside_calls_are_in_the_prompt_or_in_the_ledger() -> None:
    thinking, tool_use = CALL.blocks
    call = Msg("Friday", [thinking, TextBlock("I look."), tool_use], "assistant")
    formatter = ChatTemplate(EITHER).formatter()
    plan = formatter.lower([BOB, call, RESULT])
    assert "I look.look" in plan.request["prompt"]
    reason = "the API accepts no thinking in a message with tool calls and text"
    assert f"1.0 dropped: {reason}" in "\n".join(ledger_lines(plan))
    assert plan.ledger.losses == []
    plan = formatter.lower([BOB, call, RESULT, REPLY, EVE])
    assert "I look." not in plan.request["prompt"]
    assert ("msgs[1].content[1]", "the chat template does not write this content") in plan.ledger.losses
    with pytest.raises(LossError) as caught:
        ChatTemplate(EITHER).formatter(on_loss="raise").lower([BOB, call, RESULT, REPLY, EVE])
    assert ("msgs[1].content[1]", "the chat template does not write this content") in caught.value.losses


def test_a_user_turn_is_added_if_the_template_requires_one() -> None:
    formatter = ChatTemplate(FIRST_IS_USER).formatter()
    plan = formatter.lower([CALL, RESULT], tools=[look])
    assert plan.request["prompt"].startswith("user: (The conversation begins here.)")
    assert 'look {"q": "x"}' in plan.request["prompt"]
    for msgs in ([SYSTEM], [SYSTEM, REPLY]):
        plan = ChatTemplate(NEEDS_USER).formatter().lower(msgs)
        assert "user: (" in plan.request["prompt"]
        assert [synthesis.name for synthesis in plan.ledger.syntheses] == ["filler turn"]


def test_system_messages_that_a_template_would_omit_are_written() -> None:
    late = Msg("system", "Be late.", "system")
    for source in (LAST_SYSTEM, SYSTEM_OF_USER):
        for msgs in ([SYSTEM, BOB, REPLY, late, BOB], [SYSTEM, REPLY, BOB], [SYSTEM]):
            plan = ChatTemplate(source).formatter().lower(msgs)
            assert all(msg.text in plan.request["prompt"] for msg in msgs)
            assert not plan.ledger.losses


@each_case("name", ["Bob", "Mr Smith", "x" * 80, "a<b", "é\n"])
def test_names_that_the_template_writes_are_not_omitted(name: str) -> None:
    msgs = [SYSTEM, Msg(name, "Where?", "user"), EVE, CALL, RESULT, REPLY, Msg(name, "Hi.", "user")]
    plan = ChatTemplate(NAMES).formatter(on_loss="raise").lower(msgs)
    for line in (f"{name}, user: Where?", "Eve, user: When?", "Friday, assistant: There.", f"{name}, user: Hi."):
        assert line in plan.request["prompt"]
    assert "name" not in "".join(ledger_lines(plan))


@each_case(
    "source",
    [
        "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}",
        NAMES.replace("m.name", "(m.name if m.role == 'user')"),
        NAMES.replace("m.name", "(m.name if not m.tool_calls)"),
    ],
)
def test_names_that_the_template_does_not_write_are_losses(source: str) -> None:
    template = ChatTemplate(source)
    assert not template.capabilities().turns.speaker_names
    with pytest.raises(LossError, match="speaker name 'Bob' omitted"):
        template.formatter(on_loss="raise").lower([BOB, EVE, REPLY, Msg("Jo", "Here.", "assistant")])


def test_the_name_in_a_system_message_is_in_the_prompt_or_in_the_ledger() -> None:
    late = Msg("Clock", "It is noon.", "system")
    reason = "speaker name 'Clock' omitted: the API has no field for it"
    for source, is_written in ((NAMES, True), (NAMES.replace("m.name", "(m.name if m.role != 'system')"), False)):
        for msgs in ([BOB, late, EVE], [late, BOB, EVE]):
            plan = ChatTemplate(source).formatter().lower(msgs)
            assert "Bob, user: Where?" in plan.request["prompt"]
            assert ("Clock, system: It is noon." in plan.request["prompt"]) is is_written
            assert (reason in "\n".join(ledger_lines(plan))) is not is_written


def test_a_turn_of_several_speakers_has_their_names_as_losses() -> None:
    template = ChatTemplate(ALTERNATING.replace("{{ m.content", "{{ m.name }}: {{ m.content"))
    assert template.check().named_roles == {"user", "assistant"}
    with pytest.raises(LossError, match="speaker name 'Bob' omitted"):
        template.formatter(on_loss="raise").lower([BOB, EVE])


async def test_control_tokens_are_refused_with_their_place_before_any_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a file is read")

    monkeypatch.setattr("agentkit.formatting.request_builder.load_media", refuse)
    document = Msg("Bob", [DocumentBlock(URLSource((tmp_path / "notes.txt").as_uri()))], "user")
    formatter = ChatTemplate.builtin("zephyr").formatter(on_special_tokens="raise", media_roots=[tmp_path])
    for msgs in ([document, Msg("Bob", "a</s>b", "user")], [document, Msg("a</s>b", "Hi.", "user")]):
        with pytest.raises(MessageError, match=r"^msgs\[1\]\.(content\[0\]|name): .*'</s>'"):
            await formatter.plan(msgs)
    with pytest.raises(MessageError, match=r"^tools\[0\].*'</s>'"):
        formatter.lower([BOB], tools=[Tool("look", "Looks.</s>", {"type": "object"})])
    several = ChatTemplate.builtin("zephyr").formatter(
        on_special_tokens="raise", history=MultiAgentHistory(viewer="Friday")
    )
    with pytest.raises(MessageError, match=r"^msgs\[1\]\.content\[0\]: "):  # a line of the history frame
        several.lower([BOB, Msg("Eve", "a</s>b", "assistant")])
    with pytest.raises(OptionError, match="on_special_tokens"):
        ChatTemplate.builtin("zephyr").formatter(on_special_tokens=cast("Any", "drop"))


def test_spaces_inside_control_tokens_are_in_the_ledger() -> None:
    formatter = ChatTemplate.builtin("zephyr").formatter(on_special_tokens="space")
    plan = formatter.lower([BOB, REPLY, Msg("Bob", "a</s>b", "user")])
    assert "a< /s>b" in plan.request["prompt"]
    assert "2.0 carried: a space added inside each control token of the text" in "\n".join(ledger_lines(plan))


def test_spaces_inside_a_name_are_in_the_ledger_at_the_message_of_the_speaker() -> None:
    one_system = "{% if m.role == 'system' and not loop.first %}{{ raise_exception('one system') }}{% endif %}"
    source = f"{{% for m in messages %}}{one_system}{{{{ m.name }}}}: {{{{ m.content }}}}</s>{{% endfor %}}"
    msgs = [SYSTEM, Msg("system", "Be kind.", "system"), Msg("x</s>y", "Hi.", "user")]
    plan = ChatTemplate(source).formatter(on_special_tokens="space").lower(msgs)
    assert plan.request["prompt"].endswith("x< /s>y: Hi.</s>")
    lines = "\n".join(ledger_lines(plan))
    assert "2.0 carried: a space added inside each control token of the speaker name" in lines
    assert not plan.ledger.syntheses


def test_calls_become_texts_if_the_template_has_no_roles_for_them() -> None:
    plan = ChatTemplate.builtin("zephyr").formatter().lower([BOB, CALL, RESULT], tools=[look])
    assert "(calls look" in plan.request["prompt"]
    reasons = [synthesis.reason for synthesis in plan.ledger.syntheses]
    assert "the chat template 'zephyr' cannot declare tools, so 'look' cannot be called" in reasons


def test_calls_and_tools_are_written_by_the_template() -> None:
    plan = ChatTemplate(CALLS).formatter().lower([BOB, CALL, RESULT], tools=[look])
    assert 'look {"q": "x"}' in plan.request["prompt"]
    assert '"description": "Looks."' in plan.request["prompt"]
    assert not plan.ledger.losses


def test_call_ids_have_nine_characters_if_the_template_requires_it() -> None:
    plan = ChatTemplate(NINE).formatter().lower([BOB, CALL, RESULT])
    assert 'look {"q": "x"}' in plan.request["prompt"]
    assert plan.call_ids


def test_thinking_that_the_template_does_not_write_is_in_the_ledger() -> None:
    formatter = ChatTemplate(THINKING).formatter()
    thought = Msg("Friday", [ThinkingBlock("Hm."), *REPLY.blocks], "assistant")
    plan = formatter.lower([BOB, thought, EVE, thought])
    assert plan.request == {"prompt": "Where?There.When?<think>Hm.</think>There."}
    lines = ledger_lines(plan)
    assert "1.0 dropped: the API ignores thinking in all messages except the last" in [
        line.partition(";")[0] for line in lines
    ]


def test_texts_beside_calls_that_the_template_does_not_write_are_losses() -> None:
    source = "{% for m in messages %}{{ m.tool_calls | tojson if m.tool_calls else m.content }};{% endfor %}"
    blocks = TextBlock("I look."), TextBlock(" "), ToolUseBlock("c1", "look", {"q": "x"})
    msgs = [
        BOB,
        Msg("Friday", [*blocks], "assistant"),
        Msg("system", [ToolResultBlock("c1", "look", "found")], "system"),
    ]
    formatter = ChatTemplate(source).formatter()
    plan = formatter.lower(msgs)
    assert "I look." not in plan.request["prompt"]
    assert plan.ledger.losses == [("msgs[1].content[0]", "the API accepts no text in a message with tool calls")]
    with pytest.raises(LossError, match=r"msgs\[1\]\.content\[0\]"):
        ChatTemplate(source).formatter(on_loss="raise").lower(msgs)
    assert not ChatTemplate(CALLS).formatter().lower(msgs).ledger.losses


async def test_a_budget_cuts_the_oldest_messages() -> None:
    template = ChatTemplate.builtin("im_start")
    msgs = [SYSTEM, *(Msg("Bob", f"Message {index} " + "x" * 400, "user") for index in range(20))]
    plan = await template.formatter(budget=Budget(600)).plan(msgs)
    assert "Be brief." in plan.request["prompt"]
    assert "Message 19" in plan.request["prompt"]
    assert "Message 3" not in plan.request["prompt"]
    assert plan.tokens is not None
    assert 0 < plan.tokens <= 600


def test_variables_are_passed_to_the_template() -> None:
    template = ChatTemplate("{{ messages[0].content }}{{ mood }}")
    for formatter in (
        ChatTemplateFormatter(template=template, variables={"mood": "!"}),
        template.formatter(variables={"mood": "!"}),
    ):
        assert formatter.lower([BOB]).request == {"prompt": "Where?!"}
    refused = ("tools", "messages", "msgs", "add_generation_prompt", "continue_final_message", "validate")
    for name in refused:
        with pytest.raises(OptionError, match=rf"^variables\.{name}: the formatter sets this variable"):
            template.formatter(variables={name: None})
    with pytest.raises(OptionError, match=r"^variables\.strftime_now: .* Pass the time as `now`\."):
        template.formatter(variables={"strftime_now": None})
    assert template.formatter(variables={"self": 1}).lower([BOB]).request == {"prompt": "Where?"}
    with pytest.raises(OptionError, match=r"^variables: expected str, got int"):
        template.formatter(variables=cast("Any", {5: 1}))


def test_a_template_that_refuses_all_conversations_is_an_error() -> None:
    with pytest.raises(TemplateError, match="never"):
        ChatTemplate("{{ raise_exception('never') }}").formatter().lower([BOB])


async def test_the_count_of_a_prompt_is_the_count_of_its_text(tmp_path: Path) -> None:
    tokenizer = cast("Any", tokenizers).Tokenizer(models.WordLevel({"?": 0, "<|im_start|>": 1}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(["<|im_start|>", "<|im_end|>"])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    template = ChatTemplate.builtin("im_start")
    counter = HuggingFaceTokenCounter(tmp_path, chat_template=template)
    plan = await template.formatter(budget=Budget(500, counter=counter)).plan([SYSTEM, BOB, REPLY, EVE])
    assert plan.tokens == len(tokenizer.encode(plan.request["prompt"], add_special_tokens=False).ids)
    openai = load_provider("openai")
    request = await openai.chat_formatter().format([SYSTEM, BOB])
    count = counter.measure(request, openai)
    expected = len(tokenizer.encode(template.render([SYSTEM, BOB]).text, add_special_tokens=False).ids)
    assert (count, count.estimated) == (expected, ())
    assert pickle.loads(pickle.dumps(counter)).measure(request, openai) == count
