/* Event sets: Xid errors that the state lists as `xid = NUMBER GPU-INDEX XID`, NUMBER growing.
 *
 * A set gives each registered event once; what the state held when the GPU was registered is past.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct event_set { u64 registered; /* one bit a GPU */ u64 seen; };
struct event { nvmlDevice_t device; u64 type, data; u32 gpu_instance, compute_instance; };

enum { XID = 8 };

GETTER_U64(nvmlDeviceGetSupportedEventTypes, "event_types")

static u64 newest(void)
{
    u64 last = 0, number;
    for (int i = 0; i < now->system.count; i++)
        if (!strcmp(now->system.of[i].key, "xid") && sscanf(now->system.of[i].value, "%llu", &number) == 1 && number > last)
            last = number;
    return last;
}

nvmlReturn_t nvmlEventSetCreate(struct event_set **out)
{
    ENTER_SYSTEM;
    NEED(out);
    *out = calloc(1, sizeof **out);
    return OK;
}

nvmlReturn_t nvmlEventSetFree(struct event_set *set)
{
    ENTER_SYSTEM;
    NEED(set);
    free(set);
    return OK;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, u64 types, struct event_set *set)
{
    ENTER_GPU(device);
    NEED(set);
    if (types & ~number_or(&gpu->values, "event_types", 0)) return NOT_SUPPORTED;
    if (!set->registered) set->seen = newest();
    if (types & XID) set->registered |= 1ull << gpu->index;
    return OK;
}

/* Takes the oldest event that the set has not given yet. */
static int take(struct event_set *set, struct event *out)
{
    u64 best = 0, number;
    unsigned gpu, xid;
    for (int i = 0; i < now->system.count; i++) {
        if (strcmp(now->system.of[i].key, "xid")) continue;
        if (sscanf(now->system.of[i].value, "%llu %u %u", &number, &gpu, &xid) != 3 || gpu >= (u32)now->gpus) continue;
        if (number <= set->seen || !(set->registered >> gpu & 1) || (best && number > best)) continue;
        best = number;
        *out = (struct event){handle_of(&now->gpu[gpu], NULL), XID, xid, NO_INSTANCE, NO_INSTANCE};
    }
    if (best) set->seen = best;
    return best != 0;
}

static nvmlReturn_t look(const char *function, struct event_set *set, struct event *out)
{
    nvmlReturn_t code = OK;
    SCOPE = sim_enter(function, &code);
    if (code) return code;
    return take(set, out) ? OK : TIMEOUT;
}

static nvmlReturn_t wait(const char *function, struct event_set *set, struct event *out, u32 timeout_ms)
{
    NEED(set && out);
    u64 until = epoch_us() + timeout_ms * 1000ull;
    struct timespec pause = {0, 10000000};
    for (;;) {
        nvmlReturn_t code = look(function, set, out);
        if (code != TIMEOUT || epoch_us() >= until) return code;
        nanosleep(&pause, NULL);
    }
}

nvmlReturn_t nvmlEventSetWait(struct event_set *set, struct event *out, u32 timeout_ms)
{
    return wait(__func__, set, out, timeout_ms);
}

nvmlReturn_t nvmlEventSetWait_v2(struct event_set *set, struct event *out, u32 timeout_ms)
{
    return wait(__func__, set, out, timeout_ms);
}
