/* Who uses a device: the process lists in all their versions, utilization by process, samples. */
#include "sim.h"

struct process_v1 { u32 pid; u64 used; };
struct process_v2 { u32 pid; u64 used; u32 gpu_instance, compute_instance; };
struct process_detail { u32 pid; u64 used; u32 gpu_instance, compute_instance; u64 protected; };

/* On a MIG device only its own processes; on a GPU all of them. */
static int belongs(const struct target *target, const struct process *process)
{
    return !target->mig
           || (process->gpu_instance == number_or(&target->mig->values, "gpu_instance", NO_INSTANCE)
               && process->compute_instance == number_or(&target->mig->values, "compute_instance", NO_INSTANCE));
}

static u32 count_of(const struct target *target, u32 kind)
{
    u32 count = 0;
    for (int i = 0; i < target->gpu->processes; i++)
        count += (target->gpu->process[i].kinds & kind) && belongs(target, &target->gpu->process[i]);
    return count;
}

/* The protocol of NVML's lists: too little room gives 7 and the count; nothing to list is a success. */
#define FILL(kind, statement)                                                                                  \
    NEED(count);                                                                                               \
    u32 room = *count, found = count_of(&target, kind), at = 0;                                                \
    *count = found;                                                                                            \
    if (room < found || (found && !out)) return INSUFFICIENT_SIZE;                                             \
    for (int i = 0; i < gpu->processes; i++) {                                                                 \
        const struct process *process = &gpu->process[i];                                                      \
        if ((process->kinds & (kind)) && belongs(&target, process)) statement;                                 \
    }                                                                                                          \
    return OK

#define LIST_V1(function, kind)                                                                                \
    nvmlReturn_t function(nvmlDevice_t device, u32 *count, struct process_v1 *out)                             \
    {                                                                                                          \
        ENTER_ANY(device);                                                                                     \
        FILL(kind, (out[at++] = (struct process_v1){process->pid, process->used_bytes}));                      \
    }
#define LIST_V2(function, kind)                                                                                \
    nvmlReturn_t function(nvmlDevice_t device, u32 *count, struct process_v2 *out)                             \
    {                                                                                                          \
        ENTER_ANY(device);                                                                                     \
        FILL(kind, (out[at++] = (struct process_v2){process->pid, process->used_bytes,                         \
                                                    process->gpu_instance, process->compute_instance}));       \
    }
LIST_V1(nvmlDeviceGetComputeRunningProcesses, COMPUTE)
LIST_V2(nvmlDeviceGetComputeRunningProcesses_v2, COMPUTE)
LIST_V2(nvmlDeviceGetComputeRunningProcesses_v3, COMPUTE)
LIST_V1(nvmlDeviceGetGraphicsRunningProcesses, GRAPHICS)
LIST_V2(nvmlDeviceGetGraphicsRunningProcesses_v2, GRAPHICS)
LIST_V2(nvmlDeviceGetGraphicsRunningProcesses_v3, GRAPHICS)
LIST_V1(nvmlDeviceGetMPSComputeRunningProcesses, MPS)
LIST_V2(nvmlDeviceGetMPSComputeRunningProcesses_v2, MPS)
LIST_V2(nvmlDeviceGetMPSComputeRunningProcesses_v3, MPS)

struct details { u32 version, mode, count; struct process_detail *out; };

nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, struct details *list)
{
    ENTER_ANY(device);
    NEED(list);
    if (list->mode > 2) return INVALID_ARGUMENT;
    if (list->version != 0x1000018) return VERSION_MISMATCH;
    u32 kind = 1u << list->mode, *count = &list->count;
    struct process_detail *out = list->out;
    FILL(kind, (out[at++] = (struct process_detail){process->pid, process->used_bytes, process->gpu_instance,
                                                    process->compute_instance, 0}));
}

/* Utilization by process: the first call tells the size of the driver's buffer, the second who was seen
 * working since; nobody is NOT_FOUND. With MIG the driver does not say. */
enum { SAMPLES = 72 };

static int works(const struct process *process)
{
    return process->sm || process->memory || process->encoder || process->decoder;
}

struct sample { u32 pid; u64 seen_us; u32 sm, memory, encoder, decoder; };

nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, struct sample *out, u32 *count, u64 since_us)
{
    ENTER_GPU(device);
    NEED(count);
    if (number_or(&gpu->values, "mig", 0)) return NOT_SUPPORTED;
    u32 room = *count, at = 0;
    u64 seen_us = epoch_us();
    if (!out || room < SAMPLES) return *count = SAMPLES, INSUFFICIENT_SIZE;
    for (int i = 0; i < gpu->processes && since_us < seen_us; i++) {
        const struct process *p = &gpu->process[i];
        if (works(p)) out[at++] = (struct sample){p->pid, seen_us, p->sm, p->memory, p->encoder, p->decoder};
    }
    if (!at) return NOT_FOUND;
    *count = at;
    return OK;
}

struct sample_v1 { u64 seen_us; u32 pid, sm, memory, encoder, decoder, jpg, ofa; };
struct samples { u32 version, count; u64 since_us; struct sample_v1 *out; };

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device, struct samples *list)
{
    ENTER_GPU(device);
    NEED(list);
    if (list->version != 0x1000018) return VERSION_MISMATCH;
    if (number_or(&gpu->values, "mig", 0)) return NOT_SUPPORTED;
    if (!list->out || list->count < SAMPLES) return list->count = SAMPLES, INSUFFICIENT_SIZE;
    u32 at = 0;
    u64 seen_us = epoch_us();
    for (int i = 0; i < gpu->processes && list->since_us < seen_us; i++) {
        const struct process *p = &gpu->process[i];
        if (works(p))
            list->out[at++] = (struct sample_v1){seen_us, p->pid, p->sm, p->memory, p->encoder, p->decoder, 0, 0};
    }
    if (!at) return NOT_FOUND;
    list->count = at;
    return OK;
}

/* The driver's sample buffers: here the present value, once for each place in the buffer. */
struct reading { u64 time_us; u64 value; };

nvmlReturn_t nvmlDeviceGetSamples(
    nvmlDevice_t device, u32 kind, u64 since_us, u32 *type, u32 *count, struct reading *out)
{
    static const char *const keys[] = {
        "power_mw", "gpu_percent", "memory_percent", "encoder_percent", "decoder_percent", "clock_sm", "clock_mem",
    };
    static const u32 rooms[] = {120, 72, 72, 72, 72, 100, 100};
    u32 value = 0;
    ENTER_GPU(device);
    NEED(type && count);
    if (kind > 6) return INVALID_ARGUMENT;
    code = put_u32(&gpu->values, keys[kind], &value);
    if (code) return code;
    *type = 1;
    if (!out) return *count = rooms[kind], OK;
    u64 time_us = epoch_us();
    if (kind > 4 || since_us >= time_us) return NOT_FOUND;
    u32 given = *count < rooms[kind] ? *count : rooms[kind] - 1;
    for (u32 i = 0; i < given; i++) out[i] = (struct reading){time_us - (given - 1 - i) * 20000ull, value};
    *count = given;
    return OK;
}

struct account;

nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, u32 pid, struct account *out)
{
    ENTER_GPU(device);
    (void)pid;
    (void)out;
    return NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, u32 *count, u32 *out)
{
    ENTER_GPU(device);
    NEED(count);
    if (!*count || !out) return INSUFFICIENT_SIZE;
    *count = 0;
    return OK;
}
