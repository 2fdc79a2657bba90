// SPDX-License-Identifier: Apache-2.0
/// The Arrow C data interface: how batches cross this library's interface. The two structs are
/// those of the specification (https://arrow.apache.org/docs/format/CDataInterface.html), guarded
/// by its own macro so that they can meet those of another Arrow implementation in one program.
/// `release != NULL` means that the holder owns the struct; releasing or moving it sets it to NULL.
#ifndef TFOS_ARROW_H
#define TFOS_ARROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/export.h>
#include <tfos/status.h>

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
    const char *format;
    const char *name;
    const char *metadata;
    int64_t flags;
    int64_t n_children;
    struct ArrowSchema **children;
    struct ArrowSchema *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length;
    int64_t null_count;
    int64_t offset;
    int64_t n_buffers;
    int64_t n_children;
    const void **buffers;
    struct ArrowArray **children;
    struct ArrowArray *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

#endif

/// Looks for `key` in a schema's metadata, NULL standing for none, and copies its value, ended by
/// NUL, into `value`, which has room for `size` bytes. False when it is missing or does not fit.
TFOS_API bool tfos_arrow_metadata_find(const char *metadata, const char *key, char *value,
                                       size_t size);

/// The same without a copy: its bytes, in `metadata`, and their number. NULL when it is missing.
TFOS_API const char *tfos_arrow_metadata_get(const char *metadata, const char *key, size_t *size);

/// In whose words a message names types.
enum tfos_type_names {
    TFOS_TYPE_NAMES_ARROW, ///< as pyarrow does: "list<item: int32>"
    TFOS_TYPE_NAMES_SPARK  ///< as Spark's SQL does: "array<int>"; what it has no word for, as
                           ///< pyarrow
};

#define TFOS_TYPE_TEXT_SIZE 256 ///< room for the names of most types

/// Writes the name of a schema's type into `text`, which has room for `size` bytes, cut if need be.
/// Returns `text`.
TFOS_API const char *tfos_arrow_type_text(const struct ArrowSchema *schema,
                                          enum tfos_type_names names, char *text, size_t size);

/// Makes a copy that depends on nothing of `schema`; the caller owns it.
TFOS_API TFOS_MUST_CHECK enum tfos_status tfos_arrow_schema_copy(const struct ArrowSchema *schema,
                                                                 struct ArrowSchema *out,
                                                                 struct tfos_error *err);

#endif
