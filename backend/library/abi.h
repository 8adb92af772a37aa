// The public ABI of a program as plain data: what the header declares and both emitters define.
// Everything that must agree between header, C and LLVM emission is decided here: names, fields,
// the checks of an entry point with their order and status, and what the hooks are told.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/loop/program.h"

namespace backcast {

/// Status codes, equal to those of runtime-c/include/bc_types.h.
enum class Status : int32_t {
  ok = 0,
  null = 1,
  arena_size = 2,
  alignment = 3,
  dimension = 4,
  index = 5,
  state_size = 6,
  state = 7,
  nonfinite = 8,
  checkpoint = 9,
  io = 10,
  value = 11
};
std::string_view macro_of(Status status);  // "BC_ERROR_NULL"

/// An `int64_t` field of the inputs: the live value of a symbol.
struct SizeField {
  std::string symbol;      // the model's name
  std::string identifier;  // of the field, C and C++
  std::string macro_name;  // "N" in MLP_N_MIN
  DimRange range;
};

/// A pointer field of the inputs or outputs.
struct TensorField {
  std::string name;  // the model's name
  std::string identifier;
  std::string macro_name;  // "INPUT" in KWS_RUN_IN_INPUT_ELEMENTS
  loop::BufferId buffer = -1;
  ElementType element = ElementType::f32;
  std::string c_type;  // "float"
  std::string shape;   // "f32[N,64]"
  int64_t max_elements = 0;
  /// Null is answered with BC_ERROR_NULL unless set (outputs the caller may leave out, tensors
  /// without elements).
  bool nullable = false;
  /// What the values may be; checked after all of EntryAbi::checks, BC_ERROR_INDEX.
  std::optional<loop::ValueRange> range;
  /// The symbol whose value this output is; empty: none.
  std::string extent;
};

/// One test of an entry point: answers `status` when it fails. Emitted in the order given.
struct Check {
  enum class Kind : uint8_t {
    in_null,          // in == NULL
    out_null,         // out == NULL
    input_null,       // in->field == NULL
    output_null,      // out->field == NULL
    arena_null,       // arena == NULL
    arena_size,       // arena_bytes < value
    arena_alignment,  // (uintptr_t)arena & (value - 1)
    input_alignment,  // (uintptr_t)in->field & (value - 1), value the size of the element
    output_alignment,
    dimension,        // in->size_field < min || in->size_field > max
    state_null,       // state == NULL
    state_alignment,  // (uintptr_t)state & (value - 1)
    state_header,     // magic, ABI version or model hash is another, or generation == 0
    count_zero        // the 32 bits at state + value are zero
  };
  Kind kind = Kind::in_null;
  Status status = Status::null;
  size_t field = 0;  // into inputs, outputs or sizes
  int64_t value = 0;
};

/// What the hooks around a step get.
struct StepAbi {
  int32_t number = 0;  // row of the report: counts the steps of all entry points
  std::string name;    // the model's nodes, "conv1+relu1"; never empty
};

/// bc_status <symbol>(const <symbol>_inputs *in, const <symbol>_outputs *out, void *arena,
///                    size_t arena_bytes, const bc_context *context)
/// Fields lie in the structs in this order: sizes, then inputs; outputs. A struct without fields
/// has one `uint8_t reserved`. In a training library `state` comes first, const where the entry
/// point writes none, and an entry point without inputs and outputs has no structs:
/// bc_status <symbol>(void *state, void *arena, size_t arena_bytes, const bc_context *context)
struct EntryAbi {
  std::string name;              // "run"
  std::string symbol;            // "kws_run"
  std::string macro_name;        // "RUN"
  std::vector<SizeField> sizes;  // every symbol no loop binds, sorted by the model's name
  std::vector<TensorField> inputs, outputs;
  std::vector<Check> checks;
  std::vector<StepAbi> steps;  // one per step of the entry point, nested ones included (flat_steps)
  bool has_state = false;
  bool writes_state = false;
  bool has_structs = true;
};

/// A row of the table that tells runtime-c what lies in the state (bc_variable in bc_runtime.h).
struct StateVariableAbi {
  loop::BufferId buffer = -1;
  uint64_t name_hash = 0;  // FNV-1a of Loc::node, the initializer's name; else of the buffer's
  int64_t offset = 0, bytes = 0;
  int64_t slice_start = 0;
  int32_t slice_axis = -1;
  uint8_t role = 0;
  uint8_t element = 0;  // as checkpoints have it
  /// Where its initial value begins among those of all variables, each aligned to its element; -1:
  /// zeros.
  int64_t initial = -1;
  /// Elements of three runs of the model's axes that the state has the other way round; the first
  /// is 0 where it has them as the model.
  std::array<int64_t, 3> runs{0, 0, 0};
};

/// The state of a training library; `bytes` is 0 for a library without.
struct StateAbi {
  int64_t bytes = 0, alignment = 1;
  int64_t parameter_count = 0;  // elements of parameters and statistics
  int64_t batch = 0, accumulate = 0;
  int64_t initial_bytes = 0;  // of initial values
  std::string flat_type;      // "float" or "double": of the flat vectors
  ElementType rate = ElementType::f32;
  bool has_rate = false, has_gradients = false;
  std::vector<StateVariableAbi> variables;
};

/// What the first words of an initialised state hold (bc_runtime.h).
inline constexpr uint32_t kStateMagic = 0x54534342;
inline constexpr uint32_t kStateAbi = 1;
/// The sets of roles that the flat vectors consist of, as bits.
inline constexpr uint32_t kParameterRoles = 3;
inline constexpr uint32_t kGradientRoles = 8;

/// A function that a training library offers besides its entry points; each calls one function of
/// runtime-c and hands the table of variables over.
struct StateFunction {
  enum class Kind : uint8_t {
    init,               // (void *state, size_t state_bytes, uint64_t seed)
    set_learning_rate,  // (void *state, float rate)
    get,                // (const void *state, float *flat)
    set,                // (void *state, const float *flat)
    save,               // (const void *state, const bc_writer *writer)
    load                // (void *state, const bc_reader *reader)
  };
  Kind kind = Kind::init;
  std::string symbol;   // "net_get_parameters"
  std::string runtime;  // "bc_state_get"
  uint32_t roles = 0;   // get, set
};

struct Abi {
  std::string prefix;        // "kws"
  std::string macro_prefix;  // "KWS"
  int64_t arena_bytes = 0;
  int64_t arena_alignment = 1;
  int64_t weight_bytes = 0;  // constants that steps read
  uint64_t model_hash = 0;   // of interface and constants
  std::vector<EntryAbi> entries;
  StateAbi state;
  std::vector<StateFunction> functions;  // of the state, in the header's order
};

/// FNV-1a, 64 bits: how checkpoints name a variable.
uint64_t name_hash(std::string_view name);

/// What a library keeps between calls; `bytes` is 0 when the program has no state buffers.
StateAbi state_of(const loop::Program& program);

/// What the library offers for its state; `abi` is complete but for these.
std::vector<StateFunction> state_functions(const Abi& abi);

/// InternalError for a program whose entry points break the rules: an input that is not an input
/// buffer, an output that is not an output buffer of its own.
Abi abi_of(const loop::Program& program);

/// The constants that reach the library: those that a step reads (a packed weight replaces what it
/// was made of), and the state variables whose initial value is not zero.
std::set<loop::BufferId> linked_constants(const loop::Program& program);

/// "float", "uint8_t" (bool), "uint16_t" (f16, bf16), …
std::string_view c_type_of(ElementType element);

/// Makes C and C++ identifiers out of any text: letters, digits and underscores, no keyword and no
/// macro of the standard headers, none twice.
class Identifiers {
 public:
  /// `taken` names are never given out.
  explicit Identifiers(std::set<std::string> taken = {}) : taken_(std::move(taken)) {}
  std::string make(std::string_view text);

 private:
  std::set<std::string> taken_;
  std::map<std::string, int64_t> last_;  // number given to a base name
};

/// `text` with every character that C identifiers lack replaced by '_'; "x" in front of a digit, an
/// underscore or `bc_`; not checked against keywords.
std::string sanitize(std::string_view text);
std::string upper_case(std::string_view text);

}  // namespace backcast
