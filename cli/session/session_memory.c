/*
 * Slots of shared memory for a session's pictures. See session_memory.h.
 */
#include "cli/session/session_memory.h"

#include "base/units.h"
#include "schemas/observation.h"
#include "worker/wire/planner_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

_Static_assert(sizeof(struct session_memory_greeting) == 24, "wire layout");
_Static_assert(sizeof(struct session_memory_slot) == 16, "wire layout");
_Static_assert(SWERVE_ENV_CAMERA_BYTES == CAMERA_COUNT * CAMERA_BYTES, "the cameras of a frame");

struct session_memory {
    int fd;
    uint8_t *slots; /* mapped */
    size_t slot_bytes;
    size_t plane_bytes[CAMERA_COUNT];
    uint64_t number;
};

static enum status map_slots(struct session_memory *memory, struct error *error)
{
    const size_t bytes = SESSION_MEMORY_SLOTS * memory->slot_bytes;
    memory->fd = memfd_create("swerve-session", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory->fd >= 0 && ftruncate(memory->fd, (off_t)bytes) == 0) {
        void *slots = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory->fd, 0);
        memory->slots = slots != MAP_FAILED ? slots : NULL;
    }
    /* From now on nobody can map it for writing, nor take any of it away. */
    if (memory->slots == NULL ||
        fcntl(memory->fd, F_ADD_SEALS,
              F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0) {
        return error_set(error, STATUS_IO, "session: shared memory of %zu bytes: %s", bytes,
                         strerror(errno));
    }
    return STATUS_OK;
}

enum status session_memory_create(struct session_memory **out, struct error *error)
{
    struct session_memory *memory = calloc(1, sizeof *memory);
    TRY(memory_check(memory, error, "session: out of memory"));
    for (int i = 0; i < CAMERA_COUNT; i++) {
        memory->plane_bytes[i] = CAMERA_BYTES;
    }
    memory->slot_bytes = WIRE_PLANE_BYTES + wire_slot_bytes(CAMERA_COUNT, memory->plane_bytes);
    enum status status = map_slots(memory, error);
    if (status != STATUS_OK) {
        session_memory_destroy(memory);
        return status;
    }
    *out = memory;
    return STATUS_OK;
}

void session_memory_destroy(struct session_memory *memory)
{
    if (memory == NULL) {
        return;
    }
    if (memory->slots != NULL) {
        munmap(memory->slots, SESSION_MEMORY_SLOTS * memory->slot_bytes);
    }
    if (memory->fd >= 0) {
        close(memory->fd);
    }
    free(memory);
}

enum status session_memory_greet(const struct session_memory *memory, int fd, struct error *error)
{
    struct session_memory_greeting greeting = {.version = SESSION_MEMORY_VERSION,
                                               .slot_count = SESSION_MEMORY_SLOTS,
                                               .slot_bytes = memory->slot_bytes};
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec part = {&greeting, sizeof greeting};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    memcpy(greeting.magic, "swervehw", sizeof greeting.magic);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &memory->fd, sizeof memory->fd);
    return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof greeting
               ? STATUS_OK
               : error_set(error, STATUS_IO, "session: the shared memory cannot be handed over: %s",
                           strerror(errno));
}

/* The cameras of a frame as sensors of the planner protocol. */
static void fill_sensors(const struct interactive_frame *frame,
                         struct swerve_sensor sensors[CAMERA_COUNT])
{
    static const char *const ids[CAMERA_COUNT] = {"left", "front", "right"};
    for (int i = 0; i < CAMERA_COUNT; i++) {
        sensors[i] = (struct swerve_sensor){
            .format = SWERVE_FORMAT_RGB8,
            .width = CAMERA_COLS,
            .height = CAMERA_ROWS,
            .count = 1,
            .frames = frame->cameras + (size_t)i * CAMERA_BYTES,
            .stride = CAMERA_BYTES,
            .bytes = {CAMERA_BYTES},
            .time_ns = {(int64_t)frame->scene->tick * TICK_NS},
        };
        strcpy(sensors[i].id, ids[i]);
    }
}

uint64_t session_memory_put(struct session_memory *memory, const struct interactive_frame *frame)
{
    struct swerve_sensor cameras[CAMERA_COUNT];
    const struct swerve_sensors sensors = {.count = CAMERA_COUNT, .sensors = cameras};
    const uint64_t number = ++memory->number;
    uint8_t *slot = memory->slots + number % SESSION_MEMORY_SLOTS * memory->slot_bytes;
    _Atomic uint64_t *begun = (_Atomic uint64_t *)(void *)slot;
    _Atomic uint64_t *ended = begun + 1;
    fill_sensors(frame, cameras);
    atomic_store_explicit(begun, number, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst); /* no byte is written before it is seen */
    wire_slot_write(slot + WIRE_PLANE_BYTES, memory->plane_bytes, &sensors);
    atomic_store_explicit(ended, number, memory_order_release);
    return number;
}
