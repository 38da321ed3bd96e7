/* SPDX-License-Identifier: MIT */
#include "analysis/rules.h"

#include "analysis/pattern_file.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

enum {
    WHERE_MAX = 320
};

#define FILE_MAX ((uint64_t)TN_PATTERN_LINES_MAX * TN_PATTERN_LINE_MAX)

/* For PyTorch, with stacks of Python, of C++, or of both. */
static const char default_text[] =
    "# category: pattern on \"file:line:function\" (POSIX extended regular expression)\n"
    "# The outermost frame that a rule matches decides, by the first rule that matches it.\n"
    "optimizer: /torch/optim/\n"
    "optimizer: /(apex|deepspeed)/.*optim\n"
    "gradient: /torch/_tensor\\.py:[0-9]+:backward$\n"
    "gradient: /torch/autograd/(__init__|graph)\\.py:\n"
    "gradient: torch::autograd::(Engine|python::PythonEngine)::\n"
    "gradient: /torch/nn/utils/clip_grad\\.py:\n"
    "communication: /torch/(distributed/|nn/parallel/)\n"
    "communication: c10d::|ProcessGroup\n"
    "parameter: /torch/nn/modules/module\\.py:[0-9]+:(_apply|to|cuda|to_empty|load_state_dict)$\n"
    "parameter: /torch/nn/modules/[a-z_]+\\.py:[0-9]+:(__init__|reset_parameters)$\n"
    "parameter: /torch/nn/(parameter|init)\\.py:\n"
    "parameter: :[0-9]+:(from_pretrained|load_state_dict)$\n"
    "input: /torch/utils/data/\n"
    "input: :[0-9]+:(pin_memory|collate_fn|default_collate)$\n"
    "activation: /torch/nn/modules/module\\.py:[0-9]+:_(wrapped_)?call_impl$\n"
    "activation: /torch/nn/(modules/[a-z_]+|functional)\\.py:\n"
    "activation: :[0-9]+:forward$\n"
    "activation: /torch/cuda/graphs\\.py:\n"
    "compiled: /torch/_(inductor|dynamo)/|/torchinductor_\n"
    "# Names that tarn trim --anonymize made up say what they had been.\n"
    "optimizer: :function[0-9]+ \\(optimizer\\)$\n"
    "gradient: :function[0-9]+ \\(gradient\\)$\n"
    "communication: :function[0-9]+ \\(communication\\)$\n"
    "parameter: :function[0-9]+ \\(parameter\\)$\n"
    "input: :function[0-9]+ \\(input\\)$\n"
    "activation: :function[0-9]+ \\(activation\\)$\n"
    "compiled: :function[0-9]+ \\(compiled\\)$\n";

const char *tarn_rules_default_text(void)
{
    return default_text;
}

/* ---- parsing ---- */

/* The number of a category; -1 when host memory is missing. There are few. */
static int64_t category_get(struct tarn_rules *rules, const char *word)
{
    const char *const *names = rules->categories.items;

    for (size_t i = 0; i < rules->categories.count; i++) {
        if (strcmp(names[i], word) == 0) {
            return (int64_t)i;
        }
    }
    const char *name = tn_arena_copy_text(&rules->arena, word, strlen(word));
    const char **added = name ? tn_vec_push(&rules->categories) : NULL;

    if (!added) {
        return -1;
    }
    *added = name;
    return (int64_t)rules->categories.count - 1;
}

static enum tarn_status rule_add(void *context, const struct tn_pattern_line *line,
                                 struct tarn_error *error)
{
    struct tarn_rules *rules = context;
    const int64_t category = category_get(rules, line->word);
    struct tn_rule *rule = category >= 0 ? tn_vec_push(&rules->rules) : NULL;
    char where[WHERE_MAX];

    if (!rule) {
        return tn_fail_memory(error);
    }
    (void)snprintf(where, sizeof where, "%.*s, line %llu",
                   tn_utf8_cut(line->file, TN_PATTERN_FILE_SHOWN), line->file,
                   (unsigned long long)line->number);
    rule->category = (uint32_t)category;
    const enum tarn_status status = tn_pattern_init(&rule->pattern, line->rest, where, error);

    rules->rules.count -= status != TARN_OK;
    return status;
}

/* Takes over the input. */
static enum tarn_status rules_read(struct tn_input *input, const char *name,
                                   struct tarn_rules **rules_out, struct tarn_error *error)
{
    struct tarn_rules *rules = tn_host_alloc_zero(sizeof *rules);

    *rules_out = NULL;
    if (!rules) {
        tn_input_close(input);
        return tn_fail_memory(error);
    }
    tn_arena_init(&rules->arena, &rules->budget);
    tn_vec_init(&rules->categories, sizeof(const char *));
    tn_vec_init(&rules->rules, sizeof(struct tn_rule));
    const enum tarn_status status =
        tn_pattern_file_read(input, name, "optimizer: /torch/optim/", rule_add, rules, error);

    tn_input_close(input);
    if (status) {
        tarn_rules_destroy(rules);
        return status;
    }
    *rules_out = rules;
    return TARN_OK;
}

enum tarn_status tn_rules_parse(const char *text, size_t size, const char *name,
                                struct tarn_rules **rules_out, struct tarn_error *error)
{
    struct tn_input input;
    const struct tn_unpack_limits limits = {.max_bytes = FILE_MAX};
    const enum tarn_status status = tn_input_open_memory(&input, text, size, &limits, error);

    *rules_out = NULL;
    return status ? status : rules_read(&input, name, rules_out, error);
}

enum tarn_status tarn_rules_load(const char *path, struct tarn_rules **rules_out,
                                 struct tarn_error *error)
{
    struct tn_input input;
    const struct tn_unpack_limits limits = {.max_bytes = FILE_MAX};
    const enum tarn_status status = tn_input_open(&input, path, &limits, error);

    *rules_out = NULL;
    return status ? status : rules_read(&input, path, rules_out, error);
}

enum tarn_status tarn_rules_create_default(struct tarn_rules **rules_out, struct tarn_error *error)
{
    return tn_rules_parse(default_text, sizeof default_text - 1, "the built-in rules", rules_out,
                          error);
}

void tarn_rules_destroy(struct tarn_rules *rules)
{
    if (!rules) {
        return;
    }
    struct tn_rule *items = rules->rules.items;

    for (size_t i = 0; i < rules->rules.count; i++) {
        tn_pattern_fini(&items[i].pattern);
    }
    tn_vec_fini(&rules->rules);
    tn_vec_fini(&rules->categories);
    tn_arena_fini(&rules->arena);
    tn_host_free(rules, sizeof *rules);
}

/* ---- answers ---- */

enum tarn_status tn_categories_init(struct tn_categories *categories,
                                    const struct tarn_rules *rules, const struct tn_model *model,
                                    struct tarn_error *error)
{
    struct tarn_rules *own = NULL;
    const enum tarn_status status = rules ? TARN_OK : tarn_rules_create_default(&own, error);

    if (status) {
        return status;
    }
    *categories = (struct tn_categories){
        .rules = rules ? rules : own,
        .own_rules = own,
        .model = model,
        .of_frame = tn_host_alloc_zero(((size_t)model->frames.count + 1) * sizeof(uint32_t)),
        .of_stack = tn_host_alloc_zero(((size_t)model->stacks.count + 1) * sizeof(uint32_t)),
    };
    if (!categories->of_frame || !categories->of_stack) {
        tn_categories_fini(categories);
        return tn_fail_memory(error);
    }
    return TARN_OK;
}

void tn_categories_fini(struct tn_categories *categories)
{
    const struct tn_model *model = categories->model;

    tn_host_free(categories->of_stack, ((size_t)model->stacks.count + 1) * sizeof(uint32_t));
    tn_host_free(categories->of_frame, ((size_t)model->frames.count + 1) * sizeof(uint32_t));
    tarn_rules_destroy(categories->own_rules);
}

/* The text that rules see. A path that "tarn trim --anonymize" has cut down to the package gets a
 * slash in front, as rules on whole paths want it. */
static void frame_text_set(struct tn_frame_text *text, const struct tn_model *model,
                           const struct tn_frame *frame)
{
    static const char package[] = "torch/";

    tn_frame_text_set(text, model, frame);
    if (strncmp(text->text, package, sizeof package - 1) == 0) {
        const size_t length = strlen(text->text);
        const size_t kept = length < TN_PATTERN_TEXT_MAX ? length : TN_PATTERN_TEXT_MAX - 1;

        memmove(text->text + 1, text->text, kept);
        text->text[0] = '/';
        text->text[kept + 1] = '\0';
    }
}

uint32_t tn_category_of_frame(struct tn_categories *categories, uint32_t number)
{
    const struct tn_rule *rules = categories->rules->rules.items;
    uint32_t *known = &categories->of_frame[number];

    if (*known == 0) {
        struct tn_frame_text text = {.text = ""};

        *known = 1;
        frame_text_set(&text, categories->model, tn_model_frame(categories->model, number));
        for (size_t i = 0; i < categories->rules->rules.count; i++) {
            if (tn_pattern_matches(&rules[i].pattern, &text)) {
                *known = rules[i].category + 2;
                break;
            }
        }
    }
    return *known - 1;
}

uint32_t tn_category_of_stack(struct tn_categories *categories, uint32_t number)
{
    const struct tn_stack stack = tn_model_stack(categories->model, number);
    uint32_t *known = &categories->of_stack[number];

    if (*known == 0) {
        *known = 1;
        for (uint32_t i = stack.count; i > 0 && *known == 1; i--) {
            *known = tn_category_of_frame(categories, stack.frames[i - 1]) + 1;
        }
    }
    return *known - 1;
}

uint32_t tn_category_count(const struct tn_categories *categories)
{
    return (uint32_t)categories->rules->categories.count + 3;
}

uint32_t tn_category_of(struct tn_categories *categories, const struct tn_lifetime *lifetime,
                        uint64_t first_step)
{
    const uint32_t hints = (uint32_t)categories->rules->categories.count + 1;
    const uint32_t category = tn_category_of_stack(categories, lifetime->stack);

    if (category != TN_CATEGORY_UNCLASSIFIED) {
        return category;
    }
    if (lifetime->end == TN_NEVER) {
        return lifetime->start == TN_NEVER || lifetime->start <= first_step
                   ? hints
                   : TN_CATEGORY_UNCLASSIFIED;
    }
    return lifetime->start != TN_NEVER && lifetime->end - lifetime->start <= TN_TEMPORARY_ENTRIES
               ? hints + 1
               : TN_CATEGORY_UNCLASSIFIED;
}

const char *tn_category_name(const struct tn_categories *categories, uint32_t category,
                             const char **hint_out)
{
    const size_t count = categories->rules->categories.count;
    const char *const *names = categories->rules->categories.items;

    *hint_out = "";
    if (category == TN_CATEGORY_UNCLASSIFIED) {
        return "unclassified";
    }
    if (category <= count) {
        return names[category - 1];
    }
    *hint_out = " (by lifetime)";
    return category == count + 1 ? "parameter" : "temporary";
}
