"""Slow reference formulas, written from the papers with loops and `math`; the library is tested against them.

`logits` holds n rows of K scores f, `labels` the set S_i of complementary labels of each sample (s_i of them, from 0),
`weight` the class weights w_j, `sample_weight` the sample weights v_i. p is softmax(f) and l_k an ordinary loss.
"""

import itertools
import math
from collections.abc import Callable

Rows = list[list[float]]
Sets = list[list[int]]
Weights = list[float] | None
BaseLoss = Callable[[list[float]], list[float]]


# Stable elementary functions


def logsumexp(values: list[float]) -> float:
    """log sum_k exp(a_k) = m + log sum_k exp(a_k - m), m = max_k a_k."""
    top = max(values)
    return top + math.log(math.fsum(math.exp(value - top) for value in values))


def log_softmax(row: list[float]) -> list[float]:
    """log p_k = (f_k - m) - log sum_j exp(f_j - m), m = max_j f_j."""
    top = max(row)
    shifted = [value - top for value in row]
    log_total = logsumexp(shifted)
    return [value - log_total for value in shifted]


def softmax(row: list[float]) -> list[float]:
    """p_k = exp(log p_k)."""
    return [math.exp(value) for value in log_softmax(row)]


def log_mass_outside(row: list[float], chosen: list[int]) -> float:
    """log sum_{k not in S} p_k."""
    log_p = log_softmax(row)
    return logsumexp([log_p[k] for k in range(len(row)) if k not in chosen])


def softplus(z: float) -> float:
    """log(1 + exp(z)) = max(z, 0) + log(1 + exp(-|z|))."""
    return max(z, 0.0) + math.log1p(math.exp(-abs(z)))


def sigmoid(z: float) -> float:
    """1 / (1 + exp(-z)) = exp(-softplus(-z))."""
    return math.exp(-softplus(-z))


# Means over samples


def or_ones(values: Weights, size: int) -> list[float]:
    """The given weights, or ones."""
    return [1.0] * size if values is None else values


def pair_mean(
    logits: Rows, labels: Sets, weight: Weights, sample_weight: Weights, loss: Callable[[list[float], int], float]
) -> float:
    """(1/n) sum_i v_i (1/s_i) sum_{j in S_i} w_j L(x_i, j)."""
    w = or_ones(weight, len(logits[0]))
    v = or_ones(sample_weight, len(logits))
    terms = []
    for row, chosen, v_i in zip(logits, labels, v, strict=True):
        terms.append(v_i * math.fsum(w[j] * loss(row, j) for j in chosen) / len(chosen))
    return math.fsum(terms) / len(logits)


def set_mean(
    logits: Rows, labels: Sets, weight: Weights, sample_weight: Weights, loss: Callable[[list[float], list[int]], float]
) -> float:
    """(1/n) sum_i v_i c_i L(x_i, S_i), c_i = (1/s_i) sum_{j in S_i} w_j."""
    w = or_ones(weight, len(logits[0]))
    v = or_ones(sample_weight, len(logits))
    terms = []
    for row, chosen, v_i in zip(logits, labels, v, strict=True):
        mean_weight = math.fsum(w[j] for j in chosen) / len(chosen)
        terms.append(v_i * mean_weight * loss(row, chosen))
    return math.fsum(terms) / len(logits)


def label_counts(labels: Sets, n_classes: int, sample_weight: Weights) -> list[float]:
    """N_k = sum_i v_i [k in S_i] / s_i."""
    v = or_ones(sample_weight, len(labels))
    counts = [0.0] * n_classes
    for chosen, v_i in zip(labels, v, strict=True):
        for k in chosen:
            counts[k] += v_i / len(chosen)
    return counts


def pair_coefficients(labels: Sets, n_classes: int, weight: Weights, sample_weight: Weights, marginal: Weights) -> Rows:
    """A_ij = v_i w_j / (s_i n), or marginal_j w_j (v_i / s_i) / N_j in the class form; 0 for j not in S_i."""
    n = len(labels)
    w = or_ones(weight, n_classes)
    v = or_ones(sample_weight, n)
    counts = label_counts(labels, n_classes, sample_weight)
    table = [[0.0] * n_classes for _ in labels]
    for i, chosen in enumerate(labels):
        for j in chosen:
            if marginal is None:
                table[i][j] = v[i] * w[j] / (len(chosen) * n)
            elif counts[j] != 0:
                table[i][j] = marginal[j] * w[j] * (v[i] / len(chosen)) / counts[j]
    return table


# Ordinary losses of every class, from log p


def base_ce(log_p: list[float]) -> list[float]:
    """l_k = -log p_k."""
    return [-value for value in log_p]


def base_mae(log_p: list[float]) -> list[float]:
    """l_k = sum_j |p_j - [j = k]| = 2 (1 - p_k) (Ghosh et al., AAAI 2017)."""
    return [-2.0 * math.expm1(value) for value in log_p]


def base_mse(log_p: list[float]) -> list[float]:
    """l_k = sum_j (p_j - [j = k])^2 = 1 - 2 p_k + sum_j p_j^2 (Feng et al., ICML 2020)."""
    squares = math.fsum(math.exp(2.0 * value) for value in log_p)
    return [1.0 - 2.0 * math.exp(value) + squares for value in log_p]


def base_gce(log_p: list[float], q: float = 0.7) -> list[float]:
    """l_k = (1 - p_k^q) / q (Zhang and Sabuncu, NeurIPS 2018)."""
    return [-math.expm1(q * value) / q for value in log_p]


def base_phuber(log_p: list[float], tau: float = 10.0) -> list[float]:
    """l_k = -log p_k if p_k > 1/tau, else -tau p_k + log tau + 1 (Menon et al., ICLR 2020)."""
    return [-value if math.exp(value) > 1.0 / tau else -tau * math.exp(value) + math.log(tau) + 1.0 for value in log_p]


def base_symmetric(log_p: list[float]) -> list[float]:
    """l_k = alpha (-log p_k) + beta (-A) (1 - p_k), alpha = 0.1, beta = 1, A = -4 (Wang et al., ICCV 2019)."""
    return [-0.1 * value + 1.0 * 4.0 * (1.0 - math.exp(value)) for value in log_p]


BASES: dict[str, BaseLoss] = {
    "ce": base_ce,
    "mae": base_mae,
    "mse": base_mse,
    "gce": base_gce,
    "phuber": base_phuber,
    "symmetric": base_symmetric,
}


# Transition matrices


def uniform_transition(n_classes: int) -> Rows:
    """Q = (11' - I) / (K - 1): every wrong label equally likely (Ishida et al., NeurIPS 2017)."""
    return [[0.0 if j == y else 1.0 / (n_classes - 1) for j in range(n_classes)] for y in range(n_classes)]


def inverse_size_transition(sizes: list[float]) -> Rows:
    """Q[y][j] = pi_j / (1 - pi_y) for j != y, pi of Eq. 7 (Wei et al., Neural Networks 2023)."""
    pi = complementary_prior(sizes)
    rows = []
    for y in range(len(pi)):
        total = math.fsum(pi[j] for j in range(len(pi)) if j != y)
        rows.append([0.0 if j == y else pi[j] / total for j in range(len(pi))])
    return rows


def invert(matrix: Rows) -> Rows:
    """M^-1 by Gauss-Jordan elimination with partial pivoting."""
    size = len(matrix)
    work = [list(row) + [1.0 if i == j else 0.0 for j in range(size)] for i, row in enumerate(matrix)]
    for column in range(size):
        pivot = max(range(column, size), key=lambda i: abs(work[i][column]))
        work[column], work[pivot] = work[pivot], work[column]
        head = work[column][column]
        work[column] = [value / head for value in work[column]]
        for i in range(size):
            if i != column:
                factor = work[i][column]
                work[i] = [a - factor * b for a, b in zip(work[i], work[column], strict=True)]
    return [row[size:] for row in work]


def inverse_transition(transition: Rows | None, n_classes: int) -> Rows:
    """Q^-1; for the uniform matrix 11' - (K - 1) I exactly."""
    if transition is not None:
        return invert(transition)
    return [[1.0 - (n_classes - 1) * (j == k) for k in range(n_classes)] for j in range(n_classes)]


# Pairwise comparison


def falling_sigmoid(z: float) -> float:
    """g(z) = 1 / (1 + exp(z)) (Ishida et al., NeurIPS 2017)."""
    return sigmoid(-z)


def ramp(z: float) -> float:
    """g(z) = (1/2) min(max(1 - z, 0), 2) (Ishida et al., NeurIPS 2017)."""
    return 0.5 * min(max(1.0 - z, 0.0), 2.0)


def pc(
    logits: Rows,
    labels: Sets,
    *,
    weight: Weights = None,
    sample_weight: Weights = None,
    surrogate: str = "sigmoid",
) -> float:
    """(K-1) sum_{k != j} g(f_k - f_j) - K(K-1)/2 + (K-1), g(z) + g(-z) = 1 (Ishida et al., NeurIPS 2017)."""
    n_classes = len(logits[0])
    g = {"sigmoid": falling_sigmoid, "ramp": ramp}[surrogate]

    def loss(row: list[float], j: int) -> float:
        pairs = math.fsum(g(row[k] - row[j]) for k in range(n_classes) if k != j)
        return (n_classes - 1) * pairs - n_classes * (n_classes - 1) / 2 + (n_classes - 1)

    return pair_mean(logits, labels, weight, sample_weight, loss)


# Unbiased risk and its corrections


def partial_risks(logits: Rows, coefficients: Rows, inverse: Rows, losses: BaseLoss) -> list[float]:
    """r_k = sum_i sum_j A_ij Qinv[j][k] l_k(x_i) (Ishida et al., ICML 2019)."""
    n_classes = len(logits[0])
    values = [losses(log_softmax(row)) for row in logits]
    risks = []
    for k in range(n_classes):
        terms: list[float] = []
        for i in range(len(logits)):
            terms.extend(coefficients[i][j] * inverse[j][k] * values[i][k] for j in range(n_classes))
        risks.append(math.fsum(terms))
    return risks


def ascent_value(risks: list[float], counts: list[float]) -> float:
    """sum_k r_k if min_k r_k >= 0, else -sum_k min(0, N_k r_k) (Ishida et al., ICML 2019)."""
    if min(risks) >= 0:
        return math.fsum(risks)
    return -math.fsum(min(0.0, count * risk) for count, risk in zip(counts, risks, strict=True))


def free(
    logits: Rows,
    labels: Sets,
    *,
    weight: Weights = None,
    sample_weight: Weights = None,
    transition: Rows | None = None,
    marginal: Weights = None,
    base: str = "ce",
) -> float:
    """sum_k r_k (Ishida et al., ICML 2019)."""
    n_classes = len(logits[0])
    coefficients = pair_coefficients(labels, n_classes, weight, sample_weight, marginal)
    return math.fsum(partial_risks(logits, coefficients, inverse_transition(transition, n_classes), BASES[base]))


def nn(
    logits: Rows,
    labels: Sets,
    *,
    weight: Weights = None,
    sample_weight: Weights = None,
    transition: Rows | None = None,
    marginal: Weights = None,
    base: str = "ce",
    beta: float = 0.0,
) -> float:
    """sum_k max(r_k, -beta) (Ishida et al., ICML 2019)."""
    n_classes = len(logits[0])
    coefficients = pair_coefficients(labels, n_classes, weight, sample_weight, marginal)
    risks = partial_risks(logits, coefficients, inverse_transition(transition, n_classes), BASES[base])
    return math.fsum(max(risk, -beta) for risk in risks)


def ga(
    logits: Rows,
    labels: Sets,
    *,
    weight: Weights = None,
    sample_weight: Weights = None,
    transition: Rows | None = None,
    marginal: Weights = None,
    base: str = "ce",
) -> float:
    """Gradient ascent: sum_k r_k, or -sum_k min(0, N_k r_k) if some r_k < 0 (Ishida et al., ICML 2019)."""
    n_classes = len(logits[0])
    coefficients = pair_coefficients(labels, n_classes, weight, sample_weight, marginal)
    risks = partial_risks(logits, coefficients, inverse_transition(transition, n_classes), BASES[base])
    return ascent_value(risks, label_counts(labels, n_classes, sample_weight))


def ncll(
    logits: Rows,
    labels: Sets,
    *,
    weight: Weights = None,
    sample_weight: Weights = None,
    transition: Rows | None = None,
    marginal: Weights = None,
    base: str = "mae",
) -> float:
    """Gradient ascent with a robust l_k; weighted-mae: 2 (1 - p_k) sum_j Qinv[j][k] (Ishiguro et al., IEICE 2022)."""
    n_classes = len(logits[0])
    inverse = inverse_transition(transition, n_classes)
    column_sums = [math.fsum(inverse[j][k] for j in range(n_classes)) for k in range(n_classes)]

    def weighted_mae(log_p: list[float]) -> list[float]:
        return [c * value for c, value in zip(column_sums, base_mae(log_p), strict=True)]

    losses = weighted_mae if base == "weighted-mae" else BASES[base]
    coefficients = pair_coefficients(labels, n_classes, weight, sample_weight, marginal)
    risks = partial_risks(logits, coefficients, inverse, losses)
    return ascent_value(risks, label_counts(labels, n_classes, sample_weight))


# Several labels: unbiased risk with a bounded loss, and the upper bounds


def set_risk(logits: Rows, labels: Sets, sample_weight: Weights, losses: BaseLoss) -> float:
    """Mean of sum_{j not in S} l_j - ((K - s - 1) / s) sum_{j in S} l_j (Feng et al., ICML 2020)."""

    def loss(row: list[float], chosen: list[int]) -> float:
        values = losses(log_softmax(row))
        outside = math.fsum(value for j, value in enumerate(values) if j not in chosen)
        inside = math.fsum(values[j] for j in chosen)
        return outside - (len(row) - len(chosen) - 1) / len(chosen) * inside

    return set_mean(logits, labels, None, sample_weight, loss)


def pair_risk(logits: Rows, coefficients: Rows, losses: BaseLoss) -> float:
    """sum_i sum_j A_ij (sum_m l_m - (K - 1) l_j), the set formula split over its labels (Feng et al., ICML 2020)."""
    terms: list[float] = []
    for row, line in zip(logits, coefficients, strict=True):
        values = losses(log_softmax(row))
        total = math.fsum(values)
        terms.extend(a * (total - (len(row) - 1) * value) for a, value in zip(line, values, strict=True))
    return math.fsum(terms)


def bounded(
    logits: Rows, labels: Sets, weight: Weights, sample_weight: Weights, marginal: Weights, losses: BaseLoss
) -> float:
    """The set formula; its split into pairs where classes carry weights (Feng et al., ICML 2020)."""
    if weight is None and marginal is None:
        return set_risk(logits, labels, sample_weight, losses)
    coefficients = pair_coefficients(labels, len(logits[0]), weight, sample_weight, marginal)
    return pair_risk(logits, coefficients, losses)


def mae(
    logits: Rows,
    labels: Sets,
    *,
    weight: Weights = None,
    sample_weight: Weights = None,
    marginal: Weights = None,
) -> float:
    """Unbiased risk with l_k = 2 (1 - p_k) (Feng et al., ICML 2020)."""
    return bounded(logits, labels, weight, sample_weight, marginal, base_mae)


def mse(
    logits: Rows,
    labels: Sets,
    *,
    weight: Weights = None,
    sample_weight: Weights = None,
    marginal: Weights = None,
) -> float:
    """Unbiased risk with l_k = 1 - 2 p_k + sum_j p_j^2 (Feng et al., ICML 2020)."""
    return bounded(logits, labels, weight, sample_weight, marginal, base_mse)


def gce(
    logits: Rows,
    labels: Sets,
    *,
    weight: Weights = None,
    sample_weight: Weights = None,
    marginal: Weights = None,
    q: float = 0.7,
) -> float:
    """Unbiased risk with l_k = (1 - p_k^q) / q (Feng et al., ICML 2020)."""
    return bounded(logits, labels, weight, sample_weight, marginal, lambda log_p: base_gce(log_p, q))


def phuber(
    logits: Rows,
    labels: Sets,
    *,
    weight: Weights = None,
    sample_weight: Weights = None,
    marginal: Weights = None,
    tau: float = 10.0,
) -> float:
    """Unbiased risk with the partially Huberised cross-entropy (Feng et al., ICML 2020)."""
    return bounded(logits, labels, weight, sample_weight, marginal, lambda log_p: base_phuber(log_p, tau))


def log(logits: Rows, labels: Sets, *, weight: Weights = None, sample_weight: Weights = None) -> float:
    """((K - 1) / s) * -log sum_{j not in S} p_j (Feng et al., ICML 2020)."""

    def loss(row: list[float], chosen: list[int]) -> float:
        return (len(row) - 1) / len(chosen) * -log_mass_outside(row, chosen)

    return set_mean(logits, labels, weight, sample_weight, loss)


def exp(logits: Rows, labels: Sets, *, weight: Weights = None, sample_weight: Weights = None) -> float:
    """((K - 1) / s) * exp(-sum_{j not in S} p_j) (Feng et al., ICML 2020)."""

    def loss(row: list[float], chosen: list[int]) -> float:
        return (len(row) - 1) / len(chosen) * math.exp(-math.exp(log_mass_outside(row, chosen)))

    return set_mean(logits, labels, weight, sample_weight, loss)


# Losses of one label; several labels count as pairs


def forward(
    logits: Rows,
    labels: Sets,
    *,
    weight: Weights = None,
    sample_weight: Weights = None,
    transition: Rows | None = None,
    balance: float = 0.0,
) -> float:
    """-log sum_y p_y prod_{j in S} Q[y][j] (Yu et al., ECCV 2018, for one label), less the mean log of mean p_k."""
    q = uniform_transition(len(logits[0])) if transition is None else transition

    def loss(row: list[float], chosen: list[int]) -> float:
        log_p = log_softmax(row)
        possible = [y for y in range(len(row)) if all(q[y][j] > 0 for j in chosen)]
        return -logsumexp([log_p[y] + math.fsum(math.log(q[y][j]) for j in chosen) for y in possible])

    given_up = 0.0
    if balance:
        n, k, v = len(logits), len(logits[0]), [1.0] * len(logits) if sample_weight is None else sample_weight
        rows = [log_softmax(row) for row in logits]
        means = [logsumexp([math.log(v[i]) + rows[i][c] for i in range(n) if v[i] > 0]) for c in range(k)]
        given_up = balance * math.fsum(math.log(n) - mean for mean in means) / k
    return set_mean(logits, labels, weight, sample_weight, loss) + given_up


def scl_nl(logits: Rows, labels: Sets, *, weight: Weights = None, sample_weight: Weights = None) -> float:
    """-log(1 - p_j) (Chou et al., ICML 2020)."""
    return pair_mean(logits, labels, weight, sample_weight, lambda row, j: -log_mass_outside(row, [j]))


def scl_exp(logits: Rows, labels: Sets, *, weight: Weights = None, sample_weight: Weights = None) -> float:
    """exp(p_j) (Chou et al., ICML 2020)."""
    return pair_mean(logits, labels, weight, sample_weight, lambda row, j: math.exp(softmax(row)[j]))


def second_log_softmax(row: list[float]) -> list[float]:
    """log_softmax(1 - p) (Gao and Zhang, ICML 2021)."""
    return log_softmax([1.0 - value for value in softmax(row)])


def l_uw(logits: Rows, labels: Sets, *, weight: Weights = None, sample_weight: Weights = None) -> float:
    """-log softmax(1 - p)_j (Gao and Zhang, ICML 2021)."""
    return pair_mean(logits, labels, weight, sample_weight, lambda row, j: -second_log_softmax(row)[j])


def l_w(logits: Rows, labels: Sets, *, weight: Weights = None, sample_weight: Weights = None) -> float:
    """-(1 + (1 - p_j) / (K - 1)) log softmax(1 - p)_j (Gao and Zhang, ICML 2021)."""

    def loss(row: list[float], j: int) -> float:
        factor = 1.0 + (1.0 - softmax(row)[j]) / (len(row) - 1)
        return -factor * second_log_softmax(row)[j]

    return pair_mean(logits, labels, weight, sample_weight, loss)


def op(logits: Rows, labels: Sets, *, weight: Weights = None, sample_weight: Weights = None) -> float:
    """-log softmax(-f)_j = f_j + logsumexp(-f) (Liu et al., AISTATS 2023)."""
    return pair_mean(logits, labels, weight, sample_weight, lambda row, j: -log_softmax([-f for f in row])[j])


def op_w_terms(row: list[float]) -> tuple[list[float], list[float], list[float], list[float]]:
    """p, q = softmax(-f), the bounded 1/q, and softmax(1 + 1/q) (Liu et al., AISTATS 2023; their code bounds by 1e18)."""
    lowest = min(row)
    below = [math.exp(lowest - f) for f in row]  # q_k = below_k / sum(below)
    total = math.fsum(below)
    inverse = [min(total / value, 1e18) if value > 0 else 1e18 for value in below]
    return softmax(row), [value / total for value in below], inverse, softmax([1.0 + value for value in inverse])


def op_w(logits: Rows, labels: Sets, *, weight: Weights = None, sample_weight: Weights = None) -> float:
    """-(p_j softmax(1 + 1/q)_j + 1e-6) log q_j, q = softmax(-f), 1/q at most 1e18 (Liu et al., AISTATS 2023)."""

    def loss(row: list[float], j: int) -> float:
        p, _, _, share = op_w_terms(row)
        return -(p[j] * share[j] + 1e-6) * log_softmax([-f for f in row])[j]

    return pair_mean(logits, labels, weight, sample_weight, loss)


def op_w_gradient(row: list[float], j: int) -> list[float]:
    """d/df_m of it: -(p_j' v_j + p_j v_j') log q_j + (p_j v_j + 1e-6) (d_jm - q_m), v = softmax(1 + 1/q).

    p_j' = p_j (d_jm - p_m); v_j' = v_j (u_jm - sum_k v_k u_km), u_km = (d_km - q_m) / q_k below the bound, else 0.
    """
    p, q, inverse, share = op_w_terms(row)
    log_q = log_softmax([-f for f in row])[j]
    classes = range(len(row))
    found = []
    for m in classes:
        slopes = [inverse[k] * ((k == m) - q[m]) if inverse[k] < 1e18 else 0.0 for k in classes]
        of_share = share[j] * (slopes[j] - math.fsum(share[k] * slopes[k] for k in classes))
        of_weight = p[j] * ((j == m) - p[m]) * share[j] + p[j] * of_share
        found.append(-of_weight * log_q + (p[j] * share[j] + 1e-6) * ((j == m) - q[m]))
    return found


def ml_cll(
    logits: Rows,
    labels: Sets,
    *,
    weight: Weights = None,
    sample_weight: Weights = None,
    variant: str = "gdf",
) -> float:
    """a sum_{k != j} softplus(-f_k) + b sum_{k != j} softplus(f_k) + softplus(f_j) (Gao et al., IJCAI 2023)."""
    n_classes = len(logits[0])
    sets = 2 ** (n_classes - 1) - 1
    unbiased = (2 ** (n_classes - 2) / sets, (2 ** (n_classes - 2) - 1) / sets)
    a, b = {"gdf": (1.0, 0.0), "unbiased": unbiased}[variant]

    def loss(row: list[float], j: int) -> float:
        others = [f for k, f in enumerate(row) if k != j]
        return math.fsum(a * softplus(-f) + b * softplus(f) for f in others) + softplus(row[j])

    return pair_mean(logits, labels, weight, sample_weight, loss)


def cross_entropy(logits: Rows, labels: Sets, *, weight: Weights = None, sample_weight: Weights = None) -> float:
    """-log p_y, where the labels are ordinary ones."""
    return pair_mean(logits, labels, weight, sample_weight, lambda row, y: -log_softmax(row)[y])


def logit_adjusted(
    logits: Rows,
    labels: Sets,
    *,
    marginal: list[float],
    weight: Weights = None,
    sample_weight: Weights = None,
    tau: float = 1.0,
) -> float:
    """-log softmax(f + tau log m)_y, where the labels are ordinary ones; log 0 counts as 0 (Menon et al., ICLR 2021)."""
    margins = [tau * math.log(share) if share > 0 else 0.0 for share in marginal]

    def loss(row: list[float], y: int) -> float:
        return -log_softmax([f + margin for f, margin in zip(row, margins, strict=True)])[y]

    return pair_mean(logits, labels, weight, sample_weight, loss)


# One versus the rest


def scarce(
    logits: Rows,
    labels: Sets,
    *,
    weight: Weights = None,
    sample_weight: Weights = None,
    prior: Weights = None,
) -> float:
    """sum_k (1-pi_k) m_k[h(f_k)] + |mean h(-f_k) - (1-pi_k) m_k[h(-f_k)]|, h = softplus (Wang et al., ICML 2024)."""
    if weight is not None:
        raise ValueError("weight: scarce takes no class weights")
    n, n_classes = len(logits), len(logits[0])
    pi = [1.0 / n_classes] * n_classes if prior is None else prior
    v = or_ones(sample_weight, n)
    terms = []
    for k in range(n_classes):
        members = [i for i in range(n) if k in labels[i]]
        mass = math.fsum(v[i] for i in members)
        if mass == 0:
            continue
        negative = (1 - pi[k]) * math.fsum(v[i] * softplus(logits[i][k]) for i in members) / mass
        not_positive = (1 - pi[k]) * math.fsum(v[i] * softplus(-logits[i][k]) for i in members) / mass
        overall = math.fsum(v[i] * softplus(-logits[i][k]) for i in range(n)) / n
        terms.append(negative + abs(overall - not_positive))
    return math.fsum(terms)


# Weighted complementary loss


def imbalance_sizes(n: int, n_classes: int, minority: list[int], p: float) -> list[float]:
    """Eq. 6: alpha_i = n (1 or p) / (|T_min| + p |T_maj|), not rounded (Wei et al., Neural Networks 2023)."""
    parts = len(minority) + p * (n_classes - len(minority))
    return [n * (1.0 if i in minority else p) / parts for i in range(n_classes)]


def complementary_prior(sizes: list[float]) -> list[float]:
    """Eq. 7: pi_j = (1 / alpha_j) / sum_i (1 / alpha_i) (Wei et al., Neural Networks 2023)."""
    total = math.fsum(1.0 / size for size in sizes)
    return [1.0 / size / total for size in sizes]


def eq13(pi: list[float]) -> list[float]:
    """Eq. 13: w_j = (1 / pi_j) / sum_i (1 / pi_i) (Wei et al., Neural Networks 2023)."""
    total = math.fsum(1.0 / value for value in pi)
    return [1.0 / value / total for value in pi]


def effective_number(counts: list[float], beta: float = 0.999) -> list[float]:
    """w_j = (1 - beta) / (1 - beta^n_j), not scaled (Cui et al., CVPR 2019)."""
    return [(1.0 - beta) / (1.0 - beta**count) for count in counts]


def bracket(values: list[float], factors: list[float], j: int) -> float:
    """-(K - 1) c_j l_j + sum_m c_m l_m, the bracket of Eq. 10 (Wei et al., Neural Networks 2023)."""
    total = math.fsum(factor * value for factor, value in zip(factors, values, strict=True))
    return -(len(values) - 1) * factors[j] * values[j] + total


def algorithm1(logits: Rows, labels: Sets, factors: list[float], sample_weight: Weights, losses: BaseLoss) -> float:
    """Algorithm 1: sum_k m_k[-(K - 1) c_k l_k + sum_j c_j l_j], c = w pi (Wei et al., Neural Networks 2023)."""
    n_classes = len(logits[0])
    v = or_ones(sample_weight, len(logits))
    counts = label_counts(labels, n_classes, sample_weight)
    terms = []
    for row, chosen, v_i in zip(logits, labels, v, strict=True):
        values = losses(log_softmax(row))
        for k in chosen:
            if counts[k] != 0:
                terms.append(v_i / len(chosen) / counts[k] * bracket(values, factors, k))
    return math.fsum(terms)


def wcll(
    logits: Rows,
    labels: Sets,
    *,
    weight: Weights = None,
    sample_weight: Weights = None,
    pi: Weights = None,
    reading: str = "algorithm1",
    base: str = "ce",
) -> float:
    """Eq. 9: w_j (-(K - 1) l_j + sum_m l_m), or Eq. 10, Eq. 12, Algorithm 1 (Wei et al., Neural Networks 2023)."""
    n_classes = len(logits[0])
    w, losses = or_ones(weight, n_classes), BASES[base]
    if pi is None and reading in ("eq12", "algorithm1"):
        raise ValueError(f"pi: {reading} needs it")
    if pi is not None and reading == "algorithm1":
        return algorithm1(logits, labels, [a * b for a, b in zip(w, pi, strict=True)], sample_weight, losses)
    outer, inner = {"eq9": (w, or_ones(None, n_classes)), "eq10": (None, w), "eq12": (pi, w)}[reading]

    def loss(row: list[float], j: int) -> float:
        return bracket(losses(log_softmax(row)), inner, j)

    return pair_mean(logits, labels, outer, sample_weight, loss)


def wcll_penalty(
    logits: Rows,
    labels: Sets,
    *,
    weight: Weights = None,
    sample_weight: Weights = None,
    pi: Weights = None,
    reading: str = "algorithm1",
    strength: float = 1.0,
    power: float = 1.0,
    bound: float = 0.0,
    base: str = "ce",
) -> float:
    """sum_k R_k + strength max(0, -bound - R_k)^power, R_k being all terms of WCLL that have l_k."""
    n_classes, n = len(logits[0]), len(logits)
    ones = or_ones(None, n_classes)
    w, v, shares = or_ones(weight, n_classes), or_ones(sample_weight, n), or_ones(pi, n_classes)
    counts = label_counts(labels, n_classes, sample_weight)
    means = [1.0 / count if count else 0.0 for count in counts]
    both = [a * b for a, b in zip(w, shares, strict=True)]
    of_label, of_class = {
        "eq9": ([value / n for value in w], ones),
        "eq10": ([1.0 / n] * n_classes, w),
        "eq12": ([value / n for value in shares], w),
        "algorithm1": (means, both),
    }[reading]
    total = 0.0
    for k in range(n_classes):
        risk = 0.0
        for row, chosen, v_i in zip(logits, labels, v, strict=True):
            loss = BASES[base](log_softmax(row))[k]
            for j in chosen:
                sign = 1.0 - (n_classes - 1) * (j == k)
                risk += v_i / len(chosen) * of_label[j] * of_class[k] * sign * loss
        total += risk + strength * max(0.0, -bound - risk) ** power
    return total


def wcll_adaptive(
    logits: Rows,
    labels: Sets,
    *,
    weight: Weights = None,
    sample_weight: Weights = None,
    mix: float = 0.5,
    base: str = "ce",
) -> float:
    """Eq. 9 with w'_j = (1 - mix) w_j + mix sum(w) mean_i p_j(x_i)."""
    n_classes = len(logits[0])
    w, v = or_ones(weight, n_classes), or_ones(sample_weight, len(logits))
    moved = []
    for j in range(n_classes):
        share = math.fsum(v_i * softmax(row)[j] for row, v_i in zip(logits, v, strict=True)) / math.fsum(v)
        moved.append((1.0 - mix) * w[j] + mix * math.fsum(w) * share)
    return wcll(logits, labels, weight=moved, sample_weight=sample_weight, reading="eq9", base=base)


ORACLES: dict[str, Callable[..., float]] = {
    "pc": pc,
    "free": free,
    "nn": nn,
    "ga": ga,
    "forward": forward,
    "log": log,
    "exp": exp,
    "mae": mae,
    "mse": mse,
    "gce": gce,
    "phuber": phuber,
    "l-w": l_w,
    "l-uw": l_uw,
    "scl-nl": scl_nl,
    "scl-exp": scl_exp,
    "op": op,
    "op-w": op_w,
    "ncll": ncll,
    "ml-cll": ml_cll,
    "scarce": scarce,
    "wcll": wcll,
    "wcll-penalty": wcll_penalty,
    "wcll-adaptive": wcll_adaptive,
    "cross-entropy": cross_entropy,
    "logit-adjusted": logit_adjusted,
}


# Several labels a sample


def chance_of_labels(labels: list[int], row: list[float], *, replacement: bool) -> float:
    """P(labels | y) up to the number of orders: prod_j Q_yj, or, summed over orders, prod_i Q_yj_i / what is left."""
    if replacement:
        return math.prod(row[j] for j in labels)
    total = 0.0
    for order in itertools.permutations(labels):
        chance, left = 1.0, 1.0
        for j in order:
            chance *= row[j] / left
            left -= row[j]
        total += chance
    return total


def repeated_em_step(
    samples: Sets, matrix: Rows, prior: list[float], target: Rows, strength: float, shares: list[float], weight: float
) -> tuple[Rows, list[float], float]:
    """One step of EM for labels that are independent given y: Q, prior, and the log-likelihood before the step."""
    k = len(matrix)
    named = [[strength * target[y][j] for j in range(k)] for y in range(k)]
    members = [weight * shares[y] for y in range(k)]
    log_likelihood = 0.0
    for labels in samples:
        joint = [prior[y] * chance_of_labels(labels, matrix[y], replacement=True) for y in range(k)]
        total = math.fsum(joint)
        log_likelihood += math.log(total)
        for y in range(k):
            members[y] += joint[y] / total
            for j in labels:
                named[y][j] += joint[y] / total
    q = [[named[y][j] / math.fsum(named[y]) for j in range(k)] for y in range(k)]
    return q, [one / math.fsum(members) for one in members], log_likelihood


def left_over_em_step(samples: Sets, matrix: Rows, prior: list[float]) -> tuple[Rows, list[float]]:
    """The same for labels without replacement: named over the sum, over draws, of [j was left] / what was left."""
    k = len(matrix)
    named, at_choice = [[0.0] * k for _ in range(k)], [[0.0] * k for _ in range(k)]
    members = [0.0] * k
    for labels in samples:
        joint = [prior[y] * chance_of_labels(labels, matrix[y], replacement=False) for y in range(k)]
        for y in range(k):
            share = joint[y] / math.fsum(joint)
            members[y] += share
            whole = chance_of_labels(labels, matrix[y], replacement=False)
            for order in itertools.permutations(labels):
                steps = [
                    (set(range(k)) - set(order[:i]), 1 - sum(matrix[y][m] for m in order[:i]))
                    for i in range(len(order))
                ]
                part = share / whole * math.prod(matrix[y][j] / left for j, (_, left) in zip(order, steps, strict=True))
                for j, (open_to, left) in zip(order, steps, strict=True):
                    named[y][j] += part
                    for other in open_to:
                        at_choice[y][other] += part / left
    raw = [[named[y][j] / at_choice[y][j] for j in range(k)] for y in range(k)]
    return [[value / math.fsum(row) for value in row] for row in raw], [one / math.fsum(members) for one in members]
