/*
 * Markdown for the page that a CI system shows beside a run. Main lines are counted by planner and
 * tier, never pooled over tiers; what did not pass is listed with the command that drives it again.
 */
#include "report/export/export.h"

#include "report/page/page.h"

#include <stdlib.h>
#include <string.h>

enum { LISTED_MAX = 100, GROUPS_MAX = 256 };

struct group {
    char planner[LIMIT_SPEC_BYTES];
    enum tier tier;
    uint64_t mains[VERDICT_COUNT];
    uint64_t branches;
};

struct listing {
    const struct export_request *request;
    struct page page;
    uint32_t group_count;
    struct group *groups; /* [GROUPS_MAX] */
    uint64_t uncounted;   /* of further groups */
    uint64_t failed;
};

static struct group *find_group(struct listing *listing, const struct outcome *outcome)
{
    for (uint32_t i = 0; i < listing->group_count; i++) {
        struct group *group = &listing->groups[i];
        if (group->tier == outcome->tier && strcmp(group->planner, outcome->planner) == 0) {
            return group;
        }
    }
    if (listing->group_count == GROUPS_MAX) {
        return NULL;
    }
    struct group *group = &listing->groups[listing->group_count++];
    memcpy(group->planner, outcome->planner, sizeof group->planner);
    group->tier = outcome->tier;
    return group;
}

static bool is_listed(const struct outcome *outcome)
{
    return outcome->branch_id[0] == '\0' && outcome->audit_of == 0 &&
           outcome->verdict != VERDICT_PASS;
}

static enum status count(void *context, const struct outcome *outcome, struct error *error)
{
    struct listing *listing = context;
    struct group *group = outcome->audit_of == 0 ? find_group(listing, outcome) : NULL;
    (void)error;
    if (group == NULL) {
        listing->uncounted += outcome->audit_of == 0;
    } else if (outcome->branch_id[0] != '\0') {
        group->branches++;
    } else {
        group->mains[outcome->verdict]++;
    }
    listing->failed += is_listed(outcome);
    return STATUS_OK;
}

static enum status list_failure(void *context, const struct outcome *outcome, struct error *error)
{
    struct listing *listing = context;
    struct page *page = &listing->page;
    const char *url = listing->request->store_url;
    char reasons[REASONS_TEXT_BYTES];
    if (!is_listed(outcome) || listing->failed == 0) {
        return STATUS_OK;
    }
    listing->failed--;
    page_row_begin(page, "");
    page_cells(page, 0, "%s|%llu|%s|%s|%s%s%s", outcome->scenario_id,
               (unsigned long long)outcome->seed, outcome->planner, tier_names[outcome->tier],
               verdict_names[outcome->verdict], outcome->reasons != 0 ? ", " : "",
               reasons_text(outcome->reasons, ", ", reasons));
    fprintf(page->out, " `swerve replay %lld", (long long)outcome->id);
    if (url != NULL && strpbrk(url, "`|\r\n") == NULL) {
        fprintf(page->out, " --store %s", url);
    }
    fprintf(page->out, "%s` |", outcome_world_option(outcome->sampler));
    page_row_end(page);
    return ferror(page->out) ? export_stream_check(listing->request, error) : STATUS_OK;
}

static void write_groups(struct listing *listing)
{
    struct page *page = &listing->page;
    _Static_assert(VERDICT_COUNT == 5, "a column for each verdict");
    page_table(page, "", "planner|world|#main lines|#%s|#%s|#%s|#%s|#%s|#branches",
               verdict_names[0], verdict_names[1], verdict_names[2], verdict_names[3],
               verdict_names[4]);
    for (uint32_t i = 0; i < listing->group_count; i++) {
        const struct group *group = &listing->groups[i];
        uint64_t mains = 0;
        for (int v = 0; v < VERDICT_COUNT; v++) {
            mains += group->mains[v];
        }
        page_row_begin(page, "");
        page_cells(page, 0, "%s|%s|%llu", group->planner, tier_names[group->tier],
                   (unsigned long long)mains);
        for (int v = 0; v < VERDICT_COUNT; v++) {
            page_cells(page, 3, "%llu", (unsigned long long)group->mains[v]);
        }
        page_cells(page, 3, "%llu", (unsigned long long)group->branches);
        page_row_end(page);
    }
    if (listing->uncounted > 0) {
        fprintf(page->out, "\n%llu outcomes of further planners and worlds are not in the table.\n",
                (unsigned long long)listing->uncounted);
    }
}

enum status export_markdown(const struct export_request *request, struct error *error)
{
    FILE *out = request->out;
    struct listing listing = {.request = request,
                              .page = {.form = PAGE_MARKDOWN, .out = out},
                              .groups = calloc(GROUPS_MAX, sizeof *listing.groups)};
    TRY(memory_check(listing.groups, error, "export: out of memory"));
    enum status status =
        store_outcomes_each(request->store, request->suite_id, count, &listing, error);
    if (status == STATUS_OK) {
        markdown_print(out, "## Swerve: %s\n\n", request->suite_id);
        write_groups(&listing);
        uint64_t failed = listing.failed;
        if (failed > 0) {
            fprintf(out, "\n### Did not pass: %llu\n\n", (unsigned long long)failed);
            page_table(&listing.page, "", "scenario|#seed|planner|world|verdict|drive again");
            listing.failed = failed < LISTED_MAX ? failed : LISTED_MAX;
            status = store_outcomes_each(request->store, request->suite_id, list_failure, &listing,
                                         error);
        }
        if (failed > LISTED_MAX) {
            fprintf(out, "\n%llu more are not listed.\n",
                    (unsigned long long)(failed - LISTED_MAX));
        }
    }
    free(listing.groups);
    return status == STATUS_OK ? export_stream_check(request, error) : status;
}
