/* SPDX-License-Identifier: MIT */
/* History methods of torch's allocator with C signatures; `self` is ignored. Any thread; none of
 * them throws. */
#ifndef PLUG_PYTORCH_MARKS_H
#define PLUG_PYTORCH_MARKS_H

#include <stdbool.h>
#include <stddef.h>

/* A std::string of libstdc++; its text ends with a NUL. */
struct tn_torch_text {
    const char *bytes;
    size_t length;
    char inside[16];
};

/* A std::vector<std::pair<std::string, std::string>>. */
struct tn_torch_text_pair {
    struct tn_torch_text key;
    struct tn_torch_text value;
};

struct tn_torch_text_pairs {
    const struct tn_torch_text_pair *begin;
    const struct tn_torch_text_pair *end;
    const struct tn_torch_text_pair *end_of_room;
};

bool tn_torch_is_history_enabled(void *self);

/* Does nothing: the installer uses tarn_torch_record_history. */
void tn_torch_ignore_record_history(void *self);

/* Start or end of a record_function: pairs "name", "stage" and any others. */
void tn_torch_record_annotation(void *self, const struct tn_torch_text_pairs *pairs);

/* A compiled region starts or ends on the calling thread. */
void tn_torch_push_compile_context(void *self, const struct tn_torch_text *text);
void tn_torch_pop_compile_context(void *self);

void tn_torch_set_user_metadata(void *self, const struct tn_torch_text *text);

#endif
