/* The element types that the kernels of a convolution know. */
#ifndef ND4JLIKE_ELEMENTS_H
#define ND4JLIKE_ELEMENTS_H

enum { FLOAT32, FLOAT64, FLOAT16, BFLOAT16, INT8, UINT8, INT16, ELEMENTS };
#define BYTES_OF(element) ((element) == FLOAT32 ? 4 : (element) == FLOAT64 ? 8 : 2)

/* As names have them. */
#define ELEMENT_f32 FLOAT32
#define ELEMENT_f16 FLOAT16
#define ELEMENT_bf16 BFLOAT16

#endif
