"""
A survey that asks "which of these is not you?"
===============================================

A sensitive question can be asked so that no answer gives anybody away: each person names, at random, one group that
they do *not* belong to. This page computes how much an answer reveals, and what can still be learnt from many.
"""

import matplotlib.pyplot as plt
import numpy as np

from wcll import ComplementaryClassifier
from wcll.labels import make_complementary, observed_marginal, uniform_transition
from wcll.labels.diagnostics import label_worth

groups = ["none", "seldom", "monthly", "weekly", "daily"]  # how often somebody does what they would rather not tell
K = len(groups)
shares = np.array([0.5, 0.2, 0.15, 0.1, 0.05])

# %%
# The protocol: a die, seen by nobody else, picks one of the four groups that are not one's own. So Q is known, because
# the survey made it: uniform.

Q = uniform_transition(K)

# %%
# **What one answer reveals.** Bayes' rule turns the answer "not weekly" into new odds. Whoever is asked can say of any
# group but the named one "that might be me": the odds of two groups that were not named stay as they were, and the
# odds of the named one fall to 0. The largest factor by which somebody's probability of any group can rise is computed
# over all answers.

posterior = shares[:, None] * Q
posterior /= posterior.sum(axis=0)  # [group, answer]
factor = posterior / shares[:, None]
odds = (posterior / (1 - posterior)) / (shares / (1 - shares))[:, None]
print("answer           " + "".join(f"{name:>9}" for name in groups))
for j, answer in enumerate(groups):
    print(f"not {answer:12} " + "".join(f"{posterior[i, j]:9.3f}" for i in range(K)))
print(f"before           {''.join(f'{share:9.3f}' for share in shares)}")
print(f"\nprobability rises by a factor of {factor.max():.2f} at most, odds by {odds.max():.2f}")

# %%
# In bits: an ordinary answer reveals all of the entropy, a complementary one its mutual information with the truth.

worth = label_worth(Q, shares)
print(f"an ordinary answer reveals {worth.entropy:.2f} bits, a complementary one {worth.information:.2f}")
print(f"{100 * worth.information / worth.entropy:.0f} % of the secret; {worth.labels_for_one:.0f} answers weigh as one")

# %%
# One thing is revealed for sure: which group somebody is *not* in. If even that is too much, the die may name one's own
# group, too, with some probability; the mutual information falls to nothing where it does so in one of K cases.

chances = np.linspace(0, 1 / K, 21)
noisy = [label_worth((1 - chance) * Q + chance * np.eye(K), shares).information for chance in chances]

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
image = left.imshow(factor, cmap="Blues", vmin=0)
left.set_xticks(range(K), [f"not {name}" for name in groups], rotation=45, ha="right")
left.set_yticks(range(K), groups)
for (i, j), value in np.ndenumerate(factor):
    left.text(j, i, f"{value:.2f}", ha="center", va="center", color="white" if value > 1.5 else "black")
left.set_title("How an answer changes what is\nbelieved of somebody (factor)", fontsize=11)
right.plot(chances, noisy)
right.set(xlabel="chance of naming one's own group", ylabel="bits that an answer reveals", ylim=(0, None))
right.set_title("Less is revealed if answers may be false", fontsize=11)
figure.tight_layout()
plt.show()

# %%
# **What many answers tell.** The shares of the groups, by solving ``shares Q = shares of the answers``; nobody's own
# group is needed for that. The intervals are from a bootstrap of the answers.

rng = np.random.default_rng(0)
n = 4000
own = rng.choice(K, n, p=shares)
answers = make_complementary(own, Q, random_state=0)
estimate = observed_marginal(answers, K) @ np.linalg.inv(Q)
redrawn = [observed_marginal(rng.choice(answers, n), K) @ np.linalg.inv(Q) for _ in range(500)]
low, high = np.percentile(redrawn, [2.5, 97.5], axis=0)
for name, share, value, a, b in zip(groups, shares, estimate, low, high, strict=True):
    print(f"{name:9} true {share:.2f}, estimated {value:.2f} ({a:.2f} to {b:.2f})")

# %%
# **And a model.** If the survey has harmless questions beside it, a classifier can learn from answers who is likely in
# which group, without a single confession.

X = rng.normal(size=(n, 6)) + 2.2 * np.eye(K, 6)[own]
model = ComplementaryClassifier("forward", transition=Q, lr=0.01, max_epochs=60, warm_up=10, random_state=0)
model.fit(X[:3000], answers[:3000])
right_share = (model.predict(X[3000:]) == own[3000:]).mean()
print(f"right about {right_share:.2f} of people it has not seen; always saying 'none' is right about {shares[0]:.2f}")
# %%
# That is a reminder as well: what protects an answer does not protect somebody from being predicted by a model that
# learnt from many.
