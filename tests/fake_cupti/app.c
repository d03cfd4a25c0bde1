/* A program without Python that uses CUDA: opens the driver as any CUDA program does, starts it, plays the script. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!driver) {
        fprintf(stderr, "app: %s\n", dlerror());
        return 98;
    }
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
    int (*play)(const char *) = (int (*)(const char *))dlsym(driver, "fake_play");
    int code = init(0);
    if (code) {
        /* As a program does that finds no device: it says so and goes on without. */
        printf("cuInit %d\n", code);
        return 0;
    }
    play(count > 1 ? arguments[1] : NULL);
    puts("done");
    return 0;
}
