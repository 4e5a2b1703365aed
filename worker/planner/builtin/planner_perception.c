/*
 * Perception of builtin:reference, in four steps: runs of occupied cells by rows, runs joined into
 * clusters (union-find), cells projected onto the route, clusters matched with tracks.
 *
 * The grid is mostly empty, so rows are skipped eight cells at a time and only occupied cells are
 * projected. Loops run in row, column and track order; no step depends on anything but the session.
 */
#include "worker/planner/builtin/planner_perception.h"

#include "base/dmath.h"
#include "schemas/observation.h"
#include "worker/planner/builtin/planner_builtin.h"

#include <math.h>
#include <string.h>

enum {
    RUNS_MAX = 512,
    CLUSTERS_MAX = 64,
    CELL_MIN = 24,     /* weaker returns are ignored */
    MASS_SOLID = 250,  /* summed coverage of about one full cell */
    MASS_MEDIUM = 110, /* more than any single stray return has */
    EVIDENCE_SOLID = 15,
    EVIDENCE_MEDIUM = 10,
    EVIDENCE_WEAK = 3,
    EVIDENCE_ENOUGH = 30,
    MISSED_FRAMES_MAX = 5,
};

#define GATE_M 2.0
#define GATE_NEW_M 4.0 /* a track seen once has no speed yet: up to 40 m/s in a tick */
#define CENTROID_EXTENT_M 2.4
#define STEADY_EXTENT_M 0.25
#define NEAR_ROUTE_M 8.0
#define SPEED_MAX_MPS 70.0

/* ---- route ---- */

void frenet_make(struct frenet *frenet, const struct swerve_observation *seen)
{
    frenet->count = 0;
    for (uint32_t i = 0; i + 1 < seen->route_count && i + 1 < SWERVE_ROUTE_POINTS; i++) {
        double x = (double)seen->route[i].x_m;
        double y = (double)seen->route[i].y_m;
        double dx = (double)seen->route[i + 1].x_m - x;
        double dy = (double)seen->route[i + 1].y_m - y;
        double length = dmath_max(sqrt(dx * dx + dy * dy), 1e-6);
        /* A foot point lies at most the grid's half width aside from its cell. */
        double reach = 2.0 - BEV_Y_MIN_M * fabs(dy) / length;
        frenet->segments[frenet->count++] = (struct frenet_segment){x,
                                                                    y,
                                                                    dx / length,
                                                                    dy / length,
                                                                    length,
                                                                    dmath_min(x, x + dx) - reach,
                                                                    dmath_max(x, x + dx) + reach};
    }
    /* The ends go straight on. */
    frenet->segments[0].x_low_m = -1e9;
    frenet->segments[frenet->count - 1].x_high_m = 1e9;
}

/* Segments [first, end) that may hold the foot points of all points with one x. */
struct candidates {
    double x_m;
    uint32_t first, end;
};

static void find_candidates(const struct frenet *frenet, double x_m, struct candidates *out)
{
    uint32_t first = frenet->count;
    uint32_t end = 0;
    for (uint32_t i = 0; i < frenet->count; i++) {
        const struct frenet_segment *segment = &frenet->segments[i];
        if (x_m >= segment->x_low_m && x_m <= segment->x_high_m) {
            first = i < first ? i : first;
            end = i + 1;
        }
    }
    *out = (struct candidates){x_m, first, end};
}

static inline bool project_among(const struct frenet *frenet, const struct candidates *among,
                                 double y_m, struct frenet_point *out)
{
    double x_m = among->x_m;
    double best = 1e300;
    for (uint32_t i = among->first; i < among->end; i++) {
        const struct frenet_segment *segment = &frenet->segments[i];
        double px = x_m - segment->x_m;
        double py = y_m - segment->y_m;
        double along = px * segment->ux + py * segment->uy;
        double across = segment->ux * py - segment->uy * px;
        double low = i == 0 ? -1e9 : 0.0;
        double high = i + 1 == frenet->count ? 1e9 : segment->length_m;
        double clamped = dmath_clamp(along, low, high);
        double over = along - clamped;
        double squared = across * across + over * over;
        if (squared < best) {
            best = squared;
            *out = (struct frenet_point){SWERVE_ROUTE_STEP_M * (double)i + clamped, across,
                                         segment->ux, segment->uy};
        }
    }
    if (best < 1e300) {
        out->d_m = out->d_m < 0.0 ? -sqrt(best) : sqrt(best);
    }
    return best < 1e300;
}

bool frenet_project(const struct frenet *frenet, double x_m, double y_m, struct frenet_point *out)
{
    struct candidates among;
    find_candidates(frenet, x_m, &among);
    return project_among(frenet, &among, y_m, out);
}

bool perception_unseen(const struct swerve_observation *seen, double s_m, double d_m)
{
    struct planner_point point = planner_route_at(seen, s_m, d_m);
    double row = floor((point.x_m - BEV_X_MIN_M) / BEV_CELL_M);
    double col = floor((point.y_m - BEV_Y_MIN_M) / BEV_CELL_M);
    if (!(row >= 0.0 && row < BEV_ROWS && col >= 0.0 && col < BEV_COLS)) {
        return false;
    }
    size_t cell = (size_t)BEV_UNSEEN * BEV_CELLS + (size_t)row * BEV_COLS + (size_t)col;
    return seen->bev[cell] >= 128;
}

/* ---- clusters ---- */

struct run {
    uint16_t row;
    uint16_t first; /* columns [first, end) */
    uint16_t end;
    uint16_t parent; /* index of a run of the same cluster, its own for a root */
};

struct cluster {
    uint32_t mass;
    double x_sum, y_sum; /* standing frame, weighted by coverage */
    double s_sum, d_sum; /* along the route */
    uint32_t projected_mass;
    struct perception_box box;
    struct perception_extent at;
    bool taken;
};

struct clusters {
    uint32_t run_count;
    uint32_t count;
    struct run runs[RUNS_MAX];
    struct cluster list[CLUSTERS_MAX];
};

static uint16_t run_root(const struct run *runs, uint16_t index)
{
    while (runs[index].parent != index) {
        index = runs[index].parent;
    }
    return index;
}

/* Joins a new run with those of the row before that it touches, diagonals included. *previous is
 * the first run of that row that may still matter, which only moves on. */
static void run_join(struct clusters *clusters, uint16_t index, uint32_t *previous,
                     uint32_t previous_end)
{
    struct run *runs = clusters->runs;
    while (*previous < previous_end && runs[*previous].end < runs[index].first) {
        ++*previous;
    }
    for (uint32_t k = *previous; k < previous_end && runs[k].first <= runs[index].end; k++) {
        uint16_t a = run_root(runs, (uint16_t)k);
        uint16_t b = run_root(runs, index);
        /* The older run stays root, so clusters are numbered in row order. */
        if (a < b) {
            runs[b].parent = a;
        } else {
            runs[a].parent = b;
        }
    }
}

/* Runs of one row. A gap of one cell, which a lost return leaves, does not end a run. */
static void scan_row(struct clusters *clusters, const uint8_t *row, uint32_t row_index)
{
    uint32_t last_end = 0;
    bool open = false;
    for (uint32_t block = 0; block < BEV_COLS; block += 8) {
        uint64_t word;
        memcpy(&word, row + block, sizeof word);
        if (word == 0) {
            continue;
        }
        for (uint32_t col = block; col < block + 8; col++) {
            if (row[col] < CELL_MIN) {
                continue;
            }
            if (open && col <= last_end + 1) {
                clusters->runs[clusters->run_count - 1].end = (uint16_t)(col + 1);
            } else if (clusters->run_count < RUNS_MAX) {
                uint16_t index = (uint16_t)clusters->run_count++;
                clusters->runs[index] =
                    (struct run){(uint16_t)row_index, (uint16_t)col, (uint16_t)(col + 1), index};
                open = true;
            } else {
                return;
            }
            last_end = col + 1;
        }
    }
}

/* Whether a row has any return at all. Most have none. */
static bool row_empty(const uint8_t *row)
{
    uint64_t any = 0;
    for (uint32_t col = 0; col < BEV_COLS; col += 8) {
        uint64_t word;
        memcpy(&word, row + col, sizeof word);
        any |= word;
    }
    return any == 0;
}

static void find_runs(struct clusters *clusters, const uint8_t *occupancy)
{
    clusters->run_count = 0;
    uint32_t previous = 0;
    uint32_t previous_end = 0;
    for (uint32_t r = 0; r < BEV_ROWS; r++) {
        uint32_t first = clusters->run_count;
        if (!row_empty(occupancy + (size_t)r * BEV_COLS)) {
            scan_row(clusters, occupancy + (size_t)r * BEV_COLS, r);
        }
        if (previous_end > previous && clusters->runs[previous].row + 1u == r) {
            for (uint32_t i = first; i < clusters->run_count; i++) {
                run_join(clusters, (uint16_t)i, &previous, previous_end);
            }
        }
        previous = first;
        previous_end = clusters->run_count;
    }
}

/* The edge of a cell that is covered to a part c lies c of the cell before its far side; the
 * smallest such edge of all cells is that of the object. `half` is half a cell along the axis. */
static void stretch(double *low, double *high, double centre, double half, double covered)
{
    *low = dmath_min(*low, centre + half - 2.0 * half * covered);
    *high = dmath_max(*high, centre - half + 2.0 * half * covered);
}

static void add_cells(struct cluster *to, const struct run *run, const uint8_t *occupancy,
                      const struct perception *ego, const struct frenet *frenet,
                      const struct candidates *among)
{
    const double half = BEV_CELL_M / 2.0;
    double turned_half = half * (fabs(ego->ego_cos) + fabs(ego->ego_sin));
    double ahead_m = among->x_m;
    struct cluster sum = *to; /* which the cells cannot alias: sums stay in registers */
    for (uint32_t col = run->first; col < run->end; col++) {
        uint8_t value = occupancy[(size_t)run->row * BEV_COLS + col];
        if (value < CELL_MIN) {
            continue;
        }
        double weight = (double)value;
        double covered = weight / 255.0;
        double left_m = BEV_Y_MIN_M + ((double)col + 0.5) * BEV_CELL_M;
        double x = ego->ego_x_m + ego->ego_cos * ahead_m - ego->ego_sin * left_m;
        double y = ego->ego_y_m + ego->ego_sin * ahead_m + ego->ego_cos * left_m;
        sum.mass += value;
        sum.x_sum += x * weight;
        sum.y_sum += y * weight;
        stretch(&sum.box.x_low_m, &sum.box.x_high_m, x, turned_half, covered);
        stretch(&sum.box.y_low_m, &sum.box.y_high_m, y, turned_half, covered);
        struct frenet_point point;
        if (project_among(frenet, among, left_m, &point)) {
            sum.projected_mass += value;
            sum.s_sum += point.s_m * weight;
            sum.d_sum += point.d_m * weight;
            stretch(&sum.at.s_low_m, &sum.at.s_high_m, point.s_m, half, covered);
            stretch(&sum.at.d_low_m, &sum.at.d_high_m, point.d_m, half, covered);
        }
    }
    *to = sum;
}

static void find_clusters(struct clusters *clusters, const struct swerve_observation *seen,
                          const struct perception *ego, const struct frenet *frenet)
{
    const uint8_t *occupancy = seen->bev + (size_t)BEV_OCCUPANCY * BEV_CELLS;
    find_runs(clusters, occupancy);
    uint16_t slots[RUNS_MAX];
    clusters->count = 0;
    struct candidates among = {.x_m = 0.0};
    for (uint32_t i = 0; i < clusters->run_count; i++) {
        uint16_t row = clusters->runs[i].row;
        if (i == 0 || row != clusters->runs[i - 1].row) {
            find_candidates(frenet, BEV_X_MIN_M + ((double)row + 0.5) * BEV_CELL_M, &among);
        }
        uint16_t root = run_root(clusters->runs, (uint16_t)i);
        if (root == i) {
            if (clusters->count == CLUSTERS_MAX) {
                slots[i] = CLUSTERS_MAX;
                continue;
            }
            slots[i] = (uint16_t)clusters->count++;
            clusters->list[slots[i]] =
                (struct cluster){.box = {1e9, -1e9, 1e9, -1e9}, .at = {1e9, -1e9, 1e9, -1e9}};
        }
        if (slots[root] < CLUSTERS_MAX) {
            add_cells(&clusters->list[slots[root]], &clusters->runs[i], occupancy, ego, frenet,
                      &among);
        }
    }
}

/* ---- tracks ---- */

/* State of a shape that is followed from one frame to the next, along one axis. */
enum feature { FEATURE_CENTROID = 0, FEATURE_LOW, FEATURE_HIGH };

/* One axis of a shape. */
struct span {
    double centroid, low, high;
};

static double span_pick(struct span span, enum feature feature)
{
    return feature == FEATURE_LOW ? span.low : feature == FEATURE_HIGH ? span.high : span.centroid;
}

/* Distance that a shape moved along two axes. The centroid is the finest measure, but moves by
 * itself when more or less of an object comes into view: then, and for large shapes, the edges that
 * face `towards` are followed, which are seen as long as the object is. */
static void measure(const struct span before[2], const struct span after[2],
                    const double towards[2], double moved[2])
{
    bool steady = true;
    for (int axis = 0; axis < 2; axis++) {
        double extent = after[axis].high - after[axis].low;
        steady = steady && extent <= CENTROID_EXTENT_M &&
                 fabs(extent - (before[axis].high - before[axis].low)) < STEADY_EXTENT_M;
    }
    for (int axis = 0; axis < 2; axis++) {
        enum feature feature = steady                                  ? FEATURE_CENTROID
                               : after[axis].centroid >= towards[axis] ? FEATURE_LOW
                                                                       : FEATURE_HIGH;
        moved[axis] = span_pick(after[axis], feature) - span_pick(before[axis], feature);
    }
}

static void measure_standing(const struct perception *ego, const struct perception_track *track,
                             const struct cluster *cluster, double moved[2])
{
    const struct perception_box *old = &track->box;
    const struct perception_box *now = &cluster->box;
    double mass = (double)cluster->mass;
    const struct span before[2] = {{track->x_centroid_m, old->x_low_m, old->x_high_m},
                                   {track->y_centroid_m, old->y_low_m, old->y_high_m}};
    const struct span after[2] = {{cluster->x_sum / mass, now->x_low_m, now->x_high_m},
                                  {cluster->y_sum / mass, now->y_low_m, now->y_high_m}};
    const double towards[2] = {ego->ego_x_m, ego->ego_y_m};
    measure(before, after, towards, moved);
}

static void measure_along(const struct perception_track *track, const struct cluster *cluster,
                          double moved[2])
{
    const struct perception_extent *old = &track->at;
    const struct perception_extent *now = &cluster->at;
    double mass = (double)cluster->projected_mass;
    const struct span before[2] = {{track->s_centroid_m, old->s_low_m, old->s_high_m},
                                   {track->d_centroid_m, old->d_low_m, old->d_high_m}};
    const struct span after[2] = {{cluster->s_sum / mass, now->s_low_m, now->s_high_m},
                                  {cluster->d_sum / mass, now->d_low_m, now->d_high_m}};
    const double towards[2] = {0.0, 0.0};
    measure(before, after, towards, moved);
}

struct gains {
    double alpha;
    double beta_per_s;
};

/* While a track is young the gains are those of the least-squares line through its points
 * (Bar-Shalom, Li, Kirubarajan, "Estimation with Applications to Tracking and Navigation", 2001),
 * then constant. */
static struct gains gains_at(uint32_t age, double dt_s)
{
    double k = (double)(age + 1);
    return (struct gains){dmath_max(2.0 * (2.0 * k - 1.0) / (k * (k + 1.0)), 0.6),
                          dmath_max(6.0 / (k * (k + 1.0)), 0.3) / dt_s};
}

/* Alpha-beta step along one axis. What is filtered is whichever feature this frame offers:
 * positions are kept as residuals, so a change of feature moves neither position nor speed. */
static void filter_axis(struct gains gains, double moved_m, double *residual_m, double *speed_mps)
{
    double error_m = moved_m - *residual_m;
    *residual_m = (gains.alpha - 1.0) * error_m;
    *speed_mps =
        dmath_clamp(*speed_mps + gains.beta_per_s * error_m, -SPEED_MAX_MPS, SPEED_MAX_MPS);
}

static void track_take(struct perception_track *track, const struct cluster *cluster)
{
    double mass = (double)cluster->mass;
    track->box = cluster->box;
    track->x_centroid_m = cluster->x_sum / mass;
    track->y_centroid_m = cluster->y_sum / mass;
    track->snapshot += cluster->mass >= MASS_SOLID    ? EVIDENCE_SOLID
                       : cluster->mass >= MASS_MEDIUM ? EVIDENCE_MEDIUM
                                                      : EVIDENCE_WEAK;
    track->missed = 0;
    track->at = cluster->at;
    if (cluster->projected_mass > 0) {
        track->s_centroid_m = cluster->s_sum / (double)cluster->projected_mass;
        track->d_centroid_m = cluster->d_sum / (double)cluster->projected_mass;
    }
}

static void track_correct(const struct perception *ego, struct perception_track *track,
                          const struct cluster *cluster, double dt_s)
{
    struct gains gains = gains_at(track->age, dt_s);
    double moved[2];
    measure_standing(ego, track, cluster, moved);
    filter_axis(gains, moved[0], &track->x_residual_m, &track->vx_mps);
    filter_axis(gains, moved[1], &track->y_residual_m, &track->vy_mps);
    if (track->near_route && cluster->projected_mass > 0) {
        double before_mps = track->s_mps;
        measure_along(track, cluster, moved);
        filter_axis(gains, moved[0], &track->s_residual_m, &track->s_mps);
        filter_axis(gains, moved[1], &track->d_residual_m, &track->d_mps);
        if (track->age >= 4) {
            double accel = dmath_clamp((track->s_mps - before_mps) / dt_s, -12.0, 12.0);
            track->s_mps2 += 0.25 * (accel - track->s_mps2);
        }
    }
    track->age++;
    track_take(track, cluster);
}

static void track_predict(struct perception_track *track, double ego_progress_m)
{
    double dx_m = track->vx_mps * TICK_S;
    double dy_m = track->vy_mps * TICK_S;
    track->x_centroid_m += dx_m;
    track->box.x_low_m += dx_m;
    track->box.x_high_m += dx_m;
    track->y_centroid_m += dy_m;
    track->box.y_low_m += dy_m;
    track->box.y_high_m += dy_m;
    double ds_m = track->s_mps * TICK_S - ego_progress_m;
    double dd_m = track->d_mps * TICK_S;
    track->s_centroid_m += ds_m;
    track->at.s_low_m += ds_m;
    track->at.s_high_m += ds_m;
    track->d_centroid_m += dd_m;
    track->at.d_low_m += dd_m;
    track->at.d_high_m += dd_m;
}

/* The nearest free cluster inside the track's gate, or NULL. */
static struct cluster *find_match(const struct perception *ego,
                                  const struct perception_track *track, struct clusters *clusters)
{
    double gate_m = track->age == 1 ? GATE_NEW_M : GATE_M;
    struct cluster *best = NULL;
    double best_cost = 1e300;
    for (uint32_t i = 0; i < clusters->count; i++) {
        struct cluster *cluster = &clusters->list[i];
        if (cluster->taken || cluster->box.x_low_m > track->box.x_high_m + gate_m ||
            cluster->box.x_high_m < track->box.x_low_m - gate_m ||
            cluster->box.y_low_m > track->box.y_high_m + gate_m ||
            cluster->box.y_high_m < track->box.y_low_m - gate_m) {
            continue;
        }
        double moved[2];
        measure_standing(ego, track, cluster, moved);
        double cost = moved[0] * moved[0] + moved[1] * moved[1];
        if (cost <= gate_m * gate_m && cost < best_cost) {
            best = cluster;
            best_cost = cost;
        }
    }
    return best;
}

static void match_tracks(struct perception *perception, struct clusters *clusters, double dt_s)
{
    /* Tracks with a known speed choose first: a newcomer's wide gate must not take their cluster.
     */
    for (int newcomers = 0; newcomers < 2; newcomers++) {
        for (uint32_t i = 0; i < PERCEPTION_TRACKS; i++) {
            struct perception_track *track = &perception->tracks[i];
            if (!track->live || (track->age == 1) != (newcomers == 1)) {
                continue;
            }
            struct cluster *match = find_match(perception, track, clusters);
            if (match != NULL) {
                match->taken = true;
                track_correct(perception, track, match, dt_s);
            } else if (track->age < 3 || ++track->missed > MISSED_FRAMES_MAX) {
                track->live = false;
            }
        }
    }
    uint32_t slot = 0;
    for (uint32_t i = 0; i < clusters->count; i++) {
        while (slot < PERCEPTION_TRACKS && perception->tracks[slot].live) {
            slot++;
        }
        if (slot < PERCEPTION_TRACKS && !clusters->list[i].taken) {
            perception->tracks[slot] = (struct perception_track){.live = true, .age = 1};
            track_take(&perception->tracks[slot], &clusters->list[i]);
        }
    }
}

/* ---- the whole ---- */

void perception_reset(struct perception *perception)
{
    memset(perception, 0, sizeof *perception);
}

bool perception_trusted(const struct perception_track *track)
{
    return track->live && track->snapshot >= EVIDENCE_ENOUGH;
}

/* A point of the standing frame in ego's. */
static void to_ego(const struct perception *perception, double x_m, double y_m, double *ahead_m,
                   double *left_m)
{
    double dx = x_m - perception->ego_x_m;
    double dy = y_m - perception->ego_y_m;
    *ahead_m = perception->ego_cos * dx + perception->ego_sin * dy;
    *left_m = perception->ego_cos * dy - perception->ego_sin * dx;
}

bool perception_extent_after(const struct perception *perception, const struct frenet *frenet,
                             const struct perception_track *track, double vx_mps, double vy_mps,
                             double t_s, struct perception_extent *out)
{
    double ahead_m;
    double left_m;
    struct frenet_point point;
    to_ego(perception, 0.5 * (track->box.x_low_m + track->box.x_high_m) + vx_mps * t_s,
           0.5 * (track->box.y_low_m + track->box.y_high_m) + vy_mps * t_s, &ahead_m, &left_m);
    if (!frenet_project(frenet, ahead_m, left_m, &point)) {
        return false;
    }
    /* The route's direction there, in the standing frame, turns the box. */
    double ux = perception->ego_cos * point.ux - perception->ego_sin * point.uy;
    double uy = perception->ego_sin * point.ux + perception->ego_cos * point.uy;
    double half_x = 0.5 * (track->box.x_high_m - track->box.x_low_m);
    double half_y = 0.5 * (track->box.y_high_m - track->box.y_low_m);
    double half_s = half_x * fabs(ux) + half_y * fabs(uy);
    double half_d = half_x * fabs(uy) + half_y * fabs(ux);
    *out = (struct perception_extent){point.s_m - half_s, point.s_m + half_s, point.d_m - half_d,
                                      point.d_m + half_d};
    return true;
}

/* Brings a track's description along the route up to date. Near the route it has a filter of its
 * own; elsewhere, and when it comes near, it is what the standing frame says. */
static void describe(const struct perception *perception, const struct frenet *frenet,
                     struct perception_track *track, bool fresh)
{
    double ahead_m;
    double left_m;
    struct frenet_point point;
    to_ego(perception, track->x_centroid_m, track->y_centroid_m, &ahead_m, &left_m);
    if (!frenet_project(frenet, ahead_m, left_m, &point)) {
        track->near_route = false;
        track->at = (struct perception_extent){1e6, 1e6, 1e6, 1e6};
        return;
    }
    if (!track->near_route) {
        double ux = perception->ego_cos * point.ux - perception->ego_sin * point.uy;
        double uy = perception->ego_sin * point.ux + perception->ego_cos * point.uy;
        track->s_mps = track->vx_mps * ux + track->vy_mps * uy;
        track->d_mps = track->vy_mps * ux - track->vx_mps * uy;
        track->s_residual_m = track->x_residual_m * ux + track->y_residual_m * uy;
        track->d_residual_m = track->y_residual_m * ux - track->x_residual_m * uy;
        track->s_mps2 = 0.0;
        if (!fresh || track->missed > 0) {
            perception_extent_after(perception, frenet, track, 0.0, 0.0, 0.0, &track->at);
            track->s_centroid_m = point.s_m;
            track->d_centroid_m = point.d_m;
        }
    }
    track->near_route = fabs(point.d_m) < (track->near_route ? NEAR_ROUTE_M + 2.0 : NEAR_ROUTE_M);
}

/* Ego's pose in the standing frame. */
static void take_odometry(struct perception *perception, const struct frenet *frenet,
                          const struct swerve_observation *seen)
{
    if (!perception->started) {
        perception->origin_x_m = seen->x_m;
        perception->origin_y_m = seen->y_m;
        perception->origin_heading_rad = seen->heading_rad;
    }
    double c;
    double s;
    dmath_sincos(perception->origin_heading_rad, &s, &c);
    double dx = seen->x_m - perception->origin_x_m;
    double dy = seen->y_m - perception->origin_y_m;
    double x_m = c * dx + s * dy;
    double y_m = c * dy - s * dx;
    dmath_sincos(seen->heading_rad - perception->origin_heading_rad, &s, &c);
    /* The route's direction at the foot point, in the standing frame. */
    double ux = c * frenet->segments[0].ux - s * frenet->segments[0].uy;
    double uy = s * frenet->segments[0].ux + c * frenet->segments[0].uy;
    perception->progress_m = (x_m - perception->ego_x_m) * ux + (y_m - perception->ego_y_m) * uy;
    perception->ego_x_m = x_m;
    perception->ego_y_m = y_m;
    perception->ego_cos = c;
    perception->ego_sin = s;
}

void perception_update(struct perception *perception, const struct frenet *frenet,
                       const struct swerve_observation *seen)
{
    bool fresh =
        seen->bev != NULL && (!perception->started || seen->bev_time_ns > perception->bev_time_ns);
    take_odometry(perception, frenet, seen);
    for (uint32_t i = 0; perception->started && i < PERCEPTION_TRACKS; i++) {
        if (perception->tracks[i].live) {
            track_predict(&perception->tracks[i], perception->progress_m);
        }
    }
    if (fresh) {
        /* After a dark spell the filter's error has built up over several ticks. */
        double dt_s = (double)(seen->bev_time_ns - perception->bev_time_ns) * 1e-9;
        struct clusters clusters;
        find_clusters(&clusters, seen, perception, frenet);
        match_tracks(perception, &clusters, dmath_max(dt_s, TICK_S));
        perception->bev_time_ns = seen->bev_time_ns;
    }
    perception->started = true;
    for (uint32_t i = 0; i < PERCEPTION_TRACKS; i++) {
        if (perception->tracks[i].live) {
            describe(perception, frenet, &perception->tracks[i], fresh);
        }
    }
}
