/* SPDX-License-Identifier: MIT */
/* Texts that a thread's events carry. They live with the thread, so that setting one takes neither
 * a lock nor host memory. */
#ifndef TN_HISTORY_LABEL_H
#define TN_HISTORY_LABEL_H

#include "tarn/event.h"

/* What tarn_compile_context says outside of all: "N/A". Known by its address. */
extern const char tn_no_compile_context[];

#endif
