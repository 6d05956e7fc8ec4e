// Weak stand-ins while kernels are being written; goes when the last one is there.
#include "device/cpu/cpu.h"

__attribute__((weak)) Status cpu_kernel_FILL(const KernelCall *call) {
    return fail(STATUS_DEVICE, "%s: kernel FILL is pending", call->op_name);
}
__attribute__((weak)) Status cpu_kernel_COPY(const KernelCall *call) {
    return fail(STATUS_DEVICE, "%s: kernel COPY is pending", call->op_name);
}
__attribute__((weak)) Status cpu_kernel_ARANGE(const KernelCall *call) {
    return fail(STATUS_DEVICE, "%s: kernel ARANGE is pending", call->op_name);
}
__attribute__((weak)) Status cpu_kernel_RANDOM(const KernelCall *call) {
    return fail(STATUS_DEVICE, "%s: kernel RANDOM is pending", call->op_name);
}
__attribute__((weak)) Status cpu_kernel_SORT(const KernelCall *call) {
    return fail(STATUS_DEVICE, "%s: kernel SORT is pending", call->op_name);
}
__attribute__((weak)) Status cpu_kernel_MATMUL(const KernelCall *call) {
    return fail(STATUS_DEVICE, "%s: kernel MATMUL is pending", call->op_name);
}
__attribute__((weak)) Status cpu_kernel_ROPE(const KernelCall *call) {
    return fail(STATUS_DEVICE, "%s: kernel ROPE is pending", call->op_name);
}
__attribute__((weak)) Status cpu_kernel_ATTENTION(const KernelCall *call) {
    return fail(STATUS_DEVICE, "%s: kernel ATTENTION is pending", call->op_name);
}
__attribute__((weak)) Status cpu_kernel_GATHER(const KernelCall *call) {
    return fail(STATUS_DEVICE, "%s: kernel GATHER is pending", call->op_name);
}
__attribute__((weak)) Status cpu_kernel_SCATTER(const KernelCall *call) {
    return fail(STATUS_DEVICE, "%s: kernel SCATTER is pending", call->op_name);
}
__attribute__((weak)) Status cpu_kernel_INDEX_PUT(const KernelCall *call) {
    return fail(STATUS_DEVICE, "%s: kernel INDEX_PUT is pending", call->op_name);
}
__attribute__((weak)) Status cpu_kernel_NONZERO(const KernelCall *call) {
    return fail(STATUS_DEVICE, "%s: kernel NONZERO is pending", call->op_name);
}
__attribute__((weak)) Status cpu_kernel_CONV2D(const KernelCall *call) {
    return fail(STATUS_DEVICE, "%s: kernel CONV2D is pending", call->op_name);
}
__attribute__((weak)) Status cpu_kernel_POOL2D(const KernelCall *call) {
    return fail(STATUS_DEVICE, "%s: kernel POOL2D is pending", call->op_name);
}
__attribute__((weak)) Status cpu_kernel_LINALG(const KernelCall *call) {
    return fail(STATUS_DEVICE, "%s: kernel LINALG is pending", call->op_name);
}
