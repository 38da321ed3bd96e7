/* SPDX-License-Identifier: MIT */
/* Trace entries as Python prints the dicts that they were. */
#ifndef TN_RENDER_PYTHON_REPR_H
#define TN_RENDER_PYTHON_REPR_H

#include "base/text_out.h"
#include "snapshot/model.h"

/* Without a line end. Keys come in the order of the file; keys that the reader does not know are
 * missing. */
void tn_python_repr_entry(struct tn_text_out *out, const struct tn_model *model,
                          const struct tn_trace_entry *entry);

#endif
