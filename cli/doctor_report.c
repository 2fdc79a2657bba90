// SPDX-License-Identifier: Apache-2.0
#include "doctor_report.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "value_text.h"

void report_add(struct report *report, enum outcome outcome, const char *name, const char *remedy,
                const char *format, ...)
{
    static const char *const states[] = {"ok", "note", "missing"};
    char detail[2 * TEXT_SIZE + 64];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(detail, sizeof(detail), format, arguments);
    va_end(arguments);
    json_t *check = json_pack("{s:s, s:s, s:o}", "name", name, "state", states[outcome], "detail",
                              text_to_json(detail));
    if (remedy && outcome != FOUND)
        json_object_set_new(check, "remedy", text_to_json(remedy));
    json_array_append_new(report->checks, check);
    if (outcome == MISSING)
        report->has_all = false;
}

const char *variable(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

const char *text_of(const json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

static bool begins_with_one(const char *name, const char *const *prefixes)
{
    while (*prefixes && strncmp(name, *prefixes, strlen(*prefixes)) != 0)
        prefixes++;
    return *prefixes;
}

bool find_jar(const char *spark_home, const char *const *prefixes, char *name, size_t capacity)
{
    char path[TEXT_SIZE];
    snprintf(path, sizeof(path), "%s/jars", spark_home ? spark_home : "");
    DIR *folder = spark_home ? opendir(path) : NULL;
    bool is_found = false;
    const struct dirent *entry;
    while (folder && !is_found && (entry = readdir(folder))) {
        is_found = begins_with_one(entry->d_name, prefixes);
        if (is_found)
            snprintf(name, capacity, "%s", entry->d_name);
    }
    if (folder)
        closedir(folder);
    return is_found;
}
