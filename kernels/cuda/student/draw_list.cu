/*
 * The draw lists of a tick come to the device: kernels read them where the host wrote them, so that
 * only the bytes in use cross the bus while the list of launches stays the same every tick.
 */
#include "kernels/cuda/common/gpu.h"

#include "kernels/cuda/student/draw_list.h"

enum {
    THREADS = 128,
    BLOCKS = 4, /* of a slot: 8 KB at once */
};

static_assert(sizeof(uint4) == DRAW_LIST_ALIGN && sizeof(struct draw_list) % DRAW_LIST_ALIGN == 0 &&
                  (int)DRAW_LIST_BYTES_MAX % DRAW_LIST_ALIGN == 0,
              "draw lists are copied in 16-byte pieces");

__global__ void __launch_bounds__(THREADS) k_fetch(struct draw_list_slots s)
{
    const struct device_slot *slot = &s.slots[blockIdx.y];
    if (!slot->active || slot->given == DEVICE_GIVEN_ALL) {
        return;
    }
    const uint8_t *source = s.source + (size_t)blockIdx.y * DRAW_LIST_BYTES_MAX;
    uint32_t bytes = ((const struct draw_list *)source)->bytes;
    bytes = bytes < DRAW_LIST_BYTES_MAX ? bytes : (uint32_t)DRAW_LIST_BYTES_MAX;
    const uint4 *from = (const uint4 *)source;
    uint4 *to = (uint4 *)(s.draw_lists + (size_t)blockIdx.y * DRAW_LIST_BYTES_MAX);
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < bytes / DRAW_LIST_ALIGN;
         i += BLOCKS * THREADS) {
        to[i] = from[i];
    }
}

void draw_list_fetch(const struct draw_list_slots *s, void *stream)
{
    LAUNCH(k_fetch, dim3(BLOCKS, s->count), dim3(THREADS), 0, (cudaStream_t)stream, *s);
}
