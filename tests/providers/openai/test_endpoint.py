"""Calls of OpenAI's SDK for Chat Completions."""

from typing import Final

import openai
import pytest

from agentkit import (
    BadRequestError,
    NetworkError,
)
from agentkit.testing import LoopbackError, LoopbackServer
from agentkit_openai import OpenAIChatEndpoint
from tests.providers import LOOK
from tests.providers.calling import HELLO, RawServer, create_model, make_raw_model, open_stream, read_stream

pytestmark = pytest.mark.anyio


NO_TOOLS: Final = (
    "Function tools with reasoning_effort are not supported for gpt-5.6-sol in /v1/chat/completions. "
    "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
)


async def test_an_error_names_the_api_that_accepts_tools() -> None:
    with LoopbackServer([LoopbackError(400, NO_TOOLS)]) as server:
        async with create_model("openai", server) as model:
            with pytest.raises(BadRequestError, match="openai-responses:"):
                await model.generate(HELLO, tools=[LOOK])


async def test_a_stream_with_only_its_end_is_retryable() -> None:
    with RawServer(open_stream(b"data: [DONE]\n\n")) as server:
        async with make_raw_model("openai", server) as model:
            with pytest.raises(NetworkError) as error:
                await read_stream(model, HELLO)
    assert error.value.retryable


async def test_missing_credentials_of_every_client_are_an_auth_error() -> None:
    error = openai.OpenAIError("Could not find credentials for Bedrock. Pass a bearer credential.")
    failure = OpenAIChatEndpoint(None).failure_from_exception(error)
    assert failure is not None
    assert failure.code == "authentication_error"
