// Snapshots of dual expansions and their solvers as dicts of NumPy arrays and numbers, which model
// files can hold, and back. A dict may be from a file that somebody forged: what is missing, or of
// another type, is a ValueError.
#pragma once

#include <nanobind/nanobind.h>

#include "widemargin/larank.hpp"
#include "widemargin/online.hpp"
#include "widemargin/row_sweeps.hpp"

namespace widemargin::bindings {

nanobind::dict pack(const SupportSet::Snapshot& snapshot, std::size_t n_classes);
nanobind::dict pack(const LaRank::Snapshot& snapshot);
nanobind::dict pack(const RowSweeps::Snapshot& snapshot);
nanobind::dict pack(const OnlineLearner::Snapshot& snapshot);

SupportSet::Snapshot unpack_support_set(const nanobind::dict& packed);
LaRank::Snapshot unpack_larank(const nanobind::dict& packed);
RowSweeps::Snapshot unpack_row_sweeps(const nanobind::dict& packed);
OnlineLearner::Snapshot unpack_online(const nanobind::dict& packed);

}  // namespace widemargin::bindings
