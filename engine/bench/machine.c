/*
 * Passes on what the kernels found out about the processor.
 */
#include "engine/bench/machine.h"

#include "base/clock.h"
#include "kernels/cpu.h"
#include "kernels/nn_peak.h"

#include <stdio.h>

enum { PEAK_TURNS = 100 };

struct machine_choice machine_choose(enum nn_precision precision)
{
    struct machine_choice choice;
    choice.cpu_flags =
        nn_peak_flags(precision, cpu_flags_detect(), clock_system(), &choice.peak_flops);
    return choice;
}

uint32_t machine_cpu_flags(enum nn_precision precision)
{
    return machine_choose(precision).cpu_flags;
}

double machine_peak_flops(enum nn_precision precision)
{
    struct nn_peaks race;
    nn_peak_race(precision, cpu_flags_detect(), PEAK_TURNS, clock_system(), &race);
    return nn_peak_best(&race);
}

void machine_describe(char *text, size_t text_bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (int p = 0; p < NN_PRECISION_COUNT; p++) {
        struct nn_peaks race;
        nn_peak_race((enum nn_precision)p, cpu_flags_detect(), NN_PEAK_TURNS, clock_system(),
                     &race);
        const uint32_t winner = nn_peak_winner(&race);
        for (uint32_t i = 0; i <= race.count && used < text_bytes; i++) {
            /* The winner, then the others. */
            const uint32_t at = i == 0 ? winner : i - 1;
            if (i > 0 && at == winner) {
                continue;
            }
            const char *mark = i > 0 ? ", not" : p > 0 ? "; " : "";
            int length = snprintf(text + used, text_bytes - used, "%s%s %s %.0f", mark,
                                  i == 0 ? nn_precision_names[p] : "", race.tables[at].name,
                                  race.tables[at].flops * 1e-9);
            used += length > 0 ? (size_t)length : 0;
        }
    }
    if (used < text_bytes) {
        snprintf(text + used, text_bytes - used, " GFLOP/s of a core");
    }
}
