// The heap: prompt release, drops, cycles, deep nesting; lists, dictionaries and strings on it.
#include "tests/library/calling.h"

static int dropped[8], dropped_count;
static Value kept;

static void note_drop(Instance *instance) {
    dropped[dropped_count++] = (int)instance->fields[0].as.integer;
    if (instance->fields[0].as.integer == 7) {
        instance->counted.refs++;
        kept = (Value){.kind = VALUE_STRUCT, .as.instance = instance};
    }
}

static const char *const fields[] = {"number", "other"};
static const StructType dropping = {
    .name = "Dropping", .field_count = 2, .field_names = fields, .has_drop = true};

static Value new_dropping(int64_t number, Value other) {
    Value value = value_struct(&dropping);
    value.as.instance->fields[0] = value_int(number);
    value.as.instance->fields[1] = other;
    return value;
}

static Tensor *new_tensor(void) {
    Device *device;
    Tensor *tensor;
    assert_int_equal(device_default(&device), STATUS_OK);
    Shape shape = {.rank = 1, .dims = {64}};
    assert_int_equal(tensor_new(device, DTYPE_FLOAT32, &shape, &tensor), STATUS_OK);
    return tensor;
}

static uint64_t live_buffers(void) {
    return pool_statistics(device_default_opened()).live_buffers;
}

static void test_release_is_prompt(void **state) {
    (void)state;
    Value list = LIST(value_tensor(new_tensor()), LIST(value_tensor(new_tensor())));
    assert_int_equal(live_buffers(), 2);
    Value held = value_retain(list);
    value_release(list);
    assert_int_equal(live_buffers(), 2);
    value_release(held);
    assert_int_equal(live_buffers(), 0);
    assert_int_equal(heap_object_count(), 0);
}

static void test_deep_nesting_is_released_without_recursion(void **state) {
    (void)state;
    Value list = LIST(value_tensor(new_tensor()));
    for (int i = 0; i < 1000000; i++) list = i % 2 ? LIST(list) : TUPLE(list);
    assert_int_equal(heap_object_count(), 1000001);
    value_release(list);
    assert_int_equal(heap_object_count(), 0);
    assert_int_equal(live_buffers(), 0);
}

static void test_drops_run_once_in_order(void **state) {
    (void)state;
    heap_set_drop_hook(note_drop);
    dropped_count = 0;
    value_release(
        new_dropping(1, LIST(new_dropping(2, value_none()), new_dropping(3, value_none()))));
    assert_int_equal(dropped_count, 3);
    for (int i = 0; i < 3; i++) assert_int_equal(dropped[i], i + 1);
}

static void test_drop_may_keep_its_instance(void **state) {
    (void)state;
    heap_set_drop_hook(note_drop);
    dropped_count = 0;
    value_release(new_dropping(7, value_none()));
    assert_int_equal(dropped_count, 1);
    assert_int_equal(heap_object_count(), 1);
    assert_int_equal(kept.as.instance->counted.refs, 1);
    value_release(kept);
    assert_int_equal(dropped_count, 1);
    assert_int_equal(heap_object_count(), 0);
}

static void test_cycles_are_found_and_counted(void **state) {
    (void)state;
    Value list = value_list(0);
    list_push(list.as.list, value_retain(list));
    list_push(list.as.list, value_tensor(new_tensor()));
    Value dict = value_dict();
    dict_set_word(dict.as.dict, "list", value_retain(list));
    list_push(list.as.list, value_retain(dict));
    assert_int_equal(heap_collect_cycles(), 0); // both are still held from outside
    value_release(list);
    assert_int_equal(heap_collect_cycles(), 0); // the dictionary still is
    assert_int_equal(live_buffers(), 1);
    value_release(dict);
    assert_int_equal(live_buffers(), 1);
    assert_int_equal(heap_collect_cycles(), 1);
    assert_int_equal(live_buffers(), 0);
    assert_int_equal(heap_object_count(), 0);
    assert_int_equal(heap_rescued_buffers(), 1);
    assert_int_equal(heap_clear_all(), 1);
    assert_int_equal(heap_clear_all(), 0);
}

static void test_cycles_through_structs_drop(void **state) {
    (void)state;
    heap_set_drop_hook(note_drop);
    dropped_count = 0;
    Value a = new_dropping(1, value_none()), b = new_dropping(2, value_retain(a));
    value_release(a.as.instance->fields[1]);
    a.as.instance->fields[1] = value_retain(b);
    Value cell = value_cell(value_none());
    Value function = value_function("f", NULL, 1);
    function.as.function->cells[0] = value_retain(cell).as.cell;
    cell.as.cell->value = function;
    value_release(cell);
    value_release(a);
    value_release(b);
    assert_int_equal(heap_object_count(), 4);
    heap_collect_cycles();
    assert_int_equal(heap_object_count(), 0);
    assert_int_equal(dropped_count, 2);
}

static void test_clear_all_takes_what_counts_still_hold(void **state) {
    (void)state;
    Value forgotten = LIST(value_tensor(new_tensor()));
    assert_int_equal(heap_clear_all(), 1);
    assert_int_equal(live_buffers(), 0);
    value_release(forgotten);
}

static void test_many_cycles_are_collected_along_the_way(void **state) {
    (void)state;
    for (int i = 0; i < 300000; i++) {
        Value list = value_list(0);
        list_push(list.as.list, value_retain(list));
        value_release(list);
    }
    assert_true(heap_object_count() < 200001);
    heap_collect_cycles();
    assert_int_equal(heap_object_count(), 0);
}

static void test_dictionaries_keep_their_order(void **state) {
    (void)state;
    Value dict = value_dict();
    Dict *d = dict.as.dict;
    for (int64_t i = 0; i < 1000; i++) dict_set(d, value_int(i * 7919 % 1000), value_int(i));
    dict_set(d, value_bool(true), S("yes"));
    dict_set(d, value_int(1), S("one"));
    assert_int_equal(dict_count(d), 1001);
    Value removed;
    for (int64_t i = 0; i < 1000; i += 2) {
        assert_true(dict_remove(d, value_int(i * 7919 % 1000), &removed));
        if (removed.kind == VALUE_INT) assert_int_equal(removed.as.integer, i);
    }
    assert_false(dict_remove(d, value_int(0), &removed));
    assert_int_equal(dict_count(d), 501);
    Value key, item;
    for (size_t i = 0; i < 500; i++) {
        dict_entry(d, i, &key, &item);
        assert_int_equal(key.as.integer, (int64_t)(2 * i + 1) * 7919 % 1000);
        assert_int_equal(dict_get(d, key).as.integer, item.as.integer);
    }
    dict_entry(d, 500, &key, &item);
    assert_int_equal(key.kind, VALUE_BOOL);
    assert_int_equal(dict_get_word(d, "absent").kind, VALUE_ABSENT);
    dict_set_word(d, "schlüssel", LIST(value_int(1)));
    assert_int_equal(dict_get_word(d, "schlüssel").kind, VALUE_LIST);
    dict_clear(d);
    assert_int_equal(dict_count(d), 0);
    dict_set_word(d, "again", value_int(1));
    expect_text(dict, "{\"again\": 1}");
}

static void test_strings_count_code_points(void **state) {
    (void)state;
    Value text = S("aé漢🦙z");
    assert_int_equal(string_length(text.as.string), 5);
    expect_text(string_slice(text.as.string, 1, 3), "\"é漢🦙\"");
    expect_text(string_slice(text.as.string, 4, 1), "\"z\"");
    expect_text(string_slice(S("plain").as.string, 1, 3), "\"lai\"");
    expect_text(string_concat(S("é").as.string, S("z").as.string), "\"éz\"");
    assert_true(string_compare(S("a").as.string, S("ab").as.string) < 0);
    assert_true(string_compare(S("b").as.string, S("ab").as.string) > 0);
    assert_int_equal(string_compare(S("é").as.string, S("é").as.string), 0);
}

static void test_ranges_count(void **state) {
    (void)state;
    const struct {
        int64_t start, stop, step;
        uint64_t count;
    } cases[] = {{0, 5, 1, 5},
                 {0, 5, 2, 3},
                 {5, 0, -1, 5},
                 {5, 0, -2, 3},
                 {5, 5, 1, 0},
                 {5, 0, 1, 0},
                 {0, 5, -1, 0},
                 {INT64_MIN, INT64_MAX, 1, UINT64_MAX},
                 {INT64_MAX, INT64_MIN, INT64_MIN, 2},
                 {INT64_MIN, INT64_MAX, INT64_MAX, 3}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        Range range = {cases[i].start, cases[i].stop, cases[i].step};
        assert_true(range_count(&range) == cases[i].count);
    }
}

static void collect_strings(void *argument) {
    // The stack of the new thread is what keeps `text` alive here.
    Value text = S("kept by the stack");
    for (int i = 0; i < 200000; i++) value_cstring("garbage that the collector takes away again");
    assert_string_equal(text.as.string->bytes, "kept by the stack");
    fail(STATUS_VALUE, "from the other thread");
    *(bool *)argument = true;
}

static void test_a_big_stack_is_known_to_the_collector(void **state) {
    (void)state;
    bool ran = false;
    assert_int_equal(heap_run_on_stack((size_t)256 << 20, collect_strings, &ran), STATUS_OK);
    assert_true(ran);
    assert_string_equal(error_current()->message, "from the other thread");
}

static bool is_zeroed(const Value *items, size_t from, size_t to) {
    for (size_t i = from; i < to; i++)
        if (items[i].kind != VALUE_NONE || items[i].as.integer != 0) return false;
    return true;
}

// Large memory is not zeroed by the collector, but here, and it is scanned as any other.
static void test_long_lists_are_zeroed_and_scanned(void **state) {
    (void)state;
    enum { SHORT = 600000, LONG = 1200000, EVERY = 5000 };
    for (int round = 0; round < 2; round++) { // the second one takes what the first one left
        Value list = value_list(SHORT);
        for (int i = 0; i < SHORT; i++) list_push(list.as.list, value_int(i + 1));
        for (int i = 0; i < SHORT; i += EVERY) list.as.list->items[i] = S("kept by a long list");
        assert_true(list_reserve(list.as.list, LONG));
        assert_true(is_zeroed(list.as.list->items, SHORT, LONG));
        for (int i = 0; i < 100000; i++) value_cstring("garbage that the collector takes away");
        for (int i = 0; i < SHORT; i++) {
            const Value *item = &list.as.list->items[i];
            if (i % EVERY) assert_int_equal(item->as.integer, i + 1);
            if (i % EVERY == 0) assert_string_equal(item->as.string->bytes, "kept by a long list");
        }
        for (int i = SHORT; i < LONG; i++) list_push(list.as.list, value_int(i));
        value_release(list);
    }
    assert_int_equal(heap_object_count(), 0);
}

static void test_append_retains_and_grows(void **state) {
    (void)state;
    Value inner = LIST(value_int(1)), list = LIST(inner, value_int(2)), all = value_list(0);
    for (int i = 0; i < 3; i++) list_append(all.as.list, list.as.list->items, 2);
    list_append(all.as.list, list.as.list->items, 0);
    assert_int_equal(all.as.list->count, 6);
    assert_int_equal(inner.as.list->counted.refs, 4);
    assert_int_equal(all.as.list->items[5].as.integer, 2);
    size_t capacity = all.as.list->capacity;
    assert_true(capacity >= 6);
    list_append(all.as.list, all.as.list->items, capacity - 6); // its own, where there is room
    assert_int_equal(all.as.list->capacity, capacity);
    value_release(list);
    value_release(all);
    assert_int_equal(heap_object_count(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_release_is_prompt),
        cmocka_unit_test(test_deep_nesting_is_released_without_recursion),
        cmocka_unit_test(test_drops_run_once_in_order),
        cmocka_unit_test(test_drop_may_keep_its_instance),
        cmocka_unit_test(test_cycles_are_found_and_counted),
        cmocka_unit_test(test_cycles_through_structs_drop),
        cmocka_unit_test(test_clear_all_takes_what_counts_still_hold),
        cmocka_unit_test(test_many_cycles_are_collected_along_the_way),
        cmocka_unit_test(test_dictionaries_keep_their_order),
        cmocka_unit_test(test_strings_count_code_points),
        cmocka_unit_test(test_ranges_count),
        cmocka_unit_test(test_long_lists_are_zeroed_and_scanned),
        cmocka_unit_test(test_append_retains_and_grows),
        cmocka_unit_test(test_a_big_stack_is_known_to_the_collector),
    };
    return cmocka_run_group_tests(tests, start_heap, end_heap);
}
