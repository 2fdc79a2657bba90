// SPDX-License-Identifier: Apache-2.0
// Roles, the checks of the options, and the cluster spec.
#include <stdlib.h>

#include "base/fail.h"
#include "cluster/node_table.h"
#include "rendezvous_scene.h"

#define BAD_KEY "g00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static void check_roles(struct tfos_rendezvous_options options, const char *expected)
{
    struct tfos_error err;
    struct tfos__cluster_roles roles;
    assert_done(tfos__cluster_roles_init(&roles, &options, &err));
    json_t *json = tfos__cluster_roles_json(&roles);
    char *text = json_dumps(json, JSON_COMPACT);
    assert_string_equal(text, expected);
    free(text);
    json_decref(json);
}

static void roles_of_all_combinations(void **state)
{
    (void)state;
    struct tfos_rendezvous_options options = {.node_count = 1};
    check_roles(options, "{\"worker\":[0]}");
    options = (struct tfos_rendezvous_options){.node_count = 3};
    check_roles(options, "{\"worker\":[0,1,2]}");
    options.ps_count = 1;
    check_roles(options, "{\"ps\":[0],\"worker\":[1,2]}");
    options.ps_count = 2;
    check_roles(options, "{\"ps\":[0,1],\"worker\":[2]}");
    options.ps_count = 0;
    options.master_name = "chief";
    check_roles(options, "{\"chief\":[0],\"worker\":[1,2]}");
    options.has_evaluator = true;
    check_roles(options, "{\"chief\":[0],\"evaluator\":[1],\"worker\":[2]}");
    options.ps_count = 1;
    options.master_name = "master";
    check_roles(options, "{\"ps\":[0],\"master\":[1],\"evaluator\":[2]}");
    options.node_count = 5;
    check_roles(options, "{\"ps\":[0],\"master\":[1],\"evaluator\":[2],\"worker\":[3,4]}");
    options.master_name = NULL;
    check_roles(options, "{\"ps\":[0],\"evaluator\":[1],\"worker\":[2,3,4]}");
}

static void roles_that_cannot_be_met(void **state)
{
    (void)state;
    struct tfos__cluster_roles roles;
    struct tfos_error err;
    const struct {
        struct tfos_rendezvous_options options;
        const char *says;
    } cases[] = {
        {{.node_count = 0}, "node_count is 0"},
        {{.node_count = 10001}, "node_count is 10001"},
        {{.node_count = 2, .ps_count = -1}, "ps_count is -1"},
        {{.node_count = 2, .ps_count = 2}, "ps_count 2 needs 3 nodes"},
        {{.node_count = 2, .ps_count = 1, .has_evaluator = true}, "need 3 nodes"},
        {{.node_count = 3, .ps_count = 2, .has_evaluator = true, .master_name = "chief"},
         "a chief need 4 nodes"},
        {{.node_count = 3, .master_name = "ch1ef"}, "master_name is \"ch1ef\""},
        {{.node_count = 3, .master_name = ""}, "master_name"},
        {{.node_count = 3, .master_name = "worker"}, "name of another role"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(tfos__cluster_roles_init(&roles, &cases[i].options, &err), TFOS_INVALID);
        assert_says(err.message, cases[i].says);
    }
}

static void options_are_checked(void **state)
{
    (void)state;
    struct tfos_rendezvous *rendezvous;
    struct tfos_error err;
    const struct {
        struct tfos_rendezvous_options options;
        const char *says;
    } cases[] = {
        {{.cluster_id = NULL, .key = KEY, .node_count = 1}, "cluster_id"},
        {{.cluster_id = "a b", .key = KEY, .node_count = 1}, "cluster_id is \"a b\""},
        {{.cluster_id = "a", .key = NULL, .node_count = 1}, "key has 0 characters"},
        {{.cluster_id = "a", .key = "0123", .node_count = 1}, "64 hexadecimal digits"},
        {{.cluster_id = "a", .key = BAD_KEY, .node_count = 1}, "64 hexadecimal digits"},
        {{.cluster_id = "a", .key = KEY, .node_count = 1, .ports = "x"}, "ports"},
        {{.cluster_id = "a", .key = KEY, .node_count = 1, .heartbeat_timeout_ms = -5},
         "heartbeat_timeout_ms is -5"},
        {{.cluster_id = "a", .key = KEY, .node_count = 1, .feed_stop_grace_ms = -5},
         "feed_stop_grace_ms is -5"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(tfos_rendezvous_open(&cases[i].options, &rendezvous, &err), TFOS_INVALID);
        assert_says(err.message, cases[i].says);
        if (cases[i].options.key)
            assert_null(strstr(err.message, cases[i].options.key));
    }
}

static void the_spec_is_sorted(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__cluster_roles roles;
    struct tfos__cluster_node_table table;
    struct tfos_rendezvous_options options = {
        .node_count = 6, .ps_count = 2, .master_name = "chief", .has_evaluator = true};
    assert_done(tfos__cluster_roles_init(&roles, &options, &err));
    assert_done(tfos__cluster_node_table_init(&table, &roles, &err));
    for (int id = 0; id < 6; id++) {
        snprintf(table.nodes[id].host, sizeof(table.nodes[id].host), id == 5 ? "fd00::1" : "h%d",
                 9 - id);
        table.nodes[id].port = 100 + id;
    }
    json_t *spec = tfos__cluster_node_table_spec(&table);
    char *text = json_dumps(spec, JSON_COMPACT);
    assert_string_equal(text,
                        "{\"chief\":[\"h7:102\"],\"evaluator\":[\"h6:103\"],\"ps\":[\"h9:100\","
                        "\"h8:101\"],\"worker\":[\"h5:104\",\"[fd00::1]:105\"]}");
    free(text);
    json_decref(spec);
    tfos__cluster_node_table_clear(&table);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(roles_of_all_combinations),
    cmocka_unit_test(roles_that_cannot_be_met),
    cmocka_unit_test(options_are_checked),
    cmocka_unit_test(the_spec_is_sorted),
};

TEST_MAIN(cases)
