// A stand-in for libnvidia-ml with two devices. What it lacks or gets wrong is chosen when it is built:
//   FAIL_INIT=code   nvmlInit_v2 returns this
//   NO_POWER         has no nvmlDeviceGetPowerUsage
//   LOSE=calls       device 1 is lost after that many questions about its utilisation
//   MIG              device 0 is cut into instances
// Names and layouts are those of nvml.h; FAKE_NVML_PIDS names a file with the pid that holds memory.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SUCCESS = 0, NOT_SUPPORTED = 3, TOO_SMALL = 7, LOST = 15 };

typedef struct { int index; int questions; } Device;
static Device devices[2] = {{0, 0}, {1, 0}};

int nvmlInit_v2(void) {
#ifdef FAIL_INIT
    return FAIL_INIT;
#else
    return SUCCESS;
#endif
}
int nvmlShutdown(void) { return SUCCESS; }
const char *nvmlErrorString(int code) {
    switch (code) {
    case NOT_SUPPORTED: return "Not Supported";
    case 9: return "Driver Not Loaded";
    case LOST: return "GPU is lost";
    default: return "Unknown Error";
    }
}
int nvmlSystemGetDriverVersion(char *text, unsigned length) { return snprintf(text, length, "580.65.06") > 0 ? SUCCESS : 999; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return SUCCESS; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device **device) {
    *device = &devices[index];
    return SUCCESS;
}
int nvmlDeviceGetName(Device *device, char *text, unsigned length) {
    snprintf(text, length, "Fake H200 number %d", device->index);
    return SUCCESS;
}
int nvmlDeviceGetUUID(Device *device, char *text, unsigned length) {
    snprintf(text, length, "GPU-0000-%d", device->index);
    return SUCCESS;
}

typedef struct { char legacy[16]; unsigned domain, bus, device, id, subsystem; char bus_id[32]; } Pci;
int nvmlDeviceGetPciInfo_v3(Device *device, Pci *pci) {
    memset(pci, 0, sizeof *pci);
    snprintf(pci->bus_id, sizeof pci->bus_id, "00000000:%02X:00.0", 0x1b + device->index);
    return SUCCESS;
}

typedef struct { unsigned gpu, memory; } Utilisation;
int nvmlDeviceGetUtilizationRates(Device *device, Utilisation *rates) {
#ifdef LOSE
    if (device->index == 1 && ++device->questions > LOSE) return LOST;
#endif
    // Changes, so that every look is a row.
    *rates = (Utilisation){(unsigned)(rand() % 101), 40};
    return SUCCESS;
}

typedef struct { unsigned version; unsigned long long total, reserved, free, used; } Memory2;
int nvmlDeviceGetMemoryInfo_v2(Device *device, Memory2 *memory) {
    (void)device;
    if (memory->version != (sizeof *memory | 2 << 24)) return 25;
    memory->total = 150754820096ull;
    memory->reserved = 600000000ull;
    memory->used = 7000000000ull;
    return SUCCESS;
}
int nvmlDeviceGetClockInfo(Device *device, unsigned kind, unsigned *mhz) {
    (void)device;
    *mhz = kind == 1 ? 1980 : kind == 2 ? 3201 : 1;
    return SUCCESS;
}
#ifndef NO_POWER
int nvmlDeviceGetPowerUsage(Device *device, unsigned *milliwatts) { (void)device; *milliwatts = 693000; return SUCCESS; }
#endif
int nvmlDeviceGetTemperature(Device *device, unsigned sensor, unsigned *degrees) {
    (void)device;
    if (sensor != 0) return 2;
    *degrees = 61;
    return SUCCESS;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(Device *device, unsigned long long *bits) {
    (void)device;
    *bits = 4;
    return SUCCESS;
}
int nvmlDeviceGetPcieThroughput(Device *device, unsigned counter, unsigned *kilobytes) {
    (void)device;
    *kilobytes = counter == 0 ? 11 : 22;
    return SUCCESS;
}
int nvmlDeviceGetCurrPcieLinkGeneration(Device *device, unsigned *value) { (void)device; *value = 5; return SUCCESS; }
int nvmlDeviceGetCurrPcieLinkWidth(Device *device, unsigned *value) { (void)device; *value = 16; return SUCCESS; }
int nvmlDeviceGetTotalEccErrors(Device *device, unsigned kind, unsigned counter, unsigned long long *count) {
    (void)device; (void)kind; (void)counter; (void)count;
    return NOT_SUPPORTED;
}
int nvmlDeviceGetMigMode(Device *device, unsigned *now, unsigned *later) {
#ifdef MIG
    *now = *later = device->index == 0;
    return SUCCESS;
#else
    (void)device; (void)now; (void)later;
    return NOT_SUPPORTED;
#endif
}

typedef struct { unsigned pid; unsigned long long memory; unsigned gpu, compute; } Process;
int nvmlDeviceGetComputeRunningProcesses_v3(Device *device, unsigned *count, Process *found) {
    const char *path = getenv("FAKE_NVML_PIDS");
    FILE *file = path ? fopen(path, "r") : NULL;
    unsigned pid = 0, room = *count;
    int read = file ? fscanf(file, "%u", &pid) : 0;
    if (file) fclose(file);
    *count = 0;
    if (read != 1) return SUCCESS;
    if (room < 3) return TOO_SMALL;
    // Twice, as with instances; and one whose memory is not known.
    found[0] = (Process){pid, 1000 + device->index, 0, 0};
    found[1] = (Process){1, ~0ull, 0, 0};
    found[2] = (Process){pid, 500, 0, 0};
    *count = 3;
    return SUCCESS;
}
