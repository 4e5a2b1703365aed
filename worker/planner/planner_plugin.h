/*
 * Loading a planner plugin: a shared object with the C ABI of schemas/planner.h. Private to the
 * planner host and to the process that runs a plugin apart (worker/planner/planner_host.h).
 */
#ifndef SWERVE_WORKER_PLANNER_PLANNER_PLUGIN_H
#define SWERVE_WORKER_PLANNER_PLANNER_PLUGIN_H

#include "base/status.h"
#include "schemas/planner.h"

#include <stdbool.h>
#include <sys/types.h>

enum { PLANNER_CHOICE_BYTES = 128 << 10 }; /* of an offer */

struct planner_plugin {
    void *library; /* of dlopen; NULL: not loaded */
    const struct swerve_planner_ops *ops;
    pid_t process; /* that loaded it */
};

/* Sights of an instance of a checked table (enum swerve_planner_wants): grid, cameras, lists of
 * version 3, and DEVICE where it is given addresses on `place`'s device. place: where the pictures
 * of its world are. STATUS_PLANNER: it takes device addresses alone, and there are none because of
 * `reason`, a clause that says what to do. */
enum status planner_ops_settle(const struct swerve_planner_ops *ops,
                               const struct swerve_place *place, const char *reason,
                               uint32_t *wants, struct error *error);

/* Whether it is asked by plan (version 3) or drive in place of act. */
bool planner_ops_plans(const struct swerve_planner_ops *ops);
/* Whether it is asked by drive (version 4), and chooses sensors of a rig when it is opened. */
bool planner_ops_drives(const struct swerve_planner_ops *ops);

/* open, open_on or open_rig, whichever the table has; `wants` is settled. The offer's rig and
 * choice are read where it chooses sensors. */
int planner_ops_open(const struct swerve_planner_ops *ops, uint32_t wants,
                     const struct swerve_place *place, void **instance,
                     const struct swerve_offer *offer, char *text, uint32_t text_bytes);
/* One call of plan or drive; `sensors` is read where it drives. */
int planner_ops_plan(const struct swerve_planner_ops *ops, void *instance, uint32_t count,
                     const struct swerve_observation *observations,
                     const struct swerve_surroundings *around, const struct swerve_sensors *sensors,
                     struct swerve_answer *answers, uint8_t *failed, char *text,
                     uint32_t text_bytes);

extern const struct swerve_place planner_place_host;

/* Loads the file and checks its table. On failure *plugin is unchanged. */
enum status planner_plugin_load(const char *file, struct planner_plugin *plugin,
                                struct error *error);
/* To be called after each call into a plugin: a plugin may fork(), and a child that comes back from
 * the call would go on as a second worker, with its store and its leases. Such a child says so on
 * stderr and ends here; the process that loaded the plugin returns, as it does for a plugin that is
 * not loaded. */
void planner_plugin_end_copy(const struct planner_plugin *plugin);

void planner_plugin_unload(struct planner_plugin *plugin); /* accepts one that is not loaded */

#endif
