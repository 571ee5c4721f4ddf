#include "port/simt/options.hpp"

namespace tokenyard::port::simt {
namespace {

thread_local std::optional<Options> scoped;
thread_local uint64_t launches = 0;

}  // namespace

Scope::Scope(const Options& options) : outer_(scoped) { scoped = options; }
Scope::~Scope() { scoped = outer_; }

Options options_of_next_launch() {
  if (scoped) return *scoped;
  Options options;
  options.seed = launches++;
  return options;
}

}  // namespace tokenyard::port::simt
