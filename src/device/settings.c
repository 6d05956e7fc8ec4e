// Reading of the TL_* variables, of the environment or as a runtime chose them, with an error in
// words for every malformed value.
#include "device/settings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/runtime.h"
#include "device/cpu/cpu.h"
#include "device/pool.h"
#include "device/statistics.h"

enum { DEVICE_INDEX_MAX = 63 };

static SettingChoice *find_choice(const char *variable) {
    Devices *devices = runtime_current->devices;
    for (size_t i = 0; i < devices->choices.count; i++)
        if (strcmp(devices->choices.items[i].variable, variable) == 0)
            return &devices->choices.items[i];
    return NULL;
}

const char *device_setting_choice(VariableId id) {
    const SettingChoice *choice = find_choice(variables[id].name);
    return choice ? choice->value : NULL;
}

void device_setting_choose(VariableId id, const char *value) {
    SettingChoice *choice = find_choice(variables[id].name);
    char *copy = value ? memory_copy_string(value, strlen(value)) : NULL;
    if (choice) {
        free(choice->value);
        choice->value = copy;
    } else {
        SettingChoice added = {variables[id].name, copy};
        VECTOR_PUSH(&runtime_current->devices->choices, added);
    }
}

// What the runtime chose, else what the environment says; NULL: neither.
static const char *setting_text(const char *variable) {
    const SettingChoice *choice = find_choice(variable);
    return choice && choice->value ? choice->value : getenv(variable);
}

// Digits only: strtoull alone would take signs and spaces.
static bool parse_integer(const char *text, uint64_t maximum, uint64_t *out) {
    size_t length = strlen(text);
    if (length == 0 || strspn(text, "0123456789") != length) return false;
    errno = 0;
    unsigned long long value = strtoull(text, NULL, 10);
    if (errno != 0 || value > maximum) return false;
    *out = value;
    return true;
}

static Status read_number(VariableId id, uint64_t *out) {
    const Variable *row = &variables[id];
    const char *text = setting_text(row->name);
    *out = row->unset;
    if (!text) return STATUS_OK;
    if (parse_integer(text, row->maximum, out) && *out >= row->minimum) return STATUS_OK;
    fail(STATUS_SETTING, "%s is \"%s\", which is not %s", row->name, text, row->what);
    return fail_help("set it to an integer from %llu to %llu, or unset it",
                     (unsigned long long)row->minimum, (unsigned long long)row->maximum);
}

static Status read_bytes(const char *variable, uint64_t *out) {
    const char *text = setting_text(variable);
    *out = 0;
    if (!text || number_read_bytes(text, out)) return STATUS_OK;
    fail(STATUS_SETTING, "%s is \"%s\", which is not a size", variable, text);
    return fail_help("set it to a size such as 500MB or 2GB, or unset it");
}

// *out: what the variable says; it stays where the variable is unset.
static Status read_switch(const char *variable, bool *out) {
    const char *text = setting_text(variable);
    if (!text) return STATUS_OK;
    bool unset = *out;
    *out = strcmp(text, "1") == 0;
    if (*out || strcmp(text, "0") == 0) return STATUS_OK;
    fail(STATUS_SETTING, "%s is \"%s\", which is neither 1 nor 0", variable, text);
    return fail_help("set it to %d to switch it %s, or unset it", !unset, unset ? "off" : "on");
}

static Status read_memory_check(MemoryCheck *out) {
    const char *text = setting_text("TL_MEMORY_CHECK");
    *out = MEMORY_CHECK_OFF;
    if (!text || strcmp(text, "0") == 0) return STATUS_OK;
    if (strcmp(text, "1") == 0) {
        *out = MEMORY_CHECK_REPORT;
    } else if (strcmp(text, "all") == 0) {
        *out = MEMORY_CHECK_ALL;
    } else if (strcmp(text, "strict") == 0) {
        *out = MEMORY_CHECK_STRICT;
    } else {
        fail(STATUS_SETTING, "TL_MEMORY_CHECK is \"%s\", which is not 1, all or strict", text);
        return fail_help("1 prints a report at exit, all one of the host's memory too; strict "
                         "exits with status 3 on a leak");
    }
    return STATUS_OK;
}

static Status read_repack(RepackSetting *out) {
    const char *text = setting_text("TL_REPACK");
    *out = REPACK_LAZY;
    if (!text || strcmp(text, "lazy") == 0) return STATUS_OK;
    if (strcmp(text, "0") == 0) {
        *out = REPACK_NEVER;
    } else if (strcmp(text, "load") == 0) {
        *out = REPACK_LOAD;
    } else {
        fail(STATUS_SETTING, "TL_REPACK is \"%s\", which is not 0, lazy or load", text);
        return fail_help("lazy repacks a weight at its first product, load when its model is "
                         "loaded, 0 never");
    }
    return STATUS_OK;
}

static Status read_cache(CacheSetting *out) {
    const char *text = setting_text("TL_CACHE");
    *out = CACHE_BY_MODEL;
    if (!text) return STATUS_OK;
    if (strcmp(text, "float16") == 0) {
        *out = CACHE_FLOAT16;
    } else if (strcmp(text, "float32") == 0) {
        *out = CACHE_FLOAT32;
    } else {
        fail(STATUS_SETTING, "TL_CACHE is \"%s\", which is not float16 or float32", text);
        return fail_help("float16 takes half the memory, float32 is more exact; unset, the model "
                         "says");
    }
    return STATUS_OK;
}

bool device_name_parse(const char *name, int *index) {
    *index = -1;
    if (strcmp(name, "cpu") == 0 || strcmp(name, "auto") == 0 || strcmp(name, "vulkan") == 0)
        return true;
    uint64_t number;
    if (strncmp(name, "vulkan:", 7) != 0 || !parse_integer(name + 7, DEVICE_INDEX_MAX, &number))
        return false;
    *index = (int)number;
    return true;
}

static Status read_device(char *out, size_t size) {
    const char *text = setting_text("TL_DEVICE");
    int index;
    if (!text) text = "auto";
    if (!device_name_parse(text, &index) || strlen(text) >= size) {
        fail(STATUS_SETTING, "TL_DEVICE is \"%s\", which is not a device", text);
        return fail_help(
            "devices are cpu, vulkan, vulkan:N (from 0 to %d), vulkan:local_rank and auto",
            DEVICE_INDEX_MAX);
    }
    memcpy(out, text, strlen(text) + 1);
    return STATUS_OK;
}

static Status read_test_settings(DeviceSettings *out) {
    uint64_t number;
    TRY(read_number(VARIABLE_TL_TEST_DEVICE_MB, &number));
    out->test_device_bytes = number << 20;
    TRY(read_number(VARIABLE_TL_TEST_HOST_MB, &number));
    out->test_host_bytes = number << 20;
    TRY(read_number(VARIABLE_TL_TEST_LOCKED_MB, &number));
    out->test_locked_bytes = number << 20;
    TRY(read_number(VARIABLE_TL_TEST_TRIED_MB, &number));
    out->test_tried_bytes = number << 20;
    TRY(read_number(VARIABLE_TL_TEST_SLOW_MS, &number));
    out->test_slow_ms = (int)number;
    TRY(read_number(VARIABLE_TL_TEST_PATIENCE_MS, &number));
    out->test_patience_ms = (int)number;
    TRY(read_number(VARIABLE_TL_TEST_REPRESENTATION, &number));
    out->test_representation = (int)number;
    return read_number(VARIABLE_TL_TEST_LOSS, &out->test_loss);
}

Status device_settings_read(DeviceSettings *out) {
    *out = (DeviceSettings){.vulkan_ptx = true};
    uint64_t megabytes, number;
    TRY(read_device(out->device, sizeof out->device));
    TRY(read_number(VARIABLE_TL_BUFFER_MAX_MB, &megabytes));
    out->buffer_max_bytes = megabytes << 20;
    out->has_buffer_max = setting_text("TL_BUFFER_MAX_MB") != NULL;
    TRY(read_number(VARIABLE_TL_DEVICE_MEMORY_MB, &megabytes));
    out->device_bytes = megabytes << 20;
    TRY(read_number(VARIABLE_TL_PROMPT_CACHE_MB, &megabytes));
    out->prompt_cache_bytes = megabytes << 20;
    TRY(read_bytes("TL_MEMORY_LIMIT", &out->limit_bytes));
    TRY(read_number(VARIABLE_TL_THREADS, &number));
    out->threads = (int)number;
    TRY(read_number(VARIABLE_TL_COMPUTE_PER_BUFFER, &number));
    out->compute_per_buffer = (int)number;
    TRY(read_number(VARIABLE_TL_SEED, &out->seed));
    out->has_seed = setting_text("TL_SEED") != NULL;
    TRY(read_switch("TL_POISON", &out->poison));
    TRY(read_switch("TL_DEBUG_MEMORY", &out->debug_memory));
    TRY(read_switch("TL_BUFFER_STATS", &out->buffer_stats));
    TRY(read_switch("TL_VULKAN_PTX", &out->vulkan_ptx));
    TRY(read_switch("TL_FAST", &out->fast));
    TRY(read_repack(&out->repack));
    TRY(read_cache(&out->cache));
    TRY(read_test_settings(out));
    return read_memory_check(&out->memory_check);
}

Status device_settings_refusals(void) {
    uint64_t number, bytes;
    TRY(read_number(VARIABLE_TL_FAIL_ALLOCATION, &number));
    TRY(read_number(VARIABLE_TL_FAIL_ALLOCATION_BYTES, &bytes));
    if (number || bytes) memory_refuse((int64_t)number, (size_t)bytes);
    return STATUS_OK;
}

Status device_settings_check(void) {
    DeviceSettings settings;
    TRY(device_settings_read(&settings));
    return cpu_isa_check();
}
