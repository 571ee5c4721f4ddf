/* The C ABI from C99: two tokens, two experts each, blocks of two. */
#include <stdio.h>
#include <string.h>

#include "tokenyard/tokenyard.h"

int main(void) {
  static const int32_t ids[4] = {2, 0, 2, 1};
  static const int32_t expected[6] = {1, 4, 3, 4, 0, 2};
  int32_t order[8], block_expert[4], num_padded;
  ty_device cpu = {TY_CPU, 0};
  ty_align_args args = TY_ALIGN_ARGS_INIT;
  args.topk_ids = ids;
  args.num_tokens = 2;
  args.top_k = 2;
  args.num_experts = 3;
  args.block_size = 2;
  args.capacity = ty_align_capacity(4, 3, 2);
  args.sorted_pair_ids = order;
  args.block_expert = block_expert;
  args.num_padded = &num_padded;
  if (args.capacity != 8 || ty_align(cpu, &args, NULL, NULL) != TY_OK) {
    printf("capacity %ld: %s\n", (long)args.capacity, ty_last_error());
    return 1;
  }
  if (num_padded != 6 || memcmp(order, expected, sizeof expected) != 0) {
    printf("num_padded is %d and the order begins with %d, expected 6 and 1\n", num_padded, order[0]);
    return 1;
  }
  printf("Tokenyard %s sorts from C\n", ty_version());
  return 0;
}
