"""`agentkit render`: writes a conversation with the chat template of a model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from agentkit.chat_templates.template_arguments import find_template
from agentkit.cli.files import check_blocks, find_tokenizer, read, write_bytes
from agentkit.cli.lines import run_conversion
from agentkit.cli.logs import check_log_format, load_log
from agentkit.cli.options import FileArgument, KeepInvalidOption, LogFormatOption
from agentkit.errors import OptionError
from agentkit.reprs import shorten_repr
from agentkit.training.text_encoder import Encode, as_tokenizer

if TYPE_CHECKING:
    from agentkit.chat_templates import RenderedChat

__all__ = ["TemplateOption", "render_command"]

TemplateOption: TypeAlias = Annotated[
    str,
    typer.Option(
        help="Chat template: a built-in name such as chatml, a folder of a tokenizer, or a .jinja or .gguf file.",
        show_default=False,
    ),
]


def render_command(
    template: TemplateOption,
    file: FileArgument = None,
    source: LogFormatOption = "agentkit",
    tokens: Annotated[
        Path | None,
        typer.Option(
            help="Folder with a tokenizer.json. The output is then JSON with the token ids.", show_default=False
        ),
    ] = None,
    spans: Annotated[
        bool,
        typer.Option(
            "--spans", help="Write JSON with the text, the positions of the replies, and the end of the prompt."
        ),
    ] = False,
    lines: Annotated[
        bool, typer.Option("--lines", help="Read one conversation per line, and write one JSON object per line.")
    ] = False,
    keep_invalid: KeepInvalidOption = False,
) -> None:
    """Write a conversation with the chat template of a model.

    The conversation is a JSON list of messages, or an object with `messages` and optionally `tools`. Blocks that
    the template omits are listed on standard error, or in the JSON output.
    """
    check_log_format(source)
    chosen = find_template(template, "--template")
    encode_text = None if tokens is None else _load_encoder(tokens)

    def render(text: bytes) -> RenderedChat:
        msgs, options = load_log(text, source)
        check_blocks(msgs, keep_invalid)
        return chosen.render(msgs, tools=options.get("tools") or ())

    async def convert(text: bytes) -> Any:
        rendered = render(text)
        output: dict[str, Any] = {"text": rendered.text, "omitted": [item.place for item in rendered.omitted]}
        if spans:
            output |= {"spans": rendered.spans, "prompt_end": rendered.prompt_end}
        return output if encode_text is None else {**output, "tokens": [*encode_text(rendered.text)[0]]}

    if spans or lines or tokens is not None:
        raise typer.Exit(run_conversion(file, convert, lines=lines))
    rendered = render(read(file))
    for item in rendered.omitted:
        sys.stderr.write(f"agentkit: {item.place}: omitted: {item.reason}\n")
    write_bytes(rendered.text.encode())


def _load_encoder(folder: Path) -> Encode:
    tokenizer = find_tokenizer(folder, "--tokens")
    if tokenizer is None:
        reason = f"there is no tokenizer.json in the folder {shorten_repr(str(folder), 200)}"
        raise OptionError("--tokens", reason, "Pass the folder of a tokenizer.")
    return as_tokenizer(tokenizer).encode
