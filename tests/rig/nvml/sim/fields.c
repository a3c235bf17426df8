/* nvmlDeviceGetFieldValues: numbered readings, each with its own return code and type. */
#include "sim.h"

union value { double d; u32 ui; u64 ull; };
struct field { u32 id, scope; long long timestamp_us, latency_us; u32 type; nvmlReturn_t code; union value value; };

enum { DOUBLE = 0, U32 = 1, U64 = 3 };

struct source {
    u32 id, type;
    const char *key; /* of the state; null for a constant 0 */
    int place;       /* in a list like "1,2,3" */
};

static const struct source SOURCES[] = {
    {1, U64, "ecc", 0}, {2, U64, "ecc_pending", 0},
    {3, U64, "ecc_errors", 0}, {4, U64, "ecc_errors", 2}, {5, U64, "ecc_errors", 1}, {6, U64, "ecc_errors", 3},
    {29, U64, "retired_pages", 0}, {30, U64, "retired_pages", 1}, {31, U64, "retired_pending", 0},
    {74, U64, "violations_ns", 0}, {75, U64, "violations_ns", 1}, {76, U64, "violations_ns", 2},
    {77, U64, "violations_ns", 3}, {78, U64, "violations_ns", 4}, {79, U64, "violations_ns", 5},
    {80, U64, "violations_ns", 6}, {81, U64, "violations_ns", 7},
    {82, U32, "memory_celsius", 0}, {83, U64, "energy_mj", 0}, {91, U32, "nvlinks", 0},
    {94, U32, "pcie_replays", 0}, {95, U32, "pcie_replays", 0},
    {142, U64, "remapped_rows", 0}, {143, U64, "remapped_rows", 1}, {144, U64, "remapped_rows", 2},
    {145, U64, "remapped_rows", 3},
    {185, U32, "power_mw", 0}, {186, U32, "power_mw", 0}, {191, U64, "energy_mj", 0},
    {230, U32, "recovery_action", 0}, {301, U64, "remapped_rows", 4}, {302, U64, "remapped_rows", 5},
};

/* Fields that a 580 driver answers with a constant for an H200; the numbers are counters nobody reads here. */
static int is_counter(u32 id)
{
    return id == 169 || (id >= 173 && id <= 184) || (id >= 197 && id <= 199) || (id >= 226 && id <= 229);
}

/* Fields that this call leaves untouched and yet calls a success: type 0, value 0. */
static int is_untouched(u32 id)
{
    return id == 147 || (id >= 187 && id <= 190) || (id >= 192 && id <= 196) || (id >= 251 && id <= 268)
           || (id >= 270 && id <= 273) || (id >= 275 && id <= 288);
}

static int is_unknown(u32 id) /* to a driver of this age */
{
    return !id || id == 274 || (id >= 289 && id <= 293) || (id >= 296 && id <= 300) || id > 302;
}

static nvmlReturn_t from_source(const struct gpu *gpu, const struct source *source, struct field *field)
{
    u64 list[8] = {0};
    int count = numbers_of(&gpu->values, source->key, list, 8);
    if (!count) return NOT_SUPPORTED;
    if (source->id >= 3 && source->id <= 6 && !number_or(&gpu->values, "ecc", 0)) return NOT_SUPPORTED;
    field->type = source->type;
    if (source->type == U32) field->value.ui = (u32)list[source->place];
    else field->value.ull = list[source->place];
    return OK;
}

static nvmlReturn_t fill(const struct gpu *gpu, struct field *field)
{
    for (unsigned i = 0; i < sizeof SOURCES / sizeof *SOURCES; i++)
        if (SOURCES[i].id == field->id) return from_source(gpu, &SOURCES[i], field);
    if (is_unknown(field->id)) return INVALID_ARGUMENT;
    if (is_untouched(field->id)) return OK;
    if (field->id == 269) return field->type = U64, OK;
    if (!is_counter(field->id)) return NOT_SUPPORTED;
    field->type = U32;
    field->value.ui = field->id == 184 || field->id == 199;
    return OK;
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, struct field *fields)
{
    ENTER_GPU(device);
    NEED(fields);
    if (count <= 0) return INVALID_ARGUMENT;
    for (int i = 0; i < count; i++) {
        struct field *field = &fields[i];
        field->timestamp_us = (long long)epoch_us();
        field->latency_us = 1;
        field->type = DOUBLE;
        field->value.ull = 0;
        field->code = fill(gpu, field);
    }
    return OK;
}
