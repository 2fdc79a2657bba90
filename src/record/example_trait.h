// SPDX-License-Identifier: Apache-2.0
/// What a survey knows of each feature.
#ifndef TFOS_RECORD_EXAMPLE_TRAIT_H
#define TFOS_RECORD_EXAMPLE_TRAIT_H

#include <tfos/record.h>

#include "record/feature.h"
#include "record/name_index.h"

struct tfos__trait {
    char *name;                   ///< owned
    enum tfos__feature_kind kind; ///< that of all values; without values that of empty lists
    bool has_values;
    bool is_known;                    ///< a record had it, and `is_feature_list` says how
    bool is_feature_list;             ///< of a SequenceExample
    char *place;                      ///< the file and offset of a record with it; owned, or NULL
    bool is_list;                     ///< some record had not exactly one value
    bool is_text;                     ///< all bytes were UTF-8
    struct tfos__feature plain, list; ///< in the record at hand
};

struct tfos_example_survey {
    enum tfos_record_type type;
    struct tfos__trait *traits; ///< in the order in which they were first seen; owned
    uint32_t count, capacity;
    uint64_t passed_over;              ///< places that were damaged, of files without a good record
    struct tfos__name_index names;     ///< their bytes are the traits'
    enum tfos_status status;           ///< of finding the features of a record
    struct tfos_error failure;         ///< of that
    struct tfos_record_reader *frames; ///< of the records that are looked at; or NULL
    const char *file;                  ///< of these; NULL with `frames`
};

/// Adds a feature of which nothing is known yet. CORRUPT: its name is no text.
enum tfos_status tfos__example_survey_add(struct tfos_example_survey *survey, struct tfos_view name,
                                          struct tfos_error *err);

/// Adds what is known of a feature elsewhere. CORRUPT: it contradicts.
enum tfos_status tfos__example_survey_learn(struct tfos_example_survey *survey,
                                            const struct tfos__trait *known,
                                            struct tfos_error *err);

#endif
