/*
 * Changes that a suite asks of a scenario beyond its parameters: another question, a shorter
 * horizon, only some of its branches, other weather and light. Read from the suite, applied to the
 * resolved document, so that the result is an ordinary scenario with a hash of its own.
 */
#include "scenarios/resolve.h"
#include "schemas/scenario_json.h"

#include <math.h>
#include <string.h>

enum status changes_read(const struct json_cursor *entry, struct scenario_changes *changes,
                         struct error *error)
{
    size_t count;
    TRY(changes_read_common(entry, changes, error));
    TRY(json_member_number(entry, "horizon_s", false, 0.1, LIMIT_HORIZON_TICKS / 10.0,
                           &changes->horizon_s, error));
    changes->branches = json_cursor_member(entry, "branches");
    if (!json_cursor_present(&changes->branches)) {
        return STATUS_OK;
    }
    TRY(json_array_begin(&changes->branches, 0, LIMIT_BRANCHES, &count, error));
    for (size_t i = 0; i < count; i++) {
        char id[LIMIT_ID_BYTES];
        struct json_cursor element = json_cursor_element(&changes->branches, i);
        TRY(json_value_text(&element, id, sizeof id, error));
    }
    return STATUS_OK;
}

const char *const cross_names[CROSS_COUNT] = {"weather", "light"};

static enum status check_words(const struct json_cursor *list, const char *const *names, int count,
                               struct error *error)
{
    size_t words;
    bool seen[WEATHER_COUNT + LIGHT_COUNT] = {false};
    TRY(json_array_begin(list, 0, (size_t)count, &words, error));
    for (size_t i = 0; i < words; i++) {
        struct json_cursor word = json_cursor_element(list, i);
        int choice;
        TRY(json_value_choice(&word, names, (size_t)count, &choice, error));
        if (seen[choice]) {
            return json_fail(&word, error, "expected each word once, found \"%s\" again",
                             names[choice]);
        }
        seen[choice] = true;
    }
    return STATUS_OK;
}

enum status cross_read(const struct json_cursor *holder, struct json_cursor cross[CROSS_COUNT],
                       struct error *error)
{
    static const char *const keys[] = {"weather", "light", NULL};
    struct json_cursor member = json_cursor_member(holder, "cross");
    if (!json_cursor_present(&member)) {
        return STATUS_OK;
    }
    TRY(json_object_begin(&member, keys, error));
    for (int k = 0; k < CROSS_COUNT; k++) {
        struct json_cursor list = json_cursor_member(&member, cross_names[k]);
        if (json_cursor_present(&list)) {
            bool weather = k == CROSS_WEATHER;
            TRY(check_words(&list, weather ? weather_names : light_names,
                            weather ? WEATHER_COUNT : LIGHT_COUNT, error));
            /* Stands alone: what it stood in is gone when an included suite is read. */
            cross[k] = json_cursor_root(list.file, list.value);
        }
    }
    return STATUS_OK;
}

enum status changes_read_common(const struct json_cursor *cursor, struct scenario_changes *changes,
                                struct error *error)
{
    static const char *const keys[] = {"dynamics", "brake_delay_s", "steer_delay_s", NULL};
    struct json_cursor ego = json_cursor_member(cursor, "ego");
    struct json_cursor links = json_cursor_member(cursor, "traceability");
    TRY(scenario_traceability_check(&links, error));
    for (int k = 0; k < TRACE_KIND_COUNT; k++) {
        const json_t *list = json_object_get(links.value, trace_kind_names[k]);
        changes->links[k] = list != NULL ? list : changes->links[k];
    }
    TRY(json_member_choice(cursor, "question", false, question_names, QUESTION_COUNT,
                           &changes->question, error));
    TRY(cross_read(cursor, changes->cross, error));
    if (!json_cursor_present(&ego)) {
        return STATUS_OK;
    }
    TRY(json_object_begin(&ego, keys, error));
    TRY(json_member_choice(&ego, "dynamics", false, dynamics_names, DYNAMICS_COUNT,
                           &changes->dynamics, error));
    TRY(json_member_number(&ego, "brake_delay_s", false, 0.0, EGO_DELAY_MAX_S,
                           &changes->brake_delay_s, error));
    return json_member_number(&ego, "steer_delay_s", false, 0.0, EGO_DELAY_MAX_S,
                              &changes->steer_delay_s, error);
}

/* False: no memory. */
static bool change_ego(const struct scenario_changes *changes, json_t *ego)
{
    bool good =
        changes->dynamics < 0 ||
        json_object_set_new(ego, "dynamics", json_string(dynamics_names[changes->dynamics])) == 0;
    good =
        good && (isnan(changes->brake_delay_s) ||
                 json_object_set_new(ego, "brake_delay_s", json_real(changes->brake_delay_s)) == 0);
    return good &&
           (isnan(changes->steer_delay_s) ||
            json_object_set_new(ego, "steer_delay_s", json_real(changes->steer_delay_s)) == 0);
}

/* False: no memory. Conditions that are no object are the decoder's to refuse. */
static bool change_conditions(const struct scenario_changes *changes, json_t *resolved)
{
    bool good = true;
    for (int k = 0; k < CROSS_COUNT; k++) {
        json_t *conditions = json_object_get(resolved, "conditions");
        if (changes->conditions[k] != NULL && conditions == NULL) {
            conditions = json_object();
            good = json_object_set_new(resolved, "conditions", conditions) == 0 && good;
        }
        if (changes->conditions[k] != NULL && json_is_object(conditions)) {
            json_t *word = json_deep_copy(changes->conditions[k]);
            good = json_object_set_new(conditions, cross_names[k], word) == 0 && good;
        }
    }
    return good;
}

/* Kinds of which the scenario has none are inherited. False: no memory. */
static bool inherit_links(const struct scenario_changes *changes, json_t *resolved)
{
    bool good = true;
    for (int k = 0; k < TRACE_KIND_COUNT; k++) {
        json_t *own = json_object_get(resolved, "traceability");
        bool other = own != NULL && !json_is_object(own); /* the decoder says so */
        if (changes->links[k] == NULL || other || json_object_get(own, trace_kind_names[k])) {
            continue;
        }
        if (own == NULL) {
            own = json_object();
            good = json_object_set_new(resolved, "traceability", own) == 0 && good;
        }
        good = good && json_object_set_new(own, trace_kind_names[k],
                                           json_deep_copy(changes->links[k])) == 0;
    }
    return good;
}

static const json_t *branch_of(const json_t *branches, const char *id)
{
    size_t i;
    json_t *branch;
    json_array_foreach (branches, i, branch) {
        const char *name = json_string_value(json_object_get(branch, "id"));
        if (name != NULL && strcmp(name, id) == 0) {
            return branch;
        }
    }
    return NULL;
}

/* The listed ones, in the scenario's order. */
static enum status keep_branches(const struct scenario_changes *changes, json_t *resolved,
                                 struct error *error)
{
    const json_t *branches = json_object_get(resolved, "branches");
    size_t count = json_array_size(changes->branches.value);
    for (size_t i = 0; i < count; i++) {
        struct json_cursor element = json_cursor_element(&changes->branches, i);
        const char *id = json_string_value(element.value);
        if (branch_of(branches, id) == NULL) {
            return json_fail(&element, error,
                             "expected the id of one of the scenario's branches, found \"%s\"", id);
        }
    }
    json_t *kept = json_array();
    size_t b;
    json_t *branch;
    json_array_foreach (branches, b, branch) {
        const json_t *id = json_object_get(branch, "id");
        bool listed = false;
        for (size_t i = 0; i < count; i++) {
            listed = listed || json_equal(json_array_get(changes->branches.value, i), id);
        }
        if (listed && json_array_append(kept, branch) != 0) {
            json_decref(kept);
            return json_fail_status(&changes->branches, STATUS_NO_MEMORY, error, "out of memory");
        }
    }
    if (kept == NULL || json_object_set_new(resolved, "branches", kept) != 0) {
        return json_fail_status(&changes->branches, STATUS_NO_MEMORY, error, "out of memory");
    }
    return STATUS_OK;
}

enum status changes_apply(const struct scenario_changes *changes, const char *file,
                          json_t *resolved, struct error *error)
{
    bool bad = false;
    if (changes->question >= 0) {
        bad = json_object_set_new(resolved, "question",
                                  json_string(question_names[changes->question])) != 0;
    }
    if (!isnan(changes->horizon_s)) {
        bad = json_object_set_new(resolved, "horizon_s", json_real(changes->horizon_s)) != 0 || bad;
    }
    json_t *ego = json_object_get(resolved, "ego");
    bad = (json_is_object(ego) && !change_ego(changes, ego)) || bad;
    bad = !inherit_links(changes, resolved) || bad;
    bad = !change_conditions(changes, resolved) || bad;
    if (bad) {
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", file);
    }
    return json_cursor_present(&changes->branches) ? keep_branches(changes, resolved, error)
                                                   : STATUS_OK;
}
