"""`samples_from_log`: returns one sample for each reply of the agents in a log."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from agentkit.argument_checks import check_option
from agentkit.chat_templates.template_formatter import ChatTemplateFormatter
from agentkit.errors import MessageError, OptionError
from agentkit.formatting.formatter import FormatterBase, check_messages
from agentkit.json_values import as_list, as_object
from agentkit.messages.message import Msg
from agentkit.tools.tool import Tool, ToolLike, as_tools
from agentkit.training.sample import MessageWeight, Sample, is_reply
from agentkit.training.served_prompts import ServedPrompts

__all__ = ["LogSamples", "find_token_ids", "samples_from_log"]

_TOKEN_IDS: Final = "token_ids"
"""Key of recorded token ids in `metadata["reply"]`, which parsers set, or in `metadata`, which users can set."""


class LogSamples(Iterator[Sample]):
    """Iterator over the samples of a log, created by `samples_from_log`.

    After an error, the iterator continues with the next reply.

    Attributes:
        index: Index in the log of the reply that was read last. -1 before the first reply.
    """

    def __init__(
        self,
        msgs: list[Msg],
        viewers: Collection[str],
        formatter: FormatterBase | None,
        keep: Callable[[Sample], object] | None,
        tools: tuple[Tool, ...],
    ) -> None:
        self.index = -1
        self._msgs = msgs
        self._tools = tools
        self._keep = keep
        self._indexes = iter(
            [index for index, msg in enumerate(msgs) if index and is_reply(msg) and msg.name in viewers]
        )
        self._prompts = (
            {} if formatter is None else {name: ServedPrompts(formatter, name, tools) for name in viewers}
        )
        self._extra: dict[str, Any] = {}
        if isinstance(formatter, ChatTemplateFormatter) and (variables := _list_variables(formatter)):
            self._extra = {"chat_template_kwargs": variables}

    def __iter__(self) -> LogSamples:
        return self

    def __next__(self) -> Sample:
        """Returns the next sample.

        Raises:
            StopIteration: There are no further replies.
            AgentkitError: The formatter cannot build the prompt of the reply, or the number of recorded token ids
                is wrong.
        """
        for index in self._indexes:
            self.index = index
            sample = self._create(index)
            if self._keep is None or self._keep(sample):
                return sample
        raise StopIteration

    def _create(self, index: int) -> Sample:
        before, reply = self._msgs[:index], self._msgs[index]
        tools = self._tools
        prompts = self._prompts.get(reply.name)
        if prompts is not None:
            prompt = prompts.build(before)
            before, tools, reply = list(prompt.msgs), prompt.tools, prompts.adapt_reply(reply)
        weights: list[MessageWeight] = [0 if is_reply(msg) else None for msg in before]
        source = f"msgs[{index}]"
        ids = find_token_ids(reply, source)
        tokens = {len(before): ids} if ids else None
        msgs = [*before, reply]
        return Sample(msgs, tools, [*weights, 1], reply.name, tokens, source, extra=self._extra)


def _list_variables(formatter: ChatTemplateFormatter) -> dict[str, Any]:
    """Returns the variables of the template. The time `now` is ISO 8601 text, which JSON can represent."""
    variables = {
        name: value.isoformat() if name == "now" and isinstance(value, datetime) else value
        for name, value in formatter.variables.items()
    }
    if formatter.on_special_tokens == "space":
        variables["on_special_tokens"] = "space"
    return variables


def find_token_ids(reply: Msg, place: str) -> list[Any]:
    """Returns the recorded token ids of a reply. Returns an empty list if the reply has no recorded ids.

    Raises:
        MessageError: The server returned ids, and their number differs from `usage.output_tokens`. If
            `output_tokens` is 0, the numbers are not compared.
    """
    metadata = reply.metadata or {}
    if _TOKEN_IDS in metadata:
        return as_list(metadata[_TOKEN_IDS])
    ids = as_list(as_object(metadata.get("reply")).get(_TOKEN_IDS))
    count = reply.usage.output_tokens if reply.usage else 0
    if ids and count not in (0, len(ids)):
        # Older versions of vLLM omit ids of streamed tool calls: vllm#27482, fixed by vllm#29074 (2025-11-20).
        reason = f"the server returned {len(ids)} token ids, but counted {count} output tokens"
        advice = 'Set metadata["token_ids"] to all ids of the reply, or to [] to encode the text.'
        raise MessageError(place, reason, advice)
    return ids


def samples_from_log(
    log: Sequence[Msg],
    *,
    viewers: Collection[str] | None = None,
    formatter: FormatterBase | None = None,
    keep: Callable[[Sample], object] | None = None,
    tools: Sequence[ToolLike] = (),
) -> LogSamples:
    """Returns an iterator over samples: one for each reply of the agents in a conversation.

    Each sample has the messages before the reply, and the reply with the weight 1. Earlier replies have the weight
    0, so that no reply is trained twice. A reply at the start of the conversation has no prompt, so it does not
    become a sample.

    Pass the formatter that built the requests. The formatter's history policy, rules and budget are then applied
    to the messages before each reply. For a `ChatTemplateFormatter`, agentkit checks that the template writes the
    same text for these messages as for the request. Without a formatter, the messages are unchanged.

    If a server returned the token ids of a reply, as vLLM does with the parameter `return_token_ids`, the ids
    become `Sample.tokens`. A list in `metadata["token_ids"]` of the message replaces the ids of the server.

    The variables of a `ChatTemplateFormatter`, and `on_special_tokens="space"`, become `chat_template_kwargs` in
    `Sample.extra`. The time in the variable `now` becomes ISO 8601 text, which `tokenize` and `split_rewritten`
    read.

    Args:
        log: The conversation.
        viewers: Names of the agents whose replies become samples, or one name. None means all agents.
        formatter: Formatter of the model that wrote the replies. If the history policy of the formatter has a
            viewer, the agent that wrote the reply becomes the viewer.
        keep: Function that returns True for each sample to keep. None keeps all samples.
        tools: Tools that the requests declared.

    Raises:
        MessageError: The log is not a list of messages.
        EmptyConversationError: There are no messages.
        OptionError: An option is invalid, or an agent in `viewers` wrote no reply.

    Example:
        >>> log = [Msg("Bob", "Hi.", "user"), Msg("Eve", "Hello.", "assistant"), Msg("Ann", "Hey.", "assistant")]
        >>> [(sample.viewer, len(sample.msgs)) for sample in samples_from_log(log)]
        [('Eve', 2), ('Ann', 3)]
    """
    msgs = check_messages(log)
    check_option("formatter", formatter, FormatterBase | None)
    check_option("keep", keep, Callable | None, "Pass a function that takes a Sample.")
    speakers = dict.fromkeys(msg.name for msg in msgs if is_reply(msg))
    check_option("viewers", viewers, Collection | None, "Pass a list of names.")
    names = (viewers,) if isinstance(viewers, str) else tuple(speakers if viewers is None else viewers)
    for name in names:
        if name not in speakers:
            advice = f"Pass one of {', '.join(map(repr, speakers))}." if speakers else "Pass a log with replies."
            raise OptionError("viewers", f"no agent with the name {name!r} wrote a reply in the log", advice)
    return LogSamples(msgs, names, formatter, keep, as_tools(tools))
