// SPDX-License-Identifier: Apache-2.0
// A list: there are few datasets, and they are looked up once each.
#include "dataset/catalogue.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct tfos__card *cards; // guarded by the lock, as is the next
static int64_t last_number;

static void lock_cards(void)
{
    pthread_mutex_lock(&lock);
}

static void unlock_cards(void)
{
    pthread_mutex_unlock(&lock);
}

/// A forked process must not inherit the lock locked.
__attribute__((constructor)) static void handle_forks(void)
{
    (void)pthread_atfork(lock_cards, unlock_cards, unlock_cards);
}

void tfos__catalogue_add(struct tfos__card *card, struct tfos_dataset *dataset)
{
    pthread_mutex_lock(&lock);
    *card = (struct tfos__card){
        .dataset = dataset, .next = cards, .number = ++last_number, .hold_count = 1};
    cards = card;
    pthread_mutex_unlock(&lock);
}

struct tfos_dataset *tfos__catalogue_find(int64_t number)
{
    struct tfos_dataset *dataset = NULL;

    pthread_mutex_lock(&lock);
    for (struct tfos__card *card = cards; card && !dataset; card = card->next)
        if (card->number == number) {
            card->hold_count++;
            dataset = card->dataset;
        }
    pthread_mutex_unlock(&lock);
    return dataset;
}

bool tfos__catalogue_drop(struct tfos__card *card)
{
    pthread_mutex_lock(&lock);
    bool is_last = --card->hold_count == 0;
    for (struct tfos__card **link = &cards; is_last && *link; link = &(*link)->next)
        if (*link == card) {
            *link = card->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    return is_last;
}
