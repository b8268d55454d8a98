"""A model, its layers and its inputs, of either format: they have the same fields."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from nd4jlike.adapters import onnx, tflite
from nd4jlike.errors import Nd4jLikeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nd4jlike.verify.kernels import KernelLayer

__all__ = ["Layer", "Model", "ModelInput", "called", "naming"]

Model: TypeAlias = tflite.TfliteModel | onnx.OnnxModel
Layer: TypeAlias = tflite.DepthwiseLayer | onnx.DepthwiseLayer
ModelInput: TypeAlias = tflite.ModelInput | onnx.ModelInput


def called(layer: Layer | KernelLayer) -> str:
    """Name a layer as rows of a report have it, and its output."""
    return f"depthwise layer {layer.subgraph}/{layer.index} ({layer.name})"


@contextmanager
def naming(where: str) -> Iterator[None]:
    """Put a file or a layer before what an interpreter says in its own words."""
    try:
        yield
    except Nd4jLikeError as error:
        if type(error) is Nd4jLikeError:
            raise Nd4jLikeError(f"{where}: {error}") from error
        raise
