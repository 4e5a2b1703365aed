/*
 * Other end of an HTTP/2 connection. See grpc_peer.h.
 */
#include "worker/grpc/grpc_peer.h"

#include "base/clock.h"
#include "base/units.h"

#include <stdio.h>
#include <string.h>

enum { HEAD_BYTES = 9, SETTINGS_MAX = 32, CONTINUATIONS_MAX = 4, RESETS = 200, RESETS_S = 20 };

static const char floods[] = "it floods the connection with frames that bring nothing";

static void earn(struct grpc_peer *peer, int64_t frames)
{
    peer->frames += frames;
    peer->frames = peer->frames < GRPC_PEER_FRAMES_MAX ? peer->frames : GRPC_PEER_FRAMES_MAX;
}

/* Time is no reason to save more than there was at first. */
static void earn_by_time(struct grpc_peer *peer, bool takes)
{
    const int64_t now_ns = clock_monotonic_ns();
    const int64_t frames = (now_ns - peer->earned_ns) / (NS_PER_S / GRPC_PEER_FRAMES_S);
    if (!takes || peer->frames >= GRPC_PEER_FRAMES) {
        peer->earned_ns = now_ns;
    } else {
        const int64_t room = GRPC_PEER_FRAMES - peer->frames;
        peer->frames += frames < room ? frames : room;
        peer->earned_ns += frames * (NS_PER_S / GRPC_PEER_FRAMES_S);
    }
}

static int count_frame(nghttp2_session *session, const nghttp2_frame_hd *head, void *context)
{
    struct grpc_peer *peer = context;
    (void)session;
    peer->header_bytes = 0;
    peer->unknown_bytes -= HEAD_BYTES + (int64_t)head->length;
    if (head->type == NGHTTP2_DATA && head->length >= GRPC_PEER_DATA_BYTES) {
        return 0;
    }
    if (peer->frames <= 0) {
        snprintf(peer->wrong, sizeof peer->wrong, "%s", floods);
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
    peer->frames--;
    return 0;
}

static int count_sent(nghttp2_session *session, const nghttp2_frame *frame, void *context)
{
    struct grpc_peer *peer = context;
    (void)session;
    if (frame->hd.type == NGHTTP2_DATA) {
        earn(peer, 2);
    } else if (frame->hd.type == NGHTTP2_RST_STREAM) {
        peer->unknown_bytes = peer->unknown_bytes > 0 ? peer->unknown_bytes : 0;
        peer->unknown_bytes -= GRPC_PEER_WINDOW_BYTES;
    }
    return 0;
}

nghttp2_session *grpc_peer_session(struct grpc_peer *peer, nghttp2_session_callbacks *callbacks,
                                   bool is_server)
{
    nghttp2_session *session = NULL;
    nghttp2_option *option = NULL;
    if (nghttp2_option_new(&option) != 0) {
        return NULL;
    }
    *peer = (struct grpc_peer){.frames = GRPC_PEER_FRAMES, .earned_ns = clock_monotonic_ns()};
    nghttp2_option_set_max_outbound_ack(option, GRPC_PEER_FRAMES);
    nghttp2_option_set_max_settings(option, SETTINGS_MAX);
    nghttp2_option_set_max_continuations(option, CONTINUATIONS_MAX);
    nghttp2_option_set_stream_reset_rate_limit(option, RESETS, RESETS_S);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, count_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, count_sent);
    const int code = is_server ? nghttp2_session_server_new2(&session, callbacks, peer, option)
                               : nghttp2_session_client_new2(&session, callbacks, peer, option);
    nghttp2_option_del(option);
    return code == 0 ? session : NULL;
}

bool grpc_peer_header(struct grpc_peer *peer, size_t name_bytes, size_t value_bytes)
{
    enum { FIELD_BYTES = 32 }; /* as SETTINGS_MAX_HEADER_LIST_SIZE counts */
    peer->header_bytes += name_bytes + value_bytes + FIELD_BYTES;
    if (peer->header_bytes > GRPC_PEER_HEADER_BYTES) {
        snprintf(peer->wrong, sizeof peer->wrong, "it sends more than 16 KiB of headers at once");
        return false;
    }
    return true;
}

void grpc_peer_called(struct grpc_peer *peer)
{
    earn(peer, GRPC_PEER_FRAMES_CALL);
    peer->unknown_bytes -=
        peer->unknown_bytes > GRPC_PEER_UNKNOWN_CALL ? GRPC_PEER_UNKNOWN_CALL : 0;
}

bool grpc_peer_read(struct grpc_peer *peer, nghttp2_session *session, const uint8_t *in,
                    size_t bytes, bool takes)
{
    earn_by_time(peer, takes);
    const ssize_t taken = nghttp2_session_mem_recv(session, in, bytes);
    peer->unknown_bytes += (int64_t)bytes;
    const bool unknown = peer->unknown_bytes > GRPC_PEER_UNKNOWN_BYTES;
    if (taken >= 0 && !unknown) {
        return true;
    }
    if (peer->wrong[0] == '\0' && (taken == NGHTTP2_ERR_FLOODED || taken >= 0)) {
        snprintf(peer->wrong, sizeof peer->wrong, "%s", floods);
    } else if (peer->wrong[0] == '\0') {
        snprintf(peer->wrong, sizeof peer->wrong, "it does not speak HTTP/2 (%s)",
                 nghttp2_strerror((int)taken));
    }
    /* Out of memory, it goes without. */
    (void)nghttp2_submit_goaway(
        session, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session),
        NGHTTP2_ENHANCE_YOUR_CALM, (const uint8_t *)peer->wrong, strlen(peer->wrong));
    return false;
}
