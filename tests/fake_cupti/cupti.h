/* What the parts of the stand-in libcupti.so know of each other: cupti.c (subscription, callbacks, questions),
 * activity.c (buffers) and records.c (one record in the layout of this CUDA version). */
#ifndef CUPTI_H
#define CUPTI_H

#include "fake.h"
#include "layout.h"

enum { OK = 0, INVALID_PARAMETER = 1, MAX_LIMIT = 12, NOT_INITIALIZED = 15, INVALID_KIND = 21, MULTIPLE = 39, UNKNOWN = 999 };

/* Every exported function begins with this: it logs the call, finds the driver, and gives what the script wants. */
int begin(const char *function);
#define BEGIN                                \
    do {                                     \
        int wanted = begin(__func__);        \
        if (wanted)                          \
            return wanted;                   \
    } while (0)

/* What libcuda.so.1 answers. */
extern fake_failure_function *driver_failure;
extern fake_context_function *driver_context;
extern fake_mig_function *driver_mig;
extern fake_on_flush_function *driver_on_flush;
int after_fork(void);

/* The device's clock in the clock that the profiler asked for. */
uint64_t to_activity_time(uint64_t device_time);
extern uint64_t (*timestamp_callback)(void);

size_t size_of_record(uint32_t kind, const uint8_t *at);
/* The activity kind of a piece of work, and its record; the size written. */
uint32_t kind_of_work(const struct fake_work *work);
size_t write_record(uint8_t *at, const struct fake_work *work);
size_t write_device(uint8_t *at, int device);

int kind_is_enabled(uint32_t kind);
int api_is_chosen(uint32_t domain, uint32_t id);
void add_work(const struct fake_work *work);
int activity_command(const char *verb, const char *argument, long number);
void stop_activity(void);
void deliver_held_late(void);
extern uint32_t system_thread_ids;

/* Writes a field if this CUDA version has it. */
void put(uint8_t *record, int offset, int size, uint64_t value);
#define PUT(Record, field, value) put(at, OFFSET_##Record##_##field, SIZE_##Record##_##field, (uint64_t)(value))

#endif
