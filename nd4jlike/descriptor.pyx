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

cdef extern from "Python.h":
    const Py_ssize_t PY_SSIZE_T_MAX
    int PySlice_Unpack(object key, Py_ssize_t *start, Py_ssize_t *stop, Py_ssize_t *step) except -1
    Py_ssize_t PySlice_AdjustIndices(Py_ssize_t length, Py_ssize_t *start, Py_ssize_t *stop, Py_ssize_t step) noexcept

cdef extern from *:
    bint mul_overflows "__builtin_mul_overflow"(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *result) noexcept nogil
    bint add_overflows "__builtin_add_overflow"(Py_ssize_t a, Py_ssize_t b, Py_ssize_t *result) noexcept nogil

cdef object ZERO = 0

# What is the same in most descriptors, by rank.
cdef list NO_PADDING = [(0,) * rank for rank in range(MAX_RANK + 1)]
cdef list IN_ORDER = [tuple(range(rank)) for rank in range(MAX_RANK + 1)]


include "layout.pxi"
include "layout_arguments.pxi"


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


cdef tuple padded_extents(tuple shape, tuple paddings, tuple blocks):
    """Extents of the hosting buffer in elements, whole blocks."""
    if not blocks:
        return tuple([n + p for n, p in zip(shape, paddings)])
    return tuple([-(-(n + p) // b) * b for n, p, b in zip(shape, paddings, whole_blocks(len(shape), blocks))])


cdef Py_ssize_t padding_start(tuple padding_offsets, tuple strides) except -1:
    """Offset of element (0, .., 0) in a plain hosting buffer."""
    cdef object start = sum([before * stride for before, stride in zip(padding_offsets, strides)])
    return as_ssize(start, "the offset of the first element")


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
            fits = fits and not mul_overflows(whole_number(layout.padded_shape[i], product), product, &layout.padded_shape[i])
        fits = fits and not mul_overflows(layout.strides[i], layout.padded_shape[i] // product, &low)
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
        ``0 <= offset <= padding``, padding before a blocked axis that is no whole blocks, and figures beyond the signed machine
        word. Its `status` names the rule. Strides that merely cannot belong to an allocation are told by `validate`.
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
        total, before = checked_paddings(sizes, paddings, padding_offsets, blocks)
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
        total, before = checked_paddings(sizes, paddings, padding_offsets, blocks)
        products = whole_blocks(len(sizes), blocks)
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
        return read_shape_info(sequence, dtype)

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

    def offset_of(self, index, *, padding=False):
        """Find the physical offset of a logical index.

        Parameters
        ----------
        index : tuple of int
            One index for each axis, counted from element (0, .., 0), never from the end.
        padding : bool, optional
            Whether it may be that of a padding cell, as `NdArray.check_padding` names them: negative before the first element,
            beyond the extent behind the last one and in the tail of blocks.

        Returns
        -------
        int
            In elements from the start of the buffer.

        Raises
        ------
        OutOfRangeError
            Unless ``0 <= index < extent`` on every axis, or, with `padding`, ``0 <= index + padding_offset < padded_extent``.

        Examples
        --------
        >>> from nd4jlike import ShapeDescriptor
        >>> ShapeDescriptor.from_tag((1, 17, 5, 4), "nChw8c").offset_of((0, 9, 2, 1))
        233
        >>> d = ShapeDescriptor.paddedBufferDescriptor("float32", "c", (3, 4), (2, 4), (1, 2))
        >>> d.offset_of((0, 0)), d.offset_of((-1, 0), padding=True)
        (10, 2)
        """
        cdef Py_ssize_t numbers[MAX_RANK]
        cdef tuple position = as_sizes(index, "index")
        cdef int axis
        if padding and self.layout.length:
            if position is not None and len(position) == self.layout.rank:
                inside = tuple([i + before for i, before in zip(position, self.padding_offsets)])
                if all([0 <= i < n for i, n in zip(inside, self.padded_shape)]):
                    return self.hosting().offset_of(inside)
            rule = ", ".join([f"{-before} <= i < {n - before}" for before, n in zip(self.padding_offsets, self.padded_shape)]) or "()"
            raise OutOfRangeError(f"index {index} is outside the shape {self.shape} and its padding: the rule is {rule}")
        if position is None or len(position) != self.layout.rank or any([not 0 <= i < n for i, n in zip(position, self.shape)]):
            raise OutOfRangeError(
                f"index {index} is outside the shape {self.shape}: one index 0 <= i < extent for each axis"
                + ("; padding=True takes those of padding" if self.padded_shape != self.shape and self.layout.length else "")
            )
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
        return written_shape_info(self)

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
            raise UnsupportedLayoutError(f"no view: neither strides nor blocks describe shape {extents} of {self!r}; reorder to a plain layout first")
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
            plain.shape[i] = whole_number(layout.shape[i], product)
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


include "views.pxi"
include "indices.pxi"
include "libnd4j.pxi"
