"""Runs the tool calls of a reply concurrently, up to a limit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import anyio

from agentkit.argument_checks import check_int, check_option
from agentkit.errors import OptionError
from agentkit.messages.blocks import ToolResultBlock, ToolUseBlock
from agentkit.reprs import shorten_repr
from agentkit.tools.error_texts import CANCELED_TEXT, unknown_tool_text
from agentkit.tools.tool import Tool, ToolLike, as_tools

__all__ = ["run_tool_call", "run_tool_calls"]


async def run_tool_calls(
    calls: Iterable[ToolUseBlock], tools: Sequence[ToolLike], *, max_concurrency: int | None = None
) -> list[ToolResultBlock]:
    """Runs tool calls concurrently. Returns their results in the order of the calls.

    If a call fails, its result has `is_error=True`, and the other calls continue (see `Tool.run` and
    `run_tool_call`). Canceling the current task cancels all calls. Synchronous functions share the worker threads
    of anyio, 40 by default.

        results = await run_tool_calls(reply.tool_uses, tools)
        msgs.append(Msg("tools", results, "user"))

    Args:
        calls: Tool calls of a reply.
        tools: Tools of the request.
        max_concurrency: Maximum number of calls that run at the same time. None means no limit.

    Raises:
        OptionError: `calls` is not a list of tool calls, or `max_concurrency` is not an integer of at least 1.
        MessageError: A tool is invalid, or two tools have the same name.
    """
    if isinstance(calls, str | ToolUseBlock) or not isinstance(calls, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        reason = f"expected a list of ToolUseBlock, got {shorten_repr(calls, 60)}"
        raise OptionError("calls", reason, "Pass reply.tool_uses.")
    blocks = [*calls]
    for index, block in enumerate(blocks):
        check_option(f"calls[{index}]", block, ToolUseBlock)
    if max_concurrency is not None:
        check_int("max_concurrency", max_concurrency, 1)
    return await _run_all(blocks, as_tools(tools), max_concurrency or max(1, len(blocks)))


async def _run_all(
    blocks: Sequence[ToolUseBlock], tools: Sequence[Tool], concurrency: int
) -> list[ToolResultBlock]:
    results: dict[int, ToolResultBlock] = {}
    interrupts: list[KeyboardInterrupt] = []
    limiter = anyio.CapacityLimiter(concurrency)

    async def run(index: int, block: ToolUseBlock) -> None:
        async with limiter:
            try:
                results[index] = await run_tool_call(block, tools)
            except KeyboardInterrupt as error:
                # The error is raised after the task group, which would wrap the error in an ExceptionGroup.
                interrupts.append(error)
                group.cancel_scope.cancel()
            except anyio.get_cancelled_exc_class():
                if anyio.current_effective_deadline() == -math.inf:
                    raise
                # On asyncio, a tool can cancel the task in which it runs. The other tool calls then continue.
                results[index] = ToolResultBlock(block.id, block.name, CANCELED_TEXT, is_error=True)

    async with anyio.create_task_group() as group:
        for index, block in enumerate(blocks):
            group.start_soon(run, index, block)
    if interrupts:
        raise interrupts[0]
    return [results[index] for index in range(len(blocks))]


async def run_tool_call(block: ToolUseBlock, tools: Sequence[ToolLike]) -> ToolResultBlock:
    """Runs the tool that a tool call names, and returns the result (see `Tool.run`).

    Some models call tools that do not exist, such as `multi_tool_use.parallel` (OpenAI). The result of such a call
    has `is_error=True` and lists the available tools, so that the model can continue.

    Raises:
        OptionError: `block` is not a ToolUseBlock.
        MessageError: A tool is invalid, or two tools have the same name.
    """
    check_option("block", block, ToolUseBlock)
    by_name = {tool.name: tool for tool in as_tools(tools)}
    tool = by_name.get(block.name)
    if tool is not None:
        return await tool.run(block)
    text = unknown_tool_text(block.name, by_name)
    return ToolResultBlock(block.id, block.name, text, is_error=True)
