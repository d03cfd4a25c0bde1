"""Runs models of gpu_model.py in forks of itself, one a line of its standard input (`gpt2 2.0 plain`): what takes
long, the imports, is done once. CUDA starts in the fork, so each run is as good as a process of its own."""

from __future__ import annotations

import os
import sys
import traceback

import gpu_model
import torchvision.models  # noqa: F401
import transformers.models.bert.modeling_bert
import transformers.models.gpt2.modeling_gpt2  # noqa: F401


def main() -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                gpu_model.main(*line.split())
                code = 0
            except BaseException:
                traceback.print_exc()
            # At once: nothing of the parent's is to be tidied up here.
            sys.stdout.flush()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        print(f"done {os.waitstatus_to_exitcode(status)}", flush=True)


main()
