/*
 * The pool's thread: whose tick is next and by which tier, its costs, and what they are measured by
 * while nobody sits. See interactive_internal.h.
 */
#include "worker/interactive/interactive_internal.h"

#include "base/check.h"
#include "base/units.h"

#include <math.h>

/* ---- frames ---- */

void interactive_tell(struct seat *seat, struct interactive_frame *frame)
{
    const struct session *session = seat->session;
    frame->scene = session_scene(session);
    frame->cameras = session_cameras(session);
    frame->action = seat->driven;
    if (!seat->plain && session_picture(session, seat->pool->rays, seat->pool->windscreen)) {
        frame->windscreen = seat->pool->windscreen;
    }
    frame->end = session_end(session);
    frame->touched = session_touched(session);
    frame->lines = session_lines(session);
    seat->listener.frame(seat->listener.context, frame);
}

/* ---- ticks ---- */

uint32_t interactive_look(const struct interactive *pool, uint32_t *places,
                          struct deadline_session *sessions)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < pool->place_count; i++) {
        const struct seat *seat = pool->seats[i];
        if (seat == NULL || seat->leaving) {
            continue;
        }
        places[count] = i;
        sessions[count++] = (struct deadline_session){
            .period_ns = seat->period_ns,
            .limit_ns = seat->limit_ns,
            .least = seat->least,
            .goes_on = !seat->paused,
            .due_ns = seat->due_ns,
            .deadline_ns = seat->due_ns + seat->limit_ns,
        };
    }
    return count;
}

/* Time that passed in a tick, and in each step of a sampler. */
struct spent {
    double compute_ms;
    double step_ms;
    uint64_t steps;
};

/* One tick of a session, by a tier; world_lock is held. */
static enum status step(const struct interactive *pool, struct session *session,
                        const struct action *action, uint32_t tier, struct spent *spent,
                        struct error *error)
{
    struct world_cost before = env_cost(pool->env);
    int64_t begin_ns = interactive_now_ns(pool);
    TRY(session_step(session, action, pool->skips[tier], error));
    spent->compute_ms = (double)(interactive_now_ns(pool) - begin_ns) / NS_PER_MS;
    struct world_cost after = env_cost(pool->env);
    spent->steps = after.steps - before.steps;
    spent->step_ms = spent->steps > 0 ? (double)(after.steps_ns - before.steps_ns) / NS_PER_MS /
                                            (double)spent->steps
                                      : 0.0;
    return STATUS_OK;
}

/* `lock` is held. */
static void observe(struct interactive *pool, uint32_t tier, const struct spent *spent)
{
    uint32_t costs = pool->deadlines.tiers[tier].costs;
    if (!pool->measures) {
        return;
    }
    for (uint64_t i = 0; i < spent->steps; i++) {
        deadline_observe(&pool->deadlines, costs, DEADLINE_STEP, spent->step_ms);
    }
    deadline_observe(&pool->deadlines, costs, DEADLINE_CONTEXT,
                     fmax(0.0, spent->compute_ms - spent->step_ms * (double)spent->steps));
}

static void count_tick(struct tick_tier *ticks, const struct interactive_frame *frame,
                       double overhead_ms)
{
    const double values_ms[TICK_PARTS] = {frame->wait_ms, frame->compute_ms, overhead_ms,
                                          frame->slack_ms};
    ticks->ticks++;
    ticks->lates += frame->late;
    for (int part = 0; part < TICK_PARTS; part++) {
        tick_histogram_add(&ticks->parts[part], values_ms[part]);
    }
}

/* Accounts for a tick that was told. */
static void account(struct interactive *pool, struct seat *seat, uint32_t tier,
                    const struct spent *spent, const struct interactive_frame *frame,
                    int64_t stepped_ns)
{
    pthread_mutex_lock(&pool->lock);
    double overhead_ms = (double)(interactive_now_ns(pool) - stepped_ns) / NS_PER_MS;
    observe(pool, tier, spent);
    if (pool->measures) {
        deadline_observe(&pool->deadlines, pool->deadlines.tiers[tier].costs, DEADLINE_OVERHEAD,
                         overhead_ms);
    }
    deadline_served(&pool->deadlines, stepped_ns, frame->late);
    pool->counts.ticks++;
    pool->counts.lates += frame->late;
    count_tick(&pool->ticks[tier], frame, overhead_ms);
    count_tick(&seat->ticks[tier], frame, overhead_ms);
    pthread_mutex_unlock(&pool->lock);
}

/* Hash of the model that makes a tier's frames; "": none does. */
static const char *maker_of(const struct interactive *pool, uint32_t tier)
{
    return pool->ticks[tier].steps == 0                 ? ""
           : pool->makers[tier] == INTERACTIVE_PREVIOUS ? pool->previous->hash
                                                        : pool->model->hash;
}

/* Drives and tells one tick of a seat by a tier; both locks are held on the way in, world_lock on
 * the way out. False: it cannot go on. */
static bool serve(struct interactive *pool, struct seat *seat, uint32_t tier,
                  struct interactive_frame *frame)
{
    struct error error;
    struct spent spent;
    int64_t begin_ns = interactive_now_ns(pool);
    struct action action = seat->action;
    int64_t due_ns = seat->due_ns;
    pthread_mutex_unlock(&pool->lock);
    enum status status = step(pool, seat->session, &action, tier, &spent, &error);
    if (status != STATUS_OK) {
        seat->listener.failed(seat->listener.context, error.text);
        return false;
    }
    int64_t stepped_ns = interactive_now_ns(pool);
    seat->driven = action;
    frame->tier = pool->ticks[tier].tier;
    frame->steps = pool->ticks[tier].steps;
    frame->model = maker_of(pool, tier);
    frame->backend = pool->backend;
    frame->limit_ms = (double)seat->limit_ns / NS_PER_MS;
    frame->wait_ms = (double)(begin_ns - due_ns) / NS_PER_MS;
    frame->compute_ms = (double)(stepped_ns - begin_ns) / NS_PER_MS;
    frame->slack_ms = (double)(due_ns + seat->limit_ns - stepped_ns) / NS_PER_MS;
    frame->late = frame->slack_ms < 0;
    interactive_tell(seat, frame);
    const char *unkept = session_unkept(seat->session);
    if (unkept != NULL) {
        pthread_mutex_lock(&pool->lock);
        seat->unkept = true;
        pthread_mutex_unlock(&pool->lock);
        seat->listener.failed(seat->listener.context, unkept);
    }
    account(pool, seat, tier, &spent, frame, stepped_ns);
    return frame->end == SWERVE_ENV_GOES_ON;
}

/* One tick, of the seat that the scheduler picks; false: none is due. */
static bool serve_one(struct interactive *pool)
{
    uint32_t places[DEADLINE_SESSIONS_MAX];
    struct deadline_session sessions[DEADLINE_SESSIONS_MAX];
    pthread_mutex_lock(&pool->world_lock);
    pthread_mutex_lock(&pool->lock);
    int64_t now = interactive_now_ns(pool);
    uint32_t count = interactive_look(pool, places, sessions);
    struct deadline_choice choice = deadline_pick(&pool->deadlines, sessions, count, now);
    if (choice.session < 0) {
        pthread_mutex_unlock(&pool->lock);
        pthread_mutex_unlock(&pool->world_lock);
        return false;
    }
    struct seat *seat = pool->seats[places[choice.session]];
    struct interactive_frame frame = {.tier = "", .model = "", .backend = ""};
    bool goes_on = serve(pool, seat, choice.tier, &frame);
    pthread_mutex_lock(&pool->lock);
    seat->paused = seat->paused || !goes_on;
    seat->due_ns += seat->period_ns;
    /* Ticks that were missed are not made up for. */
    seat->due_ns = seat->due_ns < interactive_now_ns(pool) - seat->period_ns
                       ? interactive_now_ns(pool)
                       : seat->due_ns;
    pthread_mutex_unlock(&pool->lock);
    pthread_mutex_unlock(&pool->world_lock);
    return true;
}

/* ---- ways back ---- */

/* The tier that leaves out so many steps: that by which the tick was made. One that another server
 * had, of a kept session, counts as the dearest. */
static uint32_t tier_of(const struct interactive *pool, uint32_t skipped)
{
    for (uint32_t tier = 0; tier < pool->deadlines.tier_count; tier++) {
        if (pool->skips[tier] == skipped) {
            return tier;
        }
    }
    return 0;
}

/* A seat whose session has a tick to drive on its way back, and room for it now; NULL: none. Those
 * that are there are told so. Both locks are held. */
static struct seat *next_back(struct interactive *pool)
{
    uint32_t places[DEADLINE_SESSIONS_MAX];
    struct deadline_session sessions[DEADLINE_SESSIONS_MAX];
    int64_t now_ns = interactive_now_ns(pool);
    uint32_t count = interactive_look(pool, places, sessions);
    pool->asked = false;
    for (uint32_t i = 0; i < count; i++) {
        struct seat *seat = pool->seats[places[i]];
        if (!seat->returning) {
            continue;
        }
        if (session_returning(seat->session) == 0) {
            seat->returning = false;
            seat->return_status = STATUS_OK;
            pthread_cond_broadcast(&pool->returned);
            continue;
        }
        uint32_t tier = session_retraces(seat->session)
                            ? pool->deadlines.tier_count - 1
                            : tier_of(pool, session_return_skips(seat->session));
        if (now_ns >= seat->patience_ns ||
            deadline_room(&pool->deadlines, sessions, count, tier, now_ns)) {
            return seat;
        }
    }
    return NULL;
}

/* One tick of a session's way back; false: there is none to drive, or no room for it now. */
static bool return_one(struct interactive *pool)
{
    pthread_mutex_lock(&pool->world_lock);
    pthread_mutex_lock(&pool->lock);
    struct seat *seat = next_back(pool);
    pthread_mutex_unlock(&pool->lock);
    if (seat != NULL) {
        struct error error;
        enum status status = session_return(seat->session, &error);
        pthread_mutex_lock(&pool->lock);
        seat->patience_ns = interactive_now_ns(pool) + INTERACTIVE_PATIENCE_NS;
        if (status != STATUS_OK) {
            seat->returning = false;
            seat->return_status = status;
            seat->return_error = error;
            pthread_cond_broadcast(&pool->returned);
        }
        pthread_mutex_unlock(&pool->lock);
    }
    pthread_mutex_unlock(&pool->world_lock);
    return seat != NULL;
}

/* ---- costs, while nobody sits ---- */

int32_t interactive_unknown_tier(const struct interactive *pool)
{
    const struct deadline_pool *deadlines = &pool->deadlines;
    for (uint32_t i = 0; i < deadlines->tier_count; i++) {
        const struct deadline_cost *costs = deadlines->costs[deadlines->tiers[i].costs];
        if (costs[DEADLINE_CONTEXT].count < DEADLINE_KNOWN) {
            return (int32_t)i;
        }
    }
    return -1;
}

bool interactive_is_empty(const struct interactive *pool)
{
    for (uint32_t i = 0; i < pool->place_count; i++) {
        if (pool->seats[i] != NULL) {
            return false;
        }
    }
    return true;
}

/* A tick of a drive of its own, in the first place, which is free. False: there is nothing to
 * measure, or it fails: then whoever sits down is told why. */
static bool measure_one(struct interactive *pool)
{
    struct error error;
    struct spent spent;
    const struct action straight_on = {0};
    int32_t tier = -1;
    enum status status = STATUS_OK;
    pthread_mutex_lock(&pool->world_lock);
    pthread_mutex_lock(&pool->lock);
    if (pool->measures && pool->model != NULL && interactive_is_empty(pool)) {
        tier = interactive_unknown_tier(pool);
    }
    pthread_mutex_unlock(&pool->lock);
    if (tier >= 0 && (pool->trial == NULL || session_end(pool->trial) != SWERVE_ENV_GOES_ON)) {
        session_destroy(pool->trial);
        pool->trial = NULL;
        status = session_create(pool->env, 0, 0, 0, &pool->trial, &error);
    }
    if (tier >= 0) {
        THEN(status, step(pool, pool->trial, &straight_on, (uint32_t)tier, &spent, &error));
    }
    bool measured = tier >= 0 && status == STATUS_OK;
    if (measured) {
        pthread_mutex_lock(&pool->lock);
        observe(pool, (uint32_t)tier, &spent);
        pthread_mutex_unlock(&pool->lock);
    }
    pthread_mutex_unlock(&pool->world_lock);
    return measured;
}

/* Until a tick is due, or an order comes: nothing of either is missed, since both are looked at
 * under the lock that orders take. */
static void wait_for_news(struct interactive *pool)
{
    pthread_mutex_lock(&pool->lock);
    int64_t left_ns = pool->asked ? 0 : NS_PER_S;
    for (uint32_t i = 0; i < pool->place_count; i++) {
        const struct seat *seat = pool->seats[i];
        if (seat == NULL || seat->leaving || (seat->paused && !seat->returning)) {
            continue;
        }
        int64_t moment_ns = seat->returning ? seat->patience_ns : seat->due_ns;
        if (moment_ns - interactive_now_ns(pool) < left_ns) {
            left_ns = moment_ns - interactive_now_ns(pool);
        }
    }
    if (!pool->stopping && left_ns > 0) {
        const struct timespec moment = clock_moment_in(left_ns);
        pthread_cond_timedwait(&pool->news, &pool->lock, &moment);
    }
    pthread_mutex_unlock(&pool->lock);
}

static bool is_stopping(struct interactive *pool)
{
    pthread_mutex_lock(&pool->lock);
    bool stopping = pool->stopping;
    pthread_mutex_unlock(&pool->lock);
    return stopping;
}

void *interactive_run(void *context)
{
    struct interactive *pool = context;
    while (!is_stopping(pool)) {
        if (!return_one(pool) && !serve_one(pool) && !measure_one(pool)) {
            wait_for_news(pool);
        }
    }
    return NULL;
}
