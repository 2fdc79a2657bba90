// SPDX-License-Identifier: Apache-2.0
#include "base/queue_names.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"

static bool is_name(const char *text, size_t size)
{
    bool is_valid = size > 0 && size < TFOS__QUEUE_NAME_SIZE;
    for (size_t i = 0; is_valid && i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        is_valid = isascii(c) && (isalnum(c) || c == '-' || c == '_' || c == '.');
    }
    return is_valid;
}

static enum tfos_status add(struct tfos__queue_names *queues, const char *name, size_t size,
                            struct tfos_error *err)
{
    if (!is_name(name, size))
        return tfos__fail(err, TFOS_INVALID,
                          "queues: \"%.*s\" is no name of a queue: expected 1 to %d letters, "
                          "digits, '-', '_' and '.'",
                          size < 80 ? (int)size : 80, name, TFOS__QUEUE_NAME_SIZE - 1);
    if (queues->count == TFOS__QUEUE_LIMIT)
        return tfos__fail(err, TFOS_INVALID, "queues: a node has at most %d", TFOS__QUEUE_LIMIT);
    char *to = queues->names[queues->count];
    memcpy(to, name, size);
    to[size] = '\0';
    if (tfos__queue_names_find(queues, to) >= 0)
        return tfos__fail(err, TFOS_INVALID, "queues: \"%s\" is there twice", to);
    size_t used = strlen(queues->text);
    snprintf(queues->text + used, sizeof(queues->text) - used, "%s\"%s\"", used ? ", " : "", to);
    queues->count++;
    return TFOS_OK;
}

enum tfos_status tfos__queue_names_init(struct tfos__queue_names *queues, const char *list,
                                        struct tfos_error *err)
{
    const char *name = list ? list : TFOS__QUEUE_DEFAULT;
    queues->count = 0;
    queues->text[0] = '\0';
    for (;;) {
        size_t size = strcspn(name, ",");
        TFOS__TRY(add(queues, name, size, err));
        if (name[size] == '\0')
            return TFOS_OK;
        name += size + 1;
    }
}

uint32_t tfos__queue_names_mask(const struct tfos__queue_names *queues)
{
    return (UINT32_C(1) << queues->count) - 1;
}

int tfos__queue_names_find(const struct tfos__queue_names *queues, const char *name)
{
    for (int i = 0; i < queues->count; i++)
        if (strcmp(queues->names[i], name ? name : TFOS__QUEUE_DEFAULT) == 0)
            return i;
    return -1;
}

enum tfos_status tfos__queue_names_get(const struct tfos__queue_names *queues, const char *name,
                                       int *out, struct tfos_error *err)
{
    int queue = tfos__queue_names_find(queues, name);
    if (queue < 0)
        return tfos__fail(err, TFOS_NOT_FOUND, "there is no queue \"%.64s\": a node has %s",
                          name ? name : TFOS__QUEUE_DEFAULT, queues->text);
    *out = queue;
    return TFOS_OK;
}
