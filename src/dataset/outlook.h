// SPDX-License-Identifier: Apache-2.0
/// The outlook: what a dataset knows of its rows before it has agreed on its structure, of a
/// description or of the first of them.
#ifndef TFOS_DATASET_OUTLOOK_H
#define TFOS_DATASET_OUTLOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/status.h>

#include "dataset/plan.h"

struct tfos_dataset;

struct tfos__outlook {
    struct tfos__plan plan; ///< without features: nothing is known
    int64_t feed;           ///< whose rows are looked for; 0: not looked yet
    bool is_announced;      ///< the rows of this feed will come
};

/// Waits until the rows of the epoch say all that is to be known, its end is there, or a
/// description says enough. In step also for a while only, once rows are announced: other nodes may
/// know more. With the mutex held. TIMEOUT at the deadline; CLOSED when interrupted; INVALID: what
/// is described does not go with what is asked for.
enum tfos_status tfos__outlook_await(struct tfos_dataset *dataset, int64_t deadline,
                                     struct tfos_error *err);

/// Makes or completes the plan, if there are rows to do it by.
enum tfos_status tfos__outlook_look(struct tfos_dataset *dataset, struct tfos_error *err);

/// Forgets this epoch and what was known of it.
void tfos__outlook_clear(struct tfos__outlook *outlook);

#endif
