/*
 * Studies: outcomes sorted into logical scenarios and events. See risk.h.
 */
#include "report/risk/risk.h"

#include "base/array.h"
#include "schemas/scenario_id.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const risk_event_names[RISK_EVENT_COUNT] = {"fail", "contact", "at_fault", "vru_severe",
                                                        "fatal"};
const char *const risk_event_texts[RISK_EVENT_COUNT] = {"criteria not met", "contact",
                                                        "contact, ego's fault",
                                                        "AIS 4+, outside a car", "somebody killed"};

/* Values of the drives of a concrete scenario. */
struct open_case {
    int64_t key;
    uint32_t logical; /* UINT32_MAX: has no exposure */
    double sum[RISK_VALUE_COUNT];
    double drives[RISK_VALUE_COUNT];
};

struct loading {
    const struct summary *summary;
    struct risk_drive *drive;
    struct risk_study *study;
    struct open_case open;
    struct error *error;
};

static void logical_name(const struct kept_outcome *outcome, char out[LIMIT_ID_BYTES])
{
    snprintf(out, LIMIT_ID_BYTES, "%.*s", (int)scenario_id_logical_bytes(outcome->scenario_id),
             outcome->scenario_id);
}

/* ---- logical scenarios ---- */

static enum status add_logical(struct risk_study *study, const char *name, uint32_t class_index,
                               double weight, struct error *error)
{
    TRY(array_room(&study->logical, study->logical_count, sizeof *study->logical, error));
    struct risk_logical *at = &study->logical[study->logical_count++];
    *at = (struct risk_logical){.class_index = class_index, .weight = weight};
    snprintf(at->name, sizeof at->name, "%s", name);
    return STATUS_OK;
}

static enum status add_foreign(struct risk_study *study, const char *name, struct error *error)
{
    TRY(array_room(&study->foreign, study->foreign_count, sizeof *study->foreign, error));
    snprintf(study->foreign[study->foreign_count++], LIMIT_ID_BYTES, "%s", name);
    return STATUS_OK;
}

static uint32_t find_logical(const struct risk_study *study, const char *name)
{
    for (uint32_t i = 0; i < study->logical_count; i++) {
        if (strcmp(study->logical[i].name, name) == 0) {
            return i;
        }
    }
    return UINT32_MAX;
}

/* All that the file names in full, driven or not. */
static enum status add_named(struct risk_study *study, struct error *error)
{
    for (uint32_t c = 0; c < study->file->class_count; c++) {
        const struct exposure_class *class = &study->file->classes[c];
        for (uint32_t m = 0; m < class->member_count; m++) {
            const struct exposure_member *member = &class->members[m];
            if (strchr(member->logical, '*') == NULL) {
                TRY(add_logical(study, member->logical, c, member->weight, error));
            }
        }
    }
    return STATUS_OK;
}

/* The logical scenario of an outcome, added where a start of its name is in the file. */
static enum status settle_logical(struct risk_study *study, const struct kept_outcome *outcome,
                                  uint32_t *index, struct error *error)
{
    char name[LIMIT_ID_BYTES];
    uint32_t class_index;
    uint32_t member;
    logical_name(outcome, name);
    *index = find_logical(study, name);
    if (*index != UINT32_MAX) {
        return STATUS_OK;
    }
    if (!exposure_find(study->file, name, &class_index, &member)) {
        bool known =
            study->foreign_count > 0 && strcmp(study->foreign[study->foreign_count - 1], name) == 0;
        return known ? STATUS_OK : add_foreign(study, name, error);
    }
    *index = study->logical_count;
    return add_logical(study, name, class_index,
                       study->file->classes[class_index].members[member].weight, error);
}

/* Weights to shares of their class. */
static void share_weights(struct risk_study *study)
{
    for (uint32_t c = 0; c < study->file->class_count; c++) {
        double sum = 0;
        for (uint32_t i = 0; i < study->logical_count; i++) {
            sum += study->logical[i].class_index == c ? study->logical[i].weight : 0;
        }
        for (uint32_t i = 0; i < study->logical_count; i++) {
            study->logical[i].weight /= study->logical[i].class_index == c ? sum : 1;
        }
        study->exposed += sum > 0 ? study->file->classes[c].rate.rate : 0;
    }
}

/* ---- drives ---- */

static void close_case(struct loading *loading)
{
    struct open_case *open = &loading->open;
    for (int e = 0; open->logical != UINT32_MAX && e < RISK_VALUE_COUNT; e++) {
        struct risk_logical *at = &loading->study->logical[open->logical];
        at->draws[e] += open->drives[e] > 0;
        at->events[e] += open->drives[e] > 0 ? open->sum[e] / open->drives[e] : 0;
    }
    *open = (struct open_case){.logical = UINT32_MAX};
}

static enum status add_contact(struct loading *loading, const struct risk_contact *contact)
{
    struct risk_study *study = loading->study;
    TRY(array_room(&study->contacts, study->contact_count, sizeof *contact, loading->error));
    study->contacts[study->contact_count++] = *contact;
    return STATUS_OK;
}

/* Events of a drive; NAN: it does not say. */
static enum status judge(struct loading *loading, uint32_t index, double values[RISK_VALUE_COUNT])
{
    const struct kept_outcome *outcome = &loading->summary->outcomes[index];
    struct risk_study *study = loading->study;
    struct risk_contact contact;
    bool outside = false;
    bool untraced = false;
    for (int e = 0; e < RISK_VALUE_COUNT; e++) {
        values[e] = 0;
    }
    values[RISK_FAIL] = outcome->verdict != VERDICT_PASS;
    if (outcome->verdict == VERDICT_PLANNER_ERROR) {
        values[RISK_CONTACT] = values[RISK_AT_FAULT] = NAN;
        values[RISK_VRU_SEVERE] = values[RISK_FATAL] = values[RISK_VRU_CONTACT] = NAN;
    } else if (outcome->metrics.collision_count > 0) {
        TRY(risk_drive_harm(loading->drive, outcome, &study->file->severity, &contact, &outside,
                            &untraced, loading->error));
        contact.outcome = index;
        study->outside += outside;
        study->untraced += untraced;
        values[RISK_CONTACT] = 1;
        values[RISK_AT_FAULT] = outcome->metrics.at_fault;
        values[RISK_VRU_CONTACT] = contact.vru;
        values[RISK_VRU_SEVERE] = contact.vru_severe;
        values[RISK_FATAL] = contact.fatal;
        TRY(add_contact(loading, &contact));
    }
    return STATUS_OK;
}

static enum status take_drive(struct loading *loading, const struct summary_place *place)
{
    const struct kept_outcome *outcome = &loading->summary->outcomes[place->index];
    double values[RISK_VALUE_COUNT];
    if (place->case_key != loading->open.key) {
        close_case(loading);
        TRY(settle_logical(loading->study, outcome, &loading->open.logical, loading->error));
        loading->open.key = place->case_key;
    }
    if (!verdict_is_result(outcome->verdict)) {
        loading->study->unknown++;
        return STATUS_OK;
    }
    if (loading->open.logical == UINT32_MAX) {
        return STATUS_OK;
    }
    TRY(judge(loading, place->index, values));
    loading->study->logical[loading->open.logical].drives++;
    for (int e = 0; e < RISK_VALUE_COUNT; e++) {
        loading->open.sum[e] += isnan(values[e]) ? 0 : values[e];
        loading->open.drives[e] += !isnan(values[e]);
    }
    return STATUS_OK;
}

/* ---- estimates ---- */

/* Event whose harm it is: a contact with a car says nothing of what one with a person would do. */
static int cause_of(enum risk_event event)
{
    return event == RISK_FATAL ? RISK_CONTACT : event == RISK_VRU_SEVERE ? RISK_VRU_CONTACT : event;
}

/* strata[logical_count] and classes[class_count], owned by the caller. */
static enum status input_make(const struct risk_study *study, enum risk_event event,
                              struct risk_input *out, struct error *error)
{
    struct risk_stratum *strata = calloc((size_t)study->logical_count + 1, sizeof *strata);
    struct risk_class *classes = calloc((size_t)study->file->class_count + 1, sizeof *classes);
    *out = (struct risk_input){.class_count = study->file->class_count,
                               .classes = classes,
                               .stratum_count = study->logical_count,
                               .strata = strata,
                               .harms = cause_of(event) != (int)event,
                               .key = 1};
    if (strata == NULL || classes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "risk: out of memory");
    }
    for (uint32_t c = 0; c < out->class_count; c++) {
        classes[c] = study->file->classes[c].rate;
    }
    for (uint32_t i = 0; i < study->logical_count; i++) {
        const struct risk_logical *at = &study->logical[i];
        strata[i] = (struct risk_stratum){at->class_index, at->weight, at->draws[event],
                                          at->events[cause_of(event)], at->events[event]};
    }
    return STATUS_OK;
}

static void input_free(struct risk_input *input)
{
    free((void *)input->strata);
    free((void *)input->classes);
}

static enum status estimate(struct risk_study *study, enum risk_event event, struct error *error)
{
    struct risk_input input;
    double *probability = calloc((size_t)study->logical_count + 1, sizeof *probability);
    enum status status = input_make(study, event, &input, error);
    THEN(status, memory_check(probability, error, "risk: out of memory"));
    THEN(status, risk_estimate(&input, &study->estimates[event], probability, error));
    for (uint32_t i = 0; status == STATUS_OK && i < study->logical_count; i++) {
        study->logical[i].probability[event] = probability[i];
    }
    input_free(&input);
    free(probability);
    return status;
}

enum status risk_study_plan(struct risk_study *study, enum risk_event event, double precision,
                            struct error *error)
{
    struct risk_input input;
    double *probability = calloc(2 * (size_t)study->logical_count + 2, sizeof *probability);
    enum status status = input_make(study, event, &input, error);
    THEN(status, memory_check(probability, error, "risk: out of memory"));
    for (uint32_t i = 0; status == STATUS_OK && i < study->logical_count; i++) {
        probability[i] = study->logical[i].probability[event];
    }
    if (status == STATUS_OK) {
        double *jobs = probability + study->logical_count;
        status = risk_plan(&input, &study->estimates[event], probability, precision, &study->plan,
                           jobs, error);
        for (uint32_t i = 0; i < study->logical_count; i++) {
            study->logical[i].jobs = jobs[i];
        }
    }
    study->planned = status == STATUS_OK;
    study->plan_event = event;
    input_free(&input);
    free(probability);
    return status;
}

/* ---- studies ---- */

static bool belongs(const struct kept_outcome *outcome, const struct risk_study *study)
{
    return outcome->branch_id[0] == '\0' && outcome->audit_of == 0 &&
           outcome->tier == study->tier && strcmp(outcome->planner, study->planner) == 0;
}

static enum status load_study(struct loading *loading)
{
    const struct summary *summary = loading->summary;
    enum status status = add_named(loading->study, loading->error);
    loading->open = (struct open_case){.logical = UINT32_MAX};
    for (uint32_t i = 0; status == STATUS_OK && i < summary->outcome_count; i++) {
        if (belongs(&summary->outcomes[summary->order[i].index], loading->study)) {
            status = take_drive(loading, &summary->order[i]);
        }
    }
    close_case(loading);
    share_weights(loading->study);
    for (int e = 0; e < RISK_EVENT_COUNT; e++) {
        THEN(status, estimate(loading->study, (enum risk_event)e, loading->error));
    }
    return status;
}

static enum status find_studies(const struct summary *summary, const struct exposure_file *file,
                                struct risk_study **studies, uint32_t *count, struct error *error)
{
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        const struct kept_outcome *outcome = &summary->outcomes[i];
        bool known = outcome->branch_id[0] != '\0' || outcome->audit_of != 0;
        for (uint32_t s = 0; s < *count && !known; s++) {
            known = belongs(outcome, &(*studies)[s]);
        }
        if (!known) {
            TRY(array_room(studies, *count, sizeof **studies, error));
            (*studies)[(*count)++] = (struct risk_study){
                .file = file, .planner = outcome->planner, .tier = outcome->tier};
        }
    }
    return STATUS_OK;
}

enum status risk_studies_load(struct store *store, const struct summary *summary,
                              const struct exposure_file *file, struct risk_study **out,
                              uint32_t *count, struct error *error)
{
    struct risk_study *studies = NULL;
    struct risk_drive *drive = NULL;
    *count = 0;
    enum status status = risk_drive_open(store, &drive, error);
    THEN(status, find_studies(summary, file, &studies, count, error));
    for (uint32_t s = 0; s < *count && status == STATUS_OK; s++) {
        struct loading loading = {
            .summary = summary, .drive = drive, .study = &studies[s], .error = error};
        status = load_study(&loading);
    }
    risk_drive_close(drive);
    if (status != STATUS_OK) {
        risk_studies_free(studies, *count);
        return status;
    }
    *out = studies;
    return STATUS_OK;
}

void risk_studies_free(struct risk_study *studies, uint32_t count)
{
    for (uint32_t s = 0; s < count; s++) {
        free(studies[s].logical);
        free(studies[s].contacts);
        free(studies[s].foreign);
    }
    free(studies);
}
