/*
 * The conformance checks. See world_check.h.
 *
 * A record is the digest of everything that a rollout shows at each tick. Rollouts of one key get
 * the same actions, so whatever is done around them, their records must be those of the rollout
 * alone.
 */
#include "worker/world/world_check.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "base/units.h"
#include "engine/worlds/foreign.h"
#include "schemas/rig/rig.h"
#include "worker/models/health_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OBSERVATION_BYTES = BEV_BYTES + CAMERA_COUNT * CAMERA_BYTES };

struct record {
    uint32_t ticks;                                           /* entries, tick 0 included */
    uint8_t picture[WORLD_CHECK_TICKS_MAX + 1][SHA256_BYTES]; /* what the sensors saw */
    uint8_t digest[WORLD_CHECK_TICKS_MAX + 1][SHA256_BYTES];  /* and where the agents were */
    char fault[FRAME_FAULT_BYTES];
    double ego_m; /* driven */
};

/* Health of a rollout, as `run` looks at it. */
struct watched {
    struct health health;
    bool flagged;
    struct health_verdict verdict; /* the first */
};

struct checker {
    const struct world_check_options *options;
    struct world_check *out;
    uint8_t *observation;
    struct record alone[WORLD_CHECK_SLOTS]; /* by key */
    struct record other[WORLD_CHECK_SLOTS];
    struct watched watched;     /* of the rollout that is driven alone */
    struct health_verdict flag; /* the first of all these */
    void *parked;
};

static void tell(struct checker *checker, const char *name, int verdict, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void tell(struct checker *checker, const char *name, int verdict, const char *format, ...)
{
    struct world_check_row *row = &checker->out->rows[checker->out->row_count++];
    va_list args;
    CHECK(checker->out->row_count <= WORLD_CHECK_ROWS_MAX);
    row->name = name;
    row->verdict = verdict;
    checker->out->bad_count += verdict == WORLD_CHECK_BAD;
    va_start(args, format);
    vsnprintf(row->text, sizeof row->text, format, args);
    va_end(args);
}

/* Driving that differs for every key and tick. */
static struct action action_of(uint32_t key, uint32_t tick)
{
    return (struct action){0.5 + 0.25 * (double)key - 0.125 * (double)(tick % 7),
                           0.004 * (double)((tick * (key + 3)) % 5) - 0.008};
}

/* Every frame of the newest tick, of a world that makes those of a rig. */
static void add_frames(const struct checker *checker, const struct world *world, uint32_t slot,
                       struct sha256 *hash)
{
    const struct world_check_options *options = checker->options;
    const struct rig *rig = options->config.rig;
    const uint32_t tick_frames = options->config.foreign->declared.rate_hz / TICK_HZ;
    for (uint32_t c = 0; c < rig->camera_count; c++) {
        const size_t bytes = (size_t)rig->cameras[c].width * (size_t)rig->cameras[c].height * 3;
        for (uint32_t back = tick_frames; back-- > 0;) {
            const uint8_t *frame = options->ops->slot_frame(world, slot, c, back);
            if (frame != NULL) {
                sha256_update(hash, frame, bytes);
            }
        }
    }
}

static void look(struct checker *checker, struct world *world, uint32_t slot, struct record *record)
{
    const struct world_ops *ops = checker->options->ops;
    struct observation_buffers buffers = {.bev = checker->observation};
    const struct scene *scene = ops->slot_scene(world, slot);
    struct sha256 hash;
    for (int i = 0; i < CAMERA_COUNT; i++) {
        buffers.camera[i] = checker->observation + BEV_BYTES + (size_t)i * CAMERA_BYTES;
    }
    ops->slot_observe(world, slot, &buffers);
    sha256_init(&hash);
    sha256_update(&hash, checker->observation, OBSERVATION_BYTES);
    if (ops->slot_frame != NULL) {
        add_frames(checker, world, slot, &hash);
    }
    struct sha256 picture = hash;
    sha256_final(&picture, record->picture[record->ticks]);
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        uint8_t present = scene->agents[i].present;
        sha256_update(&hash, &present, 1);
        sha256_update(&hash, &scene->agents[i].pose, sizeof scene->agents[i].pose);
    }
    sha256_final(&hash, record->digest[record->ticks++]);
    record->ego_m += scene->ego.speed_mps * TICK_S;
    const struct frame_stats *stats =
        ops->slot_frame_stats != NULL ? ops->slot_frame_stats(world, slot) : NULL;
    if (stats != NULL && stats->fault[0] != '\0' && record->fault[0] == '\0') {
        memcpy(record->fault, stats->fault, sizeof record->fault);
    }
}

/* The checks that a rollout of `run` is looked at with each tick. */
static void watch(struct checker *checker, struct world *world, uint32_t slot)
{
    const struct world_check_options *options = checker->options;
    const struct scene *scene = options->ops->slot_scene(world, slot);
    struct watched *watched = &checker->watched;
    double statistic[MEASURE_COUNT];
    bool learned = options->ops->slot_frame_stats != NULL;
    if (watched->flagged) {
        return;
    }
    bool well = health_update(&watched->health, prepared_scenario(options->prepared), scene,
                              !learned, &watched->verdict);
    if (well && learned) {
        const struct frame_stats *stats = options->ops->slot_frame_stats(world, slot);
        health_world_measure(&watched->health.world, stats, statistic);
        well = health_world_judge(&watched->health.world, stats, statistic, options->bounds,
                                  options->config.conditioning, &watched->verdict);
    }
    watched->flagged = !well;
}

/* Steps the slots of `active` by one tick; slot i drives as keys[i]. */
static void step(struct checker *checker, struct world *world, const uint32_t *keys,
                 const uint8_t *active)
{
    struct action actions[WORLD_CHECK_SLOTS] = {{0}};
    for (uint32_t i = 0; i < world->slot_count; i++) {
        if (active[i]) {
            actions[i] = action_of(keys[i], checker->options->ops->slot_scene(world, i)->tick);
        }
    }
    checker->options->ops->step(world, actions, active);
}

/* One slot on to tick `until`, looked at after each; tick 0 is looked at where it begins there. */
static void drive(struct checker *checker, struct world *world, uint32_t slot, uint32_t key,
                  uint32_t until, struct record *record)
{
    uint8_t active[WORLD_CHECK_SLOTS] = {0};
    uint32_t keys[WORLD_CHECK_SLOTS] = {0};
    active[slot] = 1;
    keys[slot] = key;
    if (record->ticks == 0) {
        look(checker, world, slot, record);
    }
    while (record->ticks <= until) {
        step(checker, world, keys, active);
        look(checker, world, slot, record);
    }
}

/* Opens a world; false: the row of that name says why it does not. */
static bool open_world(struct checker *checker, const char *name, uint32_t slots,
                       struct world **out)
{
    struct world_config config = checker->options->config;
    struct error error;
    config.slot_count = slots;
    if (checker->options->ops->open(&config, out, &error) == STATUS_OK) {
        return true;
    }
    tell(checker, name, WORLD_CHECK_BAD, "%s", error.text);
    return false;
}

static bool reset(struct checker *checker, const char *name, struct world *world, uint32_t slot,
                  uint32_t key)
{
    struct error error;
    if (checker->options->ops->slot_reset(world, slot, checker->options->prepared, 1 + key,
                                          &error) == STATUS_OK) {
        return true;
    }
    tell(checker, name, WORLD_CHECK_BAD, "%s", error.text);
    return false;
}

/* The row of a comparison with the rollout alone. True: it holds. */
static bool compare(struct checker *checker, const char *name, uint32_t key,
                    const struct record *found, const char *what)
{
    const struct record *alone = &checker->alone[key];
    if (found->fault[0] != '\0') {
        tell(checker, name, WORLD_CHECK_BAD, "%s", found->fault);
        return false;
    }
    for (uint32_t tick = 0; checker->options->exact && tick < found->ticks; tick++) {
        if (memcmp(found->digest[tick], alone->digest[tick], SHA256_BYTES) != 0) {
            tell(checker, name, WORLD_CHECK_BAD,
                 "%s: tick %u differs from the same rollout alone, and it declares to be "
                 "deterministic",
                 what, tick);
            return false;
        }
    }
    return true;
}

static void conclude(struct checker *checker, const char *name, const char *what)
{
    if (checker->options->exact) {
        tell(checker, name, WORLD_CHECK_OK, "%s: the same bits as alone", what);
    } else {
        tell(checker, name, WORLD_CHECK_SKIPPED, "%s: no fault; bits vary, as it declares", what);
    }
}

/* ---- the checks ---- */

/* Every key alone: what the others are compared with. False: nothing more can be said. */
static bool check_frames(struct checker *checker)
{
    const uint32_t ticks = checker->options->ticks;
    for (uint32_t key = 0; key < WORLD_CHECK_SLOTS; key++) {
        struct record *record = &checker->alone[key];
        struct world *world = NULL;
        if (!open_world(checker, "frames", 1, &world)) {
            return false;
        }
        bool good = reset(checker, "frames", world, 0, key);
        checker->watched = (struct watched){.flagged = false};
        for (uint32_t tick = 0; tick <= ticks && good; tick++) {
            drive(checker, world, 0, key, tick, record);
            watch(checker, world, 0);
        }
        checker->options->ops->close(world);
        if (!good) {
            return false;
        }
        if (checker->watched.flagged && checker->flag.check == HEALTH_OK) {
            checker->flag = checker->watched.verdict;
        }
        if (record->fault[0] != '\0') {
            tell(checker, "frames", WORLD_CHECK_BAD, "%s", record->fault);
            return false;
        }
    }
    tell(checker, "frames", WORLD_CHECK_OK, "%d rollouts of %u ticks, each alone",
         WORLD_CHECK_SLOTS, ticks);
    return true;
}

/* Whether `run` would flag what was driven, and for what: then nothing that it drives counts. */
static void check_health(struct checker *checker)
{
    const struct health_verdict *flag = &checker->flag;
    bool own = checker->options->bounds->calibrated;
    if (flag->check == HEALTH_OK) {
        tell(checker, "health", WORLD_CHECK_OK, "no tick of these would be flagged (%s bounds)",
             own ? "its own" : "built-in");
    } else {
        tell(checker, "health", WORLD_CHECK_BAD,
             "would be flagged: %s, %.3g found, %.3g at %s, at tick %u (%s)",
             health_check_names[flag->check], flag->value, flag->threshold,
             flag->value < flag->threshold ? "least" : "most", flag->tick,
             own ? "its own bounds"
                 : "built-in bounds; swerve world calibrate makes some of a healthy world");
    }
}

static void check_moves(struct checker *checker)
{
    const struct record *record = &checker->alone[0];
    uint32_t changes = 0;
    for (uint32_t tick = 2; tick < record->ticks; tick++) {
        changes += memcmp(record->picture[tick], record->picture[tick - 1], SHA256_BYTES) != 0;
    }
    if (record->ego_m > 1.0 && changes == 0) {
        tell(checker, "moves", WORLD_CHECK_BAD,
             "ego drove %.1f m, and every frame is the one before", record->ego_m);
    } else {
        tell(checker, "moves", WORLD_CHECK_OK,
             "%u of %u frames differ from the one before; ego "
             "drove %.1f m",
             changes, record->ticks - 2, record->ego_m);
    }
}

static void check_repeats(struct checker *checker)
{
    struct world *world = NULL;
    struct record *again = memset(&checker->other[0], 0, sizeof checker->other[0]);
    if (!open_world(checker, "repeats", 1, &world)) {
        return;
    }
    if (reset(checker, "repeats", world, 0, 0)) {
        drive(checker, world, 0, 0, checker->options->ticks, again);
        if (compare(checker, "repeats", 0, again, "opened again")) {
            conclude(checker, "repeats", "opened again");
        }
    }
    checker->options->ops->close(world);
}

/* All keys at once, each in another slot than its number. */
static void check_batch(struct checker *checker)
{
    struct world *world = NULL;
    uint32_t keys[WORLD_CHECK_SLOTS];
    uint8_t active[WORLD_CHECK_SLOTS];
    bool good = true;
    if (!open_world(checker, "batch", WORLD_CHECK_SLOTS, &world)) {
        return;
    }
    memset(checker->other, 0, sizeof checker->other);
    for (uint32_t slot = 0; slot < WORLD_CHECK_SLOTS && good; slot++) {
        keys[slot] = WORLD_CHECK_SLOTS - 1 - slot;
        active[slot] = 1;
        good = reset(checker, "batch", world, slot, keys[slot]);
    }
    for (uint32_t tick = 0; tick <= checker->options->ticks && good; tick++) {
        if (tick > 0) {
            step(checker, world, keys, active);
        }
        for (uint32_t slot = 0; slot < WORLD_CHECK_SLOTS; slot++) {
            look(checker, world, slot, &checker->other[slot]);
        }
    }
    for (uint32_t slot = 0; slot < WORLD_CHECK_SLOTS && good; slot++) {
        good = compare(checker, "batch", keys[slot], &checker->other[slot], "in a batch of 4");
    }
    if (good) {
        conclude(checker, "batch", "in a batch of 4");
    }
    checker->options->ops->close(world);
}

/* A branch from the middle, driven to its end before its main line goes on, and one that drives
 * otherwise. */
static void check_fork(struct checker *checker)
{
    const struct world_ops *ops = checker->options->ops;
    const uint32_t middle = checker->options->ticks / 2;
    struct world *world = NULL;
    memset(checker->other, 0, sizeof checker->other);
    struct record *main_line = &checker->other[0];
    struct record *branch = &checker->other[1];
    struct record *astray = &checker->other[2];
    if (!open_world(checker, "fork", 3, &world)) {
        return;
    }
    if (reset(checker, "fork", world, 0, 1)) {
        drive(checker, world, 0, 1, middle, main_line);
        *branch = *astray = *main_line;
        ops->slot_fork(world, 0, 1);
        ops->slot_fork(world, 0, 2);
        drive(checker, world, 2, 3, checker->options->ticks, astray);
        drive(checker, world, 1, 1, checker->options->ticks, branch);
        drive(checker, world, 0, 1, checker->options->ticks, main_line);
        if (compare(checker, "fork", 1, branch, "a branch") &&
            compare(checker, "fork", 1, main_line, "a main line after its fork")) {
            conclude(checker, "fork", "a branch and its main line");
        }
    }
    ops->close(world);
}

static void check_park(struct checker *checker)
{
    const struct world_ops *ops = checker->options->ops;
    struct world *world = NULL;
    struct record *record = memset(&checker->other[0], 0, sizeof checker->other[0]);
    struct record *guest = memset(&checker->other[1], 0, sizeof checker->other[1]);
    if (!open_world(checker, "park", 2, &world)) {
        return;
    }
    checker->parked = malloc(ops->slot_state_bytes(world));
    if (checker->parked != NULL && reset(checker, "park", world, 0, 2)) {
        drive(checker, world, 0, 2, checker->options->ticks / 2, record);
        ops->slot_save(world, 0, checker->parked);
        ops->slot_release(world, 0);
        bool good = reset(checker, "park", world, 0, 0);
        if (good) {
            drive(checker, world, 0, 0, 3, guest);
        }
        ops->slot_restore(world, 1, checker->parked);
        if (good) {
            drive(checker, world, 1, 2, checker->options->ticks, record);
        }
        if (good && compare(checker, "park", 2, record, "parked and taken up again")) {
            conclude(checker, "park", "parked and taken up again");
        }
    }
    free(checker->parked);
    checker->parked = NULL;
    ops->close(world);
}

/* A state that another rollout left. */
static void check_reuse(struct checker *checker)
{
    const struct world_ops *ops = checker->options->ops;
    struct world *world = NULL;
    struct record *before = memset(&checker->other[0], 0, sizeof checker->other[0]);
    struct record *record = memset(&checker->other[1], 0, sizeof checker->other[1]);
    if (!open_world(checker, "reuse", 1, &world)) {
        return;
    }
    bool good = reset(checker, "reuse", world, 0, 3);
    if (good) {
        drive(checker, world, 0, 3, checker->options->ticks / 2, before);
        ops->slot_release(world, 0);
        good = reset(checker, "reuse", world, 0, 0);
    }
    if (good) {
        drive(checker, world, 0, 0, checker->options->ticks, record);
        good = compare(checker, "reuse", 0, record, "in a state that was used before");
    }
    if (good) {
        conclude(checker, "reuse", "in a state that was used before");
    }
    ops->close(world);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, uint32_t count)
{
    qsort(values, count, sizeof *values, by_size);
    return values[count / 2];
}

/* Time of a chunk is no tick's own: the mean of all ticks, of few rollouts, for frames are large.
 */
static void tell_chunks(struct checker *checker, const double *tick_ms, int64_t world_ns)
{
    const uint32_t ticks = checker->options->ticks;
    double sum_ms = 0.0;
    for (uint32_t tick = 0; tick < ticks; tick++) {
        sum_ms += tick_ms[tick];
    }
    tell(checker, "time", WORLD_CHECK_OK,
         "%.2f ms a tick of %d rollouts in the world, %.2f ms with checks of pictures; means",
         (double)world_ns / (double)NS_PER_MS / ticks, WORLD_CHECK_SLOTS, sum_ms / ticks);
}

/* The median of some ticks of a full batch, each with what of it was the world's own. */
static void check_time(struct checker *checker)
{
    const struct world_ops *ops = checker->options->ops;
    struct world *world = NULL;
    struct action actions[WORLD_CHECK_TIMED];
    uint8_t active[WORLD_CHECK_TIMED];
    double tick_ms[WORLD_CHECK_TICKS_MAX];
    double world_ms[WORLD_CHECK_TICKS_MAX];
    const uint32_t slots = ops->slot_frame != NULL ? WORLD_CHECK_SLOTS : WORLD_CHECK_TIMED;
    bool good = open_world(checker, "time", slots, &world);
    if (!good) {
        return;
    }
    for (uint32_t slot = 0; slot < slots && good; slot++) {
        active[slot] = 1;
        good = reset(checker, "time", world, slot, slot);
    }
    struct world_cost before = {0};
    for (uint32_t tick = 0; tick < checker->options->ticks && good; tick++) {
        struct world_cost cost = {0};
        for (uint32_t slot = 0; slot < slots; slot++) {
            actions[slot] = action_of(slot % WORLD_CHECK_SLOTS, tick);
        }
        int64_t start_ns = clock_now_ns(clock_system());
        ops->step(world, actions, active);
        tick_ms[tick] = (double)(clock_now_ns(clock_system()) - start_ns) / (double)NS_PER_MS;
        if (ops->cost != NULL) {
            ops->cost(world, &cost);
        }
        world_ms[tick] = (double)(cost.foreign_ns - before.foreign_ns) / (double)NS_PER_MS;
        before = cost;
    }
    if (good && ops->slot_frame != NULL) {
        tell_chunks(checker, tick_ms, before.foreign_ns);
    } else if (good && before.foreign_ns > 0) {
        double middle_ms = median(world_ms, checker->options->ticks); /* which sorts them */
        tell(checker, "time", WORLD_CHECK_OK,
             "%.3f ms a tick of %d rollouts in the world (fastest %.3f), %.1f ms with rasters and "
             "health; medians",
             middle_ms, WORLD_CHECK_TIMED, world_ms[0], median(tick_ms, checker->options->ticks));
    } else if (good) {
        tell(checker, "time", WORLD_CHECK_OK, "%.1f ms a tick of %d rollouts (median)",
             median(tick_ms, checker->options->ticks), WORLD_CHECK_TIMED);
    }
    ops->close(world);
}

enum status world_check_run(const struct world_check_options *options, struct world_check *out,
                            struct error *error)
{
    struct checker *checker = calloc(1, sizeof *checker);
    uint8_t *observation = malloc(OBSERVATION_BYTES);
    CHECK(options->ticks >= 8 && options->ticks <= WORLD_CHECK_TICKS_MAX);
    *out = (struct world_check){0};
    if (checker == NULL || observation == NULL) {
        free(checker);
        free(observation);
        return error_set(error, STATUS_NO_MEMORY, "world check: out of memory");
    }
    checker->options = options;
    checker->out = out;
    checker->observation = observation;
    if (check_frames(checker)) {
        check_health(checker);
        check_moves(checker);
        check_repeats(checker);
        check_batch(checker);
        check_fork(checker);
        check_park(checker);
        check_reuse(checker);
        check_time(checker);
    }
    free(checker);
    free(observation);
    return STATUS_OK;
}
