/* interrupt.h - SIGINT, SIGTERM and SIGHUP during a training: the first one ends the training
 * after the current step, with everything saved; a second one ends the process at once. */
#ifndef CLI_TRAIN_INTERRUPT_H
#define CLI_TRAIN_INTERRUPT_H

/* Catches the three signals from here on; under nohup SIGHUP stays ignored. prints: the first
 * signal prints a note on standard error as it arrives. */
void interrupt_catch(int prints);
/* Returns the number of the first signal that has arrived, or 0. */
int interrupt_signal(void);

#endif
