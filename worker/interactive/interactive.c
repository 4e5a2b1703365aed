/*
 * The pool's thread, its seats and their deadlines. See interactive.h.
 *
 * Two locks. `lock` guards the seats' list, times and control inputs, and is held for moments only;
 * `world_lock` guards environments and sessions, and is held for a tick. Who takes both takes
 * world_lock first.
 */
#include "worker/interactive/interactive.h"

#include "base/check.h"
#include "base/units.h"
#include "engine/sensors/raster.h"
#include "scheduler/deadline.h"
#include "schemas/rig/rig.h"
#include "worker/env/env_scene.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define RATE_MIN 0.1
#define LIMIT_MIN_MS 1.0
#define LIMIT_MAX_MS 1000.0

struct seat {
    struct interactive *pool;
    uint32_t place;
    struct session *session;
    struct interactive_listener listener;
    int64_t period_ns, limit_ns;
    bool paused;
    int64_t due_ns;       /* moment of the next tick */
    struct action action; /* newest control input */
    struct action driven; /* of the last tick */
};

struct interactive {
    struct swerve_env *env;
    const char *tier;         /* name of the only one */
    struct raster_rays *rays; /* of the windscreen */
    uint8_t *windscreen; /* [WINDSCREEN_HEIGHT][WINDSCREEN_WIDTH][3], of the tick that is told */
    const struct clock *clock;
    uint32_t seat_count;
    pthread_mutex_t world_lock;
    pthread_mutex_t lock;
    pthread_cond_t news;
    pthread_t thread;
    bool running;
    bool stopping;
    struct seat **seats; /* [seat_count], NULL: free */
    struct deadline_pool deadlines;
    struct interactive_counts counts;
};

static int64_t now_ns(const struct interactive *pool)
{
    return clock_now_ns(pool->clock);
}

/* ---- frames ---- */

static void tell(struct seat *seat, struct interactive_frame *frame)
{
    const struct session *session = seat->session;
    frame->scene = session_scene(session);
    frame->cameras = session_cameras(session);
    frame->action = seat->driven;
    if (session_picture(session, seat->pool->rays, seat->pool->windscreen)) {
        frame->windscreen = seat->pool->windscreen;
    }
    frame->end = session_end(session);
    frame->touched = session_touched(session);
    frame->lines = session_lines(session);
    seat->listener.frame(seat->listener.context, frame);
}

/* ---- ticks ---- */

/* The seats as the scheduler sees them; `lock` is held. */
static uint32_t look(const struct interactive *pool, uint32_t *places,
                     struct deadline_session *sessions)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < pool->seat_count; i++) {
        const struct seat *seat = pool->seats[i];
        if (seat == NULL) {
            continue;
        }
        places[count] = i;
        sessions[count++] = (struct deadline_session){
            .period_ns = seat->period_ns,
            .limit_ns = seat->limit_ns,
            .goes_on = !seat->paused,
            .due_ns = seat->due_ns,
            .deadline_ns = seat->due_ns + seat->limit_ns,
        };
    }
    return count;
}

/* Drives and tells one tick of a seat; both locks are held on the way in, world_lock on the way
 * out. False: it cannot go on. */
static bool serve(struct interactive *pool, struct seat *seat, struct interactive_frame *frame)
{
    struct error error;
    int64_t begin_ns = now_ns(pool);
    struct action action = seat->action;
    int64_t due_ns = seat->due_ns;
    pthread_mutex_unlock(&pool->lock);
    enum status status = session_step(seat->session, &action, &error);
    int64_t stepped_ns = now_ns(pool);
    seat->driven = action;
    frame->tier = pool->tier;
    frame->wait_ms = (double)(begin_ns - due_ns) / NS_PER_MS;
    frame->compute_ms = (double)(stepped_ns - begin_ns) / NS_PER_MS;
    frame->slack_ms = (double)(due_ns + seat->limit_ns - stepped_ns) / NS_PER_MS;
    frame->late = frame->slack_ms < 0;
    if (status != STATUS_OK) {
        seat->listener.failed(seat->listener.context, error.text);
        return false;
    }
    tell(seat, frame);
    pthread_mutex_lock(&pool->lock);
    deadline_observe(&pool->deadlines, 0, DEADLINE_CONTEXT, frame->compute_ms);
    deadline_observe(&pool->deadlines, 0, DEADLINE_OVERHEAD,
                     (double)(now_ns(pool) - stepped_ns) / NS_PER_MS);
    deadline_served(&pool->deadlines, stepped_ns, frame->late);
    pool->counts.ticks++;
    pool->counts.lates += frame->late;
    pthread_mutex_unlock(&pool->lock);
    return frame->end == SWERVE_ENV_GOES_ON;
}

/* One tick, of the seat that the scheduler picks; false: none is due. */
static bool serve_one(struct interactive *pool)
{
    uint32_t places[DEADLINE_SESSIONS_MAX];
    struct deadline_session sessions[DEADLINE_SESSIONS_MAX];
    pthread_mutex_lock(&pool->world_lock);
    pthread_mutex_lock(&pool->lock);
    int64_t now = now_ns(pool);
    uint32_t count = look(pool, places, sessions);
    struct deadline_choice choice = deadline_pick(&pool->deadlines, sessions, count, now);
    if (choice.session < 0) {
        pthread_mutex_unlock(&pool->lock);
        pthread_mutex_unlock(&pool->world_lock);
        return false;
    }
    struct seat *seat = pool->seats[places[choice.session]];
    struct interactive_frame frame = {.tier = ""};
    bool goes_on = serve(pool, seat, &frame);
    pthread_mutex_lock(&pool->lock);
    seat->paused = seat->paused || !goes_on;
    seat->due_ns += seat->period_ns;
    /* Ticks that were missed are not made up for. */
    seat->due_ns = seat->due_ns < now_ns(pool) - seat->period_ns ? now_ns(pool) : seat->due_ns;
    pthread_mutex_unlock(&pool->lock);
    pthread_mutex_unlock(&pool->world_lock);
    return true;
}

/* Until a tick is due, or an order comes: nothing of either is missed, since both are looked at
 * under the lock that orders take. */
static void wait_for_news(struct interactive *pool)
{
    pthread_mutex_lock(&pool->lock);
    int64_t left_ns = NS_PER_S;
    for (uint32_t i = 0; i < pool->seat_count; i++) {
        const struct seat *seat = pool->seats[i];
        if (seat != NULL && !seat->paused && seat->due_ns - now_ns(pool) < left_ns) {
            left_ns = seat->due_ns - now_ns(pool);
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

static void *run(void *context)
{
    struct interactive *pool = context;
    while (!is_stopping(pool)) {
        if (!serve_one(pool)) {
            wait_for_news(pool);
        }
    }
    return NULL;
}

/* ---- the pool's life ---- */

static enum status open_env(struct interactive *pool, const struct interactive_options *options,
                            struct error *error)
{
    char text[ERROR_TEXT_BYTES] = "";
    const struct swerve_env_config config = {
        .abi_version = SWERVE_ENV_ABI_VERSION,
        .count = options->seats,
        .wants = SWERVE_ENV_CAMERAS | SWERVE_ENV_HASH,
        .world = options->world,
        .suite = options->suite,
    };
    int number = swerve_env_open(&config, &pool->env, text, sizeof text);
    return number == 0 ? STATUS_OK : error_set(error, (enum status)number, "%s", text);
}

/* Camera of somebody behind the windscreen. */
static enum status open_windscreen(struct interactive *pool, struct error *error)
{
    const double focal = 0.6 * WINDSCREEN_WIDTH; /* 80 degrees from side to side */
    const struct rig_camera camera = {
        .id = "windscreen",
        .width = WINDSCREEN_WIDTH,
        .height = WINDSCREEN_HEIGHT,
        .rate_hz = 10.0,
        .pose = {.x_m = 0.5, .z_m = 1.4},
        .lens = {.model = LENS_PINHOLE,
                 .fx = focal,
                 .fy = focal,
                 .cx = WINDSCREEN_WIDTH / 2.0,
                 .cy = WINDSCREEN_HEIGHT / 2.0,
                 .max_angle_rad = 1.5},
    };
    pool->windscreen = malloc((size_t)WINDSCREEN_WIDTH * WINDSCREEN_HEIGHT * 3);
    TRY(memory_check(pool->windscreen, error, "sessions: out of memory"));
    return raster_rays_create(&camera, CAMERA_FRONT, &pool->rays, error);
}

enum status interactive_open(const struct interactive_options *options, struct interactive **out,
                             struct error *error)
{
    if (options->seats < 1 || options->seats > DEADLINE_SESSIONS_MAX) {
        return error_set(error, STATUS_USAGE, "sessions: expected 1 to %d, found %u",
                         DEADLINE_SESSIONS_MAX, options->seats);
    }
    struct interactive *pool = calloc(1, sizeof *pool);
    TRY(memory_check(pool, error, "sessions: out of memory"));
    pool->clock = options->clock;
    pool->seat_count = options->seats;
    pool->deadlines.tier_count = 1;
    pthread_mutex_init(&pool->world_lock, NULL);
    pthread_mutex_init(&pool->lock, NULL);
    clock_condition_init(&pool->news);
    pool->seats = calloc(options->seats, sizeof(struct seat *));
    enum status status = memory_check(pool->seats, error, "sessions: out of memory");
    THEN(status, open_windscreen(pool, error));
    THEN(status, open_env(pool, options, error));
    if (status == STATUS_OK) {
        pool->tier = strcmp(options->world, "replay") == 0 ? "replay" : "object";
        pool->running = pthread_create(&pool->thread, NULL, run, pool) == 0;
        status = pool->running ? STATUS_OK
                               : error_set(error, STATUS_IO, "sessions: cannot start a thread");
    }
    if (status != STATUS_OK) {
        interactive_close(pool);
        return status;
    }
    *out = pool;
    return STATUS_OK;
}

void interactive_close(struct interactive *pool)
{
    if (pool == NULL) {
        return;
    }
    if (pool->running) {
        pthread_mutex_lock(&pool->lock);
        pool->stopping = true;
        pthread_cond_broadcast(&pool->news);
        pthread_mutex_unlock(&pool->lock);
        pthread_join(pool->thread, NULL);
    }
    for (uint32_t i = 0; pool->seats != NULL && i < pool->seat_count; i++) {
        CHECK(pool->seats[i] == NULL);
    }
    swerve_env_close(pool->env);
    raster_rays_destroy(pool->rays);
    free(pool->windscreen);
    free(pool->seats);
    pthread_cond_destroy(&pool->news);
    pthread_mutex_destroy(&pool->lock);
    pthread_mutex_destroy(&pool->world_lock);
    free(pool);
}

uint32_t interactive_scenarios(const struct interactive *pool)
{
    return swerve_env_scenarios(pool->env);
}

const struct scenario_document *interactive_document(const struct interactive *pool,
                                                     uint32_t scenario)
{
    return env_document(pool->env, scenario);
}

struct interactive_counts interactive_counts(struct interactive *pool)
{
    uint32_t places[DEADLINE_SESSIONS_MAX];
    struct deadline_session sessions[DEADLINE_SESSIONS_MAX];
    pthread_mutex_lock(&pool->lock);
    struct interactive_counts counts = pool->counts;
    counts.seated = look(pool, places, sessions);
    counts.load = deadline_load(&pool->deadlines, sessions, counts.seated, NULL);
    pthread_mutex_unlock(&pool->lock);
    return counts;
}

/* ---- seats ---- */

static enum status check_wish(const struct interactive_wish *wish, struct error *error)
{
    if (!(wish->rate >= RATE_MIN && wish->rate <= 1.0)) {
        return error_set(error, STATUS_BAD_INPUT, "session: expected a rate from %g to 1, found %g",
                         RATE_MIN, wish->rate);
    }
    if (!(wish->limit_ms >= LIMIT_MIN_MS && wish->limit_ms <= LIMIT_MAX_MS)) {
        return error_set(error, STATUS_BAD_INPUT,
                         "session: expected a deadline from %g to %g ms, found %g", LIMIT_MIN_MS,
                         LIMIT_MAX_MS, wish->limit_ms);
    }
    return STATUS_OK;
}

/* Whether one more may sit, and where; `lock` is held. */
static enum status admit(struct interactive *pool, const struct seat *seat, uint32_t *place,
                         struct error *error)
{
    uint32_t places[DEADLINE_SESSIONS_MAX];
    struct deadline_session sessions[DEADLINE_SESSIONS_MAX];
    const struct deadline_session more = {.period_ns = seat->period_ns, .limit_ns = seat->limit_ns};
    uint32_t count = look(pool, places, sessions);
    const char *refusal = count >= pool->seat_count
                              ? "every seat is taken"
                              : deadline_refusal(&pool->deadlines, sessions, count, &more);
    if (refusal != NULL) {
        pool->counts.refused++;
        return error_set(error, STATUS_BUSY, "session: %s", refusal);
    }
    *place = 0;
    while (pool->seats[*place] != NULL) {
        (*place)++;
    }
    return STATUS_OK;
}

enum status interactive_sit(struct interactive *pool, const struct interactive_wish *wish,
                            const struct interactive_listener *listener, struct seat **out,
                            struct error *error)
{
    TRY(check_wish(wish, error));
    struct seat *seat = calloc(1, sizeof *seat);
    TRY(memory_check(seat, error, "session: out of memory"));
    seat->pool = pool;
    seat->listener = *listener;
    seat->paused = true;
    seat->period_ns = (int64_t)((double)TICK_NS / wish->rate);
    seat->limit_ns = (int64_t)(wish->limit_ms * NS_PER_MS);
    pthread_mutex_lock(&pool->world_lock);
    pthread_mutex_lock(&pool->lock);
    enum status status = admit(pool, seat, &seat->place, error);
    pthread_mutex_unlock(&pool->lock);
    THEN(status,
         session_create(pool->env, seat->place, wish->scenario, wish->seed, &seat->session, error));
    if (status == STATUS_OK) {
        struct interactive_frame frame = {.tier = "", .paused = true};
        pthread_mutex_lock(&pool->lock);
        pool->seats[seat->place] = seat;
        pool->counts.sessions++;
        pthread_mutex_unlock(&pool->lock);
        tell(seat, &frame);
        *out = seat;
    } else {
        free(seat);
    }
    pthread_mutex_unlock(&pool->world_lock);
    return status;
}

void interactive_leave(struct seat *seat)
{
    if (seat == NULL) {
        return;
    }
    struct interactive *pool = seat->pool;
    pthread_mutex_lock(&pool->world_lock);
    pthread_mutex_lock(&pool->lock);
    pool->seats[seat->place] = NULL;
    bool empty = true;
    for (uint32_t i = 0; i < pool->seat_count; i++) {
        empty = empty && pool->seats[i] == NULL;
    }
    if (empty) {
        deadline_forget(&pool->deadlines);
    }
    pthread_mutex_unlock(&pool->lock);
    session_destroy(seat->session);
    pthread_mutex_unlock(&pool->world_lock);
    free(seat);
}

/* ---- orders ---- */

void interactive_act(struct seat *seat, struct action action)
{
    pthread_mutex_lock(&seat->pool->lock);
    seat->action = action;
    pthread_mutex_unlock(&seat->pool->lock);
}

void interactive_pause(struct seat *seat, bool paused)
{
    struct interactive *pool = seat->pool;
    struct interactive_frame frame = {.tier = "", .paused = paused};
    pthread_mutex_lock(&pool->world_lock);
    pthread_mutex_lock(&pool->lock);
    bool ended = session_end(seat->session) != SWERVE_ENV_GOES_ON;
    if (seat->paused && !paused) {
        seat->due_ns = now_ns(pool);
    }
    seat->paused = paused || ended;
    frame.paused = seat->paused;
    pthread_cond_signal(&pool->news);
    pthread_mutex_unlock(&pool->lock);
    tell(seat, &frame);
    pthread_mutex_unlock(&pool->world_lock);
}

enum status interactive_back(struct seat *seat, uint32_t ticks, bool keep, struct error *error)
{
    struct interactive *pool = seat->pool;
    struct interactive_frame frame = {.tier = "", .paused = true};
    pthread_mutex_lock(&pool->world_lock);
    pthread_mutex_lock(&pool->lock);
    seat->paused = true;
    seat->action = (struct action){0};
    seat->driven = (struct action){0};
    pthread_mutex_unlock(&pool->lock);
    enum status status = session_back(seat->session, ticks, keep, error);
    if (status == STATUS_OK) {
        tell(seat, &frame);
    }
    pthread_mutex_unlock(&pool->world_lock);
    return status;
}

enum status interactive_outcome(struct seat *seat, char json[SWERVE_ENV_OUTCOME_BYTES],
                                struct error *error)
{
    pthread_mutex_lock(&seat->pool->world_lock);
    enum status status = session_outcome(seat->session, json, error);
    pthread_mutex_unlock(&seat->pool->world_lock);
    return status;
}

enum status interactive_scenario(struct seat *seat, const char *id, char **text,
                                 struct error *error)
{
    pthread_mutex_lock(&seat->pool->world_lock);
    enum status status = session_scenario(seat->session, id, text, error);
    pthread_mutex_unlock(&seat->pool->world_lock);
    return status;
}
