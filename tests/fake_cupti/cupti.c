/* The stand-in libcupti.so: who is subscribed, which callbacks are wanted, and what a profiler asks besides. It finds
 * the stand-in libcuda.so.1 when first called and is told there what happens; activity is left to activity.c. */
#define _GNU_SOURCE
#include "cupti.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DOMAINS 8
#define MOST_IDS 1024

fake_failure_function *driver_failure;
fake_context_function *driver_context;
fake_mig_function *driver_mig;
fake_on_flush_function *driver_on_flush;
uint64_t (*timestamp_callback)(void);
static fake_ready_function *driver_ready;

typedef void callback_function(void *user, uint32_t domain, uint32_t id, const void *data);
static struct subscriber {
    callback_function *callback;
    void *user;
} *subscriber;
static uint8_t wanted[DOMAINS][MOST_IDS];
static pthread_mutex_t attaching = PTHREAD_MUTEX_INITIALIZER;

static void call_back(uint32_t domain, uint32_t id, const void *data)
{
    struct subscriber *now = __atomic_load_n(&subscriber, __ATOMIC_ACQUIRE);
    if (now && domain < DOMAINS && id < MOST_IDS && wanted[domain][id])
        now->callback(now->user, domain, id, data);
}

static void on_api(const struct fake_call *call)
{
    uint8_t at[SIZE_OF_CallbackData] = {0};
    PUT(CallbackData, callbackSite, call->site);
    PUT(CallbackData, functionName, (uintptr_t)call->function);
    PUT(CallbackData, functionParams, (uintptr_t)call->arguments);
    PUT(CallbackData, functionReturnValue, call->site ? (uintptr_t)call->result : 0);
    PUT(CallbackData, symbolName, (uintptr_t)call->symbol);
    PUT(CallbackData, context, (uintptr_t)call->context);
    PUT(CallbackData, contextUid, call->context_uid);
    PUT(CallbackData, correlationData, (uintptr_t)call->keep);
    PUT(CallbackData, correlationId, call->correlation);
    call_back((uint32_t)call->domain, call->id, at);
}

static void on_resource(uint32_t id, void *context, void *graph, void *node, void *original)
{
    uint8_t graph_data[SIZE_OF_GraphData] = {0}, data[SIZE_OF_ResourceData] = {0}, *at = graph_data;
    PUT(GraphData, graph, (uintptr_t)graph);
    PUT(GraphData, node, (uintptr_t)node);
    PUT(GraphData, originalNode, (uintptr_t)original);
    at = data;
    PUT(ResourceData, context, (uintptr_t)context);
    PUT(ResourceData, resourceDescriptor, (uintptr_t)(graph ? graph_data : NULL));
    call_back(3, id, data);
}

static void on_state(uint32_t id, int result, const char *message)
{
#ifdef SIZE_OF_StateData
    uint8_t at[SIZE_OF_StateData] = {0};
    PUT(StateData, notification_result, result);
    PUT(StateData, notification_message, (uintptr_t)message);
    call_back(6, id, at);
#else
    (void)id, (void)result, (void)message;
#endif
}

static int on_command(const char *verb, const char *argument, long number)
{
    if (!strcmp(verb, "finalize")) {
        /* As another profiler in the process does when it is done: everybody's subscription ends. */
        __atomic_store_n(&subscriber, NULL, __ATOMIC_RELEASE);
        stop_activity();
        return 1;
    }
    if (!strcmp(verb, "subscribe")) {
        printf("subscribe %d\n", subscriber ? MULTIPLE : OK);
        fflush(stdout);
        return 1;
    }
    return activity_command(verb, argument, number);
}

static const struct fake_tool TOOL = {on_api, on_resource, on_state, add_work, on_command};

static void attach(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (!driver)
        return;
    fake_attach_function *attach_to = (fake_attach_function *)dlsym(driver, "fake_attach");
    if (!attach_to)
        return;
    driver_failure = (fake_failure_function *)dlsym(driver, "fake_failure");
    driver_ready = (fake_ready_function *)dlsym(driver, "fake_is_ready");
    driver_context = (fake_context_function *)dlsym(driver, "fake_context");
    driver_mig = (fake_mig_function *)dlsym(driver, "fake_mig");
    driver_on_flush = (fake_on_flush_function *)dlsym(driver, "fake_on_flush");
    attach_to(&TOOL);
}

int begin(const char *function)
{
    pthread_mutex_lock(&attaching);
    if (!driver_ready)
        attach();
    pthread_mutex_unlock(&attaching);
    int ready = driver_ready ? driver_ready() : 0;
    if (ready == 3)
        fake_log("after fork %s", function);
    else
        fake_log("%s", function);
    if (ready != 1 && ready != 2) {
        if (CUDA_VERSION == 1302)
            raise(SIGSEGV); /* What the real 13.2 does without a driver. */
        return CUDA_VERSION >= 1300 ? UNKNOWN : NOT_INITIALIZED;
    }
    return driver_failure(function);
}

static uint64_t their_clock(void)
{
    if (timestamp_callback)
        return timestamp_callback();
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The offset between the two clocks is measured once for each clock, so that two records are as far apart in one as in
 * the other: the reading in the narrowest of many brackets counts. */
uint64_t to_activity_time(uint64_t device_time)
{
    static pthread_mutex_t measuring = PTHREAD_MUTEX_INITIALIZER;
    static uint64_t (*measured)(void);
    static int64_t offset;
    static int known;
    pthread_mutex_lock(&measuring);
    if (!known || measured != timestamp_callback) {
        uint64_t narrowest = UINT64_MAX;
        for (int round = 0; round < 100; round++) {
            uint64_t before = fake_monotonic(), theirs = their_clock(), after = fake_monotonic();
            if (after - before < narrowest) {
                narrowest = after - before;
                offset = (int64_t)(theirs - (before + narrowest / 2));
            }
        }
        /* It is the same clock if the difference is less than the bracket. */
        if ((uint64_t)llabs(offset) <= narrowest)
            offset = 0;
        known = 1;
        measured = timestamp_callback;
    }
    uint64_t time = device_time + (uint64_t)offset;
    pthread_mutex_unlock(&measuring);
    return time;
}

EXPORT int cuptiGetVersion(uint32_t *version)
{
    int ready = begin(__func__);
    if (ready && CUDA_VERSION >= 1303)
        return ready;
    if (driver_failure && driver_failure("cuptiGetVersion.value"))
        *version = (uint32_t)driver_failure("cuptiGetVersion.value");
    else
        *version = CUPTI_VERSION;
    return ready == NOT_INITIALIZED || ready == UNKNOWN ? OK : ready;
}

EXPORT int cuptiSubscribe(void **handle, callback_function *callback, void *user)
{
    BEGIN;
    if (subscriber)
        return MULTIPLE;
    struct subscriber *mine = malloc(sizeof *mine);
    *mine = (struct subscriber){callback, user};
    memset(wanted, 0, sizeof wanted);
    __atomic_store_n(&subscriber, mine, __ATOMIC_RELEASE);
    *handle = mine;
    return OK;
}

EXPORT int cuptiUnsubscribe(void *handle)
{
    BEGIN;
    if (!handle || handle != subscriber)
        return INVALID_PARAMETER;
    __atomic_store_n(&subscriber, NULL, __ATOMIC_RELEASE);
    deliver_held_late();
    return OK;
}

EXPORT int cuptiEnableCallback(uint32_t enable, void *handle, uint32_t domain, uint32_t id)
{
    int failure = begin(__func__);
    if (failure)
        return failure;
    if (!handle || handle != subscriber || domain >= DOMAINS || id >= MOST_IDS)
        return INVALID_PARAMETER;
    /* An id that this version does not know yet. */
    if ((domain == 1 && id >= DRIVER_IDS) || (domain == 2 && id >= RUNTIME_IDS))
        return INVALID_PARAMETER;
    wanted[domain][id] = enable != 0;
    return OK;
}

EXPORT int cuptiEnableDomain(uint32_t enable, void *handle, uint32_t domain)
{
    BEGIN;
    if (!handle || handle != subscriber || domain >= DOMAINS)
        return INVALID_PARAMETER;
    memset(wanted[domain], enable != 0, MOST_IDS);
    return OK;
}

EXPORT int cuptiGetCallbackState(uint32_t *enable, void *handle, uint32_t domain, uint32_t id)
{
    BEGIN;
    if (!handle || handle != subscriber || domain >= DOMAINS || id >= MOST_IDS)
        return INVALID_PARAMETER;
    *enable = wanted[domain][id];
    return OK;
}

EXPORT int cuptiActivityRegisterTimestampCallback(uint64_t (*callback)(void))
{
    BEGIN;
    timestamp_callback = callback;
    return OK;
}

EXPORT int cuptiActivitySetAttribute(uint32_t attribute, size_t *size, void *value)
{
    BEGIN;
    uint64_t number = 0;
    if (!size || !value)
        return INVALID_PARAMETER;
    memcpy(&number, value, *size < 8 ? *size : 8);
    fake_log("attribute %u = %llu", attribute, (unsigned long long)number);
    return OK;
}

EXPORT int cuptiSetThreadIdType(uint32_t type)
{
    BEGIN;
    system_thread_ids = type;
    return OK;
}

EXPORT int cuptiGetTimestamp(uint64_t *now)
{
    /* Not logged: a profiler reads it many times, between two readings of another clock. */
    int failure = driver_failure ? driver_failure(__func__) : NOT_INITIALIZED;
    if (failure)
        return failure;
    *now = to_activity_time(fake_monotonic());
    return OK;
}

EXPORT int cuptiGetResultString(int code, const char **text)
{
    if (driver_failure && driver_failure(__func__)) {
        *text = NULL;
        return UNKNOWN;
    }
    switch (code) {
    case OK: *text = "CUPTI_SUCCESS"; break;
    case MULTIPLE: *text = "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"; break;
    case NOT_INITIALIZED: *text = "CUPTI_ERROR_NOT_INITIALIZED"; break;
    case UNKNOWN: *text = "CUPTI_ERROR_UNKNOWN"; break;
    default: *text = "CUPTI_ERROR_OF_THE_FAKE";
    }
    return OK;
}

EXPORT int cuptiGetErrorMessage(int code, const char **text)
{
    return cuptiGetResultString(code, text);
}

EXPORT int cuptiGetLastError(void)
{
    BEGIN;
    return OK;
}

EXPORT int cuptiGetDeviceId(void *context, uint32_t *device)
{
    BEGIN;
    uint32_t uid;
    return driver_context(context, &uid, device) ? OK : 3;
}

EXPORT int cuptiGetContextId(void *context, uint32_t *uid)
{
    BEGIN;
    uint32_t device;
    return driver_context(context, uid, &device) ? OK : 3;
}

EXPORT int cuptiGetStreamIdEx(void *context, void *stream, uint8_t per_thread, uint32_t *id)
{
    BEGIN;
    (void)context;
    // Without a handle: the device's stream, or the thread's own.
    *id = stream ? (uint32_t)(uintptr_t)stream : per_thread ? 8 : 7;
    return OK;
}

EXPORT int cuptiGetGraphNodeId(void *node, uint64_t *id)
{
    BEGIN;
    *id = (uintptr_t)node;
    return OK;
}

EXPORT int cuptiGetGraphId(void *graph, uint32_t *id)
{
    BEGIN;
    *id = (uint32_t)(uintptr_t)graph;
    return OK;
}

EXPORT int cuptiGetGraphExecId(void *graph, uint32_t *id)
{
    BEGIN;
    *id = (uint32_t)(uintptr_t)graph;
    return OK;
}

EXPORT int cuptiActivityConfigureUnifiedMemoryCounter(void *config, uint32_t count)
{
    BEGIN;
    return config && count ? OK : INVALID_PARAMETER;
}

EXPORT int cuptiActivityEnableLatencyTimestamps(uint8_t enable)
{
    BEGIN;
    (void)enable;
    return OK;
}

EXPORT int cuptiFinalize(void)
{
    BEGIN;
    __atomic_store_n(&subscriber, NULL, __ATOMIC_RELEASE);
    stop_activity();
    deliver_held_late();
    return OK;
}
