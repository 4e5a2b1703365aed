/*
 * Sessions of tests: the smallest student and one before it, both of random weights of which
 * nothing is said, a road in two lengths, and deeds that a key draws.
 */
#ifndef SWERVE_TESTS_WORKER_SESSIONS_H
#define SWERVE_TESTS_WORKER_SESSIONS_H

#include "base/rng.h"
#include "tests/engine/small_model.h"
#include "tests/harness.h"
#include "worker/interactive/session.h"
#include "worker/models/models.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HORIZON = 14, STEPS = 2 };

static const char road[] =
    "{\"id\":\"road\",\"title\":\"a car ahead\",\"map\":{\"lanes\":[{\"id\":\"east\","
    "\"centre_line\":[[0,0],[500,0]],\"width_m\":3.5,\"speed_limit_mps\":15}]},"
    "\"horizon_s\":1.4,\"ego\":{\"pose\":{\"lane\":\"east\",\"s_m\":20},\"speed_mps\":8,"
    "\"route\":[\"east\"]},\"agents\":[{\"id\":\"ahead\",\"kind\":\"car\",\"pose\":{\"lane\":"
    "\"east\",\"s_m\":60},\"speed_mps\":8,\"behaviour\":\"idm\"}]}";

static char road_path[] = "/tmp/swerve_interactive_XXXXXX";
static char long_road_path[] = "/tmp/swerve_interactive_XXXXXX";  /* LONG_HORIZON ticks of it */
static char short_road_path[] = "/tmp/swerve_interactive_XXXXXX"; /* SHORT_HORIZON */
enum { LONG_HORIZON = 50, SHORT_HORIZON = 5 };
static struct models *models;
/* Frames of which nothing is said: their weights are random. */
static struct models_model model;
static struct models_model previous; /* of one layer and one step, with a shorter memory */

/* A new file of that template. */
static inline void write_file(char *path, const void *data, size_t bytes)
{
    int fd = mkstemp(path);
    EXPECT(fd >= 0 && write(fd, data, bytes) == (ssize_t)bytes);
    close(fd);
}

/* `directory`: of tests' models. */
static inline void open_model(const char *directory)
{
    const struct models_model *found = NULL;
    struct error error;
    EXPECT_OK(models_open(directory, NULL, &models, &error), error);
    EXPECT_OK(models_named(models, "tiny", NN_BF16, &found, &error), error);
    model = *found;
    struct model *made = small_model();
    previous = (struct models_model){
        .model = made, .config = model_config(made), .hash = model_hash(made), .name = "previous"};
    for (int i = 0; i < CONDITIONING_COUNT * MEASURE_COUNT; i++) {
        int measure = i % MEASURE_COUNT;
        model.bounds.bound[i / MEASURE_COUNT][measure] =
            health_measure_kinds[measure].low_is_sick ? -HUGE_VAL : HUGE_VAL;
    }
    previous.bounds = model.bounds;
    EXPECT_INT(model.config->steps, STEPS);
    static const char horizon[] = "\"horizon_s\":1.4";
    char *text = strdup(road);
    write_file(road_path, text, strlen(text));
    memcpy(strstr(text, horizon), "\"horizon_s\":5.0", sizeof horizon - 1);
    write_file(long_road_path, text, strlen(text));
    memcpy(strstr(text, "\"horizon_s\":5.0"), "\"horizon_s\":0.5", sizeof horizon - 1);
    write_file(short_road_path, text, strlen(text));
    free(text);
}

/* Deeds at a tick of a drive of that key. */
static inline struct action action_of(uint64_t key, uint32_t tick)
{
    return (struct action){4.0 * rng_uniform(key, RNG_STREAM_TEST, tick, 0) - 2.0,
                           0.02 * rng_uniform(key, RNG_STREAM_TEST, tick, 1) - 0.01};
}

enum { WAYS = STEPS + 1 + 1 }; /* by two steps, one, none, and the previous model's one */

static inline uint32_t skipped_at(uint64_t key, uint32_t tick)
{
    return (uint32_t)(WAYS * rng_uniform(key, RNG_STREAM_TEST, tick, 2));
}

/* Member of the session's outcome; the caller's to free. */
static inline char *outcome_text(const struct session *session, const char *member)
{
    static char json[SWERVE_ENV_OUTCOME_BYTES];
    struct error error;
    EXPECT_OK(session_outcome(session, json, &error), error);
    json_t *object = json_loads(json, 0, NULL);
    const char *text = json_string_value(json_object_get(object, member));
    EXPECT(text != NULL);
    char *copy = strdup(text);
    json_decref(object);
    return copy;
}

static inline void close_models(void)
{
    models_close(models);
    model_close((struct model *)previous.model);
    unlink(road_path);
    unlink(long_road_path);
    unlink(short_road_path);
}

#endif
