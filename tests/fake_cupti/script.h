/* A script as lines of words, and how to look one up. script.c reads it, play.c plays it, work.c makes work of a line, arguments.c the call's arguments. */
#ifndef SCRIPT_H
#define SCRIPT_H

#include "driver.h"

#define MOST_WORDS 32

struct line {
    int number, words;
    char *word[MOST_WORDS];
};

struct script {
    struct line *lines;
    int count;
    /* Its settings were taken when the driver started. */
    int settled;
};

struct script *read_script(const char *path);
struct script *parse_script(const char *text);
/* The value of key=value, or what is given. */
const char *value_of(const struct line *line, const char *key, const char *otherwise);
long number_of(const struct line *line, const char *key, long otherwise);
/* 0: the line is no setting. */
int apply_setting(const struct line *line, int settled);
void wrong(const struct line *line, const char *why) __attribute__((noreturn));

/* Fills in what a kernel, memcpy, peer or memset line says; 0 if it is none of them. */
int work_of(const struct line *line, struct fake_work *work);
const char *usual_call(const struct line *line);
/* Every other line that gives a record: malloc, free, pool, migrate, overhead, unknown; 0 if it is none. */
int record_of(const struct line *line, struct fake_work *work);
void spin(long microseconds);

/* The arguments of a call that a profiler may read, and what the call stores. */
struct arguments {
    uint64_t words[8], stored, pitch;
    uint32_t properties[8];
};
void fill_arguments(const struct line *line, const char *name, struct arguments *arguments);
/* Whether the line is a call of the virtual memory management, or opens memory of another process. */
int is_virtual_memory(const struct line *line);

#endif
