/*
 * Markdown for the page that a CI system shows beside a run. Main lines are counted by planner and
 * tier, never pooled over tiers, with those that were not driven; what did not pass is listed with
 * the command that drives it again.
 */
#include "report/export/export.h"

#include "report/page/page.h"
#include "report/summary.h"

#include <stdlib.h>
#include <string.h>

enum { LISTED_MAX = 100, GROUPS_MAX = 256 };

struct group {
    const char *planner; /* the summary's */
    enum tier tier;
    uint64_t mains[VERDICT_COUNT];
    uint64_t undriven;
    uint64_t branches;
};

struct listing {
    const struct export_request *request;
    const struct summary *summary;
    struct page page;
    uint32_t group_count;
    struct group *groups; /* [GROUPS_MAX] */
    uint64_t uncounted;   /* of further groups */
    uint64_t failed;
    uint64_t left; /* rows that the list has room for */
};

static struct group *find_group(struct listing *listing, const char *planner, enum tier tier)
{
    for (uint32_t i = 0; i < listing->group_count; i++) {
        struct group *group = &listing->groups[i];
        if (group->tier == tier && strcmp(group->planner, planner) == 0) {
            return group;
        }
    }
    if (listing->group_count == GROUPS_MAX) {
        listing->uncounted++;
        return NULL;
    }
    struct group *group = &listing->groups[listing->group_count++];
    *group = (struct group){.planner = planner, .tier = tier};
    return group;
}

/* A main line that did not pass. */
static bool is_listed(const struct summary *summary, uint32_t index)
{
    return summary->outcomes[index].verdict != VERDICT_PASS && summary_names(summary, index);
}

static void count(struct listing *listing)
{
    const struct summary *summary = listing->summary;
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        const struct kept_outcome *outcome = &summary->outcomes[i];
        struct group *group = find_group(listing, outcome->planner, outcome->tier);
        if (group != NULL && outcome->branch_id[0] != '\0') {
            group->branches++;
        } else if (group != NULL) {
            group->mains[outcome->verdict]++;
        }
        listing->failed += is_listed(summary, i);
    }
    for (uint32_t i = 0; i < summary->undriven_count; i++) {
        const struct summary_undriven *undriven = &summary->undriven[i];
        struct group *group = find_group(listing, undriven->planner, undriven->tier);
        if (group != NULL) {
            group->undriven++;
        }
    }
    listing->failed += summary->undriven_count;
}

static void list_failure(struct listing *listing, const struct kept_outcome *outcome)
{
    struct page *page = &listing->page;
    const char *url = listing->request->store_url;
    char reasons[REASONS_TEXT_BYTES];
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
}

static void list_undriven(struct listing *listing, const struct summary_undriven *undriven)
{
    page_row_begin(&listing->page, "");
    page_cells(&listing->page, 0, "%s|%llu|%s|%s|%s|", undriven->scenario_id,
               (unsigned long long)undriven->seed, undriven->planner, tier_names[undriven->tier],
               summary_lack_names[undriven->lack]);
    page_row_end(&listing->page);
}

static void list_failures(struct listing *listing)
{
    const struct summary *summary = listing->summary;
    page_table(&listing->page, "", "scenario|#seed|planner|world|verdict|drive again");
    listing->left = listing->failed < LISTED_MAX ? listing->failed : LISTED_MAX;
    for (uint32_t i = 0; i < summary->outcome_count && listing->left > 0; i++) {
        if (is_listed(summary, i)) {
            list_failure(listing, &summary->outcomes[i]);
            listing->left--;
        }
    }
    for (uint32_t i = 0; i < summary->undriven_count && listing->left > 0; i++) {
        list_undriven(listing, &summary->undriven[i]);
        listing->left--;
    }
}

static void write_groups(struct listing *listing)
{
    struct page *page = &listing->page;
    bool undriven = listing->summary->undriven_count > 0;
    _Static_assert(VERDICT_COUNT == 5, "a column for each verdict");
    page_table(page, "",
               undriven ? "planner|world|#main lines|#%s|#%s|#%s|#%s|#%s|#not driven|#branches"
                        : "planner|world|#main lines|#%s|#%s|#%s|#%s|#%s|#branches",
               verdict_names[0], verdict_names[1], verdict_names[2], verdict_names[3],
               verdict_names[4]);
    for (uint32_t i = 0; i < listing->group_count; i++) {
        const struct group *group = &listing->groups[i];
        uint64_t mains = group->undriven;
        for (int v = 0; v < VERDICT_COUNT; v++) {
            mains += group->mains[v];
        }
        page_row_begin(page, "");
        page_cells(page, 0, "%s|%s|%llu", group->planner, tier_names[group->tier],
                   (unsigned long long)mains);
        for (int v = 0; v < VERDICT_COUNT; v++) {
            page_cells(page, 3, "%llu", (unsigned long long)group->mains[v]);
        }
        if (undriven) {
            page_cells(page, 3, "%llu", (unsigned long long)group->undriven);
        }
        page_cells(page, 3, "%llu", (unsigned long long)group->branches);
        page_row_end(page);
    }
    if (listing->uncounted > 0) {
        fprintf(page->out, "\n%llu outcomes of further planners and worlds are not in the table.\n",
                (unsigned long long)listing->uncounted);
    }
}

/* Main lines without a result, and the budget that stopped the suite. */
static void write_lacking(const struct listing *listing)
{
    const struct summary *summary = listing->summary;
    char names[SUMMARY_SEEDS_BYTES];
    char budget[SUMMARY_BUDGET_BYTES] = "";
    int64_t lacking[SUMMARY_LACK_COUNT];
    long long missing = (long long)summary_lacking(summary, lacking);
    if (summary->status.stopped_by_budget) {
        summary_budget_text(&summary->status, budget);
    }
    if (missing > 0) {
        fprintf(listing->page.out, "\n%lld main line%s no result (%s)%s%s.\n", missing,
                missing == 1 ? " has" : "s have", summary_lacking_text(lacking, names),
                budget[0] != '\0' ? ": " : "", budget);
    }
}

enum status export_markdown(const struct export_request *request, struct error *error)
{
    FILE *out = request->out;
    struct summary summary;
    struct listing listing = {.request = request,
                              .summary = &summary,
                              .page = {.form = PAGE_MARKDOWN, .out = out},
                              .groups = calloc(GROUPS_MAX, sizeof *listing.groups)};
    TRY(memory_check(listing.groups, error, "export: out of memory"));
    enum status status = summary_load(request->store, request->suite_id, &summary, error);
    if (status == STATUS_OK) {
        count(&listing);
        markdown_print(out, "## Swerve: %s\n\n", request->suite_id);
        write_groups(&listing);
        write_lacking(&listing);
        if (listing.failed > 0) {
            fprintf(out, "\n### Did not pass: %llu\n\n", (unsigned long long)listing.failed);
            list_failures(&listing);
        }
        if (listing.failed > LISTED_MAX) {
            fprintf(out, "\n%llu more are not listed.\n",
                    (unsigned long long)(listing.failed - LISTED_MAX));
        }
        status = export_stream_check(request, error);
        summary_finish(&summary);
    }
    free(listing.groups);
    return status;
}
