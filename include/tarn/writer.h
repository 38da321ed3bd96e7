/* SPDX-License-Identifier: MIT */
/*
 * Where reports go: a function of the caller's that takes text in pieces, in order.
 */
#ifndef TARN_WRITER_H
#define TARN_WRITER_H

#include "status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tarn_writer {
    /* Takes `size` bytes (> 0). Anything but TARN_OK stops the report, which returns that status.
     * */
    enum tarn_status (*write)(void *context, const char *bytes, size_t size);
    void *context;
};

#ifdef __cplusplus
}
#endif

#endif
