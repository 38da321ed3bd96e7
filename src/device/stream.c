/* SPDX-License-Identifier: MIT */
/* Implements tarn/stream.h. */
#include "tarn/stream.h"

#include "base/errinfo.h"
#include "device/device_ops.h"

#include <inttypes.h>

static enum tarn_status stream_failed(struct tarn_device *device, enum tarn_status status,
                                      const char *what, struct tarn_error *error)
{
    return tn_fail(error, status, "%s: %s", what, device->ops->last_error(device));
}

enum tarn_status tn_stream_refuse_per_thread(tarn_stream stream, struct tarn_error *error)
{
    return tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                   "stream %" PRIu64
                   " is cudaStreamPerThread, a different stream in each thread, but "
                   "memory is cached per stream: create a stream for each thread and pass that",
                   stream);
}

enum tarn_status tarn_stream_create(struct tarn_device *device, tarn_stream *stream_out,
                                    struct tarn_error *error)
{
    const enum tarn_status st = device->ops->stream_create(device, stream_out);

    return st ? stream_failed(device, st, "creating a stream", error) : TARN_OK;
}

enum tarn_status tarn_stream_destroy(struct tarn_device *device, tarn_stream stream,
                                     struct tarn_error *error)
{
    const enum tarn_status st = device->ops->stream_destroy(device, stream);

    return st ? stream_failed(device, st, "destroying a stream", error) : TARN_OK;
}

enum tarn_status tarn_stream_wait(struct tarn_device *device, tarn_stream stream,
                                  struct tarn_error *error)
{
    const enum tarn_status st = device->ops->stream_wait(device, stream);

    return st ? stream_failed(device, st, "waiting for a stream", error) : TARN_OK;
}

enum tarn_status tarn_stream_get_capture(struct tarn_device *device, tarn_stream stream,
                                         uint64_t *capture_out, struct tarn_error *error)
{
    uint64_t capture = 0;
    uint32_t count = 0;
    const enum tarn_status st =
        device->ops->capture_info(device, stream, &capture, NULL, 0, &count);

    if (st) {
        return stream_failed(device, st, "querying a capture", error);
    }
    *capture_out = capture;
    return TARN_OK;
}
