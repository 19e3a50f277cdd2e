"""The HTTP server of llama.cpp in this process, and the replies of its model."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.conformance.tiny_model import REPLIES, write_model, write_projector

__all__ = ["LlamaServer", "TEXT_AFTER_RESULT", "TEXT_AFTER_THINKING", "TEXT_REPLY", "THINKING", "run_server"]

TEXT_REPLY: Final = "".join(REPLIES["<|say|>"])
THINKING: Final = "".join(REPLIES["<think>"])
TEXT_AFTER_THINKING: Final = "".join(REPLIES["</think>"])
TEXT_AFTER_RESULT: Final = "".join(REPLIES["<|answer|>"])


@dataclass(frozen=True, slots=True)
class LlamaServer:
    """Running server, with its URL and the path of its model file."""

    url: str
    model: Path

    def post(self, path: str, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """Returns the status and the JSON body of the response to a request."""
        data = json.dumps(body).encode()
        request = Request(self.url + path, data, {"content-type": "application/json"})
        try:
            with urlopen(request) as answer:
                return answer.status, json.load(answer)
        except HTTPError as error:
            with error:
                return error.code, json.load(error)

    def render_prompt(self, body: Mapping[str, Any]) -> str:
        """Returns the prompt that the model gets for a Chat Completions request."""
        status, reply = self.post("/apply-template", body)
        assert status == 200, reply
        return str(reply["prompt"])


def run_server(folder: Path, template: str = "", *, adds_bos: bool = False) -> Iterator[LlamaServer]:
    """Yields a server whose model files are written to an empty folder. `template` replaces the chat template."""
    xllamacpp: Any = import_module("xllamacpp")
    model, projector = folder / "model.gguf", folder / "projector.gguf"
    write_model(model, adds_bos=adds_bos)
    write_projector(projector)
    params = xllamacpp.CommonParams()
    params.model.path, params.mmproj.path = str(model), str(projector)
    params.chat_template = template
    params.n_ctx, params.n_parallel, params.port = 16384, 1, 0
    params.warmup, params.verbosity = False, -1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1  # idle threads use the processor
    server = xllamacpp.Server(params)
    yield LlamaServer(server.listening_address, model)
    del server
