/* SPDX-License-Identifier: MIT */
#include "alloc/engine/call_back.h"

#include "base/assertion.h"

#include <stddef.h>

static _Thread_local struct tn_call_back *innermost __attribute__((tls_model("initial-exec")));

void tn_call_back_begin(struct tn_call_back *call, const struct tn_engine *engine,
                        enum tn_call_back_kind kind)
{
    *call = (struct tn_call_back){.engine = engine, .kind = kind, .outer = innermost};
    innermost = call;
}

void tn_call_back_end(const struct tn_call_back *call)
{
    tn_assert(innermost == call);
    innermost = call->outer;
}

bool tn_call_back_is_inside(const struct tn_engine *engine, enum tn_call_back_kind kind)
{
    for (const struct tn_call_back *call = innermost; call; call = call->outer) {
        if (call->engine == engine && call->kind == kind) {
            return true;
        }
    }
    return false;
}
