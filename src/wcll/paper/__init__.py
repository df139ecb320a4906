"""The study of the paper "Class-Imbalanced Complementary-Label Learning via Weighted Loss": its numbers beside ours."""
