/*
 * CPU detection through the compiler's own cpuid support, which also asks the operating system
 * whether it saves the wide registers. Other architectures report no flags and run the plain C.
 */
#include "kernels/cpu.h"

uint32_t cpu_flags_detect(void)
{
    uint32_t flags = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2")) {
        flags |= CPU_FLAG_AVX2;
    }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        flags |= CPU_FLAG_AVX512;
    }
#endif
    return flags;
}

const char *cpu_flags_name(uint32_t flags)
{
    if (flags & CPU_FLAG_AVX512) {
        return "avx512";
    }
    return flags & CPU_FLAG_AVX2 ? "avx2" : "c";
}
