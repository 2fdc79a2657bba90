// SPDX-License-Identifier: Apache-2.0
// tfos record shuffle: the records of files in an order by chance, of which each is as likely as
// any other. Plain files that are larger than memory are indexed and read record by record; others
// go through buckets.
#include "record_buckets.h"
#include "record_pass.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>

#define DEFAULT_MEMORY (256u << 20) // bytes
#define MOST_FILES 256              // that are kept open
#define NUMBER_SIZE 16              // bytes of memory that a record's place and number take

/// Files whose records are picked by their number in all of them.
struct picks {
    const struct record_options *options;
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

static enum outcome open_source(struct picks *picks, struct source *source, const char *path,
                                uint64_t memory)
{
    struct tfos_error err;
    struct tfos_record_reader_options reading = reader_options(picks->options, path);
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
        if (picks->record_count > memory / NUMBER_SIZE)
            return OTHERWISE;
        status =
            tfos_record_picker_open(source->stream, source->index, &reading, &source->picker, &err);
    }
    return status == TFOS_OK ? DONE : (say_error(&err), FAILED);
}

static int pick(struct picks *picks, uint64_t number, struct outputs *outputs)
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
    return write_to_outputs(outputs, &record, 1);
}

static int pick_all(struct picks *picks, struct mixing *mixing)
{
    uint64_t *numbers = allocate(picks->record_count, sizeof *numbers);
    int status = 0;
    for (uint64_t i = 0; i < picks->record_count; i++)
        numbers[i] = i;
    for (uint64_t left = picks->record_count; left > 0 && status == 0; left--) {
        uint64_t drawn = random_below(&mixing->numbers, left), number = numbers[drawn];
        numbers[drawn] = numbers[left - 1];
        status = pick(picks, number, &mixing->outputs);
        progress_tell("mixed", picks->record_count - left + 1, 0, "all");
    }
    progress_end();
    free(numbers);
    return status;
}

// Whether these are regular files, few and strictly read, of more bytes than memory is to hold.
static bool is_for_picking(const struct record_options *options, uint64_t memory)
{
    uint64_t size = 0;
    struct stat state;
    for (int i = 0; i < options->file_count - 1; i++) {
        const char *path = options->files[i];
        if (strcmp(path, "-") == 0 || stat(path, &state) != 0 || !S_ISREG(state.st_mode))
            return false;
        size += (uint64_t)state.st_size;
    }
    return size > memory && options->file_count - 1 <= MOST_FILES &&
           options->mode == TFOS_RECORD_STRICT;
}

static enum outcome mix_by_index(struct mixing *mixing)
{
    const struct record_options *options = mixing->options;
    struct picks picks = {.options = options};
    enum outcome outcome = is_for_picking(options, mixing->memory) ? DONE : OTHERWISE;
    if (outcome != DONE)
        return outcome;
    picks.sources = allocate((size_t)options->file_count, sizeof *picks.sources);
    for (; picks.count < options->file_count - 1 && outcome == DONE; picks.count++)
        outcome = open_source(&picks, &picks.sources[picks.count], options->files[picks.count],
                              mixing->memory);
    if (outcome == DONE && pick_all(&picks, mixing) != 0)
        outcome = FAILED;
    close_picks(&picks);
    return outcome;
}

int record_shuffle(const struct record_options *options)
{
    int last = options->file_count - 1;
    uint64_t seed = options->seed;
    if (!options->has_seed && getrandom(&seed, sizeof seed, 0) != sizeof seed) {
        fprintf(stderr, "tfos: no random numbers: %s; --seed gives one\n", strerror(errno));
        return 1;
    }
    struct mixing mixing = {.options = options,
                            .numbers = random_begin(seed),
                            .memory = options->memory > 0 ? options->memory : DEFAULT_MEMORY};
    int status = open_outputs(&mixing.outputs, options, options->files[last], options->limit);
    if (status == 0) {
        enum outcome outcome = mix_by_index(&mixing);
        status =
            outcome == OTHERWISE ? mix_files(&mixing, options->files, last) : outcome == FAILED;
    }
    if (status == 0)
        status = finish_outputs(&mixing.outputs);
    if (status == 0)
        fprintf(stderr, "%ld records written\n", mixing.outputs.next);
    close_outputs(&mixing.outputs);
    return status;
}
