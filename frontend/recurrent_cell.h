// What quantising has to know of recurrent layers: RNN, GRU and LSTM of ONNX, opset 7 on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/onnx_model.h"

namespace backcast {

struct RecurrentCell {
  enum class Kind { rnn, gru, lstm };
  Kind kind = Kind::rnn;
  bool forward = true, backward = false;  // which directions it has, in this order
  bool batch_first = false;
  bool linear_before_reset = false;      // of GRU
  std::vector<std::string> activations;  // operators, those of one direction after the other

  int64_t gates() const { return kind == Kind::lstm ? 4 : kind == Kind::gru ? 3 : 1; }
  int64_t directions() const { return forward && backward ? 2 : 1; }
  size_t activations_of_direction() const {
    return kind == Kind::lstm ? 3 : kind == Kind::gru ? 2 : 1;
  }
};

/// The places of a recurrent layer's inputs.
namespace recurrent_input {
inline constexpr size_t kData = 0, kWeights = 1, kRecurrentWeights = 2, kBias = 3, kLengths = 4,
                        kHidden = 5, kCell = 6, kPeepholes = 7;
}

bool is_recurrent(const OnnxNode& node);

/// Why a recurrent layer cannot be written as a loop over plain operators; empty when it can.
std::string why_not_plain(const OnnxNode& node);

/// Of a layer that can.
RecurrentCell recurrent_cell(const OnnxNode& node);

/// Whether it has that input.
bool has_input(const OnnxNode& node, size_t place);

}  // namespace backcast
