/*
 * The table of raster kernels: plain C first, then overwritten by each instruction set that the
 * flags allow, narrowest to widest.
 */
#include "kernels/raster.h"

#include "kernels/cpu.h"

void raster_kernels_init(struct raster_kernels *kernels, uint32_t flags)
{
    kernels->sample = raster_sample_ref;
    kernels->shade = raster_shade_ref;
    kernels->expand = raster_expand_ref;
#if defined(__x86_64__)
    if (flags & CPU_FLAG_AVX2) {
        kernels->sample = raster_sample_avx2;
        kernels->shade = raster_shade_avx2;
        kernels->expand = raster_expand_avx2;
    }
    if (flags & CPU_FLAG_AVX512) {
        kernels->sample = raster_sample_avx512;
        kernels->shade = raster_shade_avx512;
        kernels->expand = raster_expand_avx512;
    }
#else
    (void)flags;
#endif
}
