/*
 * Progress. See progress.h.
 */
#include "store/api/progress.h"

#include "base/units.h"

#include <math.h>
#include <stdio.h>

/* Rest of a part; negative: not known. */
static double left_ns(const struct progress_part *part)
{
    int64_t ended = part->ticks - part->ticks_open;
    int64_t open = part->ticks_open - part->ticks_running;
    if (part->jobs_open == 0) {
        return 0.0;
    }
    if (part->ticks_open <= 0) {
        return -1.0; /* its scenarios do not say */
    }
    if (ended > 0 && part->wall_ns > 0) {
        return (double)open * ((double)part->wall_ns / (double)ended);
    }
    if (part->other_ticks > 0 && part->other_wall_ns > 0) {
        return (double)open * ((double)part->other_wall_ns / (double)part->other_ticks);
    }
    if (part->ticks_running > 0 && part->running_ns > 0) {
        return (double)open * ((double)part->running_ns / (double)part->ticks_running);
    }
    return -1.0;
}

int64_t progress_eta_ms(const struct progress_part *parts, uint32_t count)
{
    double longest_ns = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        double pool_ns = 0.0;
        for (uint32_t j = 0; j < count; j++) {
            if (parts[j].pool == parts[i].pool) {
                double part_ns = left_ns(&parts[j]);
                if (part_ns < 0.0) {
                    return -1;
                }
                pool_ns += part_ns;
            }
        }
        longest_ns = pool_ns > longest_ns ? pool_ns : longest_ns;
    }
    double ms = longest_ns / (double)NS_PER_MS;
    return ms < 1e15 ? (int64_t)ms : (int64_t)1e15;
}

double progress_share(const struct store_suite_status *status)
{
    double behind = (double)status->ticks_ended + (double)status->ticks_running;
    return status->ticks_planned > 0 ? fmin(1.0, behind / (double)status->ticks_planned)
                                     : (double)NAN;
}

const char *progress_bar_text(const struct store_suite_status *status, char out[PROGRESS_BAR_BYTES])
{
    static const char full[] = "####################";
    static const char empty[] = "....................";
    double share = progress_share(status);
    out[0] = '\0';
    if (!isnan(share)) {
        int done = (int)(share * (double)(sizeof full - 1));
        snprintf(out, PROGRESS_BAR_BYTES, "[%.*s%.*s] %3d%% of ticks", done, full,
                 (int)(sizeof empty - 1) - done, empty, (int)(share * 100.0));
    }
    return out;
}

const char *progress_eta_text(int64_t eta_ms, char out[PROGRESS_TEXT_BYTES])
{
    double s = (double)eta_ms / 1e3;
    if (eta_ms < 0) {
        snprintf(out, PROGRESS_TEXT_BYTES, "?");
    } else if (s < 100.0) {
        snprintf(out, PROGRESS_TEXT_BYTES, "%lld s", (long long)((eta_ms + 999) / 1000));
    } else if (s < 6000.0) {
        snprintf(out, PROGRESS_TEXT_BYTES, "%.0f min", s / 60.0);
    } else {
        snprintf(out, PROGRESS_TEXT_BYTES, "%.1f h", s / 3600.0);
    }
    return out;
}

const char *progress_rates_text(const struct store_suite_status *status,
                                char out[PROGRESS_RATES_BYTES])
{
    size_t used = 0;
    out[0] = '\0';
    for (int tier = 0; tier < TIER_COUNT && used < PROGRESS_RATES_BYTES; tier++) {
        const struct store_mains *mains = &status->mains[tier];
        if (mains->scenarios > 0) {
            used += (size_t)snprintf(out + used, PROGRESS_RATES_BYTES - used, "  %s %.0f%% pass",
                                     tier_names[tier], 100 * mains->rate);
        }
    }
    return out;
}
