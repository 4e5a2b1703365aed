/*
 * The interactive pool: sessions that go on in real time, on one thread that keeps their deadlines
 * (scheduler/deadline.h). Every tick takes the newest control input of its session, none is queued;
 * every frame says by which tier it was made, how long it waited and took, and whether it was late.
 *
 * A learned world has several ways to make a frame: by all steps of its sampler, by fewer, and
 * drawn from the scene, without any. A tick gets the best that is on time for it and for the ticks
 * that are due soon, by costs that were measured: while nobody sits the pool drives by itself to
 * know them. Steps that were left out are kept with the drive, which has the same bits whenever it
 * is driven again.
 *
 * People are shown frames of any tier. Hardware is shown those of all steps, and others where the
 * tier's verdicts are known to be those of all steps often enough in every slice of its scenario;
 * so it takes up no session whose line has a tick of another tier.
 *
 * Functions may be called from any thread. Those that take a seat are called by its holder alone,
 * one at a time.
 */
#ifndef SWERVE_WORKER_INTERACTIVE_INTERACTIVE_H
#define SWERVE_WORKER_INTERACTIVE_INTERACTIVE_H

#include "base/clock.h"
#include "base/sha256.h"
#include "engine/learned/device.h"
#include "scenarios/scenarios.h"
#include "scheduler/deadline.h"
#include "schemas/ticks/tick_histogram.h"
#include "store/api/trust.h"
#include "worker/interactive/session.h"
#include "worker/models/models.h"

/* Session of whoever asks for nothing else: real time, and a deadline of one tick. */
#define INTERACTIVE_RATE 1.0
#define INTERACTIVE_LIMIT_MS 100.0

enum { WINDSCREEN_WIDTH = 640, WINDSCREEN_HEIGHT = 360 };

/* Way in which a frame of a learned world is made. */
struct interactive_way {
    bool previous;  /* by the previous model */
    uint32_t steps; /* of the sampler; 0: drawn, by none */
};

/* Verdicts by fewer steps of a sampler, or drawn, or of the previous model, beside those by all of
 * the model's steps, in a slice. */
struct interactive_judged {
    bool previous;                /* its verdicts, where it made every frame */
    char sampler[LIMIT_ID_BYTES]; /* of the model, or of that one: "agents/euler1/bf16" */
    struct trust_slice slice;
    bool refused;       /* to hardware */
    const char *result; /* why: a word of the gate; borrowed */
    double agreement;   /* share of scenarios with the same verdict .. */
    int64_t scenarios;  /* .. of so many */
    double band;        /* that is asked for */
};

struct interactive;
struct seat; /* a session in the pool */

struct interactive_options {
    const char *suite; /* file or folder of a suite or scenario */
    const char *world; /* "object" or "replay"; of a learned one the name of its tier */
    uint32_t seats;    /* at once, 1 to DEADLINE_SESSIONS_MAX */
    const struct clock *clock;
    /* Folder of logs, from which sessions go on in another pool; a tenant's lie in one of its own
     * there. NULL: none. When a session begins, the longest untouched logs of its tenant go until
     * there are fewer than INTERACTIVE_KEPT_MAX, of at most `keep_bytes`; 0 counts as a GiB. */
    const char *keep;
    uint64_t keep_bytes;
    /* Of a learned world. */
    const struct models_model
        *model; /* of ours; borrowed, outlives the pool; NULL: another world */
    enum conditioning conditioning;
    const struct device *device;         /* borrowed while it is opened; NULL: the CPU */
    uint32_t threads;                    /* that share a tick's products; 0 counts as 1 */
    const struct models_model *previous; /* takes over where it is too slow; borrowed; NULL: none */
    /* Ways of it, steps falling, then of the previous model, then drawn. None: all steps, half as
     * many, .., one, of both, and drawn where the conditioning is `agents`. */
    uint32_t way_count;
    struct interactive_way ways[DEADLINE_TIERS_MAX];
    uint32_t judged_count;
    const struct interactive_judged *judged; /* borrowed, outlives the pool */
    /* Costs that are believed in place of measured ones, for tests; NULL: they are measured. */
    const double (*planted_ms)[DEADLINE_PARTS]; /* [INTERACTIVE_MODELS] */
};

/* Who makes a frame. Costs are kept apart by that on the CPU, where steps of a sampler are timed
 * by themselves; by tier on a device, where a tick is timed as a whole. */
enum { INTERACTIVE_GENERATED = 0, INTERACTIVE_PREVIOUS, INTERACTIVE_DRAWN, INTERACTIVE_MODELS };

/* State after a tick, or after an order. Borrowed during the call. */
struct interactive_frame {
    const struct scene *scene;
    const uint8_t *cameras;    /* [SWERVE_ENV_CAMERA_BYTES] */
    const uint8_t *windscreen; /* [height][width][3] of WINDSCREEN_..; NULL: the world shows none */
    struct action action;      /* that was driven in the last tick */
    enum swerve_env_end end;
    bool touched;
    bool paused;
    uint32_t lines;
    /* Of the tick; 0 and "" after an order. */
    const char *tier;
    const char *model;   /* hash; "": it was made by none */
    const char *backend; /* that its bits are of; "": the CPU's, or no model's */
    uint32_t steps;      /* of its sampler; 0: none was taken */
    bool late;
    double limit_ms;   /* the deadline, from its moment */
    double wait_ms;    /* from its moment until it was begun */
    double compute_ms; /* from then until this */
    double slack_ms;   /* left until the deadline; below 0: late */
};

/* Who is told. Calls come from the pool's thread, or from that of an order. */
struct interactive_listener {
    void (*frame)(void *context, const struct interactive_frame *frame);
    /* A session that cannot go on; it stays where it is. */
    void (*failed)(void *context, const char *sentence);
    void *context;
};

/* Counts since the pool was opened. */
struct interactive_counts {
    uint64_t sessions, refused; /* begun, and whoever was not let in, whatever the reason */
    uint64_t ticks, lates;
    uint32_t seated;
    uint32_t room; /* for so many more, in real time, who ask for nothing else */
    double load;   /* share of the thread that its sessions need */
    bool known;    /* what ticks cost, so that sessions may be refused by it */
};

enum status interactive_open(const struct interactive_options *options, struct interactive **out,
                             struct error *error);
void interactive_close(struct interactive *pool); /* accepts NULL; nobody sits any more */

uint32_t interactive_scenarios(const struct interactive *pool);
const struct scenario_document *interactive_document(const struct interactive *pool,
                                                     uint32_t scenario);
struct interactive_counts interactive_counts(struct interactive *pool);

/* Ticks of a seat, or (NULL) of all since the pool was opened; the best tier first. Returns how
 * many. */
uint32_t interactive_ticks(struct interactive *pool, const struct seat *seat,
                           struct tick_tier out[DEADLINE_TIERS_MAX]);

/* State of a seat that another pool has to know, beside its log and its wish, so that its session
 * goes on there as it did here. */
struct interactive_standing {
    bool kept; /* else there is no log, or one that does not grow any more */
    bool paused;
    uint32_t turns; /* ways back so far */
    struct action action;
};

struct interactive_wish {
    uint32_t scenario; /* of the suite */
    uint64_t seed;
    double rate;     /* of time, 1: real time; 0.1 to 1 */
    double limit_ms; /* from a tick's moment to its deadline, 1 to 1,000 */
    uint32_t
        steps_least;  /* of the sampler, that it accepts; 0: a drawn frame, where there are any */
    bool hardware;    /* at the wheel: no tier that it accepts may be refused to it */
    bool plain;       /* no windscreen is drawn, which takes most of the time of being told */
    bool model_alone; /* nothing below the model's own tiers: not the previous one's, nor drawn */
    struct seat *instead; /* the holder's, which is left once this one is there; NULL: none */
    const char *resume;   /* name of a kept session, which goes on; NULL: a new drive. Scenario and
                             seed are those of its log then */
    /* As the session to be taken up stood in another pool, which may be about to let go of it: that
     * is waited for, for a second, and the log has to have all of its ways back. NULL: in none. */
    const struct interactive_standing *behind;
    const char *tenant; /* whose the session is, who alone takes it up; "" or NULL: nobody's */
};

enum { INTERACTIVE_NAME_BYTES = 33, INTERACTIVE_KEPT_MAX = 1000 };

/* A seat, paused at tick 0, or where a session is taken up; the listener, copied, is given the
 * first frame before this returns. BUSY: no room, or the deadlines of those who sit would not be
 * kept, or somebody drives what is to be taken up. NOT_FOUND, BAD_INPUT. After either the seat
 * `instead` goes on as it did. */
enum status interactive_sit(struct interactive *pool, const struct interactive_wish *wish,
                            const struct interactive_listener *listener, struct seat **out,
                            struct error *error);
/* Removes what is kept of the session `instead` of whose this seat is. Until then another pool
 * could take that one up, as long as nobody knows of this one. Accepts NULL. */
void interactive_settle(struct seat *seat);
void interactive_leave(struct seat *seat); /* accepts NULL; the listener is called no more */
/* Sessions that one pool keeps go on in another with the same text, a terminated hash of all that
 * their bits depend on but for scenarios; where it sees the folder. "": the pool keeps none. */
void interactive_kin(const struct interactive *pool, char out[SHA256_HEX_BYTES]);
/* Name under which its session is kept, until another has its place and is settled; "": it is not.
 */
const char *interactive_name(const struct seat *seat);
/* Its drive's. */
uint32_t interactive_scenario_of(const struct seat *seat);
uint64_t interactive_seed_of(const struct seat *seat);

struct interactive_standing interactive_standing(const struct seat *seat);

/* Tells what ego is to do from the next tick on. */
void interactive_act(struct seat *seat, struct action action);
/* The one in force: zeros at first, where a session is taken up, and after a way back. */
struct action interactive_action(const struct seat *seat);
void interactive_pause(struct seat *seat, bool paused);
/* As session_back(); paused afterwards. The listener is given the frame there. */
enum status interactive_back(struct seat *seat, uint32_t ticks, bool keep, struct error *error);
/* As session_outcome() and session_scenario(). */
enum status interactive_outcome(struct seat *seat, char json[SWERVE_ENV_OUTCOME_BYTES],
                                struct error *error);
enum status interactive_scenario(struct seat *seat, const char *id, char **text,
                                 struct error *error);

#endif
