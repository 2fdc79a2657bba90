// SPDX-License-Identifier: Apache-2.0
/// The features of a record: views of its bytes.
#ifndef TFOS_RECORD_FEATURE_H
#define TFOS_RECORD_FEATURE_H

#include <stdbool.h>
#include <stdint.h>
#include <tfos/example.h>
#include <tfos/status.h>

/// What a feature's list holds: the numbers of the fields of tf.train.Feature.
enum tfos__record_feature_kind {
    TFOS__FEATURE_NONE = 0,
    TFOS__FEATURE_BYTES = 1,
    TFOS__FEATURE_FLOAT = 2,
    TFOS__FEATURE_INT64 = 3
};

/// "an int64_list" and so on; static storage.
const char *tfos__record_feature_kind_name(enum tfos__record_feature_kind kind);

#define TFOS__NAME_WIDTH 256 ///< bytes of a feature's name in a message

/// For "%.*s".
static inline int tfos__record_name_width(struct tfos_view name)
{
    return name.size < TFOS__NAME_WIDTH ? (int)name.size : TFOS__NAME_WIDTH;
}

/// A BytesList, FloatList or Int64List. The lists of one step are one list, in their order.
struct tfos__record_feature_chunk {
    enum tfos__record_feature_kind kind;
    uint32_t step; ///< which of a feature list's features it is of; 0 of a plain feature
    struct tfos_view list;
};

/// A feature, or a feature list, of one record. All zero is none.
struct tfos__record_feature {
    bool is_present;
    uint32_t step_count;                       ///< features of a feature list; 1 of a plain feature
    struct tfos__record_feature_chunk *chunks; ///< owned
    uint32_t chunk_count, chunk_capacity;
};

/// Returns where a feature of that name goes; NULL skips it. `is_list`: a feature list.
typedef struct tfos__record_feature *
tfos__record_feature_finder(void *context, struct tfos_view name, bool is_list);

/// Finds the features of a record as protobuf reads them: a later feature replaces an earlier one
/// of the same name; lists of one kind within a feature are joined, and a list of another kind
/// replaces them. CORRUPT: no message of this type, or an Example with the feature lists of a
/// SequenceExample.
enum tfos_status tfos__record_features_read(struct tfos_view record, enum tfos_record_type type,
                                            tfos__record_feature_finder *find, void *context,
                                            struct tfos_error *err);

/// Forgets what it held and keeps the memory.
static inline void tfos__record_feature_reset(struct tfos__record_feature *feature)
{
    feature->is_present = false;
    feature->step_count = 0;
    feature->chunk_count = 0;
}

void tfos__record_feature_clear(struct tfos__record_feature *feature);

#endif
