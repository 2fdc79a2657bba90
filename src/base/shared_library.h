// SPDX-License-Identifier: Apache-2.0
/// Functions of libraries that are loaded while the program runs.
#ifndef TFOS_BASE_SHARED_LIBRARY_H
#define TFOS_BASE_SHARED_LIBRARY_H

#include <stddef.h>

/// A function by its name, and where in a struct the pointer to it is.
struct tfos__library_function {
    const char *name;
    size_t offset;
};

/// Sets the pointers in the struct `pointers` to the functions of `library`, which dlopen() has
/// given; to NULL where it has none. Returns the name of the first that it lacks, NULL if it has
/// all.
const char *tfos__find_functions(void *library, const struct tfos__library_function *functions,
                                 size_t count, void *pointers);

#endif
