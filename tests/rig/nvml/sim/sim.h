/* What the parts of the NVML simulator share: the state, the way into every call, and small helpers.
 *
 * The library answers NVML calls from a text file (GPUCONSOLE_NVML_STATE) that may be replaced at any
 * time; it looks at the file on every call. Semantics follow a recording of an H200 with driver 580
 * (tests/fixtures/nvml/h200.json); what the recording cannot show says so where it stands.
 */
#ifndef NVML_SIM_H
#define NVML_SIM_H

#include <stddef.h>

typedef unsigned int u32;
typedef unsigned long long u64;
typedef int nvmlReturn_t;
typedef struct handle *nvmlDevice_t;

enum {
    OK = 0, UNINITIALIZED = 1, INVALID_ARGUMENT = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6,
    INSUFFICIENT_SIZE = 7, DRIVER_NOT_LOADED = 9, TIMEOUT = 10, FUNCTION_NOT_FOUND = 13, GPU_IS_LOST = 15,
    VERSION_MISMATCH = 25
};

#define MAX_GPUS 16
#define MAX_MIGS 8
#define MAX_PROCESSES 64
#define MAX_VALUES 256
#define NO_INSTANCE 0xFFFFFFFFu
#define NOT_AVAILABLE 0xFFFFFFFFFFFFFFFFull

struct values {
    int count;
    struct { const char *key, *value; } of[MAX_VALUES];
};

enum { COMPUTE = 1, GRAPHICS = 2, MPS = 4 };

struct process {
    u32 pid, kinds, gpu_instance, compute_instance;
    u64 used_bytes;
    u32 sm, memory, encoder, decoder;
};

struct mig {
    struct values values;
};

struct gpu {
    int index;
    struct values values;
    int migs, processes;
    struct mig mig[MAX_MIGS];
    struct process process[MAX_PROCESSES];
};

struct state {
    char *text; /* the file; keys and values point into it */
    struct values system;
    int gpus;
    struct gpu gpu[MAX_GPUS];
};

/* What a handle stands for in the present state. */
struct target {
    struct gpu *gpu;
    struct mig *mig; /* null for a whole GPU */
};

struct scope { int held; };

extern struct state *now; /* the present state; only inside a call */

/* The ways into a call. Each leaves by itself when the function returns. */
struct scope sim_enter(const char *function, nvmlReturn_t *code);
struct scope sim_enter_device(const char *function, nvmlDevice_t device, struct target *target, nvmlReturn_t *code);
void sim_leave(struct scope *scope);

#define SCOPE struct scope scope_ __attribute__((cleanup(sim_leave), unused))
#define ENTER_SYSTEM                                                                                           \
    nvmlReturn_t code = OK;                                                                                    \
    SCOPE = sim_enter(__func__, &code);                                                                        \
    if (code) return code
#define ENTER_ANY(device)                                                                                      \
    nvmlReturn_t code = OK;                                                                                    \
    struct target target = {0};                                                                                \
    SCOPE = sim_enter_device(__func__, device, &target, &code);                                                \
    if (code) return code;                                                                                     \
    struct gpu *gpu __attribute__((unused)) = target.gpu
/* Calls that a MIG device does not answer; which those are is known from documentation, not from a card. */
#define ENTER_GPU(device)                                                                                      \
    ENTER_ANY(device);                                                                                         \
    if (target.mig) return NOT_SUPPORTED
#define NEED(pointer)                                                                                          \
    if (!(pointer)) return INVALID_ARGUMENT

/* The code that the state prescribes for one call on one GPU (or on the system), OK if none. */
nvmlReturn_t prescribed(const struct values *values, const char *function);

const char *text_of(const struct values *values, const char *key); /* null if absent */
u64 number_or(const struct values *values, const char *key, u64 otherwise);
nvmlReturn_t put_u32(const struct values *values, const char *key, u32 *out); /* NOT_SUPPORTED if absent */
nvmlReturn_t put_u64(const struct values *values, const char *key, u64 *out);
nvmlReturn_t put_text(const char *text, char *out, u32 size); /* NOT_SUPPORTED if null */
int numbers_of(const struct values *values, const char *key, u64 *out, int room); /* of "1,2,3"; how many */

nvmlDevice_t handle_of(const struct gpu *gpu, const struct mig *mig);
struct target target_of(nvmlDevice_t device);
u64 epoch_us(void);

struct state *state_read(const char *path);
void state_free(struct state *state);
int state_is_current(const char *path); /* also notes what was seen */

#define GETTER_U32(function, key)                                                                              \
    nvmlReturn_t function(nvmlDevice_t device, u32 *out)                                                       \
    {                                                                                                          \
        ENTER_GPU(device);                                                                                     \
        return put_u32(&gpu->values, key, out);                                                                \
    }
#define GETTER_U64(function, key)                                                                              \
    nvmlReturn_t function(nvmlDevice_t device, u64 *out)                                                       \
    {                                                                                                          \
        ENTER_GPU(device);                                                                                     \
        return put_u64(&gpu->values, key, out);                                                                \
    }
#define GETTER_PAIR(function, first, second)                                                                   \
    nvmlReturn_t function(nvmlDevice_t device, u32 *one, u32 *two)                                             \
    {                                                                                                          \
        ENTER_GPU(device);                                                                                     \
        code = put_u32(&gpu->values, first, one);                                                              \
        return code ? code : put_u32(&gpu->values, second, two);                                               \
    }
#define GETTER_TEXT(function, key)                                                                             \
    nvmlReturn_t function(nvmlDevice_t device, char *out, u32 size)                                            \
    {                                                                                                          \
        ENTER_GPU(device);                                                                                     \
        return put_text(text_of(&gpu->values, key), out, size);                                                \
    }
/* A call that says the same of every GPU. */
#define CONSTANT(function, answer)                                                                             \
    nvmlReturn_t function(nvmlDevice_t device)                                                                 \
    {                                                                                                          \
        ENTER_GPU(device);                                                                                     \
        return answer;                                                                                         \
    }

#endif
