/* CUPTI's activity functions as a profiler calls them: which kinds, whose buffers, flushes, and the walk through a buffer.
 * The buffers themselves are in buffers.c. */
#include "buffers.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

EXPORT int cuptiActivityEnable(uint32_t kind)
{
    BEGIN;
    fake_log("enable %u", kind);
    char one[48];
    snprintf(one, sizeof one, "cuptiActivityEnable.%u", kind);
    int wanted = driver_failure(one);
    if (wanted)
        return wanted;
    if (!kind || kind >= MOST_KINDS)
        return INVALID_KIND;
    pthread_mutex_lock(&lock);
    enabled[kind] = 1;
    pthread_mutex_unlock(&lock);
    return OK;
}

EXPORT int cuptiActivityDisable(uint32_t kind)
{
    BEGIN;
    fake_log("disable %u", kind);
    if (kind < MOST_KINDS)
        enabled[kind] = 0;
    return OK;
}

EXPORT int cuptiActivityEnableRuntimeApi(uint32_t id, uint8_t enable)
{
    BEGIN;
    chosen[2][id % MOST_KINDS] = enable;
    return OK;
}

EXPORT int cuptiActivityEnableDriverApi(uint32_t id, uint8_t enable)
{
    BEGIN;
    chosen[1][id % MOST_KINDS] = enable;
    return OK;
}

EXPORT int cuptiActivityRegisterCallbacks(request_function *requested, complete_function *completed)
{
    BEGIN;
    if (!requested || !completed)
        return INVALID_PARAMETER;
    register_callbacks(requested, completed);
    return OK;
}

EXPORT int cuptiActivityFlushPeriod(uint32_t milliseconds)
{
    BEGIN;
    period_ms = milliseconds;
    return OK;
}

EXPORT int cuptiActivityFlushAll(uint32_t flag)
{
    BEGIN;
    const char *besides = driver_on_flush();
    if (!strcmp(besides, "hang"))
        for (;;)
            pause();
    pthread_mutex_lock(&lock);
    settle((flag & 1) != 0);
    if (!strcmp(besides, "kill"))
        die_in_the_middle();
    close_buffer();
    give_back();
    pthread_mutex_unlock(&lock);
    return OK;
}

EXPORT int cuptiActivityFlush(void *context, uint32_t stream, uint32_t flag)
{
    (void)context, (void)stream;
    return cuptiActivityFlushAll(flag);
}

EXPORT int cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, uint8_t **record)
{
    /* Not logged, for it is called once a record. */
    int wanted = driver_failure ? driver_failure(__func__) : 0;
    if (wanted)
        return wanted;
    if (!buffer || !record)
        return INVALID_PARAMETER;
    uint8_t *at = buffer;
    uint32_t kind;
    if (*record) {
        memcpy(&kind, *record, 4);
        at = *record + size_of_record(kind, *record);
    }
    size_t left = (size_t)(buffer + valid - at);
    if (at >= buffer + valid || left < 8)
        return MAX_LIMIT;
    memcpy(&kind, at, 4);
    size_t size = size_of_record(kind, at);
    if (!size)
        return INVALID_KIND;
    if (size > left)
        return MAX_LIMIT;
    *record = at;
    return OK;
}

EXPORT int cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *count)
{
    BEGIN;
    (void)context, (void)stream;
    pthread_mutex_lock(&lock);
    *count = dropped;
    dropped = 0;
    pthread_mutex_unlock(&lock);
    return OK;
}
