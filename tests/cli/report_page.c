/* report_page.c CLASSES - prints the sample's report, for test_pages.sh. */
#include "cli/report_sample.h"

int main(int argc, char **argv)
{
    int classes = argc == 2 ? atoi(argv[1]) : 0;
    report_sample *s = classes >= 2 && classes <= SAMPLE_CLASSES ? sample_report(classes) : NULL;
    int failed = s == NULL || report_write(stdout, &s->report);
    sample_free(s);
    return failed;
}
