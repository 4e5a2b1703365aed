/*
 * The dossier's order, and its chapters that come from the suite.
 */
#include "report/dossier/dossier.h"

#include "base/embedded.h"
#include "report/page/page.h"

enum { NAMED_MAX = 40 };

extern const struct embedded_text credibility_texts[];

/* ---- coverage ---- */

static uint32_t single_points(const struct coverage *coverage)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < coverage->logical_count; i++) {
        count += coverage->logical[i].points == 1;
    }
    return count;
}

static void write_coverage(const struct dossier_request *request)
{
    const struct coverage *coverage = request->coverage;
    FILE *out = request->out;
    uint32_t covered;
    uint32_t all;
    coverage_values(coverage, &covered, &all);
    fprintf(out,
            "\n## Coverage of the operational design domain\n\nAttributes after ISO 34503 and BSI "
            "PAS 1883, derived from the scenarios; %u of %u values occur",
            covered, all);
    coverage_pairs(coverage, &covered, &all);
    fprintf(out,
            ", and %u of %u pairs of values of two attributes (`swerve coverage SUITE --json` "
            "lists the others). Presence is counted, not exposure.\n\n"
            "| attribute | scenarios by value | not covered |\n|---|---|---|\n",
            covered, all);
    for (int a = 0; a < ODD_ATTRIBUTE_COUNT; a++) {
        const struct odd_axis *axis = &odd_axes[a];
        fprintf(out, "| %s |", axis->name);
        for (uint32_t i = 0; i < axis->count; i++) {
            if (coverage->count[a][i] > 0) {
                fprintf(out, " %s %u", axis->values[i], coverage->count[a][i]);
            }
        }
        fputs(" |", out);
        for (uint32_t i = 0; i < axis->count; i++) {
            fprintf(out, "%s%s", coverage->count[a][i] == 0 ? " " : "",
                    coverage->count[a][i] == 0 ? axis->values[i] : "");
        }
        fputs(" |\n", out);
    }
    fprintf(out,
            "\n%u of %u logical scenarios are tried at one point of their parameters. No scenario "
            "can express:\n\n",
            single_points(coverage), coverage->logical_count);
    for (size_t i = 0; odd_not_expressible[i] != NULL; i++) {
        fprintf(out, "* %s\n", odd_not_expressible[i]);
    }
}

/* ---- protocols ---- */

struct problems {
    FILE *out;
    uint32_t count;
};

static void take_problem(void *context, const struct protocol_finding *finding)
{
    struct problems *problems = context;
    if (finding->kind >= PROTOCOL_STALE) {
        return;
    }
    if (problems->count++ < NAMED_MAX) {
        markdown_print(
            problems->out, "* %s, %s: %s %s\n", finding->file, finding->scenario,
            protocol_finding_names[finding->kind],
            finding->subject != NULL ? protocol_quantity_names[finding->subject->quantity] : "");
    }
}

static void write_deviation(const struct protocol_file *file,
                            const struct protocol_deviation *deviation, FILE *out)
{
    char values[PROTOCOL_EXPECTED_BYTES];
    markdown_print(out, "* %s: ", file->file);
    if (deviation->measured) {
        protocol_numbers_text(&deviation->subject, &deviation->numbers, values, sizeof values);
        fprintf(out, "%s%s%s %s: ", deviation->subject.agent,
                deviation->subject.agent[0] != '\0' ? " " : "",
                protocol_quantity_names[deviation->subject.quantity], values);
    }
    markdown_print(out, "%s\n", deviation->reason);
}

/* Returns how many values of the checked files are not verified. */
static uint32_t write_protocols(const struct dossier_request *request)
{
    struct protocol_register *protocols = request->protocols;
    struct protocol_counts counts = {0};
    struct problems problems = {.out = request->out};
    FILE *out = request->out;
    uint32_t files = 0;
    uint32_t unverified = 0;
    fputs("\n## Test protocols\n\n", out);
    protocol_check(protocols, request->suite, take_problem, &problems, &counts);
    protocol_check_finish(protocols, take_problem, &problems, &counts);
    for (uint32_t i = 0; i < protocols->file_count; i++) {
        files += protocols->files[i].checked;
        for (uint32_t k = 0; protocols->files[i].checked && k < protocols->files[i].value_count;
             k++) {
            unverified += !protocols->files[i].values[k].verified;
        }
    }
    fprintf(
        out,
        "%s%u files of the suite carry a protocol's name: %u scenarios, %u values compared with "
        "the register, %u problems; %u of their values are not verified (`swerve validate "
        "--protocols REGISTER SUITE --json`). What deviates, as declared:\n\n",
        problems.count > 0 ? "\n" : "", files, counts.scenarios, counts.values, counts.problems,
        unverified);
    for (uint32_t i = 0; i < protocols->file_count; i++) {
        const struct protocol_file *file = &protocols->files[i];
        for (uint32_t k = 0; file->checked && k < file->deviation_count; k++) {
            if (!file->deviations[k].measured || file->deviations[k].found) {
                write_deviation(file, &file->deviations[k], out);
            }
        }
    }
    return unverified;
}

/* ---- risk ---- */

static void write_risk(const struct dossier_request *request)
{
    FILE *out = request->out;
    fputs("\n## Risk, weighted by exposure\n\nEvents that follow from how often traffic brings the "
          "situations about, with intervals over logical scenarios and exposures; severity from "
          "published curves (docs/risk.md). All logical scenarios: `swerve risk --store URL "
          "--exposure "
          "FILE --json`.\n",
          out);
    for (uint32_t s = 0; s < request->study_count; s++) {
        const struct risk_study *study = &request->studies[s];
        markdown_print(out, "\n**%s** in %s; exposures: %s.\n", study->planner,
                       tier_names[study->tier], study->file->title);
        risk_study_markdown(study, out);
    }
}

/* ---- what is missing ---- */

static void write_not_driven(const struct dossier_request *request,
                             const struct dossier_match *match)
{
    const struct suite *suite = request->suite;
    FILE *out = request->out;
    uint32_t missing = suite->entry_count - match->driven;
    uint32_t named = 0;
    if (missing == 0) {
        return;
    }
    fprintf(
        out,
        "* %u of %u scenarios of the suite have no result (%u of them were flagged or invalid):",
        missing, suite->entry_count, match->flagged);
    for (uint32_t i = 0; i < suite->entry_count && named < NAMED_MAX; i++) {
        if (match->state[i] != 2) {
            markdown_print(out, "%s%s", named++ > 0 ? ", " : " ",
                           suite->entries[i].document->scenario.id);
        }
    }
    fputs(named < missing ? " and others.\n" : ".\n", out);
}

static void write_missing_results(const struct dossier_request *request,
                                  const struct dossier_match *match)
{
    const struct summary *summary = request->summary;
    FILE *out = request->out;
    write_not_driven(request, match);
    if (match->foreign > 0) {
        fprintf(out,
                "* %u main lines in the store are of scenarios that this suite file does not have; "
                "they are in the results above.\n",
                match->foreign);
    }
    if (summary_unfinished(summary) > 0) {
        fprintf(out, "* %lld jobs wait or run.\n", (long long)summary_unfinished(summary));
    }
    if (match->other_revision) {
        fputs("* Results were made by other simulation sources than this binary's: only those can "
              "replay them.\n",
              out);
    }
    if (match->nominal) {
        fputs("* Only the nominal seed was driven: nothing was varied.\n", out);
    } else if (summary->seeded_cases == 0) {
        fputs("* Each scenario was driven with one seed: how much a seed changes was not seen.\n",
              out);
    }
    if (match->learned && summary->agreement_count == 0) {
        fputs("* Learned worlds answered and none of it was audited by the teacher.\n", out);
    }
    if (!match->learned) {
        fputs("* No learned world answered: perception was tried with drawn sensors alone.\n", out);
    }
}

static void write_missing_items(const struct dossier_request *request)
{
    const struct trace_matrix *matrix = request->traceability;
    FILE *out = request->out;
    uint32_t bare = 0;
    if (matrix == NULL) {
        fputs("* Traceability: no register of hazards and requirements was named (--register).\n",
              out);
        return;
    }
    for (int k = 0; k < TRACE_KIND_COUNT; k++) {
        for (uint32_t i = 0; i < matrix->items->count[k]; i++) {
            if (matrix->totals[k][i].concrete == 0) {
                fputs(bare++ == 0 ? "* Traceability: no scenario tries " : ", ", out);
                markdown_print(out, "%s", matrix->items->items[k][i].id);
            }
        }
    }
    fputs(bare > 0 ? ".\n" : "", out);
}

static void write_missing(const struct dossier_request *request, const struct dossier_match *match,
                          uint32_t unverified)
{
    FILE *out = request->out;
    uint32_t covered;
    uint32_t all;
    fputs("\n## What is missing\n\n", out);
    if (request->summary == NULL) {
        fputs("* Results: no store was named.\n", out);
    } else {
        write_missing_results(request, match);
    }
    coverage_values(request->coverage, &covered, &all);
    fprintf(out, "* Coverage: %u values of attributes that scenarios can have, and have not",
            all - covered);
    coverage_pairs(request->coverage, &covered, &all);
    fprintf(
        out,
        "; %u pairs; ranges of parameters in %u of %u logical scenarios, which are tried at one "
        "point.\n",
        all - covered, single_points(request->coverage), request->coverage->logical_count);
    if (request->protocols == NULL) {
        fputs("* Protocols: no register was named (--protocols).\n", out);
    } else if (unverified > 0) {
        fprintf(out, "* Protocols: %u values rest on no source that was at hand.\n", unverified);
    }
    write_missing_items(request);
    if (request->studies == NULL) {
        fputs("* Risk: no exposures were named (--exposure), so nothing here says how often "
              "anything happens.\n",
              out);
    } else if (risk_unverified(&request->studies[0]) > 0) {
        fprintf(out, "* Risk: %u of %u exposures were not read where they were published.\n",
                risk_unverified(&request->studies[0]), request->studies[0].file->class_count);
    }
    fputs("* What the argument below says under Limits: above all, drives of a car whose "
          "inputs were logged, sensors against measurements, and the risk of what no scenario "
          "shows.\n",
          out);
}

enum status dossier_write(const struct dossier_request *request, struct error *error)
{
    struct dossier_match match;
    uint32_t unverified = 0;
    char conclusion[SUMMARY_CONCLUSION_BYTES] = "No result: no store was named.";
    TRY(dossier_match_find(request, &match, error));
    if (request->summary != NULL) {
        summary_conclusion_text(request->summary, conclusion);
    }
    markdown_print(
        request->out,
        "# Credibility dossier: %s\n\n%s\n\nFigures come from the suite and the store; the "
        "argument that "
        "they serve stands behind them. A pass says that the planner met the criteria of that "
        "scenario in that world, and no more.\n",
        request->suite->title[0] != '\0' ? request->suite->title : request->suite->id, conclusion);
    dossier_write_identity(request, &match);
    dossier_write_results(request);
    dossier_write_envelope(request);
    if (request->studies != NULL) {
        write_risk(request);
    }
    write_coverage(request);
    if (request->traceability != NULL) {
        trace_matrix_chapter(request->traceability, request->out);
    }
    if (request->protocols != NULL) {
        unverified = write_protocols(request);
    }
    write_missing(request, &match, unverified);
    fprintf(request->out, "\n---\n\n%s", credibility_texts[0].text);
    dossier_match_finish(&match);
    return STATUS_OK;
}
