// SPDX-License-Identifier: Apache-2.0
#include "record_hand.h"

#include <stdlib.h>

struct hand_place {
    size_t offset, size;
};

static struct hand_place *places_of(const struct hand *hand)
{
    return (struct hand_place *)(void *)hand->places.data; // calloc() aligns it
}

void hand_add(struct hand *hand, struct tfos_view record)
{
    struct hand_place place = {hand->records.size, record.size};
    bytes_add(&hand->records, record.data, record.size);
    bytes_add(&hand->places, &place, sizeof place);
    hand->count++;
}

size_t hand_size(const struct hand *hand)
{
    return hand->records.size + hand->places.size;
}

struct tfos_view hand_get(const struct hand *hand, size_t number)
{
    struct hand_place place = places_of(hand)[number];
    return (struct tfos_view){hand->records.data + place.offset, place.size};
}

int hand_deal(struct hand *hand, struct random_numbers *numbers, struct outputs *outputs)
{
    struct hand_place *places = places_of(hand);
    for (size_t left = hand->count; left > 0; left--) {
        size_t drawn = (size_t)random_below(numbers, left);
        struct hand_place place = places[drawn];
        struct tfos_view record = {hand->records.data + place.offset, place.size};
        places[drawn] = places[left - 1];
        int status = write_to_outputs(outputs, &record, 1);
        if (status != 0)
            return status;
    }
    return 0;
}

void hand_clear(struct hand *hand)
{
    free(hand->records.data);
    free(hand->places.data);
    *hand = (struct hand){0};
}
