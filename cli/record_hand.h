// SPDX-License-Identifier: Apache-2.0
/// Records in memory, to be mixed there.
#ifndef TFOS_CLI_RECORD_HAND_H
#define TFOS_CLI_RECORD_HAND_H

#include "random_numbers.h"
#include "record_outputs.h"

#include "allocation.h"

/// All zero is an empty one.
struct hand {
    struct bytes records; ///< one behind the other
    struct bytes places;  ///< where they are: struct hand_place each
    size_t count;
};

void hand_add(struct hand *hand, struct tfos_view record);

/// Bytes that it takes.
size_t hand_size(const struct hand *hand);

/// A record, until the next hand_add().
struct tfos_view hand_get(const struct hand *hand, size_t number);

/// Writes all, in an order of which each is as likely as any other. The exit status.
int hand_deal(struct hand *hand, struct random_numbers *numbers, struct outputs *outputs);

void hand_clear(struct hand *hand);

#endif
