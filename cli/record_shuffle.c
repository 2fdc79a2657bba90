// SPDX-License-Identifier: Apache-2.0
// tfos record shuffle: the records of files in a random order, of which each is as likely as any
// other. Plain files that are larger than memory are indexed and read record by record. Others are
// read once: where memory is too small for their records, each goes to a random bucket, a temporary
// file, and the buckets, shuffled one by one, make the whole. What is in a bucket may be too much
// again.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bytes.h"
#include "commands.h"
#include "record_files.h"
#include "terminal.h"

#define DEFAULT_MEMORY (256u << 20) // bytes
#define MOST_FILES 256              // that are kept open
#define NUMBER_SIZE 16              // bytes of memory that a record's place and number take
#define BUCKET_COUNT 64

struct shuffle {
    const struct record_options *options; ///< of the files that are read
    uint64_t random[4];                   ///< state of xoshiro256** (Blackman and Vigna)
    uint64_t memory;                      ///< bytes of records to be held at once
    struct outputs outputs;
};

// ---- random numbers, which a seed repeats on every machine; not for secrets

// Fills the state by splitmix64.
static void seed_random(uint64_t *state, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        uint64_t mixed = seed += 0x9E3779B97F4A7C15;
        mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9;
        mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB;
        state[i] = mixed ^ mixed >> 31;
    }
}

static uint64_t rotate(uint64_t number, int bits)
{
    return number << bits | number >> (64 - bits);
}

static uint64_t next_random(uint64_t *state)
{
    uint64_t result = rotate(state[1] * 5, 7) * 9, shifted = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= shifted;
    state[3] = rotate(state[3], 45);
    return result;
}

// A number below `limit`, which is not 0, each as likely as any other: numbers behind the last
// whole multiple of `limit` would make the first ones likelier.
static uint64_t random_below(uint64_t *state, uint64_t limit)
{
    uint64_t end = UINT64_MAX - UINT64_MAX % limit, number;
    do
        number = next_random(state);
    while (number >= end);
    return number % limit;
}

// ---- in memory and in buckets

struct bucket {
    int fd; ///< owned; -1: none
    struct tfos_stream *stream;
    struct tfos_record_writer *writer;
};

struct place {
    size_t offset, size; ///< of a record
};

/// Records of one source: in memory as long as they fit, then in buckets.
struct shuffle_buffer {
    struct shuffle *shuffle;
    struct bytes records;   ///< one behind the other
    struct bytes places;    ///< where they are: struct place each
    struct bucket *buckets; ///< owned; NULL: there are none
};

static size_t count_of(const struct shuffle_buffer *buffer)
{
    return buffer->places.size / sizeof(struct place);
}

static struct place *places_of(const struct shuffle_buffer *buffer)
{
    return (struct place *)(void *)buffer->places.data; // realloc() aligns it
}

static struct tfos_view record_at(const struct shuffle_buffer *buffer, struct place place)
{
    return (struct tfos_view){buffer->records.data + place.offset, place.size};
}

static void clear_memory(struct shuffle_buffer *buffer)
{
    free(buffer->records.data);
    free(buffer->places.data);
    buffer->records = buffer->places = (struct bytes){0};
}

static int say_bucket_error(const struct tfos_error *err)
{
    progress_end();
    fprintf(stderr, "tfos: a temporary file in %s: %s (TMPDIR names another folder)\n",
            temporary_folder(), err->message);
    return 1;
}

static int open_bucket(struct bucket *bucket)
{
    struct tfos_error err;
    bucket->fd = open_temporary_file();
    if (bucket->fd < 0)
        return 1;
    if (tfos_stream_open_fd(bucket->fd, &bucket->stream, &err) < 0 ||
        tfos_record_writer_open(bucket->stream, NULL, &bucket->writer, &err) < 0)
        return say_bucket_error(&err);
    return 0;
}

static void close_bucket(struct bucket *bucket)
{
    tfos_record_writer_close(bucket->writer);
    tfos_stream_close(bucket->stream);
    if (bucket->fd >= 0)
        close(bucket->fd);
    *bucket = (struct bucket){.fd = -1};
}

static int put_in_bucket(struct shuffle_buffer *buffer, struct tfos_view record)
{
    struct tfos_error err;
    uint64_t number = random_below(buffer->shuffle->random, BUCKET_COUNT);
    if (tfos_record_writer_append(buffer->buckets[number].writer, &record, 1, &err) < 0)
        return say_bucket_error(&err);
    return 0;
}

// Opens the buckets and puts what is in memory in them.
static int open_buckets(struct shuffle_buffer *buffer)
{
    int status = 0;
    buffer->buckets = allocate(BUCKET_COUNT, sizeof(*buffer->buckets));
    for (int i = 0; i < BUCKET_COUNT; i++)
        buffer->buckets[i].fd = -1;
    for (int i = 0; i < BUCKET_COUNT && status == 0; i++)
        status = open_bucket(&buffer->buckets[i]);
    for (size_t i = 0; i < count_of(buffer) && status == 0; i++)
        status = put_in_bucket(buffer, record_at(buffer, places_of(buffer)[i]));
    clear_memory(buffer);
    return status;
}

static int add_to_buffer(struct pass *pass, const struct tfos_view *records, size_t count)
{
    struct shuffle_buffer *buffer = pass->target;
    int status = 0;
    for (size_t i = 0; i < count && status == 0; i++) {
        if (buffer->buckets) {
            status = put_in_bucket(buffer, records[i]);
            continue;
        }
        struct place place = {buffer->records.size, records[i].size};
        bytes_add(&buffer->records, records[i].data, records[i].size);
        bytes_add(&buffer->places, &place, sizeof(place));
        // A single record is held however large it is.
        if (buffer->records.size + buffer->places.size > buffer->shuffle->memory &&
            count_of(buffer) > 1)
            status = open_buckets(buffer);
    }
    return status;
}

static int write_memory(struct shuffle_buffer *buffer)
{
    struct place *places = places_of(buffer);
    int status = 0;
    for (size_t left = count_of(buffer); left > 0 && status == 0; left--) {
        size_t drawn = (size_t)random_below(buffer->shuffle->random, left);
        struct tfos_view record = record_at(buffer, places[drawn]);
        places[drawn] = places[left - 1];
        status = write_to_outputs(&buffer->shuffle->outputs, &record, 1);
    }
    return status;
}

static int write_buffer(struct shuffle_buffer *buffer, int status);

static int write_bucket(struct shuffle *shuffle, struct bucket *bucket)
{
    struct tfos_error err;
    struct shuffle_buffer buffer = {.shuffle = shuffle};
    struct record_options plain = {.compression = TFOS_COMPRESSION_NONE,
                                   .max_record_size = INT64_MAX};
    struct pass pass = {.options = &plain,
                        .path = "a temporary file",
                        .what = "mixed",
                        .take = add_to_buffer,
                        .target = &buffer};
    if (tfos_record_writer_finish(bucket->writer, &err) < 0)
        return say_bucket_error(&err);
    int status = lseek(bucket->fd, 0, SEEK_SET) == 0 ? run_pass_on(&pass, bucket->stream) : 1;
    close_bucket(bucket);
    return write_buffer(&buffer, status);
}

// Writes all records, unless reading them has failed with `status`, and frees them.
static int write_buffer(struct shuffle_buffer *buffer, int status)
{
    if (status == 0)
        status = write_memory(buffer);
    clear_memory(buffer);
    for (int i = 0; buffer->buckets && i < BUCKET_COUNT; i++) {
        if (status == 0)
            status = write_bucket(buffer->shuffle, &buffer->buckets[i]);
        close_bucket(&buffer->buckets[i]);
    }
    free(buffer->buckets);
    return status;
}

static int shuffle_by_buffer(struct shuffle *shuffle)
{
    const struct record_options *options = shuffle->options;
    struct shuffle_buffer buffer = {.shuffle = shuffle};
    int status = 0;
    for (int i = 0; i < options->file_count - 1 && status == 0; i++) {
        struct pass pass = {.options = options,
                            .path = options->files[i],
                            .what = "read",
                            .take = add_to_buffer,
                            .target = &buffer};
        status = run_pass(&pass);
    }
    return write_buffer(&buffer, status);
}

// ---- by indexes

/// Files whose records are picked by their number in all of them.
struct picks {
    struct source {
        struct tfos_stream *stream;
        struct tfos_record_index *index;
        struct tfos_record_picker *picker;
        uint64_t first; ///< the number of its first record
    } * sources;        ///< owned
    int count;
    uint64_t record_count;
};

enum outcome {
    DONE,
    FAILED,
    OTHERWISE ///< the files are not for this way
};

static void close_picks(struct picks *picks)
{
    for (int i = 0; i < picks->count; i++) {
        tfos_record_picker_close(picks->sources[i].picker);
        tfos_record_index_close(picks->sources[i].index);
        tfos_stream_close(picks->sources[i].stream);
    }
    free(picks->sources);
}

static enum outcome open_source(const struct shuffle *shuffle, struct picks *picks,
                                const char *path)
{
    struct tfos_error err;
    struct source *source = &picks->sources[picks->count++];
    struct tfos_record_reader_options reading = reader_options(shuffle->options, path);
    source->stream = open_input(path);
    if (!source->stream)
        return FAILED;
    if (!source->stream->seek)
        return OTHERWISE;
    enum tfos_status status =
        tfos_record_index_scan(source->stream, &reading, &source->index, &err);
    if (status == TFOS_UNSUPPORTED)
        return OTHERWISE;
    source->first = picks->record_count;
    if (status == TFOS_OK) {
        picks->record_count += tfos_record_index_count(source->index);
        if (picks->record_count > shuffle->memory / NUMBER_SIZE)
            return OTHERWISE;
        status =
            tfos_record_picker_open(source->stream, source->index, &reading, &source->picker, &err);
    }
    return status == TFOS_OK ? DONE : (say_error(&err), FAILED);
}

static int pick(struct shuffle *shuffle, struct picks *picks, uint64_t number)
{
    struct tfos_error err;
    struct tfos_view record;
    int low = 0, high = picks->count - 1; // the last source that begins at `number` or before
    while (low < high) {
        int middle = low + (high - low + 1) / 2;
        if (picks->sources[middle].first <= number)
            low = middle;
        else
            high = middle - 1;
    }
    struct source *source = &picks->sources[low];
    if (tfos_record_picker_get(source->picker, number - source->first, &record, &err) < 0)
        return say_error(&err);
    return write_to_outputs(&shuffle->outputs, &record, 1);
}

static int pick_all(struct shuffle *shuffle, struct picks *picks)
{
    uint64_t *numbers = allocate(picks->record_count, sizeof(*numbers));
    int status = 0;
    for (uint64_t i = 0; i < picks->record_count; i++)
        numbers[i] = i;
    for (uint64_t left = picks->record_count; left > 0 && status == 0; left--) {
        uint64_t drawn = random_below(shuffle->random, left), number = numbers[drawn];
        numbers[drawn] = numbers[left - 1];
        status = pick(shuffle, picks, number);
        progress_show("mixed", picks->record_count - left + 1, 0, "all");
    }
    progress_end();
    free(numbers);
    return status;
}

// Whether these are regular files, few and strictly read, of more bytes than memory is to hold.
static bool is_for_picking(const struct shuffle *shuffle)
{
    const struct record_options *options = shuffle->options;
    uint64_t size = 0;
    struct stat state;
    for (int i = 0; i < options->file_count - 1; i++) {
        const char *path = options->files[i];
        if (strcmp(path, "-") == 0 || stat(path, &state) != 0 || !S_ISREG(state.st_mode))
            return false;
        size += (uint64_t)state.st_size;
    }
    return size > shuffle->memory && options->file_count - 1 <= MOST_FILES &&
           !options->skips_damage;
}

static enum outcome shuffle_by_indexes(struct shuffle *shuffle)
{
    const struct record_options *options = shuffle->options;
    struct picks picks = {0};
    enum outcome outcome = is_for_picking(shuffle) ? DONE : OTHERWISE;
    if (outcome != DONE)
        return outcome;
    picks.sources = allocate((size_t)options->file_count, sizeof(*picks.sources));
    while (picks.count < options->file_count - 1 && outcome == DONE)
        outcome = open_source(shuffle, &picks, options->files[picks.count]);
    if (outcome == DONE && pick_all(shuffle, &picks) != 0)
        outcome = FAILED;
    close_picks(&picks);
    return outcome;
}

int record_shuffle(const struct record_options *options)
{
    uint64_t seed = options->seed;
    if (!options->has_seed && getrandom(&seed, sizeof(seed), 0) != sizeof(seed)) {
        fprintf(stderr, "tfos: no random numbers: %s; --seed gives one\n", strerror(errno));
        return 1;
    }
    struct shuffle shuffle = {.options = options,
                              .memory = options->memory > 0 ? options->memory : DEFAULT_MEMORY};
    seed_random(shuffle.random, seed);
    int status = open_outputs(&shuffle.outputs, options, options->files[options->file_count - 1],
                              options->limit);
    if (status == 0) {
        enum outcome outcome = shuffle_by_indexes(&shuffle);
        status = outcome == OTHERWISE ? shuffle_by_buffer(&shuffle) : outcome == FAILED;
    }
    if (status == 0)
        status = finish_outputs(&shuffle.outputs);
    if (status == 0)
        fprintf(stderr, "%llu records written\n", (unsigned long long)shuffle.outputs.next);
    close_outputs(&shuffle.outputs);
    return status;
}
