/* A CUDA program without Python: loads the driver by itself, without any header of NVIDIA's, and launches a known number of
   kernels. Prints that number. Build: gcc -O2 -o bare bare.c -ldl */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

static const char *PTX = ".version 6.4\n.target sm_75\n.address_size 64\n.visible .entry nothing()\n{\n  ret;\n}\n";

static void *library;

static void *find(const char *name) {
    void *symbol = dlsym(library, name);
    if (!symbol) {
        fprintf(stderr, "bare: libcuda.so.1 has no %s\n", name);
        exit(1);
    }
    return symbol;
}

static void check(int code, const char *what) {
    if (code) {
        fprintf(stderr, "bare: %s gave %d\n", what, code);
        exit(1);
    }
}

int main(int count, char **arguments) {
    int number = count > 1 ? atoi(arguments[1]) : 1000;
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "bare: %s\n", dlerror());
        return 1;
    }
    int (*init)(unsigned) = find("cuInit");
    int (*get)(int *, int) = find("cuDeviceGet");
    int (*retain)(void **, int) = find("cuDevicePrimaryCtxRetain");
    int (*current)(void *) = find("cuCtxSetCurrent");
    int (*load)(void **, const void *) = find("cuModuleLoadData");
    int (*function)(void **, void *, const char *) = find("cuModuleGetFunction");
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **, void **) =
        find("cuLaunchKernel");
    int (*wait)(void) = find("cuCtxSynchronize");
    int device;
    void *context, *module, *nothing;
    check(init(0), "cuInit");
    check(get(&device, 0), "cuDeviceGet");
    check(retain(&context, device), "cuDevicePrimaryCtxRetain");
    check(current(context), "cuCtxSetCurrent");
    check(load(&module, PTX), "cuModuleLoadData");
    check(function(&nothing, module, "nothing"), "cuModuleGetFunction");
    for (int i = 0; i < number; i++)
        check(launch(nothing, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), "cuLaunchKernel");
    check(wait(), "cuCtxSynchronize");
    printf("{\"kernels\": %d}\n", number);
    return 0;
}
