// SPDX-License-Identifier: Apache-2.0
/// tfos doctor: what this machine has of what a cluster needs, and what to type to get the rest.
/// Nothing is imported or changed: versions come from package metadata and from the programs
/// themselves.
#include <fcntl.h>
#include <jansson.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <tfos.h>
#include <unistd.h>

#include "commands.h"
#include "doctor_managers.h"
#include "doctor_report.h"
#include "program.h"

#define PROGRAM_TIMEOUT_MS 30000

static void check_java(struct report *report)
{
    char path[TEXT_SIZE], text[TEXT_SIZE];
    const char *home = variable("JAVA_HOME");
    snprintf(path, sizeof(path), "%s%s", home ? home : "", home ? "/bin/java" : "java");
    char option[] = "-version";
    char *argv[] = {path, option, NULL};
    if (run_program(argv, PROGRAM_TIMEOUT_MS, text, sizeof(text))) {
        report_add(report, FOUND, "java", NULL, "%.*s (%s)", (int)strcspn(text, "\n"), text, path);
    } else if (home) {
        report_add(report, MISSING, "java", "unset JAVA_HOME, or set it to the folder of a JDK",
                   "JAVA_HOME is %s, but %s does not run", home, path);
    } else {
        report_add(report, MISSING, "java", "apt-get install openjdk-17-jre-headless",
                   "no java in PATH, and JAVA_HOME is not set");
    }
}

/// Asks a Python for the versions of packages without importing them; find_spec() of a top-level
/// package only looks.
static const char question[] =
    "import importlib.metadata as m, importlib.util as u, json, os, sys\n"
    "def version(*names):\n"
    "    for name in names:\n"
    "        try:\n"
    "            return name + ' ' + m.version(name)\n"
    "        except m.PackageNotFoundError:\n"
    "            pass\n"
    "spec = u.find_spec('pyspark')\n"
    "print(json.dumps({'python': sys.version.split()[0], 'executable': sys.executable,\n"
    "    'spark': version('pyspark', 'pyspark-client', 'pyspark-connect'),\n"
    "    'spark_home': os.path.dirname(spec.origin) if spec and spec.origin else None,\n"
    "    'tensorflow': version('tensorflow', 'tensorflow-cpu', 'tf-nightly', 'tf-nightly-cpu',\n"
    "        'tensorflow-intel', 'tensorflow-rocm', 'tensorflow-macos', 'tensorflow-aarch64'),\n"
    "    'keras': version('keras', 'keras-nightly'), 'tf_keras': version('tf-keras', 'tf_keras'),\n"
    "    'tensorboard': version('tensorboard'), 'jinja2': version('Jinja2'),\n"
    "    'tfos': version('tfos')}))\n";

/// What Python answered, an object that the caller owns; NULL when it does not run.
static json_t *check_python(struct report *report)
{
    char python[TEXT_SIZE], text[TEXT_SIZE], code[sizeof(question)], option[] = "-c";
    const char *chosen = variable("PYSPARK_PYTHON");
    if (chosen)
        snprintf(python, sizeof(python), "%s", chosen);
    else
        choose_python(python, sizeof(python));
    memcpy(code, question, sizeof(question));
    char *argv[] = {python, option, code, NULL};
    json_t *answer = NULL;
    if (run_program(argv, PROGRAM_TIMEOUT_MS, text, sizeof(text))) {
        json_error_t cause;
        const char *start = strchr(text, '{'); // behind what a start-up file may print
        answer = start ? json_loads(start, JSON_DISABLE_EOF_CHECK, &cause) : NULL;
    }
    if (answer)
        report_add(report, FOUND, "python", NULL, "%s (%s)", text_of(answer, "python"),
                   text_of(answer, "executable"));
    else
        report_add(report, MISSING, "python",
                   chosen ? "set PYSPARK_PYTHON to a Python 3.9 or later"
                          : "apt-get install python3",
                   "%s%s does not run, or is older than Python 3.8",
                   chosen ? "PYSPARK_PYTHON: " : "", python);
    return answer;
}

/// "<python> -m pip install <package>", or for a machine without Python the part that is sure.
static void pip_remedy(const json_t *answer, const char *package, char *text, size_t capacity)
{
    const char *python = text_of(answer, "executable");
    snprintf(text, capacity, "%s -m pip install %s", python ? python : "python3", package);
}

static void check_spark(struct report *report, const json_t *answer)
{
    char path[TEXT_SIZE], remedy[TEXT_SIZE];
    const char *home = variable("SPARK_HOME");
    const char *package = text_of(answer, "spark");
    const char *folder = text_of(answer, "spark_home");
    pip_remedy(answer, "pyspark", remedy, sizeof(remedy));
    if (home) {
        snprintf(path, sizeof(path), "%s/bin/spark-submit", home);
        bool is_there = access(path, X_OK) == 0;
        report_add(report, is_there ? FOUND : MISSING, "spark",
                   "unset SPARK_HOME, or set it to the folder of a Spark distribution",
                   "SPARK_HOME is %.2000s%s%s%s", home,
                   is_there ? "" : ", but it has no bin/spark-submit", package ? "; " : "",
                   package ? package : "");
    } else if (package) {
        report_add(report, FOUND, "spark", NULL, "%s (%s)", package, folder ? folder : "?");
    } else {
        report_add(report, MISSING, "spark", remedy,
                   "no pyspark for this Python, and SPARK_HOME is not set");
    }
}

static void check_package(struct report *report, const json_t *answer, enum outcome otherwise,
                          const char *key, const char *package)
{
    char remedy[TEXT_SIZE];
    const char *version = text_of(answer, key);
    pip_remedy(answer, package, remedy, sizeof(remedy));
    report_add(report, version ? FOUND : otherwise, key, remedy, "%s",
               version ? version : "not installed for this Python");
}

/// Which Keras trains on several workers, and by what.
static void check_keras(struct report *report, const json_t *answer)
{
    char remedy[TEXT_SIZE];
    const char *keras = text_of(answer, "keras"), *legacy = text_of(answer, "tf_keras");
    const char *version = keras ? strchr(keras, ' ') : NULL;
    char *rest = NULL;
    long major = version ? strtol(version, &rest, 10) : 0;
    long minor = rest && *rest == '.' ? strtol(rest + 1, NULL, 10) : 0;
    if (!keras) {
        pip_remedy(answer, "keras", remedy, sizeof(remedy));
        report_add(report, NOTE, "keras", remedy, "not installed for this Python");
    } else if (major > 3 || (major == 3 && minor >= 5)) {
        report_add(report, FOUND, "keras", NULL,
                   "%s: fits on several workers by tensorflowonspark.keras.distribute; %s%s", keras,
                   legacy ? legacy
                          : "fit under tf.distribute takes tf_keras, which is not installed",
                   legacy ? " fits under tf.distribute" : "");
    } else {
        pip_remedy(answer, "'keras>=3.5'", remedy, sizeof(remedy));
        report_add(
            report, NOTE, "keras", remedy,
            "%s: tensorflowonspark.keras.distribute takes Keras 3.5 or later, on TensorFlow 2.16 "
            "or later%s",
            keras, major == 2 ? "; this one fits under tf.distribute" : "");
    }
}

static void check_hadoop(struct report *report, const char *spark_home)
{
    static const char *const prefixes[] = {"hadoop-client-api-", "hadoop-common-", NULL};
    char jar[256];
    const char *home = variable("HADOOP_HOME");
    const char *configuration = variable("HADOOP_CONF_DIR");
    bool has_jar = find_jar(spark_home, prefixes, jar, sizeof(jar));
    bool is_usable = (home || has_jar) && (!configuration || access(configuration, R_OK) == 0);
    report_add(report, is_usable ? FOUND : NOTE, "hadoop",
               "set HADOOP_CONF_DIR to the folder of core-site.xml (needed for hdfs:// only)",
               "%s%s; HADOOP_HOME %.1000s; HADOOP_CONF_DIR %.1000s",
               has_jar ? "client in Spark: " : "no client", has_jar ? jar : "",
               home ? home : "not set", configuration ? configuration : "not set");
}

static void check_gpus(struct report *report)
{
    struct tfos_error err;
    struct tfos_gpu *gpus = NULL;
    size_t count = 0;
    char detail[TEXT_SIZE];
    if (tfos_gpu_list(&gpus, &count, &err) < 0) {
        report_add(report, NOTE, "gpu", NULL, "%s", err.message);
        return;
    }
    size_t size = (size_t)snprintf(detail, sizeof(detail), "%zu", count);
    for (size_t i = 0; i < count && size < sizeof(detail); i++)
        size += (size_t)snprintf(detail + size, sizeof(detail) - size, "%s%s", i ? ", " : ": ",
                                 gpus[i].name);
    report_add(report, count > 0 ? FOUND : NOTE, "gpu", NULL, "%s", detail);
    tfos_free(gpus);
}

static void check_machine(struct report *report)
{
    cpu_set_t cores;
    int count = sched_getaffinity(0, sizeof(cores), &cores) == 0
                    ? CPU_COUNT(&cores)
                    : (int)sysconf(_SC_NPROCESSORS_ONLN);
    double page = (double)sysconf(_SC_PAGESIZE) / (1 << 30);
    report_add(report, FOUND, "machine", NULL, "%d cores, %.1f GiB, %.1f GiB free", count,
               (double)sysconf(_SC_PHYS_PAGES) * page, (double)sysconf(_SC_AVPHYS_PAGES) * page);
}

static void print_limit(int resource, char *text, size_t capacity)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
        snprintf(text, capacity, "unlimited");
    else
        snprintf(text, capacity, "%llu", (unsigned long long)limit.rlim_cur);
}

static void check_limits(struct report *report)
{
    struct rlimit files;
    char file_limit[32], process_limit[32];
    print_limit(RLIMIT_NOFILE, file_limit, sizeof(file_limit));
    print_limit(RLIMIT_NPROC, process_limit, sizeof(process_limit));
    bool is_low = getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < 1024;
    report_add(report, is_low ? NOTE : FOUND, "limits", "ulimit -n 4096",
               "%s open files, %s processes", file_limit, process_limit);
}

static void check_kernel(struct report *report)
{
    int pidfd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    int memfd = memfd_create("tfos-doctor", MFD_CLOEXEC);
    report_add(
        report, pidfd >= 0 && memfd >= 0 ? FOUND : MISSING, "kernel",
        "Linux 5.3 or later is needed; in a container, its seccomp profile must allow pidfd_open "
        "and memfd_create",
        "pidfd %s, memfd %s", pidfd >= 0 ? "works" : "does not work",
        memfd >= 0 ? "works" : "does not work");
    if (pidfd >= 0)
        close(pidfd);
    if (memfd >= 0)
        close(memfd);
}

/// Opens a rendezvous as a driver would, on `host` (NULL: as by default): what it advertises is
/// what nodes would be given.
static void check_address(struct report *report, const char *name, const char *host,
                          const char *remedy)
{
    char id[64], key[65];
    snprintf(id, sizeof(id), "doctor-%d", (int)getpid());
    memset(key, '0', sizeof(key) - 1);
    key[sizeof(key) - 1] = '\0';
    struct tfos_rendezvous_options options = {
        .cluster_id = id, .key = key, .listen_host = host, .host = host, .node_count = 1};
    struct tfos_rendezvous *rendezvous;
    struct tfos_error err;
    if (tfos_rendezvous_open(&options, &rendezvous, &err) < 0) {
        report_add(report, MISSING, name, remedy, "%s", err.message);
        return;
    }
    report_add(report, FOUND, name, NULL, "a driver here can listen on %.512s",
               tfos_rendezvous_address(rendezvous));
    tfos_rendezvous_close(rendezvous);
}

static void check_addresses(struct report *report)
{
    check_address(report, "loopback", "127.0.0.1", "ip link set lo up");
    check_address(report, "advertised", NULL,
                  "set TFOS_SERVER_HOST to an address of this machine that executors reach, "
                  "TFOS_SERVER_PORT to a free port or range");
}

static void print_text(const struct report *report)
{
    size_t i;
    json_t *check;
    json_array_foreach(report->checks, i, check)
    {
        printf("%-8s %-12s %s\n", text_of(check, "state"), text_of(check, "name"),
               text_of(check, "detail"));
        const char *remedy = text_of(check, "remedy");
        if (remedy)
            printf("%-8s %-12s to get it: %s\n", "", "", remedy);
    }
    puts(report->has_all ? "this machine has what a cluster needs"
                         : "this machine lacks what is marked \"missing\"");
}

static void print_report(const struct report *report)
{
    json_t *whole = json_pack("{s:b, s:O}", "ok", (int)report->has_all, "checks", report->checks);
    char *text = json_dumps(whole, JSON_INDENT(2));
    puts(text ? text : "{}");
    free(text);
    json_decref(whole);
}

int run_doctor(int argc, char **argv)
{
    bool is_json = argc > 0 && strcmp(argv[0], "--json") == 0;
    if (argc > is_json)
        return refuse_usage("doctor does not know \"%s\"", argv[is_json]);
    struct report report = {.checks = json_array(), .has_all = true};
    report_add(&report, FOUND, "tfos", NULL, "%s", tfos_version());
    check_java(&report);
    json_t *answer = check_python(&report);
    check_spark(&report, answer);
    check_package(&report, answer, MISSING, "tensorflow", "tensorflow");
    check_keras(&report, answer);
    check_package(&report, answer, NOTE, "tensorboard", "tensorboard");
    const char *spark_home = variable("SPARK_HOME");
    if (!spark_home)
        spark_home = text_of(answer, "spark_home");
    check_hadoop(&report, spark_home);
    check_managers(&report, spark_home);
    check_package(&report, answer, NOTE, "jinja2", "Jinja2");
    json_decref(answer);
    check_gpus(&report);
    check_machine(&report);
    check_limits(&report);
    check_kernel(&report);
    check_addresses(&report);
    if (is_json)
        print_report(&report);
    else
        print_text(&report);
    json_decref(report.checks);
    return report.has_all ? 0 : 1;
}
