/*
 * Savitzky-Golay filter: fits a polynomial to a sliding window by least squares and reads its value
 * or a derivative. Comfort is defined on signals smoothed this way (worker/METRICS.md).
 *
 * Behaves as scipy.signal.savgol_filter with mode='interp', which nuPlan uses: inside the series
 * the fit is read at the middle of the window (for an even window that is half a sample late);
 * within half a window of either end it is read from the first or last full window.
 * Source: A. Savitzky, M. J. E. Golay, Analytical Chemistry 36(8), 1964; Gram polynomials as in
 * P. A. Gorry, Analytical Chemistry 62(6), 1990.
 */
#ifndef SWERVE_WORKER_SCORE_SAVGOL_H
#define SWERVE_WORKER_SCORE_SAVGOL_H

#include <stdbool.h>
#include <stdint.h>

enum { SAVGOL_WINDOW_MAX = 15, SAVGOL_ORDER_MAX = 3 };

struct savgol {
    uint32_t count;                                  /* samples of the series */
    uint32_t window;                                 /* min(asked, count) */
    double middle[SAVGOL_WINDOW_MAX];                /* weights at the middle of the window */
    double at[SAVGOL_WINDOW_MAX][SAVGOL_WINDOW_MAX]; /* [position in the window][sample] */
};

/* Weights for a series of `count` >= 1 samples `step` apart: window 1..SAVGOL_WINDOW_MAX, cut to
 * count; polynomial order 0..SAVGOL_ORDER_MAX, cut to window - 1; derivative 0..order. Where scipy
 * refuses (order >= window) a derivative above the cut order is 0. */
void savgol_init(struct savgol *filter, uint32_t count, uint32_t window, uint32_t order,
                 uint32_t derivative, double step);

/* First sample of the window that sample `index` is computed from; not decreasing in index. */
uint32_t savgol_start(const struct savgol *filter, uint32_t index);

/* Filtered sample `index` from its window: samples[0] is that of savgol_start(). */
double savgol_value(const struct savgol *filter, const double *samples, uint32_t index);

#endif
