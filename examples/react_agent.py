"""A ReAct agent with two tools: think, call, look, until there is nothing left to call.

    python examples/react_agent.py                             against a server on this machine, with no key
    python examples/react_agent.py anthropic:claude-opus-5     against a provider, its key in the environment

Nothing here knows which provider answers. The history stays within its budget, whatever the tools bring.
"""

import ast
import sys
from collections.abc import Callable

import anyio

from agentkit import Budget, ChatModel, Msg, Tool, ToolResultBlock, ToolUseBlock, run_tool_calls
from agentkit.testing import LoopbackServer

PLACES = {"library": "Marktstrasse 4, open until 18:00", "museum": "Am Ufer 12, closed today"}
SIGNS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: lambda left, right: left + right,
    ast.Sub: lambda left, right: left - right,
    ast.Mult: lambda left, right: left * right,
    ast.Div: lambda left, right: left / right,
}


def look_up(place: str) -> str:
    """Find the address and the opening hours of a place in town."""
    return PLACES.get(place.strip().lower(), f"Nothing is known of {place!r}.")


async def calculate(expression: str) -> float:
    """Work out an arithmetic expression, such as `2 * (3 + 4)`."""

    def value(node: ast.expr) -> float:
        match node:
            case ast.Constant(value=int() | float() as number):
                return number
            case ast.BinOp(left=left, op=sign, right=right) if type(sign) in SIGNS:
                return SIGNS[type(sign)](value(left), value(right))
            case _:
                raise ValueError(f"{ast.unparse(node)!r} is no arithmetic")

    return value(ast.parse(expression, mode="eval").body)


TOOLS = [*map(Tool.from_function, (look_up, calculate))]


async def solve(model: ChatModel, task: str, steps: int = 8) -> list[Msg]:
    """The whole conversation, the task's answer last."""
    msgs = [
        Msg("system", "You are Friday. Use the tools where they help, then answer in one sentence.", "system"),
        Msg("user", task, "user"),
    ]
    for _ in range(steps):
        reply = await model.generate(msgs, tools=TOOLS)
        msgs.append(reply)
        if not reply.tool_uses:
            break
        # The calls run concurrently. A tool that fails, or does not exist, gives a result that says so.
        msgs.append(Msg("tools", await run_tool_calls(reply.tool_uses, TOOLS), "user"))
    return msgs


async def main(model: ChatModel) -> None:
    """Solve a task, and print what was said and done."""
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
