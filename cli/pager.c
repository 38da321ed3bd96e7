/* SPDX-License-Identifier: MIT */
#include "pager.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Also read by a signal handler. */
static volatile sig_atomic_t running_child;

static bool is_on_path(const char *program)
{
    const char *path = getenv("PATH");
    char name[4096];

    if (strchr(program, '/')) {
        return access(program, X_OK) == 0;
    }
    for (size_t length = 0; path && *path; path += length + (path[length] == ':')) {
        length = strcspn(path, ":");
        (void)snprintf(name, sizeof name, "%.*s/%s", (int)length, path, program);
        if (access(name, X_OK) == 0) {
            return true;
        }
    }
    return false;
}

static void child_run(const int ends[2], const char *const *arguments)
{
    char *words[8] = {NULL};

    for (size_t i = 0; arguments[i] && i + 1 < sizeof words / sizeof *words; i++) {
        words[i] = strdup(arguments[i]);
    }
    if (dup2(ends[0], STDIN_FILENO) >= 0) {
        (void)close(ends[0]);
        (void)close(ends[1]);
        (void)setenv("LESS", "FRX", 0); /* keep colours, exit if the text fits on one screen */
        (void)execvp(words[0], words);
    }
    _exit(127);
}

/* Redirects standard output to the pipe; cli_pager_end restores it. */
static bool output_redirect(struct cli_pager *pager, int end)
{
    (void)fflush(stdout);
    pager->saved_file = dup(STDOUT_FILENO);
    return pager->saved_file >= 0 && dup2(end, STDOUT_FILENO) >= 0;
}

bool cli_pager_start_program(struct cli_pager *pager, const char *const *arguments)
{
    int ends[2];

    pager->child = 0;
    if (!is_on_path(arguments[0]) || pipe(ends) != 0) {
        return false;
    }
    const pid_t child = fork();

    if (child == 0) {
        child_run(ends, arguments);
    }
    (void)close(ends[0]);
    if (child > 0 && output_redirect(pager, ends[1])) {
        pager->child = child;
        running_child = child;
    }
    (void)close(ends[1]);
    return pager->child != 0;
}

/* Whether the first word of PAGER names a missing program: the output would be lost. */
static bool is_missing(const char *command)
{
    char word[4096];
    const size_t length = strcspn(command, " \t");

    if (length >= sizeof word || strcspn(command, "=$`\"'\\(){};&|<>~") < length) {
        return false; /* leave it to the shell */
    }
    memcpy(word, command, length);
    word[length] = '\0';
    return !is_on_path(word);
}

void cli_pager_start(struct cli_pager *pager)
{
    const char *program = getenv("PAGER");
    /* PAGER may contain options, so a shell splits it. It comes from the user. */
    const char *const shell[] = {"/bin/sh", "-c", program, NULL};
    static const char *const less[] = {"less", NULL};

    pager->child = 0;
    if (!program) {
        (void)cli_pager_start_program(pager, less);
    } else if (program[0] != '\0' && strcmp(program, "cat") != 0 && !is_missing(program)) {
        (void)cli_pager_start_program(pager, shell);
    }
}

static void child_wait(pid_t child)
{
    int status;

    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
}

void cli_pager_end(struct cli_pager *pager)
{
    if (pager->child == 0) {
        return;
    }
    (void)fflush(stdout);
    (void)dup2(pager->saved_file, STDOUT_FILENO); /* closes the pipe, so the pager sees the end of
                                                     file */
    (void)close(pager->saved_file);
    child_wait(pager->child);
    running_child = 0;
    pager->child = 0;
}

void cli_pager_interrupted(void)
{
    if (running_child > 0) {
        (void)close(STDOUT_FILENO);
        child_wait((pid_t)running_child);
    }
}
