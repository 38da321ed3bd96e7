/* SPDX-License-Identifier: MIT */
/*
 * tracker [DEVICE]: two training steps of a small model, and the purposes of its memory. The model
 * has two layers with a parameter each; only its memory is real: allocated, tracked and freed.
 */
#include "example.h"

#include <tarn/allocator.h>
#include <tarn/tracker.h>

enum {
    LAYERS = 2,
    BATCH_BYTES = 6 << 20,
    PARAMETER_BYTES = 4 << 20,
    MODEL_ID = 100 /* of layers: their number */
};

struct model {
    struct tarn_allocator *allocator;
    struct tarn_tracker *tracker;
    uint32_t device; /* names */
    uint32_t name;
    uint32_t layer_names[LAYERS];
    tarn_ptr parameters[LAYERS];
    tarn_ptr gradients[LAYERS];
    tarn_ptr moments[LAYERS]; /* the optimizer's */
    tarn_ptr outputs[LAYERS];
};

static struct tarn_error error;

static void tell(struct model *model, struct tarn_track_event event)
{
    CHECK(tarn_tracker_apply(model->tracker, &event, 1, NULL, &error));
}

/* Memory created by an operator; its address is the storage's number. */
static tarn_ptr make(struct model *model, uint64_t bytes, uint16_t flags)
{
    tarn_ptr ptr;

    CHECK(tarn_allocator_alloc(model->allocator, bytes, 0, &ptr, &error));
    tell(model, (struct tarn_track_event){.kind = TARN_TRACK_CREATE,
                                          .flags = flags,
                                          .category = TARN_TRACK_AUTO,
                                          .name = model->device,
                                          .id = ptr,
                                          .bytes = bytes});
    tell(model, (struct tarn_track_event){.kind = TARN_TRACK_OP_DONE, .flags = flags});
    return ptr;
}

static void drop(struct model *model, tarn_ptr *ptr)
{
    tell(model, (struct tarn_track_event){.kind = TARN_TRACK_DELETE, .id = *ptr});
    CHECK(tarn_allocator_free(model->allocator, *ptr, &error));
    *ptr = 0;
}

static void classify(struct model *model, tarn_ptr ptr, uint32_t category)
{
    tell(model,
         (struct tarn_track_event){.kind = TARN_TRACK_CLASSIFY, .category = category, .id = ptr});
}

static void module_event(struct model *model, enum tarn_track_kind kind, uint64_t id, uint32_t name)
{
    tell(model, (struct tarn_track_event){.kind = (uint16_t)kind, .id = id, .name = name});
}

static void forward(struct model *model)
{
    module_event(model, TARN_TRACK_ENTER, MODEL_ID, model->name);
    for (uint32_t i = 0; i < LAYERS; i++) {
        module_event(model, TARN_TRACK_ENTER, i, model->layer_names[i]);
        classify(model, model->parameters[i], TARN_TRACK_PARAMETER);
        module_event(model, TARN_TRACK_READY, 0, 0);
        model->outputs[i] = make(model, BATCH_BYTES, 0);
        module_event(model, TARN_TRACK_LEAVE, i, 0);
    }
    module_event(model, TARN_TRACK_LEAVE, MODEL_ID, 0);
}

static void backward(struct model *model)
{
    module_event(model, TARN_TRACK_ENTER_BACKWARD, MODEL_ID, 0);
    for (uint32_t i = LAYERS; i-- > 0;) {
        module_event(model, TARN_TRACK_ENTER_BACKWARD, i, 0);
        tarn_ptr of_input = make(model, BATCH_BYTES, TARN_TRACK_BACKWARD);

        model->gradients[i] = make(model, PARAMETER_BYTES, TARN_TRACK_BACKWARD);
        classify(model, model->gradients[i], TARN_TRACK_GRADIENT);
        module_event(model, TARN_TRACK_LEAVE_BACKWARD, i, 0);
        drop(model, &model->outputs[i]);
        drop(model, &of_input);
    }
    module_event(model, TARN_TRACK_END_BACKWARD, 0, 0);
}

static void step(struct model *model)
{
    module_event(model, TARN_TRACK_BEGIN_STEP, 0, 0);
    for (uint32_t i = 0; i < LAYERS; i++) {
        if (!model->moments[i]) {
            model->moments[i] = make(model, PARAMETER_BYTES, 0);
        }
        drop(model, &model->gradients[i]);
    }
    module_event(model, TARN_TRACK_END_STEP, 0, 0);
}

static void add_name(struct model *model, enum tarn_track_names names, const char *text,
                     uint32_t *id_out)
{
    CHECK(tarn_tracker_add_name(model->tracker, names, text, id_out, &error));
}

static enum tarn_status print(void *context, const char *bytes, size_t size)
{
    (void)context;
    return fwrite(bytes, 1, size, stdout) == size ? TARN_OK : TARN_ERR_IO;
}

int main(int argc, char **argv)
{
    const struct tarn_writer out = {.write = print};
    struct tarn_findings findings = TARN_FINDINGS_INIT;
    struct model model = {0};

    CHECK(tarn_allocator_create_on(argc > 1 ? argv[1] : NULL, NULL, &model.allocator, &error));
    CHECK(tarn_tracker_create(NULL, &model.tracker, &error));
    add_name(&model, TARN_TRACK_DEVICE, "cuda:0", &model.device);
    add_name(&model, TARN_TRACK_MODULE, "Model", &model.name);
    add_name(&model, TARN_TRACK_MODULE, "Model.first", &model.layer_names[0]);
    add_name(&model, TARN_TRACK_MODULE, "Model.second", &model.layer_names[1]);
    for (int i = 0; i < LAYERS; i++) {
        model.parameters[i] = make(&model, PARAMETER_BYTES, 0);
    }
    for (int i = 0; i < 2; i++) {
        forward(&model);
        backward(&model);
        step(&model);
    }
    EXPECT(tarn_tracker_check(model.tracker, &findings) == 0);
    CHECK(tarn_tracker_write_tree(model.tracker, TARN_TRACK_TOTAL_PEAK, 0, TARN_UNITS_MIB, 40, &out,
                                  &error));
    CHECK(tarn_tracker_write_iterations(model.tracker, TARN_UNITS_MIB, &out, &error));
    for (int i = 0; i < LAYERS; i++) {
        drop(&model, &model.parameters[i]);
        drop(&model, &model.moments[i]);
    }
    tarn_tracker_destroy(model.tracker);
    tarn_allocator_destroy(model.allocator);
    return 0;
}
