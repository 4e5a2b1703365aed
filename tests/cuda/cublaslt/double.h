/*
 * Words between the made-up cuBLASLt (cublaslt.c) and its test. It keeps the rules of
 * the real one's manual for products as gemm_vendor.cu asks for them, and says which was broken.
 */
#ifndef SWERVE_TESTS_CUDA_CUBLASLT_DOUBLE_H
#define SWERVE_TESTS_CUDA_CUBLASLT_DOUBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A product as descriptors and pointers have it: d[column][row] = sum over k of
 * a[row][k] * b[column][k], times a_scale[row] * b_scale[column] where they are given. */
struct cublaslt_product {
    bool e4m3;     /* operands; else bf16 */
    bool out_bf16; /* else float */
    uint32_t rows, columns, k;
    uint32_t b_stride, d_stride; /* numbers from one column to the next */
    const void *a, *b;
    void *d;
    const float *a_scale, *b_scale;
    void *stream;
};

struct cublaslt_double {
    void (*compute)(const struct cublaslt_product *product); /* queues it */
    uint32_t algorithms;                                     /* that are known for a product */
    uint32_t refused; /* the first of them in state NOT_SUPPORTED */
    int create_status, matmul_status;
    bool prepared;   /* from now on only products may be asked for */
    uint32_t living; /* handles, descriptors, layouts, preferences */
    uint32_t matmuls;
    char fault[128]; /* the first rule that was broken; empty: none */
};

#endif
