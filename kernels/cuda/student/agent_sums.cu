/*
 * Sums that show each agent in the frames that a tick wrote (kernels/agent_sums.h), made where they
 * lie: a block per gate and slot, its threads over the gate's cells. All are integers, so the order
 * does not matter and they equal engine/learned/agent_measure.c's. A slot's depend on its own
 * record, written page and layout. Blocks of gates that a slot does not have end at once.
 */
#include "kernels/cuda/common/gpu.h"

#include "kernels/cuda/student/context.h"

enum { THREADS = 128, WARPS = THREADS / 32, SUMS = 8 };

static_assert(sizeof(struct agent_sums) == SUMS * sizeof(int32_t), "sums are numbered as they lie");
static_assert((int)AGENT_CELLS == 2 * (int)SHAPE_BEV_SIDE &&
                  (int)AGENT_CHANNELS == (int)SHAPE_BEV_CHANNELS,
              "kernels/agent_sums.h repeats the frame");

/* Eight blocks a multiprocessor are enough: for more, sm_89 has too few registers. */
__global__ void __launch_bounds__(THREADS, 8)
    k_agents(struct context_slots s, struct device_counts *counts)
{
    SHARED(int32_t[WARPS][SUMS], room);
    uint32_t number = blockIdx.y;
    const struct device_slot *slot = &s.slots[number];
    if (!slot->active || slot->conditioning != CONDITION_AGENTS || blockIdx.x >= slot->gate_count) {
        return;
    }
    const struct agent_gate *gate = &slot->gates[blockIdx.x];
    const uint8_t *frame = s.arena + slot->write_page * s.page_bytes;
    const uint8_t *layout = s.layouts + (size_t)number * DEVICE_FRAME_BYTES;
    int32_t cols = gate->col_end - gate->col_first;
    int32_t cells = (gate->row_end - gate->row_first) * cols;
    struct agent_sums own = {};
    for (int32_t i = (int32_t)threadIdx.x; i < cells; i += THREADS) {
        agent_sums_add(gate, frame, layout, gate->row_first + i / cols, gate->col_first + i % cols,
                       &own);
    }
    const int32_t *sums = (const int32_t *)&own;
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        /* modulo 2^32, which a signed sum survives */
        uint32_t sum = __reduce_add_sync(0xffffffffu, (uint32_t)sums[i]);
        if (threadIdx.x % 32 == 0) {
            room[threadIdx.x / 32][i] = (int32_t)sum;
        }
    }
    __syncthreads();
    if (threadIdx.x < SUMS) {
        int32_t sum = 0;
        for (int warp = 0; warp < WARPS; warp++) {
            sum += room[warp][threadIdx.x];
        }
        ((int32_t *)&counts[number].agents[blockIdx.x])[threadIdx.x] = sum;
    }
}

void context_agents(const struct context_slots *s, struct device_counts *counts, void *stream)
{
    LAUNCH(k_agents, dim3(AGENT_GATES_MAX, s->count), dim3(THREADS), 0, (cudaStream_t)stream, *s,
           counts);
}
