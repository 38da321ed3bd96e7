/* SPDX-License-Identifier: MIT */
#include "page/bundle.h"

#include "base/escaped.h"

#include <string.h>

static void piece_put(struct tn_text_out *out, const struct tn_bundle_piece *piece)
{
    tn_text_put(out, piece->text, piece->size);
}

void tn_bundle_begin(const struct tn_bundle *bundle, struct tn_text_out *out, const char *title,
                     const char *policy)
{
    piece_put(out, &bundle->start);
    tn_text_puts(out, policy);
    piece_put(out, &bundle->policy);
    tn_text_put_escaped(out, title, strlen(title), TN_ESCAPED_XML);
    piece_put(out, &bundle->middle);
}

void tn_bundle_end(const struct tn_bundle *bundle, struct tn_text_out *out)
{
    piece_put(out, &bundle->end);
}

size_t tn_bundle_size(const struct tn_bundle *bundle)
{
    return bundle->start.size + bundle->policy.size + bundle->middle.size + bundle->end.size;
}
