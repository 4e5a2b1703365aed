/*
 * Messages of a session. See session_talk.h.
 *
 * A message that is wrong is answered with a sentence and changes nothing.
 */
#include "cli/session/session_talk.h"

#include "base/check.h"
#include "base/file.h"
#include "base/jpeg/jpeg_encode.h"
#include "base/text.h"
#include "schemas/json_read.h"
#include "schemas/json_record.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ACCEL_MIN = -50, ACCEL_MAX = 50, STEER_MIN = -2, STEER_MAX = 2 }; /* m/s2, rad */
enum {
    NAME_BYTES = 65,
    SAVES_MAX = 1000,
    SAVED_FILES_MAX = 10000,
    JPEG_QUALITY = 85,
    JPEG_BYTES = 512 << 10
};

#define SAVED_BYTES_MAX (UINT64_C(1) << 30)
/* Above it a JSON number of many clients, a double, is not whole. */
#define SEED_MAX INT64_C(9007199254740991)

struct talk {
    struct talk_options options;
    struct lane *lane;
    struct seat *seat; /* NULL: no session yet */
    uint64_t seed;
    struct interactive_wish wish; /* of the seat: its terms, see terms_of(); the rest is unset */
    uint32_t turned; /* ways back that are driven though they are still to be asked for */
    char tenant[LIMIT_ID_BYTES];
    uint8_t pictures[SWERVE_ENV_CAMERA_BYTES + JPEG_BYTES];
};

/* ---- to the client ---- */

/* Takes the object; NULL: out of memory. */
static void say(struct talk *talk, json_t *object)
{
    wire_say(talk->lane, object != NULL ? json_dumps(object, JSON_COMPACT) : NULL);
    json_decref(object);
}

static void say_error(struct talk *talk, const char *sentence)
{
    say(talk,
        json_pack("{s:s,s:o}", "type", "error", "text", json_text_new(sentence, ERROR_TEXT_BYTES)));
}

static json_t *scenarios_of(const struct talk *talk)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < interactive_scenarios(talk->options.pool); i++) {
        const struct scenario *scenario = &interactive_document(talk->options.pool, i)->scenario;
        json_array_append_new(list,
                              json_pack("{s:s,s:s}", "id", scenario->id, "title", scenario->title));
    }
    return list;
}

/* Tiers by which frames are made, the best first. */
static json_t *tiers_of(const struct talk *talk)
{
    struct tick_tier tiers[DEADLINE_TIERS_MAX];
    uint32_t count = interactive_ticks(talk->options.pool, NULL, tiers);
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        json_array_append_new(
            list, json_pack("{s:s,s:i}", "tier", tiers[i].tier, "steps", (int)tiers[i].steps));
    }
    return list;
}

void talk_attach(struct talk *talk, struct lane *lane)
{
    talk->lane = lane;
    say(talk,
        json_pack("{s:s,s:s,s:b,s:o,s:o}", "type", "hello", "world", talk->options.world, "keeps",
                  talk->options.keeps, "tiers", tiers_of(talk), "scenarios", scenarios_of(talk)));
}

static json_t *agents_of(const struct scene *scene)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        const struct agent_state *agent = &scene->agents[i];
        const struct pose *pose = &agent->pose;
        json_array_append_new(list, agent->present ? json_pack("[f,f,f,f]", pose->x_m, pose->y_m,
                                                               pose->heading_rad, agent->speed_mps)
                                                   : json_null());
    }
    return list;
}

/* The cameras, and behind them the windscreen as JPEG where there is one; nothing where they lie in
 * memory. */
static void show_pictures(struct talk *talk, char *text, const struct interactive_frame *frame)
{
    struct error error;
    size_t jpeg_bytes = 0;
    if (talk->options.memory != NULL) {
        wire_show(talk->lane, text, talk->pictures, 0);
        return;
    }
    memcpy(talk->pictures, frame->cameras, SWERVE_ENV_CAMERA_BYTES);
    if (frame->windscreen != NULL &&
        jpeg_encode(frame->windscreen, WINDSCREEN_WIDTH, WINDSCREEN_HEIGHT, JPEG_QUALITY,
                    talk->pictures + SWERVE_ENV_CAMERA_BYTES, JPEG_BYTES, &jpeg_bytes,
                    &error) != STATUS_OK) {
        say_error(talk, error.text);
        jpeg_bytes = 0;
    }
    wire_show(talk->lane, text, talk->pictures, SWERVE_ENV_CAMERA_BYTES + jpeg_bytes);
}

/* Writes the pictures into memory, where there is one, and their place into the frame's object.
 * False: out of memory. */
static bool put_place(const struct talk *talk, json_t *object,
                      const struct interactive_frame *frame)
{
    if (talk->options.memory == NULL) {
        return true;
    }
    uint64_t number = session_memory_put(talk->options.memory, frame);
    return json_object_set_new(object, "number", json_integer((json_int_t)number)) == 0 &&
           json_object_set_new(object, "slot",
                               json_integer((json_int_t)(number % SESSION_MEMORY_SLOTS))) == 0;
}

static void show_frame(void *context, const struct interactive_frame *frame)
{
    static const char *const ends[] = {"", "horizon", "collision", "sick", "empty"};
    struct talk *talk = context;
    const struct ego_state *ego = &frame->scene->ego;
    json_t *object = json_pack(
        "{s:s,s:i,s:[f,f,f,f,f,f],s:[f,f],s:o,s:s,s:b,s:b,s:i}", "type", "frame", "tick",
        (int)frame->scene->tick, "ego", ego->pose.x_m, ego->pose.y_m, ego->pose.heading_rad,
        ego->speed_mps, ego->accel_mps2, ego->steer_rad, "action", frame->action.accel_mps2,
        frame->action.steer_rad, "agents", agents_of(frame->scene), "end", ends[frame->end],
        "touched", frame->touched, "paused", frame->paused, "lines", (int)frame->lines);
    json_t *timing =
        json_pack("{s:s,s:s,s:s,s:i,s:b,s:f,s:f,s:f,s:f}", "tier", frame->tier, "model",
                  frame->model, "backend", frame->backend, "steps", (int)frame->steps, "late",
                  frame->late, "deadline_ms", frame->limit_ms, "wait_ms", frame->wait_ms,
                  "compute_ms", frame->compute_ms, "slack_ms", frame->slack_ms);
    bool whole = object != NULL && timing != NULL && json_object_update(object, timing) == 0 &&
                 put_place(talk, object, frame);
    char *text = whole ? json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(timing);
    json_decref(object);
    show_pictures(talk, text, frame);
}

static void show_failure(void *context, const char *sentence)
{
    say_error(context, sentence);
}

/* ---- from the client ---- */

static enum status scenario_of(const struct talk *talk, const struct json_cursor *message,
                               uint32_t *out, struct error *error)
{
    char id[LIMIT_ID_BYTES];
    struct json_cursor member = json_cursor_member(message, "scenario");
    TRY(json_value_text(&member, id, sizeof id, error));
    for (uint32_t i = 0; i < interactive_scenarios(talk->options.pool); i++) {
        if (strcmp(interactive_document(talk->options.pool, i)->scenario.id, id) == 0) {
            *out = i;
            return STATUS_OK;
        }
    }
    return json_fail(&member, error,
                     "expected the id of a scenario of the suite, as \"hello\" lists them, found "
                     "\"%s\"",
                     id);
}

/* A kept session has its own. */
static enum status refuse_beside_resume(const struct json_cursor *message, struct error *error)
{
    static const char *const others[] = {"scenario", "seed"};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        struct json_cursor other = json_cursor_member(message, others[i]);
        if (other.value != NULL) {
            return json_fail(&other, error,
                             "expected none beside \"resume\", which has its own, found one");
        }
    }
    return STATUS_OK;
}

/* Terms on which a session is driven, as members of a message; those that are not given have their
 * usual values. */
static enum status read_terms(const struct talk *talk, const struct json_cursor *message,
                              struct interactive_wish *out, struct error *error)
{
    int64_t least = 0;
    bool hardware = talk->options.memory != NULL; /* whatever it says */
    out->rate = INTERACTIVE_RATE;
    out->limit_ms = hardware ? TALK_HARDWARE_LIMIT_MS : INTERACTIVE_LIMIT_MS;
    TRY(json_member_number(message, "rate", false, 0.1, 1, &out->rate, error));
    TRY(json_member_number(message, "deadline_ms", false, 1, 1000, &out->limit_ms, error));
    TRY(json_member_integer(message, "steps_least", false, 0, LIMIT_SAMPLER_STEPS, &least, error));
    TRY(json_member_bool(message, "model_alone", false, &out->model_alone, error));
    TRY(json_member_bool(message, "hardware", false, &out->hardware, error));
    out->hardware |= hardware;
    out->steps_least = (uint32_t)least;
    return STATUS_OK;
}

/* The same members. */
static json_t *terms_of(const struct interactive_wish *wish)
{
    return json_pack("{s:f,s:f,s:i,s:b,s:b}", "rate", wish->rate, "deadline_ms", wish->limit_ms,
                     "steps_least", (int)wish->steps_least, "model_alone", wish->model_alone,
                     "hardware", wish->hardware);
}

static enum status sit(struct talk *talk, struct interactive_wish *wish, struct error *error)
{
    const struct interactive_listener listener = {show_frame, show_failure, talk};
    wish->instead = talk->seat;
    wish->tenant = talk->tenant;
    wish->plain = talk->options.memory != NULL;
    TRY(interactive_sit(talk->options.pool, wish, &listener, &talk->seat, error));
    talk->seed = interactive_seed_of(talk->seat);
    talk->wish = *wish;
    talk->wish.resume = talk->wish.tenant = NULL;
    talk->wish.instead = NULL;
    talk->wish.behind = NULL;
    talk->turned = 0;
    return STATUS_OK;
}

/* The listener is given the first frame before "begun" is said; of what waits to be sent, texts go
 * before frames. */
static enum status begin(struct talk *talk, const struct json_cursor *message, struct error *error)
{
    int64_t seed = 0;
    struct interactive_wish wish = {.resume = NULL};
    char name[INTERACTIVE_NAME_BYTES];
    struct json_cursor resume = json_cursor_member(message, "resume");
    if (resume.value != NULL) {
        TRY(json_value_text(&resume, name, sizeof name, error));
        TRY(refuse_beside_resume(message, error));
        wish.resume = name;
    } else if (json_cursor_member(message, "scenario").value == NULL) {
        return json_fail(message, error, "expected \"scenario\" or \"resume\", found neither");
    } else {
        TRY(scenario_of(talk, message, &wish.scenario, error));
    }
    TRY(json_member_integer(message, "seed", false, 0, SEED_MAX, &seed, error));
    TRY(read_terms(talk, message, &wish, error));
    wish.seed = (uint64_t)seed;
    TRY(sit(talk, &wish, error));
    const struct scenario *scenario =
        &interactive_document(talk->options.pool, interactive_scenario_of(talk->seat))->scenario;
    say(talk, json_pack("{s:s,s:s,s:i,s:f,s:f,s:s}", "type", "begun", "scenario", scenario->id,
                        "ticks", (int)scenario->horizon_ticks, "rate", wish.rate, "deadline_ms",
                        wish.limit_ms, "session", interactive_name(talk->seat)));
    return STATUS_OK;
}

/* ---- going on in place of another worker ---- */

char *talk_state(const struct talk *talk)
{
    const char *name = talk_kept(talk);
    const struct interactive_standing standing =
        talk->seat != NULL ? interactive_standing(talk->seat) : (struct interactive_standing){0};
    if (!standing.kept) {
        return strdup(name);
    }
    json_t *object = terms_of(&talk->wish);
    json_t *now = json_pack("{s:f,s:f,s:b,s:i}", "accel", standing.action.accel_mps2, "steer",
                            standing.action.steer_rad, "paused", standing.paused, "turns",
                            (int)(standing.turns - talk->turned));
    bool whole = object != NULL && now != NULL && json_object_update(object, now) == 0;
    char *state = whole ? json_dumps(object, JSON_COMPACT) : NULL;
    size_t bytes = state != NULL ? strlen(name) + strlen(state) + sizeof "\n" : 0;
    char *text = bytes > 0 ? malloc(bytes) : NULL;
    if (text != NULL) {
        snprintf(text, bytes, "%s\n%s", name, state);
    }
    free(state);
    json_decref(now);
    json_decref(object);
    return text;
}

static enum status read_state(const struct talk *talk, const struct json_cursor *state,
                              struct interactive_wish *wish, struct interactive_standing *standing,
                              struct error *error)
{
    static const char *const members[] = {"rate",     "deadline_ms", "steps_least", "model_alone",
                                          "hardware", "accel",       "steer",       "paused",
                                          "turns",    NULL};
    int64_t turns = 0;
    TRY(json_object_begin(state, members, error));
    TRY(read_terms(talk, state, wish, error));
    TRY(json_member_number(state, "accel", true, ACCEL_MIN, ACCEL_MAX, &standing->action.accel_mps2,
                           error));
    TRY(json_member_number(state, "steer", true, STEER_MIN, STEER_MAX, &standing->action.steer_rad,
                           error));
    TRY(json_member_bool(state, "paused", true, &standing->paused, error));
    TRY(json_member_integer(state, "turns", true, 0, INT32_MAX, &turns, error));
    standing->turns = (uint32_t)turns;
    return STATUS_OK;
}

/* The drive goes on as it stood: a way back that was driven, and is still to be asked for, has
 * paused it. */
static void go_on(struct talk *talk, const struct interactive_standing *standing)
{
    talk->turned = interactive_standing(talk->seat).turns - standing->turns; /* as it wished */
    say(talk, json_pack("{s:s,s:s}", "type", "moved", "session", interactive_name(talk->seat)));
    if (talk->turned == 0) {
        interactive_act(talk->seat, standing->action);
        if (!standing->paused) {
            interactive_pause(talk->seat, false);
        }
    }
}

enum status talk_take_up(struct talk *talk, struct lane *lane, const char *name, const char *text,
                         struct error *error)
{
    static const char file[] = "state";
    json_t *state = NULL;
    struct interactive_standing standing = {.kept = true};
    struct interactive_wish wish = {.resume = name, .behind = &standing};
    talk->lane = lane;
    TRY(json_read_text(file, text, strlen(text), &state, error));
    const struct json_cursor root = json_cursor_root(file, state);
    enum status status = read_state(talk, &root, &wish, &standing, error);
    json_decref(state);
    THEN(status, sit(talk, &wish, error));
    if (status == STATUS_OK) {
        go_on(talk, &standing);
    }
    return status;
}

/* ---- orders ---- */

/* A member that is not given holds. */
static enum status act(struct talk *talk, const struct json_cursor *message, struct error *error)
{
    struct action action = interactive_action(talk->seat);
    if (json_cursor_member(message, "accel").value == NULL &&
        json_cursor_member(message, "steer").value == NULL) {
        return json_fail(message, error, "expected \"accel\" or \"steer\", found neither");
    }
    TRY(json_member_number(message, "accel", false, ACCEL_MIN, ACCEL_MAX, &action.accel_mps2,
                           error));
    TRY(json_member_number(message, "steer", false, STEER_MIN, STEER_MAX, &action.steer_rad,
                           error));
    interactive_act(talk->seat, action);
    return STATUS_OK;
}

static enum status go(struct talk *talk, const struct json_cursor *message, struct error *error)
{
    (void)message;
    (void)error;
    interactive_pause(talk->seat, talk->turned > 0);
    return STATUS_OK;
}

static enum status pause_it(struct talk *talk, const struct json_cursor *message,
                            struct error *error)
{
    (void)message;
    (void)error;
    interactive_pause(talk->seat, true);
    return STATUS_OK;
}

static enum status back(struct talk *talk, const struct json_cursor *message, struct error *error)
{
    int64_t ticks = LIMIT_HORIZON_TICKS;
    bool keep = false;
    TRY(json_member_integer(message, "ticks", false, 0, LIMIT_HORIZON_TICKS, &ticks, error));
    TRY(json_member_bool(message, "keep", false, &keep, error));
    if (talk->turned > 0) { /* at the worker before */
        talk->turned--;
        interactive_act(talk->seat, (struct action){0});
        interactive_pause(talk->seat, true);
        return STATUS_OK;
    }
    return interactive_back(talk->seat, (uint32_t)ticks, keep, error);
}

static enum status tell_outcome(struct talk *talk, const struct json_cursor *message,
                                struct error *error)
{
    char text[SWERVE_ENV_OUTCOME_BYTES];
    (void)message;
    TRY(interactive_outcome(talk->seat, text, error));
    json_t *outcome = json_loads(text, 0, NULL);
    json_object_set_new(outcome, "planner", json_string("human"));
    say(talk, json_pack("{s:s,s:o}", "type", "outcome", "outcome", outcome));
    return STATUS_OK;
}

static enum status tell_ticks(struct talk *talk, const struct json_cursor *message,
                              struct error *error)
{
    struct tick_tier tiers[DEADLINE_TIERS_MAX];
    uint32_t count = interactive_ticks(talk->options.pool, talk->seat, tiers);
    json_t *list = json_array();
    (void)message;
    (void)error;
    for (uint32_t i = 0; i < count; i++) {
        const struct tick_tier *one = &tiers[i];
        json_t *object =
            json_pack("{s:s,s:i,s:I,s:I}", "tier", one->tier, "steps", (int)one->steps, "ticks",
                      (json_int_t)one->ticks, "lates", (json_int_t)one->lates);
        for (int part = 0; part < TICK_PARTS; part++) {
            json_t *counts = json_array();
            for (int k = 0; k <= TICK_BOUNDS; k++) {
                json_array_append_new(counts, json_integer((json_int_t)one->parts[part].counts[k]));
            }
            json_object_set_new(object, tick_part_names[part], counts);
        }
        json_array_append_new(list, object);
    }
    json_t *bounds = json_array();
    for (int k = 0; k < TICK_BOUNDS; k++) {
        json_array_append_new(bounds, json_real(tick_bounds_ms[k]));
    }
    say(talk, json_pack("{s:s,s:o,s:o}", "type", "ticks", "bounds_ms", bounds, "tiers", list));
    return STATUS_OK;
}

/* ---- saving ---- */

/* Files of this process and their bytes: drivers come and go, and one may write all that it holds.
 */
static atomic_uint_fast64_t saved_files;
static atomic_uint_fast64_t saved_bytes;

static enum status check_room(const char *folder, struct error *error)
{
    return atomic_load(&saved_files) < SAVED_FILES_MAX &&
                   atomic_load(&saved_bytes) < SAVED_BYTES_MAX
               ? STATUS_OK
               : error_set(error, STATUS_LIMIT,
                           "%s: this server has saved %d files or %d MiB, as many as it may: look "
                           "them through and start it again",
                           folder, SAVED_FILES_MAX, (int)(SAVED_BYTES_MAX >> 20));
}

/* The name that is asked for. */
static enum status name_of(const struct json_cursor *message, char name[NAME_BYTES],
                           struct error *error)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
    struct json_cursor member = json_cursor_member(message, "name");
    TRY(json_value_text(&member, name, NAME_BYTES, error));
    bool good = name[0] != '\0' && name[0] != '-' && strspn(name, allowed) == strlen(name);
    return good ? STATUS_OK
                : json_fail(&member, error,
                            "expected 1 to %d letters, digits, '_' and '-', the first no '-', "
                            "found \"%s\"",
                            NAME_BYTES - 1, name);
}

/* Creates FOLDER/NAME.json, or with a number behind the name where there is such a file; `name`
 * [strlen(wanted) + 8] becomes what it was called. */
static enum status create_file(const char *folder, const char *wanted, char *name,
                               char path[LIMIT_PATH_BYTES], int *fd, struct error *error)
{
    for (int number = 1; number <= SAVES_MAX; number++) {
        char tail[8] = "";
        if (number > 1) {
            snprintf(tail, sizeof tail, "-%d", number);
        }
        snprintf(name, strlen(wanted) + sizeof tail, "%s%s", wanted, tail);
        snprintf(path, LIMIT_PATH_BYTES, "%s/%s.json", folder, name);
        *fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (*fd >= 0) {
            return STATUS_OK;
        }
        if (errno != EEXIST) {
            break;
        }
    }
    return error_set(error, STATUS_IO, "%s: cannot be written: %s", path, strerror(errno));
}

static enum status write_whole(int fd, const char *path, const char *text, struct error *error)
{
    bool written = file_write_at(fd, text, strlen(text), 0);
    atomic_fetch_add(&saved_files, 1);
    atomic_fetch_add(&saved_bytes, strlen(text));
    if (close(fd) == 0 && written) {
        return STATUS_OK;
    }
    enum status status =
        error_set(error, STATUS_IO, "%s: cannot be written: %s", path, strerror(errno));
    unlink(path);
    return status;
}

/* A suite of the scenario under the session's seed, beside it. */
static enum status save_suite(const struct talk *talk, const char *name,
                              char path[LIMIT_PATH_BYTES], struct error *error)
{
    char text[512];
    char whole[NAME_BYTES + 16];
    char unused[NAME_BYTES + 24];
    int fd = -1;
    snprintf(whole, sizeof whole, "%s.suite", name);
    TRY(create_file(talk->options.folder, whole, unused, path, &fd, error));
    snprintf(text, sizeof text,
             "{\n \"id\": \"%s\",\n \"seeds\": [%llu],\n \"scenarios\": [{\"file\": "
             "\"%s.json\"}]\n}\n",
             name, (unsigned long long)talk->seed, name);
    return write_whole(fd, path, text, error);
}

static enum status save_scenario(struct talk *talk, const char *wanted, char name[NAME_BYTES + 8],
                                 char path[LIMIT_PATH_BYTES], struct error *error)
{
    char *text = NULL;
    int fd = -1;
    TRY(check_room(talk->options.folder, error));
    TRY(create_file(talk->options.folder, wanted, name, path, &fd, error));
    enum status status = interactive_scenario(talk->seat, name, &text, error);
    if (status != STATUS_OK) { /* nothing driven leaves nothing */
        close(fd);
        unlink(path);
        return status;
    }
    status = write_whole(fd, path, text, error);
    free(text);
    return status;
}

static enum status save(struct talk *talk, const struct json_cursor *message, struct error *error)
{
    char wanted[NAME_BYTES];
    char name[NAME_BYTES + 8];
    char path[LIMIT_PATH_BYTES];
    char command[2 * LIMIT_PATH_BYTES + 128 + LIMIT_ID_BYTES];
    TRY(name_of(message, wanted, error));
    TRY(save_scenario(talk, wanted, name, path, error));
    if (talk->seed != 0) {
        TRY(save_suite(talk, name, path, error));
    }
    const char *models = talk->options.models;
    const char *previous = talk->options.previous;
    const char *device = talk->options.device;
    snprintf(command, sizeof command, "swerve run %s%s --world %s%s%s%s%s%s%s", path,
             talk->seed == 0 ? " --nominal" : "", talk->options.world,
             models != NULL ? " --models " : "", models != NULL ? models : "",
             previous != NULL ? " --previous " : "", previous != NULL ? previous : "",
             device != NULL ? " --device " : "", device != NULL ? device : "");
    say(talk, json_pack("{s:s,s:s,s:s,s:s}", "type", "saved", "name", name, "path", path, "command",
                        command));
    return STATUS_OK;
}

/* ---- one message ---- */

enum { ORDER_MEMBERS_MAX = 9 };

static const char *const order_names[] = {"begin", "act",     "go",    "pause",
                                          "back",  "outcome", "ticks", "save"};

/* In the order of their names. */
static const struct {
    enum status (*obey)(struct talk *talk, const struct json_cursor *message, struct error *error);
    const char *members[ORDER_MEMBERS_MAX + 1];
    bool begins; /* a session; the others want one */
} orders[] = {
    {begin,
     {"type", "scenario", "seed", "rate", "deadline_ms", "steps_least", "model_alone", "hardware",
      "resume"},
     true},
    {act, {"type", "accel", "steer"}, false},
    {go, {"type"}, false},
    {pause_it, {"type"}, false},
    {back, {"type", "ticks", "keep"}, false},
    {tell_outcome, {"type"}, false},
    {tell_ticks, {"type"}, false},
    {save, {"type", "name"}, false},
};

_Static_assert(COUNT_OF(orders) == COUNT_OF(order_names), "one name each");

static enum status obey(struct talk *talk, const struct json_cursor *message, struct error *error)
{
    static const char *const nothing[] = {NULL};
    int order = 0;
    if (!json_is_object(message->value)) {
        return json_object_begin(message, nothing, error);
    }
    TRY(json_refuse_slip(message, "type", error));
    TRY(json_member_choice(message, "type", true, order_names, COUNT_OF(order_names), &order,
                           error));
    TRY(json_object_begin(message, orders[order].members, error));
    if (!orders[order].begins && talk->seat == NULL) {
        return error_set(error, STATUS_CONFLICT, "%s: no session has begun", order_names[order]);
    }
    return orders[order].obey(talk, message, error);
}

void talk_message(void *context, const char *text, size_t bytes)
{
    static const char name[] = "message";
    struct talk *talk = context;
    struct error error;
    json_t *message = NULL;
    /* It was said by now that this session has begun: nobody takes up the one before any more. */
    interactive_settle(talk->seat);
    enum status status = json_read_text(name, text, bytes, &message, &error);
    const struct json_cursor root = json_cursor_root(name, message);
    THEN(status, obey(talk, &root, &error));
    if (status != STATUS_OK) {
        say_error(talk, error.text);
    }
    json_decref(message);
}

const char *talk_kept(const struct talk *talk)
{
    return talk->seat != NULL ? interactive_name(talk->seat) : "";
}

enum status talk_create(const struct talk_options *options, const char *tenant, struct talk **out,
                        struct error *error)
{
    if (strlen(tenant) >= LIMIT_ID_BYTES) {
        return error_set(error, STATUS_LIMIT,
                         "session: expected a tenant of at most %d bytes, found %zu",
                         LIMIT_ID_BYTES - 1, strlen(tenant));
    }
    struct talk *talk = calloc(1, sizeof *talk);
    TRY(memory_check(talk, error, "session: out of memory"));
    talk->options = *options;
    strcpy(talk->tenant, tenant);
    *out = talk;
    return STATUS_OK;
}

void talk_destroy(struct talk *talk)
{
    if (talk != NULL) {
        interactive_leave(talk->seat);
        free(talk);
    }
}
