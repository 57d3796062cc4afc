"""scikit-learn's own checks of an estimator, and how many of them must really have run."""

from collections import Counter

from sklearn.base import is_classifier
from sklearn.utils.estimator_checks import check_estimator

LEAST_PASSED = 50, 53  # of a regressor, of a classifier: what scikit-learn 1.9 asks of the simplest one
# They need pandas, and an environment variable that is set before SciPy is imported.
MAY_BE_SKIPPED = {
    "check_array_api_input",
    "check_regressor_data_not_an_array",
    "check_classifier_data_not_an_array",
}


def fulfils_the_contract_of_scikit_learn(estimator) -> None:
    """All checks pass but those that this machine cannot run, and no fewer than there should be."""
    outcomes = check_estimator(estimator, on_skip=None)
    assert not any(outcome["expected_to_fail"] for outcome in outcomes)
    count = Counter(outcome["status"] for outcome in outcomes)
    skipped = {outcome["check_name"] for outcome in outcomes if outcome["status"] == "skipped"}
    assert set(count) <= {"passed", "skipped"} and skipped <= MAY_BE_SKIPPED, (count, skipped)
    assert count["passed"] >= LEAST_PASSED[is_classifier(estimator)], count
