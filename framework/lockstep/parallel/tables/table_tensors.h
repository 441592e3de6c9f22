// The state of sparse tables as tensors, in parts of whole rows: values, and states of their rules. Collective; one
// thread. T is float or double.
#pragma once

#include <vector>

#include "lockstep/comm/communicator.h"
#include "lockstep/core/partition.h"
#include "lockstep/core/tensor.h"
#include "lockstep/parallel/tables/changed_rows.h"
#include "lockstep/parallel/tables/table_engine.h"
#include "lockstep/parallel/tables/table_store.h"

namespace lockstep::parallel {

// All tensors: for each table its values, then its states.
template <class T>
std::vector<TableTensor> list_tensors(const TableStore<T>& store);

// See TableEngine::read() and write().
template <class T>
Tensor read_rows(const comm::Communicator& comm, const TableStore<T>& store, const TableTensor& tensor, Range rows,
                 bool wanted);
// See TableEngine::read_changes().
template <class T>
RowChanges read_changed_rows(const comm::Communicator& comm, const TableStore<T>& store, const ChangedRows& changed,
                             const TableTensor& tensor, Range rows);
template <class T>
void write_rows(const TableStore<T>& store, const TableTensor& tensor, Range rows, const Tensor& values);

}  // namespace lockstep::parallel
