/*
 * SIMT emulator: what the lanes of a warp do together (votes, shuffles, matrix products, ldmatrix),
 * asynchronous copies and atomics. The last lane to arrive computes for all.
 */
#include "tests/simt/simt_internal.h"

/* Lanes that wait for each other. */
struct group {
    unsigned mask, arrived;
    simt_op op;
    const char *file;
    int line;
};
static struct {
    group groups[32];
    unsigned count;
} warps[SIMT_WARPS_MAX];

const char *simt_op_name(simt_op op)
{
    static const char *const names[] = {
        "__syncwarp", "shuffle", "vote",        "__reduce_add_sync", "mma bf16",  "mma e4m3",
        "ldmatrix",   "wgmma",   "wgmma fence", "wgmma commit",      "wgmma wait"};
    return names[op];
}

void simt_warp_reset(void)
{
    for (auto &warp : warps) {
        warp.count = 0;
    }
}

void simt_warp_leave(simt_fiber *fiber)
{
    for (unsigned i = 0; i < warps[fiber->warp].count; i++) {
        const group *g = &warps[fiber->warp].groups[i];
        if (g->mask >> fiber->lane & 1) {
            simt_fail(SIMT_DIVERGENT, "lane %u ends while others wait for it at %s, %s:%d",
                      fiber->lane, simt_op_name(g->op), g->file, g->line);
        }
    }
}

/* ---- computing ---- */

static void shuffle(unsigned mask, simt_fiber **lanes)
{
    uint64_t values[32];
    for (int l = 0; l < 32; l++) {
        if (mask >> l & 1) {
            values[l] = ((simt_shuffle *)lanes[l]->argument)->value;
        }
    }
    for (int l = 0; l < 32; l++) {
        if (mask >> l & 1) {
            simt_shuffle *s = (simt_shuffle *)lanes[l]->argument;
            if (s->source < 0 || s->source > 31 || !(mask >> s->source & 1)) {
                simt_fail(SIMT_DIVERGENT, "lane %d shuffles from lane %d, which is not in mask %x",
                          l, s->source, mask);
            }
            s->value = values[s->source];
        }
    }
}

static void vote(simt_op op, unsigned mask, simt_fiber **lanes)
{
    unsigned result = 0;
    for (int l = 0; l < 32; l++) {
        if (mask >> l & 1) {
            unsigned value = *(unsigned *)lanes[l]->argument;
            result = op == SIMT_BALLOT ? result | value << l : result + value;
        }
    }
    for (int l = 0; l < 32; l++) {
        if (mask >> l & 1) {
            *(unsigned *)lanes[l]->argument = result;
        }
    }
}

static float bf16_half(uint32_t pair, int half)
{
    return simt_from_bits(half ? pair & 0xffff0000u : pair << 16);
}

/* d += a b with exact products, summed in double and rounded once. Fragments as in the PTX ISA,
 * "Matrix fragments for mma.m16n8k16": lane = 4 g + t holds rows g, g + 8 and column pair 2 t. The
 * columns of a row are summed side by side, each in the order of k. */
static void matmul(int k_count, float (*a)[32], float (*b)[8], simt_fiber **lanes)
{
    simt_counted.mma++;
    for (int row = 0; row < 16; row++) {
        float *d[4];
        double sums[8];
        for (int t = 0; t < 4; t++) {
            d[t] = ((simt_mma *)lanes[row % 8 * 4 + t]->argument)->d + row / 8 * 2;
            sums[2 * t] = d[t][0];
            sums[2 * t + 1] = d[t][1];
        }
        for (int k = 0; k < k_count; k++) {
            for (int col = 0; col < 8; col++) {
                sums[col] += (double)a[row][k] * (double)b[k][col];
            }
        }
        for (int t = 0; t < 4; t++) {
            d[t][0] = (float)sums[2 * t];
            d[t][1] = (float)sums[2 * t + 1];
        }
    }
}

static void matmul_bf16(simt_fiber **lanes)
{
    float a[16][32];
    float b[32][8];
    for (int l = 0; l < 32; l++) {
        const simt_mma *m = (const simt_mma *)lanes[l]->argument;
        for (int half = 0; half < 2; half++) {
            int k = l % 4 * 2 + half;
            for (int i = 0; i < 4; i++) {
                a[l / 4 + i % 2 * 8][k + i / 2 * 8] = bf16_half(m->a[i], half);
            }
            b[k][l / 4] = bf16_half(m->b[0], half);
            b[k + 8][l / 4] = bf16_half(m->b[1], half);
        }
    }
    matmul(16, a, b, lanes);
}

/* m16n8k32: four bytes per register, k = 4 t + byte, registers 2 and 3 sixteen further. */
static void matmul_e4m3(simt_fiber **lanes)
{
    float a[16][32];
    float b[32][8];
    for (int l = 0; l < 32; l++) {
        const simt_mma *m = (const simt_mma *)lanes[l]->argument;
        for (int byte = 0; byte < 4; byte++) {
            int k = l % 4 * 4 + byte;
            for (int i = 0; i < 4; i++) {
                a[l / 4 + i % 2 * 8][k + i / 2 * 16] =
                    simt_e4m3_to_float((uint8_t)(m->a[i] >> 8 * byte));
            }
            b[k][l / 4] = simt_e4m3_to_float((uint8_t)(m->b[0] >> 8 * byte));
            b[k + 16][l / 4] = simt_e4m3_to_float((uint8_t)(m->b[1] >> 8 * byte));
        }
    }
    matmul(32, a, b, lanes);
}

static void load_matrices(simt_fiber **lanes)
{
    uint16_t matrix[4][8][8];
    int count = ((const simt_ldmatrix *)lanes[0]->argument)->count;
    for (int l = 0; l < 8 * count; l++) {
        memcpy(matrix[l / 8][l % 8], ((const simt_ldmatrix *)lanes[l]->argument)->row, 16);
    }
    for (int l = 0; l < 32; l++) {
        const simt_ldmatrix *m = (const simt_ldmatrix *)lanes[l]->argument;
        int row = l / 4;
        int col = l % 4 * 2;
        for (int i = 0; i < count; i++) {
            uint16_t low = m->transposed ? matrix[i][col][row] : matrix[i][row][col];
            uint16_t high = m->transposed ? matrix[i][col + 1][row] : matrix[i][row][col + 1];
            m->out[i] = low | (uint32_t)high << 16;
        }
    }
}

static void compute(simt_op op, unsigned mask, simt_fiber **lanes)
{
    switch (op) {
    case SIMT_SYNCWARP: {
        /* Lanes know of each other what they did up to here. */
        uint32_t now = ++simt_running.clock;
        for (int l = 0; l < 32; l++) {
            if (mask >> l & 1) {
                lanes[l]->clock = now;
            }
        }
        break;
    }
    case SIMT_SHUFFLE:
        shuffle(mask, lanes);
        break;
    case SIMT_BALLOT:
    case SIMT_REDUCE_ADD:
        vote(op, mask, lanes);
        break;
    case SIMT_MMA_BF16:
        matmul_bf16(lanes);
        break;
    case SIMT_MMA_E4M3:
        matmul_e4m3(lanes);
        break;
    case SIMT_LDMATRIX:
        load_matrices(lanes);
        break;
    default: /* of a warpgroup */
        break;
    }
}

/* ---- meeting ---- */

static unsigned lanes_of(unsigned warp)
{
    unsigned count = simt_running.threads - warp * 32;
    return count >= 32 ? ~0u : (1u << count) - 1;
}

/* The group of exactly this mask, made if it is not there. */
static group *group_of(simt_fiber *fiber, simt_op op, unsigned mask, const char *file, int line)
{
    auto *warp = &warps[fiber->warp];
    for (unsigned i = 0; i < warp->count; i++) {
        group *g = &warp->groups[i];
        if (g->mask == mask) {
            return g;
        }
        if (g->mask & mask & g->arrived) {
            simt_fail(SIMT_DIVERGENT, "%s at %s:%d with mask %x while lanes wait at %s:%d with %x",
                      simt_op_name(op), file, line, mask, g->file, g->line, g->mask);
        }
    }
    warp->groups[warp->count] = {mask, 0, op, file, line};
    return &warp->groups[warp->count++];
}

void simt_collective(simt_op op, unsigned mask, void *argument, const char *file, int line)
{
    simt_fiber *fiber = simt_current;
    simt_yield();
    if (op == SIMT_LDMATRIX) {
        const simt_ldmatrix *m = (const simt_ldmatrix *)argument;
        if (fiber->lane < 8u * (unsigned)m->count) {
            if ((uintptr_t)m->row % 16 != 0) {
                simt_fail(SIMT_MISALIGNED, "ldmatrix at %s:%d: row at %p, not a multiple of 16",
                          file, line, m->row);
            }
            simt_touch(m->row, 16, SIMT_READ, nullptr);
        }
    }
    if (mask == ~0u) {
        mask = lanes_of(fiber->warp);
    }
    simt_need(op != SIMT_MMA_E4M3 || simt_has(op), simt_op_name(op), file, line);
    if (op >= SIMT_MMA_BF16 && mask != ~0u) {
        simt_fail(SIMT_DIVERGENT, "%s at %s:%d in a warp of fewer than 32 threads",
                  simt_op_name(op), file, line);
    }
    if (!(mask >> fiber->lane & 1)) {
        simt_fail(SIMT_DIVERGENT, "%s at %s:%d: the calling lane %u is not in mask %x",
                  simt_op_name(op), file, line, fiber->lane, mask);
    }
    group *g = group_of(fiber, op, mask, file, line);
    if (g->op != op || g->line != line || (g->file != file && strcmp(g->file, file) != 0)) {
        simt_fail(SIMT_DIVERGENT, "%s at %s:%d while other lanes are at %s, %s:%d",
                  simt_op_name(op), file, line, simt_op_name(g->op), g->file, g->line);
    }
    fiber->state = SIMT_AT_WARP;
    fiber->op = op;
    fiber->mask = mask;
    fiber->argument = argument;
    fiber->file = file;
    fiber->line = line;
    g->arrived |= 1u << fiber->lane;
    if (g->arrived != mask) {
        simt_suspend();
        return;
    }
    auto *warp = &warps[fiber->warp];
    *g = warp->groups[--warp->count];
    simt_counted.collectives++;
    simt_fiber **lanes = &simt_fibers[fiber->warp * 32];
    compute(op, mask, lanes);
    fiber->state = SIMT_READY; /* it runs on: not queued */
    for (int l = 0; l < 32; l++) {
        if ((mask >> l & 1) && lanes[l] != fiber) {
            simt_resume(lanes[l]);
        }
    }
}

/* ---- asynchronous copies ---- */

static void land(simt_copy *copy)
{
    if (!copy->landed) {
        memcpy(copy->to, copy->from, copy->source_bytes);
        memset((char *)copy->to + copy->source_bytes, 0, copy->bytes - copy->source_bytes);
        copy->landed = true;
    }
}

void simt_copy_async(void *to, const void *from, unsigned bytes, unsigned source_bytes)
{
    simt_fiber *fiber = simt_current;
    uintptr_t places = (uintptr_t)to | (source_bytes > 0 ? (uintptr_t)from : 0);
    if (places % bytes != 0) {
        simt_fail(SIMT_MISALIGNED, "cp.async of %u bytes from %p to %p", bytes, from, to);
    }
    if (source_bytes > 0) {
        simt_touch(from, source_bytes, SIMT_READ, nullptr);
    }
    simt_touch(to, bytes, SIMT_COPY_ISSUE, nullptr);
    if (fiber->copy_count == SIMT_COPIES_MAX) {
        simt_fail(SIMT_LAUNCH, "more than %d asynchronous copies in flight", SIMT_COPIES_MAX);
    }
    simt_copy *copy = &fiber->copies[fiber->copy_count++];
    *copy = {to, from, bytes, source_bytes, false};
    fiber->open_count++;
    if (simt_mode == 1 || (simt_mode >= 3 && simt_random() % 2 == 0)) {
        land(copy);
    }
    simt_yield();
}

void simt_copy_commit(void)
{
    simt_fiber *fiber = simt_current;
    if (fiber->group_count == SIMT_GROUPS_MAX) {
        simt_fail(SIMT_LAUNCH, "more than %d groups of asynchronous copies", SIMT_GROUPS_MAX);
    }
    fiber->groups[fiber->group_count++] = fiber->open_count;
    fiber->open_count = 0;
}

void simt_copy_wait(unsigned groups_left)
{
    simt_fiber *fiber = simt_current;
    unsigned done = 0;
    unsigned group = 0;
    for (; fiber->group_count - group > groups_left; group++) {
        for (unsigned i = 0; i < fiber->groups[group]; i++, done++) {
            simt_copy *copy = &fiber->copies[done];
            land(copy);
            simt_touch(copy->to, copy->bytes, SIMT_WRITE, nullptr);
        }
    }
    for (unsigned i = done; i < fiber->copy_count; i++) {
        fiber->copies[i - done] = fiber->copies[i];
    }
    for (unsigned i = group; i < fiber->group_count; i++) {
        fiber->groups[i - group] = fiber->groups[i];
    }
    fiber->copy_count -= done;
    fiber->group_count -= group;
}

/* ---- atomics ---- */

/* Threads switch only between calls, so reading and writing is one step. */
template <class T, class F> static T exchange(T *address, F combine)
{
    simt_yield();
    simt_touch(address, sizeof *address, SIMT_ATOMIC, __builtin_return_address(0));
    T old = *address;
    *address = combine(old);
    return old;
}

int atomicAdd(int *address, int value)
{
    return exchange(address, [=](int old) { return (int)((unsigned)old + (unsigned)value); });
}

unsigned atomicAdd(unsigned *address, unsigned value)
{
    return exchange(address, [=](unsigned old) { return old + value; });
}

unsigned long long atomicAdd(unsigned long long *address, unsigned long long value)
{
    return exchange(address, [=](unsigned long long old) { return old + value; });
}

float atomicAdd(float *address, float value)
{
    return exchange(address, [=](float old) { return old + value; });
}

int atomicMax(int *address, int value)
{
    return exchange(address, [=](int old) { return old > value ? old : value; });
}

unsigned atomicMax(unsigned *address, unsigned value)
{
    return exchange(address, [=](unsigned old) { return old > value ? old : value; });
}

int atomicMin(int *address, int value)
{
    return exchange(address, [=](int old) { return old < value ? old : value; });
}

unsigned atomicMin(unsigned *address, unsigned value)
{
    return exchange(address, [=](unsigned old) { return old < value ? old : value; });
}

unsigned atomicOr(unsigned *address, unsigned value)
{
    return exchange(address, [=](unsigned old) { return old | value; });
}

unsigned atomicExch(unsigned *address, unsigned value)
{
    return exchange(address, [=](unsigned) { return value; });
}

unsigned atomicCAS(unsigned *address, unsigned compare, unsigned value)
{
    return exchange(address, [=](unsigned old) { return old == compare ? value : old; });
}
