/*
 * Declarations of NCCL that kernels/cuda/scale/all_to_all_nccl.cu uses, as its manual has them
 * ("NCCL API"), for the test with a made-up library (nccl.c). Behind kernels/cuda/common/gpu.h,
 * which has cudaStream_t.
 */
#ifndef SWERVE_TESTS_CUDA_NCCL_H
#define SWERVE_TESTS_CUDA_NCCL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#else
typedef struct simt_stream *cudaStream_t;
#endif

typedef struct ncclComm *ncclComm_t;
typedef struct {
    char internal[128];
} ncclUniqueId;
typedef enum { ncclSuccess = 0, ncclInvalidArgument = 4 } ncclResult_t;
typedef enum { ncclUint8 = 1 } ncclDataType_t;

ncclResult_t ncclGetUniqueId(ncclUniqueId *id);
ncclResult_t ncclCommInitRank(ncclComm_t *communicator, int ranks, ncclUniqueId id, int rank);
ncclResult_t ncclCommDestroy(ncclComm_t communicator);
const char *ncclGetErrorString(ncclResult_t result);
ncclResult_t ncclGroupStart(void);
ncclResult_t ncclGroupEnd(void);
ncclResult_t ncclSend(const void *from, size_t count, ncclDataType_t type, int rank,
                      ncclComm_t communicator, cudaStream_t stream);
ncclResult_t ncclRecv(void *to, size_t count, ncclDataType_t type, int rank,
                      ncclComm_t communicator, cudaStream_t stream);

#ifdef __cplusplus
}
#endif

#endif
