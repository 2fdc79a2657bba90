// SPDX-License-Identifier: Apache-2.0
// A GPU for TensorFlow on a machine without one (its plugin API for devices): memory is the host's
// at addresses that the host cannot read, and what a stream does is done at once. It shows which
// arguments of our kernels TensorFlow puts where; it computes nothing by itself.
#include <stdlib.h>
#include <string.h>
#include <tensorflow/c/experimental/stream_executor/stream_executor.h>

#include "fake_gpu.h"

#define MEMORY_SIZE (INT64_C(64) << 20)

static void allocate(const SP_Device *device, uint64_t size, int64_t space,
                     SP_DeviceMemoryBase *memory)
{
    void *data = aligned_alloc(256, (size + 255) / 256 * 256);
    (void)device, (void)space;
    memory->struct_size = SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
    memory->opaque = data ? FAKE_TO_GPU(data) : NULL;
    memory->size = size;
}

static void deallocate(const SP_Device *device, SP_DeviceMemoryBase *memory)
{
    (void)device;
    if (memory->opaque)
        free(FAKE_TO_HOST(memory->opaque));
}

static void *host_allocate(const SP_Device *device, uint64_t size)
{
    (void)device;
    return aligned_alloc(256, (size + 255) / 256 * 256);
}

static void host_deallocate(const SP_Device *device, void *memory)
{
    (void)device;
    free(memory);
}

static TF_Bool no_stats(const SP_Device *device, SP_AllocatorStats *stats)
{
    (void)device, (void)stats;
    return 0;
}

static TF_Bool memory_usage(const SP_Device *device, int64_t *free_size, int64_t *total)
{
    (void)device;
    *free_size = *total = MEMORY_SIZE;
    return 1;
}

// ---- streams, events and timers, of which there is nothing but their addresses

static char anything;

static void make_stream(const SP_Device *device, SP_Stream *stream, TF_Status *status)
{
    (void)device, (void)status;
    *stream = (SP_Stream)&anything;
}

static void drop_stream(const SP_Device *device, SP_Stream stream)
{
    (void)device, (void)stream;
}

static void depend(const SP_Device *device, SP_Stream dependent, SP_Stream other, TF_Status *status)
{
    (void)device, (void)dependent, (void)other, (void)status;
}

static void do_to_stream(const SP_Device *device, SP_Stream stream, TF_Status *status)
{
    (void)device, (void)stream, (void)status;
}

static void make_event(const SP_Device *device, SP_Event *event, TF_Status *status)
{
    (void)device, (void)status;
    *event = (SP_Event)&anything;
}

static void drop_event(const SP_Device *device, SP_Event event)
{
    (void)device, (void)event;
}

static SE_EventStatus event_status(const SP_Device *device, SP_Event event)
{
    (void)device, (void)event;
    return SE_EVENT_COMPLETE;
}

static void do_to_event(const SP_Device *device, SP_Stream stream, SP_Event event,
                        TF_Status *status)
{
    (void)device, (void)stream, (void)event, (void)status;
}

static void wait_on_host(const SP_Device *device, SP_Event event, TF_Status *status)
{
    (void)device, (void)event, (void)status;
}

static void make_timer(const SP_Device *device, SP_Timer *timer, TF_Status *status)
{
    (void)device, (void)status;
    *timer = (SP_Timer)&anything;
}

static void drop_timer(const SP_Device *device, SP_Timer timer)
{
    (void)device, (void)timer;
}

static void do_to_timer(const SP_Device *device, SP_Stream stream, SP_Timer timer,
                        TF_Status *status)
{
    (void)device, (void)stream, (void)timer, (void)status;
}

static uint64_t nanoseconds(SP_Timer timer)
{
    (void)timer;
    return 1;
}

static void synchronize(const SP_Device *device, TF_Status *status)
{
    (void)device, (void)status;
}

static TF_Bool call_back(const SP_Device *device, SP_Stream stream, SE_StatusCallbackFn function,
                         void *argument)
{
    (void)device, (void)stream;
    TF_Status *status = TF_NewStatus();
    function(argument, status);
    TF_DeleteStatus(status);
    return 1;
}

// ---- copies

static void sync_to_host(const SP_Device *device, void *to, const SP_DeviceMemoryBase *from,
                         uint64_t size, TF_Status *status)
{
    (void)device, (void)status;
    memcpy(to, FAKE_TO_HOST(from->opaque), size);
}

static void sync_to_gpu(const SP_Device *device, SP_DeviceMemoryBase *to, const void *from,
                        uint64_t size, TF_Status *status)
{
    (void)device, (void)status;
    memcpy(FAKE_TO_HOST(to->opaque), from, size);
}

static void sync_within(const SP_Device *device, SP_DeviceMemoryBase *to,
                        const SP_DeviceMemoryBase *from, uint64_t size, TF_Status *status)
{
    (void)device, (void)status;
    memcpy(FAKE_TO_HOST(to->opaque), FAKE_TO_HOST(from->opaque), size);
}

static void to_host(const SP_Device *device, SP_Stream stream, void *to,
                    const SP_DeviceMemoryBase *from, uint64_t size, TF_Status *status)
{
    (void)stream;
    sync_to_host(device, to, from, size, status);
}

static void to_gpu(const SP_Device *device, SP_Stream stream, SP_DeviceMemoryBase *to,
                   const void *from, uint64_t size, TF_Status *status)
{
    (void)stream;
    sync_to_gpu(device, to, from, size, status);
}

static void within(const SP_Device *device, SP_Stream stream, SP_DeviceMemoryBase *to,
                   const SP_DeviceMemoryBase *from, uint64_t size, TF_Status *status)
{
    (void)stream;
    sync_within(device, to, from, size, status);
}

static void fill(const SP_Device *device, SP_Stream stream, SP_DeviceMemoryBase *place,
                 uint8_t pattern, uint64_t size, TF_Status *status)
{
    (void)device, (void)stream, (void)status;
    memset(FAKE_TO_HOST(place->opaque), pattern, size);
}

static void zero(const SP_Device *device, SP_Stream stream, SP_DeviceMemoryBase *place,
                 uint64_t size, TF_Status *status)
{
    fill(device, stream, place, 0, size, status);
}

static void fill_words(const SP_Device *device, SP_Stream stream, SP_DeviceMemoryBase *place,
                       uint32_t pattern, uint64_t size, TF_Status *status)
{
    (void)device, (void)stream, (void)status;
    for (uint64_t i = 0; i + 4 <= size; i += 4)
        memcpy((char *)FAKE_TO_HOST(place->opaque) + i, &pattern, 4);
}

// ---- the platform

static void count_devices(const SP_Platform *platform, int *count, TF_Status *status)
{
    (void)platform, (void)status;
    *count = 1;
}

static void make_device(const SP_Platform *platform, SE_CreateDeviceParams *params,
                        TF_Status *status)
{
    (void)platform, (void)status;
    params->device->struct_size = SP_DEVICE_STRUCT_SIZE;
    params->device->ordinal = params->ordinal;
    params->device->hardware_name = "Fake GPU";
}

static void drop_device(const SP_Platform *platform, SP_Device *device)
{
    (void)platform, (void)device;
}

static void make_device_functions(const SP_Platform *platform, SE_CreateDeviceFnsParams *params,
                                  TF_Status *status)
{
    (void)platform, (void)status;
    *params->device_fns = (SP_DeviceFns){.struct_size = SP_DEVICE_FNS_STRUCT_SIZE};
}

static void drop_device_functions(const SP_Platform *platform, SP_DeviceFns *functions)
{
    (void)platform, (void)functions;
}

static void make_executor(const SP_Platform *platform, SE_CreateStreamExecutorParams *params,
                          TF_Status *status)
{
    (void)platform, (void)status;
    *params->stream_executor = (SP_StreamExecutor){
        .struct_size = SP_STREAMEXECUTOR_STRUCT_SIZE,
        .allocate = allocate,
        .deallocate = deallocate,
        .host_memory_allocate = host_allocate,
        .host_memory_deallocate = host_deallocate,
        .get_allocator_stats = no_stats,
        .device_memory_usage = memory_usage,
        .create_stream = make_stream,
        .destroy_stream = drop_stream,
        .create_stream_dependency = depend,
        .get_stream_status = do_to_stream,
        .create_event = make_event,
        .destroy_event = drop_event,
        .get_event_status = event_status,
        .record_event = do_to_event,
        .wait_for_event = do_to_event,
        .create_timer = make_timer,
        .destroy_timer = drop_timer,
        .start_timer = do_to_timer,
        .stop_timer = do_to_timer,
        .memcpy_dtoh = to_host,
        .memcpy_htod = to_gpu,
        .memcpy_dtod = within,
        .sync_memcpy_dtoh = sync_to_host,
        .sync_memcpy_htod = sync_to_gpu,
        .sync_memcpy_dtod = sync_within,
        .block_host_for_event = wait_on_host,
        .block_host_until_done = do_to_stream,
        .synchronize_all_activity = synchronize,
        .mem_zero = zero,
        .memset = fill,
        .memset32 = fill_words,
        .host_callback = call_back,
    };
}

static void drop_executor(const SP_Platform *platform, SP_StreamExecutor *executor)
{
    (void)platform, (void)executor;
}

static void make_timer_functions(const SP_Platform *platform, SP_TimerFns *functions,
                                 TF_Status *status)
{
    (void)platform, (void)status;
    functions->struct_size = SP_TIMER_FNS_STRUCT_SIZE;
    functions->nanoseconds = nanoseconds;
}

static void drop_timer_functions(const SP_Platform *platform, SP_TimerFns *functions)
{
    (void)platform, (void)functions;
}

static void drop_platform(SP_Platform *platform)
{
    (void)platform;
}

static void drop_platform_functions(SP_PlatformFns *functions)
{
    (void)functions;
}

void SE_InitPlugin(SE_PlatformRegistrationParams *params, TF_Status *status)
{
    (void)status;
    params->platform->struct_size = SP_PLATFORM_STRUCT_SIZE;
    params->platform->name = "FAKE";
    params->platform->type = "GPU";
    params->platform->use_bfc_allocator = 1;
    *params->platform_fns = (SP_PlatformFns){
        .struct_size = SP_PLATFORM_FNS_STRUCT_SIZE,
        .get_device_count = count_devices,
        .create_device = make_device,
        .destroy_device = drop_device,
        .create_device_fns = make_device_functions,
        .destroy_device_fns = drop_device_functions,
        .create_stream_executor = make_executor,
        .destroy_stream_executor = drop_executor,
        .create_timer_fns = make_timer_functions,
        .destroy_timer_fns = drop_timer_functions,
    };
    params->destroy_platform = drop_platform;
    params->destroy_platform_fns = drop_platform_functions;
}
