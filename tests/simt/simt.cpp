/*
 * SIMT emulator: coroutines, the scheduler, block barriers and launches. Blocks run one after the
 * other, in an order that the seed picks; the threads of a block switch at collectives, barriers
 * and, from seed 3 on, at memory accesses. Everything here is compiled without instrumentation.
 *
 * Invariant: a fiber is in the ready queue exactly once while its state is SIMT_READY and it does
 * not run, and never otherwise.
 */
#include "tests/simt/simt_internal.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <sys/mman.h>

simt_fiber *simt_current;
simt_fiber *simt_fibers[SIMT_THREADS_MAX];
simt_block simt_running;
struct simt_counters simt_counted;
unsigned simt_mode;
bool simt_checking = true;

static char fault[1024];
static bool aborted; /* the present launch */
static void *host_context;
static uint64_t random_state = 1;
static unsigned until_preempted;

static const unsigned QUEUE = 2 * SIMT_THREADS_MAX; /* a power of two */
static uint16_t queue[QUEUE];
static unsigned queue_head, queue_tail;
static uint32_t warp_priority[SIMT_WARPS_MAX];

static struct {
    unsigned arrived, threads;
    simt_vote vote;
    int sum;
    const char *file;
    int line;
} barriers[SIMT_BARRIERS];
static unsigned barriers_waited; /* a bit for each that somebody is at */

/* ---- switching ---- */

/* Stacks lie a power of two and a page apart: tops at one offset would share few sets of the cache.
 */
static char *stack_top(const simt_fiber *fiber)
{
    return fiber->stack + SIMT_STACK_BYTES - 64 - fiber->number % 32 * 128;
}

#if defined(__x86_64__)
/* Pushes the callee-saved registers, stores the stack pointer to *save and goes on at `to`. */
extern "C" void simt_switch(void **save, void *to);
__asm__(
    ".text\n.globl simt_switch\n.hidden simt_switch\n.type simt_switch,@function\nsimt_switch:\n"
    "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
    "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
    "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n"
    ".size simt_switch,.-simt_switch\n");

static void prime(simt_fiber *fiber, void (*entry)())
{
    void **top = (void **)stack_top(fiber);
    *--top = nullptr; /* where entry would return to */
    *--top = (void *)entry;
    for (int i = 0; i < 6; i++) {
        *--top = nullptr;
    }
    fiber->context = top;
}
#elif defined(__aarch64__)
extern "C" void simt_switch(void **save, void *to);
__asm__(
    ".text\n.globl simt_switch\n.hidden simt_switch\n.type simt_switch,%function\nsimt_switch:\n"
    "stp x19,x20,[sp,#-160]!\nstp x21,x22,[sp,#16]\nstp x23,x24,[sp,#32]\n"
    "stp x25,x26,[sp,#48]\nstp x27,x28,[sp,#64]\nstp x29,x30,[sp,#80]\n"
    "stp d8,d9,[sp,#96]\nstp d10,d11,[sp,#112]\nstp d12,d13,[sp,#128]\nstp d14,d15,[sp,#144]\n"
    "mov x9,sp\nstr x9,[x0]\nmov sp,x1\n"
    "ldp x21,x22,[sp,#16]\nldp x23,x24,[sp,#32]\nldp x25,x26,[sp,#48]\n"
    "ldp x27,x28,[sp,#64]\nldp x29,x30,[sp,#80]\n"
    "ldp d8,d9,[sp,#96]\nldp d10,d11,[sp,#112]\nldp d12,d13,[sp,#128]\nldp d14,d15,[sp,#144]\n"
    "ldp x19,x20,[sp],#160\nret\n");

static void prime(simt_fiber *fiber, void (*entry)())
{
    char *top = stack_top(fiber) - 160;
    memset(top, 0, 160);
    ((void **)top)[11] = (void *)entry; /* x30 */
    fiber->context = top;
}
#else
#error "the emulator switches stacks on x86-64 and aarch64 alone"
#endif

static void to_host(void)
{
    simt_fiber *fiber = simt_current;
    simt_current = nullptr;
    simt_switch(&fiber->context, host_context);
}

static void entry(void);

/* Goes on with a thread, or begins it on a stack of its own; *save gets where to come back to. */
static void switch_to(simt_fiber *next, void **save)
{
    if (!next->begun) {
        next->begun = true;
        prime(next, entry);
    }
    simt_current = next;
    simt_switch(save, next->context);
}

static void go_to(simt_fiber *next)
{
    simt_counted.switches++;
    switch_to(next, &simt_current->context);
}

/* ---- faults ---- */

void simt_fail(const char *name, const char *format, ...)
{
    if (fault[0] == '\0') {
        int used = snprintf(fault, sizeof fault, "%s: ", name);
        if (simt_current != nullptr) {
            const simt_block *b = &simt_running;
            used += snprintf(fault + used, sizeof fault - used,
                             "kernel %s, block (%u,%u,%u), thread (%u,%u,%u): ", b->request->name,
                             b->index.x, b->index.y, b->index.z, simt_current->index.x,
                             simt_current->index.y, simt_current->index.z);
        }
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(fault + used, sizeof fault - used, format, arguments);
        va_end(arguments);
    }
    aborted = true;
    if (simt_current != nullptr) {
        to_host();
    }
}

const char *simt_fault(void)
{
    return fault[0] != '\0' ? fault : nullptr;
}

void simt_seed(unsigned seed)
{
    simt_mode = seed;
    random_state = 0x9e3779b97f4a7c15ull * (seed + 1ull);
    until_preempted = 1;
    fault[0] = '\0';
}

void simt_check(int on)
{
    simt_checking = on != 0;
}

struct simt_counters simt_counts(void)
{
    return simt_counted;
}

uint32_t simt_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 16);
}

/* ---- the ready queue ---- */

static uint16_t *queue_at(unsigned i)
{
    return &queue[i % QUEUE];
}

void simt_resume(simt_fiber *fiber)
{
    fiber->state = SIMT_READY;
    *queue_at(queue_tail++) = (uint16_t)fiber->number;
}

/* Position of the next to run: uniform, or the highest warp priority from a random start. */
static unsigned pick_random(unsigned count)
{
    unsigned at = queue_head + simt_random() % count;
    if (simt_mode % 2 == 1) {
        return at;
    }
    if (simt_random() % 256 == 0) {
        warp_priority[simt_random() % SIMT_WARPS_MAX] = simt_random();
    }
    unsigned look = count < 64 ? count : 64;
    for (unsigned k = 1, j = at; k < look; k++) {
        j = j + 1 == queue_tail ? queue_head : j + 1;
        if (warp_priority[*queue_at(j) / 32] > warp_priority[*queue_at(at) / 32]) {
            at = j;
        }
    }
    return at;
}

static simt_fiber *take(void)
{
    unsigned count = queue_tail - queue_head;
    if (count == 0) {
        return nullptr;
    }
    unsigned at = queue_head;
    if (simt_mode == 1) {
        at = queue_tail - 1;
    } else if (simt_mode >= 3) {
        at = pick_random(count);
    }
    unsigned number = *queue_at(at);
    if (at == queue_head) {
        queue_head++;
    } else {
        *queue_at(at) = *queue_at(--queue_tail);
    }
    return simt_fibers[number];
}

static void fail_deadlock(void)
{
    char text[400] = "";
    int used = 0;
    int shown = 0;
    for (unsigned i = 0; i < simt_running.threads && shown < 3; i++) {
        const simt_fiber *f = simt_fibers[i];
        if (f->state != SIMT_AT_WARP && f->state != SIMT_AT_BARRIER) {
            continue;
        }
        shown++;
        used += snprintf(text + used, sizeof text - (size_t)used, "%s thread %u waits at %s, %s:%d",
                         shown > 1 ? ";" : "", i,
                         f->state == SIMT_AT_BARRIER ? "barrier" : simt_op_name(f->op), f->file,
                         f->line);
        used = used < (int)sizeof text ? used : (int)sizeof text - 1;
    }
    simt_fail(SIMT_DEADLOCK, "%u of %u threads are stuck:%s", simt_running.alive,
              simt_running.threads, text);
}

/* No thread is ready: the block is done, or stuck. */
static void stop(void)
{
    if (simt_running.alive > 0) {
        fail_deadlock();
    }
    to_host();
}

void simt_suspend(void)
{
    simt_fiber *next = take();
    if (next == simt_current) {
        return;
    }
    if (next == nullptr) {
        stop();
    }
    go_to(next);
}

void simt_yield(void)
{
    if (simt_mode < 3 || --until_preempted > 0) {
        return;
    }
    until_preempted = 1 + simt_random() % 64;
    simt_resume(simt_current);
    simt_suspend();
}

/* ---- where a thread is ---- */

uint3 simt_thread_index()
{
    return simt_current->index;
}

uint3 simt_block_index()
{
    return simt_running.index;
}

unsigned simt_lane()
{
    return simt_current->lane;
}

dim3 simt_block_dim()
{
    return simt_running.request->block;
}

dim3 simt_grid_dim()
{
    return simt_running.request->grid;
}

void *simt_shared_dynamic(void)
{
    return simt_running.dynamic;
}

/* ---- barriers ---- */

/* All that the arrived threads did is now known to each of them. */
static void release_clocks(int id)
{
    simt_block *b = &simt_running;
    bool takes_part[SIMT_WARPS_MAX] = {};
    uint32_t now = ++b->clock;
    for (unsigned i = 0; i < b->threads; i++) {
        const simt_fiber *f = simt_fibers[i];
        takes_part[f->warp] |= f->state == SIMT_AT_BARRIER && f->barrier == id;
    }
    /* Knowledge of a warp that is not here is shared: of one, then of all. */
    uint32_t known[SIMT_WARPS_MAX] = {};
    for (unsigned w = 0; w < b->warps; w++) {
        for (unsigned v = 0; takes_part[w] && v < b->warps; v++) {
            known[v] = known[v] > b->seen[w][v] ? known[v] : b->seen[w][v];
        }
    }
    for (unsigned w = 0; w < b->warps; w++) {
        uint32_t least = UINT32_MAX;
        for (unsigned v = 0; takes_part[w] && v < b->warps; v++) {
            b->seen[w][v] = takes_part[v] ? now : known[v];
            least = v != w && b->seen[w][v] < least ? b->seen[w][v] : least;
        }
        if (takes_part[w]) {
            b->seen_all[w] = least;
        }
    }
}

static void release(int id)
{
    release_clocks(id);
    simt_counted.barriers++;
    int sum = barriers[id].sum;
    barriers[id].arrived = 0;
    barriers_waited &= ~(1u << id);
    unsigned first = queue_tail;
    for (unsigned i = 0; i < simt_running.threads; i++) {
        simt_fiber *f = simt_fibers[i];
        if (f->state == SIMT_AT_BARRIER && f->barrier == id) {
            f->result = sum;
            f->clock = simt_running.clock;
            simt_resume(f);
        }
    }
    for (unsigned a = first, z = queue_tail; simt_mode == 2 && a + 1 < z; a++) {
        std::swap(*queue_at(a), *queue_at(--z));
    }
}

int simt_barrier(int id, int threads, simt_vote vote, int predicate, const char *file, int line)
{
    simt_fiber *fiber = simt_current;
    auto *barrier = &barriers[id];
    unsigned needed = threads > 0 ? (unsigned)threads : simt_running.threads;
    if (barrier->arrived == 0) {
        *barrier = {0, needed, vote, vote == SIMT_VOTE_AND, file, line};
    } else if (barrier->line != line || strcmp(barrier->file, file) != 0) {
        simt_fail(SIMT_DIVERGENT, "barrier at %s:%d while other threads are at %s:%d", file, line,
                  barrier->file, barrier->line);
    } else if (barrier->threads != needed) {
        simt_fail(SIMT_DIVERGENT, "barrier at %s:%d for %u threads, others say %u", file, line,
                  needed, barrier->threads);
    }
    if (simt_running.alive < needed) {
        simt_fail(SIMT_DIVERGENT, "barrier at %s:%d for %u threads when %u have ended", file, line,
                  needed, simt_running.threads - simt_running.alive);
    }
    if (vote == SIMT_VOTE_COUNT) {
        barrier->sum += predicate != 0;
    } else if (vote == SIMT_VOTE_AND) {
        barrier->sum = barrier->sum && predicate;
    } else if (vote == SIMT_VOTE_OR) {
        barrier->sum = barrier->sum || predicate;
    }
    barrier->arrived++;
    barriers_waited |= 1u << id;
    fiber->state = SIMT_AT_BARRIER;
    fiber->barrier = id;
    fiber->file = file;
    fiber->line = line;
    if (barrier->arrived == barrier->threads) {
        release(id);
    }
    simt_suspend();
    return fiber->result;
}

/* ---- a thread's life ---- */

/* Checks that nobody waits for a thread that ends, and that it leaves nothing in flight. */
static void end_thread(simt_fiber *fiber)
{
    if (fiber->copy_count > 0) {
        simt_fail(SIMT_PENDING, "thread ends with %u asynchronous copies in flight",
                  fiber->copy_count);
    }
    simt_warp_leave(fiber);
    simt_wgmma_leave(fiber);
    for (int id = 0; barriers_waited != 0 && id < SIMT_BARRIERS; id++) {
        if (barriers[id].arrived > 0 && simt_running.alive - 1 < barriers[id].threads) {
            simt_fail(SIMT_DIVERGENT, "thread ends while others are at the barrier at %s:%d",
                      barriers[id].file, barriers[id].line);
        }
    }
    fiber->state = SIMT_DONE;
    simt_running.alive--;
}

/* Runs one thread, and then on the same stack whichever is next and has not begun: where threads do
 * not wait for each other a block needs one stack and no switch. */
static void entry(void)
{
    for (;;) {
        simt_running.request->thread(simt_running.request->call);
        simt_fiber *fiber = simt_current;
        end_thread(fiber);
        simt_fiber *next = take();
        if (next == nullptr) {
            stop();
        } else if (next->begun) {
            go_to(next);
        }
        std::swap(fiber->stack, next->stack);
        next->begun = true;
        simt_counted.switches++;
        simt_current = next;
    }
}

static void make_fibers(unsigned count)
{
    static simt_fiber fibers[SIMT_THREADS_MAX];
    for (unsigned i = 0; i < count; i++) {
        if (simt_fibers[i] != nullptr) {
            continue;
        }
        simt_fiber *fiber = &fibers[i];
        fiber->copies = (simt_copy *)calloc(SIMT_COPIES_MAX, sizeof *fiber->copies);
        void *memory = mmap(nullptr, SIMT_STACK_BYTES + 4096, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (fiber->copies == nullptr || memory == MAP_FAILED ||
            mprotect(memory, 4096, PROT_NONE) != 0) {
            perror("simt: no memory for a thread");
            abort();
        }
        fiber->stack = (char *)memory + 4096; /* below it lies the page that catches overflow */
        fiber->number = i;
        fiber->lane = i % 32;
        fiber->warp = i / 32;
        simt_fibers[i] = fiber;
    }
}

/* ---- launches ---- */

static bool launch_allowed(const simt_launch_request &request)
{
    dim3 g = request.grid;
    dim3 b = request.block;
    uint64_t threads = (uint64_t)b.x * b.y * b.z;
    size_t shared_max = (size_t)simt_function_shared_max(request.kernel);
    if (threads < 1 || threads > SIMT_THREADS_MAX || b.z > 64) {
        simt_fail(SIMT_LAUNCH, "kernel %s: block of (%u,%u,%u) threads", request.name, b.x, b.y,
                  b.z);
    } else if (g.x == 0 || g.y == 0 || g.z == 0 || g.x > 0x7fffffff || g.y > 65535 || g.z > 65535) {
        simt_fail(SIMT_LAUNCH, "kernel %s: grid of (%u,%u,%u) blocks", request.name, g.x, g.y, g.z);
    } else if (request.shared_bytes > shared_max) {
        simt_fail(SIMT_LAUNCH,
                  "kernel %s: %zu bytes of dynamic shared memory, %zu are allowed (48 KiB, or what "
                  "cudaFuncSetAttribute said)",
                  request.name, request.shared_bytes, shared_max);
    } else if (!simt_listed(request)) {
        simt_fail(
            SIMT_LAUNCH,
            "kernel %s: %llu threads and %zu bytes of dynamic shared memory, on this device no "
            "row of tests/cuda/launches.h",
            request.name, (unsigned long long)threads, request.shared_bytes);
    } else {
        return true;
    }
    return false;
}

static void begin_block(const simt_launch_request &request, uint64_t index)
{
    simt_block *b = &simt_running;
    b->index = {(unsigned)(index % request.grid.x),
                (unsigned)(index / request.grid.x % request.grid.y),
                (unsigned)(index / request.grid.x / request.grid.y)};
    b->alive = b->threads;
    b->static_bytes = 0;
    b->run++;
    b->clock = 1;
    memset(b->seen, 0, b->warps * sizeof b->seen[0]);
    memset(b->seen_all, 0, sizeof b->seen_all);
    memset(barriers, 0, sizeof barriers);
    barriers_waited = 0;
    if (request.shared_bytes > 0) {
        simt_poison(b->dynamic, request.shared_bytes);
    }
    simt_warp_reset();
    simt_wgmma_reset();
    simt_shadow_block();
    queue_head = queue_tail = 0;
    for (unsigned w = 0; simt_mode >= 3 && w < SIMT_WARPS_MAX; w++) {
        warp_priority[w] = simt_random();
    }
    uint3 at = {0, 0, 0};
    for (unsigned i = 0; i < b->threads; i++) {
        simt_fiber *f = simt_fibers[i];
        f->index = at;
        if (++at.x == request.block.x) {
            at.x = 0;
            if (++at.y == request.block.y) {
                at.y = 0;
                at.z++;
            }
        }
        f->clock = 1;
        f->copy_count = f->open_count = f->group_count = 0;
        f->begun = false;
    }
    for (unsigned i = 0; i < b->threads; i++) {
        simt_resume(simt_fibers[simt_mode == 2 ? b->threads - 1 - i : i]);
    }
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

void simt_run(const simt_launch_request &request)
{
    if (!launch_allowed(request)) {
        return;
    }
    simt_block *b = &simt_running;
    b->request = &request;
    b->threads = request.block.x * request.block.y * request.block.z;
    b->warps = (b->threads + 31) / 32;
    b->first_run = b->run + 1;
    aborted = false;
    make_fibers(b->threads);
    size_t room = (request.shared_bytes + 127) / 128 * 128;
    b->dynamic = room > 0 ? (unsigned char *)aligned_alloc(128, room) : nullptr;
    simt_shadow_launch();
    uint64_t blocks = (uint64_t)request.grid.x * request.grid.y * request.grid.z;
    uint64_t stride = 1;
    uint64_t offset = 0;
    if (simt_mode >= 3 && blocks > 1) {
        offset = simt_random() % blocks;
        stride = simt_random() % blocks | 1;
        while (gcd(stride, blocks) != 1) {
            stride += 2;
        }
    }
    for (uint64_t k = 0; k < blocks && !aborted; k++) {
        bool backwards = simt_mode == 1 || simt_mode == 2;
        begin_block(request, backwards ? blocks - 1 - k : (offset + k * stride) % blocks);
        switch_to(take(), &host_context);
        simt_counted.blocks++;
        simt_counted.threads += b->threads;
    }
    simt_counted.launches++;
    simt_current = nullptr;
    free(b->dynamic);
    b->dynamic = nullptr;
}
