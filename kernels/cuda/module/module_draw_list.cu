/*
 * Means of a session to draw layouts: maps on the device, the checks of what the host asks for,
 * and the parts of layouts that the host drew itself.
 */
#include "kernels/cuda/module/module.cuh"
#include "kernels/draw_list_camera.h"

#include <stdio.h>

/* ---- maps ---- */

/* Offsets of a map's parts in one allocation; the total. */
struct map_parts {
    size_t slots, texels, details; /* bytes */
    size_t texels_at, details_at, total;
};

static struct map_parts parts_of(const struct raster_map *map)
{
    struct map_parts p;
    p.slots = ((size_t)map->slot_mask + 1) * sizeof *map->slots;
    p.texels = map->tile_count * (size_t)RASTER_TILE_CELLS * sizeof *map->texels;
    p.details = map->tile_count * sizeof *map->details;
    p.texels_at = (p.slots + 255) / 256 * 256;
    p.details_at = p.texels_at + p.texels;
    p.total = p.details_at + p.details;
    return p;
}

static_assert((int)RASTER_TILE_CELLS * sizeof(uint64_t) % 256 == 0, "details are aligned");

int module_map_make(struct device_session *session, uint32_t map, const struct raster_map *source,
                    struct device_text *why)
{
    struct map_parts parts = parts_of(source);
    uint8_t *memory = NULL;
    cudaError_t error = cudaMalloc(&memory, parts.total);
    if (error != cudaSuccess) {
        char what[128];
        snprintf(what, sizeof what, "%.2f GB for a map of %u tiles", (double)parts.total / 1e9,
                 source->tile_count);
        return module_fault(why, DEVICE_FAULT_MEMORY, what, error);
    }
    struct raster_map *entry = &session->host_maps[map];
    *entry = *source;
    entry->slots = (struct raster_slot *)memory;
    entry->texels = (uint64_t *)(memory + parts.texels_at);
    entry->details = (struct raster_detail *)(memory + parts.details_at);
    session->map_memory[map] = memory;
    cudaMemcpyAsync(entry->slots, source->slots, parts.slots, cudaMemcpyHostToDevice,
                    session->stream);
    cudaMemcpyAsync(entry->texels, source->texels, parts.texels, cudaMemcpyHostToDevice,
                    session->stream);
    cudaMemcpyAsync(entry->details, source->details, parts.details, cudaMemcpyHostToDevice,
                    session->stream);
    cudaMemcpyAsync(session->buffers.maps + map, entry, sizeof *entry, cudaMemcpyHostToDevice,
                    session->stream);
    session->stats.up_bytes += parts.slots + parts.texels + parts.details;
    session->stats.map_bytes += parts.total;
    error = cudaGetLastError();
    if (error == cudaSuccess) {
        error = cudaStreamSynchronize(session->stream);
    }
    if (error != cudaSuccess) {
        session->lost = true;
        return module_fault(why, DEVICE_FAULT_LOST, "copying a map", error);
    }
    return DEVICE_OK;
}

void module_map_drop(struct device_session *session, uint32_t map)
{
    session->stats.map_bytes -= parts_of(&session->host_maps[map]).total;
    cudaFree(session->map_memory[map]);
    session->map_memory[map] = NULL;
}

/* ---- draw lists ---- */

/* Whether what it has for the cameras lies within it. */
static bool cameras_valid(const struct draw_list *draw_list)
{
    uint32_t at = draw_list->camera_at;
    uint32_t bytes = draw_list->camera_bytes;
    return at % DRAW_LIST_ALIGN == 0 && at >= draw_list_bytes(draw_list->agent_count) &&
           at <= draw_list->bytes && bytes <= draw_list->bytes - at &&
           draw_list_cameras_valid(
               (const struct draw_list_cameras *)((const uint8_t *)draw_list + at), bytes);
}

static bool draw_list_valid(const struct device_session *session, const struct device_slot *slot,
                            const struct draw_list *draw_list)
{
    bool fits = draw_list->agent_count <= DRAW_LIST_AGENTS_MAX &&
                draw_list_bytes(draw_list->agent_count) <= draw_list->bytes &&
                draw_list->bytes <= DRAW_LIST_BYTES_MAX && draw_list->bytes % DRAW_LIST_ALIGN == 0;
    bool cameras = slot->conditioning == CONDITION_NONE || (slot->given & DEVICE_GIVEN_CAMERAS) ||
                   (fits && cameras_valid(draw_list));
    bool map = slot->conditioning == CONDITION_NONE ||
               (draw_list->map < DEVICE_MAPS_MAX && session->map_memory[draw_list->map] != NULL);
    return fits && map && cameras;
}

int module_draw_lists_check(const struct device_session *session, struct device_text *why)
{
    for (uint32_t i = 0; i < session->options.slot_count; i++) {
        const struct device_slot *slot = &session->host_slots[i];
        const uint8_t *at = session->host_draw_lists + (size_t)i * DRAW_LIST_BYTES_MAX;
        if (!slot->active || slot->given == DEVICE_GIVEN_ALL) {
            continue;
        }
        if (!draw_list_valid(session, slot, (const struct draw_list *)at)) {
            snprintf(why->text, sizeof why->text,
                     "slot %u: a draw list with more than fits, or of a map that was not made", i);
            return DEVICE_FAULT_INPUT;
        }
    }
    return DEVICE_OK;
}

uint64_t module_draw_lists_bytes(const struct device_session *session)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < session->options.slot_count; i++) {
        const struct device_slot *slot = &session->host_slots[i];
        const uint8_t *at = session->host_draw_lists + (size_t)i * DRAW_LIST_BYTES_MAX;
        bytes += slot->active && slot->given != DEVICE_GIVEN_ALL
                     ? ((const struct draw_list *)at)->bytes
                     : 0;
    }
    return bytes;
}

/* ---- what is given ---- */

/* Slots [first, end) have the same parts to copy: one call. */
static cudaError_t copy_given(struct device_session *session, uint32_t first, uint32_t end)
{
    uint32_t given = session->host_slots[first].given;
    size_t skip = given & DEVICE_GIVEN_BEV ? 0 : (size_t)SHAPE_BEV_BYTES;
    size_t width =
        given & DEVICE_GIVEN_CAMERAS ? (size_t)DEVICE_FRAME_BYTES - skip : (size_t)SHAPE_BEV_BYTES;
    size_t at = (size_t)first * DEVICE_FRAME_BYTES + skip;
    session->stats.up_bytes += width * (end - first);
    return cudaMemcpy2DAsync(session->buffers.layouts + at, DEVICE_FRAME_BYTES,
                             session->host_layouts + at, DEVICE_FRAME_BYTES, width, end - first,
                             cudaMemcpyHostToDevice, session->stream);
}

cudaError_t module_given_copy(struct device_session *session)
{
    const struct device_slot *slots = session->host_slots;
    uint32_t count = session->options.slot_count;
    cudaError_t error = cudaSuccess;
    for (uint32_t i = 0; i < count && error == cudaSuccess;) {
        uint32_t first = i++;
        if (!slots[first].active || !(slots[first].given & DEVICE_GIVEN_ALL)) {
            continue;
        }
        while (i < count && slots[i].active && slots[i].given == slots[first].given) {
            i++;
        }
        error = copy_given(session, first, i);
    }
    return error;
}
