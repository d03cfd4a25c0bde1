/* One activity record in the layout of the CUDA version that this library was built for. The offsets come from
 * tests/cupti_headers/expected.json by way of layout.h; nothing here knows a struct. */
#include "cupti.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void put(uint8_t *record, int offset, int size, uint64_t value)
{
    if (offset >= 0)
        memcpy(record + offset, &value, (size_t)size);
}

uint32_t kind_of_work(const struct fake_work *work)
{
    switch (work->kind) {
    case FAKE_KERNEL: return KIND_CONCURRENT_KERNEL;
    case FAKE_MEMCPY: return KIND_MEMCPY;
    case FAKE_MEMCPY_PEER: return KIND_MEMCPY2;
    case FAKE_MEMSET: return KIND_MEMSET;
    case FAKE_SYNC: return KIND_SYNCHRONIZATION;
    case FAKE_MEMORY: return KIND_MEMORY2;
    case FAKE_POOL: return KIND_MEMORY_POOL;
    case FAKE_OVERHEAD: return KIND_OVERHEAD;
    case FAKE_MIGRATION: return KIND_UNIFIED_MEMORY_COUNTER;
    case FAKE_API: return work->domain == 1 ? KIND_DRIVER : KIND_RUNTIME;
    case FAKE_CONTEXT: return KIND_CONTEXT;
    default: return work->unknown_kind;
    }
}

/* As the real cuptiActivityGetNextRecord knows its own sizes. 0: no such kind. */
size_t size_of_record(uint32_t kind, const uint8_t *at)
{
    switch (kind) {
    case KIND_KERNEL:
    case KIND_CONCURRENT_KERNEL: return SIZE_OF_Kernel;
    case KIND_MEMCPY: return SIZE_OF_Memcpy;
    case KIND_MEMCPY2: return SIZE_OF_MemcpyPeer;
    case KIND_MEMSET: return SIZE_OF_Memset;
    case KIND_SYNCHRONIZATION: return SIZE_OF_Synchronization;
    case KIND_MEMORY2: return SIZE_OF_Memory;
    case KIND_MEMORY_POOL: return SIZE_OF_MemoryPool;
    case KIND_OVERHEAD: return SIZE_OF_Overhead;
    case KIND_UNIFIED_MEMORY_COUNTER: return SIZE_OF_UnifiedMemory;
    case KIND_DRIVER:
    case KIND_RUNTIME: return SIZE_OF_Api;
    case KIND_DEVICE: return SIZE_OF_Device;
    case KIND_CONTEXT: return SIZE_OF_Context;
    default: break;
    }
    uint32_t size = 0;
    /* A kind of the future: its size stands behind its number. */
    if (kind >= 500 && kind < 0x7fffffff)
        memcpy(&size, at + 4, 4);
    return size;
}

static void write_kernel(uint8_t *at, const struct fake_work *work)
{
    PUT(Kernel, registersPerThread, work->registers);
    PUT(Kernel, start, work->start);
    PUT(Kernel, end, work->end);
    PUT(Kernel, completed, work->end);
    PUT(Kernel, deviceId, work->device);
    PUT(Kernel, contextId, work->context);
    PUT(Kernel, streamId, work->stream);
    PUT(Kernel, gridX, work->grid[0]);
    PUT(Kernel, gridY, work->grid[1]);
    PUT(Kernel, gridZ, work->grid[2]);
    PUT(Kernel, blockX, work->block[0]);
    PUT(Kernel, blockY, work->block[1]);
    PUT(Kernel, blockZ, work->block[2]);
    PUT(Kernel, staticSharedMemory, work->shared_static);
    PUT(Kernel, dynamicSharedMemory, work->shared_dynamic);
    PUT(Kernel, correlationId, work->correlation);
    PUT(Kernel, gridId, work->correlation);
    PUT(Kernel, name, (uintptr_t)work->name);
    PUT(Kernel, launchType, work->launch_type);
    PUT(Kernel, graphNodeId, work->node);
    PUT(Kernel, graphId, work->graph);
    /* Written so that a reader which takes one of the newer fields for an older one shows it. */
    PUT(Kernel, maxActiveClusters, 0xabababab);
    PUT(Kernel, priority, 0xcdcdcdcd);
    PUT(Kernel, sourceGraphId, 0xefefefef);
}

static void write_copy(uint8_t *at, const struct fake_work *work)
{
    PUT(Memcpy, copyKind, work->copy_kind);
    PUT(Memcpy, srcKind, work->from);
    PUT(Memcpy, dstKind, work->to);
    PUT(Memcpy, flags, work->asynchronous);
    PUT(Memcpy, bytes, work->bytes);
    PUT(Memcpy, start, work->start);
    PUT(Memcpy, end, work->end);
    PUT(Memcpy, deviceId, work->device);
    PUT(Memcpy, contextId, work->context);
    PUT(Memcpy, streamId, work->stream);
    PUT(Memcpy, correlationId, work->correlation);
    PUT(Memcpy, graphNodeId, work->node);
    PUT(Memcpy, graphId, work->graph);
    PUT(Memcpy, copyCount, 1);
}

static void write_peer_copy(uint8_t *at, const struct fake_work *work)
{
    PUT(MemcpyPeer, copyKind, work->copy_kind);
    PUT(MemcpyPeer, srcKind, work->from);
    PUT(MemcpyPeer, dstKind, work->to);
    PUT(MemcpyPeer, flags, work->asynchronous);
    PUT(MemcpyPeer, bytes, work->bytes);
    PUT(MemcpyPeer, start, work->start);
    PUT(MemcpyPeer, end, work->end);
    PUT(MemcpyPeer, deviceId, work->device);
    PUT(MemcpyPeer, contextId, work->context);
    PUT(MemcpyPeer, streamId, work->stream);
    PUT(MemcpyPeer, srcDeviceId, work->from_device);
    PUT(MemcpyPeer, srcContextId, work->context);
    PUT(MemcpyPeer, dstDeviceId, work->to_device);
    PUT(MemcpyPeer, dstContextId, work->context);
    PUT(MemcpyPeer, correlationId, work->correlation);
    PUT(MemcpyPeer, graphNodeId, work->node);
    PUT(MemcpyPeer, graphId, work->graph);
}

static void write_memset(uint8_t *at, const struct fake_work *work)
{
    PUT(Memset, value, work->value);
    PUT(Memset, bytes, work->bytes);
    PUT(Memset, start, work->start);
    PUT(Memset, end, work->end);
    PUT(Memset, deviceId, work->device);
    PUT(Memset, contextId, work->context);
    PUT(Memset, streamId, work->stream);
    PUT(Memset, correlationId, work->correlation);
    PUT(Memset, flags, 1);
    PUT(Memset, memoryKind, work->memory);
    PUT(Memset, graphNodeId, work->node);
    PUT(Memset, graphId, work->graph);
}

static void write_sync(uint8_t *at, const struct fake_work *work)
{
    PUT(Synchronization, type, work->type);
    PUT(Synchronization, start, work->start);
    PUT(Synchronization, end, work->end);
    PUT(Synchronization, correlationId, work->correlation);
    PUT(Synchronization, contextId, work->context);
    PUT(Synchronization, streamId, work->stream);
    PUT(Synchronization, cudaEventId, work->type <= 2 ? 5 : UINT32_MAX);
}

static void write_memory(uint8_t *at, const struct fake_work *work)
{
    PUT(Memory, memoryOperationType, work->type);
    PUT(Memory, memoryKind, work->memory);
    PUT(Memory, correlationId, work->correlation);
    PUT(Memory, address, work->address);
    PUT(Memory, bytes, work->bytes);
    PUT(Memory, timestamp, work->start);
    PUT(Memory, processId, getpid());
    PUT(Memory, deviceId, work->device);
    PUT(Memory, contextId, work->context);
    PUT(Memory, streamId, work->asynchronous ? work->stream : UINT32_MAX);
    PUT(Memory, isAsync, work->asynchronous);
    PUT(Memory, memoryPoolConfig_memoryPoolType, work->pool);
    PUT(Memory, memoryPoolConfig_pool_size, work->pool ? work->bytes * 2 : 0);
    PUT(Memory, memoryPoolConfig_utilizedSize, work->pool ? work->bytes : 0);
}

static void write_pool(uint8_t *at, const struct fake_work *work)
{
    PUT(MemoryPool, memoryPoolOperationType, work->type);
    PUT(MemoryPool, memoryPoolType, 1);
    PUT(MemoryPool, correlationId, work->correlation);
    PUT(MemoryPool, processId, getpid());
    PUT(MemoryPool, deviceId, work->device);
    PUT(MemoryPool, address, work->address);
    PUT(MemoryPool, size, work->bytes);
    PUT(MemoryPool, timestamp, work->start);
}

static void write_migration(uint8_t *at, const struct fake_work *work)
{
    PUT(UnifiedMemory, counterKind, work->type);
    PUT(UnifiedMemory, value, work->bytes);
    PUT(UnifiedMemory, start, work->start);
    PUT(UnifiedMemory, end, work->end);
    PUT(UnifiedMemory, address, work->address);
    PUT(UnifiedMemory, srcId, work->type == 1 ? UINT32_MAX : work->device);
    PUT(UnifiedMemory, dstId, work->type == 1 ? work->device : UINT32_MAX);
    PUT(UnifiedMemory, processId, getpid());
}

static void write_api(uint8_t *at, const struct fake_work *work)
{
    PUT(Api, cbid, work->id);
    PUT(Api, start, work->start);
    PUT(Api, end, work->end);
    PUT(Api, processId, getpid());
    PUT(Api, threadId, system_thread_ids ? work->thread : 0x5eed0000 + work->thread);
    PUT(Api, correlationId, work->correlation);
}

size_t write_record(uint8_t *at, const struct fake_work *given)
{
    struct fake_work work = *given;
    uint32_t kind = kind_of_work(&work);
    if (work.start)
        work.start = to_activity_time(work.start);
    if (work.end)
        work.end = to_activity_time(work.end);
    size_t size = work.kind == FAKE_UNKNOWN ? work.unknown_size : size_of_record(kind, NULL);
    memset(at, 0, size);
    memcpy(at, &kind, 4);
    switch (work.kind) {
    case FAKE_KERNEL: write_kernel(at, &work); break;
    case FAKE_MEMCPY: write_copy(at, &work); break;
    case FAKE_MEMCPY_PEER: write_peer_copy(at, &work); break;
    case FAKE_MEMSET: write_memset(at, &work); break;
    case FAKE_SYNC: write_sync(at, &work); break;
    case FAKE_MEMORY: write_memory(at, &work); break;
    case FAKE_POOL: write_pool(at, &work); break;
    case FAKE_MIGRATION: write_migration(at, &work); break;
    case FAKE_API: write_api(at, &work); break;
    case FAKE_CONTEXT:
        PUT(Context, contextId, work.context);
        PUT(Context, deviceId, work.device);
        PUT(Context, computeApiKind, 1);
        PUT(Context, nullStreamId, 7);
        break;
    case FAKE_OVERHEAD:
        PUT(Overhead, overheadKind, work.type);
        PUT(Overhead, objectKind, 2);
        PUT(Overhead, start, work.start);
        PUT(Overhead, end, work.end);
        break;
    case FAKE_UNKNOWN: memcpy(at + 4, &work.unknown_size, 4); break;
    }
    return size;
}

size_t write_device(uint8_t *at, int device)
{
    static const char *const names[] = {"Fake GPU 0", "Fake GPU 1", "Fake GPU 2", "Fake GPU 3", "Fake GPU 4", "Fake GPU 5"};
    memset(at, 0, SIZE_OF_Device);
    PUT(Device, kind, KIND_DEVICE);
    PUT(Device, globalMemoryBandwidth, 3352320000);
    PUT(Device, globalMemorySize, (uint64_t)80 << 30);
    PUT(Device, numMultiprocessors, 132);
    PUT(Device, coreClockRate, 1980000);
    PUT(Device, computeCapabilityMajor, 9);
    PUT(Device, computeCapabilityMinor, 0);
    PUT(Device, id, device);
    for (int byte = 0; byte < 16; byte++)
        at[OFFSET_Device_uuid + byte] = (uint8_t)(byte * 16 + device);
    PUT(Device, name, (uintptr_t)names[device % 6]);
    PUT(Device, isCudaVisible, 1);
    PUT(Device, isMigEnabled, driver_mig());
    PUT(Device, gpuInstanceId, driver_mig() ? 1 + (uint32_t)device : UINT32_MAX);
    PUT(Device, computeInstanceId, driver_mig() ? 0 : UINT32_MAX);
    for (int byte = 0; driver_mig() && byte < 16; byte++)
        at[OFFSET_Device_migUuid + byte] = (uint8_t)(0xf0 - byte * 15 + device);
    return SIZE_OF_Device;
}
