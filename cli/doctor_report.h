// SPDX-License-Identifier: Apache-2.0
/// What tfos doctor has found, a check after the other.
#ifndef TFOS_CLI_DOCTOR_REPORT_H
#define TFOS_CLI_DOCTOR_REPORT_H

#include <jansson.h>
#include <stdbool.h>

#define TEXT_SIZE 4096

enum outcome {
    FOUND,
    NOTE,   ///< not there, and not needed by everybody
    MISSING ///< needed
};

struct report {
    json_t *checks; ///< an array of {name, state, detail, remedy}
    bool has_all;
};

/// Adds a check; `remedy`, what to do, may be NULL.
void report_add(struct report *report, enum outcome outcome, const char *name, const char *remedy,
                const char *format, ...) __attribute__((format(printf, 5, 6)));

/// Of an environment variable; NULL where it is not set, or empty.
const char *variable(const char *name);

/// A member of a JSON object that is a text, else NULL.
const char *text_of(const json_t *object, const char *key);

/// Writes the name of the first file of Spark's jars in `spark_home` (NULL: there is no Spark) that
/// begins with one of `prefixes`, which NULL ends. False where there is none.
bool find_jar(const char *spark_home, const char *const *prefixes, char *name, size_t capacity);

#endif
