/* SPDX-License-Identifier: MIT */
#include "plug/preload/process.h"

#include "plug/preload/record.h"
#include "plug/preload/serve.h"
#include "plug/preload/share.h"
#include "plug/preload/signals.h"
#include "tarn/history.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    NAMES_MAX = 64,
    LINE_MAX_BYTES = 512
};

static struct run_settings settings;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static atomic_bool active;   /* something was asked for */
static atomic_bool finished; /* the process ends: nothing is recorded any more */

static _Thread_local int depth;

static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;
static char names[NAMES_MAX][64];
static int name_count;

/* ---- what was asked for ---- */

static uint64_t number_of(const char *variable)
{
    const char *text = getenv(variable);

    return text ? strtoull(text, NULL, 10) : 0;
}

static int word_of(const char *variable, const char *const *words)
{
    const char *text = getenv(variable);

    for (int i = 0; text && words[i]; i++) {
        if (strcmp(text, words[i]) == 0) {
            return i;
        }
    }
    return 0;
}

static void settings_read(void)
{
    static const char *const policies[] = {"observe", "native", "expandable", "compact", NULL};
    static const char *const stacks[] = {"unwind", "frame-pointers", "none", NULL};
    static const int sources[] = {TARN_STACK_UNWIND, TARN_STACK_FRAME_POINTERS, TARN_STACK_NONE};

    static const char *const signals[] = {"none", "USR1", "USR2", NULL};
    static const int requests[] = {0, SIGUSR1, SIGUSR2};
    static const char *const watches[] = {"0", "1", "control", NULL}; /* as tarn_watch_mode */

    settings.policy = (enum run_policy)word_of("TARN_RUN_POLICY", policies);
    settings.record = getenv("TARN_RUN_RECORD");
    settings.limit = number_of("TARN_RUN_LIMIT");
    settings.entries = number_of("TARN_RUN_ENTRIES");
    settings.summary = getenv("TARN_RUN_SUMMARY") != NULL;
    settings.stacks = sources[word_of("TARN_RUN_STACKS", stacks)];
    settings.request = requests[word_of("TARN_RUN_REQUEST", signals)];
    settings.leader = (int64_t)number_of("TARN_RUN_LEADER");
    settings.watch = word_of("TARN_WATCH", watches);
    settings.runtime_folder = getenv("XDG_RUNTIME_DIR");
    if (settings.record && settings.record[0] == '\0') {
        settings.record = NULL;
    }
}

const struct run_settings *run_settings(void)
{
    return &settings;
}

/* ---- begin and end ---- */

static void finish(void)
{
    if (!atomic_exchange(&finished, true)) {
        depth++;
        run_record_finish();
        depth--;
    }
}

void run_answer(void)
{
    depth++;
    run_record_write();
    depth--;
}

void run_finish(void)
{
    finish();
}

/* Only the forking thread is left. What the parent recorded is the parent's. */
static void forked(void)
{
    (void)pthread_mutex_init(&names_lock, NULL);
    atomic_store(&finished, false);
    run_signals_forked();
    run_record_forked();
    run_serve_forked();
    run_share_forked();
}

static void start(void)
{
    settings_read();
    atomic_store(&active, settings.record || settings.summary || settings.policy != RUN_OBSERVE);
    if (atomic_load(&active)) {
        (void)pthread_atfork(NULL, NULL, forked);
        (void)atexit(finish);
        run_signals_start();
    }
}

bool run_enter(void)
{
    if (depth > 0) {
        return false;
    }
    depth++;
    (void)pthread_once(&once, start);
    if (!atomic_load_explicit(&active, memory_order_relaxed)) {
        depth--;
        return false;
    }
    return true;
}

void run_leave(void)
{
    depth--;
}

bool run_is_inside(void)
{
    return depth > 0;
}

/* ---- messages ---- */

/* In one piece, past stdio, which the program may have closed. */
static void line_write(const char *line, size_t size)
{
    const int before = errno;

    while (size > 0) {
        const ssize_t done = write(STDERR_FILENO, line, size);

        if (done <= 0 && errno != EINTR) {
            break;
        }
        line += done > 0 ? done : 0;
        size -= done > 0 ? (size_t)done : 0;
    }
    errno = before;
}

void run_say(const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list arguments;

    va_start(arguments, format);
    const int length = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (length > 0) {
        const size_t size = (size_t)length < sizeof line ? (size_t)length : sizeof line - 1;

        line_write(line, size);
    }
}

static bool name_is_first(const char *name)
{
    bool first = true;

    (void)pthread_mutex_lock(&names_lock);
    for (int i = 0; i < name_count; i++) {
        first = first && strncmp(names[i], name, sizeof names[i] - 1) != 0;
    }
    first = first && name_count < NAMES_MAX;
    if (first) {
        (void)snprintf(names[name_count++], sizeof names[0], "%s", name);
    }
    (void)pthread_mutex_unlock(&names_lock);
    return first;
}

void run_say_once(const char *name, const char *format)
{
    (void)pthread_once(&once, start);
    if (atomic_load(&active) && name_is_first(name)) {
        char shown[sizeof names[0]];
        char line[LINE_MAX_BYTES];
        const char *mark = strstr(format, "%s");

        (void)snprintf(shown, sizeof shown, "%s", name);
        (void)snprintf(line, sizeof line, "%.*s%s%s", mark ? (int)(mark - format) : 0, format,
                       mark ? shown : "", mark ? mark + 2 : format);
        line_write(line, strlen(line));
    }
}
