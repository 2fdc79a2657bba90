// SPDX-License-Identifier: Apache-2.0
/// Checks everything in the launcher's configuration before the node acts on any of it, so that a
/// mistake is reported at the launch and by its key, not minutes later by what it breaks.
#include "node/config.h"

#include "base/fail.h"
#include "base/json.h"

#include <limits.h>
#include <string.h>

#define PORT_MAX 65535

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
            tfos__json_get_int(tensorboard, "port", 0, PORT_MAX, &config->board_port, err);
        if (status < 0) {
            tfos__fail_prefix(err, "tensorboard");
            return status;
        }
    }
    config->board_log_directory = tfos__json_string_or(tensorboard, "log_directory", NULL);
    config->board_argv = argv;
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
    return read_tensorboard(config, err);
}

enum tfos_status tfos__node_config_init(struct tfos__node_config *config, json_t *message,
                                        struct tfos_error *err)
{
    *config = (struct tfos__node_config){.object = message};
    enum tfos_status status = read_all(config, err);
    if (status < 0) {
        tfos__fail_prefix(err, "node: config");
        tfos__node_config_clear(config);
    }
    return status;
}

void tfos__node_config_clear(struct tfos__node_config *config)
{
    json_decref(config->object);
    *config = (struct tfos__node_config){0};
}
