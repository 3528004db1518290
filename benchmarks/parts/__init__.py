"""The parts of the benchmarks, one folder each; ../README.md says how one is made."""
