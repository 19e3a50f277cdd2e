"""Prompt media: media blocks and tools in the variables of templates."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from agentkit import ImageBlock, TextBlock, URLSource
from agentkit.prompts.prompt_media import PromptMedia

PICTURE = ImageBlock(URLSource("https://example.com/cat.png"))
OTHER = ImageBlock(URLSource("https://example.com/dog.png"))


class Scene(BaseModel):
    """Model with a picture."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    title: str
    picture: ImageBlock


@dataclass
class Frame:
    """Dataclass with a picture."""

    picture: ImageBlock


def search(query: str) -> str:
    """Search."""
    return query


def test_a_value_without_media_is_unchanged() -> None:
    media = PromptMedia()
    for value in ("a", 3, None, ["a", {"b": (1,)}], {"a": {1, 2}}):
        assert media.replace(value) is value
    assert media.restore("\ue0000\ue000") == "\ue0000\ue000"


def test_blocks_return_to_the_places_of_their_marks() -> None:
    media = PromptMedia()
    value = media.replace({"scene": Scene(title="A", picture=PICTURE), "frames": [Frame(OTHER)]})
    assert value["scene"]["title"] == "A"
    first, second = value["scene"]["picture"], value["frames"][0]["picture"]
    assert media.restore(f"{second} and {first}.") == (OTHER, TextBlock(" and "), PICTURE, TextBlock("."))
    assert media.restore(first) == (PICTURE,)


def test_a_function_is_the_sentence_about_its_tool() -> None:
    assert PromptMedia().replace([search])[0].startswith("search, whose description is <desc>Search.</desc>.")
