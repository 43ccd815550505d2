"""Answers whose every number has an interval, and forecasts of their errors.

Read `_answer` first, and `_assembly`, which makes its columns from noisy sums. `_totals` are those
of ROLLUP and CUBE, `_empty_groups` says where a result may be NULL, `_number_notes` explains
numbers that surprise, `_answer_in_words` the privacy, and `_answer_rows` writes rows.
`_paid_result` is what one release paid for. `_forecast` computes errors beforehand, and `_ranges`
what follows without asking.
"""
