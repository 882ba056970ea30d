/* no_libgit2.c - in place of libgit2, which Criterion starts in the process of every test, for an
 * assertion that prints the difference of two texts; no test here has one. The real one has 16
 * libraries load, and reads and decodes all certificates of the machine: 13 ms of the 22 that an
 * empty test takes (AMD Zen 3). run.sh puts this one before it. */
int git_libgit2_init(void);
int git_libgit2_shutdown(void);
int git_diff_buffers(void);

int git_libgit2_init(void) { return 1; }
int git_libgit2_shutdown(void) { return 0; }
int git_diff_buffers(void) { return -1; } /* an error: Criterion prints both texts */
