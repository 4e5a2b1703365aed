/*
 * Sums: what the frame statistics of a frame (engine/learned/frame_measure.h) are made of, integers
 * over the bytes of the frame, of the frame one tick earlier and of the layout that was given. No
 * order of adding changes them, so they are the same wherever they are made:
 * engine/learned/frame_measure.c makes them on the host, kernels/cuda/student/frame_sums.cu where
 * the frame lies.
 *
 * A BEV position has four occupancy bytes and four of vulnerable road users, a camera position
 * twelve; 255 stands for 1. All fit 32 bits, side_xy with a sign.
 */
#ifndef SWERVE_KERNELS_FRAME_SUMS_H
#define SWERVE_KERNELS_FRAME_SUMS_H

#include <stdint.h>

struct frame_sums {
    /* The BEV. */
    int64_t occupancy; /* of the frame's bytes */
    int64_t vru;
    /* Over the part that both frames' windows cover; 0 without an earlier one. */
    int64_t bev_change;   /* |occupancy now - then| */
    int64_t bev_compared; /* how many bytes these are */
    /* Of the layout's occupancy; 0 but in the conditioning `agents`. */
    int64_t layout;
    int64_t both;    /* the smaller of frame and layout */
    int64_t either;  /* the larger */
    int64_t surplus; /* of the frame, where the layout has nothing near (kernels/agent_sums.h) .. */
    int64_t surplus_vru; /* .. of vulnerable road users */

    /* The cameras. */
    int64_t camera_change; /* |now - then|; 0 without an earlier frame */
    /* Of the frame's bytes x and the layout's y; 0 in the conditioning `none`. */
    int64_t x, y, xx, yy, xy;
    /* The same of each byte minus that of its camera's mirror image. */
    int64_t side_xx, side_yy, side_xy;
};

#endif
