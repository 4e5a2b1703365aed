/*
 * 3 x 3 convolutions with the epilogue of struct nn_conv: as a product of positions and taps on
 * tensor cores (bf16), and one output at a time (float).
 *
 * A block makes 8 x 16 positions of up to 64 channels. For every 32 input channels it loads the
 * positions with a border of one, and the weights of all nine taps, once each; a tap is then an
 * offset into what is loaded. Shared rows of 32 channels (64 bytes) lie 80 bytes apart, so the
 * eight rows of an ldmatrix fall into different banks. A single stage leaves room for three blocks
 * on a multiprocessor, which hide each other's loads.
 *
 * Order of sums, bf16: inputs' channels in blocks of 32, in a block taps in order, within a tap 16
 * channels at a time in a tensor core. It depends on the channel counts alone.
 */
#include "kernels/cuda/common/act.cuh"

enum {
    TILE_ROWS = 8,
    TILE_COLS = 16,
    HALO_ROWS = TILE_ROWS + 2,
    HALO_COLS = TILE_COLS + 2,
    TAPS = 9,
    CHUNK = 32, /* channels */
    PITCH = 40, /* of a chunk in shared memory, in bf16 */
    CONV_THREADS = 256,
    FLOAT_THREADS = 128,
};

/* Which tile, which image of which slot. */
struct conv_place {
    uint32_t row, col, channel; /* first of the tile */
    size_t image;               /* slot * images + image */
    uint32_t slot;
};

GPU_FN struct conv_place conv_place_of(const struct gpu_conv &c, uint32_t channels)
{
    uint32_t across = c.cols / TILE_COLS;
    struct conv_place p;
    p.row = blockIdx.x / across * TILE_ROWS;
    p.col = blockIdx.x % across * TILE_COLS;
    p.channel = blockIdx.y * channels;
    p.image = blockIdx.z;
    p.slot = blockIdx.z / c.images;
    return p;
}

/* Element of a map's position, the border counted. */
GPU_FN size_t map_at(const struct gpu_conv &c, size_t image, uint32_t row, uint32_t col,
                     uint32_t channels)
{
    return ((image * (c.rows + 2) + row) * (c.cols + 2) + col) * channels;
}

/* Epilogue of the sum, then the store; `pair` consecutive channels from `channel`. */
template <int pair>
GPU_FN void finish(const struct gpu_conv &c, const struct conv_place &p, uint32_t row, uint32_t col,
                   uint32_t channel, const float *sums)
{
    size_t flat = ((p.image * c.rows + row) * c.cols + col) * c.out_channels + channel;
    float y[pair];
#pragma unroll
    for (int i = 0; i < pair; i++) {
        y[i] = sums[i] + c.bias[channel + i];
        if (c.add != NULL) {
            y[i] += c.add[flat + i];
        }
        if (c.scale != NULL) {
            size_t at = p.slot * c.mod_stride + channel + i;
            y[i] = __fmaf_rn(y[i], 1.0f + c.scale[at], c.shift[at]);
        }
        if (c.silu) {
            y[i] = gpu_silu_act(c.type, y[i]);
        }
    }
    if (c.out_f32 != NULL) {
#pragma unroll
        for (int i = 0; i < pair; i++) {
            c.out_f32[flat + i] = y[i];
        }
        return;
    }
    size_t mapped = map_at(c, p.image, row + 1, col + 1, c.out_channels) + channel;
    if (pair == 2) {
        *(uint32_t *)((uint16_t *)c.out + mapped) = gpu_act_pair(y[0], y[pair - 1]);
    } else {
        gpu_act_put(c.type, c.out, mapped, y[0]);
    }
}

/* ---- bf16 ---- */

/* 32 channels of the tile's positions with their border; rows beyond the map are zero. */
GPU_FN void load_halo(const struct gpu_conv &c, const struct conv_place &p, uint32_t k,
                      uint16_t *halo)
{
    bool first = k < c.in_channels[0];
    const uint16_t *map = (const uint16_t *)(first ? c.in[0] : c.in[1]);
    const uint32_t channels = first ? c.in_channels[0] : c.in_channels[1];
    const uint32_t channel = first ? k : k - c.in_channels[0];
    for (uint32_t i = threadIdx.x; i < HALO_ROWS * HALO_COLS * 4; i += CONV_THREADS) {
        uint32_t position = i / 4;
        uint32_t row = p.row + position / HALO_COLS;
        uint32_t col = p.col + position % HALO_COLS;
        bool there = row < c.rows + 2;
        size_t from = map_at(c, p.image, there ? row : 0, col, channels) + channel;
        gpu_copy_async(halo + position * PITCH + i % 4 * 8, map + from + i % 4 * 8, there);
    }
}

/* The same channels of the weights of `channels` outputs, [tap][output][32]. */
template <int channels>
GPU_FN void load_weights(const struct gpu_conv &c, const struct conv_place &p, uint32_t depth,
                         uint32_t k, uint16_t *weights)
{
    const uint16_t *w = (const uint16_t *)c.w;
    for (uint32_t i = threadIdx.x; i < TAPS * channels * 4; i += CONV_THREADS) {
        uint32_t line = i / 4;
        uint32_t tap = line / channels;
        uint32_t output = p.channel + line % channels;
        bool there = output < c.out_channels;
        size_t from = ((size_t)(there ? output : 0) * TAPS + tap) * depth + k;
        gpu_copy_async(weights + line * PITCH + i % 4 * 8, w + from + i % 4 * 8, there);
    }
}

/* channels: outputs of a block. A warp has rows of 16 positions, 32 outputs each. */
template <int channels>
__global__ void __launch_bounds__(CONV_THREADS) conv_kernel(struct gpu_conv c)
{
    SHARED_DYNAMIC(uint16_t, halo);
    uint16_t *weights = halo + HALO_ROWS * HALO_COLS * PITCH;
    const struct conv_place p = conv_place_of(c, channels);
    if (c.active != NULL && c.active[p.slot] == 0) {
        return;
    }
    constexpr int lines = channels / 32; /* rows of positions per warp: 1 or 2 */
    const uint32_t lane = threadIdx.x % 32;
    const uint32_t warp = threadIdx.x / 32;
    const uint32_t first_line = warp / lines * lines;
    const uint32_t first_output = warp % lines * 32;
    float sums[lines][4][4];
#pragma unroll
    for (int i = 0; i < lines * 16; i++) {
        sums[i / 16][i / 4 % 4][i % 4] = 0.0f;
    }
    uint32_t depth = c.in_channels[0] + (c.in_count > 1 ? c.in_channels[1] : 0);
    for (uint32_t k = 0; k < depth; k += CHUNK) {
        __syncthreads(); /* the previous chunk is used up */
        load_halo(c, p, k, halo);
        load_weights<channels>(c, p, depth, k, weights);
        gpu_copy_commit();
        gpu_copy_wait<0>();
        __syncthreads();
#pragma unroll 1 /* unrolled, it would need more registers than three blocks leave */
        for (uint32_t tap = 0; tap < TAPS; tap++) {
#pragma unroll
            for (uint32_t half = 0; half < CHUNK; half += 16) {
                uint32_t b[2][4]; /* of 16 outputs each */
#pragma unroll
                for (uint32_t n = 0; n < 2; n++) {
                    uint32_t line = tap * channels + first_output + n * 16;
                    gpu_ldmatrix_x4(b[n], weights + (line + lane % 8 + lane / 16 * 8) * PITCH +
                                              half + lane / 8 % 2 * 8);
                }
#pragma unroll
                for (int line = 0; line < lines; line++) {
                    uint32_t a[4];
                    uint32_t position =
                        (first_line + line + tap / 3) * HALO_COLS + lane % 16 + tap % 3;
                    gpu_ldmatrix_x4(a, halo + position * PITCH + half + lane / 16 * 8);
#pragma unroll
                    for (int n = 0; n < 4; n++) {
                        gpu_mma_bf16(sums[line][n], a, b[n / 2] + n % 2 * 2);
                    }
                }
            }
        }
    }
#pragma unroll
    for (int line = 0; line < lines; line++) {
        uint32_t row = p.row + first_line + line;
#pragma unroll
        for (int i = 0; i < 8; i++) { /* four blocks of outputs, two positions each */
            uint32_t col = p.col + lane / 4 + i % 2 * 8;
            uint32_t channel = p.channel + first_output + i / 2 * 8 + lane % 4 * 2;
            if (row < c.rows && channel < c.out_channels) {
                finish<2>(c, p, row, col, channel, sums[line][i / 2] + i % 2 * 2);
            }
        }
    }
}

template <int channels> static void conv_bf16(const struct gpu_conv *c, void *stream)
{
    const size_t bytes = (HALO_ROWS * HALO_COLS + TAPS * channels) * PITCH * sizeof(uint16_t);
    dim3 grid(c->cols / TILE_COLS * ((c->rows + TILE_ROWS - 1) / TILE_ROWS),
              (c->out_channels + channels - 1) / channels, c->slots * c->images);
    LAUNCH_DYNAMIC((conv_kernel<channels>), grid, CONV_THREADS, bytes, stream, *c);
}

/* ---- float ---- */

/* One output per thread, in the order of kernels/ref/nn_gemm.c: the same bits. */
__global__ void __launch_bounds__(FLOAT_THREADS) conv_float_kernel(struct gpu_conv c)
{
    uint32_t i = blockIdx.x * FLOAT_THREADS + threadIdx.x;
    struct conv_place p = {};
    p.image = blockIdx.z;
    p.slot = blockIdx.z / c.images;
    if (i >= c.rows * c.cols * c.out_channels || (c.active != NULL && c.active[p.slot] == 0)) {
        return;
    }
    uint32_t channel = i % c.out_channels;
    uint32_t col = i / c.out_channels % c.cols;
    uint32_t row = i / c.out_channels / c.cols;
    uint32_t depth = c.in_channels[0] + (c.in_count > 1 ? c.in_channels[1] : 0);
    const float *w = (const float *)c.w + (size_t)channel * TAPS * depth;
    float sum = 0.0f;
    for (uint32_t tap = 0; tap < TAPS; tap++) {
        for (uint32_t input = 0; input < c.in_count; input++) {
            uint32_t channels = input == 0 ? c.in_channels[0] : c.in_channels[1];
            const float *in = (const float *)(input == 0 ? c.in[0] : c.in[1]) +
                              map_at(c, p.image, row + tap / 3, col + tap % 3, channels);
            for (uint32_t k = 0; k < channels; k++) {
                sum = __fmaf_rn(in[k], *w++, sum);
            }
        }
    }
    finish<1>(c, p, row, col, channel, &sum);
}

extern "C" void gpu_conv_launch(const struct gpu_conv *c, void *stream)
{
    if (c->slots == 0) {
        return;
    }
    if (c->type == GPU_F32) {
        uint32_t outputs = c->rows * c->cols * c->out_channels;
        dim3 grid((outputs + FLOAT_THREADS - 1) / FLOAT_THREADS, 1, c->slots * c->images);
        LAUNCH(conv_float_kernel, grid, FLOAT_THREADS, 0, stream, *c);
    } else if (c->out_channels <= 32) {
        conv_bf16<32>(c, stream);
    } else {
        conv_bf16<64>(c, stream);
    }
}
