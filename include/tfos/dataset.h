// SPDX-License-Identifier: Apache-2.0
/// A dataset: the rows of a node's feed as batches of tensors, `batch_size` rows each, made without
/// Python. It reads a tfos_feed_reader, joins or splits the batches that came through the ring, and
/// returns buffers in the form of TensorFlow's tensors. A tensor whose values are contiguous in the
/// ring refers to that memory; others are copies.
#ifndef TFOS_DATASET_H
#define TFOS_DATASET_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/dtype.h>
#include <tfos/feed.h>
#include <tfos/status.h>

struct tfos_dataset;

#define TFOS_DATASET_MAX_RANK 8

/// How nodes that train in step do the same number of steps, though they get different numbers of
/// rows.
enum tfos_uneven {
    TFOS_UNEVEN_IGNORE = 0, ///< each node on its own
    TFOS_UNEVEN_PAD = 1,    ///< a node without rows pads batches with rows of zeros, of weight 0
    TFOS_UNEVEN_JOIN = 2,   ///< batches of a node without rows have fewer rows, or none
    TFOS_UNEVEN_STOP = 3    ///< the epoch ends for all when one node has no whole batch left
};

/// The form of the tensors of a column of lists.
enum tfos_column_form {
    TFOS_FORM_AUTO = 0,   ///< dense where every row of the first batch has the same length, else
                          ///< ragged; an MLlib vector: dense
    TFOS_FORM_DENSE = 1,  ///< one tensor; a row of another length is refused
    TFOS_FORM_RAGGED = 2, ///< values and row splits, as tf.RaggedTensor has them
    TFOS_FORM_PADDED = 3, ///< dense, short rows padded with zeros (or null_value) to `shape`; where
                          ///< that is not given, to the longest row of the batch
    TFOS_FORM_SPARSE = 4  ///< an MLlib vector as tf.SparseTensor
};

/// The options of one column; `name` is a path with dots ("person.age") as the specs show it.
/// All borrowed for the call.
struct tfos_dataset_column {
    const char *name;
    enum tfos_column_form form;
    const int64_t *shape; ///< of one row, NULL: from the data. {28, 28} also reads lists of 784
    int rank;
    const char *null_value; ///< what a null becomes, as text ("0", "nan", ""); NULL: a null is
                            ///< refused
};

/// All borrowed for the call, except `reader`, which must outlive the dataset, and `context`.
struct tfos_dataset_options {
    struct tfos_feed_reader *reader; ///< NULL: rows come from `next`
    int64_t batch_size;              ///< rows
    bool drop_remainder;
    int64_t shuffle_rows; ///< rows to draw from at random; 0: in order of coming
    uint64_t seed;
    enum tfos_uneven uneven;
    int64_t first_rows_wait_ms; ///< in step, how long to wait for an epoch's first rows before the
                                ///< other nodes are notified that there are none; 0: 5,000
    int64_t rows_wait_ms;       ///< the same for later rows; 0: 200
    const struct tfos_dataset_column *columns; ///< only those that have options
    int64_t column_count;
    const char *null_value; ///< for columns that have none of their own; NULL: a null is refused
    const char *const *selection; ///< columns of the batches, in this order; NULL: all
    int64_t selection_count;

    /// Exchanges a JSON value with the other members under a name (tfos_trainer_agree). Needed
    /// unless `uneven` is IGNORE. `values_json` NULL: gives the value, and does not wait.
    enum tfos_status (*agree)(void *context, const char *name, const char *value_json,
                              char **values_json, struct tfos_error *err);
    /// Asked about every 50 ms during waits for the structure and for rows, if not NULL, by the
    /// thread that waits; true ends the wait with CLOSED.
    bool (*is_interrupted)(void *context);
    /// Called once, by whichever thread gave up the last hold, when the dataset is freed and uses
    /// neither `reader` nor `context` any more; not after a failed open. NULL is accepted.
    void (*release)(void *context);
    void *context;    ///< given to all of them; must outlive the dataset
    const char *name; ///< distinguishes this dataset's agreements from others': "input"
    const struct tfos_dataset *like; ///< a dataset whose structure is known, and becomes that of
                                     ///< this one. Borrowed for the call; NULL: none
    /// The schema of the rows of feed `feed` before they come (tfos_trainer_get_schema()). Called
    /// during waits for the structure, if not NULL. OK: an Arrow schema, which the dataset
    /// releases, or one without `release`: rows will come, but nothing is known of them. AGAIN:
    /// nothing is known within `timeout_ms`.
    enum tfos_status (*describe)(void *context, int64_t feed, int64_t timeout_ms,
                                 struct ArrowSchema *schema, struct tfos_error *err);
    /// Whether feed `feed` has the rows of the feed before it again (tfos_trainer_is_repeat()).
    /// With PAD all such epochs have at least the steps of the first: Keras takes that number for
    /// all of them, and ends training where one has fewer. NULL: no feed has.
    bool (*is_repeat)(void *context, int64_t feed);
    /// Gives the next item of rows that come from no feed, as tfos_feed_reader_next() does, and END
    /// after the last. May take longer than `timeout_ms`. One call at a time.
    enum tfos_status (*next)(void *context, int64_t timeout_ms, struct tfos_feed_item *item,
                             struct tfos_error *err);
    /// The name of an item's `partition` in messages, "FILE" instead of "partition 3", if not NULL;
    /// valid as long as `context`. `row_step`: by how much the numbers of its rows grow; 1 unless
    /// it is set.
    const char *(*name_partition)(void *context, int64_t partition, int64_t *row_step);
    /// Called, if not NULL, when `count` rows of item `number`, from 0, of those that `next` gave
    /// have been given out.
    void (*use)(void *context, int64_t number, int64_t count);
};

/// What a tensor of a batch is for.
enum tfos_tensor_role {
    TFOS_TENSOR_DENSE = 0,
    TFOS_TENSOR_RAGGED_VALUES,
    TFOS_TENSOR_ROW_SPLITS,     ///< int64; one for each ragged dimension, outermost first
    TFOS_TENSOR_SPARSE_INDICES, ///< int64, (values, 2)
    TFOS_TENSOR_SPARSE_VALUES,
    TFOS_TENSOR_SPARSE_SHAPE, ///< int64, (2)
    TFOS_TENSOR_WEIGHTS       ///< float32, (rows): with PAD, 1 for rows and -0.0 for padding
};

/// One tensor of each batch. Consecutive specs with the same path are one column's. docs/types.md
/// says what becomes of each type.
struct tfos_tensor_spec {
    const char *const *path; ///< names from the row's field to the nested one; the elements of a
                             ///< TUPLE are "0", "1", ..., that of a VALUE is "value"
    int depth;               ///< of the path; 0 for the weights
    enum tfos_tensor_role role;
    enum tfos_dtype dtype;
    int rank;
    int64_t shape[TFOS_DATASET_MAX_RANK]; ///< -1: varies; the first is the rows', where it has rows
};

enum tfos_row_structure {
    TFOS_ROW_TUPLE = 0, ///< tuples and lists of Python
    TFOS_ROW_DICT = 1,  ///< DataFrame rows, dicts, Rows, namedtuples, dataclasses
    TFOS_ROW_VALUE = 2  ///< one value a row
};

/// One tensor of a batch. Numbers lie at `data` in C order. Strings: `data` is int64 offsets, one
/// more than elements, into `bytes`. Whoever got it calls tfos_tensor_release(), from any thread.
struct tfos_tensor {
    enum tfos_dtype dtype;
    int rank;
    int64_t shape[TFOS_DATASET_MAX_RANK];
    const void *data;
    int64_t size; ///< bytes at `data`
    const char *bytes;
    void *owner; ///< private
};

/// Makes a dataset and a number by which tfos_dataset_acquire() finds it. INVALID names the option.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_dataset_open(const struct tfos_dataset_options *options, struct tfos_dataset **out,
                  struct tfos_error *err);

/// Waits until the structure of the rows is known: for a schema, which `describe` may give before
/// the first row, and, where lengths of lists decide, for a first batch, here or (in step) on
/// another node. If an epoch has no row here, a length that the schema leaves open is -1: each
/// batch has its own. An epoch without rows and without a schema is skipped. In step, exchanges
/// with the other nodes until all know the structure. Later calls give the same at once, also the
/// same INVALID. INVALID: a column has no tensor form, a column of the options does not exist, or
/// nodes were fed different structures. END: the feed ended without rows and without a schema.
/// TIMEOUT after `timeout_ms`.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_dataset_get_specs(struct tfos_dataset *dataset, int64_t timeout_ms,
                       const struct tfos_tensor_spec **specs, int64_t *spec_count,
                       enum tfos_row_structure *structure, struct tfos_error *err);

/// The next batch: fills `tensors`, one for each spec. END at the end of each epoch, once, and for
/// ever after the feed's. INVALID names partition, row and column of a value that does not fit; the
/// rows of that batch are gone. CLOSED when the wait was interrupted, which loses no row: the next
/// call waits on. What ends the waits of the reader ends this one, too.
/// One thread at a time (a second waits for its turn).
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_dataset_next(struct tfos_dataset *dataset,
                                                            struct tfos_tensor *tensors,
                                                            struct tfos_error *err);

/// As tfos_dataset_next(), for the first batch of a pass over an epoch. The pass before may have
/// taken all batches of its epoch without asking for the end: if the epoch has given batches and
/// has no more, the pass is over the next one. If it has given as many as the first of the epochs
/// that it repeats and has more, these and the batches of the next one are one pass.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_dataset_first(struct tfos_dataset *dataset,
                                                             struct tfos_tensor *tensors,
                                                             struct tfos_error *err);

/// Gives the memory back. Any thread, also after the dataset was closed.
TFOS_API void tfos_tensor_release(struct tfos_tensor *tensor);

/// The dataset's number in this process, never used twice.
TFOS_API int64_t tfos_dataset_number(const struct tfos_dataset *dataset);

/// The dataset of a number, held until tfos_dataset_close() is called on it too.
/// NOT_FOUND when it was closed, or belongs to another process.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_dataset_acquire(int64_t number, struct tfos_dataset **out, struct tfos_error *err);

/// Gives up one hold on the dataset. NULL is accepted.
TFOS_API void tfos_dataset_close(struct tfos_dataset *dataset);

#endif
