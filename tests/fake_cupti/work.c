/* What one line of a script means as work of a device or as another record. When it happens is left to gpu.c. */
#include "script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const COPIES[] = {"?", "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
static const char *const MEMORIES[] = {"?", "pageable", "pinned", "device", "array", "managed"};

static uint32_t among(const struct line *line, const char *text, const char *const *words, int count)
{
    for (int at = 0; at < count; at++)
        if (!strcmp(text, words[at]))
            return (uint32_t)at;
    char *end;
    unsigned long number = strtoul(text, &end, 0);
    if (*end)
        wrong(line, text);
    return (uint32_t)number;
}

#define AMONG(text, words) among(line, text, words, sizeof words / sizeof *words)

static void sides(const struct line *line, const char *key, int32_t side[3])
{
    int x = 1, y = 1, z = 1;
    sscanf(value_of(line, key, "1,1,1"), "%d,%d,%d", &x, &y, &z);
    side[0] = x;
    side[1] = y;
    side[2] = z;
}

static void everywhere(const struct line *line, struct fake_work *work)
{
    work->device = (uint32_t)number_of(line, "device", 0);
    work->stream = (uint32_t)number_of(line, "stream", 7);
    work->graph = (uint32_t)number_of(line, "graph", 0);
    work->node = (uint64_t)number_of(line, "node", 0);
    work->bytes = (uint64_t)number_of(line, "bytes", 0);
}

int work_of(const struct line *line, struct fake_work *work)
{
    const char *verb = line->word[0];
    *work = (struct fake_work){0};
    everywhere(line, work);
    if (!strcmp(verb, "kernel")) {
        work->kind = FAKE_KERNEL;
        if (line->words < 2)
            wrong(line, "kernel NAME");
        work->name = strcmp(line->word[1], "NULL") ? line->word[1] : NULL;
        sides(line, "grid", work->grid);
        sides(line, "block", work->block);
        work->registers = (uint32_t)number_of(line, "registers", 32);
        work->shared_static = (int32_t)number_of(line, "static", 0);
        work->shared_dynamic = (int32_t)number_of(line, "dynamic", 0);
        work->launch_type = (uint32_t)number_of(line, "type", 0);
    } else if (!strcmp(verb, "memcpy")) {
        work->kind = FAKE_MEMCPY;
        work->copy_kind = AMONG(value_of(line, "kind", "HtoD"), COPIES);
        int from_host = work->copy_kind == 1 || work->copy_kind == 9, to_host = work->copy_kind == 2 || work->copy_kind == 9;
        work->from = AMONG(value_of(line, "from", from_host ? "pageable" : "device"), MEMORIES);
        work->to = AMONG(value_of(line, "to", to_host ? "pageable" : "device"), MEMORIES);
        work->asynchronous = strstr(value_of(line, "via", usual_call(line)), "Async") != NULL;
    } else if (!strcmp(verb, "peer")) {
        work->kind = FAKE_MEMCPY_PEER;
        work->copy_kind = 10;
        work->from = work->to = 3;
        work->from_device = (uint32_t)number_of(line, "from", 0);
        work->to_device = (uint32_t)number_of(line, "to", 1);
        work->asynchronous = 1;
    } else if (!strcmp(verb, "memset")) {
        work->kind = FAKE_MEMSET;
        work->value = (uint32_t)number_of(line, "value", 0);
        work->memory = AMONG(value_of(line, "memory", "device"), MEMORIES);
    } else
        return 0;
    return 1;
}

const char *usual_call(const struct line *line)
{
    static const char *const usual[][2] = {
        {"kernel", "cudaLaunchKernel"},  {"memcpy", "cudaMemcpyAsync"},   {"peer", "cudaMemcpyPeerAsync"},
        {"memset", "cudaMemsetAsync"},   {"graph", "cudaGraphLaunch"},    {"malloc", "cudaMalloc"},
        {"free", "cudaFree"},            {"reset", "cudaDeviceReset"},    {"captured", "cudaLaunchKernel"},
        {"pool", "cuMemAllocAsync"},     {"instantiate", "cudaGraphInstantiateWithFlags"},
        {"create", "cuMemCreate"},       {"unhandle", "cuMemRelease"},    {"map", "cuMemMap"},
        {"unmap", "cuMemUnmap"},         {"retain", "cuMemRetainAllocationHandle"},
        {"import", "cuMemImportFromShareableHandle"}, {"export", "cuMemExportToShareableHandle"},
        {"reserve", "cuMemAddressReserve"}, {"unreserve", "cuMemAddressFree"},
        {"ipc-open", "cudaIpcOpenMemHandle"}, {"ipc-close", "cudaIpcCloseMemHandle"},
    };
    for (size_t at = 0; at < sizeof usual / sizeof *usual; at++)
        if (!strcmp(line->word[0], usual[at][0]))
            return usual[at][1];
    return "";
}

int record_of(const struct line *line, struct fake_work *work)
{
    const char *verb = line->word[0];
    *work = (struct fake_work){0};
    everywhere(line, work);
    work->start = fake_monotonic();
    work->end = work->start + (uint64_t)number_of(line, "us", 10) * 1000;
    work->address = strtoull(value_of(line, "address", "0x7f0000000000"), NULL, 0);
    if (!strcmp(verb, "malloc") || !strcmp(verb, "free")) {
        work->kind = FAKE_MEMORY;
        work->type = *verb == 'm' ? 1 : 2;
        work->memory = AMONG(value_of(line, "memory", "device"), MEMORIES);
        work->asynchronous = strstr(value_of(line, "via", ""), "Async") != NULL;
        work->pool = (uint32_t)number_of(line, "pool", work->asynchronous);
    } else if (!strcmp(verb, "pool")) {
        static const char *const types[] = {"?", "created", "destroyed", "trimmed"};
        work->kind = FAKE_POOL;
        work->type = AMONG(line->words > 1 ? line->word[1] : "created", types);
    } else if (!strcmp(verb, "migrate")) {
        static const char *const types[] = {"?", "HtoD", "DtoH"};
        work->kind = FAKE_MIGRATION;
        work->type = AMONG(value_of(line, "kind", "HtoD"), types);
    } else if (!strcmp(verb, "overhead")) {
        work->kind = FAKE_OVERHEAD;
        work->type = (uint32_t)number_of(line, "kind", 1 << 16);
    } else if (!strcmp(verb, "unknown")) {
        work->kind = FAKE_UNKNOWN;
        work->unknown_kind = (uint32_t)number_of(line, "kind", 900);
        work->unknown_size = (uint32_t)number_of(line, "size", 64);
    } else
        return 0;
    return 1;
}

void spin(long microseconds)
{
    uint64_t until = fake_monotonic() + (uint64_t)microseconds * 1000;
    while (fake_monotonic() < until) {
    }
}
