/* SPDX-License-Identifier: MIT */
/* Any bytes as a request, and as a reply, of the control socket: what is taken has ended texts and
 * a command or a status that exists. */
#include "fuzz_target.h"

#include "watch/control_message.h"

#include <stdlib.h>
#include <string.h>

static void must(bool right)
{
    if (!right) {
        abort();
    }
}

static void use_request(const uint8_t *data, size_t size)
{
    struct tn_control_request request = {.version = 0};
    struct tarn_error error;

    memcpy(&request, data, size < sizeof request ? size : sizeof request);
    if (tn_control_check_request(&request, &error) == TARN_OK) {
        must(request.command >= TN_CONTROL_SNAPSHOT && request.command < TN_CONTROL_END);
        must(request.command != TN_CONTROL_SNAPSHOT ||
             (request.path[0] == '/' && memchr(request.path, '\0', sizeof request.path)));
        must(request.command < TN_CONTROL_SLEEP || memchr(request.path, '\0', sizeof request.path));
    } else {
        must(strlen(error.text) > 0);
    }
}

static void use_reply(const uint8_t *data, size_t size)
{
    struct tn_control_reply reply = {.version = 0};
    struct tarn_error error = {.text = ""};

    memcpy(&reply, data, size < sizeof reply ? size : sizeof reply);
    const enum tarn_status st = tn_control_read_reply(&reply, &error);

    must(st < TARN_STATUS_COUNT && memchr(error.text, '\0', sizeof error.text));
    must(st == TARN_OK || error.status == st);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    use_request(data, size);
    use_reply(data, size);
    return 0;
}
