# Python's operators and NumPy's reductions of an array: each is the NumPy function of that name, by a short way where there is one (ADR 0010).

cdef object operate(object ufunc, object a, object b):
    """One binary operator; who wants no ufuncs gets its own turn."""
    found = plain_call(ufunc, (a, b), None)
    if found is not NotImplemented:
        return found
    if getattr(a, "__array_ufunc__", True) is None or getattr(b, "__array_ufunc__", True) is None:
        return NotImplemented
    if type(b) is not NDARRAY and isinstance(b, NDARRAY) and b.__array_priority__ > 0:  # masked arrays have operators of their own
        return NotImplemented
    return ufunc(a, b)


cdef object operate_in_place(object ufunc, object a, object b):
    found = plain_call(ufunc, (a, b), a)
    return ufunc(a, b, out=(a,)) if found is NotImplemented else found


cdef object short_power(NdArray x, object exponent):
    """The ufunc of one operand that NumPy's `**` takes for this exponent; None where it takes `power`."""
    if type(exponent) is int and exponent == 2:
        return np.square
    if x.descriptor.dtype.kind == "f":
        if type(exponent) is int and exponent == -1:
            return np.reciprocal
        if type(exponent) is float and exponent == 0.5:
            return np.sqrt
    return None


cdef object compare(object ufunc, NdArray a, object b):
    """Equality; what has no common type is nowhere equal, as NumPy's operators have it."""
    try:
        return operate(ufunc, a, b)
    except TypeError:
        found = (operator.eq if ufunc is np.equal else operator.ne)(a.to_numpy(), taken(b))
    if np.shape(found) != a.descriptor.shape or not a.descriptor.layout.rank:
        return as_ndarray(found) if type(found) is NDARRAY else found
    made = laid_out_like(a, BOOL, False, True)
    made[...] = found
    return made


cdef object reduced(NdArray x, str name, object out, dict options, dict arguments):
    """A reduction: NumPy's method of this name where it has a view of the elements, else its function."""
    if out is not None or options or x.descriptor.layout.block_count or x.descriptor.dtype is BFLOAT16:
        return getattr(np, name)(x, out=out, **arguments, **options)
    found = getattr(elements(x), name)(**arguments)
    if type(found) is not NDARRAY:
        return found
    try:
        return as_ndarray(found)
    except DTypeError:  # NumPy's own types are for NumPy's arrays
        return found


cdef class _Operators:
    def __add__(self, other):
        return operate(ADD, self, other)

    def __radd__(self, other):
        return operate(ADD, other, self)

    def __iadd__(self, other):
        return operate_in_place(ADD, self, other)

    def __sub__(self, other):
        return operate(SUBTRACT, self, other)

    def __rsub__(self, other):
        return operate(SUBTRACT, other, self)

    def __isub__(self, other):
        return operate_in_place(SUBTRACT, self, other)

    def __mul__(self, other):
        return operate(MULTIPLY, self, other)

    def __rmul__(self, other):
        return operate(MULTIPLY, other, self)

    def __imul__(self, other):
        return operate_in_place(MULTIPLY, self, other)

    def __truediv__(self, other):
        return operate(DIVIDE, self, other)

    def __rtruediv__(self, other):
        return operate(DIVIDE, other, self)

    def __itruediv__(self, other):
        return operate_in_place(DIVIDE, self, other)

    def __floordiv__(self, other):
        return operate(np.floor_divide, self, other)

    def __rfloordiv__(self, other):
        return operate(np.floor_divide, other, self)

    def __ifloordiv__(self, other):
        return operate_in_place(np.floor_divide, self, other)

    def __mod__(self, other):
        return operate(np.remainder, self, other)

    def __rmod__(self, other):
        return operate(np.remainder, other, self)

    def __imod__(self, other):
        return operate_in_place(np.remainder, self, other)

    def __lshift__(self, other):
        return operate(np.left_shift, self, other)

    def __rlshift__(self, other):
        return operate(np.left_shift, other, self)

    def __ilshift__(self, other):
        return operate_in_place(np.left_shift, self, other)

    def __rshift__(self, other):
        return operate(np.right_shift, self, other)

    def __rrshift__(self, other):
        return operate(np.right_shift, other, self)

    def __irshift__(self, other):
        return operate_in_place(np.right_shift, self, other)

    def __and__(self, other):
        return operate(np.bitwise_and, self, other)

    def __rand__(self, other):
        return operate(np.bitwise_and, other, self)

    def __iand__(self, other):
        return operate_in_place(np.bitwise_and, self, other)

    def __or__(self, other):
        return operate(np.bitwise_or, self, other)

    def __ror__(self, other):
        return operate(np.bitwise_or, other, self)

    def __ior__(self, other):
        return operate_in_place(np.bitwise_or, self, other)

    def __xor__(self, other):
        return operate(np.bitwise_xor, self, other)

    def __rxor__(self, other):
        return operate(np.bitwise_xor, other, self)

    def __ixor__(self, other):
        return operate_in_place(np.bitwise_xor, self, other)

    def __matmul__(self, other):
        return operate(np.matmul, self, other)

    def __rmatmul__(self, other):
        return operate(np.matmul, other, self)

    def __imatmul__(self, other):
        # A product of fewer axes would be written to all places.
        if self.ndim < 1 or np.ndim(other) < 2:
            raise LayoutError(f"@= needs an array of one axis or more and a matrix: {self.ndim} and {np.ndim(other)} axes")
        return operate_in_place(np.matmul, self, other)

    def __divmod__(self, other):
        return operate(np.divmod, self, other)

    def __rdivmod__(self, other):
        return operate(np.divmod, other, self)

    def __pow__(self, other, modulo):
        short = short_power(self, other)
        if modulo is not None:
            return NotImplemented
        return operate(POWER, self, other) if short is None else short(self)

    def __rpow__(self, other, modulo):
        return NotImplemented if modulo is not None else operate(POWER, other, self)

    def __ipow__(self, other):
        short = short_power(self, other)
        return operate_in_place(POWER, self, other) if short is None else short(self, out=(self,))

    def __neg__(self):
        return np.negative(self)

    def __pos__(self):
        return np.positive(self)

    def __abs__(self):
        return np.absolute(self)

    def __invert__(self):
        return np.invert(self)

    def __eq__(self, other):
        return compare(np.equal, self, other)

    def __ne__(self, other):
        return compare(np.not_equal, self, other)

    def __lt__(self, other):
        return operate(np.less, self, other)

    def __le__(self, other):
        return operate(np.less_equal, self, other)

    def __gt__(self, other):
        return operate(np.greater, self, other)

    def __ge__(self, other):
        return operate(np.greater_equal, self, other)

    def sum(self, axis=None, dtype=None, out=None, keepdims=False, **options):
        """Sum of the elements, along an axis or of all, as `numpy.sum` has it; padding is no element.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> float(nd.arange(4).sum())
        6.0
        """
        return reduced(self, "sum", out, options, {"axis": axis, "dtype": dtype, "keepdims": keepdims})

    def prod(self, axis=None, dtype=None, out=None, keepdims=False, **options):
        """Product of the elements, along an axis or of all, as `numpy.prod` has it; padding is no element.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> float(nd.arange(1, 4).prod())
        6.0
        """
        return reduced(self, "prod", out, options, {"axis": axis, "dtype": dtype, "keepdims": keepdims})

    def mean(self, axis=None, dtype=None, out=None, keepdims=False, **options):
        """Mean of the elements, along an axis or of all, as `numpy.mean` has it; padding is no element.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> float(nd.arange(4).mean())
        1.5
        """
        return reduced(self, "mean", out, options, {"axis": axis, "dtype": dtype, "keepdims": keepdims})

    def std(self, axis=None, dtype=None, out=None, ddof=0, keepdims=False, **options):
        """Standard deviation of the elements, along an axis or of all, as `numpy.std` has it; padding is no element.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> float(nd.full(3, 2).std())
        0.0
        """
        return reduced(self, "std", out, options, {"axis": axis, "dtype": dtype, "ddof": ddof, "keepdims": keepdims})

    def var(self, axis=None, dtype=None, out=None, ddof=0, keepdims=False, **options):
        """Variance of the elements, along an axis or of all, as `numpy.var` has it; padding is no element.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> float(nd.full(3, 2).var())
        0.0
        """
        return reduced(self, "var", out, options, {"axis": axis, "dtype": dtype, "ddof": ddof, "keepdims": keepdims})

    def min(self, axis=None, out=None, keepdims=False, **options):
        """Least element, along an axis or of all, as `numpy.min` has it; padding is no element.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> float(nd.arange(4).min())
        0.0
        """
        return reduced(self, "min", out, options, {"axis": axis, "keepdims": keepdims})

    def max(self, axis=None, out=None, keepdims=False, **options):
        """Largest element, along an axis or of all, as `numpy.max` has it; padding is no element.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> float(nd.arange(4).max())
        3.0
        """
        return reduced(self, "max", out, options, {"axis": axis, "keepdims": keepdims})

    def argmin(self, axis=None, out=None, *, keepdims=False):
        """Index of the least element, the first of them, along an axis or of all, as `numpy.argmin` has it; padding is no element.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> int(nd.arange(4).argmin())
        0
        """
        return reduced(self, "argmin", out, {}, {"axis": axis, "keepdims": keepdims})

    def argmax(self, axis=None, out=None, *, keepdims=False):
        """Index of the largest element, the first of them, along an axis or of all, as `numpy.argmax` has it; padding is no element.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> int(nd.arange(4).argmax())
        3
        """
        return reduced(self, "argmax", out, {}, {"axis": axis, "keepdims": keepdims})

    def all(self, axis=None, out=None, keepdims=False, **options):
        """Whether every element is true, along an axis or of all, as `numpy.all` has it; padding is no element.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> bool(nd.arange(4).all())
        False
        """
        return reduced(self, "all", out, options, {"axis": axis, "keepdims": keepdims})

    def any(self, axis=None, out=None, keepdims=False, **options):
        """Whether an element is true, along an axis or of all, as `numpy.any` has it; padding is no element.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> bool(nd.arange(4).any())
        True
        """
        return reduced(self, "any", out, options, {"axis": axis, "keepdims": keepdims})

    def cumsum(self, axis=None, dtype=None, out=None):
        """Sums of the elements so far, along an axis or of all in c order, as `numpy.cumsum` has it; padding is no element.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> nd.arange(4).cumsum().tolist()
        [0.0, 1.0, 3.0, 6.0]
        """
        return np.cumsum(self, axis, dtype=dtype, out=out)

    def cumprod(self, axis=None, dtype=None, out=None):
        """Products of the elements so far, along an axis or of all in c order, as `numpy.cumprod` has it; padding is no element.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> nd.full((3,), 2).cumprod().tolist()
        [2.0, 4.0, 8.0]
        """
        return np.cumprod(self, axis, dtype, out)

    def argsort(self, axis=-1, **options):
        """Indices that sort the elements along an axis, as `numpy.argsort` has it.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> nd.asarray([3, 1, 2]).argsort().tolist()
        [1, 2, 0]
        """
        return np.argsort(self, axis, **options)

    def sort(self, axis=-1, **options):
        """Sort the elements along an axis where they lie, as `numpy.ndarray.sort` has it.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> x = nd.asarray([3, 1, 2])
        >>> x.sort()
        >>> x.tolist()
        [1, 2, 3]
        """
        self[...] = np.sort(self, axis, **options)

    def diagonal(self, offset=0, axis1=0, axis2=1):
        """Elements whose indices on two axes are equal but for `offset`, as `numpy.diagonal` has it.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> nd.arange(4).reshape(2, 2).diagonal().tolist()
        [0.0, 3.0]
        """
        return np.diagonal(self, offset, axis1, axis2)

    def dot(self, b, out=None):
        """Product with another array, as `numpy.dot` has it; `@` is that of stacks of matrices.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> nd.arange(3).dot(nd.arange(3)).item()
        5.0
        """
        return np.dot(self, b, out)

    def nonzero(self):
        """Indices of the elements that are not zero, an array for each axis, as `numpy.nonzero` has it.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> [i.tolist() for i in nd.arange(3).nonzero()]
        [[1, 2]]
        """
        return np.nonzero(self)

    def repeat(self, repeats, axis=None):
        """Each element, or part along an axis, so many times, as `numpy.repeat` has it.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> nd.arange(2).repeat(2).tolist()
        [0.0, 0.0, 1.0, 1.0]
        """
        return np.repeat(self, repeats, axis)

    def take(self, indices, axis=None, out=None, mode="raise"):
        """Elements, or parts along an axis, by their indices, as `numpy.take` has it.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> nd.arange(4).take([3, 0]).tolist()
        [3.0, 0.0]
        """
        return np.take(self, indices, axis, out, mode)

    def trace(self, offset=0, axis1=0, axis2=1, dtype=None, out=None):
        """Sum of a diagonal, as `numpy.trace` has it.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> nd.arange(4).reshape(2, 2).trace().item()
        3.0
        """
        return np.trace(self, offset, axis1, axis2, dtype, out)

    def clip(self, min=None, max=None, out=None, **options):
        """Elements within limits, as `numpy.clip` has it.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> nd.arange(4).clip(1, 2).tolist()
        [1.0, 1.0, 2.0, 2.0]
        """
        return np.clip(self, min, max, out, **options)

    def round(self, decimals=0, out=None):
        """Elements rounded to so many decimals, half to even, as `numpy.round` has it.

        Examples
        --------
        >>> import nd4jlike as nd
        >>> nd.array([0.5, 1.5]).round().tolist()
        [0.0, 2.0]
        """
        return np.round(self, decimals, out)

    def __round__(self, ndigits=None):
        return np.round(self, ndigits or 0)
