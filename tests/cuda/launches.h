/*
 * Launches of kernels: the most threads of a block, and the most dynamic shared memory. One table
 * for two checks: under the emulator a launch of a kernel of the product that no row allows is a
 * fault (tests/simt/simt_device.cpp), so the tests hold it complete; and scripts/check_cuda asks
 * for each row, on each compute capability, whether a block fits a multiprocessor
 * (tests/cuda/occupancy.cpp).
 *
 * Columns: kernel; threads; bytes; bytes that a block of the device can have at the least, where
 * the launcher asks (gpu_shared_max), else 0; whether it is launched where there are products of a
 * warpgroup alone.
 */
#ifndef SWERVE_TESTS_CUDA_LAUNCHES_H
#define SWERVE_TESTS_CUDA_LAUNCHES_H

#define GPU_LAUNCHES(X)                    \
    X(activate_kernel, 256, 0, 0, 0)       \
    X(begin_kernel, 1, 0, 0, 0)            \
    X(conv_float_kernel, 128, 0, 0, 0)     \
    X(conv_kernel, 256, 60480, 0, 0)       \
    X(convert_kernel, 256, 0, 0, 0)        \
    X(euler_kernel, 256, 0, 0, 0)          \
    X(fill_kernel, 256, 0, 0, 0)           \
    X(finish_kernel, 256, 0, 0, 0)         \
    X(frame_patches_kernel, 256, 0, 0, 0)  \
    X(gather_kernel, 256, 0, 0, 0)         \
    X(gemm_kernel, 256, 110592, 110592, 0) \
    X(gemm_kernel, 256, 73728, 0, 0)       \
    X(heads_in_kernel, 256, 0, 0, 0)       \
    X(heads_out_kernel, 256, 0, 0, 0)      \
    X(k_agents, 128, 0, 0, 0)              \
    X(k_bev, 192, 0, 0, 0)                 \
    X(k_boxes, 128, 0, 0, 0)               \
    X(k_cameras, 256, 0, 0, 0)             \
    X(k_conditions, 128, 0, 0, 0)          \
    X(k_context_bev, 128, 0, 0, 0)         \
    X(k_context_camera, 128, 0, 0, 0)      \
    X(k_copy_frames, 128, 0, 0, 0)         \
    X(k_digest, 32, 0, 0, 0)               \
    X(k_draw, 128, 0, 0, 0)                \
    X(k_fetch, 128, 0, 0, 0)               \
    X(k_grid, 256, 0, 0, 0)                \
    X(k_motion, 128, 0, 0, 0)              \
    X(k_places, 128, 0, 0, 0)              \
    X(k_reference_attention, 128, 0, 0, 0) \
    X(k_reference_conv, 128, 0, 0, 0)      \
    X(k_reference_gemm, 128, 0, 0, 0)      \
    X(k_reference_norm, 128, 0, 0, 0)      \
    X(k_reference_temporal, 128, 0, 0, 0)  \
    X(k_spread, 128, 0, 0, 0)              \
    X(k_store_memory, 128, 0, 0, 0)        \
    X(k_sums, 256, 0, 0, 0)                \
    X(k_unpack, 128, 0, 0, 0)              \
    X(latent_kernel, 256, 0, 0, 0)         \
    X(noise_kernel, 256, 0, 0, 0)          \
    X(norm_kernel, 256, 0, 0, 0)           \
    X(page_move_kernel, 256, 0, 0, 0)      \
    X(page_store_kernel, 256, 0, 0, 0)     \
    X(patches_kernel, 256, 0, 0, 0)        \
    X(probe_kernel, 1, 0, 0, 0)            \
    X(quantise_kernel, 256, 0, 0, 0)       \
    X(range_kernel, 128, 69632, 0, 0)      \
    X(residual_kernel, 256, 0, 0, 0)       \
    X(rollout_kernel, 128, 61840, 0, 0)    \
    X(rotate_kernel, 256, 0, 0, 0)         \
    X(table_kernel, 256, 0, 0, 0)          \
    X(temporal_kernel, 128, 0, 0, 0)       \
    X(wide_gemm_kernel, 256, 132096, 0, 1) \
    X(wide_kernel, 256, 164864, 0, 1)      \
    X(window_kernel, 128, 69632, 0, 0)

#endif
