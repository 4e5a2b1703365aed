/*
 * Drives of a session: lines, states to go back to, actions. See session.h.
 *
 * To go back is to restore the newest state at or before that tick and to drive the rest again,
 * which gives the same bits.
 */
#include "worker/interactive/session_internal.h"

#include "base/check.h"
#include "schemas/scenario_json.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- states ---- */

static void drop_states(struct session *session, uint32_t first)
{
    for (uint32_t i = first; i < session->state_count; i++) {
        swerve_env_state_free(session->env, session->states[i]);
    }
    if (session->state_count > first) {
        session->state_count = first;
    }
}

/* ---- life ---- */

enum status session_create(struct swerve_env *env, uint32_t index, uint32_t scenario, uint64_t seed,
                           struct session **out, struct error *error)
{
    char text[256] = "";
    uint32_t horizon;
    if (swerve_env_scenario(env, scenario, &horizon) == NULL) {
        return error_set(error, STATUS_BAD_INPUT, "session: expected a scenario below %u, found %u",
                         swerve_env_scenarios(env), scenario);
    }
    struct session *session = calloc(1, sizeof *session);
    TRY(memory_check(session, error, "session: out of memory"));
    session->env = env;
    session->index = index;
    session->scenario = scenario;
    session->horizon_ticks = horizon;
    session->driven = calloc(horizon, sizeof *session->driven);
    session->states = calloc(horizon / SESSION_KEEP_TICKS + 1, sizeof(struct swerve_env_state *));
    session->touches = calloc(horizon / SESSION_KEEP_TICKS + 1, sizeof *session->touches);
    swerve_env_rows(env, &session->rows);
    enum status status = STATUS_OK;
    if (session->driven == NULL || session->states == NULL || session->touches == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "session: out of memory");
    }
    if (status == STATUS_OK) {
        status = session_answer(
            swerve_env_reset(env, 1, &index, &scenario, &seed, text, sizeof text), text, error);
    }
    THEN(status, session_keep_state(session, error));
    if (status != STATUS_OK) {
        session_destroy(session);
        return status;
    }
    *out = session;
    return STATUS_OK;
}

void session_destroy(struct session *session)
{
    if (session == NULL) {
        return;
    }
    drop_states(session, 0);
    for (uint32_t i = 0; i < session->left_count; i++) {
        free(session->left[i].driven);
    }
    past_destroy(session->past);
    drive_log_close(session->log);
    free(session->driven);
    free(session->states);
    free(session->touches);
    free(session);
}

struct drive_log *session_release(struct session *session)
{
    struct drive_log *log = session->log;
    session->log = NULL;
    session_destroy(session);
    return log;
}

/* ---- driving ---- */

static enum status step(struct session *session, const struct driven *driven, struct error *error)
{
    char text[256];
    uint8_t idle[SWERVE_ENV_COUNT_MAX];
    memset(idle, 1, sizeof idle);
    idle[session->index] = 0;
    TRY(session_set(session, driven, error));
    TRY(session_answer(swerve_env_step(session->env, idle, text, sizeof text), text, error));
    session->touched = session->touched || session->rows.contact[session->index] != 0;
    return STATUS_OK;
}

enum status session_step(struct session *session, const struct action *action, uint32_t skipped,
                         struct error *error)
{
    const struct driven driven = {*action, (uint8_t)skipped};
    uint32_t tick = session_tick(session);
    TRY(step(session, &driven, error));
    session->driven[tick] = driven;
    session_log_step(session, &driven);
    return session_keep_state(session, error);
}

enum status session_turn(struct session *session, uint32_t ticks, bool keep, struct error *error)
{
    char text[256];
    uint32_t now = session_tick(session);
    uint32_t target = now > ticks ? now - ticks : 0;
    CHECK(session_returning(session) == 0);
    if (keep && now > 0) {
        TRY(session_leave_line(session, now, error));
    }
    uint32_t at = target / SESSION_KEEP_TICKS;
    at = at < session->state_count ? at : session->state_count - 1;
    TRY(session_answer(
        swerve_env_restore(session->env, session->states[at], session->index, text, sizeof text),
        text, error));
    session->touched = session->touches[at];
    drop_states(session, at + 1);
    session->target = target;
    session->turns++;
    session_log_turn(session, target, keep && now > 0);
    return STATUS_OK;
}

uint32_t session_returning(const struct session *session)
{
    uint32_t tick = session_tick(session);
    return session->target > tick ? session->target - tick : 0;
}

uint32_t session_return_skips(const struct session *session)
{
    CHECK(session_returning(session) > 0);
    return session_skipped(session, session_tick(session));
}

uint32_t session_skipped(const struct session *session, uint32_t tick)
{
    CHECK(tick < session_tick(session) + session_returning(session));
    return session->driven[tick].skipped;
}

bool session_retraces(const struct session *session)
{
    return session->past != NULL;
}

enum status session_return(struct session *session, struct error *error)
{
    CHECK(session_returning(session) > 0);
    if (session->past != NULL) {
        return session_retrace(session, error);
    }
    TRY(step(session, &session->driven[session_tick(session)], error));
    return session_keep_state(session, error); /* none is due but in a drive that was resumed */
}

enum status session_back(struct session *session, uint32_t ticks, bool keep, struct error *error)
{
    enum status status = session_turn(session, ticks, keep, error);
    while (status == STATUS_OK && session_returning(session) > 0) {
        status = session_return(session, error);
    }
    return status;
}

uint32_t session_turns(const struct session *session)
{
    return session->turns;
}

uint32_t session_lines(const struct session *session)
{
    return session->left_count + 1;
}

const struct scene *session_scene(const struct session *session)
{
    return env_scene(session->env, session->index);
}

const uint8_t *session_cameras(const struct session *session)
{
    return session->rows.cameras + (size_t)session->index * SWERVE_ENV_CAMERA_BYTES;
}

bool session_picture(const struct session *session, const struct raster_rays *rays, uint8_t *rgb)
{
    return env_picture(session->env, session->index, rays, rgb);
}

bool session_touched(const struct session *session)
{
    return session->touched;
}

/* ---- what is left of it ---- */

enum status session_outcome(const struct session *session, char json[SWERVE_ENV_OUTCOME_BYTES],
                            struct error *error)
{
    char text[256];
    if (session_end(session) == SWERVE_ENV_GOES_ON) {
        return error_set(error, STATUS_CONFLICT,
                         "session: expected a drive that has ended, found one at tick %u of %u",
                         session_tick(session), session->horizon_ticks);
    }
    return session_answer(swerve_env_outcome(session->env, session->index, json,
                                             SWERVE_ENV_OUTCOME_BYTES, text, sizeof text),
                          text, error);
}

/* An intervention "ego_actions" for so many ticks as one may have. */
static json_t *actions_from(const struct line *line, uint32_t first)
{
    json_t *actions = json_array();
    uint32_t count = line->ticks - first < LIMIT_ACTIONS ? line->ticks - first : LIMIT_ACTIONS;
    json_t *skipped = json_array();
    bool any = false;
    for (uint32_t i = 0; i < count; i++) {
        const struct driven *driven = &line->driven[first + i];
        json_array_append_new(
            actions, json_pack("[f,f]", driven->action.accel_mps2, driven->action.steer_rad));
        json_array_append_new(skipped, json_integer(driven->skipped));
        any = any || driven->skipped > 0;
    }
    if (!any) {
        json_decref(skipped);
        skipped = NULL;
    }
    return json_pack("{s:s,s:i,s:o,s:o*}", "kind", "ego_actions", "tick", (int)first, "actions",
                     actions, "skipped_steps", skipped);
}

static json_t *branch_of(const struct session *session, const struct line *line, uint32_t number)
{
    char id[SESSION_ID_BYTES];
    snprintf(id, sizeof id, "wheel-%u", number);
    json_t *interventions = json_array();
    for (uint32_t first = 0; first < line->ticks; first += LIMIT_ACTIONS) {
        json_array_append_new(interventions, actions_from(line, first));
    }
    if (line->ticks < session->horizon_ticks) {
        json_array_append_new(
            interventions, json_pack("{s:s,s:i}", "kind", "ego_planner", "tick", (int)line->ticks));
    }
    return json_pack("{s:s,s:i,s:o}", "id", id, "at_tick", 0, "interventions", interventions);
}

static json_t *branches_of(const struct session *session)
{
    json_t *branches = json_array();
    const struct line now = {.ticks = session_tick(session), .driven = session->driven};
    for (uint32_t i = 0; i < session->left_count; i++) {
        json_array_append_new(branches, branch_of(session, &session->left[i], i + 1));
    }
    if (now.ticks > 0) {
        json_array_append_new(branches, branch_of(session, &now, session->left_count + 1));
    }
    return branches;
}

enum status session_scenario(const struct session *session, const char *id, char **text,
                             struct error *error)
{
    const struct scenario_document *document = env_document(session->env, session->scenario);
    json_t *branches = branches_of(session);
    if (json_array_size(branches) == 0) {
        json_decref(branches);
        return error_set(error, STATUS_CONFLICT, "session: nothing has been driven yet");
    }
    json_t *object = scenario_encode(&document->scenario);
    bool whole = object != NULL && json_object_set_new(object, "id", json_string(id)) == 0;
    whole = json_object_set_new(object, "branches", branches) == 0 && whole;
    *text = whole ? json_dumps(object, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(object);
    TRY(memory_check(*text, error, "session: out of memory"));
    /* Text that cannot be loaded again is not worth keeping. */
    struct scenario_document *again = NULL;
    enum status status = scenario_load_text(id, *text, strlen(*text), &again, error);
    scenario_destroy(again);
    if (status != STATUS_OK) {
        free(*text);
        *text = NULL;
    }
    return status;
}
