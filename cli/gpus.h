// SPDX-License-Identifier: Apache-2.0
/// The NVIDIA GPUs of this machine, asked of its driver's own library if there is one.
#ifndef TFOS_CLI_GPUS_H
#define TFOS_CLI_GPUS_H

#include <stddef.h>

/// Writes what there is in words ("2: NVIDIA A100, NVIDIA A100", or why there is none) and returns
/// the number of GPUs.
int describe_gpus(char *text, size_t capacity);

#endif
