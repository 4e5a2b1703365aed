/*
 * Comparing scenarios with a register of test protocols.
 */
#include "scenarios/protocol/protocol.h"
#include "schemas/scenario_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

const char *const protocol_finding_names[PROTOCOL_FINDING_COUNT] = {
    "undeclared", "unmeasured", "uncovered", "unregistered", "stale", "declared",
};

/* One scenario against its entry. */
struct checking {
    const struct scenario *scenario;
    struct protocol_file *file;
    protocol_report report;
    void *context;
    struct protocol_counts *counts;
};

/* ---- words ---- */

void protocol_number_text(enum protocol_quantity quantity, double value, char *out, size_t capacity)
{
    if (quantity == PROTOCOL_WEATHER && value >= 0 && value < WEATHER_COUNT) {
        snprintf(out, capacity, "%s", weather_names[(int)value]);
    } else if (quantity == PROTOCOL_LIGHT && value >= 0 && value < LIGHT_COUNT) {
        snprintf(out, capacity, "%s", light_names[(int)value]);
    } else {
        snprintf(out, capacity, "%.4g", value);
    }
}

void protocol_numbers_text(const struct protocol_subject *subject,
                           const struct protocol_numbers *numbers, char *out, size_t capacity)
{
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < numbers->count && used < capacity; i++) {
        char text[LIMIT_ID_BYTES];
        protocol_number_text(subject->quantity, numbers->number[i], text, sizeof text);
        const char *link = i == 0 ? "" : numbers->range ? " to " : " or ";
        used += (size_t)snprintf(out + used, capacity - used, "%s%s", link, text);
    }
}

/* ---- comparing ---- */

static bool numbers_hold(const struct protocol_numbers *numbers, double value)
{
    double slack = numbers->tolerance;
    if (numbers->range) {
        return value >= numbers->number[0] - slack && value <= numbers->number[1] + slack;
    }
    for (uint32_t i = 0; i < numbers->count; i++) {
        if (fabs(value - numbers->number[i]) <= slack) {
            return true;
        }
    }
    return numbers->count == 0;
}

static int32_t find_agent(const struct scenario *scenario, const char *id)
{
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        if (strcmp(scenario->agents[i].id, id) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

static bool measure(const struct scenario *scenario, const struct protocol_subject *subject,
                    double *out)
{
    return protocol_measure(scenario, subject->quantity, find_agent(scenario, subject->agent),
                            find_agent(scenario, subject->of), out) &&
           isfinite(*out);
}

static bool same_subject(const struct protocol_subject *a, const struct protocol_subject *b)
{
    return a->quantity == b->quantity && strcmp(a->agent, b->agent) == 0 &&
           strcmp(a->of, b->of) == 0;
}

static void tell(const struct checking *checking, enum protocol_finding_kind kind,
                 const struct protocol_subject *subject, double measured, const char *expected,
                 const char *reason)
{
    struct protocol_finding finding = {
        .kind = kind,
        .file = checking->file->file,
        .scenario = checking->scenario != NULL ? checking->scenario->id : "",
        .subject = subject,
        .measured = measured,
        .expected = expected,
        .reason = reason,
    };
    checking->counts->problems += kind < PROTOCOL_STALE;
    checking->counts->declared += kind == PROTOCOL_DECLARED;
    checking->report(checking->context, &finding);
}

static struct protocol_deviation *find_deviation(struct protocol_file *file,
                                                 const struct protocol_subject *subject,
                                                 double measured)
{
    for (uint32_t i = 0; i < file->deviation_count; i++) {
        struct protocol_deviation *deviation = &file->deviations[i];
        if (deviation->measured && same_subject(&deviation->subject, subject) &&
            numbers_hold(&deviation->numbers, measured)) {
            return deviation;
        }
    }
    return NULL;
}

static bool applies(const struct scenario *scenario, const struct protocol_value *value)
{
    double number;
    return !value->conditional ||
           (measure(scenario, &value->when, &number) && numbers_hold(&value->when_numbers, number));
}

static void check_value(const struct checking *checking, const struct protocol_value *value)
{
    double measured;
    char expected[PROTOCOL_EXPECTED_BYTES];
    const struct protocol_subject *subject = &value->subject;
    if (!applies(checking->scenario, value)) {
        return;
    }
    protocol_numbers_text(subject, &value->numbers, expected, sizeof expected);
    if (!measure(checking->scenario, subject, &measured)) {
        tell(checking, PROTOCOL_UNMEASURED, subject, NAN, expected, "");
        return;
    }
    checking->counts->values++;
    if (numbers_hold(&value->numbers, measured)) {
        return;
    }
    struct protocol_deviation *deviation = find_deviation(checking->file, subject, measured);
    if (deviation == NULL) {
        tell(checking, PROTOCOL_UNDECLARED, subject, measured, expected, value->source);
    } else {
        deviation->found = true;
        tell(checking, PROTOCOL_DECLARED, subject, measured, expected, deviation->reason);
    }
}

/* A quantity that must be in the entry: as a value that applies here. */
static void check_covered(const struct checking *checking, enum protocol_quantity quantity,
                          const char *agent)
{
    struct protocol_subject subject = {.quantity = quantity};
    snprintf(subject.agent, sizeof subject.agent, "%s", agent);
    for (uint32_t i = 0; i < checking->file->value_count; i++) {
        const struct protocol_value *value = &checking->file->values[i];
        if (same_subject(&value->subject, &subject) && applies(checking->scenario, value)) {
            return;
        }
    }
    tell(checking, PROTOCOL_UNCOVERED, &subject, NAN, "", "");
}

static void check_scenario(const struct checking *checking)
{
    const struct scenario *scenario = checking->scenario;
    checking->file->checked = true;
    checking->counts->scenarios++;
    for (uint32_t i = 0; i < checking->file->value_count; i++) {
        check_value(checking, &checking->file->values[i]);
    }
    check_covered(checking, PROTOCOL_EGO_SPEED_KPH, "");
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        check_covered(checking, PROTOCOL_SPEED_KPH, scenario->agents[i].id);
        if (checking->file->sizes) {
            check_covered(checking, PROTOCOL_LENGTH_M, scenario->agents[i].id);
            check_covered(checking, PROTOCOL_WIDTH_M, scenario->agents[i].id);
        }
    }
}

/* ---- suites ---- */

static struct protocol_file *find_file(struct protocol_register *protocols, const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        return NULL;
    }
    for (uint32_t i = 0; i < protocols->file_count; i++) {
        if (protocols->files[i].device == (uint64_t)info.st_dev &&
            protocols->files[i].inode == (uint64_t)info.st_ino) {
            return &protocols->files[i];
        }
    }
    return NULL;
}

/* Whether the file lies in a folder that the register names. */
static bool must_have_entry(const struct protocol_register *protocols, const char *path)
{
    const char *end = strrchr(path, '/');
    if (end == NULL) {
        return false;
    }
    const char *start = end;
    while (start > path && start[-1] != '/') {
        start--;
    }
    size_t bytes = (size_t)(end - start);
    for (uint32_t i = 0; i < protocols->folder_count; i++) {
        const char *folder = protocols->folders[i];
        if (strlen(folder) == bytes && memcmp(folder, start, bytes) == 0) {
            return true;
        }
    }
    return false;
}

void protocol_check(struct protocol_register *protocols, const struct suite *suite,
                    protocol_report report, void *context, struct protocol_counts *counts)
{
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        const struct suite_entry *entry = &suite->entries[i];
        struct protocol_file unknown = {.file = entry->file};
        struct checking checking = {
            .scenario = &entry->document->scenario,
            .file = find_file(protocols, entry->file),
            .report = report,
            .context = context,
            .counts = counts,
        };
        if (checking.file != NULL) {
            check_scenario(&checking);
        } else if (must_have_entry(protocols, entry->file)) {
            checking.file = &unknown;
            tell(&checking, PROTOCOL_UNREGISTERED, NULL, NAN, "", "");
        }
    }
}

void protocol_check_finish(struct protocol_register *protocols, protocol_report report,
                           void *context, struct protocol_counts *counts)
{
    for (uint32_t i = 0; i < protocols->file_count; i++) {
        struct protocol_file *file = &protocols->files[i];
        struct checking checking = {
            .file = file, .report = report, .context = context, .counts = counts};
        for (uint32_t k = 0; file->checked && k < file->deviation_count; k++) {
            const struct protocol_deviation *deviation = &file->deviations[k];
            char shown[PROTOCOL_EXPECTED_BYTES] = "";
            if (!deviation->measured) {
                tell(&checking, PROTOCOL_DECLARED, NULL, NAN, "", deviation->reason);
            } else if (!deviation->found) {
                protocol_numbers_text(&deviation->subject, &deviation->numbers, shown,
                                      sizeof shown);
                tell(&checking, PROTOCOL_STALE, &deviation->subject, NAN, shown, deviation->reason);
            }
        }
    }
}
