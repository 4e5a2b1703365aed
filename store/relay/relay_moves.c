/*
 * Sessions whose worker has gone: another takes them up, or they end. See relay.h.
 *
 * Who takes a session up is told what its worker told last, and then what that one had not taken;
 * the rest is between it and the folder in which the session is kept. One that cannot says so, and
 * the next is asked, RELAY_TRIES_MAX at most.
 */
#include "store/relay/relay_internal.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* For a worker that takes the session up: whose it is, its name, its state. NULL: out of memory. */
static char *luggage_of(const struct relayed_client *client)
{
    const struct carried *carried = &client->carried;
    size_t bytes =
        strlen(client->tenant) + strlen(carried->kept) + strlen(carried->state) + sizeof "\n\n";
    char *text = malloc(bytes);
    if (text != NULL) {
        snprintf(text, bytes, "%s\n%s\n%s", client->tenant, carried->kept, carried->state);
    }
    return text;
}

/* Gives the session to a worker that was not asked yet; false: there is none. */
static bool hand_on(struct relayed_client *client)
{
    struct relay *relay = client->relay;
    struct error error;
    bool known;
    const struct relayed_wish wish = {client->tenant, "", client->kin, client->tried,
                                      client->tries};
    struct relayed_worker *worker =
        client->tries < RELAY_TRIES_MAX ? relay_choose(relay, &wish, &known) : NULL;
    if (worker == NULL || relay_seat(client, worker, &error) != STATUS_OK) {
        return false;
    }
    client->tried[client->tries++] = worker->number;
    wire_put(client->lane, ENVELOPE_GO_ON, luggage_of(client));
    for (uint32_t i = 0; i < client->carried.count; i++) {
        wire_say(client->lane, strdup(carried_message(&client->carried, i)));
    }
    log_event(relay->options.logger, LOG_INFO, "session %s goes on at worker %s",
              client->carried.kept, worker->name);
    return true;
}

/* Why it is not given to another: how it goes on then is said in any case. */
static void end_gone(struct relayed_client *client, const char *why)
{
    char text[ERROR_TEXT_BYTES];
    const char *kept = client->carried.kept;
    snprintf(text, sizeof text, "the worker of this session has gone, and %s%s%s%s%s",
             kept[0] != '\0' ? "kept it: \"begin\" with \"resume\": \""
                             : "did not keep it: begin again",
             kept, kept[0] != '\0' ? "\" goes on at one that sees its folder" : "",
             why[0] != '\0' ? "; none does by itself: " : "", why);
    client->relay->counts.ended++;
    relay_say(client, "error", text);
    wire_stop(client->wire, WIRE_TRY_AGAIN);
}

/* It has no worker. */
static void leave_worker(struct relayed_client *client)
{
    client->worker = NULL;
    client->lane = NULL;
}

void relay_worker_gone(struct relayed_client *client)
{
    static const char poisonous[] = "it has moved as often as it may";
    const struct carried *carried = &client->carried;
    bool movable = carried->state != NULL && client->kin[0] != '\0' && client->wanted[0] == '\0' &&
                   !client->relay->stopping;
    bool answered = client->gone_ns == 0;
    leave_worker(client); /* the lane ends with its wire */
    if (!movable || !carried_may_move(carried, answered)) {
        end_gone(client, movable ? poisonous : "");
        return;
    }
    if (answered) {
        client->gone_ns = clock_monotonic_ns();
        client->tries = 0;
    }
    if (!hand_on(client)) {
        end_gone(client, "");
        return;
    }
    carried_move(&client->carried);
    relay_say(client, "moving", "the worker of this session has gone, another one takes it up");
}

void relay_worker_refuses(struct relayed_client *client, const struct envelope *envelope)
{
    char *why = envelope_text(envelope);
    const char *sentence = why != NULL ? why : "out of memory";
    lane_close(client->lane, 0, NULL);
    client->worker->taken--;
    leave_worker(client);
    if (client->gone_ns == 0) {
        client->relay->counts.refused++;
        relay_say(client, "error", sentence);
        wire_stop(client->wire, WIRE_TRY_AGAIN);
    } else if (client->relay->stopping || !hand_on(client)) {
        end_gone(client, sentence);
    }
    free(why);
    pthread_cond_broadcast(&client->relay->changed);
}

void relay_worker_answers(struct relayed_client *client)
{
    if (client->gone_ns != 0) {
        client->relay->counts.moved++;
        client->relay->counts.gap_ns += (uint64_t)(clock_monotonic_ns() - client->gone_ns);
        client->gone_ns = 0;
    }
}
