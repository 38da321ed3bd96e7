/* SPDX-License-Identifier: MIT */
/* A page without data that has this reader; tarn_view_write_empty has that of the build, which may
 * lack it. */
#ifndef TN_PAGE_VIEW_WRITE_H
#define TN_PAGE_VIEW_WRITE_H

#include "base/attr.h"
#include "tarn/viewer.h"

#include <stddef.h>

/* `size` 0: there is none, TARN_ERR_NOT_SUPPORTED. Else as tarn_view_write_empty. */
enum tarn_status tn_view_write_reader(const char *reader, size_t size,
                                      const struct tarn_view_options *options,
                                      const struct tarn_writer *writer,
                                      struct tarn_error *error) TN_MUST_CHECK;

#endif
