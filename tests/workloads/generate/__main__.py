"""`python -m tests.workloads.generate SEED`: writes the program of a seed, or runs it at once (`--run`, and what
follows goes to the program)."""

from __future__ import annotations

import argparse
import runpy
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from generate.memory_recipe import memory_recipe, memory_source
from generate.program import source
from generate.recipe import recipe


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("seed", type=int)
    options.add_argument("-o", "--output", type=Path, help="the file to write [default: standard output]")
    options.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    options.add_argument("--small", action="store_true", help="tiny sizes, for a look whether it runs")
    options.add_argument("--own", action="store_true", help="no models of torchvision, transformers or JAX")
    options.add_argument("--memory", action="store_true", help="a program whose memory is known (memory_recipe.py)")
    options.add_argument("--run", nargs=argparse.REMAINDER, help="run it, with these arguments")
    chosen = options.parse_args()
    if chosen.memory:
        text = memory_source(memory_recipe(chosen.seed, chosen.device))
    else:
        text = source(recipe(chosen.seed, chosen.device, chosen.small, not chosen.own))
    if chosen.output:
        chosen.output.write_text(text, encoding="utf-8")
    elif chosen.run is None:
        print(text, end="")
    if chosen.run is not None:
        with tempfile.TemporaryDirectory(prefix="generated-") as folder:
            file = chosen.output or Path(folder) / f"seed_{chosen.seed}.py"
            file.write_text(text, encoding="utf-8")
            sys.argv = [str(file), *chosen.run]
            runpy.run_path(str(file), run_name="__main__")


if __name__ == "__main__":
    main()
