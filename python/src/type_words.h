// SPDX-License-Identifier: Apache-2.0
/// Types of columns in words, for messages: Spark's of a DataFrame's columns, else Python's and
/// numpy's.
#ifndef TFOS_PYTHON_TYPE_WORDS_H
#define TFOS_PYTHON_TYPE_WORDS_H

#include "row_schema.h"

/// "array<int>", "list of 784 float".
void tfos__py_type_words(const struct tfos__py_column *column, bool is_frame,
                      char text[TFOS__VALUE_TEXT_SIZE]);

#endif
