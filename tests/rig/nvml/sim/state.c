/* Reading the state file: `[system]`, `[gpu]` and `[mig]` sections of `key = value` lines.
 *
 * A `[mig]` belongs to the `[gpu]` before it. `process` lines may stand in both:
 *     process = PID KINDS USED GI CI SM MEM ENC DEC
 * with KINDS out of C, G and M, and `-` for memory that is not available or an instance there is not.
 */
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static char *whole_file(const char *path)
{
    FILE *file = fopen(path, "rbe");
    if (!file) return NULL;
    size_t size = 0, room = 65536;
    char *text = malloc(room + 1);
    for (size_t got; text && (got = fread(text + size, 1, room - size, file)) > 0;) {
        size += got;
        if (size == room) text = realloc(text, (room *= 2) + 1);
    }
    fclose(file);
    if (text) text[size] = 0;
    return text;
}

static char *trimmed(char *text)
{
    while (*text == ' ' || *text == '\t') text++;
    char *end = text + strlen(text);
    while (end > text && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r')) *--end = 0;
    return text;
}

static u64 word_number(const char *word, u64 absent)
{
    return !word || !strcmp(word, "-") ? absent : strtoull(word, NULL, 0);
}

static void add_process(struct gpu *gpu, char *text)
{
    char *words[9] = {0}, *rest = NULL;
    int count = 0;
    for (char *word = strtok_r(text, " \t", &rest); word && count < 9; word = strtok_r(NULL, " \t", &rest))
        words[count++] = word;
    if (count < 3 || gpu->processes == MAX_PROCESSES) return;
    struct process *process = &gpu->process[gpu->processes++];
    *process = (struct process){
        .pid = (u32)word_number(words[0], 0),
        .kinds = (strchr(words[1], 'C') ? COMPUTE : 0) | (strchr(words[1], 'G') ? GRAPHICS : 0)
                 | (strchr(words[1], 'M') ? MPS : 0),
        .used_bytes = word_number(words[2], NOT_AVAILABLE),
        .gpu_instance = (u32)word_number(words[3], NO_INSTANCE),
        .compute_instance = (u32)word_number(words[4], NO_INSTANCE),
        .sm = (u32)word_number(words[5], 0),
        .memory = (u32)word_number(words[6], 0),
        .encoder = (u32)word_number(words[7], 0),
        .decoder = (u32)word_number(words[8], 0),
    };
}

/* `\\`, `\n` and `\s` (a space at an end) in values. */
static char *unescaped(char *value)
{
    char *to = value;
    for (char *from = value; *from; from++) {
        if (*from == '\\' && from[1]) from++, *to++ = *from == 'n' ? '\n' : *from == 's' ? ' ' : *from;
        else *to++ = *from;
    }
    *to = 0;
    return value;
}

static void add_value(struct state *state, struct gpu *gpu, struct values *values, char *key, char *value)
{
    if (!strcmp(key, "process")) {
        if (gpu && values != &state->system) add_process(gpu, value);
    } else if (values->count < MAX_VALUES) {
        values->of[values->count].key = key;
        values->of[values->count++].value = unescaped(value);
    }
}

struct state *state_read(const char *path)
{
    char *text = whole_file(path);
    struct state *state = text ? calloc(1, sizeof *state) : NULL;
    if (!state) return free(text), NULL;
    state->text = text;
    struct values *values = &state->system;
    struct gpu *gpu = NULL;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        line = trimmed(line);
        char *equals = strchr(line, '=');
        if (!strcmp(line, "[system]")) {
            values = &state->system;
        } else if (!strcmp(line, "[gpu]") && state->gpus < MAX_GPUS) {
            gpu = &state->gpu[state->gpus];
            gpu->index = state->gpus++;
            values = &gpu->values;
        } else if (!strcmp(line, "[mig]") && gpu && gpu->migs < MAX_MIGS) {
            values = &gpu->mig[gpu->migs++].values;
        } else if (*line != '#' && equals) {
            *equals = 0;
            add_value(state, gpu, values, trimmed(line), trimmed(equals + 1));
        }
    }
    return state;
}

void state_free(struct state *state)
{
    if (state) free(state->text);
    free(state);
}

int state_is_current(const char *path)
{
    static char seen_path[4096];
    static struct stat seen;
    struct stat found;
    if (stat(path, &found)) return 1; /* gone for the moment: what was read stays true */
    int same = !strcmp(path, seen_path) && found.st_ino == seen.st_ino && found.st_size == seen.st_size
               && found.st_mtim.tv_sec == seen.st_mtim.tv_sec && found.st_mtim.tv_nsec == seen.st_mtim.tv_nsec;
    snprintf(seen_path, sizeof seen_path, "%s", path);
    seen = found;
    return same;
}

const char *text_of(const struct values *values, const char *key)
{
    for (int i = 0; i < values->count; i++)
        if (!strcmp(values->of[i].key, key)) return values->of[i].value;
    return NULL;
}

u64 number_or(const struct values *values, const char *key, u64 otherwise)
{
    const char *text = text_of(values, key);
    return text ? strtoull(text, NULL, 0) : otherwise;
}

nvmlReturn_t put_u64(const struct values *values, const char *key, u64 *out)
{
    NEED(out);
    const char *text = text_of(values, key);
    if (!text) return NOT_SUPPORTED;
    *out = strtoull(text, NULL, 0);
    return OK;
}

nvmlReturn_t put_u32(const struct values *values, const char *key, u32 *out)
{
    u64 wide = 0;
    NEED(out);
    nvmlReturn_t code = put_u64(values, key, &wide);
    if (!code) *out = (u32)wide;
    return code;
}

nvmlReturn_t put_text(const char *text, char *out, u32 size)
{
    NEED(out);
    if (!text) return NOT_SUPPORTED;
    if (strlen(text) >= size) return INSUFFICIENT_SIZE;
    strcpy(out, text);
    return OK;
}

int numbers_of(const struct values *values, const char *key, u64 *out, int room)
{
    const char *text = text_of(values, key);
    int count = 0;
    while (text && *text && count < room) {
        char *end = NULL;
        u64 number = strtoull(text, &end, 0);
        if (end == text) break;
        out[count++] = number;
        text = *end == ',' ? end + 1 : end;
    }
    return count;
}

u64 epoch_us(void)
{
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    return (u64)time.tv_sec * 1000000 + (u64)time.tv_nsec / 1000;
}
