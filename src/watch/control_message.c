/* SPDX-License-Identifier: MIT */
#include "watch/control_message.h"

#include "base/decimal.h"
#include "base/errinfo.h"

#include <string.h>

/* A number that ends at `end`; NULL if it is none. */
static const char *number_read(const char *text, char end, uint64_t *number_out)
{
    const size_t digits = strspn(text, "0123456789");

    return digits > 0 && text[digits] == end && tn_whole_parse(text, number_out) == TN_DECIMAL_OK
               ? text + digits
               : NULL;
}

bool tn_control_read_pool(const struct tn_control_request *request, struct tarn_pool_id *pool_out)
{
    const bool ends = memchr(request->path, '\0', sizeof request->path) != NULL;
    const char *comma = ends ? number_read(request->path, ',', &pool_out->first) : NULL;

    return comma && number_read(comma + 1, '\0', &pool_out->second);
}

static bool request_wants_pool(const struct tn_control_request *request)
{
    return request->command == TN_CONTROL_SLEEP || request->command == TN_CONTROL_WAKE;
}

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
    struct tarn_pool_id pool;

    if (request_wants_pool(request) && !tn_control_read_pool(request, &pool)) {
        return tn_fail(error, TARN_ERR_FORMAT, "sleep and wake need a pool");
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
