/* What the parts of the stand-in libcuda.so.1 know of each other: driver.c (the API), gpu.c (time, streams, contexts)
 * and script.c (reading and playing a script). */
#ifndef DRIVER_H
#define DRIVER_H

#include "fake.h"

#define MOST_DEVICES 16
#define MOST_FAILURES 64

struct settings {
    int devices, mig, driver_version, init_result;
    long init_us;
    char on_flush[16];
    struct failure {
        char function[64];
        int code;
        long after, times;
    } failures[MOST_FAILURES];
    int failure_count;
};

extern struct settings settings;
/* Reads the lines of FAKE_CUPTI_SCRIPT that are settings. */
void read_settings(void);

struct context {
    uint32_t uid, device;
};

struct context *context_of(uint32_t device);
struct context *current_context(void);
/* cudaDeviceReset: the context goes, the next use makes another. */
void reset_device(uint32_t device);
/* When this work begins and ends on its stream; advances the stream. */
void place_work(struct fake_work *work, uint64_t duration);
/* Sleeps until everything on the stream (or, with every, on the device) is done. */
void wait_for(uint32_t device, uint32_t stream, int every);
void skew_device(int64_t nanoseconds);
void lose_device(void);
int device_is_lost(void);
uint32_t next_correlation(void);

int fake_ready(void);
void tell_api(const struct fake_call *call);
void tell_resource(uint32_t id, void *context, void *graph, void *node, void *original);
void tell_state(uint32_t id, int result, const char *message);
void tell_work(const struct fake_work *work);
int tell_command(const char *verb, const char *argument, long number);

/* One API call: begin, what it does, end. */
struct api {
    const char *name;
    int domain;
    uint32_t id;
};
const struct api *find_api(const char *name);

#endif
