// SPDX-License-Identifier: Apache-2.0
// Which files a name matches: exactly the one that is named, and else what Spark would read.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <tfos/file_list.h>
#include <unistd.h>

#include "base/memory.h"
#include "folder.h"

/// Makes files of these names, divided by spaces; one that ends in "/" becomes a folder.
static void make(const char *names)
{
    char *copy = strdup(names), *rest = copy, *name;
    while ((name = strsep(&rest, " "))) {
        size_t size = strlen(name);
        if (name[size - 1] == '/')
            assert_int_equal(mkdir(name, 0777), 0);
        else
            assert_int_equal(close(open(name, O_WRONLY | O_CREAT | O_EXCL, 0666)), 0);
    }
    free(copy);
}

static void assert_list(const char *name, struct tfos_file_system *system, const char *expected)
{
    struct tfos_error err;
    struct tfos_file_list *list = NULL;
    char text[1024] = "";
    if (tfos_file_list_find(name, system, &list, &err) != TFOS_OK)
        fail_msg("%s: %s", name, err.message);
    for (size_t i = 0; i < tfos_file_list_count(list); i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i > 0 ? " " : "",
                 tfos_file_list_get(list, i));
    tfos_file_list_close(list);
    assert_string_equal(text, expected);
}

static void assert_found(const char *name, const char *expected)
{
    assert_list(name, NULL, expected);
}

static void assert_refused(const char *name, enum tfos_status status, const char *words)
{
    struct tfos_error err = {0};
    struct tfos_file_list *list = NULL;
    assert_int_equal(tfos_file_list_find(name, NULL, &list, &err), status);
    assert_null(list);
    if (!strstr(err.message, words))
        fail_msg("\"%s\" is not in \"%s\"", words, err.message);
}

static void s78_an_exact_name_is_no_pattern(void **state)
{
    (void)state;
    struct folder folder = enter_folder();
    make("a[1] a1 a* ab {x,y} x y b? bc [d]/ [d]/f d/ d/f back\\* back\\x");
    assert_found("a[1]", "a[1]");
    assert_found("a*", "a*");
    assert_found("{x,y}", "{x,y}");
    assert_found("b?", "b?");
    assert_found("back\\*", "back\\*");
    assert_found("[d]/f", "[d]/f");
    assert_found("[d]", "[d]/f");
    assert_found("[d]/*", "[d]/f");
    assert_found("./[d]/f*", "./[d]/f");
    assert_found("a[12]", "a1"); // no such name: a pattern
    assert_found("a\\[1\\]", "a[1]");
    assert_found("back\\\\\\*", "back\\*");
    leave_folder(folder);
}

static void s78_patterns(void **state)
{
    (void)state;
    struct folder folder = enter_folder();
    make("a-1 a-2 a-10 b-1 \xE6\x97\xA5 \xC3\xA9 \xFF p/ p/1 p/2 q/ q/1 q/r/ q/r/1 x.gz x.bz2");
    assert_found("a-?", "a-1 a-2");
    assert_found("a-*", "a-1 a-10 a-2");
    assert_found("*-1", "a-1 b-1");
    assert_found("[!a]-1", "b-1");
    assert_found("[^a]-1", "b-1");
    assert_found("[a-b]-[1-2]", "a-1 a-2 b-1");
    assert_found("{a-1,b-*,nothing}", "a-1 b-1");
    assert_found("{a,{b,c}}-1", "a-1 b-1");
    assert_found("{p/1,q/?}", "p/1 q/1 q/r/1"); // a folder means its files
    assert_found("{a-*,*-1}", "a-1 a-10 a-2 b-1");
    assert_found("x.{gz,bz2}", "x.bz2 x.gz");
    assert_found("[\xC3\xA0-\xC3\xBF]", "\xC3\xA9");
    assert_found("?", "p/1 p/2 q/1 \xC3\xA9 \xE6\x97\xA5 \xFF");
    assert_found("*/1", "p/1 q/1");
    assert_found("[pq]", "p/1 p/2 q/1");
    assert_found("**/r*", "q/r/1");
    assert_found("a-*[0]", "a-10");
    assert_refused("a-[", TFOS_NOT_FOUND, "there is no file in or for a-[");
    assert_refused("{a-9,b-9", TFOS_NOT_FOUND, "there is no file in or for {a-9,b-9");
    assert_refused("none/*", TFOS_NOT_FOUND, "there is no file in or for none/*");
    leave_folder(folder);
}

static void s78_uris_of_this_machine(void **state)
{
    (void)state;
    struct folder folder = enter_folder();
    char name[256], expected[256];
    static const char *const names[] = {"a#b",     "a?b",  "a%b",          "a%zz", "a;b",  "a:b",
                                        "a&b=c@d", "a\\b", "\xE6\x97\xA5", "a[b]", "a%00b"};
    static const char *const prefixes[] = {"file:", "file://", "FILE:///", "file://localhost"};
    make("a b ab");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        make(names[i]);
        for (size_t j = 0; j < sizeof(prefixes) / sizeof(prefixes[0]); j++) {
            snprintf(name, sizeof(name), "%s%s/%s", prefixes[j], folder.path, names[i]);
            snprintf(expected, sizeof(expected), "%s%s/%s", j == 2 ? "/" : "", folder.path,
                     names[i]);
            assert_found(name, expected);
        }
    }
    assert_refused("file://elsewhere/a", TFOS_INVALID, "names the host elsewhere");
    assert_int_equal(setenv("JAVA_HOME", folder.path, 1), 0); // Hadoop's file systems need a Java
    assert_refused("hdfs://host:1/a", TFOS_UNSUPPORTED, "no libjvm.so is in JAVA_HOME");
    assert_refused("s3://bucket", TFOS_UNSUPPORTED, folder.path);
    assert_found("file:a", "file:a"); // no URI: there is no slash
    assert_found("c:/a", "c:/a");
    leave_folder(folder);
}

static void s78_percent_encoded_or_not(void **state)
{
    (void)state;
    struct folder folder = enter_folder();
    char name[256], expected[256];
    make("x#y 50%25 both%20 p%2A p/ p/a#1 p/a#2 q*r qxr");
    assert_int_equal(close(open("a b", O_WRONLY | O_CREAT | O_EXCL, 0666)), 0);
    assert_int_equal(close(open("both ", O_WRONLY | O_CREAT | O_EXCL, 0666)), 0);
    static const char *const pairs[][2] = {{"a%20b", "a b"},   {"x%23y", "x#y"},
                                           {"50%25", "50%25"}, {"50%2525", "50%25"},
                                           {"p%2A", "p%2A"},   {"q%2Ar", "q*r"}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        snprintf(name, sizeof(name), "file://%s/%s", folder.path, pairs[i][0]);
        snprintf(expected, sizeof(expected), "%s/%s", folder.path, pairs[i][1]);
        assert_found(name, expected);
    }
    snprintf(name, sizeof(name), "file://%s/p/a%%23?", folder.path);
    snprintf(expected, sizeof(expected), "%s/p/a#1 %s/p/a#2", folder.path, folder.path);
    assert_found(name, expected);
    snprintf(name, sizeof(name), "file://%s/q%%2Ar", folder.path); // what is encoded is no pattern
    assert_int_equal(unlink("q*r"), 0);
    assert_found(name, name + strlen("file://")); // and opening it will say so
    snprintf(name, sizeof(name), "file://%s/both%%20", folder.path);
    assert_refused(name, TFOS_INVALID, "are there: give the path without \"file:\"");
    snprintf(name, sizeof(name), "%s/a%%20b", folder.path); // a path is never decoded
    assert_found(name, name);
    leave_folder(folder);
}

static void s79_hidden_files_are_passed_over(void **state)
{
    (void)state;
    struct folder folder = enter_folder();
    make("out/ out/part-0 out/part-1 out/_SUCCESS out/.part-0.crc out/_tfos_schema.json "
         "out/.part-2.inprogress out/part-3._COPYING_ out/_temporary/ out/_temporary/part-4 "
         "out/.staging/ out/.staging/part-5 out/k=1/ out/k=1/part-6 out/_k=1/ out/_k=1/part-7 "
         "out/_metadata hidden/ hidden/_SUCCESS folders/ folders/k=0/ folders/k=0/part-0 empty/");
    assert_found("out", "out/part-0 out/part-1");
    assert_found("out/", "out/part-0 out/part-1");
    assert_found("out/part*", "out/part-0 out/part-1");
    assert_found("out/*", "out/_k=1/part-7 out/k=1/part-6 out/part-0 out/part-1");
    assert_found("out/*/*", "out/_k=1/part-7 out/k=1/part-6");
    assert_found("*/part-*", "out/part-0 out/part-1");
    assert_found("out/_SUCCESS", "out/_SUCCESS"); // exactly this one
    assert_found("out/.part-0.crc", "out/.part-0.crc");
    assert_found("out/_temporary", "out/_temporary/part-4");
    assert_found("out/_temporary/*", "out/_temporary/part-4");
    assert_found("out/part-3._COPYING_", "out/part-3._COPYING_");
    assert_refused("out/_S*", TFOS_NOT_FOUND, "but hidden ones");
    assert_refused("hidden", TFOS_NOT_FOUND, "but hidden ones");
    assert_refused("folders", TFOS_NOT_FOUND, "only folders");
    assert_refused("empty", TFOS_NOT_FOUND, "there is no file in or for empty");
    leave_folder(folder);
}

static void links_and_special_files(void **state)
{
    (void)state;
    struct folder folder = enter_folder();
    make("real d/");
    assert_int_equal(symlink("../real", "d/link"), 0);
    assert_int_equal(symlink("nowhere", "d/broken"), 0); // opening it says so
    assert_int_equal(symlink("..", "d/up"), 0);
    assert_int_equal(mkfifo("d/pipe", 0666), 0);
    assert_found("d", "d/broken d/link");
    assert_found("d/pipe", "d/pipe");
    assert_refused("d/pip*", TFOS_NOT_FOUND, "there is no file");
    leave_folder(folder);
}

static void files_that_are_written(void **state)
{
    (void)state;
    static const char *const good[][2] = {{"a b#c?%41", "a b#c?%41"},
                                          {"file:/a b#c?[1]%", "/a b#c?[1]%"},
                                          {"file:///a", "/a"},
                                          {"file://localhost/a", "/a"}};
    struct tfos_error err = {0};
    const char *path = NULL;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_done(tfos_file_name_get_new(good[i][0], &path, &err));
        assert_string_equal(path, good[i][1]);
    }
    assert_done(tfos_file_name_get_new("hdfs://host/a#b", &path, &err));
    assert_null(path);
    path = "kept";
    assert_int_equal(tfos_file_name_get_new("file:///a%20b", &path, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "/a b if it is percent-encoded"));
    assert_non_null(strstr(err.message, "give the path without"));
    assert_int_equal(tfos_file_name_get_new("hdfs://host/a%20b", &path, &err), TFOS_INVALID);
    assert_non_null(strstr(err.message, "give the file object"));
    assert_int_equal(tfos_file_name_get_new("file://host/a", &path, &err), TFOS_INVALID);
    assert_string_equal(path, "kept");
}

/// Two files of another file system, and a folder of them.
static enum tfos_status look(struct tfos_file_system *system, const char *name,
                             struct tfos_file_info *info, struct tfos_error *err)
{
    (void)system;
    (void)err;
    info->kind = strcmp(name, "far://host/d") == 0 ? TFOS_FILE_FOLDER
                 : strcmp(name, "far://host/d/a b") == 0 || strcmp(name, "far://host/d/#?") == 0
                     ? TFOS_FILE_REGULAR
                     : TFOS_FILE_NONE;
    return TFOS_OK;
}

static enum tfos_status list(struct tfos_file_system *system, const char *folder,
                             tfos_file_taker *take, void *entries, struct tfos_error *err)
{
    static const char *const names[] = {"a b", "_b", "#?"};
    static const struct tfos_file_info above = {.kind = TFOS_FILE_FOLDER};
    static const struct tfos_file_info file = {.kind = TFOS_FILE_REGULAR};
    enum tfos_status status = TFOS_OK;
    (void)system;
    if (strcmp(folder, "far://host/") == 0)
        return take(entries, "d", &above, err);
    for (size_t i = 0; status == TFOS_OK && i < 3 && strcmp(folder, "far://host/d") == 0; i++)
        status = take(entries, names[i], &file, err);
    return status;
}

static void another_file_system(void **state)
{
    struct tfos_file_system far = {.look = look, .list = list};
    struct tfos_error err = {0};
    struct tfos_file_list *found = NULL;
    (void)state;
    assert_list("far://host/d", &far, "far://host/d/#? far://host/d/a b");
    assert_list("far://host/d/*b", &far, "far://host/d/a b");
    assert_list("far://host/?/#?", &far, "far://host/d/#?");
    assert_list("far://host/d/a%20b", &far, "far://host/d/a b");
    assert_int_equal(tfos_file_list_find("far://host/none", &far, &found, &err), TFOS_NOT_FOUND);
    assert_non_null(strstr(err.message, "far://host/none"));
}

static void too_many_alternatives(void **state)
{
    (void)state;
    struct folder folder = enter_folder();
    char name[128] = "";
    for (int i = 0; i < 17; i++)
        snprintf(name + strlen(name), sizeof(name) - strlen(name), "{a,b}");
    assert_refused(name, TFOS_INVALID, "more than 65536 alternatives");
    leave_folder(folder);
}

/// Wherever memory ends, that is said, and nothing is lost.
static void no_memory(void **state)
{
    (void)state;
    struct folder folder = enter_folder();
    struct tfos_error err;
    char name[128];
    make("p/ p/a p/b q/ q/a");
    snprintf(name, sizeof(name), "file://%s/{p,q}%%2A/../[pq]/*", folder.path);
    enum tfos_status status = TFOS_NO_MEMORY;
    for (long n = 1; status == TFOS_NO_MEMORY; n++) {
        struct tfos_file_list *list = NULL;
        tfos__memory_fail_at(n);
        status = tfos_file_list_find("{p,q}/*", NULL, &list, &err);
        tfos__memory_fail_at(0);
        tfos_file_list_close(list);
    }
    assert_int_equal(status, TFOS_OK);
    status = TFOS_NO_MEMORY;
    for (long n = 1; status == TFOS_NO_MEMORY; n++) {
        struct tfos_file_list *list = NULL;
        tfos__memory_fail_at(n);
        status = tfos_file_list_find(name, NULL, &list, &err);
        tfos__memory_fail_at(0);
        tfos_file_list_close(list);
    }
    assert_int_equal(status, TFOS_NOT_FOUND);
    leave_folder(folder);
}

static void s81_names_in_one_text(void **state)
{
    (void)state;
    static const struct {
        const char *names;
        size_t first;
    } texts[] = {{"a,b", 1},           {"a", 1},    {"", 0},    {",a", 0}, {"{a,b},c", 5},
                 {"x{a,{b,c}},d", 10}, {"a},b", 2}, {"{a,b", 4}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        assert_int_equal(tfos_file_names_first(texts[i].names), texts[i].first);
}

static void names_that_are_hidden(void **state)
{
    (void)state;
    static const char *const hidden[] = {"_SUCCESS", ".a", "_", ".", "a._COPYING_", "._COPYING_"};
    static const char *const seen[] = {"a", "a_", "_a=1", "a.", "a._COPYING_b"};
    for (size_t i = 0; i < sizeof(hidden) / sizeof(hidden[0]); i++)
        assert_true(tfos_file_name_is_hidden(hidden[i]));
    for (size_t i = 0; i < sizeof(seen) / sizeof(seen[0]); i++)
        assert_false(tfos_file_name_is_hidden(seen[i]));
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(s78_an_exact_name_is_no_pattern),
    cmocka_unit_test(s78_patterns),
    cmocka_unit_test(s78_uris_of_this_machine),
    cmocka_unit_test(s78_percent_encoded_or_not),
    cmocka_unit_test(s79_hidden_files_are_passed_over),
    cmocka_unit_test(links_and_special_files),
    cmocka_unit_test(files_that_are_written),
    cmocka_unit_test(another_file_system),
    cmocka_unit_test(too_many_alternatives),
    cmocka_unit_test(no_memory),
    cmocka_unit_test(s81_names_in_one_text),
    cmocka_unit_test(names_that_are_hidden),
};

TEST_MAIN(cases)
