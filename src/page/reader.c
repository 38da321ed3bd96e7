/* SPDX-License-Identifier: MIT */
#include "page/reader.h"

#include "base/host_mem.h"
#include "page/section_plain.h"
#include "tarn/snapshot.h"
#include "tarn/viewer.h"

static struct tarn_error last_error;

void *tn_reader_alloc(size_t size)
{
    return tn_host_alloc(size + 1); /* of an empty file, too */
}

/* The page around the data is there already. */
static enum tarn_status bundle_drop(void *context, const char *bytes, size_t size)
{
    (void)context;
    (void)bytes;
    (void)size;
    return TARN_OK;
}

static enum tarn_status sections_write(const struct tarn_snapshot *snapshot)
{
    static const struct tarn_view_answers answers = {
        .struct_size = sizeof answers,
        .missing = "the page read the file itself; \"tarn view\" computes them"};
    const struct tarn_view_run run = {
        .struct_size = sizeof run, .snapshot = snapshot, .answers = &answers};
    const struct tarn_writer writer = {bundle_drop, NULL};

    return tarn_view_write_runs(&run, 1, NULL, &writer, &last_error);
}

int tn_reader_read(void *bytes, size_t size)
{
    struct tarn_snapshot *snapshot = NULL;

    tn_plain_sections_release();
    last_error = (struct tarn_error){.offset = -1};
    enum tarn_status status = tarn_snapshot_load_memory(bytes, size, NULL, &snapshot, &last_error);

    tn_host_free(bytes, size + 1);
    if (snapshot) { /* also of a file that ends early */
        status = sections_write(snapshot);
        tarn_snapshot_destroy(snapshot);
    }
    return (int)status;
}

const char *tn_reader_message(void)
{
    return last_error.text;
}

const char *tn_reader_status_name(int status)
{
    return tarn_status_name((enum tarn_status)status);
}

static const struct tn_plain_section *section_at(size_t number)
{
    size_t count;
    const struct tn_plain_section *sections = tn_plain_sections(&count);

    return number < count ? &sections[number] : NULL;
}

size_t tn_reader_section_count(void)
{
    size_t count;

    (void)tn_plain_sections(&count);
    return count;
}

const char *tn_reader_section_name(size_t number)
{
    const struct tn_plain_section *section = section_at(number);

    return section ? section->name : "";
}

const uint8_t *tn_reader_section_bytes(size_t number)
{
    const struct tn_plain_section *section = section_at(number);

    return section ? section->bytes.bytes.items : NULL;
}

size_t tn_reader_section_size(size_t number)
{
    const struct tn_plain_section *section = section_at(number);

    return section ? section->bytes.bytes.count : 0;
}
