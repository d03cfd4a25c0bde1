/* The log that tests read: one write a line, so that threads and processes do not mix theirs. In both libraries. */
#include "fake.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

void fake_log(const char *format, ...)
{
    const char *path = getenv("FAKE_CUPTI_LOG");
    if (!path || !*path)
        return;
    char line[512];
    int used = snprintf(line, sizeof line, "%d ", (int)getpid());
    va_list arguments;
    va_start(arguments, format);
    int more = vsnprintf(line + used, sizeof line - used - 1, format, arguments);
    va_end(arguments);
    used = more < (int)sizeof line - used - 1 ? used + more : (int)sizeof line - 2;
    line[used++] = '\n';
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0)
        return;
    if (write(file, line, used) != used)
        perror("fake-cupti: cannot write FAKE_CUPTI_LOG");
    close(file);
}

uint64_t fake_monotonic(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
