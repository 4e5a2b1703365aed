/*
 * Findings of a search: tables for people, JSON for programs.
 */
#include "cli/search/search_run.h"

#include "base/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *search_value_text(const struct range *range, double at, char out[SEARCH_VALUE_BYTES])
{
    json_t *value = range_value(range, at);
    if (json_is_string(value)) {
        snprintf(out, SEARCH_VALUE_BYTES, "%s", json_string_value(value));
    } else {
        snprintf(out, SEARCH_VALUE_BYTES, "%.6g", json_number_value(value));
    }
    json_decref(value);
    return out;
}

const struct search_drive *search_cluster_sum(const struct search_logical *logical,
                                              uint32_t cluster, uint32_t *count)
{
    const struct search_drive *worst = NULL;
    *count = 0;
    for (uint32_t i = 0; i < logical->drive_count; i++) {
        const struct search_drive *drive = &logical->drives[i];
        if (logical->clusters[i] == cluster) {
            ++*count;
            worst = worst == NULL || drive->sample.margin < worst->sample.margin ? drive : worst;
        }
    }
    return worst;
}

/* Points that were driven; one that rounding made equal to another is none of its own. */
static uint32_t point_count(const struct search_logical *logical)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < logical->drive_count; i++) {
        count += logical->drives[i].worst != NULL;
    }
    return count;
}

static double least_margin(const struct search_logical *logical)
{
    double least = NAN;
    for (uint32_t i = 0; i < logical->drive_count; i++) {
        double margin = logical->drives[i].sample.margin;
        least = isnan(least) || margin < least ? margin : least;
    }
    return least;
}

void search_describe(const struct search_drive *drive, char out[SEARCH_KIND_BYTES])
{
    const struct search_failure *failure = &drive->failure;
    char reasons[REASONS_TEXT_BYTES];
    int used =
        snprintf(out, SEARCH_KIND_BYTES, "%s", reasons_text(failure->reasons, ", ", reasons));
    if (failure->agent >= 0) {
        used += snprintf(out + used, SEARCH_KIND_BYTES - (size_t)used, "; %s at ego's %s, %s",
                         drive->agent_id, search_side_names[failure->side],
                         search_way_names[failure->way]);
    }
    if (failure->diverged_s >= 0) {
        snprintf(out + used, SEARCH_KIND_BYTES - (size_t)used, "; ego drives otherwise %d s before",
                 failure->diverged_s);
    }
}

static const char *const line_words[] = {"not tried", "not finished", "found", "fails to the end"};

static void print_boundary(const struct search_logical *logical,
                           const struct search_boundary *boundary)
{
    char fails[SEARCH_VALUE_BYTES];
    char passes[SEARCH_VALUE_BYTES];
    const struct search_line *line = &boundary->line;
    if (boundary->dimension < 0) {
        text_print(stdout, "    closest pass:");
        for (uint32_t d = 0; d < logical->space.count; d++) {
            const struct range *range = &logical->scenario->ranges[d];
            text_print(stdout, " %s %s|%s", range->name,
                       search_value_text(range, line->failing.at[d], fails),
                       search_value_text(range, line->passing.at[d], passes));
        }
        text_print(stdout, "  (fails|passes, %s)\n", line_words[line->state]);
        return;
    }
    uint32_t d = (uint32_t)boundary->dimension;
    const struct range *range = &logical->scenario->ranges[d];
    const char *way = boundary->high ? "upwards" : "downwards";
    if (line->state == SEARCH_LINE_ALL_FAIL) {
        text_print(stdout, "    %s %s: fails to the end of the range, %s\n", range->name, way,
                   search_value_text(range, line->passing.at[d], passes));
    } else {
        text_print(stdout, "    %s %s: fails at %s, passes at %s\n", range->name, way,
                   search_value_text(range, line->failing.at[d], fails),
                   search_value_text(range, line->passing.at[d], passes));
    }
}

/* The line of a cluster to one end of a number's range; NULL: it was not looked for. */
static const struct search_line *line_to(const struct search_logical *logical, uint32_t cluster,
                                         uint32_t dimension, bool high)
{
    for (uint32_t b = 0; b < logical->boundary_count; b++) {
        const struct search_boundary *boundary = &logical->boundaries[b];
        if (boundary->cluster == cluster && boundary->dimension == (int32_t)dimension &&
            boundary->high == high) {
            return &boundary->line;
        }
    }
    return NULL;
}

/* Appends to a text of SEARCH_SENTENCE_BYTES. */
__attribute__((format(printf, 2, 3))) static void add(char *out, const char *format, ...)
{
    size_t used = strlen(out);
    va_list args;
    va_start(args, format);
    vsnprintf(out + used, SEARCH_SENTENCE_BYTES - used, format, args);
    va_end(args);
}

const char *search_sentence(const struct search_logical *logical, uint32_t cluster,
                            char out[SEARCH_SENTENCE_BYTES])
{
    uint32_t told = 0;
    out[0] = '\0';
    for (uint32_t d = 0; d < logical->space.count; d++) {
        char values[2][SEARCH_VALUE_BYTES];
        const struct range *range = &logical->scenario->ranges[d];
        const struct search_line *low = line_to(logical, cluster, d, false);
        const struct search_line *high = line_to(logical, cluster, d, true);
        if (low == NULL || high == NULL) {
            continue;
        }
        bool above = low->state != SEARCH_LINE_ALL_FAIL;
        bool below = high->state != SEARCH_LINE_ALL_FAIL;
        search_value_text(range, low->failing.at[d], values[0]);
        search_value_text(range, high->failing.at[d], values[1]);
        add(out, "%s%s is ", told++ == 0 ? "it fails while " : ", and while ", range->name);
        if (above && below) {
            add(out, "between %s and %s", values[0], values[1]);
        } else {
            add(out, "%s%s",
                above   ? "at least "
                : below ? "at most "
                        : "",
                above   ? values[0]
                : below ? values[1]
                        : "anywhere in its range");
        }
    }
    if (told > 1) {
        add(out, " (each by itself, the others as in the hardest)");
    }
    return out;
}

static void print_clusters(const struct search_logical *logical)
{
    for (uint32_t c = 0; c < logical->cluster_count; c++) {
        uint32_t count;
        char kind[SEARCH_KIND_BYTES];
        char sentence[SEARCH_SENTENCE_BYTES];
        const struct search_drive *worst = search_cluster_sum(logical, c, &count);
        search_describe(worst, kind);
        text_print(stdout, "  %u failure%s: %s\n", count, count == 1 ? "" : "s", kind);
        text_print(stdout, "    hardest: outcome %lld, %s\n", (long long)worst->worst->id,
                   worst->scenario_id);
        for (uint32_t b = 0; b < logical->boundary_count; b++) {
            if (logical->boundaries[b].cluster == c) {
                print_boundary(logical, &logical->boundaries[b]);
            }
        }
        if (search_sentence(logical, c, sentence)[0] != '\0') {
            text_print(stdout, "    in words: %s\n", sentence);
        }
    }
}

void search_print(const struct search_run *run)
{
    for (uint32_t l = 0; l < run->count; l++) {
        const struct search_logical *logical = &run->logicals[l];
        char value[SEARCH_VALUE_BYTES];
        char most[SEARCH_VALUE_BYTES];
        text_print(stdout, "%s:", logical->scenario->id);
        for (uint32_t d = 0; d < logical->space.count; d++) {
            const struct range *range = &logical->scenario->ranges[d];
            if (range->choice_count == 1) {
                continue;
            }
            text_print(stdout, " %s", range->name);
            if (range->choice_count > 0) {
                text_print(stdout, " (%u values)", range->choice_count);
            } else {
                text_print(stdout, " %s..%s", search_value_text(range, 0.0, value),
                           search_value_text(range, 1.0, most));
            }
        }
        text_print(stdout, "\n  %u of %u points fail", logical->failure_count,
                   point_count(logical));
        if (logical->impossible_count > 0) {
            text_print(stdout, ", %u cannot be driven", logical->impossible_count);
        }
        if (logical->failure_count == 0) {
            text_print(stdout, ", least margin %.2f", least_margin(logical));
        }
        text_print(stdout, "\n");
        print_clusters(logical);
    }
    if (run->impossible.text[0] != '\0') {
        text_print(stdout, "points that cannot be driven: %s\n", run->impossible.text);
    }
    text_print(stdout, "%u drives, suite %s in %s\n", run->driven, run->suite_id,
               cli_store_url(run->options->store_url));
}

/* ---- JSON ---- */

static json_t *point_json(const struct search_logical *logical, const struct search_point *point)
{
    json_t *json = json_object();
    for (uint32_t d = 0; d < logical->space.count; d++) {
        const struct range *range = &logical->scenario->ranges[d];
        json_object_set_new(json, range->name, range_value(range, point->at[d]));
    }
    return json;
}

static json_t *boundary_json(const struct search_logical *logical,
                             const struct search_boundary *boundary)
{
    static const char *const states[] = {"untried", "open", "found", "fails_to_end"};
    const char *name =
        boundary->dimension >= 0 ? logical->scenario->ranges[boundary->dimension].name : NULL;
    return json_pack("{s:s?, s:s?, s:s, s:o, s:o}", "parameter", name, "towards",
                     name == NULL     ? NULL
                     : boundary->high ? "high"
                                      : "low",
                     "state", states[boundary->line.state], "fails",
                     point_json(logical, &boundary->line.failing), "passes",
                     boundary->line.state == SEARCH_LINE_ALL_FAIL
                         ? json_null()
                         : point_json(logical, &boundary->line.passing));
}

static json_t *cluster_json(const struct search_logical *logical, uint32_t cluster)
{
    uint32_t count;
    char reasons[REASONS_TEXT_BYTES];
    const struct search_drive *worst = search_cluster_sum(logical, cluster, &count);
    const struct search_failure *failure = &worst->failure;
    bool touched = failure->agent >= 0;
    json_t *boundaries = json_array();
    for (uint32_t b = 0; b < logical->boundary_count; b++) {
        if (logical->boundaries[b].cluster == cluster) {
            json_array_append_new(boundaries, boundary_json(logical, &logical->boundaries[b]));
        }
    }
    return json_pack("{s:i, s:s, s:o, s:s?, s:s?, s:s?, s:o, s:I, s:s, s:f, s:o, s:o}", "failures",
                     (int)count, "reasons", reasons_text(failure->reasons, ",", reasons), "agent",
                     touched ? json_integer(failure->agent) : json_null(), "agent_id",
                     touched ? worst->agent_id : NULL, "side",
                     touched ? search_side_names[failure->side] : NULL, "way",
                     touched ? search_way_names[failure->way] : NULL, "diverged_s_before",
                     failure->diverged_s >= 0 ? json_integer(failure->diverged_s) : json_null(),
                     "outcome", (json_int_t)worst->worst->id, "scenario", worst->scenario_id,
                     "margin", worst->sample.margin, "point",
                     point_json(logical, &worst->sample.point), "boundaries", boundaries);
}

json_t *search_json(const struct search_run *run)
{
    json_t *scenarios = json_array();
    for (uint32_t l = 0; l < run->count; l++) {
        const struct search_logical *logical = &run->logicals[l];
        json_t *clusters = json_array();
        double least = least_margin(logical);
        for (uint32_t c = 0; c < logical->cluster_count; c++) {
            json_array_append_new(clusters, cluster_json(logical, c));
        }
        json_array_append_new(
            scenarios,
            json_pack("{s:s, s:i, s:i, s:i, s:o, s:o}", "scenario", logical->scenario->id, "points",
                      (int)point_count(logical), "impossible", (int)logical->impossible_count,
                      "failures", (int)logical->failure_count, "least_margin",
                      isnan(least) ? json_null() : json_real(least), "clusters", clusters));
    }
    return json_pack("{s:s, s:s, s:i, s:o}", "store", cli_store_url(run->options->store_url),
                     "suite", run->suite_id, "drives", (int)run->driven, "scenarios", scenarios);
}
