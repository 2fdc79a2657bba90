// SPDX-License-Identifier: Apache-2.0
/// Types of the elements of tensors.
#ifndef TFOS_DTYPE_H
#define TFOS_DTYPE_H

/// The type of a tensor's elements; a string is bytes of any length.
enum tfos_dtype {
    TFOS_DTYPE_BOOL = 1,
    TFOS_DTYPE_INT8,
    TFOS_DTYPE_INT16,
    TFOS_DTYPE_INT32,
    TFOS_DTYPE_INT64,
    TFOS_DTYPE_UINT8,
    TFOS_DTYPE_UINT16,
    TFOS_DTYPE_UINT32,
    TFOS_DTYPE_UINT64,
    TFOS_DTYPE_FLOAT16,
    TFOS_DTYPE_FLOAT32,
    TFOS_DTYPE_FLOAT64,
    TFOS_DTYPE_STRING,
    TFOS_DTYPE_BFLOAT16
};

#endif
