/* Activity buffers as CUPTI handles them: asked of the profiler, filled, and given back from a thread of CUPTI's own or
 * from a flush; and everything that can go wrong with them, as a script wants it. The functions are in activity.c. */
#define _GNU_SOURCE
#include "buffers.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST_HELD 4096

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t woken = PTHREAD_COND_INITIALIZER;
uint8_t enabled[MOST_KINDS], chosen[3][MOST_KINDS];
static request_function *request;
static complete_function *complete;
struct buffer current;
static struct buffer full[MOST_HELD], held[MOST_HELD];
static int full_count, held_count, holding, held_for_good, worker_runs;
static struct fake_work *pending, **pending_end = &pending;
size_t dropped;
static uint32_t added;
static long twice, truncate_by, garbage;
uint32_t period_ms;
uint32_t system_thread_ids;

int kind_is_enabled(uint32_t kind)
{
    /* Kinds of the future come whether anybody asked for them or not. */
    return kind < 500 ? enabled[kind] : 1;
}

int api_is_chosen(uint32_t domain, uint32_t id)
{
    return domain < 3 && id < MOST_KINDS && chosen[domain][id];
}

/* Takes what is in the current buffer, as it is now, into the queue of those to give back. Under the lock. */
void close_buffer(void)
{
    if (!current.memory)
        return;
    if (garbage && current.used) {
        garbage--;
        size_t room = current.size - current.used < 64 ? current.size - current.used : 64;
        memset(current.memory + current.used, 0xff, room);
        current.used += room;
    }
    if (truncate_by && current.used) {
        current.used -= (size_t)truncate_by < current.used ? (size_t)truncate_by : current.used;
        truncate_by = 0;
    }
    struct buffer *queue = holding ? held : full;
    int *count = holding ? &held_count : &full_count;
    if (*count < MOST_HELD)
        queue[(*count)++] = current;
    memset(&current, 0, sizeof current);
}

/* Room for one record, asking for another buffer if need be. The profiler is asked without the lock, as it may call us. */
uint8_t *room_for(size_t size)
{
    if (current.memory && (current.used + size > current.size || (current.most && current.records == current.most)))
        close_buffer();
    if (!current.memory && request) {
        uint8_t *memory = NULL;
        size_t length = 0, most = 0;
        request_function *ask = request;
        pthread_mutex_unlock(&lock);
        ask(&memory, &length, &most);
        pthread_mutex_lock(&lock);
        if ((uintptr_t)memory % 8)
            fake_log("a buffer that is not aligned to 8 bytes");
        if (current.memory) {
            /* Another thread was faster; the one just given is returned empty. */
            if (memory && full_count < MOST_HELD)
                full[full_count++] = (struct buffer){memory, length, 0, 0, 0};
        } else if (memory && length >= size)
            current = (struct buffer){memory, length, 0, 0, most};
    }
    if (!current.memory || current.used + size > current.size)
        return NULL;
    return current.memory + current.used;
}

static void append(const struct fake_work *work)
{
    size_t size = work->kind == FAKE_UNKNOWN ? work->unknown_size : size_of_record(kind_of_work(work), NULL);
    uint8_t *at = room_for(size);
    if (!at) {
        dropped++;
        return;
    }
    current.used += write_record(at, work);
    current.records++;
}

/* Work that is over by now becomes records; with force also what is not, without times, as the real CUPTI does. */
void settle(int force)
{
    uint64_t now = fake_monotonic();
    struct fake_work *over = NULL, **over_end = &over, **link = &pending, *work;
    while ((work = *link)) {
        if (work->end > now && !force) {
            link = &work->next;
            continue;
        }
        *link = work->next;
        if (work->end > now)
            work->start = work->end = 0;
        work->next = NULL;
        *over_end = work;
        over_end = &work->next;
    }
    pending_end = link;
    /* Appending may give the lock away for a moment: by then the queue is whole, and these are ours alone. */
    while ((work = over)) {
        over = work->next;
        append(work);
        free(work);
    }
}

/* Gives buffers back, without the lock. */
void give_back(void)
{
    while (full_count) {
        struct buffer buffer = full[0];
        memmove(full, full + 1, --full_count * sizeof *full);
        complete_function *give = complete;
        int times = twice ? 2 : 1;
        twice -= twice != 0;
        pthread_mutex_unlock(&lock);
        for (; times && give; times--)
            give(NULL, 0, buffer.memory, buffer.size, buffer.used);
        pthread_mutex_lock(&lock);
    }
}

static void *worker(void *unused)
{
    pthread_mutex_lock(&lock);
    for (;;) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        long ms = period_ms ? (long)period_ms : 50;
        until.tv_sec += ms / 1000;
        until.tv_nsec += ms % 1000 * 1000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        if (!full_count)
            pthread_cond_timedwait(&woken, &lock, &until);
        settle(0);
        if (period_ms)
            close_buffer();
        give_back();
    }
    return unused;
}

void add_work(const struct fake_work *given)
{
    uint32_t kind = kind_of_work(given);
    if (!request)
        return;
    /* As the real CUPTI (13.0): what a device is it tells with a context on it, to who records that kind by then, and to nobody
     * who comes later. */
    if (given->kind == FAKE_CONTEXT && enabled[KIND_DEVICE]) {
        pthread_mutex_lock(&lock);
        uint8_t *at = room_for(SIZE_OF_Device);
        if (at)
            current.used += write_device(at, (int)given->device);
        pthread_mutex_unlock(&lock);
    }
    if (given->kind == FAKE_API ? !enabled[kind] && !api_is_chosen(given->domain, given->id) : !kind_is_enabled(kind))
        /* The older kind of kernels is the same records. */
        if (given->kind != FAKE_KERNEL || !enabled[KIND_KERNEL])
            return;
    struct fake_work *work = malloc(sizeof *work);
    *work = *given;
    work->next = NULL;
    pthread_mutex_lock(&lock);
    *pending_end = work;
    pending_end = &work->next;
    /* Not at every one: a long queue is looked through each time. */
    if (++added % 32 == 0)
        settle(0);
    if (full_count)
        pthread_cond_signal(&woken);
    pthread_mutex_unlock(&lock);
}

void stop_activity(void)
{
    pthread_mutex_lock(&lock);
    memset(enabled, 0, sizeof enabled);
    memset(chosen, 0, sizeof chosen);
    pthread_mutex_unlock(&lock);
}

static void release(int backwards)
{
    for (int at = 0; at < held_count; at++)
        full[full_count++] = held[backwards ? held_count - 1 - at : at];
    held_count = holding = held_for_good = 0;
}

/* Buffers of a hold that nobody released come when the profiler has stopped, but for those that are held for good. */
void deliver_held_late(void)
{
    pthread_mutex_lock(&lock);
    if (held_count && !held_for_good) {
        fake_log("late %d", held_count);
        release(0);
        give_back();
    }
    pthread_mutex_unlock(&lock);
}

static void theirs_request(uint8_t **buffer, size_t *size, size_t *most)
{
    *size = 1 << 16;
    *buffer = aligned_alloc(8, *size);
    *most = 0;
}

static void theirs_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid)
{
    fake_log("theirs %zu", valid);
    free(buffer);
    (void)context, (void)stream, (void)size;
}

int activity_command(const char *verb, const char *argument, long number)
{
    int known = 1;
    pthread_mutex_lock(&lock);
    if (!strcmp(verb, "hold")) {
        holding = 1;
        held_for_good = !strcmp(argument, "for-good");
    } else if (!strcmp(verb, "release")) {
        settle(0);
        close_buffer();
        release(!strcmp(argument, "reverse"));
        give_back();
    } else if (!strcmp(verb, "deliver")) {
        settle(0);
        close_buffer();
        give_back();
    } else if (!strcmp(verb, "split")) {
        settle(0);
        close_buffer();
    } else if (!strcmp(verb, "twice"))
        twice = number;
    else if (!strcmp(verb, "truncate"))
        truncate_by = atol(argument);
    else if (!strcmp(verb, "garbage"))
        garbage = number;
    else if (!strcmp(verb, "drop"))
        dropped += (size_t)atol(argument);
    else if (!strcmp(verb, "take")) {
        request = theirs_request;
        complete = theirs_complete;
    } else if (!strcmp(verb, "disable"))
        enabled[atoi(argument) % MOST_KINDS] = 0;
    else
        known = 0;
    pthread_mutex_unlock(&lock);
    return known;
}

void register_callbacks(request_function *requested, complete_function *completed)
{
    pthread_mutex_lock(&lock);
    request = requested;
    complete = completed;
    int start = !worker_runs;
    worker_runs = 1;
    pthread_mutex_unlock(&lock);
    pthread_t thread;
    if (start && !pthread_create(&thread, NULL, worker, NULL))
        pthread_detach(thread);
}

/* The process ends when half of what there is was delivered. Under the lock. */
void die_in_the_middle(void)
{
    if (!current.used)
        return;
    struct buffer half = current;
    half.used /= 2;
    full[full_count++] = half;
    give_back();
    kill(getpid(), SIGKILL);
}
