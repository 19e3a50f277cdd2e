"""No key, header or URL credential is in an error, a record or a message after any failure.

Every provider, through its real SDK, against servers on this machine.
"""

import json
import pickle
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import quote_plus

import pytest

from agentkit import AgentkitError, ChatModel, ModelError, NetworkError, OptionError, compare
from agentkit.credentials.credential_checks import clean_options
from agentkit.credentials.redaction import create_redactor, redact_error
from agentkit.testing import LoopbackServer
from tests.cases import each_case
from tests.providers import PROVIDERS, user
from tests.providers.calling import MODELS, RawRequest, RawServer, options, write_answer

pytestmark = pytest.mark.anyio

HELLO: Final = [user("Is anybody there?")]
CANARY: Final = "sk-canary-1234567890"
VARIABLES: Final = {
    "anthropic": "ANTHROPIC_API_KEY",
    "dashscope": "DASHSCOPE_API_KEY",
    "dashscope-compatible": "DASHSCOPE_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "ollama": "OLLAMA_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openai-responses": "OPENAI_API_KEY",
    "vllm": "VLLM_API_KEY",
}
"""Environment variable from which each SDK or endpoint reads the key."""
ILLEGAL: Final = {
    "not ASCII": f"{CANARY}é",
    "line break": f"{CANARY}\n{CANARY}",
    "return": f"{CANARY}\r{CANARY}",
    "control character": f"{CANARY}\x07{CANARY}",
    "null": f"{CANARY}\x00{CANARY}",
    "no-break space": f"sk\xa0{CANARY}",
}


def echo(answer: Callable[[dict[str, str]], tuple[int, dict[str, str], bytes]]) -> RawServer:
    """Returns a server whose answers are computed from the headers of each request."""

    def write(request: RawRequest) -> bytes:
        status, headers, body = answer(request.headers)
        return write_answer(status, body, *(f"{name}: {value}" for name, value in headers.items()))

    return RawServer(write)


def get_credentials(headers: dict[str, str]) -> str:
    """Returns the credentials of a request, as a server may write them in an error."""
    return " ".join(item for item in headers.values() if "canary" in item) or f"nothing {CANARY}"


def get_visible_text(error: BaseException) -> str:
    """Returns all visible text of an error and of its causes."""
    chain: list[BaseException] = []
    following: BaseException | None = error
    while following is not None and following not in chain:
        chain.append(following)
        following = following.__cause__ or following.__context__
    parts = [f"{link} {link!r} {link.args!r} {getattr(link, '__notes__', '')}" for link in chain]
    return " ".join([*parts, repr(vars(error)), *traceback.format_exception(error)])


def assert_hidden(error: BaseException | None, secret: str = "canary") -> None:
    assert isinstance(error, AgentkitError)
    assert secret not in get_visible_text(error)
    assert secret.encode() not in pickle.dumps(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


async def get_error(model: ChatModel, *, stream: bool) -> AgentkitError | None:
    """Returns the error of a call. Asserts that the events and the message of a stream show no key."""
    try:
        if not stream:
            await model.generate(HELLO)
        else:
            opened = model.stream(HELLO)
            try:
                async with opened:
                    async for event in opened:
                        assert "canary" not in repr(event)
            finally:
                if opened._message is not None:  # pyright: ignore[reportPrivateUsage]
                    assert "canary" not in repr(opened.message)
    except AgentkitError as error:
        return error
    return None


def create_model(provider: str, server: Any, key: str | None = CANARY, **more: Any) -> ChatModel:
    client_options = {**options(provider, server), **more}
    if key is None:
        del client_options["api_key"]
    else:
        client_options["api_key"] = key
    return ChatModel(provider, MODELS.get(provider, "some-model"), client_options=client_options)


@pytest.fixture(autouse=True)
def no_keys_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in {*VARIABLES.values(), "GOOGLE_API_KEY", "ANTHROPIC_AUTH_TOKEN", "HTTP_PROXY", "http_proxy"}:
        monkeypatch.delenv(name, raising=False)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"dashscope\..*")
        yield


# -- before anything is sent ----------------------------------------------------------------------------------


@pytest.mark.parametrize("provider", PROVIDERS)
@each_case("space", ["\n", "\r\n", " ", "\t"])
async def test_white_space_around_a_key_is_not_a_part_of_it(provider: str, space: str) -> None:
    with LoopbackServer("Here.") as server:
        async with create_model(provider, server, f"{space}{CANARY}{space}") as model:
            assert (await model.generate(HELLO)).text == "Here."
        sent = [item.removeprefix("Bearer ") for item in server.requests[0].headers.values()]
    assert CANARY in sent


@pytest.mark.parametrize("provider", PROVIDERS)
@each_case("key", ILLEGAL)
async def test_a_key_that_no_header_carries_is_refused_by_the_name_of_its_option(provider: str, key: str) -> None:
    with LoopbackServer("Never.") as server:
        async with create_model(provider, server, key) as model:
            error = await get_error(model, stream=False)
            again = await get_error(model, stream=True)
        assert server.requests == []
    assert isinstance(error, OptionError)
    assert error.place == "client_options['api_key']"
    assert "character" in error.reason
    assert_hidden(error)
    assert_hidden(again)


@each_case("key", ILLEGAL)
@each_case("name", ["default_headers", "headers", "http_options"])
def test_headers_of_the_options_are_refused_by_their_name(name: str, key: str) -> None:
    headers = {"X-Gateway": key}
    with pytest.raises(OptionError, match="X-Gateway") as caught:
        clean_options("client_options", {name: {"headers": headers} if name == "http_options" else headers})
    assert_hidden(caught.value)


async def test_headers_of_a_call_are_checked_like_those_of_a_client() -> None:
    with LoopbackServer("Here.") as server:
        async with create_model("openai", server) as model:
            await model.generate(HELLO, parameters={"extra_headers": {"X-Gateway": f" {CANARY}\n"}})
            with pytest.raises(OptionError, match=r"parameters\['extra_headers'\]\['X-Gateway'\]") as caught:
                await model.generate(HELLO, parameters={"extra_headers": {"X-Gateway": f"{CANARY}é"}})
        assert server.requests[0].headers["x-gateway"] == CANARY
    assert_hidden(caught.value)


def test_an_address_has_no_control_character() -> None:
    with pytest.raises(OptionError, match="base_url"):
        clean_options("client_options", {"base_url": f"http://user:{CANARY}@host/\x07"})
    assert clean_options("client_options", {"base_url": "http://host/v1\n"}) == {"base_url": "http://host/v1"}


@pytest.mark.parametrize("provider", PROVIDERS)
@each_case("key", [f"{CANARY}é", f"{CANARY}\n", f"{CANARY}\x07{CANARY}"])
async def test_a_key_of_the_environment_is_stripped_or_refused_by_the_name_of_its_variable(
    provider: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLES[provider], key)
    with LoopbackServer("Here.") as server:
        async with create_model(provider, server, None) as model:
            error = await get_error(model, stream=False)
    if error is None:
        assert key == f"{CANARY}\n"
        assert server.requests[0].headers.get("authorization") == f"Bearer {CANARY}" or provider == "gemini"
    else:
        assert isinstance(error, OptionError)
        assert error.place == VARIABLES[provider]
        assert_hidden(error)


def clients(key: str) -> dict[str, Any]:
    """Returns clients of the SDKs, as applications create them."""
    import anthropic
    import dashscope
    import ollama
    import openai
    from google import genai

    dashscopes = dashscope.AsyncClient(api_key=key, base_url="http://127.0.0.1:9/v1")
    return {
        "openai": openai.AsyncOpenAI(api_key=key),
        "openai-responses": openai.AsyncAzureOpenAI(api_key=key, api_version="1", azure_endpoint="http://a"),
        "vllm": openai.AsyncOpenAI(api_key="fine-key", default_headers={"X-Gateway": key}),
        "anthropic": anthropic.AsyncAnthropic(auth_token=key),
        "deepseek": openai.AsyncOpenAI(
            api_key="fine-key", http_client=openai.DefaultAsyncHttpxClient(headers={"X-Gateway": key})
        ),
        "gemini": genai.Client(api_key=key),
        "ollama": ollama.AsyncClient(headers={"x-gateway": key}),
        "dashscope": dashscopes,
    }


@each_case("key", [f" {CANARY}\x07{CANARY}", f"{CANARY}\x07{CANARY}\n"])
def test_a_callers_client_with_such_a_key_is_refused(key: str) -> None:
    refused, accepted = clients(key), clients(CANARY)
    for provider in ("openai", "openai-responses", "vllm", "anthropic", "deepseek", "gemini", "ollama"):
        with pytest.raises(OptionError, match="client") as caught:
            ChatModel(provider, "some-model", client=refused[provider])
        assert_hidden(caught.value)
        ChatModel(provider, "some-model", client=accepted[provider])


def test_the_gemini_sdk_strips_a_key_itself() -> None:
    ChatModel("gemini", "some-model", client=clients(f"{CANARY}\n")["gemini"])


def test_a_callers_dashscope_client_with_such_a_key_is_refused() -> None:
    with pytest.raises(OptionError, match="client") as caught:
        ChatModel("dashscope", "qwen-plus", client=clients(f"{CANARY}\n")["dashscope"])
    assert_hidden(caught.value)


@each_case("key", [f"{CANARY}\n", f"{CANARY}é"])
async def test_a_key_that_a_function_returns_at_the_call_is_hidden_too(key: str) -> None:
    import openai

    async def get_key() -> str:
        return key

    with LoopbackServer("Never.") as server:
        client = openai.AsyncOpenAI(api_key=get_key, base_url=server.url("openai"), max_retries=0)
        model = ChatModel("openai:some-model", client=client)
        for stream in (False, True):
            error = await get_error(model, stream=stream)
            assert isinstance(error, OptionError)
            assert_hidden(error)
        await client.close()


# -- errors of servers and proxies ----------------------------------------------------------------------------


def error_body(headers: dict[str, str]) -> dict[str, Any]:
    """Returns an error body that is valid for every provider and shows the key."""
    text = f"Bad credentials: {get_credentials(headers)}"
    inner = {"message": text, "type": "authentication_error", "status": "UNAUTHENTICATED", "param": text}
    return {"type": "error", "error": inner, "message": text, "code": text, "request_id": "req-1"}


def refusals() -> dict[str, Callable[[dict[str, str]], tuple[int, dict[str, str], bytes]]]:
    json_type = {"content-type": "application/json"}
    return {
        "JSON": lambda sent: (401, json_type, json.dumps(error_body(sent)).encode()),
        "JSON in escapes": lambda sent: (
            400,
            json_type,
            json.dumps(error_body(sent)).replace("sk-", "\\u0073k-").encode(),
        ),
        "text": lambda sent: (403, {"content-type": "text/plain"}, get_credentials(sent).encode()),
        "error text": lambda sent: (500, json_type, json.dumps({"error": get_credentials(sent)}).encode()),
        "request id": lambda sent: (
            429,
            {**json_type, "x-request-id": get_credentials(sent), "request-id": get_credentials(sent)},
            b"{}",
        ),
        "200": lambda sent: (200, json_type, json.dumps(error_body(sent)).encode()),
        "200 of text": lambda sent: (200, {"content-type": "text/html"}, get_credentials(sent).encode()),
        "redirect": lambda sent: (
            302,
            {"location": f"http://127.0.0.1:9/?key={get_credentials(sent).replace(' ', '%20')}"},
            b"",
        ),
        "redirect to a user": lambda sent: (302, {"location": f"http://u:{CANARY}@127.0.0.1:9/"}, b""),
    }


@pytest.mark.parametrize("provider", PROVIDERS)
@each_case("stream", [False, True])
@each_case("kind", [*refusals()])
async def test_a_key_that_the_server_repeats_is_in_no_error(provider: str, kind: str, stream: bool) -> None:
    with echo(refusals()[kind]) as server:
        async with create_model(provider, server) as model:
            assert_hidden(await get_error(model, stream=stream))


def _event(data: str) -> bytes:
    return f"event: error\ndata: {data}\n\n".encode()


def streams() -> dict[str, Callable[[dict[str, str]], bytes]]:
    return {
        "error": lambda sent: _event(json.dumps(error_body(sent))),
        "no JSON": lambda sent: _event(get_credentials(sent)),
        "a key that does not fit": lambda sent: _event("word " * 36 + get_credentials(sent)) * 2,
        "broken JSON": lambda sent: _event('{"a": "' + get_credentials(sent)) * 2,
        "lines": lambda sent: json.dumps({"error": get_credentials(sent)}).encode() + b"\n",
        "two lines": lambda sent: (
            b'{"message": {"role": "assistant", "content": "a"}}\n'
            + json.dumps({"error": get_credentials(sent)}).encode()
            + b"\n"
        ),
        "list": lambda sent: json.dumps([error_body(sent)]).encode(),
    }


@pytest.mark.parametrize("provider", PROVIDERS)
@each_case("kind", [*streams()])
async def test_an_error_within_a_stream_repeats_no_key(provider: str, kind: str) -> None:
    def answer(sent: dict[str, str]) -> tuple[int, dict[str, str], bytes]:
        headers = {"content-type": "text/event-stream", "x-request-id": get_credentials(sent)}
        return 200, headers, streams()[kind](sent)

    with echo(answer) as server:
        async with create_model(provider, server) as model:
            error = await get_error(model, stream=True)
    if error is not None:  # some parsers ignore unknown events
        assert_hidden(error)


@pytest.mark.parametrize("provider", PROVIDERS)
@each_case("stream", [False, True])
async def test_the_password_of_a_proxy_is_hidden(
    provider: str, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://user:proxy-canary@127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "")
    with LoopbackServer("Never.") as server:
        async with create_model(provider, server) as model:
            error = await get_error(model, stream=stream)
        assert server.requests == []
    assert isinstance(error, NetworkError)
    assert_hidden(error)


@pytest.mark.parametrize("provider", PROVIDERS)
@each_case("stream", [False, True])
async def test_the_password_of_an_address_is_hidden(provider: str, stream: bool) -> None:
    async with create_model(provider, _FixedAddress("http://user:url-canary@127.0.0.1:9/v1")) as model:
        assert_hidden(await get_error(model, stream=stream))
    with echo(lambda sent: (302, {"location": "/elsewhere"}, b"")) as server:
        address = server.url().replace("//", "//user:url-canary@")
        async with create_model(provider, _FixedAddress(address)) as model:
            assert_hidden(await get_error(model, stream=stream))


class _FixedAddress:
    def __init__(self, address: str) -> None:
        self._address = address

    def url(self, provider: str | None = None) -> str:
        return self._address


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_record_contains_no_key(provider: str, tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    with echo(refusals()["JSON"]) as server:
        async with create_model(provider, server) as model:
            (trial,) = await compare(HELLO, [model], record=record)
    assert isinstance(trial.error, ModelError)
    assert "canary" not in record.read_text()
    assert "canary" not in json.dumps(trial.to_dict())
    assert "canary" not in repr(trial)
    again = await compare(HELLO, [model], replay=record)
    assert str(again[0].error) == str(trial.error)


async def test_an_sdk_error_on_options_shows_no_key() -> None:
    cases: list[dict[str, Any]] = [{"http_options": {"timeout": CANARY}}, {"unknown_key": CANARY}]
    for more in cases:
        with LoopbackServer("Never.") as server:
            async with create_model("gemini", server, **more) as model:
                error = await get_error(model, stream=False)
        assert isinstance(error, OptionError)
        assert_hidden(error)


# -- the parts ------------------------------------------------------------------------------------------------


def test_a_cause_that_still_shows_a_key_is_detached() -> None:
    class StubbornError(Exception):
        def __str__(self) -> str:
            return CANARY

    error = ModelError("openai", f"failed with {CANARY}")
    error.__cause__ = StubbornError()
    assert redact_error(error, create_redactor({"api_key": CANARY}))
    assert error.__cause__ is None
    assert str(error) == "openai: failed with [redacted]. Check the error text of the provider."
    assert not redact_error(StubbornError(), create_redactor({"api_key": CANARY}))


def test_ordinary_words_and_headers_are_not_redacted() -> None:
    redact = create_redactor(
        {"api_key": "EMPTY", "headers": {"User-Agent": "some-agent/1.0", "X-Team": "platform"}}
    )
    text = "EMPTY: platform some-agent/1.0 at https://host/path@x"
    assert redact(text) == text


def test_a_key_is_redacted_in_any_encoding() -> None:
    key = 'k"ey/with\\odd+1'
    redact = create_redactor({"api_key": key})
    for text in (key, json.dumps(key), repr(key), f"https://host/?key={quote_plus(key)}"):
        assert "odd+1" not in redact(text).replace("%2B", "+")


def test_finding_credentials_ends_for_any_client() -> None:
    class Ring:
        def __init__(self) -> None:
            self.items: list[Any] = [self] * 3
            self.api_key = CANARY

    redact = create_redactor(Ring(), cast("Any", {n: {m: object() for m in range(100)} for n in range(1000)}))
    assert redact(CANARY) == "[redacted]"


async def test_every_call_hides_the_current_credentials_of_its_client() -> None:
    with echo(refusals()["JSON"]) as server:
        async with create_model("openai", server, "sk-first-key") as model:
            await model.open()
            endpoint = model._client.endpoint  # pyright: ignore[reportPrivateUsage]
            assert endpoint is not None
            endpoint.client.api_key = CANARY
            assert_hidden(await get_error(model, stream=False))
