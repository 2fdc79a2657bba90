// SPDX-License-Identifier: Apache-2.0
// The position of a pass, as numbers:
//
//   what the dataset is made of   it must be the same where the position is used
//   seed                          of the pass
//   batches, rows                 batches asked for; rows given out, entered into the pool, and
//                                 read before the places
//   turn                          the lane whose turn it was at the places
//   places                        of each lane: file, offset, phase, row
//
// The places are where the oldest batch was read of which rows are left. What follows it is read
// again, so that it comes to the pool, and from there to batches, in the same order.
#include <tfos/record_dataset.h>

#include "base/fail.h"
#include "base/memory.h"
#include "dataset/file_source.h"
#include "dataset/state.h"

enum number {
    FILE_COUNT,
    NAMES_CHECKSUM,
    SHARD_INDEX,
    SHARD_COUNT,
    SHUFFLED_FILES,
    LANE_COUNT,
    SHUFFLE_ROWS,
    READ_ROWS,
    MADE_OF, // of so many numbers
    SEED = MADE_OF,
    BATCHES,
    GIVEN,
    ENTERED,
    READ_BEFORE,
    TURN,
    HEAD_COUNT
};

#define PLACE_COUNT 4

static int64_t count_of(const struct tfos__file_source *source)
{
    return HEAD_COUNT + PLACE_COUNT * tfos__file_source_log(source)->lane_count;
}

static void write_head(const struct tfos_dataset *dataset, const struct tfos__file_source *source,
                       int64_t *numbers)
{
    const struct tfos__file_order *order = tfos__file_source_order(source);
    const struct tfos__read_log *log = tfos__file_source_log(source);
    const struct tfos__recipe *recipe = order->recipe;
    // With one lane, and without a pool, nothing depends on how many rows are read at once.
    bool is_cut = log->lane_count > 1 || dataset->pool.limit > 0;
    numbers[FILE_COUNT] = recipe->path_count;
    numbers[NAMES_CHECKSUM] = recipe->names_checksum;
    numbers[SHARD_INDEX] = order->pass.shard_index;
    numbers[SHARD_COUNT] = order->pass.shard_count;
    numbers[SHUFFLED_FILES] = order->pass.shuffle_files;
    numbers[LANE_COUNT] = log->lane_count;
    numbers[SHUFFLE_ROWS] = dataset->pool.limit;
    numbers[READ_ROWS] = is_cut ? recipe->reading.batch_rows : 0;
    numbers[SEED] = (int64_t)order->pass.seed;
    numbers[BATCHES] = dataset->batch_count;
    numbers[GIVEN] = dataset->given_count;
    numbers[ENTERED] = dataset->given_count + dataset->pool.count;
    numbers[READ_BEFORE] = log->row_count;
    numbers[TURN] = log->turn;
}

static void write_position(const struct tfos_dataset *dataset,
                           const struct tfos__file_source *source, int64_t *numbers)
{
    const struct tfos__read_log *log = tfos__file_source_log(source);
    write_head(dataset, source, numbers);
    numbers += HEAD_COUNT;
    for (int64_t i = 0; i < log->lane_count; i++, numbers += PLACE_COUNT) {
        const struct tfos__file_place *place = &log->places[i];
        numbers[0] = place->file;
        numbers[1] = (int64_t)place->position.offset;
        numbers[2] = (int64_t)place->position.phase;
        numbers[3] = place->row;
    }
}

static enum tfos_status no_position(struct tfos_error *err)
{
    return tfos__fail(err, TFOS_INVALID, "dataset: it is none of files, and has no position");
}

int64_t tfos_record_dataset_position_count(const struct tfos_dataset *dataset)
{
    const struct tfos__file_source *source = tfos__record_dataset_source(dataset);
    return source ? count_of(source) : 0;
}

enum tfos_status tfos_record_dataset_get_position(struct tfos_dataset *dataset, int64_t *position,
                                                  struct tfos_error *err)
{
    const struct tfos__file_source *source = tfos__record_dataset_source(dataset);
    if (!source)
        return no_position(err);
    TFOS__TRY(tfos__dataset_check_process(dataset, err));
    pthread_mutex_lock(&dataset->mutex);
    write_position(dataset, source, position);
    pthread_mutex_unlock(&dataset->mutex);
    return TFOS_OK;
}

// `here` is the position where the dataset is.
static enum tfos_status check(const int64_t *position, int64_t count, const int64_t *here,
                              int64_t here_count, struct tfos_error *err)
{
    static const char *const names[MADE_OF] = {
        [FILE_COUNT] = "the number of files",
        [NAMES_CHECKSUM] = "the checksum of the files' names",
        [SHARD_INDEX] = "the shard",
        [SHARD_COUNT] = "the number of shards",
        [SHUFFLED_FILES] = "whether files are shuffled (0 or 1)",
        [LANE_COUNT] = "the number of files that are read side by side",
        [SHUFFLE_ROWS] = "the number of rows that are drawn from",
        [READ_ROWS] = "the number of rows that are read at once",
    };
    for (int i = 0; i < MADE_OF && i < count; i++)
        if (position[i] != here[i])
            return tfos__fail(err, TFOS_INVALID,
                              "dataset: the position is of another dataset: %s is %lld there and "
                              "%lld here; make this one as that one was made, or begin anew",
                              names[i], (long long)position[i], (long long)here[i]);
    if (count != here_count)
        return tfos__fail(err, TFOS_INVALID,
                          "dataset: a position of this dataset has %lld numbers, not %lld",
                          (long long)here_count, (long long)count);
    int64_t lane_count = here[LANE_COUNT], file_count = here[FILE_COUNT];
    bool is_wrong = position[TURN] < 0 || position[TURN] >= lane_count ||
                    position[READ_BEFORE] < 0 || position[READ_BEFORE] > position[GIVEN];
    for (int64_t i = HEAD_COUNT; i < count; i += PLACE_COUNT)
        is_wrong |= position[i] < 0 || position[i] >= file_count + lane_count ||
                    position[i + 1] < 0 || position[i + 2] < 0 || position[i + 3] < 0;
    return is_wrong ? tfos__fail(err, TFOS_INVALID, "dataset: the position is damaged") : TFOS_OK;
}

// Passes over rows that have been given out already.
static enum tfos_status skip_rows(struct tfos_dataset *dataset, int64_t count,
                                  struct tfos_error *err)
{
    struct tfos__run_list *list = &dataset->batch;
    enum tfos_status status = TFOS_OK;
    while (status == TFOS_OK && count > 0) {
        status = dataset->supply.row_count > 0
                     ? tfos__supply_take(&dataset->supply, count, list, err)
                     : tfos__supply_read(&dataset->supply, -1, err);
        for (int64_t i = 0; i < list->count; i++)
            dataset->options.use(dataset->options.context, list->runs[i].piece->number,
                                 list->runs[i].count);
        count -= list->row_count;
        tfos__run_list_drop(list);
    }
    return status;
}

static enum tfos_status read_again(struct tfos_dataset *dataset, const int64_t *head,
                                   struct tfos_error *err)
{
    const struct tfos__shuffle_point point = {head[GIVEN], head[ENTERED], head[READ_BEFORE]};
    enum tfos_status status = dataset->pool.limit == 0
                                  ? skip_rows(dataset, head[GIVEN] - head[READ_BEFORE], err)
                                  : tfos__shuffle_resume(&dataset->pool, &dataset->supply, &point,
                                                         &dataset->plan, &dataset->binding, err);
    if (status == TFOS_END)
        return tfos__fail(err, TFOS_INVALID,
                          "dataset: the files end before the position, which is behind row %lld: "
                          "they have become others since",
                          (long long)head[ENTERED]);
    return status;
}

static enum tfos_status go_to(struct tfos_dataset *dataset, struct tfos__file_source *source,
                              const int64_t *position, struct tfos_error *err)
{
    int64_t lane_count = position[LANE_COUNT];
    struct tfos__file_place *places = tfos__alloc((size_t)lane_count, sizeof *places);
    if (!places)
        return tfos__no_memory(err, "dataset", "a position");
    for (int64_t i = 0; i < lane_count; i++) {
        const int64_t *numbers = position + HEAD_COUNT + i * PLACE_COUNT;
        places[i] = (struct tfos__file_place){
            numbers[0], {(uint64_t)numbers[1], (uint64_t)numbers[2]}, numbers[3]};
    }
    const struct tfos__file_resumption from = {(uint64_t)position[SEED], position[TURN],
                                               position[READ_BEFORE], places};
    dataset->batch_count = -1; // nowhere, unless all that follows is done
    tfos__supply_restart(&dataset->supply);
    tfos__shuffle_drop(&dataset->pool);
    tfos__shuffle_begin(&dataset->pool, from.seed, 1);
    tfos__file_source_resume(source, &from);
    tfos__free(places);
    TFOS__TRY(read_again(dataset, position, err));
    dataset->given_count = position[GIVEN];
    dataset->batch_count = position[BATCHES];
    return TFOS_OK;
}

// Whether the dataset is `batch_count` batches behind the position, or both are behind the end.
static bool is_behind(const struct tfos_dataset *dataset, const struct tfos__file_source *source,
                      const int64_t *position, int64_t batch_count)
{
    const struct tfos__supply *supply = &dataset->supply;
    bool has_ended = supply->is_over && supply->row_count == 0 && dataset->pool.count == 0;
    int64_t batches = dataset->batch_count - batch_count; // at the position, if it is so
    return tfos__file_source_order(source)->pass.seed == (uint64_t)position[SEED] &&
           (position[BATCHES] == batches ||
            (has_ended && dataset->batch_count >= 0 && position[BATCHES] > batches));
}

static enum tfos_status check_and_go(struct tfos_dataset *dataset, struct tfos__file_source *source,
                                     const int64_t *position, int64_t count, struct tfos_error *err)
{
    int64_t here_count = count_of(source);
    int64_t *here = tfos__alloc((size_t)here_count, sizeof *here);
    if (!here)
        return tfos__no_memory(err, "dataset", "a position");
    write_position(dataset, source, here);
    enum tfos_status status = check(position, count, here, here_count, err);
    tfos__free(here);
    if (status == TFOS_OK)
        status = tfos__dataset_prepare(dataset, -1, err);
    return status == TFOS_OK ? go_to(dataset, source, position, err) : status;
}

enum tfos_status tfos_record_dataset_set_position(struct tfos_dataset *dataset,
                                                  const int64_t *position, int64_t count,
                                                  int64_t batch_count, struct tfos_error *err)
{
    struct tfos__file_source *source = tfos__record_dataset_source(dataset);
    if (!source)
        return no_position(err);
    TFOS__TRY(tfos__dataset_check_process(dataset, err));
    enum tfos_status status = TFOS_OK;
    pthread_mutex_lock(&dataset->mutex);
    if (count < HEAD_COUNT || !is_behind(dataset, source, position, batch_count)) {
        status = check_and_go(dataset, source, position, count, err);
        for (int64_t i = 0; i < batch_count && status == TFOS_OK; i++)
            status = tfos__dataset_skip(dataset, err);
    }
    pthread_mutex_unlock(&dataset->mutex);
    return status;
}
