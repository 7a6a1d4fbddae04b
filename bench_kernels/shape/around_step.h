// Counts what surrounds the steps of a trial: the bytes of a checkpoint, the host memory of a node that it takes, and
// what is not combined with it. Pure arithmetic; the ranks write what is counted here.
#pragma once
#include <optional>
#include <string>

#include "schema/trial.h"

namespace sweep::shape {

// Bytes of a checkpoint, of all ranks together: of each trained parameter the weight, the fp32 master where there is
// one, and the optimizer's moments. Each number is there once, without padding. 0: the trial writes none.
i64 checkpoint_bytes(const Trial&);

// Bytes of weights that all ranks read together before the first step: those of the model (of adapters the base's), with
// sharded once for each copy that the ranks keep. 0: none are read.
i64 load_bytes(const Trial&);

// Pairs of a predicted token and a token of the reference that text metrics compare on each data-parallel rank, at
// most: the square of each sequence's length (text_overlap.h). 0: there are no text metrics.
double compared_pairs(const Trial&);

// Host memory that loading takes on the fullest node: with rank0 the whole model on its node.
double load_host_bytes(const Trial&);

// Host memory that checkpoints take on the fullest node, beside the ranks' own. full: all of it, on rank 0's node;
// async: the shares of the node's ranks. sharded: nothing that grows with the model.
double checkpoint_host_bytes(const Trial&);

// Tokens that a rank reads from a file for each step; 0: its data is made in memory.
double data_tokens(const Trial&);

// The trial does more than steps.
bool surrounds(const Trial&);

// Why the trial's step is not combined with what surrounds it, as a sentence; nullopt: it is.
std::optional<std::string> around_objection(const Trial&);

// Why a node with so much host memory is too small for it, as a sentence; nullopt: it is not.
std::optional<std::string> host_memory_objection(const Trial&, double node_bytes);

}  // namespace sweep::shape
