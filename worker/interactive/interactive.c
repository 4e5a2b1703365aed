/*
 * The pool's life, its seats and what they are told to do. See interactive.h; what goes on by
 * itself is in interactive_thread.c.
 */
#include "worker/interactive/interactive_internal.h"

#include "base/check.h"
#include "base/units.h"
#include "schemas/rig/rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RATE_MIN 0.1
#define LIMIT_MIN_MS 1.0
#define LIMIT_MAX_MS 1000.0
#define KEEP_BYTES (UINT64_C(1) << 30)

/* ---- the pool's life ---- */

static enum status open_env(struct interactive *pool, const struct interactive_options *options,
                            struct error *error)
{
    char text[ERROR_TEXT_BYTES] = "";
    const struct swerve_env_config config = {
        .abi_version = SWERVE_ENV_ABI_VERSION,
        .count = pool->place_count,
        .wants = SWERVE_ENV_CAMERAS | SWERVE_ENV_HASH,
        .world = options->world,
        .suite = options->suite,
    };
    if (options->model != NULL) {
        const struct env_learned learned = {options->model, options->conditioning, options->threads,
                                            options->previous, options->device};
        return env_open_learned(&config, &learned, &pool->env, error);
    }
    int number = swerve_env_open(&config, &pool->env, text, sizeof text);
    return number == 0 ? STATUS_OK : error_set(error, (enum status)number, "%s", text);
}

/* ---- tiers ---- */

static uint32_t steps_of(const struct models_model *model)
{
    return model != NULL ? model->config->steps : 0;
}

static void add_tier(struct interactive *pool, const char *name, struct interactive_way way)
{
    struct deadline_pool *deadlines = &pool->deadlines;
    uint32_t tier = deadlines->tier_count++;
    struct tick_tier *ticks = &pool->ticks[tier];
    bool drawn = pool->model != NULL && way.steps == 0;
    uint32_t maker = drawn          ? INTERACTIVE_DRAWN
                     : way.previous ? INTERACTIVE_PREVIOUS
                                    : INTERACTIVE_GENERATED;
    snprintf(ticks->tier, sizeof ticks->tier, "%s",
             drawn          ? "drawn"
             : way.previous ? "previous"
                            : name);
    ticks->steps = way.steps;
    pool->skips[tier] = way.previous ? model_skips_to_previous(pool->model->model,
                                                               steps_of(pool->previous) - way.steps)
                                     : steps_of(pool->model) - way.steps;
    pool->makers[tier] = (uint8_t)maker;
    deadlines->tiers[tier] = pool->backend[0] != '\0' ? (struct deadline_tier){tier, 0}
                                                      : (struct deadline_tier){maker, way.steps};
}

/* Place of a way among all: the better, the higher; drawn 0. UINT32_MAX: there is no such way. */
static uint32_t rank_of(const struct interactive *pool, struct interactive_way way)
{
    const struct models_model *maker = way.previous ? pool->previous : pool->model;
    if (way.steps > steps_of(maker) || (way.previous && way.steps == 0)) {
        return UINT32_MAX;
    }
    return way.previous || way.steps == 0 ? way.steps : way.steps + steps_of(pool->previous);
}

static enum status add_ways(struct interactive *pool, const struct interactive_options *options,
                            struct error *error)
{
    uint32_t last = UINT32_MAX;
    bool drawable = conditioning_of_network(options->conditioning) == CONDITIONING_AGENTS;
    uint32_t fewest = drawable ? 0 : 1;
    for (uint32_t i = 0; i < options->way_count; i++) {
        uint32_t rank = rank_of(pool, options->ways[i]);
        if (rank >= last || rank < fewest) {
            return error_set(error, STATUS_USAGE,
                             "sessions: expected steps of the sampler that fall, from %u to %u, of "
                             "the previous model from %u to 1 before drawn ones, found %u%s",
                             steps_of(pool->model), fewest, steps_of(pool->previous),
                             options->ways[i].steps,
                             options->ways[i].previous ? " of the previous model" : "");
        }
        last = rank;
        add_tier(pool, options->world, options->ways[i]);
    }
    return STATUS_OK;
}

/* All steps, half as many, .., one; with room for a way below. */
static void add_halves(struct interactive *pool, const char *name, bool previous)
{
    uint32_t steps = steps_of(previous ? pool->previous : pool->model);
    for (; steps > 0 && pool->deadlines.tier_count + 1 < DEADLINE_TIERS_MAX; steps /= 2) {
        add_tier(pool, name, (struct interactive_way){previous, steps});
    }
}

static enum status open_tiers(struct interactive *pool, const struct interactive_options *options,
                              struct error *error)
{
    pool->model = options->model;
    pool->previous = options->previous;
    if (options->device != NULL && options->device->ops != NULL) {
        snprintf(pool->backend, sizeof pool->backend, "%s", options->device->backend);
    }
    if (options->model == NULL) {
        add_tier(pool, strcmp(options->world, "replay") == 0 ? "replay" : "object",
                 (struct interactive_way){.steps = 0});
    } else if (options->way_count > 0) {
        TRY(add_ways(pool, options, error));
    } else {
        add_halves(pool, options->world, false);
        add_halves(pool, options->world, true);
        if (conditioning_of_network(options->conditioning) == CONDITIONING_AGENTS) {
            add_tier(pool, options->world, (struct interactive_way){.steps = 0});
        }
    }
    pool->measures = options->planted_ms == NULL;
    for (int i = 0; i < INTERACTIVE_MODELS * DEADLINE_PARTS * DEADLINE_KNOWN && !pool->measures;
         i++) {
        int model = i % INTERACTIVE_MODELS;
        int part = i / INTERACTIVE_MODELS % DEADLINE_PARTS;
        deadline_observe(&pool->deadlines, (uint32_t)model, (enum deadline_part)part,
                         options->planted_ms[model][part]);
    }
    return STATUS_OK;
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
    pool->conditioning = options->conditioning;
    pool->judged_count = options->judged_count;
    pool->judged = options->judged;
    snprintf(pool->world, sizeof pool->world, "%s", options->world);
    snprintf(pool->keep, sizeof pool->keep, "%s", options->keep != NULL ? options->keep : "");
    pool->keep_bytes = options->keep_bytes != 0 ? options->keep_bytes : KEEP_BYTES;
    pool->seat_count = options->seats;
    pool->place_count = options->seats + 1;
    pthread_mutex_init(&pool->world_lock, NULL);
    pthread_mutex_init(&pool->lock, NULL);
    clock_condition_init(&pool->news);
    clock_condition_init(&pool->returned);
    pool->seats = calloc(pool->place_count, sizeof(struct seat *));
    enum status status = memory_check(pool->seats, error, "sessions: out of memory");
    THEN(status, open_tiers(pool, options, error));
    THEN(status, open_windscreen(pool, error));
    THEN(status, open_env(pool, options, error));
    if (status == STATUS_OK) {
        pool->running = pthread_create(&pool->thread, NULL, interactive_run, pool) == 0;
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
    for (uint32_t i = 0; pool->seats != NULL && i < pool->place_count; i++) {
        CHECK(pool->seats[i] == NULL);
    }
    session_destroy(pool->trial);
    swerve_env_close(pool->env);
    raster_rays_destroy(pool->rays);
    free(pool->windscreen);
    free(pool->seats);
    pthread_cond_destroy(&pool->news);
    pthread_cond_destroy(&pool->returned);
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

/* Room for sessions that ask for nothing, beside `count` others; sessions [seat_count] takes them
 * in; `lock` is held. */
static uint32_t room_beside(const struct interactive *pool, struct deadline_session *sessions,
                            uint32_t count)
{
    uint32_t all = count;
    const struct deadline_session plain = {
        .period_ns = (int64_t)((double)TICK_NS / INTERACTIVE_RATE),
        .limit_ns = (int64_t)(INTERACTIVE_LIMIT_MS * NS_PER_MS),
        .least = pool->deadlines.tier_count - 1,
    };
    while (all < pool->seat_count &&
           deadline_refusal(&pool->deadlines, sessions, all, &plain) == DEADLINE_LET_IN) {
        sessions[all++] = plain;
    }
    return all - count;
}

struct interactive_counts interactive_counts(struct interactive *pool)
{
    uint32_t places[DEADLINE_SESSIONS_MAX];
    struct deadline_session sessions[DEADLINE_SESSIONS_MAX];
    pthread_mutex_lock(&pool->lock);
    struct interactive_counts counts = pool->counts;
    counts.seated = interactive_look(pool, places, sessions);
    counts.known = interactive_unknown_tier(pool) < 0;
    counts.load = deadline_load(&pool->deadlines, sessions, counts.seated, NULL);
    counts.room = room_beside(pool, sessions, counts.seated);
    pthread_mutex_unlock(&pool->lock);
    return counts;
}

uint32_t interactive_ticks(struct interactive *pool, const struct seat *seat,
                           struct tick_tier out[DEADLINE_TIERS_MAX])
{
    uint32_t count = pool->deadlines.tier_count;
    pthread_mutex_lock(&pool->lock);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = seat != NULL ? seat->ticks[i] : pool->ticks[i];
        memcpy(out[i].tier, pool->ticks[i].tier, sizeof out[i].tier);
        out[i].steps = pool->ticks[i].steps;
    }
    pthread_mutex_unlock(&pool->lock);
    return count;
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

/* The lowest tier that takes so many steps. */
static enum status find_least(const struct interactive *pool, uint32_t steps, bool alone,
                              uint32_t *out, struct error *error)
{
    const struct tick_tier *best = &pool->ticks[0];
    if (steps > best->steps) {
        return error_set(error, STATUS_BAD_INPUT,
                         "session: expected at most the best tier's %u steps of a sampler at the "
                         "least, found %u",
                         best->steps, steps);
    }
    *out = pool->deadlines.tier_count - 1;
    while (pool->ticks[*out].steps < steps ||
           (alone && pool->makers[*out] != INTERACTIVE_GENERATED)) {
        if (*out == 0) {
            return error_set(error, STATUS_BAD_INPUT,
                             "session: expected tiers of the model's own, which is asked for "
                             "alone, found none");
        }
        (*out)--;
    }
    return STATUS_OK;
}

/* Refuses since all sessions would need too much: how much, what a tick takes, and the fastest rate
 * at which there is room. */
static enum status refuse_laden(const struct deadline_pool *deadlines,
                                const struct deadline_session *sessions, uint32_t count,
                                const struct deadline_session *more, struct error *error)
{
    char way[96] = "nor is there at a lower rate; ask again when somebody has left";
    double others = deadline_load(deadlines, sessions, count, NULL);
    double all = deadline_load(deadlines, sessions, count, more);
    double rate =
        (DEADLINE_LOAD_MAX - others) / (all - others) * (double)TICK_NS / (double)more->period_ns;
    if (rate >= RATE_MIN + 0.01) {
        snprintf(way, sizeof way, "at a rate of %.2f there is", floor(100.0 * rate) / 100.0);
    }
    return error_set(
        error, STATUS_BUSY,
        "session: no room in this server's time: %u other%s and this one would take "
        "%.0f%% of it, expected at most %.0f%%; a tick takes %.1f ms, with %.1f ms "
        "to draw and send its pictures (95th percentiles); %s",
        count, count == 1 ? "" : "s", 100.0 * all, 100.0 * DEADLINE_LOAD_MAX,
        deadline_cost_ms(deadlines, more->least),
        deadlines->costs[deadlines->tiers[more->least].costs][DEADLINE_OVERHEAD].p95_ms, way);
}

static enum status refuse(const struct interactive *pool, enum deadline_refusal refusal,
                          const struct deadline_session *sessions, uint32_t count,
                          const struct deadline_session *more, struct error *error)
{
    const struct deadline_pool *deadlines = &pool->deadlines;
    switch (refusal) {
    case DEADLINE_SLOW:
        return error_set(error, STATUS_BUSY,
                         "session: a tick of what it accepts takes %.1f ms here (95th percentile), "
                         "longer than its deadline of %.1f ms; ask for a longer one%s",
                         deadline_cost_ms(deadlines, more->least),
                         (double)more->limit_ns / NS_PER_MS,
                         more->least + 1 < deadlines->tier_count ? ", or accept fewer steps" : "");
    case DEADLINE_LATE:
        return error_set(error, STATUS_BUSY,
                         "session: more than one tick in a hundred was late in the last minute; "
                         "ask again when %d in a row were on time, %u were so far",
                         DEADLINE_GOOD_TICKS, deadlines->good_ticks);
    case DEADLINE_LADEN:
        return refuse_laden(deadlines, sessions, count, more, error);
    default:
        return error_set(error, STATUS_BUSY,
                         "session: all %u seats are taken; ask again when somebody has left",
                         pool->seat_count);
    }
}

/* Whether one more may sit; `lock` is held. */
static enum status admit(const struct interactive *pool, const struct seat *seat,
                         struct error *error)
{
    uint32_t places[DEADLINE_SESSIONS_MAX];
    struct deadline_session sessions[DEADLINE_SESSIONS_MAX];
    const struct deadline_session more = {
        .period_ns = seat->period_ns, .limit_ns = seat->limit_ns, .least = seat->least};
    uint32_t count = interactive_look(pool, places, sessions);
    enum deadline_refusal refusal =
        count >= pool->seat_count ? DEADLINE_FULL
                                  : deadline_refusal(&pool->deadlines, sessions, count, &more);
    return refusal == DEADLINE_LET_IN ? STATUS_OK
                                      : refuse(pool, refusal, sessions, count, &more, error);
}

/* Whether a seat may be had as if `instead` (NULL: none) had left, before anything is read or
 * removed for it. */
static enum status look_for_place(struct interactive *pool, const struct seat *seat,
                                  struct seat *instead, struct error *error)
{
    pthread_mutex_lock(&pool->lock);
    if (instead != NULL) {
        instead->leaving = true;
    }
    enum status status = admit(pool, seat, error);
    if (instead != NULL) {
        instead->leaving = false;
    }
    pthread_mutex_unlock(&pool->lock);
    return status;
}

/* Admits a seat as if `instead`, which stands still from now on, had left, and finds its place,
 * which is another; `lock` is held. */
static enum status find_place(struct interactive *pool, struct seat *seat, struct seat *instead,
                              struct error *error)
{
    if (instead != NULL) {
        instead->leaving = true;
    }
    TRY(admit(pool, seat, error));
    while (seat->place < pool->place_count && pool->seats[seat->place] != NULL) {
        seat->place++;
    }
    return seat->place < pool->place_count
               ? STATUS_OK
               : error_set(error, STATUS_BUSY, "session: others change seats: ask again");
}

/* It goes on as it did; NULL: nobody does. */
static void stay(struct seat *seat)
{
    if (seat != NULL && seat->leaving) { /* which the holder alone changes */
        pthread_mutex_lock(&seat->pool->lock);
        seat->leaving = false;
        seat->due_ns = interactive_now_ns(seat->pool);
        pthread_cond_signal(&seat->pool->news);
        pthread_mutex_unlock(&seat->pool->lock);
    }
}

/* The pool's thread drives what is left of the way back between the ticks of others. */
static enum status wait_until_back(struct seat *seat, struct error *error)
{
    struct interactive *pool = seat->pool;
    pthread_mutex_lock(&pool->lock);
    seat->returning = true;
    pool->asked = true;
    seat->patience_ns = interactive_now_ns(pool) + INTERACTIVE_PATIENCE_NS;
    pthread_cond_signal(&pool->news);
    while (seat->returning) {
        pthread_cond_wait(&pool->returned, &pool->lock);
    }
    enum status status = seat->return_status;
    if (status != STATUS_OK) {
        *error = seat->return_error;
    }
    pthread_mutex_unlock(&pool->lock);
    return status;
}

void interactive_settle(struct seat *seat)
{
    if (seat != NULL) {
        drive_log_remove(seat->before);
        seat->before = NULL;
    }
}

/* Drives what is left of the way to where a session stands, and tells the listener what is there:
 * from then on the seat `instead` (NULL: none) is no more. */
static enum status arrive(struct seat *seat, struct seat *instead, struct error *error)
{
    struct interactive *pool = seat->pool;
    struct interactive_frame frame = {.tier = "", .model = "", .backend = "", .paused = true};
    TRY(wait_until_back(seat, error));
    interactive_settle(instead);
    pthread_mutex_lock(&pool->world_lock);
    if (instead != NULL) {
        pthread_mutex_lock(&pool->lock);
        pool->seats[instead->place] = NULL;
        pthread_mutex_unlock(&pool->lock);
        seat->before = session_release(instead->session);
        free(instead);
    }
    seat->turns = session_turns(seat->session);
    interactive_tell(seat, &frame);
    pthread_mutex_unlock(&pool->world_lock);
    return STATUS_OK;
}

/* Gives a seat its place, and a session in it. */
static enum status take_place(struct interactive *pool, const struct interactive_wish *wish,
                              struct interactive_kept *kept, struct seat *seat, struct error *error)
{
    pthread_mutex_lock(&pool->world_lock);
    pthread_mutex_lock(&pool->lock);
    enum status status = find_place(pool, seat, wish->instead, error);
    pthread_mutex_unlock(&pool->lock);
    if (status == STATUS_OK) {
        session_destroy(pool->trial); /* whose place it may be */
        pool->trial = NULL;
        status = interactive_make_session(pool, wish, kept, seat, error);
    }
    if (status == STATUS_OK) {
        pthread_mutex_lock(&pool->lock);
        pool->seats[seat->place] = seat;
        pthread_mutex_unlock(&pool->lock);
    }
    pthread_mutex_unlock(&pool->world_lock);
    return status;
}

static enum status sit(struct interactive *pool, const struct interactive_wish *wish,
                       const struct interactive_listener *listener, struct seat **out,
                       struct error *error)
{
    uint32_t least = 0;
    struct interactive_kept kept = {.log = NULL};
    TRY(check_wish(wish, error));
    TRY(find_least(pool, wish->steps_least, wish->model_alone, &least, error));
    struct seat *seat = calloc(1, sizeof *seat);
    enum status status = memory_check(seat, error, "session: out of memory");
    if (status == STATUS_OK) {
        *seat = (struct seat){
            .pool = pool,
            .listener = *listener,
            .plain = wish->plain,
            .paused = true,
            .least = least,
            .period_ns = (int64_t)((double)TICK_NS / wish->rate),
            .limit_ns = (int64_t)(wish->limit_ms * NS_PER_MS),
        };
        status = look_for_place(pool, seat, wish->instead, error);
    }
    THEN(status, wish->resume != NULL ? interactive_open_kept(pool, wish, &kept, error)
                                      : interactive_make_room(pool, wish->tenant, error));
    THEN(status, take_place(pool, wish, &kept, seat, error));
    interactive_close_kept(&kept);
    if (status != STATUS_OK) {
        free(seat);
        stay(wish->instead);
        return status;
    }
    status = arrive(seat, wish->instead, error);
    if (status != STATUS_OK) {
        interactive_leave(seat);
        stay(wish->instead);
        return wish->resume != NULL ? error_prefix(error, "%s", kept.path) : status;
    }
    *out = seat;
    return STATUS_OK;
}

enum status interactive_sit(struct interactive *pool, const struct interactive_wish *wish,
                            const struct interactive_listener *listener, struct seat **out,
                            struct error *error)
{
    enum status status = sit(pool, wish, listener, out, error);
    pthread_mutex_lock(&pool->lock);
    pool->counts.sessions += status == STATUS_OK;
    pool->counts.refused += status != STATUS_OK;
    pthread_mutex_unlock(&pool->lock);
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
    if (interactive_is_empty(pool) && pool->measures) {
        deadline_forget(&pool->deadlines); /* costs are measured anew when the last one leaves */
    }
    pthread_mutex_unlock(&pool->lock);
    session_destroy(seat->session);
    drive_log_close(seat->before);
    free(seat);
    pthread_mutex_unlock(&pool->world_lock);
}

/* ---- orders ---- */

struct action interactive_action(const struct seat *seat)
{
    return seat->action; /* which nobody but the holder sets */
}

struct interactive_standing interactive_standing(const struct seat *seat)
{
    struct interactive *pool = seat->pool;
    pthread_mutex_lock(&pool->lock);
    const struct interactive_standing standing = {
        .kept = seat->name[0] != '\0' && !seat->unkept,
        .paused = seat->paused,
        .turns = seat->turns,
        .action = seat->action,
    };
    pthread_mutex_unlock(&pool->lock);
    return standing;
}

void interactive_act(struct seat *seat, struct action action)
{
    pthread_mutex_lock(&seat->pool->lock);
    seat->action = action;
    pthread_mutex_unlock(&seat->pool->lock);
}

void interactive_pause(struct seat *seat, bool paused)
{
    struct interactive *pool = seat->pool;
    struct interactive_frame frame = {.tier = "", .model = "", .backend = "", .paused = paused};
    pthread_mutex_lock(&pool->world_lock);
    pthread_mutex_lock(&pool->lock);
    bool ended = session_end(seat->session) != SWERVE_ENV_GOES_ON;
    if (seat->paused && !paused) {
        seat->due_ns = interactive_now_ns(pool);
    }
    seat->paused = paused || ended;
    frame.paused = seat->paused;
    pthread_cond_signal(&pool->news);
    pthread_mutex_unlock(&pool->lock);
    interactive_tell(seat, &frame);
    pthread_mutex_unlock(&pool->world_lock);
}

enum status interactive_back(struct seat *seat, uint32_t ticks, bool keep, struct error *error)
{
    struct interactive *pool = seat->pool;
    pthread_mutex_lock(&pool->world_lock);
    pthread_mutex_lock(&pool->lock);
    seat->paused = true;
    seat->action = (struct action){0};
    seat->driven = (struct action){0};
    pthread_mutex_unlock(&pool->lock);
    enum status status = session_turn(seat->session, ticks, keep, error);
    pthread_mutex_unlock(&pool->world_lock);
    return status == STATUS_OK ? arrive(seat, NULL, error) : status;
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
