"""The compiler: clang of the package ziglang, which pip installs on every system."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

_FLAGS = (
    "-target",
    "wasm32-freestanding",
    "-std=c99",
    "-Os",
    "-g0",
    "-nostdlib",  # the C file needs no library, and to compile one for this target takes seconds
    "-mbulk-memory",  # large copies are an instruction, not a function of that library
    "-Wl,--no-entry",
    "-Wl,--strip-all",
    "-Wl,-z,stack-size=1048576",
)


def find_compiler() -> list[str]:
    """Return the command of the compiler; raise ImportError, with a way out, if there is none."""
    if importlib.util.find_spec("ziglang") is None:
        raise ImportError(
            "Export to WebAssembly needs a compiler, the package ziglang: "
            'pip install "widemargin[wasm]"'
        )
    return [sys.executable, "-m", "ziglang", "cc"]


def compiled(compiler: list[str], folder: Path, source: str) -> bytes:
    """Return the module that a C file of a folder becomes; nothing is left outside the folder."""
    caches = {"ZIG_GLOBAL_CACHE_DIR": "global-cache", "ZIG_LOCAL_CACHE_DIR": "local-cache"}
    environment = {**os.environ, **{name: str(folder / each) for name, each in caches.items()}}
    done = subprocess.run(
        [*compiler, *_FLAGS, source, "-o", "module.wasm"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        errors="replace",
    )
    if done.returncode != 0:
        raise RuntimeError(
            "The compiler of the package ziglang could not make WebAssembly of the C file: "
            f"{_last_line(done.stderr)} Another version of it may: "
            'pip install --upgrade "ziglang"'
        )
    return (folder / "module.wasm").read_bytes()


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else "it said nothing."
