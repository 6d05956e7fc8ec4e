// Devices are opened by name and by setting: the default one on small stacks, names, settings that
// are malformed.
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "device/device.h"
#include "device/settings.h"
#include "runtime/runtime.h"

#include "environment.h"

// Each thread has a runtime, and with it a default device, of its own.
static void *open_default(void *context) {
    Device *device;
    runtime_enter(runtime_new());
    *(Status *)context = device_default(&device);
    if (device_default_opened() != device || device->runtime != runtime_current)
        *(Status *)context = STATUS_DEVICE;
    device_default_close();
    if (device_default_opened()) *(Status *)context = STATUS_DEVICE;
    runtime_free(runtime_current);
    return NULL;
}

// Ours are small; what a vendor's driver needs is not ours, and more.
static void test_default_device_on_a_small_stack(void **state) {
    (void)state;
    Device *device;
    assert_int_equal(device_default(&device), STATUS_OK);
    bool ours = strcmp(device->name, "cpu") == 0 || strstr(device->description, "software driver");
    device_default_close();
    if (!ours) skip();
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    assert_int_equal(pthread_attr_setstacksize(&attributes, 256 << 10), 0);
    Status statuses[4];
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], &attributes, open_default, &statuses[i]), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(statuses[i], STATUS_OK);
    }
    assert_null(device_default_opened());
}

static void test_device_names(void **state) {
    (void)state;
    Device *device;
    assert_int_equal(device_open("auto", &device), STATUS_OK);
    assert_true(strcmp(device->name, "cpu") == 0 || strncmp(device->name, "vulkan:", 7) == 0);
    assert_null(strstr(device->description, "software driver"));
    device_close(device);
    assert_int_equal(device_open("gpu", &device), STATUS_SETTING);
    assert_int_equal(device_open("vulkan:x", &device), STATUS_SETTING);
    assert_int_equal(device_open("vulkan:63", &device), STATUS_DEVICE); // or there is no Vulkan
    static const char words[] = "cannot open the device vulkan:63: ";
    assert_memory_equal(error_current()->message, words, sizeof words - 1);
}

static void refuse_setting(const char *variable, const char *value) {
    setenv(variable, value, 1);
    Device *device;
    assert_int_equal(device_settings_check(), STATUS_SETTING);
    assert_int_equal(device_open("cpu", &device), STATUS_SETTING);
    assert_non_null(strstr(error_current()->message, variable));
    char quoted[64];
    snprintf(quoted, sizeof quoted, "\"%s\"", value);
    assert_non_null(strstr(error_current()->message, quoted));
    unsetenv(variable);
    assert_int_equal(device_settings_check(), STATUS_OK);
}

static void test_malformed_settings(void **state) {
    (void)state;
    static const char *const numbers[] = {"TL_BUFFER_MAX_MB", "TL_DEVICE_MEMORY_MB", "TL_THREADS",
                                          "TL_SEED", "TL_COMPUTE_PER_BUFFER"};
    static const char *const wrong[] = {"", "x", "-1", " 1", "1.5", "1x", "99999999999999999999"};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        for (size_t j = 0; j < sizeof wrong / sizeof *wrong; j++)
            refuse_setting(numbers[i], wrong[j]);
    refuse_setting("TL_THREADS", "0");
    refuse_setting("TL_COMPUTE_PER_BUFFER", "0");
    refuse_setting("TL_POISON", "yes");
    refuse_setting("TL_FAST", "yes");
    refuse_setting("TL_CACHE", "bfloat16");
    refuse_setting("TL_BUFFER_STATS", "2");
    refuse_setting("TL_DEBUG_MEMORY", "");
    refuse_setting("TL_MEMORY_CHECK", "loose");
    refuse_setting("TL_DEVICE", "gpu");
    refuse_setting("TL_ISA", "sse9");
    setenv("TL_THREADS", "many", 1);
    assert_int_equal(device_settings_check(), STATUS_SETTING);
    assert_string_equal(error_current()->message,
                        "TL_THREADS is \"many\", which is not a number of threads");
    assert_string_equal(error_current()->help, "set it to an integer from 1 to 1024, or unset it");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_default_device_on_a_small_stack, clean_environment),
        cmocka_unit_test_setup(test_device_names, clean_environment),
        cmocka_unit_test_setup(test_malformed_settings, clean_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
