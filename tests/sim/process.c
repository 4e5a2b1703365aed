/*
 * Processes, their fibers, and the network that carries their calls. See fleet.h.
 *
 * The network is TCP as HTTP sees it: a request arrives once (or, when the library or a proxy
 * repeats it, twice), late or not at all; its connection ends with the server's process; a client
 * that has waited long enough goes away, while its request may still be on its way.
 */
#include "tests/sim/fleet.h"

#include "base/check.h"
#include "base/rng.h"
#include "base/units.h"
#include "store/client/http_client.h"
#include "store/wire/http_wire.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tasks ---- */

static void task_wake(void *context, int64_t waits)
{
    struct task *task = context;
    struct fleet *fleet = task->process->fleet;
    struct process *process = task->process;

    if (task->ended || !task->waiting || task->waits != (uint64_t)waits) {
        return;
    }
    if (!process->dead && process->paused_until_ns > fleet->sim.now_ns) {
        sim_at(&fleet->sim, process->paused_until_ns, task_wake, task, waits);
        return;
    }
    task->waiting = false;
    task->waits++;
    fleet->current = task;
    fiber_resume(task->fiber);
    fleet->current = NULL;
}

static void task_wait(struct task *task, int64_t until_ns)
{
    task->waiting = true;
    sim_at(&task->process->fleet->sim, until_ns, task_wake, task, (int64_t)task->waits);
    fiber_yield(task->fiber);
}

bool task_sleep(struct task *task, int64_t ns)
{
    if (!task->process->dead) {
        task_wait(task, task->process->fleet->sim.now_ns + ns);
    }
    return !task->process->dead;
}

static void task_main(void *argument)
{
    struct task *task = argument;

    task->run(task);
    task->ended = true;
}

void process_start(struct process *process, void (*run)(struct task *task), void *context)
{
    struct task *task = calloc(1, sizeof *task);

    CHECK(task != NULL);
    task->process = process;
    task->run = run;
    task->context = context;
    task->fiber = fiber_create(process->fleet->options->fibers, task_main, task);
    task->next = process->tasks;
    process->tasks = task;
    task->waiting = true;
    sim_at(&process->fleet->sim, process->fleet->sim.now_ns, task_wake, task, 0);
}

/* ---- the network ---- */

void message_drop(struct message *message)
{
    if (--message->references == 0) {
        free(message->path);
        free(message->body);
        free(message->reply.data);
        free(message);
    }
}

/* Longer than most clients wait. */
static int64_t late_ns(struct fleet *fleet)
{
    return sim_between(&fleet->sim, 1000, 40000) * NS_PER_MS;
}

static int64_t latency_ns(struct fleet *fleet)
{
    struct sim *sim = &fleet->sim;
    if (sim_chance(sim, fleet->faults.slow)) {
        return sim_between(sim, 1, sim_chance(sim, 0.3) ? 40000 : 4000) * NS_PER_MS;
    }
    return sim_between(sim, 200, 3000) * 1000;
}

static void tell_client(void *context, int64_t argument)
{
    struct message *message = context;
    (void)argument;
    /* It may have gone away, and be waiting for something else by now. */
    if (message->task->reply_to == message && message->task->waiting) {
        task_wake(message->task, (int64_t)message->task->waits);
    }
    message_drop(message);
}

static void arrive_reply(void *context, int64_t argument)
{
    struct message *message = context;
    if (!message->from->deaf) {
        message->answered = true;
        tell_client(message, argument);
    } else {
        message_drop(message);
    }
}

static void arrive_reset(void *context, int64_t argument)
{
    struct message *message = context;
    message->reset = true;
    tell_client(message, argument);
}

void message_reply(struct message *message, struct http_reply *reply)
{
    struct fleet *fleet = message->fleet;

    double lost = fleet->faults.reply_lost + (message->claims ? fleet->faults.claim_lost : 0);
    if (message->reply.data != NULL || sim_chance(&fleet->sim, lost)) {
        free(reply->data); /* lost, or the answer to a repetition */
        return;
    }
    message->reply = *reply;
    message->references++;
    sim_at(&fleet->sim, fleet->server.busy_until_ns + latency_ns(fleet), arrive_reply, message, 0);
}

void message_reset(struct message *message)
{
    struct fleet *fleet = message->fleet;
    if (message->from->deaf || sim_chance(&fleet->sim, 0.3)) {
        return; /* the machine is gone, not the process: nothing comes back */
    }
    message->references++;
    sim_at(&fleet->sim, fleet->sim.now_ns + latency_ns(fleet), arrive_reset, message, 0);
}

static struct message *message_create(struct process *process, struct task *task,
                                      const struct http_call *call)
{
    struct message *message = calloc(1, sizeof *message);

    CHECK(message != NULL);
    message->fleet = process->fleet;
    message->from = process;
    message->task = task;
    message->incarnation = process->fleet->server.incarnation;
    message->references = 1;
    snprintf(message->method, sizeof message->method, "%s", call->method);
    message->path = strdup(call->path);
    message->body = malloc(call->body_bytes + 1);
    CHECK(message->path != NULL && message->body != NULL);
    if (call->body_bytes > 0) {
        memcpy(message->body, call->body, call->body_bytes);
    }
    message->body_bytes = call->body_bytes;
    message->packed = call->packed;
    message->claims = strstr(call->path, "/claim") != NULL;
    message->proxied =
        message->claims && sim_chance(&process->fleet->sim, process->fleet->faults.proxied);
    return message;
}

static void send_request(struct message *message, double late)
{
    struct fleet *fleet = message->fleet;
    if (message->from->mute || sim_chance(&fleet->sim, fleet->faults.request_lost)) {
        return;
    }
    int64_t latency = sim_chance(&fleet->sim, late) ? late_ns(fleet) : latency_ns(fleet);
    message->references++;
    sim_at(&fleet->sim, fleet->sim.now_ns + latency, server_deliver, message, 0);
}

/* One exchange, as http_transport_call promises it. */
static enum status carry(void *context, struct http_call *call, struct error *error)
{
    struct process *process = context;
    struct fleet *fleet = process->fleet;
    struct task *task = fleet->current;
    enum status status = STATUS_OK;

    CHECK(task != NULL && task->process == process);
    if (process->dead || !task_sleep(task, sim_between(&fleet->sim, 50, 500) * 1000)) {
        return error_set(error, STATUS_CANCELLED, "the process was killed");
    }
    if (!fleet->server.up) {
        task_sleep(task, latency_ns(fleet));
        return error_set(error, HTTP_UNREACHED, "connection refused");
    }
    struct message *message = message_create(process, task, call);
    send_request(message, message->claims ? fleet->faults.late_claim : 0);
    if (sim_chance(&fleet->sim, fleet->faults.duplicated * (message->claims ? 4 : 1))) {
        send_request(message, message->claims ? fleet->faults.late_claim : 0);
    }
    task->reply_to = message;
    task_wait(task, fleet->sim.now_ns + call->wait_ms * NS_PER_MS + process->timeout_ns);
    task->reply_to = NULL;
    if (process->dead) {
        status = error_set(error, STATUS_CANCELLED, "the process was killed");
    } else if (!message->answered) {
        status = error_set(error, HTTP_LOST, "%s %s: %s", call->method, call->path,
                           message->reset ? "connection reset" : "no answer");
    } else {
        call->code = message->reply.code;
        call->reply_bytes = message->reply.bytes;
        call->reply = malloc(message->reply.bytes + 1);
        CHECK(call->reply != NULL);
        memcpy(call->reply, message->reply.data, message->reply.bytes);
        call->reply[message->reply.bytes] = '\0';
    }
    message_drop(message);
    return status;
}

/* ---- processes ---- */

static enum status locate(void *context, bool lost, struct store **inner, struct error *error)
{
    (void)lost;
    (void)error;
    *inner = context;
    return STATUS_OK;
}

static void describe(void *context, char *text, size_t capacity)
{
    (void)context;
    snprintf(text, capacity, "the simulated server");
}

static void close_client(void *context)
{
    struct store *client = context;
    client->ops->close(client);
}

static void pause_link(void *context, int64_t ns)
{
    struct process *process = context;
    task_sleep(process->fleet->current, ns);
}

int64_t process_now(const struct process *process)
{
    return sim_clock_now(&process->clock);
}

struct process *process_create(struct fleet *fleet, const char *name)
{
    struct process *process = calloc(1, sizeof *process);
    struct store *client = NULL;
    struct error error;

    CHECK(process != NULL && fleet->process_count < FLEET_PROCESSES_MAX);
    fleet->processes[fleet->process_count++] = process;
    process->fleet = fleet;
    snprintf(process->name, sizeof process->name, "%s", name);
    sim_clock_init(&process->clock, &fleet->sim, sim_between(&fleet->sim, 0, 1000) * NS_PER_S,
                   sim_between(&fleet->sim, -200, 200));
    process->timeout_ns = sim_between(&fleet->sim, 500, 8000) * NS_PER_MS;
    process->pace = (struct retry_pace){.clock = &process->clock.clock,
                                        .pause = pause_link,
                                        .context = process,
                                        .seed = sim_draw(&fleet->sim, UINT32_MAX)};
    struct http_carrier carrier = {carry, process};
    struct store_config config = {.clock = &process->clock.clock};
    CHECK(http_client_open_over(&carrier, &config, &client, &error) == STATUS_OK);
    if (fleet->bug != NULL && fleet->bug->new_claim_ids) {
        process->link = client;
        return process;
    }
    struct retry_source source = {.locate = locate,
                                  .describe = describe,
                                  .close = close_client,
                                  .context = client,
                                  .pace = &process->pace};
    int64_t deadline_ms = sim_between(&fleet->sim, 5, 60) * 1000;
    CHECK(retry_create(&source, deadline_ms, &process->link, &error) == STATUS_OK);
    return process;
}

void process_kill(struct process *process)
{
    if (process->dead) {
        return;
    }
    process->dead = true;
    sim_log(&process->fleet->sim, process->name, "is killed");
    for (struct task *task = process->tasks; task != NULL; task = task->next) {
        if (!task->ended) {
            sim_at(&process->fleet->sim, process->fleet->sim.now_ns, task_wake, task,
                   (int64_t)task->waits);
        }
    }
}

void process_destroy(struct process *process)
{
    while (process->tasks != NULL) {
        struct task *task = process->tasks;
        CHECK(task->ended);
        process->tasks = task->next;
        free(task);
    }
    process->link->ops->close(process->link);
    free(process->state);
    free(process);
}
