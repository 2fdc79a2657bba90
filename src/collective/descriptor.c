// SPDX-License-Identifier: Apache-2.0
// Over TCP: "TFCO", sequence, count, digest (8 bytes each), kind, dtype, reduction, root, name size
// and whether it is on GPUs (1 byte each), 2 zero bytes, the name and zeros to 256 bytes. All
// little-endian.
#include "collective/descriptor.h"

#include <endian.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/text.h"

#define MAGIC "TFCO"
#define NAME_AT (TFOS__COLLECTIVE_HEADER_SIZE - TFOS__COLLECTIVE_NAME_LIMIT - 1)
#define COUNT_MAX (INT64_C(1) << 56)

_Static_assert(NAME_AT == 4 + 3 * 8 + 8, "a header has no gaps");

/// By enum tfos_dtype.
static const struct {
    const char *name;
    size_t size;
    bool is_reducible;
} dtypes[] = {
    [TFOS_DTYPE_BOOL] = {"bool", 1, false},        [TFOS_DTYPE_INT8] = {"int8", 1, false},
    [TFOS_DTYPE_INT16] = {"int16", 2, false},      [TFOS_DTYPE_INT32] = {"int32", 4, true},
    [TFOS_DTYPE_INT64] = {"int64", 8, true},       [TFOS_DTYPE_UINT8] = {"uint8", 1, false},
    [TFOS_DTYPE_UINT16] = {"uint16", 2, false},    [TFOS_DTYPE_UINT32] = {"uint32", 4, false},
    [TFOS_DTYPE_UINT64] = {"uint64", 8, false},    [TFOS_DTYPE_FLOAT16] = {"float16", 2, true},
    [TFOS_DTYPE_FLOAT32] = {"float32", 4, true},   [TFOS_DTYPE_FLOAT64] = {"float64", 8, true},
    [TFOS_DTYPE_BFLOAT16] = {"bfloat16", 2, true},
};

#define DTYPE_COUNT (sizeof(dtypes) / sizeof(dtypes[0]))

static const char *const kinds[] = {
    [TFOS__COLLECTIVE_ALL_REDUCE] = "all-reduce",
    [TFOS__COLLECTIVE_BROADCAST] = "broadcast",
    [TFOS__COLLECTIVE_ALL_GATHER] = "all-gather",
    [TFOS__COLLECTIVE_REDUCE_SCATTER] = "reduce-scatter",
    [TFOS__COLLECTIVE_BARRIER] = "barrier",
    [TFOS__COLLECTIVE_PUSH_PULL] = "push-pull",
};

static const char *const reductions[] = {
    [TFOS_REDUCE_SUM] = "sum",
    [TFOS_REDUCE_MEAN] = "mean",
    [TFOS_REDUCE_MIN] = "min",
    [TFOS_REDUCE_MAX] = "max",
};

size_t tfos__collective_element_size(enum tfos_dtype dtype)
{
    return (size_t)dtype < DTYPE_COUNT ? dtypes[dtype].size : 0;
}

bool tfos__collective_is_reducible(enum tfos_dtype dtype)
{
    return (size_t)dtype < DTYPE_COUNT && dtypes[dtype].is_reducible;
}

static bool has_reduction(uint8_t kind)
{
    return kind == TFOS__COLLECTIVE_ALL_REDUCE || kind == TFOS__COLLECTIVE_REDUCE_SCATTER;
}

bool tfos__collective_descriptor_matches(const struct tfos__collective_descriptor *left,
                                         const struct tfos__collective_descriptor *right)
{
    return left->sequence == right->sequence && left->kind == right->kind &&
           left->dtype == right->dtype && left->reduction == right->reduction &&
           left->root == right->root && left->is_gpu == right->is_gpu &&
           left->digest == right->digest &&
           (left->count == right->count || left->kind == TFOS__COLLECTIVE_ALL_GATHER) &&
           strcmp(left->name, right->name) == 0;
}

const char *tfos__collective_descriptor_label(const struct tfos__collective_descriptor *descriptor,
                                              char text[TFOS__COLLECTIVE_TEXT_SIZE])
{
    snprintf(text, TFOS__COLLECTIVE_TEXT_SIZE, "%s \"%s\"", kinds[descriptor->kind],
             descriptor->name);
    return text;
}

const char *tfos__collective_descriptor_print(const struct tfos__collective_descriptor *descriptor,
                                              char text[TFOS__COLLECTIVE_TEXT_SIZE])
{
    struct tfos__bounded_text out = {.data = text, .capacity = TFOS__COLLECTIVE_TEXT_SIZE};
    tfos__bounded_text_append(&out, "%s \"%s\" (", kinds[descriptor->kind], descriptor->name);
    if (has_reduction(descriptor->kind))
        tfos__bounded_text_append(&out, "%s of ", reductions[descriptor->reduction]);
    if (descriptor->kind != TFOS__COLLECTIVE_BARRIER)
        tfos__bounded_text_append(&out, "%lld %s%s, ", (long long)descriptor->count,
                                  dtypes[descriptor->dtype].name,
                                  descriptor->is_gpu ? " in GPU memory" : "");
    if (descriptor->kind == TFOS__COLLECTIVE_BROADCAST)
        tfos__bounded_text_append(&out, "from rank %d, ", descriptor->root);
    if (descriptor->kind == TFOS__COLLECTIVE_REDUCE_SCATTER)
        tfos__bounded_text_append(&out, "in parts %08x, ",
                                  (unsigned)(descriptor->digest ^ descriptor->digest >> 32));
    tfos__bounded_text_append(&out, "operation %llu)", (unsigned long long)descriptor->sequence);
    return text;
}

static void put(unsigned char *place, uint64_t value)
{
    value = htole64(value);
    memcpy(place, &value, sizeof(value));
}

static uint64_t get(const unsigned char *place)
{
    uint64_t value;
    memcpy(&value, place, sizeof(value));
    return le64toh(value);
}

void tfos__collective_descriptor_encode(const struct tfos__collective_descriptor *descriptor,
                                        unsigned char bytes[TFOS__COLLECTIVE_HEADER_SIZE])
{
    size_t name_size = strlen(descriptor->name);
    const unsigned char small[] = {descriptor->kind,         descriptor->dtype,
                                   descriptor->reduction,    descriptor->root,
                                   (unsigned char)name_size, descriptor->is_gpu};
    memset(bytes, 0, TFOS__COLLECTIVE_HEADER_SIZE);
    memcpy(bytes, MAGIC, 4);
    put(bytes + 4, descriptor->sequence);
    put(bytes + 12, (uint64_t)descriptor->count);
    put(bytes + 20, descriptor->digest);
    memcpy(bytes + 28, small, sizeof(small));
    memcpy(bytes + NAME_AT, descriptor->name, name_size);
}

/// What cannot be, or NULL.
static const char *find_fault(const struct tfos__collective_descriptor *descriptor)
{
    if (descriptor->kind < TFOS__COLLECTIVE_ALL_REDUCE ||
        descriptor->kind > TFOS__COLLECTIVE_BARRIER)
        return "kind";
    if (descriptor->sequence == 0 || descriptor->sequence == UINT64_MAX)
        return "sequence";
    if (descriptor->count < 0 || descriptor->count > COUNT_MAX)
        return "count";
    bool is_barrier = descriptor->kind == TFOS__COLLECTIVE_BARRIER;
    if (is_barrier ? descriptor->dtype != 0 || descriptor->count != 0
                   : tfos__collective_element_size(descriptor->dtype) == 0)
        return "dtype";
    if (has_reduction(descriptor->kind)
            ? descriptor->reduction < TFOS_REDUCE_SUM || descriptor->reduction > TFOS_REDUCE_MAX ||
                  !dtypes[descriptor->dtype].is_reducible
            : descriptor->reduction != 0)
        return "reduction";
    if (descriptor->root >= TFOS_COLLECTIVE_MAX_RANKS ||
        (descriptor->root != 0 && descriptor->kind != TFOS__COLLECTIVE_BROADCAST))
        return "root";
    if (descriptor->is_gpu > 1 || (descriptor->is_gpu != 0 && is_barrier))
        return "place";
    if (descriptor->digest != 0 && descriptor->kind != TFOS__COLLECTIVE_REDUCE_SCATTER)
        return "digest";
    return NULL;
}

enum tfos_status
tfos__collective_descriptor_decode(const unsigned char bytes[TFOS__COLLECTIVE_HEADER_SIZE],
                                   struct tfos__collective_descriptor *descriptor,
                                   struct tfos_error *err)
{
    static const unsigned char zeros[TFOS__COLLECTIVE_NAME_LIMIT + 1];
    size_t name_size = bytes[32];
    const unsigned char *name = bytes + NAME_AT;
    *descriptor = (struct tfos__collective_descriptor){
        .sequence = get(bytes + 4),
        .count = (int64_t)get(bytes + 12),
        .digest = get(bytes + 20),
        .kind = bytes[28],
        .dtype = bytes[29],
        .reduction = bytes[30],
        .root = bytes[31],
        .is_gpu = bytes[33],
    };
    memcpy(descriptor->name, name, name_size);
    const char *fault = NULL;
    if (memcmp(bytes, MAGIC, 4) != 0)
        fault = "beginning";
    else if (memcmp(bytes + 34, zeros, 2) != 0 || memchr(name, '\0', name_size) ||
             memcmp(name + name_size, zeros, sizeof(zeros) - name_size) != 0 ||
             !tfos__text_is_utf8(name, name_size))
        fault = "name";
    else
        fault = find_fault(descriptor);
    if (!fault)
        return TFOS_OK;
    return tfos__fail(err, TFOS_CORRUPT, "collective: the header of a message has no valid %s",
                      fault);
}
