// SPDX-License-Identifier: Apache-2.0
// Where Hadoop's jars and the JVM are looked for.
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <tfos/file_system.h>
#include <unistd.h>

#include "base/memory.h"
#include "folder.h"
#include "io/class_path.h"

static void touch(const char *name)
{
    assert_int_equal(close(open(name, O_WRONLY | O_CREAT, 0777)), 0);
}

static void set(const char *name, const char *value)
{
    assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

/// A folder with an empty environment, in which there is a Spark, whose jars are not only Hadoop's.
static struct folder begin(void)
{
    static const char *const names[] = {"CLASSPATH",  "HADOOP_HOME",     "HADOOP_PREFIX",
                                        "SPARK_HOME", "HADOOP_CONF_DIR", "YARN_CONF_DIR"};
    struct folder folder = enter_folder();
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        set(names[i], NULL);
    set("PATH", folder.path);
    assert_int_equal(mkdir("spark", 0777) | mkdir("spark/jars", 0777) | mkdir("conf", 0777), 0);
    touch("spark/jars/a.jar");
    touch("spark/jars/scala-library-2.13.18.jar"); // which Hadoop does not need
    touch("spark/jars/spark-core_2.13-4.3.0.jar");
    touch("spark/jars/hadoop-client-api-3.5.0.jar");
    touch("spark/jars/harness.jar");
    set("HADOOP_CONF_DIR", "conf");
    return folder;
}

static void assert_path(const char *expected)
{
    struct tfos_error err;
    char *path = NULL;
    assert_done(tfos__io_class_path_find(&path, &err));
    assert_string_equal(path, expected);
    tfos__free(path);
}

#define SPARK "spark/jars/hadoop-client-api-3.5.0.jar:spark/jars/a.jar:spark/jars/harness.jar"
// Whoever names jars has them all.
#define NAMED                                                                                      \
    "spark/jars/hadoop-client-api-3.5.0.jar:spark/jars/a.jar:spark/jars/scala-library-2.13.18.jar" \
    ":spark/jars/spark-core_2.13-4.3.0.jar:spark/jars/harness.jar"

static void nothing_is_there(void **state)
{
    struct folder folder = begin();
    struct tfos_error err = {0};
    char *path = NULL;
    (void)state;
    assert_int_equal(tfos__io_class_path_find(&path, &err), TFOS_UNSUPPORTED);
    assert_non_null(strstr(err.message, "HADOOP_HOME"));
    assert_false(tfos_hadoop_is_configured());
    set("CLASSPATH", "spark/jars/a.jar"); // of something else
    set("SPARK_HOME", "conf");
    assert_int_equal(tfos__io_class_path_find(&path, &err), TFOS_UNSUPPORTED);
    leave_folder(folder);
}

static void jars_that_are_given_come_last(void **state)
{
    struct folder folder = begin();
    struct tfos_error err;
    (void)state;
    assert_done(tfos_hadoop_set_jars("spark/jars", &err));
    assert_path("conf:" SPARK);
    assert_false(tfos_hadoop_is_configured());
    set("SPARK_HOME", "./spark");
    assert_path("conf:./spark/jars/hadoop-client-api-3.5.0.jar:./spark/jars/a.jar:"
                "./spark/jars/harness.jar");
    assert_true(tfos_hadoop_is_configured());
    assert_done(tfos_hadoop_set_jars(NULL, &err));
    leave_folder(folder);
}

static void a_class_path_is_expanded(void **state)
{
    struct folder folder = begin();
    (void)state;
    set("CLASSPATH", "here::spark/jars/*:there");
    assert_path("conf:here:" NAMED ":there");
    leave_folder(folder);
}

static void hadoop_tells_its_own(void **state)
{
    static const char script[] = "#!/bin/sh\necho \"etc:spark/jars/*:$1\"\n";
    struct folder folder = begin();
    int fd;
    (void)state;
    assert_int_equal(mkdir("home", 0777) | mkdir("home/bin", 0777), 0);
    fd = open("home/bin/hadoop", O_WRONLY | O_CREAT, 0777);
    assert_int_equal(write(fd, script, sizeof(script) - 1), sizeof(script) - 1);
    assert_int_equal(close(fd), 0);
    set("HADOOP_HOME", "home");
    assert_path("conf:etc:" NAMED ":classpath");
    set("HADOOP_HOME", NULL);
    set("PATH", "home/bin");
    assert_path("conf:etc:" NAMED ":classpath");
    leave_folder(folder);
}

static void the_jvm_of_java_home(void **state)
{
    struct folder folder = begin();
    struct tfos_error err = {0};
    char *library = NULL;
    (void)state;
    set("JAVA_HOME", "java");
    assert_int_equal(tfos__io_jvm_library_find(&library, &err), TFOS_UNSUPPORTED);
    assert_non_null(strstr(err.message, "no libjvm.so is in JAVA_HOME, java"));
    assert_int_equal(mkdir("java", 0777) | mkdir("java/lib", 0777) | mkdir("java/lib/server", 0777),
                     0);
    touch("java/lib/server/libjvm.so");
    assert_done(tfos__io_jvm_library_find(&library, &err));
    assert_string_equal(library, "java/lib/server/libjvm.so");
    tfos__free(library);
    leave_folder(folder);
}

static const struct CMUnitTest cases[] = {
    cmocka_unit_test(nothing_is_there),         cmocka_unit_test(jars_that_are_given_come_last),
    cmocka_unit_test(a_class_path_is_expanded), cmocka_unit_test(hadoop_tells_its_own),
    cmocka_unit_test(the_jvm_of_java_home),
};

TEST_MAIN(cases)
