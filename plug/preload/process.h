/* SPDX-License-Identifier: MIT */
/*
 * This library in its process: what the user asked for, whether calls are followed now, and what is
 * said on standard error.
 *
 * Nothing happens before the program's first call of a hooked function of the driver: a program
 * without CUDA is not touched. A forked child starts anew at its first call.
 */
#ifndef RUN_PROCESS_H
#define RUN_PROCESS_H

#include <stdbool.h>
#include <stdint.h>

enum run_policy {
    RUN_OBSERVE,
    RUN_NATIVE,
    RUN_EXPANDABLE,
    RUN_COMPACT
};

/* From the environment that `tarn run` sets. */
struct run_settings {
    enum run_policy policy;
    const char *record; /* file to write at exit, NULL = none */
    uint64_t limit;     /* bytes per device, 0 = none */
    uint64_t entries;   /* events kept, 0 = the library's default */
    bool summary;
    int request;                /* signal upon which the file is written, 0 = none */
    int stacks;                 /* enum tarn_stack_source */
    int64_t leader;             /* process id of the program that was started */
    int watch;                  /* enum tarn_watch_mode, from TARN_WATCH */
    const char *runtime_folder; /* XDG_RUNTIME_DIR, NULL = not set */
};

const struct run_settings *run_settings(void);

/* Begins following a call; false: the call goes to the driver alone, because this thread is inside
 * of this library already, or nothing was asked for. run_leave ends it. */
bool run_enter(void);
void run_leave(void);
bool run_is_inside(void);

/* Writes what was asked for, once in a process. */
void run_finish(void);

/* Writes the file now. */
void run_answer(void);

/* One line on standard error. */
__attribute__((format(printf, 1, 2))) void run_say(const char *format, ...);

/* The same once for each name, of which there may be 64. `format` has one %s, for the name. */
void run_say_once(const char *name, const char *format);

#endif
