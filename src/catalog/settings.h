// The settings of learn blocks as a table: what each is checked against, and what help says of it.
#ifndef CATALOG_SETTINGS_H
#define CATALOG_SETTINGS_H

#include "base/text.h"

typedef enum SettingId {
#define SETTING(id, place, needs, form, doc) SETTING_##id,
#include "catalog/settings.def"
#undef SETTING
    SETTING_COUNT,
    SETTING_none = SETTING_COUNT
} SettingId;

typedef enum SettingPlace { SETTING_OUTSIDE, SETTING_INSIDE, SETTING_AFTER } SettingPlace;

typedef struct SettingRow {
    const char *name;
    SettingPlace place;
    SettingId needs; // SETTING_none: nothing
    const char *form, *doc;
} SettingRow;
extern const SettingRow setting_rows[SETTING_COUNT];

// SETTING_COUNT when there is none of that name.
SettingId setting_find(const char *name);
// The nearest known setting to a misspelt one, or NULL.
const char *setting_nearest(const char *name);
// The setting that a word of other libraries means, as `loss` means objective; or NULL.
const char *setting_meant(const char *name);
// What `tl help learn` says of all of them, or `tl help epochs` of one; nothing for other words.
void setting_help(const char *name, Text *out);

#endif
