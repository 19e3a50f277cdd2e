"""The HTTP server of llama.cpp in this process, and the replies of its model."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.conformance.tiny_model import SAYS, write_model, write_projector

__all__ = ["AFTER", "ANSWER", "LlamaServer", "SAID", "THOUGHT", "serving"]

SAID: Final = "".join(SAYS["<|say|>"])
THOUGHT: Final = "".join(SAYS["<think>"])
AFTER: Final = "".join(SAYS["</think>"])
ANSWER: Final = "".join(SAYS["<|answer|>"])


@dataclass(frozen=True, slots=True)
class LlamaServer:
    """A running server with its address. It can be sent requests."""

    url: str

    def post(self, path: str, body: Mapping[str, Any]) -> tuple[int, dict[str, Any]]:
        """The status and the JSON of an answer."""
        data = json.dumps(body).encode()
        request = Request(self.url + path, data, {"content-type": "application/json"})
        try:
            with urlopen(request) as answer:
                return answer.status, json.load(answer)
        except HTTPError as error:
            with error:
                return error.code, json.load(error)

    def prompt(self, body: Mapping[str, Any]) -> str:
        """Returns the prompt of the model for a request of Chat Completions."""
        status, reply = self.post("/apply-template", body)
        assert status == 200, reply
        return str(reply["prompt"])


def serving(folder: Path, template: str = "") -> Iterator[LlamaServer]:
    """The server, with a model and a projector written into an empty folder, and perhaps another template."""
    xllamacpp: Any = import_module("xllamacpp")
    model, projector = folder / "model.gguf", folder / "projector.gguf"
    write_model(model)
    write_projector(projector)
    params = xllamacpp.CommonParams()
    params.model.path, params.mmproj.path = str(model), str(projector)
    params.chat_template = template
    params.n_ctx, params.n_parallel, params.port = 16384, 1, 0
    params.warmup, params.verbosity = False, -1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1  # more of them spin while they wait
    server = xllamacpp.Server(params)
    yield LlamaServer(server.listening_address)
    del server
