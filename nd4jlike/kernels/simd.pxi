# The words of simd.h and floats.h. Cython takes a vector for its element type: it writes + and * as they stand, and C does them on all lanes.

cdef extern from "simd.h" nogil:
    ctypedef float vf32
    ctypedef int vi32
    ctypedef double vf64
    const int LANES
    vf32 splat_f32(float value)
    vi32 splat_i32(int value)
    vf32 load_f32(const float *source, Py_ssize_t count)
    void store_f32(float *target, vf32 value, Py_ssize_t count)
    vf32 at_least_f32(vf32 value, vf32 bound)
    vf32 at_most_f32(vf32 value, vf32 bound)
    vi32 min_i32(vi32 a, vi32 b)
    vi32 max_i32(vi32 a, vi32 b)
    vi32 load_cells(const signed char *first, const signed char *second, int flip, Py_ssize_t count)
    int lone_i16(const void *source)
    vi32 load_cells_i16(const short *first, const short *second, Py_ssize_t count)
    int cell_i32(int first, int second)
    void store_i8(signed char *target, vi32 value, int flip, Py_ssize_t count)
    void store_i16(short *target, vi32 value, Py_ssize_t count)
    void store_i32(int *target, vi32 value, Py_ssize_t count)
    vf32 scaled(vi32 sum, vf32 scale)
    vi32 high_multiply(vi32 a, vi32 b)
    vi32 dot_i16(vi32 sum, vi32 cells, vi32 weights)
    vi32 requantize_tflite(vi32 sum, vi32 multiplier, vi32 left, vi32 right)
    vi32 requantize_plain(vi32 sum, vi32 multiplier, vi32 half, vi32 right)
    vi32 requantize_float(vi32 sum, vf32 scale, vf32 low, vf32 high)
    ctypedef short vi16
    ctypedef signed char vbytes
    const int FLOATS
    const int BY_PAIRS
    const int VECTOR_BYTES
    const int PASS_ROWS
    const int TILE_COLUMNS
    const int FUSED
    int wrapping_add(int a, int b)
    int wrapping_multiply(int a, int b)
    long long wrapping_add_64(long long a, long long b)
    long long wrapping_multiply_64(long long a, long long b)

cdef extern from "floats.h" nogil:
    vf32 load_as_f32(const void *source, Py_ssize_t count, int element)
    void store_from_f32(char *target, vf32 value, Py_ssize_t count, int element)
    int row_lane(int lane, int element)
    vf64 splat_f64(double value)
    vf64 at_least_f64(vf64 value, vf64 bound)
    vf64 at_most_f64(vf64 value, vf64 bound)
    vf64 load_f64(const double *source, Py_ssize_t count)
    void store_f64(double *target, vf64 value, Py_ssize_t count)


# float64 kernels compute on vf64, those of the shorter float types on vf32, int8 kernels on vi32: one text for all.
ctypedef fused vector:
    vf32
    vi32
    vf64


ctypedef fused float_vector:
    vf32
    vf64
