/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a log of decisions, through a pipe: whatever the log says, the allocator runs the
 * calls on a simulated device or the log is refused with a line. Nothing may leak.
 */
#include "fuzz_target.h"

#include "tarn/host.h"
#include "tarn/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    PIPE_HOLDS = 60000 /* bytes that go into a pipe without a reader */
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct tarn_verify_result result = {.struct_size = sizeof result};
    struct tarn_error error = {.status = TARN_OK};
    char path[32];
    int ends[2];

    if (size > PIPE_HOLDS || pipe(ends) != 0) {
        return 0;
    }
    if (write(ends[1], bytes, size) == (ssize_t)size) {
        (void)close(ends[1]);
        (void)snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
        if (tarn_verify_log(path, NULL, &result, &error) && error.text[0] == '\0') {
            abort();
        }
    } else {
        (void)close(ends[1]);
    }
    (void)close(ends[0]);
    if (tarn_host_get_usage().live_count != 0) {
        abort();
    }
    return 0;
}
