"""What `make gpu-test` and `make gpu-bench` need of a machine: an NVIDIA GPU, PyTorch in this Python, and InferScope,
installed or as a wheel in dist/. A GPU machine often has neither Rust nor a network, so the standard library does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def require_gpu(target: str) -> str:
    """The GPU's name; ends the program with status 1 where there is none, because then nothing was tested."""
    try:
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True)
    except FileNotFoundError:
        raise SystemExit(f"{target}: no NVIDIA GPU here (there is no nvidia-smi): nothing was run") from None
    if listed.returncode or "GPU 0" not in listed.stdout:
        raise SystemExit(f"{target}: no NVIDIA GPU here ({(listed.stderr or listed.stdout).strip()}): nothing was run")
    try:
        import torch
    except ImportError:
        raise SystemExit(f"{target}: {sys.executable} has no PyTorch: say PYTHON=... to use one that has it") from None
    if not torch.cuda.is_available():
        raise SystemExit(f"{target}: PyTorch {torch.__version__} cannot use the GPU here: nothing was run")
    return f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, CUDA {torch.version.cuda}"


def inferscope() -> tuple[Path, dict[str, str]]:
    """The command, and the environment in which scripts find the package."""
    environ = {key: value for key, value in os.environ.items() if not key.startswith("INFERSCOPE")}
    wheels = sorted((ROOT / "dist").glob("inferscope-*.whl"))
    if wheels:
        folder = Path(tempfile.mkdtemp(prefix="inferscope-unpacked-"))
        with zipfile.ZipFile(wheels[-1]) as wheel:
            wheel.extractall(folder)
        (command,) = folder.glob("inferscope-*.data/scripts/inferscope")
        command.chmod(0o755)
        environ["PYTHONPATH"] = os.pathsep.join([str(folder), *filter(None, [environ.get("PYTHONPATH")])])
        environ["PATH"] = os.pathsep.join([str(command.parent), environ["PATH"]])
        environ["INFERSCOPE_BIN"] = str(command)
        return command, environ
    if installed := shutil.which("inferscope"):
        return Path(installed), environ
    raise SystemExit("no InferScope: neither a wheel in dist/ (make wheel) nor an installed command")
