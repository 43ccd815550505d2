"""Comparisons with other libraries; it hides the `benchmarks` that Opacus installs."""
