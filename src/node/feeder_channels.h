// SPDX-License-Identifier: Apache-2.0
/// Where a feeder's rows go: the channel at its own node, and those at other nodes that the driver
/// assigns rows to. Rows are published in their order, at one node after the other, so that what is
/// published is a prefix of the partition. One thread at a time.
#ifndef TFOS_NODE_FEEDER_CHANNELS_H
#define TFOS_NODE_FEEDER_CHANNELS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/feeder.h>
#include <tfos/status.h>

#include "feed/feed.h"

struct tfos__node_feeder_channel {
    int64_t executor_id;              ///< of its node
    struct tfos__feed_writer *writer; ///< owned
    bool is_over;                     ///< its node wants no more rows
};

/// All zero to begin with.
struct tfos__node_feeder_channels {
    struct tfos_feeder_options options; ///< its strings are owned
    struct tfos__node_feeder_channel
        *channels; ///< owned; the first is that of the feeder's own node
    size_t count;
    size_t current; ///< the one that was written to last
    int64_t row;    ///< of the partition: the next one
};

/// Opens the channel at the feeder's own node, which the driver's message describes. What is needed
/// of the options is copied; `wait` is used in their place. Statuses are those of
/// tfos__feed_writer_open().
enum tfos_status tfos__node_feeder_channels_open(struct tfos__node_feeder_channels *channels,
                                                 const struct tfos_feeder_options *options,
                                                 const struct tfos_wait *wait, const json_t *target,
                                                 struct tfos_error *err);

/// The writer of the own channel; NULL: it is not open.
struct tfos__feed_writer *
tfos__node_feeder_channels_own(const struct tfos__node_feeder_channels *channels);

/// Appends the rows of `array` as the driver has split them, and gives how many there were in all.
/// Statuses are those of tfos__feed_writer_append().
enum tfos_status tfos__node_feeder_channels_append(struct tfos__node_feeder_channels *channels,
                                                   const struct ArrowSchema *schema,
                                                   const struct ArrowArray *array,
                                                   const json_t *parts, int64_t *row_count,
                                                   struct tfos_error *err);

/// Appends the rows to the own channel. Statuses are those of tfos__feed_writer_append().
enum tfos_status tfos__node_feeder_channels_append_own(struct tfos__node_feeder_channels *channels,
                                                       const struct ArrowSchema *schema,
                                                       const struct ArrowArray *array,
                                                       struct tfos_error *err);

/// Publishes the end of the partition at the own node.
enum tfos_status tfos__node_feeder_channels_finish(struct tfos__node_feeder_channels *channels,
                                                   struct tfos_error *err);

/// The executor ids of the nodes that want no more rows; NULL when out of memory.
json_t *tfos__node_feeder_channels_over(const struct tfos__node_feeder_channels *channels);

/// Rows appended to all.
int64_t tfos__node_feeder_channels_row_count(const struct tfos__node_feeder_channels *channels);

void tfos__node_feeder_channels_clear(struct tfos__node_feeder_channels *channels);

#endif
