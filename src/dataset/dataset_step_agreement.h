// SPDX-License-Identifier: Apache-2.0
/// Step agreement: nodes that train in step decide together how many batches each produces before
/// the next exchange. A node that has too few rows pads its batches with rows of zeros.
///
/// One exchange covers up to TFOS__STEP_LOOKAHEAD steps, so that its cost is spread over them.
#ifndef TFOS_DATASET_STEP_AGREEMENT_H
#define TFOS_DATASET_STEP_AGREEMENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <tfos/dataset.h>
#include <tfos/status.h>

#define TFOS__STEP_LOOKAHEAD 16 ///< most batches that a node reads ahead

/// Sent by each node.
struct tfos__dataset_step_report {
    int64_t ready_batch_count; ///< batches that it can give out without waiting
    bool is_epoch_end;         ///< they are the last ones of this epoch
    bool is_full;              ///< it reads no further, so that Spark may wait for it
    bool is_feed_end;          ///< no further epoch comes
};

struct tfos__dataset_step_agreement {
    const struct tfos_dataset_options *options; ///< borrowed: name, uneven, agree()
    int64_t epoch;                              ///< from 1
    int64_t exchange_count;                     ///< in this epoch
    int64_t steps;                              ///< to do before the next exchange
    int64_t step_count;                         ///< done in this epoch
    int64_t first_step_count; ///< of the epoch whose rows this one repeats; 0: none
    bool is_last;             ///< the epoch ends after `steps`
    bool must_read_on;        ///< with STOP: a full node reads further
    bool is_over;             ///< no node has a further epoch
    bool is_abandoned;        ///< another node has left the epoch before its end
    enum tfos_status failure; ///< of an exchange, for ever: nodes are no longer in step
    struct tfos_error cause;
};

/// Exchanges reports with the other nodes and sets `steps` and what follows it. Without steps, and
/// if it is not the last: a node has no batch yet, and all exchange again. A failure is for ever.
enum tfos_status tfos__dataset_step_agreement_reach(struct tfos__dataset_step_agreement *agreement,
                                                    const struct tfos__dataset_step_report *report,
                                                    struct tfos_error *err);

/// Notifies nodes that continue the epoch that this one does not, unless they know it, or it has
/// not begun. They fail then.
void tfos__dataset_step_agreement_leave(struct tfos__dataset_step_agreement *agreement);

/// With PAD, at the end of an epoch that repeats another: the steps of padding that make it as long
/// as that one. 0 if it had no steps at all.
int64_t
tfos__dataset_step_agreement_missing_steps(const struct tfos__dataset_step_agreement *agreement);

/// Begins the next epoch, which may have the rows of this one again.
void tfos__dataset_step_agreement_begin_epoch(struct tfos__dataset_step_agreement *agreement,
                                              bool is_repeat);

/// Sends `value` (NULL: no memory) to the other nodes under `name` (NULL: no memory), and receives
/// those of all, an array that is not empty. Takes over `value` and `name`; the caller releases
/// `*out`. `out` NULL: sends only.
enum tfos_status tfos__dataset_exchange(const struct tfos_dataset_options *options, char *name,
                                        json_t *value, json_t **out, struct tfos_error *err);

#endif
