/* SPDX-License-Identifier: MIT */
/* A flame graph as a picture. */
#ifndef TN_RENDER_FLAME_SVG_H
#define TN_RENDER_FLAME_SVG_H

#include "render/flame.h"

/* Writes the tree, which has its layout, as one SVG file. `title` is shown as text. The root is on
 * top, or at the bottom. */
void tn_flame_svg_put(struct tn_text_out *out, const struct tn_flame *flame, const char *title,
                      bool root_below);

#endif
