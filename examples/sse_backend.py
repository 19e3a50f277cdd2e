"""A back end that streams replies as server-sent events. Each user has a separate conversation.

    python examples/sse_backend.py                                 50 conversations at once, without a key
    python examples/sse_backend.py anthropic:claude-opus-5         serves on http://127.0.0.1:8000

    curl -N http://127.0.0.1:8000/conversations/1 -d '{"text": "Hello."}'

One model with one connection pool serves all users. If a user disconnects in the middle of a reply, the
conversation keeps the part that arrived, marked as interrupted, and can continue. Needs starlette and uvicorn.
"""

import json
import socket
import sys
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from agentkit import AgentkitError, Budget, ChatModel, Msg
from agentkit.testing import LoopbackServer


@dataclass
class Conversation:
    """Messages of one conversation, and a lock so that only one reply is created at a time."""

    msgs: list[Msg] = field(default_factory=lambda: [Msg("system", "Be brief.", "system")])
    turn: anyio.Lock = field(default_factory=anyio.Lock)


def create_application(model: ChatModel) -> Starlette:
    """Returns the web application, which serves `POST /conversations/{id}` with the body `{"text": …}`."""
    conversations: defaultdict[str, Conversation] = defaultdict(Conversation)

    async def say(request: Request) -> Response:
        try:
            text = (await request.json())["text"]
            msg = Msg("user", text, "user")
        except (ValueError, KeyError, TypeError) as error:
            return JSONResponse({"error": f"expected {{'text': …}}: {error}"}, 400)
        conversation = conversations[request.path_params["id"]]
        return StreamingResponse(stream_reply(model, conversation, msg), media_type="text/event-stream")

    return Starlette(routes=[Route("/conversations/{id}", say, methods=["POST"])])


async def stream_reply(model: ChatModel, conversation: Conversation, msg: Msg) -> AsyncIterator[str]:
    """Yields one reply as server-sent events: `text` for each piece, then `done` or `error`."""
    async with conversation.turn:
        conversation.msgs.append(msg)
        try:
            async with model.stream(conversation.msgs) as stream:
                try:
                    async for event in stream:
                        if event.type == "text-delta":
                            yield format_event("text", {"text": event.text})
                finally:
                    await stream.aclose()
                    if stream.message.content:  # only a part of the reply if the connection ended early
                        conversation.msgs.append(stream.message)
            usage = stream.message.usage
            yield format_event("done", {"usage": usage.to_dict() if usage else None})
        except AgentkitError as error:
            yield format_event(
                "error", {"class": type(error).__name__, "retryable": getattr(error, "retryable", False)}
            )


def format_event(event: str, data: dict[str, object]) -> str:
    """Returns one server-sent event."""
    return f"event: {event}\ndata: {json.dumps(data)}\n\n"


@asynccontextmanager
async def run_server(model: ChatModel) -> AsyncGenerator[str]:
    """Serves the application on a free port of this machine. Yields its URL."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_application(model), log_level="error"))
    async with anyio.create_task_group() as group:
        group.start_soon(server.serve, [listening])
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True


async def run_demo(count: int = 50) -> None:
    """Serves the application and runs many conversations at once."""
    with LoopbackServer(agent=True) as provider:
        options = provider.client_options("openai")
        async with (
            ChatModel("openai:any", budget=Budget(20_000), client_options=options) as model,
            run_server(model) as url,
            httpx2.AsyncClient(base_url=url, timeout=60) as client,
            anyio.create_task_group() as users,
        ):
            for number in range(count):
                users.start_soon(ask_questions, client, number)


async def ask_questions(client: httpx2.AsyncClient, number: int) -> None:
    """Asks two questions, one after the other, as one user."""
    for question in ("Hello.", "Are you there?"):
        reply_text = ""
        async with client.stream(
            "POST", f"/conversations/{number}", json={"text": f"{number}: {question}"}
        ) as answer:
            async for line in answer.aiter_lines():
                if line.startswith("data: "):
                    reply_text += json.loads(line[6:]).get("text", "")
        if number % 25 == 0:
            print(f"user {number}: {question} / {reply_text}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        uvicorn.run(create_application(ChatModel(sys.argv[1], budget=Budget(100_000))))
    else:
        anyio.run(run_demo)
