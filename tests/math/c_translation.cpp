// See c_translation.h.
#include "tests/math/c_translation.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "ir/graph/error.h"

namespace backcast::testing {
namespace {

using loop::Expr;
using loop::ExprKind;
using loop::MathFunction;
using loop::Op;
using loop::Scalar;

const char* c_type(Scalar scalar) {
  switch (scalar) {
    case Scalar::boolean:
      return "_Bool";
    case Scalar::i32:
      return "int32_t";
    case Scalar::i64:
      return "int64_t";
    case Scalar::u16:
      return "uint16_t";
    case Scalar::u32:
      return "uint32_t";
    case Scalar::u64:
      return "uint64_t";
    case Scalar::f32:
      return "float";
    case Scalar::f64:
      return "double";
    default:
      break;
  }
  BC_CHECK(false, "type {} is not used by math functions", static_cast<int>(scalar));
}

std::string c_name(const std::string& name) {
  std::string result = "m_" + name;
  for (char& c : result) c = c == '.' ? '_' : c;
  return result;
}

std::string constant(const loop::ExprNode& e) {
  if (loop::is_float(e.type.scalar)) {
    return fmt::format("(({}){:a})", c_type(e.type.scalar), e.float_value);
  }
  return fmt::format("(({})(int64_t){:#x}ull)", c_type(e.type.scalar),
                     static_cast<uint64_t>(e.int_value));
}

const char* infix(Op op) {
  switch (op) {
    case Op::add:
      return "+";
    case Op::sub:
      return "-";
    case Op::mul:
      return "*";
    case Op::div:
      return "/";
    case Op::bit_and:
      return "&";
    case Op::bit_or:
      return "|";
    case Op::bit_xor:
      return "^";
    case Op::shl:
      return "<<";
    case Op::shr:
      return ">>";
    case Op::eq:
      return "==";
    case Op::ne:
      return "!=";
    case Op::lt:
      return "<";
    case Op::le:
      return "<=";
    case Op::gt:
      return ">";
    case Op::ge:
      return ">=";
    default:
      return nullptr;
  }
}

std::string translate(const Expr& e);

std::string unary(const loop::ExprNode& e) {
  const std::string a = translate(e.args[0]);
  const bool wide = e.args[0].type().scalar == Scalar::f64;
  switch (e.op) {
    case Op::neg:
      return fmt::format("(-{})", a);
    case Op::abs:
      return fmt::format("__builtin_fabs{}({})", wide ? "" : "f", a);
    case Op::sqrt:
      return fmt::format("__builtin_sqrt{}({})", wide ? "" : "f", a);
    case Op::is_nan:
      return fmt::format("__builtin_isnan({})", a);
    default:
      break;
  }
  BC_CHECK(false, "unary operation {} in a math function", static_cast<int>(e.op));
}

std::string translate(const Expr& expr) {
  const loop::ExprNode& e = *expr;
  const std::string type = c_type(e.type.scalar);
  switch (e.kind) {
    case ExprKind::constant:
      return constant(e);
    case ExprKind::var:
      return "v_" + e.name;
    case ExprKind::unary:
      return unary(e);
    case ExprKind::binary:
      if (e.op == Op::min || e.op == Op::max) {
        return fmt::format("{}_{}({}, {})", e.op == Op::min ? "min" : "max", type,
                           translate(e.args[0]), translate(e.args[1]));
      }
      BC_CHECK(infix(e.op) != nullptr, "operation {}", static_cast<int>(e.op));
      return fmt::format("({})({} {} {})", type, translate(e.args[0]), infix(e.op),
                         translate(e.args[1]));
    case ExprKind::fma:
      return fmt::format("__builtin_fma{}({}, {}, {})", e.type.scalar == Scalar::f64 ? "" : "f",
                         translate(e.args[0]), translate(e.args[1]), translate(e.args[2]));
    case ExprKind::select:
      return fmt::format("({} ? {} : {})", translate(e.args[0]), translate(e.args[1]),
                         translate(e.args[2]));
    case ExprKind::cast:
      return fmt::format("(({}){})", type, translate(e.args[0]));
    case ExprKind::bitcast:
      return fmt::format("{}_from_{}({})", type, c_type(e.args[0].type().scalar),
                         translate(e.args[0]));
    case ExprKind::call: {
      std::string args;
      for (const Expr& arg : e.args) args += (args.empty() ? "" : ", ") + translate(arg);
      return fmt::format("{}({})", c_name(e.name), args);
    }
    default:
      break;
  }
  BC_CHECK(false, "expression kind {} in a math function", static_cast<int>(e.kind));
}

std::string prologue() {
  std::string text = "#include <stdint.h>\n#include <string.h>\n";
  for (const char* type : {"float", "double", "int32_t", "int64_t", "uint32_t", "uint64_t"}) {
    text += fmt::format(
        "static inline {0} min_{0}({0} a, {0} b) {{ return a < b ? a : b; }}\n"
        "static inline {0} max_{0}({0} a, {0} b) {{ return a > b ? a : b; }}\n",
        type);
  }
  for (const auto& [real, integer] :
       {std::pair("float", "int32_t"), std::pair("double", "int64_t")}) {
    const std::string body = "b; memcpy(&b, &a, sizeof b); return b; }\n";
    text += fmt::format("static inline {0} {0}_from_{1}({1} a) {{ {0} {2}", real, integer, body);
    text += fmt::format("static inline {1} {1}_from_{0}({0} a) {{ {1} {2}", real, integer, body);
  }
  return text;
}

std::string signature(const MathFunction& f) {
  std::string params;
  for (const MathFunction::Param& p : f.params) {
    params += fmt::format("{}{} v_{}", params.empty() ? "" : ", ", c_type(p.type.scalar), p.name);
  }
  return fmt::format("static inline {} {}({})", c_type(f.result.type().scalar), c_name(f.name),
                     params);
}

}  // namespace

std::string translate_to_c(const std::map<std::string, MathFunction>& functions) {
  std::string text = prologue();
  for (const auto& [name, f] : functions) text += signature(f) + ";\n";
  for (const auto& [name, f] : functions) {
    text += signature(f) + " {\n";
    for (const auto& [let_name, value] : f.lets) {
      text += fmt::format("  const {} v_{} = {};\n", c_type(value.type().scalar), let_name,
                          translate(value));
    }
    text += fmt::format("  return {};\n}}\n", translate(f.result));
    std::string args;
    for (size_t i = 0; i < f.params.size(); ++i) {
      args += fmt::format("{}((const {}*)args[{}])[i]", i == 0 ? "" : ", ",
                          c_type(f.params[i].type.scalar), i);
    }
    text += fmt::format(
        "void batch_{0}(const void* const* args, void* out, long n) {{\n"
        "  for (long i = 0; i < n; ++i) (({1}*)out)[i] = {0}({2});\n}}\n",
        c_name(name), c_type(f.result.type().scalar), args);
  }
  return text;
}

CompiledFunctions::CompiledFunctions(const std::map<std::string, MathFunction>& functions) {
  std::string folder = (std::filesystem::temp_directory_path() / "backcast-math-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) throw std::runtime_error("no temporary directory");
  const std::string source = folder + "/functions.c";
  const std::string library = folder + "/functions.so";
  std::ofstream(source) << translate_to_c(functions);
  const std::string command = fmt::format(
      "{} -O2 -ffp-contract=off -fwrapv -fno-math-errno -march=native -shared -fPIC -o {} {} -lm",
      BACKCAST_C_COMPILER, library, source);
  if (std::system(command.c_str()) == 0) handle_ = dlopen(library.c_str(), RTLD_NOW);
  std::filesystem::remove_all(folder);
  if (handle_ == nullptr) throw std::runtime_error("cannot compile the math functions: " + command);
}

CompiledFunctions::~CompiledFunctions() { dlclose(handle_); }

CompiledFunctions::Batch CompiledFunctions::batch(const std::string& function) const {
  void* symbol = dlsym(handle_, ("batch_" + c_name(function)).c_str());
  BC_CHECK(symbol != nullptr, "{} is not compiled", function);
  return reinterpret_cast<Batch>(symbol);
}

}  // namespace backcast::testing
