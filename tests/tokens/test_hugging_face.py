"""Counting with a tokenizer file and a chat template, both created by the tests."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any, cast

import jinja2
import pytest
import tokenizers
from tokenizers import AddedToken, decoders, models, pre_tokenizers, trainers

from agentkit import (
    Base64Source,
    HuggingFaceTokenCounter,
    ImageBlock,
    MissingExtraError,
    Msg,
    OptionError,
    TemplateError,
    TextBlock,
    load_provider,
)
from agentkit.chat_templates import ChatTemplate
from tests.conftest import call, result, text_msg
from tests.tokens.corpus import CORPUS

OPENAI = load_provider("openai")

CHATML = """\
{%- if tools %}
    {{- '<|im_start|>tools\\n' }}
    {%- for tool in tools %}{{ tool | tojson }}{% endfor %}
    {{- '<|im_end|>\\n' }}
{%- endif %}
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' }}
    {%- if message.content is string %}{{ message.content }}
    {%- else %}{% for part in message.content %}{{ part.text if part.type == 'text' else '<|image|>' }}{% endfor %}
    {%- endif %}
    {%- for call in message.tool_calls or [] %}
        {{- call.function.name + ' ' + call.function.arguments | tojson }}
    {%- endfor %}
    {{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a model: a byte-level tokenizer trained on the corpus, its configuration and its template."""
    path = tmp_path_factory.mktemp("model")
    tokenizer = cast("Any", tokenizers).Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=800, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator([text for texts in CORPUS.values() for text in texts], trainer)
    words = ["<|im_start|>", "<|im_end|>", "<|image|>"]
    tokenizer.add_special_tokens([AddedToken(word, special=True) for word in words])
    tokenizer.save(str(path / "tokenizer.json"))
    config = {"chat_template": CHATML, "bos_token": None, "eos_token": {"content": "<|im_end|>"}}
    (path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    return path


MESSAGES = [
    text_msg("system", "Be brief.", "system"),
    text_msg("Bob", "What is the weather in Lyon?"),
    call("c1"),
    result("c1", output="Sunny\n\n  24 degrees. " * 20),
    text_msg("Friday", "It is sunny.", "assistant"),
    text_msg("Bob", "Grüße, 谢谢! <|im_end|>"),
]


def render(request: dict[str, Any]) -> str:
    """Returns the request as the template writes it, without agentkit."""
    messages = copy.deepcopy(request["messages"])
    for message in messages:
        message["content"] = message["content"] or ""
        for item in message.get("tool_calls", []):
            item["function"]["arguments"] = json.loads(item["function"]["arguments"])
    environment = jinja2.Environment(trim_blocks=True, lstrip_blocks=True, autoescape=False)
    environment.filters["tojson"] = lambda value: json.dumps(value, ensure_ascii=False)
    template = environment.from_string(CHATML)
    return template.render(messages=messages, tools=request.get("tools"), add_generation_prompt=True)


def test_the_count_is_the_count_of_the_rendered_conversation(folder: Path) -> None:
    counter = HuggingFaceTokenCounter(folder)
    request = (
        load_provider("vllm")
        .chat_formatter()
        .lower(MESSAGES, tools=[{"name": "search", "parameters": {}}])
        .request
    )
    before = copy.deepcopy(request)
    tokenizer = cast("Any", tokenizers).Tokenizer.from_file(str(folder / "tokenizer.json"))
    counted = counter.measure(request, OPENAI)
    assert counted == len(tokenizer.encode(render(request), add_special_tokens=False).ids)
    assert counted.estimated == ()
    assert request == before


def test_the_count_is_that_of_the_text_that_a_chat_template_writes(folder: Path) -> None:
    strings = "{% for message in messages %}{{ message.content }}!{% endfor %}"
    parts = (
        "{% for message in messages %}{% for part in message.content %}{{ part.text }}!{% endfor %}{% endfor %}"
    )
    tokenizer = cast("Any", tokenizers).Tokenizer.from_file(str(folder / "tokenizer.json"))
    two = Msg("Bob", (TextBlock("One two three."), TextBlock("Four five.")), "user")
    templates = {
        ChatTemplate(strings): "One two three.\nFour five.!",
        ChatTemplate(parts): "One two three.!Four five.!",
        ChatTemplate.from_function(lambda messages, _: str(messages[0]["content"]) + "!"): "One two three.!",
    }
    for template, text in templates.items():
        msgs = [two] if template.function is None else [text_msg("Bob", "One two three.")]
        request = load_provider("vllm").chat_formatter().lower(msgs).request
        for given in (template, template.jinja) if template.jinja else (template,):
            counted = HuggingFaceTokenCounter(folder, chat_template=given).measure(request, OPENAI)
            assert (counted, counted.estimated) == (len(tokenizer.encode(text, add_special_tokens=False).ids), ())
    one = load_provider("vllm").chat_formatter().lower([text_msg("Bob", "One two three.")]).request
    for given in (parts, parts + "{{ messages[0].content[0].text.x.y if messages[0].content is string }}"):
        counted = HuggingFaceTokenCounter(folder, chat_template=given).measure(one, OPENAI)
        assert (counted, counted.estimated) == (
            len(tokenizer.encode("One two three.!", add_special_tokens=False).ids),
            (),
        )


def test_media_have_a_price_and_no_text(folder: Path) -> None:
    counter = HuggingFaceTokenCounter(folder, model="unknown")
    png = Base64Source("image/png", "iVBORw0KGgoAAAAN" * 10_000)
    look = Msg("Bob", (TextBlock("Look"), ImageBlock(png)), "user")
    counted = counter.measure(load_provider("vllm").chat_formatter().lower([look]).request, load_provider("vllm"))
    assert 1_500 < counted < 1_550
    assert counted.estimated
    assert 1_500 < counter.weigh(look) < 1_550


@pytest.mark.parametrize("name", ["anthropic", "gemini", "openai-responses", "ollama", "dashscope"])
def test_a_request_of_another_wire_format_is_counted(folder: Path, name: str) -> None:
    counter = HuggingFaceTokenCounter(folder)
    counted = counter.measure(load_provider(name).chat_formatter().lower(MESSAGES).request, load_provider(name))
    exact = counter.measure(load_provider("vllm").chat_formatter().lower(MESSAGES).request, load_provider("vllm"))
    assert 0.7 < counted / exact < 1.4


def test_the_error_of_a_template_is_a_reason(folder: Path) -> None:
    refuses = HuggingFaceTokenCounter(folder, chat_template="{{ raise_exception('roles must alternate') }}")
    counted = refuses.measure({"messages": [{"role": "user", "content": "hello"}]}, OPENAI)
    assert counted > 1
    assert "roles must alternate" in counted.estimated[0]


def test_a_long_format_of_a_time_is_a_reason(folder: Path) -> None:
    counter = HuggingFaceTokenCounter(folder, chat_template="{{ strftime_now('%0256d' * 1_000) }}")
    counted = counter.measure({"messages": [{"role": "user", "content": "hello"}]}, OPENAI)
    assert "the format of a time is too large" in counted.estimated[0]


def test_a_template_that_expects_strings_gets_strings(folder: Path) -> None:
    template = "{% for message in messages %}{{ message.content + '\\n' }}{% endfor %}"
    parts = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    counter = HuggingFaceTokenCounter(folder, chat_template=template)
    counted = counter.measure({"messages": [{"role": "user", "content": parts}]}, OPENAI)
    assert counted == counter.measure({"messages": [{"role": "user", "content": "one\ntwo"}]}, OPENAI)
    assert counted.estimated == ()


def test_a_missing_template_is_a_reason(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "tokenizer.json"
    file.write_bytes((folder / "tokenizer.json").read_bytes())
    counted = HuggingFaceTokenCounter(file).measure({"messages": [{"role": "user", "content": "hello"}]}, OPENAI)
    assert counted.estimated == (
        "no chat template: 5 tokens are assumed for each message in addition to its texts",
    )


def test_weights_are_estimates_without_the_tokenizer(folder: Path) -> None:
    counter = HuggingFaceTokenCounter(folder)
    weighed = sum(map(counter.weight, MESSAGES))
    assert "_encode" not in counter.__dict__
    assert (
        0.5
        < weighed
        / counter.measure(load_provider("vllm").chat_formatter().lower(MESSAGES).request, load_provider("vllm"))
        < 1.5
    )


@pytest.mark.parametrize(
    "messages",
    [
        ["x"],
        [None],
        [{"content": ["a"]}],
        [{"content": "a", "tool_calls": ["x"]}],
        [{"content": "a", "tool_calls": 3}],
        [{"content": "a", "tool_calls": [{"function": [3]}]}],
        [{"content": [{"type": [3], "image_url": {"url": "u"}}]}],
        [{"content": "\ud800"}],
        [{"content": "a"}, ["\ud800"]],
    ],
    ids=str,
)
def test_an_odd_request_is_counted(folder: Path, messages: list[Any]) -> None:
    assert HuggingFaceTokenCounter(folder).measure({"messages": messages}, OPENAI) > 0


@pytest.mark.anyio
async def test_counting_in_a_worker_thread_returns_the_same_count(folder: Path) -> None:
    counter = HuggingFaceTokenCounter(folder)
    await counter.prepare()
    request = load_provider("vllm").chat_formatter().lower(MESSAGES).request
    assert await counter.count(request, OPENAI) == counter.measure(request, OPENAI)
    assert pickle.loads(pickle.dumps(counter)).key == counter.key


def test_a_special_token_inside_a_word_is_counted_as_the_tokenizer_does(folder: Path, tmp_path: Path) -> None:
    tokenizer = cast("Any", tokenizers).Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_special_tokens([AddedToken("<word>", special=True, single_word=True)])
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    text = "one<word>two <word> <|im_end|>"
    counter = HuggingFaceTokenCounter(tmp_path, chat_template="{{ messages[0].content }}")
    counted = counter.measure({"messages": [{"role": "user", "content": text}]}, OPENAI)
    assert counted == len(tokenizer.encode(text, add_special_tokens=False).ids)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tokenizer.json", b"{"),
        ("tokenizer.json", b"\xff"),
        ("tokenizer_config.json", b"["),
        ("chat_template.jinja", b"\xff"),
    ],
)
def test_a_damaged_file_is_named(folder: Path, tmp_path: Path, name: str, text: bytes) -> None:
    (tmp_path / "tokenizer.json").write_bytes((folder / "tokenizer.json").read_bytes())
    (tmp_path / name).write_bytes(text)
    with pytest.raises(OptionError, match=rf"^tokenizer: the file .*{name}.* Download the file again"):
        HuggingFaceTokenCounter(tmp_path).measure({"messages": []}, OPENAI)


def test_a_text_that_the_tokenizer_refuses_is_an_error(tmp_path: Path) -> None:
    tokenizer = cast("Any", tokenizers).Tokenizer(models.WordLevel({"a": 0}, unk_token="?"))
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(OptionError, match=r"^tokenizer: the tokenizer cannot encode the text '.*' \(.*UNK"):
        HuggingFaceTokenCounter(tmp_path).measure({"messages": [{"role": "user", "content": "b"}]}, OPENAI)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"tokenizer\.json"):
        HuggingFaceTokenCounter(tmp_path)


@pytest.mark.parametrize("package", ["tokenizers", "jinja2"])
def test_a_missing_package_is_named(folder: Path, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(MissingExtraError, match=r"agentkit-middleware\[tokens\]"):
        HuggingFaceTokenCounter(folder)


def test_an_invalid_template_is_refused_before_it_is_used(folder: Path) -> None:
    with pytest.raises(TemplateError):
        HuggingFaceTokenCounter(folder, chat_template="{{x")
    with pytest.raises(OptionError, match=r"got int 3\. Pass a ChatTemplate, or the text"):
        HuggingFaceTokenCounter(folder, chat_template=cast("Any", 3))
