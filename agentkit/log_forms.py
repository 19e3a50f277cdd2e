"""Forms in which conversations are logged: which one a message looks like, and checks that a reader got its own.

A log of another form must never be read as nothing. Each reader names the keys that it reads; the table here tells
which form a message of another one looks like.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple, cast

from agentkit.errors import MessageError
from agentkit.native import items_of, mapping_of

__all__ = ["check_log_form", "check_log_message", "check_log_request", "describe_log_form"]


class _LogForm(NamedTuple):
    """A form of logs.

    A signature names features of a message, separated by spaces; a message that has all of them has the form.
    Features are `key`, `key=text`, and the same of objects under a key or in the list there: `key.inner=text`.

    `loader` is the first argument of `load_native` that reads the form; empty if no loader does. No message of
    another form has one of the `signatures`. An unreadable message with one of the `hints` is likely to be of this
    form.
    """

    name: str
    loader: str
    signatures: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


_FORMS = (
    _LogForm("pydantic-ai messages", "", ("kind=request parts", "kind=response parts", "parts.part_kind")),
    _LogForm("A2A messages", "", ("kind=message parts", "parts.kind")),
    _LogForm(
        "OpenTelemetry GenAI messages",
        "",
        ("parts.type parts.content", "parts.type=tool_call", "parts.type=tool_call_response"),
    ),
    _LogForm(
        "Vercel AI SDK messages",
        "",
        ("parts.type", "toolInvocations", "content.type=tool-call", "content.type=tool-result"),
    ),
    _LogForm("Google ADK events", "", ("author content.parts", "author content.role")),
    _LogForm(
        "Bedrock Converse messages", "", ("content.toolUse", "content.toolResult", "content.reasoningContent")
    ),
    _LogForm("ShareGPT messages", "", ("from value",)),
    _LogForm("LlamaIndex messages", "", ("blocks.block_type",)),
    _LogForm("Haystack messages", "", ("_role _content",)),
    _LogForm("OpenAI Assistants messages", "", ("object=thread.message", "content.text.value")),
    _LogForm("OpenInference messages", "", ("message.role message.content",)),
    _LogForm("Gemini contents", "gemini", ("parts",), ("contents",)),
    _LogForm(
        "LangChain messages",
        "langchain",
        ("lc kwargs", "type=human", "type=ai", "data.content type", "additional_kwargs", "response_metadata"),
        ("type=system content", "type=tool content", "kwargs.messages"),
    ),
    _LogForm(
        "AgentScope messages",
        "agentscope",
        ("content.type=tool_result content.output", "content.type=tool_call content.input"),
        ("name role content.type=tool_use",),
    ),
    _LogForm(
        "Anthropic messages",
        "anthropic",
        ("content.type=tool_use", "content.type=tool_result", "content.type=image content.source"),
        ("content.type=thinking", "content.type=document", "system"),
    ),
    _LogForm("a DashScope request", "dashscope", (), ("input.messages", "input.prompt")),
    _LogForm(
        "OpenAI Responses items",
        "openai-responses",
        ("content.type=input_text", "content.type=output_text", "content.type=input_image"),
        ("call_id type", "type=reasoning", "type=message", "input instructions", "input", "previous_response_id"),
    ),
    _LogForm("Ollama messages", "ollama", (), ("role images", "role thinking", "role tool_name")),
    _LogForm(
        "OpenAI Chat messages",
        "openai",
        ("content.type=image_url", "content.type=input_audio"),
        ("role content.type", "role tool_calls", "tool_call_id", "role function_call", "role content", "messages"),
    ),
)
"""The first that matches counts."""

_CONTENT_KEYS = frozenset(
    {"content", "parts", "tool_calls", "function_call", "refusal", "images", "toolInvocations"}
    | {"reasoning_content", "reasoning", "reasoning_details", "thinking", "thinking_blocks", "additional_kwargs"}
)
"""Keys of messages under which known forms have content."""

_REQUEST_KEYS = frozenset(
    {"messages", "contents", "input", "prompt", "system", "instructions", "systemInstruction"}
    | {"system_instruction", "history", "chat_history"}
)
"""Keys of requests under which known APIs have messages or a system prompt."""

_ABOUT = frozenset({"id", "name", "role"})
_MODEL_ROLES = ("assistant", "model")


def check_log_message(
    message: Mapping[str, Any], place: str, read: Collection[str], kept: Collection[str] = (), forms: str = ""
) -> None:
    """Checks that a message of a log has the form that its reader reads.

    A model's message with nothing but a role is an empty reply. Raises MessageError if the message is of another
    form, has none of the keys that are read, or has content under a key that is not.

    `read` are the keys under which the reader finds content, `kept` further ones that the reader keeps without
    reading them. `forms` names the loaders whose messages the reader reads, separated by spaces.
    """
    check_log_form(message, place, forms)
    if not any(key in message for key in read):
        if message.keys() <= _ABOUT and message.get("role") in _MODEL_ROLES:
            return
        reason = f"expected content under {_listed(read)}, got {_keys(message)}"
        raise MessageError(place, reason, _advice(_find_form(message)))
    for key in sorted(_CONTENT_KEYS.intersection(message).difference(read, kept)):
        if message[key]:
            reason = f"content under {key!r} would be lost, expected content under {_listed(read)}"
            raise MessageError(f"{place}.{key}", reason, _advice(_find_form({key: message[key], "role": ""})))


def check_log_form(message: Mapping[str, Any], place: str, forms: str) -> None:
    """Raises MessageError if a message has the form of another loader than those named in `forms`."""
    form = _find_form(message, certain=True)
    if form is not None and form.loader not in forms.split():
        raise MessageError(place, f"a message with {_keys(message)} is not of this form", _advice(form))


def check_log_request(request: Mapping[str, Any], read: Collection[str], held: Collection[str] = ()) -> None:
    """Checks that a request has no messages where its reader does not look.

    `read` are the keys under which the reader finds messages and the system prompt. `held` are those that name
    messages which the server stores: they are not in the request. Raises MessageError if the request has one of
    the `held` keys, or messages under a key that is not read.
    """
    for key in held:
        if request.get(key):
            reason = f"the server holds messages that are not in this request ({str(request[key])[:60]!r})"
            advice = "Pass the messages without the request to load them alone, or put those before them in front."
            raise MessageError(key, reason, advice)
    for key in sorted(_REQUEST_KEYS.intersection(request).difference(read)):
        if request[key]:
            reason = f"requests of this form have no {key!r}: its content would be lost"
            raise MessageError(key, reason, _advice(_find_form(request)))


def describe_log_form(log: object) -> str:
    """Returns advice that names the form that a log, a request or a message looks like; or general advice."""
    for item in items_of(log) or [log]:
        held: dict[str, Any] = mapping_of(item)
        if held:
            return _advice(_find_form(held))
    return _advice(None)


_ADVICE = "Convert the messages to one of the forms that load_native reads."


def _advice(form: _LogForm | None) -> str:
    if form is None:
        return "Pass messages of this form, or name the form they have."
    if not form.loader:
        return f"It looks like {form.name}. {_ADVICE}"
    return f"It looks like {form.name}. Use load_native({form.loader!r}, …) for these."


def _listed(keys: Collection[str]) -> str:
    return " or ".join(map(repr, sorted(keys)))


def _keys(message: Mapping[str, Any]) -> str:
    shown = [repr(key[:40]) for key in list(message)[:8]]
    return f"the keys {', '.join(shown)}" if shown else "no keys"


def _find_form(message: Mapping[str, Any], *, certain: bool = False) -> _LogForm | None:
    features = frozenset(_features(message))
    for form in _FORMS:
        signatures = form.signatures if certain else form.signatures + form.hints
        if any(features.issuperset(signature.split()) for signature in signatures):
            return form
    return None


def _features(message: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """The keys of a message, of the objects in it, and of those in its lists, with short texts under them."""
    for key, item in message.items():
        name = f"{prefix}{key}"
        yield name
        if isinstance(item, str):
            if len(item) < 30:
                yield f"{name}={item}"
        elif prefix.count(".") < 2:
            inner = cast("list[Any]", item) if isinstance(item, list) else [item]
            for one in inner[:100]:
                if isinstance(one, dict):
                    yield from _features(cast("dict[str, Any]", one), f"{name}.")
