// SPDX-License-Identifier: Apache-2.0
// Statuses, the words of errors, the heap and the clock.
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <tfos/memory.h>
#include <tfos/version.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "harness.h"

static void statuses_have_names_and_texts(void **state)
{
    (void)state;
    assert_string_equal(tfos_status_name(TFOS_OK), "OK");
    assert_string_equal(tfos_status_name(TFOS_NO_MEMORY), "NO_MEMORY");
    assert_string_equal(tfos_status_text(TFOS_DENIED), "authentication failed");
    assert_string_equal(tfos_status_name((enum tfos_status)77), "UNKNOWN");
    assert_string_equal(tfos_status_text((enum tfos_status) - 77), "unknown status");
    assert_string_equal(tfos_version(), TFOS_VERSION);
}

static void errors_are_written_in_words(void **state)
{
    (void)state;
    struct tfos_error err = {.os_errno = 5};
    assert_int_equal(tfos__fail(&err, TFOS_BUSY, "port: %d is taken", 7), TFOS_BUSY);
    assert_string_equal(err.message, "port: 7 is taken");
    assert_int_equal(err.os_errno, 0);
    errno = ENOENT;
    assert_int_equal(tfos__fail_errno(&err, TFOS_IO, "file: cannot open %s", "x"), TFOS_IO);
    assert_string_equal(err.message, "file: cannot open x: No such file or directory");
    assert_int_equal(err.os_errno, ENOENT);
    tfos__fail_prefix(&err, "node: worker:%d", 1);
    assert_string_equal(err.message,
                        "node: worker:1: file: cannot open x: No such file or directory");
    assert_int_equal(err.os_errno, ENOENT);
    assert_int_equal(tfos__fail(NULL, TFOS_IO, "nobody reads this"), TFOS_IO);
    assert_int_equal(tfos__fail_errno(NULL, TFOS_IO, "nor this"), TFOS_IO);
    tfos__fail_prefix(NULL, "nor this");
}

// Whether the text is whole UTF-8; every sequence in these tests is valid but for a cut at the end.
static bool is_whole(const char *text)
{
    size_t left = 0;
    for (const char *at = text; *at != '\0'; at++) {
        unsigned char byte = (unsigned char)*at;
        if ((byte & 0xC0) == 0x80) {
            if (left-- == 0)
                return false;
        } else if (left > 0) {
            return false;
        } else {
            left = byte >= 0xF0 ? 3 : byte >= 0xE0 ? 2 : byte >= 0xC0 ? 1 : 0;
        }
    }
    return left == 0;
}

static void long_errors_are_cut_between_characters(void **state)
{
    (void)state;
    static const char *const characters[] = {"x", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    for (size_t kind = 0; kind < 4; kind++) {
        for (int shift = 0; shift < 4; shift++) {
            char text[6000] = "";
            size_t length = (size_t)shift;
            memset(text, 'a', length);
            size_t width = strlen(characters[kind]);
            for (; length + width < sizeof(text); length += width)
                memcpy(text + length, characters[kind], width);
            struct tfos_error err;
            tfos__fail(&err, TFOS_IO, "%s", text);
            assert_true(is_whole(err.message));
            assert_true(strlen(err.message) >= sizeof(err.message) - 4);
            tfos__fail_prefix(&err, "prefix");
            assert_true(is_whole(err.message));
            assert_memory_equal(err.message, "prefix: ", 8);
            errno = EIO;
            tfos__fail_errno(&err, TFOS_IO, "%s", text);
            assert_true(is_whole(err.message));
        }
    }
}

static void memory_is_zeroed_and_checked(void **state)
{
    (void)state;
    unsigned char *block = tfos__alloc(100, 3);
    for (size_t i = 0; i < 300; i++)
        assert_int_equal(block[i], 0);
    block = tfos__realloc(block, 1000, 3);
    assert_non_null(block);
    volatile size_t huge = SIZE_MAX / 2; // hides the overflow from the compiler
    assert_null(tfos__realloc(block, huge, 3));
    assert_null(tfos__alloc(huge, 3));
    tfos__free(block);
    void *empty = tfos__alloc(0, 8);
    assert_non_null(empty);
    tfos_free(empty);
    tfos_free(NULL);
    char *text = tfos__format("%s-%d", "tfos", 5);
    assert_string_equal(text, "tfos-5");
    char *copy = tfos__strdup(text);
    assert_string_equal(copy, text);
    tfos__free(copy);
    tfos__free(text);
}

static void the_chosen_request_fails_once(void **state)
{
    (void)state;
    struct tfos_error err;
    tfos__memory_fail_at(3);
    void *first = tfos__alloc(1, 1);
    char *second = tfos__strdup("x");
    assert_non_null(first);
    assert_non_null(second);
    assert_null(tfos__format("%d", 1));
    void *third = tfos__realloc(NULL, 1, 1);
    assert_non_null(third);
    tfos__free(first);
    tfos__free(second);
    tfos__free(third);
    tfos__memory_fail_at(1);
    tfos__memory_fail_at(0);
    first = tfos__alloc(1, 1);
    assert_non_null(first);
    tfos__free(first);
    assert_int_equal(tfos__no_memory(&err, "ring", "a batch"), TFOS_NO_MEMORY);
    assert_string_equal(err.message, "ring: no memory for a batch");
}

static void *request_many(void *argument)
{
    int *denied = argument;
    for (int i = 0; i < 1000; i++) {
        void *block = tfos__alloc(1, 1);
        *denied += !block;
        tfos__free(block);
    }
    return NULL;
}

static void one_request_fails_among_all_threads(void **state)
{
    (void)state;
    pthread_t threads[4];
    int denied[4] = {0};
    tfos__memory_fail_at(1500);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, request_many, &denied[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(denied[0] + denied[1] + denied[2] + denied[3], 1);
}

static void deadlines_come_or_never_do(void **state)
{
    (void)state;
    int64_t now = tfos__now_ms();
    assert_true(tfos__deadline(1000) >= now + 1000);
    assert_true(tfos__deadline(-1) == TFOS__NEVER);
    assert_true(tfos__deadline(INT64_MAX) == TFOS__NEVER);
    assert_int_equal(tfos__remaining_ms(TFOS__NEVER), -1);
    assert_int_equal(tfos__remaining_ms(now - 1), 0);
    assert_int_equal(tfos__remaining_ms(INT64_MIN), 0);
    assert_int_equal(tfos__remaining_ms(TFOS__NEVER - 1), INT32_MAX);
    int remaining = tfos__remaining_ms(tfos__deadline(60000));
    assert_true(remaining > 50000 && remaining <= 60000);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(statuses_have_names_and_texts),
    cmocka_unit_test(errors_are_written_in_words),
    cmocka_unit_test(long_errors_are_cut_between_characters),
    cmocka_unit_test(memory_is_zeroed_and_checked),
    cmocka_unit_test(the_chosen_request_fails_once),
    cmocka_unit_test(one_request_fails_among_all_threads),
    cmocka_unit_test(deadlines_come_or_never_do),
};

TEST_MAIN(cases)
