// SPDX-License-Identifier: Apache-2.0
/// An index of names. It is fast when names are looked up in the same order again and again, as
/// the features of a file's records are.
#ifndef TFOS_RECORD_NAME_INDEX_H
#define TFOS_RECORD_NAME_INDEX_H

#include <stdint.h>
#include <tfos/status.h>
#include <tfos/stream.h>

#define TFOS__NAME_UNKNOWN UINT32_MAX

struct tfos__record_name {
    struct tfos_view text; ///< owned by the index; a NUL follows
    uint32_t value;        ///< the caller's
};

/// All zero is an empty one. A name's number is its place in `names`.
struct tfos__record_name_index {
    struct tfos__record_name *names; ///< owned
    uint32_t count, capacity;
    uint32_t *buckets; ///< numbers by the hash of their names; owned
    uint32_t bucket_count;
    uint32_t *order; ///< the number of the n-th name of the last round; owned
    uint32_t order_count;
    uint32_t position; ///< of the next name in this round
};

/// Adds a copy of a name that is not in the index.
enum tfos_status tfos__record_name_index_add(struct tfos__record_name_index *index,
                                             struct tfos_view name, uint32_t value,
                                             struct tfos_error *err);

/// The number of a name, or UNKNOWN.
uint32_t tfos__record_name_index_find(const struct tfos__record_name_index *index,
                                      struct tfos_view name);

/// Starts a round of look-ups.
static inline void tfos__record_name_index_restart(struct tfos__record_name_index *index)
{
    index->position = 0;
}

/// The number of the round's next name, or UNKNOWN.
uint32_t tfos__record_name_index_next(struct tfos__record_name_index *index, struct tfos_view name);

void tfos__record_name_index_clear(struct tfos__record_name_index *index);

#endif
