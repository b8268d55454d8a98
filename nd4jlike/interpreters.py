"""Reference interpreters: whole models with every tensor kept, and models of one layer alone."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import re
import sys
import tempfile
import textwrap
import threading
from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nd4jlike.errors import LayoutError, MissingLibraryError, Nd4jLikeError
from nd4jlike.layer_models import onnx_model_of, tflite_model_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

    from nd4jlike.adapters.onnx import DepthwiseLayer as OnnxLayer
    from nd4jlike.adapters.onnx import OnnxModel
    from nd4jlike.adapters.tflite import DepthwiseLayer, TfliteModel

    _Array = npt.NDArray[Any]

__all__ = ["REFERENCES", "LiteRt", "LiteRtXnnpack", "OnnxReference", "OnnxRuntime", "Reference", "TfliteMicro", "open_reference"]

_LARGEST_ARENA = 1 << 30
# Lines of a log that are no errors: INFO, WARNING, and their first letters before a date.
_REMARK = re.compile(r"INFO:|WARNING:|[IW]\d{4} ")
# Of the one standard error that a process has.
_REDIRECTED = threading.RLock()


class Reference(ABC):
    """One model in an interpreter of another package.

    Parameters
    ----------
    content : bytes
        A model file.
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

    @abstractmethod
    def __init__(self, content: bytes, tensor_bytes: int) -> None: ...

    @abstractmethod
    def set_inputs(self, values: Sequence[_Array]) -> None:
        """Set the inputs of the model."""

    @abstractmethod
    def invoke(self) -> None:
        """Run the model on the inputs that were set."""

    @abstractmethod
    def tensor(self, index: Any) -> _Array:
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
            except Exception as error:  # onnxruntime has its own kinds
                raise self.refusal(error, printed()) from error

    @classmethod
    @abstractmethod
    def alone(cls, layer: Any, shape: tuple[int, ...], copies: int = 1) -> Reference:
        """Load a model of one layer on an input of `shape`, `copies` times: all copies share the input, each has an output of its own."""

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
        """Make an error of the package's own words, on one line, without what it only tells."""
        lines = [line for line in printed.splitlines() if not _REMARK.match(line)]
        words = " ".join(("\n".join(lines).strip() or str(error) or type(error).__name__).split())
        return Nd4jLikeError(f"{cls.package} cannot run this model: {textwrap.shorten(words, 200, placeholder=' ...')}")


class _Tflite(Reference):
    """An interpreter of `.tflite` files."""

    # Module of classes that write models.
    schema: ClassVar[str]

    @classmethod
    def alone(cls, layer: DepthwiseLayer, shape: tuple[int, ...], copies: int = 1) -> Reference:
        """Load a model of one layer."""
        content = tflite_model_of(cls.load(cls.schema), layer, shape, copies)
        output_bytes = copies * int(np.prod((shape[0], *layer.output_shape[1:]))) * np.dtype(layer.dtype).itemsize
        return cls(content, output_bytes + int(np.prod(shape)) * np.dtype(layer.dtype).itemsize)


class TfliteMicro(_Tflite):
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


class LiteRt(_Tflite):
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


class OnnxRuntime(Reference):
    """ONNX Runtime on the CPU: integer convolutions with a float scale, half to even."""

    package = "onnxruntime"
    extra = "onnx"
    kernels = "onnxruntime kernels"

    def __init__(self, content: bytes, tensor_bytes: int, *, precise: bool = False) -> None:
        runtime = self.load("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4
        # As by default on ARM: DequantizeLinear, Conv and QuantizeLinear of int8 are one integer convolution, as those of uint8 are everywhere.
        options.add_session_config_entry("session.qdqisint8allowed", "1")
        options.add_session_config_entry("session.x64quantprecision", "1" if precise else "0")
        # The fallback is the same provider again, after a few lines on standard output.
        with _standard_error() as printed:
            try:
                self.session = runtime.InferenceSession(content, options, providers=["CPUExecutionProvider"], enable_fallback=0)
            except Exception as error:
                raise self.refusal(error, printed()) from error
        self.outputs = {output.name: i for i, output in enumerate(self.session.get_outputs())}

    def set_inputs(self, values: Sequence[_Array]) -> None:
        """Set the inputs of the model."""
        self.binding = self.session.io_binding()
        self.fed = {entry.name: np.ascontiguousarray(value) for entry, value in zip(self.session.get_inputs(), values, strict=True)}
        for name, value in self.fed.items():
            self.binding.bind_cpu_input(name, value)
        for name in self.outputs:
            self.binding.bind_output(name)
        self.first = True

    def invoke(self) -> None:
        """Run the model on the inputs that were set."""
        self.session.run_with_iobinding(self.binding)
        if self.first:  # later runs write where this one did
            self.first = False
            self.values = self.binding.get_outputs()
            for name, value in zip(self.outputs, self.values, strict=True):
                self.binding.bind_ortvalue_output(name, value)

    def tensor(self, index: Any) -> _Array:
        """Copy a tensor of that name, as the last run left it."""
        values: _Array = self.values[self.outputs[index]].numpy().copy()
        return values

    def output(self) -> _Array:
        """Copy the first output of the last run."""
        return self.tensor(next(iter(self.outputs)))

    @classmethod
    def alone(cls, layer: OnnxLayer, shape: tuple[int, ...], copies: int = 1) -> Reference:
        """Load a model of one layer."""
        # Without VNNI its sums of products of uint8 by int8 saturate unless it is told to be precise.
        mixed = (layer.dtype, layer.stored_dtype) == ("uint8", "int8")
        return cls(onnx_model_of(cls.load("onnx"), layer, shape, copies), 0, precise=mixed)


class OnnxReference(Reference):
    """The reference evaluator of the onnx package: NumPy's operations, of float64 too, which onnxruntime cannot convolve."""

    package = "onnx"
    extra = "onnx"
    kernels = "onnx reference evaluator"

    def __init__(self, content: bytes, tensor_bytes: int) -> None:
        try:
            self.evaluator = self.load("onnx.reference").ReferenceEvaluator(self.load("onnx").load_from_string(content))
        except MissingLibraryError:
            raise
        except Exception as error:
            raise self.refusal(error, "") from error

    def set_inputs(self, values: Sequence[_Array]) -> None:
        """Set the inputs of the model."""
        self.fed = dict(zip(self.evaluator.input_names, values, strict=False))

    def invoke(self) -> None:
        """Run the model on the inputs that were set."""
        self.values = dict(zip(self.evaluator.output_names, self.evaluator.run(None, self.fed), strict=True))

    def tensor(self, index: Any) -> _Array:
        """Copy a tensor of that name, as the last run left it."""
        return np.array(self.values[index])

    def output(self) -> _Array:
        """Copy the first output of the last run."""
        return self.tensor(self.evaluator.output_names[0])

    @classmethod
    def alone(cls, layer: OnnxLayer, shape: tuple[int, ...], copies: int = 1) -> Reference:
        """Load a model of one layer."""
        return cls(onnx_model_of(cls.load("onnx"), layer, shape, copies), 0)


# By format of the model, then by name.
_PACKAGES: dict[str, dict[str, type[Reference]]] = {
    "tflite": {"tflite-micro": TfliteMicro, "litert": LiteRt},
    "onnx": {"onnxruntime": OnnxRuntime, "onnx": OnnxReference},
}
REFERENCES = ("auto", *(name for packages in _PACKAGES.values() for name in packages))


def open_reference(model: TfliteModel | OnnxModel, reference: str, feed: Sequence[_Array]) -> Reference:
    """Load a whole model and run it once.

    Parameters
    ----------
    model : TfliteModel or OnnxModel
        The model.
    reference : {"auto", "tflite-micro", "litert", "onnxruntime", "onnx"}
        ``"auto"``: the first that can run it.
    feed : sequence of numpy.ndarray
        A value of each input.

    Returns
    -------
    Reference
        The model in its interpreter, after the run on `feed`.

    Raises
    ------
    LayoutError
        For another `reference`.
    MissingLibraryError
        When no interpreter is installed, or the one asked for is not.
    Nd4jLikeError
        When none that is installed can run the model.
    """
    packages = _PACKAGES[model.format]
    if reference not in ("auto", *packages):
        raise LayoutError(f"reference of .{model.format} models must be one of {', '.join(('auto', *packages))}: {reference!r}")
    complaints: list[Nd4jLikeError] = []
    names = [reference] if reference != "auto" else list(packages)
    # tflite-micro loads uint8 layers and fails when they run.
    if reference == "auto" and "tflite-micro" in names and any(layer.dtype == "uint8" for layer in model.layers):
        names.remove("tflite-micro")
    # Slow, and of integers not what anybody runs.
    if reference == "auto" and "onnx" in names and not any(layer.dtype == "float64" for layer in model.layers):
        names.remove("onnx")
    for name in names:
        try:
            if name == "tflite-micro" and any(getattr(layer, "stored_multiplier", 1) == 0 for layer in model.layers):
                raise Nd4jLikeError("tflite-micro cannot run this model: it takes depth multiplier 0 as it stands and computes nothing")
            interpreter = packages[name](model.content, model.tensor_bytes)
            interpreter.run(feed)
            return interpreter
        except Nd4jLikeError as error:
            complaints.append(error)
    kind = MissingLibraryError if all(isinstance(error, MissingLibraryError) for error in complaints) else Nd4jLikeError
    raise kind("; ".join(str(error) for error in complaints)) from complaints[0]


@contextmanager
def _standard_error() -> Iterator[Callable[[], str]]:
    """Catch what native code prints to the process's standard error; the value reads it."""
    with _REDIRECTED, tempfile.TemporaryFile() as file:
        sys.stderr.flush()

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
