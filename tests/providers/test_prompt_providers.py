"""Providers that take the text of a prompt, through their real SDK clients, against a server on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, cast

import ollama
import openai
import pytest

from agentkit import (
    BadRequestError,
    Budget,
    CharacterTokenCounter,
    ChatModel,
    ContextLengthError,
    FinishReason,
    Ledger,
    MessageError,
    ModelError,
    Msg,
    MultiAgentHistory,
    NetworkError,
    OptionError,
    Plan,
    ProviderError,
    RateLimitError,
    TextBlock,
    ThinkingBlock,
    TiktokenCounter,
    ToolResultBlock,
    Usage,
    load_native,
    load_provider,
)
from agentkit.chat_templates import ChatTemplate
from agentkit.testing import ConformanceError, LoopbackError, LoopbackServer, Reply, ScriptedModel, check_provider
from agentkit_ollama import OllamaRawParser
from agentkit_openai import OpenAICompletionsParser
from tests.cases import each_case
from tests.providers import LOOK, assistant, call, chat, multi_agent, result, system, user
from tests.providers.calling import HELLO, RawServer, open_stream, options, read_stream
from tests.testing.test_provider_checks import sample

pytestmark = pytest.mark.anyio

ON_ASYNCIO: Final = pytest.mark.parametrize("anyio_backend", ["asyncio"])
"""Mark of a test with the streams of an SDK. On trio, the garbage collector cannot close these streams."""
OPENAI: Final = "openai-completions"
OLLAMA: Final = "ollama-raw"
EACH: Final = each_case("provider", [OPENAI, OLLAMA])
TINY: Final = ChatTemplate(
    (Path(__file__).parents[1] / "conformance" / "template.jinja").read_text("utf-8"), name="tiny"
)
BOS: Final = ChatTemplate(
    "{{ bos_token }}{% for message in messages %}[{{ message.role }}]{{ message.content }}{{ eos_token }}"
    "{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}",
    special_tokens={"bos_token": "<s>", "eos_token": "</s>"},
)
FORM: Final[dict[str, Any]] = {
    "start_anchor_pattern": r"\[assistant\]\n(?:<\|\w+\|>)?",
    "fields": {
        "reasoning_content": {"open": "<think>", "close": "</think>"},
        "tool_calls": {
            "open": "<tool_call>",
            "close": "</tool_call>",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {"close": "<|end|>"},
    },
}
"""Form of the replies to prompts of `TINY`."""
CALLS: Final = (
    '<think>Let me look.</think>I look.<tool_call>{"name": "look", "arguments": {"place": "sea"}}</tool_call>'
    '<tool_call>{"name": "look", "arguments": {"place": "sea"}}</tool_call>'
)
TAGS: Final = ChatTemplate.from_tags({"user": ("Q: ", "\n"), "assistant": ("A: ", "\n### End\n")})
TALK: Final = [
    system("Be brief."),
    user("Look at the sea."),
    assistant("I look.", call("call_1", place="sea")),
    Msg("system", [result("call_1", "It is calm.")], "system"),
]


def create_model(provider: str, server: Any, template: Any = TINY, **arguments: Any) -> ChatModel:
    client_options = options(provider, server)
    return ChatModel(provider, "tiny", template=template, client_options=client_options, **arguments)


# -- calls -------------------------------------------------------------------------------------------------------


@EACH
async def test_a_streamed_reply_equals_the_complete_reply(provider: str) -> None:
    with LoopbackServer("The library is near you.") as server:
        async with create_model(provider, server) as model:
            reply = await model.generate(HELLO)
            kinds, streamed = await read_stream(model, HELLO)
            assert (await model.plan(HELLO)).request["prompt"] == server.requests[0].body["prompt"]
    assert reply.text == "The library is near you."
    assert reply.finish_reason is FinishReason.STOP
    assert streamed.content == reply.content
    assert streamed.usage == reply.usage
    assert reply.usage
    assert reply.usage.input_tokens > 0
    assert {"message-start", "text-delta", "message-end"} <= set(kinds)


@each_case("stream", [False, True])
async def test_the_server_receives_the_prompt_and_the_fields_of_the_api(stream: bool) -> None:
    bodies: list[dict[str, Any]] = []
    for provider in (OPENAI, OLLAMA):
        with LoopbackServer("Calm.") as server:
            async with create_model(provider, server, max_tokens=None if stream else 9) as model:
                await (read_stream(model, TALK, tools=[LOOK]) if stream else model.generate(TALK, tools=[LOOK]))
        bodies.append(server.requests[0].body)
    prompt = TINY.render(TALK, tools=[LOOK], add_generation_prompt=True).text
    usage = {"stream_options": {"include_usage": True}} if stream else {}
    limit = None if stream else 9
    shared = {"model": "tiny", "prompt": prompt, "stream": stream}
    assert bodies[0] == {**shared, "max_tokens": limit, "add_special_tokens": False, **usage}
    ollama_limit = {} if stream else {"options": {"num_predict": 9}}
    assert bodies[1] == {**shared, "raw": True, "think": False, **ollama_limit}


async def test_parameters_replace_fields_of_the_request() -> None:
    parameters = {"stop": ["###"], "add_special_tokens": True, "seed": 3, "extra_body": {"top_k": 5}}
    with LoopbackServer("Calm.") as server:
        async with create_model(OPENAI, server, TAGS, parameters=parameters) as model:
            await model.generate(HELLO)
            with pytest.raises(OptionError, match="already set by the request"):
                await model.generate(HELLO, parameters={"prompt": "x"})
        async with create_model(OLLAMA, server, TAGS, parameters={"stop": ["###"], "think": True}) as model:
            await model.generate(HELLO, parameters={"temperature": 0})
            with pytest.raises(OptionError, match="already set by the request"):
                await model.generate(HELLO, parameters={"prompt": "x"})
    first, second = (request.body for request in server.requests)
    assert {**first, "prompt": ""} == {
        "model": "tiny",
        "prompt": "",
        "stop": ["###"],
        "add_special_tokens": True,
        "seed": 3,
        "top_k": 5,
        "max_tokens": None,
        "stream": False,
    }
    assert second["options"] == {"stop": ["###"], "temperature": 0}
    assert second["think"] is True


@EACH
async def test_many_speakers_and_the_viewer(provider: str) -> None:
    with LoopbackServer("Friday: The library is near you.") as server:
        async with create_model(provider, server, history=MultiAgentHistory(viewer="Friday")) as model:
            reply = await model.generate([user("Hi."), user("Hello.", name="Ann")])
    assert "Bob: Hi.\nAnn: Hello.\n" in server.requests[0].body["prompt"]
    assert (reply.name, reply.text) == ("Friday", "The library is near you.")


@EACH
async def test_a_refused_prompt_is_sent_again_with_fewer_messages(provider: str) -> None:
    refusal = LoopbackError(
        400, "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it"
    )
    msgs = [user(f"Question {number}. " * 40) for number in range(40)]
    with LoopbackServer([refusal, "Fine.", refusal]) as server:
        async with create_model(provider, server, budget=Budget(100_000)) as model:
            assert (await model.generate(msgs)).text == "Fine."
            with pytest.raises(ContextLengthError):
                await model.generate(await model.plan(msgs))
    first, second, _ = (request.body["prompt"] for request in server.requests)
    assert len(second) < len(first) / 2


@EACH
async def test_errors_of_a_server(provider: str) -> None:
    with LoopbackServer([LoopbackError(400, "bad"), LoopbackError(429, "slow down")]) as server:
        async with create_model(provider, server) as model:
            with pytest.raises(BadRequestError, match="bad"):
                await model.generate(HELLO)
            with pytest.raises(RateLimitError):
                await model.generate(HELLO)
    late = Reply("The library is near you.", error=LoopbackError(500, "the engine died"), error_after=2)
    with LoopbackServer([late, Reply("The library is near you.", cut_after=2)]) as server:
        async with create_model(provider, server) as model:
            with pytest.raises(Exception, match="the engine died"):
                await read_stream(model, HELLO)
            with pytest.raises(NetworkError):
                await read_stream(model, HELLO)


async def test_a_stream_of_bytes_in_any_pieces() -> None:
    body = b'data: {"id":"c","model":"m","choices":[{"index":0,"text":"Hi.","finish_reason":"stop"}]}\n\n'
    with RawServer(open_stream(body + b"data: [DONE]\n\n")) as server:
        async with ChatModel(OPENAI, "m", template="zephyr", client_options=options(OPENAI, server)) as model:
            _, msg = await read_stream(model, HELLO)
    assert (msg.text, msg.finish_reason) == ("Hi.", FinishReason.STOP)


async def test_a_stream_of_llama_cpps_own_api_is_an_error() -> None:
    body = b'data: {"index": 0, "content": "Hi.", "stop": false}\n\ndata: {"content": "", "stop": true}\n\n'
    with RawServer(open_stream(body)) as server:
        async with ChatModel(OPENAI, "m", template="zephyr", client_options=options(OPENAI, server)) as model:
            with pytest.raises(ModelError, match="must end with /v1"):
                await read_stream(model, HELLO)


async def test_an_address_is_required() -> None:
    with pytest.raises(OptionError, match=r"client_options.base_url: 'openai-completions' has no default address"):
        await ChatModel(OPENAI, "m", template="zephyr").open()


@EACH
async def test_a_scripted_model_builds_the_same_prompt(provider: str) -> None:
    model = ScriptedModel(["Yes."] * 2, provider, template=TINY, formatter_options={"response_template": FORM})
    reply = await model.generate(HELLO)
    _, streamed = await read_stream(model, HELLO)
    assert (reply.text, streamed.text) == ("Yes.", "Yes.")
    assert model.requests == [chat(provider, template=TINY, response_template=FORM).lower(HELLO).request] * 2


# -- replies with thinking and tool calls ------------------------------------------------------------------------


@EACH
async def test_thinking_and_tool_calls_are_read_from_the_text(provider: str) -> None:
    form = {"response_template": FORM}
    with LoopbackServer([CALLS, Reply(CALLS, piece_size=3), "It is calm."]) as server:
        async with create_model(provider, server, formatter_options=form) as model:
            reply = await model.generate(TALK[:2], tools=[LOOK])
            kinds, streamed = await read_stream(model, TALK[:2], tools=[LOOK])
            results = [ToolResultBlock(use.id, "look", "It is calm.") for use in reply.tool_uses]
            answer = await model.generate([*TALK[:2], reply, Msg("tools", results, "user")], tools=[LOOK])
    assert [block.type for block in reply.blocks] == ["thinking", "text", "tool_use", "tool_use"]
    assert [use.input for use in reply.tool_uses] == [{"place": "sea"}] * 2
    assert len({use.id for use in reply.tool_uses}) == 2
    assert reply.finish_reason is streamed.finish_reason is FinishReason.TOOL_USE
    assert streamed.content == reply.content
    assert {"thinking-delta", "text-delta", "tool-use-end", "message-end"} <= set(kinds)
    assert CALLS in server.requests[2].body["prompt"]  # the prompt has the reply as the model wrote it
    assert answer.text == "It is calm."


@each_case("parser", {OPENAI: OpenAICompletionsParser, OLLAMA: OllamaRawParser})
def test_halves_of_a_character_meet_in_each_region(
    parser: type[OpenAICompletionsParser | OllamaRawParser],
) -> None:
    halves = [
        *("<think>a\ud83d", "\ude00</think>b\ud83d"),
        *('\ude00<tool_call>{"name": "look", "arguments": {"place": "\ud83d', '\ude00"}}</tool_call>'),
    ]
    whole = "".join(halves).encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    messages: list[Msg] = []
    for pieces in (halves, [whole]):
        reading = parser(response_template=FORM)
        for piece in pieces:
            reading.feed({"choices": [{"index": 0, "text": piece}], "response": piece})
        messages.append(reading.finish())
    assert messages[0] == messages[1]
    assert "\ufffd" not in str(messages[0].to_dict())


@EACH
async def test_a_reply_that_ends_early_has_all_text(provider: str) -> None:
    half = CALLS[: CALLS.index('"sea"') + 2]
    cut = Reply(half, piece_size=3, finish_reason=FinishReason.LENGTH)
    with LoopbackServer([cut, cut, Reply(half[:20], cut_after=3)]) as server:
        async with create_model(provider, server, formatter_options={"response_template": FORM}) as model:
            reply = await model.generate(HELLO, tools=[LOOK])
            _, streamed = await read_stream(model, HELLO, tools=[LOOK])
            async with model.stream(HELLO) as stream:
                with pytest.raises(NetworkError):
                    await stream.finish()
    assert reply.finish_reason is FinishReason.LENGTH
    assert (reply.text, reply.tool_uses[0].name) == ("I look.", "look")
    assert '{"place": "s' in str(reply.tool_uses[0].raw_input)
    assert streamed.content == reply.content
    assert streamed.finish_reason is FinishReason.LENGTH
    assert [block.type for block in stream.message.blocks] == ["thinking"]
    assert stream.message.finish_reason is FinishReason.INTERRUPTED


@EACH
def test_the_ledger_warns_of_tools_without_a_response_template(provider: str) -> None:
    reason = "there is no response template, so tool calls in the text of a reply stay text"
    for form, expected in ((None, [reason]), (FORM, [])):
        formatter = chat(provider, template=TINY, response_template=form)
        assert [note.reason for note in formatter.lower(HELLO, tools=[LOOK]).ledger.syntheses] == expected
        assert not formatter.lower(HELLO).ledger.syntheses


def test_a_server_keeps_the_markers_of_a_reply() -> None:
    request = chat(OPENAI, template=TINY, response_template=FORM).lower(HELLO).request
    assert request["extra_body"] == {
        "add_special_tokens": False,
        "skip_special_tokens": False,
        "preserved_tokens": ["</think>", "</tool_call>", "<think>", "<tool_call>", "<|end|>"],
    }
    harmony = ChatTemplate("{{ messages[0].content }}<|start|>assistant")
    request = chat(OPENAI, template=harmony, response_template="gpt_oss").lower(HELLO).request
    names = ("call", "channel", "constrain", "end", "message", "return", "start")
    assert request["extra_body"]["preserved_tokens"] == [f"<|{name}|>" for name in names]
    known = ChatTemplate(TINY.jinja, control_tokens=frozenset({"<tool_call>", "<|end|>", "<|other|>"}))
    request = chat(OPENAI, template=known, response_template=FORM).lower(HELLO).request
    assert request["extra_body"]["preserved_tokens"] == ["<tool_call>", "<|end|>"]


@EACH
def test_a_response_template_is_a_name_a_declaration_or_that_of_the_template(provider: str) -> None:
    declared = ChatTemplate(TINY.jinja, response_template=FORM)
    for formatter in (
        chat(provider, template=declared),
        multi_agent(provider, template=TINY, response_template=FORM),
    ):
        options = formatter.get_parser_options(formatter.lower(HELLO, tools=[LOOK]))
        assert options["response_template"].parse("<think>Hm.</think>Hi.").text == "Hi."
        assert options["tools"] == (LOOK,)
    assert chat(provider, template=TINY).get_parser_options(Plan({}, Ledger([]), ())) == {
        "response_template": None,
        "tools": (),
    }
    with pytest.raises(OptionError, match=r"^response_template: expected a response template, got 'qwen'"):
        chat(provider, template=TINY, response_template="qwen")
    with pytest.raises(OptionError, match=r"^response_template: does not belong to the chat template 'tiny'"):
        chat(provider, template=TINY, response_template="qwen3").lower(HELLO)


# -- requests ----------------------------------------------------------------------------------------------------


@each_case(
    ("provider", "template", "server_adds_bos", "start"),
    [
        (OPENAI, BOS, None, "<s>[user]"),
        (OPENAI, BOS, True, "[user]"),
        (OPENAI, "gguf that adds", None, "[user]"),
        (OPENAI, "gguf that adds", False, "<s>[user]"),
        (OPENAI, "gguf without", None, "<s>[user]"),
        (OLLAMA, BOS, None, "[user]"),
        (OLLAMA, BOS, False, "<s>[user]"),
        (OLLAMA, "gguf that adds", None, "[user]"),
        (OLLAMA, "gguf without", None, "<s>[user]"),
    ],
)
def test_the_prompt_has_one_bos_token(
    provider: str, template: Any, server_adds_bos: bool | None, start: str
) -> None:
    if isinstance(template, str):
        adds = template == "gguf that adds"
        template = ChatTemplate(BOS.jinja, special_tokens=BOS.special_tokens, adds_bos=adds)
    formatter = chat(provider, template=template, server_adds_bos=server_adds_bos)
    request = formatter.lower(HELLO).request
    assert request["prompt"].startswith(start)
    if provider == OPENAI:  # a server that keeps the bos token of the prompt must add none
        assert ("extra_body" in request) is start.startswith("<s>")


@each_case(
    ("template", "bos", "adds_bos"),
    [
        ("inst", "<s>", False),
        ("llama_2", "<s>", False),
        ("llama_3", "<|begin_of_text|>", False),
        ("mistral", "", True),
        ("torchtune_llama_2", "", True),
        ("chatml", "", False),
    ],
)
def test_the_prompts_of_built_in_templates_have_one_bos_token(template: str, bos: str, adds_bos: bool) -> None:
    request = chat(OPENAI, template=template).lower(HELLO).request
    assert request["prompt"].startswith(bos)
    assert ("extra_body" in request) is not adds_bos
    assert chat(OLLAMA, template=template).lower(HELLO).request["prompt"] == request["prompt"].removeprefix(bos)


@EACH
def test_only_texts_that_are_no_control_tokens_stop_a_reply(provider: str) -> None:
    request = chat(provider, template=TAGS).lower(HELLO).request
    assert (request if provider == OPENAI else request["options"])["stop"] == ["### End"]
    request = chat(provider, template="zephyr").lower(HELLO).request
    assert "stop" not in request
    assert "options" not in request


@EACH
def test_only_the_prompt_has_tokens(provider: str) -> None:
    for formatter in (chat(provider, template=TINY, response_template=FORM), chat(provider, template=TAGS)):
        request = formatter.lower(HELLO).request
        assert len(request) > 1
        for counter in (CharacterTokenCounter(), TiktokenCounter("gpt-4o")):
            assert counter.measure(request, formatter) == counter.measure({"prompt": request["prompt"]}, formatter)


@EACH
def test_a_template_is_a_name_a_path_or_an_object(provider: str) -> None:
    by_name = multi_agent(provider, template="chatml").lower(HELLO).request
    assert by_name == multi_agent(provider, template=ChatTemplate.builtin("im_start")).lower(HELLO).request
    for value, reason in (
        (None, "none was passed"),
        (3, "got 3"),
        ("chatml2", "no built-in template and no file"),
    ):
        with pytest.raises(OptionError, match=f"^template: .*{reason}"):
            chat(provider, template=value)
    with pytest.raises(OptionError, match=r"^template: "):
        ChatModel(provider, "tiny")
    with pytest.raises(OptionError, match=r"^template: OpenAIChatFormatter has no such option"):
        ChatModel("openai", "gpt-6", template="zephyr")


def test_a_template_is_read_from_a_folder_or_a_file(tmp_path: Path) -> None:
    source = str(BOS.jinja)
    (tmp_path / "chat_template.jinja").write_text(source)
    for path in (tmp_path, str(tmp_path), tmp_path / "chat_template.jinja"):
        assert "[user]Is anybody there?" in chat(OPENAI, template=path).lower(HELLO).request["prompt"]


@EACH
def test_thinking_of_the_provider_is_sent_back(provider: str) -> None:
    issuer = "ollama" if provider == OLLAMA else provider
    content: list[dict[str, Any]] = [
        {"type": "thinking", "thinking": f"{name} word", "state": {"issuer": name}}
        for name in (issuer, "anthropic")
    ]
    turn = {"name": "a", "role": "assistant", "content": [*content, {"type": "text", "text": "Yes."}]}
    msgs = [user("Hi."), Msg.from_dict(turn), user("And?")]
    prompt = chat(provider, template=TINY).lower(msgs).request["prompt"]
    assert f"<think>{issuer} word</think>Yes." in prompt
    assert "anthropic word" not in prompt


@EACH
def test_a_plan_lists_the_declared_tools(provider: str) -> None:
    formatter = chat(provider, template=TINY)
    assert formatter.lower(TALK, tools=[LOOK]).tools == (LOOK,)
    assert formatter.lower(TALK, tools=[LOOK], tool_choice="none").tools == ()


@EACH
def test_a_log_has_no_messages_to_load(provider: str) -> None:
    with pytest.raises(ProviderError, match="no loader for logs"):
        load_native(provider, {"prompt": "x"})


# -- replies -----------------------------------------------------------------------------------------------------


def completion(**choice: Any) -> dict[str, Any]:
    return {"id": "cmpl-1", "model": "m", "choices": [{"index": 0, "text": "", "finish_reason": None, **choice}]}


@each_case(
    ("native", "reason"),
    {
        "stop": ("stop", FinishReason.STOP),
        "length": ("length", FinishReason.LENGTH),
        "tgi": ("eos_token", FinishReason.STOP),
        "tgi's stop": ("stop_sequence", FinishReason.STOP),
        "vLLM": ("abort", FinishReason.INTERRUPTED),
        "unknown": ("new", FinishReason.OTHER),
        "none": (None, FinishReason.OTHER),
    },
)
def test_finish_reasons_of_completions(native: str | None, reason: FinishReason) -> None:
    msg = OpenAICompletionsParser.parse_response(completion(text="Hi.", finish_reason=native))
    assert msg.finish_reason is reason


def test_token_ids_and_log_probabilities_are_kept() -> None:
    logprobs = [{"tokens": [word], "token_logprobs": [-0.5], "text_offset": [n]} for n, word in enumerate("ab")]
    parser = OpenAICompletionsParser()
    parser.feed(completion(text="a", prompt_token_ids=[1, 2], token_ids=[3], logprobs=logprobs[0]))
    parser.feed(completion(text="b", token_ids=[4], logprobs=logprobs[1], finish_reason="stop"))
    streamed = parser.finish()
    joined = {"tokens": ["a", "b"], "token_logprobs": [-0.5, -0.5], "text_offset": [0, 1]}
    whole = OpenAICompletionsParser.parse_response(
        completion(text="ab", prompt_token_ids=[1, 2], token_ids=[3, 4], logprobs=joined, finish_reason="stop")
    )
    assert streamed == whole
    assert whole.metadata is not None
    reply = whole.metadata["reply"]
    assert (reply["prompt_token_ids"], reply["token_ids"]) == ([1, 2], [3, 4])
    assert reply["logprobs"] == joined


@each_case("parser", [OpenAICompletionsParser, OllamaRawParser])
def test_a_parser_takes_the_name_or_the_declaration_of_a_response_template(parser: Any) -> None:
    reply = {**completion(text="<think>Hm.</think>Hi.", finish_reason="stop"), "response": "<think>Hm.</think>Hi."}
    for source in ("qwen3", FORM):
        assert parser.parse_response(reply, response_template=source).text == "Hi."
    with pytest.raises(OptionError, match=r"^response_template: expected a response template, got 3"):
        parser.parse_response(reply, response_template=3)


def test_only_choice_0_is_read() -> None:
    reply = completion(text="first", finish_reason="stop")
    reply["choices"].append({"index": 1, "text": "second", "finish_reason": "length"})
    assert OpenAICompletionsParser.parse_response(reply).text == "first"


def test_thinking_that_ollama_separates_comes_first() -> None:
    lines = [{"response": "", "thinking": "Hm"}, {"response": "Yes."}, {"response": "", "done": True}]
    parser = OllamaRawParser()
    for line in lines:
        parser.feed(line)
    blocks = parser.finish().blocks
    assert [type(block) for block in blocks] == [ThinkingBlock, TextBlock]
    assert cast("ThinkingBlock", blocks[0]).thinking == "Hm"


def test_durations_and_log_probabilities_of_ollama_are_kept() -> None:
    reply = {
        "response": "Hi.",
        "logprobs": [{"token": "Hi.", "logprob": -0.5}],
        "done": True,
        "done_reason": "stop",
    }
    msg = OllamaRawParser.parse_response({**reply, "eval_count": 2, "total_duration": 7})
    assert msg.metadata is not None
    assert msg.metadata["reply"]["durations"] == {"total_duration": 7}
    assert msg.metadata["reply"]["logprobs"] == reply["logprobs"]
    assert msg.usage == Usage(0, 2)


@each_case(
    ("parser", "reply", "reason"),
    {
        "another API": (OpenAICompletionsParser, {"output": 1}, "in which `choices` is a list, got the keys"),
        "an error": (OpenAICompletionsParser, {"error": {"message": "no such model"}}, "no such model"),
        "another API of Ollama": (OllamaRawParser, {"message": 1}, "`response` is a string, got the keys"),
        "an error of Ollama": (OllamaRawParser, {"error": "no such model"}, "no such model"),
    },
)
def test_other_values_are_no_replies(parser: Any, reply: dict[str, Any], reason: str) -> None:
    with pytest.raises(MessageError, match=reason):
        parser.parse_response(reply)


# -- the SDKs ----------------------------------------------------------------------------------------------------


@ON_ASYNCIO
async def test_the_sdk_of_openai_takes_the_request(anyio_backend: str) -> None:
    request: Any = chat(OPENAI, template=TAGS).lower(HELLO).request
    with LoopbackServer("Hello there.") as server:
        address = server.url(OPENAI)
        async with cast("Any", openai.AsyncOpenAI(api_key="none", base_url=address, max_retries=0)) as client:
            whole = await client.completions.create(model="m", **request)
            parser = OpenAICompletionsParser(request=request)
            async with await client.completions.create(model="m", stream=True, **request) as chunks:
                async for chunk in chunks:
                    parser.feed(chunk)
    assert server.requests[0].body["add_special_tokens"] is False
    assert server.requests[0].body["stop"] == ["### End"]
    assert OpenAICompletionsParser.parse_response(whole).text == parser.finish().text == "Hello there."


@ON_ASYNCIO
async def test_the_sdk_of_ollama_takes_the_request(anyio_backend: str) -> None:
    request = chat(OLLAMA, template=TAGS).lower(HELLO).request
    with LoopbackServer("Hello there.") as server:
        async with cast("Any", ollama).AsyncClient(host=server.url(OLLAMA)) as client:
            whole = await client.generate(model="m", **request)
            parser = OllamaRawParser(request=request)
            async for line in await client.generate(model="m", stream=True, **request):
                parser.feed(line)
    assert server.requests[0].body["options"] == {"stop": ["### End"]}
    assert OllamaRawParser.parse_response(whole) == parser.finish()


# -- conformance -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", [OPENAI, OLLAMA])
def test_both_providers_conform(provider: str) -> None:
    replies = (
        Reply(Msg("a", "Hello there, my \U0001f600 friend.", "assistant"), usage=Usage(9, 5)),
        Reply(Msg("a", "Half a", "assistant"), finish_reason=FinishReason.LENGTH),
    )
    samples = [sample(provider, reply) for reply in replies]
    check_provider(provider, samples=samples, formatter_options={"template": TINY})


def test_a_template_that_loses_content_does_not_conform() -> None:
    mute = ChatTemplate(str(TINY.jinja).replace("{{- '[' + message.role + ']\\n' }}", ""), name="mute")
    with pytest.raises(ConformanceError) as error:
        check_provider(load_provider(OPENAI), formatter_options={"template": mute})
    assert "turns of the assistant and of the user have the same format" in str(error.value)
