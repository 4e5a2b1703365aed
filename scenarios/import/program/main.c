/*
 * swerve-import: foreign scenario files into ours, for `swerve import`, whose options, messages and
 * exit codes are these. What it reads is nobody's word: before the first file is opened the process
 * gives up all but reading and writing (import_confine.h).
 */
#include "scenarios/import/import.h"
#include "scenarios/import/opendrive/opendrive.h"
#include "scenarios/import/openscenario/openscenario.h"
#include "scenarios/import/program/import_confine.h"
#include "scenarios/import/program/import_write.h"
#include "scenarios/import/womd/womd.h"

#include "base/check.h"
#include "base/file.h"
#include "base/program/cli_options.h"
#include "base/program/streams.h"
#include "base/text.h"
#include "schemas/limits.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FILES_MAX = 4096, SEARCHES_MAX = 16 };

/* From the text of a file to documents, each malloc'ed, the array too. */
typedef enum status import_reader(const char *name, const char *text, size_t bytes, char ***texts,
                                  size_t *count, struct error *error);

static const struct importer {
    const char *name;
    import_reader *read; /* NULL: options say more */
    size_t bytes_max;    /* 0: read by path, since the file names others */
} importers[] = {
    {"commonroad", import_commonroad, LIMIT_XML_BYTES},
    {"opendrive", NULL, LIMIT_XML_BYTES},
    {"openscenario", NULL, 0},
    {"womd", import_womd, LIMIT_DOCUMENT_BYTES},
};

static enum status import_find(const char *name, const struct importer **out, struct error *error)
{
    for (size_t i = 0; i < COUNT_OF(importers); i++) {
        if (strcmp(name, importers[i].name) == 0) {
            *out = &importers[i];
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_USAGE,
                     "import: expected commonroad, controls, opendrive, openscenario, usdz or "
                     "womd, found \"%s\"",
                     name);
}

/* One scenario of an OpenDRIVE file. */
static enum status read_roads(const char *path, const char *xml, size_t bytes,
                              const struct opendrive_options *options, char ***texts, size_t *count,
                              struct error *error)
{
    char **one = calloc(1, sizeof *one);
    TRY(memory_check(one, error, "%s: out of memory", path));
    enum status status = import_opendrive(path, xml, bytes, options, one, error);
    if (status != STATUS_OK) {
        free(one);
        return status;
    }
    *texts = one;
    *count = 1;
    return STATUS_OK;
}

/* Options of the command line on ego, the part of the network and the length. */
struct road_options {
    const char *from;
    const char *to;
    const char *speed;
    const char *reach;
    const char *horizon;
    const char *goal;
    struct cli_texts search;
    int64_t combinations;
    bool priority_to_the_right;
    char from_text[LIMIT_TEXT_BYTES];
    char to_text[LIMIT_TEXT_BYTES];
    struct opendrive_options parsed;
    struct osc_options story;
};

static enum status import_story(const char *path, const struct osc_options *options,
                                struct import_writer *writer, struct error *error)
{
    char *notes = NULL;
    char *rest = NULL;
    TRY(import_openscenario(path, options, import_writer_take, writer, &notes, error));
    for (char *line = strtok_r(notes, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        text_print(stderr, "note: %s\n", line);
    }
    free(notes);
    return STATUS_OK;
}

static enum status hand_over(const char *path, const char *text, struct import_writer *writer,
                             struct error *error)
{
    json_t *document = json_loads(text, 0, NULL);
    TRY(memory_check(document, error, "%s: out of memory", path));
    return import_writer_take(writer, document, error);
}

static enum status import_file(const struct importer *importer, const char *path,
                               const struct road_options *options, struct import_writer *writer,
                               struct error *error)
{
    char *text = NULL;
    char **texts = NULL;
    size_t bytes = 0;
    size_t count = 0;
    if (importer->bytes_max == 0) {
        return import_story(path, &options->story, writer, error);
    }
    TRY(file_read(path, importer->bytes_max, &text, &bytes, error));
    enum status status =
        importer->read != NULL
            ? importer->read(path, text, bytes, &texts, &count, error)
            : read_roads(path, text, bytes, &options->parsed, &texts, &count, error);
    free(text);
    for (size_t i = 0; i < count; i++) {
        THEN(status, hand_over(path, texts[i], writer, error));
        free(texts[i]);
    }
    free(texts);
    return status;
}

/* "ROAD,LANE,S", the last two numbers: a road's id may hold commas. Cuts the text. */
static enum status parse_address(const char *option, const char *given, char *text,
                                 struct opendrive_address *out, struct error *error)
{
    if (given == NULL) {
        return STATUS_OK;
    }
    snprintf(text, LIMIT_TEXT_BYTES, "%s", given);
    char *last = strrchr(text, ',');
    char *end = NULL;
    char *lane_end = NULL;
    if (last != NULL) {
        *last = '\0';
    }
    char *middle = strrchr(text, ',');
    if (last != NULL && middle != NULL && middle > text) {
        *middle = '\0';
        out->road = text;
        out->lane_id = (int32_t)strtol(middle + 1, &lane_end, 10);
        out->s_m = strtod(last + 1, &end);
    }
    if (end == NULL || end == last + 1 || *end != '\0' || lane_end == middle + 1 ||
        *lane_end != '\0' || !isfinite(out->s_m)) {
        return error_set(error, STATUS_USAGE,
                         "import: %s: expected ROAD,LANE,S such as 3,-1,20.5, found \"%s\"", option,
                         given);
    }
    return STATUS_OK;
}

static enum status parse_size(const char *option, const char *given, double min, double max,
                              double *out, struct error *error)
{
    char *end = NULL;
    double value = given != NULL ? strtod(given, &end) : 0;
    if (given == NULL) {
        return STATUS_OK;
    }
    if (end == given || *end != '\0' || !(value >= min && value <= max)) {
        return error_set(error, STATUS_USAGE,
                         "import: %s: expected a number of %g to %g, found "
                         "\"%s\"",
                         option, min, max, given);
    }
    *out = value;
    return STATUS_OK;
}

static enum status parse_road_options(const struct importer *importer, struct road_options *options,
                                      struct error *error)
{
    bool story = importer->read == NULL && importer->bytes_max == 0;
    bool roads = importer->read == NULL && !story;
    options->parsed = OPENDRIVE_OPTIONS;
    options->parsed.priority_to_the_right = options->priority_to_the_right;
    options->story.horizon_s = NAN;
    options->story.goal_m = NAN;
    if (!roads && (options->from != NULL || options->to != NULL || options->speed != NULL ||
                   options->reach != NULL || options->priority_to_the_right)) {
        return error_set(error, STATUS_USAGE,
                         "import: --from, --to, --speed, --reach and --priority-right are for "
                         "opendrive; other formats say where ego drives");
    }
    if (!roads && !story && options->horizon != NULL) {
        return error_set(error, STATUS_USAGE,
                         "import: --horizon is for opendrive and openscenario; other formats say "
                         "how long they last");
    }
    if (!story && (options->story.ego != NULL || options->goal != NULL ||
                   options->search.count != 0 || options->combinations != 0)) {
        return error_set(error, STATUS_USAGE,
                         "import: --ego, --goal, --search and --combinations are for openscenario");
    }
    if (options->combinations > LIMIT_SUITE_SCENARIOS) {
        return error_set(error, STATUS_USAGE,
                         "import: --combinations: expected at most %d, found %lld",
                         LIMIT_SUITE_SCENARIOS, (long long)options->combinations);
    }
    options->story.combinations = (uint32_t)options->combinations;
    options->story.search = options->search.values;
    options->story.search_count = options->search.count;
    if (!story && !roads && options->story.fit_speed) {
        return error_set(
            error, STATUS_USAGE,
            "import: --fit-speed is for openscenario and opendrive; other formats hold "
            "what was recorded");
    }
    options->parsed.fit_speed = options->story.fit_speed;
    TRY(parse_address("--from", options->from, options->from_text, &options->parsed.from, error));
    TRY(parse_address("--to", options->to, options->to_text, &options->parsed.to, error));
    TRY(parse_size("--speed", options->speed, 0, 100, &options->parsed.speed_mps, error));
    TRY(parse_size("--reach", options->reach, 0, 1e6, &options->parsed.reach_m, error));
    TRY(parse_size("--goal", options->goal, 0, 1e4, &options->story.goal_m, error));
    TRY(parse_size("--horizon", options->horizon, 0.1, 600, &options->parsed.horizon_s, error));
    if (!isnan(options->parsed.horizon_s)) {
        options->story.horizon_s = fmax(ceil(options->parsed.horizon_s * 10 - 1e-6) / 10, 0.1);
    }
    return STATUS_OK;
}

/* Reads the files and writes what they become. */
static enum status import_all(const struct importer *importer, const struct road_options *options,
                              const char *const *files, uint32_t count, const char *out,
                              struct error *error)
{
    json_object_seed(0); /* reads a device, which is out of reach from here on */
    import_confine(&(const struct import_files){.inputs = files,
                                                .input_count = count,
                                                .inputs_name_others = importer->bytes_max == 0,
                                                .output = out});
    struct import_writer *writer = NULL;
    size_t made = 0;
    enum status status = import_writer_create(out, &writer, error);
    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        status = import_file(importer, files[i], options, writer, error);
    }
    THEN(status, import_writer_end(writer, &made, error));
    if (status == STATUS_OK) {
        text_print(stdout, "%s: %zu scenario%s%s\n", out, made, made == 1 ? "" : "s",
                   made == 1 ? "" : ", each in a file of its own beside it (NAME-1.json ..)");
    }
    import_writer_destroy(writer);
    return status;
}

/* cli_fail in one line, whatever line feeds a foreign file has in its names. */
static int fail(const struct error *error)
{
    text_print(stderr, "swerve: %s\n", error->text);
    return status_exit_code(error->status);
}

static int import_command(int argc, char **argv)
{
    const char *out = NULL;
    struct road_options options = {.search = {.max = SEARCHES_MAX}};
    const struct cli_option rows[] = {
        {"--output", "OUT.json", "where to write, also -o", .text = &out},
        {"--from", "ROAD,LANE,S", "opendrive: where ego starts (the longest lane)",
         .text = &options.from},
        {"--to", "ROAD,LANE,S", "opendrive: ego's goal (300 m straight on)", .text = &options.to},
        {"--speed", "MPS", "opendrive: ego's speed at the start (the posted limit)",
         .text = &options.speed},
        {"--reach", "M", "opendrive: how far the map goes beside ego's way (200)",
         .text = &options.reach},
        {"--priority-right", NULL,
         "opendrive: priority to the right where no sign says who goes first",
         .flag = &options.priority_to_the_right},
        {"--horizon", "S", "how long it lasts (opendrive: enough for the way)",
         .text = &options.horizon},
        {"--ego", "NAME", "openscenario: the entity that the planner drives (Ego)",
         .text = &options.story.ego},
        {"--fit-speed", NULL, "openscenario, opendrive: ego starts no faster than its bend holds",
         .flag = &options.story.fit_speed},
        {"--goal", "M", "openscenario: how far ego is to get (nowhere)", .text = &options.goal},
        {"--combinations", "N", "openscenario: of a distribution, N of them (all)",
         .number = &options.combinations},
        {"--search", "FOLDER", "openscenario: where else files are that others name (again)",
         .texts = &options.search},
    };
    const struct cli_command command = {
        "import",
        "commonroad|opendrive|openscenario|womd FILE... -o OUT.json\n"
        "       swerve import controls FILE.csv|FOLDER... -o OUT.json\n"
        "       swerve import usdz SCENE.usdz -o OUT.json [--rig RIG.json]",
        "Turns CommonRoad XML (2018b, 2020a), roads of OpenDRIVE, OpenSCENARIO XML (1.0 to 1.3), "
        "or "
        "scenes of the\n"
        "Waymo Open Motion Dataset in the JSON of GPUDrive and PufferDrive, into scenarios.",
        CLI_ROWS(rows, 2, FILES_MAX),
    };
    static const char *arguments[FILES_MAX];
    uint32_t count = 0;
    struct error error;
    if (argc > 1 && strcmp(argv[1], "controls") == 0) {
        error_set(&error, STATUS_USAGE,
                  "swerve-import has no controls: run swerve import controls");
        return cli_fail(&error);
    }
    CLI_PARSE(&command, argc, argv, arguments, &count);
    const struct importer *importer = NULL;
    if (import_find(arguments[0], &importer, &error) != STATUS_OK ||
        parse_road_options(importer, &options, &error) != STATUS_OK) {
        return cli_fail(&error);
    }
    if (out == NULL) {
        error_set(&error, STATUS_USAGE, "import: expected -o OUT.json");
        return cli_fail(&error);
    }
    enum status status = import_all(importer, &options, arguments + 1, count - 1, out, &error);
    return status == STATUS_OK ? 0 : fail(&error);
}

int main(int argc, char **argv)
{
    streams_begin();
    return streams_end(import_command(argc, argv));
}
