/* SPDX-License-Identifier: MIT */
/* Finding the driver's functions, in drivers of several ages, and every way in which it fails. */
#include "support/test.h"

#include "support/child.h"

#include "support/cuda.h"
#include "support/hidden.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void expect_failure(const char *path, enum tarn_status st, const char *text)
{
    struct tn_cuda_driver driver = {.version = 5};
    struct tarn_error error = {.status = TARN_OK};

    assert_int_equal(tn_cuda_driver_open(path, &driver, &error), st);
    assert_int_equal(error.status, st);
    if (!strstr(error.text, text)) {
        fail_msg("\"%s\" does not contain \"%s\"", error.text, text);
    }
    assert_int_equal(driver.version, 5);
    assert_int_equal(tn_cuda_driver_open(path, &driver, NULL), st);
}

static void every_function_is_there(void **state)
{
    struct tn_cuda_driver driver;

    (void)state;
    (void)fake_open(FAKE_CUDA);
    assert_int_equal(tn_cuda_driver_open(FAKE_CUDA, &driver, NULL), TARN_OK);
    assert_int_equal(driver.version, 13000);
#define TN_CUDA_SYM(exported, plain, since, need, parameters) assert_non_null(driver.exported);
#include "device/cuda_syms.def"
#undef TN_CUDA_SYM
}

/* Name and version must lead to the function that the exported name means. */
static void a_name_and_a_version_are_one_function(void **state)
{
    struct tn_cuda_driver driver;
    char why[256];
    void *library = tn_dl_open(FAKE_CUDA, why, sizeof why);
    int (*found)(void) = NULL;

    (void)state;
    (void)fake_open(FAKE_CUDA);
    assert_int_equal(tn_cuda_driver_open(FAKE_CUDA, &driver, NULL), TARN_OK);
#define TN_CUDA_SYM(exported, plain, since, need, parameters)                                      \
    assert_true(tn_dl_find(library, #exported, &found));                                           \
    assert_memory_equal(&found, &driver.exported, sizeof found);
#include "device/cuda_syms.def"
#undef TN_CUDA_SYM
}

static void older_drivers_lack_only_what_is_optional(void **state)
{
    static const char *const paths[] = {FAKE_CUDA_11, FAKE_CUDA_10};

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct tn_cuda_driver driver;

        (void)fake_open(paths[i]);
        assert_int_equal(tn_cuda_driver_open(paths[i], &driver, NULL), TARN_OK);
        assert_int_equal(driver.version, 11080);
        assert_null(driver.cuStreamGetCaptureInfo_v3);
        assert_null(driver.cuGraphNodeGetDependencies_v2);
        assert_non_null(driver.cuStreamGetCaptureInfo_v2);
        assert_non_null(driver.cuGraphNodeGetDependencies);
        assert_non_null(driver.cuMemAlloc_v2);
    }
}

static void what_the_driver_hides_is_taken_from_the_library(void **state)
{
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);
    struct tn_cuda_driver driver;

    (void)state;
    fake->hide("cuMemMap");
    assert_int_equal(tn_cuda_driver_open(FAKE_CUDA, &driver, NULL), TARN_OK);
    assert_non_null(driver.cuMemMap);
}

/* Asks the driver for the function as it is by default: no flags. */
static int asks_plainly(const char *name, void **function_out, int version, uint64_t flags,
                        int *found_out)
{
    int (*get)(const char *, void **, int, uint64_t, int *) = NULL;
    char why[256];

    if (flags != 0 ||
        !__real_tn_dl_find(tn_dl_open(FAKE_CUDA, why, sizeof why), "cuGetProcAddress_v2", &get)) {
        return TN_CU_INVALID_VALUE;
    }
    return get(name, function_out, version, flags, found_out);
}

static void what_the_library_does_not_export_is_taken_from_the_driver(void **state)
{
    static const char *const paths[] = {FAKE_CUDA, FAKE_CUDA_11};
    int (*const instead)(const char *, void **, int, uint64_t, int *) = asks_plainly;

    (void)state;
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        struct tn_cuda_driver driver;

        (void)fake_open(paths[i]);
        if (i == 0) {
            replace("cuGetProcAddress_v2", &instead);
        }
        hide("cuMemMap", NULL);
        assert_int_equal(tn_cuda_driver_open(paths[i], &driver, NULL), TARN_OK);
        hide(NULL, NULL);
        replace(NULL, NULL);
        assert_non_null(driver.cuMemMap);
    }
    (void)fake_open(FAKE_CUDA_10); /* which can only be asked for what it exports */
    hide("cuMemMap", NULL);
    expect_failure(FAKE_CUDA_10, TARN_ERR_NOT_SUPPORTED, "has no function cuMemMap");
    hide(NULL, NULL);
}

static void what_is_missing_is_named(void **state)
{
    (void)state;
    fake_open(FAKE_CUDA_INCOMPLETE)->set_version(12040);
    expect_failure(FAKE_CUDA_INCOMPLETE, TARN_ERR_NOT_SUPPORTED,
                   "the CUDA driver (CUDA 12.4) has no function cuMemCreate, which tarn needs");
    (void)fake_open(FAKE_CUDA_INCOMPLETE);
    expect_failure(FAKE_CUDA_INCOMPLETE, TARN_ERR_NOT_SUPPORTED,
                   "the CUDA driver (CUDA 13.0) has no function cuMemCreate, which tarn needs");
    expect_failure("/no/such/libcuda.so.1", TARN_ERR_NOT_FOUND,
                   "there is no NVIDIA driver on this machine (/no/such/libcuda.so.1: cannot open");
    expect_failure("libpthread.so.0", TARN_ERR_NOT_SUPPORTED,
                   "libpthread.so.0 is not a CUDA driver: it has no function cuDriverGetVersion");
}

/* Of functions that have two versions one is needed. */
static void one_of_two_versions_is_needed(void **state)
{
    static const char *const pairs[][2] = {
        {"cuStreamGetCaptureInfo_v2", "cuStreamGetCaptureInfo_v3"},
        {"cuGraphNodeGetDependencies", "cuGraphNodeGetDependencies_v2"},
    };
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);
    struct tn_cuda_driver driver;
    char text[128];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        for (size_t k = 0; k < 2; k++) {
            fake->reset();
            fake->hide(pairs[i][k]);
            hide(pairs[i][k], NULL);
            assert_int_equal(tn_cuda_driver_open(FAKE_CUDA, &driver, NULL), TARN_OK);
        }
        fake->hide(pairs[i][0]);
        hide(pairs[i][0], pairs[i][1]);
        (void)snprintf(text, sizeof text, "has no function %s, which tarn needs", pairs[i][0]);
        expect_failure(FAKE_CUDA, TARN_ERR_NOT_SUPPORTED, text);
    }
    hide(NULL, NULL);
}

/* The driver says that it has a function, and gives none. */
static int gives_none(const char *name, void **function_out, int version, uint64_t flags,
                      int *found_out)
{
    (void)name;
    (void)version;
    (void)flags;
    *function_out = NULL;
    *found_out = 1;
    return TN_CU_SUCCESS;
}

/* It says that it has none, and gives something. */
static int gives_rubbish(const char *name, void **function_out, int version, uint64_t flags,
                         int *found_out)
{
    (void)name;
    (void)version;
    (void)flags;
    *function_out = found_out;
    return TN_CU_NOT_FOUND;
}

static void what_the_driver_does_not_give_is_taken_from_the_library(void **state)
{
    int (*const instead[])(const char *, void **, int, uint64_t, int *) = {gives_none,
                                                                           gives_rubbish};
    char why[256];
    void *library = tn_dl_open(FAKE_CUDA, why, sizeof why);
    int (*found)(void) = NULL;

    (void)state;
    (void)fake_open(FAKE_CUDA);
    assert_true(tn_dl_find(library, "cuMemMap", &found));
    for (size_t i = 0; i < sizeof instead / sizeof *instead; i++) {
        struct tn_cuda_driver driver;

        replace("cuGetProcAddress_v2", &instead[i]);
        assert_int_equal(tn_cuda_driver_open(FAKE_CUDA, &driver, NULL), TARN_OK);
        replace(NULL, NULL);
        assert_memory_equal(&found, &driver.cuMemMap, sizeof found);
    }
}

static int says_nothing(int result, const char **text_out)
{
    (void)result;
    *text_out = NULL;
    return TN_CU_SUCCESS;
}

static int knows_nothing(int result, const char **text_out)
{
    (void)result;
    (void)text_out;
    return TN_CU_INVALID_VALUE;
}

static int fails_with_a_text(int result, const char **text_out)
{
    (void)result;
    *text_out = "nonsense";
    return TN_CU_INVALID_VALUE;
}

static void results_may_have_no_texts(void **state)
{
    struct tn_cuda_driver driver;
    char text[128];

    (void)state;
    (void)fake_open(FAKE_CUDA);
    assert_int_equal(tn_cuda_driver_open(FAKE_CUDA, &driver, NULL), TARN_OK);
    driver.cuGetErrorString = knows_nothing;
    tn_cuda_explain(&driver, "cuMemMap", TN_CU_OUT_OF_MEMORY, text, sizeof text);
    assert_string_equal(text,
                        "cuMemMap: CUDA_ERROR_OUT_OF_MEMORY, the driver gives no description");
    driver.cuGetErrorString = fails_with_a_text;
    tn_cuda_explain(&driver, "cuMemMap", TN_CU_OUT_OF_MEMORY, text, sizeof text);
    assert_string_equal(text,
                        "cuMemMap: CUDA_ERROR_OUT_OF_MEMORY, the driver gives no description");
    driver.cuGetErrorName = says_nothing;
    tn_cuda_explain(&driver, "cuMemMap", TN_CU_OUT_OF_MEMORY, text, sizeof text);
    assert_string_equal(text, "cuMemMap: unknown CUDA error 2");
    driver.cuGetErrorName = fails_with_a_text;
    tn_cuda_explain(&driver, "cuMemMap", TN_CU_OUT_OF_MEMORY, text, sizeof text);
    assert_string_equal(text, "cuMemMap: unknown CUDA error 2");
}

/* pthread_atfork of glibc, which a program's own calls. */
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                      void *library);
static bool forks_fail;

int pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void))
{
    return forks_fail ? ENOMEM : __register_atfork(prepare, parent, child, NULL);
}

/* The first to open a driver, before the system is asked to tell of forks. */
static void forks_must_be_told(void **state)
{
    struct tarn_error error = {.status = TARN_OK};
    struct tn_cuda_driver driver;

    (void)state;
    (void)fake_open(FAKE_CUDA);
    forks_fail = true;
    assert_int_equal(tn_cuda_driver_open(FAKE_CUDA, &driver, &error), TARN_ERR_HOST_MEMORY);
    forks_fail = false;
    assert_int_equal(error.status, TARN_ERR_HOST_MEMORY);
    assert_int_equal(tn_cuda_driver_open(FAKE_CUDA, &driver, &error), TARN_OK);
}

static void an_old_driver_is_refused(void **state)
{
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);
    struct tn_cuda_driver driver;

    (void)state;
    fake->set_version(11030);
    expect_failure(FAKE_CUDA, TARN_ERR_NOT_SUPPORTED,
                   "the NVIDIA driver supports CUDA 11.3, and tarn needs 11.4 or newer: install a "
                   "newer driver");
    fake->set_version(10000);
    expect_failure(FAKE_CUDA, TARN_ERR_NOT_SUPPORTED, "the NVIDIA driver supports CUDA 10.0, and");
    fake->set_version(11040);
    assert_int_equal(tn_cuda_driver_open(FAKE_CUDA, &driver, NULL), TARN_OK);
    fake->fail_nth("cuDriverGetVersion", 1, 999);
    assert_int_equal(tn_cuda_driver_open(FAKE_CUDA, &driver, NULL), TARN_ERR_DEVICE);
}

static void a_driver_that_does_not_start_says_why(void **state)
{
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);
    struct tarn_error error = {.status = TARN_OK};
    struct tn_cuda_driver driver;

    (void)state;
    fake->set_devices(0, GIB);
    expect_failure(FAKE_CUDA, TARN_ERR_NOT_FOUND,
                   "no GPU was found (cuInit: CUDA_ERROR_NO_DEVICE, no CUDA-capable device is "
                   "detected)");
    fake->reset();
    fake->fail_nth("cuInit", 1, TN_CU_STUB_LIBRARY);
    assert_int_equal(tn_cuda_driver_open(FAKE_CUDA, &driver, &error), TARN_ERR_NOT_FOUND);
    fake->fail_nth("cuInit", 1, TN_CU_ECC_UNCORRECTABLE);
    assert_int_equal(tn_cuda_driver_open(FAKE_CUDA, &driver, &error), TARN_ERR_DEVICE);
    assert_string_equal(
        error.text, "the CUDA driver fails to initialize (cuInit: CUDA_ERROR_ECC_UNCORRECTABLE, "
                    "uncorrectable ECC error encountered; this process can no longer use the "
                    "device and must be restarted)");
}

/* In a child, the driver of the parent says that it is not initialised. */
static int start_in_child(const struct fake_cuda *fake)
{
    static const char *const advice = "CUDA was started before this process was forked";
    struct tarn_error error = {.status = TARN_OK};
    struct tn_cuda_driver driver;

    fake->fail_nth("cuInit", 1, TN_CU_INVALID_VALUE); /* has other reasons */
    if (tn_cuda_driver_open(FAKE_CUDA, &driver, &error) != TARN_ERR_DEVICE ||
        strstr(error.text, advice)) {
        return 1;
    }
    fake->fail_nth("cuInit", 1, TN_CU_NOT_INITIALIZED);
    return tn_cuda_driver_open(FAKE_CUDA, &driver, &error) == TARN_ERR_DEVICE &&
                   strstr(error.text, advice)
               ? 0
               : 1;
}

static void a_child_of_a_process_with_cuda_hears_of_it(void **state)
{
    const struct fake_cuda *fake = fake_open(FAKE_CUDA);
    struct tn_cuda_driver driver;
    int status = 1;

    (void)state;
    assert_int_equal(tn_cuda_driver_open(FAKE_CUDA, &driver, NULL), TARN_OK);
    const pid_t child = fork();

    if (child == 0) {
        child_exit(start_in_child(fake));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void results_become_statuses(void **state)
{
    static const int lost[] = {46,  214, 220, 226, 700, 702, 709, 710, 714,
                               715, 716, 717, 718, 719, 810, 911, 999};

    (void)state;
    assert_int_equal(tn_cuda_status(TN_CU_SUCCESS), TARN_OK);
    assert_int_equal(tn_cuda_status(TN_CU_OUT_OF_MEMORY), TARN_ERR_OUT_OF_MEMORY);
    assert_int_equal(tn_cuda_status(TN_CU_NOT_READY), TARN_ERR_NOT_READY);
    assert_int_equal(tn_cuda_status(TN_CU_INVALID_VALUE), TARN_ERR_DEVICE);
    assert_int_equal(tn_cuda_status(12345), TARN_ERR_DEVICE);
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++) {
        assert_true(tn_cuda_is_lost(lost[i]));
        assert_int_equal(tn_cuda_status(lost[i]), TARN_ERR_DEVICE);
    }
    assert_false(tn_cuda_is_lost(TN_CU_SUCCESS));
    assert_false(tn_cuda_is_lost(TN_CU_INVALID_VALUE));
    assert_false(tn_cuda_is_lost(TN_CU_OUT_OF_MEMORY));
    assert_false(tn_cuda_is_lost(TN_CU_DEINITIALIZED));
}

static void results_are_explained(void **state)
{
    struct tn_cuda_driver driver;
    char text[128];
    char little[10];

    (void)state;
    (void)fake_open(FAKE_CUDA);
    assert_int_equal(tn_cuda_driver_open(FAKE_CUDA, &driver, NULL), TARN_OK);
    tn_cuda_explain(&driver, "cuMemCreate", TN_CU_OUT_OF_MEMORY, text, sizeof text);
    assert_string_equal(text, "cuMemCreate: CUDA_ERROR_OUT_OF_MEMORY, out of memory");
    tn_cuda_explain(&driver, "cuInit", TN_CU_NOT_INITIALIZED, text, sizeof text); /* no fork */
    assert_string_equal(text, "cuInit: CUDA_ERROR_NOT_INITIALIZED, initialization error");
    tn_cuda_explain(&driver, "cuMemCreate", 12345, text, sizeof text);
    assert_string_equal(text, "cuMemCreate: unknown CUDA error 12345");
    tn_cuda_explain(&driver, "cuMemMap", TN_CU_NOT_SUPPORTED, text, sizeof text);
    assert_string_equal(text,
                        "cuMemMap: CUDA_ERROR_NOT_SUPPORTED, the driver gives no description");
    tn_cuda_explain(&driver, "cuMemCreate", TN_CU_OUT_OF_MEMORY, little, sizeof little);
    assert_string_equal(little, "cuMemCrea");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forks_must_be_told), /* first */
        cmocka_unit_test(every_function_is_there),
        cmocka_unit_test(a_name_and_a_version_are_one_function),
        cmocka_unit_test(older_drivers_lack_only_what_is_optional),
        cmocka_unit_test(what_the_driver_hides_is_taken_from_the_library),
        cmocka_unit_test(what_the_library_does_not_export_is_taken_from_the_driver),
        cmocka_unit_test(what_is_missing_is_named),
        cmocka_unit_test(one_of_two_versions_is_needed),
        cmocka_unit_test(what_the_driver_does_not_give_is_taken_from_the_library),
        cmocka_unit_test(results_may_have_no_texts),
        cmocka_unit_test(an_old_driver_is_refused),
        cmocka_unit_test(a_driver_that_does_not_start_says_why),
        cmocka_unit_test(a_child_of_a_process_with_cuda_hears_of_it),
        cmocka_unit_test(results_become_statuses),
        cmocka_unit_test(results_are_explained),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
