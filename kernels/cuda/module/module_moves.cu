/*
 * Pages between the arena and pinned memory, for spills and returns. Moves are gathered until
 * somebody starts them: page_start, page_wait, or work that may touch a page. Then those whose
 * places on the host follow each other at one distance, as a time slab's do, go together: one
 * launch brings them side by side in a staging area on the device, wherever in the arena they lie,
 * and one copy takes them over the bus; the other way round on the way back. The rest go one by
 * one.
 *
 * Saves start before loads: a load may overwrite a page that is being saved. A page that waits to
 * be loaded and is to be saved again is loaded first.
 */
#include "kernels/cuda/module/module.cuh"

#include "kernels/cuda/common/kernels.h"

/* Parts of a page that move: frame and memory lie behind each other in the arena, and here too. */
struct part {
    uint8_t *host;
    size_t offset, bytes;
};

static bool is_whole(const struct module_move *move)
{
    return move->frame != NULL && move->frame + DEVICE_FRAME_BYTES == move->memory;
}

static struct part part_of(const struct device_session *session, const struct module_move *move)
{
    const size_t memory_bytes = module_memory_bytes(session);
    if (is_whole(move)) {
        return {move->frame, 0, DEVICE_FRAME_BYTES + memory_bytes};
    }
    return {move->memory, DEVICE_FRAME_BYTES, memory_bytes};
}

/* Number of moves from `first` on that are one run: the same part of their pages, at one distance,
 * and that no more than the device copies over (memPitch). */
static uint32_t run_of(const struct device_session *session, const struct module_moves *moves,
                       uint32_t first)
{
    const struct part from = part_of(session, &moves->item[first]);
    uint32_t count = 1;
    ptrdiff_t distance = 0;
    while (first + count < moves->count) {
        const struct module_move *move = &moves->item[first + count];
        const struct part next = part_of(session, move);
        const ptrdiff_t apart = next.host - part_of(session, move - 1).host;
        if (next.bytes != from.bytes || apart < (ptrdiff_t)from.bytes ||
            apart > (ptrdiff_t)session->pitch_max || (count > 1 && apart != distance) ||
            (move->frame != NULL && !is_whole(move))) {
            break;
        }
        distance = apart;
        count++;
    }
    return moves->item[first].frame != NULL && !is_whole(&moves->item[first]) ? 1 : count;
}

static cudaError_t copy(struct device_session *session, void *device, uint8_t *host, size_t bytes,
                        bool back)
{
    return back ? cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, session->copies)
                : cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, session->copies);
}

static cudaError_t move_one(struct device_session *session, const struct module_move *move,
                            bool back)
{
    const struct part part = part_of(session, move);
    uint8_t *page = module_page_at(session, move->page);
    cudaError_t error = cudaSuccess;
    if (move->frame != NULL && !is_whole(move)) {
        error = copy(session, page, move->frame, DEVICE_FRAME_BYTES, back);
    }
    return error == cudaSuccess ? copy(session, page + part.offset, part.host, part.bytes, back)
                                : error;
}

static cudaError_t move_run(struct device_session *session, const struct module_move *move,
                            uint32_t count, bool back)
{
    const struct part part = part_of(session, move);
    const size_t distance = (size_t)(part_of(session, move + 1).host - part.host);
    struct gpu_page_move gather = {};
    gather.count = count;
    gather.page_bytes = session->page_bytes;
    gather.offset = part.offset;
    gather.bytes = part.bytes;
    gather.arena = session->arena;
    gather.staging = session->staging;
    gather.back = back;
    for (uint32_t i = 0; i < count; i++) {
        gather.page[i] = (int32_t)move[i].page;
    }
    if (!back) {
        gpu_page_move_launch(&gather, (void *)session->copies);
    }
    cudaError_t error =
        back ? cudaMemcpy2DAsync(session->staging, part.bytes, part.host, distance, part.bytes,
                                 count, cudaMemcpyHostToDevice, session->copies)
             : cudaMemcpy2DAsync(part.host, distance, session->staging, part.bytes, part.bytes,
                                 count, cudaMemcpyDeviceToHost, session->copies);
    if (back && error == cudaSuccess) {
        gpu_page_move_launch(&gather, (void *)session->copies);
    }
    session->stats.launches++;
    return error == cudaSuccess ? cudaPeekAtLastError() : error;
}

static cudaError_t start_list(struct device_session *session, struct module_moves *moves, bool back)
{
    cudaError_t error = cudaSuccess;
    for (uint32_t i = 0; i < moves->count && error == cudaSuccess;) {
        const uint32_t count = run_of(session, moves, i);
        error = count > 1 ? move_run(session, &moves->item[i], count, back)
                          : move_one(session, &moves->item[i], back);
        i += count;
    }
    moves->count = 0;
    return error;
}

cudaError_t module_moves_start(struct device_session *session)
{
    if (session->saves.count + session->loads.count == 0) {
        return cudaSuccess;
    }
    cudaError_t error = start_list(session, &session->saves, false);
    if (error == cudaSuccess) {
        error = start_list(session, &session->loads, true);
    }
    session->loads.count = 0;
    session->copy_pending = true;
    return error == cudaSuccess ? cudaEventRecord(session->copied, session->copies) : error;
}

static bool has_page(const struct module_moves *moves, uint32_t page)
{
    for (uint32_t i = 0; i < moves->count; i++) {
        if (moves->item[i].page == page) {
            return true;
        }
    }
    return false;
}

cudaError_t module_move_add(struct device_session *session, const struct module_move *move,
                            bool back)
{
    struct module_moves *moves = back ? &session->loads : &session->saves;
    cudaError_t error = cudaSuccess;
    if (moves->count == GPU_MOVE_MAX || has_page(&session->loads, move->page)) {
        error = module_moves_start(session);
    }
    moves->item[moves->count++] = *move;
    return error;
}
