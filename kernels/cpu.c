/*
 * CPU detection through the compiler's own cpuid support, which also asks the operating system
 * whether it saves the wide registers. Other architectures report no flags and run the plain C.
 */
#include "kernels/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Tiles are off until a process asks for them (Linux, Documentation/arch/x86/xstate.rst). */
static bool tiles_allowed(void)
{
#if defined(SYS_arch_prctl)
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
#else
    return false;
#endif
}

/* AVX512-BF16: leaf 7 of cpuid, first subleaf. */
static bool pairs_present(void)
{
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1) != 0;
}

/* AMX-BF16 and AMX-TILE: leaf 7 of cpuid. */
static bool tiles_present(void)
{
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 22 & 1) != 0 && (d >> 24 & 1) != 0;
}
#endif

uint32_t cpu_flags_detect(void)
{
    uint32_t flags = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        flags |= CPU_FLAG_AVX2;
    }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        flags |= CPU_FLAG_AVX512;
    }
    if ((flags & CPU_FLAG_AVX512) != 0 && __builtin_cpu_supports("avx512vnni")) {
        flags |= CPU_FLAG_AVX512_VNNI;
    }
    if ((flags & CPU_FLAG_AVX512) != 0 && pairs_present()) {
        flags |= CPU_FLAG_AVX512_BF16;
        if (tiles_present() && tiles_allowed()) {
            flags |= CPU_FLAG_AMX;
        }
    }
#endif
    return flags;
}
