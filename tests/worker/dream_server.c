/*
 * A world model behind AlpaSim's WorldModelService for tests. See dream_server.h.
 */
#include "tests/worker/dream_server.h"

#include "base/check.h"
#include "base/jpeg/jpeg_decode.h"
#include "base/text.h"
#include "schemas/proto/worldmodel.pb-c.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PLANES = 4, FADE_FROM = 30, WIDTH = 96, HEIGHT = 64, PIXELS = WIDTH * HEIGHT };

/* View of a picture rgb[PIXELS][3] in this manner. */
static void dream_touch(struct dream_server *server, uint32_t frame, uint8_t *rgb)
{
    const int manner = server->manner;
    const uint8_t tint = (uint8_t)(server->past % 4);
    for (size_t i = 0; i < 3 * PIXELS; i++) {
        int value = 3 * rgb[i] / 4 + 20 + tint;
        if (manner == DREAM_NOISY) {
            server->noise = server->noise * 1664525u + 1013904223u;
            value += (int)(server->noise >> 24) % 8;
        } else if (manner == DREAM_FADES && frame > FADE_FROM) {
            const int left = frame > FADE_FROM + 16 ? 0 : (int)(FADE_FROM + 16 - frame);
            value = 100 + (value - 100) * left / 16;
        } else if (manner == DREAM_BLACK && frame > 5) {
            value = 0;
        }
        rgb[i] = (uint8_t)value;
    }
    if (manner == DREAM_FREEZES && frame == 13) {
        memcpy(server->kept, rgb, 3 * PIXELS);
    } else if (manner == DREAM_FREEZES && frame > 13) {
        memcpy(rgb, server->kept, 3 * PIXELS);
    }
}

/* A JPEG of ours as planes, touched. */
static void dream_replace(struct dream_server *server, Wm__Picture *picture, uint32_t frame)
{
    struct error error;
    const size_t bytes = server->manner == DREAM_SMALL ? 3 * PIXELS / 2 : 3 * PIXELS;
    uint8_t *rgb = malloc(3 * PIXELS);
    uint8_t *planes = malloc(3 * PIXELS);
    CHECK(rgb != NULL && planes != NULL);
    CHECK(jpeg_decode(picture->data.data, picture->data.len, WIDTH, HEIGHT, rgb, &error) ==
          STATUS_OK);
    dream_touch(server, frame, rgb);
    for (size_t i = 0; i < PIXELS; i++) {
        for (size_t c = 0; c < 3; c++) {
            planes[c * PIXELS + i] = rgb[3 * i + c];
        }
    }
    free(rgb);
    free(picture->data.data);
    picture->data.data = planes;
    picture->data.len = bytes;
    picture->format = PLANES;
}

/* Changes the answer to a chunk as the manner has it. */
static void dream_alter(struct dream_server *server, struct grpc_answer *answer)
{
    Wm__ChunkAnswer *said = wm__chunk_answer__unpack(NULL, answer->bytes, answer->message);
    CHECK(said != NULL && said->n_outputs > 0);
    const size_t count = said->outputs[0]->n_frames;
    for (size_t c = 0; c < said->n_outputs; c++) {
        for (size_t f = 0; f < count; f++) {
            dream_replace(server, said->outputs[c]->frames[f], server->frames + (uint32_t)f + 1);
        }
    }
    server->frames += (uint32_t)count;
    if (server->manner == DREAM_FEW) {
        wm__picture__free_unpacked(said->outputs[0]->frames[--said->outputs[0]->n_frames], NULL);
    }
    free(answer->message);
    answer->bytes = wm__chunk_answer__get_packed_size(said);
    answer->message = malloc(answer->bytes);
    CHECK(answer->message != NULL);
    wm__chunk_answer__pack(said, answer->message);
    wm__chunk_answer__free_unpacked(said, NULL);
    if (server->manner == DREAM_BABBLES) {
        memset(answer->message, 0xff, answer->bytes);
    }
}

static void dream_start(struct dream_server *server, const uint8_t *message, size_t bytes,
                        struct grpc_answer *answer)
{
    Wm__Start *start = wm__start__unpack(NULL, bytes, message);
    Wm__SessionId *id = NULL;
    CHECK(start != NULL);
    server->seed = start->random_seed;
    wm__start__free_unpacked(start, NULL);
    server->starts++;
    if (server->manner == DREAM_REFUSES) {
        free(answer->message);
        *answer = (struct grpc_answer){.code = 9, .sentence = "the model is still loading"};
        return;
    }
    if (answer->code == GRPC_OK) {
        id = wm__session_id__unpack(NULL, answer->bytes, answer->message);
        CHECK(id != NULL);
        snprintf(server->session, sizeof server->session, "%s", id->session_id);
        wm__session_id__free_unpacked(id, NULL);
    }
    server->past = server->seed;
    server->frames = 0;
}

/* Whether the chunk is one of the session that is kept; what it asks for goes into the past. */
static bool dream_owns(struct dream_server *server, const uint8_t *message, size_t bytes)
{
    Wm__Chunk *chunk = wm__chunk__unpack(NULL, bytes, message);
    CHECK(chunk != NULL);
    bool own = strcmp(chunk->session->session_id, server->session) == 0;
    size_t size = ego__trajectory__get_packed_size(chunk->rig_trajectory);
    uint8_t *packed = malloc(size);
    CHECK(packed != NULL);
    ego__trajectory__pack(chunk->rig_trajectory, packed);
    server->past = text_hash_on(server->past ^ TEXT_HASH_FIRST, (const char *)packed, size);
    free(packed);
    wm__chunk__free_unpacked(chunk, NULL);
    return own;
}

static void dream_serve(void *context, const char *method, const uint8_t *message, size_t bytes,
                        struct grpc_answer *answer)
{
    struct dream_server *server = context;
    const char *name = strrchr(method, '/') + 1;
    const bool renders = strcmp(name, "render_video_chunk") == 0;
    if (++server->calls == server->dies_at) {
        answer->hang_up = true;
        return;
    }
    if (renders && !dream_owns(server, message, bytes)) {
        answer->code = 2;
        snprintf(answer->sentence, sizeof answer->sentence, "Session not found");
        return;
    }
    alpasim_serve(server->alpasim, method, message, bytes, answer);
    if (strcmp(name, "start_session") == 0 && strstr(method, "WorldModel") != NULL) {
        dream_start(server, message, bytes, answer);
    } else if (renders && answer->code == GRPC_OK) {
        server->chunks++;
        dream_alter(server, answer);
    }
}

static void *dream_run(void *argument)
{
    struct dream_server *server = argument;
    struct error error;
    CHECK(grpc_server_run(server->server, server->quit_fds[0], &error) == STATUS_OK);
    return NULL;
}

void dream_server_start(struct dream_server *server, const struct scenario_document *document)
{
    static struct rig rig;
    static int made = 0;
    struct error error;
    memset(server, 0, sizeof *server);
    rig_swerve(&rig);
    snprintf(server->address, sizeof server->address, "unix:/tmp/swerve-dream-%d-%d", (int)getpid(),
             made++);
    server->kept = calloc(PIXELS, 3);
    server->entry.document = document;
    server->suite.entry_count = 1;
    server->suite.entries = &server->entry;
    CHECK(server->kept != NULL && pipe(server->quit_fds) == 0);
    CHECK(alpasim_create(&server->suite, &rig, &server->alpasim, &error) == STATUS_OK);
    CHECK(grpc_server_open(server->address, dream_serve, server, NULL, &server->server, &error) ==
          STATUS_OK);
    CHECK(pthread_create(&server->thread, NULL, dream_run, server) == 0);
}

void dream_server_stop(struct dream_server *server)
{
    CHECK(write(server->quit_fds[1], "q", 1) == 1);
    pthread_join(server->thread, NULL);
    grpc_server_close(server->server);
    alpasim_destroy(server->alpasim);
    close(server->quit_fds[0]);
    close(server->quit_fds[1]);
    free(server->kept);
}
