// SPDX-License-Identifier: Apache-2.0
/// tf.train.Example and tf.train.SequenceExample, the messages that TFRecord files mostly hold
/// (tensorflow/core/example/example.proto, feature.proto), to Arrow columns and back, without a
/// protobuf object. docs/tfrecord.md says what each type becomes.
///
/// A schema is an Arrow struct (format +s) whose fields are the columns, each named as its feature;
/// a struct's fields are named by their path with dots. A column is
///   - of an integer type (b c C s S i I l L), a date (tdD), a timestamp (tsu: and similar) or an
///     interval (tDu, tiM): an int64_list; a value that the type cannot hold is refused;
///   - of a floating type (f g) or a decimal (d:p,s): a float_list;
///   - of a string or binary type (u U z Z): a bytes_list; strings are UTF-8, or refused;
///   - a list of one of these (+l +L +w:n): all values of the list;
///   - a list of lists, in a SequenceExample only: a feature list.
/// A field's metadata `tfos.encoding` = `exact` means that its values are in a bytes_list instead:
/// of a double its 8 bytes, little-endian; of a decimal its digits as text.
///
/// A feature of another kind than its column's is converted where nothing is lost: integers to a
/// floating type or a decimal, and numbers to their decimal text in a string or binary column that
/// is not exact. Another one is refused, unless its list is empty.
///
/// Names of columns and features are the same byte by byte. A record that has no feature of a
/// column's name, but one whose name differs from it in letter case only and is no column, is
/// refused: it would be read as null. A field's metadata `tfos.name` = `exact` says that the other
/// name is another column, which was not asked for.
///
/// A handle belongs to one thread at a time.
#ifndef TFOS_EXAMPLE_H
#define TFOS_EXAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/export.h>
#include <tfos/status.h>
#include <tfos/stream.h>

/// What a record is.
enum tfos_record_type {
    TFOS_RECORD_EXAMPLE,
    TFOS_RECORD_SEQUENCE_EXAMPLE,
    TFOS_RECORD_BYTES ///< any bytes: one column of binary type
};

struct tfos_example_decoder_options {
    enum tfos_record_type type;
    bool ignore_case; ///< names of columns and features may differ in letter case; a record with
                      ///< two features of a column's name is refused
    enum tfos_type_names type_names; ///< in messages
};

struct tfos_example_decoder;

/// Makes a decoder into columns of this schema; features that it does not name are skipped.
/// `schema` stays the caller's, `options` may be NULL. UNSUPPORTED names a column and its type.
/// INVALID: two columns of one name, a schema that is no struct.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_example_decoder_open(const struct ArrowSchema *schema,
                          const struct tfos_example_decoder_options *options,
                          struct tfos_example_decoder **out, struct tfos_error *err);

/// Adds `count` records, a row each. `*appended` is always set to their number: fewer with OK when
/// the batch can hold no more (its 32-bit offsets), or with a failure, which is then about record
/// `*appended`; the rows before it are kept and the next call can begin behind it. A feature that
/// is missing, has no kind, or for a column that is no list has no value, is null. CORRUPT: no
/// message of its type, an Example that has feature lists, a feature of a kind that the column
/// cannot hold, more than one value where the column is no list, a null where the schema says there
/// is none, a value that the column's type cannot hold; names the column.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_example_decoder_append(struct tfos_example_decoder *decoder, const struct tfos_view *records,
                            size_t count, size_t *appended, struct tfos_error *err);

TFOS_API int64_t tfos_example_decoder_row_count(const struct tfos_example_decoder *decoder);

/// Moves the rows so far into one struct array; the caller owns it. The decoder is empty then.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_example_decoder_take(struct tfos_example_decoder *decoder, struct ArrowArray *out,
                          struct tfos_error *err);

/// NULL is accepted.
TFOS_API void tfos_example_decoder_close(struct tfos_example_decoder *decoder);

struct tfos_example_encoder_options {
    enum tfos_record_type type;
    bool exact; ///< doubles and decimals that are no floats are refused; else they become the
                ///< nearest float, and are counted
    enum tfos_type_names type_names; ///< in messages
};

struct tfos_example_encoder;

/// Makes an encoder of batches of this schema. `schema` stays the caller's.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_example_encoder_open(const struct ArrowSchema *schema,
                          const struct tfos_example_encoder_options *options,
                          struct tfos_example_encoder **out, struct tfos_error *err);

/// Makes a record of each row of `batch`, a struct array of the encoder's schema. `*frames` is the
/// frames of them all, one behind the other as in a TFRecord file; `*records`, if not NULL, the
/// record of each row. Both live until the next call on the encoder. Null columns leave
/// their feature out. INVALID names the row, counted from the first of all batches, and the column:
/// a null within a list, a null struct, a number that would be rounded and may not be, a message of
/// more than 2 GiB.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_example_encoder_encode(struct tfos_example_encoder *encoder, const struct ArrowArray *batch,
                            struct tfos_view *frames, const struct tfos_view **records,
                            struct tfos_error *err);

/// What encoding has changed in a column.
struct tfos_example_loss {
    const char *column; ///< the feature's name; the encoder's
    uint64_t rounded;   ///< numbers that became the nearest float, which is another number
    uint64_t infinite;  ///< of these, those beyond a float's range
};

/// What has been changed so far, in each of `*count` columns: fields of structs are columns, in the
/// order of the schema. Lives until the next call on the encoder.
TFOS_API const struct tfos_example_loss *
tfos_example_encoder_losses(const struct tfos_example_encoder *encoder, size_t *count);

/// NULL is accepted.
TFOS_API void tfos_example_encoder_close(struct tfos_example_encoder *encoder);

/// Infers a schema from the features of records. Its state can be saved as text, so that inferences
/// from parts of the files, made elsewhere, can be merged.
struct tfos_schema_inference;

/// Makes one that has seen no record.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_schema_inference_open(enum tfos_record_type type, struct tfos_schema_inference **out,
                           struct tfos_error *err);

/// Adds `count` records. `*seen` is as `*appended` in tfos_example_decoder_append().
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_schema_inference_append(struct tfos_schema_inference *inference,
                             const struct tfos_view *records, size_t count, size_t *seen,
                             struct tfos_error *err);

/// Adds what `other` has seen. Features that only `other` has come behind those of `inference`.
/// CORRUPT names a feature that is a context feature here and a feature list there, with file and
/// offset of a record for each.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_schema_inference_merge(struct tfos_schema_inference *inference,
                            const struct tfos_schema_inference *other, struct tfos_error *err);

/// Saves the state as JSON text, which tfos_free() frees, and loads it.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_schema_inference_save(const struct tfos_schema_inference *inference, char **json,
                           struct tfos_error *err);
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_schema_inference_load(const char *json, struct tfos_schema_inference **out,
                           struct tfos_error *err);

/// The schema that all records seen can be read with, columns in the order in which features were
/// first seen: a list where a record had not exactly one value; int64 (l), float (f), string (u)
/// where all bytes were UTF-8, else binary (z). Of features of several kinds that is the last of
/// these; lists without values count only where all are. Reading may refuse an integer that is no
/// float. Features that never had a kind are left out. All columns are nullable. The caller owns
/// `*out`. CORRUPT: nothing but damage was found, and skipped.
TFOS_API TFOS_MUST_CHECK enum tfos_status
tfos_schema_inference_schema(const struct tfos_schema_inference *inference, struct ArrowSchema *out,
                             struct tfos_error *err);

/// NULL is accepted.
TFOS_API void tfos_schema_inference_close(struct tfos_schema_inference *inference);

#endif
