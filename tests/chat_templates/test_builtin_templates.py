"""Built-in templates: each sentence about the layouts of LangChain and torchtune is a row."""

from __future__ import annotations

from typing import Final, NamedTuple

import pytest

from agentkit import Msg, OptionError, TextBlock, ToolResultBlock
from agentkit.chat_templates import ChatTemplate
from agentkit.chat_templates.builtin_templates import BUILTIN_NAMES
from tests.cases import each_case

S: Final = Msg("system", "s", "system")
U: Final = Msg("Bob", "u", "user")
A: Final = Msg("Friday", "a", "assistant")
T: Final = Msg("system", [ToolResultBlock("c1", "look", "t")], "system")
TWO: Final = Msg("Bob", [TextBlock(" u"), TextBlock("v ")], "user")


class Row(NamedTuple):
    """Text that a template writes for messages. `prompt` is `add_generation_prompt`."""

    name: str
    msgs: tuple[Msg, ...]
    text: str
    prompt: bool | None = None


ROWS: Final = (
    Row("inst", (U,), "<s>[INST] u [/INST]"),
    Row("inst", (S, U), "<s>[INST] s u [/INST]"),
    Row("inst", (S, U, A, U), "<s>[INST] s u [/INST]a</s> [INST] u [/INST]"),
    Row("inst", (U, A), "<s>[INST] u [/INST]a</s> ", prompt=True),
    Row("inst", (U, T), "<s>[INST] u [/INST]"),
    Row("zephyr", (S, U), "<|system|>\ns</s>\n<|user|>\nu</s>\n<|assistant|>\n"),
    Row("zephyr", (U, A), "<|user|>\nu</s>\n<|assistant|>\na</s>\n"),
    Row("zephyr", (U, A), "<|user|>\nu</s>\n<|assistant|>\na</s>\n<|assistant|>\n", prompt=True),
    Row("zephyr", (U,), "<|user|>\nu</s>\n", prompt=False),
    Row("zephyr", (U, A, T), "<|user|>\nu</s>\n<|assistant|>\na</s>\n<|assistant|>\n"),
    Row(
        "im_start",
        (S, U),
        "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\n",
    ),
    Row("im_start", (U, A), "<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\na<|im_end|>\n"),
    Row("chatml", (U,), "<|im_start|>user\nu<|im_end|>\n", prompt=False),
    Row("im_start", (TWO,), "<|im_start|>user\n u\n\nv <|im_end|>\n", prompt=False),
    Row("llama_2", (U,), "<s>[INST] u [/INST] "),
    Row("llama_2", (S, U), "<s>[INST] <<SYS>>\ns\n<</SYS>>\n\nu [/INST] "),
    Row("llama_2", (S, U, A, U), "<s>[INST] <<SYS>>\ns\n<</SYS>>\n\nu [/INST] a </s><s>[INST] u [/INST] "),
    Row("llama_2", (U, A), "<s>[INST] u [/INST] a </s>", prompt=True),
    Row(
        "llama_3",
        (S, U),
        "<|begin_of_text|>\n<|start_header_id|>system<|end_header_id|>\n\ns<|eot_id|>\n"
        "<|start_header_id|>user<|end_header_id|>\n\nu<|eot_id|>\n<|start_header_id|>assistant<|end_header_id|>\n\n",
    ),
    Row(
        "llama_3",
        (U, A),
        "<|begin_of_text|>\n<|start_header_id|>user<|end_header_id|>\n\nu<|eot_id|>\n"
        "<|start_header_id|>assistant<|end_header_id|>\n\na<|eot_id|>\n",
    ),
    Row(
        "phi_4",
        (S, U, A, U),
        "<|im_start|>system<|im_sep|>s<|im_end|><|im_start|>user<|im_sep|>u<|im_end|>"
        "<|im_start|>assistant<|im_sep|>a<|im_end|><|im_start|>user<|im_sep|>u<|im_end|>"
        "<|im_start|>assistant<|im_sep|>\n",
    ),
    Row("phi_4", (U,), "<|im_start|>user<|im_sep|>u<|im_end|><|im_start|>assistant<|im_sep|>\n", prompt=False),
    Row("mistral", (U, A, U), "[INST] u [/INST] a[INST] u [/INST] "),
    Row("torchtune_llama_2", (U, A), "[INST] u [/INST] a"),
    Row(
        "torchtune_llama_2",
        (S, U, A, U),
        "[INST] <<SYS>>\ns\n<</SYS>>\n\nu [/INST] a[INST] <<SYS>>\ns\n<</SYS>>\n\nu [/INST] ",
    ),
    Row("torchtune_chatml", (S, U), "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nu<|im_end|>\n"),
    Row("torchtune_chatml", (U, A), "<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\na<|im_end|>\n"),
    Row(
        "torchtune_chatml",
        (U, Msg("Friday", "", "assistant")),
        "<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\n",
    ),
    Row("torchtune_chatml", (U, A, T), "<|im_start|>user\nu<|im_end|>\n<|im_start|>assistant\na<|im_end|>\nt"),
    Row("torchtune_chatml", (TWO,), "<|im_start|>user\n uv <|im_end|>\n"),
)


@each_case("row", ROWS)
def test_a_built_in_template_writes_the_layout(row: Row) -> None:
    template = ChatTemplate.builtin(row.name)
    assert template.render(row.msgs, add_generation_prompt=row.prompt, validate=False).text == row.text


@each_case("name", BUILTIN_NAMES)
def test_a_reply_and_its_end_token_are_a_span(name: str) -> None:
    ends = {"inst": "</s>", "zephyr": "</s>", "llama_2": " </s>", "llama_3": "<|eot_id|>"}
    rendered = ChatTemplate.builtin(name).render([U, A, U, A])
    spans = [rendered.text[start:end] for start, end in rendered.spans]
    expected = "a" + ends.get(name, "<|im_end|>")
    if name in ("mistral", "torchtune_llama_2"):
        expected = "a"
    elif name == "torchtune_chatml":
        expected = "<|im_start|>assistant\na<|im_end|>\n"
    assert spans == [expected] * 2


def test_mistral_refuses_a_system_message_and_unknown_names_are_refused() -> None:
    from agentkit import TemplateError

    with pytest.raises(TemplateError, match="System prompts are not supported"):
        ChatTemplate.builtin("mistral").render([S, U])
    with pytest.raises(OptionError, match="zephyr"):
        ChatTemplate.builtin("zefyr")


@each_case("name", [name for name in BUILTIN_NAMES if name != "torchtune_chatml"])
def test_the_text_of_the_first_messages_begins_the_text_of_all_messages(name: str) -> None:
    msgs = [U, A, U, A]
    texts = [
        ChatTemplate.builtin(name).render(msgs[:index], add_generation_prompt=False).text.rstrip("\n")
        for index in range(1, 5)
    ]
    assert all(texts[-1].startswith(text) for text in texts)
