/*
 * SIMT emulator: streams, events, copies and graphs. An operation waits in its stream's queue until
 * the schedule lets it run: seed 1 runs it at once, seed 0 and 2 only when somebody waits, others
 * when chance says. While a stream is captured, its operations become nodes of a graph instead.
 *
 * The default stream is such a queue too: what it is given waits for the streams that block, but
 * the host does not wait for it, and streams created as non-blocking do not either. cudaMemset and
 * a cudaMemcpy from pageable memory are of that kind: they have returned before the device has the
 * bytes.
 *
 * Pinned memory may be read by kernels as the device's: they see it as it is when they run.
 *
 * Invariant: operations of one stream run in order; an operation after cudaStreamWaitEvent runs
 * after what the event had recorded at that call.
 */
#include "tests/simt/simt_internal.h"

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

/* A mark in a stream: done once everything before it is. */
struct mark {
    bool done;
    struct simt_stream *stream;
};

struct operation {
    std::function<void()> work;   /* or */
    std::shared_ptr<mark> wait;   /* another stream's mark */
    std::shared_ptr<mark> signal; /* done after work */
};

struct node {
    std::function<void()> work; /* empty: a joint */
    std::vector<size_t> after;
};

struct simt_graph {
    std::vector<node> nodes;
    bool valid = true;
};

struct simt_graph_exec {
    std::vector<node> nodes;
};

struct simt_stream {
    bool blocking = true; /* waits for the default stream and the other way round */
    std::deque<operation> queue;
    simt_graph *capture = nullptr;
    bool origin = false;          /* the stream that the capture began on */
    std::vector<size_t> frontier; /* nodes that the next one follows */
};

struct simt_event {
    std::shared_ptr<mark> last;
    simt_graph *capture = nullptr;
    std::vector<size_t> frontier;
};

static simt_stream default_stream;
static std::vector<simt_stream *> streams; /* without the default one */
static std::map<const void *, size_t> pinned;
static cudaError_t last_error;
static uint64_t allocations_left, allocations_failing; /* simt_fail_allocations */

cudaError_t simt_result(cudaError_t error)
{
    last_error = error != cudaSuccess ? error : last_error;
    return error;
}

void simt_fail_allocations(uint64_t after, uint64_t count)
{
    allocations_left = after;
    allocations_failing = count;
}

bool simt_allocation_fails(void)
{
    if (allocations_failing == 0) {
        return false;
    }
    if (allocations_left > 0) {
        allocations_left--;
        return false;
    }
    allocations_failing--;
    return true;
}

void simt_leave_error(void)
{
    simt_result(cudaErrorInvalidValue);
}

int simt_keeps_error(void)
{
    return cudaPeekAtLastError() != cudaSuccess;
}

static cudaError_t bad(const char *name, const char *text)
{
    simt_fail(name, "%s", text);
    return simt_result(name == std::string(SIMT_CAPTURE) ? cudaErrorStreamCaptureUnsupported
                                                         : cudaErrorInvalidValue);
}

static cudaError_t health(void)
{
    return simt_result(simt_fault() != nullptr ? cudaErrorLaunchFailure : cudaSuccess);
}

/* ---- running what is queued ---- */

/* Runs the stream's first operation, and before it what it waits for. */
static void step(simt_stream *stream)
{
    operation first = stream->queue.front();
    while (first.wait != nullptr && !first.wait->done) {
        step(first.wait->stream);
    }
    stream->queue.pop_front();
    if (first.work && simt_fault() == nullptr) {
        first.work();
    }
    if (first.signal != nullptr) {
        first.signal->done = true;
    }
}

static void drain(simt_stream *stream)
{
    while (!stream->queue.empty()) {
        step(stream);
    }
}

static void drain_blocking(void)
{
    for (simt_stream *stream : streams) {
        if (stream->blocking) {
            drain(stream);
        }
    }
}

/* After something was queued: what the schedule runs now. */
static void progress(void)
{
    if (simt_mode == 1) {
        drain(&default_stream);
        for (simt_stream *stream : streams) {
            drain(stream);
        }
    } else if (simt_mode >= 3) {
        for (unsigned rounds = simt_random() % 4; rounds > 0; rounds--) {
            size_t pick = simt_random() % (streams.size() + 1);
            simt_stream *stream = pick < streams.size() ? streams[pick] : &default_stream;
            if (!stream->queue.empty()) {
                step(stream);
            }
        }
    }
}

static bool any_capture(void)
{
    for (const simt_stream *stream : streams) {
        if (stream->capture != nullptr) {
            return true;
        }
    }
    return false;
}

bool simt_capture_forbids(const char *call)
{
    if (!any_capture()) {
        return false;
    }
    for (simt_stream *stream : streams) {
        if (stream->capture != nullptr) {
            stream->capture->valid = false;
        }
    }
    simt_fail(SIMT_CAPTURE, "%s while a stream is captured", call);
    simt_result(cudaErrorStreamCaptureUnsupported);
    return true;
}

static void capture(simt_stream *stream, std::function<void()> work)
{
    simt_graph *graph = stream->capture;
    graph->nodes.push_back({std::move(work), stream->frontier});
    stream->frontier = {graph->nodes.size() - 1};
}

static cudaError_t queue(simt_stream *stream, std::function<void()> work)
{
    if (stream != nullptr && stream->capture != nullptr) {
        capture(stream, std::move(work));
        return cudaSuccess;
    }
    if (stream == nullptr) {
        if (simt_capture_forbids("work on the default stream")) {
            return cudaErrorStreamCaptureUnsupported;
        }
        drain_blocking();
        stream = &default_stream;
    } else if (stream->blocking) {
        drain(&default_stream);
    }
    stream->queue.push_back({std::move(work), nullptr, nullptr});
    progress();
    return cudaSuccess;
}

/* Work that was given to the default stream and to those that it waits for. */
static cudaError_t wait_default(void)
{
    drain_blocking();
    drain(&default_stream);
    return health();
}

void simt_queue_launch(const simt_launch_request &request, cudaStream_t stream)
{
    std::shared_ptr<const void> call(request.call, request.drop);
    queue(stream, [request, call]() { simt_run(request); });
}

/* ---- copies ---- */

static void copy_now(char *to, size_t to_pitch, const char *from, size_t from_pitch, size_t width,
                     size_t height)
{
    for (size_t row = 0; row < height; row++) {
        char *target = to + row * to_pitch;
        const char *source = from + row * from_pitch;
        if ((simt_is_device(target) && !simt_host_touch(target, width, "a copy")) ||
            (simt_is_device(source) && !simt_host_touch(source, width, "a copy"))) {
            return;
        }
        memmove(target, source, width);
        if (simt_is_device(target)) {
            simt_host_write(target, width);
        }
    }
}

simt_pinned simt_pinned_of(const void *address, size_t bytes)
{
    auto after = pinned.upper_bound(address);
    if (after == pinned.begin()) {
        return SIMT_NOT_PINNED;
    }
    --after;
    size_t offset = (size_t)((const char *)address - (const char *)after->first);
    if (offset + bytes <= after->second) {
        return SIMT_PINNED;
    }
    return offset <= after->second ? SIMT_BEYOND_PINNED : SIMT_NOT_PINNED;
}

static bool is_pinned(const void *address)
{
    return simt_pinned_of(address, 1) == SIMT_PINNED;
}

static bool kind_fits(const void *to, const void *from, cudaMemcpyKind kind)
{
    bool to_device = simt_is_device(to);
    bool from_device = simt_is_device(from);
    switch (kind) {
    case cudaMemcpyHostToHost:
        return !to_device && !from_device;
    case cudaMemcpyHostToDevice:
        return to_device && !from_device;
    case cudaMemcpyDeviceToHost:
        return !to_device && from_device;
    case cudaMemcpyDeviceToDevice:
        return to_device && from_device;
    default:
        return true;
    }
}

static cudaError_t queue_copy(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream)
{
    if (width == 0 || height == 0) {
        return cudaSuccess;
    }
    if (!kind_fits(to, from, kind)) {
        return bad(SIMT_API, "a copy's pointers are not of the kind that it names");
    }
    bool pageable =
        (!simt_is_device(to) && !is_pinned(to)) || (!simt_is_device(from) && !is_pinned(from));
    if (stream != nullptr && stream->capture != nullptr && pageable &&
        simt_capture_forbids("a copy of pageable memory")) {
        return cudaErrorStreamCaptureUnsupported;
    }
    return queue(stream, [=]() {
        copy_now((char *)to, to_pitch, (const char *)from, from_pitch, width, height);
    });
}

/* A fault where a pitch is less than a row, or more than the device's memPitch. */
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                              size_t width, size_t height, cudaMemcpyKind kind, cudaStream_t stream)
{
    if (to_pitch < width || from_pitch < width || to_pitch > simt_pitch_max() ||
        from_pitch > simt_pitch_max()) {
        simt_fail(SIMT_API,
                  "cudaMemcpy2DAsync: rows of %zu bytes, %zu and %zu apart; memPitch is %zu", width,
                  to_pitch, from_pitch, simt_pitch_max());
        return simt_result(cudaErrorInvalidValue);
    }
    return queue_copy(to, to_pitch, from, from_pitch, width, height, kind, stream);
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    return queue_copy(to, bytes, from, bytes, bytes, 1, kind, stream);
}

/* Waits for the copy, except where the documentation says otherwise ("API synchronization
 * behavior"): between two places of the device, and to the device from pageable memory, which is
 * then free to change. */
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    if (simt_capture_forbids("cudaMemcpy")) {
        return cudaErrorStreamCaptureUnsupported;
    }
    wait_default();
    bool pageable = !simt_is_device(from) && simt_is_device(to) && !is_pinned(from);
    if (!pageable) {
        cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
        bool between = simt_is_device(from) && simt_is_device(to);
        return error != cudaSuccess || between ? error : wait_default();
    }
    if (!kind_fits(to, from, kind)) {
        return bad(SIMT_API, "a copy's pointers are not of the kind that it names");
    }
    const char *bytes_of = (const char *)from;
    auto staged = std::make_shared<std::vector<char>>(bytes_of, bytes_of + bytes);
    return queue(nullptr, [=]() { copy_now((char *)to, bytes, staged->data(), bytes, bytes, 1); });
}

cudaError_t cudaMemsetAsync(void *to, int byte, size_t bytes, cudaStream_t stream)
{
    if (!simt_is_device(to)) {
        return bad(SIMT_API, "cudaMemset of memory that is not the device's");
    }
    return queue(stream, [=]() {
        if (simt_host_touch(to, bytes, "cudaMemset")) {
            memset(to, byte, bytes);
            simt_host_write(to, bytes);
        }
    });
}

cudaError_t cudaMemset(void *to, int byte, size_t bytes)
{
    return cudaMemsetAsync(to, byte, bytes, nullptr);
}

cudaError_t simt_malloc_host(void **memory, size_t bytes)
{
    if (simt_capture_forbids("cudaMallocHost")) {
        return cudaErrorStreamCaptureUnsupported;
    }
    void *made =
        simt_allocation_fails() ? nullptr : aligned_alloc(256, (bytes + 255) / 256 * 256 + 256);
    if (made == nullptr) {
        return simt_result(cudaErrorMemoryAllocation);
    }
    simt_poison(made, bytes);
    pinned[made] = bytes;
    *memory = made;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *memory)
{
    if (memory == nullptr) {
        return cudaSuccess;
    }
    cudaDeviceSynchronize();
    if (pinned.erase(memory) == 0) {
        return bad(SIMT_API, "cudaFreeHost of memory that cudaMallocHost did not give");
    }
    free(memory);
    return cudaSuccess;
}

/* ---- streams and events ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    *stream = new simt_stream;
    (*stream)->blocking = (flags & cudaStreamNonBlocking) == 0;
    streams.push_back(*stream);
    return cudaSuccess;
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    if (stream == nullptr) {
        return bad(SIMT_API, "cudaStreamDestroy of the default stream");
    }
    drain(stream);
    for (size_t i = 0; i < streams.size(); i++) {
        if (streams[i] == stream) {
            streams.erase(streams.begin() + (ptrdiff_t)i);
            break;
        }
    }
    delete stream;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    if (stream == nullptr) {
        return simt_capture_forbids("a wait for the default stream")
                   ? cudaErrorStreamCaptureUnsupported
                   : wait_default();
    }
    if (stream->capture != nullptr) {
        simt_capture_forbids("cudaStreamSynchronize");
        return cudaErrorStreamCaptureUnsupported;
    }
    drain(stream);
    return health();
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    if (stream != nullptr && stream->capture != nullptr) {
        simt_capture_forbids("cudaStreamQuery");
        return cudaErrorStreamCaptureUnsupported;
    }
    progress();
    if (stream != nullptr && !stream->queue.empty()) {
        step(stream); /* asking often enough brings the end */
    }
    return stream == nullptr || stream->queue.empty() ? health() : simt_result(cudaErrorNotReady);
}

cudaError_t cudaDeviceSynchronize(void)
{
    if (simt_capture_forbids("a call that waits for the device")) {
        return cudaErrorStreamCaptureUnsupported;
    }
    for (simt_stream *stream : streams) {
        drain(stream);
    }
    return wait_default();
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned)
{
    *event = new simt_event;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    delete event;
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    event->capture = stream != nullptr ? stream->capture : nullptr;
    if (event->capture != nullptr) {
        event->frontier = stream->frontier;
        return cudaSuccess;
    }
    if (stream == nullptr) {
        drain_blocking();
        stream = &default_stream;
    }
    event->last = std::make_shared<mark>(mark{false, stream});
    stream->queue.push_back({nullptr, nullptr, event->last});
    progress();
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned)
{
    if (stream == nullptr) {
        return cudaEventSynchronize(event);
    }
    if (event->capture != nullptr) { /* the stream joins the capture */
        if (stream->capture != nullptr && stream->capture != event->capture) {
            return bad(SIMT_CAPTURE, "one capture waits for an event of another");
        }
        stream->capture = event->capture;
        for (size_t from : event->frontier) {
            stream->frontier.push_back(from);
        }
        return cudaSuccess;
    }
    if (stream->capture != nullptr && event->last != nullptr && !event->last->done) {
        return bad(SIMT_CAPTURE, "a captured stream waits for work outside of its capture");
    }
    if (event->last != nullptr && !event->last->done) {
        stream->queue.push_back({nullptr, event->last, nullptr});
    }
    progress();
    return cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    if (event->capture != nullptr && simt_capture_forbids("cudaEventSynchronize")) {
        return cudaErrorStreamCaptureUnsupported;
    }
    while (event->last != nullptr && !event->last->done) {
        step(event->last->stream);
    }
    return health();
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    if (simt_capture_forbids("cudaEventQuery")) {
        return cudaErrorStreamCaptureUnsupported;
    }
    if (event->last != nullptr && !event->last->done) {
        step(event->last->stream);
    }
    return event->last == nullptr || event->last->done ? health() : simt_result(cudaErrorNotReady);
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
    if (start->last == nullptr || end->last == nullptr || !start->last->done || !end->last->done) {
        return simt_result(cudaErrorNotReady);
    }
    *ms = 0.0f; /* nothing here has a duration */
    return cudaSuccess;
}

/* ---- graphs ---- */

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode)
{
    if (stream == nullptr || stream->capture != nullptr) {
        return bad(SIMT_CAPTURE, "capture of the default stream, or of one already captured");
    }
    stream->capture = new simt_graph;
    stream->origin = true;
    stream->frontier.clear();
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    simt_graph *made = stream->capture;
    *graph = nullptr;
    if (made == nullptr || !stream->origin) {
        return bad(SIMT_CAPTURE, "end of a capture that did not begin on this stream");
    }
    /* Every node must lead back to the stream that began. */
    std::vector<bool> reached(made->nodes.size());
    for (size_t at : stream->frontier) {
        reached[at] = true;
    }
    for (size_t i = made->nodes.size(); i-- > 0;) {
        for (size_t from : made->nodes[i].after) {
            reached[from] = reached[from] || reached[i];
        }
    }
    bool joined = true;
    for (bool is : reached) {
        joined = joined && is;
    }
    for (simt_stream *other : streams) {
        if (other->capture == made) {
            other->capture = nullptr;
            other->origin = false;
            other->frontier.clear();
        }
    }
    bool valid = made->valid;
    if (!joined || !valid) {
        delete made;
        bad(SIMT_CAPTURE, joined ? "the capture was invalidated by a call that it does not allow"
                                 : "work of a forked stream was not joined to the capture");
        return simt_result(cudaErrorStreamCaptureInvalidated);
    }
    *graph = made;
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long)
{
    *exec = new simt_graph_exec{graph->nodes};
    return cudaSuccess;
}

/* All nodes, each after those that it follows; among the possible ones the seed picks. */
static void replay(const std::vector<node> &nodes)
{
    std::vector<bool> done(nodes.size());
    for (size_t left = nodes.size(); left > 0; left--) {
        std::vector<size_t> ready;
        for (size_t i = 0; i < nodes.size() && (simt_mode >= 2 || ready.empty()); i++) {
            bool free = !done[i];
            for (size_t from : nodes[i].after) {
                free = free && done[from];
            }
            if (free) {
                ready.push_back(i);
            }
        }
        size_t next = simt_mode >= 3 ? ready[simt_random() % ready.size()] : ready.back();
        done[next] = true;
        if (nodes[next].work && simt_fault() == nullptr) {
            nodes[next].work();
        }
    }
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    if (stream != nullptr && stream->capture != nullptr) {
        simt_capture_forbids("cudaGraphLaunch");
        return cudaErrorStreamCaptureUnsupported;
    }
    auto nodes = std::make_shared<std::vector<node>>(exec->nodes);
    return queue(stream, [nodes]() {
        simt_counted.graph_launches++;
        replay(*nodes);
    });
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    delete exec;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    delete graph;
    return cudaSuccess;
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, void *nodes, size_t *count)
{
    if (nodes != nullptr) {
        return bad(SIMT_API, "cudaGraphGetNodes gives the count alone");
    }
    *count = graph->nodes.size();
    return cudaSuccess;
}

/* ---- errors ---- */

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = cudaPeekAtLastError();
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void)
{
    return simt_fault() != nullptr ? cudaErrorLaunchFailure : last_error;
}

const char *cudaGetErrorString(cudaError_t error)
{
    if (error != cudaSuccess && simt_fault() != nullptr) {
        return simt_fault();
    }
    switch (error) {
    case cudaSuccess:
        return "no error";
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorInvalidDevice:
        return "invalid device ordinal";
    case cudaErrorNotReady:
        return "device not ready";
    default:
        return "an error of the emulated runtime";
    }
}

const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
    case cudaSuccess:
        return "cudaSuccess";
    case cudaErrorMemoryAllocation:
        return "cudaErrorMemoryAllocation";
    case cudaErrorLaunchFailure:
        return "cudaErrorLaunchFailure";
    default:
        return "cudaErrorUnknown";
    }
}
