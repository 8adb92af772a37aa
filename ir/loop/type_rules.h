// The rules that types in expressions obey, for parser and verifier. Internal to ir/loop.
#pragma once

#include <string>

#include "ir/loop/expr.h"

namespace backcast::loop {

/// The type that an operation's result has, from op, arguments, and for casts, loads, ramps and the
/// like the node's own type.
Type result_type(const ExprNode& e);
/// What is wrong with a node's arguments and type, one level deep; empty when nothing is.
std::string type_mistake(const ExprNode& e);

}  // namespace backcast::loop
