/* ECC, remapped rows, retired pages, NVLink, fabric. */
#include "sim.h"

#include <string.h>

GETTER_PAIR(nvmlDeviceGetEccMode, "ecc", "ecc_pending")
GETTER_U32(nvmlDeviceGetDefaultEccMode, "ecc_default")
GETTER_U32(nvmlDeviceGetRetiredPagesPendingStatus, "retired_pending")

/* Counters: `ecc_errors` is corrected volatile, corrected aggregate, uncorrected volatile, uncorrected aggregate. */
static nvmlReturn_t ecc_count(const struct gpu *gpu, u32 kind, u32 counter, u64 *out)
{
    u64 counts[4];
    NEED(out);
    if (kind > 1 || counter > 1) return INVALID_ARGUMENT;
    if (!number_or(&gpu->values, "ecc", 0)) return NOT_SUPPORTED;
    if (numbers_of(&gpu->values, "ecc_errors", counts, 4) < 4) return NOT_SUPPORTED;
    *out = counts[2 * kind + counter];
    return OK;
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, u32 kind, u32 counter, u64 *out)
{
    ENTER_GPU(device);
    return ecc_count(gpu, kind, counter, out);
}

nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, u32 kind, u32 counter, u32 place, u64 *out)
{
    ENTER_GPU(device);
    if (place != 2 && place != 7) return NOT_SUPPORTED; /* DRAM and SRAM, as on Ampere and later */
    code = ecc_count(gpu, kind, counter, out);
    if (!code && place == 7) *out = 0; /* all simulated errors are in DRAM */
    return code;
}

struct detailed_ecc { u64 l1, l2, memory, registers; };

nvmlReturn_t nvmlDeviceGetDetailedEccErrors(nvmlDevice_t device, u32 kind, u32 counter, struct detailed_ecc *out)
{
    ENTER_GPU(device);
    NEED(out);
    memset(out, 0, sizeof *out);
    return ecc_count(gpu, kind, counter, &out->memory);
}

/* `remapped_rows` is correctable, uncorrectable, pending, failure. */
nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, u32 *corr, u32 *unc, u32 *pending, u32 *failure)
{
    u64 rows[4];
    ENTER_GPU(device);
    NEED(corr && unc && pending && failure);
    if (numbers_of(&gpu->values, "remapped_rows", rows, 4) < 4) return NOT_SUPPORTED;
    *corr = (u32)rows[0];
    *unc = (u32)rows[1];
    *pending = (u32)rows[2];
    *failure = (u32)rows[3];
    return OK;
}

struct remapped_v2 { u32 corr, corr_inactive, unc, unc_inactive, pending, failure; };

nvmlReturn_t nvmlDeviceGetRemappedRows_v2(nvmlDevice_t device, struct remapped_v2 *out)
{
    u64 rows[4];
    ENTER_GPU(device);
    NEED(out);
    if (numbers_of(&gpu->values, "remapped_rows", rows, 4) < 4) return NOT_SUPPORTED;
    *out = (struct remapped_v2){(u32)rows[0], 0, (u32)rows[1], 0, (u32)rows[2], (u32)rows[3]};
    return OK;
}

nvmlReturn_t nvmlDeviceGetRowRemapperHistogram(nvmlDevice_t device, u32 out[5])
{
    u64 banks[5];
    ENTER_GPU(device);
    NEED(out);
    if (numbers_of(&gpu->values, "remap_histogram", banks, 5) < 5) return NOT_SUPPORTED;
    for (int i = 0; i < 5; i++) out[i] = (u32)banks[i];
    return OK;
}

struct sram { u32 version; u64 counts[11]; u32 exceeded; };

nvmlReturn_t nvmlDeviceGetSramEccErrorStatus(nvmlDevice_t device, struct sram *out)
{
    ENTER_GPU(device);
    NEED(out);
    if (out->version != 0x1000068) return VERSION_MISMATCH;
    memset(out->counts, 0, sizeof out->counts);
    out->exceeded = 0;
    return number_or(&gpu->values, "ecc", 0) ? OK : NOT_SUPPORTED;
}

struct repair { u32 version, channel, tpc; };

nvmlReturn_t nvmlDeviceGetRepairStatus(nvmlDevice_t device, struct repair *out)
{
    ENTER_GPU(device);
    NEED(out);
    if (out->version != 0x100000C) return VERSION_MISMATCH;
    out->channel = out->tpc = 0;
    return OK;
}

/* Retired pages: counts only, `retired_pages` is by single-bit and by double-bit errors. */
static nvmlReturn_t retired(const struct gpu *gpu, u32 cause, u32 *count)
{
    u64 pages[2];
    NEED(count);
    if (cause > 1) return INVALID_ARGUMENT;
    if (numbers_of(&gpu->values, "retired_pages", pages, 2) < 2) return NOT_SUPPORTED;
    u32 room = *count;
    *count = (u32)pages[cause];
    return room < *count ? INSUFFICIENT_SIZE : OK;
}

nvmlReturn_t nvmlDeviceGetRetiredPages(nvmlDevice_t device, u32 cause, u32 *count, u64 *pages)
{
    ENTER_GPU(device);
    code = retired(gpu, cause, count);
    for (u32 i = 0; !code && pages && i < *count; i++) pages[i] = 0x1000ull * (i + 1);
    return code;
}

nvmlReturn_t nvmlDeviceGetRetiredPages_v2(nvmlDevice_t device, u32 cause, u32 *count, u64 *pages, u64 *times)
{
    ENTER_GPU(device);
    code = retired(gpu, cause, count);
    for (u32 i = 0; !code && pages && times && i < *count; i++) {
        pages[i] = 0x1000ull * (i + 1);
        times[i] = epoch_us();
    }
    return code;
}

/* NVLink: `nvlinks` links, all active, to a switch. */
static nvmlReturn_t link_value(const struct gpu *gpu, u32 link, u32 *out, u32 value)
{
    u64 links = number_or(&gpu->values, "nvlinks", 0);
    NEED(out);
    if (!links) return NOT_SUPPORTED;
    if (link >= links) return INVALID_ARGUMENT;
    *out = value;
    return OK;
}

#define LINK(function, value)                                                                                  \
    nvmlReturn_t function(nvmlDevice_t device, u32 link, u32 *out)                                             \
    {                                                                                                          \
        ENTER_GPU(device);                                                                                     \
        return link_value(gpu, link, out, (u32)(value));                                                       \
    }
LINK(nvmlDeviceGetNvLinkState, 1)
LINK(nvmlDeviceGetNvLinkVersion, number_or(&gpu->values, "nvlink_version", 6))
LINK(nvmlDeviceGetNvLinkRemoteDeviceType, 2)

nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, u32 link, u32 which, u32 *out)
{
    ENTER_GPU(device);
    return link_value(gpu, link, out, which != 4);
}

nvmlReturn_t nvmlDeviceGetNvLinkErrorCounter(nvmlDevice_t device, u32 link, u32 which, u64 *out)
{
    ENTER_GPU(device);
    NEED(out && which < 5);
    u32 none = 0;
    code = link_value(gpu, link, &none, 0);
    if (!code) *out = 0;
    return code;
}

struct fabric { unsigned char cluster[16]; nvmlReturn_t status; u32 clique; unsigned char state; };
struct fabric_v2 { u32 version; unsigned char cluster[16]; nvmlReturn_t status; u32 clique; unsigned char state; u32 health; };
struct fabric_v3 { struct fabric_v2 base; unsigned char summary; };

nvmlReturn_t nvmlDeviceGetGpuFabricInfo(nvmlDevice_t device, struct fabric *out)
{
    ENTER_GPU(device);
    NEED(out);
    memset(out, 0, sizeof *out);
    out->state = (unsigned char)number_or(&gpu->values, "fabric_state", 0);
    return OK;
}

nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, struct fabric_v3 *out)
{
    ENTER_GPU(device);
    NEED(out);
    u32 version = out->base.version;
    if (version != 0x2000024 && version != 0x3000028) return VERSION_MISMATCH;
    memset(out, 0, version == 0x2000024 ? sizeof out->base : sizeof *out);
    out->base.version = version;
    out->base.state = (unsigned char)number_or(&gpu->values, "fabric_state", 0);
    return OK;
}
