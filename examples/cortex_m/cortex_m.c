/* cortex_m.c - the start of a program on a Cortex-M with a floating-point unit: vectors, memory,
 * main; its output goes to the debugger, or the emulator (semihosting, newlib's rdimon). */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Symbols of cortex_m.ld. */
extern char data_start[], data_end[], data_load[], bss_start[], bss_end[], stack_top[];

int main(void);
void reset(void);
void initialise_monitor_handles(void);

enum { CPACR = 0xE000ED88 }; /* the register that lets coprocessors be used */

static void fault(void) { exit(EXIT_FAILURE); }

void reset(void)
{
    *(volatile uint32_t *)CPACR |= 0xFU << 20;
    __asm volatile("dsb\nisb");
    memcpy(data_start, data_load, (size_t)(data_end - data_start));
    memset(bss_start, 0, (size_t)(bss_end - bss_start));
    initialise_monitor_handles();
    exit(main());
}

/* Stack, reset, NMI, faults. */
__attribute__((section(".vectors"), used)) static void (*const vectors[])(void) = {
    (void (*)(void))stack_top, reset, fault, fault, fault, fault, fault};
