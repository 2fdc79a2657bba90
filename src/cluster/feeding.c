// SPDX-License-Identifier: Apache-2.0
// Decides about feeders. A feeder is undecided until the cluster runs and every earlier attempt of
// its partition is settled: its node said how far it came, or is over. While any is not, the node
// is told to fence it, which makes it answer.
#include "cluster/feeding.h"

#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "cluster/peer.h"

#define SCHEMA_LIMIT (1 << 20)
#define HOME_LIMIT (1 << 20) // partitions of which it is remembered whom they were fed to

static void note_progress(struct tfos__feeding *feeding)
{
    feeding->progress_ms = tfos__now_ms();
}

static void dismiss(struct tfos__feeding *feeding, struct tfos__feeder *feeder, const char *type,
                    const char *key, const char *reason)
{
    if (feeder->state == TFOS__FEEDER_UNDECIDED)
        feeding->undecided_count--;
    feeder->state = TFOS__FEEDER_DISMISSED;
    tfos__peer_send(feeder->peer, json_pack("{s:s, s:s}", "type", type, key, reason));
}

static void skip(struct tfos__feeding *feeding, struct tfos__feeder *feeder, const char *reason)
{
    dismiss(feeding, feeder, "skip", "reason", reason);
}

static void fail(struct tfos__feeding *feeding, struct tfos__feeder *feeder, const char *message)
{
    dismiss(feeding, feeder, "failed", "message", message);
}

bool tfos__feeding_is_fed(const struct tfos__feeding *feeding, const struct tfos__entry *entry)
{
    return feeding->is_feeding && entry->feed_port > 0 && tfos__roles_is_fed(entry->job_name);
}

static uint32_t bit_of(int queue)
{
    return UINT32_C(1) << queue;
}

static bool takes_rows(const struct tfos__entry *entry, int queue)
{
    return entry->peer && !tfos__registry_is_over(entry) && !(entry->terminated & bit_of(queue)) &&
           !entry->is_stopping;
}

/// How near `entry` is to the feeder: 2 in the same executor, 1 on the same host, else 0.
static int nearness(const struct tfos__feeder *feeder, const struct tfos__entry *entry)
{
    if (strcmp(feeder->host, entry->host) != 0)
        return 0;
    return feeder->executor_pid == entry->executor_pid ? 2 : 1;
}

/// When trainers in step get the rows of an epoch once more, each should get the same as before:
/// then the epoch takes the same number of steps, wherever Spark computes the partitions. NULL: it
/// is another epoch, or the node that was fed the partition takes no rows any more.
static struct tfos__entry *find_home(const struct tfos__feeding *feeding,
                                     const struct tfos__feeder *feeder)
{
    const struct tfos__feeding_queue *queue = &feeding->queues[feeder->queue];
    const struct tfos__description *description = &queue->description;

    if (!feeding->is_in_step || feeder->feed <= description->first_feed ||
        feeder->feed > description->last_feed || feeder->partition >= queue->homes.count)
        return NULL;
    struct tfos__entry *home = queue->homes.entries[feeder->partition];
    return home && takes_rows(home, feeder->queue) ? home : NULL;
}

/// Without memory for it the partition has no home, and is fed to whom it may.
static void set_home(struct tfos__feeding *feeding, const struct tfos__feeder *feeder,
                     struct tfos__entry *entry)
{
    struct tfos__homes *homes = &feeding->queues[feeder->queue].homes;

    if (feeder->has_results || feeder->partition >= HOME_LIMIT)
        return;
    if (feeder->partition >= homes->count) {
        int64_t count = 2 * (feeder->partition + 8);
        struct tfos__entry **entries =
            tfos__realloc(homes->entries, (size_t)count, sizeof(struct tfos__entry *));
        if (!entries)
            return;
        memset(entries + homes->count, 0, (size_t)(count - homes->count) * sizeof(*entries));
        *homes = (struct tfos__homes){entries, count};
    }
    homes->entries[feeder->partition] = entry;
}

/// The node to feed, or NULL when the feeder should skip: no node takes rows, or its own executor's
/// have stopped to.
static struct tfos__entry *choose(const struct tfos__feeding *feeding,
                                  const struct tfos__feeder *feeder)
{
    struct tfos__entry *best = find_home(feeding, feeder);
    bool has_own = false;
    if (best)
        return best;
    for (int id = 0; id < feeding->nodes->count; id++) {
        struct tfos__entry *entry = &feeding->nodes->entries[id];
        if (!tfos__feeding_is_fed(feeding, entry) ||
            tfos__registry_is_trainer(entry) == feeder->is_for_evaluator)
            continue;
        int near = nearness(feeder, entry);
        has_own = has_own || near == 2;
        if (!takes_rows(entry, feeder->queue))
            continue;
        int gain = best ? near - nearness(feeder, best) : 1;
        if (gain == 0)
            gain = best->feeder_count - entry->feeder_count;
        if (gain > 0 || (gain == 0 && entry->fed_sequence < best->fed_sequence))
            best = entry;
    }
    return best && has_own && nearness(feeder, best) < 2 ? NULL : best;
}

static struct tfos__cluster_partitions *partitions_of(struct tfos__feeding *feeding,
                                                      const struct tfos__feeder *feeder)
{
    return &feeding->queues[feeder->queue].partitions;
}

static struct tfos__cluster_partition *find_partition(struct tfos__feeding *feeding,
                                                      const struct tfos__feeder *feeder)
{
    return tfos__cluster_partition_find(partitions_of(feeding, feeder), feeder->feed,
                                        feeder->partition);
}

/// Whether all earlier attempts are closed; sends fences to the nodes of those that are not.
static bool is_settled(const struct tfos__feeding *feeding, int queue,
                       struct tfos__cluster_partition *partition, int64_t attempt_number)
{
    const struct tfos__partition *key = &partition->base;
    for (struct tfos__cluster_attempt *attempt = partition->attempts; attempt;
         attempt = attempt->next) {
        if (attempt->fence >= attempt_number)
            continue;
        attempt->fence = attempt_number;
        tfos__peer_send(attempt->entry->peer,
                        json_pack("{s:s, s:s, s:I, s:I, s:I}", "type", "fence", "queue",
                                  feeding->names->names[queue], "feed", (json_int_t)key->feed,
                                  "partition", (json_int_t)key->number, "attempt",
                                  (json_int_t)attempt_number));
    }
    return !partition->attempts;
}

static void grant(struct tfos__feeding *feeding, struct tfos__feeder *feeder,
                  struct tfos__cluster_partition *partition, struct tfos__entry *entry)
{
    char address[TFOS__ADDRESS_SIZE];
    tfos__address_join(entry->host, entry->feed_port, address);
    char *socket_name = tfos__format("tfos-feed-%s-%d", feeding->cluster_id, entry->executor_id);
    if (!socket_name || !tfos__cluster_partition_begin(partitions_of(feeding, feeder), partition,
                                                       entry, feeder->attempt)) {
        tfos__free(socket_name);
        fail(feeding, feeder, "rendezvous: no memory for a feeder");
        return;
    }
    set_home(feeding, feeder, entry);
    entry->feeder_count++;
    entry->fed_sequence = ++feeding->fed_sequence;
    entry->drained &= ~bit_of(feeder->queue);
    feeder->entry = entry;
    feeder->state = TFOS__FEEDER_FEEDING;
    feeding->undecided_count--;
    tfos__peer_send(feeder->peer,
                    json_pack("{s:s, s:i, s:s, s:s, s:b, s:s, s:s, s:I}", "type", "target",
                              "executor_id", entry->executor_id, "node", entry->name, "queue",
                              feeding->names->names[feeder->queue], "local",
                              nearness(feeder, entry) > 0, "socket_name", socket_name, "address",
                              address, "first_row",
                              (json_int_t)(feeder->has_results ? 0 : partition->rows)));
    tfos__free(socket_name);
}

static void decide(struct tfos__feeding *feeding, struct tfos__feeder *feeder)
{
    if (feeding->failure) {
        fail(feeding, feeder, feeding->failure);
        return;
    }
    if (!feeding->is_started)
        return;
    if (!feeding->is_feeding) {
        fail(feeding, feeder,
             "rendezvous: the nodes of this cluster read their data themselves: start it "
             "with InputMode.SPARK to feed it");
        return;
    }
    if (feeder->is_for_evaluator && !feeding->has_evaluator) {
        fail(feeding, feeder,
             "rendezvous: this cluster has no evaluator to feed: start it with eval_node=True");
        return;
    }
    if (feeding->is_ended || feeder->feed <= feeding->queues[feeder->queue].ended_feed) {
        skip(feeding, feeder, "the feed has ended");
        return;
    }
    struct tfos__cluster_partition *partition = find_partition(feeding, feeder);
    if (!partition) {
        skip(feeding, feeder, "the feed has ended");
        return;
    }
    if (feeder->attempt < partition->newest_attempt ||
        feeder->attempt <= partition->granted_attempt) {
        fail(feeding, feeder,
             "rendezvous: this attempt is superseded: another with this number or "
             "a higher one feeds the partition");
        return;
    }
    if (!is_settled(feeding, feeder->queue, partition, feeder->attempt))
        return;
    struct tfos__entry *entry = choose(feeding, feeder);
    if (entry)
        grant(feeding, feeder, partition, entry);
    else
        skip(feeding, feeder,
             feeder->is_for_evaluator ? "the evaluator wants no more rows or has returned"
                                      : "the trainers want no more rows or have returned");
}

void tfos__feeding_advance(struct tfos__feeding *feeding)
{
    if (feeding->undecided_count == 0)
        return;
    for (struct tfos__feeder *feeder = feeding->feeders; feeder; feeder = feeder->next)
        if (feeder->state == TFOS__FEEDER_UNDECIDED)
            decide(feeding, feeder);
}

static enum tfos_status read_job(const json_t *message, struct tfos__feeder *feeder,
                                 struct tfos_error *err)
{
    const char *job = tfos__json_string_or(message, "job", "trainers");
    feeder->is_for_evaluator = strcmp(job, "evaluator") == 0;
    if (!feeder->is_for_evaluator && strcmp(job, "trainers") != 0)
        return tfos__fail(err, TFOS_INVALID,
                          "rendezvous: \"job\" of a feeder is \"%.40s\": expected \"trainers\" or "
                          "\"evaluator\"",
                          job);
    return TFOS_OK;
}

static enum tfos_status read_hello(const json_t *message, struct tfos__feeder *feeder,
                                   struct tfos_error *err)
{
    const char *host;
    TFOS__TRY(read_job(message, feeder, err));
    TFOS__TRY(tfos__json_get_int(message, "feed", 1, INT64_MAX - 1, &feeder->feed, err));
    TFOS__TRY(tfos__json_get_int(message, "partition", 0, INT64_MAX - 1, &feeder->partition, err));
    TFOS__TRY(tfos__json_get_int(message, "attempt", 0, INT64_MAX - 1, &feeder->attempt, err));
    TFOS__TRY(
        tfos__json_get_int(message, "executor_pid", 0, INT32_MAX, &feeder->executor_pid, err));
    TFOS__TRY(tfos__json_get_string(message, "host", &host, err));
    if (strlen(host) >= sizeof(feeder->host))
        return tfos__fail(err, TFOS_INVALID, "rendezvous: host of a feeder: longer than %zu bytes",
                          sizeof(feeder->host) - 1);
    memcpy(feeder->host, host, strlen(host) + 1);
    feeder->has_results = tfos__json_bool_or(message, "results", false);
    return TFOS_OK;
}

enum tfos_status tfos__feeding_open(struct tfos__feeding *feeding, struct tfos__peer *peer,
                                    const json_t *message, struct tfos_error *err)
{
    struct tfos__feeder hello = {.peer = peer};
    struct tfos_error unknown;
    TFOS__TRY(read_hello(message, &hello, err));
    enum tfos_status known = tfos__queues_get(
        feeding->names, tfos__json_string_or(message, "queue", NULL), &hello.queue, &unknown);
    struct tfos__feeder *feeder = tfos__alloc(1, sizeof(*feeder));
    if (!feeder)
        return tfos__no_memory(err, "rendezvous", "a feeder");
    *feeder = hello;
    feeder->next = feeding->feeders;
    if (feeder->next)
        feeder->next->previous = feeder;
    feeding->feeders = feeder;
    feeding->undecided_count++;
    peer->kind = TFOS__PEER_FEEDER;
    peer->feeder = feeder;
    note_progress(feeding);
    if (known < 0) {
        tfos__fail_prefix(&unknown, "rendezvous");
        fail(feeding, feeder, unknown.message);
        return TFOS_OK;
    }
    struct tfos__feeding_queue *queue = &feeding->queues[feeder->queue];
    if (!feeder->has_results && queue->feed < feeder->feed)
        queue->feed = feeder->feed; // feeds with results are numbered apart
    if (feeder->feed <= queue->ended_feed) {
        skip(feeding, feeder, "the feed has ended");
        return TFOS_OK;
    }
    struct tfos__cluster_partition *partition =
        tfos__cluster_partition_add(&queue->partitions, feeder->feed, feeder->partition);
    if (!partition)
        return tfos__no_memory(err, "rendezvous", "a partition");
    if (partition->newest_attempt < feeder->attempt)
        partition->newest_attempt = feeder->attempt;
    partition->has_results = feeder->has_results;
    partition->feeder_count++;
    feeder->is_counted = true;
    tfos__feeding_advance(feeding);
    return TFOS_OK;
}

void tfos__feeding_close(struct tfos__feeding *feeding, struct tfos__feeder *feeder)
{
    if (feeder->state == TFOS__FEEDER_UNDECIDED)
        feeding->undecided_count--;
    struct tfos__cluster_partition *partition =
        feeder->is_counted ? find_partition(feeding, feeder) : NULL;
    if (feeder->state == TFOS__FEEDER_FEEDING) {
        feeder->entry->feeder_count--;
        // A task that died between its target and its lane would never be heard of by the node;
        // asking settles it.
        if (partition)
            (void)is_settled(feeding, feeder->queue, partition, feeder->attempt + 1);
    }
    if (partition) {
        partition->feeder_count--;
        tfos__cluster_partition_release(partitions_of(feeding, feeder), partition);
    }
    if (feeder->previous)
        feeder->previous->next = feeder->next;
    else
        feeding->feeders = feeder->next;
    if (feeder->next)
        feeder->next->previous = feeder->previous;
    feeder->peer->feeder = NULL;
    tfos__free(feeder);
    note_progress(feeding);
}

enum tfos_status tfos__feeding_settle(struct tfos__feeding *feeding, struct tfos__entry *entry,
                                      const json_t *message, struct tfos_error *err)
{
    int number;
    int64_t feed, partition_number, attempt, rows;
    TFOS__TRY(tfos__queues_get(feeding->names, tfos__json_string_or(message, "queue", NULL),
                               &number, err));
    TFOS__TRY(tfos__json_get_int(message, "feed", 1, INT64_MAX - 1, &feed, err));
    TFOS__TRY(tfos__json_get_int(message, "partition", 0, INT64_MAX - 1, &partition_number, err));
    TFOS__TRY(tfos__json_get_int(message, "attempt", 0, INT64_MAX, &attempt, err));
    TFOS__TRY(tfos__json_get_int(message, "rows", 0, INT64_MAX, &rows, err));
    // The node's last heartbeat may be from before this attempt's rows; the next one counts.
    entry->drained &= ~bit_of(number);
    note_progress(feeding);
    struct tfos__cluster_partitions *partitions = &feeding->queues[number].partitions;
    struct tfos__cluster_partition *partition =
        tfos__cluster_partition_find(partitions, feed, partition_number);
    if (!partition)
        return TFOS_OK; // of a feed that has ended
    if (partition->rows < rows)
        partition->rows = rows;
    if (tfos__json_bool_or(message, "complete", false) && !partition->is_complete) {
        partition->is_complete = true;
        tfos__forecast_complete(feeding->forecast, (struct tfos__forecast_feed){number, feed},
                                partition->rows);
    }
    tfos__cluster_partition_settle(partitions, partition, entry, attempt);
    tfos__cluster_partition_release(partitions, partition);
    tfos__feeding_advance(feeding);
    return TFOS_OK;
}

void tfos__feeding_leave(struct tfos__feeding *feeding, struct tfos__entry *entry)
{
    for (int queue = 0; queue < feeding->names->count; queue++)
        tfos__cluster_partition_settle_all(&feeding->queues[queue].partitions, entry);
    note_progress(feeding);
    tfos__feeding_advance(feeding);
}

void tfos__feeding_start(struct tfos__feeding *feeding)
{
    feeding->is_started = true;
    tfos__feeding_advance(feeding);
}

void tfos__feeding_end(struct tfos__feeding *feeding)
{
    feeding->is_ended = true;
    tfos__feeding_advance(feeding);
}

void tfos__feeding_fail(struct tfos__feeding *feeding, const char *message)
{
    feeding->failure = message;
    for (struct tfos__feeder *feeder = feeding->feeders; feeder; feeder = feeder->next)
        if (feeder->state == TFOS__FEEDER_FEEDING)
            tfos__peer_send(feeder->peer,
                            json_pack("{s:s, s:s}", "type", "failed", "message", feeding->failure));
    tfos__feeding_advance(feeding);
}

void tfos__feeding_end_epoch(struct tfos__feeding *feeding, int number, int64_t feed)
{
    struct tfos__feeding_queue *queue = &feeding->queues[number];
    if (queue->feed < feed)
        queue->feed = feed;
    if (queue->ended_feed < feed)
        queue->ended_feed = feed;
    tfos__cluster_partition_prune(&queue->partitions, feed);
    note_progress(feeding);
    tfos__feeding_advance(feeding);
}

// A schema travels as text within a message, so that the nodes get it byte by byte as it was given.
static enum tfos_status check_description(const struct tfos__description *description,
                                          struct tfos_error *err)
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

static void tell_description(const struct tfos__feeding *feeding, const struct tfos__entry *entry,
                             int queue)
{
    const struct tfos__description *description = &feeding->queues[queue].description;

    if (tfos__feeding_is_fed(feeding, entry))
        tfos__peer_send(entry->peer,
                        json_pack("{s:s, s:s, s:s, s:I, s:I}", "type", "describe", "queue",
                                  feeding->names->names[queue], "schema", description->schema,
                                  "first_feed", (json_int_t)description->first_feed, "last_feed",
                                  (json_int_t)description->last_feed));
}

enum tfos_status tfos__feeding_describe(struct tfos__feeding *feeding, const char *queue,
                                        const struct tfos__description *description,
                                        struct tfos_error *err)
{
    int number;
    enum tfos_status status = tfos__queues_get(feeding->names, queue, &number, err);
    if (status < 0) {
        tfos__fail_prefix(err, "rendezvous");
        return status;
    }
    TFOS__TRY(check_description(description, err));
    struct tfos__description copy = *description;
    copy.schema = tfos__strdup(description->schema);
    if (!copy.schema)
        return tfos__no_memory(err, "rendezvous", "the schema of a feed");
    tfos__free(feeding->queues[number].description.schema);
    feeding->queues[number].description = copy;
    for (int id = 0; id < feeding->nodes->count; id++)
        tell_description(feeding, &feeding->nodes->entries[id], number);
    return TFOS_OK;
}

void tfos__feeding_tell_descriptions(const struct tfos__feeding *feeding,
                                     const struct tfos__entry *entry)
{
    for (int queue = 0; queue < feeding->names->count; queue++)
        if (feeding->queues[queue].description.schema)
            tell_description(feeding, entry, queue);
}

uint32_t tfos__feeding_unread_queues(const struct tfos__feeding *feeding,
                                     const struct tfos__entry *entry)
{
    if (!tfos__feeding_is_fed(feeding, entry) || tfos__registry_is_over(entry))
        return 0;
    return ~entry->drained & ~entry->terminated & tfos__queues_mask(feeding->names);
}

bool tfos__feeding_is_drained(const struct tfos__feeding *feeding)
{
    if (feeding->undecided_count > 0)
        return false;
    for (int queue = 0; queue < feeding->names->count; queue++)
        if (feeding->queues[queue].partitions.unsettled_count > 0)
            return false;
    for (int id = 0; id < feeding->nodes->count; id++) {
        const struct tfos__entry *entry = &feeding->nodes->entries[id];
        if (tfos__feeding_unread_queues(feeding, entry) != 0 ||
            (entry->feeder_count > 0 && !tfos__registry_is_over(entry)))
            return false;
    }
    return true;
}

void tfos__feeding_clear(struct tfos__feeding *feeding)
{
    while (feeding->feeders) {
        struct tfos__feeder *feeder = feeding->feeders;
        feeding->feeders = feeder->next;
        feeder->peer->feeder = NULL;
        tfos__free(feeder);
    }
    for (int queue = 0; queue < TFOS__QUEUE_LIMIT; queue++) {
        tfos__cluster_partition_clear(&feeding->queues[queue].partitions);
        tfos__free(feeding->queues[queue].description.schema);
        tfos__free(feeding->queues[queue].homes.entries);
    }
    *feeding = (struct tfos__feeding){0};
}
