/* SPDX-License-Identifier: MIT */
/*
 * The messages of the control socket, PID.sock beside PID.page. A client sends one request and gets
 * one reply; both have a fixed size, so that a message is right or refused, and no length is ever
 * believed. A change is a new version.
 */
#ifndef TN_WATCH_CONTROL_MESSAGE_H
#define TN_WATCH_CONTROL_MESSAGE_H

#include "base/attr.h"
#include "tarn/graph_pool.h"
#include "tarn/status.h"

#include <assert.h>

#define TN_CONTROL_MAGIC "tarnctl"

enum {
    TN_CONTROL_VERSION = 1,
    TN_CONTROL_PATH_MAX = 1024,
    TN_CONTROL_TEXT_MAX = 512
};

enum tn_control_command {
    TN_CONTROL_SNAPSHOT = 1, /* of all allocators, to `path`, which must not exist */
    TN_CONTROL_TRIM,         /* each allocator to `value` bytes */
    TN_CONTROL_HISTORY_ON,   /* `value` events are kept; 0: the default */
    TN_CONTROL_HISTORY_OFF,
    TN_CONTROL_SLEEP, /* the pool that `path` names, "FIRST,SECOND"; `value` 1: without contents */
    TN_CONTROL_WAKE,
    TN_CONTROL_END
};

struct tn_control_request {
    char magic[8];
    uint32_t version;
    uint32_t command;
    uint64_t value;
    char path[TN_CONTROL_PATH_MAX];
};

struct tn_control_reply {
    char magic[8];
    uint32_t version;
    uint32_t status; /* enum tarn_status */
    uint64_t value;  /* TRIM: bytes reserved afterwards; SNAPSHOT: nanoseconds that it took */
    char text[TN_CONTROL_TEXT_MAX];
};

static_assert(sizeof(struct tn_control_request) == 1048, "the same on every system");
static_assert(sizeof(struct tn_control_reply) == 536, "the same on every system");

/* The pool that the request names; false if it names none. */
bool tn_control_read_pool(const struct tn_control_request *request, struct tarn_pool_id *pool_out);

/* Whether it is a request that can be served: of this version, with a known command and, for a
 * snapshot, an absolute path that ends, for sleep and wake a pool. TARN_ERR_FORMAT. */
enum tarn_status tn_control_check_request(const struct tn_control_request *request,
                                          struct tarn_error *error) TN_MUST_CHECK;

/* Puts the reply's error, whose text may be anything, into `error`. TARN_ERR_FORMAT for what is no
 * reply. */
enum tarn_status tn_control_read_reply(struct tn_control_reply *reply,
                                       struct tarn_error *error) TN_MUST_CHECK;

#endif
