/*
 * Pictures of cameras in trace artifacts. See trace_pictures.h.
 *
 * A rollout keeps them every so many ticks. Where they outgrow its room every other one goes, and
 * from then on twice as many ticks lie between two. The reader checks order and sizes once; who
 * walks the records then does not look again.
 */
#include "engine/trace/trace_pictures.h"

#include "base/check.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { CAPACITY_MIN_BYTES = 1 << 16, SIDE_MAX = 4096 };

void trace_expect_pictures(struct trace *trace, uint32_t period_ticks, uint32_t rollout_count)
{
    trace->pictures.period_ticks = period_ticks;
    trace->pictures.room_bytes = TRACE_PICTURES_JOB_BYTES_MAX / rollout_count;
}

bool trace_wants_pictures(const struct trace *trace, uint32_t tick, bool last)
{
    const uint32_t period = trace->pictures.period_ticks;
    return period > 0 && (last || tick % period == 0);
}

/* Takes away every other tick's, but for the newest, until the rest have room; or all. */
static void thin(struct trace_pictures *pictures, uint32_t newest)
{
    while (pictures->bytes > pictures->room_bytes) {
        size_t to = 0;
        uint32_t count = 0;
        pictures->period_ticks *= 2;
        if (pictures->period_ticks > LIMIT_HORIZON_TICKS) {
            pictures->period_ticks = 0; /* not even two ticks' have */
        }
        for (size_t at = 0; at < pictures->bytes && pictures->period_ticks > 0;) {
            struct trace_picture head;
            memcpy(&head, pictures->data + at, sizeof head);
            const size_t size = sizeof head + head.bytes;
            if (head.tick % pictures->period_ticks == 0 || head.tick == newest) {
                memmove(pictures->data + to, pictures->data + at, size);
                to += size;
                count++;
            }
            at += size;
        }
        pictures->bytes = to;
        pictures->count = count;
    }
}

enum status trace_keep_picture(struct trace *trace, const struct trace_picture *head,
                               const uint8_t *jpeg, struct error *error)
{
    struct trace_pictures *pictures = &trace->pictures;
    const size_t size = sizeof *head + head->bytes;
    if (pictures->period_ticks == 0) {
        return STATUS_OK;
    }
    if (pictures->capacity_bytes - pictures->bytes < size) {
        const size_t capacity = 2 * pictures->capacity_bytes + size + CAPACITY_MIN_BYTES;
        uint8_t *data = realloc(pictures->data, capacity);
        TRY(memory_check(data, error, "trace: no memory for a picture of %u bytes", head->bytes));
        pictures->data = data;
        pictures->capacity_bytes = capacity;
    }
    memcpy(pictures->data + pictures->bytes, head, sizeof *head);
    memcpy(pictures->data + pictures->bytes + sizeof *head, jpeg, head->bytes);
    pictures->bytes += size;
    pictures->count++;
    thin(pictures, head->tick);
    return STATUS_OK;
}

size_t trace_pictures_bytes(const struct trace *const *traces, uint32_t count, size_t room)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < count; i++) {
        bytes += traces[i]->pictures.bytes;
    }
    bytes += bytes > 0 ? sizeof(struct trace_pictures_header) : 0;
    return bytes <= room ? bytes : 0;
}

void trace_pictures_pack(const struct trace *const *traces, uint32_t count, size_t bytes,
                         uint8_t *out)
{
    struct trace_pictures_header header = {.picture_count = 0};
    if (bytes == 0) {
        return;
    }
    uint8_t *at = out + sizeof header;
    for (uint32_t i = 0; i < count; i++) {
        const struct trace_pictures *pictures = &traces[i]->pictures;
        for (size_t from = 0; from < pictures->bytes;) {
            struct trace_picture head;
            memcpy(&head, pictures->data + from, sizeof head);
            head.rollout = i;
            memcpy(at, &head, sizeof head);
            memcpy(at + sizeof head, pictures->data + from + sizeof head, head.bytes);
            at += sizeof head + head.bytes;
            from += sizeof head + head.bytes;
        }
        header.picture_count += pictures->count;
    }
    memcpy(header.magic, TRACE_PICTURES_MAGIC, sizeof header.magic);
    memcpy(out, &header, sizeof header);
    CHECK((size_t)(at - out) == bytes);
}

/* ---- reading ---- */

static bool is_id(const char id[LIMIT_ID_BYTES])
{
    uint32_t i = 0;
    while (i < LIMIT_ID_BYTES && id[i] > ' ' && id[i] <= '~') {
        i++;
    }
    return i > 0 && i < LIMIT_ID_BYTES && id[i] == '\0';
}

enum status trace_pictures_read(struct trace_reader *reader, const uint8_t *data, size_t bytes,
                                size_t *used, struct error *error)
{
    struct trace_pictures_header header;
    struct trace_picture last = {0};
    size_t at = sizeof header;
    if (bytes < sizeof header || memcmp(data, TRACE_PICTURES_MAGIC, sizeof header.magic) != 0) {
        return STATUS_OK;
    }
    memcpy(&header, data, sizeof header);
    for (uint32_t i = 0; i < header.picture_count; i++) {
        struct trace_picture head = {.bytes = UINT32_MAX};
        if (bytes - at >= sizeof head) {
            memcpy(&head, data + at, sizeof head);
            at += sizeof head;
        }
        const uint64_t key = (uint64_t)head.rollout << 32 | head.tick;
        const uint64_t before = (uint64_t)last.rollout << 32 | last.tick;
        if (head.bytes > bytes - at || head.rollout >= reader->header.rollout_count ||
            head.camera >= TRACE_CAMERAS_MAX || !is_id(head.id) || head.width < 1 ||
            head.width > SIDE_MAX || head.height < 1 || head.height > SIDE_MAX ||
            (i > 0 && (key < before || (key == before && head.camera <= last.camera)))) {
            return error_set(error, STATUS_BAD_INPUT,
                             "trace: picture %u: rollout %u, tick %u, camera %u, %u bytes do not "
                             "fit",
                             i, head.rollout, head.tick, head.camera, head.bytes);
        }
        last = head;
        at += head.bytes;
    }
    reader->pictures = data + sizeof header;
    reader->pictures_bytes = at - sizeof header;
    *used += at;
    return STATUS_OK;
}

/* The next record of a rollout behind *at. False: no more. */
static bool next(const struct trace_reader *reader, int32_t rollout, size_t *at,
                 struct trace_picture_view *out)
{
    while (*at < reader->pictures_bytes) {
        memcpy(&out->head, reader->pictures + *at, sizeof out->head);
        out->jpeg = reader->pictures + *at + sizeof out->head;
        *at += sizeof out->head + out->head.bytes;
        if ((int64_t)out->head.rollout == rollout) {
            return true;
        }
    }
    return false;
}

uint32_t trace_reader_pictures(const struct trace_reader *reader, int32_t rollout, uint32_t tick,
                               struct trace_picture_view out[TRACE_CAMERAS_MAX])
{
    uint32_t apart_least = UINT32_MAX;
    uint32_t count = 0;
    size_t at = 0;
    struct trace_picture_view view;
    rollout = trace_reader_owner(reader, rollout, tick);
    while (rollout >= 0 && next(reader, rollout, &at, &view)) {
        const uint32_t of = view.head.tick;
        const uint32_t apart = of > tick ? of - tick : tick - of;
        if (apart < apart_least) {
            apart_least = apart;
            count = 0;
        }
        if (apart == apart_least && count < TRACE_CAMERAS_MAX &&
            (count == 0 || out[0].head.tick == of)) {
            out[count++] = view;
        }
    }
    return count;
}
