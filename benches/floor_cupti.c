/* The floor: what recording costs whoever does it. The least that a CUPTI collector can be: loaded by the driver through
   CUDA_INJECTION64_PATH, it enables the same activity kinds and the same callbacks as ours, and throws everything away.
   Built by floor_build.py, which takes the numbers from our own sources (floor_calls.h), without any header of NVIDIA's. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "floor_calls.h"

enum { BYTES = 512 << 10, BUFFERS = 96 };

static uint8_t *pool;
static int taken[BUFFERS];
/* FLOOR_KEEP names a file for the buffers as CUPTI gave them, each behind its length: what our decoder is tested on. */
static FILE *kept;
static int (*flush)(uint32_t);

/* FLOOR_CYCLE names a file for what was recorded when, in turns of half a second: nothing and everything. A program is then
   held against itself. (CUDA graphs as a whole, kind 51, are no third turn: switched while graphs run, it ends the program.) */
enum { MOST_KINDS = 64 };
static FILE *cycles;
static int counting;
static uint64_t counts[MOST_KINDS];
static int (*next_record)(uint8_t *, size_t, void **);

/* After cuptiFinalize nobody may ask CUPTI for anything. */
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;
static int finalized;

static void ask_for_records(uint32_t forced) {
    pthread_mutex_lock(&asking);
    if (!finalized)
        flush(forced);
    pthread_mutex_unlock(&asking);
}

static void keep_all(void) {
    ask_for_records(1);
    fclose(kept);
    kept = NULL;
}

/* FLOOR_COUNT names a file for how many kernels there were, how many without a time, and how many of a graph. */
static uint64_t kernels, timeless, of_graphs;

static void say_counts(void) {
    ask_for_records(1);
    FILE *file = fopen(getenv("FLOOR_COUNT"), "w");
    if (file) {
        fprintf(file, "%lu %lu %lu\n", (unsigned long)kernels, (unsigned long)timeless, (unsigned long)of_graphs);
        fclose(file);
    }
}

static void count(const uint8_t *record) {
    uint32_t kind, graph;
    uint64_t start;
    memcpy(&kind, record, sizeof kind);
    if (kind < MOST_KINDS)
        counts[kind]++;
    if (kind == KERNEL) {
        memcpy(&start, record + KERNEL_START, sizeof start);
        memcpy(&graph, record + KERNEL_GRAPH, sizeof graph);
        kernels++;
        timeless += !start;
        of_graphs += graph != 0;
    }
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void requested(uint8_t **buffer, size_t *size, size_t *most) {
    *buffer = NULL;
    *size = 0;
    *most = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < BUFFERS && !*buffer; i++)
        if (!taken[i]) {
            taken[i] = 1;
            *buffer = pool + (size_t)i * BYTES;
            *size = BYTES;
        }
    pthread_mutex_unlock(&lock);
}

static void completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    (void)context, (void)stream, (void)size;
    if (!buffer)
        return;
    if (kept) {
        uint64_t head = valid;
        fwrite(&head, sizeof head, 1, kept);
        fwrite(buffer, 1, valid, kept);
    }
    void *record = NULL;
    while (counting && !next_record(buffer, valid, &record))
        count(record);
    memset(buffer, 0, valid);
    pthread_mutex_lock(&lock);
    taken[(buffer - pool) / BYTES] = 0;
    pthread_mutex_unlock(&lock);
}

static uint64_t now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

static int (*activity)(uint32_t);
static int (*activity_off)(uint32_t);
static int (*callback)(uint32_t, void *, uint32_t, uint32_t);
static void *subscriber;

/* Once a graph was captured while kernels are recorded, CUPTI keeps memory for every launch. Two remedies to try:
   FLOOR_AROUND=1 records nothing from the begin of a capture to its end, FLOOR_LATE=1 nothing until the first one has ended. */
static int around, late, capturing;

static int is_one_of(const uint32_t (*calls)[2], size_t count, uint32_t domain, uint32_t id) {
    for (size_t i = 0; i < count; i++)
        if (calls[i][0] == domain && calls[i][1] == id)
            return 1;
    return 0;
}

static void switch_kinds(int (*kind)(uint32_t)) {
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        kind(KINDS[i]);
}

static void called(void *own, uint32_t domain, uint32_t id, const void *data) {
    (void)own;
    if (!around && !late)
        return;
    int begins = is_one_of(BEGINS, sizeof BEGINS / sizeof *BEGINS, domain, id);
    if (!begins && !is_one_of(ENDS, sizeof ENDS / sizeof *ENDS, domain, id))
        return;
    /* A driver call inside a runtime call is the same capture. */
    static __thread int inside;
    uint32_t site;
    memcpy(&site, data, sizeof site);
    if (domain == RUNTIME)
        inside = !site;
    else if (inside)
        return;
    if (begins && !site && !__atomic_fetch_add(&capturing, 1, __ATOMIC_RELAXED) && around)
        switch_kinds(activity_off);
    if (!begins && site && !__atomic_sub_fetch(&capturing, 1, __ATOMIC_RELAXED))
        if (around || __atomic_exchange_n(&late, 0, __ATOMIC_RELAXED))
            switch_kinds(activity);
}

/* How many of them CUPTI takes. */
static unsigned switch_calls(int on, const uint32_t (*calls)[2], size_t count) {
    unsigned taken = 0;
    for (size_t i = 0; i < count; i++)
        taken += !callback((uint32_t)on, subscriber, calls[i][0], calls[i][1]);
    return taken;
}

/* What is left of the cost in a process that was recorded for a while and is no longer: asked with FLOOR_STOP_AFTER. */
static void *stop_later(void *cupti) {
    const char *finalize = getenv("FLOOR_FINALIZE");
    int (*end)(void) = dlsym(cupti, "cuptiFinalize");
    struct timespec time = {atoi(getenv("FLOOR_STOP_AFTER")), 0};
    nanosleep(&time, NULL);
    int code = 0;
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        code |= activity_off(KINDS[i]);
    around = late = 0;
    switch_calls(0, CALLS, sizeof CALLS / sizeof *CALLS);
    if (finalize && end) {
        ask_for_records(1);
        pthread_mutex_lock(&asking);
        finalized = 1;
        code |= end();
        pthread_mutex_unlock(&asking);
    }
    fprintf(stderr, "floor: stopped, code %d\n", code);
    return NULL;
}

/* A collector that wants to lose little in a crash asks for what is done: FLOOR_FLUSH says every how many milliseconds, and
   FLOOR_FORCED=1 also for what is not done. */
static void *flush_often(void *every) {
    struct timespec time = {(long)every / 1000, (long)every % 1000 * 1000000};
    uint32_t forced = getenv("FLOOR_FORCED") != NULL;
    for (;;) {
        nanosleep(&time, NULL);
        ask_for_records(forced);
    }
    return NULL;
}

/* A line for each turn: what it was, since when, and the records of it by kind. */
static void *take_turns(void *unused) {
    (void)unused;
    for (int on = 1;; on = !on) {
        uint64_t since = now();
        memset(counts, 0, sizeof counts);
        struct timespec half = {0, 500000000};
        nanosleep(&half, NULL);
        fprintf(cycles, "%s %lu", on ? "all" : "off", (unsigned long)since);
        /* What is still inside CUPTI belongs to this turn. */
        ask_for_records(0);
        for (unsigned kind = 0; kind < MOST_KINDS; kind++)
            if (counts[kind])
                fprintf(cycles, " %u:%lu", kind, (unsigned long)counts[kind]);
        fputc('\n', cycles);
        fflush(cycles);
        switch_kinds(on ? activity_off : activity);
        switch_calls(!on, CALLS, sizeof CALLS / sizeof *CALLS);
    }
    return NULL;
}

static int is_off(const char *name) {
    const char *said = getenv(name);
    return said && !strcmp(said, "0");
}

int InitializeInjection(void) {
    const char *path = getenv("FLOOR_CUPTI");
    void *cupti = dlopen(path && *path ? path : "libcupti.so", RTLD_NOW);
    if (!cupti) {
        fprintf(stderr, "floor: %s\n", dlerror());
        return 1;
    }
    int (*subscribe)(void **, void (*)(void *, uint32_t, uint32_t, const void *), void *) = dlsym(cupti, "cuptiSubscribe");
    int (*callbacks)(void (*)(uint8_t **, size_t *, size_t *), void (*)(void *, uint32_t, uint8_t *, size_t, size_t)) =
        dlsym(cupti, "cuptiActivityRegisterCallbacks");
    int (*timestamps)(uint64_t (*)(void)) = dlsym(cupti, "cuptiActivityRegisterTimestampCallback");
    int (*attribute)(uint32_t, size_t *, void *) = dlsym(cupti, "cuptiActivitySetAttribute");
    activity = dlsym(cupti, "cuptiActivityEnable");
    activity_off = dlsym(cupti, "cuptiActivityDisable");
    callback = dlsym(cupti, "cuptiEnableCallback");
    flush = dlsym(cupti, "cuptiActivityFlushAll");
    if (!subscribe || !callbacks || !activity || !activity_off || !callback || !flush) {
        fprintf(stderr, "floor: libcupti lacks a function\n");
        return 1;
    }
    pool = mmap(NULL, (size_t)BYTES * BUFFERS, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (pool == MAP_FAILED)
        return 1;
    int code = is_off("FLOOR_SUBSCRIBE") ? 0 : subscribe(&subscriber, called, NULL);
    if (timestamps && !is_off("FLOOR_CLOCK"))
        timestamps(now);
    code |= callbacks(requested, completed);
    if (attribute) {
        size_t size = 1;
        uint8_t value = 1;
        attribute(ZEROED_BUFFERS, &size, &value);
        /* More attributes, to see what they change: FLOOR_ATTRIBUTE=number=value=bytes,number=value=bytes. */
        unsigned number, chosen, bytes;
        const char *more = getenv("FLOOR_ATTRIBUTE");
        while (more && sscanf(more, "%u=%u=%u", &number, &chosen, &bytes) == 3) {
            size_t wide = chosen;
            size = bytes;
            code |= attribute(number, &size, &wide);
            more = strchr(more, ',');
            more = more ? more + 1 : NULL;
        }
    }
    around = getenv("FLOOR_AROUND") != NULL;
    late = getenv("FLOOR_LATE") != NULL;
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS && !is_off("FLOOR_KINDS") && !late; i++)
        code |= activity(KINDS[i]) && KINDS[i] == KERNEL;
    /* One more kind, to see what it costs: 38 is CUPTI's waits, 49 its allocations. */
    if (getenv("FLOOR_MORE"))
        code |= activity((unsigned)atoi(getenv("FLOOR_MORE"))) != 0;
    unsigned accepted = 0;
    /* FLOOR_CALLS=165: only that one, which is cudaDeviceSynchronize. */
    unsigned only = getenv("FLOOR_CALLS") ? (unsigned)atoi(getenv("FLOOR_CALLS")) : 0;
    if (only)
        accepted += !callback(1, subscriber, 2, only);
    if (!getenv("FLOOR_CALLS"))
        accepted += switch_calls(1, CALLS, sizeof CALLS / sizeof *CALLS);
    if (around || late) {
        switch_calls(1, BEGINS, sizeof BEGINS / sizeof *BEGINS);
        switch_calls(1, ENDS, sizeof ENDS / sizeof *ENDS);
    }
    if (getenv("FLOOR_KEEP")) {
        kept = fopen(getenv("FLOOR_KEEP"), "wb");
        code |= !kept || atexit(keep_all);
    }
    pthread_t thread;
    next_record = dlsym(cupti, "cuptiActivityGetNextRecord");
    if (getenv("FLOOR_CYCLE") && next_record) {
        counting = 1;
        cycles = fopen(getenv("FLOOR_CYCLE"), "w");
        code |= !cycles || pthread_create(&thread, NULL, take_turns, NULL);
    }
    if (getenv("FLOOR_COUNT") && next_record) {
        counting = 1;
        code |= atexit(say_counts);
    }
    if (getenv("FLOOR_STOP_AFTER"))
        code |= pthread_create(&thread, NULL, stop_later, cupti);
    if (getenv("FLOOR_FLUSH"))
        code |= pthread_create(&thread, NULL, flush_often, (void *)atol(getenv("FLOOR_FLUSH")));
    if (getenv("FLOOR_VERBOSE"))
        fprintf(stderr, "floor: code %d, %u of %zu callbacks\n", code, accepted, sizeof CALLS / sizeof *CALLS);
    return 1;
}
