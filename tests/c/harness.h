// SPDX-License-Identifier: Apache-2.0
/// What every C test begins with: cmocka, and a main() that runs the one case named on its command
/// line, or all.
#ifndef TFOS_TEST_HARNESS_H
#define TFOS_TEST_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

/// Fails the case with the error's words when `expression` is not TFOS_OK. Needs a `struct
/// tfos_error err`.
#define assert_done(expression)                                                                    \
    do {                                                                                           \
        enum tfos_status assert_done_status = (expression);                                        \
        if (assert_done_status != TFOS_OK)                                                         \
            fail_msg("%s: %s: %s", #expression, tfos_status_name(assert_done_status),              \
                     err.message);                                                                 \
    } while (0)

#define TEST_MAIN(cases)                                                                           \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        if (argc > 1)                                                                              \
            cmocka_set_test_filter(argv[1]);                                                       \
        return cmocka_run_group_tests(cases, NULL, NULL);                                          \
    }

#endif
