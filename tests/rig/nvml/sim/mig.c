/* MIG: the devices that are parts of a GPU. Only what an undivided H200 says of MIG was recorded; the
 * answers of a divided card follow NVIDIA's documentation and what users report. */
#include "sim.h"

#include <stdio.h>
#include <string.h>

GETTER_PAIR(nvmlDeviceGetMigMode, "mig", "mig_pending")

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, u32 *out) /* 0 while MIG is off */
{
    ENTER_GPU(device);
    NEED(out);
    *out = number_or(&gpu->values, "mig", 0) ? (u32)number_or(&gpu->values, "max_mig", 7) : 0;
    return OK;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, u32 index, nvmlDevice_t *out)
{
    ENTER_GPU(device);
    NEED(out);
    if (!number_or(&gpu->values, "mig", 0) || index >= (u32)gpu->migs) return NOT_FOUND;
    *out = handle_of(gpu, &gpu->mig[index]);
    return OK;
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t device, nvmlDevice_t *out)
{
    ENTER_ANY(device);
    NEED(out && target.mig);
    *out = handle_of(gpu, NULL);
    return OK;
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, u32 *out)
{
    ENTER_ANY(device);
    NEED(out);
    *out = target.mig != NULL;
    return OK;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, u32 *out)
{
    ENTER_ANY(device);
    return target.mig ? put_u32(&target.mig->values, "gpu_instance", out) : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, u32 *out)
{
    ENTER_ANY(device);
    return target.mig ? put_u32(&target.mig->values, "compute_instance", out) : INVALID_ARGUMENT;
}

struct attributes {
    u32 multiprocessors, copy_engines, decoders, encoders, jpegs, ofas, gpu_slices, compute_slices;
    u64 memory_mb;
};

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, struct attributes *out)
{
    ENTER_ANY(device);
    NEED(out);
    if (!target.mig) return NOT_SUPPORTED;
    const struct values *values = &target.mig->values;
    *out = (struct attributes){
        .multiprocessors = (u32)number_or(values, "multiprocessors", 0),
        .copy_engines = 1,
        .gpu_slices = (u32)number_or(values, "slices", 1),
        .compute_slices = (u32)number_or(values, "slices", 1),
        .memory_mb = number_or(values, "total_bytes", 0) >> 20,
    };
    return OK;
}

nvmlReturn_t nvmlDeviceGetAttributes(nvmlDevice_t device, struct attributes *out)
{
    return nvmlDeviceGetAttributes_v2(device, out);
}

/* What an H200 could be divided into, as recorded. */
struct profile {
    u32 version, id, p2p, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpegs, ofas;
    u64 memory_mb;
    char name[96];
};

static const struct profile PROFILES[] = {
    {0, 19, 0, 1, 7, 16, 1, 1, 0, 1, 0, 16384, "MIG 1g.18gb"},
    {0, 14, 0, 2, 3, 32, 2, 2, 0, 2, 0, 33280, "MIG 2g.35gb"},
    {0, 9, 0, 3, 2, 60, 3, 3, 0, 3, 0, 71424, "MIG 3g.71gb"},
    {0, 0, 0, 7, 1, 132, 8, 7, 0, 7, 1, 143360, "MIG 7g.141gb"},
    {0, 15, 0, 1, 4, 26, 1, 1, 0, 1, 0, 33280, "MIG 1g.35gb"},
};

nvmlReturn_t nvmlDeviceGetGpuInstanceProfileInfoV(nvmlDevice_t device, u32 which, struct profile *out)
{
    static const int at[] = {0, 1, 2, -1, 3, -1, -1, -1, -1, 4};
    ENTER_GPU(device);
    NEED(out);
    u32 ignored = 0;
    if (put_u32(&gpu->values, "mig", &ignored)) return NOT_SUPPORTED; /* the card cannot be divided */
    if (which > 9) return INVALID_ARGUMENT;
    if (at[which] < 0) return NOT_SUPPORTED;
    *out = PROFILES[at[which]];
    return OK;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceRemainingCapacity(nvmlDevice_t device, u32 profile, u32 *out)
{
    ENTER_GPU(device);
    NEED(out);
    u32 ignored = 0;
    (void)profile;
    if (put_u32(&gpu->values, "mig", &ignored)) return NOT_SUPPORTED;
    *out = gpu->migs < 7 ? (u32)(7 - gpu->migs) : 0;
    return OK;
}
