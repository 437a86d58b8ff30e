/* Step time against tensor parallelism, from C:
 *   cc predict.c $(pkg-config --cflags --libs clustersim) -o predict && ./predict gpt3-175b-h100 */
#include <clustersim.h>
#include <stdio.h>
#include <stdlib.h>

int
main (int argc, char **argv)
{
  char *error = NULL;
  clustersim_scenario *s = clustersim_load (argc > 1 ? argv[1] : "gpt3-175b-h100", &error);
  if (s == NULL) {
    fprintf (stderr, "%s\n", error);
    clustersim_free (error);
    return EXIT_FAILURE;
  }
  puts ("tp  step_time_s      mfu  peak_GiB");
  static const char *const degrees[] = {"2", "4", "8"};
  for (int i = 0; i < 3; i++) {
    clustersim_result *r = NULL;
    if (clustersim_set (s, "parallel.tp", degrees[i], &error) == 0)
      r = clustersim_predict (s, &error);
    if (r == NULL) { /* a layout that cannot be: the reason is one line */
      printf ("%2s  %s\n", degrees[i], error);
      clustersim_free (error);
      error = NULL;
      continue;
    }
    printf ("%2s  %11.4f  %6.1f%%  %8.2f\n", degrees[i], clustersim_number (r, "step_time_s"),
            100 * clustersim_number (r, "mfu"),
            clustersim_number (r, "memory.peak_bytes") / (1 << 30));
    clustersim_result_free (r);
  }
  clustersim_scenario_free (s);
  return EXIT_SUCCESS;
}
