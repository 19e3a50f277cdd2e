"""A conversation that changes its provider in the middle, with thinking, signatures and tools in its history.

    python examples/swap_mid_conversation.py                                         with no key
    python examples/swap_mid_conversation.py anthropic:claude-opus-5 gemini:gemini-4-argon

Each model gets the one history. Thinking goes back to whoever issued it and to nobody else; calls and results fit
every wire; the ledger says what became of each block.
"""

import sys
from collections import Counter

import anyio

from agentkit import ChatModel, Msg, OpaqueState, TextBlock, ThinkingBlock, Tool, ToolUseBlock, run_tool_calls
from agentkit.testing import LoopbackServer


def weather(city: str) -> str:
    """Say what the weather is like in a city."""
    return f"{city}: 12 degrees, rain"


TOOL = Tool.from_function(weather)


async def turn(model: ChatModel, history: list[Msg]) -> None:
    """Let the model speak, and run what it calls, until it has answered."""
    while True:
        plan = await model.plan(history, tools=[TOOL])
        reply = await model.generate(plan)
        history.append(reply)
        fates = Counter(f"{entry.kind} {entry.disposition.word}" for entry in plan.ledger.entries)
        print(f"{model.provider.name}: {reply.text or ', '.join(block.name for block in reply.tool_uses)}")
        print(f"    sent: {', '.join(f'{count} x {fate}' for fate, count in sorted(fates.items()))}")
        if not reply.tool_uses:
            return
        history.append(Msg("tools", await run_tool_calls(reply.tool_uses, [TOOL]), "user"))


async def main(models: list[ChatModel]) -> None:
    """Ask each model in turn, in one conversation."""
    history = [Msg("system", "Be brief.", "system")]
    for number, model in enumerate(models):
        question = "What is the weather in Bergen?" if not number else "And what did you do to find out?"
        history.append(Msg("Bob", question, "user"))
        async with model:
            await turn(model, history)


def scripted() -> list[Msg]:
    """What the models say where none is asked: thinking that is signed, a call, and answers."""
    signed = ThinkingBlock("I need the weather.", OpaqueState("anthropic", signature="c2lnbmVk"))
    call = ToolUseBlock("toolu_01", "weather", {"city": "Bergen"})
    return [
        Msg("x", [signed, TextBlock("One moment."), call], "assistant"),
        Msg("x", "It rains in Bergen.", "assistant"),
        Msg("x", "I asked the weather tool.", "assistant"),
        Msg("x", "The same as before me: the weather tool.", "assistant"),
    ]


if __name__ == "__main__":
    if len(sys.argv) > 1:
        anyio.run(main, [ChatModel(name) for name in sys.argv[1:]])
    else:
        names = ("anthropic", "gemini", "openai-responses")
        with LoopbackServer(scripted()) as server:
            found = [ChatModel(f"{name}:any", client_options=server.client_options(name)) for name in names]
            anyio.run(main, found)
