/*
 * Fuzz target: messages of clients of a session server, and the envelopes in which a relay and its
 * workers pass them on. The input is a JSON array of messages, or, where it is none, one message or
 * envelope of its bytes. Whatever comes, each message is obeyed, or answered
 * by one error with a sentence; every answer is a JSON object with a type, and the pool, whose seat
 * a connection leaves behind, has nobody sitting in the end.
 *
 * The WebSocket is replaced by the calls below, which look at what is said.
 */
#include "base/check.h"
#include "base/utf8.h"
#include "base/websocket/envelope.h"
#include "cli/session/session_talk.h"
#include "store/relay/carried.h"
#include "tests/fuzz/json_mutator.h"
#include "worker/interactive/session.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
bool __wrap_session_picture(const struct session *session, const struct raster_rays *rays,
                            uint8_t *rgb);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max, unsigned seed);

static struct interactive *pool;
static char folder[] = "/dev/shm/swerve-fuzz-session-XXXXXX";
static unsigned said, errors;

/* ---- in place of the wire; the pool's thread shows frames too ---- */

/* No picture of what the driver sees. */
bool __wrap_session_picture(const struct session *session, const struct raster_rays *rays,
                            uint8_t *rgb)
{
    (void)session;
    (void)rays;
    (void)rgb;
    return false;
}

static bool has_type(char *text, const char *type)
{
    CHECK(text != NULL);
    json_t *object = json_loads(text, 0, NULL);
    const char *found = json_string_value(json_object_get(object, "type"));
    CHECK(found != NULL);
    bool same = strcmp(found, type) == 0;
    if (same && strcmp(type, "error") == 0) {
        CHECK(json_string_length(json_object_get(object, "text")) > 0);
    }
    json_decref(object);
    return same;
}

void wire_say(struct lane *lane, char *text)
{
    (void)lane;
    said++;
    errors += has_type(text, "error");
    free(text);
}

void wire_show(struct lane *lane, char *text, const uint8_t *bytes, size_t count)
{
    (void)lane;
    (void)bytes;
    CHECK(count >= SWERVE_ENV_CAMERA_BYTES && has_type(text, "frame"));
    free(text);
}

/* ---- the target ---- */

static void empty_folder(void)
{
    char path[512];
    DIR *directory = opendir(folder);
    CHECK(directory != NULL);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        unlink(path); /* "." and ".." stay */
    }
    closedir(directory);
}

static void clean_up(void)
{
    interactive_close(pool);
    empty_folder();
    rmdir(folder);
}

static void prepare(void)
{
    struct error error;
    if (pool != NULL) {
        return;
    }
    CHECK(mkdtemp(folder) != NULL);
    const struct interactive_options options = {
        .suite = SMOKE_SUITE, .world = "object", .seats = 2, .clock = clock_system()};
    CHECK(interactive_open(&options, &pool, &error) == STATUS_OK);
    atexit(clean_up);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t bytes, size_t max, unsigned seed)
{
    static const char *const texts[] = {"",      "begin",   "act",   "go",    "pause", "back",
                                        "save",  "outcome", "ticks", "none",  "-",     "wheel",
                                        "accel", "steer",   "turns", "paused"};
    return json_mutate(data, bytes, max, seed, texts, COUNT_OF(texts));
}

static void send(struct talk *talk, const char *text, size_t bytes)
{
    unsigned before = errors;
    talk_message(talk, text, bytes);
    CHECK(errors - before <= 1);
}

/* Bytes that are an envelope are those which it makes; bounds are kept, whatever the head says. */
static void take_envelope(const uint8_t *data, size_t bytes)
{
    struct envelope envelope;
    struct error error;
    size_t again = 0;
    if (envelope_read(data, bytes, &envelope, &error) != STATUS_OK) {
        CHECK(error.text[0] != '\0');
        return;
    }
    CHECK(ENVELOPE_HEAD_BYTES + envelope.text_bytes + envelope.byte_count == bytes);
    char *text = envelope_text(&envelope);
    CHECK(text != NULL && strlen(text) == envelope.text_bytes && utf8_valid(text));
    free(text);
    void *made = envelope_make(&envelope, &again);
    CHECK(made != NULL && again == bytes && memcmp(made, data, bytes) == 0);
    free(made);
}

/* Bounds of what a relay keeps of a worker's words. */
static void carry(const uint8_t *data, size_t bytes)
{
    struct carried carried = {.count = 0};
    struct error error;
    if (carried_take(&carried, (const char *)data, bytes, &error) == STATUS_OK) {
        CHECK(strlen(carried.kept) < sizeof carried.kept);
        CHECK(carried.state == NULL || strlen(carried.state) <= CARRIED_STATE_BYTES);
    } else {
        CHECK(bytes > sizeof carried.kept - 1 && carried.state == NULL);
    }
    carried_finish(&carried);
}

/* The same bytes as what another worker said of a session, of which there is none here: they are
 * refused with a sentence, and nobody sits. */
static void take_up(const struct talk_options *options, const char *text)
{
    static const char name[] = "00000000000000000000000000000000";
    struct talk *talk = NULL;
    struct error error;
    CHECK(talk_create(options, "acme", &talk, &error) == STATUS_OK);
    error.text[0] = '\0';
    CHECK(talk_take_up(talk, NULL, name, text, &error) != STATUS_OK && error.text[0] != '\0');
    CHECK(talk_kept(talk)[0] == '\0');
    talk_destroy(talk);
}

/* The same bytes as the text of a frame's envelope, so that whole ones are met too. */
static void wrap(const uint8_t *data, size_t bytes)
{
    size_t count = 0;
    const struct envelope envelope = {.session = bytes,
                                      .kind = ENVELOPE_SHOW,
                                      .text = (const char *)data,
                                      .text_bytes = bytes / 2,
                                      .bytes = data + bytes / 2,
                                      .byte_count = bytes - bytes / 2};
    void *made = envelope_make(&envelope, &count);
    CHECK(made != NULL);
    take_envelope(made, count);
    free(made);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    take_envelope(data, bytes);
    wrap(data, bytes);
    carry(data, bytes);
    struct talk *talk = NULL;
    struct error error;
    prepare();
    const struct talk_options options = {.pool = pool, .world = "object", .folder = folder};
    CHECK(talk_create(&options, "", &talk, &error) == STATUS_OK);
    said = 0;
    talk_attach(talk, NULL);
    CHECK(said == 1);
    json_t *messages = json_loadb((const char *)data, bytes, 0, NULL);
    size_t count = json_array_size(messages);
    for (size_t i = 0; i < count && i < 32; i++) {
        char *text = json_dumps(json_array_get(messages, i), JSON_ENCODE_ANY);
        CHECK(text != NULL);
        if (strlen(text) <= WIRE_MESSAGE_BYTES) {
            send(talk, text, strlen(text));
            take_up(&options, text);
        }
        free(text);
    }
    if (count == 0 && bytes <= WIRE_MESSAGE_BYTES) {
        send(talk, (const char *)data, bytes);
    }
    json_decref(messages);
    char *state = talk_state(talk);
    CHECK(state != NULL);
    free(state);
    talk_destroy(talk);
    CHECK(interactive_counts(pool).seated == 0);
    empty_folder();
    return 0;
}
