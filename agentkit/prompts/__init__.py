r"""Typed prompts: a `Signature` declares the inputs and outputs of a task, and `ask` returns a validated value.

An adapter writes the values of a request, examples and a history as messages for any model. The adapter then reads
the outputs from the reply, and validates their values. If a value is invalid, the error names the field.

Read `signature` first, then `adapter` and `ask_attempts`.

Example:
    >>> import asyncio
    >>> from agentkit.prompts import InputField, OutputField, Signature, ask
    >>> from agentkit.testing import ScriptedModel
    >>> class Judge(Signature):
    ...     "Is the answer correct?"
    ...     answer: str = InputField()
    ...     is_correct: bool = OutputField()
    >>> model = ScriptedModel(["[[ ## is_correct ## ]]\nyes"])
    >>> asyncio.run(ask(model, Judge(answer="Paris"))).value.is_correct
    True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentkit.lazy_names import import_on_first_use

if TYPE_CHECKING:
    from agentkit.prompts.adapter import Adapter as Adapter
    from agentkit.prompts.adapter_events import AdapterEvent as AdapterEvent
    from agentkit.prompts.ask_attempts import ask as ask
    from agentkit.prompts.bound_request import choices as choices
    from agentkit.prompts.bound_request import default as default
    from agentkit.prompts.bound_request import from_dict as from_dict
    from agentkit.prompts.bound_request import get_inputs as get_inputs
    from agentkit.prompts.bound_request import replace as replace
    from agentkit.prompts.bound_request import tags as tags
    from agentkit.prompts.bound_request import to_dict as to_dict
    from agentkit.prompts.chat_adapter import ChatAdapter as ChatAdapter
    from agentkit.prompts.examples import Example as Example
    from agentkit.prompts.examples import load_examples as load_examples
    from agentkit.prompts.examples import select_examples as select_examples
    from agentkit.prompts.feedback import Feedback as Feedback
    from agentkit.prompts.field_events import FieldDelta as FieldDelta
    from agentkit.prompts.field_events import FieldEnd as FieldEnd
    from agentkit.prompts.field_events import FieldEvent as FieldEvent
    from agentkit.prompts.field_events import FieldStart as FieldStart
    from agentkit.prompts.field_stream_parser import FieldStreamParser as FieldStreamParser
    from agentkit.prompts.field_types import Citation as Citation
    from agentkit.prompts.field_types import Code as Code
    from agentkit.prompts.field_types import History as History
    from agentkit.prompts.field_types import Reasoning as Reasoning
    from agentkit.prompts.fields import InputField as InputField
    from agentkit.prompts.fields import OutputField as OutputField
    from agentkit.prompts.fields import SignatureField as SignatureField
    from agentkit.prompts.json_adapter import JSONAdapter as JSONAdapter
    from agentkit.prompts.parser import Parser as Parser
    from agentkit.prompts.parser import ToolRequests as ToolRequests
    from agentkit.prompts.prediction import Attempt as Attempt
    from agentkit.prompts.prediction import Outputs as Outputs
    from agentkit.prompts.prediction import Prediction as Prediction
    from agentkit.prompts.prompt_adapter import PromptAdapter as PromptAdapter
    from agentkit.prompts.prompt_templates import PromptTemplates as PromptTemplates
    from agentkit.prompts.signature import Signature as Signature
    from agentkit.prompts.streaming import PromptEvent as PromptEvent
    from agentkit.prompts.streaming import PromptStream as PromptStream
    from agentkit.prompts.streaming import stream as stream
    from agentkit.prompts.two_step_adapter import TwoStepAdapter as TwoStepAdapter
    from agentkit.prompts.value_parsing import parse_value as parse_value
    from agentkit.prompts.xml_adapter import XMLAdapter as XMLAdapter
else:
    __all__, __getattr__, __dir__ = import_on_first_use(
        __name__,
        {
            "agentkit.prompts.adapter": "Adapter",
            "agentkit.prompts.adapter_events": "AdapterEvent",
            "agentkit.prompts.bound_request": "choices default from_dict get_inputs replace tags to_dict",
            "agentkit.prompts.chat_adapter": "ChatAdapter",
            "agentkit.prompts.examples": "Example load_examples select_examples",
            "agentkit.prompts.feedback": "Feedback",
            "agentkit.prompts.field_events": "FieldDelta FieldEnd FieldEvent FieldStart",
            "agentkit.prompts.field_stream_parser": "FieldStreamParser",
            "agentkit.prompts.field_types": "Citation Code History Reasoning",
            "agentkit.prompts.fields": "InputField OutputField SignatureField",
            "agentkit.prompts.json_adapter": "JSONAdapter",
            "agentkit.prompts.ask_attempts": "ask",
            "agentkit.prompts.parser": "Parser ToolRequests",
            "agentkit.prompts.prediction": "Attempt Outputs Prediction",
            "agentkit.prompts.prompt_adapter": "PromptAdapter",
            "agentkit.prompts.prompt_templates": "PromptTemplates",
            "agentkit.prompts.signature": "Signature",
            "agentkit.prompts.streaming": "PromptEvent PromptStream stream",
            "agentkit.prompts.two_step_adapter": "TwoStepAdapter",
            "agentkit.prompts.value_parsing": "parse_value",
            "agentkit.prompts.xml_adapter": "XMLAdapter",
        },
    )
