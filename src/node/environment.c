// SPDX-License-Identifier: Apache-2.0
/// An environment is a flat array, searched from its start: a trainer has a hundred variables or
/// so. Invariant: `items` has room for `count` entries and the NULL behind them, and no name twice.
#include "node/environment.h"

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"

#include <string.h>

static size_t find(const struct tfos__environment *environment, const char *name, size_t name_size)
{
    size_t i = 0;
    while (i < environment->count && (strncmp(environment->items[i], name, name_size) != 0 ||
                                      environment->items[i][name_size] != '='))
        i++;
    return i;
}

static enum tfos_status append(struct tfos__environment *environment, char *item,
                               struct tfos_error *err)
{
    char **items =
        item ? tfos__realloc(environment->items, environment->count + 2, sizeof *items) : NULL;
    if (!items) {
        tfos__free(item);
        return tfos__no_memory(err, "node", "the trainer's environment");
    }
    items[environment->count++] = item;
    items[environment->count] = NULL;
    environment->items = items;
    return TFOS_OK;
}

enum tfos_status tfos__environment_init(struct tfos__environment *environment, char *const *items,
                                        struct tfos_error *err)
{
    *environment = (struct tfos__environment){.items = tfos__alloc(1, sizeof(char *))};
    if (!environment->items)
        return tfos__no_memory(err, "node", "the trainer's environment");
    for (; *items; items++) {
        size_t name_size = strcspn(*items, "=");
        // Some shells export names twice; exec'd programs disagree on which one counts, so the
        // first does.
        if (find(environment, *items, name_size) < environment->count)
            continue;
        enum tfos_status status = append(environment, tfos__strdup(*items), err);
        if (status < 0) {
            tfos__environment_clear(environment);
            return status;
        }
    }
    return TFOS_OK;
}

enum tfos_status tfos__environment_set(struct tfos__environment *environment, const char *name,
                                       const char *value, struct tfos_error *err)
{
    size_t found = find(environment, name, strlen(name));
    bool is_new = found == environment->count;
    if (value) {
        char *item = tfos__format("%s=%s", name, value);
        if (is_new)
            return append(environment, item, err);
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

enum tfos_status tfos__environment_apply(struct tfos__environment *environment,
                                         const json_t *overrides, struct tfos_error *err)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)overrides, name, value)
    {
        TFOS__TRY(tfos__environment_set(environment, name, json_string_value(value), err));
    }
    return TFOS_OK;
}

void tfos__environment_clear(struct tfos__environment *environment)
{
    for (size_t i = 0; i < environment->count; i++)
        tfos__free(environment->items[i]);
    tfos__free(environment->items);
    *environment = (struct tfos__environment){0};
}

enum tfos_status tfos__environment_tf_config(const json_t *cluster_spec, const char *job_name,
                                             int64_t task_index, char **out, struct tfos_error *err)
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
    char *text = config ? tfos__json_text(config) : NULL;
    json_decref(config);
    if (!text)
        return tfos__no_memory(err, "node", "TF_CONFIG");
    *out = text;
    return TFOS_OK;
}
