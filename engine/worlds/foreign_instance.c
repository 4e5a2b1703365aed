/*
 * Instances of foreign worlds: what one may declare, memory that it shares, opening it. The two
 * worlds that are made of instances (foreign.c, foreign_rig.c) begin here.
 */
#include "engine/worlds/foreign_internal.h"

#include "base/units.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CALL_TEXT_BYTES = 400, DIFFERENCE_BYTES = 128 };

/* ---- what it says of itself ---- */

bool foreign_is_name(const char *name)
{
    size_t bytes = strnlen(name, SWERVE_WORLD_NAME_BYTES);
    for (size_t i = 0; i < bytes; i++) {
        if (name[i] <= ' ' || name[i] > '~' || name[i] == '/') {
            return false;
        }
    }
    return bytes > 0 && bytes < SWERVE_WORLD_NAME_BYTES;
}

bool foreign_chunks_can_be(uint32_t rate_hz, uint32_t chunk_frames, uint32_t first_frames)
{
    const uint32_t tick_frames = rate_hz / FOREIGN_TICK_HZ;
    return tick_frames >= 1 && rate_hz % FOREIGN_TICK_HZ == 0 && first_frames >= tick_frames &&
           first_frames <= chunk_frames && chunk_frames <= SWERVE_WORLD_FRAMES;
}

/* Whether chunks are possible; rates of cameras are looked at where there is a rig. */
static enum status check_chunks(const struct swerve_world_declared *declared, struct error *error)
{
    const bool rig = declared->form == SWERVE_WORLD_FORM_RIG;
    const uint32_t flags = declared->flags & ~(uint32_t)SWERVE_WORLD_DETERMINISTIC;
    if (!rig && (declared->rate_hz | declared->chunk_frames | declared->first_frames |
                 declared->states_max) != 0) {
        return error_set(error, STATUS_DEVICE,
                         "world %s: declares rate, chunks or a limit of states: expected 0, for "
                         "its form is not RIG",
                         declared->name);
    }
    if (!rig) {
        return STATUS_OK;
    }
    if (flags != SWERVE_WORLD_CAMERAS) {
        return error_set(error, STATUS_DEVICE,
                         "world %s: declares flags 0x%x: expected of the form RIG cameras (0x%x), "
                         "and at the most that it is deterministic (0x%x)",
                         declared->name, declared->flags, (uint32_t)SWERVE_WORLD_CAMERAS,
                         (uint32_t)SWERVE_WORLD_DETERMINISTIC);
    }
    if (!foreign_chunks_can_be(declared->rate_hz, declared->chunk_frames, declared->first_frames)) {
        return error_set(error, STATUS_DEVICE,
                         "world %s: declares chunks of %u frames, the first of %u, at %u Hz: "
                         "expected a multiple of %d Hz, and from a tick's frames to %d",
                         declared->name, declared->chunk_frames, declared->first_frames,
                         declared->rate_hz, FOREIGN_TICK_HZ, SWERVE_WORLD_FRAMES);
    }
    if (declared->states_max > 0 && (declared->flags & SWERVE_WORLD_DETERMINISTIC) == 0) {
        return error_set(error, STATUS_DEVICE,
                         "world %s: keeps %u states at the most: expected that it declares to be "
                         "deterministic, since others are made anew from their past",
                         declared->name, declared->states_max);
    }
    return STATUS_OK;
}

enum status foreign_check_declared(const struct swerve_world_declared *declared,
                                   struct error *error)
{
    const uint32_t known = SWERVE_WORLD_DETERMINISTIC | SWERVE_WORLD_BEV | SWERVE_WORLD_CAMERAS |
                           SWERVE_WORLD_MOVES_AGENTS | SWERVE_WORLD_READS_RASTER;
    if (!foreign_is_name(declared->name) || !foreign_is_name(declared->version)) {
        return error_set(error, STATUS_DEVICE,
                         "world: expected a name and a version of 1 to %d printable characters "
                         "without blanks and slashes, found \"%.31s\" and \"%.31s\"",
                         SWERVE_WORLD_NAME_BYTES - 1, declared->name, declared->version);
    }
    if (declared->form >= SWERVE_WORLD_FORM_COUNT || (declared->flags & ~known) != 0 ||
        (declared->flags & (SWERVE_WORLD_BEV | SWERVE_WORLD_CAMERAS)) == 0) {
        return error_set(error, STATUS_DEVICE,
                         "world %s: declares form %u (expected 0 to 2) and flags 0x%x (expected "
                         "bits of 0x%x, a grid or cameras among them)",
                         declared->name, declared->form, declared->flags, known);
    }
    uint32_t bev = foreign_bev_bytes((enum swerve_world_form)declared->form);
    uint32_t cameras = foreign_cameras_bytes((enum swerve_world_form)declared->form);
    const bool rig = declared->form == SWERVE_WORLD_FORM_RIG; /* whose rig says */
    if (rig || (declared->flags & SWERVE_WORLD_BEV) == 0) {
        bev = 0;
    }
    if (rig || (declared->flags & SWERVE_WORLD_CAMERAS) == 0) {
        cameras = 0;
    }
    if (declared->bev_bytes != bev || declared->cameras_bytes != cameras) {
        return error_set(error, STATUS_DEVICE,
                         "world %s: shape: expected a grid of %u bytes and cameras of %u, declares "
                         "%u and %u",
                         declared->name, bev, cameras, declared->bev_bytes,
                         declared->cameras_bytes);
    }
    if (!(fabs(declared->tick_s - TICK_S) < 1e-9) || declared->horizon_ticks < 1 ||
        declared->horizon_ticks > LIMIT_HORIZON_TICKS) {
        return error_set(error, STATUS_DEVICE,
                         "world %s: expected ticks of %g s and a horizon of 1 to %d of them, "
                         "declares %g s and %u",
                         declared->name, TICK_S, LIMIT_HORIZON_TICKS, declared->tick_s,
                         declared->horizon_ticks);
    }
    return check_chunks(declared, error);
}

void foreign_difference(const struct swerve_world_declared *was,
                        const struct swerve_world_declared *now, char *text, size_t bytes)
{
    const struct {
        const char *name;
        uint32_t was, now;
    } numbers[] = {
        {"form", was->form, now->form},
        {"flags", was->flags, now->flags},
        {"bytes of the grid", was->bev_bytes, now->bev_bytes},
        {"bytes of the cameras", was->cameras_bytes, now->cameras_bytes},
        {"horizon in ticks", was->horizon_ticks, now->horizon_ticks},
        {"rate in Hz", was->rate_hz, now->rate_hz},
        {"frames of a chunk", was->chunk_frames, now->chunk_frames},
        {"frames of the first chunk", was->first_frames, now->first_frames},
        {"limit of states", was->states_max, now->states_max},
    };
    size_t i = 0;
    while (i < sizeof numbers / sizeof numbers[0] && numbers[i].was == numbers[i].now) {
        i++;
    }
    if (strncmp(was->name, now->name, sizeof was->name) != 0) {
        snprintf(text, bytes, "name \"%.31s\" and \"%.31s\"", was->name, now->name);
    } else if (strncmp(was->version, now->version, sizeof was->version) != 0) {
        snprintf(text, bytes, "version \"%.31s\" and \"%.31s\"", was->version, now->version);
    } else if (i < sizeof numbers / sizeof numbers[0]) {
        snprintf(text, bytes, "%s %u and %u", numbers[i].name, numbers[i].was, numbers[i].now);
    } else {
        snprintf(text, bytes, "%s", memcmp(was, now, sizeof *was) == 0 ? "nothing" : "its rest");
    }
}

/* ---- memory, opening ---- */

/* Memory that another process can map. Sealed in its size: where a world could shorten it, our next
 * look at it would end the worker (SIGBUS), with the rollouts of everybody. */
enum status foreign_instance_share(size_t bytes, int *fd, uint8_t **memory, struct error *error)
{
    *fd = memfd_create("swerve-world", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd < 0 || ftruncate(*fd, (off_t)bytes) != 0 ||
        fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        return error_set(error, STATUS_IO, "world: shared memory of %zu bytes: %s", bytes,
                         strerror(errno));
    }
    void *mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (mapped == MAP_FAILED) {
        return error_set(error, STATUS_IO, "world: shared memory: %s", strerror(errno));
    }
    *memory = mapped;
    return STATUS_OK;
}

void foreign_instance_unshare(size_t bytes, int fd, uint8_t *memory)
{
    if (memory != NULL) {
        munmap(memory, bytes);
    }
    if (fd >= 0) {
        close(fd);
    }
}

enum status foreign_instance_open(const struct foreign *foreign,
                                  const struct swerve_world_setup *given, void **out,
                                  struct swerve_world_declared *declared, struct error *error)
{
    const bool known = foreign->declared.name[0] != '\0';
    const char *name = known ? foreign->declared.name : "(new)";
    struct swerve_world_setup setup = *given;
    struct swerve_world_declared found = {.reserved = 0};
    char text[CALL_TEXT_BYTES] = "";
    void *instance = NULL;
    setup.abi_version = foreign->ops->abi_version;
    setup.config = foreign->config;
    setup.host = foreign->host;
    if (foreign->ops->open(&instance, &setup, &found, text, sizeof text) != 0) {
        text[sizeof text - 1] = '\0';
        return error_set(error, foreign->outside ? STATUS_IO : STATUS_DEVICE,
                         "world %s: does not open: %s", name, text);
    }
    enum status status = foreign_check_declared(&found, error);
    const bool chunks = foreign->ops->abi_version > 1 && foreign->ops->reset_rig != NULL &&
                        foreign->ops->step_rig != NULL;
    if (status == STATUS_OK && found.form != SWERVE_WORLD_FORM_RIG &&
        (foreign->ops->reset == NULL || foreign->ops->step == NULL)) {
        status = error_set(error, STATUS_DEVICE, "world %s: expected reset and step of its form",
                           found.name);
    }
    if (status == STATUS_OK && found.form == SWERVE_WORLD_FORM_RIG && !chunks) {
        status = error_set(error, STATUS_DEVICE,
                           "world %s: declares the form RIG: expected ABI version 2 with reset_rig "
                           "and step_rig",
                           found.name);
    }
    if (status == STATUS_OK && known && memcmp(&found, &foreign->declared, sizeof found) != 0) {
        char differs[DIFFERENCE_BYTES];
        foreign_difference(&foreign->declared, &found, differs, sizeof differs);
        status = error_set(error, STATUS_DEVICE,
                           "world %s %s: declares something else than when it was asked first: %s",
                           foreign->declared.name, foreign->declared.version, differs);
    }
    if (status != STATUS_OK) {
        foreign->ops->close(instance);
        return status;
    }
    *declared = found;
    *out = instance;
    return STATUS_OK;
}
