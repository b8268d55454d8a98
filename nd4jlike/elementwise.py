"""NumPy's functions on NdArrays: the two dispatch protocols, `__array_ufunc__` and `__array_function__` (ADR 0010)."""

from __future__ import annotations

import inspect
import itertools
import operator
import sys
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from nd4jlike import creation, dtypes
from nd4jlike.errors import DTypeError, LayoutError, UnsupportedLayoutError, _NoAxisError
from nd4jlike.ndarray import NEEDS_DENSE, NdArray, _apart_from, _exploded, _like, _seen, _taken, wrap_array

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import numpy.typing as npt

    _Array = npt.NDArray[Any]

__all__ = ["apply_function", "apply_ufunc", "writes_in_runs"]

_signature_of = lru_cache(inspect.signature)
_WEAK = (bool, int, float, complex)  # Python's numbers: their type gives way to that of an array


def apply_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Carry out `NdArray.__array_ufunc__`."""
    outs = kwargs.pop("out", ())
    where = kwargs.get("where", True)
    if not all(map(_is_ours, (*inputs, *outs, where))):
        return NotImplemented
    if method == "__call__" and not outs and any(map(_ranks_above, inputs)):
        return ufunc(*(x.to_numpy() if isinstance(x, NdArray) else x for x in inputs), **kwargs)
    inputs = tuple(map(_taken, inputs))
    if method == "__call__" and ufunc.signature is None:
        return _call(ufunc, inputs, outs, kwargs)
    views = _Views()
    found = NotImplemented
    if method == "at":
        inputs = (views.target(inputs[0]), *inputs[1:])
    elif method in ("reduce", "accumulate") and ufunc in (np.add, np.multiply):
        found = _in_float32(getattr(ufunc, method), inputs, kwargs | dict(zip(("out",), outs, strict=False)))
    if found is not NotImplemented:
        return found
    if outs:
        kwargs["out"] = tuple(map(views.target, outs))
    return views.run(getattr(ufunc, method), inputs, kwargs)


def apply_function(func: Callable[..., Any], types: tuple[type, ...], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Carry out `NdArray.__array_function__`."""
    if not all(issubclass(t, NdArray) or getattr(t, "__array_function__", None) is np.ndarray.__array_function__ for t in types):
        return NotImplemented
    if func in _OWN:
        found = _OWN[func](*args, **kwargs)
        if found is not NotImplemented:
            return found
    if func in _SUMS:
        found = _in_float32(func, args, kwargs)
        if found is not NotImplemented:
            return found
    views = _Views(handed_out=func in _CALLING_BACK)
    name, place = _written_by(func)
    if place < len(args):
        args = (*args[:place], views.target(args[place]), *args[place + 1 :])
    elif kwargs.get(name) is not None:
        out = kwargs[name]
        kwargs = {**kwargs, name: tuple(map(views.target, out)) if isinstance(out, tuple) else views.target(out)}
    found = views.run(func, args, kwargs)
    return _laid_out(found, views) if func in _ELEMENTWISE else found


def _in_float32(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compute sums and products of bfloat16 and round once: NumPy's loops would at each step. NotImplemented: another call, NumPy's or a wrong one."""
    try:
        bound = _signature_of(func).bind(*args, **kwargs).arguments
        more: dict[str, Any] = bound.pop("kwargs", {})
        (first, x), *others = [*bound.items(), *more.items()]
    except TypeError:
        return NotImplemented
    except ValueError:  # NumPy before 2.4 has no signature for what is written in C
        (first, x), *others = [*zip(_REDUCTION, args, strict=False), *kwargs.items()] or [("", None)]
    options = {name: value for name, value in others if value is not None and (name != "returned" or value)}
    out = options.pop("out", None)
    if isinstance(out, tuple) and len(out) == 1:
        (out,) = out
    if not isinstance(x, NdArray) or x.dtype != "bfloat16" or first not in _REDUCED or not options.keys().isdisjoint(("dtype", "weights", "returned")):
        return NotImplemented
    axis = {"axis": None} if ("axis", None) in others else {}
    found = func(x.astype("float32"), **options, **axis)
    if out is None:
        rounded = creation.asarray(found, dtype="bfloat16")
        return rounded if isinstance(found, NdArray) else rounded.to_numpy()[()]
    if not isinstance(out, NdArray) or out.dtype != "bfloat16" or out.shape != np.shape(found):
        return NotImplemented
    out[...] = found
    return out


def _laid_out(found: Any, views: _Views) -> Any:
    """Put a new result into the layout of the first array of its shape, where that has blocks or padding."""
    given = [x for x, _ in views.seen.values()]
    model = next((x for x in given if isinstance(found, NdArray) and x.shape == found.shape), None)
    if model is None or any(x is found for x in given) or not (model.descriptor.inner_blocks or model.descriptor.padded_shape != model.shape):
        return found
    made = _like(model, found.dtype, keep_fill=True, cleared=False)
    made[...] = found
    return made


def _written_by(func: Callable[..., Any]) -> tuple[str, int]:
    """Name the argument that a function writes to, and count those before it; more than there can be where it has no place."""
    if func in _WRITERS:
        return _WRITERS[func]
    try:
        parameters = _signature_of(func).parameters
    except ValueError:
        return "out", sys.maxsize
    if "out" not in parameters or parameters["out"].kind is not inspect.Parameter.POSITIONAL_OR_KEYWORD:
        return "out", sys.maxsize
    return "out", list(parameters).index("out")


def _is_ours(x: Any) -> bool:
    """Whether no other library wants the ufunc for itself."""
    found = getattr(type(x), "__array_ufunc__", None)
    return found is None or isinstance(x, NdArray) or found is np.ndarray.__array_ufunc__


def _ranks_above(x: Any) -> bool:
    """Whether NumPy gives a result the class of this array: of a masked one, say."""
    return isinstance(x, np.ndarray) and type(x) is not np.ndarray and x.__array_priority__ > 0


def _refuse_read_only(x: Any) -> None:
    if isinstance(x, NdArray) and x.readonly:
        raise LayoutError(f"the array is read-only: {x.descriptor!r}")


def _is_known(dtype: Any) -> bool:
    try:
        dtypes.codes(dtype)
    except DTypeError:
        return False
    return True


def _known(found: _Array) -> Any:
    """Make an NdArray of an array of NumPy's, unless its element type is not in the table."""
    return wrap_array(found) if _is_known(found.dtype) else found


class _Views:
    """The arrays of one call as NumPy sees them, and its results as NdArrays.

    Plain arrays are views. Blocked ones are dense copies: read-only ones, except those that `target` makes, which are
    written back.
    """

    def __init__(self, handed_out: bool = False) -> None:
        self.handed_out = handed_out
        self.seen: dict[int, tuple[NdArray, _Array]] = {}
        self.targets: list[tuple[NdArray, _Array]] = []

    def target(self, x: Any) -> Any:
        """Give what NumPy may write to in place of `x`."""
        if not isinstance(x, NdArray):
            return x
        _refuse_read_only(x)
        view = _seen(x)
        self.seen[id(x)] = x, view
        if x.descriptor.inner_blocks:
            self.targets.append((x, view))
        return view

    def view(self, x: NdArray) -> _Array:
        """Give what NumPy may read in place of `x`."""
        if id(x) not in self.seen:
            view = x.to_numpy() if self.handed_out else _seen(x)
            if x.descriptor.inner_blocks:
                view.flags.writeable = False
            self.seen[id(x)] = x, view
        return self.seen[id(x)][1]

    def all_in(self, tree: Any) -> Any:
        """`tree` with views in place of NdArrays, in tuples, lists and dictionaries too."""
        tree = _taken(tree)
        if isinstance(tree, NdArray):
            return self.view(tree)
        if type(tree) in (tuple, list):
            return type(tree)(map(self.all_in, tree))
        if type(tree) is dict:
            return {key: self.all_in(value) for key, value in tree.items()}
        return tree

    def run(self, func: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call `func`, write back, and wrap what it gives."""
        args, kwargs = self.all_in(tuple(args)), self.all_in(dict(kwargs))
        try:
            found = func(*args, **kwargs)
        except ValueError as error:
            if "read-only" in str(error) and any(x.descriptor.inner_blocks for x, _ in self.seen.values()):
                raise UnsupportedLayoutError(f"{func.__name__} writes into a blocked array, which NumPy cannot view; reorder to a plain layout first") from None
            raise
        for x, values in self.targets:
            x[...] = values
        return self.wrapped(found, func)

    def wrapped(self, found: Any, func: Callable[..., Any]) -> Any:
        """NdArrays in place of NumPy's arrays."""
        if isinstance(found, tuple | list):
            parts = [self.wrapped(part, func) for part in found]
            return type(found)(*parts) if hasattr(found, "_fields") else type(found)(parts)
        if type(found) is not np.ndarray:
            return found
        for x, view in self.seen.values():
            if found is view:
                return x
            if not np.may_share_memory(found, view):
                continue
            if x.descriptor.inner_blocks:
                raise UnsupportedLayoutError(
                    f"{func.__name__} makes views, NumPy has none of the blocked layout {x.descriptor!r}; reorder to a plain layout first"
                )
            x.to_numpy()  # the view has an address of its own from here on
        return _known(found)


class _Box(NamedTuple):
    """A part of a blocked array that is plain: whole blocks, or the rest in the last one."""

    cells: tuple[slice, ...]  # of the exploded view
    elements: tuple[slice, ...]  # of the array
    extents: tuple[tuple[int, ...], ...]  # for each axis: outer blocks, then its inner blocks


class _Boxes:
    """All elements of a blocked layout as a few plain boxes, which NumPy can view: no tail, no copy."""

    def __init__(self, shape: tuple[int, ...], inner_blocks: tuple[tuple[int, int], ...]) -> None:
        self.shape, self.inner_blocks = shape, inner_blocks
        own = [[i for i, (axis, _) in enumerate(inner_blocks) if axis == each] for each in range(len(shape))]
        # Position of each exploded axis among the axes split one by one.
        starts = list(itertools.accumulate([1 + len(blocks) for blocks in own], initial=0))
        self.order = starts[:-1] + [0] * len(inner_blocks)
        for axis, blocks in enumerate(own):
            for level, block in enumerate(blocks):
                self.order[len(shape) + block] = starts[axis] + 1 + level
        pieces = [_pieces(n, [inner_blocks[i][1] for i in blocks]) for n, blocks in zip(shape, own, strict=True)]
        self.boxes = []
        for chosen in itertools.product(*pieces):
            split = [part for _, parts in chosen for part in parts]
            cells = tuple(split[place] for place in self.order)
            self.boxes.append(_Box(cells, tuple(whole for whole, _ in chosen), tuple(tuple(p.stop - p.start for p in parts) for _, parts in chosen)))

    def parts(self, x: Any) -> Iterator[Any]:
        """Yield the part of `x` that belongs to each box, `x` being broadcast to the shape of the layout."""
        if isinstance(x, _WEAK):
            return itertools.repeat(x, len(self.boxes))
        if isinstance(x, NdArray):
            if x.descriptor.inner_blocks == self.inner_blocks and x.shape == self.shape:
                cells = _exploded(x)
                return (cells[box.cells] for box in self.boxes)
            x = _seen(x)
        values = np.asarray(x)
        values = values[(None,) * (len(self.shape) - values.ndim)]
        return (self._split(values, box) for box in self.boxes)

    def _split(self, values: _Array, box: _Box) -> _Array:
        cut = []
        extents: list[int] = []
        for n, part, counts in zip(values.shape, box.elements, box.extents, strict=True):
            cut.append(slice(None) if n == 1 else part)
            extents.extend([1] * len(counts) if n == 1 else counts)
        return values[tuple(cut)].reshape(extents).transpose(self.order)


# Layouts recur; what is kept is a few slices each.
_boxes_of = lru_cache(maxsize=64)(_Boxes)


def _pieces(extent: int, sizes: list[int]) -> list[tuple[slice, list[slice]]]:
    """Cut an axis of inner blocks `sizes`: whole outer blocks, then whole blocks of each level in what is left.

    Each piece is a slice of the axis, and one of the outer blocks and of each inner block.
    """
    weight = int(np.prod(sizes, dtype=np.intp))
    pieces = []
    fixed: list[slice] = []
    begin = 0
    for level in range(len(sizes) + 1):
        count = (extent - begin) // weight
        if count:
            pieces.append((slice(begin, begin + count * weight), [*fixed, slice(0, count), *(slice(0, size) for size in sizes[level:])]))
        begin += count * weight
        fixed.append(slice(count, count + 1))
        weight //= sizes[level] if level < len(sizes) else 1
    return pieces


def _call(ufunc: np.ufunc, inputs: tuple[Any, ...], outs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Compute element by element; new results have the layout of the first NdArray of their shape."""
    for out in outs:
        _refuse_read_only(out)
    where = _taken(kwargs.pop("where", True))
    given = [x if isinstance(x, (NdArray, *_WEAK)) else np.asarray(x) for x in (*inputs, where)]
    shape = _broadcast(*[x.shape for x in given if not isinstance(x, _WEAK)])
    if shape == () and all(out is None for out in outs):
        return ufunc(*[_numpy(x) for x in inputs], where=_numpy(where), **kwargs)
    model = next((x for x in given if isinstance(x, NdArray) and x.shape == shape), None)
    made: list[Any]
    if outs and all(out is not None for out in outs):
        made = [None] * ufunc.nout
    else:
        full = _broadcast(shape, *[np.shape(out) for out in outs if out is not None])  # what is given may be larger
        made = _new(ufunc, given[:-1], full, kwargs, model if full == shape else None, where is not True)
    results = tuple(new if old is None else old for old, new in zip(outs or [None] * ufunc.nout, made, strict=True))

    blocked = next((out for out in results if isinstance(out, NdArray) and out.descriptor.inner_blocks), None)
    if blocked is None or not blocked.size or any(out.shape != blocked.shape for out in results) or _broadcast(shape, blocked.shape) != blocked.shape:
        views = _Views()
        targets = tuple(map(views.target, results))
        *read, mask = map(views.all_in, given)
        _into(ufunc, read, targets, mask, kwargs)
        for x, values in views.targets:
            x[...] = values
    else:
        boxes = _boxes_of(blocked.shape, blocked.descriptor.inner_blocks)
        held = [_numpy(x).copy() if _meets(x, results) else x for x in given]
        spare = [_seen(out) if isinstance(out, NdArray) and _is_foreign(out, blocked) else out for out in results]
        for *read, mask, targets in zip(*map(boxes.parts, held), zip(*map(boxes.parts, spare), strict=True), strict=True):
            _into(ufunc, read, targets, mask, kwargs)
        for out, values in zip(results, spare, strict=True):
            if values is not out:
                out[...] = values
    return results[0] if ufunc.nout == 1 else results


def _into(ufunc: np.ufunc, read: Sequence[Any], targets: tuple[_Array, ...], mask: Any, kwargs: Mapping[str, Any]) -> None:
    """Have NumPy write into `targets`."""
    if ufunc in NEEDS_DENSE and not all(writes_in_runs(np.asarray(x), targets[0]) for x in (read[0], mask)):
        found = ufunc(np.array(np.broadcast_to(read[0], targets[0].shape), order="C"), **kwargs)
        np.copyto(targets[0], found, casting=kwargs.get("casting", "same_kind"), where=mask)
    else:
        ufunc(*read, out=targets, where=mask, **kwargs)


def writes_in_runs(read: _Array, target: _Array) -> bool:
    """Whether NumPy's innermost loop from one array to another of equal shape, or one that it is broadcast to, surely writes elements side by side."""
    shape, steps = target.shape, target.strides
    axes = [axis for axis in range(len(shape)) if shape[axis] > 1]
    if not axes:
        return True
    inner = min(reversed(axes), key=steps.__getitem__)
    if steps[inner] != target.itemsize:  # negative ones are less
        return False
    # NumPy keeps two axes in the order of c if one of the operands has them so, and turns them if the other is all that has a say.
    if all(steps[a] >= steps[b] for a, b in itertools.pairwise(axes)):
        return True
    pace = [0] * (len(shape) - len(read.shape)) + [abs(step) if n > 1 else 0 for n, step in zip(read.shape, read.strides, strict=True)]
    return all(axis == inner or pace[axis] == 0 or pace[inner] == 0 or pace[axis] > pace[inner] for axis in axes)


def _broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Broadcast shapes, most of which are equal."""
    return shapes[0] if shapes and all(shape == shapes[0] for shape in shapes) else np.broadcast_shapes(*shapes)


def _numpy(x: Any) -> Any:
    return _seen(x) if isinstance(x, NdArray) else x


def _is_foreign(x: NdArray, blocked: NdArray) -> bool:
    """Whether `x` is blocked, and otherwise than `blocked`."""
    return bool(x.descriptor.inner_blocks) and x.descriptor.inner_blocks != blocked.descriptor.inner_blocks


def _meets(x: Any, outs: tuple[Any, ...]) -> bool:
    """Whether writing one box of `outs` might change what another box reads of `x`."""
    if isinstance(x, _WEAK):
        return False
    if all(out is x for out in outs):
        return False
    cells = _exploded(x) if isinstance(x, NdArray) else x
    for out in outs:
        same = isinstance(x, NdArray) and isinstance(out, NdArray) and x.buffer is out.buffer and x.descriptor == out.descriptor
        if not same and np.may_share_memory(cells, _exploded(out) if isinstance(out, NdArray) else out):
            return True
    return False


def _new(ufunc: np.ufunc, given: list[Any], shape: tuple[int, ...], kwargs: dict[str, Any], model: NdArray | None, cleared: bool) -> list[Any]:
    """Make new results, of the element types that NumPy gives to arrays without elements; zeros if `cleared`."""
    none = [np.empty(0, dtypes.numpy_dtype(x.dtype)) if not isinstance(x, _WEAK) else _numpy(x) for x in given]
    found = ufunc(*none, **kwargs)
    made: list[Any] = []
    for result in found if isinstance(found, tuple) else (found,):
        if not _is_known(result.dtype):
            made.append(np.zeros(shape, result.dtype))
        elif model is not None:
            made.append(_like(model, result.dtype, keep_fill=True, cleared=cleared))
        else:
            made.append((creation.zeros if cleared else creation.empty)(shape, result.dtype))
    return made


def _like_function(make: Callable[..., NdArray], *first: str) -> Callable[..., Any]:
    """Make `numpy.zeros_like` and its kind: the layout is kept unless another shape or order is asked for. `first`: what comes before the element type."""

    def run(a: Any = None, *args: Any, prototype: Any = None, **kwargs: Any) -> Any:
        a = prototype if a is None else a  # `empty_like` calls it so
        given = dict(zip((*first, "dtype", "order", "subok", "shape"), args, strict=False)) | kwargs
        dtype, order, shape, device = (given.pop(name, None) for name in ("dtype", "order", "shape", "device"))
        given.pop("subok", None)
        if shape is not None or order not in (None, "K") or device not in (None, "cpu") or not (dtype is None or _is_known(dtype)):
            return NotImplemented
        return make(a, **given, dtype=dtype)

    return run


def _reshape(a: Any, shape: Any = None, order: str = "C", *, copy: bool | None = None, **kwargs: Any) -> Any:
    shape = kwargs.get("newshape", shape)
    return a.reshape(shape if isinstance(shape, tuple | list) else (shape,), copy=copy) if order == "C" else NotImplemented


def _moved(axes: Callable[..., _Array]) -> Callable[..., Any]:
    """Make a function that permutes axes, told by what NumPy's does to the strides of an array."""

    def run(a: Any, *args: Any, **kwargs: Any) -> Any:
        # Strides name the axes, each has its own; there is one byte.
        turned = axes(np.ndarray((1,) * a.ndim, np.int8, bytes(1), strides=tuple(range(a.ndim))), *args, **kwargs)
        return a.permute(turned.strides)

    return run


def _copy(a: Any, order: str = "K", subok: bool = False) -> Any:
    return a.copy() if order == "K" else NotImplemented


def _copyto(dst: Any, src: Any, *args: Any, **kwargs: Any) -> Any:
    views = _Views()
    cells = views.target(dst)
    return views.run(np.copyto, (cells, _apart_from(cells, views.all_in(src)), *args), kwargs)


def _expand_dims(a: Any, axis: Any) -> Any:
    new = tuple(map(operator.index, axis if isinstance(axis, tuple | list) else (axis,)))
    ndim = a.ndim + len(new)
    if not all(-ndim <= each < ndim for each in new):
        raise _NoAxisError(f"new axes {axis} are outside the {ndim} axes of the result: shape={a.shape}")
    places = {each % ndim for each in new}
    if len(places) < len(new):
        raise LayoutError(f"new axes {axis} name one of the {ndim} axes of the result twice: shape={a.shape}")
    return a[tuple(None if i in places else slice(None) for i in range(ndim))]


def _shares(func: Callable[..., Any]) -> Callable[..., Any]:
    """Make a question about memory: blocked arrays answer for all their cells."""

    def run(a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
        return func(*[_exploded(x) if isinstance(x, NdArray) else x for x in map(_taken, (a, b))], *args, **kwargs)

    return run


# Functions that a layout of ours answers itself, or better than NumPy does on views; NotImplemented: run NumPy on views.
_OWN: dict[Any, Callable[..., Any]] = {
    np.zeros_like: _like_function(creation.zeros_like),
    np.empty_like: _like_function(creation.empty_like),
    np.ones_like: _like_function(creation.ones_like),
    np.full_like: _like_function(creation.full_like, "fill_value"),
    np.copy: _copy,
    np.copyto: _copyto,
    np.reshape: _reshape,
    np.ravel: lambda a, order="C": a.ravel() if order == "C" else NotImplemented,
    np.transpose: lambda a, axes=None: a.transpose(axes),
    np.swapaxes: _moved(np.swapaxes),
    np.moveaxis: _moved(np.moveaxis),
    np.rollaxis: _moved(np.rollaxis),
    np.matrix_transpose: lambda x: x.mT,
    np.squeeze: lambda a, axis=None: a.squeeze(axis),
    np.expand_dims: _expand_dims,
    np.shape: lambda a: a.shape,
    np.ndim: lambda a: a.ndim,
    np.may_share_memory: _shares(np.may_share_memory),
    np.shares_memory: _shares(np.shares_memory),
    # Written in terms of indexing and exchanged axes, which know blocks.
    **{func: func._implementation for func in (np.split, np.array_split, np.vsplit, np.hsplit, np.dsplit, np.unstack, np.flip)},  # type: ignore[union-attr]
}
# Element by element, though no ufuncs.
_ELEMENTWISE = {np.clip, np.round, np.around, np.nan_to_num}
# Where many numbers become one, and how what is summed up is called.
_SUMS = {
    np.sum, np.prod, np.mean, np.std, np.var, np.average, np.cumsum, np.cumprod, np.cumulative_sum, np.cumulative_prod,
    np.nansum, np.nanprod, np.nanmean, np.nanstd, np.nanvar, np.nancumsum, np.nancumprod,
}  # fmt: skip
_REDUCED = ("a", "x", "array")
_REDUCTION = ("array", "axis", "dtype", "out", "keepdims", "initial", "where")
# What hands its views to a function of the caller's.
_CALLING_BACK = {np.apply_along_axis, np.apply_over_axes}
# What functions write to, and its place; NumPy before 2.4 has no signature for those that are written in C.
_WRITERS = {
    np.put: ("a", 0),
    np.place: ("arr", 0),
    np.putmask: ("a", 0),
    np.put_along_axis: ("arr", 0),
    np.fill_diagonal: ("a", 0),
    np.dot: ("out", 2),
    np.concatenate: ("out", 2),
}
