// SPDX-License-Identifier: Apache-2.0
// Words are appended as far as there is room for them.
#include "type_words.h"

#include <stdio.h>
#include <string.h>

static void add(char text[TFOS__VALUE_TEXT_SIZE], const char *word)
{
    size_t used = strlen(text);

    snprintf(text + used, TFOS__VALUE_TEXT_SIZE - used, "%s", word);
}

/// Spark's name of single numbers, dates or times; NULL where it has none.
static const char *find_spark_name(const struct tfos__py_column *column)
{
    static const struct {
        char letter;
        int itemsize;
        const char *name;
    } names[] = {
        {'b', 1, "boolean"}, {'i', 1, "tinyint"}, {'i', 2, "smallint"}, {'i', 4, "int"},
        {'i', 8, "bigint"},  {'f', 4, "float"},   {'f', 8, "double"},
    };
    static const char *const others[] = {
        [TFOS__PLAIN_DATE] = "date",         [TFOS__PLAIN_TIMESTAMP] = "timestamp",
        [TFOS__PLAIN_TIME] = "time",         [TFOS__PLAIN_DURATION] = "interval day to second",
        [TFOS__PLAIN_INTERVAL] = "interval", [TFOS__PLAIN_TEXT] = "string",
        [TFOS__PLAIN_BYTES] = "binary",      [TFOS__PLAIN_DECIMAL] = "decimal",
        [TFOS__PLAIN_STRUCT] = "struct",     [TFOS__PLAIN_MAP] = "map",
    };
    struct tfos__py_value_type elements = tfos__py_value_type_elements(&column->type);

    if (column->plain == TFOS__PLAIN_TIMESTAMP && !column->is_local)
        return "timestamp_ntz";
    if (column->plain < sizeof(others) / sizeof(others[0]) && others[column->plain] != NULL)
        return others[column->plain];
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].letter == elements.letter && names[i].itemsize == elements.itemsize)
            return names[i].name;
    }
    return NULL;
}

static void add_elements(const struct tfos__py_column *column, char text[TFOS__VALUE_TEXT_SIZE])
{
    struct tfos__py_value_type elements = tfos__py_value_type_elements(&column->type);
    const char *name = find_spark_name(column);
    char words[TFOS__VALUE_TEXT_SIZE];

    if (name == NULL)
        tfos__py_value_type_describe(elements.letter != 0 ? &elements : &column->type, words);
    add(text, name != NULL ? name : words);
}

static void add_spark_type(const struct tfos__py_column *column,
                           char text[TFOS__VALUE_TEXT_SIZE])
{
    int depth = tfos__py_value_type_is_sequence(&column->type) ? column->type.dimension_count : 0;
    bool is_list = column->plain == TFOS__PLAIN_LIST || column->plain == TFOS__PLAIN_FIXED_LIST;

    if (is_list && column->child_count == 1) {
        add(text, "array<");
        add_spark_type(&column->children[0], text);
        add(text, ">");
        return;
    }
    for (int i = 0; i < depth; i++)
        add(text, "array<");
    add_elements(column, text);
    for (int i = 0; i < depth; i++)
        add(text, ">");
}

/// What the packer shows as plain columns are Python's lists, numbers, texts and bytes.
static void add_python_type(const struct tfos__py_column *column,
                            char text[TFOS__VALUE_TEXT_SIZE])
{
    struct tfos__py_value_type type = column->type;
    char words[TFOS__VALUE_TEXT_SIZE];

    if (column->plain == TFOS__PLAIN_LIST) {
        add(text, "list of ");
        if (column->child_count == 1)
            add_python_type(&column->children[0], text);
        else
            add(text, "numbers");
        return;
    }
    if (column->plain == TFOS__PLAIN_TEXT || column->plain == TFOS__PLAIN_BYTES)
        type.kind = column->plain == TFOS__PLAIN_TEXT ? TFOS__VALUE_TEXT : TFOS__VALUE_BYTES;
    else if (column->plain == TFOS__PLAIN_BOOL)
        type.kind = TFOS__VALUE_BOOL;
    else if (column->plain == TFOS__PLAIN_INT && column->width == 8)
        type.kind = TFOS__VALUE_INT;
    else if (column->plain == TFOS__PLAIN_FLOAT && column->width == 8)
        type.kind = TFOS__VALUE_FLOAT;
    tfos__py_value_type_describe(&type, words);
    add(text, words);
}

void tfos__py_type_words(const struct tfos__py_column *column, bool is_frame,
                      char text[TFOS__VALUE_TEXT_SIZE])
{
    text[0] = '\0';
    if (is_frame)
        add_spark_type(column, text);
    else
        add_python_type(column, text);
}
