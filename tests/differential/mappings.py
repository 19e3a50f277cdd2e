"""The differences between the two versions that are intended. Every row applies to what the base version gives.

A change of the library that rewords a ledger reason, or moves a value in a message, adds its row here in the same
commit. Everything else must stay equal.
"""

from __future__ import annotations

import re
from typing import Any, Final, cast

__all__ = [
    "REASONS",
    "TEXTS",
    "add_omitted_keys",
    "drop_foreign_options",
    "drop_repeated_details",
    "is_removed",
    "move_native_keys",
]

REASONS: Final[tuple[tuple[str, str], ...]] = (
    (r"a picture encoded anew, in less data", r"image encoded again with less data to fit a limit of the API"),
    (r"a picture of (\d+ x \d+) pixels, made (\d+ x \d+)", r"image resized from \1 to \2 pixels"),
    (
        r"a late system message, as a line of the user's under its name",
        r"system message after the start of the conversation, sent as user text that begins with the speaker name",
    ),
    (
        r"thinking, or a provider's own part, of a speaker in the frame",
        r"thinking and provider-specific data of another speaker cannot be written as a line of the history",
    ),
    (
        r"(.*) has no choice 'none': the tools are left out",
        r"\1 does not accept tool_choice 'none', so the request declares no tools",
    ),
    (
        r"(.*) has no choice ('\w+'): asked for in words",
        r"\1 does not accept tool_choice \2, so an instruction in the prompt asks for a tool call",
    ),
    (
        r"calls in the history need tools in the request; none may be called",
        r"the API requires declarations of all tools that were called; tool_choice 'none' forbids new calls",
    ),
    (
        r"moved into the first user turn: no system role",
        r"moved into the first user turn, because the API has no system role",
    ),
    (
        r"thinking without the proof that its issuer wants back",
        r"this thinking has no signature or encrypted data, but the API requires one of them",
    ),
    (
        r"the target takes a system message at the start only",
        r"speaker name added to a system message that is sent as user text",
    ),
    (
        r"written as text: the target has no role for tools",
        r"written as text, because the API has no roles for tool calls and results",
    ),
    (
        r"moved into a turn of its own: the target takes one tool call at a time",
        r"moved into a separate turn, because the API accepts only one tool call per turn",
    ),
    (
        r"the thinking before it in its reply is not sent, and the API refuses one without the other",
        r"the API requires the thinking before this block, but the request omits that thinking",
    ),
    (
        r"a sound, sent as its transcript; state issued by (.*) was left off",
        r"audio sent as its transcript; data issued by \1, such as a signature, was omitted",
    ),
    (r"a sound, sent as its transcript; (.*) was left off", r"audio sent as its transcript; \1 was omitted"),
    (r"a signature that is no base64 text was left off", r"a signature that is not base64 text was omitted"),
    (
        r"the signature of a picture that was changed or moved was left off",
        r"the signature of a changed or moved media item was omitted",
    ),
    (r"state issued by (.*) was left off", r"data issued by \1, such as a signature, was omitted"),
    (r"(.*) was left off", r"\1 was omitted"),
    (
        r"the wire has no place for its (role|partial|prefix)",
        r"message.\1 omitted: the API has no field for it",
    ),
    (
        # messages that the base version stored have these keys without the prefix
        r"(role|partial|prefix) omitted: the API has no field for it",
        r"message.\1 omitted: the API has no field for it",
    ),
    (r"the wire has no place for its (.*)", r"\1 omitted: the API has no field for it"),
    (r"a blank text", r"the text is empty or has only white space"),
    (r"thinking, which this target does not take back", r"the API does not accept thinking in this message"),
    (r"thinking whose signature is no base64 text", r"the signature of this thinking is not base64 text"),
    (r"thinking that neither says nor proves anything", r"the thinking has neither text nor a signature"),
    (
        r"thinking with nothing behind it",
        r"the API requires a text or tool call after thinking, but neither follows in this message",
    ),
    (
        r"thinking issued by (.*), not by this target",
        r"the API does not accept thinking issued by \1",
    ),
    (
        r"its argument text is not the JSON object of its input",
        r"`raw_input` is not the JSON text of `input`; the request contains `input`, or an object with "
        r"`raw_input` if `input` is empty",
    ),
    (
        r"its id or tool name in the wire's spelling",
        r"call id or tool name replaced, because the API does not accept the original",
    ),
    (r"joined with the system prompt before it", r"merged into the previous system message"),
    (
        r"media moved into a user turn of its own",
        r"moved into a separate user turn, because the API does not accept this media item in the original turn",
    ),
    (r"the label of media that was moved", r"text that tells the model where the moved media come from"),
    (r"joined with the turn before it", r"merged into the previous turn of the same role"),
    (r"there is no turn", r"no turn to send, but the API requires one, so a user turn was added"),
    (
        r"the conversation begins without a user turn",
        r"the API requires a user turn at the start, so one was added",
    ),
    (
        r"the conversation ends without a user turn",
        r"user turn added at the end, because the API refuses the request without this turn",
    ),
    (
        r"a user turn follows a tool result",
        r"the API requires an assistant turn between a tool result and a user turn",
    ),
    (
        r"call (.*?) of (.*) has no result",
        r"call \1 of tool \2 has no result, so an error result was added",
    ),
    (r"no open tool call has id (.*)", r"no earlier tool call with id \1 needs a result"),
    (
        r"(tool .*|response_format): sent without strict: a definition refers to itself",
        r"\1 sent without strict mode, because a definition in the schema refers to itself",
    ),
    (
        r"(tool .*|response_format): sent without strict: (.*) could not be merged",
        r"\1 sent without strict mode, because the schema root has \2, which cannot be converted to `properties`",
    ),
    (
        r"(tool .*|response_format): sent without strict: (\S+) has ('.*') beside a reference",
        r"\1 sent without strict mode, because the schema at \2 combines the keyword \3 with `$ref`",
    ),
    (
        r"(tool .*|response_format): sent without strict: the root requires a property that it does not have",
        r"\1 sent without strict mode, because the schema root requires a property that it does not define",
    ),
    (
        r"(tool .*|response_format): sent without strict: (\S+) requires a property that it does not have",
        r"\1 sent without strict mode, because the schema at \2 requires a property that it does not define",
    ),
    (
        r"(tool .*|response_format): sent without strict: the property (.*) is optional",
        r"\1 sent without strict mode, because the optional property \2 is not allowed in strict mode",
    ),
    (
        r"(tool .*|response_format): sent without strict: the root is an array without items",
        r"\1 sent without strict mode, because the schema root has type array, but no `items`",
    ),
    (
        r"(tool .*|response_format): sent without strict: (\S+) is an array without items",
        r"\1 sent without strict mode, because the schema at \2 has type array, but no `items`",
    ),
    (
        r"(tool .*|response_format): sent without strict: the root is a reference",
        r"\1 sent without strict mode, because strict mode does not accept a reference at the schema root",
    ),
    (
        r"(tool .*|response_format): sent without strict: (\S+) is not an object",
        r"\1 sent without strict mode, because the schema at \2 is not a JSON object",
    ),
    (
        r"(tool .*|response_format): sent without strict: the root (is|has|allows) (.*)",
        r"\1 sent without strict mode, because the schema root \2 \3",
    ),
    (
        r"(tool .*|response_format): sent without strict: (\S+) "
        r"(is nested .*|has no type|has the unsupported .*|refers to .*"
        r"|allows additional properties)",
        r"\1 sent without strict mode, because the schema at \2 \3",
    ),
    (
        r"(tool .*|response_format): sent without strict: (.*)",
        r"\1 sent without strict mode, because \2",
    ),
    (
        r"(tool .*): (.*) has no strict mode for tools",
        r"\1 sent without strict mode, because \2 has no strict mode for tools",
    ),
    (
        r"(.*) cannot limit the choice to some of the tools: only (.*) offered",
        r"\1 cannot limit the choice to some of the tools, so the request declares only \2",
    ),
    (
        r"(tool .*): (.*) at the root of its parameters merged into one object",
        r"\1: APIs require an object schema at the root of the parameters, so these root keywords are not sent: "
        r"\2",
    ),
    (
        r"the text before the first history frame",
        r"text that tells the model that the conversation history follows",
    ),
    (
        r"a part whose other half is missing",
        r"the matching request or response of the provider's tool is missing",
    ),
    (
        r"thinking bound to a prefix that has changed",
        r"the API refuses this thinking because the tools or earlier messages changed",
    ),
    (r"a text document, sent as its text", r"document sent as text, because the API does not accept the file"),
    (
        r"a sound, by the id under which its service keeps it",
        r"audio sent as the id under which the provider stores the audio",
    ),
    (r"stands for 1 messages that were cut", r"replaces 1 message dropped to keep the request within the budget"),
    (
        r"stands for (\d+) messages that were cut",
        r"replaces \1 messages dropped to keep the request within the budget",
    ),
    (r"only (.*) knows it", r"block in a format that only \1 accepts"),
    (
        r"only a tool result may hold it",
        r"the API accepts this type of block only in tool results, but tool results are sent as text here",
    ),
    (r"a failed result holds text alone", r"the API accepts only text in a tool result that reports an error"),
    (r"([^\[\]]*) has no place for it in (a [^\[\]]*)", r"\1 does not accept this type of block in \2"),
    (
        r"sent as the item that the model made it in",
        r"sent as the id of the reply item that contains the media",
    ),
    (
        r"sent as (.*), which its bytes or its server say it is, not (.*)",
        r"media type sent as \1 instead of \2, according to the content or server",
    ),
    (
        r"sent as (.*), which its bytes are, not (.*)",
        r"media type sent as \1 instead of \2, according to the content",
    ),
    (
        r"a part of a reply that only (.*) knows",
        r"the API does not accept reply data in the format of \1 in this message",
    ),
    (
        r"the target enforces no JSON schema",
        r"the API cannot enforce a JSON schema, so a text asks the model to follow the schema",
    ),
    (
        r"its speaker is named (.*) on the wire",
        r"speaker name sent as \1, because the API does not accept the original name",
    ),
    (
        r"the viewer does not see it",
        r"the history policy hides this message from the agent that the request is for",
    ),
    (r"another agent's tool use", r"the history policy omits tool calls and results of other agents"),
    (r"left out or rewritten by the history policy", r"omitted or rewritten by the history policy"),
    (r"the tags around a run of speakers", r"tags around the lines of the conversation history"),
    (r"as it is", r"sent unchanged"),
    (r"a line of the history frame", r"written as a line `NAME: TEXT` in the user turn that contains the history"),
    (
        r"said inside an open exchange, put behind it",
        r"was between tool calls and their results; moved after the results",
    ),
    (r"equals the result that call (.*) has", r"duplicate of the result of call \1"),
    (r"(invalid block: |)(\S+media_type): (.+) is no media type", r"\1\2: expected a media type, got \3"),
    # invalid blocks of LangChain's logs
    (r"(invalid block: |)it is no message", r"\1expected a message object"),
    (r"(invalid block: |)an order to take a message away", r"\1expected a message, got a RemoveMessage"),
    (
        r"(invalid block: |)(it is neither text nor a list of blocks|it has no type)",
        r"\1expected a string or a block with a `type`",
    ),
    (r"(invalid block: |)a result cannot hold a (\w+) block", r"\1a tool result cannot contain a \2 block"),
    (r"(invalid block: |)text: it is no text", r"\1text: expected a string"),
    (
        r"(invalid block: |)(input_audio\.data: it is no text|image_url: there is no URL|source: it is missing)",
        r"\1source: expected data or a URL, got neither",
    ),
    (
        r"(invalid block: |)(source|file): it is a file id, which no other place knows",
        r"\1source: expected data or a URL, got a file id of the provider",
    ),
    # estimated token counts
    (r"estimated by characters", r"all tokens are estimated from characters, without a tokenizer"),
    (
        r"no chat template: messages are estimated at 5 tokens each",
        r"no chat template: 5 tokens are assumed for each message in addition to its texts",
    ),
    (
        r"documents are estimated by their size",
        r"the tokens of documents are estimated from the size of their data",
    ),
    # errors of streams
    (r"an error without a message", r"the error has no message"),
    (r"an event that is no JSON object: (.*)", r"an event is not a JSON object: \1"),
    # invalid sources
    (r"(invalid block: |)(.*media_type): ('.*') is no media type", r"\1\2: expected a media type, got \3"),
    (
        r"(invalid block: |)(.*)source: (\w+) is no source",
        r"\1\2source: expected a URLSource or Base64Source, got \3",
    ),
    # invalid blocks of Anthropic's logs
    (
        r"(invalid block: |)no block that a result of ours can hold",
        r"\1expected a type of block that a tool result can contain",
    ),
    # invalid blocks of Ollama's logs
    (
        r"(invalid block: |)its bytes are no picture or sound that is known",
        r"\1expected base64 data of an image or of audio",
    ),
    (
        r"behind a line break, so that the SDK takes it for no file",
        r"line break added before the text: otherwise the SDK could treat the text as a path and upload the file",
    ),
    (
        r"changed to keep the request within the budget",
        r"shortened or replaced by a note to keep the request within the budget",
    ),
    (r"(invalid block: |)(thinking: |)expected text, got (\w+)", r"\1\2expected a string, got \3"),
    (
        r"(invalid block: |)content: expected text or a list, got (\w+)",
        r"\1content: expected a string or a list, got \2",
    ),
    # places of ConversionError
    (r"an assistant's turn", r"assistant turn"),
    (r"(a user turn|a turn) or a tool result", r"content part"),
    (r"a message or a tool result", r"message content"),
    (r"a message on the text path", r"text-path message"),
    (r"a (function response|tool result)", r"\1"),
    (r"media by URL", r"audio URL"),
    # invalid blocks of DashScope's logs
    (
        r"(invalid block: |)it is no call of a function",
        r"\1expected a `function` object in the tool call",
    ),
    (
        r"(invalid block: |)it is neither text nor a list of parts",
        r"\1expected a string or a list of content parts",
    ),
    (r"(invalid block: |)it is no part", r"\1expected a content part"),
    (r"(invalid block: |)there is no text in it", r"\1expected a part in which `text` is a string"),
    (r"(invalid block: |)it is no URL of (\w+)", r"\1expected a URL of the \2"),
    (
        r"(invalid block: |)a frame is no URL that DashScope opens",
        r"\1expected video frames that are http, https, oss or data URLs",
    ),
    # invalid blocks with strings that UTF-8 cannot encode, and of MCP results
    (r"(.*)has a lone surrogate at (.*)", r"\1the string has a lone surrogate at \2"),
    (r"(.*)cannot be written as JSON: (.*)", r"\1the value cannot be written as JSON: \2"),
    (
        r"(invalid block: |)not a content item of MCP: text, image, audio, resource or resource_link",
        r"\1expected an MCP content item (text, image, audio, resource or resource_link)",
    ),
    # invalid blocks of OpenAI's logs
    (
        r"(invalid block: |)text: there is no text in it\. Mend the part\.",
        r"\1text: expected a string. Pass a content part in which `text` is a string.",
    ),
    (
        r"(invalid block: |)its role is none that the wire has",
        r"\1expected a role such as 'user' or 'assistant'",
    ),
    (
        r"(invalid block: |)expected a content part with a type, got the keys (.*)",
        r"\1expected a content part in which `type` is a string",
    ),
    (r"(invalid block: |)it is no content part", r"\1expected a content part (an object or a string)"),
    (r"(invalid block: |)it is no call", r"\1expected a tool call with the key `function` or `custom`"),
    (r"(invalid block: |)it is no item", r"\1expected an item (a JSON object)"),
    (r"(invalid block: |)an item without a type", r"\1expected an item in which `type` is a string"),
    (r"(invalid block: |)it is neither text nor a list of items", r"\1expected a string or a list of items"),
    # invalid blocks of Anthropic's logs
    (r"(invalid block: |)source: it is no source that is known", r"\1source: expected base64 data or a URL"),
    (r"(invalid block: |)type: it is missing", r"\1type: expected a string such as 'text'"),
    # invalid blocks of Gemini's logs
    (r"(invalid block: |)no part that is known", r"\1expected a part of a known kind, such as `text`"),
    (r"(invalid block: |)inline_data: its data are no base64 text", r"\1inline_data.data: expected base64 data"),
    (
        r"(invalid block: |)function_response\.response: it is missing",
        r"\1function_response.response: expected an object",
    ),
)
"""Ledger reasons and synthesis names: a regular expression that matches the whole old one, and the new one.

The new one may refer to groups: `(r"(.+) takes no (\\w+)", r"\\1 does not accept \\2")`. The first matching row
counts. The rows also apply to the reasons of losses, of invalid blocks (after `invalid block: `, too), and of
estimated token counts.
"""

TEXTS: Final[tuple[tuple[str, str], ...]] = (
    (r"takes no (image|video|document)(?![/\w])", r"does not accept \1s"),
    (r"takes no audio(?![/\w])", r"does not accept audio"),
    (r"takes no ([\w.+-]+/[\w.+-]+)", r"does not accept \1"),
    (r"its URL names no host", r"the URL has no host"),
    (r"it holds no UTF-8 text", r"the data is not UTF-8 text"),
    (
        r"its data is no (?:image|audio|video|document) that ([\w ]+) knows",
        r"the data is not in a format that \1 accepts",
    ),
    (r"its data is no ([\w.+-]+/[\w.+-]+)", r"the data is not \1"),
    (
        r"takes no more than (\d+) of the kind in one request",
        r"accepts at most \1 media items of this kind in one request",
    ),
    (r"takes no more data of the kind (\w+) in one request", r"accepts no more data of \1 items in one request"),
    (r"takes no more data of media in one request", r"accepts no more data of media items in one request"),
    (r"it is larger than ([\w ]+) (?:takes|accepts)", r"the data is larger than \1 accepts"),
    (r"only a tool result may hold it", r"only a tool result can contain it"),
    (r"a failed result holds text alone", r"a tool result that reports an error can contain only text"),
    (r"has no place for it in (a tool result|a message)", r"does not accept it in \1"),
    (r"left out because only ([^\]]+?) knows it", r"left out because only \1 accepts its format"),
    (r"(?:it is )?a remote URL that took longer than", r"the download from the URL took longer than"),
    (r"(?:it is )?a remote URL whose host is not known", r"the host of the URL is unknown"),
    (r"(?:it is )?a remote URL that cannot be fetched", r"the download from the URL failed"),
    (r"(?:it is )?a remote URL with nothing at it", r"the URL has no content"),
    (r"(?:it is )?a remote URL whose content is no ", r"the content of the URL is not "),
    (
        r"(?:it is )?a remote URL whose content has no known media type",
        r"the content of the URL has an unknown media type",
    ),
    (r"(?:it is )?a remote URL that redirects", r"the URL redirects"),
    (
        r"(?:it is )?a remote URL that is not http or https all the way",
        r"the URL, or a redirect, is not an http or https URL",
    ),
    (r"(?:it is )?a remote URL with credentials in it", r"the URL, or a redirect, contains credentials"),
    (
        r"(?:it is )?a remote URL at an address that is not public",
        r"the host of the URL has an IP address that is not public",
    ),
    (r"(?:it is )?a remote URL that was answered with status", r"the request to the URL returned status"),
    (
        r"(?:it is )?a remote URL whose content comes compressed though it was asked for as it is",
        r"the server at the URL compressed the content, which the request did not allow",
    ),
    (r"(?:it is )?a remote URL whose content is larger", r"the content of the URL is larger"),
    (
        r"(?:it is )?a remote URL whose content comes in absurdly many pieces",
        r"the server at the URL split the content into too many pieces",
    ),
    (r"(?:it is )?a path that is no file", r"the path is not a file"),
    (r"(?:it is )?a local file whose content is no ", r"the content of the file is not "),
    (r"(?:it is )?a data URL whose content is no ", r"the content of the data URL is not "),
    (
        r"(?:it is )?a data URL whose data is empty or not base64 text",
        r"the data URL contains no data, or the data is not base64 text",
    ),
    (
        r"(?:it is )?a file whose media type neither its name nor its content tells",
        r"neither the name nor the content of the file shows the media type",
    ),
    (r"it is a text of more than (\d+) characters", r"the document has more than \1 characters"),
    (r"\bits (URL|data|path|file)\b", r"the \1"),
    (r"\bit is (an? (?:[\w ]+ )?(?:URL|file|path))\b", r"the source is \1"),
)
"""Texts within requests, such as fillers and notes for omitted content: a regular expression, and its replacement.

Every row is applied to every text of a record. Where a row changes anything, token counts and prefix digests are
not compared.
"""


def drop_repeated_details(entry: list[Any]) -> list[Any]:
    """Returns a ledger entry of the base version without details that repeat its reason.

    The base version noted a block once for each part that a history policy made of it.
    """
    *fields, reason, details = entry
    return [*fields, reason, [detail for detail in details if detail != reason]]


def add_omitted_keys(old: Any, new: Any) -> Any:
    """Returns the old record with the new details about additional keys of blocks that are written as text.

    The base version omitted the keys of such blocks, and of media replaced by a note, without a detail.
    """
    if isinstance(old, list) and isinstance(new, list):
        pairs = list(zip(cast("list[Any]", old), cast("list[Any]", new), strict=False))
        return [add_omitted_keys(*pair) for pair in pairs] + cast("list[Any]", old)[len(pairs) :]
    if not isinstance(old, dict) or not isinstance(new, dict):
        return cast("Any", old)
    before, after = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
    return {
        key: (
            [_add_details(*pair) for pair in zip(item, after[key], strict=True)]
            if key == "entries" and len(item) == len(after.get(key, ()))
            else add_omitted_keys(item, after.get(key))
        )
        for key, item in before.items()
    }


def _add_details(old: list[Any], new: list[Any]) -> list[Any]:
    added = [detail for detail in new[-1] if detail not in old[-1]]
    is_text = any(reason in _TEXT_REASONS for reason in (old[-2], *old[-1]))
    if is_text and len(new[-1]) == len(old[-1]) + len(added) and all(map(_OMITTED.fullmatch, added)):
        return [*old[:-1], sorted([*old[-1], *added])]
    return old


_TEXT_REASONS: Final = frozenset(
    {
        "document sent as text, because the API does not accept the file",
        "shortened or replaced by a note to keep the request within the budget",
        "written as a line `NAME: TEXT` in the user turn that contains the history",
    }
)
_OMITTED: Final = re.compile(r"[\w.]+ omitted: the API has no field for it")


def move_native_keys(message: dict[str, Any]) -> dict[str, Any]:
    """Returns a stored message of the base version with the keys of its native log where they stand now.

    The base version stored some keys of messages in the state of a text without the prefix `message.`.
    """
    if not isinstance(message["content"], list):
        return message
    return {**message, "content": [_add_prefixes(block) for block in cast("list[Any]", message["content"])]}


def _add_prefixes(block: Any) -> Any:
    match block:
        case {"type": "text", "state": {"fields": {**fields}} as state}:
            renamed = {f"message.{key}" if key in _UNPREFIXED else key: item for key, item in fields.items()}
            return cast("dict[str, Any]", block) | {"state": cast("dict[str, Any]", state) | {"fields": renamed}}
        case _:
            return block


_UNPREFIXED: Final = frozenset({"role", "partial", "prefix"})


def drop_foreign_options(record: dict[str, Any]) -> dict[str, Any]:
    """Returns the record of a log, without its request options if the provider refuses the log.

    The base version read the options of a request without its provider, and so from any format.
    """
    if "error" not in record:
        return record
    return {key: value for key, value in record.items() if key not in ("options", "server_tools", "markers")}


def map_refusals(old: Any, new: Any, *, counts_texts: bool) -> Any:
    """Returns the old record with the new outcome of each request that the base version refused without need.

    The base version refused a request that fits without a cut, if the request did not fit after cuts. Cuts need
    tokens for summaries and fillers. If `counts_texts` is True, sizes in refusals may differ by the tokens of
    `TEXTS`.
    """
    if isinstance(old, list) and isinstance(new, list):
        pairs = list(zip(cast("list[Any]", old), cast("list[Any]", new), strict=False))
        return [map_refusals(*pair, counts_texts=counts_texts) for pair in pairs] + cast("list[Any]", old)[
            len(pairs) :
        ]
    if not isinstance(old, dict) or not isinstance(new, dict):
        return cast("Any", old)
    before, after = cast("dict[str, Any]", old), cast("dict[str, Any]", new)
    if before.get("error") == "BudgetError" and _fits_uncut(after, before["facts"]["limit"]):
        return after
    if counts_texts and before.get("error") == after.get("error") == "BudgetError":
        return _without_text_tokens(before, after)
    if before.get("error") in ("BudgetError", "LossError") and after.get("error") == "LossError":
        # on_loss="raise" refuses the content that an uncut request loses, and so more content
        losses, more = before["facts"].get("losses", []), after["facts"].get("losses", [])
        return after if len(losses) < len(more) and all(loss in more for loss in losses) else before
    return {key: map_refusals(item, after.get(key), counts_texts=counts_texts) for key, item in before.items()}


def _without_text_tokens(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Returns the old refusal with the new size if both sizes are close."""
    old, new = before["facts"].get("needed", 0), after["facts"].get("needed", 0)
    is_close = abs(_get_tokens(old) - _get_tokens(new)) <= _MAX_TEXT_TOKENS
    return {**before, "facts": {**before["facts"], **({"needed": new} if new else {})}} if is_close else before


def _get_tokens(size: int | dict[str, Any]) -> int:
    return int(size["tokens"]) if isinstance(size, dict) else size


_MAX_TEXT_TOKENS: Final = 40


def _fits_uncut(record: dict[str, Any], limit: int) -> bool:
    match record:
        case {"request": _, "cut": None, "tokens": int(tokens) | {"tokens": int(tokens)}}:
            return tokens <= limit
        case _:
            return False


def is_removed(part: dict[str, Any]) -> bool:
    """Returns True for a stream, reply or log of a form that is no longer supported: no result of it is compared.

    `part` is an item of the `runs` or `logs` of a case.
    """
    return False
