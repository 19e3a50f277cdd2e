"""Training data against torchtune (masks, truncation), trl (training templates) and `datasets` (exports)."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from itertools import count, product
from pathlib import Path
from typing import Any, Final, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentkit import (
    ImageBlock,
    MessageError,
    Msg,
    TextBlock,
    ThinkingBlock,
    Tool,
    ToolResultBlock,
    ToolUseBlock,
    URLSource,
)
from agentkit.chat_templates import ChatTemplate
from agentkit.training import Sample, TokenizedSample, dump_rows, load_rows, split_rewritten, tokenize
from agentkit.training.generation_prompt import find_generation_prompts
from tests.conformance.training_packages import VARIABLE
from tests.training.templates import MARKED, encode
from tests.training.test_rows import SAMPLES

ORACLE: Final = os.environ[VARIABLE]
"""Interpreter of an environment with trl and torchtune."""

datasets: Final[Any] = import_module("datasets")


# -- torchtune ---------------------------------------------------------------------------------------------------

_SPECIAL: Final = [
    "<|im_start|>",
    "<|im_end|>",
    "<|im_sep|>",
    "<tool_call>",
    "</tool_call>",
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|python_tag|>",
    "<|endoftext|>",
    "<|image|>",
]
SPECIAL: Final = {token: 0x200000 + number for number, token in enumerate(_SPECIAL)}
_PIECES: Final = re.compile("|".join(map(re.escape, SPECIAL)) + "|.", re.DOTALL)


def encode_special(text: str) -> tuple[list[int], list[tuple[int, int]]]:
    """Encodes each special token and each other character as one token."""
    found = [*_PIECES.finditer(text)]
    return [SPECIAL.get(piece[0]) or ord(piece[0]) for piece in found], [piece.span() for piece in found]


QWEN: Final = ChatTemplate(
    "{% for message in messages %}"
    "{% if message.role == 'tool' %}"
    "{% if loop.first or messages[loop.index0 - 1].role != 'tool' %}{{ '<|im_start|>user\n' }}{% else %}{{ '\n' }}"
    "{% endif %}{{ '<tool_response>\n' ~ message.content ~ '\n</tool_response>' }}"
    "{% if loop.last or messages[loop.index0 + 1].role != 'tool' %}{{ '<|im_end|>\n' }}{% endif %}"
    "{% elif message.role == 'assistant' %}{{ '<|im_start|>assistant\n' }}{% generation %}"
    "{% for call in message.tool_calls or [] %}{{ '<tool_call>\n' }}"
    "{{ {'name': call.function.name, 'arguments': call.function.arguments} | tojson }}{{ '\n</tool_call>' }}"
    "{% endfor %}{{ message.content }}{% if not loop.last %}{{ '<|im_end|>\n' }}{% else %}<|im_end|>{% endif %}"
    "{% endgeneration %}"
    "{% else %}{{ '<|im_start|>' ~ message.role ~ '\n' ~ message.content ~ '<|im_end|>\n' }}{% endif %}"
    "{% endfor %}{% if messages[-1].role != 'assistant' %}<|im_end|>{% endif %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    name="qwen2_5",
    special_tokens={"eos_token": "<|im_end|>"},
)
LLAMA: Final = ChatTemplate(
    "<|begin_of_text|>{% for message in messages %}"
    "{% set role = 'ipython' if message.role == 'tool' else message.role %}"
    "{{ '<|start_header_id|>' ~ role ~ '<|end_header_id|>\n\n' }}"
    "{% if message.role == 'assistant' %}{% generation %}"
    "{% for call in message.tool_calls or [] %}<|python_tag|>"
    "{{ {'name': call.function.name, 'arguments': call.function.arguments} | tojson }}{% endfor %}"
    "{{ message.content | trim }}{{ '<|eom_id|>' if message.tool_calls else '<|eot_id|>' }}{% endgeneration %}"
    "{% else %}{{ message.content | trim }}{{ '<|eom_id|>' if message.role == 'tool' else '<|eot_id|>' }}"
    "{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}"
    "{% else %}<|end_of_text|>{% endif %}",
    name="llama3",
    special_tokens={"bos_token": "<|begin_of_text|>", "eos_token": "<|end_of_text|>"},
)
PHI: Final = ChatTemplate(
    "{% for message in messages %}{{ '<|im_start|>' ~ message.role ~ '<|im_sep|>' }}"
    "{% if message.role == 'assistant' %}{% generation %}{{ message.content ~ '<|im_end|>' }}{% endgeneration %}"
    "{% else %}{{ message.content ~ '<|im_end|>' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant<|im_sep|>{% endif %}",
    name="phi4",
    special_tokens={"eos_token": "<|im_end|>"},
)
LAYOUTS: Final[dict[str, tuple[ChatTemplate, dict[str, str], dict[str, Any]]]] = {
    "qwen2_5": (
        QWEN,
        {
            "im_start_id": "<|im_start|>",
            "im_end_id": "<|im_end|>",
            "eos_id": "<|im_end|>",
            "tool_call_start_id": "<tool_call>",
            "tool_call_end_id": "</tool_call>",
        },
        {},
    ),
    "llama3": (
        LLAMA,
        {
            "bos_id": "<|begin_of_text|>",
            "eos_id": "<|end_of_text|>",
            "start_header_id": "<|start_header_id|>",
            "end_header_id": "<|end_header_id|>",
            "eot_id": "<|eot_id|>",
            "eom_id": "<|eom_id|>",
            "python_tag": "<|python_tag|>",
            "image_id": "<|image|>",
        },
        {},
    ),
    "phi4": (PHI, {"eos_id": "<|im_end|>"}, {"add_eos": True}),
}
"""Template of each layout, the attributes of torchtune's tokenizer, and its options."""

CALL: Final = Msg("assistant", [ToolUseBlock("c1", "look", {"q": 1})], "assistant")
RESULTS: Final = [Msg("tool", [ToolResultBlock("c1", "look", text)], "system") for text in ("found", "more")]
SYSTEM: Final = Msg("system", "Be brief.", "system")
USER: Final = Msg("user", "Where is it?", "user")
REPLY: Final = Msg("assistant", "There.", "assistant")
CONVERSATIONS: Final[dict[str, list[Msg]]] = {
    "one reply": [USER, REPLY],
    "several turns": [SYSTEM, USER, REPLY, USER, Msg("assistant", "Grüße, 谢谢!", "assistant")],
    "tools": [SYSTEM, USER, CALL, RESULTS[0], REPLY],
    "several results": [USER, CALL, *RESULTS, REPLY],
    "no last reply": [USER, REPLY, USER],
}
_ROLES: Final = {"tool": "ipython"}


def as_torchtune(msgs: list[Msg], train_on: str) -> list[dict[str, Any]]:
    """Returns messages in the form of torchtune, with the masks of a strategy."""
    last = max(index for index, msg in enumerate(msgs) if msg.role == "assistant")
    trained: dict[str, Callable[[int, Msg], bool]] = {
        "all": lambda index, msg: msg.role != "system" or bool(msg.tool_results),
        "assistant": lambda index, msg: msg.role == "assistant",
        "last": lambda index, msg: index == last,
    }
    messages: list[dict[str, Any]] = []
    for index, msg in enumerate(msgs):
        call = msg.tool_uses[0] if msg.tool_uses else None
        text = json.dumps({"name": call.name, "arguments": call.input}) if call else msg.text
        result = msg.tool_results[0] if msg.tool_results else None
        role = "ipython" if result else msg.role
        masked = not trained[train_on](index, msg)
        flags = {"masked": masked, "ipython": bool(call), "eot": not (call or result)}
        messages.append({"role": role, "content": result.text if result else text, **flags})
    return messages


@cache
def _list_cases() -> tuple[tuple[str, str, str, int | None], ...]:
    cases = [*product(LAYOUTS, CONVERSATIONS, ("assistant", "all", "last"), (None,))]
    cases += [*product(LAYOUTS, ("several turns",), ("assistant",), range(1, 140, 3))]
    return tuple(
        case for case in cases if case[0] != "phi4" or ("tool" not in case[1] and "results" not in case[1])
    )


@cache
def run_torchtune() -> list[tuple[list[int], list[bool]]]:
    """Returns the tokens and masks of all cases."""
    cases = [
        {
            "layout": layout,
            "messages": as_torchtune(CONVERSATIONS[name], train_on),
            "special": SPECIAL,
            "attributes": LAYOUTS[layout][1],
            "options": LAYOUTS[layout][2],
            "max_tokens": max_tokens,
        }
        for layout, name, train_on, max_tokens in _list_cases()
    ]
    return cast("list[tuple[list[int], list[bool]]]", call_torchtune(cases))


def call_torchtune(cases: list[dict[str, Any]]) -> list[Any]:
    """Returns the results of a script that imports torchtune."""
    script = Path(__file__).with_name("torchtune_masks.py")
    done = subprocess.run(
        [ORACLE, str(script)],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=False,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    return cast("list[Any]", json.loads(done.stdout))


def test_messages_of_alpaca_are_those_of_torchtune() -> None:
    """`train_on_input` of torchtune is `train_on="all"`."""
    rows = [
        {"instruction": "Translate.\n", "input": "Hund {x}", "output": "dog"},
        {"instruction": "Where?", "input": "", "output": "There."},
        {"instruction": "Where?", "output": ""},
    ]
    samples = [*load_rows("stanford_alpaca", rows)]
    for train_on, train_on_input in (("all", True), ("assistant", False)):
        expected = call_torchtune([{"row": row, "train_on_input": train_on_input} for row in rows])
        for sample, messages in zip(samples, expected, strict=True):
            assert [(msg.role, msg.text) for msg in sample.msgs] == [(role, text) for role, text, _ in messages]
            tokenized = tokenize(sample, LAYOUTS["qwen2_5"][0], encode_special, train_on=cast("Any", train_on))
            trained = _get_trained_text(tokenized)
            assert [sample.msgs[0].text in trained, sample.msgs[1].text in trained] == [
                not masked for _, _, masked in messages
            ]


def _get_trained_text(tokenized: TokenizedSample) -> str:
    characters = {id: token for token, id in SPECIAL.items()}
    pairs = zip(tokenized.ids, tokenized.loss_mask, strict=True)
    return "".join(characters.get(id) or chr(id) for id, mask in pairs if mask)


def _tokenize(layout: str, name: str, train_on: Any, max_tokens: int | None) -> TokenizedSample:
    sample = Sample(CONVERSATIONS[name])
    options: dict[str, Any] = {"train_on": train_on, "train_generation_prompt": True, "max_tokens": max_tokens}
    return tokenize(sample, LAYOUTS[layout][0], encode_special, **options)


def test_masks_and_truncation_are_those_of_torchtune() -> None:
    """The masks of bos and eos differ: torchtune trains some of them, and masks the eos that it adds."""
    ends = {SPECIAL[token] for token in ("<|begin_of_text|>", "<|end_of_text|>")}
    compared = 0
    for case, (ids, masked) in zip(_list_cases(), run_torchtune(), strict=True):
        tokenized = _tokenize(*case)
        assert tokenized.ids == ids, case
        pairs = [
            (trained, int(not mask))
            for id, trained, mask in zip(ids, tokenized.loss_mask, masked, strict=True)
            if id not in ends
        ]
        if case[-1] is not None:  # the last token was replaced by eos, or is the eos of the layout
            pairs = pairs[:-1]
        assert [ours for ours, _ in pairs] == [theirs for _, theirs in pairs], case
        compared += len(pairs)
    assert compared > 5_000


# -- trl ---------------------------------------------------------------------------------------------------------


@cache
def find_trl_templates() -> dict[str, str]:
    """Returns the texts of trl's chat templates by name."""
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    done = subprocess.run([ORACLE, "-c", code], capture_output=True, text=True, check=True)
    folder = Path(done.stdout.strip()) / "trl" / "chat_templates"
    return {path.stem: path.read_text("utf-8") for path in sorted(folder.glob("*.jinja"))}


_TOKENS: Final = {"bos_token": "<s>", "eos_token": "</s>"}
_CHATS: Final[dict[str, list[Msg]]] = {
    "replies": [USER, REPLY, USER, Msg("assistant", "Bye.", "assistant")],
    "thinking": [
        USER,
        Msg("assistant", [ThinkingBlock("One."), TextBlock("There.")], "assistant"),
        USER,
        Msg("assistant", [ThinkingBlock("Two."), TextBlock("Bye.")], "assistant"),
    ],
}


def _as_dicts(msgs: list[Msg], needs_parts: bool) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = next(dump_rows("trl", [Sample(msgs)]))["messages"]
    if not needs_parts:
        return messages
    return [{**message, "content": [{"type": "text", "text": message["content"]}]} for message in messages]


def test_training_templates_of_trl_train_what_transformers_marks() -> None:
    """The start of an assistant turn is not trained, although some templates mark it or a part of it."""
    render: Any = import_module("transformers.utils.chat_template_utils").render_jinja_template
    training = {name: text for name, text in find_trl_templates().items() if name.endswith("_training")}
    assert len(training) >= 20
    for (name, text), msgs in product(training.items(), _CHATS.values()):
        template = ChatTemplate(text, name=name, special_tokens=_TOKENS)
        rendered, marked = render(
            [_as_dicts(msgs, template.check().needs_parts)],
            chat_template=text,
            return_assistant_tokens_mask=True,
            **_TOKENS,
        )
        assert rendered[0] == template.render(msgs, add_generation_prompt=False).text, name
        expected = {index for start, end in marked[0] for index in range(start, end)}
        tokenized = tokenize(Sample(msgs), template, encode)
        trained = {index for index, mask in enumerate(tokenized.loss_mask) if mask}
        assert trained, name
        if not any("generation" in macro for macro in re.findall(r"macro.*?endmacro", text, re.DOTALL)):
            assert trained <= expected, name
            prompts = find_generation_prompts(template, {})
            for text_of_prompt in _list_runs(rendered[0], expected - trained):
                assert any(prompt.endswith(text_of_prompt) for prompt in prompts), (name, text_of_prompt)


def _list_runs(text: str, indexes: set[int]) -> list[str]:
    """Returns the parts of a text that consist of these characters."""
    return ["".join(text[i] for i in run) for run in _split_runs(sorted(indexes))]


def _split_runs(indexes: list[int]) -> list[list[int]]:
    """Splits numbers into runs of consecutive numbers."""
    runs: list[list[int]] = []
    for index in indexes:
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return runs


def test_the_templates_of_trl_and_their_training_variants_train_the_same_texts() -> None:
    """Templates that mark no replies give the same trained texts, white space after the stop token apart."""
    compared = 0
    for name, text in find_trl_templates().items():
        other = find_trl_templates().get(f"{name}_training")
        if other is None:
            continue
        plain, marked = (ChatTemplate(source, name=name, special_tokens=_TOKENS) for source in (text, other))
        texts = [_list_texts(template) for template in (plain, marked)]
        compared += 1
        assert texts[0] == texts[1], name
    assert compared >= 20


def test_each_reply_of_the_templates_of_trl_ends_with_a_stop_token() -> None:
    """A template that writes no stop token is an error, which names the option for stop tokens."""
    without = set[str]()
    for name, text in find_trl_templates().items():
        template = ChatTemplate(text, name=name, special_tokens=_TOKENS)
        stop = template.check().stop_token
        for msgs in (_CHATS["replies"][:2], _CHATS["replies"]):
            for sample in split_rewritten(Sample(msgs), template):
                if not stop:
                    with pytest.raises(MessageError, match="Pass stop_tokens="):
                        tokenize(sample, template, encode)
                    without.add(name)
                    continue
                tokenized = tokenize(sample, template, encode)
                ends = [_get_text(tokenized, span).rstrip() for span in tokenized.spans]
                ends += [end.removesuffix("</s>").rstrip() for end in ends]  # phi3 writes eos after the text
                stopped = [end.endswith((stop, "<|end|>")) for end in ends]
                assert sum(stopped) >= len(tokenized.spans) > 0, (name, ends)
    assert without == {"glm4moe"}


def test_no_template_of_trl_trains_the_tags_of_thinking_without_thinking() -> None:
    call = Msg("assistant", [ThinkingBlock("One."), ToolUseBlock("abcde1234", "look", {"q": 1})], "assistant")
    thinks = set[str]()
    for name, text in find_trl_templates().items():
        template = ChatTemplate(text, name=name, special_tokens=_TOKENS)
        report = template.check()
        for msgs in (*_CHATS.values(), [USER, call]):
            if msgs[-1] is call and not report.calls:
                continue
            for sample in split_rewritten(Sample(msgs), template):
                tokenized = tokenize(sample, template, encode, train_thinking=False, stop_tokens=[])
                texts = [_get_text(tokenized, span) for span in tokenized.spans]
                assert texts, name
                assert not any(re.search("think|One|Two|analysis|thought|to=self", item) for item in texts), name
        if report.thinking:
            thinks.add(name)
    assert len(thinks) >= 25


def _list_texts(template: ChatTemplate) -> list[str]:
    """Returns the trained texts of a conversation, without white space and the token eos at their ends."""
    samples = split_rewritten(Sample(_CHATS["replies"]), template)
    stops = ["<|user|>", "<|observation|>"]  # GLM: the training variant writes the tag of the next turn
    tokenized = [tokenize(sample, template, encode, stop_tokens=stops) for sample in samples]
    texts = [_get_text(item, span) for item in tokenized for span in item.spans]
    return [text.strip().removesuffix("</s>").strip() for text in texts]


def _get_text(tokenized: TokenizedSample, span: tuple[int, int]) -> str:
    return "".join(map(chr, tokenized.ids[span[0] : span[1]]))


# -- datasets ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", SAMPLES)
def test_an_export_loads_with_one_schema(format: Any, tmp_path: Path) -> None:
    numbers = count()

    @given(st.lists(SAMPLES[format], min_size=3, max_size=20))
    @settings(max_examples=5, derandomize=True, database=None, deadline=None)
    def check(samples: list[Sample]) -> None:
        path = tmp_path / f"{next(numbers)}.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in dump_rows(format, samples)), "utf-8")
        loaded = datasets.load_dataset("json", data_files=str(path), cache_dir=str(tmp_path / "cache"))
        assert list(load_rows(format, loaded["train"])) == samples

    check()


_LOOK: Final = Tool("look", "Looks.", {"type": "object", "properties": {"q": {"enum": [1, "a", None]}}})
_IMAGE: Final = ImageBlock(URLSource("https://example.org/a.png"))
MIXED: Final = [
    Sample([USER, REPLY]),
    Sample([Msg("user", [_IMAGE, TextBlock("Where?")], "user"), REPLY], extra={"id": 1}),
    Sample([USER, CALL, RESULTS[0], REPLY], [_LOOK], extra={"id": "a"}),
    Sample(
        [
            USER,
            Msg("assistant", [ToolUseBlock("c1", "look", {"q": "a", "z": {"k": [1, "b"]}})], "assistant"),
            Msg("tool", [ToolResultBlock("c1", "look", [TextBlock("found"), _IMAGE])], "system"),
            REPLY,
        ],
        [Tool("look"), Tool("move", strict=True)],
    ),
    Sample(
        [Msg("Bob", "Where?", "user"), Msg("assistant", [ThinkingBlock("Hm."), TextBlock("There.")], "assistant")]
    ),
]
"""Samples whose contents, arguments, tools and columns have different types."""


@pytest.mark.parametrize("format", ["openai", "trl", "dspy", "atif"])
def test_rows_of_different_types_load_with_one_schema(format: Any, tmp_path: Path) -> None:
    for name, samples in (("first", MIXED), ("last", MIXED[::-1])):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(f"{json.dumps(row)}\n" for row in dump_rows(format, samples)), "utf-8")
        loaded = datasets.load_dataset("json", data_files=str(path), cache_dir=str(tmp_path / "cache"))
        assert list(load_rows(format, loaded["train"])) == samples


@pytest.mark.parametrize("format", ["openai", "trl", "dspy", "sharegpt", "atif"])
def test_columns_after_the_first_chunk_need_a_larger_chunk(format: Any, tmp_path: Path) -> None:
    """`datasets` takes the columns from the first chunk of a file, which has ten megabytes unless changed."""
    samples = [*[Sample([USER, REPLY])] * 40, *MIXED]
    path = tmp_path / "rows.jsonl"
    rows = [*dump_rows(format, samples, on_loss=lambda place, reason: None)]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), "utf-8")
    options = {"data_files": str(path), "cache_dir": str(tmp_path / "cache")}
    with pytest.raises(datasets.exceptions.DatasetGenerationError):
        datasets.load_dataset("json", **options, chunksize=1_000)
    loaded = datasets.load_dataset("json", **options, chunksize=path.stat().st_size)
    assert list(load_rows(format, loaded["train"])) == list(load_rows(format, rows))


def test_columns_of_larger_files_need_features(tmp_path: Path) -> None:
    samples = [*[Sample([USER, REPLY])] * 40, *MIXED]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in dump_rows("trl", samples)), "utf-8")
    options = {"data_files": str(path), "cache_dir": str(tmp_path / "cache"), "chunksize": 1_000}
    json_type, text = datasets.Json(), datasets.Value("string")
    features = datasets.Features({"messages": datasets.List(json_type), "tools": text, "id": json_type})
    loaded = datasets.load_dataset("json", **options, features=features)
    assert list(load_rows("trl", loaded["train"])) == samples


def _tokenize_row(row: dict[str, Any], template: ChatTemplate) -> dict[str, list[int]]:
    return tokenize(next(load_rows("openai", [row])), template, encode).to_dict()


def test_samples_are_tokenized_by_several_processes(tmp_path: Path) -> None:
    rows = [
        {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": str(n)}]}
        for n in range(40)
    ]
    data = datasets.Dataset.from_list(rows)
    mapped = data.map(partial(_tokenize_row, template=MARKED), num_proc=2, remove_columns=["messages"])
    expected = [_tokenize_row(row, MARKED) for row in rows]
    assert mapped.to_list() == expected
