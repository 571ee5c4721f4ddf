// Joins its arguments to a string. The library proper depends on nothing but the standard library; the
// tools around it format with fmt.
#pragma once

#include <sstream>
#include <string>

namespace tokenyard {

template <class... Parts>
std::string text(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

}  // namespace tokenyard
