/*
 * Process adapter: the exec protocol (schemas/planner.md) on top of a child process.
 *
 * The worker asks one question at a time and waits for its answer until a deadline. Anything else
 * than the one right answer ends the instance: a late or confused process cannot be brought back in
 * step, a new one can. Grids and images go through shared memory that the child cannot write.
 */
#include "worker/planner/planner_exec.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/units.h"
#include "schemas/observation.h"
#include "worker/planner/planner_output.h"
#include "worker/planner/planner_process.h"
#include "worker/planner/planner_sandbox.h"
#include "worker/wire/planner_wire.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

enum { EXEC_FILES_MAX = 1024, DEATH_BYTES = 1200, LIMIT_BYTES = 240 };
#define EXIT_GRACE_NS (1 * NS_PER_S)
#define MEMORY_OPTION "--planner-memory-mib"

struct planner_exec {
    struct planner_process process;
    struct planner_config config;
    uint32_t sequence;
    struct wire_greeting greeting; /* version 0: none yet */
    bool alive;
    char death[DEATH_BYTES]; /* why it is dead */
    uint8_t *shm;            /* a slot for each session, ours to write */
    size_t shm_bytes;
    size_t slot_bytes;                   /* of the version that it chose */
    size_t plane_bytes[RIG_SENSORS_MAX]; /* version 4: of each sensor */
    uint8_t *frame;                      /* question under construction */
    size_t frame_capacity;
    uint8_t *answer; /* header, payload */
    size_t answer_capacity;
    struct planner_output *output;
    char tail_text[PLANNER_OUTPUT_TAIL_BYTES + 1];
    char session_text[PLANNER_OUTPUT_BYTES + 1];
};

/* ---- death ---- */

/* A sentence about the limit of ours that the last line of stderr complains about; "" for none. */
static void limit_text(const struct planner_exec *exec, const char *line, char *text, size_t bytes)
{
    enum what { MEMORY, PROCESSES, TMP, FILES, SIGHT };
    static const struct {
        const char *words;
        enum what what;
    } frame_stats[] = {
        {"MemoryError", MEMORY},
        {"Cannot allocate memory", MEMORY},
        {"an't allocate memory", MEMORY},
        {"Unable to allocate", MEMORY},
        {"bad_alloc", MEMORY},
        {"ut of memory", MEMORY},
        {"can't start new thread", PROCESSES},
        {"Resource temporarily unavailable", PROCESSES},
        {"No space left on device", TMP},
        {"Too many open files", FILES},
        {"ModuleNotFoundError", SIGHT},
        {"No such file or directory", SIGHT},
        {"No module named", SIGHT},
        {"not found", SIGHT},
    };
    const struct planner_confinement *confinement = exec->config.confinement;
    bool sandbox = confinement != NULL && confinement->sandbox;
    size_t i = 0;
    text[0] = '\0';
    while (i < COUNT_OF(frame_stats) && strstr(line, frame_stats[i].words) == NULL) {
        i++;
    }
    if (i == COUNT_OF(frame_stats)) {
        return;
    }
    if (frame_stats[i].what == MEMORY) {
        snprintf(text, bytes, " (this worker allows a planner %lld MiB of memory: %s)",
                 (long long)(exec->config.memory_limit_bytes >> 20), MEMORY_OPTION);
    } else if (frame_stats[i].what == FILES) {
        snprintf(text, bytes, " (a planner may have %d files open)", EXEC_FILES_MAX);
    } else if (sandbox && frame_stats[i].what == PROCESSES) {
        snprintf(text, bytes,
                 " (this worker allows a planner %u processes and threads: --planner-processes)",
                 sandbox_processes(confinement));
    } else if (sandbox && frame_stats[i].what == TMP) {
        snprintf(text, bytes,
                 " (this worker allows a planner %lld MiB in its /tmp: --planner-tmp-mib)",
                 (long long)(sandbox_tmp_bytes(confinement) >> 20));
    } else if (sandbox) {
        snprintf(text, bytes,
                 " (in its sandbox it sees what worker/FLEET.md lists: --planner-path shows more)");
    }
}

/* Ends the process and records why. `wait_ns` > 0 where the process may be about to exit by itself,
 * so that its own status is reported rather than our SIGKILL. */
static void die(struct planner_exec *exec, const char *what, int64_t wait_ns, bool tell_exit)
{
    char exit_text[96] = "";
    char line[240] = "";
    char limit[LIMIT_BYTES + PROCESS_UNSEEN_BYTES] = "";
    char over[LIMIT_BYTES];
    const char *unseen = exec->process.unseen;
    process_end(&exec->process, wait_ns);
    if (tell_exit) {
        process_exit_text(&exec->process, exit_text, sizeof exit_text);
    }
    planner_output_tail(exec->output, exec->tail_text);
    planner_output_last_line(exec->tail_text, line, sizeof line);
    if (exec->process.killed_at_bytes > 0) {
        snprintf(over, sizeof over,
                 "its processes used %lld MiB of memory together, of %lld MiB that this worker "
                 "allows a planner (%s), and were ended",
                 (long long)(exec->process.killed_at_bytes >> 20),
                 (long long)(exec->config.memory_limit_bytes >> 20), MEMORY_OPTION);
        what = over;
        tell_exit = false;
    } else if (unseen[0] != '\0') {
        snprintf(limit, sizeof limit, " (%s)", unseen);
    } else {
        limit_text(exec, line, limit, sizeof limit);
    }
    snprintf(exec->death, sizeof exec->death, "%.239s%s%s%s%s%s", what, tell_exit ? " " : "",
             tell_exit ? exit_text : "", limit, line[0] != '\0' ? PLANNER_STDERR_JOINT : "", line);
    exec->alive = false;
}

static int report(const char *sentence, char *error_text, uint32_t error_bytes)
{
    snprintf(error_text, error_bytes, "%s", sentence);
    return 1;
}

/* ---- one question, one answer ---- */

/* Sends the frame in exec->frame and receives its answer; `type` is the answer that is right
 * (WIRE_ERROR is let through too). On 0 the payload is at exec->answer + 16. The sentences do not
 * name the question: the caller does. */
static int ask(struct planner_exec *exec, size_t frame_bytes, enum planner_wire_type type,
               int64_t deadline_ms, size_t payload_bytes_max, struct wire_header *header,
               char *error_text, uint32_t error_bytes)
{
    char text[160];
    struct error fault;
    int64_t deadline_ns = clock_monotonic_ns() + deadline_ms * NS_PER_MS;
    struct process_talk talk = {exec->frame, frame_bytes, 0, exec->answer, sizeof *header, 0};
    enum process_result result =
        process_exchange(&exec->process, &talk, sizeof *header, deadline_ns);
    if (result == PROCESS_OK) {
        if (wire_header_decode(exec->answer, exec->sequence, payload_bytes_max, header, &fault) !=
            STATUS_OK) {
            die(exec, fault.text, 0, false);
            return report(exec->death, error_text, error_bytes);
        }
        talk.room_bytes += header->payload_bytes;
        result = process_exchange(&exec->process, &talk, talk.room_bytes, deadline_ns);
    }
    if (result != PROCESS_OK) {
        bool exits = process_failure(result, deadline_ms,
                                     type == WIRE_ACTIONS
                                         ? " (--planner-deadline-ms raises this limit of ours)"
                                         : " (--planner-start-ms raises this limit of ours)",
                                     text, sizeof text);
        die(exec, text, exits ? EXIT_GRACE_NS : 0, exits);
        return report(exec->death, error_text, error_bytes);
    }
    exec->sequence++;
    if (header->type != (uint32_t)type && header->type != WIRE_ERROR) {
        snprintf(text, sizeof text, "answer: expected frame type %d, found %u", (int)type,
                 header->type);
        die(exec, text, 0, false);
        return report(exec->death, error_text, error_bytes);
    }
    return 0;
}

/* The planner answered with an error frame: passes its text on. */
static int answered_error(const struct planner_exec *exec, const struct wire_header *header,
                          char *error_text, uint32_t error_bytes)
{
    wire_error_text(exec->answer + sizeof *header, header->payload_bytes, error_text, error_bytes);
    return 1;
}

static int refuse_dead(const struct planner_exec *exec, char *error_text, uint32_t error_bytes)
{
    return report(exec->death, error_text, error_bytes);
}

/* ---- the ABI ---- */

/* Makes room for a frame. False: out of memory. */
static bool reserve_frame(struct planner_exec *exec, size_t bytes)
{
    if (bytes > exec->frame_capacity) {
        uint8_t *larger = realloc(exec->frame, bytes);
        if (larger == NULL) {
            return false;
        }
        exec->frame = larger;
        exec->frame_capacity = bytes;
    }
    return true;
}

static int exec_reset(void *planner, const struct swerve_episode *episode, char *error_text,
                      uint32_t error_bytes)
{
    struct planner_exec *exec = planner;
    if (!exec->alive) {
        return refuse_dead(exec, error_text, error_bytes);
    }
    size_t bytes = wire_reset_bytes(episode);
    if (!reserve_frame(exec, bytes)) {
        return report("out of memory", error_text, error_bytes);
    }
    /* Output before the answer without a label may still be of the rollout before. */
    process_drain(&exec->process);
    planner_output_speaker(exec->output, PLANNER_OUTPUT_NOBODY);
    planner_output_clear(exec->output, episode->session);
    wire_reset_encode(exec->frame, exec->sequence, episode);
    struct wire_header header;
    if (ask(exec, bytes, WIRE_DONE, exec->config.open_deadline_ms, WIRE_ERROR_BYTES_MAX, &header,
            error_text, error_bytes) != 0) {
        return 1;
    }
    return header.type == WIRE_ERROR ? answered_error(exec, &header, error_text, error_bytes) : 0;
}

static void share(struct planner_exec *exec, const struct swerve_observation *observation,
                  const struct swerve_sensors *sensors)
{
    uint8_t *slot = exec->shm + observation->session * exec->slot_bytes;
    if (exec->greeting.version == PLANNER_WIRE_VERSION_NEWEST) {
        wire_slot_write(slot, exec->plane_bytes, sensors);
        return;
    }
    if ((exec->greeting.wants & SWERVE_WANTS_BEV) != 0 && observation->bev != NULL) {
        memcpy(slot, observation->bev, BEV_BYTES);
    }
    for (int i = 0; i < CAMERA_COUNT; i++) {
        if ((exec->greeting.wants & SWERVE_WANTS_CAMERAS) != 0 && observation->camera[i] != NULL) {
            memcpy(slot + BEV_BYTES + i * CAMERA_BYTES, observation->camera[i], CAMERA_BYTES);
        }
    }
}

/* The question in exec->frame, in the version that the planner chose; its bytes, 0: no memory. */
static size_t encode_question(struct planner_exec *exec, uint32_t count,
                              const struct swerve_observation *observations,
                              const struct swerve_surroundings *around)
{
    uint32_t wants = exec->greeting.wants;
    if (exec->greeting.version == PLANNER_WIRE_VERSION) {
        CHECK(wire_act_bytes(count) <= exec->frame_capacity);
        wire_act_encode(exec->frame, exec->sequence, wants, count, observations);
        return wire_act_bytes(count);
    }
    size_t bytes = wire_plan_bytes(count, around);
    if (!reserve_frame(exec, bytes)) {
        return 0;
    }
    wire_plan_encode(exec->frame, exec->sequence, wants, count, observations, around);
    return bytes;
}

static enum status decode_answers(const struct planner_exec *exec, size_t payload_bytes,
                                  uint32_t count, const struct swerve_observation *observations,
                                  struct swerve_answer *answers, uint8_t *failed,
                                  struct error *error)
{
    const uint8_t *payload = exec->answer + sizeof(struct wire_header);
    return exec->greeting.version == PLANNER_WIRE_VERSION
               ? wire_actions_decode(payload, payload_bytes, count, observations, answers, failed,
                                     error)
               : wire_plans_decode(payload, payload_bytes, count, observations, answers, failed,
                                   error);
}

static int exec_drive(void *planner, uint32_t count, const struct swerve_observation *observations,
                      const struct swerve_surroundings *around,
                      const struct swerve_sensors *sensors, struct swerve_answer *answers,
                      uint8_t *failed, char *error_text, uint32_t error_bytes)
{
    struct planner_exec *exec = planner;
    if (!exec->alive) {
        return refuse_dead(exec, error_text, error_bytes);
    }
    for (uint32_t i = 0; i < count; i++) {
        share(exec, &observations[i], &sensors[i]);
    }
    planner_output_speaker(exec->output,
                           count == 1 ? (int32_t)observations[0].session : PLANNER_OUTPUT_NOBODY);
    size_t bytes = encode_question(exec, count, observations, around);
    if (bytes == 0) {
        return report("out of memory", error_text, error_bytes);
    }
    struct wire_header header;
    if (ask(exec, bytes, WIRE_ACTIONS, exec->config.tick_deadline_ms,
            wire_answer_bytes_max(exec->greeting.version, count), &header, error_text,
            error_bytes) != 0) {
        return 1;
    }
    if (header.type == WIRE_ERROR) {
        answered_error(exec, &header, error_text, error_bytes);
        die(exec, error_text, 0, false);
        return 1;
    }
    struct error fault;
    if (decode_answers(exec, header.payload_bytes, count, observations, answers, failed, &fault) !=
        STATUS_OK) {
        die(exec, fault.text, 0, false);
        return report(exec->death, error_text, error_bytes);
    }
    return 0;
}

static int exec_fork(void *planner, uint32_t from, uint32_t to, char *error_text,
                     uint32_t error_bytes)
{
    struct planner_exec *exec = planner;
    if (!exec->alive) {
        return refuse_dead(exec, error_text, error_bytes);
    }
    planner_output_speaker(exec->output, PLANNER_OUTPUT_NOBODY);
    planner_output_clear(exec->output, to);
    struct wire_header header;
    size_t bytes = wire_fork_encode(exec->frame, exec->sequence, from, to);
    if (ask(exec, bytes, WIRE_DONE, exec->config.open_deadline_ms, WIRE_ERROR_BYTES_MAX, &header,
            error_text, error_bytes) != 0) {
        return 1;
    }
    return header.type == WIRE_ERROR ? answered_error(exec, &header, error_text, error_bytes) : 0;
}

/* Sends a frame that has no answer. A child too busy to take 24 bytes gets the deadline. */
static void notify(struct planner_exec *exec, const char *what, size_t frame_bytes,
                   int64_t deadline_ms)
{
    struct process_talk talk = {.question = exec->frame, .question_bytes = frame_bytes};
    enum process_result result =
        process_exchange(&exec->process, &talk, 0, clock_monotonic_ns() + deadline_ms * NS_PER_MS);
    exec->sequence++;
    if (result != PROCESS_OK) {
        char text[96];
        snprintf(text, sizeof text, "%s could not be sent", what);
        die(exec, text, 0, false);
    }
}

static void exec_end(void *planner, uint32_t session)
{
    struct planner_exec *exec = planner;
    if (exec->alive) {
        size_t bytes = wire_end_encode(exec->frame, exec->sequence, session);
        notify(exec, "end", bytes, exec->config.tick_deadline_ms);
    }
}

static void exec_close(void *planner)
{
    struct planner_exec *exec = planner;
    if (exec->alive) {
        size_t bytes = wire_bye_encode(exec->frame, exec->sequence);
        notify(exec, "bye", bytes, 100);
    }
    if (exec->process.in_fd >= 0) {
        shutdown(exec->process.in_fd, SHUT_WR);
    }
    process_end(&exec->process, EXIT_GRACE_NS);
    process_finish(&exec->process);
    if (exec->shm != NULL) {
        munmap(exec->shm, exec->shm_bytes);
    }
    free(exec->frame);
    free(exec->answer);
    planner_output_destroy(exec->output);
    free(exec);
}

const struct swerve_planner_ops planner_exec_ops = {
    .abi_version = SWERVE_PLANNER_ABI_VERSION,
    .name = "exec",
    .close = exec_close,
    .reset = exec_reset,
    .drive = exec_drive,
    .fork = exec_fork,
    .end = exec_end,
};

/* ---- open ---- */

/* The room of a session: whole pages, of version 4 as much as it may take. Pages that nothing is
 * written to take no memory. */
static size_t slot_bytes_max(const struct planner_exec *exec)
{
    size_t pages = (size_t)exec->config.sensor_bytes_max / WIRE_PLANE_BYTES;
    return pages * WIRE_PLANE_BYTES > WIRE_SLOT_BYTES ? pages * WIRE_PLANE_BYTES : WIRE_SLOT_BYTES;
}

/* Memory that we write and the child can only read: once sealed against future writing, neither
 * write() nor a writable mapping is possible through the descriptor that the child inherits. */
static enum status shm_create(struct planner_exec *exec, int *fd, struct error *error)
{
    const size_t slot_bytes = slot_bytes_max(exec);
    exec->shm_bytes = (size_t)exec->config.session_count * slot_bytes;
    int memory = memfd_create("swerve-planner", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory < 0 || ftruncate(memory, (off_t)exec->shm_bytes) != 0) {
        goto fail;
    }
    void *mapped = mmap(NULL, exec->shm_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (mapped == MAP_FAILED) {
        goto fail;
    }
    exec->shm = mapped;
    if (fcntl(memory, F_ADD_SEALS,
              F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0) {
        goto fail;
    }
    *fd = memory;
    return STATUS_OK;
fail:
    error_set(error, STATUS_IO, "planner shared memory of %zu bytes: %s", exec->shm_bytes,
              strerror(errno));
    if (memory >= 0) {
        close(memory);
    }
    return STATUS_IO;
}

/* Reads what it chose, and gives each sensor its place. */
static enum status take_choice(struct planner_exec *exec, struct rig *rig,
                               struct rig_choice *choice, struct error *error)
{
    exec->slot_bytes = WIRE_SLOT_BYTES;
    if (exec->greeting.version < PLANNER_WIRE_VERSION_NEWEST) {
        return STATUS_OK;
    }
    if (rig_choice_decode("welcome", exec->greeting.choice, exec->greeting.choice_bytes, rig,
                          choice, error) != STATUS_OK) {
        return error->status = STATUS_PLANNER;
    }
    for (uint32_t i = 0; i < choice->count; i++) {
        exec->plane_bytes[i] = rig_chosen_tick_bytes(rig, &choice->sensors[i]);
    }
    size_t needed = wire_slot_bytes(choice->count, exec->plane_bytes);
    exec->slot_bytes = slot_bytes_max(exec);
    if (needed <= exec->slot_bytes) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_PLANNER,
                     "the %u sensors that it chose of the rig %s take %.1f MB a session: expected "
                     "at most %lld MiB (--planner-sensors-mib)",
                     choice->count, rig->id, (double)needed / 1e6,
                     (long long)(exec->slot_bytes >> 20));
}

/* `offered`: rig.json; NULL: the built-in one. */
static enum status greet(struct planner_exec *exec, const char *offered, struct error *error)
{
    char text[512] = "";
    struct wire_header header;
    if (!reserve_frame(exec, wire_hello_bytes(offered))) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory");
    }
    wire_hello_encode(exec->frame, exec->sequence, exec->config.session_count,
                      (uint32_t)exec->config.tick_deadline_ms,
                      exec->config.debug ? WIRE_LOADED : WIRE_LOADED | WIRE_LABELS, offered);
    if (ask(exec, wire_hello_bytes(offered), WIRE_WELCOME, exec->config.open_deadline_ms,
            WIRE_WELCOME_BYTES_MAX, &header, text, sizeof text) != 0) {
        return error_set(error, STATUS_PLANNER, "hello: %s", text);
    }
    const uint8_t *payload = exec->answer + sizeof header;
    if (header.type == WIRE_ERROR) {
        wire_error_text(payload, header.payload_bytes, text, sizeof text);
        return error_set(error, STATUS_PLANNER, "%s", text);
    }
    return wire_welcome_decode(payload, header.payload_bytes, &exec->greeting, error);
}

/* Hello, welcome, and what follows from it. */
static enum status introduce(struct planner_exec *exec, struct rig *rig, struct rig_choice *choice,
                             struct error *error)
{
    char hash[SHA256_HEX_BYTES];
    char *offered = NULL;
    enum status status = rig_hash(rig, hash, error);
    if (status == STATUS_OK && hash[0] != '\0') {
        status = rig_text(rig, &offered, error);
    }
    THEN(status, greet(exec, offered, error));
    THEN(status, take_choice(exec, rig, choice, error));
    free(offered);
    exec->greeting.choice = NULL; /* the next answer takes its place */
    return status;
}

/* Room for the longest answer of any version. */
static size_t answer_bytes_max(uint32_t session_count)
{
    size_t bytes = wire_answer_bytes_max(PLANNER_WIRE_VERSION_NEWEST, session_count);
    return sizeof(struct wire_header) +
           (bytes > WIRE_WELCOME_BYTES_MAX ? bytes : WIRE_WELCOME_BYTES_MAX);
}

enum status planner_exec_open(const char *spec, const struct planner_argv *words,
                              const struct planner_config *config, struct rig *rig,
                              struct rig_choice *choice, struct planner_exec **out,
                              struct error *error)
{
    enum status status = STATUS_OK;
    struct planner_exec *exec = calloc(1, sizeof *exec);
    TRY(memory_check(exec, error, "planner %s: out of memory", spec));
    exec->config = *config;
    exec->config.abandoned = NULL;
    process_init(&exec->process);
    exec->frame_capacity = wire_act_bytes(config->session_count);
    exec->answer_capacity = answer_bytes_max(config->session_count);
    exec->frame = malloc(exec->frame_capacity);
    exec->answer = malloc(exec->answer_capacity);
    int shm_fd = -1;
    if (exec->frame == NULL || exec->answer == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "out of memory");
    } else {
        status = planner_output_create(config->session_count, &exec->output, error);
        THEN(status, shm_create(exec, &shm_fd, error));
    }
    if (status == STATUS_OK) {
        planner_output_listen(exec->output, config->said, config->said_context);
        const struct process_limits limits = {config->memory_limit_bytes, EXEC_FILES_MAX,
                                              config->confinement, exec->output, config->debug};
        status = process_start(&exec->process, words, shm_fd, exec->shm_bytes, &limits, error);
        exec->alive = status == STATUS_OK;
    }
    if (shm_fd >= 0) {
        close(shm_fd);
    }
    exec->process.abandoned = config->abandoned;
    THEN(status, introduce(exec, rig, choice, error));
    exec->process.abandoned = NULL; /* it was lent for this call */
    if (status != STATUS_OK) {
        if (exec->alive) {
            die(exec, "", 0, false);
        }
        exec_close(exec);
        error_prefix(error, "planner %s", spec);
        return status;
    }
    *out = exec;
    return STATUS_OK;
}

enum status planner_confinement_check(const struct planner_confinement *confinement,
                                      struct error *error)
{
    struct planner_argv words;
    struct planner_process process;
    const struct process_limits limits = {INT64_C(1) << 30, EXEC_FILES_MAX, confinement, NULL,
                                          false};
    TRY(planner_argv_parse("/bin/true", &words, error));
    int fd = memfd_create("swerve-check", MFD_CLOEXEC);
    if (fd < 0) {
        return error_set(error, STATUS_IO, "planner check: %s", strerror(errno));
    }
    enum status status = process_start(&process, &words, fd, 0, &limits, error);
    close(fd);
    if (status != STATUS_OK) {
        return status;
    }
    process_end(&process, EXIT_GRACE_NS);
    if (process.exit.code != CLD_EXITED || process.exit.value != 0) {
        char text[96];
        process_exit_text(&process, text, sizeof text);
        status = error_set(error, STATUS_PLANNER, "planner check: /bin/true %s", text);
    }
    process_finish(&process);
    return status;
}

uint32_t planner_exec_wants(const struct planner_exec *exec)
{
    return exec->greeting.wants;
}

const char *planner_exec_loaded(const struct planner_exec *exec)
{
    return exec->greeting.loaded;
}

enum swerve_tracker planner_exec_tracker(const struct planner_exec *exec)
{
    return (enum swerve_tracker)exec->greeting.tracker;
}

bool planner_exec_alive(const struct planner_exec *exec)
{
    return exec->alive;
}

const char *planner_exec_stderr(struct planner_exec *exec)
{
    process_drain(&exec->process);
    planner_output_tail(exec->output, exec->tail_text);
    return exec->tail_text;
}

void planner_exec_limit(struct planner_exec *exec, uint32_t session, char *text, size_t bytes)
{
    char line[240] = "";
    process_drain(&exec->process);
    if (planner_output_session(exec->output, session, exec->session_text) > 0) {
        planner_output_last_line(exec->session_text, line, sizeof line);
    }
    limit_text(exec, line, text, bytes);
}

const char *planner_exec_session_output(struct planner_exec *exec, uint32_t session, size_t *bytes)
{
    process_drain(&exec->process);
    *bytes = planner_output_session(exec->output, session, exec->session_text);
    return exec->session_text;
}
