/*
 * Perception of builtin:reference, in four steps: runs of occupied cells by rows, runs joined into
 * clusters (union-find), cells projected onto the route, clusters matched with tracks.
 *
 * The grid is mostly empty, so rows are skipped eight cells at a time and only occupied cells are
 * projected. Loops run in row, column and track order; no step depends on anything but the session.
 */
#include "worker/planner_perception.h"

#include "base/dmath.h"
#include "schemas/observation.h"
#include "worker/planner_builtin.h"

#include <math.h>
#include <string.h>

enum {
    RUNS_MAX = 512,
    CLUSTERS_MAX = 64,
    CELL_MIN = 24,    /* weaker returns are ignored */
    MASS_SOLID = 150, /* summed coverage that no single stray return reaches */
    MISSED_FRAMES_MAX = 5,
};

#define GATE_S_M 2.0
#define GATE_D_M 1.5
#define GATE_NEW_S_M 4.0 /* a track seen once has no speed yet: up to 40 m/s in a tick */
#define CENTROID_EXTENT_M 2.4
#define STEADY_EXTENT_M 0.25
#define SPEED_MAX_MPS 70.0

/* ---- route as segments ---- */

struct segment {
    double x_m, y_m; /* start */
    double ux, uy;   /* direction */
    double length_m;
    double x_low_m, x_high_m; /* rows of the grid for which it can hold the foot point */
};

struct frenet {
    uint32_t count;
    struct segment segments[SWERVE_ROUTE_POINTS];
};

static void frenet_make(struct frenet *frenet, const struct swerve_observation *seen)
{
    frenet->count = 0;
    for (uint32_t i = 0; i + 1 < seen->route_count && i + 1 < SWERVE_ROUTE_POINTS; i++) {
        double x = (double)seen->route[i].x_m;
        double y = (double)seen->route[i].y_m;
        double dx = (double)seen->route[i + 1].x_m - x;
        double dy = (double)seen->route[i + 1].y_m - y;
        double length = sqrt(dx * dx + dy * dy);
        length = dmath_max(length, 1e-6);
        /* A foot point lies at most 24 m aside (the grid's half width) from its cell. */
        double reach = 2.0 - BEV_Y_MIN_M * fabs(dy) / length;
        struct segment *segment = &frenet->segments[frenet->count++];
        *segment = (struct segment){x,
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

/* Frenet coordinates of a point in ego's frame, s from the foot point. */
static void frenet_project(const struct frenet *frenet, double x_m, double y_m, double *s_m,
                           double *d_m)
{
    double best = 1e300;
    for (uint32_t i = 0; i < frenet->count; i++) {
        const struct segment *segment = &frenet->segments[i];
        if (x_m < segment->x_low_m || x_m > segment->x_high_m) {
            continue;
        }
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
            *s_m = SWERVE_ROUTE_STEP_M * (double)i + clamped;
            *d_m = over == 0.0 ? across : across < 0.0 ? -sqrt(squared) : sqrt(squared);
        }
    }
}

double perception_ego_offset_m(const struct swerve_observation *seen)
{
    const struct swerve_route_point *from = &seen->route[0];
    double dx = (double)from[1].x_m - (double)from->x_m;
    double dy = (double)from[1].y_m - (double)from->y_m;
    double length = dmath_max(sqrt(dx * dx + dy * dy), 1e-6);
    return (dy * (double)from->x_m - dx * (double)from->y_m) / length;
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
    double s_sum, d_sum;                         /* weighted by coverage */
    double s_low_m, s_high_m, d_low_m, d_high_m; /* edges; s from the foot point */
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

static void find_runs(struct clusters *clusters, const uint8_t *occupancy)
{
    clusters->run_count = 0;
    uint32_t previous = 0;
    uint32_t previous_end = 0;
    for (uint32_t r = 0; r < BEV_ROWS; r++) {
        uint32_t first = clusters->run_count;
        scan_row(clusters, occupancy + (size_t)r * BEV_COLS, r);
        if (previous_end > previous && clusters->runs[previous].row + 1u == r) {
            for (uint32_t i = first; i < clusters->run_count; i++) {
                run_join(clusters, (uint16_t)i, &previous, previous_end);
            }
        }
        previous = first;
        previous_end = clusters->run_count;
    }
}

/* Adds a run's cells to its cluster. The edge of a cell that is covered to a part c lies c of a
 * cell before its far side; the smallest such edge is that of the object. */
static void add_cells(struct cluster *cluster, const struct run *run, const uint8_t *occupancy,
                      const struct frenet *frenet)
{
    double x = BEV_X_MIN_M + ((double)run->row + 0.5) * BEV_CELL_M;
    for (uint32_t col = run->first; col < run->end; col++) {
        uint8_t value = occupancy[(size_t)run->row * BEV_COLS + col];
        if (value < CELL_MIN) {
            continue;
        }
        double s = 0.0;
        double d = 0.0;
        frenet_project(frenet, x, BEV_Y_MIN_M + ((double)col + 0.5) * BEV_CELL_M, &s, &d);
        double covered_m = BEV_CELL_M / 255.0 * (double)value;
        double half_m = BEV_CELL_M / 2.0;
        cluster->mass += value;
        cluster->s_sum += s * (double)value;
        cluster->d_sum += d * (double)value;
        cluster->s_low_m = dmath_min(cluster->s_low_m, s + half_m - covered_m);
        cluster->s_high_m = dmath_max(cluster->s_high_m, s - half_m + covered_m);
        cluster->d_low_m = dmath_min(cluster->d_low_m, d + half_m - covered_m);
        cluster->d_high_m = dmath_max(cluster->d_high_m, d - half_m + covered_m);
    }
}

static void find_clusters(struct clusters *clusters, const struct swerve_observation *seen,
                          const struct frenet *frenet)
{
    const uint8_t *occupancy = seen->bev + (size_t)BEV_OCCUPANCY * BEV_CELLS;
    find_runs(clusters, occupancy);
    uint16_t slots[RUNS_MAX];
    clusters->count = 0;
    for (uint32_t i = 0; i < clusters->run_count; i++) {
        uint16_t root = run_root(clusters->runs, (uint16_t)i);
        if (root == i) {
            if (clusters->count == CLUSTERS_MAX) {
                slots[i] = CLUSTERS_MAX;
                continue;
            }
            slots[i] = (uint16_t)clusters->count++;
            clusters->list[slots[i]] = (struct cluster){
                .s_low_m = 1e9, .s_high_m = -1e9, .d_low_m = 1e9, .d_high_m = -1e9};
        }
        if (slots[root] < CLUSTERS_MAX) {
            add_cells(&clusters->list[slots[root]], &clusters->runs[i], occupancy, frenet);
        }
    }
}

/* ---- tracks ---- */

/* What of a shape is followed from one frame to the next. */
enum feature { FEATURE_CENTROID = 0, FEATURE_LOW, FEATURE_HIGH };

static double cluster_s(const struct cluster *cluster, double ego_s_m, enum feature feature)
{
    double s = feature == FEATURE_LOW    ? cluster->s_low_m
               : feature == FEATURE_HIGH ? cluster->s_high_m
                                         : cluster->s_sum / (double)cluster->mass;
    return s + ego_s_m;
}

static double cluster_d(const struct cluster *cluster, enum feature feature)
{
    return feature == FEATURE_LOW    ? cluster->d_low_m
           : feature == FEATURE_HIGH ? cluster->d_high_m
                                     : cluster->d_sum / (double)cluster->mass;
}

static double track_s(const struct perception_track *track, enum feature feature)
{
    return feature == FEATURE_LOW    ? track->s_low_m
           : feature == FEATURE_HIGH ? track->s_high_m
                                     : track->s_centroid_m;
}

static double track_d(const struct perception_track *track, enum feature feature)
{
    return feature == FEATURE_LOW    ? track->d_low_m
           : feature == FEATURE_HIGH ? track->d_high_m
                                     : track->d_centroid_m;
}

/* The centroid is the finest measure, but moves by itself when more or less of an object comes into
 * view: then, and for long shapes, the edge that faces ego (s) or the route (d) is followed. */
static bool shape_steady(const struct perception_track *track, const struct cluster *cluster)
{
    double s_extent_m = cluster->s_high_m - cluster->s_low_m;
    double d_extent_m = cluster->d_high_m - cluster->d_low_m;
    return s_extent_m <= CENTROID_EXTENT_M && d_extent_m <= CENTROID_EXTENT_M &&
           fabs(s_extent_m - (track->s_high_m - track->s_low_m)) < STEADY_EXTENT_M &&
           fabs(d_extent_m - (track->d_high_m - track->d_low_m)) < STEADY_EXTENT_M;
}

static enum feature choose_s(const struct perception_track *track, const struct cluster *cluster)
{
    return shape_steady(track, cluster) ? FEATURE_CENTROID
           : cluster->s_sum >= 0.0      ? FEATURE_LOW
                                        : FEATURE_HIGH;
}

static enum feature choose_d(const struct perception_track *track, const struct cluster *cluster)
{
    return shape_steady(track, cluster) ? FEATURE_CENTROID
           : cluster->d_sum >= 0.0      ? FEATURE_LOW
                                        : FEATURE_HIGH;
}

static void track_take(struct perception_track *track, const struct cluster *cluster,
                       double ego_s_m)
{
    track->s_low_m = cluster->s_low_m + ego_s_m;
    track->s_high_m = cluster->s_high_m + ego_s_m;
    track->d_low_m = cluster->d_low_m;
    track->d_high_m = cluster->d_high_m;
    track->s_centroid_m = cluster_s(cluster, ego_s_m, FEATURE_CENTROID);
    track->d_centroid_m = cluster_d(cluster, FEATURE_CENTROID);
    track->mass = cluster->mass;
}

static void track_start(struct perception_track *track, const struct cluster *cluster,
                        double ego_s_m)
{
    *track = (struct perception_track){.live = true, .age = 1};
    track_take(track, cluster, ego_s_m);
}

/* Alpha-beta step. While a track is young the gains are those of the least-squares line through its
 * points (Bar-Shalom, Li, Kirubarajan, "Estimation with Applications to Tracking and Navigation",
 * 2001), then constant. What is filtered is the feature chosen for this frame: positions are kept
 * as residuals, so changing the feature moves neither position nor speed. */
static void track_correct(struct perception_track *track, const struct cluster *cluster,
                          double ego_s_m, double dt_s)
{
    double k = (double)(track->age + 1);
    double alpha = dmath_max(2.0 * (2.0 * k - 1.0) / (k * (k + 1.0)), 0.6);
    double beta = dmath_max(6.0 / (k * (k + 1.0)), 0.3);
    enum feature s_feature = choose_s(track, cluster);
    enum feature d_feature = choose_d(track, cluster);
    double s_error =
        cluster_s(cluster, ego_s_m, s_feature) - track_s(track, s_feature) - track->s_residual_m;
    double d_error =
        cluster_d(cluster, d_feature) - track_d(track, d_feature) - track->d_residual_m;
    double before_mps = track->s_mps;
    track->s_residual_m = (alpha - 1.0) * s_error;
    track->d_residual_m = (alpha - 1.0) * d_error;
    track->s_mps = dmath_clamp(track->s_mps + beta * s_error / dt_s, -SPEED_MAX_MPS, SPEED_MAX_MPS);
    track->d_mps = dmath_clamp(track->d_mps + beta * d_error / dt_s, -SPEED_MAX_MPS, SPEED_MAX_MPS);
    if (track->age >= 4) {
        double accel = dmath_clamp((track->s_mps - before_mps) / dt_s, -12.0, 12.0);
        track->s_mps2 += 0.25 * (accel - track->s_mps2);
    }
    track->age++;
    track->missed = 0;
    track_take(track, cluster, ego_s_m);
}

static void track_predict(struct perception_track *track, double dt_s)
{
    double ds = track->s_mps * dt_s;
    double dd = track->d_mps * dt_s;
    track->s_centroid_m += ds;
    track->s_low_m += ds;
    track->s_high_m += ds;
    track->d_centroid_m += dd;
    track->d_low_m += dd;
    track->d_high_m += dd;
}

/* The nearest free cluster inside the track's gate, or NULL. */
static struct cluster *find_match(const struct perception_track *track, struct clusters *clusters,
                                  double ego_s_m)
{
    double gate_s = track->age == 1 ? GATE_NEW_S_M : GATE_S_M;
    struct cluster *best = NULL;
    double best_cost = 1e300;
    for (uint32_t i = 0; i < clusters->count; i++) {
        struct cluster *cluster = &clusters->list[i];
        enum feature s_feature = choose_s(track, cluster);
        enum feature d_feature = choose_d(track, cluster);
        double ds = fabs(cluster_s(cluster, ego_s_m, s_feature) - track_s(track, s_feature));
        double dd = fabs(cluster_d(cluster, d_feature) - track_d(track, d_feature));
        double cost = ds + dd;
        if (!cluster->taken && ds <= gate_s && dd <= GATE_D_M && cost < best_cost) {
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
            struct cluster *match = find_match(track, clusters, perception->ego_s_m);
            if (match != NULL) {
                match->taken = true;
                track_correct(track, match, perception->ego_s_m, dt_s);
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
            track_start(&perception->tracks[slot], &clusters->list[i], perception->ego_s_m);
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
    return track->live && track->age >= (track->mass >= MASS_SOLID ? 2u : 6u);
}

/* Ego's progress along the route since the last update. */
static double progress_m(const struct perception *perception, const struct swerve_observation *seen)
{
    double dx = seen->x_m - perception->x_m;
    double dy = seen->y_m - perception->y_m;
    double sine;
    double cosine;
    dmath_sincos(seen->heading_rad, &sine, &cosine);
    double ahead = cosine * dx + sine * dy;
    double left = cosine * dy - sine * dx;
    double rx = (double)seen->route[1].x_m - (double)seen->route[0].x_m;
    double ry = (double)seen->route[1].y_m - (double)seen->route[0].y_m;
    double length = dmath_max(sqrt(rx * rx + ry * ry), 1e-6);
    return (ahead * rx + left * ry) / length;
}

void perception_update(struct perception *perception, const struct swerve_observation *seen)
{
    bool fresh =
        seen->bev != NULL && (!perception->started || seen->bev_time_ns > perception->bev_time_ns);
    if (perception->started) {
        perception->ego_s_m += progress_m(perception, seen);
    }
    perception->x_m = seen->x_m;
    perception->y_m = seen->y_m;
    if (perception->started) {
        for (uint32_t i = 0; i < PERCEPTION_TRACKS; i++) {
            if (perception->tracks[i].live) {
                track_predict(&perception->tracks[i], TICK_S);
            }
        }
    }
    perception->started = true;
    if (!fresh) {
        return;
    }
    /* After a dark spell the filter's error has built up over several ticks. */
    double dt_s = (double)(seen->bev_time_ns - perception->bev_time_ns) * 1e-9;
    dt_s = dmath_max(dt_s, TICK_S);
    perception->bev_time_ns = seen->bev_time_ns;
    perception->frames++;
    struct frenet frenet;
    frenet_make(&frenet, seen);
    struct clusters clusters;
    find_clusters(&clusters, seen, &frenet);
    match_tracks(perception, &clusters, dt_s);
}
