/* SPDX-License-Identifier: MIT */
#include "alloc/pool/failure.h"

#include "base/errinfo.h"
#include "base/os_fork.h"

#include <inttypes.h>

enum tarn_status tn_pointer_unknown(tarn_ptr ptr, struct tarn_error *error)
{
    return tn_fail(error, TARN_ERR_INVALID_POINTER,
                   "invalid device pointer: 0x%" PRIx64
                   " is not allocated here (never allocated, freed already, or inside a block)",
                   ptr);
}

enum tarn_status tn_device_failed(struct tarn_device *device, enum tarn_status status,
                                  const char *what, struct tarn_error *error)
{
    const char *text = device->ops->last_error(device);

    return tn_fail(error, status, "%s on device %d failed: %s", what, device->ordinal,
                   text[0] ? text : tarn_status_text(status));
}

enum tarn_status tn_forked_refuse(struct tarn_error *error)
{
    return tn_fork_refuse(error, "the allocator");
}
