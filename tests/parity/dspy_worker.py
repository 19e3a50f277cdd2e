"""Process that answers cases with DSPy. The interpreter of the environment with DSPy runs this file.

Each line of the input is a case as JSON, and each line of the output is its result (see `tests.parity.cases`).
"""

import datetime
import enum
import importlib
import json
import sys
import typing

import pydantic
import pydantic_core
import typing_extensions

dspy: typing.Any = importlib.import_module("dspy")  # type checkers do not find the package
NAMES: dict[str, typing.Any] = {
    **{name: getattr(typing, name) for name in ("Any", "Literal", "Optional", "Union")},
    **{name: getattr(dspy, name) for name in ("Signature", "InputField", "OutputField", "History")},
    "TypedDict": typing_extensions.TypedDict,
    "BaseModel": pydantic.BaseModel,
    "Field": pydantic.Field,
    "Enum": enum.Enum,
    "datetime": datetime,
    "Code": dspy.Code,
    "Reasoning": dspy.Reasoning,
    "because": dspy.Reasoning(content="Because."),
}
ADAPTERS: dict[str, typing.Any] = {
    "chat": dspy.ChatAdapter,
    "json": dspy.JSONAdapter,
    "compact": importlib.import_module("dspy.adapters.baml_adapter").BAMLAdapter,
    "xml": dspy.XMLAdapter,
}


def main() -> None:
    """Answers the cases of the standard input."""
    for line in sys.stdin:
        try:
            result = answer(json.loads(line))
        except Exception as error:
            result = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(result, ensure_ascii=False), flush=True)


def answer(case: dict[str, typing.Any]) -> dict[str, typing.Any]:
    """Returns the messages of a case, and the values of its texts."""
    names = dict(NAMES)
    exec(case["source"], names)  # the source is a table of this repository
    adapter = ADAPTERS[case["adapter"]]()
    demos, inputs = eval(case["demos"], names), eval(case["inputs"], names)
    signature = names["S"]
    messages = [[message["role"], message["content"]] for message in adapter.format(signature, demos, inputs)]
    return {"messages": messages, "parsed": [parse(adapter, signature, text) for text in case["texts"]]}


def parse(adapter: typing.Any, signature: typing.Any, text: str) -> typing.Any:
    """Returns the outputs as JSON values, or None if the text cannot be parsed."""
    try:
        outputs = adapter.parse(signature, text)
    except Exception:
        return None
    return pydantic_core.to_jsonable_python(outputs, fallback=str)


main()
