/*
 * Launchers of single instructions of kernels/cuda/common/gpu.h, one warp each: what the emulator
 * makes of them, or a GPU. Pointers are device memory.
 */
#ifndef SWERVE_TESTS_SIMT_INSTRUCTIONS_H
#define SWERVE_TESTS_SIMT_INSTRUCTIONS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* c[16][8] = a[16][16] b[16][8] + c, bf16, through ldmatrix; b as [k][n] (transposing) or [n][k].
 */
void instruction_mma_bf16(const uint16_t *a, const uint16_t *b, float *c, int b_transposed,
                          void *stream);
/* c[16][8] = a[16][32] b[8][32] + c, e4m3, b as [n][k]. */
void instruction_mma_e4m3(const uint8_t *a, const uint8_t *b, float *c, void *stream);
/* c[64][128] = a b + c on a warpgroup, bf16, four steps of 16, out of tiles of the 128-byte
 * swizzle: a [64][64] and b [128][64], both K-major. */
void instruction_wgmma(const uint16_t *a, const uint16_t *b, float *c, void *stream);
/* In e4m3, four steps of 32: a [64][128] and b [128][128]. */
void instruction_wgmma_e4m3(const uint8_t *a, const uint8_t *b, float *c, void *stream);
/* As the first, with a from registers and b [64][128], MN-major: two tiles side by side. */
void instruction_wgmma_values(const uint16_t *a, const uint16_t *b, float *c, void *stream);
/* 256 floats each way, 32 of the second from shuffles: out[i], see test_instructions.c. */
void instruction_shuffles(float *out, void *stream);
/* bytes[i] = e4m3 of x[i]; back[i] = float of byte i, low of a pair, back[256 + i] high; halves[i]
 * = bf16 pair of (x[i], x[i + 1]). */
void instruction_convert(const float *x, uint32_t count, uint8_t *bytes, float *back,
                         uint32_t *halves, void *stream);

#ifdef __cplusplus
}
#endif

#endif
