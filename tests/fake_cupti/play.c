/* Plays a script: each line as the API call, the device's work and the callbacks that a real program would cause, in
 * as many threads and processes as it says. Programs call fake_play, Python calls fake_do through ctypes. */
#define _GNU_SOURCE
#include "script.h"
#include "apis.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_THREADS 64
/* CUDA_ERROR_LAUNCH_FAILED: what a call gives once the device is gone. */
#define LAUNCH_FAILED 719

static pthread_t threads[MOST_THREADS];
static int thread_count;

static void play(const struct script *script, int from, int to);

const struct api *find_api(const char *name)
{
    for (size_t at = 0; at < sizeof APIS / sizeof *APIS; at++)
        if (!strcmp(APIS[at].name, name))
            return &APIS[at];
    return NULL;
}

typedef void action(const struct line *line, uint32_t correlation, void *more);

static void tell(const struct api *api, int site, const struct fake_call *like, uint64_t *keep)
{
    struct fake_call call = *like;
    call.domain = api->domain;
    call.id = api->id;
    call.function = api->name;
    call.site = site;
    call.keep = keep;
    tell_api(&call);
}

/* One call as an application makes it: begin, what it does, end; with nested= a driver call inside a runtime call. */
static void call(const struct line *line, const char *name, const char *symbol, action *act, void *more)
{
    const char *inner_name = value_of(line, "nested", NULL);
    const struct api *outer = find_api(name), *inner = inner_name ? find_api(inner_name) : NULL;
    if (!outer || (inner_name && !inner))
        wrong(line, "no such API function");
    if (fake_ready() != 2)
        return;
    int result = device_is_lost() ? LAUNCH_FAILED : (int)number_of(line, "error", 0);
    struct context *context = context_of((uint32_t)number_of(line, "device", 0));
    uint64_t keep = 0, inner_keep = 0;
    struct arguments arguments;
    fill_arguments(line, name, &arguments);
    struct fake_call like = {
        .correlation = next_correlation(), .context_uid = context->uid, .context = context, .symbol = symbol, .result = &result,
        .arguments = arguments.words};
    struct fake_work record = {.kind = FAKE_API, .domain = (uint32_t)outer->domain, .id = outer->id, .device = context->device};
    record.thread = (uint32_t)gettid();
    record.correlation = like.correlation;
    record.start = fake_monotonic();
    tell(outer, 0, &like, &keep);
    if (inner)
        tell(inner, 0, &like, &inner_keep);
    if (!result && act)
        act(line, like.correlation, more);
    spin(number_of(line, "call", 2));
    if (inner)
        tell(inner, 1, &like, &inner_keep);
    tell(outer, 1, &like, &keep);
    record.end = fake_monotonic();
    tell_work(&record);
}

static void launch(const struct line *line, uint32_t correlation, void *more)
{
    struct fake_work work;
    work_of(line, &work);
    work.correlation = correlation;
    work.context = context_of(work.device)->uid;
    place_work(&work, (uint64_t)number_of(line, "us", 10) * 1000);
    tell_work(&work);
    if (work.kind == FAKE_MEMCPY && !work.asynchronous)
        wait_for(work.device, work.stream, 0);
    (void)more;
}

struct part {
    const struct script *script;
    int from, to;
};

static void launch_graph(const struct line *line, uint32_t correlation, void *more)
{
    const struct part *nodes = more;
    for (int at = nodes->from; at < nodes->to; at++) {
        const struct line *node = &nodes->script->lines[at];
        struct fake_work work;
        if (!work_of(node, &work))
            wrong(node, "no node of a graph");
        work.correlation = correlation;
        work.device = (uint32_t)number_of(line, "device", 0);
        work.stream = (uint32_t)number_of(node, "stream", number_of(line, "stream", 7));
        work.graph = (uint32_t)number_of(line, "id", 1);
        work.context = context_of(work.device)->uid;
        place_work(&work, (uint64_t)number_of(node, "us", 10) * 1000);
        tell_work(&work);
    }
}

static void record(const struct line *line, uint32_t correlation, void *more)
{
    struct fake_work work;
    record_of(line, &work);
    work.correlation = correlation;
    work.context = context_of(work.device)->uid;
    tell_work(&work);
    (void)more;
}

static void synchronise(const struct line *line, uint32_t correlation, void *more)
{
    const uint32_t *type = more;
    struct fake_work work = {.kind = FAKE_SYNC, .type = *type, .correlation = correlation};
    work.device = (uint32_t)number_of(line, "device", 0);
    work.stream = *type == 4 ? UINT32_MAX : (uint32_t)number_of(line, "stream", 7);
    work.context = context_of(work.device)->uid;
    work.start = fake_monotonic();
    if (*type != 2)
        wait_for(work.device, work.stream, *type == 4);
    work.end = fake_monotonic();
    tell_work(&work);
}

static void capture_node(const struct line *line, uint32_t correlation, void *more)
{
    void *graph = (void *)number_of(line, "graph", 1), *node = (void *)number_of(line, "node", 1);
    tell_resource(13, current_context(), graph, node, NULL); /* GRAPHNODE_CREATED */
    (void)correlation;
    (void)more;
}

/* instantiate FROM:TO ...: what was captured as FROM runs as TO, for node ids change. */
static void clone_nodes(const struct line *line, uint32_t correlation, void *more)
{
    for (int at = 1; at < line->words; at++) {
        unsigned long from, to;
        if (sscanf(line->word[at], "%lu:%lu", &from, &to) == 2)
            tell_resource(20, current_context(), (void *)number_of(line, "graph", 1), (void *)to, (void *)from);
    }
    (void)correlation;
    (void)more;
}

static void reset(const struct line *line, uint32_t correlation, void *more)
{
    reset_device((uint32_t)number_of(line, "device", 0));
    (void)correlation;
    (void)more;
}

static void synchronise_line(const struct line *line)
{
    static const char *const words[] = {"event", "wait", "stream", "device"};
    static const char *const calls[] = {"cudaEventSynchronize", "cudaStreamWaitEvent", "cudaStreamSynchronize", "cudaDeviceSynchronize"};
    const char *word = line->words > 1 ? line->word[1] : "device";
    for (uint32_t at = 0; at < 4; at++) {
        if (!strcmp(word, words[at])) {
            uint32_t type = at + 1;
            call(line, value_of(line, "via", calls[at]), NULL, synchronise, &type);
            return;
        }
    }
    wrong(line, "sync event|wait|stream|device");
}

/* Everything that is one API call. */
static int play_call(const struct script *script, int at, int end)
{
    const struct line *line = &script->lines[at];
    const char *verb = line->word[0], *via = value_of(line, "via", usual_call(line));
    struct fake_work work;
    struct part nodes = {script, at + 1, end};
    if (work_of(line, &work))
        call(line, via, work.name, launch, NULL);
    else if (!strcmp(verb, "sync"))
        synchronise_line(line);
    else if (!strcmp(verb, "graph"))
        call(line, via, NULL, launch_graph, &nodes);
    else if (!strcmp(verb, "captured"))
        call(line, via, line->words > 1 ? line->word[1] : NULL, capture_node, NULL);
    else if (!strcmp(verb, "instantiate"))
        call(line, via, NULL, clone_nodes, NULL);
    else if (!strcmp(verb, "reset"))
        call(line, via, NULL, reset, NULL);
    else if (!strcmp(verb, "call"))
        call(line, line->words > 1 ? line->word[1] : "", value_of(line, "symbol", NULL), NULL, NULL);
    else if (!strcmp(verb, "malloc") || !strcmp(verb, "free"))
        call(line, via, NULL, record, NULL);
    else if (is_virtual_memory(line))
        call(line, via, NULL, NULL, NULL);
    else if (record_of(line, &work))
        record(line, 0, NULL);
    else
        return 0;
    return 1;
}

static void *play_thread(void *given)
{
    struct part *part = given;
    play(part->script, part->from, part->to);
    free(part);
    return NULL;
}

static void join_threads(void)
{
    while (thread_count)
        pthread_join(threads[--thread_count], NULL);
}

static void begin_thread(const struct line *line, const struct script *script, int from, int to)
{
    struct part *part = malloc(sizeof *part);
    *part = (struct part){script, from, to};
    if (thread_count == MOST_THREADS || pthread_create(&threads[thread_count++], NULL, play_thread, part))
        wrong(line, "no more threads");
}

static void play_fork(const struct script *script, int from, int to)
{
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        play(script, from, to);
        exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    printf("child %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
    fflush(stdout);
}

int cuInit(unsigned flags);

/* What concerns the program and not the device. */
static int play_program(const struct line *line)
{
    const char *verb = line->word[0], *first = line->words > 1 ? line->word[1] : "";
    if (!strcmp(verb, "host"))
        spin(number_of(line, "us", 10));
    else if (!strcmp(verb, "idle"))
        usleep((useconds_t)number_of(line, "us", 10));
    else if (!strcmp(verb, "print")) {
        puts(first);
        fflush(stdout);
    } else if (!strcmp(verb, "await")) {
        while (access(first, F_OK))
            usleep(1000);
    } else if (!strcmp(verb, "open")) {
        if (!dlopen(first, RTLD_NOW | RTLD_GLOBAL))
            wrong(line, dlerror());
    } else if (!strcmp(verb, "exit"))
        exit(atoi(first));
    else if (!strcmp(verb, "_exit"))
        _exit(atoi(first));
    else if (!strcmp(verb, "kill"))
        raise(atoi(first));
    else if (!strcmp(verb, "skew"))
        skew_device(strtol(first, NULL, 0));
    else if (!strcmp(verb, "lost")) {
        lose_device();
        tell_state(1, LAUNCH_FAILED, "the device has been lost");
    } else if (!strcmp(verb, "join"))
        join_threads();
    else if (!strcmp(verb, "init")) {
        printf("cuInit %d\n", cuInit(0));
        fflush(stdout);
    } else
        return 0;
    return 1;
}

static int end_of(const struct script *script, int at, int to)
{
    int depth = 1;
    for (int here = at + 1; here < to; here++) {
        const char *verb = script->lines[here].word[0];
        depth += !strcmp(verb, "repeat") || !strcmp(verb, "thread") || !strcmp(verb, "fork") || !strcmp(verb, "graph");
        depth -= !strcmp(verb, "end");
        if (!depth)
            return here;
    }
    wrong(&script->lines[at], "no end");
}

static void play(const struct script *script, int from, int to)
{
    for (int at = from; at < to; at++) {
        const struct line *line = &script->lines[at];
        const char *verb = line->word[0], *first = line->words > 1 ? line->word[1] : "";
        int block = !strcmp(verb, "repeat") || !strcmp(verb, "thread") || !strcmp(verb, "fork") || !strcmp(verb, "graph");
        int end = block ? end_of(script, at, to) : at;
        if (!strcmp(verb, "repeat"))
            for (long left = atol(first); left > 0; left--)
                play(script, at + 1, end);
        else if (!strcmp(verb, "thread"))
            begin_thread(line, script, at + 1, end);
        else if (!strcmp(verb, "fork"))
            play_fork(script, at + 1, end);
        else if (!play_call(script, at, end) && !play_program(line) && !apply_setting(line, script->settled) &&
                 !tell_command(verb, first, number_of(line, "count", 1)))
            wrong(line, "nobody knows this word");
        at = end;
    }
}

EXPORT int fake_play(const char *path)
{
    const char *chosen = path && *path ? path : getenv("FAKE_CUPTI_SCRIPT");
    if (!chosen)
        return 1;
    struct script *script = read_script(chosen);
    script->settled = !path || !*path;
    play(script, 0, script->count);
    join_threads();
    return 0;
}

/* Lines by themselves, for a program that decides as it goes. */
EXPORT void fake_do(const char *text)
{
    struct script *script = parse_script(text);
    play(script, 0, script->count);
}
