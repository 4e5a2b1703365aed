/*
 * Ledger to shares to load. See capacity.h.
 */
#include "report/trust/capacity.h"

#include "base/text.h"
#include "base/units.h"
#include "schemas/json_record.h"

#include <math.h>
#include <string.h>

struct tier_sum {
    int64_t jobs;
    int64_t flagged;
    int64_t audits;
    int64_t device_ns;
};

static struct tier_sum sum_tier(const struct store_ledger_row *rows, uint32_t count, enum tier tier)
{
    struct tier_sum sum = {0};
    for (uint32_t i = 0; i < count; i++) {
        const struct store_ledger_row *row = &rows[i];
        if (row->tier != tier || row->shadow) { /* which wait for idle workers */
            continue;
        }
        bool flagged = strcmp(row->end, "flagged") == 0;
        bool ended = flagged || strcmp(row->end, "done") == 0;
        sum.device_ns += row->totals.device_ns; /* whatever came of it */
        sum.jobs += ended ? row->totals.attempts : 0;
        sum.flagged += flagged ? row->totals.attempts : 0;
        sum.audits += ended && row->audit ? row->totals.attempts : 0;
    }
    return sum;
}

/* Whether a drive lies in a slice that the policy freezes by the audits, or the store by an event.
 */
static bool is_frozen(const struct pairs *pairs, const struct table *table, uint32_t drive)
{
    const struct decisions *decisions = &pairs->decisions;
    bool found = false;
    for (uint32_t r = 0; r < table->count && !found; r++) {
        const struct table_row *row = &table->rows[r];
        found = row->verdict.frozen &&
                drives_is_in(&pairs->drives, drive, &row->student, &row->verdict.slice);
    }
    for (uint32_t i = 0; i < decisions->count && !found; i++) {
        const struct trust_event *event = &decisions->events[i];
        const struct drives_student student =
            drives_student_of(event->student_hash, event->student_sampler);
        found = decisions_holds(event, NULL) &&
                drives_is_in(&pairs->drives, drive, &student, &event->slice);
    }
    return found;
}

/* Of all jobs that students were asked, those in a slice in which theirs is frozen. What a freeze
 * that holds has given to the teacher is in no drive of a student's. */
static double frozen_share(const struct pairs *pairs, const struct table *table)
{
    const struct decisions *decisions = &pairs->decisions;
    int64_t frozen = 0;
    int64_t moved = 0;
    for (uint32_t i = 0; i < pairs->drives.count; i++) {
        frozen += is_frozen(pairs, table, i);
    }
    for (uint32_t i = 0; i < decisions->count; i++) {
        const struct trust_event *event = &decisions->events[i];
        moved += decisions_holds(event, NULL) ? event->jobs_moved : 0;
    }
    int64_t asked = (int64_t)pairs->drives.count + moved;
    return asked > 0 ? (double)(frozen + moved) / (double)asked : 0.0;
}

static double seconds_each(const struct tier_sum *sum)
{
    return sum->jobs > 0 ? (double)sum->device_ns / (double)NS_PER_S / (double)sum->jobs
                         : (double)NAN;
}

struct capacity capacity_of(const struct store_ledger_row *rows, uint32_t count,
                            const struct pairs *pairs, const struct table *table, double audit_rate,
                            int64_t students, int64_t teachers)
{
    struct tier_sum student = sum_tier(rows, count, TIER_STUDENT);
    struct tier_sum teacher = sum_tier(rows, count, TIER_TEACHER);
    double jobs = student.jobs > 0 ? (double)student.jobs : (double)NAN;
    struct capacity capacity = {
        .student_jobs = student.jobs,
        .teacher_jobs = teacher.jobs,
        .student_s = seconds_each(&student),
        .teacher_s = seconds_each(&teacher),
        .audit_share = audit_rate >= 0.0 ? audit_rate : (double)teacher.audits / jobs,
        .flag_share = (double)student.flagged / jobs,
        .frozen_share = frozen_share(pairs, table),
        .load = (double)NAN,
    };
    capacity.cost_ratio = capacity.teacher_s / capacity.student_s;
    double frozen = capacity.frozen_share / (1.0 - capacity.frozen_share);
    capacity.per_student =
        (capacity.audit_share + capacity.flag_share + frozen) * capacity.cost_ratio;
    if (students > 0 && teachers > 0) {
        capacity.load = (double)students * capacity.per_student / (double)teachers;
    }
    return capacity;
}

void capacity_print(const struct capacity *capacity, FILE *stream)
{
    if (!isfinite(capacity->cost_ratio)) {
        text_print(
            stream,
            "student jobs %lld, teacher jobs %lld: what one costs beside the other was never "
            "measured\n",
            (long long)capacity->student_jobs, (long long)capacity->teacher_jobs);
        return;
    }
    text_print(stream, "a student's job  %10.3f s of device time (%lld jobs)\n",
               capacity->student_s, (long long)capacity->student_jobs);
    text_print(stream, "a teacher's job  %10.3f s (%lld jobs), %.2f times as much\n",
               capacity->teacher_s, (long long)capacity->teacher_jobs, capacity->cost_ratio);
    text_print(stream,
               "of the student's jobs %.1f%% audited, %.1f%% flagged; %.1f%% of all frozen\n",
               100.0 * capacity->audit_share, 100.0 * capacity->flag_share,
               100.0 * capacity->frozen_share);
    if (isfinite(capacity->per_student)) {
        text_print(stream, "a busy student worker keeps %.3f teacher workers busy\n",
                   capacity->per_student);
    } else {
        text_print(stream, "all is frozen: the teacher does everything\n");
    }
    if (!isnan(capacity->load)) {
        text_print(stream, "load of the teacher's workers: %.0f%%%s\n", 100.0 * capacity->load,
                   capacity->load > 1.0 ? ", OVER: their queue grows for ever" : "");
    }
}

json_t *capacity_json(const struct capacity *capacity)
{
    return json_pack(
        "{s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b}", "student_jobs",
        (json_int_t)capacity->student_jobs, "teacher_jobs", (json_int_t)capacity->teacher_jobs,
        "student_s", json_finite_new(capacity->student_s), "teacher_s",
        json_finite_new(capacity->teacher_s), "cost_ratio", json_finite_new(capacity->cost_ratio),
        "audit_share", json_finite_new(capacity->audit_share), "flag_share",
        json_finite_new(capacity->flag_share), "frozen_share",
        json_finite_new(capacity->frozen_share), "teachers_per_student",
        json_finite_new(capacity->per_student), "load", json_finite_new(capacity->load), "over",
        capacity->load > 1.0);
}
