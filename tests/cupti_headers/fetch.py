"""Fetches NVIDIA's CUPTI headers of every supported CUDA version from PyPI into a folder that git ignores. They are
read at test time only: no line of them is part of this repository. What is in them is left to probe.py."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".venvs" / "cupti-headers"
# CUDA version: (package of CUPTI, its version, package with cuda.h, its version). Pinned, so that a check means the
# same thing tomorrow; a new CUDA release is a new line.
PACKAGES = {
    "11.8": ("nvidia-cuda-cupti-cu11", "11.8.87", "nvidia-cuda-runtime-cu11", "11.8.89"),
    "12.0": ("nvidia-cuda-cupti-cu12", "12.0.146", "nvidia-cuda-runtime-cu12", "12.0.146"),
    "12.1": ("nvidia-cuda-cupti-cu12", "12.1.105", "nvidia-cuda-runtime-cu12", "12.1.105"),
    "12.2": ("nvidia-cuda-cupti-cu12", "12.2.142", "nvidia-cuda-runtime-cu12", "12.2.140"),
    "12.3": ("nvidia-cuda-cupti-cu12", "12.3.101", "nvidia-cuda-runtime-cu12", "12.3.101"),
    "12.4": ("nvidia-cuda-cupti-cu12", "12.4.127", "nvidia-cuda-runtime-cu12", "12.4.127"),
    "12.5": ("nvidia-cuda-cupti-cu12", "12.5.82", "nvidia-cuda-runtime-cu12", "12.5.82"),
    "12.6": ("nvidia-cuda-cupti-cu12", "12.6.80", "nvidia-cuda-runtime-cu12", "12.6.77"),
    "12.8": ("nvidia-cuda-cupti-cu12", "12.8.90", "nvidia-cuda-runtime-cu12", "12.8.90"),
    "12.9": ("nvidia-cuda-cupti-cu12", "12.9.79", "nvidia-cuda-runtime-cu12", "12.9.79"),
    "13.0": ("nvidia-cuda-cupti", "13.0.85", "nvidia-cuda-runtime", "13.0.96"),
    "13.1": ("nvidia-cuda-cupti", "13.1.115", "nvidia-cuda-runtime", "13.1.80"),
    "13.2": ("nvidia-cuda-cupti", "13.2.86", "nvidia-cuda-runtime", "13.2.86"),
    "13.3": ("nvidia-cuda-cupti", "13.3.75", "nvidia-cuda-runtime", "13.3.29"),
    "13.4": ("nvidia-cuda-cupti", "13.4.92", "nvidia-cuda-runtime", "13.4.92"),
}
# crt/host_defines.h is not in the older runtimes; this one serves every version.
COMPILER_HEADERS = ("nvidia-cuda-crt", "13.4.92")
# The wheels are named for the oldest system they run on, which differs from release to release.
PLATFORMS = ("manylinux1_x86_64", "manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux_2_25_x86_64")

DOWNLOAD = ["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"]


def download(package: str, version: str, into: Path) -> None:
    """One package's headers, without the folders that the wheel puts around them."""
    with tempfile.TemporaryDirectory(dir=CACHE) as wheels:
        platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
        done = subprocess.run(
            [sys.executable, *DOWNLOAD, "--dest", wheels, *platforms, f"{package}=={version}"],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SystemExit(f"cannot fetch {package} {version}, so its layout cannot be checked:\n{done.stderr}")
        (wheel,) = Path(wheels).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                _, found, inside = name.partition("/include/")
                if found and inside.endswith(".h"):
                    target = into / inside
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_bytes(archive.read(name))


def fetch_one(cuda: str) -> Path:
    cupti, cupti_version, runtime, runtime_version = PACKAGES[cuda]
    folder = CACHE / f"{cuda}-{cupti_version}"
    if not folder.is_dir():
        # Named only when whole: what an interrupted run left is not taken for the headers.
        with tempfile.TemporaryDirectory(dir=CACHE) as partial:
            whole = Path(partial) / "include"
            download(runtime, runtime_version, whole)
            download(*COMPILER_HEADERS, whole)
            download(cupti, cupti_version, whole)
            shutil.move(whole, folder)
    return folder


def fetch() -> dict[str, Path]:
    """CUDA version → its include folder."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(max_workers=4) as pool:
        return dict(zip(PACKAGES, pool.map(fetch_one, PACKAGES), strict=True))


if __name__ == "__main__":
    for cuda, folder in fetch().items():
        print(cuda, folder)
