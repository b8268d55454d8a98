"""The table of extensions and the table of ISA flags; everything else is in pyproject.toml."""

import os
import sysconfig
import zipfile
from functools import partial

try:
    import zopfli

    ZipFile = partial(zopfli.ZipFile, block_splitting_max=0, iterations=40)  # as many blocks as pay
except ImportError:
    from zipfile import ZipFile
from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel

# One kernel text, one extension for each row; the names are those of ND4JLIKE_ISA, slowest first (ADR 0004).
ISA_FLAGS = {
    "x86_64": {
        "baseline": ["-ffp-contract=off", "-Os"],
        "avx2": ["-march=x86-64-v3"],
        "avx512": ["-march=x86-64-v4", "-mtune=skylake-avx512", "-mprefer-vector-width=512"],
        "avx512_vnni": ["-march=x86-64-v4", "-mavx512vnni", "-mtune=skylake-avx512", "-mprefer-vector-width=512"],
    },
    "aarch64": {
        "baseline": [],
    },
}
# Of the machine that is built for: `_PYTHON_HOST_PLATFORM=linux-aarch64` with a cross compiler in CC names another one.
MACHINE = sysconfig.get_platform().rpartition("-")[2].lower()
MACHINE = {"amd64": "x86_64", "arm64": "aarch64"}.get(MACHINE, MACHINE)
MODULES = ["workers", "descriptor", "buffer", "dlpack", "moves", "ndarray", "kernels.cpu", "reorder", "depthwise", "backward"]
# The kernels, and the instruction sets that have a build of their own; the others use that of the next slower one.
KERNELS = {
    "depthwise": ("baseline", "avx2", "avx512", "avx512_vnni"),
    "gradients": ("baseline", "avx2", "avx512"),
    "reorder": ("baseline", "avx2", "avx512"),
}
# -O3 unrolls loops over registers, worth a factor of two. What else it copies loops for is no faster here, and 7 KB of each build.
COPIES = ("loop-interchange", "loop-unroll-and-jam", "split-loops", "tree-loop-distribution", "unswitch-loops", "version-loops-for-strides")
LESS = {"depthwise": [f"-fno-{what}" for what in (*COPIES, "ipa-cp-clone", "tree-loop-vectorize", "tree-slp-vectorize")]}
# A reorder wants its loops apart by what they decide once: its runs with fill take 1.2 to 1.7 times as long otherwise. Copies of its functions make it smaller.
LESS["reorder"] = [f"-fno-{what}" for what in COPIES if what != "unswitch-loops"]

GCC = "clang" not in os.environ.get("CC", sysconfig.get_config_var("CC") or "clang")
# Without partial redundancy elimination these are as fast (0.94 to 1.06, mean 1.00) and 4 KB smaller; that with VNNI loses 1 to 4 %. With registers of loops
# counted when code leaves them, AVX2's is as fast (float32 1.01, int8 1.00; 0.94 to 1.08) and 4 KB smaller; with targets of jumps where they fall, too (1.00;
# 0.97 to 1.02), 1 KB, and AVX-512's (1.00; 0.97 to 1.03). AVX-512's instructions stay in the order of statements, 13 KB smaller (1.00; 0.99 to 1.03;
# AVX2's would lose 1 to 3 %), AVX2's common expressions where they are, 1 KB (1.01; 0.97 to 1.04). AVX-512's loops ask at their head where they are written so,
# 14 KB smaller (1.00; 0.97 to 1.03; walks, and what fetches ahead, ask at their end). AVX-512's functions that begin anywhere take up to 1.3 times as long on
# Zen 4.
PLAIN = {
    ("depthwise", "avx2"): ["-fno-tree-pre", "-fno-gcse", *(["-fira-loop-pressure", "-fno-align-jumps"] if GCC else [])],
    ("depthwise", "avx512"): ["-fno-tree-pre", *(["-fno-schedule-insns2", "-fno-align-jumps", "-fno-tree-ch"] if GCC else [])],
}

# Skylake to Cascade Lake decode a jump across 32 bytes anew each time (Intel's "JCC erratum"): short loops took up to 1.3 times as long where they lay so.
PLACED = dict.fromkeys([("reorder", "avx512"), ("depthwise", "avx512_vnni")], ["-Wa,-mbranches-within-32B-boundaries"] if GCC else [])

# Optimised, without the debugger's tables, the compiler's name and tables to unwind calls by, which are a fiftieth of the wheel: C throws nothing.
# A call of a function nobody declared is an error, not a warning.
FLAGS = ["-O3", "-g0", "-fno-ident", "-fno-asynchronous-unwind-tables", "-fno-math-errno", "-fno-trapping-math", "-Werror=implicit-function-declaration"]
# Python's functions are called through the table of addresses itself: views, elements and a call of a plan take 0.94 to 0.97 of the time, 5 KB less.
FLAGS += ["-fno-plt"]
# Where no time is spent, small: what a call passes through, and the kernels, stay fast. In the order that statements have, and without what joins and threads
# branches, 10 KB smaller.
SMALL_FLAGS = ["-Os", "-fno-inline-functions-called-once", "-fno-schedule-insns2", "-fno-thread-jumps", "-fno-tree-tail-merge"]
# Not faster: expressions moved or kept for later, and vectors; 5 KB of the wheel.
FAST_FLAGS = ["-O2", "-fno-tree-pre", "-fno-code-hoisting", "-fno-gcse", "-fno-tree-vectorize", "-fno-schedule-insns2"]
FAST = {"workers", "moves", "depthwise", "buffer"}
# Functions in the order of their names, where those of one tile for all element types are neighbours, which compress: 16 KB of the wheel.
FLAGS += ["-ffunction-sections"]
# Code and constants in the same pages, without the linker's identifier: 2 KB of the wheel.
LINK_FLAGS = ["-Wl,-s", "-Wl,--sort-section=name", "-Wl,--build-id=none", "-Wl,-z,noseparate-code"]
if os.environ.get("ND4JLIKE_SANITIZE"):
    SMALL_FLAGS = FAST_FLAGS = []
    FLAGS = ["-O1", "-g1", "-fno-var-tracking", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    LINK_FLAGS = ["-fsanitize=address,undefined"]
    # Instrumented, the wider builds of the kernels take a compiler ten minutes each; guard pages watch over all of them in every test run.
    ISA_FLAGS = {"x86_64": {"baseline": ["-ffp-contract=off"]}}

# The Limited API of Python 3.11 makes one wheel serve all later versions; free-threaded builds have none.
LIMITED = not sysconfig.get_config_var("Py_GIL_DISABLED")
MACROS = [("Py_LIMITED_API", "0x030B0000")] if LIMITED else []
# Strings as they are: the wheel compresses them better than Cython does. What would have unpacked them is unused, as Cython's code for once may be.
MACROS += [("CYTHON_COMPRESS_STRINGS", "0"), ("CYTHON_SMALL_CODE", "__attribute__((cold, unused))")]
# What the text of the kernels calls inline is inlined: its vectors are in registers, its constants gone.
KERNEL_MACROS = [] if "-O1" in FLAGS else [("CYTHON_INLINE", "inline __attribute__((always_inline))")]


def extension(module, flags=(), macros=()):
    """One compiled module, its source named after it."""
    source = module.replace(".", "/") + (".c" if module == "nd4jlike._cyutility" else ".pyx")
    return Extension(
        module,
        [source],
        define_macros=[*MACROS, *macros],
        extra_compile_args=[*FLAGS, *flags],
        extra_link_args=LINK_FLAGS,
        include_dirs=["nd4jlike/kernels"],
        py_limited_api=LIMITED,
        depends=[f"nd4jlike/kernels/{name}" for name in sorted(os.listdir("nd4jlike/kernels")) if name.endswith((".h", ".pxi", ".pxd"))],
    )


class SmallWheel(bdist_wheel):
    """Compressed as well as zlib can, for which setuptools has no option, 7 KB less; where zopflipy (extra `release`) is installed, 4 % less again."""

    def run(self):
        """Write the wheel again."""
        super().run()
        path = self.distribution.dist_files[-1][2]
        with zipfile.ZipFile(path) as wheel:
            members = [(member, wheel.read(member)) for member in wheel.infolist()]
        with ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
            for member, content in members:
                wheel.writestr(member, content, compresslevel=9)


extensions = [extension(f"nd4jlike.{module}", FAST_FLAGS if module in FAST else SMALL_FLAGS) for module in MODULES]
isa_flags = ISA_FLAGS.get(MACHINE, {"baseline": ["-ffp-contract=off"]})
extensions += [
    extension(
        f"nd4jlike.kernels._{kernel}_{isa}",
        [*isa_flags[isa], *LESS.get(kernel, []), *PLAIN.get((kernel, isa), []), *PLACED.get((kernel, isa), [])],
        KERNEL_MACROS,
    )
    for kernel, isas in KERNELS.items()
    for isa in isas
    if isa in isa_flags
]
extensions.append(extension("nd4jlike._cyutility", SMALL_FLAGS))

setup(
    cmdclass={"bdist_wheel": SmallWheel},
    ext_modules=cythonize(
        extensions,
        shared_utility_qualified_name="nd4jlike._cyutility",
        compiler_directives={
            "language_level": 3,
            "freethreading_compatible": True,
            "auto_pickle": False,
            "autotestdict": False,
            "cdivision": True,
            "show_performance_hints": True,
        },
    ),
    options={"build_ext": {"parallel": os.cpu_count()}} | ({"bdist_wheel": {"py_limited_api": "cp311"}} if LIMITED else {}),
)
