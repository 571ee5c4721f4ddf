/* Tokenyard: routing kernels for Mixture-of-Experts layers. C ABI.
 *
 * Conventions
 * - Functions that can fail return a ty_status. On anything but TY_OK, ty_last_error() holds a sentence
 *   that names the operation (or "device"), the argument, what came, what was expected and what to do.
 * - Pointers into a problem (inputs, outputs, workspace memory) live on the device that the call names:
 *   host memory for TY_CPU, device memory for TY_CUDA and TY_HIP.
 * - `stream` is the backend's own stream handle (cudaStream_t, hipStream_t) as void*; NULL is the default
 *   stream. On TY_CPU it is ignored and the call returns when the work is done.
 * - No function waits for the device, allocates device memory or reads a count back. All launches can be
 *   captured in a graph and replayed with other routing.
 * - Argument structs begin with `struct_size`: set it with their initialiser. Fields are only ever added
 *   at the end; a struct from an older header is accepted, its missing fields taken as zero.
 */
#ifndef TOKENYARD_TOKENYARD_H_
#define TOKENYARD_TOKENYARD_H_

#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#define TY_API
#else
#define TY_API __attribute__((visibility("default")))
#endif

#define TY_VERSION_MAJOR 0
#define TY_VERSION_MINOR 1
#define TY_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

typedef enum ty_status {
  TY_OK = 0,
  TY_INVALID_ARGUMENT = 1,   /* a value that the contract does not allow */
  TY_WORKSPACE_REQUIRED = 2, /* no workspace, or one that is too small or of another device */
  TY_UNSUPPORTED = 3,        /* allowed by the contract, but not by this build or device */
  TY_DEVICE_ERROR = 4,       /* the driver refused a launch or a call */
  TY_OUT_OF_MEMORY = 5       /* host memory */
} ty_status;

typedef enum ty_backend { TY_CPU = 0, TY_CUDA = 1, TY_HIP = 2 } ty_backend;

/* A device: backend and ordinal (the driver's numbering; 0 for TY_CPU). */
typedef struct ty_device {
  int32_t backend; /* ty_backend */
  int32_t ordinal;
} ty_device;

typedef enum ty_dtype {
  TY_INT32 = 0,
  TY_INT64 = 1,
  TY_FLOAT32 = 2,
  TY_BFLOAT16 = 3,
  TY_FLOAT16 = 4
} ty_dtype;

/* "major.minor.patch" of the library that is running. */
TY_API const char* ty_version(void);

/* The message of the calling thread's last call that returned a ty_status, "" if it was TY_OK. Valid until
 * the thread's next call. */
TY_API const char* ty_last_error(void);

/* Number of usable devices of a backend: 1 for TY_CPU, 0 for a backend that this build does not have or
 * for which no card answers (ty_last_error() then says which of the two). */
TY_API int32_t ty_device_count(int32_t backend);

/* Best device there is: CUDA, else HIP, else CPU. */
TY_API ty_device ty_best_device(void);

/* One line that describes a device ("NVIDIA H200, sm_90, 132 multiprocessors"), cut to `size` bytes. */
TY_API ty_status ty_device_describe(ty_device device, char* text, size_t size);

/* ------------------------------------------------------------------------------------------------
 * Workspaces
 *
 * Some paths keep a few words of device state between launches. That memory is the caller's; a
 * ty_workspace wraps it and is the proof that it was prepared. Launches that may overlap in time
 * (two streams, a graph beside eager calls) need a workspace each.
 */
typedef struct ty_workspace ty_workspace;

/* Prepares `bytes` of device memory at `memory` (aligned to 256 bytes) on `stream` and returns the handle
 * that operations take. Enqueues one memset; must not be called while the stream is being captured.
 * The memory must stay allocated until the handle is destroyed and every launch that uses it has ended. */
TY_API ty_status ty_workspace_create(ty_device device, void* memory, size_t bytes, void* stream,
                                     ty_workspace** workspace);

/* Frees the handle (not the memory). NULL is allowed. */
TY_API void ty_workspace_destroy(ty_workspace* workspace);

/* ------------------------------------------------------------------------------------------------
 * align: expert ids -> block-aligned, expert-sorted order
 */

/* How align runs. Every path writes the same bits; the choice matters for time alone. */
typedef enum ty_align_path {
  TY_ALIGN_AUTO = 0,
  TY_ALIGN_EVERYWHERE = 1, /* one launch; every block computes everything; some thousand pairs */
  TY_ALIGN_GRID = 2,       /* one cooperative launch; blocks exchange counts; needs a workspace */
  TY_ALIGN_SPLIT = 3       /* two launches, no residency needed; needs a workspace */
} ty_align_path;

typedef struct ty_align_args {
  uint32_t struct_size; /* sizeof(ty_align_args) */
  int32_t ids_dtype;    /* ty_dtype of topk_ids */

  /* Input. A pair is valid if 0 <= id - first_id < num_experts and, with a map, 0 <= expert_map[id] <
   * num_local_experts. Any other id is dropped: -1 for padding tokens, but garbage is safe too. */
  const void* topk_ids;      /* [num_tokens, top_k], row t at element t * row_stride */
  int64_t num_tokens;        /* T >= 0 */
  int64_t row_stride;        /* elements between rows, >= top_k; 0 means top_k */
  int32_t top_k;             /* K >= 1 */
  int32_t num_experts;       /* E, 1 to 4096: ids are global */
  int32_t block_size;        /* B >= 1, any integer */
  int32_t num_local_experts; /* with expert_map: local experts, 1 to 4096; ignored without */
  const int32_t* expert_map; /* [num_experts] global id -> local id or -1; NULL: identity */

  /* Output, every element written. "experts" below are local ones if there is a map. */
  int64_t capacity;         /* slots in sorted_pair_ids; at least ty_align_min_capacity() */
  int32_t* sorted_pair_ids; /* [capacity] flat pair indices t * K + k: experts ascending, pairs ascending
                               within one; each expert's run padded to a multiple of B with T * K, which
                               also fills the slots beyond num_padded */
  int32_t* block_expert;    /* [ceil(capacity / B)] expert of each block, -1 beyond the last */
  int32_t* num_padded;      /* [1] slots in use, a multiple of B */

  /* Optional output, NULL if not wanted. */
  int32_t* counts;      /* [experts] valid pairs of each expert */
  int32_t* offsets;     /* [experts + 1] first slot of each expert; the last is num_padded */
  int32_t* inverse;     /* [T, K] contiguous: the slot of each pair, -1 if dropped */
  int32_t* block_rows;  /* [ceil(capacity / B)] valid pairs in each block, 0 beyond the last */
  int32_t* num_dropped; /* [1] pairs that were not valid */

  int32_t path;   /* ty_align_path; TY_ALIGN_AUTO unless a test or a measurement wants one */
  int32_t linked; /* 1: begins while the kernel before it in the stream ends, where the device can, and waits
                     inside (programmatic dependent launch); 0: when that has ended */

  /* Input. The id of expert 0: an id, and what block_expert holds in its place, is first_id + expert. All of
   * them must fit in int32; 0 with a map. With -1, tokens of no expert (id -1) have blocks of their
   * own, as num_experts is then one more. */
  int64_t first_id;
} ty_align_args;

/* Every field, so that neither C nor C++ warns about those left out. */
#define TY_ALIGN_ARGS_INIT \
  {sizeof(ty_align_args), TY_INT32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, TY_ALIGN_AUTO, 0, 0}

/* Slots to allocate for sorted_pair_ids: min(pairs * B, pairs + E * (B - 1) rounded up to a multiple of B).
 * Never less than any routing needs, a multiple of B. -1 if an argument is out of range or the result
 * would not fit in int32. `experts` is the local count if there is a map. */
TY_API int64_t ty_align_capacity(int64_t num_pairs, int32_t experts, int32_t block_size);

/* The fewest slots that hold every routing: what the worst one needs, exactly. -1 as above. */
TY_API int64_t ty_align_min_capacity(int64_t num_pairs, int32_t experts, int32_t block_size);

/* Bytes of workspace memory that `args` needs on `device`; 0 if none. Depends on shapes, never on ids, and
 * pointers in `args` may be NULL. */
TY_API ty_status ty_align_workspace_size(ty_device device, const ty_align_args* args, size_t* bytes);

/* Sorts. `workspace` may be NULL if ty_align_workspace_size() says 0. */
TY_API ty_status ty_align(ty_device device, const ty_align_args* args, ty_workspace* workspace, void* stream);

/* Bytes of memory that ty_align_once() needs; 0 if none, which is so for more sizes than with a workspace.
 * Otherwise as ty_align_workspace_size(). */
TY_API ty_status ty_align_once_size(ty_device device, const ty_align_args* args, size_t* bytes);

/* Sorts likewise, in `bytes` of memory (aligned to 256 bytes) that are this call's alone until the device has
 * done it: nothing needs to be prepared, nothing outlives the call. For allocators that follow the order of
 * the stream. Enqueues a memset, which a graph replays with the rest. NULL and 0 where the size is 0. */
TY_API ty_status ty_align_once(ty_device device, const ty_align_args* args, void* memory, size_t bytes,
                               void* stream);

/* Says in words which path `args` takes on `device`, and why. Cut to `size` bytes. */
TY_API ty_status ty_align_explain(ty_device device, const ty_align_args* args, char* text, size_t size);

/* ------------------------------------------------------------------------------------------------
 * gate: router logits -> expert ids and weights
 */

/* The score s of a logit x. Each grows with x. */
typedef enum ty_gate_score {
  TY_GATE_SOFTMAX = 0,      /* e^x / sum of e^x over the row */
  TY_GATE_SIGMOID = 1,      /* 1 / (1 + e^-x) */
  TY_GATE_SQRT_SOFTPLUS = 2 /* sqrt(ln(1 + e^x)) */
} ty_gate_score;

/* The weight of a chosen expert, before `scale`. */
typedef enum ty_gate_weights {
  TY_GATE_RAW = 0,              /* s */
  TY_GATE_RENORMALIZED = 1,     /* s / (sum of s over the chosen + epsilon) */
  TY_GATE_SOFTMAX_OF_CHOSEN = 2 /* e^x / sum of e^x over the chosen */
} ty_gate_weights;

/* The value by which groups of experts are kept. */
typedef enum ty_gate_group_score {
  TY_GATE_GROUP_MAX = 0, /* the highest selection value in the group */
  TY_GATE_GROUP_TOP2 = 1 /* the sum of its two highest; without a bias, of their scores */
} ty_gate_group_score;

/* The weight of a shared expert. */
typedef enum ty_gate_shared {
  TY_GATE_SHARED_FIXED = 0, /* shared_weight */
  TY_GATE_SHARED_OF_SUM = 1 /* shared_weight x the sum of the token's K weights, scale included */
} ty_gate_shared;

typedef struct ty_gate_args {
  uint32_t struct_size; /* sizeof(ty_gate_args) */

  /* Input */
  int32_t logits_dtype; /* TY_FLOAT32, TY_BFLOAT16 or TY_FLOAT16 */
  const void* logits;   /* [num_tokens, num_experts], row t at element t * row_stride */
  int64_t num_tokens;   /* T >= 0 */
  int64_t row_stride;   /* elements between rows, >= num_experts; 0 means num_experts */
  int32_t num_experts;  /* E, 1 to 4096 */
  int32_t top_k;        /* K, 1 to 64, at most E and the experts in the kept groups */

  /* Which experts. The K highest selection values, equal ones by ascending id. */
  int32_t score;       /* ty_gate_score */
  int32_t weight_mode; /* ty_gate_weights */
  const void* bias;    /* [num_experts] the selection value is score + bias; NULL: it is the logit */
  int32_t bias_dtype;  /* TY_FLOAT32 or logits_dtype; ignored without a bias */
  int32_t num_groups;  /* G, divides E, at most 256: group g is experts g * E / G and on; 0: one group */
  int32_t kept_groups; /* the groups that experts are chosen from, 1 to G; ignored where G is 0 */
  int32_t group_score; /* ty_gate_group_score */

  /* With which weights */
  float epsilon;              /* >= 0, with TY_GATE_RENORMALIZED */
  float scale;                /* factor of every routed weight; not 0 */
  int32_t num_shared_experts; /* S, 0 to 64: after the K chosen ones, ids from the number of experts up */
  int32_t shared_mode;        /* ty_gate_shared */
  float shared_weight;
  int32_t max_replicas;         /* R, with replicas: columns of the table */
  const int32_t* replicas;      /* [num_experts, max_replicas] physical ids of each expert; NULL: as chosen */
  const int32_t* num_replicas;  /* [num_experts] how many of them there are, 1 to max_replicas */
  int32_t num_physical_experts; /* with replicas: physical ids are below this, 1 to 65536 */

  /* Output, every element written */
  int32_t ids_dtype;              /* TY_INT32 or TY_INT64 */
  const int32_t* num_real_tokens; /* [1] tokens from this on have ids -1 and weights 0; NULL: all are real */
  void* ids;      /* [num_tokens, top_k + num_shared_experts], highest selection value first */
  float* weights; /* likewise */

  /* Optional output, NULL if not wanted. */
  int32_t* counts;          /* [num_experts] tokens that chose each expert */
  int32_t* physical_counts; /* [num_physical_experts] likewise, after replicas; NULL without them */

  int32_t lanes;    /* GPU lanes that share a token: 0, the tuned choice, or one for tests and measurements */
  int32_t reserved; /* 0 */
} ty_gate_args;

#define TY_GATE_ARGS_INIT \
  {sizeof(ty_gate_args),  \
   TY_FLOAT32,            \
   0,                     \
   0,                     \
   0,                     \
   0,                     \
   0,                     \
   TY_GATE_SOFTMAX,       \
   TY_GATE_RAW,           \
   0,                     \
   TY_FLOAT32,            \
   0,                     \
   0,                     \
   TY_GATE_GROUP_MAX,     \
   0.0f,                  \
   1.0f,                  \
   0,                     \
   TY_GATE_SHARED_FIXED,  \
   1.0f,                  \
   0,                     \
   0,                     \
   0,                     \
   0,                     \
   TY_INT32,              \
   0,                     \
   0,                     \
   0,                     \
   0,                     \
   0,                     \
   0,                     \
   0}

/* Chooses. Needs no workspace. */
TY_API ty_status ty_gate(ty_device device, const ty_gate_args* args, void* stream);

/* Says in words how `args` run on `device`, and why. Pointers may be NULL. Cut to `size` bytes. */
TY_API ty_status ty_gate_explain(ty_device device, const ty_gate_args* args, char* text, size_t size);

/* ------------------------------------------------------------------------------------------------
 * route: router logits -> expert ids, weights, and their block-aligned, expert-sorted order
 */

/* How route runs. Every path writes the same bits; the choice matters for time alone. */
typedef enum ty_route_path {
  TY_ROUTE_AUTO = 0,
  TY_ROUTE_ONE = 1, /* one launch; small batches */
  TY_ROUTE_TWO = 2  /* gate, then align */
} ty_route_path;

typedef struct ty_route_args {
  uint32_t struct_size; /* sizeof(ty_route_args) */
  int32_t path;         /* ty_route_path; TY_ROUTE_AUTO unless a test or a measurement wants one */

  const ty_gate_args* gate; /* as for ty_gate() */

  /* As for ty_align(), but its ids are gate's, all columns of them: [num_tokens, top_k + num_shared_experts]
   * of num_physical_experts + num_shared_experts experts (num_experts + num_shared_experts without replicas).
   * The fields that say so (ids_dtype, topk_ids, num_tokens, row_stride, top_k, num_experts, first_id) are
   * not read, nor is `linked`: align is linked to gate. */
  const ty_align_args* align;
} ty_route_args;

#define TY_ROUTE_ARGS_INIT {sizeof(ty_route_args), TY_ROUTE_AUTO, 0, 0}

/* Bytes of workspace memory that `args` needs on `device`; 0 if none. Depends on shapes alone, and pointers
 * in its structs may be NULL. */
TY_API ty_status ty_route_workspace_size(ty_device device, const ty_route_args* args, size_t* bytes);

/* What ty_gate() and then ty_align() do, bit for bit. `workspace` may be NULL if ty_route_workspace_size()
 * says 0. */
TY_API ty_status ty_route(ty_device device, const ty_route_args* args, ty_workspace* workspace, void* stream);

/* Bytes of memory that ty_route_once() needs; 0 if none. Otherwise as ty_route_workspace_size(). */
TY_API ty_status ty_route_once_size(ty_device device, const ty_route_args* args, size_t* bytes);

/* Routes likewise, in `bytes` of memory that are this call's alone: all that is said of ty_align_once(). */
TY_API ty_status ty_route_once(ty_device device, const ty_route_args* args, void* memory, size_t bytes,
                               void* stream);

/* Says in words which path `args` takes on `device`, and why. Pointers in its structs may be NULL. Cut to
 * `size` bytes. */
TY_API ty_status ty_route_explain(ty_device device, const ty_route_args* args, char* text, size_t size);

/* ------------------------------------------------------------------------------------------------
 * Training: the backward of gate, losses of the router, and balancing by a bias
 *
 * Each formula and its source: docs/training.md.
 */

/* The gradient of the logits from that of gate's weights. What was chosen is taken as it is: the gradient is
 * that of the weights of `ids`, and a bias or groups have no part in it. Replicas would rename the ids: a
 * call that is trained has none. */
typedef struct ty_gate_backward_args {
  uint32_t struct_size; /* sizeof(ty_gate_backward_args) */

  /* What gate was given, unchanged. */
  int32_t logits_dtype; /* TY_FLOAT32, TY_BFLOAT16 or TY_FLOAT16 */
  const void* logits;   /* [num_tokens, num_experts], row t at element t * row_stride */
  int64_t num_tokens;   /* T >= 0 */
  int64_t row_stride;   /* elements between rows, >= num_experts; 0 means num_experts */
  int32_t num_experts;  /* E, 1 to 4096 */
  int32_t top_k;        /* K, 1 to 64, at most E */
  int32_t score;        /* ty_gate_score */
  int32_t weight_mode;  /* ty_gate_weights */
  float epsilon;        /* >= 0, with TY_GATE_RENORMALIZED */
  float scale;          /* factor of every routed weight; not 0 */

  /* What it gave, and the gradient of it. Columns from top_k on are skipped: with TY_GATE_SHARED_OF_SUM, add
   * what they pass on to the K before them. */
  int32_t num_shared_experts; /* S, 0 to 64 */
  int32_t ids_dtype;          /* TY_INT32 or TY_INT64 */
  const void* ids;           /* [num_tokens, top_k + num_shared_experts], distinct in the first K columns; one
                                outside of 0 to num_experts - 1 (-1: a padding token) has no gradient */
  const float* weights_grad; /* likewise */

  /* Output, every element written */
  void* logits_grad; /* [num_tokens, num_experts] of logits_dtype, contiguous */
} ty_gate_backward_args;

#define TY_GATE_BACKWARD_ARGS_INIT \
  {sizeof(ty_gate_backward_args),  \
   TY_FLOAT32,                     \
   0,                              \
   0,                              \
   0,                              \
   0,                              \
   0,                              \
   TY_GATE_SOFTMAX,                \
   TY_GATE_RAW,                    \
   0.0f,                           \
   1.0f,                           \
   0,                              \
   TY_INT32,                       \
   0,                              \
   0,                              \
   0}

/* Needs no workspace. */
TY_API ty_status ty_gate_backward(ty_device device, const ty_gate_backward_args* args, void* stream);

/* Losses that keep a router healthy, and their gradient, from one pass over the logits: a balance loss over
 * each sequence (over the whole batch if it is one) and the z-loss. */
typedef struct ty_router_loss_args {
  uint32_t struct_size; /* sizeof(ty_router_loss_args) */

  int32_t logits_dtype; /* TY_FLOAT32, TY_BFLOAT16 or TY_FLOAT16 */
  const void* logits;   /* [num_tokens, num_experts], row t at element t * row_stride */
  int64_t num_tokens;   /* T >= 0 */
  int64_t row_stride;   /* elements between rows, >= num_experts; 0 means num_experts */
  int32_t num_experts;  /* E, 1 to 4096 */
  int32_t score;        /* ty_gate_score, of the balance loss */

  float balance_coefficient; /* 0: no balance loss */
  float z_coefficient;       /* 0: no z-loss */

  /* Sequence s is the tokens sequence_offsets[s] to sequence_offsets[s + 1] - 1. Tokens in none of them are
   * padding: they have no loss. */
  const int32_t* sequence_offsets; /* [num_sequences + 1] ascending; NULL: one sequence, of all tokens */
  int32_t num_sequences;           /* S >= 1, S * E below 2^31; ignored without sequence_offsets */

  /* How often each expert was chosen in each sequence. With ids they are counted here; without, they are
   * input: gate's counts, say, or their sums over several devices. */
  int32_t num_columns; /* with ids: their columns, top_k and the shared experts */
  int32_t top_k;       /* with ids: how many of the columns are counted, 1 to 64 */
  int32_t ids_dtype;   /* TY_INT32 or TY_INT64 */
  const void* ids;     /* [num_tokens, num_columns]; NULL: counts are given */
  int32_t* counts;     /* [num_sequences, num_experts]; unused without a balance loss */

  /* Output */
  float* losses;     /* [2] the balance loss and the z-loss, coefficients included */
  float* scratch;    /* [2, ceil(num_tokens / TY_ROUTER_LOSS_RUN)] for the call's own use */
  void* logits_grad; /* [num_tokens, num_experts] of logits_dtype, contiguous: of the sum of both; NULL if not
                        wanted */
} ty_router_loss_args;

#define TY_ROUTER_LOSS_RUN 16

#define TY_ROUTER_LOSS_ARGS_INIT \
  {sizeof(ty_router_loss_args),  \
   TY_FLOAT32,                   \
   0,                            \
   0,                            \
   0,                            \
   0,                            \
   TY_GATE_SOFTMAX,              \
   0.0f,                         \
   0.0f,                         \
   0,                            \
   1,                            \
   0,                            \
   0,                            \
   TY_INT32,                     \
   0,                            \
   0,                            \
   0,                            \
   0,                            \
   0}

/* Needs no workspace. */
TY_API ty_status ty_router_loss(ty_device device, const ty_router_loss_args* args, void* stream);

/* Balancing without a loss: moves each expert's bias a step against its load, and says how even the load is.
 */
typedef struct ty_balance_args {
  uint32_t struct_size; /* sizeof(ty_balance_args) */

  int32_t counts_dtype; /* TY_INT32 or TY_INT64 */
  const void* counts;   /* [num_experts] pairs of each expert, each >= 0, their sum below 2^63 */
  int32_t num_experts;  /* E, 1 to 4096 */
  float rate;           /* bias += rate * sign(mean count - count) */
  float* bias;          /* [num_experts] in place; NULL: statistics alone */
  float* statistics;    /* [4] a ty_load_statistic each; NULL if not wanted */
} ty_balance_args;

/* What statistics[i] holds. Without any pair: 0, 0, 0, 1. */
typedef enum ty_load_statistic {
  TY_LOAD_MAX = 0, /* the highest count over the mean: 1 is even, E all on one expert */
  TY_LOAD_MIN = 1, /* the lowest count over the mean: 1 is even */
  TY_LOAD_ENTROPY =
      2,           /* of the shares of the experts, over that of equal shares: 1 is even; 1 where E is 1 */
  TY_LOAD_IDLE = 3 /* experts without a pair, over E */
} ty_load_statistic;

#define TY_BALANCE_ARGS_INIT {sizeof(ty_balance_args), TY_INT32, 0, 0, 0.0f, 0, 0}

/* Needs no workspace. */
TY_API ty_status ty_balance(ty_device device, const ty_balance_args* args, void* stream);

#ifdef __cplusplus
}
#endif

#endif /* TOKENYARD_TOKENYARD_H_ */
