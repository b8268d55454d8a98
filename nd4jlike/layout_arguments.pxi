# Figures of a layout as they are given: what they may be, what stands for those that are not there, and which rule one breaks (ADR 0001, 0003).

cdef extern from "Python.h":
    long long PyLong_AsLongLongAndOverflow(object number, int *overflow) except? -1


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


cdef tuple given_sizes(object values, int rank, str what):
    """Padding figures as they are given; None is none."""
    cdef tuple sizes = () if values is None else as_sizes(values, what)
    if rank > 1 and type(values) is int:
        raise LayoutError(f"{what} is {values} for {rank} axes, it must hold one number for each, of the first ones at least", ShapeStatus.INCORRECT_PADDING)
    if len(sizes) > rank:
        raise LayoutError(f"{len(sizes)} {what} for {rank} axes: {what}={sizes}", ShapeStatus.INCORRECT_PADDING)
    return sizes


cdef tuple checked_paddings(tuple shape, object paddings, object padding_offsets, tuple blocks=()):
    """Paddings and offsets of every axis, the ones that are not given 0, each `0 <= offset <= padding`; offsets are whole blocks."""
    cdef int rank = len(shape)
    cdef tuple total = given_sizes(paddings, rank, "paddings")
    cdef tuple before = given_sizes(padding_offsets, rank, "padding_offsets")
    if len(before) > len(total):
        raise LayoutError(f"there are more padding offsets than paddings: padding_offsets={before}, paddings={total}", ShapeStatus.INCORRECT_PADDING)
    total += (0,) * (rank - len(total))
    before += (0,) * (rank - len(before))
    for axis, (size, offset, block) in enumerate(zip(total, before, whole_blocks(rank, blocks))):
        if size < 0 or not 0 <= offset <= size:
            raise LayoutError(
                f"axis {axis} has padding {size} and padding offset {offset}, the rule is 0 <= offset <= padding: "
                f"shape={shape}, paddings={total}, padding_offsets={before}",
                ShapeStatus.INCORRECT_PADDING,
            )
        if offset % block:
            raise LayoutError(
                f"axis {axis} has padding offset {offset}, on a blocked axis it is whole blocks of {block}: inner_blocks={blocks}, padding_offsets={before}",
                ShapeStatus.INCORRECT_PADDING,
            )
    return total, before
