/* SPDX-License-Identifier: MIT */
/* Texts that a thread's events carry. They are per thread, so that reading them takes no lock. They
 * are in host memory, allocated while a text is set, because a library loaded into a running
 * program (by Python, for example) gets only a few hundred bytes of static thread-local storage. */
#ifndef TN_HISTORY_LABEL_H
#define TN_HISTORY_LABEL_H

#include "tarn/event.h"

/* The result of tarn_get_compile_context outside all regions: "N/A". Compared by address. */
extern const char tn_no_compile_context[];

#endif
