/* SPDX-License-Identifier: MIT */
#include "support/test.h"

#include "analysis/code_origin.h"

static void paths_tell_whose_code_it_is(void **state)
{
    static const struct {
        const char *file;
        enum tn_code_origin origin;
    } files[] = {
        {"/home/me/train.py", TN_CODE_OWN},
        {"train.py", TN_CODE_OWN},
        {"", TN_CODE_OWN},
        {"file1.py", TN_CODE_OWN},
        {"/home/me/torchic/train.py", TN_CODE_OWN},
        {"/usr/lib/python3/dist-packages/torch/nn/modules/linear.py", TN_CODE_TORCH},
        {"/home/me/pytorch/torch/optim/adam.py", TN_CODE_TORCH},
        {"torch/optim/adam.py", TN_CODE_TORCH},
        {"<frozen importlib._bootstrap>", TN_CODE_TORCH},
        {"/opt/site-packages/transformers/trainer.py", TN_CODE_LIBRARY},
        {"site-packages/file3.py", TN_CODE_LIBRARY},
        {"/usr/lib/python3.12/threading.py", TN_CODE_LIBRARY},
        {"/usr/lib/libcudart.so.12", TN_CODE_LIBRARY},
        {"file2.cpp", TN_CODE_LIBRARY},
    };

    (void)state;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        const struct tn_string file = {files[i].file, strlen(files[i].file)};

        if (tn_code_origin_of(file) != files[i].origin) {
            fail_msg("%s: %d", files[i].file, (int)tn_code_origin_of(file));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths_tell_whose_code_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
