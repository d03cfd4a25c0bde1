/* The stand-in libcuda.so.1: the driver's functions that a program or a profiler asks about a machine, and what cuInit
 * does for profilers: load CUDA_INJECTION64_PATH and call its InitializeInjection. It has no device; a script plays one. */
#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_TOOLS 4

static pthread_mutex_t once = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_once_t settings_once = PTHREAD_ONCE_INIT;
static int state;
static pid_t owner;
static const struct fake_tool *tools[MOST_TOOLS];

int fake_ready(void)
{
    if (state && owner != getpid())
        return 3;
    return state;
}

static void inject(const char *path)
{
    if (!path || !*path)
        return;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fake_log("injection failed %s", dlerror());
        return;
    }
    int (*start)(void) = (int (*)(void))dlsym(library, "InitializeInjection");
    fake_log("injection %s", start ? path : "has no InitializeInjection");
    if (start)
        fake_log("InitializeInjection gave %d", start());
}

EXPORT int cuInit(unsigned flags)
{
    (void)flags;
    pthread_once(&settings_once, read_settings);
    fake_log("cuInit");
    if (settings.init_result)
        return settings.init_result;
    pthread_mutex_lock(&once);
    int result = 0;
    if (fake_ready() == 3) {
        /* A fork of a process that uses CUDA cannot use it: CUDA_ERROR_NOT_INITIALIZED. */
        result = 3;
    } else if (!state) {
        /* Which library is wanted is asked first, as by the real one; what else it does takes its time. */
        const char *wanted = getenv("CUDA_INJECTION64_PATH");
        char *path = wanted ? strdup(wanted) : NULL;
        fake_log("cuInit began");
        if (settings.init_us)
            usleep((useconds_t)settings.init_us);
        owner = getpid();
        state = 1;
        inject(path);
        free(path);
        state = 2;
    }
    pthread_mutex_unlock(&once);
    return result;
}

EXPORT void fake_attach(const struct fake_tool *tool)
{
    for (int at = 0; at < MOST_TOOLS; at++) {
        if (tools[at] == tool)
            return;
        if (!tools[at]) {
            tools[at] = tool;
            return;
        }
    }
}

EXPORT int fake_is_ready(void)
{
    return fake_ready();
}

EXPORT int fake_failure(const char *function)
{
    pthread_once(&settings_once, read_settings);
    for (int at = 0; at < settings.failure_count; at++) {
        struct failure *failure = &settings.failures[at];
        if (strcmp(failure->function, function))
            continue;
        if (__atomic_sub_fetch(&failure->after, 1, __ATOMIC_RELAXED) >= 0)
            continue;
        if (__atomic_sub_fetch(&failure->times, 1, __ATOMIC_RELAXED) >= 0)
            return failure->code;
    }
    return 0;
}

EXPORT const char *fake_on_flush(void)
{
    return settings.on_flush;
}

EXPORT int fake_mig(void)
{
    return settings.mig;
}

EXPORT int fake_context(void *context, uint32_t *uid, uint32_t *device)
{
    struct context *known = context ? context : current_context();
    if (!known)
        return 0;
    *uid = known->uid;
    *device = known->device;
    return 1;
}

#define EACH_TOOL(call)                                                  \
    for (int at = 0; at < MOST_TOOLS && tools[at]; at++)                 \
    tools[at]->call

void tell_api(const struct fake_call *call)
{
    EACH_TOOL(api(call));
}

void tell_resource(uint32_t id, void *context, void *graph, void *node, void *original)
{
    EACH_TOOL(resource(id, context, graph, node, original));
}

void tell_state(uint32_t id, int result, const char *message)
{
    EACH_TOOL(state(id, result, message));
}

void tell_work(const struct fake_work *work)
{
    EACH_TOOL(work(work));
}

int tell_command(const char *verb, const char *argument, long number)
{
    int known = 0;
    for (int at = 0; at < MOST_TOOLS && tools[at]; at++)
        known |= tools[at]->command(verb, argument, number);
    return known;
}

EXPORT int cuDriverGetVersion(int *version)
{
    pthread_once(&settings_once, read_settings);
    *version = settings.driver_version;
    return 0;
}

/* As every function of the real driver but a few does before cuInit, and in the fork of a process that called it:
 * CUDA_ERROR_NOT_INITIALIZED. */
#define NEEDS_INIT                               \
    do {                                         \
        if (fake_ready() != 1 && fake_ready() != 2) \
            return 3;                            \
    } while (0)

EXPORT int cuDeviceGetCount(int *count)
{
    NEEDS_INIT;
    *count = settings.devices;
    return device_is_lost() ? 100 : 0;
}

EXPORT int cuDeviceGet(int *device, int ordinal)
{
    NEEDS_INIT;
    if (ordinal < 0 || ordinal >= settings.devices)
        return 101;
    *device = ordinal;
    return 0;
}

EXPORT int cuDeviceGetName(char *name, int length, int device)
{
    NEEDS_INIT;
    snprintf(name, length, "Fake GPU %d", device);
    return 0;
}

EXPORT int cuDeviceGetUuid(unsigned char uuid[16], int device)
{
    NEEDS_INIT;
    for (int at = 0; at < 16; at++)
        uuid[at] = (unsigned char)(at * 16 + device);
    return 0;
}

EXPORT int cuDeviceGetUuid_v2(unsigned char uuid[16], int device)
{
    return cuDeviceGetUuid(uuid, device);
}

EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    NEEDS_INIT;
    (void)device;
    *bytes = (size_t)80 << 30;
    return 0;
}

EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    NEEDS_INIT;
    (void)device;
    switch (attribute) {
    case 16: *value = 132; break;      /* multiprocessors */
    case 36: *value = 2619000; break;  /* memory clock, kHz */
    case 37: *value = 5120; break;     /* bus width, bits */
    case 75: *value = 9; break;        /* compute capability */
    case 76: *value = 0; break;
    default: *value = 0;
    }
    return 0;
}

EXPORT int cuDeviceGetPCIBusId(char *text, int length, int device)
{
    NEEDS_INIT;
    snprintf(text, length, "0000:%02x:00.0", device + 1);
    return 0;
}

EXPORT int cuCtxGetCurrent(void **context)
{
    NEEDS_INIT;
    *context = current_context();
    return 0;
}

EXPORT int cuCtxGetDevice(int *device)
{
    NEEDS_INIT;
    struct context *context = current_context();
    if (!context)
        return 201;
    *device = (int)context->device;
    return 0;
}

EXPORT int cuGetErrorString(int code, const char **text)
{
    *text = code ? "an error of the fake driver" : "no error";
    return 0;
}

EXPORT int cuGetErrorName(int code, const char **text)
{
    *text = code ? "CUDA_ERROR_FAKE" : "CUDA_SUCCESS";
    return 0;
}
