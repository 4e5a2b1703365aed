/*
 * Builds the prerasterised layers of a map: find its bounds, mark the tiles that its shapes touch,
 * fill their sample masks, reduce those to coverage texels. Three walks over the same shapes, so
 * nothing but the tiles is ever stored.
 *
 * Invariant: tile 0 is empty and stands for every tile that does not exist.
 */
#include "engine/sensors/raster_layers.h"

#include "base/check.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "engine/sensors/raster.h"
#include "kernels/cpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EXTENT_MAX_M 1e6
#define WORK_MAX UINT64_C(2000000000) /* point visits; a few seconds */

/* Sample masks of one tile that are only needed while building. */
struct scratch_tile {
    struct raster_mask drivable;
    struct raster_mask crosswalk;
    struct raster_mask zebra;
};

struct builder {
    struct raster_layers *layers;
    struct scratch_tile *scratch; /* [tile_count] */
    struct vec2 low;
    struct vec2 high;
    uint64_t work;
    enum status status; /* first failure of a visitor */
};

static enum status grow_slots(struct raster_layers *layers)
{
    struct raster_layers bigger = *layers;
    bigger.map.slot_mask = layers->map.slots == NULL ? 63 : layers->map.slot_mask * 2 + 1;
    bigger.map.slots = calloc((size_t)bigger.map.slot_mask + 1, sizeof *bigger.map.slots);
    if (bigger.map.slots == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; layers->map.slots != NULL && i <= layers->map.slot_mask; i++) {
        if (layers->map.slots[i].tile != 0) {
            *raster_map_find(&bigger.map, layers->map.slots[i].key) = layers->map.slots[i];
        }
    }
    free(layers->map.slots);
    *layers = bigger;
    return STATUS_OK;
}

static enum status add_tile(struct raster_layers *layers, int32_t x, int32_t y)
{
    if (layers->map.tile_count * 2 > layers->map.slot_mask) {
        TRY(grow_slots(layers));
    }
    struct raster_slot *slot = raster_map_find(&layers->map, raster_map_key(x, y));
    if (slot->tile == 0) {
        if (layers->map.tile_count >= RASTER_TILES_MAX) {
            return STATUS_LIMIT;
        }
        *slot = (struct raster_slot){raster_map_key(x, y), layers->map.tile_count++};
    }
    return STATUS_OK;
}

/* Index of the tile along one axis that holds a coordinate relative to the anchor. */
static int32_t tile_of(double offset_m)
{
    return (int32_t)floor(offset_m / RASTER_TILE_M);
}

/* Extent in x of a polygon's outline within a band of y; false when it does not reach there. */
static bool band_extent(const struct vec2 *points, uint32_t count, double y_low, double y_high,
                        double *x_low, double *x_high)
{
    *x_low = INFINITY;
    *x_high = -INFINITY;
    for (uint32_t i = 0, j = count - 1; i < count; j = i++) {
        struct vec2 a = points[j];
        struct vec2 b = points[i];
        if (a.y_m > b.y_m) {
            struct vec2 swap = a;
            a = b;
            b = swap;
        }
        if (b.y_m < y_low || a.y_m > y_high) {
            continue;
        }
        double slope = b.y_m > a.y_m ? (b.x_m - a.x_m) / (b.y_m - a.y_m) : 0.0;
        double x0 = a.y_m < y_low ? a.x_m + (y_low - a.y_m) * slope : a.x_m;
        double x1 = b.y_m > y_high ? a.x_m + (y_high - a.y_m) * slope : b.x_m;
        *x_low = fmin(*x_low, fmin(x0, x1));
        *x_high = fmax(*x_high, fmax(x0, x1));
    }
    return *x_low <= *x_high;
}

typedef enum status (*tile_visit)(struct builder *builder, int32_t x, int32_t y, void *context);

/* Calls `visit` for every tile that a polygon may reach. Texels to the left of and below a shape
 * blend it in, hence the margin on those sides. */
static enum status for_each_tile(struct builder *builder, const struct vec2 *points, uint32_t count,
                                 tile_visit visit, void *context)
{
    struct vec2 anchor = builder->layers->map.anchor;
    double y_min = INFINITY;
    double y_max = -INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        y_min = fmin(y_min, points[i].y_m);
        y_max = fmax(y_max, points[i].y_m);
    }
    int32_t last = tile_of(y_max - anchor.y_m);
    for (int32_t y = tile_of(y_min - RASTER_TEXEL_M - anchor.y_m); y <= last; y++) {
        double band = anchor.y_m + y * RASTER_TILE_M;
        double x_low;
        double x_high;
        builder->work += count;
        if (!band_extent(points, count, band, band + RASTER_TILE_M + RASTER_TEXEL_M, &x_low,
                         &x_high)) {
            continue;
        }
        int32_t end = tile_of(x_high - anchor.x_m);
        for (int32_t x = tile_of(x_low - RASTER_TEXEL_M - anchor.x_m); x <= end; x++) {
            builder->work += count;
            TRY(builder->work > WORK_MAX ? STATUS_LIMIT : visit(builder, x, y, context));
        }
    }
    return STATUS_OK;
}

/* ---- walk 1: bounds ---- */

static bool visit_bounds(void *context, enum raster_shape shape, enum raster_material material,
                         const struct vec2 *points, uint32_t count)
{
    (void)shape;
    (void)material;
    struct builder *builder = context;
    for (uint32_t i = 0; i < count; i++) {
        builder->low.x_m = fmin(builder->low.x_m, points[i].x_m);
        builder->low.y_m = fmin(builder->low.y_m, points[i].y_m);
        builder->high.x_m = fmax(builder->high.x_m, points[i].x_m);
        builder->high.y_m = fmax(builder->high.y_m, points[i].y_m);
    }
    return true;
}

/* ---- walk 2: which tiles ---- */

static enum status mark_tile(struct builder *builder, int32_t x, int32_t y, void *context)
{
    (void)context;
    return add_tile(builder->layers, x, y);
}

static bool visit_mark(void *context, enum raster_shape shape, enum raster_material material,
                       const struct vec2 *points, uint32_t count)
{
    (void)shape;
    (void)material;
    struct builder *builder = context;
    builder->status = for_each_tile(builder, points, count, mark_tile, NULL);
    return builder->status == STATUS_OK;
}

/* ---- walk 3: fill ---- */

struct fill {
    enum raster_shape shape;
    enum raster_material material;
    const struct vec2 *points;
    uint32_t count;
};

/* Zebra bars: half a metre of paint every metre along the crosswalk's longest edge, which runs
 * across the road. */
static void fill_zebra(struct raster_mask *zebra, struct vec2 corner, const struct fill *fill)
{
    struct raster_mask area = {0};
    struct vec2 along = {1.0, 0.0};
    struct vec2 start = fill->points[0];
    double longest = 0.0;
    for (uint32_t i = 0; i < fill->count; i++) {
        struct vec2 a = fill->points[i];
        struct vec2 b = fill->points[(i + 1) % fill->count];
        double length = sqrt((b.x_m - a.x_m) * (b.x_m - a.x_m) + (b.y_m - a.y_m) * (b.y_m - a.y_m));
        if (length > longest) {
            longest = length;
            start = a;
            along = (struct vec2){(b.x_m - a.x_m) / length, (b.y_m - a.y_m) / length};
        }
    }
    raster_mask_fill(&area, corner, fill->points, fill->count);
    for (int32_t row = 0; row < RASTER_TILE_SAMPLES; row++) {
        double y = corner.y_m + (row + 0.5) * RASTER_SAMPLE_M - start.y_m;
        for (int32_t w = 0; w < RASTER_MASK_WORDS; w++) {
            for (uint64_t left = area.rows[row][w]; left != 0; left &= left - 1) {
                int32_t column = w * 64 + __builtin_ctzll(left);
                double x = corner.x_m + (column + 0.5) * RASTER_SAMPLE_M - start.x_m;
                double s = x * along.x_m + y * along.y_m;
                if (s - floor(s) >= 0.25 && s - floor(s) < 0.75) {
                    zebra->rows[row][w] |= left & -left;
                }
            }
        }
    }
}

/* A material holds where it covers at least half of a texel; later shapes win. */
static void fill_material(uint8_t *material, struct vec2 corner, const struct fill *fill)
{
    struct raster_mask area = {0};
    uint8_t counts[RASTER_TILE_CELLS];
    raster_mask_fill(&area, corner, fill->points, fill->count);
    raster_mask_count(&area, counts);
    for (int32_t i = 0; i < RASTER_TILE_CELLS; i++) {
        if (counts[i] >= 32) {
            material[i] = (uint8_t)fill->material;
        }
    }
}

static enum status fill_tile(struct builder *builder, int32_t x, int32_t y, void *context)
{
    const struct fill *fill = context;
    struct raster_layers *layers = builder->layers;
    uint32_t tile = raster_map_tile(&layers->map, x, y);
    CHECK(tile != 0);
    struct scratch_tile *scratch = &builder->scratch[tile];
    struct raster_detail *detail = &layers->map.details[tile];
    struct vec2 corner = {layers->map.anchor.x_m + x * RASTER_TILE_M,
                          layers->map.anchor.y_m + y * RASTER_TILE_M};
    switch (fill->shape) {
    case SHAPE_DRIVABLE:
        raster_mask_fill(&scratch->drivable, corner, fill->points, fill->count);
        break;
    case SHAPE_MARKING:
        raster_mask_fill(&detail->paint, corner, fill->points, fill->count);
        break;
    case SHAPE_CROSSWALK:
        raster_mask_fill(&scratch->crosswalk, corner, fill->points, fill->count);
        fill_zebra(&scratch->zebra, corner, fill);
        break;
    case SHAPE_MATERIAL:
    case SHAPE_COUNT:
        break;
    }
    if (fill->material != MATERIAL_NONE && fill->material != MATERIAL_ROAD) {
        fill_material(detail->material, corner, fill);
    }
    return STATUS_OK;
}

static bool visit_fill(void *context, enum raster_shape shape, enum raster_material material,
                       const struct vec2 *points, uint32_t count)
{
    struct builder *builder = context;
    struct fill fill = {shape, material, points, count};
    builder->status = for_each_tile(builder, points, count, fill_tile, &fill);
    return builder->status == STATUS_OK;
}

/* ---- reduction ---- */

/* Coverage of one tile: drivable, and the stronger of marking and half a crosswalk. */
struct coverage {
    uint8_t drivable[RASTER_TILE_CELLS];
    uint8_t marking[RASTER_TILE_CELLS];
};

static void reduce_tile(struct builder *builder, uint32_t tile, struct coverage *out)
{
    struct raster_detail *detail = &builder->layers->map.details[tile];
    struct scratch_tile *scratch = &builder->scratch[tile];
    uint8_t crosswalk[RASTER_TILE_CELLS];
    raster_mask_count(&scratch->drivable, out->drivable);
    raster_mask_count(&detail->paint, out->marking);
    raster_mask_count(&scratch->crosswalk, crosswalk);
    for (int32_t i = 0; i < RASTER_TILE_CELLS; i++) {
        if (out->drivable[i] >= 32 && detail->material[i] <= MATERIAL_SIDEWALK) {
            detail->material[i] = MATERIAL_ROAD;
        }
        uint32_t paint = 2u * out->marking[i];
        uint32_t zebra = crosswalk[i];
        out->drivable[i] = (uint8_t)((out->drivable[i] * 255u + 32) / 64);
        out->marking[i] = (uint8_t)(((paint > zebra ? paint : zebra) * 255u + 64) / 128);
    }
    for (int32_t row = 0; row < RASTER_TILE_SAMPLES; row++) {
        for (int32_t w = 0; w < RASTER_MASK_WORDS; w++) {
            detail->paint.rows[row][w] |= scratch->zebra.rows[row][w];
        }
    }
}

/* Packs each cell with its right, upper and upper right neighbour, across tile borders. */
static void pack_tile(struct raster_layers *layers, const struct coverage *coverage, uint32_t tile,
                      int32_t tile_x, int32_t tile_y)
{
    enum { N = RASTER_TILE_TEXELS };
    uint32_t around[2][2];
    for (int32_t dy = 0; dy < 2; dy++) {
        for (int32_t dx = 0; dx < 2; dx++) {
            around[dy][dx] = raster_map_tile(&layers->map, tile_x + dx, tile_y + dy);
        }
    }
    for (int32_t y = 0; y < N; y++) {
        for (int32_t x = 0; x < N; x++) {
            uint64_t texel = 0;
            for (int32_t k = 0; k < 4; k++) {
                int32_t cx = x + (k & 1);
                int32_t cy = y + (k >> 1);
                const struct coverage *from = &coverage[around[cy / N][cx / N]];
                int32_t cell = cy % N * N + cx % N;
                texel |= (uint64_t)from->drivable[cell] << (8 * k);
                texel |= (uint64_t)from->marking[cell] << (8 * k + 32);
            }
            layers->map.texels[(size_t)tile * RASTER_TILE_CELLS + (size_t)(y * N + x)] = texel;
        }
    }
}

static enum status reduce(struct builder *builder)
{
    struct raster_layers *layers = builder->layers;
    struct coverage *coverage = calloc(layers->map.tile_count, sizeof *coverage);
    if (coverage == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t tile = 1; tile < layers->map.tile_count; tile++) {
        reduce_tile(builder, tile, &coverage[tile]);
    }
    for (uint32_t i = 0; i <= layers->map.slot_mask; i++) {
        const struct raster_slot *slot = &layers->map.slots[i];
        if (slot->tile != 0) {
            pack_tile(layers, coverage, slot->tile, (int32_t)(uint32_t)slot->key,
                      (int32_t)(slot->key >> 32));
        }
    }
    free(coverage);
    return STATUS_OK;
}

/* ---- keys ---- */

static void put_numbers(struct sha256 *hash, const int64_t *numbers, size_t count)
{
    sha256_update(hash, numbers, count * sizeof *numbers);
}

static void put_points(struct sha256 *hash, const struct vec2 *points, uint32_t count)
{
    put_numbers(hash, &(int64_t){count}, 1);
    sha256_update(hash, points, count * sizeof *points);
}

static void put_polygons(struct sha256 *hash, const struct polygon *polygons, uint32_t count)
{
    put_numbers(hash, &(int64_t){count}, 1);
    for (uint32_t i = 0; i < count; i++) {
        put_points(hash, polygons[i].points, polygons[i].point_count);
    }
}

static void put_lane(struct sha256 *hash, const struct lane *lane)
{
    const int64_t numbers[] = {lane->kind,          lane->left,           lane->right,
                               lane->left_opposite, lane->right_opposite, lane->successor_count,
                               lane->left_marking,  lane->right_marking,  lane->intersection};
    put_numbers(hash, numbers, COUNT_OF(numbers));
    put_points(hash, lane->centre_line, lane->point_count);
    sha256_update(hash, lane->width_m, lane->point_count * sizeof *lane->width_m);
    sha256_update(hash, &lane->speed_limit_mps, sizeof lane->speed_limit_mps);
    if (lane->successor_count > 0) {
        sha256_update(hash, lane->successors, lane->successor_count * sizeof *lane->successors);
    }
}

static void put_signal(struct sha256 *hash, const struct traffic_signal *signal)
{
    const int64_t numbers[] = {signal->sign, signal->lane_count, signal->repeats,
                               signal->phase_count};
    put_numbers(hash, numbers, COUNT_OF(numbers));
    for (uint32_t i = 0; i < signal->lane_count; i++) {
        const int64_t lane = signal->lanes[i];
        put_numbers(hash, &lane, 1);
    }
    sha256_update(hash, &signal->stop_m, sizeof signal->stop_m);
    sha256_update(hash, &signal->offset_s, sizeof signal->offset_s);
    for (uint32_t i = 0; i < signal->phase_count; i++) {
        const int64_t light = signal->phases[i].light;
        put_numbers(hash, &light, 1);
        sha256_update(hash, &signal->phases[i].duration_s, sizeof signal->phases[i].duration_s);
    }
}

_Static_assert(sizeof(struct map) == LIMIT_ID_BYTES + 80 &&
                   sizeof(struct lane) == LIMIT_ID_BYTES + 72 && sizeof(struct polygon) == 16 &&
                   sizeof(struct surface) == LIMIT_ID_BYTES + 24 &&
                   sizeof(struct traffic_signal) == LIMIT_ID_BYTES + 48,
               "the key has every member of a map but its names");

struct raster_key raster_key_of(const struct map *map)
{
    struct raster_key key = {.bytes = {0}};
    struct sha256 hash;
    sha256_init(&hash);
    const int64_t counts[] = {map->lane_count, map->surface_count, map->signal_count};
    put_numbers(&hash, counts, COUNT_OF(counts));
    for (uint32_t i = 0; i < map->lane_count; i++) {
        put_lane(&hash, &map->lanes[i]);
    }
    put_polygons(&hash, map->drivable, map->drivable_count);
    put_polygons(&hash, map->crosswalks, map->crosswalk_count);
    for (uint32_t i = 0; i < map->surface_count; i++) {
        const struct surface *surface = &map->surfaces[i];
        sha256_update(&hash, surface->kind, strlen(surface->kind) + 1);
        sha256_update(&hash, &surface->friction, sizeof surface->friction);
        put_polygons(&hash, &surface->area, 1);
    }
    for (uint32_t i = 0; i < map->signal_count; i++) {
        put_signal(&hash, &map->signals[i]);
    }
    sha256_final(&hash, key.bytes);
    return key;
}

bool raster_layers_have(const struct raster_layers *layers, const struct raster_key *key)
{
    return memcmp(&layers->key, key, sizeof *key) == 0;
}

/* ---- the whole ---- */

static enum status build(struct builder *builder, const struct map *map, struct error *error)
{
    struct raster_layers *layers = builder->layers;
    TRY(raster_shapes_walk(map, visit_bounds, builder, error));
    enum status status = STATUS_OK;
    if (!(builder->low.x_m <= builder->high.x_m)) {
        builder->low = builder->high = (struct vec2){0.0, 0.0}; /* nothing to draw */
    }
    if (!(builder->high.x_m - builder->low.x_m <= EXTENT_MAX_M) ||
        !(builder->high.y_m - builder->low.y_m <= EXTENT_MAX_M)) {
        return error_set(error, STATUS_LIMIT, "map %s is more than %.0f km wide", map->id,
                         EXTENT_MAX_M / 1000);
    }
    layers->map.anchor =
        (struct vec2){builder->low.x_m - 2 * RASTER_TEXEL_M, builder->low.y_m - 2 * RASTER_TEXEL_M};
    layers->map.tile_count = 1;
    builder->status = grow_slots(layers);
    if (builder->status == STATUS_OK) {
        status = raster_shapes_walk(map, visit_mark, builder, error);
    }
    if (builder->status == STATUS_OK && status == STATUS_OK) {
        layers->map.texels =
            calloc(layers->map.tile_count, RASTER_TILE_CELLS * sizeof *layers->map.texels);
        layers->map.details = calloc(layers->map.tile_count, sizeof *layers->map.details);
        builder->scratch = calloc(layers->map.tile_count, sizeof *builder->scratch);
        if (layers->map.texels == NULL || layers->map.details == NULL || builder->scratch == NULL) {
            builder->status = STATUS_NO_MEMORY;
        } else {
            status = raster_shapes_walk(map, visit_fill, builder, error);
        }
    }
    if (builder->status == STATUS_OK && status == STATUS_OK) {
        builder->status = reduce(builder);
    }
    if (builder->status == STATUS_OK && status == STATUS_OK) {
        layers->plain = raster_plain_create(&layers->map);
        builder->status = layers->plain != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    }
    if (builder->status == STATUS_LIMIT) {
        return error_set(error, STATUS_LIMIT,
                         "map %s is too large to draw: its lanes and areas cover more than %d "
                         "tiles of %.0f m, or have too many points for their size",
                         map->id, RASTER_TILES_MAX, RASTER_TILE_M);
    }
    if (builder->status != STATUS_OK) {
        return error_set(error, builder->status, "no memory to draw map %s", map->id);
    }
    return status;
}

enum status raster_layers_create(const struct map *map, struct raster_layers **out,
                                 struct error *error)
{
    struct raster_layers *layers = calloc(1, sizeof *layers);
    TRY(memory_check(layers, error, "no memory to draw map %s", map->id));
    atomic_init(&layers->references, 1);
    layers->key = raster_key_of(map);
    raster_kernels_init(&layers->kernels, cpu_flags_detect());
    raster_layers_use(layers, UINT32_MAX);
    struct builder builder = {
        .layers = layers,
        .low = {INFINITY, INFINITY},
        .high = {-INFINITY, -INFINITY},
    };
    enum status status = build(&builder, map, error);
    free(builder.scratch);
    THEN(status, raster_heads_create(map, &layers->heads, &layers->head_count, error));
    if (status != STATUS_OK) {
        raster_layers_destroy(layers);
        return status;
    }
    *out = layers;
    return STATUS_OK;
}

void raster_layers_use(struct raster_layers *layers, uint32_t cpu_flags)
{
    picture_kernels_init(&layers->rows, cpu_flags & cpu_flags_detect());
}

struct raster_layers *raster_layers_ref(struct raster_layers *layers)
{
    atomic_fetch_add_explicit(&layers->references, 1, memory_order_relaxed);
    return layers;
}

void raster_layers_destroy(struct raster_layers *layers)
{
    if (layers == NULL ||
        atomic_fetch_sub_explicit(&layers->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    free(layers->map.slots);
    free(layers->map.texels);
    free(layers->map.details);
    free(layers->plain);
    free(layers->heads);
    free(layers);
}

/* ---- lookup ---- */

static int32_t to_position(double texels)
{
    return (int32_t)floor(texels * (1 << RASTER_POSITION_BITS) + 0.5);
}

void raster_layers_window(const struct raster_layers *layers, struct vec2 middle, struct vec2 first,
                          struct vec2 row_step, struct vec2 col_step, struct raster_window *window)
{
    const double reach_m = 55.0;
    /* Far outside any map the tile numbers would overflow; nothing is there anyway. */
    double low_x = fmax(fmin(middle.x_m - reach_m - layers->map.anchor.x_m, 4e6), -4e6);
    double low_y = fmax(fmin(middle.y_m - reach_m - layers->map.anchor.y_m, 4e6), -4e6);
    int32_t tile_x = tile_of(low_x);
    int32_t tile_y = tile_of(low_y);
    for (int32_t y = 0; y < RASTER_WINDOW_TILES; y++) {
        for (int32_t x = 0; x < RASTER_WINDOW_TILES; x++) {
            window->directory[y * RASTER_WINDOW_TILES + x] =
                (uint16_t)raster_map_tile(&layers->map, tile_x + x, tile_y + y);
        }
    }
    double x = (first.x_m - layers->map.anchor.x_m - tile_x * RASTER_TILE_M) / RASTER_TEXEL_M - 0.5;
    double y = (first.y_m - layers->map.anchor.y_m - tile_y * RASTER_TILE_M) / RASTER_TEXEL_M - 0.5;
    window->texels = layers->map.texels;
    window->x0 = to_position(fmax(fmin(x, 4096.0), -4096.0));
    window->y0 = to_position(fmax(fmin(y, 4096.0), -4096.0));
    window->row_dx = to_position(row_step.x_m / RASTER_TEXEL_M);
    window->row_dy = to_position(row_step.y_m / RASTER_TEXEL_M);
    window->col_dx = to_position(col_step.x_m / RASTER_TEXEL_M);
    window->col_dy = to_position(col_step.y_m / RASTER_TEXEL_M);
}
