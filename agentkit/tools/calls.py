"""Concurrent execution of the tool calls of one turn."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import anyio

from agentkit.errors import OptionError, check_option
from agentkit.messages.blocks import ToolResultBlock, ToolUseBlock
from agentkit.tools.tool import Tool, ToolLike, as_tools, run_call

__all__ = ["run_tool_calls"]


async def run_tool_calls(
    calls: Iterable[ToolUseBlock], tools: Sequence[ToolLike], *, max_concurrency: int | None = None
) -> list[ToolResultBlock]:
    """Runs tool calls concurrently. Returns their results in the order of the calls.

    `calls` are the tool calls of a reply, `tools` the tools of its request. At most `max_concurrency` calls run at
    a time (None: all of them). A call that fails gives a result with `is_error` and does not affect other calls:
    see `Tool.run` and `run_call`. Canceling the task cancels all calls. Synchronous functions share anyio's worker
    threads, 40 by default.

        results = await run_tool_calls(reply.tool_uses, tools)
        msgs.append(Msg("tools", results, "user"))
    """
    if isinstance(calls, str | ToolUseBlock) or not isinstance(calls, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        reason = f"expected a list of ToolUseBlock, got {type(calls).__name__}"
        raise OptionError("calls", reason, "Pass reply.tool_uses.")
    blocks = [*calls]
    for index, block in enumerate(blocks):
        check_option(f"calls[{index}]", block, ToolUseBlock)
    check_option("max_concurrency", max_concurrency, int | None)
    if max_concurrency is not None and max_concurrency < 1:
        reason = f"must be at least 1, got {max_concurrency}"
        raise OptionError("max_concurrency", reason, "Pass a positive integer.")
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
                results[index] = await run_call(block, tools)
            except KeyboardInterrupt as error:  # not as a group of one
                interrupts.append(error)
                group.cancel_scope.cancel()
            except anyio.get_cancelled_exc_class():
                if anyio.current_effective_deadline() == -math.inf:
                    raise
                results[index] = _canceled_result(block)  # on asyncio a tool can cancel its own task

    async with anyio.create_task_group() as group:
        for index, block in enumerate(blocks):
            group.start_soon(run, index, block)
    if interrupts:
        raise interrupts[0]
    return [results[index] for index in range(len(blocks))]


def _canceled_result(block: ToolUseBlock) -> ToolResultBlock:
    """Returns the result of a call whose task alone was canceled."""
    return ToolResultBlock(block.id, block.name, "The call was canceled.", is_error=True)
