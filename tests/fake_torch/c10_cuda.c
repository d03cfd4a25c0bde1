/* A stand-in for PyTorch's libc10_cuda.so: an allocator without a device, which tells of its blocks as PyTorch's does. Compiled without
 * REPORTS it is a PyTorch that tells nobody. */
#include <stdint.h>
#include <stddef.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
struct device {
    int8_t type, index;
};

#ifdef REPORTS
void report(void *, int64_t, size_t, size_t, struct device) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
void fail(int64_t, size_t, size_t, struct device) __asm__("_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE");
#else
static void fail(int64_t bytes, size_t allocated, size_t reserved, struct device device)
{
    (void)bytes, (void)allocated, (void)reserved, (void)device;
}

static void report(void *address, int64_t bytes, size_t allocated, size_t reserved, struct device device)
{
    (void)address, (void)bytes, (void)allocated, (void)reserved, (void)device;
}
#endif

static size_t allocated[8];
static size_t reserved[8] = {1 << 30, 1 << 30, 1 << 30, 1 << 30, 1 << 30, 1 << 30, 1 << 30, 1 << 30};

/* What it says from now on that it has reserved of a device. */
EXPORT void c10_cuda_reserved(size_t bytes, int device)
{
    reserved[device] = bytes;
}

EXPORT void c10_cuda_block(uint64_t address, int64_t bytes, int device)
{
    allocated[device] += (size_t)bytes;
    report((void *)(uintptr_t)address, bytes, allocated[device], reserved[device], (struct device){1, (int8_t)device});
}

EXPORT void c10_cuda_fail(int64_t bytes, int device)
{
    fail(bytes, allocated[device], reserved[device], (struct device){1, (int8_t)device});
}

/* Nanoseconds for one event, over many. */
EXPORT double c10_cuda_many(long pairs)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (long pair = 0; pair < pairs; pair++) {
        c10_cuda_block(0x1000 + (uint64_t)pair % 64 * 512, 512, 0);
        c10_cuda_block(0x1000 + (uint64_t)pair % 64 * 512, -512, 0);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / (double)(2 * pairs);
}
