/*
 * swerve show: one outcome in ten lines, or as JSON with its metrics and what its planner wrote;
 * its trace as JSON (one object per tick, for pandas), its scenario, or a video of it; with --all
 * every outcome of a store or suite, one JSON object a line.
 */
#include "cli/careful_answers.h"
#include "cli/cli.h"
#include "engine/trace/trace.h"
#include "report/draw/draw_rig.h"
#include "report/draw/draw_video.h"
#include "report/outcome_text.h"
#include "report/trust/skipped.h"

#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "schemas/json_record.h"
#include "schemas/outcome_json.h"
#include "schemas/scenario_json.h"
#include "store/api/store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct show {
    const char *store_url;
    bool trace;
    bool scenario;
    bool all;
    bool json;
    bool output;          /* what the planner wrote */
    const char *video;    /* file to write the drive to */
    const char *rig;      /* file, whose cameras it shows */
    const char *snapshot; /* file to write the flagged frame to */
    const char *suite;
    bool reader_left; /* stdout is a pipe that nobody reads any more */
    struct store *store;
    struct outcome outcome;
};

static enum status print_scenario(struct show *show, struct error *error)
{
    char *body = NULL;
    size_t bytes = 0;
    TRY(show->store->ops->scenario_get(show->store, show->outcome.scenario_hash, &body, &bytes,
                                       error));
    text_print_lines(stdout, "%s\n", body);
    free(body);
    return STATUS_OK;
}

/* The picture of what a health check flagged. */
static enum status write_snapshot(struct show *show, struct error *error)
{
    const struct outcome *outcome = &show->outcome;
    void *png = NULL;
    size_t bytes = 0;
    if (outcome->evidence_hash[0] == '\0') {
        return error_set(error, STATUS_NOT_FOUND,
                         "outcome %lld: expected a rollout flagged in a learned world, found %s",
                         (long long)outcome->id,
                         outcome->health_check[0] == '\0' ? "one that no health check flagged"
                                                          : "a flag on a world that is redrawn");
    }
    enum status status =
        show->store->ops->artifact_get(show->store, outcome->evidence_hash, &png, &bytes, error);
    if (status == STATUS_OK) {
        status = file_replace(show->snapshot, png, bytes, 0644, error);
        free(png);
    }
    if (status == STATUS_OK) {
        text_print(stdout, "%s: %s at tick %u, found %g, bound %g\n", show->snapshot,
                   outcome->health_check, outcome->health_tick, outcome->health_value,
                   outcome->health_threshold);
    }
    return status;
}

/* The outcome's trace: the artifact, its reader and which rollout of it is meant. The caller frees
 * *data and finishes the reader, on failure too. */
static enum status open_trace(struct show *show, void **data, struct trace_reader *reader,
                              int32_t *rollout, struct error *error)
{
    size_t bytes = 0;
    enum status status = show->store->ops->artifact_get(show->store, show->outcome.artifact_hash,
                                                        data, &bytes, error);
    if (status == STATUS_NOT_FOUND) { /* the outcome is known: it is the store that lacks a part */
        char cause[ERROR_TEXT_BYTES];
        snprintf(cause, sizeof cause, "%s", error->text);
        status = error_set(error, STATUS_STORE,
                           "outcome %lld: its trace is missing: %.800s; run the suite again (the "
                           "same command), or restore the file",
                           (long long)show->outcome.id, cause);
    }
    if (status == STATUS_GONE) {
        error_prefix(error,
                     "outcome %lld: its trace is gone, the suite's `swerve run` drives it again",
                     (long long)show->outcome.id);
    }
    THEN(status, trace_reader_init(reader, *data, bytes, error));
    *rollout = status == STATUS_OK ? trace_reader_find(reader, show->outcome.branch_id) : -1;
    if (status == STATUS_OK && *rollout < 0) {
        status = error_set(error, STATUS_STORE, "outcome %lld: not in its trace artifact",
                           (long long)show->outcome.id);
    }
    return status;
}

/* Text that the planner wrote to stderr during the rollout, as one JSON string; "": nothing. */
static enum status read_output(struct show *show, json_t **out, struct error *error)
{
    void *data = NULL;
    struct trace_reader reader = {0};
    int32_t rollout;
    uint32_t bytes = 0;
    char text[TRACE_OUTPUT_BYTES_MAX + 1] = "";
    enum status status = open_trace(show, &data, &reader, &rollout, error);
    if (status == STATUS_OK) {
        const char *found = trace_reader_output(&reader, rollout, &bytes);
        memcpy(text, found != NULL ? found : "", bytes);
        *out = json_text_new(text, sizeof text);
    }
    trace_reader_finish(&reader);
    free(data);
    return status;
}

static enum status print_output(struct show *show, struct error *error)
{
    json_t *text = NULL;
    TRY(read_output(show, &text, error));
    text_print_lines(stdout, "%s", json_string_value(text));
    json_decref(text);
    return STATUS_OK;
}

/* Drive of a careful driver, where that is asked. */
static enum status read_careful(struct show *show, json_t **out, struct error *error)
{
    struct careful_answers answers = careful_answers_begin();
    struct careful found;
    enum status status = careful_answer(&answers, show->store, &show->outcome, &found, error);
    careful_answers_end(&answers);
    if (status == STATUS_OK) {
        *out = careful_json(&found);
    }
    return status;
}

/* As JSON; one of an older store, which kept no times, says so. */
static json_t *outcome_json(const struct outcome *outcome)
{
    json_t *json = outcome_encode(outcome);
    if (json != NULL && outcome->at_ms == 0) {
        json_object_set_new(json, "at_ms", json_null());
    }
    return json;
}

/* Ticks that left out steps by their scenario; 0 where the store has lost it. */
static uint32_t skipped_by(const struct show *show)
{
    const struct outcome *outcome = &show->outcome;
    struct error ignored;
    uint32_t ticks = 0;
    bool found = outcome->model_hash[0] != '\0' &&
                 skipped_find(show->store, outcome->scenario_hash, outcome->branch_id,
                              outcome->ticks, &ticks, &ignored) == STATUS_OK;
    return found ? ticks : 0;
}

/* Origin of the outcome's job and where it went, beside the outcome itself. */
static json_t *with_lineage(struct show *show)
{
    struct store_job job;
    struct error ignored;
    json_t *json = outcome_json(&show->outcome);
    if (json != NULL &&
        show->store->ops->job(show->store, show->outcome.job_id, &job, &ignored) == STATUS_OK) {
        json_object_set_new(json, "job_state", json_string(job_state_names[job.state]));
        json_object_set_new(json, "job_key", json_string(job.spec.key));
        json_object_set_new(json, "handed_back", json_integer((json_int_t)job.handed_back));
        json_object_set_new(json, "handed_back_for", json_string(job.handed_back_for));
    }
    uint32_t skipped = skipped_by(show);
    if (json != NULL && skipped > 0) {
        json_object_set_new(json, "skipped_ticks", json_integer(skipped));
    }
    json_t *output = NULL;
    if (json != NULL && show->outcome.artifact_hash[0] != '\0') {
        if (read_output(show, &output, &ignored) != STATUS_OK) {
            json_object_set_new(json, "trace_fault", json_text_new(ignored.text, ERROR_TEXT_BYTES));
        } else if (json_string_length(output) > 0) {
            json_object_set(json, "planner_output", output);
        }
    }
    json_decref(output);
    json_t *careful = NULL;
    if (json != NULL && careful_asked(&show->outcome)) {
        if (read_careful(show, &careful, &ignored) != STATUS_OK) {
            json_object_set_new(json, "careful_fault",
                                json_text_new(ignored.text, ERROR_TEXT_BYTES));
        } else {
            json_object_set_new(json, "careful", careful);
        }
    }
    return json;
}

static json_t *tick_json(const struct trace_tick *tick, const struct trace_agent *agents,
                         uint32_t agent_count)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < agent_count; i++) {
        if (agents[i].present) {
            json_array_append_new(list, json_pack("{s:i, s:f, s:f, s:f, s:f}", "agent", (int)i,
                                                  "x_m", agents[i].x_m, "y_m", agents[i].y_m,
                                                  "heading_rad", agents[i].heading_rad, "speed_mps",
                                                  agents[i].speed_mps));
        }
    }
    return json_pack("{s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:b, s:i, s:i, "
                     "s:s, s:s, s:f, s:f, s:o}",
                     "tick", (int)tick->tick, "t_s", tick->tick * TICK_S, "x_m", tick->x_m, "y_m",
                     tick->y_m, "heading_rad", tick->heading_rad, "speed_mps", tick->speed_mps,
                     "accel_mps2", tick->accel_mps2, "lat_accel_mps2", tick->lat_accel_mps2,
                     "yaw_rate_rps", tick->yaw_rate_rps, "steer_rad", tick->steer_rad,
                     "action_accel_mps2", tick->action_accel_mps2, "action_steer_rad",
                     tick->action_steer_rad, "guardian", tick->guardian != 0, "skipped_steps",
                     (int)tick->skipped, "sensors_dark", (int)tick->sensors_dark, "weather",
                     weather_names[tick->weather % WEATHER_COUNT], "light",
                     light_names[tick->light % LIGHT_COUNT], "friction", (double)tick->friction,
                     "visibility_m", (double)tick->visibility_m, "agents", list);
}

static enum status print_line(struct show *show, json_t *json, struct error *error)
{
    errno = 0;
    bool bad = !cli_put_json(json, true);
    show->reader_left = bad && errno == EPIPE;
    json_decref(json);
    return bad ? error_set(error, STATUS_IO, "cannot write to stdout") : STATUS_OK;
}

static enum status print_trace(struct show *show, struct error *error)
{
    void *data = NULL;
    struct trace_reader reader = {0};
    int32_t rollout;
    enum status status = open_trace(show, &data, &reader, &rollout, error);
    for (uint32_t t = 0; status == STATUS_OK && t <= trace_reader_last_tick(&reader, rollout);
         t++) {
        struct trace_tick tick;
        struct trace_agent agents[LIMIT_AGENTS];
        if (!trace_reader_tick(&reader, rollout, t, &tick, agents)) {
            continue;
        }
        status = print_line(show, tick_json(&tick, agents, reader.header.agent_count), error);
    }
    trace_reader_finish(&reader);
    free(data);
    return status;
}

static enum status print_outcome(void *show, const struct outcome *outcome, struct error *error)
{
    return print_line(show, outcome_json(outcome), error);
}

static enum status write_video(struct show *show, struct error *error)
{
    struct report_drive drive = {0};
    char written[LIMIT_PATH_BYTES];
    bool instead = false;
    static struct rig rig;
    if (show->rig != NULL) {
        TRY(rig_read(show->rig, &rig, NULL, error));
        TRY(draw_rig_check(show->rig, &rig, NULL, error));
    }
    enum status status = report_drive_open(&drive, show->store, show->outcome.scenario_hash,
                                           show->outcome.artifact_hash, error);
    THEN(status, draw_video(&drive, &show->outcome, show->rig != NULL ? &rig : NULL, show->video,
                            written, &instead, error));
    report_drive_close(&drive);
    if (status == STATUS_OK && instead) {
        text_print(stdout,
                   "%s: there is no ffmpeg in PATH, so this is an animated PNG, which browsers "
                   "show; \"apt install ffmpeg\" for mp4 and gif\n",
                   written);
    } else if (status == STATUS_OK) {
        text_print(stdout, "%s\n", written);
    }
    return status;
}

/* A careful driver that has no answer is left out. */
static enum status print_text(struct show *show, struct error *error)
{
    struct careful_answers answers = careful_answers_begin();
    struct careful found;
    struct error ignored;
    struct store_job job;
    struct outcome_text text = {.store = show->store,
                                .store_url = cli_store_url(show->store_url),
                                .skipped_ticks = skipped_by(show)};
    if (careful_asked(&show->outcome) &&
        careful_answer(&answers, show->store, &show->outcome, &found, &ignored) == STATUS_OK) {
        text.careful = &found;
    }
    careful_answers_end(&answers);
    if (show->store->ops->job(show->store, show->outcome.job_id, &job, &ignored) == STATUS_OK) {
        text.handed_back = job.handed_back;
        text.handed_back_for = job.handed_back_for;
    }
    return outcome_text_print(&text, &show->outcome, stdout, error);
}

static enum status show_one(struct show *show, int64_t id, struct error *error)
{
    TRY(cli_outcome_find(show->store, id, &show->outcome, error));
    if (show->scenario) {
        return print_scenario(show, error);
    }
    if (show->trace) {
        return print_trace(show, error);
    }
    if (show->output) {
        return print_output(show, error);
    }
    if (show->snapshot != NULL) {
        return write_snapshot(show, error);
    }
    if (show->video != NULL) {
        return write_video(show, error);
    }
    return show->json ? cli_write_json(with_lineage(show), error) : print_text(show, error);
}

int command_show(int argc, char **argv)
{
    struct show show = {0};
    const struct cli_option rows[] = {
        {"--store", "URL", "job store ($SWERVE_STORE, else swerve.db)", .text = &show.store_url},
        {"--json", NULL, "one JSON object: every figure, and what its planner wrote",
         .flag = &show.json},
        {"--trace", NULL, "its ticks, one JSON object a line", .flag = &show.trace},
        {"--scenario", NULL, "its scenario document", .flag = &show.scenario},
        {"--stderr", NULL, "what its planner wrote to stderr, or sent as debug bytes",
         .flag = &show.output},
        {"--evidence", "FILE.png", "the frame that a health check flagged", .text = &show.snapshot},
        {"--video", "FILE", "the drive as FILE.mp4 or .gif (by ffmpeg) or an animated .png",
         .text = &show.video},
        {"--rig", "FILE", "with --video: its cameras, drawn again, in place of the road",
         .text = &show.rig},
        {"--all", NULL, "every outcome, one JSON object a line", .flag = &show.all},
        {"--suite", "ID", "with --all: only this suite's", .text = &show.suite},
    };
    const struct cli_command command = {
        "show",
        "OUTCOME|--all --store URL",
        "One outcome: what happened, when and with whom, what would have saved it, where to go on.",
        CLI_ROWS(rows, 0, 1),
    };
    const char *argument = NULL;
    uint32_t count = 0;
    int64_t id = 0;
    struct error error;
    CLI_PARSE(&command, argc, argv, &argument, &count);
    enum status status = STATUS_OK;
    int parts = show.json + show.trace + show.scenario + show.output + (show.snapshot != NULL) +
                (show.video != NULL);
    if ((count == 1) == show.all || (show.all && parts > show.json) || parts > 1 ||
        (!show.all && show.suite != NULL) || (show.rig != NULL && show.video == NULL)) {
        status = error_set(&error, STATUS_USAGE,
                           "expected one OUTCOME with --json, --trace, --scenario, --stderr, "
                           "--evidence or --video (with --rig), or --all with --suite");
    } else if (count == 1) {
        status = cli_parse_id(argument, &id, &error);
    }
    THEN(status, cli_store_open(show.store_url, &show.store, &error));
    THEN(status, show.all
                     ? store_outcomes_each(show.store, show.suite, print_outcome, &show, &error)
                     : show_one(&show, id, &error));
    cli_store_close(show.store);
    /* Who took what they wanted and left, as head does, is no error. */
    return status == STATUS_OK || show.reader_left ? 0 : cli_fail(&error);
}
