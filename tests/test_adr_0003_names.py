"""ADR 0003: names, spelling, errors, floors."""

import ast
import doctest
import importlib
import inspect
import os
import pickle
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nd4jlike as nd
import nd4jlike.show
from nd4jlike.adapters import arm_compute, onednn

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "nd4jlike"

FLOORS = (
    ("errors", "dtypes", "workers"),
    ("kernels",),
    ("tags", "padding", "layout", "layout_arguments", "views", "indices", "libnd4j", "descriptor"),
    ("buffer",),
    ("choices", "squares", "converted_parts", "moves"),
    ("dlpack",),
    ("padding_cells", "elements", "short_ways", "operators", "wrapping", "ndarray", "creation", "elementwise"),
    ("reorder",),
    ("quantization", "geometry", "layer_arguments", "layer_caches", "pixels", "signals", "launches", "single_calls", "depthwise", "backward"),
    ("adapters", "show"),
    ("layer_models", "interpreters", "peers", "verify", "bench", "cli", "__main__"),
)
# A layout shows itself: `ShapeDescriptor.show` imports what draws it when it is called; a stub names what it gives (ADR 0011).
UPWARD = {("descriptor", "show"), ("ndarray", "show")}
IMPORT = re.compile(r"^\s*(?:from|import|cimport)\s+nd4jlike(?:\.([\w.]+))?(?:\s+c?import\s+([\w, ]+))?", re.MULTILINE)


def modules():
    """Every module of the package that can be imported."""
    names = [info.name for info in pkgutil.walk_packages(nd.__path__, "nd4jlike.") if not info.name.endswith(("._cyutility", ".__main__"))]
    return [name for name in names if "._" not in name]


def sources():
    """(floor, name of the first module part, file, text) of every source file."""
    for path in sorted(PACKAGE.rglob("*")):
        if path.suffix in {".py", ".pyx", ".pxd", ".pxi", ".pyi"} and path.name != "__init__.py":
            part = path.relative_to(PACKAGE).parts[0].partition(".")[0]
            yield next((i for i, floor in enumerate(FLOORS) if part in floor), None), part, path, path.read_text()


def test_d1_spellings():
    """D1: The spellings of libnd4j's ADR are the definition; `alloc_length` and `padded_buffer_descriptor` are the same objects."""
    cls = nd.ShapeDescriptor
    assert cls.alloc_length is cls.allocLength
    assert cls.padded_buffer_descriptor is cls.paddedBufferDescriptor
    camel = {"allocLength", "paddedBufferDescriptor", "mT"}
    for name in nd.__all__:
        obj = getattr(nd, name)
        if isinstance(obj, type):
            assert re.fullmatch(r"([A-Z][a-z0-9]*)+([A-Z][a-z0-9]*)*d?", name), name
            members = {m for m in vars(obj) if not m.startswith("_")}
            odd = {m for m in members if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*|[A-Z]+(_[A-Z0-9]+)*", m)}
            assert odd <= camel, (name, odd)
        else:
            assert name == name.lower(), name


def test_d2_bytes_are_said():
    """D2: a name that counts bytes says `bytes` or `nbytes`."""
    x = nd.create((2, 3), paddings=(0, 1))
    assert x.strides == (4, 1)
    assert x.nbytes == 24
    assert x.buffer.nbytes == 32
    assert x.descriptor.allocLength() == 8
    for name in (member for member in dir(x.descriptor) if not member.startswith("_")):
        assert "size" not in name or name == "itemsize", name


@pytest.mark.parametrize("name", modules())
def test_d3_public_names(name):
    """D3: Every public name is in `__all__` of its module and of the package, in the stub, and has a docstring."""
    module = importlib.import_module(name)
    assert module.__doc__
    public = getattr(module, "__all__", [])
    assert public or name.count(".") == 1 or name.endswith(("adapters", "kernels"))
    for public_name in public:
        obj = getattr(module, public_name)
        if callable(obj):
            assert obj.__doc__, public_name
            if public_name in nd.__all__ and public_name != "Buffer" and not (isinstance(obj, type) and issubclass(obj, Exception)):
                assert inspect.signature(obj), public_name
            for member, value in vars(obj).items() if isinstance(obj, type) and obj.__module__.startswith("nd4jlike") else ():
                if not member.startswith("_") and (callable(value) or isinstance(value, property)):
                    assert inspect.getdoc(getattr(obj, member)), f"{public_name}.{member}"


@pytest.mark.parametrize("cls", [nd.ShapeDescriptor, nd.NdArray, nd.Buffer, nd.DepthwiseConv2d])
def test_d3_attributes(cls):
    """D3: Every public name has a docstring: attributes that cannot carry one are told by that of their class."""
    told = {name.strip() for names in re.findall(r"^    (\w[\w, ]*) : ", cls.__doc__.partition("Attributes\n")[2], re.MULTILINE) for name in names.split(",")}
    silent = {name for name, found in vars(cls).items() if not name.startswith("_") and not callable(found) and not inspect.getdoc(found)}
    assert silent
    assert silent <= told, silent - told


def test_d3_the_package_lists_what_it_offers():
    """D3: Every public name is in `__all__` of the package."""
    seen = {name for name in vars(nd) if not name.startswith("_") and not inspect.ismodule(getattr(nd, name))}
    assert seen == set(nd.__all__)
    assert len(nd.__all__) == len(set(nd.__all__))


def test_d3_signatures():
    """D3: `inspect.signature` tells what functions and classes take: none of them hides names behind `**`."""
    for name in nd.__all__:
        if callable(getattr(nd, name)) and not issubclass(type(getattr(nd, name)), type):
            assert all(p.kind is not p.VAR_KEYWORD for p in inspect.signature(getattr(nd, name)).parameters.values()), name
    for make in (nd.zeros, nd.empty, nd.ones, lambda *a, **k: nd.full(a[0], 1, **k)):
        assert make((2, 3), paddings=(0, 2), padding_offsets=(0, 1)).strides == (5, 1)
        with pytest.raises(TypeError, match="unexpected keyword argument 'padding'"):
            make((2, 3), padding=1)


@pytest.mark.parametrize("name", modules())
def test_d3_examples_run(name):
    """D3: Every public name has a docstring, and its examples run."""
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


def test_d3_stubs_agree(tmp_path):
    """D3: in the stub of a compiled module (mypy's stubtest, no allowlist)."""
    pytest.importorskip("mypy", reason="mypy is not installed: stubtest runs where it is")
    home = Path(nd.__file__).parents[1]
    # mypy finds what is installed by itself, and a package built in place by its path.
    env = {**os.environ, **({"MYPYPATH": str(home)} if home == ROOT else {})}
    command = [sys.executable, "-m", "mypy.stubtest", "nd4jlike", "--mypy-config-file", str(ROOT / "pyproject.toml")]
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, env=env)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize(
    ("name", "builtin"),
    [("LayoutError", ValueError), ("UnsupportedLayoutError", BufferError), ("OutOfRangeError", IndexError), ("DTypeError", TypeError),
     ("IsaError", RuntimeError), ("MissingLibraryError", ImportError)],
)  # fmt: skip
def test_d4_errors_are_builtins_too(name, builtin):
    """D4: Every error that the library raises on purpose is an `Nd4jLikeError` and the builtin that a NumPy user would catch."""
    error = getattr(nd, name)
    assert issubclass(error, nd.Nd4jLikeError)
    assert issubclass(error, builtin)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: nd.NdArray((2, 3)), "ShapeDescriptor.*tuple"),
        (lambda: nd.show.diff(nd.zeros(2), "ab"), "ShapeDescriptor or an NdArray.*str"),
        (lambda: nd.show.cell_at(nd.zeros(2), "0"), "'str'.*integer"),
        (lambda: onednn.MemoryDesc.from_descriptor(nd.zeros(2)), "ShapeDescriptor, not NdArray"),
        (lambda: arm_compute.TensorInfo.from_descriptor(nd.zeros(2)), "ShapeDescriptor, not NdArray"),
    ],
)
def test_d4_arguments_of_another_class(call, named):
    """D4: An argument of another class than the one that is asked for is Python's `TypeError`, with both named."""
    with pytest.raises(TypeError, match=named) as caught:
        call()
    assert not isinstance(caught.value, nd.Nd4jLikeError)


def test_d4_status_travels():
    """D4: `LayoutError(ValueError)` carries the broken rules, through pickle too."""
    with pytest.raises(nd.LayoutError) as caught:
        nd.create((2, 2), paddings=(1, 1), padding_offsets=(2, 0))
    again = pickle.loads(pickle.dumps(caught.value))
    assert again.status == caught.value.status == nd.ShapeStatus.INCORRECT_PADDING
    assert str(again) == str(caught.value)


def test_d5_messages():
    """D5: A message says what, the rule and the values."""
    with pytest.raises(nd.LayoutError) as caught:
        nd.ShapeDescriptor("float32", "c", (2, 3), (1,))
    assert str(caught.value) == "1 strides for rank 2: shape=(2, 3), strides=(1,)"
    with pytest.raises(nd.LayoutError, match=r"axis 1 has padding 2 and padding offset 3, the rule is 0 <= offset <= padding"):
        nd.create((2, 2), paddings=(0, 2), padding_offsets=(0, 3))


@pytest.mark.parametrize("cls", [nd.Nd4jLikeError, nd.LayoutError, nd.DTypeError, nd.IsaError, nd.MissingLibraryError, nd.OutOfRangeError])
def test_d5_messages_have_an_end(cls):
    """D5: in 1,000 characters at most: of a longer one, whose values are arrays or lists, the middle is left out."""
    for length in (1, 1000):
        assert str(cls("x" * length)) == "x" * length
    error = cls("what" + "x" * 10_000 + "end")
    assert (str(error)[:5], len(str(error)), str(error)[-4:]) == ("whatx", 955, "xend")
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_d5_long_values():
    """D5: A message says what, the rule and the values, in 1,000 characters at most, whatever was given."""
    weights, many = np.ones((3, 3, 1024, 1), "float32"), list(range(10_000))
    scales = nd.Quantization((0.1, 3), np.linspace(0.01, 0.02, 1024), (0.2, 0))
    for call in (
        lambda: nd.DepthwiseConv2d(weights, quantization=scales),
        lambda: nd.DepthwiseConv2d(weights.astype("int8"), quantization=[scales] * 9),
        lambda: nd.DepthwiseConv2d(weights, stride=many),
        lambda: nd.DepthwiseConv2d(weights, activation="relu" * 1000),
        lambda: nd.Quantization((0.1, many), 0.1, (0.1, 0)),
        lambda: nd.zeros(many),
    ):
        with pytest.raises(nd.Nd4jLikeError) as caught:
            call()
        assert len(str(caught.value)) <= 1000


def test_d6_imports_point_down():
    """D6: Imports point down the floors; kernels know no other floor, adapters do not know each other."""
    place = {name: i for i, floor in enumerate(FLOORS) for name in floor}
    seen = set()
    for floor, part, path, text in sources():
        assert floor is not None, f"{path.name} is on no floor"
        for module, names in IMPORT.findall(text):
            targets = [module] if module else [name.strip() for name in names.split(",")]
            for target in targets:
                head = target.partition(".")[0]
                if head in {"__version__", ""} or (part in FLOORS[-1] and head not in place):
                    continue  # the top floor may use the package's own names
                if not module and head not in place:
                    pytest.fail(f"{path.name} imports {head} from the package; import it from its module")
                assert place[head] <= floor or (part, head) in UPWARD, f"{path.relative_to(ROOT)} imports {target}, which is above it"
                if part == "kernels":
                    assert head in {"kernels", "errors"}, f"{path.name} imports {target}"
                if part == "adapters" and head == "adapters":
                    assert target.split(".")[1] == path.relative_to(PACKAGE).parts[1].partition(".")[0], f"{path.name} imports another adapter: {target}"
                seen.add((part, head))
    assert ("ndarray", "buffer") in seen
    assert ("creation", "ndarray") in seen


def test_d7_import_needs_numpy_only():
    """D7: `import nd4jlike` imports NumPy and nothing else that has to be installed."""
    code = "import sys, nd4jlike; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())
    foreign = {name for name in loaded - set(sys.stdlib_module_names) if not name.startswith("_")}
    plain = set(subprocess.run([sys.executable, "-c", code.replace(", nd4jlike", "")], capture_output=True, text=True, check=True).stdout.split())
    assert foreign - plain <= {"nd4jlike", "numpy", "cython_runtime"}


def test_d3_no_private_names_leak():
    """D3: Every public name is in `__all__` of its module: what a pure module defines is listed, or starts with an underscore."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        listed = next((ast.literal_eval(n.value) for n in tree.body if isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "") == "__all__"), None)
        defined = {n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef) and not n.name.startswith("_")}
        assert listed is not None or not defined, path.name
        assert defined <= set(listed or ()), (path.name, defined - set(listed or ()))
