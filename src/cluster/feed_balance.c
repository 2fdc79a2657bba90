// SPDX-License-Identifier: Apache-2.0
// No node gets a row beyond block k before all have k blocks. So where a step is s blocks, a node
// needs more than k steps only if all have k * s blocks, and then no split of the rows needs fewer.
#include "cluster/feed_balance.h"

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "cluster/session.h"

#define ASSIGNED_ROWS_LIMIT (1 << 20) // of one request

static int64_t level_of(const struct tfos__cluster_share *share)
{
    return share->assigned_rows + share->rows;
}

// The shares with fewest whole blocks.
struct lowest {
    int64_t blocks;
    int64_t count;
    int64_t next_blocks; // of the one that has fewest among the others
};

static struct lowest find_lowest(const struct tfos__cluster_share *shares, size_t count,
                                 int64_t block_rows)
{
    struct lowest lowest = {.blocks = INT64_MAX, .next_blocks = INT64_MAX};

    for (size_t i = 0; i < count; i++) {
        int64_t blocks = level_of(&shares[i]) / block_rows;
        if (blocks < lowest.blocks)
            lowest = (struct lowest){.blocks = blocks, .next_blocks = lowest.blocks};
        else if (blocks > lowest.blocks && blocks < lowest.next_blocks)
            lowest.next_blocks = blocks;
        lowest.count += blocks == lowest.blocks;
    }
    return lowest;
}

void tfos__cluster_balance_split(struct tfos__cluster_share *shares, size_t count,
                                 int64_t row_count, int64_t block_rows)
{
    while (row_count > 0) {
        struct lowest lowest = find_lowest(shares, count, block_rows);
        // As many blocks at once as all of them get; at last one each, as far as the rows go.
        int64_t blocks = row_count / (lowest.count * block_rows);
        if (blocks > lowest.next_blocks - lowest.blocks)
            blocks = lowest.next_blocks - lowest.blocks;
        int64_t level = (lowest.blocks + (blocks > 0 ? blocks : 1)) * block_rows;
        for (size_t i = 0; i < count && row_count > 0; i++) {
            if (level_of(&shares[i]) / block_rows != lowest.blocks)
                continue;
            int64_t rows = level - level_of(&shares[i]);
            rows = rows < row_count ? rows : row_count;
            shares[i].rows += rows;
            row_count -= rows;
        }
    }
}

static bool is_listed(const json_t *list, int executor_id)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_integer_value(json_array_get(list, i)) == executor_id)
            return true;
    return false;
}

/// The nodes that may get rows of the feeder, its own first, and what the epoch has given them.
static size_t list_shares(const struct tfos__cluster_scheduler *scheduler,
                          const struct tfos__cluster_feeder *feeder, const json_t *except,
                          struct tfos__cluster_share *shares)
{
    size_t count = 1;
    shares[0] = (struct tfos__cluster_share){
        .node = feeder->node, .assigned_rows = feeder->node->assigned_rows[feeder->queue]};
    TFOS__CLUSTER_EACH_NODE (node, scheduler->table)
        if (node != feeder->node && tfos__cluster_scheduler_is_candidate(scheduler, feeder, node) &&
            tfos__cluster_scheduler_takes_rows(node, feeder->queue) &&
            !is_listed(except, node->executor_id))
            shares[count++] = (struct tfos__cluster_share){
                .node = node, .assigned_rows = node->assigned_rows[feeder->queue]};
    return count;
}

/// Books the share and appends it to `parts`; false when out of memory.
static bool assign_share(struct tfos__cluster_scheduler *scheduler,
                         const struct tfos__cluster_feeder *feeder,
                         struct tfos__cluster_partition *partition,
                         const struct tfos__cluster_share *share, json_t *parts)
{
    json_t *part = tfos__cluster_scheduler_describe_node(scheduler, feeder, share->node);
    struct tfos__cluster_attempt *attempt = tfos__cluster_partition_begin(
        &scheduler->queues[feeder->queue].partitions, partition, share->node, feeder->attempt);
    if (!attempt || !part ||
        json_object_set_new(part, "rows", json_integer((json_int_t)share->rows)) != 0) {
        json_decref(part);
        return false;
    }
    attempt->assigned_rows += share->rows;
    share->node->assigned_rows[feeder->queue] += share->rows;
    share->node->drained &= ~(UINT32_C(1) << feeder->queue);
    return json_array_append_new(parts, part) == 0;
}

static void assign(struct tfos__cluster_scheduler *scheduler, struct tfos__cluster_feeder *feeder,
                   struct tfos__cluster_partition *partition, const json_t *message)
{
    struct tfos__cluster_share *shares =
        tfos__alloc((size_t)scheduler->table->count, sizeof(*shares));
    json_t *parts = json_array();
    bool is_done = shares && parts;
    size_t count =
        is_done ? list_shares(scheduler, feeder, json_object_get(message, "except"), shares) : 0;
    if (is_done)
        tfos__cluster_balance_split(shares, count, tfos__json_int_or(message, "rows", 0),
                                    tfos__json_int_or(message, "block_rows", 1));
    for (size_t i = 0; i < count && is_done; i++)
        if (shares[i].rows > 0)
            is_done = assign_share(scheduler, feeder, partition, &shares[i], parts);
    tfos__free(shares);
    if (is_done) {
        tfos__cluster_session_send(feeder->session,
                                   json_pack("{s:s, s:o}", "type", "assigned", "parts", parts));
    } else {
        json_decref(parts);
        tfos__cluster_session_send(feeder->session, NULL); // it ends for want of memory
    }
}

enum tfos_status tfos__cluster_balance_assign(struct tfos__cluster_scheduler *scheduler,
                                              struct tfos__cluster_feeder *feeder,
                                              const json_t *message, struct tfos_error *err)
{
    int64_t rows, block_rows;
    TFOS__TRY(tfos__json_get_int(message, "rows", 1, ASSIGNED_ROWS_LIMIT, &rows, err));
    TFOS__TRY(tfos__json_get_int(message, "block_rows", 1, INT32_MAX, &block_rows, err));
    if (feeder->state == TFOS__FEEDER_DISMISSED)
        return TFOS_OK; // it is sent the reason
    if (feeder->state != TFOS__FEEDER_FEEDING || feeder->has_results)
        return tfos__fail(err, TFOS_INVALID, "rendezvous: \"assign\" of a feeder without a target");
    struct tfos__cluster_partition *partition =
        tfos__cluster_scheduler_find_partition(scheduler, feeder);
    // What is assigned to an attempt must be known to whoever supersedes it.
    if (!partition || feeder->attempt < partition->newest_attempt)
        tfos__cluster_session_send(feeder->session, json_pack("{s:s, s:s}", "type", "failed",
                                                              "message", TFOS__FEEDER_SUPERSEDED));
    else if (!tfos__cluster_scheduler_takes_rows(feeder->node, feeder->queue))
        tfos__cluster_session_send(feeder->session, json_pack("{s:s, s:s}", "type", "skip",
                                                              "reason", TFOS__FEEDER_UNWANTED));
    else
        assign(scheduler, feeder, partition, message);
    return TFOS_OK;
}
