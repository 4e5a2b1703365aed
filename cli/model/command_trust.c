/*
 * swerve trust: what a store has decided about the trust in its students: freezes, thaws and the
 * floor of audits, listed and made by hand.
 */
#include "cli/cli.h"
#include "cli/model/model_store.h"
#include "report/trust/decisions.h"
#include "worker/versions/versions.h"

#include "base/text.h"
#include "schemas/scenario_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HASH_DIGITS_MIN = 6 };

struct trust_command {
    const char *store_url;
    const char *slice;
    const char *teacher;
    const char *models;
    const char *evidence;
    const char *rate;
    const char *safety_critical_rate;
    int64_t evaluation;
    bool force;
    bool json;
    struct store *store;
};

/* ---- reading words ---- */

static bool is_word(const char *text, size_t bytes, const char *word)
{
    return bytes == strlen(word) && memcmp(text, word, bytes) == 0;
}

/* "weather=rain,light=night,safety_critical"; "all" is said, never left out: an empty variable of a
 * shell would freeze everything. */
static enum status parse_slice(const char *text, struct trust_slice *out, struct error *error)
{
    *out = (struct trust_slice){.safety_critical = false};
    if (strcmp(text, "all") == 0) {
        return STATUS_OK;
    }
    if (text[0] == '\0') {
        return error_set(error, STATUS_USAGE,
                         "--slice: expected KIND=VALUE like weather=rain, safety_critical, or all "
                         "for every scenario, found nothing");
    }
    while (*text != '\0') {
        size_t bytes = strcspn(text, ",");
        int kind = 0;
        const char *value = memchr(text, '=', bytes);
        size_t name_bytes = value != NULL ? (size_t)(value - text) : bytes;
        while (kind < SLICE_KIND_COUNT && (strlen(slice_names[kind]) != name_bytes ||
                                           memcmp(slice_names[kind], text, name_bytes) != 0)) {
            kind++;
        }
        size_t value_bytes = value != NULL ? bytes - name_bytes - 1 : 0;
        if (is_word(text, bytes, "safety_critical") ||
            is_word(text, bytes, "safety_critical=true")) {
            out->safety_critical = true;
        } else if (kind == SLICE_KIND_COUNT || value_bytes == 0 || value_bytes >= LIMIT_ID_BYTES) {
            return error_set(error, STATUS_USAGE,
                             "--slice: expected KIND=VALUE like weather=rain, or safety_critical, "
                             "found \"%.*s\"",
                             (int)bytes, text);
        } else if (out->value[kind][0] != '\0') {
            return error_set(error, STATUS_USAGE, "--slice: expected %s once, found it twice",
                             slice_names[kind]);
        } else {
            memcpy(out->value[kind], value + 1, value_bytes);
        }
        text += bytes + (text[bytes] == ',');
    }
    return STATUS_OK;
}

/* "euler2/bf16", or "NAME/exact" of a world of the user's. */
static enum status check_sampler(const char *name, const char *sampler, struct error *error)
{
    char whole[2 * LIMIT_ID_BYTES];
    enum conditioning conditioning;
    enum nn_precision precision;
    struct error why;
    snprintf(whole, sizeof whole, "agents/%s", sampler);
    bool foreign = outcome_world_option(whole)[0] != '\0';
    if (models_parse_sampler(whole, &conditioning, &precision, &why) != STATUS_OK ||
        (!foreign && strncmp(sampler, "euler", strlen("euler")) != 0)) {
        return error_set(error, STATUS_USAGE,
                         "\"%.140s\": expected a sampler like euler2/bf16 behind the colon, found "
                         "\"%.60s\"",
                         name, sampler);
    }
    return STATUS_OK;
}

/* The whole hash of a model whose first digits are given, that the store has a version of or a
 * folder of models here has a file of; *known: one has it. */
static enum status find_hash(const struct trust_command *trust, const char *digits, enum tier tier,
                             const char *sampler, char hash[SHA256_HEX_BYTES], bool *known,
                             struct error *error)
{
    const char *slash = strrchr(sampler, '/');
    enum nn_precision precision = NN_BF16;
    const struct models_model *model = NULL;
    struct model_version version;
    struct models *models = NULL;
    struct error unneeded;
    TRY(versions_hashed(trust->store, digits, tier, &version, known, error));
    if (*known) {
        memcpy(hash, version.hash, SHA256_HEX_BYTES);
        return STATUS_OK;
    }
    if (slash != NULL) { /* of a world of the user's: any */
        (void)models_parse_precision(slash + 1, &precision, &unneeded);
    }
    TRY(trust->models != NULL ? models_open(trust->models, NULL, &models, error) : STATUS_OK);
    if (models == NULL && models_open(NULL, NULL, &models, &unneeded) != STATUS_OK) {
        return STATUS_OK;
    }
    *known = models_find(models, digits, precision, &model, &unneeded) == STATUS_OK &&
             (model->config == NULL || model->config->tier == tier);
    if (*known) {
        snprintf(hash, SHA256_HEX_BYTES, "%s", model->hash);
    }
    models_close(models);
    return STATUS_OK;
}

/* "HASH:SAMPLER", of the hash its first digits, as outputs show it. A student that nobody here has
 * may be named by its whole hash, a teacher has to be there. */
static enum status find_hashed(const struct trust_command *trust, const char *name, size_t digits,
                               enum tier tier, char hash[SHA256_HEX_BYTES],
                               char sampler[LIMIT_ID_BYTES], struct error *error)
{
    char given[SHA256_HEX_BYTES];
    bool known = false;
    snprintf(given, sizeof given, "%.*s", (int)digits, name);
    snprintf(sampler, LIMIT_ID_BYTES, "%s", name + digits + 1);
    TRY(check_sampler(name, sampler, error));
    TRY(find_hash(trust, given, tier, sampler, hash, &known, error));
    if (known) {
        return STATUS_OK;
    }
    if (digits == SHA256_HEX_BYTES - 1 && (tier == TIER_STUDENT || trust->force)) {
        memcpy(hash, given, SHA256_HEX_BYTES);
        return STATUS_OK;
    }
    char place[LIMIT_PATH_BYTES];
    models_directory(trust->models, place);
    return error_set(error, STATUS_NOT_FOUND,
                     "no %s has a hash of %.64s: looked among the models of the store and in "
                     "%.200s; --models names another folder%s",
                     tier_names[tier], given, place,
                     tier == TIER_STUDENT ? ", and all 64 digits name one that is elsewhere"
                                          : ", and --force takes all 64 digits as they are");
}

/* "HASH:SAMPLER", or the name of a version of the store. */
static enum status find_model(const struct trust_command *trust, const char *name, enum tier tier,
                              char hash[SHA256_HEX_BYTES], char sampler[LIMIT_ID_BYTES],
                              struct error *error)
{
    const char *colon = strchr(name, ':');
    size_t digits = strspn(name, "0123456789abcdef");
    if (colon != NULL && digits == (size_t)(colon - name) && digits >= HASH_DIGITS_MIN &&
        digits < SHA256_HEX_BYTES && strlen(colon + 1) < LIMIT_ID_BYTES) {
        return find_hashed(trust, name, digits, tier, hash, sampler, error);
    }
    struct model_version version;
    enum status status = versions_named(trust->store, name, &version, error);
    if (status == STATUS_NOT_FOUND || (status == STATUS_OK && version.tier != tier)) {
        return error_set(error, STATUS_NOT_FOUND,
                         "the store has no %s \"%.140s\": expected a version's name, or "
                         "HASH:SAMPLER with at least %d digits like c68ea33f86f9:euler2/bf16",
                         tier_names[tier], name, HASH_DIGITS_MIN);
    }
    TRY(status);
    memcpy(hash, version.hash, SHA256_HEX_BYTES);
    memcpy(sampler, version.sampler, LIMIT_ID_BYTES);
    return STATUS_OK;
}

/* ---- telling ---- */

/* The floor that holds, as submissions obey it; null: none does. */
static json_t *floor_json(const struct trust_event *floor)
{
    return floor == NULL ? json_null()
                         : json_pack("{s:I, s:f, s:f}", "event", (json_int_t)floor->id,
                                     "audit_rate", floor->audit_rate, "audit_rate_safety_critical",
                                     trust_floor_rate(floor, true));
}

static void print_event(const struct trust_event *event, bool holds)
{
    char slice[TRUST_SLICE_TEXT_BYTES];
    char at[CLI_DATE_BYTES];
    text_print(stdout, "%4lld  %s  ", (long long)event->id, cli_date(event->at_s, at));
    if (event->kind == TRUST_FLOOR) {
        text_print(stdout, "floor   %g of jobs audited, %g of safety-critical ones%s",
                   event->audit_rate, trust_floor_rate(event, true), holds ? ": HOLDS" : "");
    } else if (event->kind == TRUST_THAW) {
        text_print(stdout, "thaw    freeze %lld, student %.12s, %s%s", (long long)event->freeze,
                   event->student_hash, trust_slice_text(&event->slice, slice),
                   event->forced ? ", FORCED" : "");
    } else {
        text_print(
            stdout,
            "freeze  student %.12s %s, %s: %s; %lld jobs moved to teacher %.12s, %lld were in "
            "flight",
            event->student_hash, event->student_sampler, trust_slice_text(&event->slice, slice),
            event->thawed_by == 0 ? "HOLDS" : "thawed", (long long)event->jobs_moved,
            event->teacher_hash, (long long)event->jobs_in_flight);
    }
    text_print(stdout, "%s%s%s%s\n", event->actor[0] != '\0' ? ", by " : "", event->actor,
               event->evidence[0] != '\0' ? ": " : "", event->evidence);
}

static enum status list(struct trust_command *trust, struct error *error)
{
    struct decisions decisions;
    TRY(decisions_read(trust->store, &decisions, error));
    enum status status = STATUS_OK;
    json_t *events = json_array();
    const struct trust_event *floor = decisions_floor(&decisions);
    for (uint32_t i = 0; i < decisions.count; i++) {
        if (trust->json) {
            json_array_append_new(
                events, json_record_encode(&trust_event_fields, &decisions.events[i], NULL));
        } else {
            print_event(&decisions.events[i], &decisions.events[i] == floor);
        }
    }
    if (trust->json && json_array_size(events) != decisions.count) {
        status = memory_check(NULL, error, "trust: out of memory");
    } else if (trust->json) {
        status = cli_write_json(
            json_pack("{s:O, s:o}", "events", events, "floor", floor_json(floor)), error);
    } else if (decisions.count == 0) {
        text_print(stdout, "nothing is frozen, and no floor of audits is set\n");
    }
    json_decref(events);
    decisions_finish(&decisions);
    return status;
}

/* ---- orders ---- */

/* A freeze or thaw that is there already stays as it is; who asked for another is told. */
static enum status check_kept(const struct trust_event *asked, const struct trust_event *done,
                              struct error *error)
{
    bool same = strcmp(asked->evidence, done->evidence) == 0 && asked->forced == done->forced &&
                (asked->forced || asked->evaluation == done->evaluation);
    bool freeze = asked->kind == TRUST_FREEZE;
    if (freeze && asked->teacher_hash[0] != '\0') {
        same = same && strcmp(asked->teacher_hash, done->teacher_hash) == 0 &&
               strcmp(asked->teacher_sampler, done->teacher_sampler) == 0;
    }
    if (same || asked->kind == TRUST_FLOOR) {
        return STATUS_OK;
    }
    return freeze ? error_set(error, STATUS_CONFLICT,
                              "trust freeze: freeze %lld holds for this student and slice already, "
                              "with teacher %.12s %s and evidence \"%.100s\", and stays as it is; "
                              "after a thaw (swerve trust thaw %lld) it can be frozen anew",
                              (long long)done->id, done->teacher_hash, done->teacher_sampler,
                              done->evidence, (long long)done->id)
                  : error_set(error, STATUS_CONFLICT,
                              "trust thaw: freeze %lld is thawed already, by event %lld with "
                              "evidence \"%.100s\", which stays as it is",
                              (long long)done->freeze, (long long)done->id, done->evidence);
}

/* Says where no outcome is in a frozen slice: a value that was misspelt freezes nothing. */
static enum status tell_empty(struct trust_command *trust, const struct trust_event *done,
                              struct error *error)
{
    static struct outcome outcome;
    for (int kind = 0; kind < SLICE_KIND_COUNT; kind++) {
        struct store_outcome_filter filter = {
            .limit = 1, .by_slice = true, .slice_kind = (uint32_t)kind};
        uint32_t count = 1;
        memcpy(filter.slice_value, done->slice.value[kind], sizeof filter.slice_value);
        if (filter.slice_value[0] == '\0' || done->jobs_moved + done->jobs_in_flight > 0) {
            continue;
        }
        TRY(trust->store->ops->outcomes(trust->store, &filter, &outcome, &count, error));
        if (count == 0) {
            text_print(stderr,
                       "swerve: warning: no outcome of the store has %s=%s: the freeze holds for "
                       "what may come\n",
                       slice_names[kind], filter.slice_value);
        }
    }
    return STATUS_OK;
}

static enum status send(struct trust_command *trust, struct trust_event *event, struct error *error)
{
    struct trust_event done;
    if (trust->evidence != NULL && strlen(trust->evidence) >= sizeof event->evidence) {
        return error_set(error, STATUS_LIMIT, "--evidence: expected at most %d bytes",
                         TRUST_NOTE_BYTES - 1);
    }
    snprintf(event->evidence, sizeof event->evidence, "%s",
             trust->evidence != NULL ? trust->evidence : "");
    model_store_user(event->actor);
    enum status status = trust->store->ops->trust_event(trust->store, event, &done, error);
    if (status == STATUS_MISMATCH && event->kind == TRUST_FREEZE) { /* no gate: it has no teacher */
        error->status = STATUS_NOT_FOUND;
        return STATUS_NOT_FOUND;
    }
    TRY(status);
    TRY(check_kept(event, &done, error));
    TRY(event->kind == TRUST_FREEZE ? tell_empty(trust, &done, error) : STATUS_OK);
    if (trust->json) {
        return cli_write_json(json_record_encode(&trust_event_fields, &done, NULL), error);
    }
    print_event(&done, true);
    return STATUS_OK;
}

static enum status freeze(struct trust_command *trust, const char *student, struct error *error)
{
    struct trust_event event = {.kind = TRUST_FREEZE};
    if (trust->slice == NULL || trust->evidence == NULL) {
        return error_set(error, STATUS_USAGE,
                         "trust freeze: expected --slice, and --evidence that says why");
    }
    TRY(parse_slice(trust->slice, &event.slice, error));
    TRY(find_model(trust, student, TIER_STUDENT, event.student_hash, event.student_sampler, error));
    if (trust->teacher != NULL && strcmp(trust->teacher, student) == 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "trust freeze: --teacher: expected another model, found the student "
                         "itself");
    }
    TRY(trust->teacher != NULL ? find_model(trust, trust->teacher, TIER_TEACHER, event.teacher_hash,
                                            event.teacher_sampler, error)
                               : STATUS_OK);
    return send(trust, &event, error);
}

static enum status thaw(struct trust_command *trust, const char *id, struct error *error)
{
    char *end;
    struct trust_event event = {
        .kind = TRUST_THAW, .forced = trust->force, .evaluation = trust->evaluation};
    event.freeze = strtoll(id, &end, 10);
    if (end == id || *end != '\0' || event.freeze <= 0) {
        return error_set(error, STATUS_USAGE,
                         "trust thaw: expected the number of a freeze (swerve trust ls), found "
                         "\"%s\"",
                         id);
    }
    return send(trust, &event, error);
}

static enum status set_floor(struct trust_command *trust, struct error *error)
{
    struct trust_event event = {.kind = TRUST_FLOOR};
    if (trust->rate == NULL) { /* whoever only wants to look lowers nothing */
        return error_set(error, STATUS_USAGE,
                         "trust floor: expected --rate SHARE; swerve trust ls says what holds");
    }
    TRY(cli_parse_share("--rate", trust->rate, &event.audit_rate, error));
    TRY(cli_parse_share("--safety-critical-rate", trust->safety_critical_rate,
                        &event.audit_rate_safety_critical, error));
    if (event.audit_rate > event.audit_rate_safety_critical) {
        event.audit_rate_safety_critical = event.audit_rate;
    }
    return send(trust, &event, error);
}

static enum status act(struct trust_command *trust, const char *const arguments[2],
                       const struct cli_command *command, struct error *error)
{
    const char *verb = arguments[0];
    const char *what = arguments[1];
    if (strcmp(verb, "ls") == 0 && what == NULL) {
        return list(trust, error);
    }
    if (strcmp(verb, "freeze") == 0 && what != NULL) {
        return freeze(trust, what, error);
    }
    if (strcmp(verb, "thaw") == 0 && what != NULL) {
        return thaw(trust, what, error);
    }
    if (strcmp(verb, "floor") == 0 && what == NULL) {
        return set_floor(trust, error);
    }
    return error_set(error, STATUS_USAGE, "trust: expected %s", command->usage);
}

int command_trust(int argc, char **argv)
{
    struct trust_command trust = {.safety_critical_rate = "0.1"};
    const struct cli_option rows[] = {
        {"--store", "URL", "job store ($SWERVE_STORE, else swerve.db)", .text = &trust.store_url},
        {"--slice", "KIND=VALUE,..",
         "freeze: scenarios with all of these, like weather=rain; all: every one",
         .text = &trust.slice},
        {"--teacher", "NAME|HASH:SAMPLER", "freeze: who answers instead (the promoted one)",
         .text = &trust.teacher},
        {"--models", "DIR", "freeze: folder of models ($SWERVE_MODELS, else the shipped ones)",
         .text = &trust.models},
        {"--evaluation", "EVENT", "thaw: by which the student passed since (swerve model show)",
         .number = &trust.evaluation},
        {"--force", NULL,
         "thaw: without an evaluation, for the reason in --evidence; freeze: with a teacher that "
         "is neither in the store nor here",
         .flag = &trust.force},
        {"--evidence", "TEXT", "why, kept with the event", .text = &trust.evidence},
        {"--rate", "SHARE", "floor: of jobs that are audited at the least", .text = &trust.rate},
        {"--safety-critical-rate", "SHARE", "floor: of safety-critical scenarios (0.1)",
         .text = &trust.safety_critical_rate},
        {"--json", NULL, "print one JSON object", .flag = &trust.json},
    };
    const struct cli_command command = {
        "trust",
        "ls | freeze STUDENT --slice KIND=VALUE,.. --evidence TEXT | thaw FREEZE | floor [options]",
        "What a store has decided about its students: slices frozen to the teacher, thaws, and "
        "the\n"
        "share of jobs that no submission audits less than.",
        CLI_ROWS(rows, 1, 2),
    };
    struct error error;
    const char *arguments[2] = {NULL, NULL};
    CLI_PARSE(&command, argc, argv, arguments, NULL);
    enum status status = cli_store_open(trust.store_url, &trust.store, &error);
    THEN(status, act(&trust, arguments, &command, &error));
    cli_store_close(trust.store);
    return status == STATUS_OK ? 0 : cli_fail(&error);
}
