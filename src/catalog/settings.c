// The table of settings.def.
#include "catalog/settings.h"

#include <string.h>

#include "catalog/catalog.h"

const SettingRow setting_rows[SETTING_COUNT] = {
#define SETTING(id, place, needs, form, doc) {#id, SETTING_##place, SETTING_##needs, form, doc},
#include "catalog/settings.def"
#undef SETTING
};

SettingId setting_find(const char *name) {
    for (int i = 0; i < SETTING_COUNT; i++)
        if (strcmp(setting_rows[i].name, name) == 0) return (SettingId)i;
    return SETTING_COUNT;
}

const char *setting_nearest(const char *name) {
    const char *names[SETTING_COUNT];
    for (int i = 0; i < SETTING_COUNT; i++) names[i] = setting_rows[i].name;
    return catalog_nearest(name, names, SETTING_COUNT);
}

const char *setting_meant(const char *name) {
    static const char *const words[][2] = {
        {"loss", "objective"},      {"cost", "objective"},          {"criterion", "objective"},
        {"opt", "optimizer"},       {"optim", "optimizer"},         {"iterations", "epochs"},
        {"steps", "epochs"},        {"max_epochs", "epochs"},       {"batch_size", "batch"},
        {"schedule", "scheduler"},  {"early_stopping", "patience"}, {"validation", "validate"},
        {"clip", "clip_grad_norm"}, {"log_every", "report_every"},  {"verbose", "progress"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i][0], name) == 0) return words[i][1];
    return NULL;
}

void setting_help(const char *name, Text *out) {
    bool all = strcmp(name, "learn") == 0;
    for (int i = 0; i < SETTING_COUNT; i++) {
        const SettingRow *row = &setting_rows[i];
        if (!all && strcmp(row->name, name) != 0) continue;
        text_format(out, "%s%s\n        %s\n", all ? "    " : "in learn: ", row->form, row->doc);
    }
}
