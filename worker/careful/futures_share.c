/*
 * P(fail) of futures. See futures_share.h.
 */
#include "worker/careful/futures_share.h"

struct forecast_share futures_share_of(const struct futures *futures, enum traffic_model model)
{
    return forecast_share_of(futures->models[model].passed, futures->models[model].failed);
}

struct forecast_share futures_share_over(const struct futures *futures, uint32_t models)
{
    struct forecast_share shares[TRAFFIC_MODEL_COUNT];
    uint32_t count = 0;
    for (int m = 0; m < TRAFFIC_MODEL_COUNT; m++) {
        if ((models >> m & 1) != 0 && futures_have(futures, (enum traffic_model)m)) {
            shares[count++] = futures_share_of(futures, (enum traffic_model)m);
        }
    }
    return forecast_share_over(shares, count);
}
