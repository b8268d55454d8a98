"""ShapeDescriptor: where each element lives (ADR 0001)."""

cimport cython
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_New, PyTuple_SetItem
from libc.string cimport memcmp, memcpy

import itertools
import math
import operator

from nd4jlike import dtypes, tags
from nd4jlike.errors import LayoutError, OutOfRangeError, ShapeStatus, UnsupportedLayoutError

__all__ = ["ShapeDescriptor"]

# Property bits of libnd4j's `extra` word. Bit 25 means "has a padded buffer" and nothing else.
cdef enum:
    FLAG_EMPTY = 1 << 3
    FLAG_PADDED = 1 << 25
    # Sparse, compressed, ragged, complex: contents that strides do not describe.
    FLAGS_FOREIGN = (1 << 1) | (1 << 2) | (1 << 4) | (1 << 9)

cdef extern from "Python.h":
    const Py_ssize_t PY_SSIZE_T_MAX
    int PySlice_Unpack(object key, Py_ssize_t *start, Py_ssize_t *stop, Py_ssize_t *step) except -1
    Py_ssize_t PySlice_AdjustIndices(Py_ssize_t length, Py_ssize_t *start, Py_ssize_t *stop, Py_ssize_t step) noexcept
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1

cdef extern from *:
    bint mul_overflows "__builtin_mul_overflow"(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *result) noexcept nogil
    bint add_overflows "__builtin_add_overflow"(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *result) noexcept nogil

cdef object ZERO = 0

# What is the same in most descriptors, by rank.
cdef list NO_PADDING = [(0,) * rank for rank in range(MAX_RANK + 1)]
cdef list IN_ORDER = [tuple(range(rank)) for rank in range(MAX_RANK + 1)]

cdef dict ORDER_CODES = {"c": 99, "f": 102}  # the letters' ASCII codes, as libnd4j stores them


cdef Py_ssize_t offset_of_index(const Layout *layout, const Py_ssize_t *index) noexcept nogil:
    cdef Py_ssize_t offset = layout.offset
    cdef Py_ssize_t step = 1
    cdef Py_ssize_t rest[MAX_RANK]
    cdef int i, axis
    for i in range(layout.rank):
        rest[i] = index[i]
    # Padding before the first element is inside `offset`, except within a block, where positions count from the block's start.
    for i in range(layout.block_count - 1, -1, -1):
        axis = layout.block_axes[i]
        offset += (rest[axis] % layout.block_sizes[i]) * step
        rest[axis] //= layout.block_sizes[i]
        step *= layout.block_sizes[i]
    for i in range(layout.rank):
        offset += rest[i] * layout.strides[i]
    return offset


cdef Py_ssize_t block_product(const Layout *layout, int axis) noexcept nogil:
    cdef Py_ssize_t product = 1
    cdef int i
    for i in range(layout.block_count):
        if layout.block_axes[i] == axis:
            product *= layout.block_sizes[i]
    return product


cdef Py_ssize_t inner_run(const Layout *layout) noexcept nogil:
    """Elements of one inner block of all axes together; 1 for plain layouts."""
    cdef Py_ssize_t product = 1
    cdef int i
    for i in range(layout.block_count):
        product *= layout.block_sizes[i]
    return product


cdef bint hosting_reach(const Layout *layout, Py_ssize_t *low, Py_ssize_t *high) noexcept nogil:
    """Offsets of the first and last cell of the hosting buffer; False on overflow."""
    cdef Py_ssize_t reach
    cdef int i
    low[0] = layout.offset
    for i in range(layout.rank):
        if mul_overflows(layout.padding_offsets[i] // block_product(layout, i), layout.strides[i], &reach) or add_overflows(low[0], -reach, low):
            return False
    high[0] = low[0]
    if add_overflows(high[0], inner_run(layout) - 1, high):
        return False
    for i in range(layout.rank):
        if mul_overflows(max(layout.padded_shape[i] // block_product(layout, i) - 1, 0), layout.strides[i], &reach):
            return False
        if add_overflows(high[0], reach, high) if reach > 0 else add_overflows(low[0], reach, low):
            return False
    return True


cdef bint is_padded_layout(const Layout *layout) noexcept nogil:
    cdef int i
    for i in range(layout.rank):
        if layout.paddings[i]:
            return True
    return False


cdef bint is_reversed(const Layout *layout) noexcept nogil:
    """Whether the memory order is that of 'f' and not that of 'c' too."""
    cdef int i
    for i in range(layout.rank):
        if layout.axes[i] != layout.rank - 1 - i:
            return False
    return layout.rank > 1


cdef Py_ssize_t even_stride(const Layout *layout, const int *axes) noexcept nogil:
    """The stride that visits all elements in the order of `axes`, 0 if none does; axes of one element do not decide."""
    cdef Py_ssize_t ews = 0, expected = 0
    cdef bint begun = False
    cdef int i, axis
    if layout.block_count > 0 or layout.length == 0:
        return 0
    for i in range(layout.rank - 1, -1, -1):
        axis = axes[i]
        if layout.shape[axis] == 1:
            continue
        if not begun:
            ews, begun = layout.strides[axis], True
        elif layout.strides[axis] != expected:
            return 0
        expected = layout.strides[axis] * layout.shape[axis]
    if not begun:
        return layout.strides[axes[layout.rank - 1]] if layout.rank > 0 else 1
    return ews


cdef Py_ssize_t element_wise_stride(const Layout *layout) noexcept nogil:
    """The `ews` that is stored unless one is given: along 'c' or 'f', 0 for every padded buffer, as libnd4j has it."""
    cdef int natural[MAX_RANK]
    cdef int i
    cdef bint fortran = is_reversed(layout)
    if is_padded_layout(layout):
        return 0
    for i in range(layout.rank):
        natural[i] = layout.rank - 1 - i if fortran else i
    return even_stride(layout, natural)


cdef Py_ssize_t as_ssize(object value, str what) except? -1:
    try:
        return operator.index(value)
    except OverflowError:
        raise LayoutError(f"{what} holds {value}, beyond the signed machine word", ShapeStatus.OVERFLOW) from None
    except TypeError:
        how = ": the total of each axis, of which padding_offsets has the part before the elements" if what == "paddings" else ""
        raise LayoutError(f"{what} holds {value!r}, it must hold integers{how}", ShapeStatus.INCORRECT_SHAPE) from None


cdef bint is_sizes(object values):
    """Whether `values` is a tuple of int that fit a machine word already."""
    cdef int overflow
    if type(values) is not tuple:
        return False
    for value in <tuple> values:
        if type(value) is not int:
            return False
        PyLong_AsLongLongAndOverflow(value, &overflow)
        if overflow:
            return False
    return True


cdef bint is_nothing(object values):
    return values is None or (isinstance(values, (tuple, list)) and len(values) == 0)


cdef tuple as_sizes(object values, str what):
    """A tuple of int; None stays None, one int becomes a tuple of one."""
    if values is None or is_sizes(values):
        return values
    if type(values) is int:
        return (as_ssize(values, what),)
    if not isinstance(values, (str, bytes)):
        try:
            values = tuple(values)
        except TypeError:
            values = (values,)
    else:
        raise LayoutError(f"{what} is {values!r}, it must hold integers", ShapeStatus.INCORRECT_SHAPE)
    return tuple([as_ssize(value, what) for value in values])


cdef tuple letter_axes(str letter, int rank):
    """Axes in the memory order of a letter, slowest first."""
    return <tuple> IN_ORDER[rank] if letter == "c" else tuple(range(rank - 1, -1, -1))


cdef list whole_blocks(int rank, tuple blocks):
    """Elements of a whole block of each axis."""
    cdef list products = [1] * rank
    for axis, size in blocks:
        products[axis] *= size
    return products


cdef tuple tag_strides(tuple axes, tuple extents, tuple blocks):
    """Strides between outer blocks of a dense buffer; extents in elements. Zero extents count as one, as oneDNN has it."""
    cdef list products = whole_blocks(len(extents), blocks)
    cdef list strides = [0] * len(extents)
    run = math.prod(products)
    for axis in reversed(axes):
        strides[axis] = run
        run *= max(1, extents[axis] // products[axis])
    return tuple(strides)


cdef tuple given_sizes(object values, int rank, str what):
    """Padding figures as they are given; None is none."""
    cdef tuple sizes = () if values is None else as_sizes(values, what)
    if rank > 1 and type(values) is int:
        raise LayoutError(f"{what} is {values} for {rank} axes, it must hold one number for each, of the first ones at least", ShapeStatus.INCORRECT_PADDING)
    if len(sizes) > rank:
        raise LayoutError(f"{len(sizes)} {what} for {rank} axes: {what}={sizes}", ShapeStatus.INCORRECT_PADDING)
    return sizes


cdef tuple checked_paddings(tuple shape, object paddings, object padding_offsets):
    """Paddings and offsets of every axis, the ones that are not given 0, each `0 <= offset <= padding`."""
    cdef int rank = len(shape)
    cdef tuple total = given_sizes(paddings, rank, "paddings")
    cdef tuple before = given_sizes(padding_offsets, rank, "padding_offsets")
    if len(before) > len(total):
        raise LayoutError(f"there are more padding offsets than paddings: padding_offsets={before}, paddings={total}", ShapeStatus.INCORRECT_PADDING)
    total += (0,) * (rank - len(total))
    before += (0,) * (rank - len(before))
    for axis, (size, offset) in enumerate(zip(total, before)):
        if size < 0 or not 0 <= offset <= size:
            raise LayoutError(
                f"axis {axis} has padding {size} and padding offset {offset}, the rule is 0 <= offset <= padding: "
                f"shape={shape}, paddings={total}, padding_offsets={before}",
                ShapeStatus.INCORRECT_PADDING,
            )
    return total, before


cdef tuple padded_extents(tuple shape, tuple paddings, tuple blocks):
    """Extents of the hosting buffer in elements, whole blocks."""
    if not blocks:
        return tuple([n + p for n, p in zip(shape, paddings)])
    return tuple([-(-(n + p) // b) * b for n, p, b in zip(shape, paddings, whole_blocks(len(shape), blocks))])


cdef tuple as_tuple(const Py_ssize_t *numbers, int count):
    cdef tuple made = PyTuple_New(count)
    cdef object number
    cdef int i
    for i in range(count):
        number = numbers[i]
        Py_INCREF(number)  # the tuple takes over one reference
        PyTuple_SetItem(made, i, number)
    return made


cdef int derive(ShapeDescriptor self, object dtype, str order) except -1:
    """Everything that follows from rank, shape, strides, axes, paddings, their offsets, blocks and offset in `self.layout`; checks the figures."""
    cdef Layout *layout = &self.layout
    cdef Py_ssize_t low, high, product, count = 1
    cdef Py_ssize_t axes[MAX_RANK]
    cdef bint padded = False, fits = True, in_order = True
    cdef int i
    layout.itemsize = dtype.itemsize
    layout.length = 1
    for i in range(layout.rank):
        axes[i] = layout.axes[i]
        in_order &= axes[i] == i
        padded |= layout.paddings[i] != 0
        product = block_product(layout, i)
        fits = fits and not add_overflows(layout.shape[i], layout.paddings[i], &layout.padded_shape[i])
        if product > 1:
            fits = fits and not add_overflows(layout.padded_shape[i], product - 1, &low) and not mul_overflows(low // product, product, &layout.padded_shape[i])
        fits = fits and not mul_overflows(layout.strides[i], layout.padded_shape[i], &low)
        # Neither the elements nor the cells may outnumber what a machine word counts in bytes; zero extents do not excuse the others.
        fits = fits and not mul_overflows(count, max(layout.padded_shape[i], 1), &count)
        if fits:
            layout.length *= layout.shape[i]
    fits = fits and not mul_overflows(count, layout.itemsize, &count) and hosting_reach(layout, &low, &high)
    fits = fits and not mul_overflows(low, layout.itemsize, &count) and not add_overflows(high, 1, &count) and not mul_overflows(count, layout.itemsize, &count)

    self.shape = as_tuple(layout.shape, layout.rank)
    self.strides = as_tuple(layout.strides, layout.rank)
    self.paddings = as_tuple(layout.paddings, layout.rank) if padded else <tuple> NO_PADDING[layout.rank]
    self.padding_offsets = as_tuple(layout.padding_offsets, layout.rank) if padded else self.paddings
    if not fits:
        raise LayoutError(
            f"the buffer outgrows the signed machine word in bytes: shape={self.shape}, paddings={self.paddings}, strides={self.strides}, "
            f"itemsize={layout.itemsize}",
            ShapeStatus.OVERFLOW,
        )
    if low < 0 and padded:
        raise LayoutError(
            f"the padding starts {-low} elements before the buffer: offset={layout.offset}, padding_offsets={self.padding_offsets}, strides={self.strides}",
            ShapeStatus.OUT_OF_BUFFER,
        )
    self.padded_shape = as_tuple(layout.padded_shape, layout.rank) if padded or layout.block_count else self.shape
    self.axes = <tuple> IN_ORDER[layout.rank] if in_order else as_tuple(axes, layout.rank)
    self.inner_blocks = tuple([(layout.block_axes[i], layout.block_sizes[i]) for i in range(layout.block_count)]) if layout.block_count else ()
    self.dtype = dtype
    # The letter follows from the axes, where these tell.
    self.order = order if layout.rank < 2 else "f" if is_reversed(layout) else "c"
    self.ews = element_wise_stride(layout)
    self._hash = -1
    return 0


cdef int fill(ShapeDescriptor self, object dtype, str order, tuple axes, tuple shape, tuple strides, object ews, Py_ssize_t offset,
              tuple paddings, tuple padding_offsets, tuple inner_blocks) except -1:
    cdef Layout *layout = &self.layout
    cdef int i
    if len(shape) > MAX_RANK:
        raise LayoutError(f"rank {len(shape)} is beyond {MAX_RANK}", ShapeStatus.INCORRECT_RANK)
    layout.rank = len(shape)
    layout.block_count = len(inner_blocks)
    layout.offset = offset
    try:
        for i in range(layout.block_count):
            layout.block_axes[i], layout.block_sizes[i] = inner_blocks[i]
        for i in range(layout.rank):
            layout.shape[i] = shape[i]
            layout.strides[i] = strides[i]
            layout.paddings[i] = paddings[i]
            layout.padding_offsets[i] = padding_offsets[i]
    except OverflowError:
        raise LayoutError(f"the buffer outgrows the signed machine word: shape={shape}, paddings={paddings}, strides={strides}", ShapeStatus.OVERFLOW) from None
    if axes is None:
        order_by_strides(layout)
    else:
        for i in range(layout.rank):
            layout.axes[i] = axes[i]
    derive(self, dtype, order)
    if ews is not None:
        self.ews = as_ssize(ews, "ews")
    return 0


cdef Py_ssize_t distance(const Layout *layout, int axis) noexcept nogil:
    return -layout.strides[axis] if layout.strides[axis] < 0 else layout.strides[axis]


cdef void order_by_strides(Layout *layout) noexcept nogil:
    cdef int axis, place
    for axis in range(layout.rank):
        place = axis
        while place > 0 and distance(layout, layout.axes[place - 1]) < distance(layout, axis):
            layout.axes[place] = layout.axes[place - 1]
            place -= 1
        layout.axes[place] = axis


cdef int lay_densely(Layout *layout, str letter, tuple sizes) except -1:
    """The dense layout of an order; all strides of an empty one are 0."""
    cdef Py_ssize_t run = 1
    cdef int i, axis
    layout.rank, layout.block_count, layout.offset = len(sizes), 0, 0
    for i in range(layout.rank - 1, -1, -1):
        axis = i if letter == "c" else layout.rank - 1 - i
        layout.shape[axis], layout.strides[axis], layout.axes[i] = sizes[axis], run, axis
        layout.paddings[axis], layout.padding_offsets[axis] = 0, 0
        if mul_overflows(run, layout.shape[axis], &run):
            run = PY_SSIZE_T_MAX  # which is found to be too much
    if run == 0:
        for axis in range(layout.rank):
            layout.strides[axis] = 0
    return 0


cdef ShapeDescriptor make_descriptor(object dtype, str order, tuple axes, tuple shape, tuple strides, object ews, Py_ssize_t offset,
                                     tuple paddings, tuple padding_offsets, tuple inner_blocks):
    cdef ShapeDescriptor made = ShapeDescriptor.__new__(ShapeDescriptor)
    fill(made, dtype, order, axes, shape, strides, ews, offset, paddings, padding_offsets, inner_blocks)
    return made


cdef tuple as_shape(object shape):
    cdef tuple sizes = as_sizes(shape, "shape")
    if sizes is None:
        raise LayoutError("shape is None, it must hold integers", ShapeStatus.INCORRECT_SHAPE)
    if len(sizes) > MAX_RANK:
        raise LayoutError(f"rank {len(sizes)} is beyond {MAX_RANK}", ShapeStatus.INCORRECT_RANK)
    return sizes


cdef tuple checked_shape(object shape):
    cdef tuple sizes = as_shape(shape)
    for axis, size in enumerate(sizes):
        if <Py_ssize_t> size < 0:
            raise LayoutError(f"axis {axis} has extent {size}, extents are 0 or more: shape={sizes}", ShapeStatus.INCORRECT_SHAPE)
    return sizes


cdef str checked_order(object order):
    if order not in ("c", "f"):
        raise LayoutError(f"order is {order!r}, it must be 'c' or 'f'", ShapeStatus.INCORRECT_SHAPE)
    return order


cdef tuple checked_axes(object axes, int rank):
    cdef tuple numbers = () if axes is None else as_sizes(axes, "axes")
    cdef unsigned long long seen = 0
    cdef Py_ssize_t axis
    for axis in numbers:
        if 0 <= axis < rank:
            seen |= <unsigned long long> 1 << axis
    if len(numbers) != rank or seen != (<unsigned long long> 1 << rank) - 1:
        raise LayoutError(f"axes={numbers} is no permutation of the axes 0 to {rank - 1}", ShapeStatus.INCORRECT_RANK)
    return numbers


cdef tuple checked_blocks(object inner_blocks, int rank):
    cdef list blocks = []
    run = 1
    try:
        pairs = () if inner_blocks is None else tuple(inner_blocks)
    except TypeError:
        raise LayoutError(f"inner_blocks is {inner_blocks!r}, it must hold pairs (axis, size)", ShapeStatus.INCORRECT_BLOCKS) from None
    for pair in pairs:
        numbers = as_sizes(pair, "inner_blocks")
        if len(numbers) != 2 or not 0 <= numbers[0] < rank or numbers[1] < 1:
            raise LayoutError(f"inner block {pair!r} is not (axis, size) with 0 <= axis < {rank} and size >= 1", ShapeStatus.INCORRECT_BLOCKS)
        run *= numbers[1]
        blocks.append(numbers)
    if len(blocks) > MAX_BLOCKS or run > PY_SSIZE_T_MAX:
        raise LayoutError(f"inner blocks {tuple(blocks)} are more than {MAX_BLOCKS}, or their product outgrows a machine word", ShapeStatus.INCORRECT_BLOCKS)
    return tuple(blocks)


cdef Py_ssize_t padding_start(tuple padding_offsets, tuple strides) except -1:
    """Offset of element (0, .., 0) in a plain hosting buffer."""
    cdef object start = sum([before * stride for before, stride in zip(padding_offsets, strides)])
    return as_ssize(start, "the offset of the first element")


def _rebuild(dtype, order, axes, shape, strides, ews, offset, paddings, padding_offsets, inner_blocks):
    """Unpickle."""
    return make_descriptor(dtypes.dtype(dtype), order, axes, shape, strides, ews, offset, paddings, padding_offsets, inner_blocks)


@cython.final
cdef class ShapeDescriptor:
    """ShapeDescriptor(dtype, order, shape, strides=None, ews=None, *, offset=0, axes=None, paddings=None, \
padding_offsets=None, inner_blocks=())\n--\n\nWhere each element of an array lives in its buffer.

    Immutable, hashable, and the single source of truth: every other library's description of a layout is a translation
    of it. All figures are in elements, not bytes.

    Parameters
    ----------
    dtype : dtype
        Anything `numpy.dtype` takes, or ``"bfloat16"``.
    order : {'c', 'f'}
        Which axis is the fastest: the last or the first.
    shape : tuple of int
        Logical extents; at most 32 axes.
    strides : tuple of int, optional
        Distance between neighbours along each axis. Default: those of a dense buffer (all 0 for an empty shape).
    ews : int, optional
        Element-wise stride: the distance between neighbours in the order of the letter, 0 if it varies. Default: computed.
    offset : int, optional
        Of element (0, .., 0) from the start of the buffer.
    axes : tuple of int, optional
        Axes in memory order, slowest first, where it is neither that of 'c' nor that of 'f'.
    paddings, padding_offsets : tuple of int, optional
        Padding of each axis, in total and before the first element; missing ones are 0.
    inner_blocks : tuple of (int, int), optional
        Axis and size of each inner block, outermost first. Strides are then those between outer blocks.

    Attributes
    ----------
    dtype : numpy.dtype or bfloat16
        Element type.
    order : str
        ``'f'`` where the memory order is that of 'f' and not that of 'c' too, else ``'c'``; as given below two axes.
    shape, strides : tuple of int
        Logical extents; distance between neighbours, between outer blocks on a blocked axis.
    paddings, padding_offsets : tuple of int
        Padding of each axis, in total and before the first element.
    padded_shape : tuple of int
        Extents of the hosting buffer: shape and paddings, rounded up to whole blocks.
    inner_blocks : tuple of (int, int)
        Axis and size of each inner block, outermost first.
    axes : tuple of int
        Axes in memory order, slowest first.
    ews : int
        Element-wise stride, 0 where it varies.

    Raises
    ------
    LayoutError
        For negative extents, more than 32 axes, a number of strides other than the rank, paddings that break
        ``0 <= offset <= padding``, and figures beyond the signed machine word. Its `status` names the rule.
        Strides that merely cannot belong to an allocation are told by `validate`.
    DTypeError
        For an unknown element type.

    Notes
    -----
    Follows libnd4j's ADR 0003; deviations are the clauses of our ADR 0001.

    Examples
    --------
    >>> from nd4jlike import ShapeDescriptor
    >>> d = ShapeDescriptor.paddedBufferDescriptor("float32", "c", (2, 2, 5, 5), (0, 0, 1, 1))
    >>> d.strides, d.allocLength() * d.itemsize
    ((72, 36, 6, 1), 576)
    """

    def __init__(self, dtype, order, shape, strides=None, ews=None, *, offset=0, axes=None, paddings=None, padding_offsets=None, inner_blocks=()):
        if self.dtype is not None:
            raise AttributeError("a ShapeDescriptor does not change; make a new one")
        element = dtypes.dtype(dtype)
        letter = checked_order(order)
        sizes = checked_shape(shape)
        if (strides is None and ews is None and axes is None and offset is ZERO and is_nothing(paddings) and is_nothing(padding_offsets)
                and is_nothing(inner_blocks)):
            lay_densely(&self.layout, letter, sizes)
            derive(self, element, letter)
            return
        rank = len(sizes)
        memory_axes = letter_axes(letter, rank) if axes is None else checked_axes(axes, rank)
        blocks = checked_blocks(inner_blocks, rank)
        total, before = checked_paddings(sizes, paddings, padding_offsets)
        start = as_ssize(offset, "offset")
        if start < 0:
            raise LayoutError(f"offset is {start}, the first element lies in the buffer", ShapeStatus.OUT_OF_BUFFER)

        steps = as_sizes(strides, "strides")
        if steps is None:
            steps = (0,) * rank if 0 in sizes and not blocks and not any(total) else tag_strides(memory_axes, padded_extents(sizes, total, blocks), blocks)
        if len(steps) != rank:
            raise LayoutError(f"{len(steps)} strides for rank {rank}: shape={sizes}, strides={steps}", ShapeStatus.INCORRECT_RANK)

        fill(self, element, letter, memory_axes, sizes, steps, ews, start, total, before, blocks)

    @staticmethod
    def paddedBufferDescriptor(dtype, order, shape, paddings, padding_offsets=None):
        """Describe an array that is hosted in the buffer of a bigger one.

        Parameters
        ----------
        dtype : dtype
            Element type.
        order : {'c', 'f'}
            Memory order of the hosting buffer.
        shape : tuple of int
            Logical extents.
        paddings : tuple of int
            Total padding of each axis, in elements; axes that are not given have none.
        padding_offsets : tuple of int, optional
            The part of it before the first element.

        Returns
        -------
        ShapeDescriptor
            Its strides are those of a dense buffer of `shape` plus `paddings`.

        Raises
        ------
        LayoutError
            Unless ``0 <= padding_offset <= padding`` on every axis, with no more offsets than paddings than axes.

        Notes
        -----
        libnd4j's ADR 0003; the outermost axis counts too (our ADR 0001).

        Examples
        --------
        >>> from nd4jlike import ShapeDescriptor
        >>> d = ShapeDescriptor.paddedBufferDescriptor("float32", "c", (3, 4), (2, 4), (1, 2))
        >>> d.padded_shape, d.strides, d.offset
        ((5, 8), (8, 1), 10)
        """
        cdef ShapeDescriptor made = ShapeDescriptor.__new__(ShapeDescriptor)
        sizes = checked_shape(shape)
        element, letter = dtypes.dtype(dtype), checked_order(order)
        if is_nothing(paddings) and is_nothing(padding_offsets):
            lay_densely(&made.layout, letter, sizes)
            derive(made, element, letter)
            return made
        total, before = checked_paddings(sizes, paddings, padding_offsets)
        axes = letter_axes(letter, len(sizes))
        strides = (0,) * len(sizes) if 0 in sizes and not any(total) else tag_strides(axes, padded_extents(sizes, total, ()), ())
        return make_descriptor(element, letter, axes, sizes, strides, None, padding_start(before, strides), total, before, ())

    padded_buffer_descriptor = paddedBufferDescriptor

    @staticmethod
    def from_tag(shape, tag, dtype="float32", paddings=None, padding_offsets=None):
        """Describe a dense, padded or blocked buffer by its layout tag.

        Parameters
        ----------
        shape : tuple of int
            Logical extents, in oneDNN's logical order whatever the memory order: n, c, [d, [h,]] w or [g,] o, i, [d, [h,]] w.
        tag : str
            For example ``"nhwc"``, ``"nChw8c"`` or ``"aBcd8b"``; letter ``a`` is axis 0.
        dtype : dtype, optional
            Element type.
        paddings, padding_offsets : tuple of int, optional
            As in `paddedBufferDescriptor`.

        Returns
        -------
        ShapeDescriptor
            Blocked axes are rounded up to whole blocks.

        Raises
        ------
        LayoutError
            For a tag that breaks the grammar (naming the position) or whose rank differs from the shape's.

        Notes
        -----
        The grammar and the strides are those of oneDNN's memory format tags.

        Examples
        --------
        >>> from nd4jlike import ShapeDescriptor
        >>> ShapeDescriptor.from_tag((1, 17, 5, 4), "nhwc").strides
        (340, 1, 68, 17)
        >>> ShapeDescriptor.from_tag((1, 17, 5, 4), "nChw8c").padded_shape
        (1, 24, 5, 4)
        """
        axes, blocks = tags.parse(tag)
        sizes = checked_shape(shape)
        if len(axes) != len(sizes):
            raise LayoutError(
                f"tag {tag!r}, position {min(len(axes), len(sizes))}: the tag has {len(axes)} axes, the shape {sizes} has {len(sizes)}",
                ShapeStatus.INCORRECT_TAG,
            )
        checked_blocks(blocks, len(sizes))
        total, before = checked_paddings(sizes, paddings, padding_offsets)
        products = whole_blocks(len(sizes), blocks)
        for axis, (product, start) in enumerate(zip(products, before)):
            if start % product:
                raise LayoutError(
                    f"axis {axis} has padding offset {start}, on a blocked axis it is whole blocks of {product}: tag={tag!r}, padding_offsets={before}",
                    ShapeStatus.INCORRECT_PADDING,
                )
        strides = tag_strides(axes, padded_extents(sizes, total, blocks), blocks)
        first = padding_start(tuple([start // product for start, product in zip(before, products)]), strides)
        return make_descriptor(dtypes.dtype(dtype), "c", axes, sizes, strides, None, first, total, before, blocks)

    @staticmethod
    def from_shape_info(sequence, dtype="float32"):
        """Read libnd4j's shapeInfo.

        Parameters
        ----------
        sequence : sequence of int
            ``[rank, shape.., strides.., extra, ews, order]``; order is 99 for c and 102 for f.
        dtype : dtype, optional
            Used where `extra` has no data type bits, as libnd4j wrote it before arrays had types.

        Returns
        -------
        ShapeDescriptor
            shapeInfo has no paddings: where bit 25 says that there are some, those of all axes but the slowest are told by the
            strides. Strides that fit neither order are read as those of permuted axes.

        Raises
        ------
        LayoutError
            For a sequence of the wrong length, an unknown order, or bit 25 with strides that are no padded buffer's.
        UnsupportedLayoutError
            For sparse, compressed, ragged and complex arrays.

        Examples
        --------
        >>> from nd4jlike import ShapeDescriptor
        >>> ShapeDescriptor.from_shape_info([2, 3, 4, 4, 1, 8192, 1, 99])
        ShapeDescriptor('float32', 'c', (3, 4))
        """
        cdef tuple numbers = as_sizes(sequence, "shapeInfo") or ()
        if not numbers or not 0 <= numbers[0] <= MAX_RANK or len(numbers) != 2 * numbers[0] + 4:
            raise LayoutError(
                f"shapeInfo is [rank, shape.., strides.., extra, ews, order], 0 <= rank <= {MAX_RANK}; these are {len(numbers)} numbers: {numbers[:3]}..",
                ShapeStatus.INCORRECT_RANK,
            )
        rank = numbers[0]
        sizes, steps = checked_shape(numbers[1:1 + rank]), numbers[1 + rank:1 + 2 * rank]
        extra, ews, code = numbers[-3], numbers[-2], numbers[-1]
        if code not in (99, 102):
            raise LayoutError(f"shapeInfo's order is {code}, it must be 99 (c) or 102 (f): {numbers}", ShapeStatus.INCORRECT_SHAPE)
        if extra & FLAGS_FOREIGN:
            raise UnsupportedLayoutError(f"shapeInfo's flags {extra:#x} mean a sparse, compressed, ragged or complex array; strides describe dense ones only")
        row = dtypes.by_libnd4j_flags(extra)
        letter = "c" if code == 99 else "f"
        axes, none = letter_axes(letter, rank), (0,) * rank
        element = dtypes.dtype(dtype) if row is None else row.dtype
        cdef ShapeDescriptor plain = make_descriptor(element, letter, axes, sizes, steps, ews, 0, none, none, ())
        # Of axes at one distance, those of one element are the inner ones.
        sorted_axes = tuple(sorted(range(rank), key=lambda axis: (-abs(steps[axis]), sizes[axis] == 1, axis)))
        permuted = sorted_axes not in (letter_axes("c", rank), letter_axes("f", rank))
        if extra & FLAG_PADDED:
            total = recovered_paddings(axes, sizes, steps)
            if total is None and permuted:
                axes, total = sorted_axes, recovered_paddings(sorted_axes, sizes, steps)
            if total is not None:
                # Where only the slowest axis was padded, what is read is a plain layout, with that one's `ews`.
                return make_descriptor(element, letter, axes, sizes, steps, ews if ews or any(total) else None, 0, total, none, ())
            if 0 not in sizes:  # of arrays without elements strides may be anything
                raise LayoutError(
                    f"shapeInfo has the flag of a padded buffer, and its strides are no whole multiples of each other that reach over the extents: {numbers}",
                    ShapeStatus.INCORRECT_STRIDES,
                )
        if not plain.validate() & ShapeStatus.INCORRECT_STRIDES or not permuted:
            return plain  # strides of the other order contradict the letter; they are no permutation
        made = make_descriptor(element, letter, sorted_axes, sizes, steps, ews, 0, none, none, ())
        return plain if made.validate() & ShapeStatus.INCORRECT_STRIDES else made

    @property
    def itemsize(self):
        """Bytes of one element."""
        return self.layout.itemsize

    @property
    def offset(self):
        """Of element (0, .., 0) from the start of the buffer, in elements."""
        return self.layout.offset

    @property
    def rank(self):
        """Number of axes."""
        return self.layout.rank

    @property
    def length(self):
        """Number of logical elements: the product of `shape`."""
        return self.layout.length

    @property
    def has_padded_buffer(self):
        """Whether any axis is padded: libnd4j's ARRAY_HAS_PADDED_BUFFER."""
        return any(self.paddings)

    @property
    def is_empty(self):
        """Whether an extent is 0."""
        return self.layout.length == 0

    @property
    def is_scalar(self):
        """Whether there are no axes."""
        return self.layout.rank == 0

    @property
    def is_contiguous(self):
        """Whether the logical elements are one gapless run of memory, each in a cell of its own, along the memory order; blocks without a tail."""
        if self.layout.length == 0:
            return True
        if self.layout.block_count:
            return self.padded_shape == self.shape and self.tag is not None
        return even_stride(&self.layout, self.layout.axes) == 1 or self.layout.length == 1

    @property
    def tag(self):
        """Canonical layout tag (``"aBcd8b"``) where the strides are those of a dense or padded buffer, else None."""
        if self.layout.length == 0 and not any(self.strides):
            return tags.canonical(self.axes, self.inner_blocks)
        if self.strides == tag_strides(self.axes, self.padded_shape, self.inner_blocks):
            return tags.canonical(self.axes, self.inner_blocks)
        return None

    def validate(self):
        """Tell which rules an allocation with this layout would break. Never raises.

        Returns
        -------
        ShapeStatus
            0 when none is broken; `ShapeStatus.explain` says the rules and the values.

        Notes
        -----
        libnd4j's scan from the fast to the slow axis (ADR 0001): each stride must reach over its inner neighbour, and `ews`
        is the fastest stride if all elements are equally spaced, else 0. Axes of one element never break a rule.

        Examples
        --------
        >>> from nd4jlike import ShapeDescriptor
        >>> ShapeDescriptor("float32", "c", (2, 3), (3, 1)).validate() == 0
        True
        >>> ShapeDescriptor("float32", "c", (2, 3), (2, 1)).validate().name
        'INCORRECT_STRIDES'
        """
        cdef Layout *layout = &self.layout
        cdef Py_ssize_t low, high, with_units, without_units
        cdef str broken
        if layout.length == 0:
            return ShapeStatus.OK
        details = {}
        broken, with_units = scan(layout, False)
        without_units = element_wise_stride(layout)
        if self.axes != tuple(range(layout.rank)) and not is_reversed(layout):
            with_units = without_units
        if broken is not None:
            broken, with_units = scan(layout, True)
        if broken is not None:
            details[ShapeStatus.INCORRECT_STRIDES] = broken
        elif self.ews not in (with_units, without_units):
            expected = f"{with_units}" if with_units == without_units else f"{without_units} or {with_units}"
            details[ShapeStatus.INCORRECT_EWS] = f"ews is {self.ews}, strides {self.strides} of shape {self.shape} give {expected}"
        for bit, wrong in ((ShapeStatus.ZERO_STRIDE, lambda stride: stride == 0), (ShapeStatus.NEGATIVE_STRIDE, lambda stride: stride < 0)):
            axes = [axis for axis in range(self.layout.rank) if self.padded_shape[axis] > 1 and wrong(self.strides[axis])]
            if axes:
                details[bit] = f"axes {axes} of shape {self.shape} have strides {[self.strides[axis] for axis in axes]}"
        hosting_reach(layout, &low, &high)
        if low < 0:
            details[ShapeStatus.OUT_OF_BUFFER] = f"the first cell has offset {low}: offset={self.offset}, shape={self.shape}, strides={self.strides}"
        return ShapeStatus.with_details(details)

    cpdef Py_ssize_t allocLength(self) except -1:
        """Count the elements that the buffer must hold, from its start: offset, padding and block rounding included.

        Returns
        -------
        int
            0 for an empty shape.

        Raises
        ------
        LayoutError
            For a view whose elements lie before the start of the buffer.

        Examples
        --------
        >>> from nd4jlike import ShapeDescriptor
        >>> ShapeDescriptor.from_tag((1, 17, 5, 4), "nChw8c").allocLength()
        480
        """
        cdef Py_ssize_t low, high
        if self.layout.length == 0:
            return 0
        hosting_reach(&self.layout, &low, &high)
        if low < 0:
            raise LayoutError(
                f"no buffer holds offset {low}: offset={self.offset}, shape={self.shape}, strides={self.strides}", ShapeStatus.OUT_OF_BUFFER
            )
        return high + 1

    def span_length(self):
        """Offset of the last reachable element, plus one; what `allocLength` has beyond it is padding.

        Returns
        -------
        int
            In elements from the start of the buffer; 0 for an empty shape.

        Examples
        --------
        >>> from nd4jlike import ShapeDescriptor
        >>> d = ShapeDescriptor.paddedBufferDescriptor("float32", "c", (3, 4), (0, 2))
        >>> d.span_length(), d.allocLength()
        (16, 18)
        """
        cdef Py_ssize_t span, best, extent, product
        cdef int axis
        if self.layout.length == 0:
            return 0
        span = self.layout.offset
        # Offsets are a sum over the axes and grow within a block: an axis is farthest at its last index, or at the end of its first or last whole block.
        for axis in range(self.layout.rank):
            extent, product = self.layout.shape[axis], block_product(&self.layout, axis)
            best = max(axis_offset(&self.layout, axis, extent - 1), axis_offset(&self.layout, axis, min(extent, product) - 1))
            if extent > product:
                best = max(best, axis_offset(&self.layout, axis, extent - extent % product - 1))
            span += best
        return span + 1

    def offset_of(self, index):
        """Find the physical offset of a logical index.

        Parameters
        ----------
        index : tuple of int
            One index for each axis, not negative.

        Returns
        -------
        int
            In elements from the start of the buffer.

        Raises
        ------
        OutOfRangeError
            Unless ``0 <= index < extent`` on every axis.

        Examples
        --------
        >>> from nd4jlike import ShapeDescriptor
        >>> ShapeDescriptor.from_tag((1, 17, 5, 4), "nChw8c").offset_of((0, 9, 2, 1))
        233
        """
        cdef Py_ssize_t numbers[MAX_RANK]
        cdef tuple position = as_sizes(index, "index")
        cdef int axis
        if position is None or len(position) != self.layout.rank or any([not 0 <= i < n for i, n in zip(position, self.shape)]):
            raise OutOfRangeError(f"index {index} is outside the shape {self.shape}: one index 0 <= i < extent for each axis")
        for axis in range(self.layout.rank):
            numbers[axis] = position[axis]
        return offset_of_index(&self.layout, numbers)

    def to_shape_info(self):
        """Write libnd4j's shapeInfo.

        Returns
        -------
        list of int
            ``[rank, shape.., strides.., extra, ews, order]``. It has no room for offset, paddings and their offsets. Bit 25 of `extra`
            says that there is padding, where strides tell how much: not for parts of padded buffers.

        Raises
        ------
        UnsupportedLayoutError
            For blocked layouts.

        Examples
        --------
        >>> from nd4jlike import ShapeDescriptor
        >>> ShapeDescriptor("float32", "c", (3, 4)).to_shape_info()
        [2, 3, 4, 4, 1, 8192, 1, 99]
        """
        if self.inner_blocks:
            raise UnsupportedLayoutError(f"libnd4j's shapeInfo has strides only, the layout {self.tag or self.inner_blocks} has inner blocks")
        extra, ews = dtypes.codes(self.dtype).libnd4j_flags, self.ews
        if self.is_empty:
            extra |= FLAG_EMPTY
        if self.has_padded_buffer:
            if self.is_empty or self.tag is not None:
                extra |= FLAG_PADDED
            else:  # a part; libnd4j's have no such flag either
                none = (0,) * self.layout.rank
                ews = make_descriptor(self.dtype, self.order, self.axes, self.shape, self.strides, None, self.layout.offset, none, none, ()).ews
        return [self.layout.rank, *self.shape, *self.strides, extra, ews, ORDER_CODES[self.order]]

    def permute(self, axes):
        """Describe the same buffer with its axes in another order.

        Parameters
        ----------
        axes : tuple of int
            Axis i of the result is axis ``axes[i]`` of this one.

        Returns
        -------
        ShapeDescriptor
            The same elements at the same offsets; paddings and blocks go along.

        Raises
        ------
        LayoutError
            If `axes` is no permutation.

        Examples
        --------
        >>> from nd4jlike import ShapeDescriptor
        >>> d = ShapeDescriptor("float32", "c", (1, 5, 4, 17)).permute((0, 3, 1, 2))
        >>> d == ShapeDescriptor.from_tag((1, 17, 5, 4), "nhwc")
        True
        """
        cdef tuple numbers = checked_axes(axes, self.layout.rank)
        cdef const Layout *layout = &self.layout
        cdef ShapeDescriptor made = ShapeDescriptor.__new__(ShapeDescriptor)
        cdef Layout *turned = &made.layout
        cdef int new_of[MAX_RANK]
        cdef int i, old
        turned.rank, turned.block_count, turned.offset = layout.rank, layout.block_count, layout.offset
        for i in range(layout.rank):
            old = numbers[i]
            new_of[old] = i
            turned.shape[i], turned.strides[i] = layout.shape[old], layout.strides[old]
            turned.paddings[i], turned.padding_offsets[i] = layout.paddings[old], layout.padding_offsets[old]
        for i in range(layout.rank):
            turned.axes[i] = new_of[layout.axes[i]]
        for i in range(layout.block_count):
            turned.block_axes[i], turned.block_sizes[i] = new_of[layout.block_axes[i]], layout.block_sizes[i]
        derive(made, self.dtype, self.order)
        return made

    def reshape(self, shape):
        """Describe the same elements, in c order of their indices, under another shape.

        Parameters
        ----------
        shape : int or tuple of int
            New extents, of the same number of elements; one may be -1.

        Returns
        -------
        ShapeDescriptor
            Axes that stay keep their padding and blocks; others are joined and split where their strides run on (ADR 0001, D24).

        Raises
        ------
        LayoutError
            For another number of elements.
        UnsupportedLayoutError
            Where no strides and blocks describe it.

        Examples
        --------
        >>> from nd4jlike import ShapeDescriptor
        >>> d = ShapeDescriptor.from_tag((2, 17, 5, 4), "nChw8c").reshape((2, 17, -1))
        >>> d.shape, d.strides, d.inner_blocks
        ((2, 17, 20), (480, 160, 8), ((1, 8),))
        """
        cdef tuple extents = extents_for(self, shape)
        cdef ShapeDescriptor made = reshaped(self, extents)
        if made is None:
            raise UnsupportedLayoutError(f"no view: neither strides nor blocks describe shape {extents} of {self!r}")
        return made

    def subarray(self, key):
        """Describe the part of the array that basic indexing selects, in the same buffer.

        Parameters
        ----------
        key : int, slice, Ellipsis, None or a tuple of them
            As NumPy's basic indexing.

        Returns
        -------
        ShapeDescriptor
            Axes that are taken whole keep their padding; the surroundings of a part are elements of others, not padding.
            Blocked axes keep their blocks where whole blocks of them are taken; an axis that strides alone can describe
            becomes plain where it must (ADR 0010).

        Raises
        ------
        OutOfRangeError
            For an index outside the shape, or more indices than axes.
        UnsupportedLayoutError
            For a part of blocked axes that neither strides nor the blocks that remain can describe.

        Examples
        --------
        >>> from nd4jlike import ShapeDescriptor
        >>> ShapeDescriptor("float32", "c", (10, 5)).subarray((slice(None), 2))
        ShapeDescriptor('float32', 'c', (10,), (5,), offset=2)
        """
        return select(self, key)

    cpdef ShapeDescriptor exploded(self):
        """Describe the same cells without inner blocks: a plain layout of more axes.

        Returns
        -------
        ShapeDescriptor
            The axes count outer blocks, in the order of this descriptor; the inner blocks follow, outermost first. Cells of
            the last block beyond the extent are elements of it; whole blocks of padding stay padding. A plain descriptor
            comes back as it is.

        Raises
        ------
        LayoutError
            For more than 32 axes.

        Examples
        --------
        >>> from nd4jlike import ShapeDescriptor
        >>> ShapeDescriptor.from_tag((1, 17, 5, 4), "nChw8c").exploded()
        ShapeDescriptor('float32', 'c', (1, 3, 5, 4, 8))
        """
        cdef const Layout *layout = &self.layout
        cdef ShapeDescriptor made
        cdef Layout *plain
        cdef Py_ssize_t product, run = inner_run(layout)
        cdef int i
        if layout.block_count == 0:
            return self
        with cython.critical_section(self):
            made = self._plain
        if made is not None:
            return made
        made = ShapeDescriptor.__new__(ShapeDescriptor)
        plain = &made.layout
        plain.rank = layout.rank + layout.block_count
        plain.block_count, plain.offset = 0, layout.offset
        if plain.rank > MAX_RANK:
            raise LayoutError(f"{layout.rank} axes and {layout.block_count} inner blocks are more than {MAX_RANK} axes", ShapeStatus.INCORRECT_RANK)
        for i in range(layout.rank):
            product = block_product(layout, i)
            plain.axes[i] = layout.axes[i]
            plain.strides[i] = layout.strides[i]
            plain.shape[i] = (layout.shape[i] + product - 1) // product
            plain.paddings[i] = layout.padded_shape[i] // product - plain.shape[i]
            plain.padding_offsets[i] = layout.padding_offsets[i] // product
        for i in range(layout.block_count):
            run //= layout.block_sizes[i]
            plain.axes[layout.rank + i] = layout.rank + i
            plain.strides[layout.rank + i], plain.shape[layout.rank + i] = run, layout.block_sizes[i]
            plain.paddings[layout.rank + i], plain.padding_offsets[layout.rank + i] = 0, 0
        derive(made, self.dtype, "c")
        with cython.critical_section(self):
            self._plain = made
        return made

    def hosting(self):
        """Describe the padded buffer itself: its cells, padding included, as elements.

        Returns
        -------
        ShapeDescriptor
            Of shape `padded_shape`, without padding.

        Examples
        --------
        >>> from nd4jlike import ShapeDescriptor
        >>> d = ShapeDescriptor.paddedBufferDescriptor("float32", "c", (3, 4), (2, 4), (1, 2))
        >>> d.hosting()
        ShapeDescriptor('float32', 'c', (5, 8))
        """
        cdef Py_ssize_t low
        if self.layout.length == 0:
            return self
        # The hosting cells of a view with reversed axes start at its own first element.
        low = self.layout.offset
        for axis, before in enumerate(self.padding_offsets):
            low -= before // block_product(&self.layout, axis) * self.layout.strides[axis]
        none = (0,) * self.layout.rank
        return make_descriptor(self.dtype, self.order, self.axes, self.padded_shape, self.strides, None, low, none, none, self.inner_blocks)

    def astype(self, dtype):
        """Describe the same layout for another element type.

        Parameters
        ----------
        dtype : dtype
            The new element type; all figures in elements stay.

        Returns
        -------
        ShapeDescriptor

        Raises
        ------
        DTypeError
            For an unknown element type.
        LayoutError
            Where the buffer outgrows the machine word in bytes.

        Examples
        --------
        >>> from nd4jlike import ShapeDescriptor
        >>> ShapeDescriptor("float32", "c", (3, 4)).astype("int8")
        ShapeDescriptor('int8', 'c', (3, 4))
        """
        cdef ShapeDescriptor made
        element = dtypes.dtype(dtype)
        if self.dtype is element:
            return self
        with cython.critical_section(self):
            made = self._typed
        if made is not None and made.dtype is element:
            return made
        made = ShapeDescriptor.__new__(ShapeDescriptor)
        memcpy(&made.layout, &self.layout, sizeof(Layout))
        derive(made, element, self.order)
        made.ews = self.ews
        with cython.critical_section(self):
            self._typed = made
        return made

    def indices_at(self, offset):
        """Find the logical indices of the elements at a physical offset: the inverse of `offset_of`.

        Parameters
        ----------
        offset : int
            In elements from the start of the buffer.

        Returns
        -------
        iterator of tuple of int
            Each index once: none where no element lies, one in a valid descriptor, more where strides let elements share the cell.
            They are searched as they are asked for.

        Raises
        ------
        LayoutError
            If `offset` is no integer.

        Examples
        --------
        >>> from nd4jlike import ShapeDescriptor
        >>> d = ShapeDescriptor.from_tag((1, 17, 5, 4), "nChw8c")
        >>> list(d.indices_at(233)), list(d.indices_at(479))
        ([(0, 9, 2, 1)], [])
        >>> list(ShapeDescriptor("int8", "c", (3,), (0,)).indices_at(0))
        [(0,), (1,), (2,)]
        """
        return _indices_at(self, as_ssize(offset, "offset"))

    def show(self, *, padding=None, width=80, rows=32):
        """Draw which element lies in which cell of the buffer, as text and as SVG.

        Parameters
        ----------
        padding : PaddingReport, optional
            What `NdArray.check_padding` found: its dirty cells are marked.
        width : int, optional
            Columns of the text, as far as its labels permit.
        rows : int, optional
            Rows to draw; those left out are counted.

        Returns
        -------
        nd4jlike.show.Drawing
            A `str` that shows itself; its method `svg` draws the picture, `save` writes it to a file.

        Raises
        ------
        LayoutError
            For less than 1 row or column.

        Notes
        -----
        ADR 0011.

        Examples
        --------
        >>> from nd4jlike import ShapeDescriptor
        >>> ShapeDescriptor("int8", "c", (2, 3)).show()
        ShapeDescriptor('int8', 'c', (2, 3))
        layout  ab
        plain   (2,3):(3,1)
        buffer  6 cells, 6 bytes: 6 elements
        first   element (0, 0) at offset 0, byte 0
        <BLANKLINE>
        axis  extent  before  after  tail  stride  bytes
        a          2       0      0     0       3      3
        b          3       0      0     0       1      1
        <BLANKLINE>
        0: >0,0  0,1  0,2
        3:  1,0  1,1  1,2
        """
        from nd4jlike.show import show

        return show(self, padding=padding, width=width, rows=rows)

    def _repr_svg_(self):
        return self.show().svg()

    def _repr_html_(self):
        return self.show().html()

    alloc_length = allocLength

    cdef tuple key(self):
        return (
            self.layout.rank, self.shape, self.strides, str(self.dtype), self.order, self.axes, self.ews, self.layout.offset, self.paddings,
            self.padding_offsets, self.inner_blocks,
        )

    def __eq__(self, other):
        if not isinstance(other, ShapeDescriptor):
            return NotImplemented
        return self is other or same_fields(self, other)

    def __lt__(self, other):
        # libnd4j sorts its cache by rank first.
        if not isinstance(other, ShapeDescriptor):
            return NotImplemented
        return self.key() < (<ShapeDescriptor> other).key()

    def __hash__(self):
        if self._hash == -1:
            # NumPy makes the name of an element type anew each time, which takes longer than all else.
            self._hash = hash((
                self.shape, self.strides, self.dtype, self.order, self.axes, self.ews, self.layout.offset, self.paddings, self.padding_offsets,
                self.inner_blocks,
            ))
        return self._hash

    def __reduce__(self):
        return _rebuild, (
            str(self.dtype), self.order, self.axes, self.shape, self.strides, self.ews, self.layout.offset, self.paddings, self.padding_offsets,
            self.inner_blocks,
        )

    def __repr__(self):
        head = f"{str(self.dtype)!r}, {self.order!r}, {self.shape}"
        padding = f"{self.paddings}, {self.padding_offsets}" if any(self.padding_offsets) else f"{self.paddings}"
        natural = ShapeDescriptor(self.dtype, self.order, self.shape).axes == self.axes
        # The shortest spelling that says all of it.
        if natural and not self.inner_blocks:
            if self == ShapeDescriptor.paddedBufferDescriptor(self.dtype, self.order, self.shape, self.paddings, self.padding_offsets):
                if self.has_padded_buffer:
                    return f"ShapeDescriptor.paddedBufferDescriptor({head}, {padding})"
                return f"ShapeDescriptor({head})"
        tag = self.tag
        if tag is not None and self == ShapeDescriptor.from_tag(self.shape, tag, self.dtype, self.paddings, self.padding_offsets):
            tail = f", {padding}" if self.has_padded_buffer else ""
            return f"ShapeDescriptor.from_tag({self.shape}, {tag!r}, {str(self.dtype)!r}{tail})"
        parts = [head, f"{self.strides}"]
        if self.ews != element_wise_stride(&self.layout):
            parts.append(f"{self.ews}")
        if self.layout.offset:
            parts.append(f"offset={self.layout.offset}")
        if not natural:
            parts.append(f"axes={self.axes}")
        if self.has_padded_buffer:
            parts.append(f"paddings={self.paddings}")
        if any(self.padding_offsets):
            parts.append(f"padding_offsets={self.padding_offsets}")
        if self.inner_blocks:
            parts.append(f"inner_blocks={self.inner_blocks}")
        return f"ShapeDescriptor({', '.join(parts)})"


cdef bint same_fields(ShapeDescriptor a, ShapeDescriptor b):
    cdef size_t run = <size_t> a.layout.rank * sizeof(Py_ssize_t)
    return (
        a.layout.rank == b.layout.rank
        and a.layout.offset == b.layout.offset
        and a.ews == b.ews
        and memcmp(a.layout.shape, b.layout.shape, run) == 0
        and memcmp(a.layout.strides, b.layout.strides, run) == 0
        and memcmp(a.layout.paddings, b.layout.paddings, run) == 0
        and memcmp(a.layout.padding_offsets, b.layout.padding_offsets, run) == 0
        and memcmp(a.layout.axes, b.layout.axes, <size_t> a.layout.rank * sizeof(int)) == 0
        and a.order == b.order
        and (a.dtype is b.dtype or a.dtype == b.dtype)
        and a.inner_blocks == b.inner_blocks
    )


cdef tuple scan(const Layout *layout, bint skip_units):
    """libnd4j's rule over outer blocks: the first broken neighbour in words (or None), and the element-wise stride that it expects."""
    cdef Py_ssize_t reach = 0, first = 0, extent, inner_extent = 0
    cdef bint started = False, even = True
    cdef int i, axis, inner = 0
    for i in range(layout.rank - 1, -1, -1):
        axis = layout.axes[i]
        extent = layout.padded_shape[axis] // block_product(layout, axis)
        if skip_units and extent == 1:
            continue
        if not started:
            first = layout.strides[axis]
            if layout.block_count and first < inner_run(layout):
                return f"axis {axis} has stride {first}, its inner blocks are a run of {inner_run(layout)}", 0
        elif layout.strides[axis] < reach:
            return f"axis {axis} has stride {layout.strides[axis]}, axis {inner} spans {layout.strides[inner]} * {inner_extent} = {reach}", 0
        elif layout.strides[axis] != reach:
            even = False
        started = True
        inner = axis
        inner_extent = extent
        reach = layout.strides[axis] * extent
    if layout.block_count:
        return None, 0
    if is_padded_layout(layout) or not started:
        return None, element_wise_stride(layout)
    return None, first if even else 0


cdef tuple recovered_paddings(tuple axes, tuple sizes, tuple steps):
    """Paddings that the strides of a padded buffer tell: of every axis but the slowest; None where the strides are no such buffer's."""
    cdef list total = [0] * len(sizes)
    for outer, axis in zip(axes, axes[1:]):
        extent, rest = divmod(steps[outer], steps[axis]) if steps[axis] > 0 else (0, 1)
        if rest or extent < sizes[axis]:
            return None
        total[axis] = extent - sizes[axis]
    return tuple(total)


include "views.pxi"


def _indices_at(ShapeDescriptor self, object offset):
    """Yield the logical index of each element at `offset`."""
    cdef list terms = []  # (distance, extent, axis, elements of the axis in one step, whether the stride is negative), farthest first
    cdef list steps = [block_product(&self.layout, axis) for axis in range(self.layout.rank)]
    cdef list index = [0] * self.layout.rank
    if self.layout.length == 0:
        return
    rest = offset - self.layout.offset
    for axis, (extent, stride, step) in enumerate(zip(self.shape, self.strides, steps)):
        terms.append((abs(stride), -(-extent // step), axis, step, stride < 0))
        if stride < 0:
            rest -= (terms[-1][1] - 1) * stride
    run = inner_run(&self.layout)
    for axis, size in self.inner_blocks:
        run //= size
        steps[axis] //= size
        terms.append((run, size, axis, steps[axis], False))
    terms = sorted([term for term in terms if term[1] > 1], key=lambda term: (-term[0], term[2]))
    # What the terms from each one on can reach, and what divides all that they reach.
    reaches = [0, *itertools.accumulate(distance * (extent - 1) for distance, extent, *_ in reversed(terms))][::-1]
    divisors = [0, *itertools.accumulate((term[0] for term in reversed(terms)), math.gcd)][::-1]
    for digits in _solutions(terms, reaches, divisors, rest, 0):
        for axis in range(self.layout.rank):
            index[axis] = 0
        for (_, extent, axis, step, backwards), digit in zip(terms, digits):
            index[axis] += (extent - 1 - digit if backwards else digit) * step
        if all([i < n for i, n in zip(index, self.shape)]):
            yield tuple(index)


def _solutions(list terms, list reaches, list divisors, object rest, int level):
    """Yield the digits, one for each term from `level` on, whose distances add up to `rest`."""
    if level == len(terms):
        if rest == 0:
            yield ()
        return
    if not 0 <= rest <= reaches[level] or (rest % divisors[level] if divisors[level] else rest):
        return
    distance, extent = terms[level][:2]
    if distance:
        digits = range(max(0, -((reaches[level + 1] - rest) // distance)), min(extent - 1, rest // distance) + 1)
    else:
        digits = range(extent)
    for digit in digits:
        for more in _solutions(terms, reaches, divisors, rest - digit * distance, level + 1):
            yield (digit, *more)
