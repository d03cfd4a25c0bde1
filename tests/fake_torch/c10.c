/* A stand-in for PyTorch's libc10.so: the functions that its allocators tell the profiler of blocks by, under their real names, and an
 * allocator of the CPU that calls its own through the same table as PyTorch's. */
#include <stdint.h>
#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))
struct device {
    int8_t type, index;
};

void report(void *, int64_t, size_t, size_t, struct device) __asm__("_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE");
void cpu_new(void *, void *, size_t) __asm__("_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm");
void cpu_delete(void *, void *) __asm__("_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv");

void fail(int64_t, size_t, size_t, struct device) __asm__("_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE");

/* What PyTorch's own function was told: the program under it must not see a difference. */
static int64_t told_bytes, told_events;

EXPORT void report(void *address, int64_t bytes, size_t allocated, size_t reserved, struct device device)
{
    (void)address, (void)allocated, (void)reserved;
    told_bytes += device.type == 1 ? bytes : 0;
    told_events++;
}

EXPORT void fail(int64_t bytes, size_t allocated, size_t reserved, struct device device)
{
    (void)bytes, (void)allocated, (void)reserved, (void)device;
    told_events++;
}

EXPORT void cpu_new(void *this, void *address, size_t bytes)
{
    (void)this, (void)address;
    told_bytes += (int64_t)bytes;
    told_events++;
}

EXPORT void cpu_delete(void *this, void *address)
{
    (void)this, (void)address;
    told_events++;
}

EXPORT int64_t c10_told_bytes(void)
{
    return told_bytes;
}

EXPORT int64_t c10_told_events(void)
{
    return told_events;
}

EXPORT void *c10_cpu_alloc(size_t bytes)
{
    void *address = malloc(bytes);
    cpu_new(NULL, address, bytes);
    return address;
}

EXPORT void c10_cpu_free(void *address)
{
    cpu_delete(NULL, address);
    free(address);
}
