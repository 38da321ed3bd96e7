/* SPDX-License-Identifier: MIT */
/* What is asked about processes, where the system does not answer. */
#define _GNU_SOURCE    /* RTLD_NEXT, syscall */
#undef _FORTIFY_SOURCE /* whose functions are inline */
#include "support/failing.h"
#include "support/test.h"

#include "base/os_process.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

FAILING(long, -1, sysconf, (int name), (name))
FAILING(ssize_t, -1, getrandom, (void *bytes, size_t size, unsigned flags), (bytes, size, flags))
FAILING_SYSCALL(SYS_pidfd_open, "pidfd_open")

/* What /proc says, in place of the file; NULL: the file itself. */
static const char *said;

ssize_t read(int file, void *bytes, size_t size)
{
    if (!said) {
        return syscall(SYS_read, file, bytes, size);
    }
    assert_true(strlen(said) < size);
    memcpy(bytes, said, strlen(said));
    return (ssize_t)strlen(said);
}

static void there_is_at_least_one_processor(void **state)
{
    (void)state;
    assert_true(tn_os_processors() >= 1);
    fail_calls("sysconf", 0, 1, EINVAL);
    assert_int_equal(tn_os_processors(), 1);
    assert_true(fail_none());
}

/* Before the system has random numbers they differ all the same. */
static void random_numbers_differ(void **state)
{
    (void)state;
    fail_calls("getrandom", 0, 2, EAGAIN);
    const uint64_t first = tn_os_random();

    assert_true(first != tn_os_random());
    assert_true(fail_none());
    assert_true(tn_os_random() != tn_os_random());
}

static void a_process_has_a_start(void **state)
{
    static const char *const cut[] = {"", "12 (name", "12 (name) S 1 2 3"};
    uint64_t start = 7;
    uint64_t again = 8;

    (void)state;
    assert_true(tn_os_process_start(getpid(), &start));
    assert_true(tn_os_process_start(getpid(), &again));
    assert_true(start == again && start > 0);
    assert_false(tn_os_process_start(-1, &start));
    for (size_t i = 0; i < sizeof cut / sizeof *cut; i++) {
        said = cut[i];
        assert_false(tn_os_process_start(getpid(), &start));
    }
    said = "12 (a (name) 5 6) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21";
    assert_true(tn_os_process_start(getpid(), &start));
    said = NULL;
    assert_int_equal(start, 4711);
}

static void a_program_has_a_name(void **state)
{
    char name[64] = "x";
    char little[4];

    (void)state;
    tn_os_thread_name("named");
    tn_os_process_name(name, sizeof name);
    assert_string_equal(name, "named");
    tn_os_process_name(little, sizeof little);
    assert_string_equal(little, "nam");
    said = "";
    tn_os_process_name(name, sizeof name);
    said = NULL;
    assert_string_equal(name, "");
}

static void descriptors_are_taken_or_refused(void **state)
{
    static const struct {
        int error;
        bool refused;
    } rows[] = {{EPERM, true}, {EACCES, true}, {ENOSYS, false}, {ESRCH, false}};
    bool refused = true;
    struct stat mine;
    struct stat theirs;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        fail_calls("pidfd_open", 0, 1, rows[i].error);
        assert_int_equal(tn_os_descriptor_take(getpid(), 0, &refused), -1);
        assert_true(fail_none());
        assert_int_equal(refused, rows[i].refused);
    }
    const int taken = tn_os_descriptor_take(getpid(), 0, &refused);

    if (taken < 0) {
        (void)print_message("skip: this system gives no descriptors of processes\n");
        skip();
    }
    assert_false(refused);
    assert_int_equal(fstat(0, &mine), 0);
    assert_int_equal(fstat(taken, &theirs), 0);
    assert_true(mine.st_ino == theirs.st_ino);
    tn_os_descriptor_close(taken);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(there_is_at_least_one_processor),
        cmocka_unit_test(random_numbers_differ),
        cmocka_unit_test(a_process_has_a_start),
        cmocka_unit_test(a_program_has_a_name),
        cmocka_unit_test(descriptors_are_taken_or_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
