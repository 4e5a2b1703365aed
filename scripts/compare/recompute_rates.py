"""Statistics of worker/METRICS.md and docs/compare.md in formulas of their own, for recompute.py: rates with their
intervals, differences of rates, exact tests of signs, mean differences. Nothing here calls or imports the product.
"""
import math
import re
from fractions import Fraction

Z95 = 1.959963984540054
CLUSTERS_MIN = 5
GRID = re.compile(r"/\w+=[^/=,]+(,\w+=[^/=,]+)*$", re.ASCII)  # what a grid adds to the id of a logical scenario
ALIKE = 1e-9


def logical_of(scenario_id):
    return GRID.sub("", scenario_id)


def parameters_of(scenario_id):
    found = GRID.search(scenario_id)
    return [part.split("=", 1) for part in found.group()[1:].split(",")] if found else []


# ---- Student's t ----

def beta_fraction(a, b, x):
    """Continued fraction of the incomplete beta function (Lentz)."""
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    h = d
    for m in range(1, 1000):
        for up in (m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                   -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d, c = 1 / (1 + up * d), 1 + up / c
            h *= c * d
        if abs(c * d - 1) < 1e-15:
            return h
    raise ArithmeticError("incomplete beta function")


def t_two_sided(t, degrees):
    """Probability that Student's t is farther from 0 than `t`."""
    a, b, x = degrees / 2, 0.5, degrees / (degrees + t * t)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x < (a + 1) / (a + b + 2):
        return front * beta_fraction(a, b, x) / a
    return 1 - front * beta_fraction(b, a, 1 - x) / b


T95 = {}


def t95(degrees):
    """Two-sided 95% quantile, by halving; below one degree of freedom that of one."""
    degrees = max(degrees, 1.0)
    if degrees not in T95:
        low, high = 1.9, 13.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if t_two_sided(middle, degrees) > 0.05 else (low, middle)
        T95[degrees] = (low + high) / 2
    return T95[degrees]


# ---- rates ----

def continuous_wilson(p, n):
    """Newcombe 1998, method 4: shares whose score test with half a draw of slack does not reject p of n draws."""
    def end(side):
        q = p + side * 0.5 / n
        if not 0 < q < 1:
            return min(max(q, 0.0), 1.0)
        a, b, c = 1 + Z95**2 / n, 2 * q + Z95**2 / n, q * q  # a x^2 - b x + c = 0
        return (b + side * math.sqrt(b * b - 4 * a * c)) / (2 * a)
    return max(end(-1), 0.0), min(end(1), 1.0)


def rate(drives):
    """Rate and interval over (logical scenario, case, value) of drives; a value of None counts as missing."""
    cases, missing = {}, 0
    for logical, case, value in drives:
        cases.setdefault((logical, case), []).append(value)
        missing += value is None
    groups, count = {}, 0
    worst = best = 0.0
    for (logical, _), values in cases.items():
        known = [float(value) for value in values if value is not None]
        worst += sum(known) / len(values)
        best += (sum(known) + len(values) - len(known)) / len(values)
        if known:
            groups.setdefault(logical, []).append(sum(known) / len(known))
            count += len(known)
    out = {"drives": count, "scenarios": sum(map(len, groups.values())), "logical_scenarios": len(groups),
           "low": 0.0, "high": 1.0, "missing": missing}
    if cases:
        out.update(worst=worst / len(cases), best=best / len(cases))
    if groups:
        parts = [(sum(means), len(means)) for means in groups.values()]
        total = sum(n for _, n in parts)
        p = sum(y for y, _ in parts) / total
        p = 1.0 if all(y > n - ALIKE for y, n in parts) else 0.0 if all(y < ALIKE for y, _ in parts) else p
        out["rate"] = p
        out["low"], out["high"] = continuous_wilson(p, draws(parts, total, p, count))
    return out


def draws(parts, total, p, drives):
    """Independent draws that would spread as much as (y, n) of logical scenarios do."""
    shares = [n / total for _, n in parts]
    s2, s3 = sum(w**2 for w in shares), sum(w**3 for w in shares)
    freedom = s2 - 2 * s3 + s2 * s2
    if p in (0.0, 1.0) or freedom <= ALIKE * s2:
        return 1 / s2
    terms = [((y - p * n) / total) ** 2 for y, n in parts]
    if sum(terms) <= ALIKE * s2:
        return float(drives)
    variance = sum(terms) * s2 / freedom
    degrees = min(sum(terms) ** 2 / sum(term**2 for term in terms), 1 / s2) - 1
    ends = [y for y, _ in parts], [n - y for y, n in parts]  # what passes, and what fails
    least = min(1 / s2, *(sum(end) * total / sum(x * x for x in end) for end in ends))
    return max(min(p * (1 - p) / variance, drives) * (Z95 / t95(degrees)) ** 2, least)


def difference(gains, losses):
    """Second rate minus the first, from rates of what is gained and lost (MOVER, Zou and Donner 2008)."""
    if "rate" not in gains:
        return {"value": None, "low": -1.0, "high": 1.0}
    up, down = gains["rate"], losses["rate"]
    tied = math.sqrt(up * down / ((1 - up) * (1 - down))) if up + down < 1 else 1.0
    def reach(a, b):
        return math.sqrt(a * a + b * b + 2 * tied * a * b)
    return {"value": up - down, "low": max(-1.0, up - down - reach(up - gains["low"], losses["high"] - down)),
            "high": min(1.0, up - down + reach(gains["high"] - up, down - losses["low"]))}


# ---- tests ----

def sign_test(net):
    """Exact: how likely random signs of the clusters' net changes give a sum as far from 0. Whole numbers throughout."""
    ways = {0: 1}
    for step in (abs(n) for n in net if n):
        after = {}
        for value, count in ways.items():
            for sign in (-step, step):
                after[value + sign] = after.get(value + sign, 0) + count
        ways = after
    far = sum(count for value, count in ways.items() if abs(value) >= abs(sum(net)))
    return float(Fraction(far, sum(ways.values())))


def holm(tests):
    """[(p, number of clusters that changed)], p None: not tested. Tarone's step, then Holm's."""
    least = [min(1.0, 2.0 ** (1 - changed)) for _, changed in tests]
    k = 1
    while sum(p is not None and low <= 0.05 / k for (p, _), low in zip(tests, least)) > k:
        k += 1
    able = sorted((p, i) for i, (p, _) in enumerate(tests) if p is not None and least[i] <= 0.05 / k)
    out = [None if p is None else 1.0 for p, _ in tests]
    largest = 0.0
    for rank, (p, i) in enumerate(able):
        largest = max(largest, min(1.0, p * (len(able) - rank)))
        out[i] = largest
    return out


# ---- means ----

def mean_difference(clusters, most):
    """Mean over cases of the differences in [[..] of a logical scenario], cut at the largest that there can be."""
    count = sum(map(len, clusters))
    if count == 0:
        return {"value": None, "low": None, "high": None}
    value = sum(map(sum, clusters)) / count
    if not any(sum(cluster) for cluster in clusters):
        return {"value": value, "low": 0.0, "high": 0.0}
    if len(clusters) < CLUSTERS_MIN:
        return {"value": value, "low": None, "high": None}
    squares = [(sum(cluster) - value * len(cluster)) ** 2 for cluster in clusters]
    degrees = min(sum(squares) ** 2 / sum(square**2 for square in squares), len(clusters))
    half = t95(degrees) * math.sqrt(sum(squares) * len(clusters) / (len(clusters) - 1)) / count
    return {"value": value, "low": max(value - half, -most), "high": min(value + half, most)}
