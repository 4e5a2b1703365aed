/*
 * Seats of clients at workers, and what every part of the relay asks. See relay.h.
 */
#include "base/clock.h"
#include "schemas/json_record.h"
#include "store/relay/relay_internal.h"

#include <stdlib.h>
#include <string.h>

const char relay_gone_token[] = "the token has expired or was revoked";

bool relay_holds(const struct relay *relay, struct shown *token)
{
    bool live = !token->limited || relay->options.holds(relay->options.holder, token->id);
    token->looked_ns = live ? clock_monotonic_ns() : 0;
    return live;
}

/* Places that nobody has and for which there is time; below 0: for less than is taken. */
static int64_t free_room(const struct relayed_worker *worker)
{
    return (int64_t)worker->room - (int64_t)worker->taken;
}

static bool is_among(const uint64_t *numbers, uint32_t count, uint64_t number)
{
    for (uint32_t i = 0; i < count; i++) {
        if (numbers[i] == number) {
            return true;
        }
    }
    return false;
}

bool relay_serves(const struct relayed_worker *worker, const char *tenant)
{
    return worker->tenant[0] == '\0' || strcmp(worker->tenant, tenant) == 0;
}

static bool fits(const struct relayed_worker *worker, const struct relayed_wish *wish)
{
    return worker->attached != NULL && relay_serves(worker, wish->tenant) &&
           (wish->name[0] == '\0' || strcmp(wish->name, worker->name) == 0) &&
           (wish->kin == NULL || strcmp(wish->kin, worker->kin) == 0) &&
           !is_among(wish->but, wish->but_count, worker->number);
}

struct relayed_worker *relay_choose(const struct relay *relay, const struct relayed_wish *wish,
                                    bool *known)
{
    struct relayed_worker *best = NULL;
    *known = false;
    for (struct relayed_worker *each = relay->workers; each != NULL; each = each->next) {
        if (!fits(each, wish)) {
            continue;
        }
        *known = true;
        if (each->taken < each->places && (best == NULL || free_room(each) > free_room(best))) {
            best = each;
        }
    }
    return best;
}

enum status relay_seat(struct relayed_client *client, struct relayed_worker *worker,
                       struct error *error)
{
    uint64_t session = ++client->relay->sessions;
    TRY(lane_open(worker->wire, session, &client->lane, error));
    client->session = session;
    client->worker = worker;
    worker->taken++;
    return STATUS_OK;
}

void relay_say(const struct relayed_client *client, const char *type, const char *sentence)
{
    json_t *object =
        json_pack("{s:s,s:o}", "type", type, "text", json_text_new(sentence, ERROR_TEXT_BYTES));
    wire_say(wire_lane(client->wire), object != NULL ? json_dumps(object, JSON_COMPACT) : NULL);
    json_decref(object);
}
