"""Ignores each test file of this folder whose package is not installed. `.ci/run` installs all packages.

Some files also need trl or torchtune, in the environment that the variable AGENTKIT_TRAINING names.
"""

import os
from collections.abc import Iterator
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.conformance.training_packages import VARIABLE

if TYPE_CHECKING:
    from tests.conformance.llama_cpp import LlamaServer

REQUIRED_PACKAGES = {
    "test_chat_templates.py": "xllamacpp",
    "test_llama_cpp.py": "xllamacpp",
    "test_llama_cpp_prompts.py": "xllamacpp",
    "test_gemini_protobuf.py": "google.ai.generativelanguage",
    "test_large_logs.py": "ray",
    "test_mcp_types.py": "mcp_types",
    "test_prefix_rendering.py": "datasets",
    "test_response_templates.py": "transformers",
    "test_training.py": "datasets",
    "test_transformers.py": "transformers",
    "test_typed_prompts.py": "xllamacpp",
}
NEED_TRAINING = (
    "test_prefix_rendering.py",
    "test_response_templates.py",
    "test_training.py",
    "test_transformers.py",
)


def _installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


collect_ignore = [test for test, package in REQUIRED_PACKAGES.items() if not _installed(package)]
if VARIABLE not in os.environ:
    collect_ignore += NEED_TRAINING


@pytest.fixture(scope="session", autouse=True)
def _compile_once() -> Iterator[None]:
    """Compiles each template of trl once: there are more of them than agentkit keeps in memory."""
    from agentkit.jinja_environments import chat_rendering, loop_recorder

    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((chat_rendering, "_compile"), (loop_recorder, "compile_recorded")):
            patch.setattr(module, name, lru_cache(200)(getattr(module, name).__wrapped__))
        yield


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[LlamaServer]":
    """Server of llama.cpp with the model of `tiny_model`."""
    from tests.conformance.llama_cpp import run_server

    yield from run_server(Path(tmp_path_factory.mktemp("llama")))


@pytest.fixture
def anyio_backend() -> str:
    """One event loop is enough to test the SDKs and the server."""
    return "asyncio"
