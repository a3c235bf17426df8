/* What a device does: memory, utilization, heat, power, clocks, links. */
#include "sim.h"

#include <string.h>

struct memory { u64 total, free, used; };
struct memory_v2 { u32 version; u64 total, reserved, free, used; };

static nvmlReturn_t memory_of(const struct target *target, struct memory_v2 *out)
{
    const struct values *values = target->mig ? &target->mig->values : &target->gpu->values;
    u64 total = 0, used = 0, reserved = number_or(values, "reserved_bytes", 0);
    nvmlReturn_t code = put_u64(values, "total_bytes", &total);
    if (!code) code = put_u64(values, "used_bytes", &used);
    if (code) return code; /* unified memory: there is no framebuffer to speak of */
    out->total = total;
    out->reserved = reserved;
    out->used = used;
    out->free = total > used + reserved ? total - used - reserved : 0;
    return OK;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, struct memory *out) /* counts the reserve as used */
{
    ENTER_ANY(device);
    NEED(out);
    struct memory_v2 whole = {0};
    code = memory_of(&target, &whole);
    if (!code) *out = (struct memory){whole.total, whole.free, whole.used + whole.reserved};
    return code;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, struct memory_v2 *out)
{
    ENTER_ANY(device);
    NEED(out);
    return out->version == 0x2000028 ? memory_of(&target, out) : FUNCTION_NOT_FOUND; /* indeed not 25 */
}

nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, struct memory *out)
{
    ENTER_ANY(device);
    NEED(out);
    const struct values *values = target.mig ? &target.mig->values : &gpu->values;
    u64 total = 0, used = number_or(values, "bar1_used_bytes", 0);
    code = put_u64(values, "bar1_total_bytes", &total);
    if (!code) *out = (struct memory){total, total - used, used};
    return code;
}

nvmlReturn_t nvmlDeviceGetConfComputeProtectedMemoryUsage(nvmlDevice_t device, struct memory *out)
{
    ENTER_GPU(device);
    NEED(out);
    *out = (struct memory){0};
    return OK;
}

struct protected { u64 protected_kib, unprotected_kib; };

nvmlReturn_t nvmlDeviceGetConfComputeMemSizeInfo(nvmlDevice_t device, struct protected *out)
{
    ENTER_GPU(device);
    NEED(out);
    *out = (struct protected){0, number_or(&gpu->values, "unprotected_kib", 0)};
    return OK;
}

struct pair { u32 first, second; };

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, struct pair *out)
{
    ENTER_GPU(device);
    NEED(out);
    code = put_u32(&gpu->values, "gpu_percent", &out->first);
    return code ? code : put_u32(&gpu->values, "memory_percent", &out->second);
}

#define ENGINE(function, key)                                                                                  \
    nvmlReturn_t function(nvmlDevice_t device, u32 *percent, u32 *period_us)                                   \
    {                                                                                                          \
        ENTER_GPU(device);                                                                                     \
        NEED(period_us);                                                                                       \
        *period_us = 100000;                                                                                   \
        return put_u32(&gpu->values, key, percent);                                                            \
    }
ENGINE(nvmlDeviceGetEncoderUtilization, "encoder_percent")
ENGINE(nvmlDeviceGetDecoderUtilization, "decoder_percent")
ENGINE(nvmlDeviceGetJpgUtilization, "jpg_percent")
ENGINE(nvmlDeviceGetOfaUtilization, "ofa_percent")

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, u32 sensor, u32 *out)
{
    ENTER_GPU(device);
    return sensor ? INVALID_ARGUMENT : put_u32(&gpu->values, "celsius", out);
}

struct temperature { u32 version, sensor; int celsius; };

nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, struct temperature *out)
{
    ENTER_GPU(device);
    NEED(out);
    if (out->version != 0x100000C) return VERSION_MISMATCH;
    return out->sensor ? INVALID_ARGUMENT : put_u32(&gpu->values, "celsius", (u32 *)&out->celsius);
}

nvmlReturn_t nvmlDeviceGetMarginTemperature(nvmlDevice_t device, struct pair *out)
{
    ENTER_GPU(device);
    NEED(out);
    return out->first == 0x1000008 ? put_u32(&gpu->values, "margin_celsius", &out->second) : VERSION_MISMATCH;
}

nvmlReturn_t nvmlDeviceGetTemperatureThreshold(nvmlDevice_t device, u32 which, u32 *out)
{
    static const char *const keys[] = {
        "shutdown_celsius", "slowdown_celsius", "memory_max_celsius", "gpu_max_celsius", "acoustic_min_celsius",
        "acoustic_celsius", "acoustic_max_celsius", "gps_celsius",
    };
    ENTER_GPU(device);
    return which < 8 ? put_u32(&gpu->values, keys[which], out) : INVALID_ARGUMENT;
}

struct thermal { u32 count; struct { int controller, least, most, now, target; } sensor[3]; };

nvmlReturn_t nvmlDeviceGetThermalSettings(nvmlDevice_t device, u32 which, struct thermal *out)
{
    ENTER_GPU(device);
    NEED(out);
    (void)which;
    memset(out, 0, sizeof *out);
    out->count = 1;
    out->sensor[0].controller = out->sensor[0].target = 1;
    out->sensor[0].most = 127;
    return put_u32(&gpu->values, "celsius", (u32 *)&out->sensor[0].now);
}

/* Fans: `fan_percent` is one figure for each fan; a passive card has none. */
static nvmlReturn_t fan(const struct gpu *gpu, u32 which, u32 *out)
{
    u64 fans[8];
    NEED(out);
    if (which >= (u32)numbers_of(&gpu->values, "fan_percent", fans, 8)) return INVALID_ARGUMENT;
    *out = (u32)fans[which];
    return OK;
}

nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, u32 *out)
{
    ENTER_GPU(device);
    return fan(gpu, 0, out) == OK ? OK : NOT_SUPPORTED;
}

#define EACH_FAN(function)                                                                                     \
    nvmlReturn_t function(nvmlDevice_t device, u32 which, u32 *out)                                            \
    {                                                                                                          \
        ENTER_GPU(device);                                                                                     \
        return fan(gpu, which, out);                                                                           \
    }
EACH_FAN(nvmlDeviceGetFanSpeed_v2)
EACH_FAN(nvmlDeviceGetTargetFanSpeed)

nvmlReturn_t nvmlDeviceGetNumFans(nvmlDevice_t device, u32 *out)
{
    ENTER_GPU(device);
    NEED(out);
    u64 fans[8];
    *out = (u32)numbers_of(&gpu->values, "fan_percent", fans, 8);
    return OK;
}

struct fan_rpm { u32 version, fan, rpm; };

nvmlReturn_t nvmlDeviceGetFanSpeedRPM(nvmlDevice_t device, struct fan_rpm *out)
{
    ENTER_GPU(device);
    NEED(out);
    if (out->version != 0x100000C) return VERSION_MISMATCH;
    code = fan(gpu, out->fan, &out->rpm);
    out->rpm *= 30;
    return code;
}

nvmlReturn_t nvmlDeviceGetMinMaxFanSpeed(nvmlDevice_t device, u32 *least, u32 *most)
{
    ENTER_GPU(device);
    NEED(least && most);
    code = fan(gpu, 0, least);
    *least = 30;
    *most = 100;
    return code;
}

GETTER_U32(nvmlDeviceGetPowerUsage, "power_mw")
GETTER_U32(nvmlDeviceGetPowerManagementMode, "power_management")
GETTER_U32(nvmlDeviceGetPowerManagementLimit, "power_limit_mw")
GETTER_U32(nvmlDeviceGetPowerManagementDefaultLimit, "power_default_mw")
GETTER_U32(nvmlDeviceGetEnforcedPowerLimit, "power_enforced_mw")
GETTER_PAIR(nvmlDeviceGetPowerManagementLimitConstraints, "power_min_mw", "power_max_mw")
GETTER_U64(nvmlDeviceGetTotalEnergyConsumption, "energy_mj")
GETTER_U32(nvmlDeviceGetPerformanceState, "pstate")
GETTER_U32(nvmlDeviceGetPowerState, "pstate")
GETTER_U32(nvmlDeviceGetAdaptiveClockInfoStatus, "adaptive_clocks")
GETTER_U64(nvmlDeviceGetCurrentClocksThrottleReasons, "event_reasons")
GETTER_U64(nvmlDeviceGetCurrentClocksEventReasons, "event_reasons")
GETTER_U64(nvmlDeviceGetSupportedClocksThrottleReasons, "supported_event_reasons")
GETTER_U64(nvmlDeviceGetSupportedClocksEventReasons, "supported_event_reasons")
GETTER_U32(nvmlDeviceGetCurrPcieLinkGeneration, "pcie_gen")
GETTER_U32(nvmlDeviceGetCurrPcieLinkWidth, "pcie_width")
GETTER_U32(nvmlDeviceGetMaxPcieLinkGeneration, "pcie_max_gen")
GETTER_U32(nvmlDeviceGetMaxPcieLinkWidth, "pcie_max_width")
GETTER_U32(nvmlDeviceGetGpuMaxPcieLinkGeneration, "pcie_gpu_max_gen")
GETTER_U32(nvmlDeviceGetPcieLinkMaxSpeed, "pcie_max_gen") /* its enum counts generations */
GETTER_U32(nvmlDeviceGetPcieReplayCounter, "pcie_replays")

nvmlReturn_t nvmlDeviceGetPcieSpeed(nvmlDevice_t device, u32 *out)
{
    static const u32 mbps[] = {0, 2500, 5000, 8000, 16000, 32000, 64000};
    ENTER_GPU(device);
    code = put_u32(&gpu->values, "pcie_gen", out);
    if (!code) *out = *out < 7 ? mbps[*out] : 0;
    return code;
}

nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, u32 which, u32 *out)
{
    ENTER_GPU(device);
    return put_u32(&gpu->values, which ? "pcie_rx_kib_s" : "pcie_tx_kib_s", out);
}

struct dynamic { u32 flags; struct { u32 present, percent, rise, fall; } of[8]; };

nvmlReturn_t nvmlDeviceGetDynamicPstatesInfo(nvmlDevice_t device, struct dynamic *out)
{
    static const char *const keys[] = {"gpu_percent", "memory_percent", "decoder_percent", "pcie_percent"};
    ENTER_GPU(device);
    NEED(out);
    memset(out, 0, sizeof *out);
    for (int i = 0; i < 4; i++) {
        out->of[i].present = 1;
        out->of[i].percent = (u32)number_or(&gpu->values, keys[i], 0);
    }
    return OK;
}

struct violation { u64 reference_us, spent_ns; };

nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, u32 policy, struct violation *out)
{
    u64 spent[12];
    ENTER_GPU(device);
    NEED(out);
    int count = numbers_of(&gpu->values, "violations_ns", spent, 12);
    if (!count) return NOT_SUPPORTED;
    u32 at = policy == 10 || policy == 11 ? policy - 4 : policy; /* 0…5, 10, 11 exist */
    if (policy > 11 || (policy > 5 && policy < 10) || at >= (u32)count) return INVALID_ARGUMENT;
    *out = (struct violation){epoch_us(), spent[at]};
    return OK;
}

struct encoder_session;

nvmlReturn_t nvmlDeviceGetEncoderSessions(nvmlDevice_t device, u32 *count, struct encoder_session *out)
{
    ENTER_GPU(device);
    NEED(count);
    (void)out;
    *count = 0;
    return OK;
}

nvmlReturn_t nvmlDeviceGetEncoderStats(nvmlDevice_t device, u32 *sessions, u32 *fps, u32 *latency_us)
{
    ENTER_GPU(device);
    NEED(sessions && fps && latency_us);
    *sessions = *fps = *latency_us = 0;
    return OK;
}

struct fbc { u32 sessions, fps, latency; };

nvmlReturn_t nvmlDeviceGetFBCStats(nvmlDevice_t device, struct fbc *out)
{
    ENTER_GPU(device);
    NEED(out);
    *out = (struct fbc){0};
    return OK;
}
