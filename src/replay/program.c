/* SPDX-License-Identifier: MIT */
#include "replay/program.h"

#include <stdarg.h>
#include <stdio.h>

void tn_program_init(struct tn_program *program, int device)
{
    *program = (struct tn_program){.device = device};
    tn_vec_init(&program->ops, sizeof(struct tn_op));
    tn_vec_init(&program->start_segments, sizeof(struct tn_start_segment));
    tn_vec_init(&program->start_blocks, sizeof(struct tn_start_block));
    tn_vec_init(&program->segment_addresses, sizeof(uint64_t));
    tn_vec_init(&program->map_addresses, sizeof(uint64_t));
    tn_vec_init(&program->pools, sizeof(struct tarn_pool_id));
}

void tn_program_fini(struct tn_program *program)
{
    tn_vec_fini(&program->ops);
    tn_vec_fini(&program->start_segments);
    tn_vec_fini(&program->start_blocks);
    tn_vec_fini(&program->segment_addresses);
    tn_vec_fini(&program->map_addresses);
    tn_vec_fini(&program->pools);
}

void tn_program_note(struct tn_program *program, const char *format, ...)
{
    va_list args;

    if (program->note_count == TN_NOTES_MAX) {
        return;
    }
    va_start(args, format);
    (void)vsnprintf(program->notes[program->note_count++], TN_NOTE_TEXT_MAX, format, args);
    va_end(args);
}

uint64_t tn_program_reserved_at_start(const struct tn_program *program)
{
    const struct tn_start_segment *segments = program->start_segments.items;
    uint64_t reserved = 0;

    for (size_t i = 0; i < program->start_segments.count; i++) {
        reserved += segments[i].size;
    }
    return reserved;
}
