/* A stand-in for the CUDA driver and runtime on a machine without a GPU.
 *
 * It reports one GPU of compute capability 9.0, allocates host memory as device memory, copies with
 * memcpy, and launches nothing. Torch, TorchInductor and Triton can then do everything up to the
 * first launch of a kernel, which is the whole compilation. No result computed through this library
 * has a meaning.
 *
 * CARD_NAME, CARD_MEMORY_BYTES and CARD_L2_BYTES describe the card and are set by the compiler's
 * command line. The prototypes come from CUDA's own headers, so that the compiler checks them.
 */
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

enum {
  CAPABILITY = 9, /* major version; the minor version is 0 */
  NUM_MULTIPROCESSORS = 132,
  WARP_SIZE = 32,
  THREADS_PER_BLOCK = 1024,
  THREADS_PER_MULTIPROCESSOR = 2048,
  BLOCKS_PER_MULTIPROCESSOR = 32,
  REGISTERS = 65536,
  SHARED_BYTES_PER_BLOCK = 49152,
  SHARED_BYTES_PER_BLOCK_OPTIN = 232448,
  SHARED_BYTES_PER_MULTIPROCESSOR = 233472,
  CONSTANT_BYTES = 65536,
  ALIGNMENT = 512, /* that of cudaMalloc */
  DRIVER_VERSION = 13000,
};

/* What handles of streams and events point to. */
static int the_only_object;

/* --- The device ------------------------------------------------------------------------------ */

cudaError_t cudaGetDeviceCount(int *count) { *count = 1; return cudaSuccess; }
cudaError_t cudaGetDevice(int *device) { *device = 0; return cudaSuccess; }
cudaError_t cudaSetDevice(int device) { return device == 0 ? cudaSuccess : cudaErrorInvalidDevice; }
cudaError_t cudaDriverGetVersion(int *version) { *version = DRIVER_VERSION; return cudaSuccess; }
cudaError_t cudaDeviceSynchronize(void) { return cudaSuccess; }
cudaError_t cudaGetLastError(void) { return cudaSuccess; }
cudaError_t cudaPeekAtLastError(void) { return cudaSuccess; }

cudaError_t cudaDeviceCanAccessPeer(int *can, int device, int peer) {
  (void)device; (void)peer;
  *can = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  *greatest = -5;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *properties, int device) {
  (void)device;
  memset(properties, 0, sizeof *properties);
  strncpy(properties->name, CARD_NAME, sizeof properties->name - 1);
  properties->major = CAPABILITY;
  properties->totalGlobalMem = CARD_MEMORY_BYTES;
  properties->l2CacheSize = CARD_L2_BYTES;
  properties->totalConstMem = CONSTANT_BYTES;
  properties->multiProcessorCount = NUM_MULTIPROCESSORS;
  properties->warpSize = WARP_SIZE;
  properties->maxThreadsPerBlock = THREADS_PER_BLOCK;
  properties->maxThreadsPerMultiProcessor = THREADS_PER_MULTIPROCESSOR;
  properties->maxBlocksPerMultiProcessor = BLOCKS_PER_MULTIPROCESSOR;
  properties->regsPerBlock = REGISTERS;
  properties->regsPerMultiprocessor = REGISTERS;
  properties->sharedMemPerBlock = SHARED_BYTES_PER_BLOCK;
  properties->sharedMemPerBlockOptin = SHARED_BYTES_PER_BLOCK_OPTIN;
  properties->sharedMemPerMultiprocessor = SHARED_BYTES_PER_MULTIPROCESSOR;
  properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = THREADS_PER_BLOCK;
  properties->maxThreadsDim[2] = 64;
  properties->maxGridSize[0] = 2147483647;
  properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
  properties->unifiedAddressing = 1;
  properties->concurrentKernels = 1;
  properties->cooperativeLaunch = 1;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attribute, int device) {
  (void)device;
  switch (attribute) {
    case cudaDevAttrComputeCapabilityMajor: *value = CAPABILITY; break;
    case cudaDevAttrMultiProcessorCount: *value = NUM_MULTIPROCESSORS; break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = SHARED_BYTES_PER_BLOCK_OPTIN; break;
    case cudaDevAttrMaxThreadsPerBlock: *value = THREADS_PER_BLOCK; break;
    default: *value = 0;
  }
  return cudaSuccess;
}

/* --- Memory: that of the host ---------------------------------------------------------------- */

cudaError_t cudaMalloc(void **address, size_t size) {
  *address = aligned_alloc(ALIGNMENT, (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
  return *address ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaHostAlloc(void **address, size_t size, unsigned int flags) {
  (void)flags;
  return cudaMalloc(address, size);
}

cudaError_t cudaFree(void *address) { free(address); return cudaSuccess; }
cudaError_t cudaFreeHost(void *address) { free(address); return cudaSuccess; }

cudaError_t cudaMemGetInfo(size_t *available, size_t *total) {
  *available = *total = CARD_MEMORY_BYTES;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t size, enum cudaMemcpyKind kind) {
  (void)kind;
  memcpy(to, from, size);
  return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size, enum cudaMemcpyKind kind,
                            cudaStream_t stream) {
  (void)stream;
  return cudaMemcpy(to, from, size, kind);
}

cudaError_t cudaMemset(void *address, int value, size_t size) {
  memset(address, value, size);
  return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *address, int value, size_t size, cudaStream_t stream) {
  (void)stream;
  return cudaMemset(address, value, size);
}

/* Torch asks whether memory of the host is pinned; none is. */
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *address) {
  (void)address;
  memset(attributes, 0, sizeof *attributes);
  attributes->type = cudaMemoryTypeUnregistered;
  return cudaSuccess;
}

/* --- Streams and events: all work is complete at once ---------------------------------------- */

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority) {
  (void)flags; (void)priority;
  *stream = (cudaStream_t)&the_only_object;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) { (void)stream; return cudaSuccess; }
cudaError_t cudaStreamQuery(cudaStream_t stream) { (void)stream; return cudaSuccess; }

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags) {
  (void)stream; (void)event; (void)flags;
  return cudaSuccess;
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status) {
  (void)stream;
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode) {
  (void)mode;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) {
  *event = (cudaEvent_t)&the_only_object;
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags) {
  (void)flags;
  return cudaEventCreate(event);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) { (void)event; return cudaSuccess; }
cudaError_t cudaEventQuery(cudaEvent_t event) { (void)event; return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t event) { (void)event; return cudaSuccess; }

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  (void)event; (void)stream;
  return cudaSuccess;
}

cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned int flags) {
  (void)flags;
  return cudaEventRecord(event, stream);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end) {
  (void)start; (void)end;
  *milliseconds = 1;
  return cudaSuccess;
}

/* --- Kernels: they are never loaded, and a launch does nothing -------------------------------- */

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function) {
  (void)function;
  memset(attributes, 0, sizeof *attributes);
  attributes->maxThreadsPerBlock = THREADS_PER_BLOCK;
  attributes->binaryVersion = attributes->ptxVersion = 10 * CAPABILITY;
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value) {
  (void)function; (void)attribute; (void)value;
  return cudaSuccess;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *count, const void *function, int block_size, size_t shared_bytes, unsigned int flags) {
  (void)function; (void)block_size; (void)shared_bytes; (void)flags;
  *count = 2;
  return cudaSuccess;
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                             size_t shared_bytes, cudaStream_t stream) {
  (void)function; (void)grid; (void)block; (void)arguments; (void)shared_bytes; (void)stream;
  return cudaSuccess;
}

/* Code compiled by nvcc 13 launches through this function, which no header declares for C. */
cudaError_t __cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                               size_t shared_bytes, cudaStream_t stream) {
  return cudaLaunchKernel(function, grid, block, arguments, shared_bytes, stream);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function,
                                void **arguments) {
  (void)config; (void)function; (void)arguments;
  return cudaSuccess;
}

/* --- The driver, for torch's library of runtime compilation ------------------------------------
 *
 * cuda.h would give these functions other names, so it is not included, and its types are written
 * as those that they stand for.
 */

enum { DRIVER_SUCCESS = 0, DRIVER_NOT_SUPPORTED = 801 };

int cuCtxGetCurrent(void **context) { *context = &the_only_object; return DRIVER_SUCCESS; }
int cuCtxSetCurrent(void *context) { (void)context; return DRIVER_SUCCESS; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal; return DRIVER_SUCCESS; }

int cuDevicePrimaryCtxGetState(int device, unsigned int *flags, int *is_active) {
  (void)device;
  *flags = 0;
  *is_active = 1;
  return DRIVER_SUCCESS;
}

int cuDevicePrimaryCtxRetain(void **context, int device) {
  (void)device;
  return cuCtxGetCurrent(context);
}

/* The rest must exist for the library to load, and is not called before the first launch. */
#define UNSUPPORTED(name) int name(void) { return DRIVER_NOT_SUPPORTED; }
UNSUPPORTED(cuDeviceGetAttribute)
UNSUPPORTED(cuFuncGetAttribute)
UNSUPPORTED(cuFuncSetAttribute)
UNSUPPORTED(cuFuncSetCacheConfig)
UNSUPPORTED(cuGetErrorString)
UNSUPPORTED(cuLaunchCooperativeKernel)
UNSUPPORTED(cuLaunchKernel)
UNSUPPORTED(cuLinkAddData_v2)
UNSUPPORTED(cuLinkComplete)
UNSUPPORTED(cuLinkCreate_v2)
UNSUPPORTED(cuModuleGetFunction)
UNSUPPORTED(cuModuleLoad)
UNSUPPORTED(cuModuleLoadData)
UNSUPPORTED(cuModuleLoadDataEx)
UNSUPPORTED(cuModuleUnload)
UNSUPPORTED(cuOccupancyMaxActiveBlocksPerMultiprocessor)
UNSUPPORTED(cuPointerGetAttribute)
UNSUPPORTED(cuTensorMapEncodeTiled)
