"""A model, its layers and its inputs, of either format: they have the same fields."""

from __future__ import annotations

from typing import TypeAlias

from nd4jlike.adapters import onnx, tflite

__all__ = ["Layer", "Model", "ModelInput"]

Model: TypeAlias = tflite.TfliteModel | onnx.OnnxModel
Layer: TypeAlias = tflite.DepthwiseLayer | onnx.DepthwiseLayer
ModelInput: TypeAlias = tflite.ModelInput | onnx.ModelInput
