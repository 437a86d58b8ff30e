/* clustersim.h: predictions from C, and from whatever can call C.
 *
 *   char *error = NULL;
 *   clustersim_scenario *s = clustersim_load ("gpt3-175b-h100", &error);
 *   clustersim_result *r = s != NULL ? clustersim_predict (s, &error) : NULL;
 *   if (r != NULL)
 *     printf ("%.3f s\n", clustersim_number (r, "step_time_s"));
 *
 * Compile with `pkg-config --cflags --libs clustersim` (shared) or `--static`. Scenarios, their
 * keys and the names of results are those of the program: scenarios/README.md.
 *
 * Errors: functions that can fail return NULL or -1 and set *error to one line that the caller
 * frees with clustersim_free; error may be NULL. Threads: one object in one thread at a time;
 * different objects in different threads do not meet. The same scenario gives the same result.
 * ABI: only what stands here, and only additions within version 0 of the library.
 */
#ifndef CLUSTERSIM_CLUSTERSIM_H
#define CLUSTERSIM_CLUSTERSIM_H

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define CLUSTERSIM_API __attribute__ ((visibility ("default")))
#else
#define CLUSTERSIM_API
#endif

typedef struct clustersim_scenario clustersim_scenario;
typedef struct clustersim_result clustersim_result;

/* "0.1.0"; static. */
CLUSTERSIM_API const char *clustersim_version (void);

/* A scenario from a file, or one that ships, by its name. */
CLUSTERSIM_API clustersim_scenario *clustersim_load (const char *path_or_name, char **error);

/* A scenario from JSON text (NUL-terminated). Paths in it are relative to the working directory. */
CLUSTERSIM_API clustersim_scenario *clustersim_parse (const char *json, char **error);

/* Sets a key by its dotted path, as --set of the program: ("parallel.tp", "8"). 0, or -1. */
CLUSTERSIM_API int clustersim_set (clustersim_scenario *s, const char *key, const char *value,
                                   char **error);

/* Predicts one training step. s is as before and can be changed and predicted again. */
CLUSTERSIM_API clustersim_result *clustersim_predict (const clustersim_scenario *s, char **error);

/* A number of the result by its path in the JSON of `clustersim predict --format json`:
 * "step_time_s", "step_time_interval_s.0", "breakdown_s.bubble", "memory.stages.3.peak_bytes"; true
 * is 1, false 0. NaN when there is no number of that name. */
CLUSTERSIM_API double clustersim_number (const clustersim_result *r, const char *path);

/* The whole result as JSON; owned by r. */
CLUSTERSIM_API const char *clustersim_json (const clustersim_result *r);

CLUSTERSIM_API void clustersim_scenario_free (clustersim_scenario *s); /* NULL is fine */
CLUSTERSIM_API void clustersim_result_free (clustersim_result *r);
CLUSTERSIM_API void clustersim_free (char *text);

#ifdef __cplusplus
}
#endif
#endif
