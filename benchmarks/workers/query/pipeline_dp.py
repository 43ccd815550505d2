"""The same by PipelineDP's local backend, of a hundredth of the rows."""

import pipeline_dp

from benchmarks.wages import LARGEST, MOST_PLACES, MOST_ROWS, PEOPLE, PLACES, ROWS, columns
from benchmarks.worker import on_cores, serve

FEW = ROWS // 100
DATA = list(zip(*(c.tolist() for c in columns(FEW, PEOPLE // 100).values()), strict=True))
PLACE_OF = pipeline_dp.DataExtractors(
    privacy_id_extractor=lambda row: row[0],
    partition_extractor=lambda row: row[1],
    value_extractor=lambda row: row[2],
)
METRICS = pipeline_dp.Metrics


def _run() -> None:
    budget = pipeline_dp.NaiveBudgetAccountant(total_epsilon=1, total_delta=1e-6)
    wanted = pipeline_dp.AggregateParams(
        metrics=[METRICS.COUNT, METRICS.SUM, METRICS.MEAN],
        noise_kind=pipeline_dp.NoiseKind.LAPLACE,
        max_partitions_contributed=MOST_PLACES,
        max_contributions_per_partition=MOST_ROWS,
        min_value=0,
        max_value=LARGEST,
    )
    engine = pipeline_dp.DPEngine(budget, pipeline_dp.LocalBackend())
    found = engine.aggregate(DATA, wanted, PLACE_OF, public_partitions=list(range(PLACES)))
    budget.compute_budgets()
    assert len(list(found)) == PLACES


serve({"one-core": (FEW, on_cores(_run, 1))})
