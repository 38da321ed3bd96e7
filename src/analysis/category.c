/* SPDX-License-Identifier: MIT */
#include "analysis/category.h"

#include "analysis/code_origin.h"
#include "base/errinfo.h"
#include "base/host_mem.h"

#include <string.h>

/* Bytes of how far the rules are into a text; not 0. */
static size_t places_size(const struct tn_categories *categories)
{
    return (categories->rules->filter.groups.count + 1) * sizeof(struct tn_filter_place);
}

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
        .is_refined = tn_host_alloc_zero((size_t)model->frames.count + 1),
        .is_own = tn_host_alloc_zero((size_t)model->frames.count + 1),
        .of_file = tn_host_alloc_zero(((size_t)model->strings.count + 1) * sizeof(uint32_t)),
    };
    categories->frame = tn_host_alloc_zero(places_size(categories));
    tn_vec_init(&categories->files, places_size(categories));
    if (!categories->of_frame || !categories->of_stack || !categories->is_refined ||
        !categories->is_own || !categories->of_file || !categories->frame) {
        tn_categories_fini(categories);
        return tn_fail_memory(error);
    }
    return TARN_OK;
}

void tn_categories_fini(struct tn_categories *categories)
{
    const struct tn_model *model = categories->model;

    tn_host_free(categories->frame, places_size(categories));
    tn_vec_fini(&categories->files);
    tn_host_free(categories->of_file, ((size_t)model->strings.count + 1) * sizeof(uint32_t));
    tn_host_free(categories->is_own, (size_t)model->frames.count + 1);
    tn_host_free(categories->is_refined, (size_t)model->frames.count + 1);
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
        const size_t kept =
            text->length < TN_PATTERN_TEXT_MAX ? text->length : TN_PATTERN_TEXT_MAX - 1;

        memmove(text->text + 1, text->text, kept);
        text->text[0] = '/';
        text->text[kept + 1] = '\0';
        text->length = kept + 1;
        text->file_length += text->file_length < text->length;
    }
}

/* Sets `frame` to where the rules are behind the file of a text. */
static void file_follow(struct tn_categories *categories, uint32_t file,
                        const struct tn_frame_text *text)
{
    const size_t size = places_size(categories);
    uint32_t *known = &categories->of_file[file];

    if (*known > 0) {
        memcpy(categories->frame, (const char *)categories->files.items + (*known - 1) * size,
               size);
        return;
    }
    memset(categories->frame, 0, size);
    tn_filter_follow(&categories->rules->filter, categories->frame, text->text, text->file_length);
    if (tn_vec_add(&categories->files, categories->frame)) { /* else the next one does it again */
        *known = (uint32_t)categories->files.count;
    }
}

/* The rules that may match a frame, whose text that is; until the next call. */
static struct tn_filter_scan rules_scan(struct tn_categories *categories,
                                        const struct tn_frame *frame,
                                        const struct tn_frame_text *text)
{
    const struct tn_matcher_filter *filter = &categories->rules->filter;

    file_follow(categories, frame->filename, text);
    tn_filter_follow(filter, categories->frame, text->text + text->file_length,
                     text->length - text->file_length);
    return tn_filter_scan_begin(filter, categories->frame);
}

uint32_t tn_category_of_frame(struct tn_categories *categories, uint32_t number)
{
    const struct tn_rule *rules = categories->rules->rules.items;
    uint32_t *known = &categories->of_frame[number];

    if (*known == 0) {
        const struct tn_frame *frame = tn_model_frame(categories->model, number);
        struct tn_frame_text text; /* large: only what is used is set */
        size_t i;

        *known = 1;
        frame_text_set(&text, categories->model, frame);
        struct tn_filter_scan scan = rules_scan(categories, frame, &text);

        while (tn_filter_scan_next(&scan, &i)) {
            if (!rules[i].is_refining && tn_pattern_matches(&rules[i].pattern, &text)) {
                *known = rules[i].category + 2;
                break;
            }
        }
    }
    return *known - 1;
}

/* By the frame that decides, without refining. Most frames are known not to. */
static uint32_t category_by_frames(struct tn_categories *categories, struct tn_stack stack)
{
    const uint32_t *of_frame = categories->of_frame;
    uint32_t category = TN_CATEGORY_UNCLASSIFIED;

    for (uint32_t i = stack.count; category == TN_CATEGORY_UNCLASSIFIED; i--) {
        while (i > 0 && of_frame[stack.frames[i - 1]] == TN_CATEGORY_UNCLASSIFIED + 1) {
            i--;
        }
        if (i == 0) {
            break;
        }
        category = tn_category_of_frame(categories, stack.frames[i - 1]);
    }
    return category;
}

/* ---- refining ---- */

bool tn_frame_generates(const struct tn_model *model, uint32_t frame)
{
    static const char begin[] = "generate";
    static const char end[] = " (generate)"; /* of a name that was made up */
    const struct tn_string name = tn_model_string(model, tn_model_frame(model, frame)->name);

    return strncmp(name.text, begin, sizeof begin - 1) == 0 ||
           (name.length >= sizeof end - 1 &&
            memcmp(name.text + name.length - (sizeof end - 1), end, sizeof end - 1) == 0);
}

static bool stack_generates(const struct tn_model *model, struct tn_stack stack)
{
    bool found = false;

    for (uint32_t i = 0; i < stack.count && !found; i++) {
        found = tn_frame_generates(model, stack.frames[i]);
    }
    return found;
}

/* Whether some stack is in the optimizer or a backward pass. */
static bool file_trains(struct tn_categories *categories)
{
    const struct tn_model *model = categories->model;
    const char *hint;

    for (uint32_t i = 0; i < model->stacks.count && categories->trains == 0; i++) {
        const char *name = tn_category_name(
            categories, category_by_frames(categories, tn_model_stack(model, i)), &hint);

        if (strcmp(name, "optimizer") == 0 || strcmp(name, "gradient") == 0) {
            categories->trains = 2;
        }
    }
    categories->trains = categories->trains == 0 ? 1 : categories->trains;
    return categories->trains == 2;
}

/* A rule that refines a category and matches the frame, or NULL; `of` NULL: any category. */
static const struct tn_rule *refining_find(struct tn_categories *categories, uint32_t number,
                                           const uint32_t *of)
{
    const struct tn_rule *rules = categories->rules->rules.items;
    const struct tn_frame *frame = tn_model_frame(categories->model, number);
    struct tn_frame_text text; /* large: only what is used is set */
    size_t i;

    frame_text_set(&text, categories->model, frame);
    struct tn_filter_scan scan = rules_scan(categories, frame, &text);

    while (tn_filter_scan_next(&scan, &i)) {
        if (rules[i].is_refining && (!of || rules[i].of == *of) &&
            tn_pattern_matches(&rules[i].pattern, &text)) {
            return &rules[i];
        }
    }
    return NULL;
}

uint32_t tn_category_of_frame_refined(struct tn_categories *categories, uint32_t frame)
{
    const struct tn_rule *rule = refining_find(categories, frame, NULL);

    return rule ? rule->category + 1 : TN_CATEGORY_UNCLASSIFIED;
}

/* Whether a frame is of Python outside PyTorch. */
static bool is_own(struct tn_categories *categories, uint32_t frame)
{
    uint8_t *known = &categories->is_own[frame];

    if (*known == 0) {
        const struct tn_string file =
            tn_model_string(categories->model, tn_model_frame(categories->model, frame)->filename);
        const bool is_python = file.length >= 3 && strcmp(file.text + file.length - 3, ".py") == 0;

        *known = is_python && tn_code_origin_of(file) != TN_CODE_TORCH ? 2 : 1;
    }
    return *known == 2;
}

/* The innermost such frame; false when there is none. */
static bool innermost_find(struct tn_categories *categories, struct tn_stack stack,
                           uint32_t *frame_out)
{
    const uint8_t *known = categories->is_own;

    for (uint32_t i = 0; i < stack.count; i++) {
        while (i < stack.count && known[stack.frames[i]] == 1) {
            i++;
        }
        if (i < stack.count && is_own(categories, stack.frames[i])) {
            *frame_out = stack.frames[i];
            return true;
        }
    }
    return false;
}

static uint32_t category_refine(struct tn_categories *categories, struct tn_stack stack,
                                uint32_t category)
{
    uint32_t frame;

    if (!innermost_find(categories, stack, &frame)) {
        return category;
    }
    uint8_t *known = &categories->is_refined[frame];

    if (*known == 0) {
        *known = refining_find(categories, frame, NULL) ? 2 : 1;
    }
    if (*known == 1) {
        return category;
    }
    const struct tn_rule *rule = refining_find(categories, frame, &category);

    return rule && (!file_trains(categories) || stack_generates(categories->model, stack))
               ? rule->category + 1
               : category;
}

/* A function of its own, so that most blocks, whose stack is known, need no call. */
static TN_NOINLINE uint32_t stack_look(struct tn_categories *categories, uint32_t number)
{
    const struct tn_stack stack = tn_model_stack(categories->model, number);
    const uint32_t category =
        category_refine(categories, stack, category_by_frames(categories, stack));

    categories->of_stack[number] = category + 1;
    return category;
}

uint32_t tn_category_of_stack(struct tn_categories *categories, uint32_t number)
{
    const uint32_t known = categories->of_stack[number];

    return known > 0 ? known - 1 : stack_look(categories, number);
}

uint32_t tn_category_count(const struct tn_categories *categories)
{
    return (uint32_t)categories->rules->categories.count + 1 + TN_CATEGORIES_GUESSED;
}

uint32_t tn_category_of(struct tn_categories *categories, const struct tn_lifetime *lifetime,
                        uint64_t first_step, bool is_gradient)
{
    const uint32_t hints = (uint32_t)categories->rules->categories.count + 1;
    const uint32_t category = tn_category_of_stack(categories, lifetime->stack);

    if (category != TN_CATEGORY_UNCLASSIFIED) {
        return category;
    }
    if (is_gradient) {
        return hints + 2;
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
    if (category == count + 3) {
        *hint_out = " (by size)";
        return "gradient";
    }
    *hint_out = " (by lifetime)";
    return category == count + 1 ? "parameter" : "temporary";
}
