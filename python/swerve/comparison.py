"""Findings of `swerve compare`, as Python values."""


class Comparison:
    """Two sides on the same scenarios; docs/compare.md defines every figure.

    `data` is the whole answer of `swerve compare --json`.
    """

    def __init__(self, data):
        self.data = data

    @property
    def broken(self):
        """Rollouts that pass with A and not with B: dicts with scenario_id, branch_id, seed, world,
        outcome_a, verdict_a, outcome_b, verdict_b."""
        return [flip for flip in self.data["flips"] if flip["change"] == "broken"]

    @property
    def fixed(self):
        """Rollouts that pass with B and not with A."""
        return [flip for flip in self.data["flips"] if flip["change"] == "fixed"]

    @property
    def lost(self):
        """Main lines that pass with A and have no result with B: dicts with scenario_id, seed, world, kind
        ("invalid", "flagged", "missing", "changed"), outcome_a, outcome_b (None: it has none)."""
        return self.data["lost"]

    @property
    def difference(self):
        """Of the rates of passes, B minus A: (value, low, high)."""
        found = self.data["all"]["difference"]
        return found["value"], found["low"], found["high"]

    @property
    def p(self):
        """Of the exact test that fixed and broken are equally likely."""
        return self.data["all"]["p"]

    @property
    def measures(self):
        """{"score": {"a", "b", "difference": {"value", "low", "high"}}, ...}, means of main lines."""
        return self.data["measures"]

    @property
    def slices(self):
        """The same by slice: a list of dicts with `group`, `value`, rates and an adjusted `p`."""
        return self.data["slices"]

    def frame(self):
        """The slices as a pandas frame, the whole suite first."""
        import pandas

        return pandas.json_normalize([self.data["all"], *self.slices])

    def __repr__(self):
        value, low, high = self.difference
        return (
            f"<Comparison of {self.data['compared']} rollouts: {len(self.fixed)} fixed, "
            f"{len(self.broken)} broken, {len(self.lost)} lost, passes {value:+.3f} ({low:+.3f} to {high:+.3f})>"
        )
