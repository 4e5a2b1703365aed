/*
 * One tick of a foreign world: everybody is moved, rasters are drawn, the world is asked once for
 * all states, and what it gave back is checked, copied out of the shared memory and measured.
 */
#include "base/clock.h"
#include "base/dmath.h"
#include "engine/learned/agent_measure.h"
#include "engine/learned/frame_measure.h"
#include "engine/worlds/foreign_internal.h"

#include <math.h>
#include <string.h>

enum {
    CALL_TEXT_BYTES = 400,
    PLACES = SWERVE_WORLD_BEV_IN_RASTER | SWERVE_WORLD_CAMERAS_IN_RASTER,
};

/* Bounds of a reported agent: beyond them sums and angles lose their meaning. */
#define AGENT_PLACE_MAX_M 1e6
#define AGENT_HEADING_MAX_RAD 1e4
#define AGENT_SPEED_MAX_MPS 1e3

static void give_ego(const struct foreign_slot *slot, const struct ego_state *before,
                     struct swerve_world_given *given)
{
    const struct ego_state *ego = &slot->drive.scene.ego;
    double dx = ego->pose.x_m - before->pose.x_m;
    double dy = ego->pose.y_m - before->pose.y_m;
    double s, c;
    dmath_sincos(before->pose.heading_rad, &s, &c);
    struct pose local = anchor_local(&slot->anchor, ego->pose);
    struct pose local_before = anchor_local(&slot->anchor, before->pose);
    double turned = local.heading_rad - local_before.heading_rad;
    given->x_m = ego->pose.x_m;
    given->y_m = ego->pose.y_m;
    given->heading_rad = ego->pose.heading_rad;
    given->speed_mps = ego->speed_mps;
    given->accel_mps2 = ego->accel_mps2;
    given->yaw_rate_rps = ego->yaw_rate_rps;
    given->steer_rad = ego->steer_rad;
    given->moved_x_m = c * dx + s * dy;
    given->moved_y_m = c * dy - s * dx;
    given->turned_rad = turned > PI_RAD    ? turned - 2.0 * PI_RAD
                        : turned < -PI_RAD ? turned + 2.0 * PI_RAD
                                           : turned;
    given->local_x_m = local.x_m;
    given->local_y_m = local.y_m;
    given->local_heading_rad = local.heading_rad;
}

void foreign_give(const struct foreign_world *self, const struct foreign_slot *slot,
                  struct window window, const struct ego_state *before, const struct action *action,
                  struct swerve_world_given *given)
{
    const struct scene *scene = &slot->drive.scene;
    uint64_t base = (uint64_t)slot->cell * self->layout.stride;
    *given = (struct swerve_world_given){
        .state = (uint32_t)slot->cell,
        .tick = scene->tick,
        .seed = slot->drive.seed,
        .action_accel_mps2 = action->accel_mps2,
        .action_steer_rad = action->steer_rad,
        .window_i = window.i,
        .window_j = window.j,
        .weather = (uint32_t)scene->conditions.weather,
        .light = (uint32_t)scene->conditions.light,
        .friction = scene->conditions.friction,
        .visibility_m = scene->conditions.visibility_m,
        .frame_bev = base + self->layout.frame,
        .frame_cameras = base + self->layout.frame + self->layout.bev_bytes,
        .agents = base + self->layout.agents,
    };
    if (foreign_declares(self, SWERVE_WORLD_READS_RASTER) || scene->tick == 0) {
        given->raster_bev = base + self->layout.raster;
        given->raster_cameras = given->raster_bev + self->layout.bev_bytes;
    }
    give_ego(slot, before, given);
    layout_conditions(slot->drive.prepared, scene, before, &slot->anchor, window,
                      self->conditioning, given->conditions);
}

/* Tells the world of the step while the last raster is drawn, so that what it has to take apart is
 * still warm when it goes on. */
static void announce(struct foreign_world *self)
{
    int64_t start_ns = clock_now_ns(clock_system());
    self->foreign->announce(self->instance, self->step_count, self->given);
    self->step_ns += clock_now_ns(clock_system()) - start_ns;
}

/* Layouts of some slots of the tick, in the world's form where it reads them; any thread. */
static void draw(void *context, uint32_t first, uint32_t end)
{
    struct foreign_world *self = context;
    for (uint32_t i = first; i < end; i++) {
        const struct foreign_step *step = &self->steps[i];
        if (i + 1 == self->step_count && self->foreign->announce != NULL) {
            announce(self);
        }
        const struct foreign_slot *slot = step->slot;
        uint8_t *raster = foreign_memory(self, slot->cell) + self->layout.raster;
        layout_bev(slot->drive.prepared, &slot->drive.scene, &slot->anchor, step->window,
                   self->conditioning, step->layout);
        layout_cameras(slot->drive.prepared, &slot->drive.scene, self->conditioning,
                       step->layout + FRAME_BEV_BYTES);
        if (!foreign_declares(self, SWERVE_WORLD_READS_RASTER)) {
            continue;
        }
        if (self->declared.form == SWERVE_WORLD_FORM_EGO) {
            foreign_to_ego(slot, self->conditioning, step->window, step->layout, raster);
        } else {
            memcpy(raster, step->layout, FRAME_BYTES);
        }
    }
}

/* ---- what came back ---- */

bool foreign_guarded(const uint8_t *guard)
{
    for (int i = 0; i < FOREIGN_GUARD_BYTES; i++) {
        if (guard[i] != FOREIGN_GUARD) {
            return false;
        }
    }
    return true;
}

/* Whether the answer about a state can be believed so far; else the slot is lost. */
static bool check_made(const struct foreign_world *self, struct foreign_slot *slot,
                       const struct swerve_world_made *made)
{
    uint8_t *memory = foreign_memory(self, slot->cell);
    uint32_t tick = slot->drive.scene.tick;
    if (made->state != (uint32_t)slot->cell) {
        foreign_lose(self, slot, "tick %u: answers for state %u, asked about %d", tick, made->state,
                     slot->cell);
    } else if (made->result == SWERVE_WORLD_NOT_FINITE) {
        foreign_lose(self, slot, "tick %u: its frame has a NaN or an infinity", tick);
    } else if (made->result != SWERVE_WORLD_OK) {
        foreign_lose(self, slot, "tick %u: it could make no frame (result %u)", tick, made->result);
    } else if (made->agent_count > SWERVE_WORLD_AGENTS) {
        foreign_lose(self, slot, "tick %u: %u agents, expected at most %d", tick, made->agent_count,
                     SWERVE_WORLD_AGENTS);
    } else if (made->places > (foreign_declares(self, SWERVE_WORLD_READS_RASTER) ? PLACES : 0)) {
        foreign_lose(self, slot, "tick %u: its frame lies in places %u, expected bits of %d", tick,
                     made->places, foreign_declares(self, SWERVE_WORLD_READS_RASTER) ? PLACES : 0);
    } else if (!foreign_guarded(memory + self->layout.guard) ||
               !foreign_guarded(memory + self->layout.agents_guard)) {
        memset(memory + self->layout.guard, FOREIGN_GUARD, FOREIGN_GUARD_BYTES);
        memset(memory + self->layout.agents_guard, FOREIGN_GUARD, FOREIGN_GUARD_BYTES);
        foreign_lose(self, slot, "tick %u: it wrote beyond its frame or its agents", tick);
    }
    return slot->frame_stats.fault[0] == '\0';
}

/* Whether an agent is somewhere; false for NaN. */
static bool is_somewhere(const struct swerve_world_agent *agent)
{
    return fabs(agent->x_m) <= AGENT_PLACE_MAX_M && fabs(agent->y_m) <= AGENT_PLACE_MAX_M &&
           fabs(agent->heading_rad) <= AGENT_HEADING_MAX_RAD &&
           fabs(agent->speed_mps) <= AGENT_SPEED_MAX_MPS;
}

/* Agents as the world reports them; who moves and is not in the list is not there any more. */
static bool take_agents(const struct foreign_world *self, struct foreign_slot *slot, uint32_t count)
{
    struct scene *scene = &slot->drive.scene;
    const struct scenario *scenario = slot->drive.prepared->scenario;
    const uint8_t *list = foreign_memory(self, slot->cell) + self->layout.agents;
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        scene->agents[i].present =
            scene->agents[i].present && scenario->agents[i].behaviour == BEHAVIOUR_STATIC;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct swerve_world_agent agent;
        memcpy(&agent, list + i * sizeof agent, sizeof agent);
        if (agent.index >= scene->agent_count || !is_somewhere(&agent)) {
            foreign_lose(self, slot, "tick %u: agent %u of %u is at (%g, %g), heading %g, %g m/s",
                         scene->tick, agent.index, scene->agent_count, agent.x_m, agent.y_m,
                         agent.heading_rad, agent.speed_mps);
            return false;
        }
        struct agent_state *state = &scene->agents[agent.index];
        state->accel_mps2 = (agent.speed_mps - state->speed_mps) / TICK_S;
        state->pose = (struct pose){agent.x_m, agent.y_m, agent.heading_rad};
        state->speed_mps = agent.speed_mps;
        state->present = agent.present != 0;
    }
    return true;
}

/* The frame, out of the memory that the world can write at any time. What it does not make is
 * zeros, and a grid that nobody makes is unseen. */
static void take_frame(struct foreign_world *self, const struct foreign_step *step, uint32_t places)
{
    struct foreign_slot *slot = step->slot;
    struct foreign_cell *cell = &self->cells[slot->cell];
    const uint8_t *memory = foreign_memory(self, slot->cell);
    const size_t bev_at =
        (places & SWERVE_WORLD_BEV_IN_RASTER) != 0 ? self->layout.raster : self->layout.frame;
    const size_t cameras_at =
        (places & SWERVE_WORLD_CAMERAS_IN_RASTER) != 0 ? self->layout.raster : self->layout.frame;
    bool ego = self->declared.form == SWERVE_WORLD_FORM_EGO;
    uint8_t *cameras = cell->shown + self->layout.bev_bytes;
    if (foreign_declares(self, SWERVE_WORLD_BEV)) {
        memcpy(cell->shown, memory + bev_at, self->layout.bev_bytes);
    } else {
        memset(cell->shown, 0, self->layout.bev_bytes);
        memset(cell->shown + BEV_CELLS, 255, ego ? BEV_CELLS : 0);
    }
    if (foreign_declares(self, SWERVE_WORLD_CAMERAS)) {
        memcpy(cameras, memory + cameras_at + self->layout.bev_bytes, self->layout.cameras_bytes);
    } else {
        memset(cameras, 0, self->layout.cameras_bytes);
    }
    cell->window = step->window;
}

/* Statistics that a world cannot have are none. */
static void forget_missing(const struct foreign_world *self, struct frame_stats *frame_stats)
{
    if (!foreign_declares(self, SWERVE_WORLD_CAMERAS)) {
        frame_stats->camera_change = frame_stats->camera_layout_corr = (double)NAN;
    }
    if (!foreign_declares(self, SWERVE_WORLD_BEV)) {
        frame_stats->bev_change = frame_stats->layout_iou = (double)NAN;
        frame_stats->occupancy_cells = frame_stats->layout_cells;
        frame_stats->surplus_cells = frame_stats->surplus_vru_cells = (double)NAN;
        frame_stats->agent_count = 0;
    }
}

/* Everything that is told of the frame; `before` is the last one, in the WINDOW form. */
static void measure(struct foreign_world *self, const struct foreign_step *step,
                    const uint8_t *before, struct window before_window)
{
    struct foreign_slot *slot = step->slot;
    struct frame_stats *frame_stats = &slot->frame_stats;
    const struct foreign_cell *cell = &self->cells[slot->cell];
    const struct scene *scene = &slot->drive.scene;
    double dx = scene->ego.pose.x_m - step->before.pose.x_m;
    double dy = scene->ego.pose.y_m - step->before.pose.y_m;
    bool ego = self->declared.form == SWERVE_WORLD_FORM_EGO;
    const struct frame_measure_input input = {
        .conditioning = self->conditioning,
        .frame = cell->measured,
        .window = cell->window,
        .before = before,
        .before_window = before_window,
        .layout = self->conditioning != CONDITIONING_NONE ? step->layout : NULL,
    };
    frame_stats->tick = scene->tick;
    frame_stats->ego_step_m = sqrt(dx * dx + dy * dy);
    if (self->conditioning == CONDITIONING_AGENTS) {
        struct agent_gate gates[AGENT_GATES_MAX];
        struct agent_sums sums[AGENT_GATES_MAX];
        uint32_t count = agent_measure_gates(slot->drive.prepared->scenario, scene, &slot->anchor,
                                             cell->window, gates);
        for (uint32_t i = 0; ego && i < count; i++) {
            gates[i].vru = 0; /* that form does not say who returned the ray */
        }
        agent_measure_sum(cell->measured, step->layout, gates, count, sums);
        agent_measure_conclude(gates, sums, count, frame_stats);
    }
    frame_measure(&input, frame_stats);
    forget_missing(self, frame_stats);
}

static void finish(struct foreign_world *self, const struct foreign_step *step,
                   const struct swerve_world_made *made)
{
    struct foreign_slot *slot = step->slot;
    struct foreign_cell *cell = &self->cells[slot->cell];
    bool ego = self->declared.form == SWERVE_WORLD_FORM_EGO;
    struct window before_window = cell->window;
    if (!check_made(self, slot, made) || (self->conditioning != CONDITIONING_AGENTS &&
                                          foreign_declares(self, SWERVE_WORLD_MOVES_AGENTS) &&
                                          !take_agents(self, slot, made->agent_count))) {
        return;
    }
    memcpy(self->scratch, cell->measured, FRAME_BYTES);
    take_frame(self, step, made->places);
    if (ego) {
        /* The layout goes the same way as the frame, so that both are blurred alike. */
        uint8_t *raster = self->scratch + FRAME_BYTES;
        foreign_to_ego(slot, self->conditioning, step->window, step->layout, raster);
        foreign_from_ego(slot, step->window, raster, step->layout);
        foreign_from_ego(slot, step->window, cell->shown, cell->measured);
    }
    if (self->conditioning != CONDITIONING_AGENTS &&
        !foreign_declares(self, SWERVE_WORLD_MOVES_AGENTS)) {
        struct extract_frame_stats extracted =
            extract_step(slot->drive.prepared, &slot->anchor, step->window, cell->measured,
                         self->expected, &slot->drive.scene, slot->tracks);
        slot->frame_stats.jump_m = extracted.jump_m;
        slot->frame_stats.lost_agents += extracted.vanished;
    }
    measure(self, step, self->scratch, before_window);
    self->ticks++;
}

/* Moves ego and traffic of the active slots; returns how many of them the world is asked about. */
static uint32_t begin(struct foreign_world *self, const struct action *actions,
                      const uint8_t *active)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < self->base.slot_count; i++) {
        if (!active[i]) {
            continue;
        }
        struct foreign_slot *slot = foreign_occupied(&self->base, i);
        struct ego_state before = slot->drive.scene.ego;
        drive_step(&slot->drive, &actions[i], self->conditioning == CONDITIONING_AGENTS);
        if (foreign_lost(self, slot)) {
            continue;
        }
        foreign_own(self, slot);
        if (slot->frame_stats.fault[0] != '\0') {
            continue;
        }
        struct pose ego = anchor_local(&slot->anchor, slot->drive.scene.ego.pose);
        self->steps[count] = (struct foreign_step){
            .slot = slot,
            .before = before,
            .window = window_of(ego),
            .layout = self->layouts + (size_t)count * FRAME_BYTES,
        };
        foreign_give(self, slot, self->steps[count].window, &before, &actions[i],
                     &self->given[count]);
        self->made[count] =
            (struct swerve_world_made){(uint32_t)slot->cell, SWERVE_WORLD_FAILED, 0, 0};
        count++;
    }
    return count;
}

void foreign_step_world(struct world *world, const struct action *actions, const uint8_t *active)
{
    struct foreign_world *self = foreign_of(world);
    char text[CALL_TEXT_BYTES] = "";
    uint32_t count = begin(self, actions, active);
    if (count == 0) {
        return;
    }
    self->step_count = count;
    threads_run(self->threads, count, 1, draw, self);
    int64_t start_ns = clock_now_ns(clock_system());
    int failed =
        self->foreign->ops->step(self->instance, count, self->given, self->made, text, sizeof text);
    self->step_ns += clock_now_ns(clock_system()) - start_ns;
    if (failed != 0) {
        text[sizeof text - 1] = '\0';
        for (uint32_t i = 0; i < count; i++) {
            foreign_lose(self, self->steps[i].slot, "tick %u: %s", self->given[i].tick, text);
        }
        foreign_die(self);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        finish(self, &self->steps[i], &self->made[i]);
    }
}
