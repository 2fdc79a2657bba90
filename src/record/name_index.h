// SPDX-License-Identifier: Apache-2.0
/// Numbers of names, found quickly when names come in the same order again and again, as the
/// features of a file's records do.
#ifndef TFOS_RECORD_NAME_INDEX_H
#define TFOS_RECORD_NAME_INDEX_H

#include <stdint.h>
#include <tfos/status.h>
#include <tfos/stream.h>

#define TFOS__NAME_UNKNOWN UINT32_MAX

/// All zero is an empty one.
struct tfos__name_index {
    struct tfos_view *names; ///< owned; their bytes are borrowed
    uint32_t count, capacity;
    uint32_t *buckets; ///< numbers by the hash of their names; owned
    uint32_t bucket_count;
    uint32_t *order; ///< the number of the n-th name of the round before; owned
    uint32_t order_count;
    uint32_t position; ///< of the next name in this round
};

/// Adds a name that is not there; its number is the count before. Its bytes must outlive the index.
enum tfos_status tfos__name_index_add(struct tfos__name_index *index, struct tfos_view name,
                                      struct tfos_error *err);

/// The number of a name, or UNKNOWN.
uint32_t tfos__name_index_find(const struct tfos__name_index *index, struct tfos_view name);

/// The next name is the first of a round.
void tfos__name_index_restart(struct tfos__name_index *index);

/// The number of a round's next name, or UNKNOWN.
uint32_t tfos__name_index_next(struct tfos__name_index *index, struct tfos_view name);

void tfos__name_index_clear(struct tfos__name_index *index);

#endif
