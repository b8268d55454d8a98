"""A model, its layers and its inputs, of either format: they have the same fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from nd4jlike.adapters import onnx, tflite

if TYPE_CHECKING:
    from nd4jlike.verify.kernels import KernelLayer

__all__ = ["Layer", "Model", "ModelInput", "called"]

Model: TypeAlias = tflite.TfliteModel | onnx.OnnxModel
Layer: TypeAlias = tflite.DepthwiseLayer | onnx.DepthwiseLayer
ModelInput: TypeAlias = tflite.ModelInput | onnx.ModelInput


def called(layer: Layer | KernelLayer) -> str:
    """Name a layer as rows of a report have it, and its output."""
    return f"depthwise layer {layer.subgraph}/{layer.index} ({layer.name})"
