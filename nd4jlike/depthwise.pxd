# What the planner of a layer tells of a machine, for those that plan with the same kernels.

from nd4jlike.kernels.problem cimport Family, Problem

cdef void place_in_caches(Problem *problem, Py_ssize_t nbytes, Py_ssize_t itemsize) noexcept
cdef Py_ssize_t lead_of(const Family *family, int aligns, Py_ssize_t itemsize, const char *x, const char *y) noexcept
