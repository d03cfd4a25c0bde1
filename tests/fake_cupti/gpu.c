/* A device without hardware: contexts that come and go, streams on which one piece of work follows the other, and the
 * host's waiting for them. The device's clock runs as CLOCK_MONOTONIC does, unless a script skews it. */
#include "driver.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#define MOST_STREAMS 256
/* From the end of a launch call to the work's start on an idle stream. */
#define LAUNCH_LATENCY_NS 4000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct context *contexts[MOST_DEVICES];
static struct stream {
    uint32_t device, id;
    uint64_t busy_until;
} streams[MOST_STREAMS];
static int stream_count;
static uint32_t last_context, last_correlation;
static int64_t skew;
static int lost;
static __thread uint32_t current_device;

uint32_t next_correlation(void)
{
    return __atomic_add_fetch(&last_correlation, 1, __ATOMIC_RELAXED);
}

struct context *current_context(void)
{
    return contexts[current_device];
}

struct context *context_of(uint32_t device)
{
    if (device >= MOST_DEVICES)
        device = 0;
    current_device = device;
    pthread_mutex_lock(&lock);
    struct context *context = contexts[device];
    int made = !context;
    if (made) {
        context = calloc(1, sizeof *context);
        context->uid = ++last_context;
        context->device = device;
        contexts[device] = context;
    }
    pthread_mutex_unlock(&lock);
    if (made) {
        tell_resource(1, context, NULL, NULL, NULL); /* CONTEXT_CREATED */
        struct fake_work record = {.kind = FAKE_CONTEXT, .context = context->uid, .device = device};
        tell_work(&record);
    }
    return context;
}

void reset_device(uint32_t device)
{
    struct context *context = contexts[device];
    if (!context)
        return;
    wait_for(device, 0, 1);
    tell_resource(2, context, NULL, NULL, NULL); /* CONTEXT_DESTROY_STARTING */
    /* As the real CUPTI does, everything recorded for a context is delivered before the context goes. */
    tell_command("deliver", "", 0);
    pthread_mutex_lock(&lock);
    contexts[device] = NULL;
    for (int at = 0; at < stream_count; at++)
        if (streams[at].device == device)
            streams[at].busy_until = 0;
    pthread_mutex_unlock(&lock);
    /* Never freed: a profiler may still hold the pointer, and the real driver's memory is not ours to model. */
}

static struct stream *stream_of(uint32_t device, uint32_t id)
{
    for (int at = 0; at < stream_count; at++)
        if (streams[at].device == device && streams[at].id == id)
            return &streams[at];
    if (stream_count == MOST_STREAMS)
        return &streams[0];
    struct stream *stream = &streams[stream_count++];
    *stream = (struct stream){device, id, 0};
    return stream;
}

void place_work(struct fake_work *work, uint64_t duration)
{
    pthread_mutex_lock(&lock);
    struct stream *stream = stream_of(work->device, work->stream);
    uint64_t start = fake_monotonic() + LAUNCH_LATENCY_NS;
    if (stream->busy_until > start)
        start = stream->busy_until;
    stream->busy_until = start + duration;
    pthread_mutex_unlock(&lock);
    work->start = start + (uint64_t)skew;
    work->end = start + duration + (uint64_t)skew;
}

void wait_for(uint32_t device, uint32_t stream, int every)
{
    uint64_t until = 0;
    pthread_mutex_lock(&lock);
    for (int at = 0; at < stream_count; at++)
        if (streams[at].device == device && (every || streams[at].id == stream) && streams[at].busy_until > until)
            until = streams[at].busy_until;
    pthread_mutex_unlock(&lock);
    if (lost)
        return;
    struct timespec moment = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
    while (until > fake_monotonic())
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &moment, NULL);
}

void skew_device(int64_t nanoseconds)
{
    skew = nanoseconds;
}

void lose_device(void)
{
    lost = 1;
}

int device_is_lost(void)
{
    return lost;
}
