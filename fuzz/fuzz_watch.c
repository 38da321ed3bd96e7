/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a page of counters: a head, then slots. Whatever is taken has ended texts and no
 * more rows than there are. The slots are cut short in the input: the first bytes stand for those
 * of each slot.
 */
#include "fuzz_target.h"

#include "watch/watch_record.h"

#include <stdlib.h>
#include <string.h>

struct input {
    const uint8_t *data;
    size_t size;
    unsigned turns; /* of reads: what changes in between is drawn from the data */
};

static void must(bool right)
{
    if (!right) {
        abort();
    }
}

/* Beyond the input there are zeros up to the page's end, and nothing after it. */
static bool input_read(void *context, uint64_t offset, void *bytes_out, size_t size)
{
    struct input *input = context;
    const bool changes = input->size > 0 && input->data[input->turns++ % input->size] == 0xff;

    if (offset + size > TN_PAGE_SIZE - (input->size % 2) * TN_PAGE_SLOT_SIZE) {
        return false;
    }
    for (size_t i = 0; i < size; i++) {
        const uint64_t at = (offset + i) % (TN_PAGE_SLOT_SIZE / 2);
        const uint8_t byte = at < input->size ? input->data[at] : 0;

        ((uint8_t *)bytes_out)[i] = (uint8_t)(byte + changes);
    }
    return true;
}

static void use_head(const uint8_t *data, size_t size)
{
    struct tn_page_head head = {.version = 0};
    struct tarn_watch_process process;
    struct tarn_error error;

    memcpy(&head, data, size < sizeof head ? size : sizeof head);
    if (tn_watch_head_decode(&head, &process, &error) == TARN_OK) {
        must(memchr(process.program, '\0', sizeof process.program) && process.process >= 0);
        must(memchr(process.version, '\0', sizeof process.version));
    } else {
        must(strlen(error.text) > 0);
    }
}

static void use_record(const struct tarn_watch_record *record)
{
    must(memchr(record->backend, '\0', sizeof record->backend));
    must(memchr(record->policy, '\0', sizeof record->policy));
    must(record->row_count <= TARN_WATCH_ROWS_MAX && record->device >= -1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {.data = data, .size = size};
    struct tarn_watch_record record;

    use_head(data, size);
    for (uint32_t i = 0; i < TARN_WATCH_ALLOCATORS; i++) {
        if (tn_watch_record_read(input_read, &input, i, &record, NULL) == TARN_OK) {
            use_record(&record);
        }
    }
    return 0;
}
