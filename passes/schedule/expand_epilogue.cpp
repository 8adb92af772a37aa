// What a register tile stores: the results of its sums, or of an elementwise kernel.
#include <algorithm>
#include <numeric>

#include "ir/loop/visit.h"
#include "passes/schedule/affine.h"
#include "passes/schedule/expansion.h"

namespace backcast {

using loop::Accumulator;
using loop::Expr;
using loop::Stmt;

/// What is stored of register n of a row: all of it or, beside spare lanes, parts that are powers
/// of two.
std::vector<Expansion::Part> Expansion::stored_parts(int64_t n) const {
  if (segment_ == nullptr || segment_->spare == 0 || n + 1 < vectors()) return {{0, lanes()}};
  std::vector<Part> parts;
  const int32_t used = lanes() - segment_->spare;
  for (int32_t width = lanes(), at = 0; width > 0; width /= 2) {
    if (at + width > used) continue;
    parts.push_back({at, width});
    at += width;
  }
  return parts;
}

/// The vectorizer of a part of register n, whose sum is `whole`.
Vectorizer Expansion::part_vectorizer(const Expr& n, const Part& part,
                                      const std::function<Expr(const std::string&)>& whole) const {
  Vectorizer v = vectorizer(n);
  v.accumulator = whole;
  if (part.lanes == lanes()) return v;
  v.base = v.base + Expr(part.first);
  v.lanes = part.lanes;
  v.accumulator = [whole, part](const std::string& name) -> Expr {
    const Expr value = whole(name);
    if (!value) return value;
    std::vector<int32_t> taken(static_cast<size_t>(part.lanes));
    std::iota(taken.begin(), taken.end(), part.first);
    return loop::shuffle({value}, taken);
  };
  return v;
}

void Expansion::write_outputs(const Bindings& bindings, std::vector<Stmt>& body) {
  const bool several = lanes() > 1 ? rows() > 1 : rows() * vectors() > 2;
  if (schedule_.rolled_epilogue && several) return write_rows_in_loop(bindings, body);
  if (definition_.accumulators.empty() && rows() > 1) return write_together(bindings, body);
  if (lanes_reduce()) return write_totals(bindings, body);
  for (int64_t m = 0; m < rows(); ++m) {
    for (int64_t n = 0; n < vectors(); ++n) {
      for (const Part& part : stored_parts(n)) {
        const auto sum = [&, m, n](const std::string& name) { return accumulator(name, {m, n}); };
        write_row(part_vectorizer(Expr(n), part, sum), at(bindings, m), body);
      }
    }
  }
}

/// Copies of the tile's sums in memory, by accumulator: cell by cell.
std::vector<std::string> Expansion::keep_sums(std::vector<Stmt>& body) {
  std::vector<std::string> sums;
  for (size_t i = 0; i < registers_.size(); ++i) {
    const loop::Type type = definition_.accumulators[i].type.with_lanes(lanes());
    sums.push_back(fresh("sums"));
    body.push_back(loop::alloc(sums[i], type, Expr(rows() * vectors()), loop::Memory::stack));
    for (int64_t cell = 0; cell < rows() * vectors(); ++cell) {
      const Expr sum = loop::load(type, registers_[i], Expr(cell * schedule_.chains));
      body.push_back(loop::store(sums[i], Expr(cell), sum));
    }
  }
  return sums;
}

void Expansion::write_rows_in_loop(const Bindings& bindings, std::vector<Stmt>& body) {
  const std::vector<std::string> sums = keep_sums(body);
  // Registers of a row lie in different parts of it; scalars beside each other are alike.
  if (lanes() > 1) {
    for (int64_t n = 0; n < vectors(); ++n) {
      body.push_back(row_loops(bindings, 1, [&](const std::vector<TileRow>& rows) {
        std::vector<Stmt> row;
        for (const Part& part : stored_parts(n)) {
          const Expr cell = rows[0].first_cell + Expr(n);
          write_row(part_vectorizer(Expr(n), part, kept_in(sums, cell)), rows[0].place, row);
        }
        return loop::block(row);
      }));
    }
    return;
  }
  // Cores in order compute two results while either waits, if none is stored in between.
  const int64_t columns = vectors() % 2 == 0 ? 2 : vectors() % 3 == 0 ? 3 : 1;
  body.push_back(row_loops(bindings, columns == 1 ? 2 : 1, [&](const std::vector<TileRow>& rows) {
    const std::string variable = fresh("column");
    std::vector<Stmt> together, stores;
    const Naming name = naming("result", together);
    for (const TileRow& row : rows) {
      for (int64_t n = 0; n < columns; ++n) {
        const Expr column = loop::var(variable) * Expr(columns) + Expr(n);
        const Vectorizer v =
            part_vectorizer(column, {0, 1}, kept_in(sums, row.first_cell + column));
        for (size_t i = 0; i < definition_.outputs.size(); ++i) {
          stores.push_back(store_result(i, v, row.place, name(result(i, v, row.place))));
        }
      }
    }
    together.insert(together.end(), stores.begin(), stores.end());
    return loop::for_loop(variable, Expr(0), Expr(vectors() / columns), loop::block(together));
  }));
}

/// Loops over the rows of the tile around what `write` makes of some of them: of `together`, where
/// the innermost loop's extent is a multiple of that, or of one.
Stmt Expansion::row_loops(const Bindings& bindings, int64_t together,
                          const std::function<Stmt(const std::vector<TileRow>&)>& write) {
  struct RowLoop {
    std::string axis, variable;
    Expr base;
    int64_t extent;
  };
  std::vector<RowLoop> loops;
  const auto add = [&](const std::string& axis, const Expr& base, int64_t extent) {
    loops.push_back({axis, fresh("row"), base, extent});
  };
  if (tile_segment_) add(schedule_.tile_axis, tile_base_, tile_size());
  const bool jams = !schedule_.jam_axis.empty();
  const int64_t inner = jams ? *static_extent(*axes_.at(schedule_.jam_axis)) : 1;
  if (!schedule_.outer_jam_axis.empty()) {
    add(schedule_.outer_jam_axis, Expr(0), schedule_.jam / inner);
  }
  if (jams) add(schedule_.jam_axis, Expr(0), inner);
  if (loops.empty() || loops.back().extent % together != 0) together = 1;
  std::vector<TileRow> rows;
  for (int64_t m = 0; m < together; ++m) {
    TileRow one{bindings, Expr(0)};
    for (size_t i = 0; i < loops.size(); ++i) {
      const bool last = i + 1 == loops.size();
      const Expr at = last ? loop::var(loops[i].variable) * Expr(together) + Expr(m)
                           : loop::var(loops[i].variable);
      one.place[loops[i].axis] = loops[i].base + at;
      one.first_cell = one.first_cell * Expr(loops[i].extent) + at;
    }
    one.first_cell = one.first_cell * Expr(vectors());
    rows.push_back(std::move(one));
  }
  Stmt result = write(rows);
  for (size_t i = loops.size(); i-- > 0;) {
    const int64_t trips = loops[i].extent / (i + 1 == loops.size() ? together : 1);
    result = loop::for_loop(loops[i].variable, Expr(0), Expr(trips), result);
  }
  return result;
}

/// Reads one cell of copies of the tile's sums, by accumulator.
std::function<Expr(const std::string&)> Expansion::kept_in(const std::vector<std::string>& sums,
                                                           const Expr& cell) const {
  return [this, sums, cell](const std::string& name) -> Expr {
    for (size_t i = 0; i < sums.size(); ++i) {
      const Accumulator& acc = definition_.accumulators[i];
      if (acc.name == name) return loop::load(acc.type.with_lanes(lanes()), sums[i], cell);
    }
    return Expr();
  };
}

/// The elements of an elementwise kernel's tile: what they share is read once, and none waits for
/// another's store, which may lie where it reads, as far as compilers know.
void Expansion::write_together(const Bindings& bindings, std::vector<Stmt>& body) {
  const auto no_sum = [](const std::string&) { return Expr(); };
  LetCache lets = let_cache(body);
  std::vector<Stmt> stores;
  for (int64_t n = 0; n < vectors(); ++n) {
    for (const Part& part : stored_parts(n)) {
      const Vectorizer v = part_vectorizer(Expr(n), part, no_sum);
      for (int64_t m = 0; m < rows(); ++m) {
        const Bindings place = at(bindings, m);
        for (size_t i = 0; i < definition_.outputs.size(); ++i) {
          const Expr value = lets.bind("result", lets.hoist_loads(result(i, v, place)));
          stores.push_back(store_result(i, v, place, value));
        }
      }
    }
  }
  body.insert(body.end(), stores.begin(), stores.end());
}

/// The value of output i at a place.
Expr Expansion::result(size_t i, const Vectorizer& v, const Bindings& place) const {
  const loop::Scalar element = kernel_.find(definition_.outputs[i].buffer)->element;
  return v.widen(v.run(epilogues_[i], place), {element, 1});
}

Stmt Expansion::store_result(size_t i, const Vectorizer& v, const Bindings& place,
                             const Expr& value) const {
  const loop::DefinitionOutput& output = definition_.outputs[i];
  const Shape& shape = kernel_.find(output.buffer)->shape;
  const Expr flat = loop::substitute(loop::flat_index(shape, output.indices), place);
  return loop::store(output.buffer, v.store_index(flat), value);
}

void Expansion::write_row(const Vectorizer& v, const Bindings& place, std::vector<Stmt>& body) {
  // All values before all stores: a result may lie where another's value reads.
  const bool several = definition_.outputs.size() > 1;
  std::vector<Stmt> stores;
  for (size_t i = 0; i < definition_.outputs.size(); ++i) {
    Expr value = result(i, v, place);
    if (several) {
      const std::string name = fresh("result");
      body.push_back(loop::let(name, value));
      value = loop::var(name, value.type());
    }
    stores.push_back(store_result(i, v, place, value));
  }
  body.insert(body.end(), stores.begin(), stores.end());
}

Naming Expansion::naming(const std::string& base, std::vector<Stmt>& body) {
  return [this, base, &body](const Expr& value) {
    const std::string variable = fresh(base);
    body.push_back(loop::let(variable, value));
    return loop::var(variable, value.type());
  };
}

/// Blocks of lanes × lanes elements: what lies contiguous along the tile axis is read so and turned
/// in registers.
void Expansion::write_transposed(const Bindings& bindings, std::vector<Stmt>& body) {
  const Naming name = naming("turned", body);
  for (int64_t first = 0; first < tile_size(); first += lanes()) {
    std::vector<std::pair<Expr, std::vector<Expr>>> blocks;
    for (int64_t m = 0; m < lanes(); ++m) {
      Vectorizer v = vectorizer(Expr(0));
      v.turned_load = [&](const std::string& buffer, loop::Type type, const Expr& flat) -> Expr {
        std::optional<int64_t> c = coefficient(flat, schedule_.transposed_axis);
        std::optional<int64_t> along = coefficient(flat, schedule_.vector_axis);
        if (lanes() == 1 || !c || *c != 1 || !along || *along == 0) return Expr();
        Expr whole = loop::load(type, buffer, flat);
        for (const auto& [known, block] : blocks) {
          if (loop::equal(known, whole)) return block[static_cast<size_t>(m)];
        }
        std::vector<Expr> rows;
        for (int64_t i = 0; i < lanes(); ++i) {
          Bindings row = at(bindings, first);
          row[schedule_.vector_axis] = vector_base_ + Expr(i);
          rows.push_back(
              name(loop::load(type.with_lanes(lanes()), buffer, loop::substitute(flat, row))));
        }
        blocks.emplace_back(whole, transpose_lanes(rows, name));
        return blocks.back().second[static_cast<size_t>(m)];
      };
      write_row(v, at(bindings, first + m), body);
    }
  }
}

/// One register for each element of the jammed axis, lane by lane in turn.
void Expansion::write_interleaved(const Bindings& bindings, std::vector<Stmt>& body) {
  const Naming name = naming("lanes", body);
  const loop::DefinitionOutput& output = definition_.outputs.at(0);
  const loop::BufferParam& param = *kernel_.find(output.buffer);
  const Expr whole = before_narrowing(epilogues_[0]);  // few bits are dear to shuffle
  for (int64_t n = 0; n < vectors(); ++n) {
    const Vectorizer v = vectorizer(Expr(n));
    std::vector<Expr> values;
    for (int64_t m = 0; m < rows(); ++m) {
      values.push_back(name(v.widen(v.run(whole, at(bindings, m)), whole.type())));
    }
    Bindings first = at(bindings, 0);
    first[schedule_.vector_axis] = v.base;
    Expr place = loop::substitute(loop::flat_index(param.shape, output.indices), first);
    for (const Expr& value : interleave_lanes(values, name)) {
      const loop::Type stored{param.element, value.type().lanes};
      body.push_back(loop::store(output.buffer, place, loop::cast(stored, value)));
      place = place + Expr(lanes());
    }
  }
}

}  // namespace backcast
