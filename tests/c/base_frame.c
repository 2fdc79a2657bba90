// SPDX-License-Identifier: Apache-2.0
// Buffers, frames and JSON: the parts of a channel that need no socket.
#include <stdlib.h>
#include <string.h>

#include "base/channel.h"
#include "base/frame.h"
#include "base/json.h"
#include "base/memory.h"
#include "harness.h"

static void a_buffer_keeps_its_bytes_as_it_moves(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__buffer buffer = {0};
    unsigned char next_in = 0;
    unsigned char next_out = 0;
    for (int step = 0; step < 5000; step++) {
        unsigned char bytes[97];
        size_t size = (size_t)(step * 31 % 97);
        for (size_t i = 0; i < size; i++)
            bytes[i] = next_in++;
        assert_done(tfos__buffer_append(&buffer, bytes, size, &err));
        size_t used = (size_t)(step * 53 % 97);
        if (used > tfos__buffer_size(&buffer))
            used = tfos__buffer_size(&buffer);
        for (size_t i = 0; i < used; i++)
            assert_int_equal(buffer.data[buffer.begin + i], next_out++);
        tfos__buffer_consume(&buffer, used);
        assert_true(buffer.capacity < 64u << 10);
    }
    tfos__buffer_clear(&buffer);
}

static void a_large_buffer_gives_its_memory_back(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__buffer buffer = {0};
    assert_done(tfos__buffer_reserve(&buffer, 1u << 20, &err));
    buffer.end = 1u << 20;
    tfos__buffer_consume(&buffer, (1u << 20) - 1);
    assert_true(buffer.capacity >= 1u << 20);
    tfos__buffer_consume(&buffer, 1);
    assert_int_equal(buffer.capacity, 0);
    assert_null(buffer.data);
}

static void a_buffer_survives_refused_memory(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__buffer buffer = {0};
    assert_done(tfos__buffer_append(&buffer, "abc", 3, &err));
    tfos__memory_fail_at(1);
    assert_int_equal(tfos__buffer_reserve(&buffer, 1u << 20, &err), TFOS_NO_MEMORY);
    assert_int_equal(tfos__buffer_reserve(&buffer, SIZE_MAX / 2, &err), TFOS_NO_MEMORY);
    assert_memory_equal(buffer.data, "abc", 3);
    tfos__buffer_clear(&buffer);
}

static void a_frame_has_these_bytes(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__buffer buffer = {0};
    json_t *message = json_pack("{s:s, s:[i, b]}", "type", "\xc3\xa9", "list", 1, 0);
    assert_done(tfos__frame_append(&buffer, message, &err));
    const char expected[] = "\0\0\0\x1e{\"type\":\"\xc3\xa9\",\"list\":[1,false]}";
    assert_int_equal(tfos__buffer_size(&buffer), sizeof(expected) - 1);
    assert_memory_equal(buffer.data, expected, sizeof(expected) - 1);
    json_t *taken;
    size_t size;
    assert_done(tfos__frame_take(&buffer, &taken, &size, &err));
    assert_int_equal(size, sizeof(expected) - 1);
    assert_true(json_equal(message, taken));
    assert_int_equal(tfos__frame_take(&buffer, &taken, &size, &err), TFOS_AGAIN);
    json_decref(taken);
    json_decref(message);
    tfos__buffer_clear(&buffer);
}

static void a_refused_frame_leaves_the_buffer_as_it_was(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__buffer buffer = {0};
    json_t *small = json_pack("{s:i}", "number", 1);
    assert_done(tfos__frame_append(&buffer, small, &err));
    size_t size = tfos__buffer_size(&buffer);
    char *text = calloc(1, TFOS__FRAME_LIMIT + 1u);
    memset(text, 'x', TFOS__FRAME_LIMIT);
    json_t *large = json_pack("{s:s}", "text", text);
    assert_int_equal(tfos__frame_append(&buffer, large, &err), TFOS_INVALID);
    assert_int_equal(tfos__buffer_size(&buffer), size);
    tfos__memory_fail_at(1);
    assert_int_equal(tfos__frame_append(&buffer, large, &err), TFOS_INVALID);
    tfos__memory_fail_at(0);
    struct tfos__buffer empty = {0};
    tfos__memory_fail_at(1);
    assert_int_equal(tfos__frame_append(&empty, small, &err), TFOS_NO_MEMORY);
    assert_int_equal(tfos__buffer_size(&buffer), size);
    free(text);
    json_decref(small);
    json_decref(large);
    tfos__buffer_clear(&buffer);
    tfos__buffer_clear(&empty);
}

static void members_are_got_by_type(void **state)
{
    (void)state;
    struct tfos_error err;
    const char *text = NULL;
    int64_t number = 0;
    json_t *object = json_pack("{s:s, s:I, s:n, s:f, s:b, s:[]}", "name", "chief", "count",
                               (json_int_t)-5, "none", "real", 1.5, "flag", 1, "list");
    assert_done(tfos__json_get_string(object, "name", &text, &err));
    assert_string_equal(text, "chief");
    assert_done(tfos__json_get_int(object, "count", -5, 5, &number, &err));
    assert_int_equal(number, -5);
    assert_int_equal(tfos__json_get_int(object, "count", -4, 5, &number, &err), TFOS_INVALID);
    assert_string_equal(err.message, "json: member \"count\" must be from -4 to 5, but is -5");
    assert_int_equal(tfos__json_get_int(object, "real", 0, 5, &number, &err), TFOS_INVALID);
    assert_string_equal(err.message,
                        "json: member \"real\" must be an integer, but is a real number");
    assert_int_equal(tfos__json_get_string(object, "gone", &text, &err), TFOS_INVALID);
    assert_string_equal(err.message, "json: member \"gone\" must be a string, but is missing");
    assert_int_equal(tfos__json_get_string(NULL, "gone", &text, NULL), TFOS_INVALID);
    assert_string_equal(tfos__json_string_or(object, "none", "fallback"), "fallback");
    assert_string_equal(tfos__json_string_or(object, "name", "fallback"), "chief");
    assert_int_equal(tfos__json_int_or(object, "count", 9), -5);
    assert_int_equal(tfos__json_int_or(object, "real", 9), 9);
    assert_true(tfos__json_bool_or(object, "flag", false));
    assert_true(tfos__json_bool_or(object, "list", true));
    assert_string_equal(text, "chief");
    json_decref(object);
}

static void text_and_values_turn_into_each_other(void **state)
{
    (void)state;
    struct tfos_error err;
    json_t *value = NULL;
    const char text[] = "{\"a\":[1,2.5,null,true,\"x\"]}";
    assert_done(tfos__json_parse(text, sizeof(text) - 1, &value, &err));
    char *again = tfos__json_text(value);
    assert_string_equal(again, text);
    tfos__free(again);
    tfos__memory_fail_at(1);
    assert_null(tfos__json_text(value));
    json_t *list = json_object_get(value, "a");
    again = tfos__json_text(list);
    assert_string_equal(again, "[1,2.5,null,true,\"x\"]");
    tfos__free(again);
    json_decref(value);
    assert_int_equal(tfos__json_parse("{\"a\":\n  ?}", 10, &value, &err), TFOS_CORRUPT);
    assert_non_null(strstr(err.message, "line 2, byte 9"));
    assert_int_equal(tfos__json_parse("{\"a\":1,\"a\":2}", 13, &value, &err), TFOS_CORRUPT);
    assert_int_equal(tfos__json_parse("", 0, &value, &err), TFOS_CORRUPT);
    assert_int_equal(tfos__json_parse("{}x", 3, &value, &err), TFOS_CORRUPT);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(a_buffer_keeps_its_bytes_as_it_moves),
    cmocka_unit_test(a_large_buffer_gives_its_memory_back),
    cmocka_unit_test(a_buffer_survives_refused_memory),
    cmocka_unit_test(a_frame_has_these_bytes),
    cmocka_unit_test(a_refused_frame_leaves_the_buffer_as_it_was),
    cmocka_unit_test(members_are_got_by_type),
    cmocka_unit_test(text_and_values_turn_into_each_other),
};

TEST_MAIN(cases)
