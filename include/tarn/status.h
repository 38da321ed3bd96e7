/* SPDX-License-Identifier: MIT */
/*
 * The result type of all functions that can fail: `enum tarn_status`, 0 is success. Where an error
 * needs details, the last parameter is a `struct tarn_error *`, owned by the caller, which may be
 * NULL and is written only on failure.
 */
#ifndef TARN_STATUS_H
#define TARN_STATUS_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* name, number, text */
#define TARN_STATUS_MAP(X)                                                                         \
    X(OK, 0, "success")                                                                            \
    X(ERR_OUT_OF_MEMORY, 1, "device out of memory")                                                \
    X(ERR_HOST_MEMORY, 2, "host out of memory")                                                    \
    X(ERR_INVALID_ARGUMENT, 3, "invalid argument")                                                 \
    X(ERR_INVALID_POINTER, 4, "invalid device pointer")                                            \
    X(ERR_NOT_FOUND, 5, "not found")                                                               \
    X(ERR_STATE, 6, "not allowed in this state")                                                   \
    X(ERR_CONFIG, 7, "invalid allocator settings")                                                 \
    X(ERR_DEVICE, 8, "device error")                                                               \
    X(ERR_NOT_READY, 9, "not ready")                                                               \
    X(ERR_NOT_SUPPORTED, 10, "not supported")                                                      \
    X(ERR_IO, 11, "input/output error")                                                            \
    X(ERR_FORMAT, 12, "unrecognised or malformed file")                                            \
    X(ERR_UNSAFE, 13, "refused as unsafe")                                                         \
    X(ERR_TRUNCATED, 14, "input ends early")                                                       \
    X(ERR_LIMIT, 15, "limit exceeded")                                                             \
    X(ERR_MISMATCH, 16, "does not match")                                                          \
    X(ERR_INTERNAL, 17, "internal error")                                                          \
    X(ERR_CANCELLED, 18, "stopped by the caller")

enum tarn_status {
#define TARN_STATUS_ENUM(name, number, text) TARN_##name = number,
    TARN_STATUS_MAP(TARN_STATUS_ENUM)
#undef TARN_STATUS_ENUM
    TARN_STATUS_COUNT
};

enum {
    TARN_ERROR_TEXT_MAX = 1008
};

/* What went wrong, in one to three sentences. */
struct tarn_error {
    enum tarn_status status;        /* same as the returned code */
    int64_t offset;                 /* byte or character position in the input, or -1 */
    char text[TARN_ERROR_TEXT_MAX]; /* NUL-terminated, safe to print (text.h), truncated when
                                       longer */
};

/* Progress and cancellation of a long call. `report` is called only on the calling thread and with
 * no lock held; `done` rises to `total` (0: unknown) in the units that the call documents. It must
 * not use the objects that the call works on. When it returns false, the call soon fails with
 * TARN_ERR_CANCELLED. Zero bytes: no reports. */
struct tarn_progress {
    bool (*report)(void *context, uint64_t done, uint64_t total);
    void *context;
};

/* Name of a code ("TARN_ERR_CONFIG") and its text; "unknown status" for other numbers. Static
 * storage; any thread. */
TARN_API const char *tarn_status_name(enum tarn_status status);
TARN_API const char *tarn_status_text(enum tarn_status status);

#ifdef __cplusplus
}
#endif

#endif
