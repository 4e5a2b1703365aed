/*
 * Goal: the planner host accepts exactly the specs it documents, names results by content, and
 * lets no bad answer through. Method: tables of specs and command lines; files that change between
 * two identities; plugins that are wrong in one way each.
 */
#include "base/check.h"
#include "tests/harness.h"
#include "worker/planner/builtin/planner_builtin.h"
#include "worker/planner/planner.h"
#include "worker/planner/planner_spec.h"
#include "worker/planner/planner_trial.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- specs ---- */

static void specs_are_checked(void)
{
    static const struct {
        const char *spec;
        enum status status;
        const char *reason;
    } cases[] = {
        {"builtin:reference", STATUS_OK, ""},
        {"builtin:reference?headway_s=1.5&speed_factor=0.9", STATUS_OK, ""},
        {"builtin:reference?headway_s=1.5,speed_factor=0.9", STATUS_OK, ""},
        {"builtin:brake?decel_mps2=6", STATUS_OK, ""},
        {"builtin:maintain", STATUS_OK, ""},
        {"builtin:log", STATUS_OK, ""},
        {"builtin:nobody", STATUS_NOT_FOUND,
         "there are reference, maintain, brake, log, idm, pdm, r157"},
        {"builtin:", STATUS_BAD_INPUT, "expected a name"},
        {"builtin:brake?decel_mps2=", STATUS_BAD_INPUT, "expected a number from 0.1 to 12"},
        {"builtin:brake?decel_mps2=nan", STATUS_BAD_INPUT, "found \"nan\""},
        {"builtin:brake?decel_mps2=400", STATUS_BAD_INPUT, "found \"400\""},
        {"builtin:brake?decel_mps2=4x", STATUS_BAD_INPUT, "found \"4x\""},
        {"builtin:brake?decel_mps2=4&decel_mps2=5", STATUS_BAD_INPUT, "given twice"},
        {"builtin:brake?speed=4", STATUS_BAD_INPUT, "unknown key \"speed\"; expected decel_mps2"},
        {"builtin:brake?decel_mps2", STATUS_BAD_INPUT, "expected key=number"},
        {"builtin:log?x=1", STATUS_BAD_INPUT, "takes no config"},
        {"plugin:/no/such/file.so", STATUS_NOT_FOUND, "cannot read"},
        {"plugin:/tmp", STATUS_NOT_FOUND, "cannot read"},
        {"plugin:", STATUS_BAD_INPUT, "expected a file"},
        {"exec:", STATUS_BAD_INPUT, "expected a command line"},
        {"exec:   ", STATUS_BAD_INPUT, "names no program"},
        {"exec:/bin/sh -c 'exit 1'", STATUS_OK, ""},
        {"exec:sh?x=1", STATUS_NOT_FOUND, "sh?x=1"},
        {"reference", STATUS_BAD_INPUT, "expected builtin:NAME"},
        {"", STATUS_BAD_INPUT, "expected builtin:NAME"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct error error = {0};
        enum status status = planner_spec_check(cases[i].spec, &error);
        if (status != cases[i].status) {
            TEST_FAIL("%s: expected %s, found %s (%s)", cases[i].spec, status_name(cases[i].status),
                      status_name(status), error.text);
        }
        EXPECT_CONTAINS(error.text, cases[i].reason);
    }
    char spec[LIMIT_SPEC_BYTES + 8];
    memset(spec, 'x', sizeof spec);
    memcpy(spec, "exec:", 5);
    spec[LIMIT_SPEC_BYTES] = '\0';
    struct error error = {0};
    EXPECT_INT(planner_spec_check(spec, &error), STATUS_LIMIT);
}

static void command_lines_are_split(void)
{
    static const struct {
        const char *line;
        uint32_t count;
        const char *words[4];
    } cases[] = {
        {"a b", 2, {"a", "b"}},
        {"  a\t b \n", 2, {"a", "b"}},
        {"a 'b c' d", 3, {"a", "b c", "d"}},
        {"a \"b c\"d", 2, {"a", "b cd"}},
        {"a ''", 2, {"a", ""}},
        {"a b\\ c", 2, {"a", "b c"}},
        {"a '\\' \"\\\"\" \"\\x\"", 4, {"a", "\\", "\"", "\\x"}},
        {"a $HOME *", 3, {"a", "$HOME", "*"}},
        {"a;b|c>d", 1, {"a;b|c>d"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct planner_argv words;
        struct error error = {0};
        EXPECT_OK(planner_argv_parse(cases[i].line, &words, &error), error);
        EXPECT_INT(words.count, cases[i].count);
        for (uint32_t k = 0; k < words.count; k++) {
            EXPECT_TEXT(words.argv[k], cases[i].words[k]);
        }
        EXPECT(words.argv[words.count] == NULL);
    }
    static const char *const wrong[] = {"a 'b", "a \"b", "a \\", "", "''"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct planner_argv words;
        struct error error = {0};
        EXPECT_INT(planner_argv_parse(wrong[i], &words, &error), STATUS_BAD_INPUT);
    }
    char many[400] = "";
    for (int i = 0; i < PLANNER_ARGV_MAX + 1; i++) {
        strcat(many, "a ");
    }
    struct planner_argv words;
    struct error error = {0};
    EXPECT_INT(planner_argv_parse(many, &words, &error), STATUS_LIMIT);
}

/* ---- identity ---- */

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
}

static const char *identity_of(const char *spec, char hash[SHA256_HEX_BYTES])
{
    struct error error = {0};
    EXPECT_OK(planner_identity(spec, hash, &error), error);
    EXPECT_INT(strlen(hash), 64);
    return hash;
}

static void identity_follows_content(void)
{
    char directory[] = "/tmp/swerve-planner-XXXXXX";
    EXPECT(mkdtemp(directory) != NULL);
    char program[64];
    char data[64];
    char spec[256];
    char other[256];
    snprintf(program, sizeof program, "%s/program", directory);
    snprintf(data, sizeof data, "%s/weights", directory);
    write_file(program, "#!/bin/sh\n");
    write_file(data, "1");
    chmod(program, 0755);
    snprintf(spec, sizeof spec, "exec:%s --weights %s", program, data);
    snprintf(other, sizeof other, "exec:%s --weights '%s'", program, data);
    char a[SHA256_HEX_BYTES];
    char b[SHA256_HEX_BYTES];
    EXPECT_TEXT(identity_of(spec, a), identity_of(other, b)); /* the same words */
    write_file(data, "2");
    EXPECT(strcmp(identity_of(spec, b), a) != 0);
    write_file(data, "1");
    EXPECT_TEXT(identity_of(spec, b), a);
    write_file(program, "#!/bin/sh\n#\n");
    EXPECT(strcmp(identity_of(spec, b), a) != 0);
    snprintf(spec, sizeof spec, "plugin:%s", data);
    snprintf(other, sizeof other, "plugin:%s?c", data);
    EXPECT(strcmp(identity_of(spec, a), identity_of(other, b)) != 0);
    write_file(data, "3");
    EXPECT(strcmp(identity_of(spec, b), a) != 0);
    unlink(program);
    unlink(data);
    rmdir(directory);
    struct error error = {0};
    EXPECT(planner_identity(spec, a, &error) != STATUS_OK);
}

static void identities_differ(void)
{
    static const char *const specs[] = {
        "builtin:reference",
        "builtin:maintain",
        "builtin:brake",
        "builtin:log",
        "builtin:reference?headway_s=1.5",
        "exec:sh -c x",
        "exec:sh -cx",
        "exec:sh -c 'x y'",
        "exec:sh -c x y",
    };
    char hashes[sizeof specs / sizeof specs[0]][SHA256_HEX_BYTES];
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        identity_of(specs[i], hashes[i]);
        for (size_t k = 0; k < i; k++) {
            EXPECT(strcmp(hashes[i], hashes[k]) != 0);
        }
    }
}

/* Whoever submits names the files, and workers read them without a deadline. */
static void files_that_are_named_are_bounded(void)
{
    char large[] = "/tmp/swerve-planner-large-XXXXXX";
    char spec[256];
    char hash[SHA256_HEX_BYTES];
    struct error error = {0};
    int fd = mkstemp(large);
    EXPECT(fd >= 0);
    /* A hole takes no room, nor time where it is not read. */
    EXPECT(ftruncate(fd, (off_t)1 << 40) == 0);
    close(fd);
    snprintf(spec, sizeof spec, "exec:sh -c true %s", large);
    EXPECT_INT(planner_identity(spec, hash, &error), STATUS_LIMIT);
    EXPECT_CONTAINS(error.text, large);
    EXPECT_CONTAINS(error.text, "16 GiB in all");
    snprintf(spec, sizeof spec, "plugin:%s", large);
    EXPECT_INT(planner_identity(spec, hash, &error), STATUS_LIMIT);
    unlink(large);
}

/* ---- plugins ---- */

static enum status open_plugin(const char *path, const char *config, struct planner **planner,
                               struct error *error)
{
    char spec[600];
    snprintf(spec, sizeof spec, "plugin:%s%s%s", path, config[0] != '\0' ? "?" : "", config);
    struct planner_config settings = {.session_count = 3};
    return planner_open(spec, &settings, planner, error);
}

static void example_plugin_drives(void)
{
    struct planner *planner = NULL;
    struct error error = {0};
    EXPECT_OK(open_plugin(PLUGIN_EXAMPLE, "0.5", &planner, &error), error);
    EXPECT_INT(planner_wants(planner), 0);
    struct swerve_episode episode = {.session = 1, .ego_wheelbase_m = 2.8};
    EXPECT_OK(planner_reset(planner, &episode, &error), error);
    EXPECT_OK(planner_fork(planner, 1, 2, &error), error);
    struct swerve_route_point route[4] = {[0] = {.speed_limit_mps = 20.0f}, [3] = {.x_m = 12.0f}};
    struct swerve_observation seen[2] = {
        {.session = 2, .speed_mps = 9.0, .route_count = 4, .route = route},
        {.session = 1, .speed_mps = 9.0},
    };
    struct swerve_action actions[2];
    uint8_t failed[2];
    EXPECT_OK(planner_act(planner, 2, seen, actions, failed, &error), error);
    EXPECT_NEAR(actions[0].accel_mps2, 1.0, 1e-12);
    EXPECT_INT(failed[0], 0);
    EXPECT_INT(failed[1], 1); /* no route: it says that it cannot answer */
    EXPECT_CONTAINS(planner_session_error(planner, 1), "marked its answer as failed");
    planner_end(planner, 1);
    EXPECT_TEXT(planner_stderr_tail(planner), "");
    planner_close(planner);
    EXPECT_INT(open_plugin(PLUGIN_EXAMPLE, "9", &planner, &error), STATUS_PLANNER);
    EXPECT_CONTAINS(error.text, "share of the speed limit");
}

static void wrong_plugins_are_refused(void)
{
    static const struct {
        const char *path;
        const char *config;
        const char *reason;
    } cases[] = {
        {PLUGIN_WRONG_ABI, "", "expected ABI version 1 to 4, found 5"},
        {PLUGIN_NO_ENTRY, "", "does not export swerve_planner_entry"},
        {PLUGIN_NO_ACT, "", "must all be given"},
        {PLUGIN_BAD, "fail", "the weights are missing"},
        {PLUGIN_UNKNOWN, "", "wants has unknown bits: 0x10"},
        {PLUGIN_NO_OPEN_ON, "", "with SWERVE_WANTS_DEVICE open_on must be given"},
        {PLUGIN_DEVICE, "", "runs on the CPU"},
        {"/proc/self/exe", "", "plugin"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct planner *planner = NULL;
        struct error error = {0};
        EXPECT_INT(open_plugin(cases[i].path, cases[i].config, &planner, &error), STATUS_PLANNER);
        EXPECT_CONTAINS(error.text, cases[i].reason);
        EXPECT(planner == NULL);
    }
}

/* Its table is shorter, and bits that meant nothing when it was made still do. */
static void a_plugin_of_version_1_runs_unchanged(void)
{
    const struct swerve_place places[] = {{-1, "cpu"}, {0, "cuda:sm_90"}};
    struct error error = {0};
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        struct planner *planner = NULL;
        const struct planner_config config = {.session_count = 3, .place = &places[i]};
        EXPECT_OK(planner_open("plugin:" PLUGIN_OLD, &config, &planner, &error), error);
        EXPECT_INT(planner_wants(planner), SWERVE_WANTS_BEV | SWERVE_WANTS_CAMERAS);
        const struct swerve_episode episode = {.session = 2};
        EXPECT_OK(planner_reset(planner, &episode, &error), error);
        const struct swerve_observation seen = {.session = 2};
        struct swerve_action action;
        uint8_t failed;
        EXPECT_OK(planner_act(planner, 1, &seen, &action, &failed, &error), error);
        EXPECT(failed == 0 && action.accel_mps2 == 0.5 && action.steer_rad == 0.125);
        planner_close(planner);
    }
}

/* The built-in planner that is shown what a lidar finds, and no map. */
static void the_reference_wants_returns_alone(void)
{
    struct planner *planner = NULL;
    struct error error = {0};
    const struct planner_config config = {.session_count = 1};
    EXPECT_OK(planner_open("builtin:reference", &config, &planner, &error), error);
    EXPECT_INT(planner_wants(planner),
               SWERVE_WANTS_BEV | PLANNER_WANTS_RETURNS | SWERVE_WANTS_SIGNALS);
    planner_close(planner);
}

static void host_survives_a_bad_plugin(void)
{
    struct planner *planner = NULL;
    struct error error = {0};
    EXPECT_OK(open_plugin(PLUGIN_BAD, "", &planner, &error), error);
    struct swerve_episode episode = {.session = 1};
    EXPECT_INT(planner_reset(planner, &episode, &error), STATUS_PLANNER);
    EXPECT_CONTAINS(error.text, "eeee");
    EXPECT(planner_alive(planner));
    episode.session = 0;
    EXPECT_OK(planner_reset(planner, &episode, &error), error);
    /* Session 2 gets no answer: what the array held before must not pass for one. */
    struct swerve_observation seen[2] = {{.session = 0}, {.session = 2}};
    struct swerve_action actions[2] = {{0.1, 0.1}, {0.2, 0.2}};
    uint8_t failed[2] = {1, 1};
    EXPECT_OK(planner_act(planner, 2, seen, actions, failed, &error), error);
    EXPECT_INT(failed[0], 0);
    EXPECT_NEAR(actions[0].accel_mps2, 1.0, 0.0);
    EXPECT_INT(failed[1], 1);
    EXPECT_CONTAINS(planner_session_error(planner, 2), "not finite");
    EXPECT_TEXT(planner_session_error(planner, 0), "");
    /* No fork in its table: sessions hold no memory, which is allowed. */
    EXPECT_OK(planner_fork(planner, 0, 1, &error), error);
    seen[0].tick = 99;
    EXPECT_INT(planner_act(planner, 1, seen, actions, failed, &error), STATUS_PLANNER);
    EXPECT_CONTAINS(error.text, "gave no reason");
    EXPECT(!planner_alive(planner));
    EXPECT_INT(planner_reset(planner, &episode, &error), STATUS_PLANNER);
    EXPECT_INT(planner_fork(planner, 0, 1, &error), STATUS_PLANNER);
    planner_end(planner, 0);
    planner_close(planner);
    planner_close(NULL);
}

/* Goal: a plugin that hangs or crashes when it is opened is named, and the caller goes on. */
static void a_trial_outlives_the_plugin(void)
{
    static const struct {
        const char *spec;
        const char *reason;
    } cases[] = {
        {"plugin:" PLUGIN_BAD "?hang", "no return within"},
        {"plugin:" PLUGIN_BAD "?trap", "was ended by signal"},
        {"plugin:" PLUGIN_BAD "?fail", "the weights are missing"},
    };
    struct error error = {0};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        EXPECT_INT(
            planner_try(cases[i].spec, NULL, NULL, false, i == 0 ? 300 : 60000, NULL, &error),
            STATUS_PLANNER);
        EXPECT_CONTAINS(error.text, cases[i].reason);
        EXPECT(waitpid(-1, NULL, WNOHANG) < 0); /* no child is left */
    }
    EXPECT_OK(planner_try("plugin:" PLUGIN_EXAMPLE, NULL, NULL, false, 60000, NULL, &error), error);
    EXPECT_OK(planner_try("builtin:reference", NULL, NULL, false, 60000, NULL, &error), error);
}

int main(void)
{
    return TEST_RUN(TEST(specs_are_checked), TEST(command_lines_are_split),
                    TEST(identity_follows_content), TEST(identities_differ),
                    TEST(files_that_are_named_are_bounded), TEST(example_plugin_drives),
                    TEST(wrong_plugins_are_refused), TEST(a_plugin_of_version_1_runs_unchanged),
                    TEST(the_reference_wants_returns_alone), TEST(host_survives_a_bad_plugin),
                    TEST(a_trial_outlives_the_plugin));
}
