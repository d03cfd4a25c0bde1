/* A stand-in for PyTorch's libc10_cuda.so: an allocator without a device, which tells of its blocks as PyTorch's does. Compiled without
 * REPORTS it is a PyTorch that tells nobody. */
#include <pthread.h>
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
/* PyTorch's allocator tells of its blocks with its lock held. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

EXPORT void c10_cuda_block(uint64_t address, int64_t bytes, int device)
{
    pthread_mutex_lock(&lock);
    allocated[device] += (size_t)bytes;
    report((void *)(uintptr_t)address, bytes, allocated[device], reserved[device], (struct device){1, (int8_t)device});
    pthread_mutex_unlock(&lock);
}

EXPORT void c10_cuda_fail(int64_t bytes, int device)
{
    fail(bytes, allocated[device], reserved[device], (struct device){1, (int8_t)device});
}

EXPORT void c10_cuda_reserve(int64_t bytes)
{
    reserved[0] += (size_t)bytes;
}

/* A thread that Python does not know. */
static void *work(void *bytes)
{
    c10_cuda_block(0x7000, (int64_t)(intptr_t)bytes, 0);
    return NULL;
}

EXPORT void c10_cuda_in_a_thread(int64_t bytes)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, work, (void *)(intptr_t)bytes) == 0)
        pthread_join(thread, NULL);
}

/* Nanoseconds for one event, over many of blocks of so many bytes. */
EXPORT double c10_cuda_many_of(long pairs, long bytes)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (long pair = 0; pair < pairs; pair++) {
        c10_cuda_block(0x1000 + (uint64_t)pair % 64 * 512, bytes, 0);
        c10_cuda_block(0x1000 + (uint64_t)pair % 64 * 512, -bytes, 0);
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    return ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) / (double)(2 * pairs);
}

EXPORT double c10_cuda_many(long pairs)
{
    return c10_cuda_many_of(pairs, 512);
}
