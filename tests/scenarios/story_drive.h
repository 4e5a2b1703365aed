/*
 * Story drive: OpenSCENARIO files written to a folder of their own, imported, and driven in the
 * object world with ego at constant speed. For the tests of the importer; each program includes it
 * once.
 */
#ifndef SWERVE_TESTS_SCENARIOS_STORY_DRIVE_H
#define SWERVE_TESTS_SCENARIOS_STORY_DRIVE_H

#include "engine/worlds/world.h"
#include "scenarios/import/openscenario/openscenario.h"
#include "scenarios/scenarios.h"
#include "schemas/json_read.h"
#include "tests/harness.h"

#include <stdlib.h>
#include <unistd.h>

enum { STORY_TEXT_BYTES = 1 << 15 };

static char story_folder[] = "/tmp/openscenario-XXXXXX";

static inline void story_write(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", story_folder, name);
    FILE *stream = fopen(path, "wb");
    EXPECT(stream != NULL);
    EXPECT(fputs(text, stream) != EOF && fclose(stream) == 0);
}

static inline int story_remove_folder(void)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", story_folder);
    return system(command);
}

struct story_texts {
    char **texts;
    size_t count;
};

/* An import_take: the canonical text. */
static inline enum status story_take(void *taker, json_t *document, struct error *error)
{
    struct story_texts *out = taker;
    (void)error;
    out->texts = realloc(out->texts, (out->count + 1) * sizeof *out->texts);
    EXPECT(out->texts != NULL);
    out->texts[out->count++] = json_canonical_text(document);
    json_decref(document);
    return STATUS_OK;
}

/* *texts and *count only where it goes well. */
static inline enum status story_import(const char *path, const struct osc_options *options,
                                       char ***texts, size_t *count, char **notes,
                                       struct error *error)
{
    struct story_texts made = {0};
    enum status status = import_openscenario(path, options, story_take, &made, notes, error);
    if (status == STATUS_OK) {
        *texts = made.texts;
        *count = made.count;
        return status;
    }
    while (made.count > 0) {
        free(made.texts[--made.count]);
    }
    free(made.texts);
    return status;
}

static inline enum status story_try(const char *name, char ***texts, size_t *count, char **notes,
                                    struct error *error)
{
    char path[256];
    struct osc_options options = {.horizon_s = NAN, .goal_m = NAN};
    snprintf(path, sizeof path, "%s/%s", story_folder, name);
    return story_import(path, &options, texts, count, notes, error);
}

struct drive {
    struct scenario_document *document;
    struct prepared *prepared;
    struct world *world;
    const struct scene *scene;
};

static inline void drive_load(struct drive *drive, const char *text, uint32_t slots)
{
    const struct world_ops *ops = &world_object_ops;
    struct error error;
    EXPECT_OK(scenario_load_text("imported", text, strlen(text), &drive->document, &error), error);
    EXPECT_TEXT(drive->document->canonical, text);
    EXPECT_OK(prepared_create(&drive->document->scenario, &drive->prepared, &error), error);
    EXPECT_OK(ops->open(&(struct world_config){.slot_count = slots}, &drive->world, &error), error);
    EXPECT_OK(ops->slot_reset(drive->world, 0, drive->prepared, 1, &error), error);
    drive->scene = ops->slot_scene(drive->world, 0);
}

/* A file that becomes one scenario; its notes are the caller's, to be freed. */
static inline char *drive_begin(struct drive *drive, const char *name, uint32_t slots)
{
    char **texts;
    char *notes;
    size_t count;
    struct error error;
    EXPECT_OK(story_try(name, &texts, &count, &notes, &error), error);
    EXPECT_INT(count, 1);
    drive_load(drive, texts[0], slots);
    free(texts[0]);
    free(texts);
    return notes;
}

static inline void drive_end(struct drive *drive)
{
    world_object_ops.close(drive->world);
    prepared_unref(drive->prepared);
    scenario_destroy(drive->document);
}

static inline void drive_run(struct drive *drive, uint32_t ticks)
{
    struct action actions[1] = {0};
    const uint8_t active[1] = {1};
    for (uint32_t i = 0; i < ticks; i++) {
        world_object_ops.step(drive->world, actions, active);
    }
}

#endif
