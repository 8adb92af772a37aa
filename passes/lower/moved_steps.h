// Steps of a loop where it counts otherwise: their buffers become views at other places.
#pragma once

#include <map>
#include <string>

#include "ir/loop/program.h"

namespace backcast {

/// A part of a buffer that begins so many elements into it.
loop::BufferId add_part(loop::Program& program, loop::BufferId of, const Dims& shape,
                        const Dim& offset);

class MovedSteps {
 public:
  /// `symbols`: what stands for the symbols of loops around the steps. The program has to outlive
  /// it.
  MovedSteps(loop::Program& program, std::map<std::string, Dim> symbols)
      : program_(program), symbols_(std::move(symbols)) {}

  /// `to` stands for the buffer `from`, which lies in other memory now.
  void replace(loop::BufferId from, loop::BufferId to) { moved_[from] = to; }
  bool replaces(loop::BufferId from) const { return moved_.contains(from); }

  void move(loop::Step& step);

 private:
  loop::BufferId moved(loop::BufferId id);

  loop::Program& program_;
  std::map<std::string, Dim> symbols_;
  std::map<loop::BufferId, loop::BufferId> moved_;
};

}  // namespace backcast
