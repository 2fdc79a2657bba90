// SPDX-License-Identifier: Apache-2.0
// A schema travels as text within a message, so that the nodes get it byte by byte as it was given.
#include "cluster/description.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "cluster/cluster.h"
#include "cluster/peer.h"

#define SCHEMA_LIMIT (1 << 20)

static enum tfos_status check(const struct tfos__description *description, struct tfos_error *err)
{
    const char *schema_json = description->schema;

    if (description->first_feed < 1 || description->last_feed < 0 ||
        (description->last_feed > 0 && description->last_feed < description->first_feed))
        return tfos__fail(err, TFOS_INVALID,
                          "rendezvous: the schema of feeds %lld to %lld: numbers begin with 1, and "
                          "the last is 0 or no less than the first",
                          (long long)description->first_feed, (long long)description->last_feed);
    size_t size = strlen(schema_json);
    if (size > SCHEMA_LIMIT)
        return tfos__fail(err, TFOS_INVALID,
                          "rendezvous: the schema of a feed has %d bytes at most, not %zu",
                          SCHEMA_LIMIT, size);
    json_error_t cause;
    json_t *schema =
        json_loadb(schema_json, size, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &cause);
    if (!schema)
        return tfos__fail(err, TFOS_INVALID,
                          "rendezvous: the schema of a feed is no JSON: %s at byte %d", cause.text,
                          cause.position);
    json_decref(schema);
    return TFOS_OK;
}

static void tell(struct tfos__cluster *cluster, struct tfos__entry *entry, int queue)
{
    const struct tfos__description *description = &cluster->feeding.queues[queue].description;

    if (tfos__feeding_is_fed(cluster, entry))
        tfos__peer_send(entry->peer,
                        json_pack("{s:s, s:s, s:s, s:I, s:I}", "type", "describe", "queue",
                                  cluster->queues.names[queue], "schema", description->schema,
                                  "first_feed", (json_int_t)description->first_feed, "last_feed",
                                  (json_int_t)description->last_feed));
}

enum tfos_status tfos__description_set(struct tfos__cluster *cluster, const char *queue,
                                       const struct tfos__description *description,
                                       struct tfos_error *err)
{
    int number;
    enum tfos_status status = tfos__queues_get(&cluster->queues, queue, &number, err);
    if (status < 0) {
        tfos__fail_prefix(err, "rendezvous");
        return status;
    }
    TFOS__TRY(check(description, err));
    struct tfos__description copy = *description;
    copy.schema = tfos__strdup(description->schema);
    if (!copy.schema)
        return tfos__no_memory(err, "rendezvous", "the schema of a feed");
    tfos__free(cluster->feeding.queues[number].description.schema);
    cluster->feeding.queues[number].description = copy;
    for (int id = 0; id < cluster->roles.node_count; id++)
        tell(cluster, &cluster->entries[id], number);
    return TFOS_OK;
}

void tfos__description_tell(struct tfos__cluster *cluster, struct tfos__entry *entry)
{
    for (int queue = 0; queue < cluster->queues.count; queue++)
        if (cluster->feeding.queues[queue].description.schema)
            tell(cluster, entry, queue);
}
