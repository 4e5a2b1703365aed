/*
 * Agreement while a server runs. One mutex is tried by whoever would read on: who does not get it
 * answers with what is there. The other guards what is there, which is made anew when more was
 * read, but never so often that making it took more than a tenth of the time.
 */
#include "cli/serving/agreement.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdlib.h>

enum { STEP_OUTCOMES = 4000, STUDENTS_MAX = 100, DRIFTS_MAX = 200, PAUSE_TIMES = 9 };

struct shown {
    json_t *document;   /* table_json() and "up_to", its rows in the order of what matters */
    struct table table; /* what it was made of: its days, which are told on demand */
    uint32_t *order;    /* [table.count]: the document's rows in the table */
};

struct agreement {
    bool decides; /* by a policy that somebody gave, of this hash */
    char policy_hash[SHA256_HEX_BYTES];
    double floor;
    double floor_safety_critical;
    pthread_mutex_t reading; /* guards the next four */
    struct follow *follow;
    int64_t judged_up_to;    /* outcome; -1: never */
    int64_t made_up_to;      /* outcome */
    int64_t made_event;      /* of trust, the last that is shown */
    int64_t make_ns;         /* not before */
    pthread_mutex_t showing; /* guards the rest */
    int64_t read_up_to;
    bool whole;         /* the document has every outcome that the store had */
    struct shown shown; /* owned */
};

/* 0: frozen, 1: a monitor sounds, 2: quiet. */
static int concern(const struct table_row *row)
{
    if (row->verdict.frozen) {
        return 0;
    }
    return row->verdict.monitor.alarm != TRUST_QUIET || row->flags.alarm != TRUST_QUIET ? 1 : 2;
}

/* Rows that matter come first. */
static json_t *document_of(const struct table *table, const struct decisions *decisions,
                           json_t *drift, int64_t up_to, uint32_t *order)
{
    json_t *json = table_json(table, false);
    if (json_object_set_new(json, "freezes", decisions_json(decisions)) != 0 ||
        json_object_set(json, "health_drift", drift) != 0) {
        json_decref(json);
        return NULL;
    }
    json_t *rows = json_object_get(json, "rows");
    json_t *ordered = json_array();
    uint32_t placed = 0;
    for (int wanted = 0; wanted <= 2; wanted++) {
        for (uint32_t i = 0; i < table->count; i++) {
            if (concern(&table->rows[i]) == wanted) {
                json_t *row = json_array_get(rows, i);
                json_array_append(ordered, row);
                order[placed++] = i;
            }
        }
    }
    bool whole = json_array_size(ordered) == table->count;
    if (json_object_set_new(json, "rows", ordered) != 0 || !whole ||
        json_object_set_new(json, "up_to", json_integer(up_to)) != 0) {
        json_decref(json);
        return NULL;
    }
    json_t *students = json_object_get(json, "students");
    while (json_array_size(students) > STUDENTS_MAX) {
        json_array_remove(students, 0); /* the first that drove */
    }
    while (json_array_size(drift) > DRIFTS_MAX) {
        json_array_remove(drift, 0);
    }
    return json;
}

static void shown_finish(struct shown *shown)
{
    json_decref(shown->document);
    table_finish(&shown->table);
    free(shown->order);
}

/* Takes table and drift over, on failure too. */
static enum status shown_make(struct table *table, const struct decisions *decisions, json_t *drift,
                              int64_t up_to, struct shown *out, struct error *error)
{
    struct shown shown = {.table = *table};
    shown.order = calloc((size_t)table->count + 1, sizeof *shown.order);
    if (shown.order != NULL) {
        shown.document = document_of(&shown.table, decisions, drift, up_to, shown.order);
    }
    json_decref(drift);
    if (shown.document == NULL) {
        shown_finish(&shown);
        return error_set(error, STATUS_NO_MEMORY, "agreement: out of memory");
    }
    *out = shown;
    return STATUS_OK;
}

enum status agreement_open(const char *policy_path, struct agreement **out, struct error *error)
{
    struct trust_policy *policy = malloc(sizeof *policy);
    struct agreement *agreement = calloc(1, sizeof *agreement);
    struct table none = {.count = 0};
    enum status status = memory_check(policy, error, "agreement: out of memory");
    THEN(status, memory_check(agreement, error, "agreement: out of memory"));
    if (status == STATUS_OK) {
        *policy = trust_policy_default();
        status = policy_path != NULL ? trust_policy_load(policy_path, policy, error) : STATUS_OK;
    }
    THEN(status, decisions_policy_hash(policy_path, agreement->policy_hash, error));
    THEN(status, follow_create(policy, &agreement->follow, error));
    THEN(status, shown_make(&none, &(struct decisions){.count = 0}, json_array(), 0,
                            &agreement->shown, error));
    if (status == STATUS_OK) {
        agreement->decides = policy_path != NULL;
        agreement->floor = policy->audit_floor;
        agreement->floor_safety_critical = policy->audit_floor_safety_critical;
        agreement->judged_up_to = -1;
    }
    free(policy);
    if (status != STATUS_OK) {
        follow_destroy(agreement != NULL ? agreement->follow : NULL);
        free(agreement);
        return status;
    }
    pthread_mutex_init(&agreement->reading, NULL);
    pthread_mutex_init(&agreement->showing, NULL);
    *out = agreement;
    return STATUS_OK;
}

void agreement_close(struct agreement *agreement)
{
    if (agreement != NULL) {
        pthread_mutex_destroy(&agreement->reading);
        pthread_mutex_destroy(&agreement->showing);
        follow_destroy(agreement->follow);
        shown_finish(&agreement->shown);
        free(agreement);
    }
}

static int64_t last_event(const struct agreement *agreement)
{
    const struct decisions *decisions = follow_decisions(agreement->follow);
    return decisions->count > 0 ? decisions->events[decisions->count - 1].id : 0;
}

static enum status make(struct agreement *agreement, struct error *error)
{
    struct table table = {.count = 0};
    struct shown shown;
    json_t *drift = NULL;
    int64_t began_ns = clock_now_ns(clock_system());
    TRY(follow_drift(agreement->follow, &drift, error));
    enum status status = follow_table(agreement->follow, &table, error);
    if (status != STATUS_OK) {
        json_decref(drift);
        return status;
    }
    TRY(shown_make(&table, follow_decisions(agreement->follow), drift,
                   follow_up_to(agreement->follow), &shown, error));
    int64_t now_ns = clock_now_ns(clock_system());
    agreement->made_up_to = follow_up_to(agreement->follow);
    agreement->made_event = last_event(agreement);
    agreement->make_ns = now_ns + PAUSE_TIMES * (now_ns - began_ns);
    pthread_mutex_lock(&agreement->showing);
    struct shown before = agreement->shown;
    agreement->shown = shown;
    pthread_mutex_unlock(&agreement->showing);
    shown_finish(&before);
    return STATUS_OK;
}

/* Reads on, and makes the document anew where that is due. */
static enum status advance(struct agreement *agreement, struct store *store, struct error *error)
{
    bool end = false;
    TRY(follow_step(agreement->follow, store, STEP_OUTCOMES, &end, error));
    int64_t read = follow_up_to(agreement->follow);
    bool news = read != agreement->made_up_to || last_event(agreement) != agreement->made_event;
    if (end && news && clock_now_ns(clock_system()) >= agreement->make_ns) {
        TRY(make(agreement, error));
    }
    pthread_mutex_lock(&agreement->showing);
    agreement->read_up_to = read;
    agreement->whole = end && read == agreement->made_up_to;
    pthread_mutex_unlock(&agreement->showing);
    return STATUS_OK;
}

static enum status judge(struct agreement *agreement, struct store *store, uint32_t *recorded,
                         struct error *error)
{
    struct table table = {.count = 0};
    bool end = false;
    while (!end) {
        TRY(follow_step(agreement->follow, store, STEP_OUTCOMES, &end, error));
    }
    if (follow_up_to(agreement->follow) == agreement->judged_up_to) {
        return STATUS_OK;
    }
    TRY(follow_table(agreement->follow, &table, error));
    enum status status =
        decisions_record(store, &table, agreement->policy_hash, "swerve serve", recorded, error);
    table_finish(&table);
    TRY(status);
    agreement->judged_up_to = follow_up_to(agreement->follow);
    return STATUS_OK;
}

enum status agreement_decide(struct agreement *agreement, struct store *store, uint32_t *recorded,
                             struct error *error)
{
    bool raised = false;
    *recorded = 0;
    if (!agreement->decides) {
        return STATUS_OK;
    }
    TRY(decisions_raise_floor(store, agreement->floor, agreement->floor_safety_critical,
                              agreement->policy_hash, "swerve serve", &raised, error));
    pthread_mutex_lock(&agreement->reading);
    enum status status = judge(agreement, store, recorded, error);
    pthread_mutex_unlock(&agreement->reading);
    *recorded += raised;
    return status;
}

/* A row of the document, with its newest days where they are asked for; NULL: out of memory. */
static json_t *row_of(const struct shown *shown, size_t at, int64_t days)
{
    json_t *rows = json_object_get(shown->document, "rows");
    json_t *row = json_deep_copy(json_array_get(rows, at));
    const struct table_row *made = &shown->table.rows[shown->order[at]];
    if (row == NULL || days == 0 || made->days == NULL || table_put_days(row, made, days)) {
        return row;
    }
    json_decref(row);
    return NULL;
}

/* The document with a page of its rows; NULL: out of memory. */
static json_t *page_of(const struct agreement *agreement, int64_t after, int64_t limit,
                       int64_t days)
{
    json_t *document = agreement->shown.document;
    const json_t *rows = json_object_get(document, "rows");
    json_t *out = json_object();
    json_t *page = json_array();
    int64_t count = (int64_t)json_array_size(rows);
    const char *name;
    json_t *value;
    bool good = out != NULL && page != NULL;
    for (int64_t i = after; good && i < count && i - after < limit; i++) {
        good = json_array_append_new(page, row_of(&agreement->shown, (size_t)i, days)) == 0;
    }
    good = json_object_set_new(out, "rows", page) == 0 && good;
    json_object_foreach (document, name, value) {
        if (value != rows) {
            good = json_object_set_new(out, name, json_deep_copy(value)) == 0 && good;
        }
    }
    good = json_object_set_new(out, "read", json_integer(agreement->read_up_to)) == 0 && good;
    good = json_object_set_new(out, "whole", json_boolean(agreement->whole)) == 0 && good;
    if (count - after > limit) {
        good = json_object_set_new(out, "next", json_integer(after + limit)) == 0 && good;
    }
    if (!good) {
        json_decref(out);
        return NULL;
    }
    return out;
}

enum status agreement_tell(void *context, struct store *store, int64_t after, int64_t limit,
                           int64_t days, json_t **out, struct error *error)
{
    struct agreement *agreement = context;
    if (pthread_mutex_trylock(&agreement->reading) == 0) {
        enum status status = advance(agreement, store, error);
        pthread_mutex_unlock(&agreement->reading);
        TRY(status);
    }
    pthread_mutex_lock(&agreement->showing);
    *out = page_of(agreement, after, limit, days);
    pthread_mutex_unlock(&agreement->showing);
    return memory_check(*out, error, "agreement: out of memory");
}
