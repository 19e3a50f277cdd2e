"""Tokens and masks of torchtune's tokenizers, without torch.

The interpreter of an environment with torchtune runs this file. It reads cases as JSON from standard input, and
writes the tokens and masks of each case as JSON. A character is one token. Special tokens have the numbers that
the cases declare.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any


class StubClass(type):
    """Class of the names in a module that is not installed. They can be called, subclassed and subscripted."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return StubClass(name, (), {})

    def __getitem__(cls, item: object) -> Any:
        return cls

    def __or__(cls, other: object) -> Any:
        return cls

    def __ror__(cls, other: object) -> Any:
        return cls

    def __call__(cls, *values: Any, **options: Any) -> Any:
        if len(values) == 1 and callable(values[0]) and not options:  # a decorator
            return values[0]
        return super().__call__()


class StubModule(ModuleType):
    """Module that is not installed. Each name is a class."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = StubClass(name, (), {})
        setattr(self, name, value)
        return value


class StubFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finder of the modules that torchtune imports and that its tokenizers do not need."""

    names = frozenset({"torch", "torchao", "torchdata", "torchvision", "datasets", "regex", "tiktoken"})
    names |= {"typing_extensions", "numpy", "PIL", "omegaconf"}

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        is_stub = name.partition(".")[0] in self.names or name.startswith(("torchtune.utils", "torchtune.modules"))
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if is_stub else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = StubModule(spec.name)
        module.__path__ = []
        return module

    def exec_module(self, module: ModuleType) -> None:
        pass


def open_package(name: str, folder: Path) -> ModuleType:
    """Makes the modules of a package importable without running its `__init__`, which imports torch."""
    package = ModuleType(name)
    package.__path__ = [str(folder.joinpath(*name.split(".")))]
    sys.modules[name] = package
    return package


def load_torchtune() -> dict[str, Any]:
    """Returns the tokenizer classes by name, and the class `Message` and the function `truncate`."""
    spec = importlib.util.find_spec("torchtune")
    if spec is None or spec.origin is None:
        raise SystemExit("torchtune is not installed")
    sys.meta_path.insert(0, StubFinder())
    folder = Path(spec.origin).parent.parent
    models = ("qwen2", "qwen2_5", "llama3", "phi4")
    for name in ("torchtune", "torchtune.models", *(f"torchtune.models.{model}" for model in models)):
        open_package(name, folder)
    data = open_package("torchtune.data", folder)
    for part in ("_messages", "_prompt_templates", "_utils"):
        module = importlib.import_module(f"torchtune.data.{part}")
        vars(data).update({name: value for name, value in vars(module).items() if not name.startswith("_")})
    names = {"qwen2_5": "Qwen2_5Tokenizer", "llama3": "Llama3Tokenizer", "phi4": "Phi4Tokenizer"}
    classes = {
        model: getattr(importlib.import_module(f"torchtune.models.{model}._tokenizer"), name)
        for model, name in names.items()
    }
    return {
        **classes,
        "Message": data.Message,
        "truncate": data.truncate,
        "AlpacaToMessages": data.AlpacaToMessages,
    }


def run(case: dict[str, Any], torchtune: dict[str, Any]) -> list[Any]:
    """Returns the tokens and the mask of a case. True means that a token is not trained.

    For a case with a row of Alpaca, returns the role, text and mask of each message.
    """
    if "row" in case:
        convert = torchtune["AlpacaToMessages"]()
        convert.train_on_input = case["train_on_input"]  # a subclass of a stub has no options
        messages = convert(case["row"])["messages"]
        return [[message.role, message.text_content, message.masked] for message in messages]
    special: dict[str, int] = case["special"]
    base = torchtune[case["layout"]]

    class Tokenizer(base):  # type: ignore[misc, valid-type]
        def __init__(self) -> None:
            self.special_tokens = special
            self.prompt_template = None
            self.max_seq_len = case["max_tokens"]
            for attribute, token in case["attributes"].items():
                setattr(self, attribute, special[token])

        def encode(self, text: str, add_bos: bool = True, add_eos: bool = True, **others: Any) -> list[int]:
            return [ord(character) for character in text]

    tokenizer = object.__new__(Tokenizer)
    Tokenizer.__init__(tokenizer)
    messages = [torchtune["Message"](**message) for message in case["messages"]]
    tokens, mask = tokenizer.tokenize_messages(messages, **case["options"])
    return [tokens, mask]


if __name__ == "__main__":
    loaded = load_torchtune()
    print(json.dumps([run(case, loaded) for case in json.load(sys.stdin)]))
