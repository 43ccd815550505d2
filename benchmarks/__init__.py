"""Comparisons with other libraries. The name hides the `benchmarks` that Opacus installs."""
