// SPDX-License-Identifier: Apache-2.0
// The operations on parameters. They are no meetings: each rank has as many as it likes.
#include "base/clock.h"
#include "base/fail.h"
#include "base/memory.h"
#include "collective/operation_call.h"
#include "collective/parameter_server.h"

/// A call that has to do with parameters.
struct exchange {
    struct tfos_collective *group;
    const char *name;
    struct tfos__collective_vector vector;
    struct tfos__collective_request request;
    int64_t staleness;
};

/// What rank 0 tells of the parameters that it has made.
struct announcement {
    int64_t count, staleness;
    int fd;
    char token[TFOS__COLLECTIVE_TOKEN_SIZE];
};

static enum tfos_status init_exchange(struct exchange *exchange, struct tfos_collective *group,
                                      const char *name, const struct tfos_collective_span *spans,
                                      int64_t span_count, bool is_opening, struct tfos_error *err)
{
    *exchange = (struct exchange){.group = group, .name = name};
    TFOS__TRY(tfos__collective_call_check(group, name, TFOS_DTYPE_FLOAT32, false, 0, err));
    if (!group->roster.has_parameters)
        return tfos__collective_call_refuse(group, TFOS_INVALID, name,
                                            "the group was opened without parameters", err);
    if (is_opening == (group->pulled != NULL))
        return tfos__collective_call_refuse(
            group, TFOS_INVALID, name,
            is_opening ? "parameters are open" : "no parameters are open", err);
    TFOS__TRY(
        tfos__collective_vector_init(&exchange->vector, spans, span_count, sizeof(float), err));
    if (is_opening || exchange->vector.count == group->parameters.count)
        return TFOS_OK;
    tfos__collective_vector_clear(&exchange->vector);
    return tfos__collective_call_refuse(group, TFOS_INVALID, name,
                                        "there are not as many elements as parameters", err);
}

/// Runs `work` as an operation.
static enum tfos_status
run(struct exchange *exchange,
    enum tfos_status (*work)(struct exchange *exchange, struct tfos__collective_call *call,
                             struct announcement *announcement, struct tfos_error *err),
    struct announcement *announcement, struct tfos_error *err)
{
    struct tfos__collective_call call;
    struct tfos_error cause;
    struct tfos__collective_descriptor descriptor = tfos__collective_call_describe(
        exchange->name, TFOS__COLLECTIVE_PUSH_PULL, TFOS_DTYPE_FLOAT32, exchange->vector.count);
    TFOS__TRY(tfos__collective_call_begin(&call, exchange->group, &descriptor, err));
    enum tfos_status status = tfos__collective_failure_check(
        call.operation.failure, call.operation.descriptor.sequence, &cause);
    if (status == TFOS_OK)
        status = work(exchange, &call, announcement, &cause);
    return tfos__collective_call_end(&call, status, &cause, err);
}

static enum tfos_status make_parameters(struct exchange *exchange,
                                        struct tfos__collective_call *call,
                                        struct announcement *announcement, struct tfos_error *err)
{
    struct tfos_collective *group = exchange->group;
    int64_t count = exchange->vector.count;
    (void)call;
    group->pulled = tfos__alloc((size_t)count, sizeof(*group->pulled));
    if (!group->pulled)
        return tfos__no_memory(err, "collective", "parameters");
    group->parameters =
        (struct tfos__collective_parameters){.count = count,
                                             .staleness = exchange->staleness,
                                             .fd = -1,
                                             .roster = &group->roster,
                                             .failure = &group->failure,
                                             .stall_timeout_ms = group->stall_timeout_ms};
    if (group->rank != 0)
        return TFOS_OK;
    TFOS__TRY(tfos__collective_parameters_init(&group->parameters, announcement->token, err));
    announcement->count = count;
    announcement->staleness = exchange->staleness;
    announcement->fd = group->parameters.fd;
    return TFOS_OK;
}

/// Joins the parameters of rank 0, or fills and serves these.
static enum tfos_status join_parameters(struct exchange *exchange,
                                        struct tfos__collective_call *call,
                                        struct announcement *announcement, struct tfos_error *err)
{
    struct tfos_collective *group = exchange->group;
    struct tfos__collective_parameters *parameters = &group->parameters;
    const struct tfos__collective_vector *vector = &exchange->vector;
    (void)call;
    if (announcement->count != parameters->count ||
        announcement->staleness != parameters->staleness)
        return tfos__fail(err, TFOS_INVALID,
                          "the programs of the ranks differ: %s has %lld parameters and a "
                          "staleness of %lld where %s has %lld and %lld",
                          group->roster.members[0].label, (long long)announcement->count,
                          (long long)announcement->staleness,
                          group->roster.members[group->rank].label, (long long)parameters->count,
                          (long long)parameters->staleness);
    if (group->rank != 0)
        return tfos__collective_roster_is_remote(&group->roster, group->rank)
                   ? TFOS_OK
                   : tfos__collective_parameters_map(parameters, announcement->fd,
                                                     announcement->token, err);
    tfos__collective_vector_read(vector, 0, vector->count, parameters->values);
    return tfos__collective_parameter_server_start(&group->server, parameters, &group->links, err);
}

static void remember_pulled(const struct exchange *exchange)
{
    tfos__collective_vector_read(&exchange->vector, 0, exchange->vector.count,
                                 exchange->group->pulled);
}

/// Makes the elements what is to be added to the values.
static void subtract_pulled(const struct exchange *exchange)
{
    const float *pulled = exchange->group->pulled;
    float share = 1.0F / (float)exchange->group->size;
    for (int64_t i = 0; i < exchange->vector.span_count; i++) {
        float *data = exchange->vector.spans[i].data;
        int64_t element_count = exchange->vector.spans[i].count;
        for (int64_t j = 0; j < element_count; j++)
            data[j] = (data[j] - pulled[j]) * share;
        pulled += element_count;
    }
}

/// Exchanges in shared memory.
static enum tfos_status exchange_here(const struct exchange *exchange,
                                      struct tfos__collective_call *call, struct tfos_error *err)
{
    struct tfos__collective_parameters *parameters = &exchange->group->parameters;
    const struct tfos__collective_vector *vector = &exchange->vector;
    const struct tfos__collective_request *request = &exchange->request;
    int rank = exchange->group->rank;
    bool is_last = request->kind == TFOS__COLLECTIVE_PUSH_LAST;
    for (int64_t i = 0; i < vector->span_count; i++)
        TFOS__TRY(tfos__collective_parameters_push(
            parameters, vector->ends[i] - vector->spans[i].count, vector->spans[i].data,
            vector->spans[i].count, err));
    tfos__collective_parameters_advance(
        parameters, rank, is_last ? TFOS__COLLECTIVE_NO_MORE_STEPS : request->steps);
    int64_t begin_us = tfos__now_us();
    TFOS__TRY(tfos__collective_parameters_await(parameters, rank, request->steps,
                                                &call->operation.last_rank, err));
    call->operation.wait_us = tfos__now_us() - begin_us;
    for (int64_t i = 0; i < vector->span_count; i++)
        TFOS__TRY(tfos__collective_parameters_pull(
            parameters, vector->ends[i] - vector->spans[i].count, vector->spans[i].data,
            vector->spans[i].count, err));
    return TFOS_OK;
}

static enum tfos_status exchange_values(struct exchange *exchange,
                                        struct tfos__collective_call *call,
                                        struct announcement *unused, struct tfos_error *err)
{
    struct tfos_collective *group = exchange->group;
    (void)unused;
    subtract_pulled(exchange);
    if (tfos__collective_roster_is_remote(&group->roster, group->rank))
        TFOS__TRY(tfos__collective_parameters_ask(
            &group->parameters, group->links.parameters[0].channel, &exchange->request,
            &exchange->vector, &call->operation.wait_us, err));
    else
        TFOS__TRY(exchange_here(exchange, call, err));
    call->operation.blocked_us = call->operation.wait_us;
    remember_pulled(exchange);
    return TFOS_OK;
}

enum tfos_status tfos_collective_open_parameters(struct tfos_collective *group, const char *name,
                                                 const struct tfos_collective_span *spans,
                                                 int64_t span_count, int64_t staleness,
                                                 struct tfos_error *err)
{
    struct exchange exchange;
    struct announcement announcement = {0};
    const struct tfos_collective_span span = {&announcement, sizeof(announcement)};
    if (staleness < 1 || staleness > INT32_MAX)
        return tfos__collective_call_refuse(group, TFOS_INVALID, name, "the staleness is 1 or more",
                                            err);
    TFOS__TRY(init_exchange(&exchange, group, name, spans, span_count, true, err));
    exchange.staleness = staleness;
    enum tfos_status status = run(&exchange, make_parameters, &announcement, err);
    if (status == TFOS_OK)
        status = tfos_collective_broadcast(group, name, &span, 1, TFOS_DTYPE_UINT8, 0, err);
    if (status == TFOS_OK)
        status = run(&exchange, join_parameters, &announcement, err);
    if (status == TFOS_OK) // none goes on before all have joined
        status = tfos_collective_broadcast(group, name, spans, span_count, TFOS_DTYPE_FLOAT32, 0,
                                           err);
    if (status == TFOS_OK)
        remember_pulled(&exchange);
    tfos__collective_vector_clear(&exchange.vector);
    return status;
}

enum tfos_status tfos_collective_push_pull(struct tfos_collective *group, const char *name,
                                           const struct tfos_collective_span *spans,
                                           int64_t span_count, int64_t steps,
                                           struct tfos_error *err)
{
    struct exchange exchange;
    TFOS__TRY(init_exchange(&exchange, group, name, spans, span_count, false, err));
    exchange.request = (struct tfos__collective_request){TFOS__COLLECTIVE_PUSH_MORE, steps};
    enum tfos_status status =
        steps < 1 || steps > group->parameters.staleness
            ? tfos__collective_call_refuse(group, TFOS_INVALID, name,
                                           "the steps are 1 to the staleness", err)
            : run(&exchange, exchange_values, NULL, err);
    tfos__collective_vector_clear(&exchange.vector);
    return status;
}

enum tfos_status tfos_collective_close_parameters(struct tfos_collective *group, const char *name,
                                                  const struct tfos_collective_span *spans,
                                                  int64_t span_count, struct tfos_error *err)
{
    struct exchange exchange;
    TFOS__TRY(init_exchange(&exchange, group, name, spans, span_count, false, err));
    exchange.request.kind = TFOS__COLLECTIVE_PUSH_LAST;
    enum tfos_status status = run(&exchange, exchange_values, NULL, err);
    tfos__collective_vector_clear(&exchange.vector);
    TFOS__TRY(status);
    tfos__collective_parameter_server_stop(&group->server, false);
    TFOS__TRY(tfos_collective_barrier(group, name, err));
    tfos__collective_parameters_clear(&group->parameters);
    tfos__free(group->pulled);
    group->pulled = NULL;
    return TFOS_OK;
}
