// SPDX-License-Identifier: Apache-2.0
// Two exchanges: addresses, and, where ranks seem to be on one host, whether each reaches the
// memory of its leader. What fails between them is told in the second, so that none waits in vain.
#include "collective/roster.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/json.h"
#include "base/memory.h"
#include "base/process.h"
#include "base/socket.h"

#define VERSION 1
#define BOOT_ID_SIZE 64
#define LIST_SIZE 1024

/// Calls the options' exchange(), with one value for each rank: an array of `size` objects.
static enum tfos_status exchange(const struct tfos_collective_options *options, const char *stage,
                                 json_t *value, json_t **values, struct tfos_error *err)
{
    char *text = NULL, *answer = NULL;
    TFOS__TRY(tfos__json_print(value, "collective", "a message", &text, err));
    enum tfos_status status = options->exchange(options->context, stage, text, &answer, err);
    tfos__free(text);
    if (status != TFOS_OK)
        return status < 0 ? status
                          : tfos__fail(err, TFOS_IO, "collective: no exchange of %s", stage);
    json_t *array = json_loads(answer, JSON_REJECT_DUPLICATES, NULL);
    tfos__free(answer);
    bool is_valid = json_array_size(array) == (size_t)options->size;
    for (size_t i = 0; is_valid && i < json_array_size(array); i++)
        is_valid = json_is_object(json_array_get(array, i));
    if (is_valid) {
        *values = array;
        return TFOS_OK;
    }
    size_t count = json_array_size(array);
    json_decref(array);
    return tfos__fail(err, TFOS_INVALID,
                      "collective: %s: the exchange of %s gave %zu values, and the group has %d "
                      "ranks",
                      options->name, stage, count, options->size);
}

static char *make_host_id(const struct tfos_collective_options *options, const char *host_label)
{
    char boot_id[BOOT_ID_SIZE];
    if (options->transport == TFOS_COLLECTIVE_TCP)
        return tfos__format("rank %d", options->rank);
    size_t size =
        tfos__process_read(getpid(), "../sys/kernel/random/boot_id", boot_id, sizeof(boot_id));
    boot_id[strcspn(boot_id, "\n")] = '\0';
    return size > 0 ? tfos__format("%s %s", boot_id, host_label ? host_label : "")
                    : tfos__format("rank %d", options->rank);
}

/// What this rank tells the others of itself; NULL when out of memory.
static json_t *make_value(const struct tfos_collective_options *options, const char *host_label,
                          const char *address, int fd, const char *token, const char *proof)
{
    char *host_id = make_host_id(options, host_label);
    json_t *value =
        host_id ? json_pack("{s:i, s:i, s:i, s:i, s:b, s:b, s:b, s:s, s:s, s:i, s:i, s:s, s:s}",
                            "version", VERSION, "rank", options->rank, "size", options->size,
                            "transport", (int)options->transport, "trusted",
                            options->is_trusted_network, "parameters", options->has_parameters,
                            "gpu", options->has_gpu, "host", host_id, "address", address, "pid",
                            (int)getpid(), "fd", fd, "token", token, "proof", proof)
                : NULL;
    tfos__free(host_id);
    return value;
}

static enum tfos_status find_host(const struct tfos_collective_options *options,
                                  char host[TFOS__ADDRESS_SIZE], struct tfos_error *err)
{
    if (!options->host)
        return tfos__address_any_host(host, err);
    if (strlen(options->host) >= TFOS__ADDRESS_SIZE - 8)
        return tfos__fail(err, TFOS_INVALID, "collective: option host: the name is too long");
    snprintf(host, TFOS__ADDRESS_SIZE, "%s", options->host);
    return TFOS_OK;
}

/// Reads what rank `rank` told. INVALID when it is no answer of this group.
static enum tfos_status read_member(struct tfos__collective_member *member, const json_t *value,
                                    int rank, struct tfos_error *err)
{
    const char *address, *host_id, *token;
    int64_t pid, fd, told;
    TFOS__TRY(tfos__json_get_int(value, "version", VERSION, VERSION, &told, err));
    TFOS__TRY(tfos__json_get_int(value, "rank", rank, rank, &told, err));
    TFOS__TRY(tfos__json_get_int(value, "pid", 1, INT32_MAX, &pid, err));
    TFOS__TRY(tfos__json_get_int(value, "fd", 0, INT32_MAX, &fd, err));
    TFOS__TRY(tfos__json_get_string(value, "address", &address, err));
    TFOS__TRY(tfos__json_get_string(value, "host", &host_id, err));
    TFOS__TRY(tfos__json_get_string(value, "token", &token, err));
    if (strlen(token) != TFOS__COLLECTIVE_TOKEN_SIZE - 1)
        return tfos__fail(err, TFOS_INVALID, "its token has %zu bytes", strlen(token));
    const char *port = strrchr(address, ':');
    int host_size = port ? (int)(port - address) : (int)strlen(address);
    member->address = tfos__strdup(address);
    member->host_id = tfos__strdup(host_id);
    member->token = tfos__strdup(token);
    member->label = tfos__format("rank %d (%.*s, pid %d)", rank, host_size, address, (int)pid);
    member->pid = (pid_t)pid;
    member->fd = (int)fd;
    member->has_gpu = tfos__json_bool_or(value, "gpu", false);
    return member->address && member->host_id && member->token && member->label
               ? TFOS_OK
               : tfos__no_memory(err, "collective", "a rank");
}

/// Whether this rank's value and another's are of one group: OK, or who differs and in what.
static enum tfos_status compare(const struct tfos__collective_roster *roster, const char *name,
                                const json_t *values, struct tfos_error *err)
{
    static const char *const keys[] = {"size", "transport", "trusted", "parameters"};
    const json_t *own = json_array_get(values, (size_t)roster->rank);
    char list[LIST_SIZE] = "";
    struct tfos__bounded_text denied = {.data = list, .capacity = sizeof(list)};
    for (int rank = 0; rank < roster->size; rank++) {
        const json_t *value = json_array_get(values, (size_t)rank);
        if (!json_equal(json_object_get(value, "proof"), json_object_get(own, "proof")))
            tfos__bounded_text_append(&denied, "%s%s", denied.size > 0 ? ", " : "",
                                      roster->members[rank].label);
    }
    if (denied.size > 0)
        return tfos__fail(err, TFOS_DENIED,
                          "collective: %s: another key than this rank's is held by %s", name, list);
    for (int rank = 0; rank < roster->size; rank++) {
        const json_t *value = json_array_get(values, (size_t)rank);
        for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
            if (!json_equal(json_object_get(value, keys[i]), json_object_get(own, keys[i])))
                return tfos__fail(err, TFOS_INVALID,
                                  "collective: %s: option %s of %s is not that of %s: all ranks "
                                  "open a group with the same options",
                                  name, keys[i], roster->members[rank].label,
                                  roster->members[roster->rank].label);
    }
    return TFOS_OK;
}

static enum tfos_status read_members(struct tfos__collective_roster *roster, const char *name,
                                     const json_t *values, struct tfos_error *err)
{
    for (int rank = 0; rank < roster->size; rank++) {
        enum tfos_status status =
            read_member(&roster->members[rank], json_array_get(values, (size_t)rank), rank, err);
        TFOS__TRY(tfos__fail_in(err, status, "collective: %s: rank %d", name, rank));
    }
    return compare(roster, name, values, err);
}

/// The lowest rank that seems to share memory with `rank`.
static int find_leader(const struct tfos__collective_roster *roster, int rank)
{
    int leader = 0;
    while (strcmp(roster->members[leader].host_id, roster->members[rank].host_id) != 0)
        leader++;
    return leader;
}

/// Puts each rank on the host of the leader by which it was reached, or on one of its own.
static void form_hosts(struct tfos__collective_roster *roster, const bool *is_reached)
{
    for (int rank = 0; rank < roster->size; rank++) {
        struct tfos__collective_member *member = &roster->members[rank];
        int leader = is_reached[rank] ? find_leader(roster, rank) : rank;
        if (leader == rank) {
            roster->leaders[roster->host_count] = rank;
            member->host = roster->host_count++;
        } else {
            member->host = roster->members[leader].host;
        }
        member->index = roster->counts[member->host]++;
    }
}

/// Tells whether this rank reaches its leader's memory, or that it has failed (`fault`), and hears
/// it of all.
static enum tfos_status exchange_reach(const struct tfos__collective_roster *roster,
                                       const struct tfos_collective_options *options,
                                       bool is_reached[TFOS_COLLECTIVE_MAX_RANKS],
                                       const char *fault, struct tfos_error *err)
{
    json_t *values = NULL;
    TFOS__TRY(
        exchange(options, "reach",
                 json_pack("{s:b, s:s?}", "reached", is_reached[roster->rank], "fault", fault),
                 &values, err));
    enum tfos_status status = TFOS_OK;
    for (int rank = 0; rank < roster->size && status == TFOS_OK; rank++) {
        const json_t *value = json_array_get(values, (size_t)rank);
        const char *told = tfos__json_string_or(value, "fault", NULL);
        is_reached[rank] = tfos__json_bool_or(value, "reached", false);
        if (told)
            status = tfos__fail(err, TFOS_CLOSED, "collective: %s: %s cannot join: %s",
                                options->name, roster->members[rank].label, told);
    }
    json_decref(values);
    return status;
}

/// The most ranks that seem to share a host.
static int count_most(const struct tfos__collective_roster *roster)
{
    int counts[TFOS_COLLECTIVE_MAX_RANKS] = {0}, most = 0;
    for (int rank = 0; rank < roster->size; rank++) {
        int leader = find_leader(roster, rank);
        if (++counts[leader] > most)
            most = counts[leader];
    }
    return most;
}

/// Gets this rank to its host's memory. All hosts have room for the same number of ranks, since
/// what goes round between them is cut alike.
static enum tfos_status reach(const struct tfos__collective_roster *roster,
                              struct tfos__collective_segment *segment, bool *is_reached,
                              struct tfos_error *err)
{
    int leader = find_leader(roster, roster->rank);
    const struct tfos__collective_member *member = &roster->members[leader];
    *is_reached = leader == roster->rank ||
                  tfos__collective_segment_reach(segment, member->pid, member->fd, member->token);
    tfos__collective_segment_plan(segment, count_most(roster), roster->size);
    return *is_reached && leader != roster->rank ? TFOS_OK
                                                 : tfos__collective_segment_resize(segment, err);
}

static enum tfos_status find_hosts(struct tfos__collective_roster *roster,
                                   const struct tfos_collective_options *options,
                                   struct tfos__collective_segment *segment, struct tfos_error *err)
{
    bool is_reached[TFOS_COLLECTIVE_MAX_RANKS] = {0};
    struct tfos_error cause;
    enum tfos_status status = reach(roster, segment, &is_reached[roster->rank], &cause);
    if (count_most(roster) > 1)
        TFOS__TRY(
            exchange_reach(roster, options, is_reached, status < 0 ? cause.message : NULL, err));
    else if (status < 0)
        return tfos__fail(err, status, "%s", cause.message);
    form_hosts(roster, is_reached);
    return TFOS_OK;
}

enum tfos_status tfos__collective_roster_exchange(struct tfos__collective_roster *roster,
                                                  const struct tfos_collective_options *options,
                                                  const char *host_label, int port,
                                                  struct tfos__collective_segment *segment,
                                                  struct tfos_error *err)
{
    char host[TFOS__ADDRESS_SIZE], address[TFOS__ADDRESS_SIZE], token[TFOS__COLLECTIVE_TOKEN_SIZE];
    char proof[TFOS__KEY_PROOF_SIZE];
    json_t *values = NULL;
    *roster = (struct tfos__collective_roster){
        .rank = options->rank, .size = options->size, .has_parameters = options->has_parameters};
    TFOS__TRY(tfos__collective_segment_init(segment, token, err));
    TFOS__TRY(find_host(options, host, err));
    tfos__address_join(host, port, address);
    TFOS__TRY(tfos__cluster_key_prove(options->key, "collective", "collective", proof, err));
    TFOS__TRY(exchange(options, "addresses",
                       make_value(options, host_label, address, segment->fd, token, proof), &values,
                       err));
    enum tfos_status status = read_members(roster, options->name, values, err);
    json_decref(values);
    return status == TFOS_OK ? find_hosts(roster, options, segment, err) : status;
}

void tfos__collective_roster_clear(struct tfos__collective_roster *roster)
{
    for (int rank = 0; rank < roster->size; rank++) {
        tfos__free(roster->members[rank].address);
        tfos__free(roster->members[rank].label);
        tfos__free(roster->members[rank].host_id);
        tfos__free(roster->members[rank].token);
    }
    *roster = (struct tfos__collective_roster){0};
}

bool tfos__collective_roster_is_remote(const struct tfos__collective_roster *roster, int rank)
{
    return roster->has_parameters && roster->members[rank].host != roster->members[0].host;
}

int tfos__collective_roster_rank(const struct tfos__collective_roster *roster, int host, int index)
{
    int rank = roster->leaders[host];
    while (roster->members[rank].host != host || roster->members[rank].index != index)
        rank++;
    return rank;
}
