"""Reference interpreters: whole models with every tensor kept, and models of one layer alone."""

from __future__ import annotations

import copy
import importlib
import importlib.metadata
import os
import sys
import tempfile
import textwrap
from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nd4jlike.errors import LayoutError, MissingLibraryError, Nd4jLikeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

    from nd4jlike.adapters.tflite import DepthwiseLayer, TfliteModel

    _Array = npt.NDArray[Any]

__all__ = ["REFERENCES", "LiteRt", "LiteRtXnnpack", "Reference", "TfliteMicro", "one_layer", "open_reference"]

REFERENCES = ("auto", "tflite-micro", "litert")

_LARGEST_ARENA = 1 << 30


class Reference(ABC):
    """One model in an interpreter of another package.

    Parameters
    ----------
    content : bytes
        A `.tflite` file.
    tensor_bytes : int
        Sum of the sizes of its tensors.

    Raises
    ------
    MissingLibraryError
        Without the package.
    Nd4jLikeError
        For a model that the package cannot run, in its own words.
    """

    package: ClassVar[str]
    extra: ClassVar[str]
    kernels: ClassVar[str]
    # Module of classes that write models.
    schema: ClassVar[str]

    @abstractmethod
    def __init__(self, content: bytes, tensor_bytes: int) -> None: ...

    @abstractmethod
    def set_inputs(self, values: Sequence[_Array]) -> None:
        """Set the inputs of the model."""

    @abstractmethod
    def invoke(self) -> None:
        """Run the model on the inputs that were set."""

    @abstractmethod
    def tensor(self, index: int) -> _Array:
        """Copy a tensor of the first subgraph, as the last run left it."""

    @abstractmethod
    def output(self) -> _Array:
        """Copy the first output of the last run."""

    def run(self, values: Sequence[_Array]) -> None:
        """Run the model on `values`."""
        with _standard_error() as printed:
            try:
                self.set_inputs(values)
                self.invoke()
            except (RuntimeError, ValueError) as error:
                raise self.refusal(error, printed()) from error

    @classmethod
    def description(cls) -> str:
        """Name the package and its version."""
        return f"{cls.package} {importlib.metadata.version(cls.package)}"

    @classmethod
    def load(cls, module: str) -> Any:
        """Import a module of the package."""
        try:
            return importlib.import_module(module)
        except ImportError as error:
            raise MissingLibraryError(f"the reference interpreter {cls.package} is not installed: pip install nd4jlike[{cls.extra}]") from error

    @classmethod
    def refusal(cls, error: BaseException, printed: str) -> Nd4jLikeError:
        """Make an error of the package's own words, on one line."""
        words = " ".join((printed or str(error) or type(error).__name__).split())
        return Nd4jLikeError(f"{cls.package} cannot run this model: {textwrap.shorten(words, 200, placeholder=' ...')}")


class TfliteMicro(Reference):
    """TensorFlow Lite Micro: its reference kernels, double rounding."""

    package = "tflite-micro"
    extra = "demo"
    kernels = "tflite-micro reference kernels"
    schema = "tflite_micro.tensorflow.lite.micro.python.schema_py_generated"

    def __init__(self, content: bytes, tensor_bytes: int) -> None:
        runtime = self.load("tflite_micro").runtime
        # All tensors are preserved, so the arena holds their sum; pages that are not touched cost nothing, and a generous
        # start matters: too small an arena is not always refused, it can crash.
        arena = (1 << 22) + 2 * (len(content) + tensor_bytes)
        while True:
            with _standard_error() as printed:
                try:
                    self.interpreter = runtime.Interpreter.from_bytes(
                        content, arena_size=arena, intrepreter_config=runtime.InterpreterConfig.kPreserveAllTensors
                    )
                    return
                except Exception as error:
                    # Every complaint about the arena ends with how many bytes are missing.
                    if "missing: " not in printed() or arena >= _LARGEST_ARENA:
                        raise self.refusal(error, printed()) from error
            arena *= 4

    def set_inputs(self, values: Sequence[_Array]) -> None:
        """Set the inputs of the model."""
        for i, value in enumerate(values):
            self.interpreter.set_input(value, i)

    def invoke(self) -> None:
        """Run the model on the inputs that were set."""
        self.interpreter.invoke()

    def tensor(self, index: int) -> _Array:
        """Copy a tensor of the first subgraph, as the last run left it."""
        values: _Array = self.interpreter.GetTensor(index, 0)["tensor_data"]
        return values

    def output(self) -> _Array:
        """Copy the first output of the last run."""
        values: _Array = self.interpreter.get_output(0)
        return values


class LiteRt(Reference):
    """TensorFlow Lite's built-in reference kernels, double rounding."""

    package = "ai-edge-litert"
    extra = "litert"
    kernels = "ai-edge-litert reference kernels"
    schema = "ai_edge_litert.schema_py_generated"
    resolver = "BUILTIN_REF"

    def __init__(self, content: bytes, tensor_bytes: int) -> None:
        module = self.load("ai_edge_litert.interpreter")
        with _standard_error() as printed:
            try:
                self.interpreter = module.Interpreter(
                    model_content=content,
                    num_threads=1,
                    experimental_op_resolver_type=module.OpResolverType[self.resolver],
                    experimental_preserve_all_tensors=self.resolver == "BUILTIN_REF",
                )
                self.interpreter.allocate_tensors()
            except (RuntimeError, ValueError) as error:
                raise self.refusal(error, printed()) from error
        self.inputs = [detail["index"] for detail in self.interpreter.get_input_details()]

    def set_inputs(self, values: Sequence[_Array]) -> None:
        """Set the inputs of the model."""
        for index, value in zip(self.inputs, values, strict=True):
            self.interpreter.set_tensor(index, value)

    def invoke(self) -> None:
        """Run the model on the inputs that were set."""
        self.interpreter.invoke()

    def tensor(self, index: int) -> _Array:
        """Copy a tensor of the first subgraph, as the last run left it."""
        values: _Array = self.interpreter.get_tensor(index)
        return values

    def output(self) -> _Array:
        """Copy the first output of the last run."""
        return self.tensor(self.interpreter.get_output_details()[0]["index"])


class LiteRtXnnpack(LiteRt):
    """XNNPACK, which TensorFlow Lite uses unless told otherwise: float scale, half to even."""

    kernels = "XNNPACK of ai-edge-litert"
    resolver = "AUTO"


_PACKAGES: dict[str, type[Reference]] = {"tflite-micro": TfliteMicro, "litert": LiteRt}


def open_reference(model: TfliteModel, reference: str = "auto") -> Reference:
    """Load a whole model.

    Parameters
    ----------
    model : TfliteModel
        The model.
    reference : {"auto", "tflite-micro", "litert"}
        ``"auto"``: the first that can run it.

    Returns
    -------
    Reference
        The model in its interpreter.

    Raises
    ------
    LayoutError
        For another `reference`.
    MissingLibraryError
        When no interpreter is installed, or the one asked for is not.
    Nd4jLikeError
        When none that is installed can run the model.
    """
    if reference not in REFERENCES:
        raise LayoutError(f"reference must be one of {', '.join(REFERENCES)}: {reference!r}")
    complaints: list[Nd4jLikeError] = []
    for name in [reference] if reference != "auto" else list(_PACKAGES):
        try:
            return _PACKAGES[name](model.content, model.tensor_bytes)
        except Nd4jLikeError as error:
            complaints.append(error)
    kind = MissingLibraryError if all(isinstance(error, MissingLibraryError) for error in complaints) else Nd4jLikeError
    raise kind("; ".join(str(error) for error in complaints)) from complaints[0]


@contextmanager
def _standard_error() -> Iterator[Callable[[], str]]:
    """Catch what native code prints to the process's standard error; the value reads it."""
    sys.stderr.flush()
    with tempfile.TemporaryFile() as file:

        def printed() -> str:
            file.seek(0)
            return file.read().decode("utf-8", "replace")

        saved = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield printed
        finally:
            os.dup2(saved, 2)
            os.close(saved)


def one_layer(reference: type[Reference], model: TfliteModel, layer: DepthwiseLayer, shape: tuple[int, ...], copies: int = 1) -> Reference:
    """Load a model of one layer alone.

    Parameters
    ----------
    reference : type
        Of interpreter.
    model : TfliteModel
        The model that the layer is cut from.
    layer : DepthwiseLayer
        The layer.
    shape : tuple of int
        Of its input.
    copies : int
        How often the layer is in the model; all copies share the input, each has an output of its own.

    Returns
    -------
    Reference
        The model in its interpreter.
    """
    schema = reference.load(reference.schema)

    whole = schema.ModelT.InitFromObj(schema.Model.GetRootAs(model.content, 0))
    graph = whole.subgraphs[layer.subgraph]
    operator = graph.operators[layer.index]
    weights = copy.copy(graph.tensors[operator.inputs[1]])
    # A bias always, of zeros where the layer has none: XNNPACK crashes without.
    bias = schema.TensorT()
    bias.name, bias.shape = "bias", [layer.channels * layer.multiplier]
    values = layer.bias if layer.bias is not None else np.zeros(bias.shape, np.float32 if layer.quantization is None else np.int32)
    if layer.quantization is None:
        bias.type = schema.TensorType.FLOAT32
    else:
        bias.type = schema.TensorType.INT32
        bias.quantization = schema.QuantizationParametersT()
        bias.quantization.scale = np.float32(layer.quantization.input[0]) * np.array(layer.quantization.weights, np.float32)
        bias.quantization.zeroPoint = np.zeros(len(bias.quantization.scale), np.int64)
    buffers = [schema.BufferT()]
    # The values as they were read: behind a DEQUANTIZE the file has no others.
    for tensor, data in ((weights, layer.weights), (bias, values)):
        tensor.buffer = len(buffers)
        buffers.append(schema.BufferT())
        buffers[-1].data = np.frombuffer(data.tobytes(), np.uint8)

    output_shape = (shape[0], *layer.output_shape[1:])
    tensors = [_variable(graph.tensors[layer.input], shape), weights, bias]
    operators = []
    for _ in range(copies):
        twin = copy.copy(operator)
        twin.opcodeIndex, twin.inputs, twin.outputs = 0, [0, 1, 2], [len(tensors)]
        operators.append(twin)
        tensors.append(_variable(graph.tensors[layer.output], output_shape))
    single = schema.SubGraphT()
    single.tensors, single.operators = tensors, operators
    single.inputs, single.outputs = [0], [twin.outputs[0] for twin in operators]
    result = schema.ModelT()
    result.version = whole.version
    result.operatorCodes, result.subgraphs, result.buffers = [whole.operatorCodes[operator.opcodeIndex]], [single], buffers
    builder = importlib.import_module("flatbuffers").Builder(1024)
    builder.Finish(result.Pack(builder), b"TFL3")
    itemsize = np.dtype(layer.dtype).itemsize
    return reference(bytes(builder.Output()), itemsize * (int(np.prod(shape)) + copies * int(np.prod(output_shape))))


def _variable(tensor: Any, shape: tuple[int, ...]) -> Any:
    """Copy the description of a tensor, with another shape and no values in the file."""
    result = copy.copy(tensor)
    result.buffer, result.shape, result.shapeSignature = 0, list(shape), None
    return result
