// SPDX-License-Identifier: Apache-2.0
/// tfos status: the clusters whose drivers run on this machine under this user, as a table or as
/// JSON. All figures come from the driver as they are shown: nothing is computed here but units.
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tfos.h>

#include "commands.h"
#include "terminal.h"
#include "watch.h"

#define QUERY_TIMEOUT_MS 2000
#define BAR_WIDTH 16
#define REPORT_WIDTH 78
#define MILLIONS_FROM 1e8 // larger counts are too wide
#define MINUTE 60
#define HOUR 3600
#define GIB 1073741824.0

// ---- the table

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static json_int_t number_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/// Writes a whole number with a comma between each three digits.
static void group_digits(double value, char *text, size_t size)
{
    char digits[32];
    snprintf(digits, sizeof(digits), "%.0f", value < 1e18 ? value : 1e18);
    size_t count = strlen(digits), at = 0;
    for (size_t i = 0; i < count && at + 2 < size; i++) {
        if (i > 0 && (count - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = '\0';
}

/// Writes the member as a grouped number, in millions when it is large; "-" when it is null.
static void format_count(const json_t *object, const char *key, char *text, size_t size)
{
    const json_t *number = json_object_get(object, key);
    double value = json_number_value(number);
    snprintf(text, size, "-");
    if (!json_is_number(number) || value < 0)
        return;
    bool is_large = value >= MILLIONS_FROM;
    group_digits(is_large ? value / 1e6 : value, text, size);
    if (is_large)
        snprintf(text + strlen(text), size - strlen(text), " M");
}

/// Writes the member in another unit; "-" when it is null.
static void format_scaled(const json_t *object, const char *key, double unit, const char *format,
                          char *text, size_t size)
{
    const json_t *number = json_object_get(object, key);
    snprintf(text, size, "-");
    if (json_is_number(number))
        snprintf(text, size, "%.*f%s", strcmp(format, "%") == 0 ? 0 : 1,
                 json_number_value(number) / unit, format);
}

static void print_time_left(FILE *out, double seconds)
{
    long left = seconds < 1e9 ? (long)(seconds + 0.5) : (long)1e9;
    if (left < MINUTE)
        fprintf(out, "  %ld s left", left);
    else if (left < HOUR)
        fprintf(out, "  %ld min %ld s left", left / MINUTE, left % MINUTE);
    else
        fprintf(out, "  %ld h %ld min left", left / HOUR, left % HOUR / MINUTE);
}

/// How far the training is, where that is known.
static void print_bar(FILE *out, const json_t *progress)
{
    const json_t *fraction = json_object_get(progress, "fraction");
    const json_t *seconds = json_object_get(progress, "seconds_left");
    const json_t *partitions = json_object_get(progress, "partitions");
    char bar[BAR_WIDTH + 1] = "";
    if (!json_is_number(fraction))
        return;
    int full = (int)(json_number_value(fraction) * BAR_WIDTH + 0.5);
    full = full < 0 ? 0 : full > BAR_WIDTH ? BAR_WIDTH : full;
    memset(bar, '.', BAR_WIDTH);
    memset(bar, '#', (size_t)full);
    fprintf(out, "  [%s] %3.0f%%  epoch %lld of %lld", bar, json_number_value(fraction) * 100,
            (long long)number_of(progress, "epoch"), (long long)number_of(progress, "epochs"));
    if (json_is_integer(json_object_get(partitions, "total")))
        fprintf(out, "  %lld/%lld partitions", (long long)number_of(partitions, "done"),
                (long long)number_of(partitions, "total"));
    if (json_is_number(seconds))
        print_time_left(out, json_number_value(seconds));
    fputc('\n', out);
}

static const char *name_side(const json_t *object, const char *spark, const char *trainer)
{
    const char *side = text_of(object, "slower");
    return strcmp(side, "spark") == 0 ? spark : strcmp(side, "trainer") == 0 ? trainer : "";
}

/// What a trainer says of itself, as far as a line has room.
static void print_report(FILE *out, const json_t *report)
{
    const char *name;
    json_t *value;
    int column = 0;
    json_object_foreach((json_t *)report, name, value)
    {
        char item[REPORT_WIDTH];
        if (!json_is_number(value))
            continue;
        int size = snprintf(item, sizeof(item), "  %s %.6g", name, json_number_value(value));
        if (size >= REPORT_WIDTH || column + size > REPORT_WIDTH)
            break;
        fputs(item, out);
        column += size;
    }
    if (column > 0)
        fputc('\n', out);
}

/// Which node the others wait for.
static void print_straggler(FILE *out, const json_t *straggler)
{
    const char *cause = text_of(straggler, "cause");
    if (!cause[0])
        return;
    fprintf(out, "  the others wait for %s, %s: %.0f%% of their time\n", text_of(straggler, "node"),
            strcmp(cause, "data") == 0      ? "which waits for data"
            : strcmp(cause, "compute") == 0 ? "which computes longer"
                                            : "whose trainer does not answer",
            json_number_value(json_object_get(straggler, "wait")) * 100);
}

/// How fast rows go, over all nodes; nothing of a cluster that was never fed.
static void print_progress(FILE *out, const json_t *progress)
{
    char rows[32], rate[32], speed[32], fill[32];
    const char *side = name_side(progress, "  waiting for Spark", "  waiting for trainers");
    print_bar(out, progress);
    if (number_of(progress, "rows") > 0 || json_is_true(json_object_get(progress, "feeding"))) {
        format_count(progress, "rows", rows, sizeof(rows));
        format_count(progress, "rows_per_second", rate, sizeof(rate));
        format_scaled(progress, "bytes_per_second", 1e6, " MB/s", speed, sizeof(speed));
        format_scaled(progress, "ring_fill", 0.01, "%", fill, sizeof(fill));
        fprintf(out, "  %s rows  %s rows/s  %s  ring %s%s\n", rows, rate, speed, fill, side);
    }
    print_straggler(out, json_object_get(progress, "straggler"));
    print_report(out, json_object_get(progress, "report"));
}

/// The GPUs of a node: how much of each, and what is used of it, by whomever.
static void print_gpus(FILE *out, const json_t *gpus)
{
    size_t i;
    const json_t *gpu;
    json_array_foreach((json_t *)gpus, i, gpu)
    {
        char used[32], total[32], load[32];
        format_scaled(gpu, "memory_used", GIB, "", used, sizeof(used));
        format_scaled(gpu, "memory_total", GIB, " GiB", total, sizeof(total));
        format_scaled(gpu, "load", 1, "%", load, sizeof(load));
        fprintf(out, "     GPU %s  %s  %.3g%% of it  memory %s of %s  load %s%s%s\n",
                text_of(gpu, "id"), text_of(gpu, "name"),
                json_number_value(json_object_get(gpu, "fraction")) * 100, used, total, load,
                text_of(gpu, "fault")[0] ? "  " : "", text_of(gpu, "fault"));
    }
}

/// What the time of a step is spent on; nothing of a node that takes none.
static void print_steps(FILE *out, const json_t *node)
{
    static const struct {
        const char *key, *name;
    } parts[] = {{"step_compute_ms", "compute"},
                 {"step_exchange_ms", "exchange"},
                 {"step_wait_ms", "other workers"},
                 {"step_data_ms", "data"}};
    char time[32];
    if (!json_is_number(json_object_get(node, "step_ms")))
        return;
    format_scaled(node, "step_ms", 1, " ms", time, sizeof(time));
    fprintf(out, "     step %s:", time);
    for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        format_scaled(node, parts[i].key, 1, "", time, sizeof(time));
        fprintf(out, "  %s %s", parts[i].name, time);
    }
    fputc('\n', out);
    if (!json_is_number(json_object_get(node, "staleness_limit")))
        return;
    char pushed[32], behind[32], staleness[32];
    format_count(node, "steps_pushed", pushed, sizeof(pushed));
    format_count(node, "steps_behind", behind, sizeof(behind));
    format_scaled(node, "staleness", 1, "", staleness, sizeof(staleness));
    fprintf(out, "     asynchronous: %s steps pushed, %s behind, staleness %s of %lld\n", pushed,
            behind, staleness, (long long)number_of(node, "staleness_limit"));
}

static void print_node(FILE *out, const json_t *node)
{
    char name[64], rows[32], rate[32], speed[32], fill[32], age[32];
    const char *job = text_of(node, "job_name");
    const char *side = name_side(node, "Spark", "trainer");
    snprintf(name, sizeof(name), "%s:%lld", job[0] ? job : "?",
             (long long)number_of(node, "task_index"));
    format_count(node, "rows_read", rows, sizeof(rows));
    format_count(node, "rows_per_second", rate, sizeof(rate));
    format_scaled(node, "bytes_per_second", 1e6, "", speed, sizeof(speed));
    format_scaled(node, "ring_fill", 0.01, "%", fill, sizeof(fill));
    format_scaled(node, "heartbeat_age_ms", 1000, " s", age, sizeof(age));
    if (number_of(node, "heartbeat_age_ms") < 0)
        snprintf(age, sizeof(age), "-");
    fprintf(out, "%4lld %-12s %-10s %12s %10s %7s %4s %-7s %6s\n",
            (long long)number_of(node, "executor_id"), name, text_of(node, "state"), rows, rate,
            speed, fill, side[0] ? side : "-", age);
    const char *host = text_of(node, "host"), *words = text_of(node, "exit");
    const char *board = text_of(node, "tensorboard");
    if (host[0])
        fprintf(out, "     %s:%lld\n", host, (long long)number_of(node, "port"));
    if (words[0])
        fprintf(out, "     %s\n", words);
    if (board[0])
        fprintf(out, "     TensorBoard: %s\n", board);
    print_steps(out, node);
    print_gpus(out, json_object_get(node, "gpus"));
}

static void print_cluster(FILE *out, const json_t *cluster)
{
    fprintf(out, "cluster %s  %s  %lld of %lld nodes registered  up %.0f s\n",
            text_of(cluster, "cluster_id"), text_of(cluster, "state"),
            (long long)number_of(cluster, "registered"),
            (long long)number_of(cluster, "node_count"),
            json_number_value(json_object_get(cluster, "uptime_s")));
    fprintf(out, "  driver pid %lld at %s\n", (long long)number_of(cluster, "pid"),
            text_of(cluster, "address"));
    const char *message = text_of(cluster, "message");
    if (message[0])
        fprintf(out, "  %s\n", message);
    print_progress(out, json_object_get(cluster, "progress"));
    fprintf(out, "%4s %-12s %-10s %12s %10s %7s %4s %-7s %6s\n", "ID", "NODE", "STATE", "ROWS",
            "ROWS/S", "MB/S", "RING", "SLOWER", "HEARD");
    size_t i;
    const json_t *node;
    json_array_foreach(json_object_get(cluster, "nodes"), i, node)
    {
        print_node(out, node);
    }
}

static void print_clusters(FILE *out, const json_t *clusters)
{
    size_t i;
    const json_t *cluster;
    json_array_foreach((json_t *)clusters, i, cluster)
    {
        if (i > 0)
            fputc('\n', out);
        print_cluster(out, cluster);
    }
}

// ---- the command

/// The clusters' documents, an array that the caller owns, or NULL after saying why not.
static json_t *query(void *context)
{
    char *text;
    struct tfos_error err;
    (void)context;
    if (tfos_status_query(QUERY_TIMEOUT_MS, &text, &err) < 0) {
        say_error(&err);
        return NULL;
    }
    json_error_t cause;
    json_t *clusters = json_loads(text, 0, &cause);
    tfos_free(text);
    if (!clusters)
        fprintf(stderr, "tfos: a driver's answer cannot be read: %s\n", cause.text);
    return clusters;
}

int run_status(int argc, char **argv)
{
    struct watch_view view = {.command = "status",
                              .query = query,
                              .print = print_clusters,
                              .none = "no cluster runs on this machine under this user (tfos "
                                      "status looks for drivers: type it "
                                      "where the driver runs)"};
    return watch_run(argc, argv, &view);
}
