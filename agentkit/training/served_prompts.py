"""`ServedPrompts`: builds the prompts of a formatter's requests, with its history policy, rules and budget."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from anyio.from_thread import start_blocking_portal

from agentkit.chat_templates.template_formatter import ChatTemplateFormatter
from agentkit.errors import MessageError
from agentkit.formatting.formatter import FormatterBase, RequestOptions
from agentkit.history.policies import MultiAgentHistory
from agentkit.ledger.plan import Plan
from agentkit.legalize.call_ids import legal_call_id
from agentkit.legalize.conversation import LegalConversation
from agentkit.legalize.request_spec import Request, RequestSpec
from agentkit.messages.blocks import Block, TextBlock, ToolUseBlock
from agentkit.messages.features import Feature
from agentkit.messages.message import Msg
from agentkit.tools.tool import Tool

__all__ = ["ServedPrompt", "ServedPrompts"]


@dataclass(frozen=True, slots=True)
class ServedPrompt:
    """Prompt of one request.

    Attributes:
        msgs: Messages of the prompt. The history policy, the budget and the rules of the target are applied.
        tools: Tools of the request. The rules of the target are applied.
        request: The request.
    """

    msgs: tuple[Msg, ...]
    tools: tuple[Tool, ...]
    request: Request


class ServedPrompts:
    """Builder of the prompts that the requests of a formatter contain. All requests are for one viewer.

    Args:
        formatter: Formatter of the model.
        viewer: Name of the agent that the requests are for. If the history policy has a viewer, this name replaces
            the viewer.
        tools: Tools of the requests.
    """

    def __init__(self, formatter: FormatterBase, viewer: str, tools: tuple[Tool, ...]) -> None:
        self._converted: list[ServedPrompt] = []
        self._tools = tools
        self._formatter = copy(formatter)
        self._convert = formatter.convert
        vars(self._formatter)["convert"] = self._record
        history = formatter.history
        if isinstance(history, MultiAgentHistory) and history.viewer is not None:
            self._formatter.history = replace(history, viewer=viewer)

    def _record(self, legal: LegalConversation, task: RequestSpec) -> Request:
        request = self._convert(legal, task)
        msgs = [part for msg in (*legal.system.msgs, *legal.turns.msgs) for part in _split_results(msg)]
        self._converted.append(ServedPrompt(tuple(msgs), tuple(task.tools), request))
        return request

    def build(self, msgs: list[Msg]) -> ServedPrompt:
        """Returns the prompt that the formatter's request contains for a conversation.

        Raises:
            InputError: The messages or tools are invalid, or the chat template writes a different text for the
                messages of the prompt than for the request.
            BudgetError: Even the smallest request does not fit the budget.
            TemplateError: The chat template refuses the conversation.
        """
        self._converted.clear()
        request = self._plan(msgs).request
        prompt = next(prompt for prompt in reversed(self._converted) if prompt.request == request)
        if isinstance(self._formatter, ChatTemplateFormatter):
            template = self._formatter.template
            if not template.check().parts:
                joined = tuple(_join_texts(msg, template.text_separator) for msg in prompt.msgs)
                prompt = replace(prompt, msgs=joined)
            _check_prompt(self._formatter, prompt)
        return prompt

    def _plan(self, msgs: list[Msg]) -> Plan:
        formatter = self._formatter
        options: RequestOptions = {"tools": self._tools} if self._tools else {}
        has_media = any(msg.features & (Feature.MEDIA | Feature.RESULT_MEDIA) for msg in msgs)

        async def run() -> Plan:
            return await formatter.plan(msgs, **options)

        if formatter.budget is None and not has_media:
            return formatter.lower(msgs, **options)
        with start_blocking_portal() as portal:  # works with and without a running event loop
            return portal.call(run)

    def adapt_reply(self, msg: Msg) -> Msg:
        """Returns a reply with call ids that the target accepts.

        Opaque blocks, invalid blocks and the opaque state of tool calls are omitted.
        """
        rules = self._formatter.capabilities()
        blocks: list[Block] = []
        for block in msg.blocks:
            if isinstance(block, ToolUseBlock):
                blocks.append(replace(block, id=legal_call_id(rules, block.id), state=None))
            elif block.type not in ("opaque", "invalid"):
                blocks.append(block)
        return msg if isinstance(msg.content, str) else replace(msg, content=tuple(blocks))


def _split_results(msg: Msg) -> list[Msg]:
    """Splits a message with tool results and other blocks into two messages: the results, and the other blocks."""
    results = msg.tool_results
    if not results or len(results) == len(msg.blocks):
        return [msg]
    others = tuple(block for block in msg.blocks if block.type != "tool_result")
    return [replace(msg, content=results), replace(msg, content=others)]


def _join_texts(msg: Msg, separator: str) -> Msg:
    """Returns a message with its text blocks joined into one string, if the message has only text blocks.

    A row would store several text blocks as a list, which the template cannot read.
    """
    texts = [block.text for block in msg.blocks if isinstance(block, TextBlock)]
    is_joined = isinstance(msg.content, str) or not texts or len(texts) < len(msg.blocks)
    return msg if is_joined else replace(msg, content=separator.join(texts))


def _check_prompt(formatter: ChatTemplateFormatter, prompt: ServedPrompt) -> None:
    """Checks that the chat template writes the text of the request for the messages of the prompt.

    Raises:
        MessageError: The chat template writes a different text.
    """
    template, variables = formatter.template, dict(formatter.variables)
    if isinstance(now := variables.get("now"), datetime):
        variables["now"] = datetime.fromisoformat(now.isoformat())  # a sample stores the time as text
    options: dict[str, Any] = {"validate": False, "on_special_tokens": formatter.on_special_tokens, **variables}
    text = template.render(prompt.msgs, tools=prompt.tools, add_generation_prompt=True, **options).text
    if formatter.finish_prompt(text) != prompt.request["prompt"]:
        reason = f"the chat template {template.name!r} writes different texts for the sample and the request"
        raise MessageError("msgs", reason, "Use a template whose text depends only on its arguments.")
