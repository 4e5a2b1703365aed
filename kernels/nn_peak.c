/*
 * Chooses the loop whose instruction the widest table of the flags uses, and races the tables.
 * Plain C has a loop of its own.
 */
#include "kernels/nn_peak.h"

#include "base/check.h"
#include "base/units.h"
#include "kernels/cpu.h"
#include "kernels/nn_internal.h"

static double peak_c(uint32_t rounds)
{
    enum { CHAINS = 16 };
    float sums[CHAINS] = {0.0f};
    for (uint32_t round = 0; round < rounds; round++) {
        for (int i = 0; i < CHAINS; i++) {
            sums[i] = sums[i] * 0.75f + 0.25f;
        }
    }
    volatile float used = 0.0f;
    for (int i = 0; i < CHAINS; i++) {
        used = used + sums[i];
    }
    return 2.0 * CHAINS * rounds;
}

double nn_peak_run(enum nn_precision precision, uint32_t flags, uint32_t rounds)
{
#if defined(__x86_64__)
    if (precision == NN_INT8 && (flags & CPU_FLAG_AVX512_VNNI) && (flags & CPU_FLAG_AVX512)) {
        return nn_peak_int8_avx512vnni(rounds);
    }
    if (precision == NN_INT8 && (flags & CPU_FLAG_AVX512)) {
        return nn_peak_int8_avx512(rounds);
    }
    if (precision == NN_INT8 && (flags & CPU_FLAG_AVX2)) {
        return nn_peak_int8_avx2(rounds);
    }
    if (precision == NN_BF16 && (flags & CPU_FLAG_AMX) && (flags & CPU_FLAG_AVX512)) {
        return nn_peak_amx(rounds);
    }
    if (precision == NN_BF16 && (flags & CPU_FLAG_AVX512_BF16) && (flags & CPU_FLAG_AVX512)) {
        return nn_peak_avx512bf16(rounds);
    }
    if (flags & CPU_FLAG_AVX512) {
        return nn_peak_avx512(rounds);
    }
    if (flags & CPU_FLAG_AVX2) {
        return nn_peak_avx2(rounds);
    }
#else
    (void)precision;
    (void)flags;
#endif
    return peak_c(rounds);
}

/* ---- the race ---- */

/* Operations of one turn: some 50 us at the speed of AVX2, 20 at that of tiles. */
#define TURN_FLOP 4e6

enum {
    OF_FLOATS = 1 << NN_FP32 | 1 << NN_BF16,
    OF_BF16 = 1 << NN_BF16,
    OF_INT8 = 1 << NN_INT8,
    WIDE = CPU_FLAG_AVX2 | CPU_FLAG_AVX512,
};

static const struct {
    const char *name;
    uint32_t flags;
    uint32_t precisions; /* bits of those that have such a table */
} race_tables[] = {
    {"avx2", CPU_FLAG_AVX2, OF_FLOATS | OF_INT8},
    {"avx512", WIDE, OF_FLOATS | OF_INT8},
    {"avx512vnni", WIDE | CPU_FLAG_AVX512_VNNI, OF_INT8},
    {"avx512bf16", WIDE | CPU_FLAG_AVX512_BF16, OF_BF16},
    {"amx", WIDE | CPU_FLAG_AVX512_BF16 | CPU_FLAG_AMX, OF_BF16},
};

static void race_turn(enum nn_precision precision, struct nn_peak_table *table,
                      const struct clock *clock)
{
    const double each = nn_peak_run(precision, table->flags, 1);
    const uint32_t rounds = (uint32_t)(TURN_FLOP / each);
    const int64_t start_ns = clock_thread_cpu_ns(clock);
    const double flop = nn_peak_run(precision, table->flags, rounds);
    const int64_t ns = clock_thread_cpu_ns(clock) - start_ns;
    const double flops = ns > 0 ? flop / (double)ns * (double)NS_PER_S : 0.0;
    table->flops = flops > table->flops ? flops : table->flops;
}

void nn_peak_race(enum nn_precision precision, uint32_t flags, uint32_t turns,
                  const struct clock *clock, struct nn_peaks *out)
{
    *out = (struct nn_peaks){.count = 0};
    for (size_t i = 0; i < COUNT_OF(race_tables); i++) {
        if ((race_tables[i].precisions >> precision & 1) != 0 &&
            (flags & race_tables[i].flags) == race_tables[i].flags) {
            CHECK(out->count < NN_PEAK_TABLES_MAX);
            out->tables[out->count++] =
                (struct nn_peak_table){.name = race_tables[i].name, .flags = race_tables[i].flags};
        }
    }
    if (out->count == 0) {
        out->tables[out->count++] = (struct nn_peak_table){.name = "c"};
    }
    for (uint32_t turn = 0; turn < turns; turn++) {
        for (uint32_t i = 0; i < out->count; i++) {
            race_turn(precision, &out->tables[i], clock);
        }
    }
}

double nn_peak_best(const struct nn_peaks *race)
{
    double best = 0.0;
    for (uint32_t i = 0; i < race->count; i++) {
        best = race->tables[i].flops > best ? race->tables[i].flops : best;
    }
    return best;
}

uint32_t nn_peak_winner(const struct nn_peaks *race)
{
    double best = nn_peak_best(race);
    uint32_t winner = race->count - 1;
    while (winner > 0 && race->tables[winner].flops < 0.95 * best) {
        winner--;
    }
    return winner;
}

uint32_t nn_peak_flags(enum nn_precision precision, uint32_t flags, const struct clock *clock,
                       double *peak_flops)
{
    struct nn_peaks race;
    uint32_t chosen = precision == NN_INT8 ? nn_peak_flags(NN_BF16, flags, clock, peak_flops) : 0;
    nn_peak_race(precision, flags, NN_PEAK_TURNS, clock, &race);
    *peak_flops = nn_peak_best(&race);
    return chosen | race.tables[nn_peak_winner(&race)].flags;
}
