"""A conversation that changes its provider in the middle, with thinking, signatures and tools in its history.

    python examples/swap_mid_conversation.py                                         without a key
    python examples/swap_mid_conversation.py anthropic:claude-opus-5 gemini:gemini-4-argon

All models get the same history. Thinking is sent back only to its issuer, tool calls and results are valid for
every API, and the ledger lists the outcome of each block.
"""

import sys
from collections import Counter

import anyio

from agentkit import ChatModel, Msg, OpaqueState, TextBlock, ThinkingBlock, Tool, ToolUseBlock, run_tool_calls
from agentkit.testing import LoopbackServer


def weather(city: str) -> str:
    """Get the weather in a city."""
    return f"{city}: 12 degrees, rain"


TOOL = Tool.from_function(weather)


async def answer_question(model: ChatModel, history: list[Msg]) -> None:
    """Calls the model and runs the tool calls of its replies, until a reply has no tool calls."""
    while True:
        plan = await model.plan(history, tools=[TOOL])
        reply = await model.generate(plan)
        history.append(reply)
        outcomes = Counter(f"{entry.kind} {entry.disposition.word}" for entry in plan.ledger.entries)
        print(f"{model.provider.name}: {reply.text or ', '.join(block.name for block in reply.tool_uses)}")
        print(f"    sent: {', '.join(f'{count} x {outcome}' for outcome, count in sorted(outcomes.items()))}")
        if not reply.tool_uses:
            return
        history.append(Msg("tools", await run_tool_calls(reply.tool_uses, [TOOL]), "user"))


async def main(models: list[ChatModel]) -> None:
    """Asks each model one question, in one conversation."""
    history = [Msg("system", "Be brief.", "system")]
    for number, model in enumerate(models):
        question = "What is the weather in Bergen?" if not number else "And how did you get this information?"
        history.append(Msg("Bob", question, "user"))
        async with model:
            await answer_question(model, history)


def create_replies() -> list[Msg]:
    """Returns the replies for a run without providers: signed thinking with a tool call, then answers."""
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
        with LoopbackServer(create_replies()) as server:
            models = [ChatModel(f"{name}:any", client_options=server.client_options(name)) for name in names]
            anyio.run(main, models)
