// SPDX-License-Identifier: Apache-2.0
// Everything in the launcher's configuration is checked before the node acts on any of it, so that
// a mistake is reported at the launch and by its key, not minutes later by what it breaks. An
// environment is searched from its start: a trainer has a hundred variables or so.
#include "node/config.h"

#include <limits.h>
#include <string.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"

#define PORT_MAX 65535
#define GPUS_MAX 64

static enum tfos_status check_argv(const json_t *argv, const char *key, struct tfos_error *err)
{
    if (!json_is_array(argv) || json_array_size(argv) == 0)
        return tfos__fail(err, TFOS_INVALID,
                          "\"%s\" must be an array of strings, "
                          "the program first",
                          key);
    size_t i;
    json_t *item;
    json_array_foreach(argv, i, item)
    {
        if (!json_is_string(item))
            return tfos__fail(err, TFOS_INVALID, "\"%s\"[%zu] must be a string", key, i);
    }
    return TFOS_OK;
}

static enum tfos_status check_environment(json_t *environment, struct tfos_error *err)
{
    if (!json_is_object(environment))
        return tfos__fail(err, TFOS_INVALID,
                          "\"environment\" must be an object of strings and nulls");
    const char *name;
    json_t *value;
    json_object_foreach(environment, name, value)
    {
        if (name[0] == '\0' || strchr(name, '='))
            return tfos__fail(err, TFOS_INVALID,
                              "\"%s\" in \"environment\" cannot be the name of a variable", name);
        if (!json_is_string(value) && !json_is_null(value))
            return tfos__fail(err, TFOS_INVALID,
                              "\"%s\" in \"environment\" must be a string or null", name);
    }
    return TFOS_OK;
}

static enum tfos_status read_trainer(struct tfos__node_config *config, struct tfos_error *err)
{
    config->argv = json_object_get(config->object, "argv");
    TFOS__TRY(check_argv(config->argv, "argv", err));
    config->directory = tfos__json_string_or(config->object, "directory", NULL);
    json_t *environment = json_object_get(config->object, "environment");
    if (!environment || json_is_null(environment))
        return TFOS_OK;
    TFOS__TRY(check_environment(environment, err));
    config->environment = environment;
    return TFOS_OK;
}

static enum tfos_status read_gpus(struct tfos__node_config *config, struct tfos_error *err)
{
    const json_t *gpus = json_object_get(config->object, "gpus");
    if (!gpus || json_is_null(gpus))
        return TFOS_OK;
    const json_t *fraction = json_object_get(gpus, "fraction");
    TFOS__TRY(tfos__fail_in(
        err, tfos__json_get_int(gpus, "count", 0, GPUS_MAX, &config->gpu_count, err), "gpus"));
    config->gpu_fraction = json_number_value(fraction);
    if (!(config->gpu_fraction >= 0 && config->gpu_fraction <= 1))
        return tfos__fail(err, TFOS_INVALID, "\"gpus.fraction\" must be a number from 0 to 1");
    config->gpu_addresses = tfos__json_string_or(gpus, "addresses", NULL);
    config->is_gpu_required = tfos__json_bool_or(gpus, "required", false);
    return TFOS_OK;
}

static enum tfos_status read_tensorboard(struct tfos__node_config *config, struct tfos_error *err)
{
    const json_t *tensorboard = json_object_get(config->object, "tensorboard");
    if (!tensorboard || json_is_null(tensorboard))
        return TFOS_OK;
    if (!json_is_object(tensorboard))
        return tfos__fail(err, TFOS_INVALID,
                          "\"tensorboard\" must be null or an object with \"argv\"");
    const json_t *argv = json_object_get(tensorboard, "argv");
    TFOS__TRY(check_argv(argv, "tensorboard.argv", err));
    if (json_object_get(tensorboard, "port")) {
        enum tfos_status status =
            tfos__json_get_int(tensorboard, "port", 0, PORT_MAX, &config->tensorboard_port, err);
        TFOS__TRY(tfos__fail_in(err, status, "tensorboard"));
    }
    config->tensorboard_log_directory = tfos__json_string_or(tensorboard, "log_directory", NULL);
    config->tensorboard_argv = argv;
    return TFOS_OK;
}

static enum tfos_status read_names(struct tfos__node_config *config, struct tfos_error *err)
{
    const json_t *object = config->object;
    const char *type;
    TFOS__TRY(tfos__json_get_string(object, "type", &type, err));
    if (strcmp(type, "config") != 0)
        return tfos__fail(err, TFOS_INVALID,
                          "the launcher's first message must be \"config\", not \"%s\"", type);
    TFOS__TRY(tfos__json_get_string(object, "cluster_id", &config->cluster_id, err));
    TFOS__TRY(tfos__json_get_string(object, "key", &config->key, err));
    TFOS__TRY(tfos__json_get_string(object, "address", &config->address, err));
    TFOS__TRY(tfos__json_get_string(object, "executor", &config->executor, err));
    config->host = tfos__json_string_or(object, "host", NULL);
    return TFOS_OK;
}

static enum tfos_status read_all(struct tfos__node_config *config, struct tfos_error *err)
{
    const json_t *object = config->object;
    TFOS__TRY(read_names(config, err));
    TFOS__TRY(tfos__json_get_int(object, "executor_id", 0, INT_MAX, &config->executor_id, err));
    config->launch = tfos__json_int_or(object, "launch", 0);
    config->executor_pid = tfos__json_int_or(object, "executor_pid", 0);
    if (config->executor_pid < 0 || config->executor_pid > INT_MAX)
        return tfos__fail(err, TFOS_INVALID, "\"executor_pid\" must be a process id or 0");
    config->is_feeding = tfos__json_bool_or(object, "feeding", false);
    config->queues = tfos__json_string_or(object, "queues", NULL);
    if (json_object_get(object, "tf_port"))
        TFOS__TRY(tfos__json_get_int(object, "tf_port", 0, PORT_MAX, &config->tf_port, err));
    if (json_object_get(object, "join_timeout_ms"))
        TFOS__TRY(tfos__json_get_int(object, "join_timeout_ms", 0, INT64_MAX,
                                     &config->join_timeout_ms, err));
    TFOS__TRY(read_trainer(config, err));
    TFOS__TRY(read_gpus(config, err));
    return read_tensorboard(config, err);
}

enum tfos_status tfos__node_config_init(struct tfos__node_config *config, json_t *message,
                                        struct tfos_error *err)
{
    *config = (struct tfos__node_config){.object = message};
    enum tfos_status status = tfos__fail_in(err, read_all(config, err), "node: config");
    if (status < 0)
        tfos__node_config_clear(config);
    return status;
}

void tfos__node_config_clear(struct tfos__node_config *config)
{
    json_decref(config->object);
    *config = (struct tfos__node_config){0};
}

// ---- strings

static size_t find(const struct tfos__node_strings *environment, const char *name, size_t name_size)
{
    size_t i = 0;
    while (i < environment->count && (strncmp(environment->items[i], name, name_size) != 0 ||
                                      environment->items[i][name_size] != '='))
        i++;
    return i;
}

enum tfos_status tfos__node_strings_append(struct tfos__node_strings *strings, char *item,
                                           struct tfos_error *err)
{
    char **items = item ? tfos__realloc(strings->items, strings->count + 2, sizeof(*items)) : NULL;
    if (!items) {
        tfos__free(item);
        return tfos__no_memory(err, "node", "a process's arguments and environment");
    }
    items[strings->count++] = item;
    items[strings->count] = NULL;
    strings->items = items;
    return TFOS_OK;
}

enum tfos_status tfos__node_environment_init(struct tfos__node_strings *environment,
                                             char *const *items, struct tfos_error *err)
{
    *environment = (struct tfos__node_strings){.items = tfos__alloc(1, sizeof(char *))};
    enum tfos_status status =
        environment->items ? TFOS_OK : tfos__no_memory(err, "node", "an environment");
    for (; status == TFOS_OK && *items; items++) {
        // Some shells export names twice; exec'd programs disagree on which one counts, so the
        // first does.
        if (find(environment, *items, strcspn(*items, "=")) == environment->count)
            status = tfos__node_strings_append(environment, tfos__strdup(*items), err);
    }
    if (status < 0)
        tfos__node_strings_clear(environment);
    return status;
}

enum tfos_status tfos__node_environment_set(struct tfos__node_strings *environment,
                                            const char *name, const char *value,
                                            struct tfos_error *err)
{
    size_t found = find(environment, name, strlen(name));
    bool is_new = found == environment->count;
    if (value) {
        char *item = tfos__format("%s=%s", name, value);
        if (is_new)
            return tfos__node_strings_append(environment, item, err);
        if (!item)
            return tfos__no_memory(err, "node", "the trainer's environment");
        tfos__free(environment->items[found]);
        environment->items[found] = item;
    } else if (!is_new) {
        tfos__free(environment->items[found]);
        environment->items[found] = environment->items[--environment->count];
        environment->items[environment->count] = NULL;
    }
    return TFOS_OK;
}

enum tfos_status tfos__node_environment_apply(struct tfos__node_strings *environment,
                                              const json_t *overrides, struct tfos_error *err)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)overrides, name, value)
    {
        TFOS__TRY(tfos__node_environment_set(environment, name, json_string_value(value), err));
    }
    return TFOS_OK;
}

void tfos__node_strings_clear(struct tfos__node_strings *environment)
{
    for (size_t i = 0; i < environment->count; i++)
        tfos__free(environment->items[i]);
    tfos__free(environment->items);
    *environment = (struct tfos__node_strings){0};
}

enum tfos_status tfos__node_environment_tf_config(const json_t *cluster_spec, const char *job_name,
                                                  int64_t task_index, char **out,
                                                  struct tfos_error *err)
{
    json_t *cluster = json_copy((json_t *)cluster_spec);
    // It takes no part in training, so the others do not count it; TensorFlow looks for its own
    // task.
    if (strcmp(job_name, "evaluator") != 0)
        json_object_del(cluster, "evaluator");
    bool has_chief = json_object_get(cluster, "chief") || json_object_get(cluster, "master");
    json_t *config = json_pack("{s:o, s:{s:s, s:I}}", "cluster", cluster, "task", "type", job_name,
                               "index", (json_int_t)task_index);
    if (config && has_chief)
        json_object_set_new(config, "environment", json_string("cloud"));
    return tfos__json_print(config, "node", "TF_CONFIG", out, err);
}
