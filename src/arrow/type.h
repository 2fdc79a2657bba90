// SPDX-License-Identifier: Apache-2.0
/// Arrow's types: the one table of them, read from and written as format strings
/// (https://arrow.apache.org/docs/format/CDataInterface.html#data-type-description-format-strings).
/// Nothing outside this module looks at a format string.
#ifndef TFOS_ARROW_TYPE_H
#define TFOS_ARROW_TYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tfos/arrow.h>
#include <tfos/status.h>

/// What values are.
enum tfos__arrow_kind {
    TFOS__ARROW_NULL, ///< none at all
    TFOS__ARROW_BOOL, ///< bits
    TFOS__ARROW_INT,
    TFOS__ARROW_UINT,
    TFOS__ARROW_FLOAT,     ///< IEEE, of 16, 32 or 64 bits
    TFOS__ARROW_DATE,      ///< since 1970: days of 32 bits, or milliseconds of 64
    TFOS__ARROW_TIME,      ///< of a day, in `unit`
    TFOS__ARROW_TIMESTAMP, ///< since 1970, in `unit`
    TFOS__ARROW_DURATION,  ///< in `unit`
    TFOS__ARROW_MONTHS,    ///< 32 bits
    TFOS__ARROW_INTERVAL,  ///< months and days of 32 bits, nanoseconds of 64
    TFOS__ARROW_DECIMAL,   ///< two's complement integers, `scale` digits of which are a fraction
    TFOS__ARROW_TEXT,      ///< UTF-8; from here on values have no fixed width
    TFOS__ARROW_BINARY,
    TFOS__ARROW_LIST,
    TFOS__ARROW_MAP, ///< lists of structs of key and value
    TFOS__ARROW_STRUCT,
    TFOS__ARROW_OTHER ///< has a name, and is not read
};

/// Which buffers a column has.
enum tfos__arrow_layout {
    TFOS__ARROW_NOTHING,    ///< none
    TFOS__ARROW_FIXED,      ///< validity, values of `width` bits
    TFOS__ARROW_VARIABLE,   ///< validity, offsets of `width` bits, bytes
    TFOS__ARROW_OFFSETS,    ///< validity, offsets of `width` bits; one child
    TFOS__ARROW_FIXED_LIST, ///< validity; one child with `list_size` values a row
    TFOS__ARROW_FIELDS      ///< validity; any number of children
};

#define TFOS__ARROW_BUFFERS 3    ///< most buffers of a column
#define TFOS__ARROW_DEPTH 64     ///< deepest nesting that is read
#define TFOS__ARROW_TEXT_SIZE 64 ///< room for a format, and for a name

/// What a format string says.
struct tfos__arrow_type {
    enum tfos__arrow_kind kind;
    enum tfos__arrow_layout layout;
    int64_t width;         ///< bits
    int64_t list_size;     ///< FIXED_LIST
    int precision, scale;  ///< DECIMAL
    char unit;             ///< 's', 'm', 'u' or 'n'; of days 'D'; else 0
    const char *time_zone; ///< TIMESTAMP: "" for none; into the schema that it was read from
};

/// The type with that kind, width and unit (0 for none), of variable size where there are two:
/// TEXT, BINARY and LIST have the width of their offsets. There must be one.
struct tfos__arrow_type tfos__arrow_type_of(enum tfos__arrow_kind kind, int64_t width, char unit);

/// Lists of `size` values each, and values of `size` bytes each.
struct tfos__arrow_type tfos__arrow_fixed_list_type(int64_t size);
struct tfos__arrow_type tfos__arrow_fixed_binary_type(int64_t size);

/// Reads a format string. False: it is not in the table.
bool tfos__arrow_type_parse(const char *format, struct tfos__arrow_type *type);

/// Reads the type of a schema's node; those of its children are left to the caller. UNSUPPORTED: a
/// type that is not in the table, or a dictionary. INVALID: other children than the type has. The
/// message says what it is, not of which column.
enum tfos_status tfos__arrow_type_read(struct tfos__arrow_type *type,
                                       const struct ArrowSchema *schema, struct tfos_error *err);

/// Whether a schema's node is a struct, as that of a batch is.
bool tfos__arrow_is_struct(const struct ArrowSchema *schema);

/// INVALID, in words, where it is none.
enum tfos_status tfos__arrow_check_struct(const struct ArrowSchema *schema,
                                          enum tfos_type_names names, struct tfos_error *err);

/// Writes the format string. Returns `text`.
const char *tfos__arrow_type_format(const struct tfos__arrow_type *type,
                                    char text[TFOS__ARROW_TEXT_SIZE]);

/// Writes what messages call the type, without what is within it: "bigint", "array".
/// tfos_arrow_type_text() writes the whole. Returns `text`.
const char *tfos__arrow_type_name(const struct tfos__arrow_type *type, enum tfos_type_names names,
                                  char text[TFOS__ARROW_TEXT_SIZE]);

/// Writes what messages call values of a type that has no children, in so many lists:
/// "array<double>". Returns `text`, which has room for `size` bytes, 1 at least.
const char *tfos__arrow_lists_text(const struct tfos__arrow_type *value, int level_count,
                                   enum tfos_type_names names, char *text, size_t size);

/// Whether values of one type are those of the other; time zones do not matter.
bool tfos__arrow_type_equals(const struct tfos__arrow_type *a, const struct tfos__arrow_type *b);

/// How many of what TIME, TIMESTAMP and DURATION count are a second.
int64_t tfos__arrow_per_second(const struct tfos__arrow_type *type);

static inline bool tfos__arrow_type_is(const struct tfos__arrow_type *type,
                                       enum tfos__arrow_kind kind, int64_t width)
{
    return type->kind == kind && type->width == width;
}

/// Whether a column has offsets: of texts, bytes or lists.
static inline bool tfos__arrow_has_offsets(const struct tfos__arrow_type *type)
{
    return type->layout == TFOS__ARROW_VARIABLE || type->layout == TFOS__ARROW_OFFSETS;
}

static inline int tfos__arrow_buffer_count(const struct tfos__arrow_type *type)
{
    static const int8_t counts[] = {0, 2, 3, 2, 1, 1};
    return counts[type->layout];
}

/// Bytes of `length` items of `width` bits; false when that is beyond 64 bits or `length` is
/// negative.
static inline bool tfos__arrow_size(int64_t length, int64_t width, uint64_t *size)
{
    uint64_t bits = 0;
    if (length < 0 || __builtin_mul_overflow((uint64_t)length, (uint64_t)width, &bits) ||
        bits > UINT64_MAX - 7)
        return false;
    *size = (bits + 7) / 8;
    return true;
}

#endif
