/*
 * Savitzky-Golay weights from Gram polynomials: polynomials orthogonal on the window's symmetric
 * grid, so that the least-squares fit is a sum of independent terms in a fixed order and needs no
 * matrix inverse.
 */
#include "worker/score/savgol.h"

#include "base/check.h"

/* Gram polynomials up to degree 3 on x = -(w-1)/2 .. (w-1)/2 are 1, x, x^2 - a, x^3 - b x, where
 * a = mean x^2 and b = sum x^4 / sum x^2. */
struct gram {
    double a;
    double b;
    double norm[SAVGOL_ORDER_MAX + 1]; /* sum of squares over the grid; 0: degree not usable */
};

/* Value of the `derivative`-th derivative of the Gram polynomial of a degree at x. */
static double gram_value(const struct gram *gram, uint32_t degree, uint32_t derivative, double x)
{
    double c[SAVGOL_ORDER_MAX + 1] = {0}; /* monomial coefficients, lowest first */
    c[degree] = 1.0;
    if (degree == 2) {
        c[0] = -gram->a;
    } else if (degree == 3) {
        c[1] = -gram->b;
    }
    for (uint32_t d = 0; d < derivative; d++) {
        for (uint32_t k = 0; k < SAVGOL_ORDER_MAX; k++) {
            c[k] = (k + 1) * c[k + 1];
        }
        c[SAVGOL_ORDER_MAX] = 0.0;
    }
    double value = 0.0;
    for (int k = SAVGOL_ORDER_MAX; k >= 0; k--) {
        value = value * x + c[k];
    }
    return value;
}

static struct gram gram_make(uint32_t window, uint32_t order)
{
    struct gram gram = {0};
    double middle = (window - 1) / 2.0;
    double sum2 = 0.0;
    double sum4 = 0.0;
    for (uint32_t i = 0; i < window; i++) {
        double x = i - middle;
        sum2 += x * x;
        sum4 += x * x * x * x;
    }
    gram.a = sum2 / window;
    gram.b = sum2 > 0 ? sum4 / sum2 : 0.0;
    for (uint32_t degree = 0; degree <= order && degree < window; degree++) {
        for (uint32_t i = 0; i < window; i++) {
            double p = gram_value(&gram, degree, 0, i - middle);
            gram.norm[degree] += p * p;
        }
    }
    return gram;
}

/* Weights that give the derivative of the fitted polynomial at x. */
static void weights_at(const struct gram *gram, uint32_t window, uint32_t derivative, double x,
                       double scale, double *weights)
{
    double middle = (window - 1) / 2.0;
    for (uint32_t i = 0; i < window; i++) {
        double weight = 0.0;
        for (uint32_t degree = 0; degree <= SAVGOL_ORDER_MAX; degree++) {
            if (gram->norm[degree] > 0) {
                weight += gram_value(gram, degree, derivative, x) *
                          gram_value(gram, degree, 0, i - middle) / gram->norm[degree];
            }
        }
        weights[i] = weight * scale;
    }
}

void savgol_init(struct savgol *filter, uint32_t count, uint32_t window, uint32_t order,
                 uint32_t derivative, double step)
{
    CHECK(count >= 1 && window >= 1 && window <= SAVGOL_WINDOW_MAX);
    CHECK(order <= SAVGOL_ORDER_MAX && derivative <= order && step > 0);
    *filter = (struct savgol){.count = count, .window = window < count ? window : count};
    struct gram gram = gram_make(filter->window, order);
    double middle = (filter->window - 1) / 2.0;
    double scale = 1.0;
    for (uint32_t d = 0; d < derivative; d++) {
        scale /= step;
    }
    weights_at(&gram, filter->window, derivative, 0.0, scale, filter->middle);
    for (uint32_t p = 0; p < filter->window; p++) {
        weights_at(&gram, filter->window, derivative, p - middle, scale, filter->at[p]);
    }
}

/* Whether the sample lies so far inside that its own window fits. */
static bool inside(const struct savgol *filter, uint32_t index)
{
    uint32_t half = filter->window / 2;
    return index >= half && index + half < filter->count;
}

uint32_t savgol_start(const struct savgol *filter, uint32_t index)
{
    if (inside(filter, index)) {
        return index - (filter->window - 1) / 2;
    }
    return index < filter->window / 2 ? 0 : filter->count - filter->window;
}

double savgol_value(const struct savgol *filter, const double *samples, uint32_t index)
{
    const double *weights =
        inside(filter, index) ? filter->middle : filter->at[index - savgol_start(filter, index)];
    double value = 0.0;
    for (uint32_t i = 0; i < filter->window; i++) {
        value += weights[i] * samples[i];
    }
    return value;
}
