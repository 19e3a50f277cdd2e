"""A ReAct agent with two tools: the model calls tools and reads their results until it can answer.

    python examples/react_agent.py                             with a server on this machine, without a key
    python examples/react_agent.py anthropic:claude-opus-5     with a provider, its key in the environment

The code does not depend on the provider. The prompt stays within its budget, however long the tool results are.
"""

import ast
import sys
from collections.abc import Callable

import anyio

from agentkit import Budget, ChatModel, Msg, Tool, ToolResultBlock, ToolUseBlock, run_tool_calls
from agentkit.testing import LoopbackServer

PLACES = {"library": "Marktstrasse 4, open until 18:00", "museum": "Am Ufer 12, closed today"}
OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / right,
}


def look_up(place: str) -> str:
    """Look up the address and the opening hours of a place in town."""
    return PLACES.get(place.strip().lower(), f"There is no entry for {place!r}.")


async def calculate(expression: str) -> float:
    """Calculate an arithmetic expression, such as `2 * (3 + 4)`."""

    def value(node: ast.expr) -> float:
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.BinOp(left=left, op=operator, right=right) if type(operator) in OPERATORS:
                return OPERATORS[type(operator)](value(left), value(right))
            case _:
                raise ValueError(f"{ast.unparse(node)!r} is not arithmetic")

    return value(ast.parse(expression, mode="eval").body)


TOOLS = [*map(Tool.from_function, (look_up, calculate))]


async def solve(model: ChatModel, task: str, steps: int = 8) -> list[Msg]:
    """Solves a task. Returns the conversation; the last message is the answer."""
    msgs = [
        Msg("system", "You are Friday. Use the tools where they help, then answer in one sentence.", "system"),
        Msg("user", task, "user"),
    ]
    for _ in range(steps):
        reply = await model.generate(msgs, tools=TOOLS)
        msgs.append(reply)
        if not reply.tool_uses:
            break
        # The calls run concurrently. If a tool fails or does not exist, its result states the error.
        msgs.append(Msg("tools", await run_tool_calls(reply.tool_uses, TOOLS), "user"))
    return msgs


async def main(model: ChatModel) -> None:
    """Solves a task and prints each step."""
    async with model:
        msgs = await solve(model, "library")
    for msg in msgs[1:]:
        for block in msg.blocks:
            match block:
                case ToolUseBlock():
                    print(f"{msg.name} calls {block.name}({block.arguments})")
                case ToolResultBlock():
                    print(f"{block.name}{' failed' if block.is_error else ''}: {block.text}")
                case _:
                    print(f"{msg.name}: {msg.text}")
    usage = msgs[-1].usage
    if usage:
        print(f"({usage.input_tokens} tokens in, {usage.output_tokens} out)")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        anyio.run(main, ChatModel(sys.argv[1], budget=Budget(100_000)))
    else:
        with LoopbackServer(agent=True) as server:
            options = server.client_options("openai")
            anyio.run(main, ChatModel("openai:any", budget=Budget(100_000), client_options=options))
