// Foretelling: a program runs on devices that account for memory exactly as others do, but hold and
// compute only what is small and known, so that sizes, loops and conditions follow. Numbers that
// only a run can know are guessed where the host reads them, and the places are remembered.
//
// Each foretold device stands for a real one, whose planner takes the memory that its kernels need
// besides their operands.
#ifndef DEVICE_FORETELL_H
#define DEVICE_FORETELL_H

#include "base/runtime.h"
#include "device/kernel.h"

// Memory of a foretold device; Buffer.handle points to one.
typedef struct Foretold {
    uint64_t planned[16]; // the planner's own: on vulkan a VulkanMemory
    char *bytes;          // NULL where it is too large to be held
    bool known;           // the bytes are what they would be in a run
    bool rounded;         // known, but for how the device rounds
    bool bounded;         // the tensors here may be smaller in a run
    size_t capacity;      // what it has, and the most of it that is resident
    size_t resident;
    size_t mapped; // bytes of an imported file, which `bytes` borrows; else 0
    bool read;     // and a kernel reads all of them where they are
} Foretold;

// What a real device adds to foretelling.
typedef struct ForetellPlanner {
    void (*made)(Foretold *memory); // optional
    // Takes and gives back the memory of a kernel, which then does not run.
    Status (*plan)(Device *device, const KernelCall *call);
    // Optional: after an upload of all of a buffer.
    void (*uploaded)(Device *device, Buffer *buffer, const void *source, size_t bytes);
    bool own_rounding; // its kernels do not round as the CPU's do (device/alike.h)
} ForetellPlanner;

// What is guessed for numbers that only a run knows: conditions are true (or false), others 0 (or
// 1); the other one after many readings at the same place, so that loops end.
typedef enum ForetellGuess { FORETELL_GUESS_TRUE, FORETELL_GUESS_FALSE } ForetellGuess;

// One way through the program: which of the booleans that only a run knows, in the order in which
// the host reads them, are the other of the two that they can be. A pass follows `given` of them
// and adds those that it reads after them.
enum { FORETELL_CHOICES_MAX = 16 };
typedef struct ForetellPath {
    bool turned[FORETELL_CHOICES_MAX];
    size_t given, made; // `made` may be more than there is room for
} ForetellPath;
// The next of all ways; false after the last, or where they are too long.
bool foretell_path_next(ForetellPath *path);

// What a pass takes numbers for that the device rounds in its own way: for unknown, for what the
// CPU finds, or for that with noise above any rounding of a device. From FORETELL_NOISE on each
// number is another kind (device/noise.h).
enum { FORETELL_AS_IT_LIKES, FORETELL_AS_THE_CPU, FORETELL_NOISE };

// How a pass guesses; borrowed.
typedef struct ForetellPlan {
    ForetellGuess guess;
    int rounding;
    const SourcePos *turned; // places where the other guess is made
    size_t turned_count;
    ForetellPath *path;
    bool judges; // the program is interrupted where it is sure that it cannot run
    bool fails;  // as the run: a handler gets the error of a tensor that the device cannot hold
} ForetellPlan;

// Devices that the runtime opens from here on are foretold.
typedef struct Foretelling Foretelling;
void foretelling_begin(const ForetellPlan *plan);
void foretelling_free(Foretelling *foretelling); // after its devices were closed; NULL is allowed
// The key of random streams that nobody has seeded, while foretelling: what they draw is unknown.
#define FORETELL_RANDOM_KEY UINT64_C(0x7C0B9DE3A52F4617)
// Whether this runtime foretells.
static inline bool foretelling(void) {
    return runtime_current->foretells;
}

// Makes an opened device a foretold one; the rest of it stays as it was.
void foretell_device(Device *device, const ForetellPlanner *planner);

// While it is true unknown numbers may be read without a trace: they are shown or checked, and
// nothing follows from them. Returns what was.
bool foretell_ignore_reads(bool ignore);
// The same for numbers that are only checked, unless a handler waits for the error.
bool foretell_ignore_checks(void);
void foretell_attempt(int more); // 1 where a handler begins to wait, -1 where it ends
bool foretell_attempts(void);
// How often unknown numbers have been read so far, those included.
uint64_t foretell_reads(void);
// Whether anything was guessed so far, or is only nearly what a run finds.
bool foretell_has_guessed(void);
// Text that shows such numbers becomes part of another: that is a reading, too.
void foretell_text_shown(void);
// What only a run gets, such as its input, is asked for: nothing is bounded from here on.
void foretell_unknown(void);
enum { FORETELL_FILLER = 0xA5 }; // the bytes of unknown numbers in files that are put aside
// A number of the host that only a run knows, and which went about as VALUE_MEASURED, decides
// something: a condition, or anything else. What is guessed for it; `at` is the place that is told.
bool foretell_choose(SourcePos at);
int64_t foretell_look(SourcePos at);
// What is made here takes at least what a run takes.
void foretell_at_most(SourcePos at);
// A number of the host that unknown numbers decide: becomes the most that it can be.
// Whether it did; what gets its size from it is told so.
bool foretell_most(const Buffer *source, int64_t most, int64_t *count);
void foretell_bound(Buffer *buffer);
// Whether what lies there may be smaller in a run. NULL is allowed.
bool foretell_is_bounded(const Buffer *buffer);
// The program looks at the shape of what may be smaller than it is here. NULL is allowed.
void foretell_shape_read(const Buffer *buffer);
// It is compared with others, or with an index: that decides only what happens where a handler
// waits for the error. NULL is allowed.
void foretell_shape_checked(const Buffer *buffer);
// Whether the numbers of a buffer are known here; true of what is not foretold.
bool foretell_knows(const Buffer *buffer);
// They come from where nobody foretells them. Nothing where the buffer is not foretold.
void foretell_forget(Buffer *buffer);

enum { FORETELL_LOOSE_MAX = 16, FORETELL_HOLDERS_MAX = 5 };

typedef struct ForecastHolder {
    SourcePos at;
    uint64_t bytes;
} ForecastHolder;

// What is sure of a pass: all that comes before the first unknown number that is read.
typedef struct SureForecast {
    uint64_t peak_bytes, tensor_bytes;
    SourcePos peak_at, tensor_at;
    bool more; // the pass was interrupted: it holds more than that
} SureForecast;

// What a pass has to say of its peak: what every run takes that goes the same way, the most that
// such a run can take, or an estimate.
typedef enum ForecastClaim { FORECAST_EXACT, FORECAST_BOUND, FORECAST_ESTIMATE } ForecastClaim;

// What one pass has found of the default device.
typedef struct Forecast {
    SureForecast sure;
    ForecastClaim claim;
    bool bounded; // some tensors may be smaller than they were taken to be
    bool rounded; // some numbers are unknown because the device rounds them in its own way
    uint64_t peak_bytes, cached_bytes, cached_buffers;
    uint64_t purposes[PURPOSE_COUNT];      // bytes of each at the peak
    uint64_t purposes_most[PURPOSE_COUNT]; // and at any moment
    uint64_t mapped_bytes, repacked_bytes; // the most at any moment
    uint64_t read_bytes;                   // of mapped ones, that products read in place
    uint64_t held_bytes;                   // of the host, resident: live and cached
    uint64_t away_room;                    // bytes that a limit can move out, at most
    uint64_t operation_bytes;              // of the largest operation: what it reads and makes
    uint64_t tensor_bytes;                 // of the largest tensor
    SourcePos peak_at, operation_at, tensor_at;
    ForecastHolder holders[FORETELL_HOLDERS_MAX]; // at the peak, largest first
    size_t holder_count;
    SourcePos loose[FORETELL_LOOSE_MAX]; // where unknown numbers were read
    bool open[FORETELL_LOOSE_MAX];       // nothing bounds what follows from those here
    size_t loose_count;
} Forecast;
// Whether what the device holds is what it holds in a run; NULL, which nothing holds, is allowed.
bool foretell_is_exact(const Device *device);
// Before the device's peak begins anew.
void foretell_peak_reset(const Device *device);
// What one device holds: its peak, those that the program has reset included, and its cache.
void foretell_device_report(const Device *device, Forecast *out);
// After the program; before its device is closed.
void foretelling_report(const Device *device, Forecast *out);

#endif
