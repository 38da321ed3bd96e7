/* SPDX-License-Identifier: MIT */
/*
 * Stacks of Python for tarn/history.h: which function was at which instruction, kept once each. All
 * of the interpreter is looked up at run time; where there is none, no thread has such a stack.
 * Thread-safe.
 */
#ifndef PLUG_PYTORCH_PY_FRAMES_H
#define PLUG_PYTORCH_PY_FRAMES_H

#include "tarn/history.h"

enum {
    TN_PY_DEPTH_MAX = 256,      /* frames of a stack; the innermost are kept */
    TN_PY_FRAMES_MAX = 1 << 18, /* different frames of all stacks, 40 bytes each */
    TN_PY_BUCKETS = TN_PY_FRAMES_MAX
};

/* What a history asks for stacks: its context is NULL. */
extern const struct tarn_host_frames tn_py_frames;

/* Looks the interpreter's functions up, once; whether they are there. The caller holds no lock. */
bool tn_py_open(void);

/* At most so many different frames from now on; 0 = TN_PY_FRAMES_MAX. */
void tn_py_set_limit(uint64_t frames);

struct tn_py_usage {
    uint64_t frames;  /* different ones, those that wait for their release included */
    uint64_t dropped; /* stacks that found no room since the last look */
};
struct tn_py_usage tn_py_usage(void);

/* The interpreter ends: no function of it is called any more. */
void tn_py_shutdown(void);

/* Between these two, which may be nested, the calling thread may hold a lock of torch's, for which
 * the holder of the interpreter's may be waiting: so it does not wait for that one. */
void tn_py_forbid_waiting(void);
void tn_py_allow_waiting(void);

/* Takes the interpreter's lock, where there is one, until the given value is handed back. */
enum {
    TN_PY_NOT_ENTERED = -1
};
int tn_py_enter(void);
void tn_py_leave(int entered);

#endif
