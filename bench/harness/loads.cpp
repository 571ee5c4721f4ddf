#include "harness/loads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "harness/random.hpp"

namespace tokenyard::harness {
namespace {

Loads parse(const nlohmann::json& json) {
  return {.model = json.at("model"),
          .layer = json.at("layer"),
          .source = json.at("source"),
          .tokens = json.at("tokens"),
          .top_k = json.at("top_k"),
          .experts = json.at("experts"),
          .counts = json.at("counts")};
}

// "" or what the numbers lack of being a count of distinct choices.
std::string wrong_with(const Loads& loads) {
  if (loads.tokens < 1) return fmt::format("tokens is {}, expected at least 1", loads.tokens);
  if (std::ssize(loads.counts) != loads.experts) {
    return fmt::format("counts has {} entries, expected one for each of the {} experts", loads.counts.size(),
                       loads.experts);
  }
  const auto possible = [&](int64_t count) { return count >= 0 && count <= loads.tokens; };
  const auto odd = std::find_if_not(loads.counts.begin(), loads.counts.end(), possible);
  if (odd != loads.counts.end()) {
    return fmt::format("counts[{}] is {}, expected 0 to {}: a token chooses an expert once",
                       odd - loads.counts.begin(), *odd, loads.tokens);
  }
  const int64_t sum = std::accumulate(loads.counts.begin(), loads.counts.end(), int64_t{0});
  if (sum == loads.tokens * loads.top_k) return "";
  return fmt::format("counts sum up to {}, expected tokens * top_k = {}", sum, loads.tokens * loads.top_k);
}

}  // namespace

Loads read_loads(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error(fmt::format("{}: cannot be read, expected a file of expert loads", file));
  Loads loads;
  try {
    loads = parse(nlohmann::json::parse(in));
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(
        fmt::format("{}: is no file of expert loads, expected model, layer, source, tokens, "
                    "top_k, experts and counts: {}",
                    file, error.what()));
  }
  if (const std::string wrong = wrong_with(loads); !wrong.empty()) {
    throw std::runtime_error(fmt::format("{}: {}", file, wrong));
  }
  return loads;
}

// Systematic sampling: the experts lie on a line in a random order, each as long as its count, and a comb
// with one tooth every `tokens` falls on it at a random place. No expert is longer than that, so the top_k
// teeth hit distinct experts, each in proportion to its length.
AlignProblem draw_to_loads(AlignShape shape, const Loads& loads) {
  shape.top_k = loads.top_k;
  shape.experts = loads.experts;
  Random random(shape.seed);
  std::vector<int32_t> order = random.permutation(loads.counts.size());
  std::vector<int64_t> ids;
  ids.reserve(static_cast<size_t>(shape.tokens * shape.top_k));
  for (int64_t token = 0; token < shape.tokens; ++token) {
    random.shuffle_front(order, order.size());
    int64_t tooth = random.below(loads.tokens);
    int64_t end = 0;
    for (const int32_t expert : order) {
      end += loads.counts[static_cast<size_t>(expert)];
      if (tooth >= end) continue;
      ids.push_back(shape.first_id + expert);
      tooth += loads.tokens;
    }
  }
  return from_ids(shape, std::move(ids));
}

AlignProblem draw_to_loads(const AlignShape& shape, const std::string& file) {
  return draw_to_loads(shape, read_loads(file));
}

}  // namespace tokenyard::harness
