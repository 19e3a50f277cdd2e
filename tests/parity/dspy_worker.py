"""Process that answers cases with DSPy. The interpreter of the environment with DSPy runs this file.

Each line of the input is a case as JSON, and each line of the output is its result (see `tests.parity.cases`).
"""

import datetime
import enum
import functools
import importlib
import json
import sys
import types
import typing

import pydantic
import pydantic_core
import typing_extensions

dspy: typing.Any = importlib.import_module("dspy")  # type checkers do not find the package
NAMES: dict[str, typing.Any] = {
    **{name: getattr(typing, name) for name in ("Any", "Literal", "Optional", "Union")},
    **{
        name: getattr(dspy, name)
        for name in ("Signature", "InputField", "OutputField", "History", "Tool", "ToolCalls")
    },
    "Tools": list[dspy.Tool],
    "TypedDict": typing_extensions.TypedDict,
    "BaseModel": pydantic.BaseModel,
    "Field": pydantic.Field,
    "Enum": enum.Enum,
    "datetime": datetime,
    "Code": dspy.Code,
    "Reasoning": dspy.Reasoning,
    "because": dspy.Reasoning(content="Because."),
}
BAML: typing.Any = importlib.import_module("dspy.adapters.baml_adapter").BAMLAdapter
ADAPTERS: dict[str, typing.Any] = {
    "chat": dspy.ChatAdapter(),
    "json": dspy.JSONAdapter(use_native_function_calling=False),
    "compact": BAML(use_native_function_calling=False),
    "xml": dspy.XMLAdapter(),
    "native": dspy.ChatAdapter(use_native_function_calling=True),
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
    """Returns the result of a case: messages and values of texts, a request, or the deltas of a streamed field."""
    names = run_source(case["source"])
    adapter = ADAPTERS[case["adapter"]]
    demos, inputs = eval(case["demos"], names), eval(case["inputs"], names)
    signature = names["S"]
    if case.get("has_schemas") is not None:
        return create_request(adapter, signature, demos, inputs, case["has_schemas"])
    if case.get("pieces") is not None:
        return {"deltas": stream(adapter, case["field"], case["pieces"])}
    messages = [[message["role"], message["content"]] for message in adapter.format(signature, demos, inputs)]
    return {"messages": messages, "parsed": [parse(adapter, signature, text) for text in case["texts"]]}


@functools.cache
def run_source(source: str) -> dict[str, typing.Any]:
    """Returns the names that the source code of a case defines."""
    names = dict(NAMES)
    exec(source, names)  # the source is a table of this repository
    return names


def create_request(
    adapter: typing.Any, signature: typing.Any, demos: typing.Any, inputs: typing.Any, has_schemas: bool
) -> dict[str, typing.Any]:
    """Returns the messages and options for a model with tools, and with or without response schemas."""
    model = types.SimpleNamespace(
        supports_function_calling=True,
        supports_reasoning=False,
        supports_response_schema=has_schemas,
        supported_params={"response_format", "tools"},
        model="any",
        kwargs={},
    )
    options: dict[str, typing.Any] = {}
    if isinstance(adapter, dspy.JSONAdapter):
        adapter._prepare_response_format(model, options, signature)
    shown = adapter._call_preprocess(model, options, signature, inputs)
    response_format = options.get("response_format")
    if response_format is not None and not isinstance(response_format, dict):
        options["response_format"] = response_format.model_json_schema()
    return {"messages": adapter.format(shown, demos, dict(inputs)), "options": options}


def stream(adapter: typing.Any, field: str, pieces: list[str]) -> list[str]:
    """Returns the deltas of a field in a streamed reply."""
    listener = dspy.streaming.StreamListener(signature_field_name=field)
    deltas: list[str] = []
    with dspy.context(adapter=adapter):
        for piece in pieces:
            delta = types.SimpleNamespace(content=piece)
            result = listener.receive(types.SimpleNamespace(choices=[types.SimpleNamespace(delta=delta)]))
            deltas += [result.chunk] if result is not None else []
        result = listener.finalize()
        deltas += [result.chunk] if result is not None else []
    return deltas


def parse(adapter: typing.Any, signature: typing.Any, text: str) -> typing.Any:
    """Returns the outputs as JSON values, or None if the text cannot be parsed."""
    try:
        outputs = adapter.parse(signature, text)
    except Exception:
        return None
    return pydantic_core.to_jsonable_python(outputs, fallback=str)


main()
