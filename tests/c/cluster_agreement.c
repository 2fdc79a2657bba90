// SPDX-License-Identifier: Apache-2.0
// Agreement between the members that train.
#include "base/clock.h"
#include "rendezvous_scene.h"

static void give(struct tfos__channel *member, const char *name, int value)
{
    say(member, json_pack("{s:s, s:s, s:i}", "type", "agree", "name", name, "value", value));
}

static void all_get_all_values_in_order(void **state)
{
    (void)state;
    struct tfos__channel *members[4];
    struct place place = open_place(
        (struct tfos_rendezvous_options){.node_count = 4, .ps_count = 1, .master_name = "chief"});
    start_nodes(&place, members, 4);
    for (int id = 3; id >= 1; id--) // the parameter server has no part in it
        give(members[id], "step", 10 * id);
    for (int id = 1; id < 4; id++) {
        json_t *agreed = expect(members[id], "agreed");
        assert_string_equal(text_of(agreed, "name"), "step");
        json_t *values = json_object_get(agreed, "values");
        assert_int_equal(json_array_size(values), 3);
        for (int i = 0; i < 3; i++)
            assert_int_equal(json_integer_value(json_array_get(values, (size_t)i)), 10 * (i + 1));
        json_decref(agreed);
    }
    give(members[0], "step", 1);
    json_t *disagreed = expect(members[0], "disagreed");
    assert_says(text_of(disagreed, "message"), "ps:0 has no part in it");
    json_decref(disagreed);
    close_members(members, 4);
    tfos_rendezvous_close(place.rendezvous);
}

static void a_member_that_ends_disagrees(void **state)
{
    (void)state;
    struct tfos__channel *members[3];
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 3});
    start_nodes(&place, members, 3);
    // It ends after its value: the agreement still comes.
    give(members[2], "a", 1);
    give(members[0], "b", 1);
    say(members[2], trainer_exit(0));
    json_t *message = expect(members[0], "disagreed");
    assert_string_equal(text_of(message, "name"), "b");
    assert_says(text_of(message, "message"), "worker:2 has ended (exit status 0)");
    json_decref(message);
    give(members[0], "a", 2);
    give(members[1], "a", 3);
    for (int id = 0; id < 2; id++)
        expect_only(members[id], "agreed");
    // Later ones fail at once, for each who asks.
    for (int id = 0; id < 2; id++) {
        give(members[id], "c", 1);
        expect_only(members[id], "disagreed");
    }
    close_members(members, 3);
    tfos_rendezvous_close(place.rendezvous);
}

static void a_second_value_of_a_name_is_refused(void **state)
{
    (void)state;
    struct tfos__channel *members[2];
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 2});
    start_nodes(&place, members, 2);
    give(members[0], "x", 1);
    give(members[0], "x", 2);
    json_t *message = expect(members[0], "disagreed");
    assert_says(text_of(message, "message"), "twice");
    json_decref(message);
    close_members(members, 2);
    tfos_rendezvous_close(place.rendezvous);
}

// A text of `size` bytes, with its quotes.
static void give_text(struct tfos__channel *member, const char *name, size_t size)
{
    char *text = malloc(size - 1);

    memset(text, 'x', size - 2);
    text[size - 2] = '\0';
    say(member, json_pack("{s:s, s:s, s:s}", "type", "agree", "name", name, "value", text));
    free(text);
}

// One may tell all that there is room for, if the others tell little.
static void the_values_of_all_have_a_limit(void **state)
{
    enum { LIMIT = 2 << 20 };
    struct tfos__channel *members[4];
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 4});

    (void)state;
    start_nodes(&place, members, 4);
    give_text(members[1], "x", LIMIT - 3 * 10);
    for (int id = 0; id < 4; id++)
        if (id != 1)
            give_text(members[id], "x", 10);
    for (int id = 0; id < 4; id++)
        expect_only(members[id], "agreed");
    give_text(members[1], "y", LIMIT - 10);
    give_text(members[2], "y", 10);
    give_text(members[3], "y", 3);
    json_t *message = expect(members[3], "disagreed");
    assert_says(text_of(message, "message"), "with the value of worker:3, of 3 bytes");
    json_decref(message);
    close_members(members, 4);
    tfos_rendezvous_close(place.rendezvous);
}

static void who_is_missing_is_told(void **state)
{
    (void)state;
    struct tfos__channel *members[4];
    struct place place =
        open_place((struct tfos_rendezvous_options){.node_count = 4, .ps_count = 1});
    start_nodes(&place, members, 4);
    give(members[1], "step", 1);
    say(members[1], json_pack("{s:s, s:s}", "type", "pending", "name", "step"));
    json_t *pending = expect(members[1], "pending");
    assert_string_equal(text_of(pending, "name"), "step");
    assert_string_equal(text_of(pending, "nodes"), "worker:1 on host host-2 (executor e7), "
                                                   "worker:2 on host host-3 (executor e7)");
    json_decref(pending);
    // The round continues; of one that is over nobody is missing, and nothing is said.
    give(members[2], "step", 2);
    give(members[3], "step", 3);
    expect_only(members[1], "agreed");
    say(members[1], json_pack("{s:s, s:s}", "type", "pending", "name", "step"));
    give(members[1], "next", 1);
    say(members[1], json_pack("{s:s, s:s}", "type", "pending", "name", "next"));
    pending = expect(members[1], "pending");
    assert_string_equal(text_of(pending, "name"), "next");
    json_decref(pending);
    close_members(members, 4);
    tfos_rendezvous_close(place.rendezvous);
}

static void rounds_are_quick(void **state)
{
    (void)state;
    enum { ROUNDS = 200 };
    struct tfos__channel *members[2];
    struct place place = open_place((struct tfos_rendezvous_options){.node_count = 2});
    start_nodes(&place, members, 2);
    int64_t begin_ms = tfos__now_ms();
    for (int round = 0; round < ROUNDS; round++) {
        char name[32];
        snprintf(name, sizeof(name), "step-%d", round);
        for (int id = 0; id < 2; id++)
            give(members[id], name, round);
        for (int id = 0; id < 2; id++)
            expect_only(members[id], "agreed");
    }
    // A delayed acknowledgement of TCP alone would be 40 ms a round.
    assert_true(tfos__now_ms() - begin_ms < ROUNDS * 20);
    close_members(members, 2);
    tfos_rendezvous_close(place.rendezvous);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(all_get_all_values_in_order),
    cmocka_unit_test(a_member_that_ends_disagrees),
    cmocka_unit_test(a_second_value_of_a_name_is_refused),
    cmocka_unit_test(the_values_of_all_have_a_limit),
    cmocka_unit_test(who_is_missing_is_told),
    cmocka_unit_test(rounds_are_quick),
};

TEST_MAIN(cases)
