/* What a device is: names, numbers, places, modes. */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *out, u32 size)
{
    ENTER_ANY(device);
    const char *name = text_of(&gpu->values, "name"), *profile = target.mig ? text_of(&target.mig->values, "profile") : NULL;
    if (!target.mig || !name) return put_text(name, out, size);
    char whole[160];
    snprintf(whole, sizeof whole, "%s MIG %s", name, profile ? profile : "");
    return put_text(whole, out, size);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *out, u32 size)
{
    ENTER_ANY(device);
    return put_text(text_of(target.mig ? &target.mig->values : &gpu->values, "uuid"), out, size);
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, u32 *out)
{
    ENTER_ANY(device);
    NEED(out);
    *out = (u32)(target.mig ? target.mig - gpu->mig : gpu->index);
    return OK;
}

GETTER_TEXT(nvmlDeviceGetSerial, "serial")
GETTER_TEXT(nvmlDeviceGetBoardPartNumber, "part_number")
GETTER_TEXT(nvmlDeviceGetVbiosVersion, "vbios")
GETTER_TEXT(nvmlDeviceGetInforomImageVersion, "inforom_image")
GETTER_U32(nvmlDeviceGetMinorNumber, "minor")
GETTER_U32(nvmlDeviceGetBoardId, "board_id")
GETTER_U32(nvmlDeviceGetMultiGpuBoard, "multi_gpu_board")
GETTER_U32(nvmlDeviceGetBrand, "brand")
GETTER_U32(nvmlDeviceGetArchitecture, "architecture")
GETTER_U32(nvmlDeviceGetBusType, "bus_type")
GETTER_U32(nvmlDeviceGetNumGpuCores, "cores")
GETTER_U32(nvmlDeviceGetMemoryBusWidth, "bus_width")
GETTER_U32(nvmlDeviceGetIrqNum, "irq")
GETTER_U32(nvmlDeviceGetPowerSource, "power_source")
GETTER_U32(nvmlDeviceGetModuleId, "module_id")
GETTER_U32(nvmlDeviceGetNumaNodeId, "numa_node")
GETTER_U32(nvmlDeviceGetVirtualizationMode, "virtualization")
GETTER_U32(nvmlDeviceGetHostVgpuMode, "host_vgpu_mode")
GETTER_U32(nvmlDeviceGetPersistenceMode, "persistence")
GETTER_U32(nvmlDeviceGetDisplayMode, "display_mode")
GETTER_U32(nvmlDeviceGetDisplayActive, "display_active")
GETTER_U32(nvmlDeviceGetComputeMode, "compute_mode")
GETTER_U32(nvmlDeviceGetAccountingMode, "accounting")
GETTER_U32(nvmlDeviceGetAccountingBufferSize, "accounting_size")
GETTER_PAIR(nvmlDeviceGetDriverModel, "driver_model", "driver_model")
GETTER_PAIR(nvmlDeviceGetDriverModel_v2, "driver_model", "driver_model")
GETTER_PAIR(nvmlDeviceGetGpuOperationMode, "operation_mode", "operation_mode")
GETTER_PAIR(nvmlDeviceGetGspFirmwareMode, "gsp_mode", "gsp_mode")
GETTER_PAIR(nvmlDeviceGetAutoBoostedClocksEnabled, "auto_boost", "auto_boost")

nvmlReturn_t nvmlDeviceGetInforomVersion(nvmlDevice_t device, u32 which, char *out, u32 size)
{
    static const char *const keys[] = {"inforom_oem", "inforom_ecc", "inforom_power"};
    ENTER_GPU(device);
    return which < 3 ? put_text(text_of(&gpu->values, keys[which]), out, size) : INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetGspFirmwareVersion(nvmlDevice_t device, char *out)
{
    ENTER_GPU(device);
    return put_text(text_of(&gpu->values, "gsp_version"), out, 64);
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    ENTER_GPU(device);
    NEED(major && minor);
    const char *both = text_of(&gpu->values, "compute_capability");
    return both && sscanf(both, "%d.%d", major, minor) == 2 ? OK : NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetAPIRestriction(nvmlDevice_t device, u32 which, u32 *out)
{
    ENTER_GPU(device);
    return put_u32(&gpu->values, which ? "auto_boost_restricted" : "clocks_restricted", out);
}

struct place { u32 domain, bus, device, function; };

static struct place place_of(const struct gpu *gpu)
{
    struct place place = {0};
    const char *bus_id = text_of(&gpu->values, "bus_id");
    if (bus_id) sscanf(bus_id, "%x:%x:%x.%x", &place.domain, &place.bus, &place.device, &place.function);
    return place;
}

struct pci_v2 { char bus_id[16]; u32 domain, bus, device, id, subsystem, reserved[4]; };
struct pci_v3 { char legacy[16]; u32 domain, bus, device, id, subsystem; char bus_id[32]; };
struct pci_ext { u32 version, domain, bus, device, id, subsystem, class, subclass; char bus_id[32]; };

#define PCI_NUMBERS(out)                                                                                       \
    struct place place = place_of(gpu);                                                                        \
    (out)->domain = place.domain;                                                                              \
    (out)->bus = place.bus;                                                                                    \
    (out)->device = place.device;                                                                              \
    (out)->id = (u32)number_or(&gpu->values, "pci_id", 0);                                                     \
    (out)->subsystem = (u32)number_or(&gpu->values, "pci_subsystem", 0)

static void legacy_bus_id(const struct place *place, char out[16])
{
    snprintf(out, 16, "%04X:%02X:%02X.%X", place->domain & 0xFFFF, place->bus & 0xFF, place->device & 0xFF, place->function & 7);
}

#define PCI_OLD(function)                                                                                      \
    nvmlReturn_t function(nvmlDevice_t device, struct pci_v2 *out)                                             \
    {                                                                                                          \
        ENTER_GPU(device);                                                                                     \
        NEED(out);                                                                                             \
        memset(out, 0, sizeof *out);                                                                           \
        PCI_NUMBERS(out);                                                                                      \
        legacy_bus_id(&place, out->bus_id);                                                                    \
        return OK;                                                                                             \
    }
PCI_OLD(nvmlDeviceGetPciInfo)
PCI_OLD(nvmlDeviceGetPciInfo_v2)

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, struct pci_v3 *out)
{
    ENTER_GPU(device);
    NEED(out);
    memset(out, 0, sizeof *out);
    PCI_NUMBERS(out);
    legacy_bus_id(&place, out->legacy);
    snprintf(out->bus_id, sizeof out->bus_id, "%08X:%02X:%02X.%X", place.domain, place.bus, place.device, place.function);
    return OK;
}

nvmlReturn_t nvmlDeviceGetPciInfoExt(nvmlDevice_t device, struct pci_ext *out)
{
    ENTER_GPU(device);
    NEED(out);
    if (out->version != 0x1000040) return VERSION_MISMATCH;
    PCI_NUMBERS(out);
    out->class = 3;
    out->subclass = (u32)number_or(&gpu->values, "pci_subclass", 2);
    snprintf(out->bus_id, sizeof out->bus_id, "%08X:%02X:%02X.%X", place.domain, place.bus, place.device, place.function);
    return OK;
}

struct one_word { u32 version, value; };

#define ONE_WORD(function, word, expression)                                                                   \
    nvmlReturn_t function(nvmlDevice_t device, struct one_word *out)                                           \
    {                                                                                                          \
        ENTER_GPU(device);                                                                                     \
        NEED(out);                                                                                             \
        if (out->version != (word)) return VERSION_MISMATCH;                                                   \
        out->value = (u32)(expression);                                                                        \
        return OK;                                                                                             \
    }
ONE_WORD(nvmlDeviceGetCapabilities, 0x1000008, 0)
ONE_WORD(nvmlDeviceGetAddressingMode, 0x1000008, number_or(&gpu->values, "addressing_mode", 0))
ONE_WORD(nvmlGpmQueryDeviceSupport, 1, number_or(&gpu->values, "gpm", 0))

nvmlReturn_t nvmlDeviceGetC2cModeInfoV(nvmlDevice_t device, u32 *enabled)
{
    ENTER_GPU(device);
    return put_u32(&gpu->values, "c2c", enabled);
}

/* Affinity: one node, all processors of the first word. */
nvmlReturn_t nvmlDeviceGetCpuAffinity(nvmlDevice_t device, u32 words, unsigned long *out)
{
    ENTER_GPU(device);
    NEED(out && words);
    memset(out, 0, words * sizeof *out);
    out[0] = ~0ul;
    return OK;
}

nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, u32 words, unsigned long *out, u32 scope)
{
    ENTER_GPU(device);
    NEED(out && words);
    (void)scope;
    memset(out, 0, words * sizeof *out);
    out[0] = 1;
    return OK;
}

nvmlReturn_t nvmlDeviceGetTopologyNearestGpus(nvmlDevice_t device, u32 level, u32 *count, nvmlDevice_t *out)
{
    ENTER_GPU(device);
    NEED(count);
    u32 room = *count, others = level == 40 ? (u32)now->gpus - 1 : 0; /* all GPUs on one node */
    *count = others;
    if (!out) return OK;
    if (room < others) return INSUFFICIENT_SIZE;
    for (int i = 0, at = 0; i < now->gpus && others; i++)
        if (i != gpu->index) out[at++] = handle_of(&now->gpu[i], NULL);
    return OK;
}

nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t one, nvmlDevice_t other, u32 *out)
{
    ENTER_GPU(one);
    NEED(out && other);
    if (one == other) return NOT_SUPPORTED;
    *out = 40;
    return OK;
}

nvmlReturn_t nvmlDeviceOnSameBoard(nvmlDevice_t one, nvmlDevice_t other, int *out)
{
    ENTER_GPU(one);
    NEED(out && other);
    *out = one == other;
    return OK;
}

nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t one, nvmlDevice_t other, u32 which, u32 *out)
{
    ENTER_GPU(one);
    NEED(out && other);
    (void)which;
    *out = one == other ? 5 : 0;
    return OK;
}
