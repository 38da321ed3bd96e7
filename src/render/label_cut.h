/* SPDX-License-Identifier: MIT */
/*
 * Labels that are still longer than a line has room for are cut: of a path the beginning goes, of
 * anything else the end, and "..." takes its place. A label that another row would share then stays
 * whole.
 */
#ifndef TN_RENDER_LABEL_CUT_H
#define TN_RENDER_LABEL_CUT_H

#include "render/label_fit.h"

/* Cuts what `fit` shows of the labels. False when host memory is missing; `fit` is usable then. */
bool tn_labels_cut(struct tn_label_fit *fit, const char *const *labels, size_t room) TN_MUST_CHECK;

/* The labels of `count` groups, struct tarn_group `row_size` bytes apart, in lines with so much
 * room: fitted and cut. Without host memory, or with `room` 0, `fit_out` has none: they stay whole.
 */
void tn_group_labels_fit(struct tn_label_fit *fit_out, const void *groups, size_t count,
                         size_t row_size, size_t room);

/* How many bytes of the text fit with "..." behind them; all of it if it fits whole. */
size_t tn_label_cut_size(const char *text, size_t room);

#endif
