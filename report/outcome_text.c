/*
 * One outcome in words. A line has a name of eight letters at most, and is left out where there is
 * nothing to say.
 */
#include "report/outcome_text.h"

#include "report/report_internal.h"

#include "base/text.h"
#include "base/units.h"
#include "scheduler/calibration.h"
#include "scheduler/route.h"
#include "schemas/scenario_json.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 2048 };

/* One line under its name; text that does not fit is cut. */
struct line {
    char text[LINE_BYTES];
    size_t used;
};

static void add(struct line *line, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct line *line, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int bytes = vsnprintf(line->text + line->used, sizeof line->text - line->used, format, list);
    va_end(list);
    line->used += bytes > 0 ? (size_t)bytes : 0;
    line->used = line->used < sizeof line->text ? line->used : sizeof line->text - 1;
}

/* Text of several lines, as a planner's last words, goes below its first one. */
static void put(FILE *stream, const char *name, const struct line *line)
{
    for (const char *at = line->text; line->used > 0 && *at != '\0';) {
        size_t bytes = strcspn(at, "\n");
        text_print(stream, "%-9s %.*s\n", at == line->text ? name : "", (int)bytes, at);
        at += bytes + (at[bytes] == '\n');
    }
}

/* Everything that is read for one outcome. */
struct reading {
    const struct outcome *outcome;
    const struct scenario *scenario; /* NULL: the store has lost it */
    uint32_t skipped_ticks;
    struct report_drive drive;
    bool recorded;
    struct report_moment moment; /* where recorded */
    struct outcome *outcomes;    /* of its job, owned */
    uint32_t count;
    const char *lost; /* why there is no drive; NULL: there is, or none was kept */
};

/* ---- lines ---- */

static void put_head(FILE *stream, const struct reading *reading)
{
    const struct outcome *outcome = reading->outcome;
    struct line line = {.used = 0};
    for (int bit = 0, any = 0; bit < REASON_BIT_COUNT; bit++) {
        if ((outcome->reasons & (1u << bit)) != 0) {
            add(&line, "%s%s", any++ == 0 ? ": " : ", ", reason_names[bit]);
        }
    }
    text_print(stream, "outcome %lld: %s%s\n", (long long)outcome->id,
               verdict_names[outcome->verdict], line.text);
    line = (struct line){.used = 0};
    add(&line, "%s%s%s, seed %llu", outcome->scenario_id,
        outcome->branch_id[0] != '\0' ? ", branch " : "", outcome->branch_id,
        (unsigned long long)outcome->seed);
    if (reading->scenario != NULL && reading->scenario->title[0] != '\0') {
        add(&line, ": %s", reading->scenario->title);
    }
    put(stream, "scenario", &line);
    line = (struct line){.used = 0};
    if (outcome->audit_of != 0 && !outcome_is_made(outcome)) {
        add(&line, "of job %lld by the teacher: a second opinion, in no rate",
            (long long)outcome->audit_of);
    }
    put(stream, "audit", &line);
    line = (struct line){.used = 0};
    if (outcome->futures.state != FUTURES_NONE) {
        char futures[FUTURES_TEXT_BYTES];
        add(&line, "of job %lld, of %u draws of each model %s; in no rate",
            (long long)outcome->audit_of, outcome->futures.draws,
            outcome_text_futures(&outcome->futures, futures));
    }
    put(stream, "futures", &line);
}

const char *outcome_text_futures(const struct outcome_futures *futures,
                                 char out[FUTURES_TEXT_BYTES])
{
    static const char *const without[FUTURES_STATE_COUNT] = {
        [FUTURES_NONE] = "not driven",
        [FUTURES_ENDED] = "undecided: the drive had ended",
        [FUTURES_FAILED_BEFORE] = "undecided: the drive had failed before",
        [FUTURES_WITHOUT] = "undecided: the drive has no verdict",
    };
    const struct forecast_share share = forecast_kept(futures);
    const char *answer = forecast_answer_names[forecast_answer(&share)];
    int used = futures->state == FUTURES_NONE
                   ? 0
                   : snprintf(out, FUTURES_TEXT_BYTES, "from %.1f s: ", futures->tick * TICK_S);
    size_t room = (size_t)(FUTURES_TEXT_BYTES - used);
    if (futures->state != FUTURES_DRIVEN) {
        snprintf(out + used, room, "%s", without[futures->state]);
    } else if (isnan(share.value)) {
        snprintf(out + used, room, "undecided: none has a verdict");
    } else {
        snprintf(out + used, room, "P(fail) %.0f%% [%.0f-%.0f%%], %s", 100 * share.value,
                 rate_down(100 * share.low, 1), rate_up(100 * share.high, 1), answer);
    }
    return out;
}

/* Whether an outcome is a clip of training data, which is no drive and has no trace. */
static bool is_clip(const struct outcome *outcome)
{
    return outcome_is_made(outcome) && isnan(outcome->metrics.distance_m);
}

static void put_drive(FILE *stream, const struct reading *reading)
{
    const struct outcome *outcome = reading->outcome;
    struct line line = {.used = 0};
    char why[ROUTE_TEXT_BYTES];
    add(&line, "%s (%.8s), %s world", outcome->planner, outcome->planner_hash,
        tier_names[outcome->tier]);
    if (outcome->model_hash[0] != '\0') {
        add(&line, " %.12s %s", outcome->model_hash, outcome->sampler);
        if (reading->skipped_ticks > 0) {
            add(&line, " (%u of %u ticks by fewer steps)", reading->skipped_ticks, outcome->ticks);
        }
    }
    if (outcome->rig[0] != '\0') {
        char rig[REPORT_RIG_BYTES];
        add(&line, ", %s", report_rig_text(reading->scenario, outcome->rig, rig));
    }
    if (is_clip(outcome)) {
        add(&line, "; %.1f s, of which a clip of training data was made", outcome->ticks * TICK_S);
    } else {
        add(&line, "; %.1f s, %.0f m driven", outcome->ticks * TICK_S, outcome->metrics.distance_m);
    }
    put(stream, "planner", &line);
    line = (struct line){.used = 0};
    add(&line, "%s",
        route_reason_text(outcome->tier, outcome->route_reason, outcome->route_own,
                          outcome->route_other, why));
    put(stream, "route", &line);
    line = (struct line){.used = 0};
    if (reading->scenario != NULL) {
        const struct conditions *c = &reading->scenario->conditions;
        add(&line, "%s, %s, friction %.2f, visibility %.0f m; %s, %s", weather_names[c->weather],
            light_names[c->light], c->friction, c->visibility_m, outcome->slice[SLICE_ROAD],
            outcome->slice[SLICE_GEOGRAPHY]);
        add(&line, "%s", outcome->safety_critical ? "; safety-critical" : "");
    }
    put(stream, "situation", &line);
}

static const struct agent *agent_at(const struct reading *reading, int32_t index)
{
    return reading->scenario != NULL && index >= 0 &&
                   (uint32_t)index < reading->scenario->agent_count
               ? &reading->scenario->agents[index]
               : NULL;
}

/* Ego's speed at a tick that was recorded; NAN. */
static double speed_at(const struct reading *reading, uint32_t tick)
{
    struct trace_tick at;
    struct trace_agent agents[LIMIT_AGENTS];
    int32_t rollout = report_drive_rollout(&reading->drive, reading->outcome->branch_id);
    return trace_reader_tick(&reading->drive.reader, rollout, tick, &at, agents) ? at.speed_mps
                                                                                 : NAN;
}

static void add_agent(struct line *line, const struct agent *agent)
{
    if (agent != NULL) {
        add(line, "the %s \"%s\"", agent_kind_names[agent->kind], agent->id);
    } else {
        add(line, "an agent");
    }
}

static void put_moment(FILE *stream, const struct reading *reading)
{
    const struct metrics *m = &reading->outcome->metrics;
    struct line line = {.used = 0};
    bool contact = m->collision_tick != UINT32_MAX;
    if (contact) {
        add(&line, "%.1f s: %s, ", m->collision_tick * TICK_S, report_contact(m->collision_kind));
        add_agent(&line, agent_at(reading, m->collision_agent));
        add(&line, ", impact %.1f m/s (%.0f km/h)", m->impact_speed_mps, m->impact_speed_mps * 3.6);
        double speed = reading->recorded ? speed_at(reading, m->collision_tick) : NAN;
        if (isfinite(speed)) {
            add(&line, ", ego at %.1f m/s", speed);
        }
        add(&line, "; %s", m->at_fault ? "ego's fault" : "not ego's fault");
    } else if (reading->recorded && reading->moment.agent >= 0) {
        add(&line, "%.1f s: no contact, closest to ", reading->moment.tick * TICK_S);
        add_agent(&line, agent_at(reading, reading->moment.agent));
        add(&line, ", %.1f m", m->min_distance_m);
    }
    if (isfinite(m->min_ttc_s)) {
        add(&line, "%slowest TTC %.1f s", line.used > 0 ? "; " : "", m->min_ttc_s);
    }
    put(stream, contact ? "contact" : "closest", &line);
    line = (struct line){.used = 0};
    if (reading->recorded && reading->moment.guardian_tick != UINT32_MAX) {
        add(&line, "would have braked at %.1f s, %.1f s before",
            reading->moment.guardian_tick * TICK_S,
            (reading->moment.tick - reading->moment.guardian_tick) * TICK_S);
    }
    put(stream, "guardian", &line);
}

/* Measures of a learned world's pictures, those that applied. */
static void put_measures(FILE *stream, const struct drive_health *health)
{
    struct line line = {.used = 0};
    for (int i = 0; health->measured_ticks > 0 && i < MEASURE_COUNT; i++) {
        if (isfinite(health->mean[i])) {
            add(&line, "%s%s %.3g (%.3g)",
                line.used > 0 ? ", " : "worst (mean): ", health_measure_kinds[i].name,
                health->worst[i], health->mean[i]);
        }
    }
    put(stream, "measures", &line);
}

/* Evidence that is no drive of the planner's: a flag, its error, a lost trace. */
static void put_faults(FILE *stream, const struct reading *reading)
{
    const struct outcome *outcome = reading->outcome;
    struct line line = {.used = 0};
    if (outcome->health_check[0] != '\0') {
        add(&line, "%s at %.1f s, found %.3g, %.3g at %s (docs/health.md#%s)",
            outcome->health_check, outcome->health_tick * TICK_S, outcome->health_value,
            outcome->health_threshold,
            outcome->health_value < outcome->health_threshold ? "least" : "most",
            outcome->health_check);
    }
    put(stream, "health", &line);
    put_measures(stream, &outcome->health);
    line = (struct line){.used = 0};
    if (outcome->error[0] != '\0') {
        add(&line, "%s", outcome->error);
    }
    put(stream, outcome->verdict == VERDICT_PLANNER_ERROR ? "error" : "said", &line);
    line = (struct line){.used = 0};
    if (reading->lost != NULL) {
        add(&line, "%s", reading->lost);
    }
    put(stream, "trace", &line);
}

/* Whether ego itself does something else in the branch. */
static bool is_ego_branch(const struct branch *branch)
{
    bool own = false;
    for (uint32_t i = 0; branch != NULL && i < branch->intervention_count; i++) {
        own = own || report_is_own(branch->interventions[i].kind);
    }
    return own;
}

enum ending { PASSED, FAILED, NEVER_BEGAN };

/* A branch whose main line ended before its fork drove nothing: its verdict is that main line's. */
static enum ending ending_of(const struct outcome *outcome)
{
    return outcome->ticks <= outcome->prefix_ticks ? NEVER_BEGAN
           : outcome->verdict == VERDICT_PASS      ? PASSED
                                                   : FAILED;
}

/* Branches of its job in which ego acted for the planner, by how they ended. */
static uint32_t add_branches(struct line *line, const struct reading *reading, enum ending ending)
{
    uint32_t count = 0;
    for (uint32_t i = 0; reading->scenario != NULL && i < reading->count; i++) {
        const struct outcome *other = &reading->outcomes[i];
        const struct branch *branch = report_branch(reading->scenario, other->branch_id);
        if (!is_ego_branch(branch) || !verdict_is_result(other->verdict) ||
            ending_of(other) != ending) {
            continue;
        }
        add(line, "%s%s (%.1f s)", count++ == 0 ? "" : ", ", branch->id, branch->at_tick * TICK_S);
    }
    return count;
}

static void put_saved(FILE *stream, const struct reading *reading, const struct careful *careful)
{
    struct line line = {.used = 0};
    struct line not = {.used = 0};
    if (reading->outcome->branch_id[0] != '\0' || reading->outcome->verdict != VERDICT_FAIL) {
        return;
    }
    struct line saving = {.used = 0};
    if (add_branches(&saving, reading, PASSED) > 0) {
        add(&line, "branches that pass: %s", saving.text);
    }
    uint32_t failing = add_branches(&not, reading, FAILED);
    if (failing > 0) {
        add(&line, "%s%s fail%s too", line.used > 0 ? "; " : "no branch: ", not .text,
            failing > 1 ? "" : "s");
    }
    struct line late = {.used = 0};
    if (add_branches(&late, reading, NEVER_BEGAN) > 0) {
        add(&line, "%snever began: %s, after the main line's end", line.used > 0 ? "; " : "",
            late.text);
    }
    if (careful != NULL && careful->outside[0] != '\0') {
        add(&line, "%sa careful driver (UN R157): no answer, %s", line.used > 0 ? "; " : "",
            careful->outside);
    } else if (careful != NULL) {
        add(&line, "%sa careful driver (UN R157) would %s", line.used > 0 ? "; " : "",
            careful->drives[CAREFUL_DRIVER].avoids ? "have avoided it" : "not have avoided it");
    }
    put(stream, "saved by", &line);
}

static void put_next(FILE *stream, const struct outcome_text *text, const struct reading *reading)
{
    const struct outcome *outcome = reading->outcome;
    long long id = (long long)outcome->id;
    char word[LIMIT_PATH_BYTES];
    const char *store = text_shell_word(text->store_url, word, sizeof word);
    if (reading->recorded) {
        text_print(stream,
                   "%-9s swerve show %lld --store %s --video %lld.mp4   the drive as a film\n",
                   "next", id, store, id);
        text_print(stream, "%-9s swerve debug %lld --store %s%s   the same drive, and you in it\n",
                   "", id, store, outcome_world_option(outcome->sampler));
    }
    bool unsafe = !careful_is_safe(outcome->verdict, outcome->reasons, &outcome->metrics);
    if (outcome->verdict == VERDICT_FAIL && unsafe && outcome->branch_id[0] == '\0') {
        text_print(stream,
                   "%-9s swerve avoid %s --store %s   until when braking would have helped\n", "",
                   outcome->suite_id, store);
    }
    text_print(stream, "%-9s swerve show %lld --store %s --json   every figure\n",
               reading->recorded ? "" : "next", id, store);
}

/* ---- the whole ---- */

/* Reads what the store still has of it; the rest is said. */
static enum status read_all(const struct outcome_text *text, struct reading *reading, char *cause,
                            struct error *error)
{
    const struct outcome *outcome = reading->outcome;
    struct store_outcome_filter filter = {.job_id = outcome->job_id, .limit = 1 + LIMIT_BRANCHES};
    reading->outcomes = malloc((1 + LIMIT_BRANCHES) * sizeof *reading->outcomes);
    TRY(memory_check(reading->outcomes, error, "outcome: out of memory"));
    TRY(text->store->ops->outcomes(text->store, &filter, reading->outcomes, &reading->count,
                                   error));
    if (outcome->artifact_hash[0] == '\0') {
        return STATUS_OK;
    }
    struct error why;
    enum status status = report_drive_open(&reading->drive, text->store, outcome->scenario_hash,
                                           outcome->artifact_hash, &why);
    if (status != STATUS_OK) {
        snprintf(cause, ERROR_TEXT_BYTES, "%s",
                 is_clip(outcome) ? "none: the artifact is the clip" : why.text);
        reading->lost = cause;
    }
    reading->scenario = reading->drive.document != NULL ? &reading->drive.document->scenario : NULL;
    int32_t rollout =
        status == STATUS_OK ? report_drive_rollout(&reading->drive, outcome->branch_id) : -1;
    reading->recorded = rollout >= 0 && trace_reader_end_tick(&reading->drive.reader, rollout) > 0;
    if (reading->recorded) {
        reading->moment =
            report_drive_moment(&reading->drive, rollout, outcome->reasons, &outcome->metrics);
    }
    return STATUS_OK;
}

static void put_handed_back(FILE *stream, const struct outcome_text *text)
{
    struct line line = {.used = 0};
    if (text->handed_back > 0) {
        add(&line, "%lld time%s, last for suite %s of a higher class", (long long)text->handed_back,
            text->handed_back == 1 ? "" : "s", text->handed_back_for);
        put(stream, "made way", &line);
    }
}

enum status outcome_text_print(const struct outcome_text *text, const struct outcome *outcome,
                               FILE *stream, struct error *error)
{
    struct reading reading = {.outcome = outcome, .skipped_ticks = text->skipped_ticks};
    char cause[ERROR_TEXT_BYTES];
    enum status status = read_all(text, &reading, cause, error);
    if (status == STATUS_OK) {
        put_head(stream, &reading);
        put_drive(stream, &reading);
        put_handed_back(stream, text);
        put_moment(stream, &reading);
        put_faults(stream, &reading);
        put_saved(stream, &reading, text->careful);
        put_next(stream, text, &reading);
    }
    report_drive_close(&reading.drive);
    free(reading.outcomes);
    return status;
}
