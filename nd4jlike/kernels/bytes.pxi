# The words of bytes.h, beside those of simd.pxi.

cdef extern from "bytes.h" nogil:
    const int QUADS
    const int CELL_PLANES
    const int INPUT_OFFSET
    const int GROUP
    const int UNORDERED
    const int UNPACKED
    const int OVERLAPS
    const int SPLITS
    int unpacked_channel(int quad, int lane)
    const int WINDOWS
    vi16 pack_i32(vi32 a, vi32 b)
    vi16 splat_i16(int value)
    vi32 blank_cells(int value)
    void store_bytes(signed char *target, vbytes value, Py_ssize_t count)
    void interleave(
        char *target, Py_ssize_t plane, const signed char *a, const signed char *b, const signed char *c, const signed char *d, int flip,
        Py_ssize_t count, const int ordered)
    void put_weights(int *lane, Py_ssize_t pitch, int a, int b, int c, int d)
    vi32 dot_cells(vi32 sum, vi32 cells, vi32 weights)
    vi32 pick_near(const char *cells, vi32 index)
    vi32 pick_far(const char *cells, vi32 index)
    enum:
        PICKS_FARTHER
    vi32 pick_farther(const char *cells, vi32 index)
    vi32 round_scaled(vi32 sum, vf32 scale)
    vi32 round_small(vi32 sum, vf32 scale)
    vi32 round_twice(vi32 sum, vf32 scale, vf32 step, vf32 *worst)
    bint near_a_tie(vf32 worst)
    vbytes order_of(int steps)
    vbytes splat_i8(int value)
    vbytes changed(vbytes value, vbytes bits)
    vbytes clamp_i8(vbytes value, vbytes low, vbytes high)
    vbytes in_order(vbytes value, vbytes order)
    vbytes in_fours(vbytes value)
    vbytes pack_i16(vi16 a, vi16 b)
    vi16 low_words(vi32 a, vi32 b)
    vi32 bits_on_line(vi32 sum, vf32 scale, vf32 offset)
    vi32 bits_on_two_lines(vi32 sum, vf32 scale, vf32 offset, vf32 zero, vf32 moved, vf32 lower)
    float scale_bits()
    vi32 whole_of_bits(vi32 bits)
    vbytes channels_of(vi16 first, vi16 second, vi16 zero_point, vbytes low, vbytes high, vbytes order)
