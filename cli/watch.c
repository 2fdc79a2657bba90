// SPDX-License-Identifier: Apache-2.0
/// tfos status: the clusters whose drivers run on this machine under this user, as a table or as
/// JSON.
#include "commands.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tfos.h>
#include <time.h>
#include <unistd.h>

#define QUERY_TIMEOUT_MS 2000
#define RATE_WINDOW_MS 1000

struct options {
    bool is_json;
    bool is_watching;
};

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static json_int_t number_of(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

/// The clusters' documents, an array that the caller owns, or NULL after saying why not.
static json_t *query(void)
{
    char *text;
    struct tfos_error err;
    if (tfos_status_query(QUERY_TIMEOUT_MS, &text, &err) < 0) {
        fprintf(stderr, "tfos: %s\n", err.message);
        return NULL;
    }
    json_error_t cause;
    json_t *clusters = json_loads(text, 0, &cause);
    tfos_free(text);
    if (!clusters)
        fprintf(stderr, "tfos: a driver's answer cannot be read: %s\n", cause.text);
    return clusters;
}

static const json_t *find(const json_t *items, const char *key, const json_t *value)
{
    size_t i;
    const json_t *item;
    json_array_foreach(items, i, item)
    {
        if (json_equal(json_object_get(item, key), value))
            return item;
    }
    return NULL;
}

/// Rows read a second between two documents of one cluster; negative when they tell nothing.
static double rate_of(const json_t *node, const json_t *earlier_cluster, double seconds)
{
    const json_t *earlier = find(json_object_get(earlier_cluster, "nodes"), "executor_id",
                                 json_object_get(node, "executor_id"));
    if (!earlier || seconds <= 0)
        return -1;
    return (double)(number_of(node, "rows_read") - number_of(earlier, "rows_read")) / seconds;
}

static void print_node(const json_t *node, double rate)
{
    char name[80], place[300], rate_text[24] = "-", fill[24] = "-", age[24] = "-";
    const char *job = text_of(node, "job_name");
    snprintf(name, sizeof name, "%s:%lld", job[0] ? job : "?",
             (long long)number_of(node, "task_index"));
    const char *host = text_of(node, "host");
    if (host[0])
        snprintf(place, sizeof place, "%s:%lld", host, (long long)number_of(node, "port"));
    else
        snprintf(place, sizeof place, "-");
    if (rate >= 0)
        snprintf(rate_text, sizeof rate_text, "%.0f", rate);
    json_int_t size = number_of(node, "ring_size");
    if (size > 0)
        snprintf(fill, sizeof fill, "%lld%%",
                 (long long)(number_of(node, "ring_used") * 100 / size));
    const json_t *heartbeat = json_object_get(node, "heartbeat_age_ms");
    if (json_is_number(heartbeat) && json_number_value(heartbeat) >= 0)
        snprintf(age, sizeof age, "%.1f s", json_number_value(heartbeat) / 1000);
    const char *words = text_of(node, "exit");
    printf("  %-4lld %-13s %-11s %-22s %11lld %9s %6s %10s%s%s\n",
           (long long)number_of(node, "executor_id"), name, text_of(node, "state"), place,
           (long long)number_of(node, "rows_read"), rate_text, fill, age, words[0] ? "  " : "",
           words);
    const char *board = text_of(node, "tensorboard");
    if (board[0])
        printf("       TensorBoard: %s\n", board);
}

static void print_cluster(const json_t *cluster, const json_t *earlier, double seconds)
{
    printf("cluster %s  %s  %lld of %lld nodes registered  up %.0f s  driver pid %lld at %s\n",
           text_of(cluster, "cluster_id"), text_of(cluster, "state"),
           (long long)number_of(cluster, "registered"), (long long)number_of(cluster, "node_count"),
           json_number_value(json_object_get(cluster, "uptime_s")),
           (long long)number_of(cluster, "pid"), text_of(cluster, "address"));
    const char *message = text_of(cluster, "message");
    if (message[0])
        printf("  %s\n", message);
    printf("  %-4s %-13s %-11s %-22s %11s %9s %6s %10s\n", "ID", "NODE", "STATE", "ADDRESS", "ROWS",
           "ROWS/S", "RING", "HEARTBEAT");
    size_t i;
    const json_t *node;
    json_array_foreach(json_object_get(cluster, "nodes"), i, node)
    {
        print_node(node, rate_of(node, earlier, seconds));
    }
}

static void print_clusters(const json_t *clusters, const json_t *earlier, double seconds)
{
    size_t i;
    const json_t *cluster;
    json_array_foreach(clusters, i, cluster)
    {
        if (i > 0)
            printf("\n");
        print_cluster(cluster, find(earlier, "cluster_id", json_object_get(cluster, "cluster_id")),
                      seconds);
    }
}

static void print_json(const json_t *clusters)
{
    char *text = json_dumps(clusters, JSON_INDENT(2));
    puts(text ? text : "[]");
    free(text);
}

static void wait_window(void)
{
    struct timespec window = {.tv_sec = RATE_WINDOW_MS / 1000,
                              .tv_nsec = RATE_WINDOW_MS % 1000 * 1000000};
    nanosleep(&window, NULL);
}

static int say_none(const struct options *options)
{
    if (options->is_json)
        puts("[]");
    else
        puts("no cluster runs on this machine under this user (tfos status looks for drivers: type "
             "it where "
             "the driver runs)");
    return 1;
}

/// Shows the clusters again and again until none is left or the output is closed.
static int watch(const struct options *options, json_t *clusters, double taken_at)
{
    bool is_terminal = isatty(STDOUT_FILENO);
    for (;;) {
        wait_window();
        json_t *newer = query();
        double now = now_s();
        if (!newer || json_array_size(newer) == 0) {
            json_decref(clusters);
            bool has_failed = !newer;
            json_decref(newer);
            return has_failed ? 1 : say_none(options);
        }
        if (options->is_json) {
            print_json(newer);
        } else {
            if (is_terminal)
                fputs("\033[H\033[2J", stdout);
            print_clusters(newer, clusters, now - taken_at);
            if (!is_terminal)
                puts("");
        }
        json_decref(clusters);
        clusters = newer;
        taken_at = now;
        if (fflush(stdout) != 0) {
            json_decref(clusters);
            return 1;
        }
    }
}

/// A rate takes two looks, so a table takes a second.
static int show(const struct options *options, json_t *clusters, double taken_at)
{
    json_t *newer = NULL;
    if (options->is_json) {
        print_json(clusters);
    } else {
        wait_window();
        newer = query();
        double now = now_s();
        if (newer && json_array_size(newer) > 0)
            print_clusters(newer, clusters, now - taken_at);
        else
            print_clusters(clusters, NULL, 0);
    }
    json_decref(newer);
    json_decref(clusters);
    return 0;
}

int run_status(int argc, char **argv)
{
    struct options options = {0};
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0)
            options.is_json = true;
        else if (strcmp(argv[i], "--watch") == 0)
            options.is_watching = true;
        else
            return refuse_usage("status does not know \"%s\"", argv[i]);
    }
    double taken_at = now_s();
    json_t *clusters = query();
    if (!clusters)
        return 1;
    if (json_array_size(clusters) == 0) {
        json_decref(clusters);
        return say_none(&options);
    }
    return options.is_watching ? watch(&options, clusters, taken_at)
                               : show(&options, clusters, taken_at);
}
