# A row of outputs of planes, whose columns lie side by side, cut into vectors, and where the inputs of each are outside the image.

cdef extern from "planes.h" nogil:
    enum:
        COLUMNS_ACROSS
    vi32 lanes_between(Py_ssize_t begin, Py_ssize_t end)

cdef enum:
    PLANE_TAPS = 16
    PLANE_STRIDES = 2
    # Of the pieces of a row that are cut at a time those with masks.
    MASKED_PIECES = 4


# Neighbouring output columns: one vector or two. Masks: the index of their first, -1 where every input is inside the image.
cdef struct Piece:
    Py_ssize_t column, lanes
    int vectors, masks


cdef struct Pieces:
    int count
    Piece piece[COLUMNS_ACROSS]
    vi32 masks[MASKED_PIECES * PLANE_TAPS * PLANE_STRIDES]


cdef Py_ssize_t cut_pieces(
    const Problem *problem, Pieces *pieces, Py_ssize_t column, Py_ssize_t lanes, bint pairs, bint bare, bint overlaps,
) noexcept nogil:
    """The pieces of a row from an output column on, of so many lanes a vector: two at a time (`pairs`), single ones inside the image without masks (`bare`).
    The last of a row is a whole one, too, where it may begin before its column (`overlaps`).

    Returns the column after them.
    """
    cdef Py_ssize_t stride = problem.stride_width, vectors = min(stride, PLANE_STRIDES), position, ahead, tap, i, source, last
    # By steps later taps may be found in what the first one loads.
    cdef Py_ssize_t behind = problem.kernel_width - 1 if stride > 1 else 0
    cdef int masked = 0, inside = -1
    cdef bint whole
    cdef Piece *piece
    pieces.count = 0
    while column < problem.out_width and pieces.count < COLUMNS_ACROSS and masked < MASKED_PIECES:
        piece = &pieces.piece[pieces.count]
        if overlaps and problem.out_width >= lanes:
            column = min(column, problem.out_width - lanes)
        position = column * stride - problem.pad_left
        # Columns of the image that the last tap may load.
        ahead = problem.width - (position + (problem.kernel_width - 1) * problem.dilation_width) if position >= 0 else 0
        piece.column = column
        piece.vectors = 2 if pairs and ahead >= stride * (lanes + LANES) and problem.out_width - column >= 2 * lanes else 1
        piece.lanes = min(lanes, problem.out_width - column)
        piece.masks = -1
        whole = ahead >= stride * LANES and piece.lanes == lanes
        if whole and piece.vectors == 1:
            piece.masks = inside
        if piece.masks < 0 and not (whole and (bare or piece.vectors == 2)):
            piece.masks = <int> (masked * PLANE_TAPS * PLANE_STRIDES)
            masked += 1
            if whole:
                inside = piece.masks
            for tap in range(problem.kernel_width):
                for i in range(vectors):
                    source = position + tap * problem.dilation_width + i * LANES
                    last = min(problem.width - source, piece.lanes * stride + behind - i * LANES)
                    pieces.masks[piece.masks + tap * vectors + i] = lanes_between(-source, last)
        column += piece.vectors * lanes
        pieces.count += 1
    return column


# Output rows whose taps fall on the same rows: a phase. The first row of inputs that it has, rows of its own above its first window, and of the image.
cdef struct Phase:
    Py_ssize_t first, pad, height


cdef inline Phase phase_from(const Problem *problem, Py_ssize_t row) noexcept nogil:
    """That of an output row, which is its first."""
    cdef Py_ssize_t phases = problem.dilation_height, position = row * problem.stride_height - problem.pad_top
    cdef Py_ssize_t pad = divide_up(-position, phases) if position < 0 else -divide(position, phases)
    cdef Py_ssize_t first = position + pad * phases
    return Phase(first, pad, divide_up(problem.height - first, phases))
