/*
 * Artifacts in a bucket: requests that a server of the tests' own finds rightly signed, copies on
 * several machines, and what comes of refusals, overload, cut connections and damage. argv[1]: that
 * server (s3_server.py), whose buckets and faults are files in a directory of the test's own.
 *
 * A "machine" is a folder of copies. Pauses between tries are real time, and no test waits for less
 * than what they are meant to outlast.
 */
#include "base/check.h"
#include "base/file.h"
#include "store/artifacts/artifacts.h"
#include "store/keep/gc.h"
#include "store/objects/object_storage.h"
#include "store/postgres/postgres_store.h"
#include "tests/harness.h"
#include "tests/store/http/http_support.h"
#include "tests/store/objects/s3_site.h"
#include "tests/store/postgres/postgres_site.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BIG_BYTES = 3000000 };

static struct error error;
static struct postgres_site site;

static const char *path_of(const char *name)
{
    static char paths[8][320];
    static unsigned next;
    char *path = paths[next++ % COUNT_OF(paths)];
    snprintf(path, sizeof paths[0], "%s/%s", support_directory(), name);
    return path;
}

static void put(const char *name, const char *text)
{
    EXPECT_OK(file_replace(path_of(name), text, strlen(text), 0600, &error), error);
}

static int count_seen(const char *begin)
{
    char text[512];
    int count = 0;
    FILE *file = fopen(path_of("seen"), "r");
    while (file != NULL && fgets(text, sizeof text, file) != NULL) {
        count += strncmp(text, begin, strlen(begin)) == 0 ? 1 : 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return count;
}

/* ---- machines ---- */

struct machine {
    struct artifacts artifacts;
    struct object_storage *objects;
};

static void begin(struct machine *machine, const char *name)
{
    s3_site_keys();
    unlink(path_of("fault"));
    unlink(path_of("seen"));
    EXPECT_OK(artifacts_open_shared(path_of(name), &machine->artifacts, &error), error);
    EXPECT_OK(object_storage_open("s3://traces/of/tests", &machine->objects, &error), error);
    machine->artifacts.objects = machine->objects;
}

static void end(struct machine *machine)
{
    object_storage_close(machine->objects);
}

static const char *object_of(const char *hash)
{
    char name[160];
    snprintf(name, sizeof name, "traces/of/tests/%.2s/%.64s.zst", hash, hash);
    return path_of(name);
}

static void expect_content(struct machine *machine, const char *hash, const char *content,
                           size_t content_bytes)
{
    void *data = NULL;
    size_t bytes = 0;
    EXPECT_OK(artifacts_get(&machine->artifacts, hash, &data, &bytes, &error), error);
    EXPECT(bytes == content_bytes && memcmp(data, content, bytes) == 0);
    free(data);
}

/* ---- tests ---- */

static void what_one_machine_stores_another_reads(void)
{
    static char big[BIG_BYTES];
    struct machine one;
    struct machine two;
    char hashes[3][SHA256_HEX_BYTES];
    bool exists = false;
    begin(&one, "one");
    begin(&two, "two");
    for (size_t i = 0; i < sizeof big; i++) {
        big[i] = (char)(i * i % 251);
    }
    const struct {
        const char *data;
        size_t bytes;
    } contents[] = {{"", 0}, {"a trace", 7}, {big, sizeof big}};
    for (size_t i = 0; i < COUNT_OF(contents); i++) {
        EXPECT_OK(
            artifacts_put(&one.artifacts, contents[i].data, contents[i].bytes, hashes[i], &error),
            error);
        EXPECT_INT(access(object_of(hashes[i]), R_OK), 0);
        EXPECT_OK(artifacts_exists(&two.artifacts, hashes[i], &exists, &error), error);
        EXPECT(exists);
        expect_content(&two, hashes[i], contents[i].data, contents[i].bytes);
    }
    /* By now each has its copy: nothing is asked for. */
    int asked = count_seen("");
    for (size_t i = 0; i < COUNT_OF(contents); i++) {
        expect_content(&one, hashes[i], contents[i].data, contents[i].bytes);
        expect_content(&two, hashes[i], contents[i].data, contents[i].bytes);
    }
    EXPECT_INT(count_seen(""), asked);
    end(&one);
    end(&two);
}

static void pieces_go_and_come_as_wholes_do(void)
{
    struct machine one;
    struct machine two;
    struct artifact_writer *writer = NULL;
    struct artifact_reader *reader = NULL;
    char hash[SHA256_HEX_BYTES];
    char back[32];
    bool packed = false;
    size_t bytes = 0;
    begin(&one, "one");
    begin(&two, "two");
    sha256_hex("piece by piece", 14, hash);
    EXPECT_OK(artifact_writer_open(&one.artifacts, 14, false, &writer, &error), error);
    EXPECT_OK(artifact_writer_write(writer, "piece by ", 9, &error), error);
    EXPECT_OK(artifact_writer_write(writer, "piece", 5, &error), error);
    EXPECT_OK(artifact_writer_finish(writer, hash, &error), error);
    EXPECT_OK(artifact_reader_open(&two.artifacts, hash, &packed, &reader, &bytes, &error), error);
    EXPECT_INT(bytes, 14);
    EXPECT_OK(artifact_reader_read(reader, back, sizeof back, &bytes, &error), error);
    EXPECT(bytes == 14 && memcmp(back, "piece by piece", 14) == 0);
    artifact_reader_close(reader);
    end(&one);
    end(&two);
}

static void what_is_not_there_is_not_found(void)
{
    struct machine one;
    void *data = NULL;
    size_t bytes = 0;
    char hash[SHA256_HEX_BYTES];
    bool exists = true;
    begin(&one, "one");
    sha256_hex("never stored", 12, hash);
    EXPECT_OK(artifacts_exists(&one.artifacts, hash, &exists, &error), error);
    EXPECT(!exists);
    EXPECT_INT(artifacts_get(&one.artifacts, hash, &data, &bytes, &error), STATUS_NOT_FOUND);
    EXPECT(strstr(error.text, "s3://traces/of/tests at http://127.0.0.1:") != NULL);
    end(&one);
}

static void overload_and_cut_connections_are_outlasted(void)
{
    static const char *const faults[] = {"2 503", "1 429", "1 500", "1 cut"};
    struct machine one;
    struct machine two;
    char hash[SHA256_HEX_BYTES];
    char text[32];
    begin(&one, "one");
    begin(&two, "two");
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        snprintf(text, sizeof text, "outlasts %zu", i);
        put("fault", i < 3 ? faults[i] : "0 -");
        EXPECT_OK(artifacts_put(&one.artifacts, text, strlen(text), hash, &error), error);
        put("fault", faults[i]);
        expect_content(&two, hash, text, strlen(text));
    }
    EXPECT_INT(count_seen("503 "), 4); /* of a PUT and of a GET */
    EXPECT_INT(count_seen("429 "), 2);
    EXPECT_INT(count_seen("500 "), 2);
    end(&one);
    end(&two);
}

static void a_refusal_stores_nothing_and_says_why(void)
{
    struct machine other;
    char hash[SHA256_HEX_BYTES];
    char copy[512];
    char none[SHA256_HEX_BYTES] = "";
    void *data = NULL;
    size_t bytes = 0;
    const struct {
        const char *variable;
        const char *value;
        const char *said;
    } wrong[] = {{"AWS_SECRET_ACCESS_KEY", "another", "SignatureDoesNotMatch: as the test says"},
                 {"AWS_ACCESS_KEY_ID", "nobody", "InvalidAccessKeyId"},
                 {"AWS_SESSION_TOKEN", "stale", "InvalidToken"}};
    sha256_hex("refused", 7, hash);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        begin(&other, "other");
        snprintf(copy, sizeof copy, "%.400s/%.2s/%.64s.zst", other.artifacts.path, hash, hash);
        setenv(wrong[i].variable, wrong[i].value, 1);
        EXPECT_INT(artifacts_put(&other.artifacts, "refused", 7, none, &error), STATUS_IO);
        EXPECT(strstr(error.text, "HTTP 403") != NULL && none[0] == '\0');
        EXPECT(access(object_of(hash), F_OK) != 0 && access(copy, F_OK) != 0);
        /* To a HEAD no reason is given. */
        EXPECT_INT(artifacts_get(&other.artifacts, hash, &data, &bytes, &error), STATUS_IO);
        EXPECT(strstr(error.text, wrong[i].said) != NULL);
        EXPECT(strstr(error.text, "another") == NULL);
        end(&other);
    }
    /* A bucket that goes full after it was looked into: the copy is not there before the object. */
    begin(&other, "other");
    put("fault", "1000 PUT");
    EXPECT_INT(artifacts_put(&other.artifacts, "refused", 7, none, &error), STATUS_IO);
    EXPECT(strstr(error.text, "QuotaExceeded") != NULL);
    EXPECT(access(object_of(hash), F_OK) != 0 && access(copy, F_OK) != 0);
    end(&other);
}

static void a_session_and_a_file_of_keys_are_taken(void)
{
    struct machine one;
    char hash[SHA256_HEX_BYTES];
    begin(&one, "one");
    setenv("AWS_SESSION_TOKEN", "session==", 1);
    EXPECT_OK(artifacts_put(&one.artifacts, "in a session", 12, hash, &error), error);
    unsetenv("AWS_SESSION_TOKEN");
    unsetenv("AWS_ACCESS_KEY_ID");
    setenv("AWS_SHARED_CREDENTIALS_FILE", path_of("keys"), 1);
    unlink(path_of("keys"));
    EXPECT_INT(artifacts_put(&one.artifacts, "by a file", 9, hash, &error), STATUS_IO);
    EXPECT(strstr(error.text, "object storage needs keys") != NULL);
    put("keys", "[default]\naws_access_key_id = nobody\n# a comment = none\n[fleet]\n"
                "aws_access_key_id=AKIATEST\n aws_secret_access_key = secret/with+signs \n");
    EXPECT_INT(artifacts_put(&one.artifacts, "by a file", 9, hash, &error), STATUS_IO);
    EXPECT(strstr(error.text, "it does not have both") != NULL);
    setenv("AWS_PROFILE", "fleet", 1);
    EXPECT_OK(artifacts_put(&one.artifacts, "by a file", 9, hash, &error), error);
    unsetenv("AWS_PROFILE");
    unsetenv("AWS_SHARED_CREDENTIALS_FILE");
    end(&one);
}

static void a_damaged_object_is_never_given(void)
{
    struct machine one;
    struct machine two;
    struct machine three;
    struct artifact_reader *reader = NULL;
    char hash[SHA256_HEX_BYTES];
    char other[SHA256_HEX_BYTES];
    bool packed = false;
    void *data = NULL;
    size_t bytes = 0;
    begin(&one, "one");
    begin(&two, "two");
    EXPECT_OK(artifacts_put(&one.artifacts, "whole", 5, hash, &error), error);
    EXPECT_INT(truncate(object_of(hash), 9), 0);
    EXPECT_INT(artifacts_get(&two.artifacts, hash, &data, &bytes, &error), STATUS_IO);
    EXPECT(strstr(error.text, "damaged") != NULL);
    /* Another artifact's bytes, to either way of reading. */
    EXPECT_OK(artifacts_put(&one.artifacts, "other", 5, other, &error), error);
    EXPECT_INT(unlink(object_of(hash)), 0);
    EXPECT_INT(link(object_of(other), object_of(hash)), 0);
    EXPECT_INT(artifacts_get(&two.artifacts, hash, &data, &bytes, &error), STATUS_IO);
    EXPECT(strstr(error.text, "s3://traces/of/tests at http://") != NULL);
    EXPECT(strstr(error.text, "not those of its name") != NULL);
    EXPECT_INT(artifact_reader_open(&two.artifacts, hash, &packed, &reader, &bytes, &error),
               STATUS_IO);
    /* No copy of that stays: the object is read again once it is whole. */
    EXPECT_INT(unlink(object_of(hash)), 0);
    begin(&three, "three");
    EXPECT_OK(artifacts_put(&three.artifacts, "whole", 5, hash, &error), error);
    expect_content(&two, hash, "whole", 5);
    end(&one);
    end(&two);
    end(&three);
}

/* Buckets have rules that expire objects; a copy that is here does not stand for its object. */
static void a_lost_object_is_stored_again(void)
{
    const struct timespec long_ago[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    struct machine one;
    char hash[SHA256_HEX_BYTES];
    char copy[512];
    bool exists = true;
    begin(&one, "one");
    EXPECT_OK(artifacts_put(&one.artifacts, "lost", 4, hash, &error), error);
    EXPECT_INT(unlink(object_of(hash)), 0);
    snprintf(copy, sizeof copy, "%.400s/%.2s/%.64s.zst", one.artifacts.path, hash, hash);
    EXPECT_INT(utimensat(AT_FDCWD, copy, long_ago, 0), 0);
    EXPECT_OK(artifacts_exists(&one.artifacts, hash, &exists, &error), error);
    EXPECT(!exists);
    EXPECT_OK(artifacts_put(&one.artifacts, "lost", 4, hash, &error), error);
    EXPECT_INT(access(object_of(hash), R_OK), 0);
    EXPECT_INT(utimensat(AT_FDCWD, copy, long_ago, 0), 0);
    EXPECT_OK(artifacts_exists(&one.artifacts, hash, &exists, &error), error);
    EXPECT(exists);
    int asked = count_seen("");
    EXPECT_OK(artifacts_exists(&one.artifacts, hash, &exists, &error), error);
    EXPECT(exists && count_seen("") == asked); /* it was a moment ago */
    /* One that was cut off is none. */
    EXPECT_INT(unlink(copy), 0);
    EXPECT_INT(truncate(object_of(hash), 0), 0);
    EXPECT_OK(artifacts_exists(&one.artifacts, hash, &exists, &error), error);
    EXPECT(!exists);
    end(&one);
}

static void an_answer_without_end_is_not_waited_for(void)
{
    struct machine one;
    char hash[SHA256_HEX_BYTES];
    void *data = NULL;
    size_t bytes = 0;
    begin(&one, "one");
    sha256_hex("endless", 7, hash);
    put("fault", "1 endless");
    EXPECT_INT(artifacts_get(&one.artifacts, hash, &data, &bytes, &error), STATUS_IO);
    EXPECT(strstr(error.text, "HTTP 403 Endless: a ?[31mred? line") != NULL);
    end(&one);
}

/* A machine of its own, whose bucket answers so from the first request on. */
static void expect_no_storage(const char *fault, const char *first, const char *second)
{
    struct machine one;
    char hash[SHA256_HEX_BYTES] = "";
    char text[64];
    bool exists = true;
    begin(&one, "stranger");
    snprintf(text, sizeof text, "told to %.40s", fault);
    sha256_hex(text, strlen(text), hash);
    put("fault", fault);
    enum status looked = artifacts_exists(&one.artifacts, hash, &exists, &error);
    EXPECT(looked != STATUS_OK || !exists);
    EXPECT_INT(object_storage_probe(one.objects, &error), STATUS_IO);
    EXPECT(strstr(error.text, "s3://traces/of/tests at http://127.0.0.1:") != NULL);
    EXPECT(strstr(error.text, first) != NULL && strstr(error.text, second) != NULL);
    hash[0] = '\0';
    EXPECT_INT(artifacts_put(&one.artifacts, text, strlen(text), hash, &error), STATUS_IO);
    EXPECT(hash[0] == '\0');
    end(&one);
}

/* 200 to a HEAD is no object: of a console, a proxy, a folder that is served. */
static void what_answers_and_is_no_storage_is_said(void)
{
    expect_no_storage("1000 console", "HTTP 405", "AWS_ENDPOINT_URL must name its API");
    EXPECT_INT(count_seen("405 PUT"), 2); /* nothing but the probe, each time */
    expect_no_storage("1000 page", "text/html \"<!doctype html>", "AWS_ENDPOINT_URL");
    expect_no_storage("1000 away", "HTTP 307 to http://elsewhere.example/traces/of/tests/probe/",
                      "TemporaryRedirect");
    expect_no_storage("1000 forget", "what was read is something else", "AWS_ENDPOINT_URL");
    expect_no_storage("1000 shorten", "what was read is something else", "AWS_ENDPOINT_URL");
}

/* A storage that was one when it was opened, and is none, or a bad one, later. */
static void what_is_stored_is_looked_at(void)
{
    static const char *const faults[] = {"1000 page", "1000 forget", "1000 shorten"};
    static const char *const said[] = {"it is not there", "it is not there", "and is there with"};
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        struct machine one;
        char copy[512];
        char hash[SHA256_HEX_BYTES] = "";
        begin(&one, "looked");
        EXPECT_OK(object_storage_probe(one.objects, &error), error);
        put("fault", faults[i]);
        EXPECT_INT(artifacts_put(&one.artifacts, faults[i], strlen(faults[i]), hash, &error),
                   STATUS_IO);
        EXPECT(strstr(error.text, said[i]) != NULL && hash[0] == '\0');
        unlink(path_of("fault"));
        EXPECT_OK(artifacts_put(&one.artifacts, faults[i], strlen(faults[i]), hash, &error), error);
        /* Nothing of before is left in the bucket. */
        snprintf(copy, sizeof copy, "%.400s/%.2s/%.64s.zst", one.artifacts.path, hash, hash);
        (void)unlink(copy);
        expect_content(&one, hash, faults[i], strlen(faults[i]));
        end(&one);
    }
    /* One that says no lengths is read for them. */
    struct machine one;
    char hash[SHA256_HEX_BYTES] = "";
    begin(&one, "unsized");
    put("fault", "1000 unsized");
    EXPECT_OK(artifacts_put(&one.artifacts, "of any length", 13, hash, &error), error);
    EXPECT(count_seen("200 GET") >= 2); /* the probe, and this */
    /* That may have no end. */
    put("fault", "1000 longer");
    EXPECT_INT(artifacts_put(&one.artifacts, "of no end", 9, hash, &error), STATUS_IO);
    EXPECT(strstr(error.text, "and is there with") != NULL);
    EXPECT_INT(count_seen("taken to its end"), 0);
    end(&one);
}

/* A HEAD has no body, so its refusal has no code: a GET is asked for that. */
static void a_refused_look_is_repeated_by_reading(void)
{
    struct machine one;
    char hash[SHA256_HEX_BYTES];
    char none[SHA256_HEX_BYTES];
    char copy[512];
    bool exists = false;
    begin(&one, "one");
    EXPECT_OK(artifacts_put(&one.artifacts, "looked for", 10, hash, &error), error);
    snprintf(copy, sizeof copy, "%.400s/%.2s/%.64s.zst", one.artifacts.path, hash, hash);
    EXPECT_INT(unlink(copy), 0);
    put("fault", "1000 HEAD");
    EXPECT_OK(artifacts_exists(&one.artifacts, hash, &exists, &error), error);
    EXPECT(exists);
    sha256_hex("not there", 9, none);
    EXPECT_OK(artifacts_exists(&one.artifacts, none, &exists, &error), error);
    EXPECT(!exists);
    put("fault", "1000 away");
    EXPECT_INT(artifacts_exists(&one.artifacts, hash, &exists, &error), STATUS_IO);
    EXPECT(strstr(error.text, "HTTP 307 to http://elsewhere.example/") != NULL);
    end(&one);
}

static void a_probe_is_played_once(void)
{
    struct machine one;
    char hash[SHA256_HEX_BYTES];
    begin(&one, "one");
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(object_storage_probe(one.objects, &error), error);
        EXPECT_OK(artifacts_put(&one.artifacts, &"abc"[i], 1, hash, &error), error);
    }
    EXPECT_INT(count_seen("200 PUT /traces/of/tests/probe/"), 1);
    EXPECT_INT(count_seen("200 GET /traces/of/tests/probe/"), 1);
    end(&one);
}

/* "The database names its bucket", and nothing goes on that would have to be stored there. */
static void a_store_without_its_storage_is_not_opened(void)
{
    char url[512];
    const struct store_config asks = {.intent = STORE_ASK};
    struct machine unused;
    struct store *store = NULL;
    if (!postgres_site_installed(&site)) {
        printf("# no PostgreSQL server is installed\n");
        EXPECT(getenv("CI") == NULL);
        return;
    }
    begin(&unused, "one");
    EXPECT(postgres_site_make(&site) && postgres_site_schema(&site, 2, url, sizeof url));
    strcpy(strstr(url, "&artifacts="), "&artifacts=s3://traces/fleet2");
    setenv("SWERVE_ARTIFACT_CACHE", path_of("copies/of/c"), 1);
    for (int i = 0; i < 2; i++) { /* the first one made nothing */
        EXPECT_INT(postgres_store_open(url, &asks, &store, &error), STATUS_STORE);
        EXPECT(strstr(error.text, "holds no store") != NULL);
    }
    put("fault", "1000 console");
    EXPECT_INT(postgres_store_open(url, NULL, &store, &error), STATUS_IO);
    EXPECT(strstr(error.text, "s3://traces/fleet2 at http://127.0.0.1:") != NULL);
    unlink(path_of("fault"));
    EXPECT_OK(postgres_store_open(url, NULL, &store, &error), error);
    store->ops->close(store);
    /* Who only asks is told what is there. */
    put("fault", "1000 console");
    EXPECT_OK(postgres_store_open(url, &asks, &store, &error), error);
    store->ops->close(store);
    unlink(path_of("fault"));
    unsetenv("SWERVE_ARTIFACT_CACHE");
    end(&unused);
}

static void a_bucket_that_is_not_there_is_said(void)
{
    struct machine one;
    struct object_storage *objects = NULL;
    char hash[SHA256_HEX_BYTES];
    begin(&one, "one");
    EXPECT_OK(object_storage_open("s3://elsewhere", &objects, &error), error);
    one.artifacts.objects = objects;
    EXPECT_INT(artifacts_put(&one.artifacts, "nowhere", 7, hash, &error), STATUS_IO);
    EXPECT(strstr(error.text, "NoSuchBucket") != NULL);
    object_storage_close(objects);
    end(&one);
}

static void places_that_are_none_are_refused(void)
{
    static const char *const urls[] = {"s3://",          "s3://ab",         "s3://bucket/..",
                                       "s3://bucket//x", "s3://bucket/a b", "s3://bucket/?x",
                                       "s3://bucket/%2e"};
    static const char *const endpoints[] = {"http://storage.example", "ftp://127.0.0.1",
                                            "https://me:secret@storage.example", "storage.example",
                                            "https://storage.example/?x"};
    struct object_storage *objects = NULL;
    char was[64];
    snprintf(was, sizeof was, "%s", getenv("AWS_ENDPOINT_URL"));
    for (size_t i = 0; i < COUNT_OF(urls); i++) {
        EXPECT_INT(object_storage_open(urls[i], &objects, &error), STATUS_USAGE);
    }
    for (size_t i = 0; i < COUNT_OF(endpoints); i++) {
        setenv("AWS_ENDPOINT_URL", endpoints[i], 1);
        EXPECT_INT(object_storage_open("s3://bucket", &objects, &error), STATUS_USAGE);
    }
    setenv("AWS_ENDPOINT_URL", was, 1);
    EXPECT(objects == NULL);
}

/* Two processes of one database on two machines: the database says where the bucket is. */
static void a_database_names_its_bucket(void)
{
    static const char trace[] = "a trace of the fleet";
    char url[512];
    const struct keep_gc_options collect = {.apply = true, .older_than_s = KEEP_GC_OLDER_MIN_S};
    struct keep_gc_summary summary;
    struct machine unused;
    struct store *stores[2] = {NULL, NULL};
    char hash[SHA256_HEX_BYTES];
    void *data = NULL;
    size_t bytes = 0;
    if (!postgres_site_installed(&site)) {
        printf("# no PostgreSQL server is installed\n");
        EXPECT(getenv("CI") == NULL);
        return;
    }
    begin(&unused, "one");
    EXPECT(postgres_site_make(&site) && postgres_site_schema(&site, 1, url, sizeof url));
    *strstr(url, "&artifacts=") = '\0';
    char *end_of_url = url + strlen(url);
    setenv("SWERVE_ARTIFACT_CACHE", path_of("copies/of/a"), 1);
    snprintf(end_of_url, 64, "&artifacts=s3://traces/fleet");
    EXPECT_OK(postgres_store_open(url, NULL, &stores[0], &error), error);
    *end_of_url = '\0';
    setenv("SWERVE_ARTIFACT_CACHE", path_of("copies/of/b"), 1);
    EXPECT_OK(postgres_store_open(url, NULL, &stores[1], &error), error);
    EXPECT_OK(stores[0]->ops->artifact_put(stores[0], trace, sizeof trace, hash, &error), error);
    EXPECT_OK(stores[1]->ops->artifact_get(stores[1], hash, &data, &bytes, &error), error);
    EXPECT(bytes == sizeof trace && memcmp(data, trace, bytes) == 0);
    free(data);
    EXPECT_INT(keep_gc(url, &collect, &summary, &error), STATUS_USAGE);
    EXPECT(strstr(error.text, "bucket") != NULL);
    int probes = count_seen("200 PUT /traces/fleet/probe/");
    EXPECT_INT(probes, 2);
    EXPECT_INT(count_seen("200 PUT /traces/fleet/"), 1 + probes);
    EXPECT_INT(count_seen("200 GET /traces/fleet/"), 1 + probes);
    for (int i = 0; i < 2; i++) {
        stores[i]->ops->close(stores[i]);
    }
    snprintf(end_of_url, 64, "&artifacts=s3://traces/another");
    EXPECT_INT(postgres_store_open(url, NULL, &stores[0], &error), STATUS_CONFLICT);
    unsetenv("SWERVE_ARTIFACT_CACHE");
    end(&unused);
}

static void a_server_that_is_gone_is_said(void)
{
    struct machine one;
    char hash[SHA256_HEX_BYTES];
    begin(&one, "one");
    s3_site_stop();
    EXPECT_INT(artifacts_put(&one.artifacts, "unreached", 9, hash, &error), STATUS_IO);
    end(&one);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    CHECK(s3_site_start(argv[1], support_directory()));
    CHECK(mkdir(path_of("traces"), 0700) == 0);
    int failed = TEST_RUN(
        TEST(what_one_machine_stores_another_reads), TEST(pieces_go_and_come_as_wholes_do),
        TEST(what_is_not_there_is_not_found), TEST(overload_and_cut_connections_are_outlasted),
        TEST(a_refusal_stores_nothing_and_says_why), TEST(a_session_and_a_file_of_keys_are_taken),
        TEST(a_damaged_object_is_never_given), TEST(a_lost_object_is_stored_again),
        TEST(an_answer_without_end_is_not_waited_for), TEST(what_answers_and_is_no_storage_is_said),
        TEST(what_is_stored_is_looked_at), TEST(a_refused_look_is_repeated_by_reading),
        TEST(a_probe_is_played_once), TEST(a_bucket_that_is_not_there_is_said),
        TEST(places_that_are_none_are_refused), TEST(a_database_names_its_bucket),
        TEST(a_store_without_its_storage_is_not_opened), TEST(a_server_that_is_gone_is_said));
    postgres_site_remove(&site);
    return failed;
}
