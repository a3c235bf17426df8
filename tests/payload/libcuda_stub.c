/* A stand-in for libcuda.so.1: answers what the environment tells it to.
 *
 * STUB_INIT: the code of cuInit; STUB_COUNT: GPUs there are (1); STUB_VERSION: the CUDA version offered (12080);
 * STUB_HANG: cuInit does not return. CUDA_VISIBLE_DEVICES is obeyed as the real one does, for indices.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int number(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text && *text ? atoi(text) : otherwise;
}

static int visible(void) {
    const char *text = getenv("CUDA_VISIBLE_DEVICES");
    int all = number("STUB_COUNT", 1), seen = 0;
    if (!text) return all;
    while (*text) {
        char *end;
        long index = strtol(text, &end, 10);
        if (end == text || index < 0 || index >= all) break;
        seen++;
        text = *end == ',' ? end + 1 : end;
    }
    return seen;
}

int cuDriverGetVersion(int *version) {
    *version = number("STUB_VERSION", 12080);
    return 0;
}

int cuInit(unsigned flags) {
    (void)flags;
    if (number("STUB_HANG", 0)) sleep(600);
    int code = number("STUB_INIT", 0);
    if (code) return code;
    return visible() ? 0 : 100; /* no device */
}

int cuDeviceGetCount(int *count) {
    *count = visible();
    return 0;
}

int cuDeviceGet(int *device, int position) {
    *device = position;
    return 0;
}

int cuDeviceGetUuid(unsigned char *uuid, int device) {
    memset(uuid, 0, 16);
    uuid[15] = (unsigned char)device;
    return 0;
}
