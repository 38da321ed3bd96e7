/* SPDX-License-Identifier: MIT */
/* A build without the page. */
#include "base/errinfo.h"
#include "tarn/viewer.h"

static enum tarn_status page_fail(struct tarn_error *error)
{
    return tn_fail(error, TARN_ERR_NOT_SUPPORTED,
                   "cannot write the page: this tarn was not built with it; build tarn with "
                   "TARN_PAGE and zlib");
}

enum tarn_status tarn_view_write_runs(const struct tarn_view_run *runs, size_t count,
                                      const struct tarn_view_options *options,
                                      const struct tarn_writer *writer, struct tarn_error *error)
{
    (void)runs;
    (void)count;
    (void)options;
    (void)writer;
    return page_fail(error);
}

enum tarn_status tarn_view_write_ranks(struct tarn_fleet *fleet,
                                       const struct tarn_fleet_options *how,
                                       const struct tarn_view_ranks_options *options,
                                       const struct tarn_writer *writer, struct tarn_error *error)
{
    (void)fleet;
    (void)how;
    (void)options;
    (void)writer;
    return page_fail(error);
}

enum tarn_status tarn_view_write_empty(const struct tarn_view_options *options,
                                       const struct tarn_writer *writer, struct tarn_error *error)
{
    return tarn_view_write_runs(NULL, 1, options, writer, error);
}

enum tarn_status tarn_view_write(const struct tarn_snapshot *snapshot,
                                 const struct tarn_view_options *options,
                                 const struct tarn_writer *writer, struct tarn_error *error)
{
    (void)snapshot;
    return tarn_view_write_runs(NULL, 1, options, writer, error);
}
