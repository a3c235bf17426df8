/* Clocks: what they are, may be and can be set to. */
#include "sim.h"

#include <string.h>

/* Clocks: keys are `clock_`, `max_clock_` and so on, followed by the name of the clock. */
static nvmlReturn_t clock_of(const struct gpu *gpu, const char *prefix, u32 clock, u32 *out)
{
    static const char *const names[] = {"graphics", "sm", "mem", "video"};
    char key[64];
    if (clock > 3) return NOT_SUPPORTED;
    strcpy(key, prefix);
    return put_u32(&gpu->values, strcat(key, names[clock]), out);
}

#define CLOCK(function, prefix)                                                                                \
    nvmlReturn_t function(nvmlDevice_t device, u32 clock, u32 *out)                                            \
    {                                                                                                          \
        ENTER_GPU(device);                                                                                     \
        return clock_of(gpu, prefix, clock, out);                                                              \
    }
CLOCK(nvmlDeviceGetClockInfo, "clock_")
CLOCK(nvmlDeviceGetMaxClockInfo, "max_clock_")
CLOCK(nvmlDeviceGetApplicationsClock, "app_clock_")
CLOCK(nvmlDeviceGetDefaultApplicationsClock, "app_clock_")
CLOCK(nvmlDeviceGetMaxCustomerBoostClock, "boost_clock_")

nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, u32 clock, u32 which, u32 *out)
{
    static const char *const prefixes[] = {"clock_", "app_clock_", "app_clock_", "boost_clock_"};
    ENTER_GPU(device);
    return which < 4 ? clock_of(gpu, prefixes[which], clock, out) : INVALID_ARGUMENT;
}

/* Lists of clocks: memory as `2201,3201`, graphics as a range `first,last,step`. */
nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, u32 *count, u32 *out)
{
    u64 clocks[16];
    ENTER_GPU(device);
    NEED(count);
    u32 room = *count;
    *count = (u32)numbers_of(&gpu->values, "memory_clocks", clocks, 16);
    if (!*count) return NOT_SUPPORTED;
    if (!out || room < *count) return INSUFFICIENT_SIZE;
    for (u32 i = 0; i < *count; i++) out[i] = (u32)clocks[i];
    return OK;
}

nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, u32 memory_mhz, u32 *count, u32 *out)
{
    u64 range[3];
    ENTER_GPU(device);
    NEED(count);
    (void)memory_mhz;
    u32 room = *count;
    if (numbers_of(&gpu->values, "graphics_clocks", range, 3) < 3) return NOT_SUPPORTED;
    *count = (u32)((range[0] - range[1]) / range[2]) + 1;
    if (!out || room < *count) return INSUFFICIENT_SIZE;
    for (u32 i = 0; i < *count; i++) out[i] = (u32)(range[0] - i * range[2]);
    return OK;
}
