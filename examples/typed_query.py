"""A query with template files: a model finds the hours in which a boat can enter a harbor.

    python examples/typed_query.py                             with prepared replies, without a key
    python examples/typed_query.py anthropic:claude-opus-5     with a provider, its key in the environment

The texts of the query are the files `FindWindow.*.jinja` in `data/templates`. The templates print the tides from
`tides.data.yaml`, the variable `data.tides`. The mode `brief` asks for JSON. The mode `reasoned` asks for reasons,
and for JSON in a code block. If a window is too short, a retry sends the template of the kind `feedback`.
"""

import sys
from pathlib import Path

import anyio
from pydantic import BaseModel, Field

from agentkit import ChatModel
from agentkit.prompts import Prediction, PromptAdapter, PromptTemplates, Signature, ask
from agentkit.prompts.parsers import last_code_block, structured
from agentkit.testing import ScriptedModel

FOLDER = Path(__file__).parent / "data" / "templates"
MIN_HOURS = 3
REPLIES = [
    '{"start": 8, "end": 12}',
    'The boat needs 3 m. The water is so deep at 8:00.\n```json\n{"start": 8, "end": 10}\n```',
    'The water is deeper than 3 m until 12:00.\n```json\n{"start": 8, "end": 12}\n```',
]


class Window(BaseModel):
    """Hours in which a boat can enter a harbor."""

    start: int = Field(ge=0, le=23)
    end: int = Field(ge=0, le=24)


class FindWindow(Signature[Window]):
    """Find the hours in which a boat can enter a harbor."""

    harbor: str
    draft: float


def check_length(window: Window) -> None:
    """Raises ValueError if a window is too short."""
    hours = window.end - window.start
    if hours < MIN_HOURS:
        raise ValueError(f"the window has {hours} hours, and {MIN_HOURS} hours are necessary")


def create_adapter() -> PromptAdapter:
    """Returns the adapter with the templates and the two modes."""
    reasoned = PromptAdapter(parser=last_code_block.as_type(Window).validate(check_length))
    return PromptAdapter(
        parser=structured.as_type(Window).validate(check_length),
        templates=PromptTemplates(FOLDER, data=FOLDER),
        modes={"brief": PromptAdapter(), "reasoned": reasoned},
    )


async def find_window(model: ChatModel, request: FindWindow, mode: str) -> Prediction[Window]:
    """Returns the prediction for a request in a mode."""
    return await ask(model, request, adapter=create_adapter(), mode=mode, retries=1)


async def main(model: ChatModel) -> None:
    """Sends a request in both modes, and prints the windows and the errors of replies."""
    request = FindWindow(harbor="Brest", draft=2.0)
    async with model:
        for mode in ("brief", "reasoned"):
            prediction = await find_window(model, request, mode)
            for attempt in prediction.attempts:
                if attempt.error is not None:
                    print(f"{mode}: another reply is necessary ({attempt.error.description})")
            print(f"{mode}: {prediction.value.start}:00 to {prediction.value.end}:00")


if __name__ == "__main__":
    anyio.run(main, ChatModel(sys.argv[1]) if len(sys.argv) > 1 else ScriptedModel(REPLIES))
