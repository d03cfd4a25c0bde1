/* What buffers.c keeps and activity.c changes. Everything here is under the lock. */
#ifndef BUFFERS_H
#define BUFFERS_H

#include "cupti.h"

#include <pthread.h>

#define MOST_KINDS 1024

typedef void request_function(uint8_t **buffer, size_t *size, size_t *most_records);
typedef void complete_function(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid);

struct buffer {
    uint8_t *memory;
    size_t size, used, records, most;
};

extern pthread_mutex_t lock;
extern uint8_t enabled[MOST_KINDS], chosen[3][MOST_KINDS];
extern struct buffer current;
extern size_t dropped;
extern uint32_t period_ms;

void close_buffer(void);
uint8_t *room_for(size_t size);
void settle(int force);
void give_back(void);
void register_callbacks(request_function *requested, complete_function *completed);
void die_in_the_middle(void);

#endif
