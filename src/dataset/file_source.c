// SPDX-License-Identifier: Apache-2.0
// A single reader reads when it is asked. Several readers have a thread each, which reads ahead by
// a few batches.
#include "dataset/file_source.h"

#include <string.h>

#include "arrow/arrow.h"
#include "base/fail.h"
#include "base/memory.h"
#include "record/record.h"

#define READ_AHEAD 3      // batches that a reader with a thread holds
#define READER_LIMIT 1024 // threads

/// A batch that was read.
struct batch {
    struct tfos_feed_item item;          ///< owned
    struct tfos__dataset_file_place end; ///< the reader's place behind it
};

/// The source's mutex guards the batches and what follows them; the files belong to the thread.
struct tfos__dataset_file_reader {
    struct tfos__dataset_file_source *source;
    struct tfos__dataset_file_place place; ///< of the next batch
    struct tfos_stream *stream;            ///< owned; NULL: no file is open
    struct tfos_example_reader *examples;  ///< owned
    pthread_t thread;
    bool has_thread;
    struct batch batches[READ_AHEAD]; ///< a ring, from `first` on
    int first, count;
    enum tfos_status status; ///< what comes behind the batches, once it is not OK
    struct tfos_error failure;
};

/// A batch that was given out.
struct read {
    int64_t reader;
    struct tfos__dataset_file_place end; ///< the reader's place behind it
    int64_t row_count, left_count;       ///< rows, and rows not yet given out
};

// ---- a reader

static void close_file(struct tfos__dataset_file_reader *reader)
{
    if (reader->examples)
        tfos__dataset_file_set_count(reader->source->order.set,
                                     tfos_example_reader_get_counts(reader->examples));
    tfos_example_reader_close(reader->examples);
    tfos_stream_close(reader->stream);
    reader->examples = NULL;
    reader->stream = NULL;
}

static enum tfos_status open_examples(struct tfos__dataset_file_reader *reader,
                                      const struct tfos__dataset_file *file, struct tfos_error *err)
{
    const struct tfos__dataset_file_set *set = reader->source->order.set;
    struct tfos_example_reader_options reading = set->reading;

    reading.record.name = file->path;
    reading.record.start = reader->place.position;
    reading.record.residue = file->residue;
    reading.record.stride = file->stride;
    reading.record.begin = file->begin;
    reading.record.end = file->end;
    TFOS__TRY(tfos_stream_open_reader(file->path, &reader->stream, err));
    return tfos_example_reader_open(reader->stream, &set->schema, &reading, &reader->examples, err);
}

// The file is used by this reader alone.
static enum tfos_status open_file(struct tfos__dataset_file_reader *reader, struct tfos_error *err)
{
    const struct tfos__dataset_file_order *order = &reader->source->order;
    struct tfos__dataset_file *file = &order->files[reader->place.file];

    TFOS__TRY(tfos__dataset_file_order_set_range(order, file, err));
    enum tfos_status status = open_examples(reader, file, err);
    if (status != TFOS_UNSUPPORTED || file->end == 0)
        return status;
    // It is compressed, and can be read from its beginning only.
    close_file(reader);
    tfos__dataset_file_order_clear_range(order, file);
    return open_examples(reader, file, err);
}

static void move(struct tfos__dataset_file_reader *reader, struct tfos__dataset_file_place place)
{
    close_file(reader);
    reader->place = place;
}

// Reads the next batch; its partition is the file's number in the pass. END behind the last file.
static enum tfos_status read_batch(struct tfos__dataset_file_reader *reader, struct batch *out,
                                   struct tfos_error *err)
{
    const struct tfos__dataset_file_order *order = &reader->source->order;
    struct tfos__dataset_file_place *place = &reader->place;
    struct tfos_feed_item item = {.kind = TFOS_FEED_BATCH, .feed = 1};
    enum tfos_status status = TFOS_END;

    while (status == TFOS_END && place->file < order->file_count) {
        status = reader->examples ? TFOS_OK : open_file(reader, err);
        if (status < 0) {
            close_file(reader);
            return status;
        }
        status = tfos_example_reader_next(reader->examples, &item.array, err);
        if (status == TFOS_END)
            move(reader, (struct tfos__dataset_file_place){.file = place->file +
                                                                   reader->source->reader_count});
    }
    if (status != TFOS_OK)
        return status;
    status = tfos_arrow_schema_copy(&order->set->schema, &item.schema, err);
    if (status < 0) {
        item.array.release(&item.array);
        return status;
    }
    const struct tfos__dataset_file *file = &order->files[place->file];
    item.partition = place->file;
    item.first_row = file->residue + place->row * file->stride;
    place->row += item.array.length;
    place->position = tfos__record_example_reader_tell(reader->examples);
    *out = (struct batch){item, *place};
    return TFOS_OK;
}

static void drop_batch(struct batch *batch)
{
    batch->item.array.release(&batch->item.array);
    batch->item.schema.release(&batch->item.schema);
}

// ---- a reader's thread

// Waits until there is room for a batch, and puts it there. False: the thread has to end.
static bool put(struct tfos__dataset_file_reader *reader, enum tfos_status status,
                struct batch *batch, const struct tfos_error *failure)
{
    struct tfos__dataset_file_source *source = reader->source;

    pthread_mutex_lock(&source->mutex);
    while (status == TFOS_OK && reader->count == READ_AHEAD && !source->is_closing)
        pthread_cond_wait(&source->changed, &source->mutex);
    bool goes_on = status == TFOS_OK && !source->is_closing;
    if (goes_on)
        reader->batches[(reader->first + reader->count++) % READ_AHEAD] = *batch;
    else if (status == TFOS_OK)
        drop_batch(batch);
    reader->status = status;
    if (status < 0)
        reader->failure = *failure;
    pthread_cond_broadcast(&source->changed);
    pthread_mutex_unlock(&source->mutex);
    return goes_on;
}

static void *run_reader(void *context)
{
    struct tfos__dataset_file_reader *reader = context;
    struct batch batch;
    struct tfos_error failure;
    enum tfos_status status;

    do
        status = read_batch(reader, &batch, &failure);
    while (put(reader, status, &batch, &failure));
    return NULL;
}

// Takes the next batch that the thread has read. END: there are no more.
static enum tfos_status take(struct tfos__dataset_file_reader *reader, struct batch *out,
                             struct tfos_error *err)
{
    struct tfos__dataset_file_source *source = reader->source;
    enum tfos_status status = TFOS_OK;

    pthread_mutex_lock(&source->mutex);
    while (reader->count == 0 && reader->status == TFOS_OK)
        pthread_cond_wait(&source->changed, &source->mutex);
    if (reader->count > 0) {
        *out = reader->batches[reader->first];
        reader->first = (reader->first + 1) % READ_AHEAD;
        reader->count--;
        pthread_cond_broadcast(&source->changed);
    } else {
        status = reader->status;
        if (status < 0)
            *err = reader->failure;
    }
    pthread_mutex_unlock(&source->mutex);
    return status;
}

static enum tfos_status start_threads(struct tfos__dataset_file_source *source,
                                      struct tfos_error *err)
{
    source->has_begun = true;
    for (int64_t i = 0; i < source->reader_count && source->reader_count > 1; i++) {
        struct tfos__dataset_file_reader *reader = &source->readers[i];
        int fault = pthread_create(&reader->thread, NULL, run_reader, reader);
        if (fault != 0)
            return tfos__fail(err, TFOS_IO,
                              "dataset: cannot start thread %lld of %lld for files: %s",
                              (long long)i + 1, (long long)source->reader_count, strerror(fault));
        reader->has_thread = true;
    }
    return TFOS_OK;
}

static void stop_threads(struct tfos__dataset_file_source *source)
{
    pthread_mutex_lock(&source->mutex);
    source->is_closing = true;
    pthread_cond_broadcast(&source->changed);
    pthread_mutex_unlock(&source->mutex);
    for (int64_t i = 0; i < source->reader_count; i++) {
        struct tfos__dataset_file_reader *reader = &source->readers[i];
        if (reader->has_thread)
            pthread_join(reader->thread, NULL);
        reader->has_thread = false;
        for (; reader->count > 0; reader->count--) {
            drop_batch(&reader->batches[reader->first]);
            reader->first = (reader->first + 1) % READ_AHEAD;
        }
        reader->status = TFOS_OK;
    }
    source->is_closing = false;
    source->has_begun = false;
}

// ---- the source

static enum tfos_status make_readers(struct tfos__dataset_file_source *source,
                                     int64_t parallel_reads, struct tfos_error *err)
{
    int64_t files = source->order.file_count;
    int64_t count = parallel_reads < files ? parallel_reads : files;

    count = count < 1 ? 1 : count;
    source->readers = tfos__alloc((size_t)count, sizeof(*source->readers));
    source->oldest.places = tfos__alloc((size_t)count, sizeof(*source->oldest.places));
    if (!source->readers || !source->oldest.places)
        return tfos__no_memory(err, "dataset", "files");
    source->reader_count = count;
    for (int64_t i = 0; i < count; i++) {
        source->oldest.places[i].file = i;
        source->readers[i].source = source;
        source->readers[i].place.file = i;
    }
    return TFOS_OK;
}

enum tfos_status tfos__dataset_file_source_open(struct tfos__dataset_file_set *set,
                                                const struct tfos_record_pass *pass,
                                                struct tfos__dataset_file_source **out,
                                                struct tfos_error *err)
{
    if (pass->parallel_reads < 0 || pass->parallel_reads > READER_LIMIT)
        return tfos__fail(err, TFOS_INVALID, "dataset: option parallel_reads: it is from 0 to %d",
                          READER_LIMIT);
    struct tfos__dataset_file_source *source = tfos__alloc(1, sizeof(*source));
    if (!source)
        return tfos__no_memory(err, "dataset", "files");
    pthread_mutex_init(&source->mutex, NULL);
    pthread_cond_init(&source->changed, NULL);
    enum tfos_status status = tfos__dataset_file_order_init(&source->order, set, pass, err);
    if (status == TFOS_OK)
        status = make_readers(source, pass->parallel_reads, err);
    if (status < 0)
        tfos__dataset_file_source_close(source);
    else
        *out = source;
    return status;
}

static enum tfos_status next(struct tfos__dataset_file_source *source, struct tfos_feed_item *item,
                             struct tfos_error *err)
{
    if (!source->has_begun)
        TFOS__TRY(start_threads(source, err));
    for (int64_t tried = 0; tried < source->reader_count; tried++) {
        int64_t turn = source->turn;
        struct tfos__dataset_file_reader *reader = &source->readers[turn];
        struct batch batch;
        source->turn = (turn + 1) % source->reader_count;
        enum tfos_status status =
            reader->has_thread ? take(reader, &batch, err) : read_batch(reader, &batch, err);
        if (status == TFOS_END)
            continue;
        if (status != TFOS_OK)
            return status;
        int64_t row_count = batch.item.array.length;
        struct read read = {turn, batch.end, row_count, row_count};
        status = tfos__buffer_append(&source->reads, &read, sizeof(read), err);
        if (status == TFOS_OK)
            *item = batch.item;
        else
            drop_batch(&batch);
        return status;
    }
    return TFOS_END;
}

enum tfos_status tfos__dataset_file_source_next(void *context, int64_t timeout_ms,
                                                struct tfos_feed_item *item, struct tfos_error *err)
{
    struct tfos__dataset_file_source *source = context;

    (void)timeout_ms; // files can be read at any time
    if (source->failure == TFOS_OK) {
        enum tfos_status status = next(source, item, &source->failure_error);
        if (status >= 0)
            return status;
        source->failure = status;
    }
    if (err)
        *err = source->failure_error;
    return source->failure;
}

void tfos__dataset_file_source_use(void *context, int64_t number, int64_t count)
{
    struct tfos__dataset_file_source *source = context;
    struct read *reads = (void *)(source->reads.data + source->reads.begin);

    reads[number - source->first].left_count -= count;
    for (; tfos__buffer_size(&source->reads) > 0 && reads->left_count == 0; reads++) {
        source->oldest.places[reads->reader] = reads->end;
        source->oldest.turn = (reads->reader + 1) % source->reader_count;
        source->oldest.row_count += reads->row_count;
        source->first++;
        tfos__buffer_consume(&source->reads, sizeof(*reads));
    }
}

const char *tfos__dataset_file_source_name(void *context, int64_t partition, int64_t *row_step)
{
    const struct tfos__dataset_file_source *source = context;

    const struct tfos__dataset_file *file = &source->order.files[partition];
    *row_step = file->stride;
    return file->range_name ? file->range_name : file->path;
}

void tfos__dataset_file_source_resume(struct tfos__dataset_file_source *source, uint64_t seed,
                                      const struct tfos__dataset_file_point *point)
{
    stop_threads(source);
    tfos__dataset_file_order_set_seed(&source->order, seed);
    source->failure = TFOS_OK;
    tfos__buffer_consume(&source->reads, tfos__buffer_size(&source->reads));
    source->first = 0;
    source->turn = source->oldest.turn = point->turn;
    source->oldest.row_count = point->row_count;
    for (int64_t i = 0; i < source->reader_count; i++) {
        source->oldest.places[i] = point->places[i];
        move(&source->readers[i], point->places[i]);
    }
}

void tfos__dataset_file_source_close(void *context)
{
    struct tfos__dataset_file_source *source = context;

    if (!source)
        return;
    stop_threads(source);
    for (int64_t i = 0; i < source->reader_count; i++)
        close_file(&source->readers[i]);
    tfos__free(source->readers);
    tfos__free(source->oldest.places);
    tfos__buffer_clear(&source->reads);
    tfos__dataset_file_order_clear(&source->order);
    pthread_cond_destroy(&source->changed);
    pthread_mutex_destroy(&source->mutex);
    tfos__free(source);
}
