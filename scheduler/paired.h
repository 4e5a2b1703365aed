/*
 * Paired comparison of two planners (or models, or revisions) that drove the same cases. Pure
 * functions: an exact test of whether one passes more often, intervals of mean differences, and the
 * correction for looking at many slices.
 *
 * What is drawn is a cluster, as in rate.h: the cases of one logical scenario resemble each other,
 * seeds of one case more so. A method that took each drive for a draw would find differences that
 * are not there.
 */
#ifndef SWERVE_SCHEDULER_PAIRED_H
#define SWERVE_SCHEDULER_PAIRED_H

#include <stdbool.h>
#include <stdint.h>

/* A p below this is a difference; it takes as many clusters that changed to have one. */
#define PAIRED_FINDING_P 0.05
enum { PAIRED_CHANGED_MIN = 6 };

/* Two-sided p of the hypothesis that within each cluster a change for the better is as likely as
 * one for the worse. net[count]: cases of the cluster that were fixed minus those that broke. With
 * one case per cluster this is McNemar's exact test (Psychometrika 12, 1947); with more, the exact
 * randomisation test over the clusters' signs (Fisher 1935). Beyond 10^8 steps of exact work the
 * normal approximation answers. */
double paired_exact_p(const int32_t *net, uint32_t count);

/* The least p that paired_exact_p() can give where so many clusters changed. */
double paired_least_p(uint32_t changed);

/* Holm's step-down adjustment (Scandinavian J. of Statistics 6, 1979) of the tests that could reach
 * 0.05 at all, in place: with adjusted p below 0.05 the chance of any false finding among them is
 * at most 5%. least[count] is the least p that each can have: those that stay above 0.05 / K, for
 * the smallest K that at most K do not, are no tests, cost the others nothing and get 1 (Tarone,
 * Biometrics 46, 1990). NAN entries are no tests either. scratch[count] is overwritten. */
void paired_holm(double *p, const double *least, uint32_t count, uint32_t *scratch);

/* Sums of one cluster: differences of its cases, summed. */
struct paired_cluster {
    double sum;
    double cases;
};

struct paired_mean {
    double value; /* mean difference over cases; NAN without any */
    double low;   /* of the 95% interval; -INFINITY and INFINITY with too few clusters */
    double high;
    uint32_t clusters; /* with a case */
    uint32_t changed; /* with a difference; none: 0 to 0, which is what was seen, not an interval */
};

/* Mean over cases with an interval from whole clusters: Student's t on the ratio estimator, with
 * the degrees of freedom that the clusters' squares are worth (rate_degrees()), so that differences
 * of which most are 0, as two versions of one planner give, count as the few that they are. Fewer
 * than RATE_CLUSTERS_MIN clusters give no interval. SPEED.md has how often it holds. */
struct paired_mean paired_mean(const struct paired_cluster *clusters, uint32_t count);

/* The mean and its interval, or a word in its place. */
enum { PAIRED_TEXT_BYTES = 64 };
const char *paired_mean_text(const struct paired_mean *mean, char text[PAIRED_TEXT_BYTES]);

#endif
