/*
 * The buffers between the launches of a tick: one allocation, walked twice, to count and to place.
 * Sizes follow from the model's shape and the number of slots alone.
 */
#include "kernels/cuda/module/module.cuh"

struct carver {
    uint8_t *memory; /* NULL: only count */
    size_t used;
    uint32_t slots;
};

/* `count` elements of `bytes` for every slot. */
static void *carve(struct carver *c, size_t count, size_t bytes)
{
    void *at = c->memory != NULL ? c->memory + c->used : NULL;
    c->used += (c->slots * count * bytes + 255) / 256 * 256;
    return at;
}

static uint16_t *carve_act(struct carver *c, size_t count)
{
    return (uint16_t *)carve(c, count, sizeof(uint16_t));
}

static float *carve_floats(struct carver *c, size_t count)
{
    return (float *)carve(c, count, sizeof(float));
}

static void carve_images(struct carver *c, const struct module_part *part,
                         struct module_images *out)
{
    const struct shape_part *shape = &part->shape;
    size_t map = shape_map_positions(shape);
    size_t positions = shape_positions(shape);
    uint32_t widest = part->channels > SHAPE_LATENT ? part->channels : (uint32_t)SHAPE_LATENT;
    out->context = carve_act(c, map * shape->context_channels);
    out->latent = carve_act(c, map * SHAPE_LATENT);
    out->a = carve_act(c, map * part->channels);
    out->h = carve_act(c, map * part->channels);
    out->u = carve_act(c, map * part->channels);
    out->g = carve_act(c, map * part->channels);
    out->add = carve_floats(c, positions * part->channels);
    out->out = carve_floats(c, positions * SHAPE_LATENT);
    out->x = carve_floats(c, positions * shape->channels);
    out->base = carve_floats(c, positions * shape->channels);
    out->patches = carve_act(c, (size_t)shape->tokens * shape->patch * shape->patch * widest);
}

/* The arrays that context_unpack fills, for `slots` of the carver; `steps` 0: of slots that take
 * none. */
static void carve_slots(struct carver *c, const struct module_weights *w, uint32_t steps,
                        struct device_slot **records, struct context_slots *out)
{
    *records = (struct device_slot *)carve(c, 1, sizeof(struct device_slot));
    out->slots = *records;
    out->count = c->slots;
    out->window = w->window;
    out->steps = steps;
    out->step_weights = w->step_weights;
    out->active = (uint32_t *)carve(c, 1, sizeof(uint32_t));
    out->table = (int32_t *)carve(c, w->window, sizeof(int32_t));
    out->keys = (uint64_t *)carve(c, 1, sizeof(uint64_t));
    out->ticks = (uint32_t *)carve(c, 1, sizeof(uint32_t));
    out->write = (int32_t *)carve(c, 1, sizeof(int32_t));
    out->runs = (uint32_t *)carve(c, steps, sizeof(uint32_t));
    out->weights = carve_floats(c, steps);
}

size_t module_buffers_place(const struct module_weights *w, uint32_t slot_count, void *memory,
                            struct module_buffers *out)
{
    struct carver c = {(uint8_t *)memory, 0, 1};
    size_t d = w->width;
    out->maps = (struct raster_map *)carve(&c, DEVICE_MAPS_MAX, sizeof(struct raster_map));
    carve_slots(&c, w, 0, &out->maker_record, &out->maker);
    c.slots = slot_count;
    carve_slots(&c, w, w->steps, &out->slot_records, &out->slots);
    out->counts = (struct device_counts *)carve(&c, 1, sizeof(struct device_counts));
    out->layouts = (uint8_t *)carve(&c, DEVICE_FRAME_BYTES, 1);
    out->slots.layouts = out->layouts;
    out->draw_lists = (uint8_t *)carve(&c, DRAW_LIST_BYTES_MAX, 1);
    out->boxes = (struct lidar_box *)carve(&c, DRAW_LIST_AGENTS_MAX, sizeof(struct lidar_box));
    out->frames = (uint8_t *)carve(&c, DEVICE_FRAME_BYTES, 1);
    for (int i = 0; i < SHAPE_PARTS; i++) {
        carve_images(&c, &w->part[i], &out->part[i]);
    }
    out->cond = carve_act(&c, w->steps * (size_t)(DEVICE_COND + DEVICE_FEATURES));
    out->hidden = carve_act(&c, w->steps * d);
    out->e = carve_act(&c, w->steps * d);
    out->mod = carve_floats(&c, (size_t)w->steps * w->mod.n);
    out->table = carve_floats(&c, w->layers * 6 * d);
    const size_t tokens = w->tokens;
    out->cosine = carve_floats(&c, tokens * w->head_dim / 2);
    out->sine = carve_floats(&c, tokens * w->head_dim / 2);
    out->index = (int16_t *)carve_act(&c, w->window * tokens);
    out->tokens = carve_floats(&c, tokens * d);
    out->normed = carve_act(&c, tokens * d);
    out->qkv = carve_floats(&c, tokens * (w->query + 2 * w->kv));
    out->turned = carve_act(&c, tokens * (w->query + 2 * w->kv));
    out->past = carve_act(&c, w->past * tokens * 2 * w->kv);
    out->mixed = carve_act(&c, tokens * w->query);
    out->query = carve_floats(&c, tokens * (w->query > d ? w->query : d));
    out->wide = carve_act(&c, tokens * 4 * d);
    out->kv = carve_act(&c, tokens * 2 * w->kv * w->layers);
    out->packed = (uint8_t *)carve(&c, tokens * w->packed, 1);
    out->packed_scale = carve_floats(&c, w->packed != 0 ? tokens : 0);
    return c.used;
}
