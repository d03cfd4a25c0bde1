/* A stand-in libcudart.so of one major version: only there to be mapped, for a profiler that looks for the runtime. */
#define EXPORT __attribute__((visibility("default")))

EXPORT int cudaRuntimeGetVersion(int *version)
{
    *version = CUDA_MAJOR * 1000;
    return 0;
}
