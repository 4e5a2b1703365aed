/*
 * Drives for the player: rollouts of the suite, each job's document (drive_json.h) compressed and
 * put behind the page, where its script finds it. Failures come first, then fanouts whose branches
 * disagree, then the others, until REPORT_DRIVES_BYTES are full. Of the first two, what the cameras
 * of a rig saw at a few ticks is there as well, small, until REPORT_FRAMES_BYTES are.
 *
 * Runs before the sections are written, so that these know which rollouts can be played.
 */
#include "report/drive_json.h"
#include "report/report_internal.h"

#include <stdlib.h>

static void embed(struct report *report, const struct report_job *job, const struct json_text *text)
{
    struct html *html = &report->drives;
    const struct kept_outcome *outcomes = report->summary->outcomes + job->first;
    html_format(html,
                "<script type=\"application/x-swerve-drive\" data-scenario=\"%.64s\" "
                "data-label=\"%s, %s world, seed %llu\" data-outcomes=\"",
                outcomes[0].scenario_hash, outcomes[0].planner, tier_names[outcomes[0].tier],
                (unsigned long long)outcomes[0].seed);
    for (uint32_t i = 0; i < job->count; i++) {
        html_format(html, "%s%lld", i > 0 ? " " : "", (long long)outcomes[i].id);
    }
    html_raw(html, "\">");
    html_deflated(html, text->data, text->bytes);
    html_raw(html, "</script>\n");
}

/* Ticks of a rollout at which its cameras are shown, evenly, and the one that decided it. */
enum { FRAMES_TICKS = 6, FRAMES_WIDTH = 400 };

static uint32_t tick_of(const struct report_drive *drive, int32_t rollout,
                        const struct outcome *outcome, uint32_t index)
{
    const struct trace_reader *reader = &drive->reader;
    const uint32_t first = reader->rollouts[rollout].header.first_tick;
    const uint32_t last = trace_reader_last_tick(reader, rollout);
    return index == FRAMES_TICKS
               ? report_drive_moment(drive, rollout, outcome->reasons, &outcome->metrics).tick
               : first + (last > first ? last - first : 0) * index / (FRAMES_TICKS - 1);
}

/* Pictures that the cameras of an outcome's rig saw; one whose rig is not known has none. */
static enum status embed_frames(struct report *report, const struct outcome *outcome,
                                struct error *error)
{
    struct html *html = &report->drives;
    const int32_t rollout = report_drive_rollout(&report->drive, outcome->branch_id);
    struct html list = {0};
    enum status status = rollout >= 0 ? STATUS_OK : STATUS_NOT_FOUND;
    for (uint32_t i = 0; i <= FRAMES_TICKS && status == STATUS_OK; i++) {
        char *json = NULL;
        size_t bytes = 0;
        status =
            report->frames(&report->drive, outcome, tick_of(&report->drive, rollout, outcome, i),
                           FRAMES_WIDTH, &json, &bytes, error);
        if (status == STATUS_OK) {
            html_raw(&list, i > 0 ? "," : "[");
            html_raw(&list, json);
        }
        free(json);
    }
    if (status == STATUS_OK) {
        html_raw(&list, "]");
        html_format(html, "<script type=\"application/x-swerve-frames\" data-outcome=\"%lld\">",
                    (long long)outcome->id);
        html_deflated(html, list.text, list.bytes);
        html_raw(html, "</script>\n");
        report->frames_bytes += list.bytes;
        html->failed = html->failed || list.failed;
    }
    html_finish(&list);
    return status == STATUS_NO_MEMORY ? status : STATUS_OK;
}

/* A drive whose trace is gone or damaged is not played; its card says why. */
static enum status add_job(struct report *report, struct report_job *job, struct error *error)
{
    const struct drive_json_options options = {.others_bytes = DRIVE_JSON_OTHERS_BYTES};
    const struct kept_outcome *outcomes = report->summary->outcomes + job->first;
    struct report_drive *drive = &report->drive;
    struct json_text text = {0};
    if (outcomes[0].artifact_hash[0] == '\0') {
        return STATUS_OK;
    }
    enum status status = report_drive_open(drive, report->store, outcomes[0].scenario_hash,
                                           outcomes[0].artifact_hash, error);
    if (status == STATUS_OK && report_drive_rollout(drive, outcomes[0].branch_id) < 0) {
        return STATUS_OK;
    }
    struct outcome *whole = calloc(job->count, sizeof *whole);
    THEN(status, memory_check(whole, error, "report: out of memory"));
    for (uint32_t i = 0; i < job->count && whole != NULL; i++) {
        kept_outcome_whole(&outcomes[i], &whole[i]);
    }
    THEN(status, drive_json_encode(drive, whole, job->count, &options, &text, error));
    if (status == STATUS_OK) {
        embed(report, job, &text);
        job->played = true;
        report->plan.played += job->count;
    }
    const bool shown = status == STATUS_OK && report->frames != NULL && whole[0].rig[0] != '\0' &&
                       (job->failure_card || job->fanout_card);
    for (uint32_t i = 0; shown && status == STATUS_OK && i < job->count; i++) {
        if (report->frames_bytes < REPORT_FRAMES_BYTES) {
            status = embed_frames(report, &whole[i], error);
        }
    }
    free(whole);
    free(text.data);
    return status == STATUS_NO_MEMORY || status == STATUS_STORE ? status : STATUS_OK;
}

enum status report_drives(struct report *report, struct error *error)
{
    struct report_plan *plan = &report->plan;
    enum status status = STATUS_OK;
    for (int pass = 0; pass < 3; pass++) {
        for (uint32_t j = 0; status == STATUS_OK && j < plan->job_count; j++) {
            struct report_job *job = &plan->jobs[j];
            int rank = job->failure_card ? 0 : job->fanout_card ? 1 : 2;
            if (rank == pass && report->drives.bytes < REPORT_DRIVES_BYTES) {
                status = add_job(report, job, error);
            }
        }
    }
    return status;
}

void report_play(struct html *html, const struct report_job *job,
                 const struct kept_outcome *outcome)
{
    if (job->played) {
        html_format(html, "<button class=\"play\" hidden data-play=\"%lld\">&#9654;</button> ",
                    (long long)outcome->id);
    }
}
