/*
 * Measures the network kernels at the shapes of the world models. One call is a few microseconds to
 * a few milliseconds: the shortest of many calls counts, in processor time of the thread, so that
 * neighbours on the machine count as little as possible.
 */
#include "engine/bench/bench_nn.h"

#include "base/check.h"
#include "base/units.h"
#include "engine/bench/machine.h"
#include "kernels/cpu.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TOKENS = 216,
    HEADS = 8,
    WIDTH = HEADS * NN_HEAD,
    PAGES = 8,
    ELEMENTS = 9216 * 22,
    MAP_SIDE = 96,
    BUFFER_BYTES = 4 * 1024 * 1024,
    BUFFERS = 6,
    MEASURE_NS = 12 * 1000 * 1000,
};

struct bench {
    const struct clock *clock;
    struct nn_kernels kernels;
    uint32_t flags;
    double peaks[NN_PRECISION_COUNT]; /* flop/s of the machine's best table */
    double copy;                      /* bytes/s */
    void *buffers[BUFFERS];
    int16_t index[TOKENS];
    struct nn_int8_row int8_rows[TOKENS];
    struct engine_bench_nn_row *rows;
    uint32_t count;
};

/* The shortest of the calls that fit into MEASURE_NS, at least three. */
static double best_s(const struct bench *bench, void (*call)(const struct bench *, const void *),
                     const void *argument)
{
    int64_t best_ns = INT64_MAX;
    int64_t total_ns = 0;
    for (int i = 0; i < 3 || total_ns < MEASURE_NS; i++) {
        int64_t start_ns = clock_thread_cpu_ns(bench->clock);
        call(bench, argument);
        int64_t ns = clock_thread_cpu_ns(bench->clock) - start_ns;
        best_ns = ns < best_ns ? ns : best_ns;
        total_ns += ns > 0 ? ns : 1;
    }
    return (double)(best_ns > 0 ? best_ns : 1) / (double)NS_PER_S;
}

static void add_row(struct bench *bench, const char *kernel, double work, double seconds, bool flop)
{
    CHECK(bench->count < ENGINE_BENCH_NN_MAX);
    struct engine_bench_nn_row *row = &bench->rows[bench->count++];
    *row = (struct engine_bench_nn_row){
        .value = work / seconds * 1e-9,
        .unit = flop ? "GFLOP/s" : "GB/s",
        .baseline = (flop ? bench->peaks[bench->kernels.precision] : bench->copy) * 1e-9,
        .baseline_name = flop ? "this machine's fastest multiply-adds in registers, one core"
                              : "memcpy of 1 MiB",
    };
    snprintf(row->name, sizeof row->name, "kernels.%s.%s.%s",
             nn_precision_names[bench->kernels.precision], bench->kernels.name, kernel);
}

static void call_gemm(const struct bench *bench, const void *argument)
{
    const struct nn_gemm *g = argument;
    bool int8 = bench->kernels.precision == NN_INT8;
    (int8 ? bench->kernels.gemm_int8 : bench->kernels.gemm)(g, 0, g->m);
}

static void bench_gemm(struct bench *bench, uint32_t n, uint32_t k, enum nn_epilogue epilogue)
{
    static const char *const names[] = {"store", "add", "act", "silu"};
    struct nn_gemm g = {
        .m = TOKENS,
        .n = n,
        .k = k,
        .a = bench->buffers[0],
        .lda = k,
        .rows = bench->int8_rows,
        .b = bench->buffers[1],
        .bias = bench->buffers[2],
        .epilogue = epilogue,
        .c = bench->buffers[3],
        .out = bench->buffers[4],
        .ldc = n,
    };
    char name[48];
    bool int8 = bench->kernels.precision == NN_INT8;
    (int8 ? bench->kernels.pack_int8 : bench->kernels.pack)(bench->buffers[5], n, k,
                                                            bench->buffers[1]);
    snprintf(name, sizeof name, "gemm_%ux%ux%u_%s", g.m, n, k, names[epilogue]);
    double seconds = best_s(bench, call_gemm, &g);
    add_row(bench, name, 2.0 * g.m * n * k, seconds, true);
}

static void call_conv(const struct bench *bench, const void *argument)
{
    const struct nn_conv *c = argument;
    bool int8 = bench->kernels.precision == NN_INT8;
    (int8 ? bench->kernels.conv3x3_int8 : bench->kernels.conv3x3)(c, 0, c->rows);
}

static void bench_conv(struct bench *bench, uint32_t rows, uint32_t cols, uint32_t in, uint32_t out)
{
    uint32_t half = in > 64 ? in / 2 : in;
    struct nn_conv c = {
        .rows = rows,
        .cols = cols,
        .in_count = in / half,
        .in = {bench->buffers[0], bench->buffers[0]},
        .in_channels = {half, in - half},
        .out_channels = out,
        .b = bench->buffers[1],
        .bias = bench->buffers[2],
        .scale = bench->buffers[2],
        .shift = bench->buffers[2],
        .silu = 1,
        .out = bench->buffers[4],
    };
    char name[48];
    if (bench->kernels.precision == NN_INT8) {
        bench->kernels.conv_pack_int8(bench->buffers[5], out, c.in_count, c.in_channels,
                                      c.in_channels, bench->buffers[1]);
    } else {
        bench->kernels.pack(bench->buffers[5], out, 9 * in, bench->buffers[1]);
    }
    snprintf(name, sizeof name, "conv3x3_%ux%u_%u_%u_silu", rows, cols, in, out);
    double seconds = best_s(bench, call_conv, &c);
    add_row(bench, name, 2.0 * 9 * in * out * rows * cols, seconds, true);
}

static void call_attention(const struct bench *bench, const void *argument)
{
    bench->kernels.attention(argument, 0, HEADS);
}

static void call_temporal(const struct bench *bench, const void *argument)
{
    bench->kernels.temporal(argument, 0, TOKENS);
}

static void bench_attention(struct bench *bench)
{
    struct nn_attention a = {
        .tokens = 144,
        .width = WIDTH,
        .qkv = bench->buffers[5],
        .cosine = bench->buffers[2],
        .sine = bench->buffers[2],
        .out = bench->buffers[4],
    };
    double seconds = best_s(bench, call_attention, &a);
    add_row(bench, "attention_144x256", 4.0 * 144 * 144 * WIDTH, seconds, true);
    struct nn_temporal t = {
        .tokens = TOKENS,
        .width = WIDTH,
        .pages = PAGES,
        .q = bench->buffers[5],
        .bias = bench->buffers[2],
        .bias_stride = PAGES,
        .null_k = bench->buffers[2],
        .null_v = bench->buffers[2],
        .out = bench->buffers[4],
    };
    size_t page_bytes = TOKENS * WIDTH * nn_act_bytes(bench->kernels.precision);
    for (uint32_t p = 0; p < PAGES; p++) {
        t.k[p] = (uint8_t *)bench->buffers[0] + p * page_bytes;
        t.v[p] = (uint8_t *)bench->buffers[1] + p * page_bytes;
        t.index[p] = bench->index;
    }
    seconds = best_s(bench, call_temporal, &t);
    add_row(bench, "temporal_216x256x8", 2.0 * PAGES * (double)page_bytes, seconds, false);
}

static void call_norm(const struct bench *bench, const void *argument)
{
    (void)argument;
    bench->kernels.norm(bench->buffers[5], WIDTH, 1.0f, bench->buffers[2], bench->buffers[2],
                        bench->buffers[4], 0, TOKENS);
}

static void call_silu(const struct bench *bench, const void *argument)
{
    (void)argument;
    bench->kernels.silu(bench->buffers[3], ELEMENTS);
}

static void call_to_act(const struct bench *bench, const void *argument)
{
    (void)argument;
    bench->kernels.to_act(bench->buffers[5], bench->buffers[4], ELEMENTS);
}

static void call_to_int8(const struct bench *bench, const void *argument)
{
    (void)argument;
    bench->kernels.to_int8(bench->buffers[5], WIDTH, bench->buffers[4], WIDTH,
                           (struct nn_int8_row *)bench->buffers[3], 0, TOKENS);
}

static void call_noise(const struct bench *bench, const void *argument)
{
    (void)argument;
    bench->kernels.noise(1, 2, 3, 0, ELEMENTS, bench->buffers[3]);
}

static void call_euler(const struct bench *bench, const void *argument)
{
    (void)argument;
    bench->kernels.euler(bench->buffers[3], bench->buffers[5], bench->buffers[5],
                         MAP_SIDE * MAP_SIDE, 22, 32, 0.25f);
}

static void call_quantise(const struct bench *bench, const void *argument)
{
    struct nn_counts counts = {0, 0};
    (void)argument;
    bench->kernels.quantise(bench->buffers[5], bench->buffers[4], ELEMENTS, &counts);
}

static void call_copy(const struct bench *bench, const void *argument)
{
    (void)argument;
    memcpy(bench->buffers[4], bench->buffers[5], 1 << 20);
}

static void bench_elements(struct bench *bench)
{
    size_t act = nn_act_bytes(bench->kernels.precision);
    double tokens = (double)TOKENS * WIDTH;
    double seconds = best_s(bench, call_norm, NULL);
    add_row(bench, "norm_216x256", tokens * (4.0 + (double)act), seconds, false);
    seconds = best_s(bench, call_to_act, NULL);
    add_row(bench, "to_act", ELEMENTS * (4.0 + (double)act), seconds, false);
    if (bench->kernels.precision == NN_BF16) {
        return; /* the others do not depend on the precision */
    }
    seconds = best_s(bench, call_noise, NULL);
    add_row(bench, "noise", ELEMENTS * 4.0, seconds, false);
    seconds = best_s(bench, call_silu, NULL);
    add_row(bench, "silu", ELEMENTS * 8.0, seconds, false);
    seconds = best_s(bench, call_euler, NULL);
    add_row(bench, "euler", ELEMENTS * 16.0, seconds, false);
    seconds = best_s(bench, call_quantise, NULL);
    add_row(bench, "quantise", ELEMENTS * 5.0, seconds, false);
}

/* Small integers over 64: tame in either type, no denormals to slow an instruction down. */
static void fill(struct bench *bench)
{
    for (uint32_t i = 0; i < BUFFERS; i++) {
        for (size_t j = 0; j < BUFFER_BYTES / sizeof(float); j++) {
            ((float *)bench->buffers[i])[j] = (float)((int)(j * 7 % 129) - 64) / 64.0f;
        }
    }
    for (uint32_t i = 0; i < TOKENS; i++) {
        bench->index[i] = (int16_t)i;
    }
}

static void bench_gemms(struct bench *bench)
{
    bench_gemm(bench, 4 * WIDTH, WIDTH, NN_SILU_ACT);
    bench_gemm(bench, WIDTH, 4 * WIDTH, NN_ADD_GATED);
    bench_gemm(bench, 512, 512, NN_ADD_GATED);
}

static void bench_convs(struct bench *bench)
{
    bench_conv(bench, MAP_SIDE, MAP_SIDE, 32, 64);
    bench_conv(bench, MAP_SIDE, MAP_SIDE, 64, 64);
    bench_conv(bench, MAP_SIDE, MAP_SIDE, 128, 64);
    bench_conv(bench, 32, 48, 64, 32);
}

/* Kernels that NN_INT8 has of its own. */
static void bench_int8(struct bench *bench)
{
    bench_gemms(bench);
    bench_convs(bench);
    fill(bench);
    double seconds = best_s(bench, call_to_int8, NULL);
    add_row(bench, "to_int8_216x256", 3.0 * TOKENS * WIDTH, seconds, false);
}

static void bench_all(struct bench *bench, enum nn_precision precision)
{
    nn_kernels_init(&bench->kernels, precision, bench->flags);
    fill(bench);
    bench->copy = 2.0 * (1 << 20) / best_s(bench, call_copy, NULL);
    bench_gemm(bench, WIDTH, WIDTH, NN_ADD_GATED);
    if (bench->flags == 0) {
        return; /* the plain C products are the definition, not a product */
    }
    if (precision == NN_INT8) {
        bench_int8(bench);
        return;
    }
    bench_gemms(bench);
    bench_convs(bench);
    fill(bench);
    bench_attention(bench);
    bench_elements(bench);
}

enum status engine_bench_nn(const struct clock *clock, struct engine_bench_nn_row *rows,
                            uint32_t *count, struct error *error)
{
    static const uint32_t sets[] = {0,
                                    CPU_FLAG_AVX2,
                                    CPU_FLAG_AVX2 | CPU_FLAG_AVX512,
                                    CPU_FLAG_AVX2 | CPU_FLAG_AVX512 | CPU_FLAG_AVX512_VNNI,
                                    CPU_FLAG_ALL & ~CPU_FLAG_AMX,
                                    CPU_FLAG_ALL};
    struct bench bench = {.clock = clock, .rows = rows};
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < BUFFERS; i++) {
        bench.buffers[i] = aligned_alloc(64, BUFFER_BYTES);
        if (bench.buffers[i] == NULL) {
            status = error_set(error, STATUS_NO_MEMORY, "no memory for the kernel benchmarks");
            goto done;
        }
    }
    for (int p = 0; p < NN_PRECISION_COUNT; p++) {
        bench.peaks[p] = machine_peak_flops((enum nn_precision)p);
    }
    for (uint32_t i = 0; i < COUNT_OF(sets); i++) {
        bench.flags = sets[i];
        if ((cpu_flags_detect() & sets[i]) == sets[i]) {
            /* Products of four bytes are for int8 alone, tiles and pairs for bf16. */
            if ((sets[i] & CPU_FLAG_AVX512_VNNI) == 0) {
                bench_all(&bench, NN_FP32);
            }
            if (sets[i] != (CPU_FLAG_AVX2 | CPU_FLAG_AVX512 | CPU_FLAG_AVX512_VNNI)) {
                bench_all(&bench, NN_BF16);
            }
            if ((sets[i] & CPU_FLAG_AVX512_BF16) == 0) {
                bench_all(&bench, NN_INT8);
            }
        }
    }
    *count = bench.count;
done:
    for (uint32_t i = 0; i < BUFFERS; i++) {
        free(bench.buffers[i]);
    }
    return status;
}
