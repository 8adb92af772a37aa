// Statements, compute definitions and kernels. A kernel is a statement tree over named buffers; a
// definition (`define`) is its fusible form: what each output element is, without an order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ir/graph/dim.h"
#include "ir/graph/loc.h"
#include "ir/loop/expr.h"

namespace backcast::loop {

struct Axis {
  std::string name;
  Expr extent;  // over size symbols
};

/// One running value of a reduction. Over all reduction axes, in row-major order, simultaneously
/// with the other accumulators:  name ← combine(name, value), or name ← value when `combine` is
/// `general`, where value may then mention every accumulator.
enum class Combine : uint8_t { sum, prod, max, min, bit_and, bit_or, general };
struct Accumulator {
  std::string name;
  Type type;
  Combine combine = Combine::sum;
  Expr init;
  Expr value;
};

struct DefinitionOutput {
  std::string buffer;
  std::vector<Expr> indices;  // over the axes; one per dimension of the buffer
  Expr value;                 // over axes and accumulators: the epilogue
};

/// out[axes] = value(axes, acc),  acc = combine over reduce_axes of value(axes, reduce_axes).
/// Axes are independent: any order, any parallelism. Reads are `access` expressions.
struct Definition {
  std::vector<Axis> axes;
  std::vector<Axis> reduce_axes;
  std::vector<Accumulator> accumulators;
  std::vector<DefinitionOutput> outputs;
};

enum class StmtKind : uint8_t {
  block,
  let,
  for_loop,
  while_loop,
  if_branch,
  store,
  alloc,
  define,
  prefetch
};
enum class ForKind : uint8_t { serial, unrolled, vectorized, parallel };
/// registers: indices are constants once legalised, elements become variables. stack: bounded local
/// array.
enum class Memory : uint8_t { registers, stack };
/// How near a hint brings a line: what is read within some steps, or what comes next but one and
/// must not displace what is in use.
enum class Cache : uint8_t { second, first };

struct StmtNode;
class Stmt {
 public:
  Stmt() = default;
  explicit Stmt(std::shared_ptr<const StmtNode> node) : node_(std::move(node)) {}
  explicit operator bool() const { return node_ != nullptr; }
  const StmtNode* operator->() const { return node_.get(); }
  const StmtNode& operator*() const { return *node_; }
  const StmtNode* get() const { return node_.get(); }

 private:
  std::shared_ptr<const StmtNode> node_;
};

struct StmtNode {
  StmtKind kind = StmtKind::block;
  std::string name;  // let: variable; for: variable; store, prefetch: buffer; alloc: buffer
  ForKind for_kind = ForKind::serial;
  Memory memory = Memory::registers;  // alloc
  Cache cache = Cache::second;        // prefetch
  Type type;                          // alloc: element type (may be a vector)
  std::vector<Expr> exprs;  // let {value}; for {begin, extent}; while {condition}; if {condition};
                            // store {flat index, value} (contiguous for a vector value and a scalar
                            // index, scatter for a vector index); alloc {count}; prefetch {flat
                            // index}
  std::vector<Stmt> body;   // block: statements; for, while: {body}; if: {then} or {then, else}
  std::shared_ptr<const Definition> definition;  // define
};

/// `let` and `alloc` are visible to the end of the enclosing block. Names are unique in a kernel.
Stmt block(std::vector<Stmt> statements);  // flattens nested blocks without own names
Stmt let(const std::string& name, Expr value);
Stmt for_loop(const std::string& variable, Expr begin, Expr extent, Stmt body,
              ForKind kind = ForKind::serial);
Stmt while_loop(Expr condition, Stmt body);
Stmt if_branch(Expr condition, Stmt then_body, Stmt else_body = {});
Stmt store(const std::string& buffer, Expr index, Expr value);
Stmt alloc(const std::string& name, Type element, Expr count, Memory memory);
Stmt define(Definition definition);
/// A hint, for machines with caches: this element's line will be read or written soon. It has no
/// other effect; the index may lie outside of the buffer.
Stmt prefetch(const std::string& buffer, Expr index, Cache cache = Cache::second);

enum class AccessMode : uint8_t { read, write, update };

/// A buffer parameter. Elements are row-major over `shape`, whose symbols are the kernel's size
/// parameters.
struct BufferParam {
  std::string name;
  Scalar element = Scalar::f32;
  Dims shape;
  AccessMode mode = AccessMode::read;
  /// Of a written buffer: read parameters whose storage it may take over, because every element of
  /// theirs is read for the last time just before the same element is written. Prints as
  /// `y: f32[8] write over(x, r)`.
  std::vector<std::string> over;

  bool operator==(const BufferParam&) const = default;
};

struct Kernel {
  std::string name;
  std::vector<BufferParam> buffers;
  std::vector<std::string> sizes;  // index parameters: the size symbols it uses, sorted
  Stmt body;
  std::vector<Loc> locs;  // model nodes it computes
  int64_t macs = 0;       // multiply-accumulates per call, for the report
  bool flushes = false;   // takes subnormal numbers for zero; `flushes` in the text

  const BufferParam* find(const std::string& buffer) const;
};

/// A pure function of scalars applied per lane: exp, tanh, …; straight-line code.
struct MathFunction {
  std::string name;
  struct Param {
    std::string name;
    Type type;
  };
  std::vector<Param> params;
  std::vector<std::pair<std::string, Expr>> lets;
  Expr result;
  /// The same function on `lanes` lanes.
  MathFunction widen(int32_t lanes) const;
};

/// The compute definition that is all of a kernel; null when its body is anything else.
const Definition* only_definition(const Kernel& kernel);

/// A dimension as an index expression; symbols become variables.
Expr expr_of(const Dim& dim);
/// Row-major flat index of an element.
Expr flat_index(const Dims& shape, const std::vector<Expr>& indices);

}  // namespace backcast::loop
