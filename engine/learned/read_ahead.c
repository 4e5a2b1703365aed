/*
 * The reader thread. See read_ahead.h. Everything but the buffers is under one mutex, which nobody
 * holds while a page is read.
 */
#include "engine/learned/read_ahead.h"

#include "base/check.h"
#include "engine/learned/pages_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

uint64_t page_digest(const uint8_t *data, size_t bytes)
{
    const uint64_t prime = 0x9E3779B185EBCA87ull;
    uint64_t lanes[4] = {1, 2, 3, 4};
    for (size_t i = 0; i < bytes; i += sizeof lanes) {
        uint64_t words[4];
        memcpy(words, data + i, sizeof words);
        for (int k = 0; k < 4; k++) {
            lanes[k] = (lanes[k] ^ words[k]) * prime;
            lanes[k] ^= lanes[k] >> 29;
        }
    }
    return lanes[0] ^ lanes[1] * 3 ^ lanes[2] * 5 ^ lanes[3] * 7;
}

enum read_state {
    READ_NONE = 0,
    READ_WAITING, /* in the queue */
    READ_RUNNING,
    READ_CANCELLED, /* running, for nobody */
    READ_GOOD,
    READ_BAD
};

struct read {
    enum read_state state;
    uint32_t next; /* WAITING */
    uint64_t handle;
    uint64_t digest;
};

struct read_ahead {
    const struct spill_ops *spill;
    uint8_t *buffers;
    size_t buffer_bytes;
    uint32_t buffer_count;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t work; /* the thread waits: something is asked for, or the end */
    pthread_cond_t done; /* the owner waits: the read under way ended */
    bool stop;
    uint32_t first; /* queue of buffers */
    uint32_t last;
    struct read reads[]; /* [buffer_count] */
};

/* The mutex is held, here and on return. */
static void read_first(struct read_ahead *ahead)
{
    uint32_t buffer = ahead->first;
    struct read *read = &ahead->reads[buffer];
    uint8_t *data = ahead->buffers + buffer * ahead->buffer_bytes;
    uint64_t handle = read->handle;
    uint64_t digest = read->digest;
    ahead->first = read->next;
    read->state = READ_RUNNING;
    pthread_mutex_unlock(&ahead->mutex);
    bool good = ahead->spill->peek(ahead->spill->context, handle, data, ahead->buffer_bytes) &&
                page_digest(data, ahead->buffer_bytes) == digest;
    pthread_mutex_lock(&ahead->mutex);
    read->state = read->state == READ_CANCELLED ? READ_NONE : good ? READ_GOOD : READ_BAD;
    pthread_cond_signal(&ahead->done);
}

static void *run(void *argument)
{
    struct read_ahead *ahead = argument;
    pthread_mutex_lock(&ahead->mutex);
    while (!ahead->stop) {
        if (ahead->first != PAGE_NONE) {
            read_first(ahead);
        } else {
            pthread_cond_wait(&ahead->work, &ahead->mutex);
        }
    }
    pthread_mutex_unlock(&ahead->mutex);
    return NULL;
}

enum status read_ahead_create(const struct spill_ops *spill, uint8_t *buffers, size_t buffer_bytes,
                              uint32_t buffer_count, struct read_ahead **out, struct error *error)
{
    CHECK(spill->peek != NULL && buffer_count > 0);
    struct read_ahead *ahead = calloc(1, sizeof *ahead + buffer_count * sizeof ahead->reads[0]);
    TRY(memory_check(ahead, error, "no memory to read pages ahead"));
    ahead->spill = spill;
    ahead->buffers = buffers;
    ahead->buffer_bytes = buffer_bytes;
    ahead->buffer_count = buffer_count;
    ahead->first = ahead->last = PAGE_NONE;
    pthread_mutex_init(&ahead->mutex, NULL);
    pthread_cond_init(&ahead->work, NULL);
    pthread_cond_init(&ahead->done, NULL);
    int reason = pthread_create(&ahead->thread, NULL, run, ahead);
    if (reason != 0) {
        pthread_cond_destroy(&ahead->done);
        pthread_cond_destroy(&ahead->work);
        pthread_mutex_destroy(&ahead->mutex);
        free(ahead);
        return error_set(error, STATUS_IO, "cannot start the thread that reads pages ahead: %s",
                         strerror(reason));
    }
    *out = ahead;
    return STATUS_OK;
}

void read_ahead_destroy(struct read_ahead *ahead)
{
    if (ahead == NULL) {
        return;
    }
    pthread_mutex_lock(&ahead->mutex);
    ahead->stop = true;
    pthread_cond_signal(&ahead->work);
    pthread_mutex_unlock(&ahead->mutex);
    pthread_join(ahead->thread, NULL);
    pthread_cond_destroy(&ahead->done);
    pthread_cond_destroy(&ahead->work);
    pthread_mutex_destroy(&ahead->mutex);
    free(ahead);
}

static struct read *read_of(struct read_ahead *ahead, uint32_t buffer)
{
    CHECK(buffer < ahead->buffer_count);
    return &ahead->reads[buffer];
}

void read_ahead_start(struct read_ahead *ahead, uint32_t buffer, uint64_t handle, uint64_t digest)
{
    struct read *read = read_of(ahead, buffer);
    pthread_mutex_lock(&ahead->mutex);
    CHECK(read->state == READ_NONE);
    *read = (struct read){READ_WAITING, PAGE_NONE, handle, digest};
    if (ahead->first == PAGE_NONE) {
        ahead->first = buffer;
    } else {
        ahead->reads[ahead->last].next = buffer;
    }
    ahead->last = buffer;
    pthread_cond_signal(&ahead->work);
    pthread_mutex_unlock(&ahead->mutex);
}

/* The mutex is held. */
static void leave_queue(struct read_ahead *ahead, uint32_t buffer)
{
    uint32_t before = PAGE_NONE;
    for (uint32_t i = ahead->first; i != buffer; i = ahead->reads[i].next) {
        before = i;
    }
    if (before == PAGE_NONE) {
        ahead->first = ahead->reads[buffer].next;
    } else {
        ahead->reads[before].next = ahead->reads[buffer].next;
    }
    if (ahead->last == buffer) {
        ahead->last = before;
    }
    ahead->reads[buffer].state = READ_NONE;
}

bool read_ahead_finish(struct read_ahead *ahead, uint32_t buffer)
{
    struct read *read = read_of(ahead, buffer);
    pthread_mutex_lock(&ahead->mutex);
    CHECK(read->state != READ_NONE && read->state != READ_CANCELLED);
    if (read->state == READ_WAITING) {
        leave_queue(ahead, buffer);
    }
    while (read->state == READ_RUNNING) {
        pthread_cond_wait(&ahead->done, &ahead->mutex);
    }
    bool good = read->state == READ_GOOD;
    read->state = READ_NONE;
    pthread_mutex_unlock(&ahead->mutex);
    return good;
}

void read_ahead_cancel(struct read_ahead *ahead, uint32_t buffer)
{
    struct read *read = read_of(ahead, buffer);
    pthread_mutex_lock(&ahead->mutex);
    CHECK(read->state != READ_NONE && read->state != READ_CANCELLED);
    if (read->state == READ_WAITING) {
        leave_queue(ahead, buffer);
    } else {
        read->state = read->state == READ_RUNNING ? READ_CANCELLED : READ_NONE;
    }
    pthread_mutex_unlock(&ahead->mutex);
}

bool read_ahead_idle(struct read_ahead *ahead, uint32_t buffer)
{
    const struct read *read = read_of(ahead, buffer);
    pthread_mutex_lock(&ahead->mutex);
    bool idle = read->state == READ_NONE;
    pthread_mutex_unlock(&ahead->mutex);
    return idle;
}

void read_ahead_wait(struct read_ahead *ahead, uint32_t buffer)
{
    const struct read *read = read_of(ahead, buffer);
    pthread_mutex_lock(&ahead->mutex);
    while (read->state == READ_CANCELLED) {
        pthread_cond_wait(&ahead->done, &ahead->mutex);
    }
    CHECK(read->state == READ_NONE);
    pthread_mutex_unlock(&ahead->mutex);
}
