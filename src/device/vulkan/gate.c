// The slow device of the tests: submission n may begin only when the host has said n, and a thread
// says so late. What reads too early, or is given memory that is still in use, is then found out.
#include <time.h>

#include "device/vulkan/core.h"

enum { MS_PER_S = 1000, NS_PER_MS = 1000000, NS_PER_S = 1000000000 };

// With the lock held: until the delay is over, or all is to be let through.
static void delay(VulkanGate *gate) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    long nanoseconds = until.tv_nsec + (long)(gate->delay_ms % MS_PER_S) * NS_PER_MS;
    until.tv_sec += gate->delay_ms / MS_PER_S + nanoseconds / NS_PER_S;
    until.tv_nsec = nanoseconds % NS_PER_S;
    int result = 0;
    while (!gate->stop && result == 0)
        result = pthread_cond_timedwait(&gate->changed, &gate->lock, &until);
}

static void say(VulkanDevice *vulkan, uint64_t value) {
    VkSemaphoreSignalInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
        .semaphore = vulkan->gate.semaphore,
        .value = value,
    };
    vulkan->call.SignalSemaphore(vulkan->handle, &info);
}

static void *keep_gate(void *context) {
    VulkanDevice *vulkan = context;
    VulkanGate *gate = &vulkan->gate;
    uint64_t said = 0;
    pthread_mutex_lock(&gate->lock);
    for (;;) {
        while (!gate->stop && said == gate->wanted) pthread_cond_wait(&gate->changed, &gate->lock);
        if (said == gate->wanted) break;
        delay(gate);
        pthread_mutex_unlock(&gate->lock);
        say(vulkan, ++said);
        pthread_mutex_lock(&gate->lock);
    }
    pthread_mutex_unlock(&gate->lock);
    return NULL;
}

Status gate_open(VulkanDevice *vulkan, int delay_ms) {
    VulkanGate *gate = &vulkan->gate;
    if (delay_ms == 0) return STATUS_OK;
    TRY(timeline_semaphore_new(vulkan, &gate->semaphore));
    gate->delay_ms = delay_ms;
    pthread_mutex_init(&gate->lock, NULL);
    pthread_cond_init(&gate->changed, NULL);
    ASSERT(pthread_create(&gate->thread, NULL, keep_gate, vulkan) == 0);
    return STATUS_OK;
}

void gate_request(VulkanDevice *vulkan, uint64_t serial) {
    VulkanGate *gate = &vulkan->gate;
    pthread_mutex_lock(&gate->lock);
    gate->wanted = serial;
    pthread_cond_signal(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
}

// Lets everything through that still waits.
void gate_hurry(VulkanDevice *vulkan) {
    VulkanGate *gate = &vulkan->gate;
    if (!gate->semaphore) return;
    pthread_mutex_lock(&gate->lock);
    gate->stop = true;
    pthread_cond_signal(&gate->changed);
    pthread_mutex_unlock(&gate->lock);
    pthread_join(gate->thread, NULL);
}

void gate_close(VulkanDevice *vulkan) {
    VulkanGate *gate = &vulkan->gate;
    if (!gate->semaphore) return;
    pthread_cond_destroy(&gate->changed);
    pthread_mutex_destroy(&gate->lock);
    timeline_semaphore_free(vulkan, gate->semaphore);
}
