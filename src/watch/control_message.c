/* SPDX-License-Identifier: MIT */
#include "watch/control_message.h"

#include "base/errinfo.h"

#include <string.h>

enum tarn_status tn_control_check_request(const struct tn_control_request *request,
                                          struct tarn_error *error)
{
    if (memcmp(request->magic, TN_CONTROL_MAGIC, sizeof request->magic) != 0) {
        return tn_fail(error, TARN_ERR_FORMAT, "this is no request");
    }
    if (request->version != TN_CONTROL_VERSION) {
        return tn_fail(error, TARN_ERR_FORMAT,
                       "the request has version %u, and the process takes %d", request->version,
                       (int)TN_CONTROL_VERSION);
    }
    if (request->command < TN_CONTROL_SNAPSHOT || request->command >= TN_CONTROL_END) {
        return tn_fail(error, TARN_ERR_FORMAT, "the process knows no command %u", request->command);
    }
    if (request->command == TN_CONTROL_SNAPSHOT &&
        (request->path[0] != '/' || !memchr(request->path, '\0', sizeof request->path))) {
        return tn_fail(error, TARN_ERR_FORMAT, "a snapshot needs an absolute path");
    }
    return TARN_OK;
}

enum tarn_status tn_control_read_reply(struct tn_control_reply *reply, struct tarn_error *error)
{
    if (memcmp(reply->magic, TN_CONTROL_MAGIC, sizeof reply->magic) != 0 ||
        reply->version != TN_CONTROL_VERSION || reply->status >= TARN_STATUS_COUNT) {
        return tn_fail(error, TARN_ERR_FORMAT, "the process answered something else than a reply");
    }
    reply->text[sizeof reply->text - 1] = '\0';
    return reply->status ? tn_fail(error, (enum tarn_status)reply->status, "%s", reply->text)
                         : TARN_OK;
}
