/*
 * Sight of a confined planner.
 *
 * Goal: the list holds what a planner needs to start, wherever its Python lives, and nothing else;
 * above all nothing of a store, and nothing because whoever submitted a job named it.
 * Method: a made-up home directory with a project, virtual environments, pyenv, keys and a store.
 * The list is made for one command line after the other and asked about paths. Nothing is run, so
 * this needs no namespaces.
 */
#include "worker/planner/planner_sight.h"

#include "base/check.h"
#include "tests/harness.h"

#include <errno.h>
#include <ftw.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char top[64];

static const char *at(const char *path)
{
    static char full[4][LIMIT_PATH_BYTES];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(full[turn], sizeof full[turn], "%s/%s", top, path);
    return full[turn];
}

static void make_directory(const char *path)
{
    char full[LIMIT_PATH_BYTES];
    snprintf(full, sizeof full, "%s", at(path));
    for (char *slash = strchr(full + strlen(top) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        CHECK(mkdir(full, 0755) == 0 || errno == EEXIST);
        *slash = '/';
    }
    CHECK(mkdir(full, 0755) == 0 || errno == EEXIST);
}

static void make_file(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(at(path), "w");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
    CHECK(chmod(at(path), mode) == 0);
}

static void make_store(const char *path)
{
    uint8_t header[100] = "SQLite format 3";
    memcpy(header + 68, "SWRV", 4);
    FILE *file = fopen(at(path), "w");
    CHECK(file != NULL && fwrite(header, sizeof header, 1, file) == 1 && fclose(file) == 0);
}

static void make_socket(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%.100s", at(path));
    CHECK(fd >= 0 && bind(fd, (const struct sockaddr *)&address, sizeof address) == 0);
    close(fd);
}

static void make_home(void)
{
    static const char *const directories[] = {"home/.ssh",
                                              "home/.aws",
                                              "home/project/package",
                                              "home/project/sub",
                                              "home/project/deep/er",
                                              "home/project/notes",
                                              "home/project/.venv/bin",
                                              "home/project/.venv/lib/python3.11",
                                              "home/.pyenv/shims",
                                              "home/.pyenv/libexec",
                                              "home/.pyenv/versions/3.11/bin",
                                              "home/.pyenv/versions/3.11/lib/python3.11",
                                              "home/.local/bin",
                                              "home/.local/share/keyrings",
                                              "elsewhere/lib",
                                              "store",
                                              "mixed/planners",
                                              "outside"};
    for (size_t i = 0; i < COUNT_OF(directories); i++) {
        make_directory(directories[i]);
    }
    make_file("home/.ssh/id_ed25519", "key", 0600);
    make_file("home/.aws/credentials", "key", 0644);
    make_file("home/diary.txt", "dear diary", 0644);
    make_file("home/tool.py", "", 0644);
    make_file("home/project/planner.py", "", 0644);
    make_file("home/project/helper.py", "", 0644);
    make_file("home/project/package/__init__.py", "", 0644);
    make_file("home/project/package/weights.bin", "", 0644);
    make_file("home/project/sub/other.py", "", 0644);
    make_file("home/project/sub/beside.py", "", 0644);
    make_file("home/project/deep/above.py", "", 0644);
    make_file("home/project/deep/er/named.py", "", 0644);
    make_file("home/project/model.pt", "", 0644);
    make_file("home/project/config.yaml", "", 0644);
    make_file("home/project/secret.yaml", "", 0600);
    make_file("home/project/.env", "KEY=1", 0644);
    make_file("home/project/key.pem", "-----BEGIN PRIVATE KEY-----", 0644);
    make_file("home/project/token", "a token", 0644);
    make_file("home/project/notes/todo.md", "", 0644);
    make_file("home/project/.venv/pyvenv.cfg", "", 0644);
    make_file("home/.pyenv/shims/python3", "#!/usr/bin/env bash\n", 0755);
    make_file("home/.pyenv/versions/3.11/bin/python3.11", "", 0755);
    make_file("home/.local/bin/run-planner",
              "#!"
              "/bin/sh\n",
              0755);
    make_file("elsewhere/lib/libextra.so.1", "", 0644);
    make_file("elsewhere/lib/readme", "", 0644);
    make_file("outside/planner", "", 0755);
    make_file("mixed/planners/planner.py", "", 0644);
    make_store("home/project/jobs.db");
    make_store("mixed/data.bin");
    make_socket("home/project/jobs.db.sock");
    make_directory("home/project/jobs.db.artifacts/ab");
    make_file("home/project/jobs.db.artifacts/ab/cd.json", "{}", 0644);
    CHECK(symlink("../../../.pyenv/versions/3.11/bin/python3.11",
                  at("home/project/.venv/bin/python")) == 0);
    CHECK(symlink("/etc", at("home/project/etc")) == 0);
    setenv("HOME", at("home"), 1);
    setenv("PYTHONPATH", at("home/project/sub"), 1);
    setenv("LD_LIBRARY_PATH", at("elsewhere/lib"), 1);
}

/* A worker's directory with links in it. */
static void make_links(void)
{
    static const char *const links[][2] = {
        {"../outside", "links/data"},
        {"../outside/weights.bin", "links/weights.bin"},
        {"sub", "links/inner"},
        {"sub/model.pt", "links/model.pt"},
        {"sub/key.pem", "links/key.bin"},
        {"sub/private.json", "links/private.json"},
        {".hidden", "links/shown"},
        {"../links/back", "outside/round"},
        {"../outside/round", "links/about"},
        {"../../outside/code.py", "links/sub/code.py"},
        {"../outside/planner", "links/planner"},
        {"../given", "links/given"},
        {"/usr", "links/system"},
    };
    make_directory("links/sub");
    make_directory("links/back");
    make_directory("links/.hidden");
    make_directory("given");
    make_file("outside/weights.bin", "", 0644);
    make_file("outside/code.py", "", 0644);
    make_file("outside/settings.json", "", 0644);
    make_file("links/back/model.npz", "", 0644);
    make_file("links/.hidden/model.npz", "", 0644);
    make_file("links/sub/model.pt", "", 0644);
    make_file("links/sub/named.py", "", 0644);
    make_file("links/sub/key.pem", "", 0644);
    make_file("links/sub/private.json", "", 0600);
    make_file("given/model.npz", "", 0644);
    for (size_t i = 0; i < COUNT_OF(links); i++) {
        CHECK(symlink(links[i][0], at(links[i][1])) == 0);
    }
    CHECK(symlink(at("outside/settings.json"), at("links/link.json")) == 0);
}

static const struct planner_confinement nothing_given = {.sandbox = true};

/* The list for a command line, in the directory of the worker. */
static enum status make(const char *directory, const char *command,
                        const struct planner_confinement *confinement, struct planner_sight **out,
                        struct error *error)
{
    static struct planner_argv words;
    char program[LIMIT_PATH_BYTES];
    CHECK(chdir(at(directory)) == 0);
    EXPECT_OK(planner_argv_parse(command, &words, error), *error);
    EXPECT_OK(planner_program_find(words.argv[0], program, error), *error);
    return planner_sight_make(confinement, &words, program, out, error);
}

static void expect_sight(const struct planner_sight *sight, const char *const *seen,
                         size_t seen_count, const char *const *unseen, size_t unseen_count)
{
    for (size_t i = 0; i < seen_count; i++) {
        if (!planner_sight_holds(sight, at(seen[i]))) {
            TEST_FAIL("%s is not in sight", seen[i]);
        }
    }
    for (size_t i = 0; i < unseen_count; i++) {
        if (planner_sight_holds(sight, at(unseen[i]))) {
            TEST_FAIL("%s is in sight", unseen[i]);
        }
    }
}

/* Never, whatever the command line says. */
static const char *const secrets[] = {
    "home",
    "home/project",
    "home/.ssh/id_ed25519",
    "home/.aws/credentials",
    "home/.local/share/keyrings",
    "home/diary.txt",
    "home/tool.py",
    "home/project/.env",
    "home/project/key.pem",
    "home/project/token",
    "home/project/secret.yaml",
    "home/project/jobs.db",
    "home/project/jobs.db.sock",
    "home/project/jobs.db.artifacts/ab/cd.json",
    "mixed/data.bin",
    "outside/planner",
    "elsewhere/lib/readme",
};

static void code_and_named_files_are_seen(void)
{
    static const char *const seen[] = {
        "home/project/planner.py",          "home/project/helper.py",
        "home/project/package/weights.bin", "home/project/model.pt",
        "home/project/config.yaml",         "home/project/sub/beside.py",
        "elsewhere/lib/libextra.so.1"};
    static const char *const unnamed[] = {"home/project/notes/todo.md", "home/project/.venv"};
    struct planner_sight *sight = NULL;
    struct error error;
    EXPECT_OK(make("home/project",
                   "/bin/sh planner.py model.pt deep/er/named.py --config=config.yaml",
                   &nothing_given, &sight, &error),
              error);
    expect_sight(sight, seen, COUNT_OF(seen), secrets, COUNT_OF(secrets));
    expect_sight(sight, NULL, 0, unnamed, COUNT_OF(unnamed));
    EXPECT(planner_sight_holds(sight, "/usr/bin/env"));
    EXPECT(!planner_sight_holds(sight, "/etc/shadow"));
    EXPECT(!planner_sight_holds(sight, "/dev/zero"));
    EXPECT(!planner_sight_holds(sight, "/opt"));
    planner_sight_free(sight);
}

static void naming_shows_nothing_that_is_not_a_planners(void)
{
    static const char *const commands[] = {
        "/bin/sh jobs.db jobs.db.sock jobs.db.artifacts jobs.db.artifacts/ab/cd.json",
        "/bin/sh key.pem token .env secret.yaml ../diary.txt ../.aws/credentials",
        "/bin/sh --key=../.ssh/id_ed25519 --env=.env ../tool.py . ..",
        "/bin/sh etc/shadow etc /etc/shadow ./sub/../../tool.py",
        "/bin/sh ../../mixed/data.bin ../../outside/planner",
    };
    for (size_t i = 0; i < COUNT_OF(commands); i++) {
        struct planner_sight *sight = NULL;
        struct error error;
        EXPECT_OK(make("home/project", commands[i], &nothing_given, &sight, &error), error);
        expect_sight(sight, NULL, 0, secrets, COUNT_OF(secrets));
        EXPECT(!planner_sight_holds(sight, "/etc/shadow"));
        planner_sight_free(sight);
    }
}

/* Goal: a word is judged by where it really leads, whichever of its components is the link. */
static void links_lead_to_nothing_else(void)
{
    static const struct {
        const char *command;
        const char *place; /* as it is named */
        const char *link;  /* that is told of; NULL: it is shown */
        const char *leads_to;
    } cases[] = {
        {"/bin/sh data/weights.bin", "links/data/weights.bin", "links/data", "outside"},
        {"/bin/sh --weights=data/weights.bin", "links/data/weights.bin", "links/data", "outside"},
        {"/bin/sh ./data/weights.bin", "links/data/weights.bin", "links/data", "outside"},
        {"/bin/sh link.json", "links/link.json", "links/link.json", "outside/settings.json"},
        {"/bin/sh weights.bin", "links/weights.bin", "links/weights.bin", "outside/weights.bin"},
        {"/bin/sh key.bin", "links/key.bin", "links/key.bin", "links/sub/key.pem"},
        {"/bin/sh private.json", "links/private.json", "links/private.json",
         "links/sub/private.json"},
        {"/bin/sh shown/model.npz", "links/shown/model.npz", "links/shown", "links/.hidden"},
        {"./planner", "links/planner", "links/planner", "outside/planner"},
        {"data/planner", "links/data/planner", "links/data", "outside"},
        {"/bin/sh inner/model.pt", "links/inner/model.pt", NULL, NULL},
        {"/bin/sh model.pt", "links/model.pt", NULL, NULL},
        {"/bin/sh about/model.npz", "links/about/model.npz", NULL, NULL},
        {"/bin/sh given/model.npz", "links/given/model.npz", NULL, NULL},
        {"/bin/sh system/bin/env", "links/system/bin/env", NULL, NULL},
    };
    static const char *const never[] = {"outside/weights.bin",    "outside/settings.json",
                                        "outside/planner",        "links/sub/key.pem",
                                        "links/sub/private.json", "links/.hidden/model.npz"};
    char path[LIMIT_PATH_BYTES];
    const char *const given[] = {path};
    const struct planner_confinement confinement = {
        .sandbox = true, .paths = given, .path_count = 1};
    snprintf(path, sizeof path, "%s", at("given"));
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct planner_sight *sight = NULL;
        struct error error;
        EXPECT_OK(make("links", cases[i].command, &confinement, &sight, &error), error);
        expect_sight(sight, NULL, 0, never, COUNT_OF(never));
        if (planner_sight_holds(sight, at(cases[i].place)) != (cases[i].link == NULL) ||
            (sight->unseen[0] == '\0') != (cases[i].link == NULL)) {
            TEST_FAIL("%s: %s", cases[i].command, sight->unseen);
        }
        if (cases[i].link != NULL) {
            EXPECT_CONTAINS(sight->unseen, at(cases[i].link));
            EXPECT_CONTAINS(sight->unseen, " leads to ");
            EXPECT_CONTAINS(sight->unseen, at(cases[i].leads_to));
        }
        planner_sight_free(sight);
    }
}

/* Goal: code beside a file that is named shows nothing by links either. */
static void code_beside_what_is_named_is_judged_too(void)
{
    static const char *const seen[] = {"links/sub/named.py"};
    static const char *const unseen[] = {"links/sub/code.py", "outside/code.py"};
    struct planner_sight *sight = NULL;
    struct error error;
    EXPECT_OK(make("links", "/bin/sh sub/named.py", &nothing_given, &sight, &error), error);
    expect_sight(sight, seen, COUNT_OF(seen), unseen, COUNT_OF(unseen));
    planner_sight_free(sight);
}

static void a_home_is_nobodys_planner_directory(void)
{
    static const char *const directories[] = {"home", ""};
    for (size_t i = 0; i < COUNT_OF(directories); i++) {
        struct planner_sight *sight = NULL;
        struct error error;
        setenv("PYTHONPATH", at("home"), 1);
        EXPECT_OK(make(directories[i], "/bin/sh tool.py project/model.pt home/project/model.pt",
                       &nothing_given, &sight, &error),
                  error);
        expect_sight(sight, NULL, 0, secrets, COUNT_OF(secrets));
        EXPECT(!planner_sight_holds(sight, at("home/project/model.pt")));
        planner_sight_free(sight);
    }
    setenv("PYTHONPATH", at("home/project/sub"), 1);
}

static void installations_are_found(void)
{
    static const char *const of_venv[] = {
        "home/project/.venv/bin/python", "home/project/.venv/lib/python3.11",
        "home/project/.venv/pyvenv.cfg", "home/.pyenv/versions/3.11/bin/python3.11",
        "home/.pyenv/versions/3.11/lib/python3.11"};
    static const char *const of_pyenv[] = {"home/.pyenv/shims/python3", "home/.pyenv/libexec",
                                           "home/.pyenv/versions/3.11/lib/python3.11"};
    static const char *const alone[] = {"home/.local/bin/run-planner"};
    static const struct {
        const char *command;
        const char *const *seen;
        size_t count;
    } cases[] = {
        {".venv/bin/python planner.py", of_venv, COUNT_OF(of_venv)},
        {"python3 planner.py", of_pyenv, COUNT_OF(of_pyenv)},
        {"run-planner", alone, COUNT_OF(alone)},
    };
    char path[3 * LIMIT_PATH_BYTES];
    snprintf(path, sizeof path, "%s:%s:/usr/bin:/bin", at("home/.pyenv/shims"),
             at("home/.local/bin"));
    setenv("PATH", path, 1);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct planner_sight *sight = NULL;
        struct error error;
        EXPECT_OK(make("home/project", cases[i].command, &nothing_given, &sight, &error), error);
        expect_sight(sight, cases[i].seen, cases[i].count, secrets, COUNT_OF(secrets));
        planner_sight_free(sight);
    }
    setenv("PATH", "/usr/bin:/bin", 1);
}

/* A program outside of PATH and of the worker's directory is the submitter's idea. */
static void programs_of_nobodys_choice_stay_unseen(void)
{
    struct planner_sight *sight = NULL;
    struct error error;
    EXPECT_OK(make("home/project", at("outside/planner"), &nothing_given, &sight, &error), error);
    expect_sight(sight, NULL, 0, secrets, COUNT_OF(secrets));
    planner_sight_free(sight);
}

static void what_is_given_is_seen_unless_a_store_is_in_it(void)
{
    static const char *const refused[] = {"mixed",
                                          "home/project",
                                          "home/project/jobs.db",
                                          "home/project/jobs.db.sock",
                                          "home/project/jobs.db.artifacts",
                                          "home",
                                          "."};
    struct planner_sight *sight = NULL;
    struct error error;
    const char *given[1] = {at("mixed/planners")};
    struct planner_confinement confinement = {.sandbox = true, .paths = given, .path_count = 1};
    EXPECT_OK(make("outside", "/bin/sh", &confinement, &sight, &error), error);
    EXPECT(planner_sight_holds(sight, at("mixed/planners/planner.py")));
    planner_sight_free(sight);
    for (size_t i = 0; i < COUNT_OF(refused); i++) {
        given[0] = at(refused[i]);
        EXPECT_INT(make("outside", "/bin/sh", &confinement, &sight, &error), STATUS_USAGE);
        EXPECT_CONTAINS(error.text, "a store or socket lies where planners can see it");
    }
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info;
    (void)kind;
    (void)place;
    return remove(path);
}

int main(void)
{
    strcpy(top, "/tmp/swerve-sight-XXXXXX");
    CHECK(mkdtemp(top) != NULL);
    make_home();
    make_links();
    int failed = TEST_RUN(
        TEST(code_and_named_files_are_seen), TEST(naming_shows_nothing_that_is_not_a_planners),
        TEST(links_lead_to_nothing_else), TEST(code_beside_what_is_named_is_judged_too),
        TEST(a_home_is_nobodys_planner_directory), TEST(installations_are_found),
        TEST(programs_of_nobodys_choice_stay_unseen),
        TEST(what_is_given_is_seen_unless_a_store_is_in_it));
    CHECK(chdir("/") == 0);
    nftw(top, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    return failed;
}
