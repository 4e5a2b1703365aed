/*
 * Worlds as ONNX files: schemas/world/world.h over ONNX Runtime, by a small manifest
 * (docs/worlds.md) that says which tensors are what. One run of the model per state and tick.
 *
 * What a state remembers is a block of tensors that is never written again once a run has made it:
 * a fork shares the block, and the next run of either makes one of its own.
 */
#ifndef SWERVE_WORKER_WORLD_WORLD_ONNX_H
#define SWERVE_WORKER_WORLD_WORLD_ONNX_H

#include "base/status.h"
#include "schemas/world/world.h"
#include "worker/onnx/ort.h"

#include <stdbool.h>

enum { WORLD_ONNX_STATES_MAX = 8 };

enum world_onnx_input {
    WORLD_ONNX_RASTER_BEV = 0,
    WORLD_ONNX_RASTER_CAMERAS,
    WORLD_ONNX_LAST_BEV,
    WORLD_ONNX_MOTION,
    WORLD_ONNX_CONDITIONS,
    WORLD_ONNX_INPUTS
};
enum world_onnx_output { WORLD_ONNX_BEV = 0, WORLD_ONNX_CAMERAS, WORLD_ONNX_OUTPUTS };

/* A manifest, read. Tensors have no data yet; a name of "" is one that the model lacks. */
struct world_onnx_manifest {
    bool controls; /* the network of the controls challenge; then only the next two count */
    struct swerve_world_declared declared;
    char states[ORT_NAME_BYTES], tokens[ORT_NAME_BYTES], logits[ORT_NAME_BYTES];
    struct ort_tensor inputs[WORLD_ONNX_INPUTS];
    struct ort_tensor outputs[WORLD_ONNX_OUTPUTS];
    uint32_t state_count;
    struct ort_tensor state_in[WORLD_ONNX_STATES_MAX];
    struct ort_tensor state_out[WORLD_ONNX_STATES_MAX];
};

/* STATUS_BAD_INPUT names file, member, what was expected and found. */
enum status world_onnx_manifest_load(const char *path, struct world_onnx_manifest *out,
                                     struct error *error);

/* setup.host of world_onnx_ops. */
struct world_onnx_host {
    const struct ort *ort;
    const char *model; /* file */
    const struct world_onnx_manifest *manifest;
};

extern const struct swerve_world_ops world_onnx_ops;

#endif
