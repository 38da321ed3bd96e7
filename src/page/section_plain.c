/* SPDX-License-Identifier: MIT */
#include "page/section_plain.h"

#include "page/section.h"

#include <stdio.h>

static struct tn_vec sections = {.item_size = sizeof(struct tn_plain_section)};

const struct tn_plain_section *tn_plain_sections(size_t *count_out)
{
    *count_out = sections.count;
    return sections.items;
}

void tn_plain_sections_release(void)
{
    struct tn_plain_section *all = sections.items;

    for (size_t i = 0; i < sections.count; i++) {
        tn_column_fini(&all[i].bytes);
    }
    tn_vec_fini(&sections);
    tn_vec_init(&sections, sizeof(struct tn_plain_section));
}

static struct tn_plain_section *last_section(void)
{
    return (struct tn_plain_section *)sections.items + sections.count - 1;
}

bool tn_section_begin(struct tn_section *section, const struct tn_section_out *out,
                      const char *name, size_t size)
{
    struct tn_plain_section plain;

    (void)size;
    (void)snprintf(plain.name, sizeof plain.name, "%s%s", out->prefix, name);
    tn_column_init(&plain.bytes);
    section->failed = !tn_vec_append(&sections, &plain, 1);
    return !section->failed;
}

void tn_section_add(struct tn_section *section, const uint8_t *bytes, size_t size)
{
    struct tn_column *column = &last_section()->bytes;

    tn_column_put(column, bytes, size);
    section->failed |= column->failed;
}

bool tn_section_end(struct tn_section *section)
{
    return !section->failed;
}
