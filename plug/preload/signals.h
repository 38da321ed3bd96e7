/* SPDX-License-Identifier: MIT */
/*
 * TERM, INT and HUP end a program that does nothing about them: before that its file is written. A
 * handler must not do that, so it wakes a thread, which then ends the process by the same signal.
 * The signal that the user chose for it writes the file, and the program goes on.
 *
 * A signal that the program handles or ignores stays the program's, whenever it says so.
 */
#ifndef RUN_SIGNALS_H
#define RUN_SIGNALS_H

/* Once in a process, at the first call that is followed. */
void run_signals_start(void);

/* In a forked child, which has no such thread: the signals do what they did. */
void run_signals_forked(void);

#endif
