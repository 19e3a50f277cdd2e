"""A classifier with examples: a model sorts messages to a town hall by topic.

    python examples/typed_classifier.py                             with prepared replies, without a key
    python examples/typed_classifier.py anthropic:claude-opus-5     with a provider, its key in the environment

The type of the output is a `Literal`, so any other topic is an error. `select_examples` selects the examples in
the language of the message by their tags. An example with the same message is not selected.
"""

import sys
from collections import Counter
from typing import Literal, TypeAlias

import anyio

from agentkit import ChatModel
from agentkit.prompts import Example, Signature, ask, select_examples
from agentkit.testing import ScriptedModel

Topic: TypeAlias = Literal["roads", "waste", "library", "other"]

EXAMPLES = [
    Example({"message": "There is a deep hole in Mill Street."}, {"answer": "roads"}, tags=("en",)),
    Example({"message": "Can I borrow films, too?"}, {"answer": "library"}, tags=("en",)),
    Example({"message": "My bin was not emptied on Monday."}, {"answer": "waste"}, tags=("en",)),
    Example({"message": "Wann wird das Altpapier abgeholt?"}, {"answer": "waste"}, tags=("de",)),
    Example({"message": "Die Ampel am Markt ist ausgefallen."}, {"answer": "roads"}, tags=("de",)),
]
MESSAGES = [
    ("en", "The bus lane at the station has no markings."),
    ("en", "My bin was not emptied on Monday."),
    ("de", "Ich finde ein Buch nicht im Katalog."),
    ("de", "Wie beantrage ich einen Pass?"),
]
TOPICS: list[Topic] = ["roads", "waste", "library", "other"]  # topics of the messages
REPLIES = [f"[[ ## answer ## ]]\n{topic}\n\n[[ ## completed ## ]]" for topic in TOPICS]


class FindTopic(Signature[Topic]):
    """Find the topic of a message to the town hall."""

    message: str


async def classify(model: ChatModel, message: str, language: str) -> Topic:
    """Returns the topic of a message. The prompt has at most three examples in the language of the message."""
    examples = select_examples(EXAMPLES, tags=language, count=3, exclude={"message": message})
    prediction = await ask(model, FindTopic(message=message), examples=examples, retries=1)
    return prediction.value


async def main(model: ChatModel) -> None:
    """Classifies the messages, and prints the topics and the number of messages of each topic."""
    counts: Counter[Topic] = Counter()
    async with model:
        for language, message in MESSAGES:
            topic = await classify(model, message, language)
            counts[topic] += 1
            print(f"{topic:8} {message}")
    print(", ".join(f"{topic}: {counts[topic]}" for topic in FindTopic.choices()))


if __name__ == "__main__":
    anyio.run(main, ChatModel(sys.argv[1]) if len(sys.argv) > 1 else ScriptedModel(REPLIES))
