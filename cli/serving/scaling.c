/*
 * Advice on scaling while a server runs. One mutex guards what is remembered; the store is asked
 * outside of it.
 */
#include "cli/serving/scaling.h"

#include <pthread.h>
#include <stdlib.h>

struct scaling {
    struct scale_plan plan;
    pthread_mutex_t mutex; /* guards the states */
    struct scale_state states[SCALE_POOLS_MAX];
};

enum status scaling_open(const char *path, struct scaling **out, struct error *error)
{
    struct scaling *scaling = calloc(1, sizeof *scaling);
    TRY(memory_check(scaling, error, "scaling: out of memory"));
    enum status status = scale_plan_load(path, &scaling->plan, error);
    if (status != STATUS_OK) {
        free(scaling);
        return status;
    }
    pthread_mutex_init(&scaling->mutex, NULL);
    *out = scaling;
    return STATUS_OK;
}

void scaling_close(struct scaling *scaling)
{
    if (scaling != NULL) {
        pthread_mutex_destroy(&scaling->mutex);
        free(scaling);
    }
}

enum status scaling_advise(void *context, struct store *store, const char *pool, int64_t now_ms,
                           json_t **out, struct error *error)
{
    struct scaling *scaling = context;
    const struct scale_policy *policy = scale_plan_find(&scaling->plan, pool);
    uint32_t count = 0;
    if (policy == NULL) {
        return error_set(error, STATUS_NOT_FOUND, "scaling: there is no policy for pool \"%s\"",
                         pool);
    }
    if (store->ops->demand == NULL) {
        return error_set(error, STATUS_NOT_FOUND, "scaling: this store does not tell what waits");
    }
    struct store_demand *rows = calloc(STORE_DEMAND_ROWS_MAX, sizeof *rows);
    TRY(memory_check(rows, error, "scaling: out of memory"));
    enum status status = store->ops->demand(store, rows, STORE_DEMAND_ROWS_MAX, &count, error);
    if (status == STATUS_OK) {
        struct scale_facts facts = scale_facts_of(policy, rows, count, now_ms);
        pthread_mutex_lock(&scaling->mutex);
        struct scale_advice advice =
            scale_advise(policy, &facts, &scaling->states[policy - scaling->plan.pools]);
        pthread_mutex_unlock(&scaling->mutex);
        *out = scale_advice_json(policy, &facts, &advice);
        status = memory_check(*out, error, "scaling: out of memory");
    }
    free(rows);
    return status;
}
