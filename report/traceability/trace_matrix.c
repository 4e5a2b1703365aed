/*
 * The matrix: paths through the register that a suite's scenarios name, with what became of them.
 */
#include "base/array.h"
#include "report/traceability/traceability.h"
#include "schemas/scenario_id.h"
#include "schemas/scenario_json.h"

#include <stdlib.h>
#include <string.h>

/* Facts about one concrete scenario. */
struct verdicts {
    const char *hash; /* of the suite's entry */
    uint32_t entry;
    uint32_t results;
    uint32_t lacking; /* main lines without one */
    const struct kept_outcome
        *failures[REASON_BIT_COUNT + 1]; /* the first by reason; last: error */
};

struct making {
    const struct trace_register *items;
    const struct suite *suite;
    struct verdicts *verdicts; /* [entry_count], in the suite's order; owned */
    struct trace_matrix *out;
    struct error *error;
};

static int compare_hashes(const void *a, const void *b)
{
    return strcmp(((const struct verdicts *)a)->hash, ((const struct verdicts *)b)->hash);
}

static int compare_entries(const void *a, const void *b)
{
    const struct verdicts *x = a;
    const struct verdicts *y = b;
    return (x->entry > y->entry) - (x->entry < y->entry);
}

static void count_outcome(struct making *making, const struct kept_outcome *outcome)
{
    struct verdicts key = {.hash = outcome->scenario_hash};
    struct verdicts *found =
        bsearch(&key, making->verdicts, making->suite->entry_count, sizeof key, compare_hashes);
    bool main_line = outcome->branch_id[0] == '\0' && outcome->audit_of == 0;
    if (found == NULL || !main_line) {
        return;
    }
    if (!verdict_is_result(outcome->verdict)) {
        found->lacking++;
        return;
    }
    found->results++;
    for (int r = 0; r <= REASON_BIT_COUNT; r++) {
        bool holds = r == REASON_BIT_COUNT
                         ? outcome->verdict == VERDICT_PLANNER_ERROR
                         : outcome->verdict == VERDICT_FAIL && (outcome->reasons & (1u << r)) != 0;
        found->failures[r] = holds && found->failures[r] == NULL ? outcome : found->failures[r];
    }
}

static enum status count_outcomes(struct making *making, const struct summary *summary)
{
    uint32_t count = making->suite->entry_count;
    making->verdicts = calloc((size_t)count + 1, sizeof *making->verdicts);
    TRY(memory_check(making->verdicts, making->error, "traceability: out of memory"));
    for (uint32_t i = 0; i < count; i++) {
        making->verdicts[i] =
            (struct verdicts){.hash = making->suite->entries[i].document->hash, .entry = i};
    }
    qsort(making->verdicts, count, sizeof *making->verdicts, compare_hashes);
    for (uint32_t i = 0; summary != NULL && i < summary->outcome_count; i++) {
        count_outcome(making, &summary->outcomes[i]);
    }
    qsort(making->verdicts, count, sizeof *making->verdicts, compare_entries);
    return STATUS_OK;
}

/* `reasons` are those that matter, 0: all; a planner that fails meets nothing. */
static void add_result(const struct verdicts *verdicts, uint32_t reasons, struct trace_result *out)
{
    const struct kept_outcome *failure = verdicts->failures[REASON_BIT_COUNT];
    for (int r = 0; r < REASON_BIT_COUNT && failure == NULL; r++) {
        failure = reasons == 0 || (reasons & (1u << r)) != 0 ? verdicts->failures[r] : NULL;
    }
    out->concrete++;
    out->driven += verdicts->results > 0;
    out->passed += verdicts->results > 0 && failure == NULL && verdicts->lacking == 0;
    out->failed += failure != NULL;
    if (out->failure == 0 && failure != NULL) {
        out->failure = failure->id;
        out->failure_planner = failure->planner;
    }
}

static uint32_t reasons_of(const struct trace_register *items, uint32_t requirement)
{
    return requirement == UINT32_MAX ? 0 : items->items[TRACE_REQUIREMENT][requirement].reasons;
}

/* ---- ids ---- */

static enum status find_links(const struct making *making, uint32_t entry, enum trace_kind kind,
                              uint32_t *count, uint32_t out[LIMIT_TRACE_LINKS])
{
    const struct scenario *scenario = &making->suite->entries[entry].document->scenario;
    const struct trace_links *links = &scenario->links[kind];
    *count = links->count;
    for (uint32_t i = 0; i < links->count; i++) {
        out[i] = UINT32_MAX;
        for (uint32_t k = 0; k < making->items->count[kind]; k++) {
            if (strcmp(making->items->items[kind][k].id, links->ids[i]) == 0) {
                out[i] = k;
            }
        }
        if (out[i] == UINT32_MAX) {
            return error_set(making->error, STATUS_BAD_INPUT,
                             "%s: scenario %s: expected %s of the register, found \"%s\"",
                             making->suite->entries[entry].place, scenario->id,
                             trace_kind_names[kind], links->ids[i]);
        }
    }
    if (links->count == 0) { /* a path may lack a part, and shows that it does */
        *count = 1;
        out[0] = UINT32_MAX;
    }
    return STATUS_OK;
}

static bool belongs(const struct trace_register *items, enum trace_kind kind, uint32_t item,
                    uint32_t hazard)
{
    if (item == UINT32_MAX || hazard == UINT32_MAX) {
        return true;
    }
    const struct trace_item *at = &items->items[kind][item];
    for (uint32_t i = 0; i < at->hazard_count; i++) {
        if (at->hazards[i] == hazard) {
            return true;
        }
    }
    return false;
}

/* ---- rows ---- */

static bool same_logical(const struct suite *suite, uint32_t a, uint32_t b)
{
    return scenario_id_compare_logical(suite->entries[a].document->scenario.id,
                                       suite->entries[b].document->scenario.id) == 0;
}

static enum status add_path(struct making *making, const uint32_t path[TRACE_KIND_COUNT],
                            const struct verdicts *verdicts)
{
    struct trace_matrix *out = making->out;
    uint32_t reasons = reasons_of(making->items, path[TRACE_REQUIREMENT]);
    for (uint32_t r = 0; r < out->row_count; r++) {
        struct trace_row *row = &out->rows[r];
        if (memcmp(row->item, path, sizeof row->item) == 0 &&
            same_logical(making->suite, row->entry, verdicts->entry)) {
            add_result(verdicts, reasons, &row->result);
            return STATUS_OK;
        }
    }
    TRY(array_room(&out->rows, out->row_count, sizeof *out->rows, making->error));
    struct trace_row *row = &out->rows[out->row_count++];
    *row = (struct trace_row){.entry = verdicts->entry};
    memcpy(row->item, path, sizeof row->item);
    add_result(verdicts, reasons, &row->result);
    return STATUS_OK;
}

struct entry_links {
    uint32_t count[TRACE_KIND_COUNT];
    uint32_t items[TRACE_KIND_COUNT][LIMIT_TRACE_LINKS];
};

/* Every condition and requirement that an entry names belongs to one of its hazards. */
static enum status check_linked(const struct making *making, uint32_t entry,
                                const struct entry_links *links)
{
    for (int k = TRACE_CONDITION; k < TRACE_KIND_COUNT; k++) {
        for (uint32_t i = 0; i < links->count[k]; i++) {
            bool linked = false;
            for (uint32_t h = 0; h < links->count[TRACE_HAZARD]; h++) {
                linked = linked || belongs(making->items, (enum trace_kind)k, links->items[k][i],
                                           links->items[TRACE_HAZARD][h]);
            }
            if (!linked) {
                return error_set(making->error, STATUS_BAD_INPUT,
                                 "%s: scenario %s: expected %s that belong to one of its hazards, "
                                 "found \"%s\"",
                                 making->suite->entries[entry].place,
                                 making->suite->entries[entry].document->scenario.id,
                                 trace_kind_names[k],
                                 making->items->items[k][links->items[k][i]].id);
            }
        }
    }
    return STATUS_OK;
}

/* Those of an entry's items that belong to a hazard; where none does the path lacks that part, and
 * shows that it does. */
static uint32_t of_hazard(const struct trace_register *items, const struct entry_links *links,
                          enum trace_kind kind, uint32_t hazard, uint32_t out[LIMIT_TRACE_LINKS])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < links->count[kind]; i++) {
        if (belongs(items, kind, links->items[kind][i], hazard)) {
            out[count++] = links->items[kind][i];
        }
    }
    if (count == 0) {
        out[count++] = UINT32_MAX;
    }
    return count;
}

static enum status add_paths(struct making *making, const struct verdicts *verdicts,
                             const struct entry_links *links)
{
    uint32_t conditions[LIMIT_TRACE_LINKS];
    uint32_t requirements[LIMIT_TRACE_LINKS];
    for (uint32_t h = 0; h < links->count[TRACE_HAZARD]; h++) {
        uint32_t hazard = links->items[TRACE_HAZARD][h];
        uint32_t condition_count =
            of_hazard(making->items, links, TRACE_CONDITION, hazard, conditions);
        uint32_t requirement_count =
            of_hazard(making->items, links, TRACE_REQUIREMENT, hazard, requirements);
        for (uint32_t c = 0; c < condition_count; c++) {
            for (uint32_t r = 0; r < requirement_count; r++) {
                const uint32_t path[TRACE_KIND_COUNT] = {hazard, conditions[c], requirements[r]};
                TRY(add_path(making, path, verdicts));
            }
        }
    }
    return STATUS_OK;
}

static enum status add_entry(struct making *making, uint32_t entry)
{
    const struct verdicts *verdicts = &making->verdicts[entry];
    struct entry_links links;
    bool any = false;
    for (int k = 0; k < TRACE_KIND_COUNT; k++) {
        TRY(find_links(making, entry, (enum trace_kind)k, &links.count[k], links.items[k]));
        for (uint32_t i = 0; i < links.count[k] && links.items[k][i] != UINT32_MAX; i++) {
            uint32_t item = links.items[k][i];
            add_result(verdicts, making->items->items[k][item].reasons,
                       &making->out->totals[k][item]);
            any = true;
        }
    }
    if (!any) {
        making->out->unlinked++;
        return STATUS_OK;
    }
    TRY(check_linked(making, entry, &links));
    return add_paths(making, verdicts, &links);
}

static int compare_rows(const void *a, const void *b)
{
    const struct trace_row *x = a;
    const struct trace_row *y = b;
    for (int k = 0; k < TRACE_KIND_COUNT; k++) {
        if (x->item[k] != y->item[k]) {
            return x->item[k] < y->item[k] ? -1 : 1;
        }
    }
    return (x->entry > y->entry) - (x->entry < y->entry);
}

enum status trace_matrix_make(const struct trace_register *items, const struct suite *suite,
                              const struct summary *summary, struct trace_matrix *out,
                              struct error *error)
{
    struct making making = {.items = items, .suite = suite, .out = out, .error = error};
    *out = (struct trace_matrix){.items = items, .suite = suite, .summary = summary};
    enum status status = count_outcomes(&making, summary);
    for (int k = 0; k < TRACE_KIND_COUNT; k++) {
        out->totals[k] = calloc((size_t)items->count[k] + 1, sizeof *out->totals[k]);
        THEN(status, memory_check(out->totals[k], error, "traceability: out of memory"));
    }
    for (uint32_t i = 0; status == STATUS_OK && i < suite->entry_count; i++) {
        status = add_entry(&making, i);
    }
    free(making.verdicts);
    if (status != STATUS_OK) {
        trace_matrix_finish(out);
    } else if (out->row_count > 0) {
        qsort(out->rows, out->row_count, sizeof *out->rows, compare_rows);
    }
    return status;
}

void trace_matrix_finish(struct trace_matrix *matrix)
{
    for (int k = 0; k < TRACE_KIND_COUNT; k++) {
        free(matrix->totals[k]);
    }
    free(matrix->rows);
    *matrix = (struct trace_matrix){0};
}

const char *trace_row_scenario(const struct trace_matrix *matrix, const struct trace_row *row,
                               char out[LIMIT_ID_BYTES])
{
    const char *id = matrix->suite->entries[row->entry].document->scenario.id;
    snprintf(out, LIMIT_ID_BYTES, "%.*s", (int)scenario_id_logical_bytes(id), id);
    return out;
}
