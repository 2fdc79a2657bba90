// SPDX-License-Identifier: Apache-2.0
/// Typed access to members of a JSON object (Jansson), with errors that name the key and what was
/// expected. Returned strings are borrowed from the object.
#ifndef TFOS_BASE_JSON_H
#define TFOS_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <tfos/status.h>

/// INVALID when the key is missing or of another type, or the number is outside [min, max].
enum tfos_status tfos__json_get_string(const json_t *object, const char *key, const char **out,
                                       struct tfos_error *err);
enum tfos_status tfos__json_get_int(const json_t *object, const char *key, int64_t min, int64_t max,
                                    int64_t *out, struct tfos_error *err);

/// The member, or `fallback` when it is missing, null or of another type.
const char *tfos__json_string_or(const json_t *object, const char *key, const char *fallback);
int64_t tfos__json_int_or(const json_t *object, const char *key, int64_t fallback);
bool tfos__json_bool_or(const json_t *object, const char *key, bool fallback);

/// Parses one JSON object of `size` bytes. CORRUPT with the position of the fault.
enum tfos_status tfos__json_parse(const char *text, size_t size, json_t **out,
                                  struct tfos_error *err);

/// Compact text of a value, ended by NUL; the caller frees it with tfos__free(). NULL when out of
/// memory.
char *tfos__json_text(const json_t *value);

/// The same for a value that is taken over, into `*out`. NO_MEMORY, as tfos__no_memory() puts it,
/// also for NULL, so that the maker of a value need not look.
enum tfos_status tfos__json_print(json_t *value, const char *module, const char *what, char **out,
                                  struct tfos_error *err);

/// A string of `size` bytes of any kind (tfos__text_repair()); NULL when out of memory.
json_t *tfos__json_repaired(const char *data, size_t size);

#endif
