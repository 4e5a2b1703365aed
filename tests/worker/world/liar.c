/*
 * Worlds that break their word, each in one way: the example plugin, with a lie that its config
 * names (plugin:liar.so?lie=fork). test_world.py says which check must name which lie.
 */
#include "schemas/world/world.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

const struct swerve_world_ops *swerve_world_entry(void);
#define swerve_world_entry example_entry
#include "scripts/world/plugin.c"
#undef swerve_world_entry

/* One world of a process at a time lies, so that this may be global. */
static char lie[32];
static unsigned opened;

static int is(const char *name)
{
    return strcmp(lie, name) == 0;
}

static int liar_open(void **world, const struct swerve_world_setup *setup,
                     struct swerve_world_declared *declared, char *error_text, uint32_t error_bytes)
{
    const char *text = strstr(setup->config, "lie=");
    snprintf(lie, sizeof lie, "%s", text != NULL ? text + 4 : "");
    int failed = example_open(world, setup, declared, error_text, error_bytes);
    opened++;
    if (failed == 0 && is("shape")) {
        declared->bev_bytes -= 96;
    } else if (failed == 0 && is("version")) {
        snprintf(declared->version, sizeof declared->version, "1.%u", opened);
    } else if (failed == 0 && is("agents")) {
        declared->flags |= SWERVE_WORLD_MOVES_AGENTS;
    } else if (failed == 0 && is("varies")) { /* no lie: it says so */
        declared->flags &= ~(uint32_t)SWERVE_WORLD_DETERMINISTIC;
    }
    return failed;
}

static int liar_reset(void *world, const struct swerve_world_given *given, char *error_text,
                      uint32_t error_bytes)
{
    struct example *self = world;
    uint64_t before = self->past[given->state];
    int failed = example_reset(world, given, error_text, error_bytes);
    if (is("reuse")) {
        self->past[given->state] ^= before;
    }
    return failed;
}

static void report_agents(struct example *self, const struct swerve_world_given *given,
                          struct swerve_world_made *made)
{
    const struct swerve_world_agent nowhere = {0, 1, (double)NAN, 0.0, 0.0, 0.0};
    memcpy(self->memory + given->agents, &nowhere, sizeof nowhere);
    made->agent_count = 1;
}

static int liar_step(void *world, uint32_t count, const struct swerve_world_given *given,
                     struct swerve_world_made *made, char *error_text, uint32_t error_bytes)
{
    static unsigned calls;
    struct example *self = world;
    for (uint32_t i = 0; i < count; i++) {
        self->past[given[i].state] += is("neighbours") ? count : 0;
        self->past[given[i].state] += is("clock") || is("varies") ? ++calls : 0;
    }
    if (is("frozen")) { /* and nobody writes the frames */
        for (uint32_t i = 0; i < count; i++) {
            made[i].result = SWERVE_WORLD_OK;
        }
        return 0;
    }
    int failed = example_step(world, count, given, made, error_text, error_bytes);
    if (is("beyond")) {
        self->memory[given->frame_cameras + CAMERAS_BYTES + 8] = 1;
    } else if (is("other")) {
        made[0].state++;
    } else if (is("agents")) {
        report_agents(self, given, made);
    } else if (is("places")) {
        made[0].places = 4;
    } else if (is("nan")) {
        made[0].result = SWERVE_WORLD_NOT_FINITE;
    }
    return failed;
}

static int liar_fork(void *world, uint32_t from, uint32_t to, char *error_text,
                     uint32_t error_bytes)
{
    struct example *self = world;
    int failed = example_fork(world, from, to, error_text, error_bytes);
    if (is("fork")) {
        self->past[to] = 0;
    }
    return failed;
}

static void liar_drop(void *world, uint32_t state)
{
    if (!is("reuse")) {
        example_drop(world, state);
    }
}

const struct swerve_world_ops *swerve_world_entry(void)
{
    static struct swerve_world_ops ops;
    ops = *example_entry();
    ops.open = liar_open;
    ops.reset = liar_reset;
    ops.step = liar_step;
    ops.fork = liar_fork;
    ops.drop = liar_drop;
    return &ops;
}
