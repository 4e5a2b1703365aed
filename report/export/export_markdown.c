/*
 * Markdown for the page that a CI system shows beside a run. Main lines are counted by planner and
 * tier, never pooled over tiers; what did not pass is listed with the command that drives it again.
 */
#include "report/export/export.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

enum { LISTED_MAX = 100, GROUPS_MAX = 256 };

struct group {
    char planner[LIMIT_SPEC_BYTES];
    enum tier tier;
    uint64_t mains[VERDICT_COUNT];
    uint64_t branches;
};

struct page {
    const struct export_request *request;
    uint32_t group_count;
    struct group *groups; /* [GROUPS_MAX] */
    uint64_t uncounted;   /* of further groups */
    uint64_t failed;
};

/* Text from anywhere inside a table's cell: one line, nothing of it is markup. */
static void put_cell(const char *text, size_t limit, FILE *out)
{
    char shown[4 * LIMIT_SPEC_BYTES];
    text_escape(text, TEXT_LINE, shown, sizeof shown < limit ? sizeof shown : limit);
    for (const char *at = shown; *at != '\0'; at++) {
        if (strchr("\\`*_{}[]<>|#&~", *at) != NULL) {
            fputc('\\', out);
        }
        fputc(*at, out);
    }
}

static struct group *find_group(struct page *page, const struct outcome *outcome)
{
    for (uint32_t i = 0; i < page->group_count; i++) {
        struct group *group = &page->groups[i];
        if (group->tier == outcome->tier && strcmp(group->planner, outcome->planner) == 0) {
            return group;
        }
    }
    if (page->group_count == GROUPS_MAX) {
        return NULL;
    }
    struct group *group = &page->groups[page->group_count++];
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
    struct page *page = context;
    struct group *group = outcome->audit_of == 0 ? find_group(page, outcome) : NULL;
    (void)error;
    if (group == NULL) {
        page->uncounted += outcome->audit_of == 0;
    } else if (outcome->branch_id[0] != '\0') {
        group->branches++;
    } else {
        group->mains[outcome->verdict]++;
    }
    page->failed += is_listed(outcome);
    return STATUS_OK;
}

static enum status list_failure(void *context, const struct outcome *outcome, struct error *error)
{
    struct page *page = context;
    FILE *out = page->request->out;
    if (!is_listed(outcome) || page->failed == 0) {
        return STATUS_OK;
    }
    page->failed--;
    fputs("| ", out);
    put_cell(outcome->scenario_id, SIZE_MAX, out);
    fprintf(out, " | %llu | ", (unsigned long long)outcome->seed);
    put_cell(outcome->planner, SIZE_MAX, out);
    fprintf(out, " | %s | %s", tier_names[outcome->tier], verdict_names[outcome->verdict]);
    if (outcome->reasons != 0) {
        char reasons[REASONS_TEXT_BYTES];
        fputs(", ", out);
        put_cell(reasons_text(outcome->reasons, ", ", reasons), SIZE_MAX, out);
    }
    fprintf(out, " | `swerve replay %lld", (long long)outcome->id);
    if (page->request->store_url != NULL && strpbrk(page->request->store_url, "`|\r\n") == NULL) {
        fprintf(out, " --store %s", page->request->store_url);
    }
    fputs("` |\n", out);
    return ferror(out) ? export_stream_check(page->request, error) : STATUS_OK;
}

static void write_groups(const struct page *page)
{
    FILE *out = page->request->out;
    fputs("| planner | world | main lines |", out);
    for (int i = 0; i < VERDICT_COUNT; i++) {
        fputc(' ', out);
        put_cell(verdict_names[i], SIZE_MAX, out);
        fputs(" |", out);
    }
    fputs(" branches |\n|---|---|---:|", out);
    for (int i = 0; i < VERDICT_COUNT; i++) {
        fputs("---:|", out);
    }
    fputs("---:|\n", out);
    for (uint32_t i = 0; i < page->group_count; i++) {
        const struct group *group = &page->groups[i];
        uint64_t mains = 0;
        for (int v = 0; v < VERDICT_COUNT; v++) {
            mains += group->mains[v];
        }
        fputs("| ", out);
        put_cell(group->planner, SIZE_MAX, out);
        fprintf(out, " | %s | %llu |", tier_names[group->tier], (unsigned long long)mains);
        for (int v = 0; v < VERDICT_COUNT; v++) {
            fprintf(out, " %llu |", (unsigned long long)group->mains[v]);
        }
        fprintf(out, " %llu |\n", (unsigned long long)group->branches);
    }
    if (page->uncounted > 0) {
        fprintf(out, "\n%llu outcomes of further planners and worlds are not in the table.\n",
                (unsigned long long)page->uncounted);
    }
}

enum status export_markdown(const struct export_request *request, struct error *error)
{
    FILE *out = request->out;
    struct page page = {.request = request, .groups = calloc(GROUPS_MAX, sizeof *page.groups)};
    TRY(memory_check(page.groups, error, "export: out of memory"));
    enum status status =
        store_outcomes_each(request->store, request->suite_id, count, &page, error);
    if (status == STATUS_OK) {
        fputs("## Swerve: ", out);
        put_cell(request->suite_id, SIZE_MAX, out);
        fputs("\n\n", out);
        write_groups(&page);
        uint64_t failed = page.failed;
        if (failed > 0) {
            fprintf(out, "\n### Did not pass: %llu\n\n", (unsigned long long)failed);
            fputs("| scenario | seed | planner | world | verdict | drive again |\n"
                  "|---|---:|---|---|---|---|\n",
                  out);
            page.failed = failed < LISTED_MAX ? failed : LISTED_MAX;
            status =
                store_outcomes_each(request->store, request->suite_id, list_failure, &page, error);
        }
        if (failed > LISTED_MAX) {
            fprintf(out, "\n%llu more are not listed.\n",
                    (unsigned long long)(failed - LISTED_MAX));
        }
    }
    free(page.groups);
    return status == STATUS_OK ? export_stream_check(request, error) : status;
}
