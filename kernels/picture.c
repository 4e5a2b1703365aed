/*
 * The table of the rows of a picture: plain C first, then overwritten by each instruction set that
 * the flags allow, narrowest to widest.
 */
#include "kernels/cpu.h"
#include "kernels/picture_rows.h"

void picture_kernels_init(struct picture_kernels *kernels, uint32_t flags)
{
    picture_rows_ref(kernels);
    picture_rays_ref(kernels);
    picture_scan_ref(kernels);
#if defined(__x86_64__)
    if (flags & CPU_FLAG_AVX2) {
        picture_rows_avx2(kernels);
        picture_rays_avx2(kernels);
        picture_scan_avx2(kernels);
    }
    if (flags & CPU_FLAG_AVX512) {
        picture_rows_avx512(kernels);
        picture_rays_avx512(kernels);
        picture_scan_avx512(kernels);
    }
#else
    (void)flags;
#endif
}
