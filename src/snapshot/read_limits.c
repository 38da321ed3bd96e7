/* SPDX-License-Identifier: MIT */
#include "snapshot/read_limits.h"

#include "base/checked.h"
#include "base/errinfo.h"

#include <unistd.h>

enum {
    DEPTH_DEFAULT = 64,
    DEPTH_MOST = 120,
    FRAMES_DEFAULT = 4096,
    RATIO_DEFAULT = 2000,
    STRING_DEFAULT = 64 << 20,
    MEMORY_LEAST = 256 << 20,
    MEMORY_PER_BYTE = 16,
    MEMORY_PER_PACKED_BYTE = 512,
    WRITTEN_LEAST = 256 << 20,
    WRITTEN_PER_BYTE = 1024,
    WRITTEN_PER_PACKED_BYTE = 8192
};

enum tarn_status tn_read_limits_complete(const struct tarn_read_limits *wanted,
                                         struct tarn_read_limits *limits, struct tarn_error *error)
{
    *limits = wanted ? *wanted : (struct tarn_read_limits){.struct_size = sizeof *limits};
    if (limits->struct_size < sizeof *limits || limits->max_depth > DEPTH_MOST) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "the read limits have a wrong size or a depth above %d", DEPTH_MOST);
    }
    limits->max_depth = limits->max_depth ? limits->max_depth : DEPTH_DEFAULT;
    limits->max_bytes = limits->max_bytes ? limits->max_bytes : (uint64_t)1 << 36;
    limits->max_string = limits->max_string ? limits->max_string : STRING_DEFAULT;
    limits->max_ratio = limits->max_ratio ? limits->max_ratio : RATIO_DEFAULT;
    limits->max_frames = limits->max_frames ? limits->max_frames : FRAMES_DEFAULT;
    return TARN_OK;
}

enum tarn_status tn_read_limits_open(const struct tarn_read_limits *wanted,
                                     const struct tn_read_source *source,
                                     struct tarn_read_limits *limits_out, struct tn_input *input,
                                     struct tarn_error *error)
{
    const enum tarn_status status = tn_read_limits_complete(wanted, limits_out, error);

    if (status != TARN_OK) {
        return status;
    }
    const struct tn_unpack_limits unpack = {limits_out->max_bytes, limits_out->max_ratio};

    return source->path ? tn_input_open(input, source->path, &unpack, error)
                        : tn_input_open_memory(input, source->bytes, source->size, &unpack, error);
}

static bool is_packed(const struct tn_input *input)
{
    return input->unpack.packing != TN_PACKING_NONE;
}

static uint64_t memory_per_byte(const struct tn_input *input)
{
    return is_packed(input) ? MEMORY_PER_PACKED_BYTE : MEMORY_PER_BYTE;
}

/* Half of the machine's memory. */
static uint64_t memory_most(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES);
    const long page = sysconf(_SC_PAGESIZE);

    return pages > 0 && page > 0 ? (uint64_t)pages / 2 * (uint64_t)page : (uint64_t)1 << 32;
}

uint64_t tn_read_limits_memory(const struct tarn_read_limits *limits, const struct tn_input *input)
{
    const uint64_t size = input->source.size >= 0 ? (uint64_t)input->source.size : 0;
    const uint64_t most = memory_most();
    uint64_t memory;

    if (limits->max_memory) {
        return limits->max_memory;
    }
    if (!tn_mul_u64(size, memory_per_byte(input), &memory) || memory > most) {
        return most;
    }
    return memory > MEMORY_LEAST ? memory : most < MEMORY_LEAST ? most : MEMORY_LEAST;
}

static uint64_t written_most(const struct tn_input *input, uint64_t per_byte)
{
    const uint64_t size = input->source.size >= 0 ? (uint64_t)input->source.size : 0;
    uint64_t bytes;

    if (!tn_mul_u64(size, per_byte, &bytes)) {
        return UINT64_MAX;
    }
    return bytes > WRITTEN_LEAST ? bytes : WRITTEN_LEAST;
}

void tn_read_limits_follow(const struct tarn_read_limits *limits, const struct tn_input *input,
                           struct tn_model *model)
{
    const uint64_t per_byte = is_packed(input) ? WRITTEN_PER_PACKED_BYTE : WRITTEN_PER_BYTE;

    if (limits->max_memory != 0) {
        return;
    }
    model->written_per_byte = per_byte;
    model->written_most = written_most(input, per_byte);
    if (input->source.size < 0) {
        model->budget.input = &input->source.taken;
        model->budget.per_byte = memory_per_byte(input);
        model->budget.most = memory_most();
    }
}

void tn_read_limits_finish(struct tn_budget *budget)
{
    budget->input = NULL;
}
