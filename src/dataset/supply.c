// SPDX-License-Identifier: Apache-2.0
// A queue of pieces. Nothing behind an epoch's end is read before the epoch is done with.
#include "dataset/supply.h"

#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"

#define ASK_INTERVAL_MS 50

static enum tfos_status append(struct tfos__supply *supply, struct tfos__piece *piece,
                               struct tfos_error *err)
{
    if (supply->end == supply->capacity && supply->begin > supply->capacity / 2) {
        supply->end -= supply->begin;
        memmove(supply->pieces, supply->pieces + supply->begin, supply->end * sizeof(void *));
        supply->begin = 0;
    }
    if (supply->end == supply->capacity) {
        size_t capacity = supply->capacity * 2 + 16;
        struct tfos__piece **pieces = tfos__realloc(supply->pieces, capacity, sizeof(void *));
        if (!pieces)
            return tfos__no_memory(err, "dataset", "the rows at hand");
        supply->pieces = pieces;
        supply->capacity = capacity;
    }
    supply->pieces[supply->end++] = piece;
    supply->row_count += piece->array.length;
    supply->size += piece->size;
    return TFOS_OK;
}

static enum tfos_status take_batch(struct tfos__supply *supply, struct tfos_feed_item *item,
                                   struct tfos_error *err)
{
    const struct tfos_dataset_options *options = supply->options;
    struct tfos__piece *piece = NULL;
    int64_t number = supply->piece_count++;

    TFOS__TRY(tfos__piece_open(item, &piece, err));
    piece->number = number;
    piece->is_lent = options->reader != NULL;
    if (options->name_partition)
        piece->origin =
            options->name_partition(options->context, piece->partition, &piece->row_step);
    enum tfos_status status = TFOS_OK;
    if (item->has_results)
        status = tfos__fail(err, TFOS_INVALID,
                            "dataset: partition %lld is fed for inference, and a dataset cannot "
                            "answer: take its rows by DataFeed",
                            (long long)piece->partition);
    else if (piece->array.length > 0)
        status = append(supply, piece, err);
    if (status != TFOS_OK || piece->array.length == 0)
        tfos__lease_release(&piece->lease);
    return status;
}

enum tfos_status tfos__supply_read(struct tfos__supply *supply, int64_t timeout_ms,
                                   struct tfos_error *err)
{
    struct tfos_feed_item item;

    if (supply->is_ended)
        return TFOS_END;
    const struct tfos_dataset_options *options = supply->options;
    enum tfos_status status = options->reader
                                  ? tfos_feed_reader_next(options->reader, timeout_ms, &item, err)
                                  : options->next(options->context, timeout_ms, &item, err);
    if (status == TFOS_END) {
        supply->is_over = true;
        supply->is_ended = true;
    }
    if (status != TFOS_OK)
        return status;
    if (item.kind == TFOS_FEED_BATCH)
        return take_batch(supply, &item, err);
    supply->is_ended = item.kind == TFOS_FEED_EPOCH_END;
    return supply->is_ended ? TFOS_END : TFOS_OK;
}

enum tfos_status tfos__supply_await(struct tfos__supply *supply, int64_t deadline,
                                    struct tfos_error *err)
{
    const struct tfos_dataset_options *options = supply->options;

    for (;;) {
        int64_t slice = options->is_interrupted ? tfos__deadline(ASK_INTERVAL_MS) : TFOS__NEVER;
        bool is_last = deadline <= slice;
        enum tfos_status status =
            tfos__supply_read(supply, tfos__remaining_ms(is_last ? deadline : slice), err);
        if (status != TFOS_AGAIN)
            return status;
        if (options->is_interrupted && options->is_interrupted(options->context))
            return tfos__fail(err, TFOS_CLOSED, "dataset: the wait for rows was interrupted");
        if (is_last)
            return TFOS_AGAIN;
    }
}

static void drop_first(struct tfos__supply *supply)
{
    struct tfos__piece *piece = supply->pieces[supply->begin++];

    supply->size -= piece->size;
    supply->position = 0;
    tfos__lease_release(&piece->lease);
}

enum tfos_status tfos__supply_take(struct tfos__supply *supply, int64_t count,
                                   struct tfos__run_list *list, struct tfos_error *err)
{
    while (count > 0 && supply->row_count > 0) {
        struct tfos__piece *piece = supply->pieces[supply->begin];
        int64_t left = piece->array.length - supply->position;
        int64_t taken = left < count ? left : count;
        TFOS__TRY(tfos__run_list_add(list, piece, supply->position, taken, err));
        if (piece->is_lent)
            tfos_feed_batch_use(&piece->array, taken);
        supply->position += taken;
        supply->row_count -= taken;
        count -= taken;
        if (taken == left)
            drop_first(supply);
    }
    return TFOS_OK;
}

struct tfos__piece *tfos__supply_first(const struct tfos__supply *supply)
{
    return supply->begin < supply->end ? supply->pieces[supply->begin] : NULL;
}

void tfos__supply_drop(struct tfos__supply *supply)
{
    while (supply->begin < supply->end)
        drop_first(supply);
    supply->begin = supply->end = 0;
    supply->row_count = 0;
}

void tfos__supply_restart(struct tfos__supply *supply)
{
    tfos__supply_drop(supply);
    supply->piece_count = 0;
    supply->is_ended = supply->is_over = false;
}

void tfos__supply_begin(struct tfos__supply *supply)
{
    supply->is_ended = supply->is_over;
}

void tfos__supply_clear(struct tfos__supply *supply)
{
    tfos__supply_drop(supply);
    tfos__free(supply->pieces);
    supply->pieces = NULL;
    supply->capacity = 0;
}

enum tfos_status tfos__run_list_add(struct tfos__run_list *list, struct tfos__piece *piece,
                                    int64_t first, int64_t count, struct tfos_error *err)
{
    struct tfos__run *last = list->count > 0 ? &list->runs[list->count - 1] : NULL;

    list->row_count += count;
    if (last && last->piece == piece && last->first + last->count == first) {
        last->count += count;
        return TFOS_OK;
    }
    if (list->count == list->capacity) {
        int64_t capacity = list->capacity * 2 + 16;
        struct tfos__run *runs = tfos__realloc(list->runs, (size_t)capacity, sizeof *runs);
        if (!runs)
            return tfos__no_memory(err, "dataset", "a batch");
        list->runs = runs;
        list->capacity = capacity;
    }
    tfos__lease_hold(&piece->lease);
    list->runs[list->count++] = (struct tfos__run){piece, first, count};
    return TFOS_OK;
}

void tfos__run_list_drop(struct tfos__run_list *list)
{
    for (int64_t i = 0; i < list->count; i++)
        tfos__lease_release(&list->runs[i].piece->lease);
    list->count = 0;
    list->row_count = 0;
}

void tfos__run_list_clear(struct tfos__run_list *list)
{
    tfos__run_list_drop(list);
    tfos__free(list->runs);
    *list = (struct tfos__run_list){0};
}
