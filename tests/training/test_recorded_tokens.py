"""Token ids that a server returns reach the training data, and are not encoded again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any, Final, cast

import openai
import pytest
import tokenizers as tokenizers_package
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, decoders, models, pre_tokenizers

from agentkit import ChatModel, MessageError, Msg, OptionError, dump_messages, load_messages
from agentkit.provider_kit import StreamParserBase
from agentkit.testing import LoopbackServer, Reply
from agentkit.training import Sample, samples_from_log, tokenize
from agentkit_openai import OpenAICompletionsParser
from agentkit_vllm import VLLMChatStreamParser
from tests.cases import each_case
from tests.profiles import examples
from tests.providers.openai.streams import sse
from tests.providers.streams import cut, parse_stream
from tests.training.templates import MARKED, UNMARKED, create_tokenizer

Json = dict[str, Any]
tokenizers: Final = cast("Any", tokenizers_package)

QUESTION: Final = Msg("Bob", "Where is it?", "user")
TOKENIZER: Final = create_tokenizer([MARKED.render([QUESTION, Msg("Friday", "There it is.", "assistant")]).text])
PROMPT: Final[list[int]] = TOKENIZER.encode(MARKED.render([QUESTION]).text, add_special_tokens=False).ids
THINKING: Final = "<think>\nHm.\n</think>\n\n"
CALL: Final = '<tool_call>{"name": "look", "arguments": {"q": 1}}</tool_call>'


def spell(text: str) -> list[int]:
    """Returns one token id for each character, as a model can write a text but no tokenizer encodes it."""
    return [TOKENIZER.token_to_id({"\n": "Ċ", " ": "Ġ"}.get(character, character)) for character in text]


STOP: Final[list[int]] = [TOKENIZER.token_to_id("<|im_end|>")]


# The replies have the format of vLLM, entrypoints/openai/chat_completion/protocol.py and completion/protocol.py.


def chat(text: str = "", call: bool = False, thinking: str = "") -> tuple[Json, list[Json]]:
    """Returns a reply of /v1/chat/completions of vLLM, and the chunks of the same reply."""
    head: Json = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
    function = {"name": "look", "arguments": '{"q": 1}'}
    calls: Json = {"tool_calls": [{"id": "call00001", "type": "function", "function": function}]} if call else {}
    message = {"role": "assistant", "content": text or None, "reasoning": thinking or None, **calls}
    reason = "tool_calls" if call else "stop"
    first = spell(f"<think>\n{thinking}\n</think>\n\n" if thinking else "")
    body = spell(text + (CALL if call else ""))
    ids = [*first, *body, *STOP]
    usage = {"prompt_tokens": len(PROMPT), "completion_tokens": len(ids), "total_tokens": len(PROMPT) + len(ids)}
    whole = {
        **head,
        "choices": [{"index": 0, "message": message, "finish_reason": reason, "token_ids": ids}],
        "usage": usage,
        "prompt_token_ids": PROMPT,
    }
    deltas: list[tuple[Json, list[int]]] = [
        ({"reasoning": thinking} if thinking else {}, first),
        ({"content": text} if text else {}, body[:1]),
        ({}, body[1:2]),  # a token that is part of a marker has a chunk without content
        ({"tool_calls": [{"index": 0, **calls["tool_calls"][0]}]} if call else {}, body[2:]),
    ]
    chunks: list[Json] = [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}]
    chunks[0]["prompt_token_ids"] = PROMPT
    chunks += [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None, "token_ids": part}]}
        for delta, part in deltas
    ]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": reason, "token_ids": STOP}]})
    chunks.append({"choices": [], "usage": usage})
    return whole, [{**head, "object": "chat.completion.chunk", **chunk} for chunk in chunks]


def completion(text: str) -> tuple[Json, list[Json]]:
    """Returns a reply of /v1/completions of vLLM, and the chunks of the same reply."""
    head: Json = {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "m"}
    ids = [*spell(text), *STOP]
    usage = {"prompt_tokens": len(PROMPT), "completion_tokens": len(ids), "total_tokens": len(PROMPT) + len(ids)}
    choice: Json = {"index": 0, "text": text, "finish_reason": "stop", "token_ids": ids}
    whole = {**head, "choices": [{**choice, "prompt_token_ids": PROMPT}], "usage": usage}
    parts = [
        {**choice, "text": text[:2], "finish_reason": None, "token_ids": ids[:2], "prompt_token_ids": PROMPT},
        {**choice, "text": text[2:], "token_ids": ids[2:]},
    ]
    return whole, [*({**head, "choices": [part]} for part in parts), {**head, "choices": [], "usage": usage}]


REPLIES: Final[dict[str, tuple[str, type[StreamParserBase], tuple[Json, list[Json]], str]]] = {
    "chat": ("vllm", VLLMChatStreamParser, chat("There."), "There."),
    "chat with a call": (
        "vllm",
        VLLMChatStreamParser,
        chat("I look.", call=True, thinking="Hm."),
        f"{THINKING}I look.{CALL}",
    ),
    "completion": ("openai-completions", OpenAICompletionsParser, completion("There."), "There."),
}
"""Provider, parser, reply and chunks, and the text that the model wrote."""


async def read_through_sdk(
    provider: str, parser: type[StreamParserBase], whole: Json, chunks: list[Json]
) -> tuple[Msg, Msg]:
    """Returns the whole and the streamed reply. The SDK reads them from a server on this machine."""
    with LoopbackServer([whole, Reply(chunks)]) as server:
        async with openai.AsyncOpenAI(base_url=server.url(provider), api_key="none") as client:
            create: Callable[..., Any] = client.chat.completions.create
            request: Json = {"messages": [{"role": "user", "content": "Where is it?"}]}
            if provider == "openai-completions":
                create, request = client.completions.create, {"prompt": "Where is it?"}
            request |= {"model": "m", "extra_body": {"return_token_ids": True}}
            reply = parser.parse_response(await create(**request))
            stream = parser()
            async for chunk in await create(stream=True, **request):
                stream.feed(chunk)
            return reply, stream.finish()


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@each_case(("provider", "parser", "native", "text"), REPLIES)
async def test_recorded_ids_are_the_ids_of_the_training_data(
    provider: str, parser: type[StreamParserBase], native: tuple[Json, list[Json]], text: str
) -> None:
    reply, streamed = await read_through_sdk(provider, parser, *native)
    assert reply == streamed
    recorded = [*spell(text), *STOP]
    assert reply.metadata is not None
    assert reply.metadata["reply"]["prompt_token_ids"] == PROMPT
    assert reply.metadata["reply"]["token_ids"] == recorded
    log = load_messages(dump_messages([QUESTION, reply]))
    (sample,) = samples_from_log(log, formatter=MARKED.formatter())
    tokenized = tokenize(sample, MARKED, TOKENIZER)
    end = spell("\n")
    assert tokenized.ids == [*PROMPT, *recorded, *end]
    assert tokenized.loss_mask == [0] * len(PROMPT) + [1] * len(recorded) + [0] * len(end)
    (encoded,) = samples_from_log([QUESTION, Msg(reply.name, reply.content, "assistant")])
    assert tokenize(encoded, MARKED, TOKENIZER).ids != tokenized.ids


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@each_case("provider", ["vllm", "openai-completions"])
async def test_ids_are_asked_for_by_a_parameter_and_are_in_no_later_request(provider: str) -> None:
    whole, chunks = chat("There.") if provider == "vllm" else completion("There.")
    with LoopbackServer([whole, Reply(chunks), "Bye.", "Bye."]) as server:
        options: Json = {
            "client_options": server.client_options(provider),
            "parameters": {"return_token_ids": True},
        }
        if provider == "openai-completions":
            options["template"] = MARKED
        async with ChatModel(f"{provider}:m", **options) as model:
            reply = await model.generate([QUESTION])
            async with model.stream([QUESTION]) as events:
                streamed = await events.finish()
            for earlier in (reply, Msg(reply.name, reply.content, "assistant")):
                await model.generate([QUESTION, earlier, QUESTION])
    assert reply == streamed
    assert server.requests[0].body["return_token_ids"] is True
    assert server.requests[2].body == server.requests[3].body
    assert [sample.tokens for sample in samples_from_log([QUESTION, reply])] == [{1: (*spell("There."), *STOP)}]


@examples(20)
@given(name=st.sampled_from(sorted(REPLIES)), places=st.lists(st.integers(0, 5_000), max_size=8))
def test_a_stream_in_any_pieces_has_the_same_ids(name: str, places: list[int]) -> None:
    _, parser, (whole, chunks), _ = REPLIES[name]
    assert parse_stream(parser(), cut(sse(chunks), places))[0] == parser.parse_response(whole)


def test_other_choices_have_other_ids() -> None:
    whole, chunks = chat("There.")
    other: Json = {"index": 1, "delta": {"content": "No."}, "finish_reason": "stop", "token_ids": [9, 9]}
    whole["choices"].append({**other, "message": {"content": "No."}})
    chunks.insert(2, {**chunks[1], "choices": [other]})
    reply = VLLMChatStreamParser.parse_response(whole)
    parser = VLLMChatStreamParser()
    for chunk in chunks:
        parser.feed(chunk)
    assert parser.finish() == reply
    assert (reply.metadata or {})["reply"]["token_ids"] == [*spell("There."), *STOP]


def test_a_reply_without_ids_has_no_key_for_them() -> None:
    whole, _ = chat("There.")
    whole["prompt_token_ids"] = whole["choices"][0]["token_ids"] = None
    (facts,) = (VLLMChatStreamParser.parse_response(whole).metadata or {}).values()
    assert not facts.keys() & {"token_ids", "prompt_token_ids"}


def test_missing_ids_are_an_error() -> None:
    whole, _ = chat("I look.", call=True)
    whole["choices"][0]["token_ids"] = [1, 2]
    reply = VLLMChatStreamParser.parse_response(whole)
    count = whole["usage"]["completion_tokens"]
    samples = samples_from_log([QUESTION, reply, QUESTION, Msg("assistant", "There.", "assistant")])
    with pytest.raises(MessageError, match=rf"msgs\[1\]: the server returned 2 token ids, but counted {count}"):
        next(samples)
    assert next(samples).source == "msgs[3]"
    for ids, tokens in (([], None), ([1, 2, 3], {1: (1, 2, 3)})):
        mended = Msg(reply.name, reply.content, "assistant", metadata={**(reply.metadata or {}), "token_ids": ids})
        assert next(samples_from_log([QUESTION, mended])).tokens == tokens


# -- attacks -----------------------------------------------------------------------------------------------------


def create_metaspace(scheme: str) -> Any:
    """Returns a tokenizer that adds a space to the start of a text, as those of sentencepiece do."""
    words = ["▁", "▁There", "▁it", "▁is", "There", "▁near", "ar", "Where", "▁Where", "\n", "user", "assistant"]
    alphabet = sorted({*"abcdefghijklmnopqrstuvwxyzTW.?! ", "é", "▁"})
    vocabulary = [(word, -1.0 - len(words) / 100) for word in words]
    vocabulary += [(letter, -8.0) for letter in alphabet if letter not in words]
    tokenizer = tokenizers.Tokenizer(
        models.Unigram([("<unk>", -20.0), *vocabulary], unk_id=0, byte_fallback=False)
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme=scheme)
    tokenizer.add_special_tokens([AddedToken(word, special=True) for word in ("<|im_start|>", "<|im_end|>")])
    return tokenizer


def create_prefixed() -> Any:
    """Returns a byte-level tokenizer that adds a space to the start of a text."""
    tokenizer = create_tokenizer(["There it is. Where is it?"])
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return tokenizer


TOKENIZERS: Final[dict[str, Any]] = {
    "bytes": TOKENIZER,
    "bytes with a space": create_prefixed(),
    "metaspace": create_metaspace("always"),
    "metaspace at the start": create_metaspace("first"),
}
BARE: Final = replace(
    UNMARKED, jinja=(UNMARKED.jinja or "").replace("<|im_start|>", "# ").replace("<|im_end|>", "."), name="bare"
)
"""Template without special tokens, so that a token can contain the end of a reply."""
_pieces: Final = st.sampled_from([*"aeéThW ?.\n", "There ", "is it", "谢谢", "🙂"])
_words: Final = st.lists(_pieces, max_size=5).map(lambda pieces: "".join(pieces).strip())


def _build_chat(texts: list[tuple[str, str]]) -> list[Msg]:
    return [
        msg
        for question, answer in texts
        for msg in (Msg("Bob", question, "user"), Msg("Friday", answer or "x", "assistant"))
    ]


@given(st.lists(st.tuples(_words, _words), min_size=1, max_size=4), st.sampled_from([*TOKENIZERS]), st.data())
@examples(150)
def test_ids_that_an_encoder_returns_give_the_tokens_of_the_whole_text(
    texts: list[tuple[str, str]], name: str, data: st.DataObject
) -> None:
    msgs, tokenizer = _build_chat(texts), TOKENIZERS[name]
    for template in (MARKED, UNMARKED):
        whole = tokenize(Sample(msgs), template, tokenizer)
        replies = [index for index, msg in enumerate(msgs) if msg.role == "assistant"]
        ids = {index: whole.ids[start:end] for index, (start, end) in zip(replies, whole.spans, strict=True)}
        chosen = data.draw(st.sets(st.sampled_from(replies)))
        recorded = {index: ids[index] for index in chosen if tokenizer.token_to_id("<unk>") not in ids[index]}
        for index in [*recorded][::2]:  # some servers omit the stop token
            recorded[index] = recorded[index][:-1] or recorded[index]
        sample = Sample(msgs, tokens=recorded)
        assert tokenize(sample, template, tokenizer) == whole


@given(st.lists(st.tuples(_words, _words), min_size=1, max_size=4))
@examples(60)
def test_recorded_ids_are_always_those_of_the_result(texts: list[tuple[str, str]]) -> None:
    """Each recorded character has ids of its own, also characters of several bytes and at the end of a token."""
    msgs = _build_chat(texts)
    for template in (MARKED, UNMARKED, BARE):
        recorded = {
            index: [id for letter in msg.text for id in TOKENIZER.encode(letter, add_special_tokens=False).ids]
            for index, msg in enumerate(msgs)
            if msg.role == "assistant"
        }
        tokenized = tokenize(Sample(msgs, tokens=recorded), template, TOKENIZER)
        trained = [tokenized.ids[start:end] for start, end in tokenized.spans]
        for ids, written in zip(trained, recorded.values(), strict=True):
            assert ids[: len(written)] == written
        text = template.render(msgs, add_generation_prompt=False).text
        assert TOKENIZER.decode(tokenized.ids, skip_special_tokens=False) == text


@each_case(
    ("ids", "error"),
    {
        "other text": (spell("Here."), r"decode to the text 'Here.', which does not contain 'There.'"),
        "part of the text": (spell("There"), "decode to the text 'There', which does not contain 'There.'"),
        "unknown id": ([1_000_000], "the tokenizer has no token for the recorded id 1000000"),
        "an id of more than 32 bits": ([2**40], "the tokenizer has no token for the recorded id 1099511627776"),
        "with the next turn": (
            [*spell("There."), *STOP, *spell("\n"), *PROMPT[:1]],
            "continue after the stop token",
        ),
    },
)
def test_ids_that_cannot_be_those_of_a_reply_are_an_error(ids: list[int], error: str) -> None:
    sample = Sample([QUESTION, Msg("Friday", "There.", "assistant")], tokens={1: ids})
    for template in (MARKED, UNMARKED):
        with pytest.raises(MessageError, match=rf"msgs\[1\]: .*({error}).* Pass the ids") as info:
            tokenize(sample, template, TOKENIZER)
        assert "Pass the ids" in info.value.advice


def test_ids_with_the_generation_prompt_are_an_error() -> None:
    header = TOKENIZER.encode("<|im_start|>assistant\n", add_special_tokens=False).ids
    sample = Sample([QUESTION, Msg("Friday", "There.", "assistant")], tokens={1: [*header, *spell("There.")]})
    with pytest.raises(MessageError, match=r"msgs\[1\]: the token ids start with the generation prompt"):
        tokenize(sample, UNMARKED, TOKENIZER)


def test_a_reply_without_ids_is_an_error() -> None:
    with pytest.raises(OptionError, match=r"tokens\[1\]: the list of token ids is empty. Remove this entry"):
        Sample([QUESTION, Msg("Friday", "There.", "assistant")], tokens={1: []})


def test_another_stop_token_of_the_model_is_the_only_trained_stop_token() -> None:
    tokenizer = create_tokenizer(["There it is. Where is it?"])
    tokenizer.add_special_tokens([AddedToken(word, special=True) for word in ("<|eot|>", "</call>")])
    for text, stop, end in [
        ("There.", "<|eot|>", ""),
        ("There.", "", "<|im_end|>"),
        ("There.</call>", "", "<|im_end|>"),
        ("There.</call>", "<|eot|>", ""),
        ("There.</call>", "<|im_end|>", ""),
    ]:
        ids = tokenizer.encode(text + stop, add_special_tokens=False).ids
        reply = Msg("Friday", text, "assistant")
        for template, msgs in product((MARKED, UNMARKED), ([QUESTION, reply], [QUESTION, reply, QUESTION])):
            tokenized = tokenize(Sample(msgs, tokens={1: ids}), template, tokenizer)
            (span,) = tokenized.spans
            trained = tokenizer.decode(tokenized.ids[span[0] : span[1]], skip_special_tokens=False)
            assert trained == text + stop + end
            assert tokenizer.decode(tokenized.ids[span[1] :], skip_special_tokens=False).startswith("\n")
