/* Reads a script: one line a command, words apart by spaces, # begins a comment, "quotes" keep a name with spaces
 * together. Settings are taken when the driver starts, everything else is left to play.c. README.md lists the words. */
#define _GNU_SOURCE
#include "script.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct settings settings = {.devices = 1, .driver_version = 13000};

void wrong(const struct line *line, const char *why)
{
    fprintf(stderr, "fake-cupti: line %d (%s): %s\n", line->number, line->words ? line->word[0] : "", why);
    _Exit(99);
}

static void split(struct line *line, char *text)
{
    while (*text) {
        text += strspn(text, " \t\r");
        if (!*text || *text == '#')
            return;
        if (line->words == MOST_WORDS)
            wrong(line, "too many words");
        char stop = ' ';
        if (*text == '"') {
            stop = '"';
            text++;
        }
        char *end = stop == '"' ? strchrnul(text, '"') : text + strcspn(text, " \t\r");
        int last = !*end;
        *end = 0;
        line->word[line->words++] = text;
        text = last ? end : end + 1;
    }
}

struct script *parse_script(const char *given)
{
    /* Kept for ever: records point to the names in it, as CUPTI's point to names in loaded modules. */
    char *text = strdup(given);
    struct script *script = calloc(1, sizeof *script);
    int room = 0, number = 0;
    for (char *next = text; next;) {
        char *here = strsep(&next, "\n");
        number++;
        if (script->count == room) {
            room = room ? room * 2 : 64;
            script->lines = realloc(script->lines, room * sizeof *script->lines);
        }
        struct line *line = &script->lines[script->count];
        *line = (struct line){.number = number};
        split(line, here);
        if (line->words)
            script->count++;
    }
    return script;
}

struct script *read_script(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        _Exit(99);
    }
    char *text = NULL;
    size_t room = 0;
    ssize_t length = getdelim(&text, &room, 0, file);
    fclose(file);
    struct script *script = parse_script(length < 0 ? "" : text);
    free(text);
    return script;
}

const char *value_of(const struct line *line, const char *key, const char *otherwise)
{
    size_t length = strlen(key);
    for (int at = 1; at < line->words; at++)
        if (!strncmp(line->word[at], key, length) && line->word[at][length] == '=')
            return line->word[at] + length + 1;
    return otherwise;
}

long number_of(const struct line *line, const char *key, long otherwise)
{
    const char *text = value_of(line, key, NULL);
    return text ? strtol(text, NULL, 0) : otherwise;
}

int apply_setting(const struct line *line, int settled)
{
    static const char *const words[] = {"devices", "driver", "cuinit", "on-flush", "mig", "slow-init", "fail"};
    const int count = sizeof words / sizeof *words;
    const char *verb = line->word[0], *first = line->words > 1 ? line->word[1] : "";
    int at = 0;
    while (at < count && strcmp(verb, words[at]))
        at++;
    if (at == count || settled)
        return at < count;
    switch (at) {
    case 0: settings.devices = atoi(first); break;
    case 1: settings.driver_version = atoi(first); break;
    case 2: settings.init_result = atoi(first); break;
    case 3: snprintf(settings.on_flush, sizeof settings.on_flush, "%s", first); break;
    case 4: settings.mig = 1; break;
    case 5: settings.init_us = number_of(line, "us", 0); break;
    default:
        if (line->words < 3 || settings.failure_count == MOST_FAILURES)
            wrong(line, "fail FUNCTION CODE [after=N] [times=N]");
        struct failure *failure = &settings.failures[settings.failure_count];
        snprintf(failure->function, sizeof failure->function, "%s", first);
        failure->code = atoi(line->word[2]);
        failure->after = number_of(line, "after", 0);
        failure->times = number_of(line, "times", 1L << 40);
        settings.failure_count++;
    }
    return 1;
}

void read_settings(void)
{
    const char *path = getenv("FAKE_CUPTI_SCRIPT");
    if (!path || !*path)
        return;
    struct script *script = read_script(path);
    for (int at = 0; at < script->count; at++)
        apply_setting(&script->lines[at], 0);
}
