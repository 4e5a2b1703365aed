/*
 * Planner host: one interface for builtin planners, plugins and processes.
 *
 * Every answer passes through here, so this is where it is checked: a planner is untrusted, and
 * nothing that is not finite or not physical may reach a world. What a planner did wrong is kept as
 * a sentence, per session or for the whole instance; a dead instance answers nothing any more.
 */
#include "worker/planner/planner.h"

#include "base/check.h"
#include "worker/egodriver/egodriver.h"
#include "worker/planner/builtin/planner_builtin.h"
#include "worker/planner/planner_exec.h"
#include "worker/planner/planner_history.h"
#include "worker/planner/planner_host.h"
#include "worker/planner/planner_plugin.h"
#include "worker/planner/planner_spec.h"
#include "worker/tracker/tracker.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ACCEL_LIMIT_MPS2 50.0
#define STEER_LIMIT_RAD 2.0

enum { SESSION_ERROR_BYTES = 240, PLUGIN_ERROR_BYTES = 512 };
enum { UNFOLLOWABLE = 2 }; /* a mark of our own: the session's error says why */

struct planner {
    const struct swerve_planner_ops *ops;
    void *instance;
    struct planner_exec *exec; /* == instance for planners in a process of their own, else NULL */
    struct egodriver *ego;     /* == instance for those behind a service, else NULL */
    struct planner_plugin plugin; /* one in this process, else not loaded */
    uint32_t session_count;
    uint32_t wants;
    bool dead;
    char spec[LIMIT_SPEC_BYTES];
    char (*session_errors)[SESSION_ERROR_BYTES]; /* [session_count] */
    uint8_t *busy;                               /* [session_count] scratch: seen in this batch */
    void (*watch)(void *context, const char *planner); /* a plugin's; else NULL */
    void *watch_context;
    void (*observed)(void *context, uint32_t count, const struct swerve_observation *observations,
                     const struct swerve_action *actions); /* NULL: nobody looks on */
    void *observed_context;
    /* of version 3: NULL, 0 for others */
    enum swerve_tracker tracker;
    double *wheelbase_m;              /* [session_count] */
    struct swerve_answer *answers;    /* [session_count] */
    struct swerve_surroundings *bare; /* [session_count] zeros: nothing is known of surroundings */
    struct planner_history *history;  /* of one in this process that asked for it */
    struct rig *rig;                  /* owned */
    struct rig_choice choice;
    struct swerve_sensors *dark; /* [session_count] zeros: no sensors */
};

/* Around each call of a planner's function. */
static void enter(const struct planner *planner)
{
    if (planner->watch != NULL) {
        planner->watch(planner->watch_context, planner->spec);
    }
}

static void leave(const struct planner *planner)
{
    planner_plugin_end_copy(&planner->plugin);
    if (planner->watch != NULL) {
        planner->watch(planner->watch_context, "");
    }
}

/* ---- open ---- */

/* Opens it with what it is offered, and reads what it chose. */
static enum status instance_offer(struct planner *planner, const struct swerve_place *place,
                                  struct swerve_offer *offer, struct error *error)
{
    char text[PLUGIN_ERROR_BYTES] = "";
    enter(planner);
    int failed = planner_ops_open(planner->ops, planner->wants, place, &planner->instance, offer,
                                  text, sizeof text);
    leave(planner);
    text[sizeof text - 1] = '\0';
    if (failed != 0) {
        planner->instance = NULL;
        return error_set(error, STATUS_PLANNER, "planner %s: cannot open: %s", planner->spec,
                         text[0] != '\0' ? text : "it gave no reason");
    }
    if (!planner_ops_drives(planner->ops)) {
        return STATUS_OK;
    }
    const size_t bytes = strnlen(offer->choice, offer->choice_bytes);
    if (rig_choice_decode("choice of sensors", offer->choice, bytes, planner->rig, &planner->choice,
                          error) != STATUS_OK) {
        error->status = STATUS_PLANNER;
        return error_prefix(error, "planner %s", planner->spec);
    }
    return STATUS_OK;
}

static enum status instance_open(struct planner *planner, const struct planner_spec *spec,
                                 const struct planner_config *config, struct error *error)
{
    const struct swerve_place *place = config->place != NULL ? config->place : &planner_place_host;
    enum status status = planner_ops_settle(
        planner->ops, place,
        "the world of this job runs on the CPU (expected --world student or teacher with --device "
        "cuda:N)",
        &planner->wants, error);
    if (status != STATUS_OK) {
        return error_prefix(error, "planner %s", planner->spec);
    }
    if (config->trial && (planner->wants & SWERVE_WANTS_DEVICE) != 0) {
        return STATUS_OK;
    }
    struct swerve_offer offer = {.config = spec->config,
                                 .session_count = planner->session_count,
                                 .choice_bytes = PLANNER_CHOICE_BYTES};
    char *text = NULL;
    if (planner_ops_drives(planner->ops)) {
        TRY(rig_text(planner->rig, &text, error));
        offer.rig = text;
        offer.choice = calloc(1, PLANNER_CHOICE_BYTES);
        status = memory_check(offer.choice, error, "planner %s: out of memory", planner->spec);
    }
    THEN(status, instance_offer(planner, place, &offer, error));
    free(offer.choice);
    free(text);
    return status;
}

/* A confined plugin lives in a process of its own, which speaks the exec protocol for it. */
static enum status plugin_open_apart(struct planner *planner, const struct planner_spec *spec,
                                     const struct planner_config *config, struct error *error)
{
    char file[PATH_MAX];
    struct planner_argv words = {.count = 4};
    if (config->confinement->host == NULL) {
        return error_set(error, STATUS_PLANNER,
                         "planner %s: this process cannot run a plugin apart from itself",
                         planner->spec);
    }
    if (realpath(spec->target, file) == NULL) {
        return error_set(error, STATUS_NOT_FOUND, "planner plugin %s: %s", spec->target,
                         strerror(errno));
    }
    words.argv[0] = (char *)(uintptr_t)config->confinement->host;
    words.argv[1] = (char *)(uintptr_t)PLANNER_HOST_COMMAND;
    words.argv[2] = file;
    words.argv[3] = (char *)(uintptr_t)spec->config;
    words.argv[4] = NULL;
    return planner_exec_open(planner->spec, &words, config, planner->rig, &planner->choice,
                             &planner->exec, error);
}

static enum status egodriver_open_here(struct planner *planner, const struct planner_spec *spec,
                                       const struct planner_config *config, struct error *error)
{
    TRY(egodriver_open(planner->spec, spec->target, spec->config,
                       config->confinement != NULL ? &config->confinement->egodrivers : NULL,
                       planner->rig, &planner->choice, config->session_count,
                       config->tick_deadline_ms, config->open_deadline_ms, !config->trial,
                       config->abandoned, &planner->ego, error));
    planner->ops = &egodriver_ops;
    planner->instance = planner->ego;
    planner->wants = egodriver_wants(planner->ego);
    return STATUS_OK;
}

static enum status open_by_kind(struct planner *planner, const struct planner_spec *spec,
                                const struct planner_config *config, struct error *error)
{
    enum status status = STATUS_OK;
    struct planner_argv words;
    switch (spec->kind) {
    case PLANNER_SPEC_BUILTIN:
        planner->ops = planner_builtin_find(spec->target);
        CHECK(planner->ops != NULL);
        status = instance_open(planner, spec, config, error);
        planner->wants |= planner->ops->wants & PLANNER_WANTS_RETURNS;
        planner->wants |= config->observed != NULL ? PLANNER_WATCHED : 0;
        return status;
    case PLANNER_SPEC_PLUGIN:
        if (config->confinement != NULL && config->confinement->sandbox) {
            status = plugin_open_apart(planner, spec, config, error);
            break;
        }
        planner->watch = config->watch;
        planner->watch_context = config->watch_context;
        enter(planner);
        status = planner_plugin_load(spec->target, &planner->plugin, error);
        leave(planner);
        if (status != STATUS_OK) {
            return status;
        }
        planner->ops = planner->plugin.ops;
        return instance_open(planner, spec, config, error);
    case PLANNER_SPEC_EXEC:
        status = planner_argv_parse(spec->target, &words, error);
        THEN(status, planner_exec_open(planner->spec, &words, config, planner->rig,
                                       &planner->choice, &planner->exec, error));
        break;
    case PLANNER_SPEC_EGODRIVER:
        return egodriver_open_here(planner, spec, config, error);
    case PLANNER_SPEC_COUNT:
        CHECK(false);
    }
    if (status == STATUS_OK) {
        planner->ops = &planner_exec_ops;
        planner->instance = planner->exec;
        planner->wants = planner_exec_wants(planner->exec);
    }
    return status;
}

/* Buffers that planners of version 3 need beside the others. */
static enum status open_plans(struct planner *planner, struct error *error)
{
    if (!planner_ops_plans(planner->ops)) {
        return STATUS_OK;
    }
    uint32_t n = planner->session_count;
    bool apart = planner->exec != NULL;
    planner->tracker =
        apart ? planner_exec_tracker(planner->exec) : (enum swerve_tracker)planner->ops->tracker;
    planner->wheelbase_m = calloc(n, sizeof *planner->wheelbase_m);
    planner->answers = calloc(n, sizeof *planner->answers);
    planner->bare = calloc(n, sizeof *planner->bare);
    planner->dark = calloc(n, sizeof *planner->dark);
    if (planner->wheelbase_m == NULL || planner->answers == NULL || planner->bare == NULL ||
        planner->dark == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "planner %s: out of memory", planner->spec);
    }
    if (apart || planner->ops->history_ticks == 0) {
        return STATUS_OK;
    }
    return planner_history_create(n, planner->ops->history_ticks, &planner->history, error);
}

/* Before version 4 there is one size of grid and cameras. */
static enum status check_rig(const struct planner *planner, const struct planner_config *config,
                             struct error *error)
{
    const uint32_t pictures = planner->wants & (SWERVE_WANTS_BEV | SWERVE_WANTS_CAMERAS);
    char hash[SHA256_HEX_BYTES] = "";
    if (config->rig == NULL || pictures == 0) {
        return STATUS_OK;
    }
    TRY(rig_hash(config->rig, hash, error));
    if (hash[0] == '\0') {
        return STATUS_OK;
    }
    return error_set(error, STATUS_PLANNER,
                     "planner %s: its version of the planner contract knows the grid and the "
                     "cameras of the built-in rig alone, the job's rig is %s (%.12s); expected a "
                     "planner of version 4, which chooses sensors by their ids",
                     planner->spec, config->rig->id, hash);
}

/* Times and sizes that nobody gave. */
static void fill_config(struct planner_config *filled)
{
    const struct planner_confinement none = {0};
    const struct planner_confinement *confinement =
        filled->confinement != NULL ? filled->confinement : &none;
    const struct {
        int64_t *value;
        int64_t confined, usual;
    } rows[] = {
        {&filled->tick_deadline_ms, 0, 1000},
        {&filled->open_deadline_ms, confinement->start_ms, 20000},
        {&filled->memory_limit_bytes, confinement->memory_bytes, INT64_C(4) << 30},
        {&filled->sensor_bytes_max, confinement->sensor_bytes, PLANNER_SENSOR_BYTES},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (*rows[i].value <= 0) {
            *rows[i].value = rows[i].confined > 0 ? rows[i].confined : rows[i].usual;
        }
    }
}

int64_t planner_start_ms(const struct planner_config *config)
{
    struct planner_config filled = *config;
    fill_config(&filled);
    return filled.open_deadline_ms;
}

enum status planner_open(const char *text, const struct planner_config *config,
                         struct planner **out, struct error *error)
{
    CHECK(config->session_count >= 1);
    struct planner_config filled = *config;
    fill_config(&filled);
    struct planner_spec spec;
    TRY(planner_spec_check(text, error));
    TRY(planner_spec_parse(text, &spec, error));
    enum status status = STATUS_OK;
    struct planner *planner = calloc(1, sizeof *planner);
    TRY(memory_check(planner, error, "planner %s: out of memory", text));
    planner->session_count = config->session_count;
    snprintf(planner->spec, sizeof planner->spec, "%s", text);
    planner->session_errors = calloc(config->session_count, sizeof planner->session_errors[0]);
    planner->busy = calloc(config->session_count, sizeof planner->busy[0]);
    planner->rig = malloc(sizeof *planner->rig);
    if (planner->session_errors == NULL || planner->busy == NULL || planner->rig == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "planner %s: out of memory", text);
        goto fail;
    }
    if (config->rig != NULL) {
        *planner->rig = *config->rig;
    } else {
        rig_swerve(planner->rig);
    }
    status = open_by_kind(planner, &spec, &filled, error);
    THEN(status, check_rig(planner, config, error));
    THEN(status, open_plans(planner, error));
    if (status != STATUS_OK) {
        goto fail;
    }
    if (planner_spec_seen(text) && (planner->wants & SWERVE_WANTS_OBJECTS) != 0) {
        planner->wants |= SWERVE_WANTS_SEEN;
    }
    if ((planner->wants & SWERVE_WANTS_DEVICE) == 0) {
        planner->observed = config->observed;
        planner->observed_context = config->observed_context;
    }
    *out = planner;
    return STATUS_OK;
fail:
    planner_close(planner);
    return status;
}

void planner_close(struct planner *planner)
{
    if (planner == NULL) {
        return;
    }
    if (planner->instance != NULL) {
        enter(planner);
        planner->ops->close(planner->instance);
        leave(planner);
    }
    planner_plugin_unload(&planner->plugin);
    planner_history_destroy(planner->history);
    free(planner->wheelbase_m);
    free(planner->answers);
    free(planner->bare);
    free(planner->dark);
    free(planner->rig);
    free(planner->session_errors);
    free(planner->busy);
    free(planner);
}

uint32_t planner_wants(const struct planner *planner)
{
    return planner->wants;
}

const struct rig *planner_rig(const struct planner *planner)
{
    return planner->rig;
}

const struct rig_choice *planner_choice(const struct planner *planner)
{
    return &planner->choice;
}

const char *planner_loaded(const struct planner *planner)
{
    return planner->exec != NULL  ? planner_exec_loaded(planner->exec)
           : planner->ego != NULL ? egodriver_loaded(planner->ego)
                                  : "";
}

bool planner_alive(const struct planner *planner)
{
    return !planner->dead && (planner->exec == NULL || planner_exec_alive(planner->exec)) &&
           (planner->ego == NULL || egodriver_alive(planner->ego));
}

bool planner_cut_off(const struct planner *planner)
{
    return planner->ego != NULL && egodriver_cut_off(planner->ego);
}

/* ---- calls ---- */

static enum status refuse_if_dead(const struct planner *planner, struct error *error)
{
    if (planner_alive(planner)) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_PLANNER, "planner %s: this instance is dead", planner->spec);
}

static enum status call_failed(const struct planner *planner, const char *call, char *text,
                               size_t text_bytes, struct error *error)
{
    text[text_bytes - 1] = '\0';
    return error_set(error, STATUS_PLANNER, "planner %s: %s: %s", planner->spec, call,
                     text[0] != '\0' ? text : "failed and gave no reason");
}

enum status planner_reset(struct planner *planner, const struct swerve_episode *episode,
                          struct error *error)
{
    CHECK(episode->session < planner->session_count);
    TRY(refuse_if_dead(planner, error));
    char text[PLUGIN_ERROR_BYTES] = "";
    planner->session_errors[episode->session][0] = '\0';
    if (planner->wheelbase_m != NULL) {
        planner->wheelbase_m[episode->session] = episode->ego_wheelbase_m;
    }
    if (planner->history != NULL) {
        planner_history_clear(planner->history, episode->session);
    }
    enter(planner);
    int failure = planner->ops->reset(planner->instance, episode, text, sizeof text);
    leave(planner);
    if (failure != 0) {
        return call_failed(planner, "reset", text, sizeof text, error);
    }
    return STATUS_OK;
}

/* Marks answers that may not reach a world. A marked answer becomes "brake gently" so that no
 * caller can pass on a NaN by mistake. */
static void check_answer(struct planner *planner, const struct swerve_observation *observation,
                         struct swerve_action *action, uint8_t *failed)
{
    char *reason = planner->session_errors[observation->session];
    bool unfollowable = *failed == UNFOLLOWABLE && planner->answers != NULL;
    if (!unfollowable) {
        reason[0] = '\0';
    }
    if (unfollowable) {
        CHECK(reason[0] != '\0');
    } else if (*failed != 0 && planner->ego != NULL) {
        snprintf(reason, SESSION_ERROR_BYTES, "%s",
                 egodriver_reason(planner->ego, observation->session));
    } else if (*failed != 0) {
        int used = snprintf(reason, SESSION_ERROR_BYTES, "the planner marked its answer as failed");
        if (planner->exec != NULL) {
            planner_exec_limit(planner->exec, observation->session, reason + used,
                               SESSION_ERROR_BYTES - (size_t)used);
        }
    } else if (!isfinite(action->accel_mps2) || !isfinite(action->steer_rad)) {
        snprintf(reason, SESSION_ERROR_BYTES, "answer is not finite (accel %g, steer %g)",
                 action->accel_mps2, action->steer_rad);
    } else if (fabs(action->accel_mps2) > ACCEL_LIMIT_MPS2) {
        snprintf(reason, SESSION_ERROR_BYTES, "|accel| %g m/s2 exceeds %g",
                 fabs(action->accel_mps2), ACCEL_LIMIT_MPS2);
    } else if (fabs(action->steer_rad) > STEER_LIMIT_RAD) {
        snprintf(reason, SESSION_ERROR_BYTES, "|steer| %g rad exceeds %g", fabs(action->steer_rad),
                 STEER_LIMIT_RAD);
    } else {
        return;
    }
    *failed = 1;
    *action = (struct swerve_action){-2.0, 0.0};
}

/* The action of an answer; a trajectory that cannot be followed marks it as failed. */
static struct swerve_action follow(struct planner *planner,
                                   const struct swerve_observation *observation,
                                   const struct swerve_answer *answer, uint8_t *failed)
{
    const struct tracker_ego ego = {
        .x_m = observation->x_m,
        .y_m = observation->y_m,
        .heading_rad = observation->heading_rad,
        .speed_mps = observation->speed_mps,
        .steer_rad = observation->steer_rad,
        .wheelbase_m = planner->wheelbase_m[observation->session],
    };
    if (answer->point_count == 0 || *failed != 0) {
        return answer->action;
    }
    if (!tracker_check(&ego, answer->points, answer->point_count,
                       planner->session_errors[observation->session], SESSION_ERROR_BYTES)) {
        *failed = UNFOLLOWABLE;
        return answer->action;
    }
    return tracker_follow(planner->tracker, &ego, answer->points, answer->point_count);
}

/* One call of plan or drive. Non-zero: it failed. */
static int call_plan(struct planner *planner, uint32_t count,
                     const struct swerve_observation *observations,
                     struct swerve_surroundings *around, const struct swerve_sensors *sensors,
                     struct swerve_action *actions, uint8_t *failed, char *text,
                     uint32_t text_bytes)
{
    struct error error;
    int failure = 0;
    around = around != NULL ? around : planner->bare;
    sensors = sensors != NULL ? sensors : planner->dark;
    for (uint32_t i = 0; i < count; i++) {
        planner->answers[i].action = actions[i];
        planner->answers[i].point_count = 0;
        if (planner->history != NULL) {
            planner_history_show(planner->history, observations[i].session, &around[i]);
        }
    }
    enter(planner);
    failure = planner_ops_plan(planner->ops, planner->instance, count, observations, around,
                               sensors, planner->answers, failed, text, text_bytes);
    leave(planner);
    for (uint32_t i = 0; i < count && failure == 0; i++) {
        if (planner->history != NULL && planner_history_add(planner->history, &observations[i],
                                                            &around[i], &error) != STATUS_OK) {
            snprintf(text, text_bytes, "%.256s", error.text);
            return 1;
        }
        failed[i] = failed[i] != 0;
        actions[i] = follow(planner, &observations[i], &planner->answers[i], &failed[i]);
    }
    return failure;
}

enum status planner_act(struct planner *planner, uint32_t count,
                        const struct swerve_observation *observations,
                        struct swerve_action *actions, uint8_t *failed, struct error *error)
{
    return planner_plan(planner, count, observations, NULL, actions, failed, error);
}

enum status planner_plan(struct planner *planner, uint32_t count,
                         const struct swerve_observation *observations,
                         struct swerve_surroundings *around, struct swerve_action *actions,
                         uint8_t *failed, struct error *error)
{
    return planner_drive(planner, count, observations, around, NULL, actions, failed, error);
}

enum status planner_drive(struct planner *planner, uint32_t count,
                          const struct swerve_observation *observations,
                          struct swerve_surroundings *around, const struct swerve_sensors *sensors,
                          struct swerve_action *actions, uint8_t *failed, struct error *error)
{
    enum status status = refuse_if_dead(planner, error);
    if (status != STATUS_OK || count == 0) {
        return status;
    }
    if (sensors == NULL && planner->choice.count > 0) {
        return error_set(error, STATUS_PLANNER,
                         "planner %s: chose %u sensors of a rig, which are not shown here",
                         planner->spec, planner->choice.count);
    }
    CHECK(count <= planner->session_count);
    memset(planner->busy, 0, planner->session_count);
    for (uint32_t i = 0; i < count; i++) {
        CHECK(observations[i].session < planner->session_count);
        CHECK(planner->busy[observations[i].session] == 0);
        planner->busy[observations[i].session] = 1;
        failed[i] = 0;
        /* A planner that forgets to answer must not repeat what the array held before. */
        actions[i] = (struct swerve_action){(double)NAN, (double)NAN};
    }
    char text[PLUGIN_ERROR_BYTES] = "";
    int failure;
    if (planner->answers != NULL) {
        failure = call_plan(planner, count, observations, around, sensors, actions, failed, text,
                            sizeof text);
    } else {
        enter(planner);
        failure = planner->ops->act(planner->instance, count, observations, actions, failed, text,
                                    sizeof text);
        leave(planner);
    }
    if (failure != 0) {
        planner->dead = true;
        return call_failed(planner, "act", text, sizeof text, error);
    }
    for (uint32_t i = 0; i < count; i++) {
        check_answer(planner, &observations[i], &actions[i], &failed[i]);
    }
    if (planner->observed != NULL) {
        planner->observed(planner->observed_context, count, observations, actions);
    }
    return STATUS_OK;
}

const struct swerve_answer *planner_answer(const struct planner *planner, uint32_t i)
{
    CHECK(i < planner->session_count);
    return planner->answers != NULL ? &planner->answers[i] : NULL;
}

enum status planner_fork(struct planner *planner, uint32_t from, uint32_t to, struct error *error)
{
    CHECK(from < planner->session_count && to < planner->session_count && from != to);
    TRY(refuse_if_dead(planner, error));
    memcpy(planner->session_errors[to], planner->session_errors[from], SESSION_ERROR_BYTES);
    if (planner->wheelbase_m != NULL) {
        planner->wheelbase_m[to] = planner->wheelbase_m[from];
    }
    if (planner->history != NULL) {
        TRY(planner_history_fork(planner->history, from, to, error));
    }
    char text[PLUGIN_ERROR_BYTES] = "";
    enter(planner);
    int failure = planner->ops->fork != NULL
                      ? planner->ops->fork(planner->instance, from, to, text, sizeof text)
                      : 0;
    leave(planner);
    if (failure != 0) {
        return call_failed(planner, "fork", text, sizeof text, error);
    }
    return STATUS_OK;
}

void planner_end_forks(struct planner *planner, uint32_t session)
{
    if (planner->ego != NULL) {
        egodriver_end_forks(planner->ego, session);
    }
}

bool planner_varies(const struct planner *planner, uint32_t session)
{
    return planner->ego != NULL && egodriver_varies(planner->ego, session);
}

void planner_end(struct planner *planner, uint32_t session)
{
    CHECK(session < planner->session_count);
    if (planner_alive(planner) && planner->ops->end != NULL) {
        enter(planner);
        planner->ops->end(planner->instance, session);
        leave(planner);
    }
}

const char *planner_session_error(const struct planner *planner, uint32_t session)
{
    CHECK(session < planner->session_count);
    return planner->session_errors[session];
}

bool planner_has_stderr(const struct planner *planner)
{
    return planner->exec != NULL;
}

const char *planner_stderr_tail(struct planner *planner)
{
    return planner->exec != NULL ? planner_exec_stderr(planner->exec) : "";
}

const char *planner_session_output(struct planner *planner, uint32_t session, size_t *bytes)
{
    CHECK(session < planner->session_count);
    *bytes = 0;
    return planner->exec != NULL  ? planner_exec_session_output(planner->exec, session, bytes)
           : planner->ego != NULL ? egodriver_told(planner->ego, session, bytes)
                                  : "";
}
