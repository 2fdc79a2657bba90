// SPDX-License-Identifier: Apache-2.0
// One lock for all tables. A forked process must not inherit it locked.
#include "base/number_table.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void lock(void)
{
    pthread_mutex_lock(&mutex);
}

static void unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

__attribute__((constructor)) static void handle_forks(void)
{
    (void)pthread_atfork(lock, unlock, unlock);
}

void tfos__number_table_add(struct tfos__number_table *table, struct tfos__number_entry *entry)
{
    lock();
    entry->number = ++table->last_number;
    entry->hold_count = 1;
    entry->next = table->first;
    table->first = entry;
    unlock();
}

struct tfos__number_entry *tfos__number_table_acquire(struct tfos__number_table *table,
                                                      int64_t number)
{
    lock();
    struct tfos__number_entry *entry = table->first;
    while (entry && entry->number != number)
        entry = entry->next;
    if (entry)
        entry->hold_count++;
    unlock();
    return entry;
}

void tfos__number_table_hold(struct tfos__number_entry *entry)
{
    lock();
    entry->hold_count++;
    unlock();
}

static void unlink_entry(struct tfos__number_table *table, const struct tfos__number_entry *entry)
{
    struct tfos__number_entry **link = &table->first;
    while (*link && *link != entry)
        link = &(*link)->next;
    if (*link)
        *link = entry->next;
}

void tfos__number_table_remove(struct tfos__number_table *table, struct tfos__number_entry *entry)
{
    lock();
    unlink_entry(table, entry);
    unlock();
}

bool tfos__number_table_release(struct tfos__number_table *table, struct tfos__number_entry *entry)
{
    lock();
    bool is_last = --entry->hold_count == 0;
    if (is_last)
        unlink_entry(table, entry);
    unlock();
    return is_last;
}
