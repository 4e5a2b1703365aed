/*
 * The drawings of a tick come to the device: kernels read them where the host wrote them, so that
 * only the bytes in use cross the bus while the list of launches stays the same every tick.
 */
#include "kernels/cuda/common/gpu.h"

#include "kernels/cuda/student/drawing.h"

enum {
    THREADS = 128,
    BLOCKS = 4, /* of a slot: 8 KB at once */
};

static_assert(sizeof(uint4) == DRAWING_ALIGN && sizeof(struct drawing) % DRAWING_ALIGN == 0 &&
                  (int)DRAWING_BYTES_MAX % DRAWING_ALIGN == 0,
              "drawings are copied in 16-byte pieces");

__global__ void __launch_bounds__(THREADS) k_fetch(struct drawing_slots s)
{
    const struct device_slot *slot = &s.slots[blockIdx.y];
    if (!slot->active || slot->given == DEVICE_GIVEN_ALL) {
        return;
    }
    const uint8_t *source = s.source + (size_t)blockIdx.y * DRAWING_BYTES_MAX;
    uint32_t bytes = ((const struct drawing *)source)->bytes;
    bytes = bytes < DRAWING_BYTES_MAX ? bytes : (uint32_t)DRAWING_BYTES_MAX;
    const uint4 *from = (const uint4 *)source;
    uint4 *to = (uint4 *)(s.drawings + (size_t)blockIdx.y * DRAWING_BYTES_MAX);
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < bytes / DRAWING_ALIGN;
         i += BLOCKS * THREADS) {
        to[i] = from[i];
    }
}

void drawing_fetch(const struct drawing_slots *s, void *stream)
{
    LAUNCH(k_fetch, dim3(BLOCKS, s->count), dim3(THREADS), 0, (cudaStream_t)stream, *s);
}
