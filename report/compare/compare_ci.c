/*
 * A comparison for CI systems: Markdown for a summary page or a comment, and JUnit. Both are of
 * main lines; a pull request's reader wants the verdict, then what to look at.
 */
#include "report/compare/compare.h"
#include "report/page/junit.h"

#include <math.h>
#include <string.h>

enum { LISTED_MAX = 50 };

/* Why the side's drive did not pass. */
static const char *why(const struct compare_rollout *rollout, char text[REASONS_TEXT_BYTES])
{
    return rollout->reasons == 0 ? verdict_names[rollout->verdict]
                                 : reasons_text(rollout->reasons, ", ", text);
}

static bool is_main(const struct compare_rollout *rollout)
{
    return rollout->branch_id[0] == '\0';
}

/* ---- Markdown ---- */

/* A cell with the command that shows an outcome. Text that ends a code span or a cell is left out.
 */
static void put_command(FILE *out, const struct compare_side *side, int64_t id)
{
    fprintf(out, " `swerve show %lld", (long long)id);
    if (strpbrk(side->store_url, "`|\r\n") == NULL) {
        fprintf(out, " --store %s", side->store_url);
    }
    fputs("` |", out);
}

static void put_commands(struct page *page, const struct compare *compare, int64_t a, int64_t b)
{
    put_command(page->out, compare->a, a);
    if (b != 0) {
        put_command(page->out, compare->b, b);
    } else {
        fputs(" |", page->out);
    }
    page_row_end(page);
}

/* Ends a list of `all` rows, of which so many at most were shown. */
static void end_list(struct page *page, uint32_t all)
{
    if (all > 0) {
        page_table_end(page);
    }
    if (all > LISTED_MAX) {
        fprintf(page->out, "\n%u more are not listed.\n", all - LISTED_MAX);
    }
}

static void list_flips(const struct compare *compare, bool broken, struct page *page)
{
    char text[REASONS_TEXT_BYTES];
    uint32_t all = 0;
    for (uint32_t i = 0; i < compare->flip_count; i++) {
        const struct compare_rollout *a = compare_rollout(compare, compare->flips[i], false);
        const struct compare_rollout *b = compare_rollout(compare, compare->flips[i], true);
        if (!is_main(a) || compare_passed(a) != broken) {
            continue;
        }
        if (all++ == 0) {
            page_heading(page, "%s",
                         broken ? "Broken: A passes, B does not" : "Fixed: B passes, A does not");
            page_table(page, "", "scenario|#seed|world|why|A|B");
        }
        if (all <= LISTED_MAX) {
            page_row_begin(page, "");
            page_cells(page, 0, "%s|%llu|%s|%s", a->scenario_id, (unsigned long long)a->seed,
                       tier_names[a->tier], why(broken ? b : a, text));
            put_commands(page, compare, a->id, b->id);
        }
    }
    end_list(page, all);
}

static void list_losses(const struct compare *compare, struct page *page)
{
    if (compare->loss_count > 0) {
        page_heading(page, "Lost: A passes, B has no result that could be compared");
        page_table(page, "", "scenario|#seed|world|why|A|B");
    }
    for (uint32_t i = 0; i < compare->loss_count && i < LISTED_MAX; i++) {
        const struct compare_loss *loss = &compare->losses[i];
        const struct compare_rollout *a = &compare->a->rollouts[loss->a];
        page_row_begin(page, "");
        page_cells(page, 0, "%s|%llu|%s|%s", a->scenario_id, (unsigned long long)a->seed,
                   tier_names[a->tier], compare_loss_names[loss->kind]);
        put_commands(page, compare, a->id,
                     loss->b != UINT32_MAX ? compare->b->rollouts[loss->b].id : 0);
    }
    end_list(page, compare->loss_count);
}

void compare_markdown(const struct compare *compare, const char *regression, FILE *out)
{
    struct page page = {.form = PAGE_MARKDOWN, .out = out};
    struct compare_notes notes;
    char words[COMPARE_WORDS_BYTES];
    const struct compare_row *all = &compare->all;
    page_heading(&page, "Swerve: %s",
                 regression[0] != '\0' ? "regression"
                 : all->mains == 0     ? "nothing could be compared"
                                       : "no regression");
    if (regression[0] != '\0') {
        markdown_print(out, "%s.\n\n", regression);
    }
    markdown_print(out,
                   "A: %s, suite %s. B: %s, suite %s. Of %lld main lines B fixes %lld and breaks "
                   "%lld; %u that passed with A %s no result with B.\n\n",
                   compare->a->planner, compare->a->suite_id, compare->b->planner,
                   compare->b->suite_id, (long long)all->mains, (long long)all->fixed,
                   (long long)all->broken, compare->loss_count,
                   compare->loss_count == 1 ? "has" : "have");
    compare_note(compare, &notes);
    for (uint32_t i = 0; i < notes.count; i++) {
        markdown_print(out, "%s.\n\n", notes.text[i]);
    }
    compare_write_ends(compare, &page);
    if (all->mains > 0) {
        fputs("\n", out);
        compare_write_changed(compare, &page);
        page_table_end(&page);
        markdown_print(out, "\nIn words: %s.\n", compare_words(compare, words));
    }
    list_flips(compare, true, &page);
    list_losses(compare, &page);
    list_flips(compare, false, &page);
}

/* ---- JUnit ---- */

static bool is_broken(const struct compare_rollout *a, const struct compare_rollout *b)
{
    return compare_passed(a) && !compare_passed(b);
}

static void put_case(FILE *out, const struct compare *compare, const struct compare_rollout *a)
{
    junit_print(out, "  <testcase classname=\"%s\" name=\"%s [%s, seed %llu]\"",
                compare->b->suite_id, a->scenario_id, tier_names[a->tier],
                (unsigned long long)a->seed);
}

static void put_shows(FILE *out, const struct compare *compare, int64_t a, int64_t b)
{
    junit_print(out, "A: swerve show %lld --store %s", (long long)a, compare->a->store_url);
    if (b != 0) {
        junit_print(out, "&#10;B: swerve show %lld --store %s", (long long)b,
                    compare->b->store_url);
    }
}

static void put_pair(FILE *out, const struct compare *compare, uint32_t pair)
{
    const struct compare_rollout *a = compare_rollout(compare, pair, false);
    const struct compare_rollout *b = compare_rollout(compare, pair, true);
    char text[REASONS_TEXT_BYTES];
    put_case(out, compare, a);
    if (compare_passed(b)) {
        junit_print(out, "/>\n");
    } else if (is_broken(a, b)) {
        junit_print(out, ">\n   <failure type=\"broken\" message=\"passes with A; with B: %s\">",
                    why(b, text));
        put_shows(out, compare, a->id, b->id);
        junit_print(out, "</failure>\n  </testcase>\n");
    } else {
        junit_print(out,
                    ">\n   <skipped message=\"fails with both; with B: %s\"/>\n  </testcase>\n",
                    why(b, text));
    }
}

void compare_junit(const struct compare *compare, FILE *out)
{
    struct junit_counts counts = {
        .tests = compare->loss_count, .errors = compare->loss_count, .time_s = NAN};
    for (uint32_t i = 0; i < compare->pair_count; i++) {
        const struct compare_rollout *a = compare_rollout(compare, i, false);
        const struct compare_rollout *b = compare_rollout(compare, i, true);
        if (is_main(a)) {
            counts.tests++;
            counts.failures += is_broken(a, b);
            counts.skipped += !compare_passed(a) && !compare_passed(b);
        }
    }
    junit_begin(out, compare->b->suite_id, &counts);
    for (uint32_t i = 0; i < compare->pair_count; i++) {
        if (is_main(compare_rollout(compare, i, false))) {
            put_pair(out, compare, i);
        }
    }
    for (uint32_t i = 0; i < compare->loss_count; i++) {
        const struct compare_loss *loss = &compare->losses[i];
        const struct compare_rollout *a = &compare->a->rollouts[loss->a];
        put_case(out, compare, a);
        junit_print(out,
                    ">\n   <error type=\"lost\" message=\"passes with A; with B no result: %s\">",
                    compare_loss_names[loss->kind]);
        put_shows(out, compare, a->id,
                  loss->b != UINT32_MAX ? compare->b->rollouts[loss->b].id : 0);
        junit_print(out, "</error>\n  </testcase>\n");
    }
    junit_end(out);
}
