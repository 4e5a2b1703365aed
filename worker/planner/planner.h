/*
 * Planner host: opens a planner spec and drives it through the one C ABI of schemas/planner.h,
 * whether it is built in, a shared object, or another process.
 *
 *   builtin:NAME[?config]   plugin:FILE.so[?config]   exec:COMMAND LINE   egodriver:NAME[?options]
 *
 * Two kinds of failure. A *session* failure (non-finite or absurd answer, a non-zero `failed` mark)
 * ends that rollout alone. An *instance* failure (crash, hang beyond the deadline, protocol
 * nonsense) kills the instance: every later call answers STATUS_PLANNER, and the caller opens a new
 * one and runs the interrupted rollouts again one at a time, so that a neighbour is never blamed.
 * Where the connection to a server was lost, nobody is.
 */
#ifndef SWERVE_WORKER_PLANNER_PLANNER_H
#define SWERVE_WORKER_PLANNER_PLANNER_H

#include "base/sha256.h"
#include "base/status.h"
#include "schemas/planner.h"
#include "schemas/rig/rig_choice.h"
#include "worker/egodriver/egodriver.h"
#include "worker/planner/planner_output.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct planner;

/* Things that exec planners may see and do beyond their limits. Borrowed for as long as planners
 * are opened. SWERVE_TOKEN_FILE and everything else that begins with SWERVE_TOKEN is never theirs.
 */
struct planner_confinement {
    bool sandbox;            /* worker/planner/planner_sandbox.h; plugins run apart then */
    const char *host;        /* the swerve binary, which runs plugins apart; NULL: refused */
    bool environment_listed; /* of the environment, what is known to be needed, and `environment` */
    const char *const
        *paths; /* shown in the sandbox beside the system's and the working directory */
    uint32_t path_count;
    const char *const *environment; /* names */
    uint32_t environment_count;
    const char *secrets[2]; /* files that must not be visible; NULL: none */
    int64_t memory_bytes;   /* where planner_config has none; 0: 4 GiB */
    int64_t start_ms;       /* open_deadline_ms where planner_config has none; 0: 20,000 */
    uint32_t processes;     /* in the sandbox, threads included; 0: 512 */
    int64_t tmp_bytes;      /* of its /tmp and of its /dev/shm; 0: 256 MiB */
    struct contract_places egodrivers; /* of planners behind a service */
    struct contract_places omnidreams; /* of world models behind a service */
    const char *seed_frames;           /* their first frames, a directory; NULL: our sensors' */
    int64_t sensor_bytes; /* shared with it for the sensors of one session; 0: 32 MiB */
};

enum { PLANNER_SENSOR_BYTES = 32 << 20 };

struct planner_config {
    uint32_t session_count;     /* sessions 0 .. session_count - 1 */
    int64_t tick_deadline_ms;   /* for one act() of an exec planner; 0: 1,000 */
    int64_t open_deadline_ms;   /* for start-up, reset and fork of an exec planner; 0: as
                                   confinement says, or 20,000 */
    int64_t memory_limit_bytes; /* of each process of an exec planner, in a sandbox of all together;
                                   0: as confinement says, or 4 GiB */
    int64_t sensor_bytes_max;   /* shared with an exec planner for the sensors of one session; 0: as
                                   confinement says, or PLANNER_SENSOR_BYTES */
    const struct planner_confinement *confinement; /* NULL: none */
    const struct rig *rig; /* sensors that it may choose of, borrowed during planner_open; NULL: the
                              built-in ones */
    /* Memory of its world's pictures, for plugins that read them there; borrowed during
     * planner_open. NULL: in host memory. */
    const struct swerve_place *place;
    /* In a process that may not use a device: a plugin that would be given addresses on one is
     * looked at and not opened. The planner can only be closed then. */
    bool trial;
    /* Told of each call into a plugin of this process: its spec when it begins, "" when it has
     * returned. From code that hangs nothing else gets a sign. NULL: nobody is. */
    void (*watch)(void *context, const char *planner);
    void *watch_context;
    /* Given what was asked and answered in each act(), after it; pictures in host memory only.
     * NULL: nobody is. */
    void (*observed)(void *context, uint32_t count, const struct swerve_observation *observations,
                     const struct swerve_action *actions);
    void *observed_context;
    /* Told of each line that a session of an exec planner writes to stderr. NULL: nobody is. */
    planner_output_line *said;
    void *said_context;
    /* Set from another thread while it starts: it is given up then (CANCELLED or PLANNER), soon.
     * Borrowed during planner_open. NULL: nobody does. */
    const atomic_bool *abandoned;
    /* An exec planner is being debugged: what it writes to stderr is written to ours at once, and
     * the terminal's input is its own (SWERVE_DEBUG=1 tells its client). Deadlines are the
     * caller's to lift. */
    bool debug;
};

/* Checks that a spec is well-formed and names something that exists, without running it. */
enum status planner_spec_check(const char *spec, struct error *error);

/* Identity on which the results of this planner depend: builtin: its name, config and the
 * simulation revision; plugin: the file's content and config; exec: the command line and the
 * content of every regular file named in it; egodriver: its name and options. */
enum status planner_identity(const char *spec, char hash[SHA256_HEX_BYTES], struct error *error);

/* The identity of a planner, once planner_loaded() is known: `hash` becomes that of both.
 * Where it says nothing, `hash` stays as it is. */
void planner_identity_extend(char hash[SHA256_HEX_BYTES], const char *loaded);

/* Whether confined planners can be run here, by running one: what stands in the way otherwise. */
enum status planner_confinement_check(const struct planner_confinement *confinement,
                                      struct error *error);

/* Longest start of a process of the planner by this configuration, ms. */
int64_t planner_start_ms(const struct planner_config *config);

enum status planner_open(const char *spec, const struct planner_config *config,
                         struct planner **out, struct error *error);
void planner_close(struct planner *planner); /* accepts NULL; ends and reaps a process group */

/* enum swerve_planner_wants bits; DEVICE: it is given addresses on the device of `place`. Of a
 * builtin also PLANNER_WANTS_RETURNS, PLANNER_WATCHED (worker/planner/builtin/planner_builtin.h).
 */
uint32_t planner_wants(const struct planner *planner);

/* Rig whose sensors it is shown: its own, or the one that it was offered. Planners of a version
 * before 4 that want grid or cameras are refused where that is not the built-in one. */
const struct rig *planner_rig(const struct planner *planner);
/* Sensors that a planner of version 4 chose of it; none of others. */
const struct rig_choice *planner_choice(const struct planner *planner);

/* Of an exec planner whose client says it: SHA-256 in hex of the files that it had loaded when it
 * answered hello (schemas/planner.md). Of one behind a service: of what its servers say that they
 * are. Else "". */
const char *planner_loaded(const struct planner *planner);

/* Whether the instance is still usable. */
bool planner_alive(const struct planner *planner);

/* Whether it died since the connection to its server was lost: whoever it drove is not to blame. */
bool planner_cut_off(const struct planner *planner);

enum status planner_reset(struct planner *planner, const struct swerve_episode *episode,
                          struct error *error);

/* actions[i] and failed[i] answer observations[i]. Answers are checked: not finite, |accel| > 50
 * m/s2 or |steer| > 2 rad marks failed[i], with the reason in planner_session_error(). Not OK: the
 * instance is dead. */
enum status planner_act(struct planner *planner, uint32_t count,
                        const struct swerve_observation *observations,
                        struct swerve_action *actions, uint8_t *failed, struct error *error);

/* The same with what is around (parallel to observations), for planners of version 3: their answers
 * may be trajectories, which a tracker (worker/tracker/tracker.h) turns into the actions. A
 * trajectory that cannot be followed marks failed[i]. `around` is not read for others; histories
 * are filled in here. */
enum status planner_plan(struct planner *planner, uint32_t count,
                         const struct swerve_observation *observations,
                         struct swerve_surroundings *around, struct swerve_action *actions,
                         uint8_t *failed, struct error *error);

/* The same with the frames of the sensors of planner_choice(), parallel to observations. NULL:
 * there are none to be shown, which a planner that chose some refuses. */
enum status planner_drive(struct planner *planner, uint32_t count,
                          const struct swerve_observation *observations,
                          struct swerve_surroundings *around, const struct swerve_sensors *sensors,
                          struct swerve_action *actions, uint8_t *failed, struct error *error);

/* Answer to observations[i] of the last planner_plan, until the next one; a trajectory
 * where the planner gave one. NULL: it is of a version that knows none. */
const struct swerve_answer *planner_answer(const struct planner *planner, uint32_t i);

enum status planner_fork(struct planner *planner, uint32_t from, uint32_t to, struct error *error);

/* Says that a session is not forked any more until it is reset: what only forks need may go. */
void planner_end_forks(struct planner *planner, uint32_t session);

/* Whether the last fork to a session was refused because the planner answered the same past
 * otherwise: what it does then is another result each time. */
bool planner_varies(const struct planner *planner, uint32_t session);
void planner_end(struct planner *planner, uint32_t session);

/* Why the session's last answer failed; "" if it did not. Valid until its next act or reset. */
const char *planner_session_error(const struct planner *planner, uint32_t session);

/* Introduces the last line of stderr in the sentence of an exec planner's death. */
#define PLANNER_STDERR_JOINT "; stderr ends: "

bool planner_has_stderr(const struct planner *planner); /* an exec planner's alone is read */

/* The last few KiB an exec planner wrote to stderr, terminated; "" for the others. */
const char *planner_stderr_tail(struct planner *planner);

/* Text that one session wrote since its reset or fork, at most PLANNER_OUTPUT_BYTES: an exec
 * planner's stderr, debug bytes of one behind a service. */
const char *planner_session_output(struct planner *planner, uint32_t session, size_t *bytes);

#endif
