/* SPDX-License-Identifier: MIT */
/*
 * Export macro, version and the scalar types that every other header uses. No CUDA header is
 * needed: a device pointer and a stream are 64-bit numbers with the same value as CUdeviceptr and
 * the CUstream/cudaStream_t pointer.
 */
#ifndef TARN_BASE_H
#define TARN_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TARN_VERSION_MAJOR  0
#define TARN_VERSION_MINOR  1
#define TARN_VERSION_PATCH  0
#define TARN_VERSION_STRING "0.1.0"

#if defined(__GNUC__)
#define TARN_API        __attribute__((visibility("default")))
#define TARN_MUST_CHECK __attribute__((warn_unused_result))
#else
#define TARN_API
#define TARN_MUST_CHECK
#endif

/* Address of device memory; 0 is never a valid allocation. */
typedef uint64_t tarn_ptr;

/* Handle of a stream; 0 is the device's default stream. */
typedef uint64_t tarn_stream;

/* How text writes byte counts. JSON always has whole bytes. */
enum tarn_units {
    TARN_UNITS_IEC,   /* "1.50 GiB", by 1024 */
    TARN_UNITS_SI,    /* "1.61 GB", by 1000 */
    TARN_UNITS_BYTES, /* "1610612736" */
    TARN_UNITS_KIB,   /* these always in that unit: "1572864.00 KiB" */
    TARN_UNITS_MIB,
    TARN_UNITS_GIB
};

#define TARN_SIZE_TEXT_MAX 32

/* Writes a byte count as all text of the project does: "7.22 GiB", whole bytes as "512 B", with a
 * final 0 byte. Returns `text_out`. Any thread. */
TARN_API const char *tarn_size_text(char text_out[TARN_SIZE_TEXT_MAX], enum tarn_units units,
                                    double bytes);

/* Version of the library at run time, e.g. "0.1.0". Static storage; any thread. */
TARN_API const char *tarn_version(void);

#ifdef __cplusplus
}
#endif

#endif
