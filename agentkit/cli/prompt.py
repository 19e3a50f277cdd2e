"""`agentkit prompt`: writes the messages of a typed prompt, or parses a reply."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer

import agentkit.prompts as prompts  # fast start: the package imports its names on first use
from agentkit.cli.files import parse_input
from agentkit.cli.lines import run_conversion
from agentkit.errors import MessageError
from agentkit.json_values import as_object
from agentkit.messages.serialization import dump_messages
from agentkit.models.registry import load_provider
from agentkit.reprs import describe_value, shorten_repr

__all__ = ["prompt_command"]


def prompt_command(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="JSON file with the keys signature, instructions, inputs and examples. '-' or no file means "
            "standard input.",
            show_default=False,
        ),
    ] = None,
    adapter: Annotated[
        Literal["chat", "json", "xml", "prompt"], typer.Option(help="Adapter that writes the messages.")
    ] = "chat",
    parse: Annotated[
        str | None,
        typer.Option(help="Text of a reply to parse. The output has the values in the reply.", show_default=False),
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option(help="Provider to build a request for. The output is this request.", show_default=False),
    ] = None,
    lines: Annotated[
        bool,
        typer.Option("--lines", help="Read one object per line. The key 'reply' can contain a reply to parse."),
    ] = False,
) -> None:
    """Write the messages of a typed prompt, the request for a provider, or the values of a reply."""
    chosen = _create_adapter(adapter)

    async def convert(text: bytes) -> Any:
        from agentkit.prompts.value_types import as_json_value

        task = _read_task(text)
        signature: Any = prompts.Signature(task["signature"], task.get("instructions") or "")
        reply = task.get("reply") if parse is None else parse
        if reply is not None:
            return {name: as_json_value(value) for name, value in chosen.parse(signature, reply).items()}
        examples = _read_examples(task)
        msgs = chosen.format(signature, signature.from_dict(task["inputs"]), examples=examples)
        if provider is None:
            return dump_messages(msgs)
        formatter = load_provider(provider).chat_formatter()
        options = chosen.request_options(signature, formatter.capabilities())
        return (await formatter.plan(msgs, **options)).request

    raise typer.Exit(run_conversion(file, convert, lines=lines))


def _create_adapter(name: str) -> prompts.Adapter:
    match name:
        case "json":
            return prompts.JSONAdapter()
        case "xml":
            return prompts.XMLAdapter()
        case "prompt":
            return prompts.PromptAdapter()
        case _:
            return prompts.ChatAdapter()


_FIELDS: dict[str, tuple[type, str]] = {
    "signature": (str, 'a string such as "question -> answer"'),
    "instructions": (str, "a string"),
    "inputs": (dict, "an object with the values of the inputs"),
    "examples": (list, "a list of objects with the keys inputs and outputs"),
    "reply": (str, "the text of a reply"),
}


def _read_task(text: bytes) -> dict[str, Any]:
    """Parses the JSON object that describes a prompt.

    Raises:
        MessageError: The text is not a JSON object, `signature` is missing, a value has the wrong type, or a key
            is unknown.
    """
    data = parse_input(text)
    if not isinstance(data, dict):
        raise MessageError(
            "input", f"expected an object, got {describe_value(data)}", "Pass an object with `signature`."
        )
    task: dict[str, Any] = {"inputs": {}, **cast("dict[str, Any]", data)}
    for name, (expected, description) in _FIELDS.items():
        value = task.get(name)
        if not isinstance(value, expected) and (value is not None or name == "signature"):
            reason = f"expected {description}, got {describe_value(value)}"
            raise MessageError(name, reason, f"Pass {description}.")
    unknown = sorted(task.keys() - _FIELDS.keys())
    if unknown:
        raise MessageError(unknown[0], "unknown key", f"Use the keys {', '.join(_FIELDS)}.")
    return task


def _read_examples(task: dict[str, Any]) -> list[prompts.Example]:
    """Returns the examples of a prompt.

    Raises:
        MessageError: An example is not an object with exactly the keys `inputs` and `outputs`.
    """
    examples: list[prompts.Example] = []
    entries: list[object] = task.get("examples") or []
    for index, entry in enumerate(entries):
        fields = as_object(entry)
        if fields.keys() != {"inputs", "outputs"} or not all(isinstance(item, dict) for item in fields.values()):
            reason = f"expected an object with the objects `inputs` and `outputs`, got {shorten_repr(entry, 60)}"
            raise MessageError(f"examples[{index}]", reason, "Pass exactly these two keys.")
        examples.append(prompts.Example(fields["inputs"], fields["outputs"]))
    return examples
