/* What the two stand-in libraries agree on: libcuda.so.1 plays a script and tells libcupti.so what happens. How CUPTI's
 * records look in memory is left to layout.h, which build.py writes for one CUDA version. */
#ifndef FAKE_H
#define FAKE_H

#include <stddef.h>
#include <stdint.h>

#define EXPORT __attribute__((visibility("default")))

enum fake_kind {
    FAKE_KERNEL = 1,
    FAKE_MEMCPY,
    FAKE_MEMCPY_PEER,
    FAKE_MEMSET,
    FAKE_SYNC,
    FAKE_MEMORY,
    FAKE_POOL,
    FAKE_OVERHEAD,
    FAKE_MIGRATION,
    FAKE_API,
    FAKE_CONTEXT,
    FAKE_UNKNOWN,
};

/* One thing that a device did. Times are the device's own clock, which runs as CLOCK_MONOTONIC does. */
struct fake_work {
    enum fake_kind kind;
    const char *name;
    uint64_t start, end, bytes, address, node;
    uint32_t device, context, stream, correlation, graph;
    int32_t grid[3], block[3], shared_static, shared_dynamic;
    uint32_t registers, launch_type;
    uint32_t copy_kind, from, to, from_device, to_device, asynchronous;
    uint32_t type, memory, pool, value;
    /* An API call: its domain, id and thread. A record unknown to everybody: its kind and size. */
    uint32_t domain, id, thread, unknown_kind, unknown_size;
    struct fake_work *next;
};

/* One API call as a subscriber sees it, at its begin (site 0) and its end (site 1). */
struct fake_call {
    int domain, site;
    uint32_t id, correlation, context_uid;
    const char *function, *symbol;
    void *context;
    int *result;
    uint64_t *keep;
    /* The call's arguments, eight bytes each. */
    const uint64_t *arguments;
};

/* What libcupti gives libcuda when it is first called. */
struct fake_tool {
    void (*api)(const struct fake_call *call);
    void (*resource)(uint32_t id, void *context, void *graph, void *node, void *original);
    void (*state)(uint32_t id, int result, const char *message);
    void (*work)(const struct fake_work *work);
    /* The script's lines that concern the tool: hold, release, twice, truncate, drop, finalize, ... */
    int (*command)(const char *verb, const char *argument, long number);
};

/* What libcupti asks of libcuda. */
typedef void fake_attach_function(const struct fake_tool *tool);
/* The result that the script wants from this call of this function; 0: the real one. */
typedef int fake_failure_function(const char *function);
/* 0: cuInit was not called or failed; 1: it is on its way; 2: it was called; 3: in the parent, and this is a fork. */
typedef int fake_ready_function(void);
typedef int fake_context_function(void *context, uint32_t *uid, uint32_t *device);
/* How many devices there are; whether they are instances of MIG. */
typedef int fake_mig_function(void);
/* "kill", "hang" or "" for what a flush does besides. */
typedef const char *fake_on_flush_function(void);

/* A line for FAKE_CUPTI_LOG, where tests look up what was called. */
void fake_log(const char *format, ...) __attribute__((format(printf, 1, 2)));
uint64_t fake_monotonic(void);

#endif
