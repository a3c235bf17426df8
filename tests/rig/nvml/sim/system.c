/* What NVML says of the machine, and the ways to a device. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *nvmlErrorString(nvmlReturn_t code)
{
    static const char *const words[] = {
        "Success", "Uninitialized", "Invalid Argument", "Not Supported", "Insufficient Permissions",
        "Already Initialized", "Not Found", "Insufficient Size", "Insufficient External Power",
        "Driver Not Loaded", "Timeout", "Interrupt Request Issue", "NVML Shared Library Not Found",
        "Function Not Found", "Corrupted infoROM", "GPU is lost", "GPU requires reset",
        "GPU access blocked by the operating system", "Driver/library version mismatch",
        "In use by another client", "Insufficient Memory", "No data", "vGPU ECC not supported",
        "Insufficient Resources", "Invalid Frequency", "Argument version mismatch",
        "Requested functionality has been deprecated", "System is not in ready state",
        "No supported GPUs were found", "Resource not in correct state to perform requested operation",
        "Reset type is not supported for given device",
    };
    return code >= 0 && code < (int)(sizeof words / sizeof *words) ? words[code] : "Unknown Error";
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *out, u32 size) /* answers before init too */
{
    nvmlReturn_t ignored = OK;
    SCOPE = sim_enter(__func__, &ignored);
    const char *version = now ? text_of(&now->system, "nvml") : NULL;
    return put_text(version ? version : "13.580.159.04", out, size);
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *out, u32 size)
{
    ENTER_SYSTEM;
    return put_text(text_of(&now->system, "driver"), out, size);
}

struct driver_branch { u32 version; char branch[80]; };

nvmlReturn_t nvmlSystemGetDriverBranch(struct driver_branch *out, u32 size)
{
    ENTER_SYSTEM;
    NEED(out);
    if (out->version != 0x1000054) return VERSION_MISMATCH;
    return put_text(text_of(&now->system, "branch"), out->branch, size < 80 ? size : 80);
}

#define SYSTEM_NUMBER(function, expression)                                                                    \
    nvmlReturn_t function(u32 *out)                                                                            \
    {                                                                                                          \
        ENTER_SYSTEM;                                                                                          \
        NEED(out);                                                                                             \
        *out = (u32)(expression);                                                                              \
        return OK;                                                                                             \
    }
SYSTEM_NUMBER(nvmlSystemGetCudaDriverVersion, number_or(&now->system, "cuda", 13000))
SYSTEM_NUMBER(nvmlSystemGetCudaDriverVersion_v2, number_or(&now->system, "cuda", 13000))
SYSTEM_NUMBER(nvmlDeviceGetCount, now->gpus)
SYSTEM_NUMBER(nvmlDeviceGetCount_v2, now->gpus)
SYSTEM_NUMBER(nvmlUnitGetCount, 0)
SYSTEM_NUMBER(nvmlGetExcludedDeviceCount, 0)
SYSTEM_NUMBER(nvmlGetBlacklistDeviceCount, 0)
SYSTEM_NUMBER(nvmlSystemGetConfComputeGpusReadyState, 0)
SYSTEM_NUMBER(nvmlSystemGetNvlinkBwMode, 0)

nvmlReturn_t nvmlSystemGetHicVersion(u32 *count, void *entries)
{
    ENTER_SYSTEM;
    NEED(count);
    (void)entries;
    *count = 0;
    return OK;
}

struct conf_state { u32 environment, feature, tools; };

nvmlReturn_t nvmlSystemGetConfComputeState(struct conf_state *out)
{
    ENTER_SYSTEM;
    NEED(out);
    *out = (struct conf_state){0};
    return OK;
}

struct conf_caps { u32 cpu, gpus; };

nvmlReturn_t nvmlSystemGetConfComputeCapabilities(struct conf_caps *out)
{
    ENTER_SYSTEM;
    NEED(out);
    *out = (struct conf_caps){0, 1};
    return OK;
}

struct conf_settings { u32 version, environment, feature, tools, multi_gpu; };

nvmlReturn_t nvmlSystemGetConfComputeSettings(struct conf_settings *out)
{
    ENTER_SYSTEM;
    NEED(out);
    if (out->version != 0x1000014) return VERSION_MISMATCH;
    *out = (struct conf_settings){.version = out->version};
    return OK;
}

nvmlReturn_t nvmlSystemGetProcessName(u32 pid, char *out, u32 size) /* cut to the room, without complaint */
{
    ENTER_SYSTEM;
    NEED(out && size);
    char path[64], name[1024] = "";
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    FILE *file = fopen(path, "rbe");
    if (!file) return NOT_FOUND;
    name[fread(name, 1, sizeof name - 1, file)] = 0;
    fclose(file);
    snprintf(out, size, "%s", name);
    return OK;
}

/* A GPU that is lost, or that refuses, does so at its handle already. */
static nvmlReturn_t give(const char *function, const struct gpu *gpu, const struct mig *mig, nvmlDevice_t *out)
{
    if (!gpu) return NOT_FOUND;
    if (number_or(&gpu->values, "lost", 0)) return GPU_IS_LOST;
    nvmlReturn_t code = prescribed(&gpu->values, function);
    if (!code) *out = handle_of(gpu, mig);
    return code;
}

#define BY_INDEX(function)                                                                                     \
    nvmlReturn_t function(u32 index, nvmlDevice_t *out)                                                        \
    {                                                                                                          \
        ENTER_SYSTEM;                                                                                          \
        NEED(out);                                                                                             \
        return index < (u32)now->gpus ? give(__func__, &now->gpu[index], NULL, out) : INVALID_ARGUMENT;        \
    }
BY_INDEX(nvmlDeviceGetHandleByIndex)
BY_INDEX(nvmlDeviceGetHandleByIndex_v2)

static int is_uuid(const struct values *values, const char *asked, const char *key, size_t skip)
{
    const char *uuid = text_of(values, key);
    return uuid && *asked && (!strcmp(uuid, asked) || (strlen(uuid) > skip && !strcmp(uuid + skip, asked)));
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *out)
{
    ENTER_SYSTEM;
    NEED(out && uuid);
    for (int i = 0; i < now->gpus; i++) {
        struct gpu *gpu = &now->gpu[i];
        if (is_uuid(&gpu->values, uuid, "uuid", 4)) return give(__func__, gpu, NULL, out);
        for (int j = 0; j < gpu->migs; j++)
            if (is_uuid(&gpu->mig[j].values, uuid, "uuid", 0)) return give(__func__, gpu, &gpu->mig[j], out);
    }
    return NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleBySerial(const char *serial, nvmlDevice_t *out)
{
    ENTER_SYSTEM;
    NEED(out && serial);
    for (int i = 0; i < now->gpus; i++)
        if (is_uuid(&now->gpu[i].values, serial, "serial", 64)) return give(__func__, &now->gpu[i], NULL, out);
    return NOT_FOUND;
}

static int bus_numbers(const char *text, u32 place[3])
{
    u32 function = 0;
    place[0] = 0;
    if (sscanf(text, "%x:%x:%x.%x", &place[0], &place[1], &place[2], &function) >= 3) return 1;
    place[0] = 0;
    return sscanf(text, "%x:%x.%x", &place[1], &place[2], &function) >= 2;
}

static nvmlReturn_t by_bus(const char *function, const char *asked, nvmlDevice_t *out)
{
    u32 wanted[3], here[3];
    if (!bus_numbers(asked, wanted)) return INVALID_ARGUMENT;
    for (int i = 0; i < now->gpus; i++) {
        const char *bus_id = text_of(&now->gpu[i].values, "bus_id");
        if (bus_id && bus_numbers(bus_id, here) && !memcmp(wanted, here, sizeof here))
            return give(function, &now->gpu[i], NULL, out);
    }
    return NOT_FOUND;
}

#define BY_BUS(function)                                                                                       \
    nvmlReturn_t function(const char *bus_id, nvmlDevice_t *out)                                               \
    {                                                                                                          \
        ENTER_SYSTEM;                                                                                          \
        NEED(out && bus_id);                                                                                   \
        return by_bus(__func__, bus_id, out);                                                                  \
    }
BY_BUS(nvmlDeviceGetHandleByPciBusId)
BY_BUS(nvmlDeviceGetHandleByPciBusId_v2)
