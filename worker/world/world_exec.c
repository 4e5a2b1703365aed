/*
 * The process adapter of worlds. See world_exec.h.
 */
#include "worker/world/world_exec.h"

#include "base/clock.h"
#include "base/units.h"
#include "worker/planner/planner_output.h"
#include "worker/planner/planner_process.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum wire_type {
    WIRE_HELLO = 1,
    WIRE_WELCOME,
    WIRE_RESET,
    WIRE_DONE,
    WIRE_STEP,
    WIRE_MADE,
    WIRE_FORK,
    WIRE_DROP,
    WIRE_ERROR,
    WIRE_BYE,
    WIRE_PARK,
    WIRE_RESTORE,
    WIRE_VERSION_2, /* in the place of welcome: the world wants the rig first */
    WIRE_RIG,
    WIRE_RESET_RIG,
    WIRE_STEP_RIG,
};

enum {
    WIRE_MAGIC = 0x4C575753, /* the bytes SWWL */
    WIRE_ERROR_BYTES_MAX = 4096,
    FILES_MAX = 1024,
    DEATH_BYTES = 960,
    VERSION_FIRST = 1, /* of hello, so that worlds that know no other go on */
    SESSION = 0,       /* what is written to stderr is nobody's in particular */
};
#define EXIT_GRACE_NS (1 * NS_PER_S)
#define WELCOME_BYTES offsetof(struct swerve_world_declared, rate_hz) /* of version 1 */

struct wire_header {
    uint32_t magic, type, payload_bytes, sequence;
};

struct wire_hello {
    uint32_t abi_version, state_count, batch_max, thread_count, conditioning, abi_version_max;
    uint64_t memory_bytes;
};

struct wire_step {
    uint32_t count, record_bytes;
};

/* Sent as they are: little-endian, without padding that nobody filled. */
_Static_assert(sizeof(struct wire_header) == 16 && sizeof(struct wire_hello) == 32 &&
                   sizeof(struct wire_step) == 8 && sizeof(struct swerve_world_declared) == 112 &&
                   offsetof(struct swerve_world_declared, rate_hz) == 96 &&
                   sizeof(struct swerve_world_given) == 464 &&
                   sizeof(struct swerve_world_chunk) == 1472 &&
                   sizeof(struct swerve_world_body) == 64 &&
                   sizeof(struct swerve_world_made) == 16 &&
                   sizeof(struct swerve_world_agent) == 40,
               "records of the protocol have no padding");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are sent as they lie");

struct world_exec {
    const struct world_exec_host *host;
    struct planner_process process;
    struct planner_output *output;
    bool alive;
    uint32_t sequence;
    uint8_t *question; /* header, wire_step, records */
    size_t sent_bytes; /* of the question, by an announcement */
    uint8_t *answer;   /* header, payload */
    size_t answer_bytes_max;
    char death[DEATH_BYTES];
};

static int report(const char *sentence, char *error_text, uint32_t error_bytes)
{
    snprintf(error_text, error_bytes, "%s", sentence);
    return 1;
}

static void die(struct world_exec *exec, const char *what, bool tell_exit)
{
    char tail[PLANNER_OUTPUT_TAIL_BYTES + 1];
    char line[160];
    char over[96];
    char exit_text[96] = "";
    process_end(&exec->process, tell_exit ? EXIT_GRACE_NS : 0);
    if (exec->process.killed_at_bytes > 0) {
        snprintf(over, sizeof over, "it used %lld MiB of memory, of %lld MiB, and was ended",
                 (long long)(exec->process.killed_at_bytes >> 20),
                 (long long)(exec->host->memory_bytes >> 20));
        what = over;
    } else if (tell_exit) {
        process_exit_text(&exec->process, exit_text, sizeof exit_text);
    }
    planner_output_tail(exec->output, tail);
    planner_output_last_line(tail, line, sizeof line);
    const char *unseen = exec->process.unseen;
    snprintf(exec->death, sizeof exec->death, "%.159s%s%s%s%s%s%s%s", what,
             exit_text[0] != '\0' ? " " : "", exit_text, unseen[0] != '\0' ? " (" : "", unseen,
             unseen[0] != '\0' ? ")" : "", line[0] != '\0' ? "; its last words: " : "", line);
    exec->alive = false;
}

static struct wire_header header_of(struct world_exec *exec, enum wire_type type, size_t bytes)
{
    return (struct wire_header){WIRE_MAGIC, (uint32_t)type, (uint32_t)bytes, exec->sequence};
}

/* Puts a question with a payload of one record together; its bytes. */
static size_t compose(struct world_exec *exec, enum wire_type type, const void *payload,
                      size_t bytes)
{
    struct wire_header header = header_of(exec, type, bytes);
    memcpy(exec->question, &header, sizeof header);
    memcpy(exec->question + sizeof header, payload, bytes);
    return sizeof header + bytes;
}

/* Fault of an answer's header, of which `got_bytes` of payload are there; "": nothing. */
static void check_header(const struct world_exec *exec, const struct wire_header *header,
                         enum wire_type want, size_t want_bytes, size_t got_bytes, char *text,
                         size_t bytes)
{
    bool error = header->type == WIRE_ERROR && header->payload_bytes <= WIRE_ERROR_BYTES_MAX;
    bool newer = header->type == WIRE_VERSION_2 && want == WIRE_WELCOME &&
                 want_bytes == WELCOME_BYTES && header->payload_bytes == 0;
    text[0] = '\0';
    if (header->magic != WIRE_MAGIC || header->sequence != exec->sequence) {
        snprintf(text, bytes,
                 "its answer has magic 0x%08x and sequence %u, expected 0x%08x and %u (does it "
                 "write to descriptor 1?)",
                 header->magic, header->sequence, WIRE_MAGIC, exec->sequence);
    } else if (!error && !newer &&
               (header->type != (uint32_t)want || header->payload_bytes != want_bytes)) {
        snprintf(text, bytes, "its answer has type %u and %u bytes, expected %u and %zu",
                 header->type, header->payload_bytes, (unsigned)want, want_bytes);
    } else if (got_bytes > header->payload_bytes) {
        snprintf(text, bytes, "it wrote %zu bytes beyond an answer of %u",
                 got_bytes - header->payload_bytes, header->payload_bytes);
    }
}

/* The composed question and its answer, whose payload is at exec->answer + 16. */
static int ask(struct world_exec *exec, size_t question_bytes, enum wire_type want,
               size_t want_bytes, int64_t deadline_ms, char *error_text, uint32_t error_bytes)
{
    char text[160];
    struct wire_header header;
    struct process_talk talk = {exec->question,
                                question_bytes,
                                exec->sent_bytes,
                                exec->answer,
                                sizeof header + want_bytes,
                                0};
    int64_t deadline_ns = clock_monotonic_ns() + deadline_ms * NS_PER_MS;
    exec->sent_bytes = 0;
    if (!exec->alive) {
        return report(exec->death, error_text, error_bytes);
    }
    enum process_result result =
        process_exchange(&exec->process, &talk, sizeof header, deadline_ns);
    if (result == PROCESS_OK) {
        memcpy(&header, exec->answer, sizeof header);
        check_header(exec, &header, want, want_bytes, talk.got_bytes - sizeof header, text,
                     sizeof text);
        if (text[0] != '\0') {
            die(exec, text, false);
            return report(exec->death, error_text, error_bytes);
        }
        talk.room_bytes = sizeof header + header.payload_bytes;
        result = process_exchange(&exec->process, &talk, talk.room_bytes, deadline_ns);
    }
    if (result != PROCESS_OK) {
        bool exits = process_failure(result, deadline_ms,
                                     want == WIRE_MADE ? " (--world-deadline-ms, of world check "
                                                         "--deadline-ms, raises this limit of ours)"
                                                       : "",
                                     text, sizeof text);
        die(exec, text, exits);
        return report(exec->death, error_text, error_bytes);
    }
    exec->sequence++;
    if (header.type == WIRE_ERROR) {
        snprintf(error_text, error_bytes, "%.*s", (int)header.payload_bytes,
                 (const char *)exec->answer + sizeof header);
        return 1;
    }
    return 0;
}

/* A frame that is not answered. */
static void tell(struct world_exec *exec, enum wire_type type, const void *payload, size_t bytes,
                 int64_t deadline_ms)
{
    struct process_talk talk = {.question = exec->question};
    talk.question_bytes = compose(exec, type, payload, bytes);
    if (!exec->alive) {
        return;
    }
    if (process_exchange(&exec->process, &talk, 0,
                         clock_monotonic_ns() + deadline_ms * NS_PER_MS) != PROCESS_OK) {
        die(exec, "it does not read what it is told", false);
    }
    exec->sequence++;
}

/* ---- the table ---- */

static void exec_close(void *world)
{
    struct world_exec *exec = world;
    if (exec->alive) {
        tell(exec, WIRE_BYE, "", 0, 100);
    }
    if (exec->process.in_fd >= 0) {
        shutdown(exec->process.in_fd, SHUT_WR);
    }
    process_end(&exec->process, EXIT_GRACE_NS);
    process_finish(&exec->process);
    planner_output_destroy(exec->output);
    free(exec->question);
    free(exec->answer);
    free(exec);
}

static struct world_exec *create(const struct swerve_world_setup *setup)
{
    struct world_exec *exec = calloc(1, sizeof *exec);
    struct error error;
    if (exec == NULL) {
        return NULL;
    }
    exec->host = setup->host;
    process_init(&exec->process);
    const size_t text_bytes = setup->rig != NULL ? strlen(setup->rig) : 0;
    const size_t step_bytes =
        sizeof(struct wire_step) + setup->batch_max * sizeof(struct swerve_world_chunk);
    exec->question =
        malloc(sizeof(struct wire_header) + (text_bytes > step_bytes ? text_bytes : step_bytes));
    exec->answer_bytes_max =
        WIRE_ERROR_BYTES_MAX + setup->batch_max * sizeof(struct swerve_world_made);
    exec->answer = malloc(sizeof(struct wire_header) + exec->answer_bytes_max);
    if (exec->question == NULL || exec->answer == NULL ||
        planner_output_create(1, &exec->output, &error) != STATUS_OK) {
        exec_close(exec);
        return NULL;
    }
    planner_output_speaker(exec->output, SESSION);
    return exec;
}

/* Hello, and what the world declares to it; one of version 2 hears of the rig in between. */
static int greet(struct world_exec *exec, const struct swerve_world_setup *setup,
                 struct swerve_world_declared *declared, char *error_text, uint32_t error_bytes)
{
    const int64_t start_ms = exec->host->start_ms;
    const struct wire_hello hello = {
        VERSION_FIRST,       setup->state_count,       setup->batch_max,    setup->thread_count,
        setup->conditioning, SWERVE_WORLD_ABI_VERSION, setup->memory_bytes,
    };
    struct wire_header header;
    size_t bytes = WELCOME_BYTES;
    if (ask(exec, compose(exec, WIRE_HELLO, &hello, sizeof hello), WIRE_WELCOME, bytes, start_ms,
            error_text, error_bytes) != 0) {
        return 1;
    }
    memcpy(&header, exec->answer, sizeof header);
    if (header.type == WIRE_VERSION_2) {
        const char *rig = setup->rig != NULL ? setup->rig : "";
        bytes = sizeof *declared;
        if (ask(exec, compose(exec, WIRE_RIG, rig, strlen(rig)), WIRE_WELCOME, bytes, start_ms,
                error_text, error_bytes) != 0) {
            return 1;
        }
    }
    memcpy(declared, exec->answer + sizeof header, bytes);
    return 0;
}

static int exec_open(void **world, const struct swerve_world_setup *setup,
                     struct swerve_world_declared *declared, char *error_text, uint32_t error_bytes)
{
    const struct world_exec_host *host = setup->host;
    struct planner_argv words;
    struct error error;
    struct world_exec *exec = create(setup);
    if (exec == NULL) {
        return report("out of memory", error_text, error_bytes);
    }
    const struct process_limits limits = {host->memory_bytes, FILES_MAX, host->confinement,
                                          exec->output, false};
    enum status status = planner_argv_parse(host->command, &words, &error);
    THEN(status, process_start(&exec->process, &words, setup->memory_fd, setup->memory_bytes,
                               &limits, &error));
    if (status != STATUS_OK) {
        /* Planners start by the same code, whose sentences begin with them. */
        const char *text = error.text;
        text += strncmp(text, "planner ", 8) == 0 ? 8 : 0;
        exec_close(exec);
        return report(text, error_text, error_bytes);
    }
    exec->alive = true;
    if (greet(exec, setup, declared, error_text, error_bytes) != 0) {
        exec_close(exec);
        return 1;
    }
    *world = exec;
    return 0;
}

static int exec_reset(void *world, const struct swerve_world_given *given, char *error_text,
                      uint32_t error_bytes)
{
    struct world_exec *exec = world;
    return ask(exec, compose(exec, WIRE_RESET, given, sizeof *given), WIRE_DONE, 0,
               exec->host->start_ms, error_text, error_bytes);
}

static int exec_reset_rig(void *world, const struct swerve_world_chunk *first, char *error_text,
                          uint32_t error_bytes)
{
    struct world_exec *exec = world;
    return ask(exec, compose(exec, WIRE_RESET_RIG, first, sizeof *first), WIRE_DONE, 0,
               exec->host->start_ms, error_text, error_bytes);
}

/* Puts the question of a step with `count` records together; its bytes. */
static size_t compose_step(struct world_exec *exec, enum wire_type type, uint32_t count,
                           const void *records, size_t record_bytes)
{
    const struct wire_step step = {count, (uint32_t)record_bytes};
    size_t at = sizeof(struct wire_header);
    struct wire_header header = header_of(exec, type, sizeof step + count * record_bytes);
    memcpy(exec->question, &header, at);
    memcpy(exec->question + at, &step, sizeof step);
    memcpy(exec->question + at + sizeof step, records, count * record_bytes);
    return at + header.payload_bytes;
}

void world_exec_announce(void *world, uint32_t count, const struct swerve_world_given *given)
{
    struct world_exec *exec = world;
    size_t bytes = compose_step(exec, WIRE_STEP, count, given, sizeof *given) - 1;
    struct process_talk talk = {.question = exec->question, .question_bytes = bytes};
    if (!exec->alive) {
        return;
    }
    /* Without a wait: what does not fit is sent with the step, which also tells of a failure. */
    (void)process_exchange(&exec->process, &talk, 0, 0);
    exec->sent_bytes = talk.sent_bytes;
}

/* The composed question of a step, and its answer. */
static int ask_step(struct world_exec *exec, size_t question_bytes, uint32_t count,
                    struct swerve_world_made *made, char *error_text, uint32_t error_bytes)
{
    if (ask(exec, question_bytes, WIRE_MADE, count * sizeof *made, exec->host->step_ms, error_text,
            error_bytes) != 0) {
        return 1;
    }
    memcpy(made, exec->answer + sizeof(struct wire_header), count * sizeof *made);
    return 0;
}

static int exec_step(void *world, uint32_t count, const struct swerve_world_given *given,
                     struct swerve_world_made *made, char *error_text, uint32_t error_bytes)
{
    size_t bytes = compose_step(world, WIRE_STEP, count, given, sizeof *given);
    return ask_step(world, bytes, count, made, error_text, error_bytes);
}

static int exec_step_rig(void *world, uint32_t count, const struct swerve_world_chunk *chunks,
                         struct swerve_world_made *made, char *error_text, uint32_t error_bytes)
{
    size_t bytes = compose_step(world, WIRE_STEP_RIG, count, chunks, sizeof *chunks);
    return ask_step(world, bytes, count, made, error_text, error_bytes);
}

static int exec_fork(void *world, uint32_t from, uint32_t to, char *error_text,
                     uint32_t error_bytes)
{
    struct world_exec *exec = world;
    const uint32_t pair[2] = {from, to};
    return ask(exec, compose(exec, WIRE_FORK, pair, sizeof pair), WIRE_DONE, 0,
               exec->host->start_ms, error_text, error_bytes);
}

static void tell_state(struct world_exec *exec, enum wire_type type, uint32_t state)
{
    tell(exec, type, &state, sizeof state, exec->host->step_ms);
}

static void exec_drop(void *world, uint32_t state)
{
    tell_state(world, WIRE_DROP, state);
}

static void exec_park(void *world, uint32_t state)
{
    tell_state(world, WIRE_PARK, state);
}

static void exec_restore(void *world, uint32_t state)
{
    tell_state(world, WIRE_RESTORE, state);
}

bool world_exec_ended(const void *world)
{
    return !((const struct world_exec *)world)->alive;
}

const struct swerve_world_ops world_exec_ops = {
    .abi_version = SWERVE_WORLD_ABI_VERSION,
    .open = exec_open,
    .close = exec_close,
    .reset = exec_reset,
    .step = exec_step,
    .fork = exec_fork,
    .drop = exec_drop,
    .park = exec_park,
    .restore = exec_restore,
    .reset_rig = exec_reset_rig,
    .step_rig = exec_step_rig,
};
