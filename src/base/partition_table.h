// SPDX-License-Identifier: Apache-2.0
/// A hash table of partitions by feed and number, of one queue. Its user keeps the state of a
/// partition in a struct that begins with struct tfos__partition and is made by tfos__alloc().
#ifndef TFOS_BASE_PARTITION_TABLE_H
#define TFOS_BASE_PARTITION_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tfos__partition {
    struct tfos__partition *next; ///< in its bucket
    int64_t feed, number;
};

/// All zero is an empty table.
struct tfos__partition_table {
    struct tfos__partition **buckets; ///< owned
    size_t bucket_count, count;
};

/// The partition, or NULL. It stays where it is until it is removed.
struct tfos__partition *tfos__partition_table_find(const struct tfos__partition_table *table,
                                                   int64_t feed, int64_t number);

/// Whether the next add() makes the table larger.
bool tfos__partition_table_is_full(const struct tfos__partition_table *table);

/// Makes the table larger. False when out of memory and it has no room at all.
bool tfos__partition_table_grow(struct tfos__partition_table *table);

/// Takes over a partition that is not there yet. False when out of memory.
bool tfos__partition_table_add(struct tfos__partition_table *table,
                               struct tfos__partition *partition);

/// Removes and frees the partitions for which `keeps` gives false, after it has cleared them.
void tfos__partition_table_filter(struct tfos__partition_table *table,
                                  bool (*keeps)(struct tfos__partition *partition, void *context),
                                  void *context);

/// Removes and frees one that is in the table.
void tfos__partition_table_remove(struct tfos__partition_table *table,
                                  struct tfos__partition *partition);

/// Removes and frees all.
void tfos__partition_table_clear(struct tfos__partition_table *table);

#endif
