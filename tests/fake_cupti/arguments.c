/* The arguments that a profiler may read off a call: what memory is taken, given back, created or mapped, and the stream
 * that is waited for; in the order in which CUDA's own structs have them. */
#include "script.h"

#include <stdlib.h>
#include <string.h>

/* What nobody may take for an address or a handle: a call that failed has stored nothing. */
#define NOTHING_STORED 0xdeaddeaddeaddeadull

static uint64_t large(const struct line *line, const char *key)
{
    return strtoull(value_of(line, key, "0"), NULL, 0);
}

int is_virtual_memory(const struct line *line)
{
    static const char *const verbs[] = {"create", "unhandle", "map", "unmap", "retain", "import", "export",
                                        "reserve", "unreserve", "ipc-open", "ipc-close"};
    for (size_t at = 0; at < sizeof verbs / sizeof *verbs; at++)
        if (!strcmp(line->word[0], verbs[at]))
            return 1;
    return 0;
}

static void fill_virtual(const struct line *line, struct arguments *arguments)
{
    const char *verb = line->word[0];
    uint64_t *words = arguments->words, address = large(line, "address"), handle = large(line, "handle");
    uint64_t bytes = large(line, "bytes"), where = (uintptr_t)&arguments->stored;
    if (!strcmp(verb, "create")) {
        /* CUmemAllocationProp: the type, the types of handles, where it lies and the number there. */
        arguments->properties[2] = (uint32_t)number_of(line, "location", 1);
        arguments->properties[3] = (uint32_t)number_of(line, "device", 0);
        arguments->stored = handle;
        words[0] = where, words[1] = bytes, words[2] = (uintptr_t)arguments->properties;
    } else if (!strcmp(verb, "unhandle"))
        words[0] = handle;
    else if (!strcmp(verb, "map"))
        words[0] = address, words[1] = bytes, words[3] = handle;
    else if (!strcmp(verb, "unmap") || !strcmp(verb, "unreserve"))
        words[0] = address, words[1] = bytes;
    else if (!strcmp(verb, "retain"))
        arguments->stored = handle, words[0] = where, words[1] = address;
    else if (!strcmp(verb, "import"))
        arguments->stored = handle, words[0] = where, words[1] = 5;
    else if (!strcmp(verb, "export"))
        words[0] = where, words[1] = handle;
    else if (!strcmp(verb, "reserve"))
        arguments->stored = address, words[0] = where, words[1] = bytes;
    else if (!strcmp(verb, "ipc-open"))
        arguments->stored = address, words[0] = where;
    else
        words[0] = address;
}

void fill_arguments(const struct line *line, const char *name, struct arguments *arguments)
{
    struct fake_work memory;
    *arguments = (struct arguments){0};
    uint64_t *words = arguments->words;
    if (!strcmp(line->word[0], "sync"))
        words[0] = strstr(name, "Event") && !strstr(name, "Wait") ? 5 : (uint64_t)number_of(line, "stream", 7);
    if (is_virtual_memory(line))
        fill_virtual(line, arguments);
    else if (record_of(line, &memory) && memory.kind == FAKE_MEMORY) {
        arguments->stored = memory.address;
        arguments->pitch = memory.bytes;
        words[0] = memory.type == 2 || strstr(name, "Register") ? memory.address : (uintptr_t)&arguments->stored;
        words[1] = memory.bytes;
        if (strstr(name, "Pitch")) {
            words[1] = (uintptr_t)&arguments->pitch;
            words[2] = memory.bytes;
            words[3] = 1;
        }
    }
    if (number_of(line, "error", 0))
        arguments->stored = arguments->pitch = NOTHING_STORED;
}
