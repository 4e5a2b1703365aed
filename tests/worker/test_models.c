/*
 * Registry and models. A model of the registry is kept beside it through random promotions and
 * rollbacks, reloaded from the file each time; a job's model is found by its hash and by nothing
 * else; files that changed, lie about their tier or are not there are said to be so. More models
 * than may be open at once answer all the same, and whoever is held stays open.
 */
#include "tests/worker/learned_double.h"

#include "base/file.h"
#include "base/rng.h"
#include "worker/models/model_turns.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[64];
static struct error error;

static void write_file(const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *stream = fopen(path, "w");
    EXPECT(stream != NULL);
    EXPECT(fputs(text, stream) >= 0);
    EXPECT_INT(fclose(stream), 0);
}

static void remove_file(const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    unlink(path);
}

static void without_a_registry_names_decide(void)
{
    static struct registry registry;
    remove_file("registry.json");
    remove_file("student.safetensors");
    EXPECT_OK(registry_load(directory, &registry, &error), error);
    EXPECT(registry_promoted(&registry, TIER_STUDENT) == NULL);
    write_file("student.safetensors", "student 4 100");
    EXPECT_OK(registry_load(directory, &registry, &error), error);
    EXPECT(!registry.stored);
    EXPECT_TEXT(registry_promoted(&registry, TIER_STUDENT)->name, "student");
    EXPECT(registry_promoted(&registry, TIER_TEACHER) == NULL);
    EXPECT(registry_promoted(&registry, TIER_OBJECT) == NULL);
    EXPECT_OK(registry_load("/nowhere", &registry, &error), error);
    EXPECT(registry_promoted(&registry, TIER_STUDENT) == NULL);
}

static void promotions_are_a_stack(void)
{
    static struct registry registry;
    char actuation[100][LIMIT_ID_BYTES];
    uint32_t depth = 0;
    remove_file("registry.json");
    remove_file("student.safetensors");
    EXPECT_OK(registry_load(directory, &registry, &error), error);
    for (uint64_t i = 0; i < 90; i++) {
        if (rng_mix(i) % 5 < 3) {
            struct registry_entry entry = {.promoted_s = (int64_t)i};
            snprintf(entry.name, sizeof entry.name, "model-%d", (int)i);
            sha256_hex(entry.name, strlen(entry.name), entry.hash);
            registry_promote(&registry, TIER_STUDENT, &entry);
            memcpy(actuation[depth++], entry.name, sizeof actuation[0]);
            if (depth > REGISTRY_DEPTH) {
                memmove(actuation[0], actuation[1], sizeof actuation[0] * --depth);
            }
        } else if (depth > 1) {
            EXPECT_OK(registry_rollback(&registry, TIER_STUDENT, &error), error);
            depth--;
        } else {
            EXPECT_INT(registry_rollback(&registry, TIER_STUDENT, &error), STATUS_CONFLICT);
        }
        EXPECT_OK(registry_save(&registry, &error), error);
        EXPECT_OK(registry_load(directory, &registry, &error), error);
        const struct registry_entry *now = registry_promoted(&registry, TIER_STUDENT);
        EXPECT((now == NULL) == (depth == 0));
        EXPECT(now == NULL || strcmp(now->name, actuation[depth - 1]) == 0);
        EXPECT(registry_promoted(&registry, TIER_TEACHER) == NULL);
    }
    for (int i = 0; i < 2 * REGISTRY_DEPTH; i++) {
        struct registry_entry entry = {.name = "many"};
        registry_promote(&registry, TIER_TEACHER, &entry);
    }
    EXPECT_INT(registry.tiers[TIER_TEACHER].count, REGISTRY_DEPTH);
}

static void wrong_registries_are_refused(void)
{
    static const char *const texts[] = {
        "{}",
        "[1]",
        "{\"format\": \"swerve-models/2\", \"student\": [], \"teacher\": []}",
        "{\"format\": \"swerve-models/1\", \"student\": {}, \"teacher\": []}",
        "{\"format\": \"swerve-models/1\", \"student\": [{\"name\": \"a\"}], \"teacher\": []}",
        "{\"format\": \"swerve-models/1\"",
    };
    static struct registry registry;
    char path[LIMIT_PATH_BYTES];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        write_file("registry.json", texts[i]);
        EXPECT(registry_load(directory, &registry, &error) != STATUS_OK);
        EXPECT_CONTAINS(error.text, "registry.json");
    }
    remove_file("registry.json");
    EXPECT(registry_path(directory, "../x", ".json", path, &error) != STATUS_OK);
    EXPECT(registry_path(directory, "", ".json", path, &error) != STATUS_OK);
    EXPECT(registry_path(directory, ".x", ".json", path, &error) != STATUS_OK);
}

static void jobs_get_their_model_and_no_other(void)
{
    struct models *models = NULL;
    const struct models_model *student = NULL;
    const struct models_model *found = NULL;
    char hash[SHA256_HEX_BYTES];
    remove_file("registry.json");
    write_file("student.safetensors", "student 4 100");
    write_file("teacher.safetensors", "student 9 100"); /* it lies */
    write_file("older.safetensors", "student 3 100");
    write_file("notes.txt", "student 7 100");
    EXPECT_OK(models_open(directory, &double_loader, &models, &error), error);
    EXPECT(models_available(models, TIER_STUDENT));
    EXPECT_OK(models_promoted(models, TIER_STUDENT, NN_BF16, &student, &error), error);
    EXPECT_TEXT(student->name, "student");
    EXPECT(!student->bounds.calibrated);
    EXPECT_INT(models_promoted(models, TIER_TEACHER, NN_BF16, &found, &error), STATUS_CONFLICT);
    EXPECT_CONTAINS(error.text, "teacher");
    EXPECT_OK(models_find(models, student->hash, NN_BF16, &found, &error), error);
    EXPECT(found == student); /* opened once */
    EXPECT_OK(models_find(models, student->hash, NN_FP32, &found, &error), error);
    EXPECT(found != student && strcmp(found->hash, student->hash) == 0);
    sha256_hex("student 3 100", 13, hash);
    EXPECT_OK(models_find(models, hash, NN_BF16, &found, &error), error);
    EXPECT_TEXT(found->name, "older");
    sha256_hex("student 7 100", 13, hash); /* no model file has it */
    EXPECT_INT(models_find(models, hash, NN_BF16, &found, &error), STATUS_DEVICE);
    EXPECT_CONTAINS(error.text, directory);
    EXPECT_INT(models_find(models, "", NN_BF16, &found, &error), STATUS_DEVICE);
    /* A file that is replaced while the process runs is another model. */
    write_file("student.safetensors", "student 5 100");
    sha256_hex("student 5 100", 13, hash);
    EXPECT_OK(models_find(models, hash, NN_BF16, &found, &error), error);
    EXPECT_INT(found->config->steps, 5);
    EXPECT_OK(models_find(models, student->hash, NN_BF16, &found, &error), error);
    EXPECT_INT(found->config->steps, 4);
    models_close(models);
    /* .. and not the one that was promoted. */
    static struct registry registry;
    EXPECT_OK(registry_load(directory, &registry, &error), error);
    struct registry_entry entry = {.name = "student"};
    sha256_hex("student 4 100", 13, entry.hash);
    registry_promote(&registry, TIER_STUDENT, &entry);
    EXPECT_OK(registry_save(&registry, &error), error);
    EXPECT_OK(models_open(directory, &double_loader, &models, &error), error);
    EXPECT_INT(models_promoted(models, TIER_STUDENT, NN_BF16, &found, &error), STATUS_CONFLICT);
    EXPECT_CONTAINS(error.text, "changed");
    models_close(models);
    EXPECT_INT(models_open("/nowhere", &double_loader, &models, &error), STATUS_NOT_FOUND);
    models_close(NULL);
}

/* The file `number`, and its hash. */
static void write_numbered(int number, char hash[SHA256_HEX_BYTES])
{
    char name[32];
    char text[32];
    snprintf(name, sizeof name, "many-%d.safetensors", number);
    snprintf(text, sizeof text, "student %d 100", 50 + number);
    write_file(name, text);
    sha256_hex(text, strlen(text), hash);
}

static void models_that_nobody_holds_make_room(void)
{
    enum { MANY = 3 * MODELS_OPEN_MAX };
    struct models *models = NULL;
    const struct models_model *held[MODELS_OPEN_MAX] = {NULL};
    const struct models_model *found = NULL;
    static char hash[MANY][SHA256_HEX_BYTES];
    EXPECT_OK(models_open(directory, &double_loader, &models, &error), error);
    for (int i = 0; i < MANY; i++) {
        write_numbered(i, hash[i]);
    }
    for (int i = 0; i < MANY; i++) {
        enum nn_precision precision = (enum nn_precision)(i % NN_PRECISION_COUNT);
        EXPECT_OK(models_find(models, hash[i], precision, &found, &error), error);
        EXPECT_INT(found->config->steps, 50 + i);
        if (i % 3 == 0 && i / 3 < MODELS_OPEN_MAX - 1) {
            held[i / 3] = found;
            models_hold(models, found);
            models_hold(models, found); /* twice: two drive it */
            models_release(models, found);
        }
    }
    for (int i = 0; i < MODELS_OPEN_MAX - 1; i++) {
        EXPECT_OK(models_find(models, hash[3 * i], (enum nn_precision)0, &found, &error), error);
        EXPECT(found == held[i] && found->config->steps == 50U + 3U * (unsigned)i);
    }
    EXPECT_OK(models_find(models, hash[1], NN_BF16, &held[MODELS_OPEN_MAX - 1], &error), error);
    models_hold(models, held[MODELS_OPEN_MAX - 1]);
    EXPECT_INT(models_find(models, hash[2], NN_BF16, &found, &error), STATUS_BUSY);
    EXPECT_INT(models_named(models, "many-2", NN_BF16, &found, &error), STATUS_BUSY);
    models_release(models, held[4]);
    EXPECT_OK(models_find(models, hash[2], NN_BF16, &found, &error), error);
    models_release(models, NULL);
    models_close(models);
    for (int i = 0; i < MANY; i++) {
        char name[32];
        snprintf(name, sizeof name, "many-%d.safetensors", i);
        remove_file(name);
    }
}

/* ---- turns of a host's processes ---- */

enum { PROCESSES = 10 };

static struct {
    atomic_int asking;
    atomic_int fetches;
    atomic_int inside;
    atomic_int most;
} * shared;

static enum status fetch_once(void *context, const char *hash, enum nn_precision precision,
                              const char *to, const char *name, struct error *why)
{
    char path[256];
    (void)context;
    (void)hash;
    (void)precision;
    atomic_fetch_add(&shared->fetches, 1);
    EXPECT(snprintf(path, sizeof path, "%s/%s.safetensors", to, name) < (int)sizeof path);
    return file_replace(path, "student 6 100", 13, 0600, why);
}

static enum status no_bounds(void *context, const char *hash, enum nn_precision precision,
                             struct health_bounds *out, struct error *why)
{
    (void)context;
    (void)hash;
    (void)precision;
    (void)why;
    *out = health_bounds_builtin();
    return STATUS_OK;
}

static const struct models_supply one_supply = {fetch_once, no_bounds};

/* Opens slowly: the first ones wait for all places to be taken and for everybody to ask. */
static enum status open_beside(const char *path, enum nn_precision precision, struct model **out,
                               struct error *why)
{
    int inside = atomic_fetch_add(&shared->inside, 1) + 1;
    int most = atomic_load(&shared->most);
    while (inside > most && !atomic_compare_exchange_weak(&shared->most, &most, inside)) {
    }
    for (int i = 0; i < 3000 && (atomic_load(&shared->most) < MODEL_TURNS_OPEN ||
                                 atomic_load(&shared->asking) < PROCESSES);
         i++) {
        usleep(10000);
    }
    usleep(50000); /* for those who would come in without a turn; never too short to be right */
    enum status status = double_loader.open(path, precision, out, why);
    atomic_fetch_sub(&shared->inside, 1);
    return status;
}

static void one_process_brings_a_model_and_few_read_it_at_once(void)
{
    struct model_loader loader = double_loader;
    struct models *models = NULL;
    const struct models_model *found = NULL;
    char source[80];
    char hash[SHA256_HEX_BYTES];
    int good = 0;
    loader.open = open_beside;
    sha256_hex("student 6 100", 13, hash);
    snprintf(source, sizeof source, "%s/source", directory);
    EXPECT_INT(mkdir(source, 0700), 0);
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT(shared != MAP_FAILED);
    for (int i = 0; i < PROCESSES; i++) {
        if (fork() == 0) {
            enum status status = models_open(directory, &loader, &models, &error);
            THEN(status, models_set_source(models, source, &one_supply, NULL, &error));
            atomic_fetch_add(&shared->asking, 1);
            THEN(status, models_find(models, hash, NN_BF16, &found, &error));
            _exit(status == STATUS_OK && found->config->steps == 6 ? 0 : 1);
        }
    }
    for (int i = 0; i < PROCESSES; i++) {
        int ended = 1;
        good += wait(&ended) > 0 && WIFEXITED(ended) && WEXITSTATUS(ended) == 0;
    }
    EXPECT_INT(good, PROCESSES);
    EXPECT_INT(shared->fetches, 1);
    EXPECT_INT(shared->most, MODEL_TURNS_OPEN);
    munmap(shared, sizeof *shared);
    /* A folder that nobody can write to keeps nobody from anything. */
    EXPECT_INT(model_turns_take("/nowhere", "open", 1, MODEL_TURNS_WAIT_MS), -1);
    /* A turn that does not end is not waited for for ever. */
    int turn = model_turns_take(source, "held", 1, 0);
    EXPECT(turn >= 0);
    EXPECT_INT(model_turns_take(source, "held", 1, 40), -1);
    model_turns_end(turn);
}

/* ---- bounds in a folder that others may write into ---- */

/* Bounds of a model: the built-in ones, or at their loosest. */
static void bounds_text(const char *hash, bool loose, char *text, size_t bytes)
{
    int used =
        snprintf(text, bytes,
                 "{\"format\": \"swerve-health/1\", \"model_hash\": \"%s\", \"rollouts\": 1, "
                 "\"ticks\": 1, \"degrees\": {",
                 hash);
    for (int c = 0; c < CONDITIONING_COUNT; c++) {
        used += snprintf(text + used, bytes - (size_t)used, "%s\"%s\": {", c > 0 ? "}, " : "",
                         conditioning_names[c]);
        for (int i = 0; i < MEASURE_COUNT; i++) {
            const struct health_measure_info *info = &health_measures[i];
            double bound = !loose                                ? info->builtin[c]
                           : health_measure_kinds[i].low_is_sick ? info->floor
                                                                 : info->ceiling;
            used += snprintf(text + used, bytes - (size_t)used, "%s\"%s\": {\"bound\": %.17g}",
                             i > 0 ? ", " : "", health_measure_kinds[i].name, bound);
        }
    }
    used += snprintf(text + used, bytes - (size_t)used, "}}}");
    EXPECT(used < (int)bytes);
}

struct shelf {
    const char *bounds; /* NULL: the version has none */
    bool other;         /* there is no such version */
    int fetches;
};

static enum status bounds_of_shelf(void *context, const char *hash, enum nn_precision precision,
                                   struct health_bounds *out, struct error *why)
{
    const struct shelf *shelf = context;
    if (shelf->other) {
        return error_set(why, STATUS_NOT_FOUND, "no such version");
    }
    *out = health_bounds_builtin();
    return shelf->bounds == NULL
               ? STATUS_OK
               : health_bounds_parse("shelf", shelf->bounds, strlen(shelf->bounds), hash, precision,
                                     true, out, why);
}

static enum status fetch_from_shelf(void *context, const char *hash, enum nn_precision precision,
                                    const char *to, const char *name, struct error *why)
{
    struct shelf *shelf = context;
    char path[256];
    (void)hash;
    (void)precision;
    shelf->fetches++;
    EXPECT(snprintf(path, sizeof path, "%s/%s.safetensors", to, name) < (int)sizeof path);
    return file_replace(path, "student 8 100", 13, 0600, why);
}

/* Opens the model of the shelf in a process of its own, as it were, and gives its bounds.
 * `overruled`: what is expected of other bounds beside it. */
static struct health_bounds bounds_seen(struct shelf *shelf, const char *source, const char *hash,
                                        bool overruled)
{
    static const struct models_supply supply = {fetch_from_shelf, bounds_of_shelf};
    struct models *models = NULL;
    const struct models_model *found = NULL;
    EXPECT_OK(models_open(directory, &double_loader, &models, &error), error);
    EXPECT_OK(models_set_source(models, source, &supply, shelf, &error), error);
    EXPECT_OK(models_find(models, hash, NN_BF16, &found, &error), error);
    struct health_bounds bounds = found->bounds;
    EXPECT_INT(found->overruled, overruled);
    models_close(models);
    return bounds;
}

static void bounds_that_the_store_does_not_name_are_not_believed(void)
{
    static char good[1 << 14];
    static char loose[1 << 14];
    struct shelf shelf = {.bounds = good};
    char source[80];
    char path[256];
    char hash[SHA256_HEX_BYTES];
    struct health_bounds named;
    sha256_hex("student 8 100", 13, hash);
    bounds_text(hash, false, good, sizeof good);
    bounds_text(hash, true, loose, sizeof loose);
    EXPECT_OK(health_bounds_parse("good", good, strlen(good), hash, NN_BF16, false, &named, &error),
              error);
    snprintf(source, sizeof source, "%s/bounds", directory);
    snprintf(path, sizeof path, "%s/%.32s-bf16.health.json", source, hash);
    EXPECT_INT(mkdir(source, 0700), 0);
    struct health_bounds bounds = bounds_seen(&shelf, source, hash, false);
    EXPECT(health_bounds_same(&bounds, &named) && bounds.calibrated);
    /* Those planted beside what was fetched are not even read. */
    EXPECT_OK(file_replace(path, loose, strlen(loose), 0600, &error), error);
    bounds = bounds_seen(&shelf, source, hash, false);
    EXPECT(health_bounds_same(&bounds, &named));
    EXPECT_INT(shelf.fetches, 1);
    /* Of a version without bounds none are taken from there, nor of one that is not known. */
    shelf.bounds = NULL;
    EXPECT(!bounds_seen(&shelf, source, hash, false).calibrated);
    shelf.other = true;
    EXPECT(!bounds_seen(&shelf, source, hash, false).calibrated);
}

static void bounds_of_the_store_judge_weights_of_the_directory(void)
{
    static char good[1 << 14];
    static char loose[1 << 14];
    struct shelf shelf = {.bounds = good};
    char path[256];
    char hash[SHA256_HEX_BYTES];
    struct health_bounds named;
    struct health_bounds beside;
    sha256_hex("student 9 117", 13, hash);
    bounds_text(hash, false, good, sizeof good);
    bounds_text(hash, true, loose, sizeof loose);
    EXPECT_OK(health_bounds_parse("good", good, strlen(good), hash, NN_BF16, false, &named, &error),
              error);
    EXPECT_OK(
        health_bounds_parse("loose", loose, strlen(loose), hash, NN_BF16, false, &beside, &error),
        error);
    EXPECT(!health_bounds_same(&named, &beside));
    snprintf(path, sizeof path, "%s/mine.safetensors", directory);
    EXPECT_OK(file_replace(path, "student 9 117", 13, 0600, &error), error);
    snprintf(path, sizeof path, "%s/mine.health.json", directory);
    /* Without a second directory, too: nothing has to be fetched. */
    struct health_bounds bounds = bounds_seen(&shelf, "", hash, false);
    EXPECT(health_bounds_same(&bounds, &named));
    const char *const laid[] = {good, loose, "{"};
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(file_replace(path, laid[i], strlen(laid[i]), 0600, &error), error);
        bounds = bounds_seen(&shelf, "", hash, i > 0);
        EXPECT(health_bounds_same(&bounds, &named));
    }
    /* A version without bounds has the built-in ones. */
    EXPECT_OK(file_replace(path, loose, strlen(loose), 0600, &error), error);
    shelf.bounds = NULL;
    EXPECT(!bounds_seen(&shelf, "", hash, true).calibrated);
    /* Weights that the store does not have are judged by what is here. */
    shelf.other = true;
    bounds = bounds_seen(&shelf, "", hash, false);
    EXPECT(health_bounds_same(&bounds, &beside));
    EXPECT_INT(shelf.fetches, 0);
}

static void samplers_are_parsed(void)
{
    static const char *const wrong[] = {
        "", "agents", "agents/bf16", "all/euler4/bf16", "agents/euler4/int4", "/euler4/bf16"};
    enum conditioning conditioning = CONDITIONING_AGENTS;
    enum nn_precision precision = NN_BF16;
    for (int d = 0; d < CONDITIONING_COUNT; d++) {
        char text[LIMIT_ID_BYTES];
        enum nn_precision expected = (enum nn_precision)(d % NN_PRECISION_COUNT);
        snprintf(text, sizeof text, "%s/euler12/%s", conditioning_names[d],
                 nn_precision_names[expected]);
        EXPECT_OK(models_parse_sampler(text, &conditioning, &precision, &error), error);
        EXPECT_INT(conditioning, d);
        EXPECT_INT(precision, expected);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        EXPECT_INT(models_parse_sampler(wrong[i], &conditioning, &precision, &error),
                   STATUS_BAD_INPUT);
    }
}

int main(void)
{
    char command[128];
    (void)double_student_ops;
    snprintf(directory, sizeof directory, "/tmp/swerve-models-XXXXXX");
    if (mkdtemp(directory) == NULL) {
        return 1;
    }
    int failed = TEST_RUN(
        TEST(without_a_registry_names_decide), TEST(promotions_are_a_stack),
        TEST(wrong_registries_are_refused), TEST(jobs_get_their_model_and_no_other),
        TEST(models_that_nobody_holds_make_room),
        TEST(one_process_brings_a_model_and_few_read_it_at_once),
        TEST(bounds_that_the_store_does_not_name_are_not_believed),
        TEST(bounds_of_the_store_judge_weights_of_the_directory), TEST(samplers_are_parsed));
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    return system(command) == 0 ? failed : 1;
}
