/* SPDX-License-Identifier: MIT */
/* Texts that a thread's events carry. They live with the thread, so that reading them takes no
 * lock; in host memory that is there while a text is, because a library that is loaded into a
 * running program (by Python, say) gets only some hundred bytes of each thread's own storage. */
#ifndef TN_HISTORY_LABEL_H
#define TN_HISTORY_LABEL_H

#include "tarn/event.h"

/* What tarn_compile_context says outside of all: "N/A". Known by its address. */
extern const char tn_no_compile_context[];

#endif
