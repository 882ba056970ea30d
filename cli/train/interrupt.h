/* interrupt.h - SIGINT, SIGTERM and SIGHUP during a training: the first one ends it after the step
 * at work, with everything saved; a second one ends the process at once. */
#ifndef CLI_TRAIN_INTERRUPT_H
#define CLI_TRAIN_INTERRUPT_H

/* Catches them from here on; under nohup SIGHUP stays ignored. prints: the first one prints a note
 * on standard error as it arrives. */
void interrupt_catch(int prints);
/* The first signal that has arrived; 0: none. */
int interrupt_signal(void);

#endif
