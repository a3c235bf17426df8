/* Functions that a 580 driver has and nothing here answers: they exist, and say so. */
#include "sim.h"

/* A setting, which nobody may change here. */
#define REFUSED(function)                                                                                      \
    nvmlReturn_t function(void)                                                                                \
    {                                                                                                          \
        ENTER_SYSTEM;                                                                                          \
        return NO_PERMISSION;                                                                                  \
    }
#define SILENT(function)                                                                                       \
    nvmlReturn_t function(void)                                                                                \
    {                                                                                                          \
        ENTER_SYSTEM;                                                                                          \
        return NOT_SUPPORTED;                                                                                  \
    }
SILENT(nvmlInternalGetExportTable)
#include "rest.def"
