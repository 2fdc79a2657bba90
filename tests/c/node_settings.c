// SPDX-License-Identifier: Apache-2.0
/// A node's configuration, and the environment of its trainer.
#include "base/memory.h"
#include "node/config.h"
#include "nodes.h"

static json_t *good_config(void)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:i, s:s, s:[s]}", "type", "config", "cluster_id", "c",
                     "key", KEY, "address", "127.0.0.1:1", "executor_id", 3, "executor", "0",
                     "argv", "true");
}

/// A configuration in which `key` has `value` is refused with words that name the key.
static void assert_refused(const char *key, json_t *value)
{
    struct tfos_error err;
    struct tfos__node_config config;
    json_t *object = good_config();
    if (value)
        json_object_set_new(object, key, value);
    else
        json_object_del(object, key);
    assert_int_equal(tfos__node_config_init(&config, object, &err), TFOS_INVALID);
    if (!strstr(err.message, key))
        fail_msg("\"%s\" is not named: %s", key, err.message);
    assert_null(config.object);
}

static void a_bad_configuration_is_refused_by_its_key(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__node_config config;
    assert_done(tfos__node_config_init(&config, good_config(), &err));
    tfos__node_config_clear(&config);
    static const char *const needed[] = {"cluster_id",  "key",      "address",
                                         "executor_id", "executor", "argv"};
    for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++) {
        assert_refused(needed[i], NULL);
        assert_refused(needed[i], json_true());
    }
    assert_refused("executor_id", json_integer(-1));
    assert_refused("executor_pid", json_integer(-1));
    assert_refused("tf_port", json_integer(65536));
    assert_refused("join_timeout_ms", json_integer(-1));
    assert_refused("argv", json_array());
    assert_refused("argv", json_pack("[s, i]", "python", 1));
    assert_refused("environment", json_pack("[s]", "A=1"));
    assert_refused("environment", json_pack("{s:i}", "A", 1));
    assert_refused("environment", json_pack("{s:s}", "A=B", "1"));
    assert_refused("environment", json_pack("{s:s}", "", "1"));
    assert_refused("tensorboard", json_true());
    assert_refused("tensorboard", json_object());
    assert_refused("tensorboard", json_pack("{s:[s], s:i}", "argv", "tensorboard", "port", -1));
}

static const char *find(const struct tfos__node_strings *environment, const char *name)
{
    size_t size = strlen(name);
    for (char **item = environment->items; *item; item++)
        if (strncmp(*item, name, size) == 0 && (*item)[size] == '=')
            return *item + size + 1;
    return NULL;
}

static void an_environment_is_set_and_unset(void **state)
{
    (void)state;
    struct tfos_error err;
    struct tfos__node_strings environment;
    char *const items[] = {"A=1", "AB=2", "A=again", "C=", NULL};
    assert_done(tfos__node_environment_init(&environment, items, &err));
    assert_int_equal(environment.count, 3);
    assert_string_equal(find(&environment, "A"), "1");
    json_t *overrides = json_pack("{s:n, s:s, s:s, s:n}", "A", "AB", "two", "D", "new=er", "E");
    assert_done(tfos__node_environment_apply(&environment, overrides, &err));
    json_decref(overrides);
    assert_null(find(&environment, "A"));
    assert_string_equal(find(&environment, "AB"), "two");
    assert_string_equal(find(&environment, "C"), "");
    assert_string_equal(find(&environment, "D"), "new=er");
    assert_int_equal(environment.count, 3);
    assert_null(environment.items[3]);
    tfos__node_strings_clear(&environment);
}

static json_t *tf_config(const char *spec_text, const char *job_name, int64_t task_index)
{
    struct tfos_error err;
    char *text;
    json_t *spec = json_loads(spec_text, 0, NULL);
    assert_done(tfos__node_environment_tf_config(spec, job_name, task_index, &text, &err));
    json_t *config = json_loads(text, 0, NULL);
    tfos_free(text);
    json_decref(spec);
    return config;
}

static void only_an_evaluator_s_tf_config_has_it_in_its_cluster(void **state)
{
    (void)state;
    const char *spec = "{\"chief\": [\"a:1\"], \"evaluator\": [\"b:2\"], \"ps\": [\"c:3\"], "
                       "\"worker\": [\"d:4\"]}";
    json_t *config = tf_config(spec, "evaluator", 0);
    assert_int_equal(json_object_size(json_object_get(config, "cluster")), 4);
    assert_string_equal(json_string_value(json_object_get(config, "environment")), "cloud");
    const json_t *task = json_object_get(config, "task");
    assert_string_equal(json_string_value(json_object_get(task, "type")), "evaluator");
    json_decref(config);
    config = tf_config(spec, "chief", 0);
    const json_t *cluster = json_object_get(config, "cluster");
    assert_int_equal(json_object_size(cluster), 3);
    assert_null(json_object_get(cluster, "evaluator"));
    json_decref(config);
    config = tf_config("{\"worker\": [\"d:4\", \"e:5\"]}", "worker", 1);
    assert_null(json_object_get(config, "environment"));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(config, "task"), "index")),
                     1);
    json_decref(config);
}

static void survives_every_failed_allocation(void **state)
{
    (void)state;
    char *const items[] = {"A=1", "B=2", NULL};
    for (long n = 1; n < 50; n++) {
        struct tfos_error err;
        struct tfos__node_strings environment;
        tfos__memory_fail_at(n);
        enum tfos_status status = tfos__node_environment_init(&environment, items, &err);
        if (status == TFOS_OK)
            status = tfos__node_environment_set(&environment, "A", "longer", &err);
        if (status == TFOS_OK)
            status = tfos__node_environment_set(&environment, "C", "3", &err);
        tfos__memory_fail_at(0);
        assert_true(status == TFOS_OK || status == TFOS_NO_MEMORY);
        tfos__node_strings_clear(&environment);
        if (status == TFOS_OK)
            return;
    }
    fail_msg("it never succeeded");
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(a_bad_configuration_is_refused_by_its_key),
    cmocka_unit_test(an_environment_is_set_and_unset),
    cmocka_unit_test(only_an_evaluator_s_tf_config_has_it_in_its_cluster),
    cmocka_unit_test(survives_every_failed_allocation),
};

TEST_MAIN(cases)
