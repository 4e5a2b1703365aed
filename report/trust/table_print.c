/*
 * The table of agreement for people and as JSON. See table.h.
 */
#include "base/text.h"
#include "report/page/page.h"
#include "report/trust/table.h"
#include "schemas/json_record.h"
#include "schemas/scenario_json.h"

#include <math.h>

static void print_models(const struct table_row *row, bool tiers, struct page *page)
{
    FILE *stream = page->out;
    if (row->shadow) {
        text_print(stream, "\n%s %.12s (%s), beside %.12s (%s)\n", tiers ? "tier" : "shadow",
                   row->student.hash, row->student.sampler, row->teacher_hash,
                   row->teacher_sampler);
    } else {
        text_print(stream, "\nstudent %.12s (%s), teacher %.12s\n", row->student.hash,
                   row->student.sampler, row->teacher_hash);
    }
    page_table(page, "",
               "30 slice| #6 pairs|  20 same verdict (95%%)| #6 hit| #6 fault| #7 interv.| #7 "
               "comfort| #5 opt.| #5 pess.| #7 t. wrong|  %s",
               tiers ? "gate" : "monitor");
}

static double percent(const struct table_row *row, enum gate_property property)
{
    return 100.0 * (double)row->agree[property] / (double)row->pairs;
}

static void print_row(const struct table_row *row, bool tiers, struct page *page)
{
    char slice[TRUST_SLICE_TEXT_BYTES];
    char moment[DAY_MOMENT_BYTES];
    char since[2 * DAY_MOMENT_BYTES + 32] = "";
    const struct rate_estimate *verdict = &row->rate[GATE_VERDICT];
    const struct trust_monitor *monitor = &row->verdict.monitor;
    if (monitor->alarm != TRUST_QUIET) {
        snprintf(since, sizeof since, " after %lld jobs, %s", (long long)monitor->alarm_jobs,
                 day_moment_text(monitor->alarm_at_ms, moment));
    }
    page_row(
        page, "%s|%lld|%.1f%% (%.0f to %.0f)|%.0f%%|%.0f%%|%.0f%%|%.0f%%|%lld|%lld|%.0f|%s%s%s",
        trust_slice_text(&row->verdict.slice, slice), (long long)row->pairs,
        row->pairs > 0 ? 100.0 * verdict->value : (double)NAN, rate_down(100.0 * verdict->low, 1),
        rate_up(100.0 * verdict->high, 1), percent(row, GATE_COLLISION),
        percent(row, GATE_AT_FAULT), percent(row, GATE_INTERVENTION), percent(row, GATE_COMFORT),
        (long long)row->optimistic, (long long)row->pessimistic,
        row->with_object > 0 ? (double)row->teacher_wrong : (double)NAN,
        tiers         ? gate_result_names[row->judgement.result]
        : row->shadow ? "-"
                      : trust_alarm_names[monitor->alarm],
        since, row->verdict.frozen ? ", FROZEN to the teacher" : "");
}

/* Differences, and whom the arbiter sides with, of all that two models were asked. */
static void print_whole(const struct table_row *row, bool tiers, FILE *stream)
{
    const char *shadow = tiers ? "tier" : "shadow";
    const char *answer = tiers ? "all steps" : "answer";
    static const char *const words[TABLE_DIFFERENCES] = {"nearest agent, m", "progress, m",
                                                         "interventions of the guardian"};
    for (int d = 0; d < TABLE_DIFFERENCES; d++) {
        char mean[PAIRED_TEXT_BYTES];
        if (isfinite(row->difference[d].value)) {
            text_print(stream, "%s minus %s, %s, 95%%: %s\n", row->shadow ? answer : "teacher",
                       row->shadow ? shadow : "student", words[d],
                       paired_mean_text(&row->difference[d], mean));
        }
    }
    if (row->shadow) {
        text_print(stream,
                   "%lld rollouts have no verdict on one side; %lld were flagged in the %s, "
                   "%lld in what it repeats\n",
                   (long long)row->incomplete, (long long)row->student_flagged, shadow,
                   (long long)row->teacher_flagged);
    }
    if (row->with_object > 0) {
        text_print(stream,
                   "of %lld pairs that the object world answered too, it gives the %s's verdict "
                   "in %lld, the %s's in %lld\n",
                   (long long)row->with_object, row->shadow ? shadow : "student",
                   (long long)row->student_as_object, row->shadow ? answer : "teacher",
                   (long long)row->teacher_as_object);
    }
}

static void print_legend(FILE *stream)
{
    text_print(stream,
               "\nopt.: the student passes, the teacher fails (the shadow, and the answer that "
               "counts) and the object world does not pass; pess.: the other way round; t. wrong: "
               "the object world gives another verdict than the teacher\n");
    text_print(stream, "student and teacher were given the same agents: their agreement says how "
                       "sensitive the planner is to the drawing\n");
}

static void print_student(const struct table_student *student, FILE *stream)
{
    text_print(stream, "student %.12s (%s): %lld of %lld main lines were flagged\n",
               student->student.hash, student->student.sampler, (long long)student->flagged,
               (long long)student->drives);
    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        const struct drives_drift *drift = &student->drift[kind];
        if (drift->unseen > 0) {
            text_print(stream,
                       "  INPUT DRIFT in %s: %u value%s that its evaluation never saw, such as "
                       "\"%s\"; re-validation is due\n",
                       slice_names[kind], drift->unseen, drift->unseen == 1 ? "" : "s",
                       drift->unseen_value);
        } else if (drift->index > TRUST_DRIFT_INDEX) {
            text_print(stream,
                       "  INPUT DRIFT in %s: stability index %.2f, over %.2f; re-validation is "
                       "due\n",
                       slice_names[kind], drift->index, TRUST_DRIFT_INDEX);
        }
    }
}

/* Only those that sound: most never do. */
static void print_flags(const struct table_row *row, FILE *stream)
{
    char slice[TRUST_SLICE_TEXT_BYTES];
    char moment[DAY_MOMENT_BYTES];
    if (row->flags.alarm != TRUST_QUIET) {
        text_print(
            stream, "FLAGS of student %.12s (%s) in %s: %lld of %lld jobs, trend after %lld, %s\n",
            row->student.hash, row->student.sampler, trust_slice_text(&row->verdict.slice, slice),
            (long long)row->flags.bad, (long long)row->flags.jobs, (long long)row->flags.alarm_jobs,
            day_moment_text(row->flags.alarm_at_ms, moment));
    }
}

void table_print(const struct table *table, FILE *stream)
{
    struct page page = {.out = stream};
    const struct table_row *whole = NULL;
    if (table->count == 0) {
        text_print(stream, table->tiers ? "no question was answered by all steps and by fewer\n"
                                        : "no job was audited: nothing is known of whether the "
                                          "student agrees\n");
    }
    for (uint32_t i = 0; i < table->count; i++) {
        const struct table_row *row = &table->rows[i];
        if (whole == NULL || !table_same_models(row, whole)) {
            if (whole != NULL) {
                print_whole(whole, table->tiers, stream);
            }
            whole = row; /* "all" comes first */
            print_models(row, table->tiers, &page);
        }
        print_row(row, table->tiers, &page);
    }
    if (whole != NULL) {
        print_whole(whole, table->tiers, stream);
        if (!table->tiers) {
            print_legend(stream);
        }
    }
    if (table->missing > 0) {
        text_print(stream,
                   "%lld outcomes of audits and shadows repeat a job of which the store has no "
                   "outcome\n",
                   (long long)table->missing);
    }
    if (table->unlike > 0) {
        text_print(stream,
                   "%lld outcomes of audits and shadows answer another question than the job that "
                   "they repeat, or are no teacher's: they are left out\n",
                   (long long)table->unlike);
    }
    if (table->thawed > 0) {
        text_print(
            stream,
            "%lld audited jobs are history by the policy's \"thawed\": no monitor above sees "
            "them\n",
            (long long)table->thawed);
    }
    for (uint32_t i = 0; i < table->student_count; i++) {
        print_student(&table->students[i], stream);
    }
    for (uint32_t i = 0; i < table->count; i++) {
        print_flags(&table->rows[i], stream);
    }
}

/* ---- JSON ---- */

json_t *table_slice_json(const struct trust_slice *slice)
{
    json_t *json = json_object();
    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        if (slice->value[kind][0] != '\0') {
            json_object_set_new(json, slice_names[kind], json_string(slice->value[kind]));
        }
    }
    if (slice->safety_critical) {
        json_object_set_new(json, "safety_critical", json_true());
    }
    return json;
}

/* `bad`: the name of what it counts. */
static json_t *monitor_json(const struct trust_monitor *monitor, const char *bad)
{
    json_t *at = monitor->alarm_at_ms != 0 ? json_integer(monitor->alarm_at_ms) : json_null();
    return json_pack("{s:s, s:I, s:I, s:f, s:I, s:I, s:o}", "alarm",
                     trust_alarm_names[monitor->alarm], "jobs", (json_int_t)monitor->jobs, bad,
                     (json_int_t)monitor->bad, "sum", monitor->sum, "alarm_jobs",
                     (json_int_t)monitor->alarm_jobs, "alarm_outcome",
                     (json_int_t)monitor->alarm_outcome, "alarm_at_ms", at);
}

static json_t *student_json(const struct table_student *student)
{
    json_t *drift = json_object();
    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        const struct drives_drift *d = &student->drift[kind];
        json_object_set_new(drift, slice_names[kind],
                            json_pack("{s:I, s:I, s:f, s:i, s:s}", "before", (json_int_t)d->before,
                                      "after", (json_int_t)d->after, "index", d->index, "unseen",
                                      (int)d->unseen, "unseen_value", d->unseen_value));
    }
    return json_pack("{s:s, s:s, s:I, s:I, s:b, s:o}", "student", student->student.hash, "sampler",
                     student->student.sampler, "drives", (json_int_t)student->drives, "flagged",
                     (json_int_t)student->flagged, "drifted", student->drifted, "drift", drift);
}

static json_t *row_json(const struct table_row *row)
{
    json_t *agree = json_object();
    json_t *differences = json_object();
    for (int p = 0; p < GATE_PROPERTIES; p++) {
        const struct rate_estimate *rate = &row->rate[p];
        json_object_set_new(agree, gate_property_names[p],
                            json_pack("{s:I, s:o, s:o, s:o}", "pairs", (json_int_t)row->agree[p],
                                      "rate", json_finite_new(rate->value), "low",
                                      json_finite_new(rate->low), "high",
                                      json_finite_new(rate->high)));
    }
    for (int d = 0; d < TABLE_DIFFERENCES; d++) {
        const struct paired_mean *mean = &row->difference[d];
        json_object_set_new(differences, table_difference_names[d],
                            json_pack("{s:o, s:o, s:o}", "mean", json_finite_new(mean->value),
                                      "low", json_finite_new(mean->low), "high",
                                      json_finite_new(mean->high)));
    }
    return json_pack(
        "{s:b, s:s, s:s, s:s, s:s, s:o, s:I, s:I, s:I, s:I, s:o, s:I, s:I, s:o, s:{s:I, s:I, s:I, "
        "s:I}, "
        "s:o, s:o, s:b}",
        "shadow", row->shadow, "student", row->student.hash, "sampler", row->student.sampler,
        "teacher", row->teacher_hash, "teacher_sampler", row->teacher_sampler, "slice",
        table_slice_json(&row->verdict.slice), "pairs", (json_int_t)row->pairs, "incomplete",
        (json_int_t)row->incomplete, "student_flagged", (json_int_t)row->student_flagged,
        "teacher_flagged", (json_int_t)row->teacher_flagged, "agree", agree, "optimistic",
        (json_int_t)row->optimistic, "pessimistic", (json_int_t)row->pessimistic,
        "teacher_minus_student", differences, "object", "pairs", (json_int_t)row->with_object,
        "student_agrees", (json_int_t)row->student_as_object, "teacher_agrees",
        (json_int_t)row->teacher_as_object, "teacher_wrong", (json_int_t)row->teacher_wrong,
        "monitor", monitor_json(&row->verdict.monitor, "disagreed"), "flags",
        monitor_json(&row->flags, "flagged"), "frozen", row->verdict.frozen);
}

static json_t *judgement_json(const struct table_judgement *judged)
{
    return json_pack("{s:s, s:b, s:s, s:f}", "result", gate_result_names[judged->result], "decides",
                     judged->decides, "property", gate_property_names[judged->property], "band",
                     judged->band);
}

json_t *table_json(const struct table *table, bool by_day)
{
    json_t *rows = json_array();
    for (uint32_t i = 0; i < table->count; i++) {
        json_t *row = row_json(&table->rows[i]);
        if (table->tiers) {
            json_object_set_new(row, "gate", judgement_json(&table->rows[i].judgement));
        }
        if (by_day && table->rows[i].days != NULL) {
            table_put_days(row, &table->rows[i], DAY_MAX);
        }
        json_array_append_new(rows, row);
    }
    json_t *students = json_array();
    for (uint32_t i = 0; i < table->student_count; i++) {
        json_array_append_new(students, student_json(&table->students[i]));
    }
    return json_pack("{s:o, s:o, s:i, s:i, s:I, s:I, s:I}", "rows", rows, "students", students,
                     "frozen", (int)table->frozen, "sounding_flags", (int)table->sounding,
                     "missing", (json_int_t)table->missing, "unlike", (json_int_t)table->unlike,
                     "thawed", (json_int_t)table->thawed);
}
