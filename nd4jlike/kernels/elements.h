/* The element types that the kernels of a convolution know. */
#ifndef ND4JLIKE_ELEMENTS_H
#define ND4JLIKE_ELEMENTS_H

enum { FLOAT32, FLOAT64, FLOAT16, BFLOAT16, INT8, UINT8, INT16, ELEMENTS };
#define BYTES_OF(element) ((element) == FLOAT32 ? 4 : (element) == FLOAT64 ? 8 : 2)

#endif
