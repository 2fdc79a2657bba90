// SPDX-License-Identifier: Apache-2.0
// Lists of queues, as users and peers write them.
#include <string.h>

#include "base/queue_names.h"
#include "harness.h"

static void a_list_gives_its_names_places(void **state)
{
    (void)state;
    struct tfos__queue_names queues;
    struct tfos_error err;
    int place = -1;
    assert_done(tfos__queue_names_init(&queues, NULL, &err));
    assert_int_equal(queues.count, 1);
    assert_int_equal(tfos__queue_names_find(&queues, NULL), 0);
    assert_done(tfos__queue_names_init(&queues, "validation,input,a.b-c_9", &err));
    assert_int_equal(queues.count, 3);
    assert_int_equal(tfos__queue_names_find(&queues, "validation"), 0);
    assert_int_equal(tfos__queue_names_find(&queues, NULL), 1);
    assert_done(tfos__queue_names_get(&queues, "a.b-c_9", &place, &err));
    assert_int_equal(place, 2);
}

static void an_unknown_queue_is_told_the_others(void **state)
{
    (void)state;
    struct tfos__queue_names queues;
    struct tfos_error err;
    int place = 7;
    assert_done(tfos__queue_names_init(&queues, "input,validation", &err));
    assert_int_equal(tfos__queue_names_find(&queues, "inpu"), -1);
    assert_int_equal(tfos__queue_names_get(&queues, "output", &place, &err), TFOS_NOT_FOUND);
    assert_string_equal(err.message,
                        "there is no queue \"output\": a node has \"input\", \"validation\"");
    assert_int_equal(place, 7);
}

static void a_wrong_list_is_refused(void **state)
{
    (void)state;
    struct tfos__queue_names queues;
    struct tfos_error err;
    char list[512] = "q0";
    const char *const wrong[] = {"", "input,", ",input", "in put", "input,input", "ein\xc3\xbc"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(tfos__queue_names_init(&queues, wrong[i], &err), TFOS_INVALID);
    for (int i = 1; i < TFOS__QUEUE_LIMIT; i++)
        snprintf(list + strlen(list), sizeof(list) - strlen(list), ",q%d", i);
    assert_done(tfos__queue_names_init(&queues, list, &err));
    strncat(list, ",one-more", sizeof(list) - strlen(list) - 1);
    assert_int_equal(tfos__queue_names_init(&queues, list, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "at most 16"));
    memset(list, 'a', 64);
    list[64] = '\0';
    assert_done(tfos__queue_names_init(&queues, list, &err));
    memset(list, 'a', 65);
    list[65] = '\0';
    assert_int_equal(tfos__queue_names_init(&queues, list, &err), TFOS_INVALID);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(a_list_gives_its_names_places),
    cmocka_unit_test(an_unknown_queue_is_told_the_others),
    cmocka_unit_test(a_wrong_list_is_refused),
};

TEST_MAIN(cases)
