/*
 * Counts what pairs say. See settled.h.
 */
#include "report/trust/settled.h"

#include "base/text.h"

struct settled settled_count(const struct pairs *pairs)
{
    struct settled settled = {0};
    for (uint32_t i = 0; i < pairs->count; i++) {
        const struct pairs_pair *pair = &pairs->pairs[i];
        const struct pairs_futures *futures = &pair->futures;
        if (pair->shadow || pair->branch_id[0] != '\0' || !pairs_judged(pair) ||
            pair->student.verdict == pair->teacher.verdict) {
            continue;
        }
        settled.disagreements++;
        if (futures->outcome_id == 0) {
            continue;
        }
        settled.driven++;
        settled.student_right += forecast_says(futures->settles, pair->student.verdict);
        settled.teacher_right += forecast_says(futures->settles, pair->teacher.verdict);
        settled.undecided += futures->settles == FORECAST_UNDECIDED;
        settled.contradicted += futures->settles != futures->answer;
    }
    return settled;
}

void settled_print(const struct settled *settled, FILE *stream)
{
    if (settled->disagreements == 0) {
        return;
    }
    text_print(stream, "\nmain lines whose verdicts differ: %lld, with futures %lld",
               (long long)settled->disagreements, (long long)settled->driven);
    if (settled->driven == 0) {
        text_print(stream, " (swerve futures SUITE --settle drives them)\n");
        return;
    }
    text_print(stream,
               ": the student is right in %lld, the teacher in %lld, undecided %lld (%lld answers "
               "that the drive itself contradicts)\n",
               (long long)settled->student_right, (long long)settled->teacher_right,
               (long long)settled->undecided, (long long)settled->contradicted);
}

json_t *settled_json(const struct settled *settled)
{
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I}", "disagreements", (json_int_t)settled->disagreements,
        "driven", (json_int_t)settled->driven, "student_right", (json_int_t)settled->student_right,
        "teacher_right", (json_int_t)settled->teacher_right, "undecided",
        (json_int_t)settled->undecided, "contradicted", (json_int_t)settled->contradicted);
}
