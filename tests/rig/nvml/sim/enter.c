/* Init and shutdown, the way into every call, and the handles of devices. */
#include "sim.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct state *now;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int inits;

/* A handle stays the same through re-inits and changes of state: it stands for a UUID. */
struct handle { char gpu[96], mig[96]; };
static struct handle handles[256];
static int handles_used;

static void refresh(void)
{
    const char *path = getenv("GPUCONSOLE_NVML_STATE");
    if (!path || (state_is_current(path) && now)) return;
    struct state *read = state_read(path);
    if (!read) return;
    state_free(now);
    now = read;
}

static void in_child(void) /* a forked child must init again, as with the real library */
{
    inits = 0;
    pthread_mutex_init(&lock, NULL);
}

__attribute__((constructor)) static void at_load(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

/* For tests that use the library inside their own process: as if it had just been loaded. */
void gpuconsole_sim_reset(void)
{
    pthread_mutex_lock(&lock);
    inits = 0;
    state_free(now);
    now = NULL;
    pthread_mutex_unlock(&lock);
}

static u64 of_call(const struct values *values, const char *what, const char *function)
{
    char key[160];
    snprintf(key, sizeof key, "%s.%s", what, function);
    return number_or(values, key, number_or(values, *what == 'e' ? "error.*" : "delay.*", 0));
}

nvmlReturn_t prescribed(const struct values *values, const char *function)
{
    return (nvmlReturn_t)of_call(values, "error", function);
}

/* Takes its time without the lock; afterwards there may be another state, or none and no init any more. */
static void slow(u64 milliseconds)
{
    if (!milliseconds) return;
    struct timespec time = {(time_t)(milliseconds / 1000), (long)(milliseconds % 1000) * 1000000};
    pthread_mutex_unlock(&lock);
    nanosleep(&time, NULL);
    pthread_mutex_lock(&lock);
    refresh();
}

static nvmlReturn_t init(const char *function)
{
    pthread_mutex_lock(&lock);
    refresh();
    nvmlReturn_t code = DRIVER_NOT_LOADED;
    if (now) {
        slow(of_call(&now->system, "delay", function));
        code = now ? (nvmlReturn_t)number_or(&now->system, "init", 0) : DRIVER_NOT_LOADED;
    }
    if (!code) inits++;
    pthread_mutex_unlock(&lock);
    return code;
}

nvmlReturn_t nvmlInit(void) { return init(__func__); }
nvmlReturn_t nvmlInit_v2(void) { return init(__func__); }
nvmlReturn_t nvmlInitWithFlags(u32 flags) { return (void)flags, init(__func__); }

nvmlReturn_t nvmlShutdown(void)
{
    pthread_mutex_lock(&lock);
    refresh();
    if (inits && now) slow(of_call(&now->system, "delay", __func__));
    nvmlReturn_t code = inits ? OK : UNINITIALIZED;
    if (inits) inits--;
    pthread_mutex_unlock(&lock);
    return code;
}

struct scope sim_enter(const char *function, nvmlReturn_t *code)
{
    pthread_mutex_lock(&lock);
    struct scope scope = {1};
    if (!inits) return *code = UNINITIALIZED, scope;
    refresh();
    slow(of_call(&now->system, "delay", function));
    if (!now || !inits) return *code = UNINITIALIZED, scope;
    *code = prescribed(&now->system, function);
    return scope;
}

struct scope sim_enter_device(const char *function, nvmlDevice_t device, struct target *target, nvmlReturn_t *code)
{
    struct scope scope = sim_enter(function, code);
    if (*code == UNINITIALIZED) return scope;
    if (!device) {
        fprintf(stderr, "NVML simulator: %s got a null handle; a real driver crashes here\n", function);
        abort();
    }
    if (*code) return scope;
    *target = target_of(device);
    if (target->gpu) {
        slow(of_call(&target->gpu->values, "delay", function));
        if (!now || !inits) return *code = UNINITIALIZED, scope;
        *target = target_of(device); /* the state may have changed meanwhile */
    }
    if (!target->gpu || number_or(&target->gpu->values, "lost", 0))
        *code = GPU_IS_LOST;
    else
        *code = prescribed(target->mig ? &target->mig->values : &target->gpu->values, function);
    return scope;
}

void sim_leave(struct scope *scope)
{
    if (scope->held) pthread_mutex_unlock(&lock);
}

static const char *uuid_of(const struct values *values)
{
    const char *uuid = text_of(values, "uuid");
    return uuid ? uuid : "";
}

nvmlDevice_t handle_of(const struct gpu *gpu, const struct mig *mig)
{
    const char *of_gpu = uuid_of(&gpu->values), *of_mig = mig ? uuid_of(&mig->values) : "";
    for (int i = 0; i < handles_used; i++)
        if (!strcmp(handles[i].gpu, of_gpu) && !strcmp(handles[i].mig, of_mig)) return &handles[i];
    struct handle *made = &handles[handles_used < 255 ? handles_used++ : 255];
    snprintf(made->gpu, sizeof made->gpu, "%s", of_gpu);
    snprintf(made->mig, sizeof made->mig, "%s", of_mig);
    return made;
}

struct target target_of(nvmlDevice_t device)
{
    struct target target = {0};
    for (int i = 0; i < now->gpus; i++)
        if (!strcmp(uuid_of(&now->gpu[i].values), device->gpu)) target.gpu = &now->gpu[i];
    if (!target.gpu || !*device->mig) return target;
    for (int i = 0; i < target.gpu->migs; i++)
        if (!strcmp(uuid_of(&target.gpu->mig[i].values), device->mig)) target.mig = &target.gpu->mig[i];
    if (!target.mig) target.gpu = NULL; /* the instance was destroyed */
    return target;
}
