# The words of simd.h. Cython takes a vector for its element type: it writes + and * as they stand, and C does them on all lanes.

cdef extern from "simd.h" nogil:
    ctypedef float vf32
    ctypedef int vi32
    const int LANES
    vf32 splat_f32(float value)
    vi32 splat_i32(int value)
    vf32 load_f32(const float *source, Py_ssize_t count)
    void store_f32(float *target, vf32 value, Py_ssize_t count)
    vf32 at_least_f32(vf32 value, vf32 bound)
    vf32 at_most_f32(vf32 value, vf32 bound)
    vi32 min_i32(vi32 a, vi32 b)
    vi32 max_i32(vi32 a, vi32 b)
    vi32 load_cells(const signed char *first, const signed char *second, Py_ssize_t count)
    int cell_i32(int first, int second)
    void store_i8(signed char *target, vi32 value, Py_ssize_t count)
    vi32 dot_i16(vi32 sum, vi32 cells, vi32 weights)
    vi32 requantize_tflite(vi32 sum, vi32 multiplier, vi32 left, vi32 right)
    vi32 requantize_plain(vi32 sum, vi32 multiplier, vi32 half, vi32 right)
    vi32 requantize_float(vi32 sum, vf32 scale, vf32 low, vf32 high)
    ctypedef short vi16
    ctypedef signed char vbytes
    const int QUADS
    const int VECTOR_BYTES
    const int WEIGHT_VECTORS
    const int INPUT_OFFSET
    vi16 splat_i16(int value)
    vbytes load_bytes(const signed char *source, Py_ssize_t count)
    void store_bytes(signed char *target, vbytes value, Py_ssize_t count)
    void quads_of(vi32 *quads, vbytes a, vbytes b, vbytes c, vbytes d)
    void put_weights(int *lane, Py_ssize_t pitch, int a, int b, int c, int d)
    vi32 dot_quads(vi32 sum, vi32 quads, const vi32 *weights, Py_ssize_t pitch)
    vbytes bytes_of(vi32 a, vi32 b, vi32 c, vi32 d, vi16 zero_point, vi16 low, vi16 high)
    int wrapping_add(int a, int b)
    int wrapping_multiply(int a, int b)


# float32 kernels compute on vf32, int8 kernels on vi32: one text for both.
ctypedef fused vector:
    vf32
    vi32
