/*
 * SIMT emulator: device memory and the check of every access that kernels make.
 *
 * Each four bytes of device and shared memory have a cell that remembers the last write and the
 * reads since: which block, which thread, at which clock. Two accesses of which one is a write must
 * be ordered: by the same thread, by a barrier of both (the clocks say so), or by launches. Within
 * a launch nothing orders two blocks. Where threads share a word, its bytes get a cell each.
 *
 * Invariant: no false alarm. What the rules cannot tell apart (reads by many threads are kept as
 * "several of the warp", "several warps", "several blocks"; reads of parts of a word as "blurred")
 * they decide for the kernel: where one of these readers is the writer itself, or where a part of a
 * word is overwritten of which different threads read different parts.
 */
#include "kernels/capability.h"
#include "tests/simt/simt_internal.h"

#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>
#include <vector>

namespace
{

enum {
    PAGE = 256, /* device allocations begin at multiples of it, with a gap between */
    CLOCK_MAX = 1 << 18,
    SHARED_OBJECTS_MAX = 32,
};
const size_t ARENA = (size_t)16 << 30; /* address space, taken as used */

enum share { ALONE, LANES, WARPS, BLOCKS };

/* Of a write, share LANES says: an asynchronous copy that nobody waited for yet. A blurred read
 * stands for several of different bytes of the word: it is not known who read which. */
struct record {
    uint64_t run : 28, clock : 18, thread : 10, mask : 4, share : 2, atomic : 1, split : 1;
};
#define BLURRED atomic /* of a read */

struct cell {
    record write, read;
};
static_assert(sizeof(cell) == 16, "two words");

struct allocation {
    char *start;
    size_t bytes;
    bool live;
};

/* A static shared object and its cells. */
struct shared_object {
    char *start;
    size_t bytes;
    uint32_t run; /* of the block that declared it last */
    cell *cells;
};

char *arena;
cell *arena_cells;
uint32_t *arena_owner;  /* by page: allocation + 1 */
uint8_t *arena_written; /* a bit per word: something wrote it; ends to be known without checks */
bool written_known = true;
size_t arena_used = PAGE;
std::vector<allocation> allocations;
std::vector<shared_object> objects;
std::vector<cell> dynamic_cells;

/* Cells of the four bytes of split cells. Emptied at each launch. */
struct quad {
    cell byte[4];
};
std::vector<quad> quads;

/* Bounds of the program or library that this is linked into: its constants may be read. */
extern "C" {
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));
}

/* ---- rules ---- */

/* Questions of the rules to the accessing thread, looked up once per access. */
struct accessor {
    record mine; /* mask 0 */
    uint32_t run, first_run, clock, seen_all;
    const uint32_t *seen;
    simt_access kind;
    bool shared;
    const void *place;
};

accessor accessor_of(simt_access kind, const void *place, bool shared)
{
    const simt_fiber *me = simt_current;
    accessor a = {};
    a.mine.run = a.run = simt_running.run;
    a.mine.clock = a.clock = me->clock;
    a.mine.thread = me->number;
    a.first_run = shared ? a.run : simt_running.first_run; /* shared memory begins with the block */
    a.seen = simt_running.seen[me->warp];
    a.seen_all = simt_running.seen_all[me->warp];
    a.kind = kind;
    a.shared = shared;
    a.place = place;
    return a;
}

inline bool happened_before(const accessor &a, record r)
{
    if (r.run < a.first_run) {
        return true;
    }
    if (r.run != a.run || r.share == BLOCKS) {
        return false;
    }
    if (r.share == WARPS) {
        return r.clock < a.seen_all && r.clock < a.clock;
    }
    if (r.share == ALONE && r.thread == a.mine.thread) {
        return true;
    }
    unsigned warp = r.thread / 32u;
    return r.clock < (warp == a.mine.thread / 32u ? a.clock : a.seen[warp]);
}

const char *kind_name(simt_access kind)
{
    static const char *const names[] = {"reads", "writes", "atomically updates",
                                        "copies asynchronously to"};
    return names[kind];
}

size_t code_offset(const void *place)
{
    return place != nullptr ? (size_t)((const char *)place - __ehdr_start) : 0;
}

void fail_race(const accessor &a, const record &other, const char *did, const void *address)
{
    char who[80];
    if (other.run != a.run) {
        snprintf(who, sizeof who, "another block (thread %u of it)", (unsigned)other.thread);
    } else {
        snprintf(who, sizeof who, "thread %u of the same block", (unsigned)other.thread);
    }
    simt_fail(SIMT_RACE, "%s %s memory at %p which %s %s with nothing between (code at +0x%zx)",
              kind_name(a.kind), a.shared ? "shared" : "device", address, who, did,
              code_offset(a.place));
}

void fail_unwritten(const accessor &a, const void *address)
{
    simt_fail(SIMT_UNWRITTEN,
              "reads shared memory at %p that nothing wrote in this block (code at +0x%zx)",
              address, code_offset(a.place));
}

record add_read(const accessor &a, record old, unsigned mask)
{
    record mine = a.mine;
    mine.mask = mask;
    if (!happened_before(a, old)) {
        if (old.run != a.run) {
            mine.share = BLOCKS;
        } else if (old.share > LANES || old.thread / 32u != mine.thread / 32u) {
            mine.share = old.share == BLOCKS ? BLOCKS : WARPS;
        } else {
            mine.share = LANES;
        }
        mine.clock = old.clock > mine.clock ? old.clock : mine.clock;
        mine.BLURRED = old.BLURRED;
    }
    return mine;
}

/* One access to all bytes that a cell stands for. */
inline void rule(const accessor &a, cell *c, unsigned mask, const void *address)
{
    const record write = c->write;
    bool pending = write.share == LANES && write.run == a.run;
    if (pending) {
        /* Its own copy lands at the wait; what came in between has been reported. */
        if (a.kind != SIMT_WRITE || write.thread != a.mine.thread) {
            fail_race(a, write, "copies to asynchronously and has not waited for", address);
        }
    } else if (!happened_before(a, write) && !(a.kind == SIMT_ATOMIC && write.atomic)) {
        fail_race(a, write, "wrote", address);
    }
    if (a.kind == SIMT_READ) {
        if (a.shared && write.run != a.run) {
            fail_unwritten(a, address);
        }
        c->read = add_read(a, c->read, mask);
        return;
    }
    if (!(c->read.BLURRED && mask != 15) && !happened_before(a, c->read)) {
        fail_race(a, c->read, "read", address);
    }
    record mine = a.mine;
    mine.mask = mask;
    mine.atomic = a.kind == SIMT_ATOMIC;
    mine.share = a.kind == SIMT_COPY_ISSUE ? LANES : ALONE;
    c->write = mine;
    c->read = {};
}

/* ---- words and bytes ---- */

inline bool is_live(const accessor &a, record r)
{
    return r.run >= a.first_run;
}

/* Whether the record is of this thread at this clock, so that its mask may grow. */
bool is_mine(const accessor &a, record r)
{
    return r.run == a.run && r.share == ALONE && r.thread == a.mine.thread && r.clock == a.clock;
}

void split(const accessor &a, cell *c)
{
    quad q = {};
    for (unsigned i = 0; i < 4; i++) {
        if (is_live(a, c->write) && (c->write.mask >> i & 1)) {
            q.byte[i].write = c->write;
            q.byte[i].write.mask = 1;
        }
        if (is_live(a, c->read) && (c->read.mask >> i & 1)) {
            q.byte[i].read = c->read;
            q.byte[i].read.mask = 1;
        }
    }
    uint64_t index = quads.size();
    quads.push_back(q);
    c->write = {};
    c->write.run = a.run;
    c->write.split = 1;
    memcpy((void *)&c->read, &index, sizeof index);
}

/* Part of a word, or a word of which only parts were accessed before. */
void touch_parts(const accessor &a, cell *c, unsigned mask, const char *address)
{
    if (c->write.split && !is_live(a, c->write)) {
        *c = {};
    }
    if (!c->write.split) {
        bool write_live = is_live(a, c->write);
        bool read_live = is_live(a, c->read);
        if ((!write_live || c->write.mask == mask) && (!read_live || c->read.mask == mask)) {
            rule(a, c, mask, address);
            return;
        }
        /* Parts of a word that nobody writes: as weights are read. */
        if (a.kind == SIMT_READ && !write_live && !a.shared && read_live) {
            bool blurred = c->read.BLURRED || !is_mine(a, c->read);
            c->read = add_read(a, c->read, c->read.mask | mask);
            c->read.BLURRED = blurred;
            return;
        }
        if (a.kind != SIMT_READ && mask == 15 && !happened_before(a, c->read)) {
            fail_race(a, c->read, "read", address); /* whatever was read, it is overwritten */
        }
        /* One thread that works through the bytes of a word. */
        if (a.kind == SIMT_WRITE && is_mine(a, c->write) && !read_live && !c->write.atomic) {
            c->write.mask |= mask;
            return;
        }
        if (a.kind == SIMT_READ && write_live && (c->write.mask & mask) == mask &&
            (!read_live || is_mine(a, c->read))) {
            unsigned before = read_live ? c->read.mask : 0;
            rule(a, c, mask, address);
            c->read.mask |= before;
            return;
        }
        split(a, c);
    }
    uint64_t index;
    memcpy(&index, (const void *)&c->read, sizeof index);
    for (unsigned i = 0; i < 4; i++) {
        if (mask >> i & 1) {
            rule(a, &quads[index].byte[i], 1, address + i);
        }
    }
}

inline void touch_cell(const accessor &a, cell *c, unsigned mask, const char *address)
{
    const record write = c->write;
    bool whole = mask == 15 && !write.split && (write.mask == 15 || !is_live(a, write)) &&
                 (c->read.mask == 15 || !is_live(a, c->read));
    if (whole) {
        rule(a, c, 15, address);
    } else {
        touch_parts(a, c, mask, address);
    }
}

/* The cells of a range that begins `offset` bytes after what the first cell stands for. */
void touch_cells(cell *cells, size_t offset, size_t bytes, simt_access kind, const char *address,
                 const void *place, bool shared)
{
    const accessor a = accessor_of(kind, place, shared);
    size_t end = offset + bytes;
    if (a.clock >= CLOCK_MAX) {
        simt_fail(SIMT_LAUNCH, "more than %d synchronisations in a block", CLOCK_MAX);
    }
    for (size_t word = offset / 4; word * 4 < end; word++) {
        size_t low = word * 4 > offset ? 0 : offset - word * 4;
        size_t high = end - word * 4 < 4 ? end - word * 4 : 4;
        unsigned mask = (15u << low) & (15u >> (4 - high));
        touch_cell(a, &cells[word], mask, address + (word * 4 - offset));
    }
}

/* ---- what an address is ---- */

const allocation *allocation_at(const char *address)
{
    uint32_t owner = arena_owner[(size_t)(address - arena) / PAGE];
    return owner > 0 ? &allocations[owner - 1] : nullptr;
}

/* A sentence when the bytes are not all of one live allocation, else NULL. */
const char *bounds_fault(const char *address, size_t bytes, char *text, size_t text_bytes)
{
    const allocation *a = allocation_at(address);
    if (a == nullptr) {
        snprintf(text, text_bytes, "%zu bytes at %p, which no allocation holds", bytes,
                 (const void *)address);
    } else if (!a->live) {
        snprintf(text, text_bytes, "%zu bytes at %p, in an allocation of %zu bytes that was freed",
                 bytes, (const void *)address, a->bytes);
    } else if (address < a->start || address + bytes > a->start + a->bytes) {
        snprintf(text, text_bytes, "%zu bytes at offset %td of an allocation of %zu bytes", bytes,
                 address - a->start, a->bytes);
    } else {
        return nullptr;
    }
    return text;
}

void mark_written(const char *address, size_t bytes)
{
    size_t first = (size_t)(address - arena) / 4;
    size_t end = ((size_t)(address - arena) + bytes + 3) / 4;
    for (size_t word = first; word < end;) {
        if (word % 8 == 0 && word + 8 <= end) {
            size_t whole = (end - word) / 8;
            memset(arena_written + word / 8, 0xff, whole);
            word += whole * 8;
        } else {
            arena_written[word / 8] |= (uint8_t)(1u << word % 8);
            word++;
        }
    }
}

bool is_written(const char *address, size_t bytes)
{
    size_t end = ((size_t)(address - arena) + bytes + 3) / 4;
    for (size_t word = (size_t)(address - arena) / 4; word < end; word++) {
        if (!(arena_written[word / 8] >> word % 8 & 1)) {
            return false;
        }
    }
    return true;
}

/* Whether nobody wrote to this word in this launch and those who read it stand for this reader too:
 * then this read was found right before, and changes nothing. */
inline bool is_read_again(const cell *c, unsigned mask)
{
    const record r = c->read;
    if (c->write.split || c->write.run >= simt_running.first_run ||
        (mask & ~(unsigned)r.mask) != 0) {
        return false;
    }
    if (r.share == BLOCKS) {
        return r.run >= simt_running.first_run;
    }
    const simt_fiber *me = simt_current;
    return r.run == simt_running.run && r.clock >= me->clock &&
           (r.share == WARPS || (r.share == LANES && r.thread / 32u == me->warp));
}

/* The same of a word's part or of whole words. */
inline bool are_read_again(size_t offset, size_t bytes)
{
    const cell *c = &arena_cells[offset / 4];
    size_t part = offset % 4;
    if (part + bytes <= 4) {
        return is_read_again(c, ((1u << bytes) - 1) << part);
    }
    bool again = part == 0 && bytes % 4 == 0;
    for (size_t word = 0; again && word < bytes / 4; word++) {
        again = is_read_again(&c[word], 15);
    }
    return again;
}

void touch_device(const char *address, size_t bytes, simt_access kind, const void *place)
{
    char text[160];
    if (kind == SIMT_READ && are_read_again((size_t)(address - arena), bytes)) {
        return;
    }
    if (bounds_fault(address, bytes, text, sizeof text) != nullptr) {
        simt_fail(SIMT_BOUNDS, "%s %s (code at +0x%zx)", kind_name(kind), text, code_offset(place));
    }
    size_t offset = (size_t)(address - arena);
    if (kind == SIMT_WRITE) {
        mark_written(address, bytes);
    } else if (written_known && !is_written(address, bytes)) {
        simt_fail(SIMT_UNWRITTEN, "%s device memory at %p that nothing wrote (code at +0x%zx)",
                  kind_name(kind), (const void *)address, code_offset(place));
    }
    touch_cells(arena_cells + offset / 4, offset % 4, bytes, kind, address, place, false);
}

bool touch_dynamic(const char *address, size_t bytes, simt_access kind, const void *place)
{
    const char *start = (const char *)simt_running.dynamic;
    size_t size = simt_running.request->shared_bytes;
    if (start == nullptr || address + bytes <= start - 64 || address >= start + size + 64) {
        return false;
    }
    if (address < start || address + bytes > start + size) {
        simt_fail(SIMT_BOUNDS, "%s %zu bytes at offset %td of %zu bytes of dynamic shared memory",
                  kind_name(kind), bytes, address - start, size);
    }
    if (kind != SIMT_READ) {
        simt_wgmma_write((size_t)(address - start), bytes, kind);
    }
    touch_cells(dynamic_cells.data(), (size_t)(address - start), bytes, kind, address, place, true);
    return true;
}

bool touch_object(const char *address, size_t bytes, simt_access kind, const void *place)
{
    for (shared_object &o : objects) {
        if (address < o.start || address >= o.start + o.bytes + SIMT_SHARED_GUARD) {
            continue;
        }
        if (o.run != simt_running.run || address + bytes > o.start + o.bytes) {
            simt_fail(SIMT_BOUNDS, "%s %zu bytes at offset %td of a shared object of %zu bytes%s",
                      kind_name(kind), bytes, address - o.start, o.bytes,
                      o.run != simt_running.run ? " that this block does not have" : "");
        }
        touch_cells(o.cells, (size_t)(address - o.start), bytes, kind, address, place, true);
        return true;
    }
    return false;
}

void open_arena(void)
{
    auto reserve = [](size_t bytes) {
        void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) {
            perror("simt: no address space for device memory");
            abort();
        }
        return (char *)memory;
    };
    arena = reserve(ARENA);
    arena_cells = (cell *)reserve(ARENA / 4 * sizeof(cell));
    arena_owner = (uint32_t *)reserve(ARENA / PAGE * sizeof(uint32_t));
    arena_written = (uint8_t *)reserve(ARENA / 32);
}

} // namespace

/* ---- accesses ---- */

void simt_touch(const void *pointer, size_t bytes, simt_access kind, const void *place)
{
    const char *address = (const char *)pointer;
    simt_counted.accesses++;
    if (!simt_checking) {
        written_known = false;
        return;
    }
    if (simt_is_device(address)) {
        touch_device(address, bytes, kind, place);
        return;
    }
    size_t local = (size_t)(address - simt_current->stack);
    if (local < SIMT_STACK_BYTES || touch_dynamic(address, bytes, kind, place) ||
        touch_object(address, bytes, kind, place)) {
        return;
    }
    const simt_launch_request *request = simt_running.request;
    if ((size_t)(address - (const char *)request->call) < request->call_bytes) {
        return; /* its arguments */
    }
    simt_pinned pinned = kind == SIMT_READ ? simt_pinned_of(address, bytes) : SIMT_NOT_PINNED;
    if (pinned == SIMT_PINNED) {
        return;
    }
    if (pinned == SIMT_BEYOND_PINNED) {
        simt_fail(SIMT_BOUNDS, "reads %zu bytes beyond pinned memory (code at +0x%zx)", bytes,
                  code_offset(place));
    }
    if (address < __ehdr_start || address >= _end) {
        simt_fail(SIMT_HOST,
                  "%s %zu bytes at %p, which is neither device nor shared memory "
                  "(code at +0x%zx)",
                  kind_name(kind), bytes, pointer, code_offset(place));
    }
    if (kind != SIMT_READ) {
        simt_fail(SIMT_BOUNDS, "%s %zu bytes of a global variable or beside a shared object",
                  kind_name(kind), bytes);
    }
}

bool simt_happened(unsigned thread, uint32_t clock)
{
    const simt_fiber *me = simt_current;
    unsigned warp = thread / 32;
    return thread == me->number ||
           clock < (warp == me->warp ? me->clock : simt_running.seen[me->warp][warp]);
}

bool simt_is_device(const void *address)
{
    return arena != nullptr && (size_t)((const char *)address - arena) < ARENA;
}

void simt_host_write(void *device, size_t bytes)
{
    mark_written((const char *)device, bytes);
}

bool simt_host_touch(const void *device, size_t bytes, const char *call)
{
    char text[160];
    if (bytes == 0) {
        return true;
    }
    if (bounds_fault((const char *)device, bytes, text, sizeof text) != nullptr) {
        simt_fail(SIMT_BOUNDS, "%s reaches %s", call, text);
        return false;
    }
    return true;
}

void simt_poison(void *memory, size_t bytes)
{
    uint8_t *at = (uint8_t *)memory;
    for (size_t i = 0; i < bytes; i++) {
        at[i] = i % 2 == 0 ? 0xff : 0x7f;
    }
}

/* A block has a shared object once more: it counts against what the block may have, which is what
 * nvcc sees of static and dynamic shared memory together. */
static void take_shared(size_t bytes)
{
    simt_block *b = &simt_running;
    bool opted = simt_function_shared_max(b->request->kernel) > GPU_SHARED_DEFAULT;
    size_t limit = opted ? simt_shared_max() : (size_t)GPU_SHARED_DEFAULT;
    b->static_bytes += bytes;
    if (b->static_bytes + b->request->shared_bytes > limit) {
        simt_fail(SIMT_LAUNCH, "%zu bytes of static and %zu of dynamic shared memory, %zu fit",
                  b->static_bytes, b->request->shared_bytes, limit);
    }
}

void simt_shared_declare(void *object, size_t bytes)
{
    char *start = (char *)object;
    for (shared_object &o : objects) {
        if (o.start == start) {
            if (o.run != simt_running.run) {
                o.run = simt_running.run;
                simt_poison(start, bytes);
                take_shared(bytes);
            }
            return;
        }
    }
    size_t words = (bytes + 3) / 4;
    cell *cells = (cell *)calloc(words, sizeof *cells);
    if (cells == nullptr) {
        perror("simt: no memory for the cells of a shared object");
        abort();
    }
    objects.push_back({start, bytes, simt_running.run, cells});
    simt_poison(start, bytes);
    take_shared(bytes);
}

void simt_shadow_block(void)
{
    size_t words = (simt_running.request->shared_bytes + 3) / 4;
    if (dynamic_cells.size() < words) {
        dynamic_cells.resize(words);
    }
}

void simt_shadow_launch(void)
{
    quads.clear();
}

/* ---- device memory ---- */

cudaError_t simt_malloc(void **memory, size_t bytes)
{
    if (simt_capture_forbids("cudaMalloc")) {
        return cudaErrorStreamCaptureUnsupported;
    }
    if (arena == nullptr) {
        open_arena();
    }
    size_t room = (bytes + PAGE - 1) / PAGE * PAGE;
    if (simt_allocation_fails() || room + PAGE > ARENA - arena_used) {
        return simt_result(cudaErrorMemoryAllocation);
    }
    char *start = arena + arena_used;
    arena_used += room + PAGE; /* addresses are never given twice: freed ones stay wrong */
    allocations.push_back({start, bytes, true});
    for (size_t page = 0; page <= room / PAGE; page++) { /* the gap behind it is its own */
        arena_owner[(size_t)(start - arena) / PAGE + page] = (uint32_t)allocations.size();
    }
    simt_poison(start, bytes);
    simt_counted.device_bytes += bytes;
    *memory = start;
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    if (memory == nullptr) {
        return cudaSuccess;
    }
    cudaDeviceSynchronize();
    allocation *a = simt_is_device(memory) ? (allocation *)allocation_at((char *)memory) : nullptr;
    if (a == nullptr || a->start != memory || !a->live) {
        simt_fail(SIMT_API, "cudaFree of %p, which cudaMalloc did not give or was freed", memory);
        return simt_result(cudaErrorInvalidValue);
    }
    a->live = false;
    simt_counted.device_bytes -= a->bytes;
    uintptr_t first = ((uintptr_t)a->start + 4095) / 4096 * 4096;
    uintptr_t end = (uintptr_t)(a->start + a->bytes) / 4096 * 4096;
    if (first < end) {
        madvise((void *)first, end - first, MADV_DONTNEED);
    }
    return cudaSuccess;
}

/* ---- what the compiler calls ---- */

#define SIMT_EXPORT extern "C" __attribute__((visibility("hidden"))) void

static inline void instrumented(const void *address, size_t bytes, simt_access kind, bool aligned,
                                const void *place)
{
    if (simt_current == nullptr) {
        return; /* host code of the same file */
    }
    if ((size_t)((const char *)address - simt_current->stack) < SIMT_STACK_BYTES) {
        if (simt_wgmma_used && simt_checking) {
            simt_wgmma_stack(address, bytes);
        }
        return;
    }
    /* The compiler's 16 bytes may be a struct of two doubles; of vectors -fsanitize=alignment says
     * more. */
    if (aligned && (uintptr_t)address % (bytes < 8 ? bytes : 8) != 0) {
        simt_fail(SIMT_MISALIGNED, "%s %zu bytes at %p (code at +0x%zx)", kind_name(kind), bytes,
                  address, code_offset(place));
    }
    simt_yield();
    simt_touch(address, bytes, kind, place);
}

#define PLACE __builtin_return_address(0)
#define SIZED(bytes)                                            \
    SIMT_EXPORT __tsan_read##bytes(void *address)               \
    {                                                           \
        instrumented(address, bytes, SIMT_READ, true, PLACE);   \
    }                                                           \
    SIMT_EXPORT __tsan_write##bytes(void *address)              \
    {                                                           \
        instrumented(address, bytes, SIMT_WRITE, true, PLACE);  \
    }                                                           \
    SIMT_EXPORT __tsan_unaligned_read##bytes(void *address)     \
    {                                                           \
        instrumented(address, bytes, SIMT_READ, false, PLACE);  \
    }                                                           \
    SIMT_EXPORT __tsan_unaligned_write##bytes(void *address)    \
    {                                                           \
        instrumented(address, bytes, SIMT_WRITE, false, PLACE); \
    }
SIZED(1)
SIZED(2)
SIZED(4)
SIZED(8)
SIZED(16)

SIMT_EXPORT __tsan_read_range(void *address, size_t bytes)
{
    instrumented(address, bytes, SIMT_READ, false, PLACE);
}

SIMT_EXPORT __tsan_write_range(void *address, size_t bytes)
{
    instrumented(address, bytes, SIMT_WRITE, false, PLACE);
}

SIMT_EXPORT __tsan_init(void)
{
}

SIMT_EXPORT __tsan_func_entry(void *)
{
}

SIMT_EXPORT __tsan_func_exit(void)
{
}

/* Guards of host code's static variables. */
extern "C" __attribute__((visibility("hidden"))) uint8_t __tsan_atomic8_load(
    const volatile uint8_t *address, int)
{
    return __atomic_load_n(address, __ATOMIC_ACQUIRE);
}

SIMT_EXPORT __tsan_vptr_update(void **, void *)
{
}

SIMT_EXPORT __tsan_vptr_read(void **)
{
}

/* -fsanitize=alignment: a pointer is not aligned to what it points to. The data begin with the
 * place in the source. */
SIMT_EXPORT __ubsan_handle_type_mismatch_v1(void *data, uintptr_t address)
{
    struct place {
        const char *file;
        uint32_t line, column;
    };
    const place *at = (const place *)data;
    if (simt_current == nullptr) {
        fprintf(stderr, "simt: %s:%u: host code uses a misaligned pointer\n", at->file, at->line);
        abort();
    }
    simt_fail(SIMT_MISALIGNED, "access to %p at %s:%u", (void *)address, at->file, at->line);
}
