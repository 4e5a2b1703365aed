/*
 * Goal: a token is an acceleration on top of IDM's, its draw depends on (seed, tick, agent) alone,
 * drivers still brake for ego, nobody runs away or brakes beyond the road's grip, and a file that
 * is no such network is refused by name. Method:
 * networks of zeroes whose last bias says which token is certain, or which are equally likely,
 * drive a car on a straight road beside foresight without them.
 */
#include "engine/sensors/foresee.h"
#include "engine/worlds/tokens.h"
#include "tests/engine/traffic_run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CAR = 0, SECOND = 1, AGENTS = 2, HIDDEN = 4, TOKENS = 3 };
#define CERTAIN 100.0f
#define PATH "tokens.safetensors"

static float centres[TOKENS] = {-2.0f, 0.5f, 1.0f};

struct drive {
    const struct foresight *foresight;
    struct token_driver drivers[LIMIT_AGENTS];
    struct scene scene;
    struct agent_motion motion[LIMIT_AGENTS];
};

/* A file of zeroes but for the last biases; rows of the first weight as given. */
static void write_network(const float *bias, uint32_t rows)
{
    char header[1024];
    size_t sizes[7] = {(size_t)rows * HIDDEN,
                       HIDDEN,
                       (size_t)HIDDEN * HIDDEN,
                       HIDDEN,
                       (size_t)HIDDEN * TOKENS,
                       TOKENS,
                       TOKENS};
    size_t at[8] = {0};
    for (int i = 0; i < 7; i++) {
        at[i + 1] = at[i] + 4 * sizes[i];
    }
    int length = snprintf(
        header, sizeof header,
        "{\"weight_0\":{\"dtype\":\"F32\",\"shape\":[%u,%d],\"data_offsets\":[%zu,%zu]},"
        "\"bias_0\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[%zu,%zu]},"
        "\"weight_1\":{\"dtype\":\"F32\",\"shape\":[%d,%d],\"data_offsets\":[%zu,%zu]},"
        "\"bias_1\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[%zu,%zu]},"
        "\"weight_2\":{\"dtype\":\"F32\",\"shape\":[%d,%d],\"data_offsets\":[%zu,%zu]},"
        "\"bias_2\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[%zu,%zu]},"
        "\"centres\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[%zu,%zu]}}",
        rows, HIDDEN, at[0], at[1], HIDDEN, at[1], at[2], HIDDEN, HIDDEN, at[2], at[3], HIDDEN,
        at[3], at[4], HIDDEN, TOKENS, at[4], at[5], TOKENS, at[5], at[6], TOKENS, at[6], at[7]);
    while (length % 8 != 0) {
        header[length++] = ' ';
    }
    uint64_t bytes = (uint64_t)length;
    float *values = calloc(at[7] / 4, sizeof *values);
    memcpy(values + at[5] / 4, bias, TOKENS * sizeof *bias);
    memcpy(values + at[6] / 4, centres, sizeof centres);
    FILE *file = fopen(PATH, "wb");
    fwrite(&bytes, sizeof bytes, 1, file);
    fwrite(header, 1, bytes, file);
    fwrite(values, 1, at[7], file);
    fclose(file);
    free(values);
}

static struct tokens *network(float first, float second, float third)
{
    const float bias[TOKENS] = {first, second, third};
    struct tokens *tokens = NULL;
    struct error error;
    write_network(bias, TOKENS_INPUTS);
    EXPECT_OK(tokens_open(PATH, &tokens, &error), error);
    return tokens;
}

/* Two cars far apart on a road of one lane; ego stands behind them or `ego_x_m` says where. */
static void begin_road(struct run *run, double ego_x_m)
{
    begin(run);
    struct scenario *s = &run->scenario;
    maps_motorway(&run->arena, &s->map, 1, 2000);
    maps_scenario(&run->arena, s, (struct pose){ego_x_m, 0, 0}, 0, 0, AGENTS);
    maps_agent(s, CAR, AGENT_CAR, BEHAVIOUR_SCRIPT, (struct pose){100, 0, 0}, 15);
    maps_agent(s, SECOND, AGENT_CAR, BEHAVIOUR_SCRIPT, (struct pose){1000, 0, 0}, 15);
    start(run, &world_object_ops, 0);
}

static struct drive *drive_on(const struct run *run, const struct tokens *tokens, uint64_t seed,
                              uint32_t ticks)
{
    struct drive *drive = calloc(1, sizeof *drive);
    struct error error;
    drive->scene = *run->scene;
    EXPECT_OK(foresight_of(run->prepared, run->scene, &drive->foresight, &error), error);
    foresee_reset(drive->foresight, seed, &drive->scene, drive->motion);
    const struct token_traffic traffic = {tokens, drive->foresight, drive->drivers};
    for (; drive->scene.tick < ticks; drive->scene.tick++) {
        if (tokens != NULL) {
            token_traffic_step(&traffic, seed, &drive->scene, drive->motion);
        } else {
            foresee_step(drive->foresight, seed, &drive->scene, drive->motion);
        }
    }
    return drive;
}

static void a_token_comes_on_top_of_idm(void)
{
    struct run run;
    begin_road(&run, 20);
    struct tokens *zero = network(0, 0, CERTAIN);
    struct drive *one = drive_on(&run, zero, 0, 1);
    struct drive *none = drive_on(&run, NULL, 0, 0);
    struct token_look look;
    token_traffic_look(&(struct token_traffic){NULL, none->foresight, none->drivers}, &none->scene,
                       none->motion, &look);
    double idm_mps2 = look.idm_mps2[CAR];
    free(none);
    EXPECT_NEAR(one->scene.agents[CAR].accel_mps2, idm_mps2 + 1.0, 1e-9);
    EXPECT_NEAR(one->drivers[CAR].first_mps, 15, 1e-9);
    free(one);
    tokens_close(zero);
    /* The nominal future takes the mean, here of tokens that are equally likely. */
    struct tokens *equal = network(0, 0, 0);
    one = drive_on(&run, equal, 0, 1);
    EXPECT_NEAR(one->scene.agents[CAR].accel_mps2, idm_mps2 - 0.5 / 3, 1e-9);
    free(one);
    tokens_close(equal);
    end(&run);
}

/* Tokens are decided from the tick on at which they begin, whichever it is. */
static void tokens_begin_in_the_middle(void)
{
    struct run run;
    struct error error;
    begin_road(&run, 20);
    struct tokens *third = network(0, 0, CERTAIN);
    struct drive *one = calloc(1, sizeof *one);
    one->scene = *run.scene;
    one->scene.tick = 42;
    EXPECT_OK(foresight_create(run.prepared, &one->scene, &one->scene, TRAFFIC_MODEL_TOKENS, 1,
                               &one->foresight, &error),
              error);
    EXPECT_INT(foresight_begins(one->foresight), 42);
    foresee_reset(one->foresight, 0, &one->scene, one->motion);
    const struct token_traffic traffic = {third, one->foresight, one->drivers};
    struct token_look look;
    float inputs[TOKENS_INPUTS];
    token_traffic_look(&traffic, &one->scene, one->motion, &look);
    token_traffic_inputs(&traffic, &one->scene, one->motion, look.idm_mps2[CAR], CAR, inputs);
    EXPECT_NEAR(inputs[11], 0, 0); /* time since it began */
    token_traffic_step(&traffic, 1, &one->scene, one->motion);
    EXPECT_NEAR(one->scene.agents[CAR].accel_mps2, look.idm_mps2[CAR] + 1.0, 1e-9);
    foresight_unref(one->foresight);
    free(one);
    tokens_close(third);
    end(&run);
}

static void a_network_is_shipped(void)
{
    const struct tokens *first = NULL;
    const struct tokens *second = NULL;
    struct error error;
    EXPECT_OK(tokens_shipped(&first, &error), error);
    EXPECT_OK(tokens_shipped(&second, &error), error);
    EXPECT(first != NULL && first == second);
}

static void draws_depend_on_seed_tick_and_agent(void)
{
    enum { SEEDS = 600 };
    struct run run;
    uint32_t drawn[TOKENS] = {0};
    uint32_t alike = 0;
    begin_road(&run, 20);
    struct tokens *equal = network(0, 0, 0);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct drive *one = drive_on(&run, equal, seed, 1);
        for (int k = 0; k < TOKENS; k++) {
            drawn[k] += one->drivers[CAR].habit_mps2 == (double)centres[k];
        }
        alike += one->drivers[CAR].habit_mps2 == one->drivers[SECOND].habit_mps2;
        free(one);
    }
    EXPECT(drawn[0] + drawn[1] + drawn[2] == SEEDS);
    for (int k = 0; k < TOKENS; k++) {
        EXPECT(drawn[k] > 150 && drawn[k] < 250); /* 200, 4.3 standard deviations */
    }
    EXPECT(alike > 150 && alike < 250);
    struct drive *one = drive_on(&run, equal, 7, 40);
    struct drive *two = drive_on(&run, equal, 7, 40);
    struct drive *other = drive_on(&run, equal, 8, 40);
    EXPECT(memcmp(&one->scene, &two->scene, sizeof one->scene) == 0);
    EXPECT(memcmp(&one->scene, &other->scene, sizeof one->scene) != 0);
    free(one);
    free(two);
    free(other);
    tokens_close(equal);
    end(&run);
}

static void who_follows_ego_brakes(void)
{
    struct run run;
    begin_road(&run, 150); /* ego stands 50 m ahead of the car */
    struct tokens *hasty = network(0, CERTAIN, 0);
    struct drive *one = drive_on(&run, hasty, 0, 100);
    EXPECT(one->scene.agents[CAR].pose.x_m < 150 - 4.8);
    EXPECT(one->scene.agents[CAR].speed_mps < 1);
    EXPECT(one->scene.agents[SECOND].speed_mps > 15);
    free(one);
    tokens_close(hasty);
    end(&run);
}

/* A token that is greater than IDM's braking for who is too fast, each half second. */
static void nobody_runs_away(void)
{
    struct run run;
    const struct tokens *shipped = NULL;
    struct error error;
    begin_road(&run, 20);
    centres[2] = 5.0f;
    struct tokens *fast = network(0, 0, CERTAIN);
    centres[2] = 1.0f;
    struct drive *one = drive_on(&run, fast, 0, 300);
    EXPECT(one->scene.agents[CAR].speed_mps > 1.2 * 15);
    EXPECT(one->scene.agents[CAR].speed_mps < 1.4 * 15);
    free(one);
    tokens_close(fast);
    EXPECT_OK(tokens_shipped(&shipped, &error), error);
    for (uint64_t seed = 0; seed < 32; seed++) {
        one = drive_on(&run, shipped, seed, 500);
        EXPECT(one->scene.agents[CAR].speed_mps < 1.4 * 15);
        free(one);
    }
    end(&run);
}

static void nobody_brakes_beyond_the_grip(void)
{
    struct run run;
    begin_road(&run, 20);
    struct tokens *slow = network(CERTAIN, 0, 0);
    struct drive *one = drive_on(&run, slow, 0, 0);
    const struct token_traffic traffic = {slow, one->foresight, one->drivers};
    one->scene.conditions.friction = 0.1;
    token_traffic_step(&traffic, 0, &one->scene, one->motion);
    EXPECT_NEAR(one->scene.agents[CAR].accel_mps2, -0.1 * GRAVITY_MPS2, 1e-9);
    free(one);
    tokens_close(slow);
    end(&run);
}

static void another_file_is_refused(void)
{
    const float bias[TOKENS] = {0};
    struct tokens *tokens = NULL;
    struct error error;
    write_network(bias, TOKENS_INPUTS - 1);
    EXPECT(tokens_open(PATH, &tokens, &error) == STATUS_BAD_INPUT);
    EXPECT(strstr(error.text, "weight_0: expected a width of 73 to 73, found 72") != NULL);
    const float not_finite[TOKENS] = {0, INFINITY, 0};
    write_network(not_finite, TOKENS_INPUTS);
    EXPECT(tokens_open(PATH, &tokens, &error) == STATUS_BAD_INPUT);
    EXPECT(strstr(error.text, "bias_2: expected finite values") != NULL);
    EXPECT(tokens_open("nowhere.safetensors", &tokens, &error) != STATUS_OK);
    EXPECT(tokens == NULL);
    unlink(PATH);
}

int main(void)
{
    char folder[] = "/tmp/swerve-tokens-XXXXXX";
    EXPECT(mkdtemp(folder) != NULL && chdir(folder) == 0);
    int code = TEST_RUN(TEST(a_token_comes_on_top_of_idm), TEST(tokens_begin_in_the_middle),
                        TEST(a_network_is_shipped), TEST(draws_depend_on_seed_tick_and_agent),
                        TEST(who_follows_ego_brakes), TEST(nobody_runs_away),
                        TEST(nobody_brakes_beyond_the_grip), TEST(another_file_is_refused));
    rmdir(folder);
    return code;
}
