/* cpu.c - which processor this is, by its makers' numbers: instruction sets do not tell how fast
 * they are. */
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "onednn.h"

#if defined(__x86_64__)
cpu_id this_cpu(void)
{
    cpu_id cpu = {"", 0, 0};
    unsigned a = 0, vendor[3] = {0}, b, c, d;
    (void)__get_cpuid(0, &a, &vendor[0], &vendor[2], &vendor[1]);
    memcpy(cpu.vendor, vendor, sizeof vendor);
    a = 0;
    (void)__get_cpuid(1, &a, &b, &c, &d);
    unsigned family = a >> 8 & 0xf, model = a >> 4 & 0xf;
    if (family == 0xf)
        family += a >> 20 & 0xff;
    if (family >= 6)
        model |= (a >> 16 & 0xf) << 4;
    cpu.family = (int)family;
    cpu.model = (int)model;
    return cpu;
}
#else
cpu_id this_cpu(void) { return (cpu_id){"", 0, 0}; }
#endif
