/* SPDX-License-Identifier: MIT */
#include "property/shrink.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void run_child(const struct program *program, unsigned walk_every, bool quiet, int to_parent)
{
    char text[PAIR_TEXT_MAX + 64] = "";
    char what[PAIR_TEXT_MAX] = "";

    if (quiet) {
        const int sink = open("/dev/null", O_WRONLY);

        if (sink >= 0) {
            (void)dup2(sink, STDERR_FILENO);
        }
    }
    const size_t done = pair_run(program, walk_every, what);

    if (done < program->count) {
        (void)snprintf(text, sizeof text, "operation %zu (%s): %s", done,
                       ops_name(program->ops[done].kind), what);
        (void)!write(to_parent, text, strlen(text));
        _exit(1);
    }
    _exit(0);
}

bool shrink_passes(const struct program *program, unsigned walk_every, bool quiet,
                   char text[PAIR_TEXT_MAX])
{
    int ends[2];
    int status = 0;

    (void)fflush(NULL);
    if (pipe(ends) != 0) {
        abort();
    }
    const pid_t child = fork();

    if (child < 0) {
        abort();
    }
    if (child == 0) {
        (void)close(ends[0]);
        run_child(program, walk_every, quiet, ends[1]);
    }
    (void)close(ends[1]);
    const ssize_t got = read(ends[0], text, PAIR_TEXT_MAX - 1);

    text[got > 0 ? got : 0] = '\0';
    (void)close(ends[0]);
    if (waitpid(child, &status, 0) != child) {
        abort();
    }
    if (WIFSIGNALED(status)) {
        (void)snprintf(text, PAIR_TEXT_MAX, "ended by signal %d", WTERMSIG(status));
    } else if (status != 0 && text[0] == '\0') {
        (void)snprintf(text, PAIR_TEXT_MAX, "ended with status %d", WEXITSTATUS(status));
    }
    return status == 0;
}

/* What differs, without the operation's number. */
static const char *failure_kind(const char *text)
{
    const char *after = strstr(text, "): ");

    return after ? after + 3 : text;
}

/* Two failures are the same one if the same thing differs, whatever its values. */
static bool same_failure(const char *a, const char *b)
{
    const char *x = failure_kind(a);
    const char *y = failure_kind(b);
    const size_t length = strcspn(x, ":0123456789");

    return length == strcspn(y, ":0123456789") && strncmp(x, y, length) == 0;
}

/* Leaves out [at, at + length) if the rest still fails in that way. */
static bool try_without(struct program *program, size_t at, size_t length, const char *failure)
{
    char text[PAIR_TEXT_MAX];
    struct program rest = program_copy(program);

    memmove(rest.ops + at, rest.ops + at + length, (rest.count - at - length) * sizeof *rest.ops);
    rest.count -= length;
    if (shrink_passes(&rest, 1, true, text) || !same_failure(text, failure)) {
        program_fini(&rest);
        return false;
    }
    program_fini(program);
    *program = rest;
    return true;
}

static bool pass(struct program *program, size_t length, const char *failure)
{
    size_t at = 0;
    bool smaller = false;

    while (at + length <= program->count) {
        if (try_without(program, at, length, failure)) {
            smaller = true;
        } else {
            at += length;
        }
    }
    return smaller;
}

void shrink(struct program *program, char text[PAIR_TEXT_MAX])
{
    char failure[PAIR_TEXT_MAX];
    bool smaller = true;

    if (shrink_passes(program, 1, true, failure)) {
        return;
    }
    for (size_t length = program->count / 2; length > 1; length /= 2) {
        (void)pass(program, length, failure);
    }
    while (smaller) {
        smaller = pass(program, 1, failure);
    }
    (void)shrink_passes(program, 1, false, text);
}
