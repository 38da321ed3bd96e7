/* SPDX-License-Identifier: MIT */
#include "analysis/rules.h"

#include "analysis/pattern_file.h"
#include "base/errinfo.h"
#include "base/host_mem.h"
#include "base/utf8.h"

#include <stdio.h>
#include <string.h>

enum {
    WHERE_MAX = 320,
    RULES_UNCLASSIFIED = 0 /* the category of a report, before those of the rules */
};

#define FILE_MAX ((uint64_t)TN_PATTERN_LINES_MAX * TN_PATTERN_LINE_MAX)

/* Code whose business is the cache of keys and values: of Hugging Face, vLLM, SGLang and others, or
 * a function that is named after it. */
#define CACHE_FILE                                                                                 \
    "/transformers/.*cache_utils\\.py:|/([a-z_]*kv_?cache[a-z_]*|cache_engine)\\.py:|/mem_cache/"
#define CACHE_FUNCTION                                                                             \
    ":_*(alloc|init|creat|make|set_?up|updat|append|extend|concat|grow|reorder|reserv|stor)[a-z]*" \
    "_(kv|k|v|key|value|past)[a-z_]*cache[a-z_]*$"

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
    "# Of these categories, if the innermost frame outside PyTorch matches. Where a file shows\n"
    "# training, only inside of functions generate...\n"
    "activation > cache: " CACHE_FILE "\n"
    "activation > cache: " CACHE_FUNCTION "\n"
    "unclassified > cache: " CACHE_FILE "\n"
    "unclassified > cache: " CACHE_FUNCTION "\n"
    "# Names that tarn trim --anonymize made up say what they had been.\n"
    "optimizer: :function[0-9]+ \\(optimizer\\)$\n"
    "gradient: :function[0-9]+ \\(gradient\\)$\n"
    "communication: :function[0-9]+ \\(communication\\)$\n"
    "parameter: :function[0-9]+ \\(parameter\\)$\n"
    "input: :function[0-9]+ \\(input\\)$\n"
    "activation: :function[0-9]+ \\(activation\\)$\n"
    "compiled: :function[0-9]+ \\(compiled\\)$\n"
    "activation > cache: :function[0-9]+ \\(cache\\)$\n"
    "unclassified > cache: :function[0-9]+ \\(cache\\)$\n";

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

/* "A > B" in two, without blanks around; `of` is "" when the word has no ">". */
struct rule_word {
    char of[TN_PATTERN_LINE_MAX + 1];
    char name[TN_PATTERN_LINE_MAX + 1];
};

static const char blanks[] = " \t\r";

/* The ">" between two categories stands alone: "<b>" is a part of a name. NULL if there is none. */
static const char *find_arrow(const char *word)
{
    const char *arrow = strchr(word, '>');

    while (arrow && ((arrow > word && !strchr(blanks, arrow[-1])) ||
                     (arrow[1] != '\0' && !strchr(blanks, arrow[1])))) {
        arrow = strchr(arrow + 1, '>');
    }
    return arrow;
}

static bool rule_word_cut(struct rule_word *cut, const char *word)
{
    const char *arrow = find_arrow(word);
    const char *name = arrow ? arrow + 1 + strspn(arrow + 1, blanks) : word;
    size_t length = arrow ? (size_t)(arrow - word) : 0;

    while (length > 0 && strchr(blanks, word[length - 1])) {
        length--;
    }
    memcpy(cut->of, word, length);
    cut->of[length] = '\0';
    memcpy(cut->name, name, strlen(name) + 1);
    return !arrow || (length > 0 && *name != '\0' && !find_arrow(name));
}

/* The category of a report; -1 when host memory is missing. */
static int64_t refined_get(struct tarn_rules *rules, const char *of)
{
    if (strcmp(of, "unclassified") == 0) {
        return RULES_UNCLASSIFIED;
    }
    const int64_t category = category_get(rules, of);

    return category < 0 ? category : category + 1;
}

static enum tarn_status rule_add(void *context, const struct tn_pattern_line *line,
                                 struct tarn_error *error)
{
    struct tarn_rules *rules = context;
    struct rule_word word;
    char where[WHERE_MAX];

    if (!rule_word_cut(&word, line->word)) {
        return tn_fail(error, TARN_ERR_INVALID_ARGUMENT,
                       "%.*s, line %llu: a rule that refines is of the form "
                       "\"category > other category: pattern\"",
                       tn_utf8_cut(line->file, TN_PATTERN_FILE_SHOWN), line->file,
                       (unsigned long long)line->number);
    }
    const int64_t of = word.of[0] ? refined_get(rules, word.of) : 0;
    const int64_t category = of >= 0 ? category_get(rules, word.name) : -1;
    struct tn_rule *rule = category >= 0 ? tn_vec_push(&rules->rules) : NULL;

    if (!rule) {
        return tn_fail_memory(error);
    }
    (void)snprintf(where, sizeof where, "%.*s, line %llu",
                   tn_utf8_cut(line->file, TN_PATTERN_FILE_SHOWN), line->file,
                   (unsigned long long)line->number);
    rule->category = (uint32_t)category;
    rule->is_refining = word.of[0] != '\0';
    rule->of = (uint32_t)of;
    const enum tarn_status status = rules->is_built_in
                                        ? tn_pattern_init_known(&rule->pattern, line->rest, error)
                                        : tn_pattern_init(&rule->pattern, line->rest, where, error);

    if (status) {
        rules->rules.count--;
        return status;
    }
    return tn_matcher_filter_add(&rules->filter, &rule->pattern.matcher) ? TARN_OK
                                                                         : tn_fail_memory(error);
}

/* Takes over the input. */
static enum tarn_status rules_read(struct tn_input *input, const char *name, bool is_built_in,
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
    tn_matcher_filter_init(&rules->filter);
    rules->is_built_in = is_built_in;
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

static enum tarn_status text_read(const char *text, size_t size, const char *name, bool is_built_in,
                                  struct tarn_rules **rules_out, struct tarn_error *error)
{
    struct tn_input input;
    const struct tn_unpack_limits limits = {.max_bytes = FILE_MAX};
    const enum tarn_status status = tn_input_open_memory(&input, text, size, &limits, error);

    *rules_out = NULL;
    return status ? status : rules_read(&input, name, is_built_in, rules_out, error);
}

enum tarn_status tn_rules_parse(const char *text, size_t size, const char *name,
                                struct tarn_rules **rules_out, struct tarn_error *error)
{
    return text_read(text, size, name, false, rules_out, error);
}

enum tarn_status tarn_rules_load(const char *path, struct tarn_rules **rules_out,
                                 struct tarn_error *error)
{
    struct tn_input input;
    const struct tn_unpack_limits limits = {.max_bytes = FILE_MAX};
    const enum tarn_status status = tn_input_open(&input, path, &limits, error);

    *rules_out = NULL;
    return status ? status : rules_read(&input, path, false, rules_out, error);
}

enum tarn_status tarn_rules_create_default(struct tarn_rules **rules_out, struct tarn_error *error)
{
    return text_read(default_text, sizeof default_text - 1, "the built-in rules", true, rules_out,
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
    tn_matcher_filter_fini(&rules->filter);
    tn_vec_fini(&rules->rules);
    tn_vec_fini(&rules->categories);
    tn_arena_fini(&rules->arena);
    tn_host_free(rules, sizeof *rules);
}
