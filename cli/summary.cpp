#include "summary.hpp"

#include <algorithm>

namespace tokenyard::cli {

void Summary::put(const char* label, const std::string& text) const {
  constexpr int kIndent = 11;
  fmt::print("  {}{}\n", terminal_.paint(fmt::emphasis::faint, fmt::format("{:<{}}", label, kIndent - 2)),
             fold_words(terminal_, text, kIndent));
}

void Summary::device(const Device& device) const {
  line("device", "{}", device.description);
  if (!device.why_not_best.empty()) line("", "{}", device.why_not_best);
}

void Summary::time(const Device& device, const Timing& timing) const {
  line("time", "{:.2f} µs a call ({:.2f} to {:.2f}), {}", timing.us.p50, timing.us.p20, timing.us.p80,
       timer_name(device));
}

void Summary::order(const harness::AlignProblem& problem, const harness::AlignOutputs& outputs) const {
  const int64_t kept = problem.num_pairs() - outputs.num_dropped;
  const int32_t padding = static_cast<int32_t>(outputs.num_padded - kept);
  const double share = outputs.num_padded == 0 ? 0 : 100.0 * padding / outputs.num_padded;
  line("pairs", "{}, {} dropped", kept, outputs.num_dropped);
  line("slots", "{} in {} {} of {}; {} of them padding ({:.1f}%); room for {}", outputs.num_padded,
       outputs.num_padded / problem.shape.block,
       outputs.num_padded == problem.shape.block ? "block" : "blocks", problem.shape.block, padding, share,
       problem.capacity);
  const double mean = static_cast<double>(kept) / static_cast<double>(outputs.counts.size());
  const int32_t highest = *std::max_element(outputs.counts.begin(), outputs.counts.end());
  const auto idle = std::count(outputs.counts.begin(), outputs.counts.end(), 0);
  line("load", "{:.1f} pairs an expert, at most {} ({:.2f} x mean); {} of {} experts idle", mean, highest,
       mean == 0 ? 0 : highest / mean, idle, outputs.counts.size());
}

void Summary::verified(const std::string& wrong, const char* right) const {
  line("verified", "{}", wrong.empty() ? right : fmt::format("NO: {}", wrong));
}

}  // namespace tokenyard::cli
