/* no_libgit2.c - replaces libgit2, which Criterion initializes in the process of every test, for an
 * assertion that prints the difference of two texts; no test here uses it. libgit2 loads 16
 * libraries and decodes all certificates of the machine, which takes more than half of an empty
 * test's time. run.sh preloads this library instead. */
int git_libgit2_init(void);
int git_libgit2_shutdown(void);
int git_diff_buffers(void);

int git_libgit2_init(void) { return 1; }
int git_libgit2_shutdown(void) { return 0; }
int git_diff_buffers(void) { return -1; } /* an error: Criterion prints both texts */
