// SPDX-License-Identifier: Apache-2.0
/// Objects that are known by a number, which can be passed where a pointer cannot, and that live
/// until their last hold is released. A table is a list: there are few objects, and each is looked
/// up seldom. Any thread; in a forked process the tables are as they were.
#ifndef TFOS_BASE_NUMBER_TABLE_H
#define TFOS_BASE_NUMBER_TABLE_H

#include <stdbool.h>
#include <stdint.h>

/// Part of an object.
struct tfos__number_entry {
    int64_t number; ///< never changes; no other object of the table ever has it
    int hold_count;
    struct tfos__number_entry *next;
};

/// All zero is an empty table.
struct tfos__number_table {
    struct tfos__number_entry *first;
    int64_t last_number;
};

/// Gives the entry a number and one hold.
void tfos__number_table_add(struct tfos__number_table *table, struct tfos__number_entry *entry);

/// The entry of a number, with one more hold; NULL: there is none.
struct tfos__number_entry *tfos__number_table_acquire(struct tfos__number_table *table,
                                                      int64_t number);

/// One more hold of an entry that the caller holds.
void tfos__number_table_hold(struct tfos__number_entry *entry);

/// From now on no acquire() finds the entry; its holds stay.
void tfos__number_table_remove(struct tfos__number_table *table, struct tfos__number_entry *entry);

/// Gives up a hold. True when it was the last: the entry is no longer in the table.
bool tfos__number_table_release(struct tfos__number_table *table, struct tfos__number_entry *entry);

#endif
