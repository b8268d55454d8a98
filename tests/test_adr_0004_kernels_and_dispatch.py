"""ADR 0004: one kernel text, one build for each instruction set."""

import ast
import ctypes
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nd4jlike import DepthwiseConv2d
from nd4jlike.errors import IsaError
from nd4jlike.kernels import cpu, dispatch

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "nd4jlike" / "kernels"
LEVELS = ("baseline", "avx2", "avx512", "avx512_vnni") if platform.machine().lower() in ("x86_64", "amd64") else ("baseline",)

in_source_tree = pytest.mark.skipif(not (SOURCES / "simd.h").exists(), reason="needs the sources")


def run(code, **environment):
    """Run Python code in a fresh interpreter; returns what it prints."""
    clean = {name: value for name, value in os.environ.items() if name != "ND4JLIKE_ISA"}
    result = subprocess.run([sys.executable, "-c", code], env=clean | environment, capture_output=True, text=True, check=True, cwd=ROOT)
    return result.stdout.strip()


@in_source_tree
@pytest.mark.parametrize("isa", LEVELS)
def test_d1_a_module_is_an_include_and_an_export(isa):
    """D1: includes the one algorithm text and exports its table as `KERNEL_TABLE`."""
    lines = [line for line in (SOURCES / f"_depthwise_{isa}.pyx").read_text().splitlines() if line and not line.startswith("#")]
    assert lines == ['include "depthwise.pxi"', f'KERNEL_TABLE = export(b"{isa}")']


@in_source_tree
@pytest.mark.parametrize(("kernel", "table"), [("reorder", b"nd4jlike.kernels.MoveTable"), ("gradients", b"nd4jlike.kernels.GradientTable")])
def test_d1_d8_builds_of_reorder_and_gradients(kernel, table):
    """D1, D8: An instruction set without a module of its own has that of the next slower one; a capsule has the name of its table."""
    for path in SOURCES.glob(f"_{kernel}_*.pyx"):
        isa = path.stem.removeprefix(f"_{kernel}_")
        assert [line for line in path.read_text().splitlines() if line] == [f'include "{kernel}.pxi"', f'KERNEL_TABLE = export(b"{isa}")']
        if isa in dispatch.available():
            assert isa_of(dispatch.load(kernel, isa), table) == isa
    if "avx512_vnni" in dispatch.available():
        assert isa_of(dispatch.load(kernel, "avx512_vnni"), table) == "avx512"


def isa_of(table, name):
    """Read the first field of a table: the instruction set that it was built for."""
    api = ctypes.pythonapi
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    return ctypes.c_char_p.from_address(api.PyCapsule_GetPointer(table, name)).value.decode()


@in_source_tree
def test_d2_the_algorithm_names_no_instruction_set():
    """D2: The algorithm text names no instruction set; `simd.h`, `floats.h`, `bytes.h`, `tiles.h`, `conversions.h` and `window.h` alone do."""
    words = ("cpu.h", "simd.h", "floats.h", "bytes.h", "tiles.h", "conversions.h", "window.h")
    headers = [text for text in sorted(SOURCES.glob("*.h")) if text.name not in words]
    texts = sorted(SOURCES.glob("*.pxi"))
    assert headers
    assert texts
    for text in texts + headers:
        # An empty instruction is a word to the compiler.
        assert not re.search(r'_mm\d*_|avx|\bsse|neon|__x86|__aarch|__asm__\W*(volatile)?\W*"\w', text.read_text(), re.IGNORECASE), text.name


@in_source_tree
def test_d3_header_and_build_agree_on_the_names():
    """D3: `cpu.h` and `setup.py` agree on them."""
    tree = ast.parse((ROOT / "setup.py").read_text())
    flags = next(ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign) and node.targets[0].id == "ISA_FLAGS")
    assert cpu.levels() == LEVELS
    assert tuple(flags["x86_64"]) == ("baseline", "avx2", "avx512", "avx512_vnni")
    assert tuple(flags["aarch64"]) == ("baseline",)


def test_d4_available_is_compiled_and_supported():
    """D4: `available()` (both) name instruction sets; `baseline` is in each."""
    for names in (dispatch.compiled(), dispatch.supported(), dispatch.available()):
        assert names[0] == "baseline"
        assert list(names) == [name for name in LEVELS if name in names]
    assert set(dispatch.available()) == set(dispatch.compiled()) & set(dispatch.supported())


CHOSEN = "from nd4jlike.kernels import dispatch; print(dispatch.chosen())"


def test_d5_the_fastest_is_chosen():
    """D5: `chosen()` is the fastest one available, unless `ND4JLIKE_ISA` is set and not empty."""
    fastest = dispatch.available()[-1]
    assert run(CHOSEN) == fastest
    assert run(CHOSEN, ND4JLIKE_ISA="") == fastest


@pytest.mark.parametrize("isa", dispatch.available())
def test_d5_the_environment_forces(isa):
    """D5: then it is that one."""
    assert run(CHOSEN, ND4JLIKE_ISA=isa) == isa


def test_d6_import_does_not_read_the_environment():
    """D6: `ND4JLIKE_ISA` is read when kernels are asked for, never at import."""
    assert run("import nd4jlike.kernels.dispatch; print('fine')", ND4JLIKE_ISA="nonsense") == "fine"


def test_d6_a_change_is_seen(monkeypatch):
    """D6: read when kernels are asked for."""
    monkeypatch.setenv("ND4JLIKE_ISA", "baseline")
    assert dispatch.chosen() == "baseline"
    monkeypatch.delenv("ND4JLIKE_ISA")
    assert dispatch.chosen() == dispatch.available()[-1]


def test_d7_unknown(monkeypatch):
    """D7: what was asked, why not (unknown, not compiled, not supported by this machine)."""
    with pytest.raises(IsaError, match=r"^isa='mmx': unknown; available: baseline"):
        dispatch.load("depthwise", "mmx")
    with pytest.raises(IsaError, match=r"^isa=512: unknown; available: baseline"):
        DepthwiseConv2d(np.ones((3, 3, 4, 1), np.float32), isa=512)
    monkeypatch.setenv("ND4JLIKE_ISA", "mmx")
    with pytest.raises(IsaError, match=r"^ND4JLIKE_ISA=mmx: unknown; available: baseline"):
        dispatch.load("depthwise")


@pytest.mark.skipif(len(LEVELS) == 1, reason="one instruction set only")
def test_d7_not_supported(monkeypatch):
    """D7: not supported by this machine."""
    monkeypatch.setattr(dispatch, "supported", lambda: ("baseline",))
    with pytest.raises(IsaError, match=r"^isa='avx2': not supported by this machine; available: baseline$"):
        dispatch.load("depthwise", "avx2")
    assert dispatch.chosen() == "baseline"


@pytest.mark.skipif(len(LEVELS) == 1, reason="one instruction set only")
def test_d7_not_compiled(monkeypatch):
    """D7: not compiled."""
    monkeypatch.setattr(dispatch, "supported", lambda: LEVELS)
    monkeypatch.setattr(dispatch, "compiled", lambda: ("baseline",))
    with pytest.raises(IsaError, match=r"^isa='avx2': not compiled; available: baseline$"):
        dispatch.load("depthwise", "avx2")


def test_d7_unknown_kernel():
    """D7: An impossible request raises `IsaError`."""
    with pytest.raises(IsaError, match=r"^kernel 'pooling': not compiled for baseline; available: depthwise, gradients and reorder for baseline"):
        dispatch.load("pooling", "baseline")


@pytest.mark.parametrize("isa", dispatch.available())
def test_d8_a_named_capsule(isa):
    """D8: a capsule named `nd4jlike.kernels.KernelTable`."""
    api = ctypes.pythonapi
    api.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    api.PyCapsule_GetPointer.restype = ctypes.c_void_p
    name = b"nd4jlike.kernels.KernelTable"
    table = dispatch.load("depthwise", isa)
    assert api.PyCapsule_IsValid(table, name)
    # The first field of the table is the name of its instruction set, the next the lanes of its float kernels.
    assert ctypes.c_char_p.from_address(api.PyCapsule_GetPointer(table, name)).value == isa.encode()
    lanes = ctypes.c_ssize_t.from_address(api.PyCapsule_GetPointer(table, name) + ctypes.sizeof(ctypes.c_void_p)).value
    assert lanes == {"baseline": 4, "avx2": 8, "avx512_vnni": 0}.get(isa, 16)  # floats with VNNI are those without


def test_d8_nothing_else_is_imported():
    """D8: only modules that can run here are imported."""
    code = "import sys; from nd4jlike.kernels import dispatch; dispatch.load('depthwise'); print([m for m in sys.modules if '._depthwise_' in m])"
    assert run(code, ND4JLIKE_ISA="baseline") == "['nd4jlike.kernels._depthwise_baseline']"


@in_source_tree
@pytest.mark.parametrize("text", sorted(path for path in SOURCES.iterdir() if path.suffix in (".pxi", ".h") and path.stem != "cpu"), ids=lambda path: path.name)
def test_d9_no_python_in_kernels(text):
    """D9: kernels know pointers and numbers: no Python object, no allocation, no lock."""
    source = text.read_text()
    for header in re.findall(r"^(?:cdef|cpdef|def) .*?:$", source, re.MULTILINE | re.DOTALL):
        assert "(" not in header or "export(" in header or header.endswith(" noexcept nogil:"), header
    # But for the capsule that `export` makes.
    assert not re.search(r"malloc|calloc|realloc|memalign|with gil|Py[A-Z]\w+\(|omp_|pthread", source.replace("PyCapsule_New(", ""))


def shown_by_sysfs(level):
    """Bytes of the data or unified cache of a level of the first core; None where sysfs does not tell."""
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*"):
        if (path / "level").read_text().strip() == str(level) and (path / "type").read_text().strip() != "Instruction":
            return int((path / "size").read_text().strip().removesuffix("K")) * 1024
    return None


@pytest.mark.parametrize(("level", "least"), [(2, 1 << 18), (3, 1 << 22)])
def test_d10_caches_as_the_system_shows_them(level, least):
    """D10: the second- and last-level cache that one core reaches, as the processor describes them (cpuid on x86-64) and Linux's sysfs shows them."""
    shown = shown_by_sysfs(level)
    if shown is None:
        pytest.skip(f"sysfs shows no cache of level {level}")
    assert cpu.caches()[level - 2] == max(shown, least)
