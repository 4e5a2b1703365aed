/*
 * Page layout: places of a frame's keys and values in its page, behind the frame's bytes. One
 * layout for the CPU (engine/learned), the module and who plans or shares it among ranks
 * (kernels/trunk); whoever keeps, spills or moves pages has their size from here.
 *
 * Of each layer K, then V, [tokens][kv_heads * head_dim] each; of e4m3 then the scales of K and of
 * V, float [tokens][kv_heads]: a head's numbers are its bytes times its scale. Every array is
 * rounded up to PAGE_LAYOUT_ALIGN bytes, of which those of models in patches need none.
 */
#ifndef SWERVE_KERNELS_PAGE_LAYOUT_H
#define SWERVE_KERNELS_PAGE_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

enum { PAGE_LAYOUT_ALIGN = 16 };

struct page_shape {
    uint32_t layers, tokens, kv_heads, head_dim;
    uint32_t number_bytes; /* of K and V: 4, 2, or 1: e4m3, which has scales */
};

/* Bytes; offsets are those of layer 0 from the end of the frame, layer l lies l * layer_bytes
 * further. */
struct page_layout {
    size_t k, v, k_scale, v_scale;
    size_t layer_bytes, memory_bytes; /* memory_bytes: of all layers */
};

static inline size_t page_layout_rounded(size_t bytes)
{
    return (bytes + PAGE_LAYOUT_ALIGN - 1) / PAGE_LAYOUT_ALIGN * PAGE_LAYOUT_ALIGN;
}

static inline struct page_layout page_layout_of(const struct page_shape *s)
{
    const size_t heads = (size_t)s->tokens * s->kv_heads;
    const size_t matrix = page_layout_rounded(heads * s->head_dim * s->number_bytes);
    const size_t scales = s->number_bytes == 1 ? page_layout_rounded(heads * sizeof(float)) : 0;
    struct page_layout out;
    out.k = 0;
    out.v = matrix;
    out.k_scale = 2 * matrix;
    out.v_scale = 2 * matrix + scales;
    out.layer_bytes = 2 * (matrix + scales);
    out.memory_bytes = out.layer_bytes * s->layers;
    return out;
}

#endif
