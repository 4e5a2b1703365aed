/*
 * SIMT emulator: products of a warpgroup (wgmma), by the PTX ISA's section 9.7.15. The 128 threads
 * meet at each of its instructions, which orders nothing else between them. A product is issued,
 * and its sums are there at the wait for its group: until then its registers hold NaNs, and it may
 * read its tiles at once or at the last moment, as the seed says.
 *
 * Rules, whatever the schedule: tiles are read at the issue and once more at the wait, by each
 * warp, so that writes before and after must be ordered with both; in between nobody writes to
 * them, ordered or not. Of every four bytes of dynamic shared memory is known which thread wrote
 * them and behind how many of its proxy fences: the next one must lie before the product. Registers
 * of products are watched through the compiler's calls for accesses to the stack, and compared at
 * the wait.
 *
 * Modelled: m64n128k16 in bf16, m64n128k32 in e4m3 (both K-major), tiles of the 128-byte swizzle in
 * dynamic shared memory, base offset 0. A thread's registers are arrays that live until the wait;
 * who moves them is not followed.
 */
#include "kernels/cuda/common/wgmma_layout.h"
#include "tests/simt/simt_internal.h"
#include "tests/simt/wgmma_fragments.h"

#include <cstring>
#include <vector>

bool simt_wgmma_used;

namespace
{

enum {
    GROUP = 128, /* threads */
    GROUPS_MAX = SIMT_THREADS_MAX / GROUP,
    M = 64,
    N = 128,
    K = 16, /* of MN-major tiles, and of operands in registers */
    K_MAX = 32,
    K_BYTES = 32,
    SUMS = N / 2, /* of a thread */
    PENDING_MAX = 64,
    WINDOW = 1 << 18, /* addresses of shared memory that a descriptor reaches */
    WINDOW_START = 1024,
};

/* Elements of vectors are types of this file: else the linker may take the code of a vector from a
 * unit that is compiled with calls before its accesses. */
struct mark {
    uint32_t value; /* 0, or thread + 1 and behind how many fences */
};
struct readers {
    uint32_t count; /* products in flight */
};
struct moment {
    uint32_t clock;
};
struct sum {
    float value;
};
struct batch {
    unsigned count; /* products */
};

/* Registers that products use: sums, or a left operand. */
struct registers {
    char *place[GROUP];
    size_t bytes;
    bool fenced; /* gpu_wgmma_fence since they were touched */
    unsigned in_flight;
    std::vector<sum> sums; /* [M][N] while in flight */
};

struct operation {
    simt_wgmma what; /* of the first thread */
    size_t sums, left;
    bool computed;
    uint32_t weights[GROUP][4]; /* the left operand, where it is in registers */
    const char *file;
    int line;
};

struct warpgroup {
    unsigned arrived;
    simt_op op;
    const char *file;
    int line;
    simt_wgmma what; /* of who came first */
    bool fenced;     /* since the last wait: what registers never seen before need */
    std::vector<registers> known;
    std::vector<operation> pending; /* in order */
    std::vector<batch> groups;      /* oldest first */
    unsigned open;
};

warpgroup warpgroups[GROUPS_MAX];
std::vector<mark> writer;     /* of each word */
std::vector<readers> reading; /* of each 16 bytes */
std::vector<moment> fences[SIMT_THREADS_MAX];

warpgroup *own_group(void)
{
    return &warpgroups[simt_current->number / GROUP];
}

simt_fiber *member(unsigned thread)
{
    return simt_fibers[simt_current->number / GROUP * GROUP + thread];
}

/* ---- shared memory ---- */

uint32_t window_start(void)
{
    return WINDOW_START + simt_mode % 8 * 128; /* dynamic memory is at no better multiple */
}

/* Value in the window at this address, or a fault. */
char *at_window(uint32_t address, size_t bytes, const operation &o)
{
    uint32_t offset = address - window_start();
    size_t size = simt_running.request->shared_bytes;
    if (address < window_start() || offset + bytes > size) {
        simt_fail(SIMT_BOUNDS,
                  "wgmma at %s:%d reads shared memory at offset %d of %zu dynamic bytes", o.file,
                  o.line, (int)offset, size);
    }
    return (char *)simt_running.dynamic + offset;
}

/* Address of 16 bytes of a tile: K-major `row` is m or n and `piece` of 8 k; MN-major `row` is k
 * and `piece` of 8 n. */
uint32_t piece_address(uint64_t tile, bool mn_major, uint32_t row, uint32_t piece)
{
    uint32_t start = (uint32_t)(tile & 0x3FFF) << 4;
    uint32_t leading = (uint32_t)(tile >> 16 & 0x3FFF) << 4;
    uint32_t stride = (uint32_t)(tile >> 32 & 0x3FFF) << 4;
    uint32_t offset = row / 8 * stride + row % 8 * 128;
    offset += mn_major ? piece / 8 * leading + piece % 8 * 16 : piece * 16;
    uint32_t address = (start + offset) % WINDOW;
    return address ^ (address >> 7 & 7) << 4;
}

void check_tile(uint64_t tile, bool mn_major, const char *file, int line)
{
    const uint64_t fields = 0x3FFFull | 0x3FFFull << 16 | 0x3FFFull << 32 | 7ull << 49 | 3ull << 62;
    if ((tile & ~fields) != 0 || tile >> 62 != 1 || (tile >> 49 & 7) != 0) {
        simt_fail(SIMT_DESCRIPTOR,
                  "wgmma at %s:%d: tile %016llx is not of the 128-byte swizzle with base offset 0",
                  file, line, (unsigned long long)tile);
    }
    /* The pattern repeats each 1,024 bytes; a step along K-major rows leaves bits 7 to 9 alone. */
    uint32_t start = (uint32_t)(tile & 0x3FFF) << 4;
    if (start % (mn_major ? 1024 : 128) > (mn_major ? 0 : 96) || start % 1024 / 128 != 0 ||
        (tile >> 32 & 0x3F) != 0 || (mn_major && (tile >> 16 & 0x3F) != 0)) {
        simt_fail(SIMT_MISALIGNED,
                  "wgmma at %s:%d: tile %016llx does not begin, or go on, at 1,024", file, line,
                  (unsigned long long)tile);
    }
}

/* Every 16 bytes that a product reads of one of its tiles. */
template <class F> void each_piece(const operation &o, bool right, F use)
{
    uint64_t tile = right ? o.what.b_tile : o.what.a_tile;
    bool mn_major = right && o.what.a != nullptr;
    uint32_t rows = mn_major ? K : right ? N : M;
    uint32_t pieces = mn_major ? N / 8 : K_BYTES / 16;
    for (uint32_t row = 0; row < rows; row++) {
        for (uint32_t piece = 0; piece < pieces; piece++) {
            use(row, piece, at_window(piece_address(tile, mn_major, row, piece), 16, o));
        }
    }
}

/* Were the bytes written through the generic proxy, and handed over? */
void check_proxy(const char *bytes, const operation &o)
{
    size_t word = (size_t)(bytes - (const char *)simt_running.dynamic) / 4;
    for (size_t i = word; i < word + 4; i++) {
        unsigned thread = (writer[i].value - 1) % SIMT_THREADS_MAX;
        size_t behind = (writer[i].value - 1) / SIMT_THREADS_MAX;
        if (writer[i].value != 0 && (behind >= fences[thread].size() ||
                                     !simt_happened(thread, fences[thread][behind].clock))) {
            simt_fail(SIMT_PROXY,
                      "wgmma at %s:%d reads shared memory at %p that thread %u wrote with no "
                      "gpu_proxy_fence of its own and barrier between",
                      o.file, o.line, bytes, thread);
        }
    }
}

/* All warps of the group read a product's tiles. */
void touch_tiles(const operation &o, bool issue)
{
    simt_fiber *me = simt_current;
    for (int right = o.what.a != nullptr; right < 2; right++) { /* bounds before what is in them */
        each_piece(o, right != 0, [](uint32_t, uint32_t, const char *) {});
    }
    for (int right = o.what.a != nullptr; right < 2 && simt_checking; right++) {
        each_piece(o, right != 0, [&](uint32_t, uint32_t, char *bytes) {
            for (unsigned lane = 0; lane < GROUP; lane += 32) {
                simt_current = simt_fibers[me->number / GROUP * GROUP + lane];
                simt_touch(bytes, 16, SIMT_READ, nullptr);
                if (issue) {
                    check_proxy(bytes, o);
                }
            }
            simt_current = me;
            size_t at = (size_t)(bytes - (char *)simt_running.dynamic) / 16;
            reading[at].count += issue ? 1u : -1u;
        });
    }
}

/* ---- products ---- */

float number(const char *bytes, uint32_t i, bool e4m3 = false)
{
    uint16_t half;
    if (e4m3) {
        return simt_e4m3_to_float((uint8_t)bytes[i]);
    }
    memcpy(&half, bytes + 2 * i, 2);
    return simt_from_bits((uint32_t)half << 16);
}

void load_left(const operation &o, float a[M][K_MAX])
{
    if (o.what.a == nullptr) {
        each_piece(o, false, [&](uint32_t row, uint32_t piece, const char *bytes) {
            const uint32_t count = o.what.e4m3 ? 16 : 8;
            for (uint32_t i = 0; i < count; i++) {
                a[row][piece * count + i] = number(bytes, i, o.what.e4m3);
            }
        });
        return;
    }
    /* Thread 32 w + 4 g + t: rows 16 w + g, 8 below; columns 2 t, 2 t + 1, then 8 further. */
    for (uint32_t thread = 0; thread < GROUP; thread++) {
        for (uint32_t i = 0; i < 4; i++) {
            uint32_t row = wgmma_operand_row(thread, i);
            uint32_t column = wgmma_operand_column(thread, i);
            a[row][column] = number((const char *)&o.weights[thread][i], 0);
            a[row][column + 1] = number((const char *)&o.weights[thread][i], 1);
        }
    }
}

/* Exact products, summed in double and rounded once. */
void compute(warpgroup *w, operation *o)
{
    static float a[M][K_MAX];
    static float b[K_MAX][N];
    const bool e4m3 = o->what.e4m3;
    const uint32_t count = e4m3 ? 16 : 8; /* numbers of a piece */
    bool mn_major = o->what.a != nullptr;
    load_left(*o, a);
    each_piece(*o, true, [&](uint32_t row, uint32_t piece, const char *bytes) {
        for (uint32_t i = 0; i < count; i++) {
            uint32_t at = piece * count + i;
            b[mn_major ? row : at][mn_major ? at : row] = number(bytes, i, e4m3);
        }
    });
    sum *sums = w->known[o->sums].sums.data();
    for (uint32_t m = 0; m < M; m++) {
        double row[N];
        for (uint32_t n = 0; n < N; n++) {
            row[n] = o->what.accumulate ? (double)sums[m * N + n].value : 0.0;
        }
        for (uint32_t k = 0; k < (e4m3 ? K_MAX : K); k++) {
            for (uint32_t n = 0; n < N; n++) {
                row[n] += (double)a[m][k] * (double)b[k][n];
            }
        }
        for (uint32_t n = 0; n < N; n++) {
            sums[m * N + n].value = (float)row[n];
        }
    }
    o->computed = true;
    simt_counted.mma++;
}

void compute_up_to(warpgroup *w, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!w->pending[i].computed) {
            compute(w, &w->pending[i]);
        }
    }
}

/* ---- registers ---- */

/* The sums of a thread, from or to [M][N]. */
template <class F> void each_sum(uint32_t thread, F use)
{
    for (uint32_t i = 0; i < SUMS; i++) {
        use(i, wgmma_sum_row(thread, i) * N + wgmma_sum_column(thread, i));
    }
}

/* These registers among the known ones. */
size_t find_registers(warpgroup *w, bool sums)
{
    auto place = [&](unsigned thread) {
        const simt_wgmma *what = (const simt_wgmma *)member(thread)->argument;
        return sums ? (char *)what->d : (char *)const_cast<uint32_t *>(what->a);
    };
    size_t bytes = sums ? SUMS * sizeof(float) : 4 * sizeof(uint32_t);
    size_t found = 0;
    while (found < w->known.size() &&
           (w->known[found].place[0] != place(0) || w->known[found].bytes != bytes)) {
        found++;
    }
    if (found == w->known.size()) {
        w->known.push_back({});
        w->known[found].bytes = bytes;
        w->known[found].fenced = w->fenced;
    }
    for (unsigned thread = 0; thread < GROUP; thread++) {
        w->known[found].place[thread] = place(thread);
    }
    return found;
}

void check_fenced(const registers &r, const operation &o)
{
    if (!r.fenced) {
        simt_fail(SIMT_FENCE,
                  "wgmma at %s:%d uses registers that were touched since the last gpu_wgmma_fence",
                  o.file, o.line);
    }
}

void issue(warpgroup *w)
{
    operation o = {};
    o.what = w->what;
    o.file = w->file;
    o.line = w->line;
    if (w->pending.size() == PENDING_MAX) {
        simt_fail(SIMT_LAUNCH, "more than %d products of a warpgroup in flight", PENDING_MAX);
    }
    if (o.what.a == nullptr) {
        check_tile(o.what.a_tile, false, o.file, o.line);
    }
    check_tile(o.what.b_tile, o.what.a != nullptr, o.file, o.line);
    o.sums = find_registers(w, true);
    o.left = o.what.a != nullptr ? find_registers(w, false) : SIZE_MAX;
    check_fenced(w->known[o.sums], o);
    if (o.what.a != nullptr) {
        registers *left = &w->known[o.left];
        check_fenced(*left, o);
        left->in_flight++;
        for (unsigned thread = 0; thread < GROUP; thread++) {
            memcpy(o.weights[thread], left->place[thread], sizeof o.weights[thread]);
        }
    }
    touch_tiles(o, true);
    registers *r = &w->known[o.sums];
    for (unsigned thread = 0; thread < GROUP && r->in_flight == 0; thread++) {
        r->sums.resize((size_t)M * N);
        float *own = (float *)r->place[thread];
        each_sum(thread, [&](uint32_t i, uint32_t at) { r->sums[at].value = own[i]; });
        simt_poison(own, r->bytes);
    }
    r->in_flight++;
    w->pending.push_back(o);
    w->open++;
    if (simt_mode == 1 || (simt_mode >= 3 && simt_random() % 2 == 0)) {
        compute_up_to(w, w->pending.size());
    }
}

void fail_touched(const operation &o, const char *what)
{
    simt_fail(SIMT_IN_FLIGHT, "%s of wgmma at %s:%d were touched before the wait for it", what,
              o.file, o.line);
}

/* The oldest product is done: its sums to the registers, unless another goes on with them. */
void finish(warpgroup *w)
{
    operation *o = &w->pending[0];
    compute_up_to(w, 1);
    touch_tiles(*o, false);
    if (o->what.a != nullptr) {
        registers *left = &w->known[o->left];
        left->in_flight--;
        for (unsigned thread = 0; thread < GROUP; thread++) {
            if (memcmp(o->weights[thread], left->place[thread], sizeof o->weights[thread]) != 0) {
                fail_touched(*o, "operands in registers");
            }
        }
    }
    registers *r = &w->known[o->sums];
    r->in_flight--;
    float untouched[SUMS];
    simt_poison(untouched, sizeof untouched);
    for (unsigned thread = 0; thread < GROUP && r->in_flight == 0; thread++) {
        float *own = (float *)r->place[thread];
        if (memcmp(own, untouched, sizeof untouched) != 0) {
            fail_touched(*o, "sums");
        }
        each_sum(thread, [&](uint32_t i, uint32_t at) { own[i] = r->sums[at].value; });
    }
    w->pending.erase(w->pending.begin());
}

void wait(warpgroup *w, size_t left)
{
    while (w->groups.size() > left) {
        for (unsigned i = 0; i < w->groups[0].count; i++) {
            finish(w);
        }
        w->groups.erase(w->groups.begin());
        w->fenced = false;
    }
}

void perform(warpgroup *w)
{
    switch (w->op) {
    case SIMT_WGMMA:
        issue(w);
        break;
    case SIMT_WGMMA_FENCE:
        w->fenced = true;
        for (registers &r : w->known) {
            r.fenced = true;
        }
        break;
    case SIMT_WGMMA_COMMIT:
        w->groups.push_back({w->open});
        w->open = 0;
        break;
    case SIMT_WGMMA_WAIT:
        wait(w, (size_t) * (const int *)simt_current->argument);
        break;
    default:
        break;
    }
}

/* The present thread does what the others of its warpgroup do. */
void check_same(warpgroup *w, simt_op op, const void *argument, const char *file, int line)
{
    const simt_wgmma *what = (const simt_wgmma *)argument;
    if (w->op != op || w->line != line || (w->file != file && strcmp(w->file, file) != 0)) {
        simt_fail(SIMT_DIVERGENT, "%s at %s:%d while others of the warpgroup are at %s, %s:%d",
                  simt_op_name(op), file, line, simt_op_name(w->op), w->file, w->line);
    }
    if (op == SIMT_WGMMA && (what->a_tile != w->what.a_tile || what->b_tile != w->what.b_tile)) {
        simt_fail(SIMT_DIVERGENT, "wgmma at %s:%d: threads of a warpgroup name other tiles", file,
                  line);
    }
}

} // namespace

void simt_warpgroup(simt_op op, void *argument, const char *file, int line)
{
    simt_fiber *fiber = simt_current;
    simt_need(simt_has(op), simt_op_name(op), file, line);
    warpgroup *w = own_group();
    simt_yield();
    simt_wgmma_used = true;
    if (simt_running.threads % GROUP != 0) {
        simt_fail(SIMT_DIVERGENT, "%s at %s:%d in a block of %u threads: not whole warpgroups",
                  simt_op_name(op), file, line, simt_running.threads);
    }
    if (w->arrived == 0) {
        w->op = op;
        w->file = file;
        w->line = line;
        if (op == SIMT_WGMMA) {
            w->what = *(const simt_wgmma *)argument;
        }
    }
    check_same(w, op, argument, file, line);
    for (unsigned thread = 0; thread < GROUP; thread++) {
        if (member(thread)->state == SIMT_DONE) {
            simt_fail(SIMT_DIVERGENT, "%s at %s:%d when thread %u of the warpgroup has ended",
                      simt_op_name(op), file, line, thread);
        }
    }
    fiber->state = SIMT_AT_WARP;
    fiber->op = op;
    fiber->argument = argument;
    fiber->file = file;
    fiber->line = line;
    if (++w->arrived < GROUP) {
        simt_suspend();
        return;
    }
    w->arrived = 0;
    simt_counted.collectives++;
    perform(w);
    fiber->state = SIMT_READY; /* it runs on: not queued */
    for (unsigned thread = 0; thread < GROUP; thread++) {
        if (member(thread) != fiber) {
            simt_resume(member(thread));
        }
    }
}

void simt_proxy_fence(const char *file, int line)
{
    simt_need(simt_has(SIMT_WGMMA), "fence.proxy.async", file, line);
    simt_wgmma_used = true;
    fences[simt_current->number].push_back({simt_current->clock});
}

uint32_t simt_shared_address(const void *pointer)
{
    size_t offset = (size_t)((const char *)pointer - (const char *)simt_running.dynamic);
    if (offset > simt_running.request->shared_bytes) {
        simt_fail(SIMT_BOUNDS, "the address of %p, which is not dynamic shared memory", pointer);
    }
    return window_start() + (uint32_t)offset;
}

void simt_wgmma_reset(void)
{
    if (simt_checking) {
        size_t bytes = simt_running.request->shared_bytes + 16;
        writer.assign(bytes / 4 + 4, mark{0});
        reading.assign(bytes / 16 + 1, readers{0});
    }
    if (simt_wgmma_used) {
        for (warpgroup &w : warpgroups) {
            w = {};
        }
        for (auto &clocks : fences) {
            clocks.clear();
        }
    }
    simt_wgmma_used = false;
}

void simt_wgmma_leave(simt_fiber *fiber)
{
    warpgroup *w = &warpgroups[fiber->number / GROUP];
    if (!simt_wgmma_used) {
        return;
    }
    if (w->arrived > 0) {
        simt_fail(SIMT_DIVERGENT, "a thread ends while others of its warpgroup are at %s, %s:%d",
                  simt_op_name(w->op), w->file, w->line);
    }
    if (!w->pending.empty()) {
        simt_fail(SIMT_PENDING, "a thread ends with %zu products of its warpgroup in flight",
                  w->pending.size());
    }
}

void simt_wgmma_write(size_t offset, size_t bytes, simt_access kind)
{
    uint32_t thread = simt_current->number;
    for (size_t at = offset / 16; at * 16 < offset + bytes; at++) {
        if (reading[at].count != 0) {
            simt_fail(SIMT_IN_FLIGHT,
                      "%s offset %zu of dynamic shared memory, which a wgmma in flight reads",
                      kind == SIMT_COPY_ISSUE ? "copies to" : "writes", offset);
        }
    }
    const mark own = {thread + 1 + (uint32_t)fences[thread].size() * SIMT_THREADS_MAX};
    for (size_t word = offset / 4; word * 4 < offset + bytes; word++) {
        writer[word] = own;
    }
}

void simt_wgmma_stack(const void *address, size_t bytes)
{
    unsigned thread = simt_current->number % GROUP;
    const char *from = (const char *)address;
    for (registers &r : own_group()->known) {
        if (from + bytes > r.place[thread] && from < r.place[thread] + r.bytes) {
            r.fenced = false;
            if (r.in_flight != 0) {
                simt_fail(SIMT_IN_FLIGHT, "touches registers of a wgmma before the wait for it");
            }
        }
    }
}
