/*
 * Printing the check of test protocols.
 */
#include "cli/protocol_options.h"

#include "base/text.h"

#include <math.h>
#include <stdio.h>

enum { LINE_BYTES = 1024 };

enum status protocol_session_open(const char *path, bool json, struct protocol_session *session,
                                  struct error *error)
{
    *session = (struct protocol_session){.json = json};
    if (path == NULL) {
        return STATUS_OK;
    }
    session->findings = json_array();
    return protocol_register_load(path, &session->protocols, error);
}

void protocol_session_close(struct protocol_session *session)
{
    json_decref(session->findings);
    protocol_register_destroy(session->protocols);
}

static const char *quantity_name(const struct protocol_finding *finding)
{
    return finding->subject != NULL ? protocol_quantity_names[finding->subject->quantity] : "";
}

/* "target: length_m: 4.5, expected 4.023" */
static void describe(const struct protocol_finding *finding, char *out, size_t capacity)
{
    const char *agent = finding->subject != NULL ? finding->subject->agent : "";
    char measured[LIMIT_ID_BYTES];
    const char *gap = agent[0] != '\0' ? ": " : "";
    switch (finding->kind) {
    case PROTOCOL_UNDECLARED:
        protocol_number_text(finding->subject->quantity, finding->measured, measured,
                             sizeof measured);
        snprintf(out, capacity, "%s%s%s: expected %s (%s), found %s, and no deviation is declared",
                 agent, gap, quantity_name(finding), finding->expected, finding->reason, measured);
        break;
    case PROTOCOL_UNMEASURED:
        snprintf(out, capacity, "%s%s%s: expected %s, found nothing to measure", agent, gap,
                 quantity_name(finding), finding->expected);
        break;
    case PROTOCOL_UNCOVERED:
        snprintf(out, capacity, "%s%s%s: expected a value in the register, found none", agent, gap,
                 quantity_name(finding));
        break;
    case PROTOCOL_UNREGISTERED:
        snprintf(out, capacity, "expected an entry in the register, found none");
        break;
    case PROTOCOL_STALE:
        snprintf(out, capacity, "%s%s%s: a deviation is declared that no scenario shows: %s", agent,
                 gap, quantity_name(finding), finding->reason);
        break;
    case PROTOCOL_DECLARED:
    case PROTOCOL_FINDING_COUNT:
        snprintf(out, capacity, "%s", finding->reason);
        break;
    }
}

static json_t *finding_json(const struct protocol_finding *finding)
{
    json_t *row = json_pack("{s:s, s:s, s:s}", "kind", protocol_finding_names[finding->kind],
                            "file", finding->file, "scenario", finding->scenario);
    if (finding->subject != NULL) {
        json_object_set_new(row, "quantity", json_string(quantity_name(finding)));
        json_object_set_new(row, "agent", json_string(finding->subject->agent));
        json_object_set_new(row, "expected", json_string(finding->expected));
    }
    if (finding->subject != NULL && isfinite(finding->measured)) {
        char measured[LIMIT_ID_BYTES];
        protocol_number_text(finding->subject->quantity, finding->measured, measured,
                             sizeof measured);
        json_object_set_new(row, "found", json_string(measured));
    }
    json_object_set_new(row, "reason", json_string(finding->reason));
    return row;
}

static void take(void *context, const struct protocol_finding *finding)
{
    struct protocol_session *session = context;
    json_array_append_new(session->findings, finding_json(finding));
    if (!session->json && finding->kind < PROTOCOL_DECLARED) {
        char line[LINE_BYTES];
        describe(finding, line, sizeof line);
        text_print(stderr, "swerve: %s%s%s: %s\n", finding->file,
                   finding->scenario[0] != '\0' ? ": " : "", finding->scenario, line);
    }
}

void protocol_session_check(struct protocol_session *session, const struct suite *suite)
{
    if (session->protocols != NULL) {
        protocol_check(session->protocols, suite, take, session, &session->counts);
    }
}

/* A deviation of a file that was checked, once, with what it is about. */
static void print_deviation(const struct protocol_file *file,
                            const struct protocol_deviation *deviation)
{
    char found[PROTOCOL_EXPECTED_BYTES] = "";
    if (!deviation->measured) {
        text_print(stdout, "  %s: %s\n", file->file, deviation->reason);
        return;
    }
    protocol_numbers_text(&deviation->subject, &deviation->numbers, found, sizeof found);
    text_print(stdout, "  %s: %s%s%s %s: %s\n", file->file, deviation->subject.agent,
               deviation->subject.agent[0] != '\0' ? ": " : "",
               protocol_quantity_names[deviation->subject.quantity], found, deviation->reason);
}

static void print_register(const struct protocol_session *session, uint32_t files,
                           uint32_t unverified)
{
    const struct protocol_register *protocols = session->protocols;
    text_print(stdout,
               "protocols: %u files, %u scenarios, %u values compared, %u problem%s; of the "
               "register's values %u are not verified\n",
               files, session->counts.scenarios, session->counts.values, session->counts.problems,
               session->counts.problems == 1 ? "" : "s", unverified);
    text_print(stdout, "declared deviations:\n");
    for (uint32_t i = 0; i < protocols->file_count; i++) {
        const struct protocol_file *file = &protocols->files[i];
        for (uint32_t k = 0; file->checked && k < file->deviation_count; k++) {
            if (!file->deviations[k].measured || file->deviations[k].found) {
                print_deviation(file, &file->deviations[k]);
            }
        }
    }
}

static json_t *unverified_json(const struct protocol_file *file, const struct protocol_value *value)
{
    char expected[PROTOCOL_EXPECTED_BYTES];
    protocol_numbers_text(&value->subject, &value->numbers, expected, sizeof expected);
    return json_pack("{s:s, s:s, s:s, s:s, s:s}", "file", file->file, "quantity",
                     protocol_quantity_names[value->subject.quantity], "agent",
                     value->subject.agent, "expected", expected, "source", value->source);
}

int protocol_session_finish(struct protocol_session *session, json_t *result)
{
    const struct protocol_register *protocols = session->protocols;
    uint32_t files = 0;
    if (protocols == NULL) {
        return 0;
    }
    protocol_check_finish(session->protocols, take, session, &session->counts);
    json_t *unverified = json_array();
    for (uint32_t i = 0; i < protocols->file_count; i++) {
        const struct protocol_file *file = &protocols->files[i];
        files += file->checked;
        for (uint32_t k = 0; file->checked && k < file->value_count; k++) {
            if (!file->values[k].verified) {
                json_array_append_new(unverified, unverified_json(file, &file->values[k]));
            }
        }
    }
    if (!session->json) {
        print_register(session, files, (uint32_t)json_array_size(unverified));
    }
    json_object_set_new(result, "protocols",
                        json_pack("{s:i, s:i, s:i, s:i, s:O, s:O}", "files", (int)files,
                                  "scenarios", (int)session->counts.scenarios, "values",
                                  (int)session->counts.values, "problems",
                                  (int)session->counts.problems, "findings", session->findings,
                                  "unverified", unverified));
    json_decref(unverified);
    return session->counts.problems > 0 ? 3 : 0;
}
