// SPDX-License-Identifier: Apache-2.0
#include "doctor_managers.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECT_TIMEOUT_MS 3000
#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount/token"

/// What Spark's environment says.
struct settings {
    const char *spark_home;  ///< may be NULL
    char folder[TEXT_SIZE];  ///< of spark-defaults.conf and spark-env.sh
    char master[TEXT_SIZE];  ///< "" where none is set
    const char *master_from; ///< what sets it
};

/// Of one manager.
struct findings {
    char found[TEXT_SIZE], lacking[TEXT_SIZE];
    const char *remedy; ///< for the first thing that is lacking
};

static void append(char text[TEXT_SIZE], const char *format, va_list arguments)
{
    size_t size = strlen(text);
    if (size > 0)
        size += (size_t)snprintf(text + size, TEXT_SIZE - size, "; ");
    if (size < TEXT_SIZE)
        vsnprintf(text + size, TEXT_SIZE - size, format, arguments);
}

static void has(struct findings *findings, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void has(struct findings *findings, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    append(findings->found, format, arguments);
    va_end(arguments);
}

static void lacks(struct findings *findings, const char *remedy, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void lacks(struct findings *findings, const char *remedy, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    append(findings->lacking, format, arguments);
    va_end(arguments);
    if (!findings->remedy)
        findings->remedy = remedy;
}

static void add_findings(struct report *report, const struct findings *findings, bool is_chosen,
                         const char *name)
{
    bool is_lacking = findings->lacking[0];
    report_add(report,
               !is_lacking ? FOUND
               : is_chosen ? MISSING
                           : NOTE,
               name, findings->remedy, "%s%s%s", findings->lacking,
               is_lacking && findings->found[0] ? "; " : "", findings->found);
}

// ---- Spark's settings

/// Writes the value of a setting of spark-defaults.conf, or false.
static bool read_setting(const char *folder, const char *name, char *value, size_t capacity)
{
    char line[TEXT_SIZE];
    bool is_found = false;
    snprintf(line, sizeof(line), "%.4000s/spark-defaults.conf", folder);
    FILE *file = fopen(line, "re");
    while (file && fgets(line, sizeof(line), file)) {
        const char *start = line + strspn(line, " \t");
        size_t size = strlen(name);
        if (strncmp(start, name, size) != 0 || !strchr(" \t=:", start[size]))
            continue;
        start += size + strspn(start + size, " \t=:");
        size = strcspn(start, "\r\n");
        while (size > 0 && strchr(" \t", start[size - 1]))
            size--;
        snprintf(value, capacity, "%.*s", (int)size, start);
        is_found = true; // the last one counts
    }
    if (file)
        fclose(file);
    return is_found;
}

/// Whether spark-env.sh, which spark-submit reads, has a line that is no comment with `word`.
static bool is_in_spark_env(const char *folder, const char *word)
{
    char line[TEXT_SIZE];
    bool is_found = false;
    snprintf(line, sizeof(line), "%.4000s/spark-env.sh", folder);
    FILE *file = fopen(line, "re");
    while (file && !is_found && fgets(line, sizeof(line), file))
        is_found = line[strspn(line, " \t")] != '#' && strstr(line, word);
    if (file)
        fclose(file);
    return is_found;
}

static void read_settings(struct settings *settings)
{
    const char *folder = variable("SPARK_CONF_DIR"), *master = variable("MASTER");
    if (folder)
        snprintf(settings->folder, sizeof(settings->folder), "%s", folder);
    else if (settings->spark_home)
        snprintf(settings->folder, sizeof(settings->folder), "%s/conf", settings->spark_home);
    if (read_setting(settings->folder, "spark.master", settings->master,
                     sizeof(settings->master))) {
        settings->master_from = "spark-defaults.conf";
    } else if (master) {
        settings->master_from = "MASTER";
        snprintf(settings->master, sizeof(settings->master), "%s", master);
    }
}

static bool is_master(const struct settings *settings, const char *prefix)
{
    return strncmp(settings->master, prefix, strlen(prefix)) == 0;
}

/// What Python executors run.
static void tell_python(struct findings *findings, const struct settings *settings)
{
    char value[512];
    const char *python = variable("PYSPARK_PYTHON");
    if (!python && read_setting(settings->folder, "spark.pyspark.python", value, sizeof(value)))
        python = value;
    has(findings, "executors run %.500s", python ? python : "the python3 of their PATH");
}

static bool has_file(const char *folder, const char *name)
{
    char path[TEXT_SIZE + 64];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return access(path, R_OK) == 0;
}

static void find_module(struct findings *findings, const struct settings *settings,
                        const char *prefix)
{
    const char *const prefixes[] = {prefix, NULL};
    char jar[256];
    if (find_jar(settings->spark_home, prefixes, jar, sizeof(jar)))
        has(findings, "%s", jar);
    else if (settings->spark_home)
        lacks(findings, "take a Spark that has it, as pip's pyspark and the downloads have",
              "this Spark has no %.*s", (int)strlen(prefix) - 1, prefix);
    else
        lacks(findings, NULL, "no Spark");
}

// ---- Standalone

/// Connects to an address of `host`. 0, or what errno says.
static int connect_to(const struct addrinfo *address)
{
    int reason = 0;
    socklen_t size = sizeof(reason);
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return errno;
    if (connect(fd, address->ai_addr, address->ai_addrlen) != 0)
        reason = errno;
    struct pollfd slot = {.fd = fd, .events = POLLOUT};
    if (reason == EINPROGRESS) {
        if (poll(&slot, 1, CONNECT_TIMEOUT_MS) != 1)
            reason = ETIMEDOUT;
        else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &reason, &size) != 0)
            reason = errno;
    }
    close(fd);
    return reason;
}

/// Whether something listens at "HOST:PORT", which ends at `size`; else `reason` says why not.
static bool is_listening(const char *address, size_t size, char *reason, size_t capacity)
{
    char host[256];
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    snprintf(host, sizeof(host), "%.*s", (int)size, address);
    char *port = strrchr(host, ':');
    if (!port) {
        snprintf(reason, capacity, "it has no port");
        return false;
    }
    *port++ = '\0';
    int fault = getaddrinfo(host, port, &hints, &found);
    int error = fault == 0 ? ECONNREFUSED : 0;
    for (const struct addrinfo *one = found; one && error != 0; one = one->ai_next)
        error = connect_to(one);
    if (found)
        freeaddrinfo(found);
    snprintf(reason, capacity, "%s", fault != 0 ? gai_strerror(fault) : strerror(error));
    return fault == 0 && error == 0;
}

static void look_for_master(struct findings *findings, const struct settings *settings)
{
    char reason[256] = "";
    const char *next = settings->master + strlen("spark://");
    bool is_there = false;
    while (!is_there && *next) {
        size_t size = strcspn(next, ",");
        is_there = is_listening(next, size, reason, sizeof(reason));
        next += size + (next[size] == ',');
    }
    if (is_there)
        has(findings, "%.500s answers (set by %s)", settings->master, settings->master_from);
    else
        lacks(findings, "start it by deploy/standalone/start_spark.sh or Spark's start-master.sh",
              "%.500s (set by %s) does not answer: %s", settings->master, settings->master_from,
              reason);
}

static void check_standalone(struct report *report, const struct settings *settings)
{
    struct findings findings = {0};
    bool is_chosen = is_master(settings, "spark://");
    if (is_chosen)
        look_for_master(&findings, settings);
    else if (!settings->spark_home)
        lacks(&findings, NULL, "no Spark");
    else if (has_file(settings->spark_home, "sbin/start-master.sh"))
        has(&findings, "%.1000s/sbin/start-master.sh starts a master", settings->spark_home);
    else
        has(&findings, "deploy/standalone/start_spark.sh starts a master (this Spark has no "
                       "sbin/start-master.sh)");
    tell_python(&findings, settings);
    add_findings(report, &findings, is_chosen, "standalone");
}

// ---- YARN

/// Whether yarn-site.xml says where the resource manager is; by default it says 0.0.0.0.
static bool names_resource_manager(const char *folder)
{
    char line[TEXT_SIZE];
    bool is_found = false;
    snprintf(line, sizeof(line), "%.4000s/yarn-site.xml", folder);
    FILE *file = fopen(line, "re");
    while (file && !is_found && fgets(line, sizeof(line), file))
        is_found = strstr(line, "yarn.resourcemanager.");
    if (file)
        fclose(file);
    return is_found;
}

static void check_yarn(struct report *report, const struct settings *settings)
{
    static const char remedy[] =
        "set HADOOP_CONF_DIR or YARN_CONF_DIR to the folder of yarn-site.xml and core-site.xml";
    static const char *const names[] = {"YARN_CONF_DIR", "HADOOP_CONF_DIR"};
    struct findings findings = {0};
    const char *folder = NULL, *name = NULL;
    find_module(&findings, settings, "spark-yarn_");
    for (size_t i = 0; i < 2 && !folder; i++) {
        folder = variable(names[i]);
        name = names[i];
    }
    if (!folder && (is_in_spark_env(settings->folder, names[0]) ||
                    is_in_spark_env(settings->folder, names[1])))
        has(&findings, "%.1000s/spark-env.sh sets the folder of yarn-site.xml", settings->folder);
    else if (!folder)
        lacks(&findings, remedy, "neither HADOOP_CONF_DIR nor YARN_CONF_DIR is set");
    else if (!has_file(folder, "yarn-site.xml"))
        lacks(&findings, remedy, "%s is %.1000s, which has no yarn-site.xml", name, folder);
    else if (!names_resource_manager(folder))
        lacks(&findings, "have yarn.resourcemanager.hostname in yarn-site.xml",
              "yarn-site.xml in %.1000s names no resource manager", folder);
    else
        has(&findings, "yarn-site.xml in %.1000s", folder);
    tell_python(&findings, settings);
    has(&findings, "--archives can bring it");
    add_findings(report, &findings, is_master(settings, "yarn"), "yarn");
}

// ---- Kubernetes

/// The file that says where the cluster is, or NULL.
static const char *find_kubeconfig(char path[TEXT_SIZE])
{
    const char *list = variable("KUBECONFIG"), *home = variable("HOME");
    if (!list) {
        snprintf(path, TEXT_SIZE, "%s/.kube/config", home ? home : "");
        return access(path, R_OK) == 0 ? path : NULL;
    }
    while (*list) {
        size_t size = strcspn(list, ":");
        snprintf(path, TEXT_SIZE, "%.*s", (int)size, list);
        if (size > 0 && access(path, R_OK) == 0)
            return path;
        list += size + (list[size] == ':');
    }
    return NULL;
}

static bool is_in_path(const char *program)
{
    const char *next = variable("PATH");
    char path[TEXT_SIZE];
    while (next && *next) {
        size_t size = strcspn(next, ":");
        snprintf(path, sizeof(path), "%.*s/%s", (int)size, next, program);
        if (access(path, X_OK) == 0)
            return true;
        next += size + (next[size] == ':');
    }
    return false;
}

static void check_kubernetes(struct report *report, const struct settings *settings)
{
    struct findings findings = {0};
    char path[TEXT_SIZE], image[512];
    bool is_chosen = is_master(settings, "k8s://");
    const char *configuration = find_kubeconfig(path);
    find_module(&findings, settings, "spark-kubernetes_");
    if (configuration)
        has(&findings, "%.1000s", configuration);
    else if (variable("KUBERNETES_SERVICE_HOST") && access(SERVICE_ACCOUNT, R_OK) == 0)
        has(&findings, "the service account of this pod");
    else
        lacks(&findings, "set KUBECONFIG to the file that kubectl has for the cluster", "%s",
              variable("KUBECONFIG") ? "KUBECONFIG names no file that can be read"
                                     : "no ~/.kube/config, and KUBECONFIG is not set");
    if (read_setting(settings->folder, "spark.kubernetes.container.image", image, sizeof(image)))
        has(&findings, "image %s", image);
    else
        has(&findings, "give the image by --conf spark.kubernetes.container.image");
    has(&findings, "%s",
        is_in_path("kubectl") ? "kubectl" : "no kubectl, which takes what tfos deploy prints");
    add_findings(report, &findings, is_chosen, "kubernetes");
}

void check_managers(struct report *report, const char *spark_home)
{
    struct settings settings = {.spark_home = spark_home};
    read_settings(&settings);
    check_standalone(report, &settings);
    check_yarn(report, &settings);
    check_kubernetes(report, &settings);
}
