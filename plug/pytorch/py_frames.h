/* SPDX-License-Identifier: MIT */
/*
 * Python stacks for tarn/history.h: functions and instruction offsets, stored once each. The
 * interpreter's functions are looked up at run time; without an interpreter there are no such
 * stacks. Thread-safe.
 */
#ifndef PLUG_PYTORCH_PY_FRAMES_H
#define PLUG_PYTORCH_PY_FRAMES_H

#include "tarn/history.h"

enum {
    TN_PY_DEPTH_MAX = 256,      /* frames of a stack; the innermost are kept */
    TN_PY_FRAMES_MAX = 1 << 18, /* distinct frames of all stacks, 40 bytes each */
    TN_PY_BUCKETS = TN_PY_FRAMES_MAX
};

/* The host frames for a history; the context is NULL. */
extern const struct tarn_host_frames tn_py_frames;

/* Looks up the interpreter's functions once; false if they do not exist. The caller must not hold a
 * lock. */
bool tn_py_open(void);

/* Sets the maximum number of distinct frames; 0 = TN_PY_FRAMES_MAX. */
void tn_py_set_limit(uint64_t frames);

struct tn_py_usage {
    uint64_t frames;  /* distinct ones, including those waiting for release */
    uint64_t dropped; /* stacks dropped for lack of space since the last call */
};
struct tn_py_usage tn_py_usage(void);

/* The interpreter is shutting down: do not call it any more. */
void tn_py_shutdown(void);

/* Between these two calls, which may be nested, the calling thread may hold a lock of torch that
 * the holder of the interpreter's lock waits for, so it must not wait for the latter. */
void tn_py_forbid_waiting(void);
void tn_py_allow_waiting(void);

/* Takes the interpreter's lock, if there is an interpreter; the value is for the release. */
enum {
    TN_PY_NOT_ENTERED = -1
};
int tn_py_enter(void);
void tn_py_leave(int entered);

#endif
