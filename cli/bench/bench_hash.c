/*
 * SHA-256 of blocks by turns, best of each in processor time, so that a busy machine measures the
 * same. See bench.h.
 */
#include "cli/bench/bench.h"

#include "base/clock.h"
#include "base/sha256.h"

#include <stdlib.h>
#include <string.h>

enum { REPEATS = 20, REPEAT_BYTES = 2 << 20, MODES = 2 };

/* Bytes per second of one repetition. */
static double hash_once(uint32_t flags, const uint8_t *block, size_t block_bytes)
{
    const struct clock *clock = clock_system();
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    int64_t start_ns = clock_thread_cpu_ns(clock);
    for (size_t done = 0; done < REPEAT_BYTES; done += block_bytes) {
        sha256_init_masked(&hash, flags);
        sha256_update(&hash, block, block_bytes);
        sha256_final(&hash, digest);
    }
    return REPEAT_BYTES * 1e9 / (double)(clock_thread_cpu_ns(clock) - start_ns);
}

enum status bench_hash(struct bench_report *report, struct error *error)
{
    static const size_t sizes[] = {64, 1024, 16384, 1 << 20};
    const uint32_t flags[MODES] = {0, sha256_flags_detect()};
    uint8_t *block = malloc(sizes[3]);
    TRY(memory_check(block, error, "bench: out of memory"));
    memset(block, 7, sizes[3]);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        double best[MODES] = {0};
        for (int repeat = 0; repeat < REPEATS * MODES; repeat++) {
            double found = hash_once(flags[repeat % MODES], block, sizes[i]);
            best[repeat % MODES] = found > best[repeat % MODES] ? found : best[repeat % MODES];
        }
        bench_add(report, best[1] / 1e6, "MB/s", best[0] / 1e6, "plain C",
                  "sha256 of %zu bytes, %s", sizes[i], flags[1] != 0 ? "SHA extensions" : "c");
    }
    free(block);
    return STATUS_OK;
}
