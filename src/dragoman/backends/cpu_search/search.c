/* Translation by a Transformer on a CPU: encoder, decoder steps, greedy and beam search, in one piece.

   The fast implementation of `models/transformer.py` (encode, decode_steps), `decoding/greedy.py` and
   `decoding/beam.py`; read those first: names are the same, and each function here names its textbook. What is gained:
   no operator is dispatched, no padding is multiplied, keys and values stay where they were written (a hypothesis has a
   list of the places of its past), and the rows of many sentences, each at a length of its own, share every product.

   Numbers are float32. A product's weights may have fewer bits (`Linear.kind`): bfloat16, whose rows are rounded to
   bfloat16 too, or int8 with a scale for each output, whose rows get a scale each. Each number of a product is one sum
   over k from 0 upwards, whatever stands beside its row, so a translation does not depend on its batch to the last bit,
   nor on the number of threads.

   Vectors are GCC's (`vector_size`): the compiler makes of them what the processor has (`LANES` numbers). */

#ifdef __x86_64__
#include <immintrin.h>
#endif
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef LANES
#if defined(__AVX512F__)
#define LANES 16
#elif defined(__AVX2__)
#define LANES 8
#else
#define LANES 4
#endif
#endif
#define VEC __attribute__((vector_size(4 * LANES), aligned(4), may_alias))
typedef float floats VEC;
typedef int32_t ints VEC;
#define INLINE static inline __attribute__((always_inline))
#define PANEL (2 * LANES) /* columns of a packed matrix's panel */
#if LANES == 16
#define ROWS 12 /* rows of a tile: 12 x 2 sums in registers */
#else
#define ROWS 6
#endif
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define PADDED(n) (((n) + PANEL - 1) / PANEL * PANEL)

INLINE floats load(const float *p) { return *(const floats *)p; }
INLINE void store(float *p, floats v) { *(floats *)p = v; }
INLINE floats all(float x) { return x - (floats){}; }
/* Halves are added, or compared, until one number is left. */
INLINE float sum(floats v) {
    float parts[LANES];
    store(parts, v);
#pragma GCC unroll 4
    for (int width = LANES / 2; width >= 1; width /= 2)
        for (int i = 0; i < width; i++) parts[i] += parts[i + width];
    return parts[0];
}
INLINE float largest(floats v) {
    float parts[LANES];
    store(parts, v);
#pragma GCC unroll 4
    for (int width = LANES / 2; width >= 1; width /= 2)
        for (int i = 0; i < width; i++) parts[i] = MAX(parts[i], parts[i + width]);
    return parts[0];
}

/* e^x for x <= 0 to about 1e-7 of its value; 0 below -87, NaN for NaN. */
INLINE floats exponential(floats x) {
    ints tiny = x < -87.0f;
    floats n = x * 1.44269504f + 12582912.0f; /* adding 1.5 * 2^23 rounds to a whole number */
    ints power = (ints)n << 23;
    n -= 12582912.0f;
    floats r = x - n * 0.693359375f - n * -2.12194440e-4f, y = all(1.9875691500e-4f);
    y = y * r + 1.3981999507e-3f;
    y = y * r + 8.3334519073e-3f;
    y = y * r + 4.1665795894e-2f;
    y = y * r + 1.6666665459e-1f;
    y = y * r + 5.0000001201e-1f;
    y = y * r * r + r + 1.0f;
    ints bits = (ints)y + power;
    return (floats)(bits & ~tiny);
}

/* Memory, or the end of the process: nobody could go on without it. */
static void *room(size_t bytes) {
    void *p = NULL;
    if (posix_memalign(&p, 64, MAX(bytes, 64))) {
        fprintf(stderr, "dragoman: no memory for a search (%zu MB): take a smaller beam or shorter lines\n", bytes >> 20);
        abort();
    }
    return p;
}

static void *zeros(size_t bytes) { return memset(room(bytes), 0, MAX(bytes, 64)); }

/* -- structures; `library.py` has them too ------------------------------------------------------------------------ */

enum activation { RELU, GELU, GELU_TANH, SILU };
enum placement { PRE, POST, OUTPUT };

enum kind { FLOAT32, BFLOAT16, INT8 };

typedef struct {
    const void *weight;  /* panels of PANEL columns (`pack`); null: there is no such layer */
    const float *bias;   /* padded to whole panels, as the others */
    const float *scales; /* INT8: of each output */
    const int32_t *sums; /* INT8: of each output's weights */
    int64_t inputs, outputs, kind;
} Linear;

typedef struct {
    const float *gain, *bias; /* gain null: no norm; bias null: RMSNorm */
    float eps;
} Norm;

typedef struct {
    Norm self_norm, cross_norm, ffn_norm;
    Linear qkv, self_out;            /* self-attention; query, key and value side by side */
    Linear cross_query, cross_kv, cross_out; /* of a decoder */
    Linear expand, gate, contract;   /* `gate` of SwiGLU */
} Layer;

typedef struct {
    const float *tokens, *positions; /* (vocab, d_model), scaled; (max_positions, d_model) or null */
    Norm norm, final_norm;           /* of the embedding; at the end of the stack */
    Layer *layers;
    int64_t num_layers;
} Stack;

typedef struct {
    int64_t d_model, num_heads, num_kv_heads, d_head, d_ff, vocab, max_positions;
    int64_t placement, activation;
    const float *cosines, *sines; /* rotary: (max_positions, d_head / 2), or null */
    Stack encoder, decoder;
    Linear output;
} Model;

typedef struct {
    int64_t beam, n_best, counted; /* `counted`: places of the finished */
    int64_t stopping;              /* 0 exact, 1 likely, 2 full, 3 first */
    int64_t min_length, max_slots, max_tokens; /* sentences at once; tokens that are read at once */
    int64_t threads;                           /* of a product that is large enough */
    int64_t num_banned;
    const int32_t *banned;
    const float *divisors; /* of each length up to the longest */
    int64_t bos, eos;
} Settings;

/* -- products ------------------------------------------------------------------------------------------------------ */

enum mode { SET, SET_RELU, ADD };

/* Numbers of a weight that stand together for each column, because one instruction multiplies and adds so many, and
   their type; the rows of x have the same type. Whole numbers are exact in any order and in any of these ways. */
#ifdef __AVX512BF16__
#define PAIR 2
#endif
#if defined(__AVX512VNNI__) && LANES == 16
#define GROUP 4
typedef int8_t weight_int;
typedef uint8_t row_int;
#define ROW_ZERO 128 /* the instruction wants unsigned rows */
#elif defined(__AVX2__) && LANES == 8
#define GROUP 2
typedef int16_t weight_int, row_int;
#define ROW_ZERO 0
#else
#define GROUP 1
typedef int32_t weight_int, row_int;
#define ROW_ZERO 0
#endif

#define UP_TO(n, multiple) (((n) + (multiple) - 1) / (multiple) * (multiple))

INLINE void put(floats v, float *to, enum mode mode) {
    if (mode == SET_RELU) v = (floats)((ints)v & ~(v < 0.0f));
    if (mode == ADD) v += load(to);
    store(to, v);
}

/* out[rows, PANEL columns] = x @ panel + bias, of at most ROWS rows. */
INLINE void tile_float32(const int rows, const Linear *layer, int64_t p, const float *x, int64_t stride, float *out,
                         int64_t out_stride, enum mode mode) {
    const float *panel = (const float *)layer->weight + p * layer->inputs * PANEL, *bias = layer->bias + p * PANEL;
    floats sums[ROWS][2], b0 = load(bias), b1 = load(bias + LANES);
    for (int r = 0; r < rows; r++) sums[r][0] = b0, sums[r][1] = b1;
    for (int64_t k = 0; k < layer->inputs; k++) {
        floats w0 = load(panel + k * PANEL), w1 = load(panel + k * PANEL + LANES);
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++) {
            floats value = all(x[r * stride + k]);
            sums[r][0] += value * w0;
            sums[r][1] += value * w1;
        }
    }
    for (int r = 0; r < rows; r++)
        for (int half = 0; half < 2; half++) put(sums[r][half], out + r * out_stride + half * LANES, mode);
}

#ifdef PAIR
/* The same of rows and weights in bfloat16, two at a time; `x` has pairs, `stride` of them in a row. */
INLINE void tile_bfloat16(const int rows, const Linear *layer, int64_t p, const int32_t *x, int64_t stride, float *out,
                          int64_t out_stride, enum mode mode) {
    int64_t pairs = UP_TO(layer->inputs, 2) / 2;
    const int32_t *panel = (const int32_t *)layer->weight + p * pairs * PANEL;
    const float *bias = layer->bias + p * PANEL;
    __m512 sums[ROWS][2], b0 = _mm512_loadu_ps(bias), b1 = _mm512_loadu_ps(bias + LANES);
    for (int r = 0; r < rows; r++) sums[r][0] = b0, sums[r][1] = b1;
    for (int64_t k = 0; k < pairs; k++) {
        __m512bh w0 = (__m512bh)_mm512_loadu_si512(panel + k * PANEL);
        __m512bh w1 = (__m512bh)_mm512_loadu_si512(panel + k * PANEL + LANES);
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++) {
            __m512bh value = (__m512bh)_mm512_set1_epi32(x[r * stride + k]);
            sums[r][0] = _mm512_dpbf16_ps(sums[r][0], value, w0);
            sums[r][1] = _mm512_dpbf16_ps(sums[r][1], value, w1);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int half = 0; half < 2; half++) put((floats)sums[r][half], out + r * out_stride + half * LANES, mode);
}
#endif

INLINE ints multiply_add(ints total, int32_t group, const void *weights) {
#if GROUP == 4
    return (ints)_mm512_dpbusd_epi32((__m512i)total, _mm512_set1_epi32(group), _mm512_loadu_si512(weights));
#elif GROUP == 2
    __m256i products = _mm256_madd_epi16(_mm256_set1_epi32(group), _mm256_loadu_si256((const __m256i *)weights));
    return total + (ints)products;
#else
    return total + group * *(const ints *)weights;
#endif
}

/* The same in int8: `x` has groups of GROUP whole numbers, which times `row_scales` are the rows. */
INLINE void tile_int8(const int rows, const Linear *layer, int64_t p, const int32_t *x, int64_t stride,
                      const float *row_scales, float *out, int64_t out_stride, enum mode mode) {
    int64_t groups = UP_TO(layer->inputs, GROUP) / GROUP;
    const int32_t *panel = (const int32_t *)layer->weight + p * groups * PANEL;
    ints totals[ROWS][2];
    for (int r = 0; r < rows; r++) totals[r][0] = totals[r][1] = (ints){};
    for (int64_t k = 0; k < groups; k++)
#pragma GCC unroll 16
        for (int r = 0; r < rows; r++) {
            totals[r][0] = multiply_add(totals[r][0], x[r * stride + k], panel + k * PANEL);
            totals[r][1] = multiply_add(totals[r][1], x[r * stride + k], panel + k * PANEL + LANES);
        }
    for (int half = 0; half < 2; half++) {
        int64_t column = p * PANEL + half * LANES;
        floats scales = load(layer->scales + column), bias = load(layer->bias + column);
        ints zero = *(const ints *)(layer->sums + column) * ROW_ZERO;
        for (int r = 0; r < rows; r++) {
            floats value = __builtin_convertvector(totals[r][half] - zero, floats);
            put(value * (scales * row_scales[r]) + bias, out + r * out_stride + half * LANES, mode);
        }
    }
}

#define CASE(n, call) case n: call(n); break;
#if ROWS > 6
#define CASES(call) CASE(1, call) CASE(2, call) CASE(3, call) CASE(4, call) CASE(5, call) CASE(6, call) \
    CASE(7, call) CASE(8, call) CASE(9, call) CASE(10, call) CASE(11, call) CASE(12, call)
#else
#define CASES(call) CASE(1, call) CASE(2, call) CASE(3, call) CASE(4, call) CASE(5, call) CASE(6, call)
#endif

static void any_tile(int64_t rows, const Linear *layer, int64_t p, const void *x, int64_t stride,
                     const float *row_scales, float *out, int64_t out_stride, enum mode mode) {
#define FLOATS(n) tile_float32(n, layer, p, x, stride, out, out_stride, mode)
#define HALVES(n) tile_bfloat16(n, layer, p, x, stride, out, out_stride, mode)
#define BYTES(n) tile_int8(n, layer, p, x, stride, row_scales, out, out_stride, mode)
    if (layer->kind == INT8) switch (rows) { CASES(BYTES) }
#ifdef PAIR
    else if (layer->kind == BFLOAT16) switch (rows) { CASES(HALVES) }
#endif
    else switch (rows) { CASES(FLOATS) }
}

/* A row of x in int8: whole numbers from -127 to 127; returns what they are to be multiplied by. */
static float to_int8(const float *x, int64_t inputs, row_int *to) {
    floats high = {}, odd = {}; /* `odd`: NaN where a number is NaN or infinite, else 0; no comparison keeps a NaN */
    int64_t whole = inputs / LANES * LANES;
    for (int64_t i = 0; i < whole; i += LANES) {
        floats v = (floats)((ints)load(x + i) & 0x7fffffff);
        ints more = v > high;
        high = (floats)(((ints)v & more) | ((ints)high & ~more));
        odd += v - v;
    }
    float most = largest(high), none = sum(odd);
    for (int64_t i = whole; i < inputs; i++) most = MAX(most, fabsf(x[i])), none += x[i] - x[i];
    float scale = most / 127.0f, inverse = most > 0 ? 127.0f / most : 0.0f;
    if (isnan(none)) inverse = 0.0f, scale = NAN;
    for (int64_t i = 0; i < inputs; i++) {
        float rounded = x[i] * inverse + 12582912.0f; /* 1.5 * 2^23: a whole number in the last bits */
        int32_t bits;
        memcpy(&bits, &rounded, 4);
        to[i] = (row_int)(bits - 0x4b400000 + ROW_ZERO);
    }
    for (int64_t i = inputs; i < UP_TO(inputs, GROUP); i++) to[i] = ROW_ZERO;
    return scale;
}

/* A number in bfloat16, rounded to the nearest, to even in the middle. */
INLINE uint16_t to_bfloat16(float x) {
    uint32_t bits;
    memcpy(&bits, &x, 4);
    if (x != x) return 0x7fc0;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

typedef struct {
    int32_t *rows;
    float *scales;
    int64_t size, count;
} Rounded;

/* Memory for the rows that are computed together. */
typedef struct {
    const Model *m;
    float *x, *y, *hidden, *qkv, *scores;
    int64_t rows_room, scores_room, threads; /* threads: of one product; 0 is 1 */
    Rounded rounded;
} Work;

/* Rows of x as the products of `layer` read them; returns the length of one in groups. */
static int64_t round_rows(const Linear *layer, const float *x, int64_t stride, int64_t rows, Rounded *to) {
    int64_t groups = layer->kind == INT8 ? UP_TO(layer->inputs, GROUP) / GROUP : UP_TO(layer->inputs, 2) / 2;
    if (rows * groups > to->size) {
        free(to->rows);
        to->size = 2 * rows * groups;
        to->rows = room(to->size * 4);
    }
    if (rows > to->count) {
        free(to->scales);
        to->count = 2 * rows;
        to->scales = room(to->count * 4);
    }
    for (int64_t r = 0; r < rows; r++) {
        const float *row = x + r * stride;
        int32_t *out = to->rows + r * groups;
        if (layer->kind == INT8) {
            to->scales[r] = to_int8(row, layer->inputs, (row_int *)out);
            continue;
        }
        uint16_t *halves = (uint16_t *)out;
        for (int64_t i = 0; i < layer->inputs; i++) halves[i] = to_bfloat16(row[i]);
        if (layer->inputs % 2) halves[layer->inputs] = 0;
    }
    return groups;
}

#define WORTH_A_THREAD 400000 /* multiplications */

/* The process that has loaded this file. A copy of it (`fork`) has not the threads that OpenMP keeps, and would wait for
   them for ever: there each product is computed by the thread that asks for it. */
static pid_t home;
__attribute__((constructor)) static void remember_home(void) { home = getpid(); }

/* `F.linear`: out = x @ weight.T + bias, then as `mode` says. Rows of `out` are padded to whole panels. */
static void linear(const Linear *layer, const float *x, int64_t stride, int64_t rows, float *out, int64_t out_stride,
                   enum mode mode, Work *w) {
    Rounded *rounded = &w->rounded;
    int64_t panels = PADDED(layer->outputs) / PANEL;
    const void *read = x;
    if (layer->kind != FLOAT32) stride = round_rows(layer, x, stride, rows, rounded), read = rounded->rows;
    int threads = (int)MIN(w->threads, rows * layer->inputs * layer->outputs / WORTH_A_THREAD);
    if (threads > 1 && getpid() != home) threads = 1;
    (void)threads; /* of no use without OpenMP */
    /* A panel stays in the cache while all rows go by it. Threads share the panels: no sum depends on their number. */
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t p = 0; p < panels; p++)
        for (int64_t r = 0; r < rows; r += ROWS)
            any_tile(MIN(ROWS, rows - r), layer, p, (const int32_t *)read + r * stride, stride, rounded->scales + r,
                     out + r * out_stride + p * PANEL, out_stride, mode);
}

int64_t panel_columns(void) { return PANEL; }

/* Bytes of a packed weight. Without products in bfloat16 its weights are float32 numbers, of as few bits. */
int64_t packed_bytes(int64_t outputs, int64_t inputs, int64_t kind) {
#ifdef PAIR
    if (kind == BFLOAT16) return PADDED(outputs) * UP_TO(inputs, PAIR) * 2;
#endif
    if (kind == INT8) return PADDED(outputs) * UP_TO(inputs, GROUP) * sizeof(weight_int);
    return PADDED(outputs) * inputs * 4;
}

/* A weight (outputs, inputs) into panels: [panel][inputs / group][PANEL][group]. Once for each layer, from
   `weights.py`.
   `scales`, `sums`: of a layer in int8, to be written. Returns the kind of its products. */
int64_t pack(const float *weight, int64_t outputs, int64_t inputs, int64_t kind, void *packed, float *scales,
             int32_t *sums) {
    memset(packed, 0, packed_bytes(outputs, inputs, kind));
    for (int64_t column = 0; column < outputs; column++) {
        const float *row = weight + column * inputs;
        int64_t p = column / PANEL, c = column % PANEL;
        if (kind == INT8) {
            float most = 0, odd = 0; /* `odd` as in `to_int8` */
            for (int64_t k = 0; k < inputs; k++) most = MAX(most, fabsf(row[k])), odd += row[k] - row[k];
            scales[column] = most / 127.0f + odd, sums[column] = 0;
            for (int64_t k = 0; k < inputs; k++) {
                int32_t whole = most > 0 && !isnan(odd) ? (int32_t)lrintf(row[k] * (127.0f / most)) : 0;
                int64_t groups = UP_TO(inputs, GROUP) / GROUP;
                ((weight_int *)packed)[((p * groups + k / GROUP) * PANEL + c) * GROUP + k % GROUP] = (weight_int)whole;
                sums[column] += whole;
            }
            continue;
        }
        for (int64_t k = 0; k < inputs; k++) {
#ifdef PAIR
            if (kind == BFLOAT16) {
                int64_t pairs = UP_TO(inputs, 2) / 2;
                ((uint16_t *)packed)[((p * pairs + k / 2) * PANEL + c) * 2 + k % 2] = to_bfloat16(row[k]);
                continue;
            }
#endif
            float value = row[k];
            if (kind == BFLOAT16) {
                uint32_t bits = (uint32_t)to_bfloat16(value) << 16;
                memcpy(&value, &bits, 4);
            }
            ((float *)packed)[(p * inputs + k) * PANEL + c] = value;
        }
    }
#ifndef PAIR
    if (kind == BFLOAT16) return FLOAT32;
#endif
    return kind;
}

/* -- norms, activations -------------------------------------------------------------------------------------------- */

/* `nn.LayerNorm` or `nn.RMSNorm` of one row. Without a norm a copy. Rows are padded with zeros to whole panels. */
static void norm(const Norm *layer, const float *x, int64_t width, float *out) {
    int64_t padded = PADDED(width);
    if (!layer->gain) {
        memcpy(out, x, padded * sizeof(float));
        return;
    }
    floats total = {}, squares = {};
    float mean = 0;
    if (layer->bias) {
        for (int64_t i = 0; i < padded; i += LANES) total += load(x + i);
        mean = sum(total) / width;
    }
    for (int64_t i = 0; i < padded; i += LANES) {
        floats v = load(x + i) - mean;
        squares += v * v;
    }
    float variance = sum(squares);
    variance -= (padded - width) * mean * mean; /* the padding is zeros */
    float scale = 1.0f / sqrtf(variance / width + layer->eps);
    for (int64_t i = 0; i < padded; i += LANES) {
        floats v = (load(x + i) - mean) * scale * load(layer->gain + i); /* gain and bias are padded with zeros */
        if (layer->bias) v += load(layer->bias + i);
        store(out + i, v);
    }
}

static void norm_rows(const Norm *layer, const float *x, int64_t rows, int64_t width, float *out) {
    int64_t stride = PADDED(width);
    for (int64_t r = 0; r < rows; r++) norm(layer, x + r * stride, width, out + r * stride);
}

static void activate(enum activation kind, float *x, int64_t count) {
    if (kind == SILU) {
        for (int64_t i = 0; i < count; i += LANES) {
            floats v = load(x + i), e = exponential((floats)((ints)v | (ints)all(-0.0f))); /* e^-|x| */
            floats positive = v / (1.0f + e);
            ints negative = v < 0.0f;
            floats other = positive * e;
            store(x + i, (floats)(((ints)other & negative) | ((ints)positive & ~negative)));
        }
    } else if (kind == GELU)
        for (int64_t i = 0; i < count; i++) x[i] = 0.5f * x[i] * (1.0f + erff(x[i] * 0.70710678f));
    else if (kind == GELU_TANH)
        for (int64_t i = 0; i < count; i++)
            x[i] = 0.5f * x[i] * (1.0f + tanhf(0.79788456f * (x[i] + 0.044715f * x[i] * x[i] * x[i])));
}

/* -- attention ----------------------------------------------------------------------------------------------------- */

/* Softmax of `count` scores in place; `scores` has room for whole vectors. */
static void softmax(float *scores, int64_t count) {
    int64_t padded = (count + LANES - 1) / LANES * LANES;
    for (int64_t i = count; i < padded; i++) scores[i] = -INFINITY;
    floats best = all(-INFINITY), total = {};
    for (int64_t i = 0; i < padded; i += LANES) {
        floats v = load(scores + i);
        ints more = v > best;
        best = (floats)(((ints)v & more) | ((ints)best & ~more));
    }
    float top = largest(best);
    for (int64_t i = 0; i < padded; i += LANES) {
        floats e = exponential(load(scores + i) - top);
        total += e;
        store(scores + i, e);
    }
    float scale = 1.0f / sum(total);
    for (int64_t i = 0; i < padded; i += LANES) store(scores + i, load(scores + i) * scale);
}

#define AT_ONCE 4 /* vectors whose sums are under way together: each waits for the one before */

/* Sum of the value of each position, times its weight: `room` numbers of each, `width` apart. `path`: the cells of the
   positions; null: they stand in their order. */
INLINE void weigh(const float *values, int64_t width, const int32_t *path, const float *weights, int64_t positions,
                  int64_t room, float *out) {
    for (int64_t d = 0; d < room; d += AT_ONCE * LANES) {
        int64_t vectors = MIN(AT_ONCE, (room - d) / LANES);
        floats totals[AT_ONCE] = {};
        if (vectors == 2)
            for (int64_t t = 0; t < positions; t++) {
                const float *value = values + (path ? path[t] : t) * width + d;
                totals[0] += load(value) * weights[t];
                totals[1] += load(value + LANES) * weights[t];
            }
        else if (vectors == 4)
            for (int64_t t = 0; t < positions; t++) {
                const float *value = values + (path ? path[t] : t) * width + d;
                for (int v = 0; v < 4; v++) totals[v] += load(value + v * LANES) * weights[t];
            }
        else
            for (int64_t v = 0; v < vectors; v++)
                for (int64_t t = 0; t < positions; t++)
                    totals[v] += load(values + (path ? path[t] : t) * width + d + v * LANES) * weights[t];
        for (int64_t v = 0; v < vectors; v++) store(out + d + v * LANES, totals[v]);
    }
}

/* The memory of one attention of one sentence: keys by feature, so that the scores of LANES positions are computed at
   once, and values by position. Both have zeros beyond the last position. */
typedef struct {
    float *keys;   /* (num_kv_heads, d_head, padded positions) */
    float *values; /* (positions, num_kv_heads * d_head padded to vectors a head) */
    int64_t positions, padded;
} Memory;

static int64_t head_room(const Model *m) { return (m->d_head + LANES - 1) / LANES * LANES; }

/* Rows of keys and values, `stride` apart, laid out for `attend_memory`. */
static void fill_memory(const Model *m, Memory *memory, const float *keys, const float *values, int64_t stride,
                        int64_t positions) {
    int64_t room = head_room(m), width = m->num_kv_heads * room;
    memory->positions = positions;
    memory->padded = (positions + LANES - 1) / LANES * LANES;
    memset(memory->keys, 0, m->num_kv_heads * m->d_head * memory->padded * sizeof(float));
    for (int64_t j = 0; j < positions; j++)
        for (int64_t h = 0; h < m->num_kv_heads; h++) {
            const float *key = keys + j * stride + h * m->d_head, *value = values + j * stride + h * m->d_head;
            float *to = memory->values + j * width + h * room;
            for (int64_t d = 0; d < m->d_head; d++) memory->keys[(h * m->d_head + d) * memory->padded + j] = key[d];
            memcpy(to, value, m->d_head * sizeof(float));
            memset(to + m->d_head, 0, (room - m->d_head) * sizeof(float));
        }
}

/* softmax(q K^T / sqrt(d_head)) V of one row: all heads. `scores`: room for the positions. */
static void attend_memory(const Model *m, const Memory *memory, const float *query, float *out, float *scores) {
    int64_t room = head_room(m), width = m->num_kv_heads * room, groups = m->num_heads / m->num_kv_heads;
    float scale = 1.0f / sqrtf((float)m->d_head), context[room];
    for (int64_t h = 0; h < m->num_heads; h++) {
        const float *q = query + h * m->d_head, *keys = memory->keys + h / groups * m->d_head * memory->padded;
        for (int64_t j = 0; j < memory->padded; j += LANES) {
            floats total = {};
            for (int64_t d = 0; d < m->d_head; d++) total += load(keys + d * memory->padded + j) * q[d];
            store(scores + j, total * scale);
        }
        softmax(scores, memory->positions);
        const float *values = memory->values + h / groups * room;
        weigh(values, width, NULL, scores, memory->positions, room, context);
        memcpy(out + h * m->d_head, context, m->d_head * 4);
    }
}

/* Rotary positions (`nn/positions.py`, RotaryPositions.rotate) of `heads` heads at `position`. */
static void rotate(const Model *m, float *x, int64_t heads, int64_t position) {
    if (!m->cosines) return;
    int64_t half = m->d_head / 2;
    const float *c = m->cosines + position * half, *s = m->sines + position * half;
    for (int64_t h = 0; h < heads; h++, x += m->d_head)
        for (int64_t i = 0; i < half; i++) {
            float a = x[2 * i], b = x[2 * i + 1];
            x[2 * i] = a * c[i] - b * s[i];
            x[2 * i + 1] = a * s[i] + b * c[i];
        }
}

/* -- memory -------------------------------------------------------------------------------------------------------- */

/* A row of a decoder step: a hypothesis with its last token, which is at `position`. */
typedef struct {
    const Memory *memory;   /* of each decoder layer */
    float **keys, **values; /* of each decoder layer: cells of num_kv_heads * head_room numbers */
    const int32_t *path;    /* the cells of its tokens, the last one too, in their order */
    int64_t position;
    int32_t last;
} Row;

typedef struct {
    int32_t *tokens; /* without <s> and </s> */
    int64_t length;
    float log_prob, score;
    int cut;
} Hypothesis;

/* A sentence that is being translated. A row of its decoder is a place of its beam. */
typedef struct {
    int64_t sentence, length, max_length, capacity, rows;
    Memory *memory;     /* of each decoder layer */
    float **keys, **values; /* of each decoder layer: a cell for each position and place of the beam */
    int32_t *paths;     /* (beam, capacity): the cell of each past position's token */
    int32_t *prefixes;  /* (beam, capacity) */
    int32_t *next_paths, *next_prefixes; /* of the next step, while it is made from these */
    float *log_probs;   /* (beam) */
    Hypothesis *finished; /* (counted), best first */
} Slot;

typedef struct {
    Work work;
    const Model *m;
    Settings s;
    int64_t num_sentences, *next, num_slots; /* `next`: the first sentence that no search has taken yet */
    const int32_t *sources;
    const int64_t *offsets, *max_lengths;
    Slot *slots, **active;
    int64_t num_active;
    int is_filling;      /* more sentences are read before the next step */
    char *gone;          /* sentences that nobody waits for any more */
    Hypothesis *results; /* (sentences, n_best); length -1: none */
    float *logits, *top; /* of the rows of a step */
    int32_t *top_ids;
    int64_t failed; /* 1 + the first sentence whose logits are no numbers; negative: no token is left */
} Search;

static int64_t qkv_width(const Model *m) { return (m->num_heads + 2 * m->num_kv_heads) * m->d_head; }

static void rows_of(Work *w, int64_t rows) {
    if (rows <= w->rows_room) return;
    const Model *m = w->m;
    int64_t d = PADDED(m->d_model), heads = PADDED(m->num_heads * m->d_head);
    free(w->x), free(w->y), free(w->hidden), free(w->qkv);
    w->rows_room = rows + rows / 2;
    w->x = zeros(w->rows_room * d * 4);
    w->y = zeros(w->rows_room * MAX(d, heads) * 4);
    w->hidden = zeros(w->rows_room * 2 * PADDED(m->d_ff) * 4);
    w->qkv = zeros(w->rows_room * PADDED(MAX(qkv_width(m), m->d_model)) * 4);
}

static void scores_of(Work *w, int64_t positions) {
    if (positions <= w->scores_room) return;
    free(w->scores);
    w->scores_room = (2 * positions + LANES) / LANES * LANES;
    w->scores = room(w->scores_room * 4);
}

static void work_free(Work *w) {
    free(w->x), free(w->y), free(w->hidden), free(w->qkv), free(w->scores);
    free(w->rounded.rows), free(w->rounded.scales);
}

static int64_t cache_width(const Model *m) { return m->num_kv_heads * head_room(m); }

static void grow(Search *f, Slot *slot) {
    int64_t before = slot->capacity, after = MAX(16, 2 * before), beam = f->s.beam;
    for (int64_t i = 0; i < f->m->decoder.num_layers; i++) {
        size_t bytes = beam * cache_width(f->m) * 4;
        float *keys = zeros(after * bytes), *values = zeros(after * bytes);
        if (before) {
            memcpy(keys, slot->keys[i], before * bytes), memcpy(values, slot->values[i], before * bytes);
            free(slot->keys[i]), free(slot->values[i]);
        }
        slot->keys[i] = keys, slot->values[i] = values;
    }
    int32_t *paths = zeros(beam * after * 4), *prefixes = zeros(beam * after * 4);
    for (int64_t b = 0; b < beam && before; b++) {
        memcpy(paths + b * after, slot->paths + b * before, before * 4);
        memcpy(prefixes + b * after, slot->prefixes + b * before, before * 4);
    }
    free(slot->paths), free(slot->prefixes), free(slot->next_paths), free(slot->next_prefixes);
    slot->paths = paths, slot->prefixes = prefixes, slot->capacity = after;
    slot->next_paths = room(beam * after * 4), slot->next_prefixes = room(beam * after * 4);
}

/* -- encoder ------------------------------------------------------------------------------------------------------- */

static void embed(const Model *m, const Stack *stack, int32_t id, int64_t position, float *out) {
    int64_t d = PADDED(m->d_model);
    const float *token = stack->tokens + (int64_t)id * d;
    for (int64_t i = 0; i < d; i += LANES) {
        floats v = load(token + i);
        if (stack->positions) v += load(stack->positions + position * d + i);
        store(out + i, v);
    }
    if (stack->norm.gain) norm(&stack->norm, out, m->d_model, out);
}

/* The part of a residual connection before its sublayer (`nn/residual.py`): what the sublayer reads. */
static const float *before(const Work *w, const Norm *layer, int64_t rows) {
    if (w->m->placement != PRE) return w->x;
    norm_rows(layer, w->x, rows, w->m->d_model, w->y);
    return w->y;
}

/* The part after it: the last product of the sublayer, added to x. */
static void after(Work *w, const Norm *layer, const Linear *last, const float *input, int64_t stride, int64_t rows) {
    int64_t d = PADDED(w->m->d_model);
    if (w->m->placement == OUTPUT) {
        float *made = w->qkv; /* nothing else is in it any more, and it is wide enough */
        linear(last, input, stride, rows, made, d, SET, w);
        norm_rows(layer, made, rows, w->m->d_model, made);
        for (int64_t i = 0; i < rows * d; i += LANES) store(w->x + i, load(w->x + i) + load(made + i));
        return;
    }
    linear(last, input, stride, rows, w->x, d, ADD, w);
    if (w->m->placement == POST) norm_rows(layer, w->x, rows, w->m->d_model, w->x);
}

static void feed_forward(Work *w, const Layer *layer, int64_t rows) {
    const Model *m = w->m;
    int64_t d = PADDED(m->d_model), wide = PADDED(m->d_ff);
    const float *y = before(w, &layer->ffn_norm, rows);
    enum activation kind = m->activation;
    int is_relu = kind == RELU && !layer->gate.weight;
    linear(&layer->expand, y, d, rows, w->hidden, wide, is_relu ? SET_RELU : SET, w);
    if (layer->gate.weight) {
        float *gate = w->hidden + w->rows_room * wide;
        linear(&layer->gate, y, d, rows, gate, wide, SET, w);
        activate(kind, gate, rows * wide);
        for (int64_t i = 0; i < rows * wide; i += LANES) store(w->hidden + i, load(w->hidden + i) * load(gate + i));
    } else if (!is_relu)
        activate(kind, w->hidden, rows * wide);
    after(w, &layer->ffn_norm, &layer->contract, w->hidden, wide, rows);
}

static void memory_room(const Model *m, Memory *memory, int64_t positions) {
    int64_t padded = UP_TO(positions, LANES);
    memory->keys = room(m->num_kv_heads * m->d_head * padded * 4);
    memory->values = room(positions * cache_width(m) * 4);
}

/* A sentence to be read. */
typedef struct {
    const int32_t *ids;
    int64_t length;
    Memory *memory; /* of each decoder layer, to be filled */
} Source;

/* `Transformer.encode` and `start`, of sentences whose tokens stand one after the other without padding. */
static void encode(Work *w, const Source *sources, int64_t count) {
    const Model *m = w->m;
    int64_t d = PADDED(m->d_model), wide = PADDED(qkv_width(m)), heads = PADDED(m->num_heads * m->d_head), rows = 0;
    int64_t longest = 1;
    for (int64_t i = 0; i < count; i++) rows += sources[i].length, longest = MAX(longest, sources[i].length);
    rows_of(w, rows), scores_of(w, longest);
    float *x = w->x;
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < sources[i].length; j++, x += d) embed(m, &m->encoder, sources[i].ids[j], j, x);
    Memory own;
    memory_room(m, &own, longest);
    int64_t keys = m->num_heads * m->d_head, values = keys + m->num_kv_heads * m->d_head;
    for (int64_t l = 0; l < m->encoder.num_layers; l++) {
        const Layer *layer = &m->encoder.layers[l];
        linear(&layer->qkv, before(w, &layer->self_norm, rows), d, rows, w->qkv, wide, SET, w);
        float *qkv = w->qkv, *contexts = w->y;
        for (int64_t i = 0; i < count; i++) {
            int64_t length = sources[i].length;
            for (int64_t j = 0; j < length; j++) rotate(m, qkv + j * wide, m->num_heads + m->num_kv_heads, j);
            fill_memory(m, &own, qkv + keys, qkv + values, wide, length);
            for (int64_t j = 0; j < length; j++)
                attend_memory(m, &own, qkv + j * wide, contexts + j * heads, w->scores);
            qkv += length * wide, contexts += length * heads;
        }
        after(w, &layer->self_norm, &layer->self_out, w->y, heads, rows);
        feed_forward(w, layer, rows);
    }
    norm_rows(&m->encoder.final_norm, w->x, rows, m->d_model, w->y);
    int64_t kv = PADDED(2 * m->num_kv_heads * m->d_head);
    for (int64_t l = 0; l < m->decoder.num_layers; l++) {
        linear(&m->decoder.layers[l].cross_kv, w->y, d, rows, w->qkv, kv, SET, w);
        float *from = w->qkv;
        for (int64_t i = 0; i < count; from += sources[i++].length * kv)
            fill_memory(m, &sources[i].memory[l], from, from + m->num_kv_heads * m->d_head, kv, sources[i].length);
    }
    free(own.keys), free(own.values);
}

/* -- decoder ------------------------------------------------------------------------------------------------------- */

/* Self-attention of one row over its own past and itself (`SharedKVCache.attend`). */
static void attend_past(const Model *m, const Row *row, int64_t layer, const float *query, float *out, float *scores) {
    int64_t room = head_room(m), width = cache_width(m), groups = m->num_heads / m->num_kv_heads;
    int64_t positions = row->position + 1;
    const float *keys = row->keys[layer], *values = row->values[layer];
    float scale = 1.0f / sqrtf((float)m->d_head), q[room], context[room];
    for (int64_t h = 0; h < m->num_heads; h++) {
        memcpy(q, query + h * m->d_head, m->d_head * 4);
        memset(q + m->d_head, 0, (room - m->d_head) * 4);
        int64_t shift = h / groups * room;
        for (int64_t t = 0; t < positions; t++) {
            const float *key = keys + row->path[t] * width + shift;
            floats total = {};
            for (int64_t d = 0; d < room; d += LANES) total += load(key + d) * load(q + d);
            scores[t] = sum(total) * scale;
        }
        softmax(scores, positions);
        weigh(values + shift, width, row->path, scores, positions, room, context);
        memcpy(out + h * m->d_head, context, m->d_head * 4);
    }
}

static void put_in_cache(const Model *m, float *cache, int64_t cell, const float *row) {
    int64_t room = head_room(m);
    float *to = cache + cell * cache_width(m);
    for (int64_t h = 0; h < m->num_kv_heads; h++) memcpy(to + h * room, row + h * m->d_head, m->d_head * 4);
}

/* `Transformer.decode_steps`: the decoder's output for the last token of each row, normalised, in `y`. */
static void decode_step(Work *w, const Row *rows, int64_t count) {
    const Model *m = w->m;
    int64_t d = PADDED(m->d_model), wide = PADDED(qkv_width(m)), heads = PADDED(m->num_heads * m->d_head);
    int64_t longest = 1;
    rows_of(w, count);
    for (int64_t r = 0; r < count; r++) {
        longest = MAX(longest, MAX(rows[r].position + 1, rows[r].memory->padded));
        embed(m, &m->decoder, rows[r].last, rows[r].position, w->x + r * d);
    }
    scores_of(w, longest);
    int64_t key = m->num_heads * m->d_head, value = key + m->num_kv_heads * m->d_head;
    for (int64_t l = 0; l < m->decoder.num_layers; l++) {
        const Layer *layer = &m->decoder.layers[l];
        linear(&layer->qkv, before(w, &layer->self_norm, count), d, count, w->qkv, wide, SET, w);
        for (int64_t r = 0; r < count; r++) {
            const Row *row = &rows[r];
            float *qkv = w->qkv + r * wide;
            rotate(m, qkv, m->num_heads + m->num_kv_heads, row->position);
            put_in_cache(m, row->keys[l], row->path[row->position], qkv + key);
            put_in_cache(m, row->values[l], row->path[row->position], qkv + value);
            attend_past(m, row, l, qkv, w->y + r * heads, w->scores);
        }
        after(w, &layer->self_norm, &layer->self_out, w->y, heads, count);
        linear(&layer->cross_query, before(w, &layer->cross_norm, count), d, count, w->qkv, heads, SET, w);
        for (int64_t r = 0; r < count; r++)
            attend_memory(m, &rows[r].memory[l], w->qkv + r * heads, w->y + r * heads, w->scores);
        after(w, &layer->cross_norm, &layer->cross_out, w->y, heads, count);
        feed_forward(w, layer, count);
    }
    norm_rows(&m->decoder.final_norm, w->x, count, m->d_model, w->y);
}

/* -- the best next tokens ------------------------------------------------------------------------------------------ */

#define CHUNK 64

/* The number that turns logits into log probabilities when it is subtracted; NaN if one of them is no number. */
static float normaliser(const float *logits, int64_t count) {
    int64_t whole = count / LANES * LANES;
    floats best = all(-INFINITY), total = {}, rest = all(-INFINITY);
    memcpy(&rest, logits + whole, (count - whole) * 4);
    ints odd = rest != rest;
    best = rest;
    for (int64_t i = 0; i < whole; i += LANES) {
        floats v = load(logits + i);
        ints more = v > best;
        odd |= v != v;
        best = (floats)(((ints)v & more) | ((ints)best & ~more));
    }
    float highest = largest(best);
    int32_t is_odd = 0;
    for (int i = 0; i < LANES; i++) is_odd |= odd[i];
    if (is_odd || !isfinite(highest)) return NAN;
    for (int64_t i = 0; i < whole; i += LANES) total += exponential(load(logits + i) - highest);
    total += exponential(rest - highest);
    return highest + logf(sum(total));
}

/* `log_softmax` of rows. */
void log_softmax(const float *logits, int64_t rows, int64_t stride, int64_t count, float *out) {
    for (int64_t r = 0; r < rows; r++, logits += stride) {
        float lost = normaliser(logits, count);
        for (int64_t i = 0; i < count; i++) *out++ = logits[i] - lost;
    }
}

/* `best_tokens` of one row of logits, which it changes: k log probabilities, best first, and their ids; among equals
   the smaller id first. Fewer than k: -inf. */
static void best_tokens(const Search *f, float *logits, int64_t k, int64_t length, float *top, int32_t *ids) {
    int64_t vocab = f->m->vocab, padded = PADDED(vocab), chunks = (padded + CHUNK - 1) / CHUNK;
    float lost = normaliser(logits, vocab);
    for (int64_t i = 0; i < k; i++) top[i] = isnan(lost) ? NAN : -INFINITY, ids[i] = 0;
    if (isnan(lost)) return;
    for (int64_t i = vocab; i < padded; i++) logits[i] = -INFINITY;
    for (int64_t i = 0; i < f->s.num_banned; i++) logits[f->s.banned[i]] = -INFINITY;
    if (length <= f->s.min_length) logits[f->s.eos] = -INFINITY;
    for (int64_t c = 0; c < chunks; c++) {
        int64_t start = c * CHUNK, end = MIN(start + CHUNK, padded);
        floats high = all(-INFINITY);
        for (int64_t i = start; i < end; i += LANES) {
            floats v = load(logits + i);
            ints more = v > high;
            high = (floats)(((ints)v & more) | ((ints)high & ~more));
        }
        if (largest(high) <= top[k - 1]) continue;
        for (int64_t i = start; i < end; i++) {
            float v = logits[i];
            if (v <= top[k - 1]) continue;
            int64_t at = k - 1;
            for (; at > 0 && v > top[at - 1]; at--) top[at] = top[at - 1], ids[at] = ids[at - 1];
            top[at] = v, ids[at] = (int32_t)i;
        }
    }
    for (int64_t i = 0; i < k; i++) top[i] -= lost;
}

/* -- greedy search and beam search --------------------------------------------------------------------------------- */

static Hypothesis written(const Slot *slot, int64_t place, int64_t length, float log_prob, float score, int cut) {
    Hypothesis h = {room(MAX(length, 1) * 4), length, log_prob, score, cut};
    memcpy(h.tokens, slot->prefixes + place * slot->capacity, length * 4);
    return h;
}

/* Keep a sentence's hypotheses; its slot is free. */
static void finish(Search *f, Slot *slot, int64_t count) {
    Hypothesis *results = f->results + slot->sentence * f->s.n_best;
    for (int64_t i = 0; i < f->s.counted; i++) {
        if (slot->finished[i].length < 0) continue;
        if (i < count) results[i] = slot->finished[i];
        else free(slot->finished[i].tokens);
        slot->finished[i].length = -1;
    }
    for (int64_t l = 0; l < f->m->decoder.num_layers; l++) free(slot->memory[l].keys), free(slot->memory[l].values);
    slot->sentence = -1;
}

static void fail(Search *f, const Slot *slot, float log_prob) {
    if (!f->failed) f->failed = isnan(log_prob) ? 1 + slot->sentence : -(1 + slot->sentence);
}

/* One step of `greedy_search` for one sentence; 1 when it is done. */
static int greedy(Search *f, Slot *slot, const float *top, const int32_t *ids) {
    int64_t length = ++slot->length;
    slot->log_probs[0] += top[0];
    slot->prefixes[length - 1] = ids[0];
    int ended = ids[0] == f->s.eos && isfinite(top[0]);
    if (!isfinite(top[0])) fail(f, slot, top[0]);
    if (!ended && length < slot->max_length && isfinite(top[0])) return 0;
    slot->finished[0] = written(slot, 0, length - ended, slot->log_probs[0],
                                slot->log_probs[0] / f->s.divisors[length], !ended);
    return 1;
}

typedef struct {
    float log_prob;
    int32_t place, id;
} Candidate;

/* One step of `beam_search` for one sentence; 1 when it is done. `top`, `ids`: k of each of its rows. */
static int beam_step(Search *f, Slot *slot, int64_t k, const float *top, const int32_t *ids) {
    const Settings *s = &f->s;
    int64_t beam = s->beam, wanted = 2 * beam, count = 0, length = ++slot->length;
    Candidate ranked[wanted];
    /* `rank_candidates`: the best 2 * beam, among equals the better prefix and then the smaller id first. */
    for (int64_t b = 0; b < slot->rows; b++)
        for (int64_t i = 0; i < k; i++) {
            float total = slot->log_probs[b] + top[b * k + i];
            if (isnan(total)) {
                fail(f, slot, total);
                return 1;
            }
            if (total == -INFINITY || (count == wanted && total <= ranked[wanted - 1].log_prob)) break;
            int64_t at = count < wanted ? count++ : wanted - 1;
            for (; at > 0 && total > ranked[at - 1].log_prob; at--) ranked[at] = ranked[at - 1];
            ranked[at] = (Candidate){total, (int32_t)b, ids[b * k + i]};
        }
    /* `add_finished` */
    for (int64_t i = 0; i < MIN(count, beam); i++) {
        if (ranked[i].id != s->eos) continue;
        float score = ranked[i].log_prob / s->divisors[length];
        int64_t at = s->counted;
        while (at > 0 && (slot->finished[at - 1].length < 0 || score > slot->finished[at - 1].score)) at--;
        if (at == s->counted) continue;
        if (slot->finished[s->counted - 1].length >= 0) free(slot->finished[s->counted - 1].tokens);
        memmove(slot->finished + at + 1, slot->finished + at, (s->counted - 1 - at) * sizeof(Hypothesis));
        slot->finished[at] = written(slot, ranked[i].place, length - 1, ranked[i].log_prob, score, 0);
    }
    int first_ends = count && ranked[0].id == s->eos;
    /* `going_on` and `extend` */
    int64_t kept = 0;
    int32_t *paths = slot->next_paths, *prefixes = slot->next_prefixes;
    for (int64_t i = 0; i < count && kept < beam; i++) {
        if (ranked[i].id == s->eos) continue;
        int64_t from = ranked[i].place * slot->capacity, to = kept * slot->capacity;
        memcpy(paths + to, slot->paths + from, length * 4);
        memcpy(prefixes + to, slot->prefixes + from, (length - 1) * 4);
        prefixes[to + length - 1] = ranked[i].id;
        slot->log_probs[kept++] = ranked[i].log_prob;
    }
    slot->next_paths = slot->paths, slot->next_prefixes = slot->prefixes;
    slot->paths = paths, slot->prefixes = prefixes, slot->rows = kept;
    /* `may_stop` */
    float best = kept ? slot->log_probs[0] : -INFINITY;
    float divisor = s->divisors[s->stopping == 0 ? slot->max_length : length];
    const Hypothesis *last = &slot->finished[s->counted - 1];
    int done = length >= slot->max_length || !kept || (last->length >= 0 && last->score >= best / divisor);
    if (s->stopping == 2) done |= last->length >= 0;
    if (s->stopping == 3) done |= first_ends;
    if (!done) return 0;
    if (slot->finished[0].length < 0)
        for (int64_t i = 0; i < MIN(kept, s->n_best); i++)
            slot->finished[i] = written(slot, i, length, slot->log_probs[i], slot->log_probs[i] / s->divisors[length], 1);
    if (slot->finished[0].length < 0) fail(f, slot, -INFINITY);
    return 1;
}

/* -- the door ------------------------------------------------------------------------------------------------------ */

/* A search of sentences that it may share with others, on other threads: each takes those that none has taken. */
Search *search_new(const Model *m, const Settings *settings, int64_t num_sentences, const int32_t *sources,
                   const int64_t *offsets, const int64_t *max_lengths, int64_t *next) {
    Search *f = zeros(sizeof(Search));
    f->m = f->work.m = m, f->s = *settings, f->num_sentences = num_sentences;
    f->sources = sources, f->offsets = offsets, f->max_lengths = max_lengths, f->next = next;
    f->num_slots = f->s.max_slots, f->work.threads = f->s.threads;
    f->slots = zeros(f->num_slots * sizeof(Slot)), f->active = zeros(f->num_slots * sizeof(Slot *));
    int64_t layers = m->decoder.num_layers, k = f->s.beam + 1;
    for (int64_t i = 0; i < f->num_slots; i++) {
        Slot *slot = &f->slots[i];
        slot->sentence = -1;
        slot->memory = zeros(layers * sizeof(Memory));
        slot->keys = zeros(layers * sizeof(float *)), slot->values = zeros(layers * sizeof(float *));
        slot->log_probs = zeros(f->s.beam * 4);
        slot->finished = zeros(f->s.counted * sizeof(Hypothesis));
        for (int64_t j = 0; j < f->s.counted; j++) slot->finished[j].length = -1;
    }
    f->results = zeros(num_sentences * f->s.n_best * sizeof(Hypothesis));
    for (int64_t i = 0; i < num_sentences * f->s.n_best; i++) f->results[i].length = -1;
    f->gone = zeros(num_sentences);
    f->top = room(f->num_slots * f->s.beam * k * 4), f->top_ids = room(f->num_slots * f->s.beam * k * 4);
    f->logits = room(4 * ROWS * PADDED(m->vocab) * 4);
    return f;
}

/* Waiting sentences take free slots, when there are enough of those to share the encoder's products. At most
   `max_tokens` tokens are read, or one sentence; returns 1 if there may be more to read before the next step. */
static int refill(Search *f) {
    int64_t left = f->num_sentences - __atomic_load_n(f->next, __ATOMIC_RELAXED), count = 0, tokens = 0;
    int64_t free_slots = f->num_slots - f->num_active;
    if (left <= 0 || !free_slots || (f->num_active && !f->is_filling && free_slots < MIN(left, f->num_slots / 4)))
        return f->is_filling = 0;
    Source sources[free_slots];
    for (int64_t i = 0; i < f->num_slots && tokens < f->s.max_tokens; i++) {
        Slot *slot = &f->slots[i];
        if (slot->sentence >= 0) continue;
        int64_t sentence = __atomic_fetch_add(f->next, 1, __ATOMIC_RELAXED);
        if (sentence >= f->num_sentences) break;
        if (f->gone[sentence]) {
            i--;
            continue;
        }
        int64_t src_len = f->offsets[sentence + 1] - f->offsets[sentence];
        slot->sentence = sentence;
        slot->max_length = f->max_lengths[sentence];
        slot->length = 0, slot->rows = 1, slot->log_probs[0] = 0;
        for (int64_t l = 0; l < f->m->decoder.num_layers; l++) memory_room(f->m, &slot->memory[l], src_len);
        sources[count++] = (Source){f->sources + f->offsets[sentence], src_len, slot->memory};
        tokens += src_len;
        f->active[f->num_active++] = slot;
    }
    if (count) encode(&f->work, sources, count);
    return f->is_filling = tokens >= f->s.max_tokens;
}

/* The number of next tokens that are looked at of each row. */
static int64_t best_count(const Search *f) { return f->s.beam == 1 ? 1 : f->s.beam + 1; }

/* The rows of the next step; each writes its keys and values into a cell of its own. */
static int64_t next_rows(Search *f, Row *rows) {
    int64_t count = 0;
    for (int64_t i = 0; i < f->num_active; i++) {
        Slot *slot = f->active[i];
        if (slot->length >= slot->capacity) grow(f, slot);
        for (int64_t b = 0; b < slot->rows; b++, count++) {
            int32_t *path = slot->paths + b * slot->capacity;
            path[slot->length] = (int32_t)(slot->length * f->s.beam + b);
            rows[count] = (Row){slot->memory, slot->keys, slot->values, path, slot->length, (int32_t)f->s.bos};
            if (slot->length) rows[count].last = slot->prefixes[b * slot->capacity + slot->length - 1];
        }
    }
    return count;
}

/* Nobody waits for a sentence any more: its rows are free before the next step. */
void search_cancel(Search *f, int64_t sentence) { f->gone[sentence] = 1; }

/* Rows of the next step, about. */
int64_t search_rows(const Search *f) {
    int64_t rows = 0;
    for (int64_t i = 0; i < f->num_active; i++) rows += f->active[i]->rows;
    return MAX(rows, 1);
}

static void drop_gone(Search *f) {
    int64_t going = 0;
    for (int64_t i = 0; i < f->num_active; i++)
        if (f->gone[f->active[i]->sentence]) finish(f, f->active[i], 0);
        else f->active[going++] = f->active[i];
    f->num_active = going;
}

/* One step of the sentences of one search whose best next tokens are known. */
static void go_on(Search *f, int64_t k) {
    int64_t going = 0, row = 0;
    for (int64_t i = 0; i < f->num_active; i++) {
        Slot *slot = f->active[i];
        const float *top = f->top + row * k;
        const int32_t *ids = f->top_ids + row * k;
        row += slot->rows;
        int done = f->s.beam == 1 ? greedy(f, slot, top, ids) : beam_step(f, slot, k, top, ids);
        if (done) finish(f, slot, f->s.n_best);
        else f->active[going++] = slot;
    }
    f->num_active = going;
}

/* A step of several searches of one model, whose rows share the products, or a part of the reading before it.
   `done`: 1 for a search all of whose sentences are done. */
void searches_run(Search **searches, int64_t count, int64_t *done) {
    int64_t room_for = 0, rows = 0, wide = PADDED(searches[0]->m->vocab), d = PADDED(searches[0]->m->d_model);
    for (int64_t n = 0; n < count; n++) {
        drop_gone(searches[n]);
        done[n] = !refill(searches[n]) && !searches[n]->num_active;
        if (!searches[n]->is_filling) room_for += searches[n]->num_active * searches[n]->s.beam;
    }
    if (!room_for) return;
    Row *step = room(room_for * sizeof(Row));
    for (int64_t n = 0; n < count; n++)
        if (!searches[n]->is_filling) rows += next_rows(searches[n], step + rows);
    Work *w = &searches[0]->work;
    decode_step(w, step, rows);
    free(step);
    /* The places of the rows, in their order: search, slot and row of the slot. */
    int64_t n = -1, slot = 0, place = 0, row = 0;
    for (int64_t start = 0; start < rows; start += 4 * ROWS) {
        int64_t some = MIN(4 * ROWS, rows - start);
        linear(&w->m->output, w->y + start * d, d, some, searches[0]->logits, wide, SET, w);
        for (int64_t r = 0; r < some; r++, place++, row++) {
            while (n < 0 || searches[n]->is_filling || slot == searches[n]->num_active ||
                   place == searches[n]->active[slot]->rows) {
                if (n >= 0 && !searches[n]->is_filling && slot < searches[n]->num_active) place = 0, slot++;
                else n++, slot = place = row = 0;
            }
            Search *f = searches[n];
            int64_t k = best_count(f);
            best_tokens(f, searches[0]->logits + r * wide, k, f->active[slot]->length + 1, f->top + row * k,
                        f->top_ids + row * k);
        }
    }
    for (n = 0; n < count; n++)
        if (!searches[n]->is_filling) go_on(searches[n], best_count(searches[n]));
}

/* At most `steps` steps, or parts of the reading before one. Returns 1 when all sentences are done. */
int64_t search_run(Search *f, int64_t steps) {
    int64_t done = 0;
    while (steps-- > 0 && !done) searches_run(&f, 1, &done);
    return done;
}

int64_t search_failed(const Search *f) { return f->failed; }

/* Hypothesis number `rank` of a sentence: the number of its tokens, or -1 where there is none. */
int64_t search_result(const Search *f, int64_t sentence, int64_t rank, const int32_t **tokens, float *numbers) {
    const Hypothesis *h = &f->results[sentence * f->s.n_best + rank];
    *tokens = h->tokens;
    numbers[0] = h->log_prob, numbers[1] = h->score, numbers[2] = h->cut;
    return h->length;
}

void search_free(Search *f) {
    int64_t layers = f->m->decoder.num_layers;
    for (int64_t i = 0; i < f->num_slots; i++) {
        Slot *slot = &f->slots[i];
        for (int64_t l = 0; l < layers; l++) {
            if (slot->capacity) free(slot->keys[l]), free(slot->values[l]);
            if (slot->sentence >= 0) free(slot->memory[l].keys), free(slot->memory[l].values);
        }
        for (int64_t j = 0; j < f->s.counted; j++)
            if (slot->finished[j].length >= 0) free(slot->finished[j].tokens);
        free(slot->memory), free(slot->keys), free(slot->values), free(slot->paths), free(slot->prefixes);
        free(slot->next_paths), free(slot->next_prefixes);
        free(slot->log_probs), free(slot->finished);
    }
    for (int64_t i = 0; i < f->num_sentences * f->s.n_best; i++)
        if (f->results[i].length >= 0) free(f->results[i].tokens);
    free(f->slots), free(f->active), free(f->results), free(f->gone), free(f->top), free(f->top_ids), free(f->logits);
    work_free(&f->work), free(f);
}

/* -- steps for searches in Python ---------------------------------------------------------------------------------- */

/* Sentences that the encoder has read, and room to compute in. */
typedef struct {
    Work work;
    int64_t count;
    Memory *memories; /* (sentences, decoder layers) */
} Read;

Read *read_new(const Model *m, int64_t count, const int32_t *ids, const int64_t *offsets) {
    Read *read = zeros(sizeof(Read));
    int64_t layers = m->decoder.num_layers;
    read->work.m = m, read->count = count, read->memories = zeros(count * layers * sizeof(Memory));
    Source *sources = room(count * sizeof(Source));
    for (int64_t i = 0; i < count; i++) {
        sources[i] = (Source){ids + offsets[i], offsets[i + 1] - offsets[i], read->memories + i * layers};
        for (int64_t l = 0; l < layers; l++) memory_room(m, &sources[i].memory[l], sources[i].length);
    }
    encode(&read->work, sources, count);
    free(sources);
    return read;
}

void read_free(Read *read) {
    int64_t layers = read->work.m->decoder.num_layers;
    for (int64_t i = 0; i < read->count * layers; i++) free(read->memories[i].keys), free(read->memories[i].values);
    work_free(&read->work), free(read->memories), free(read);
}

int64_t cell_width(const Model *m) { return cache_width(m); }

/* Rows of one search. */
typedef struct {
    Read *read;
    float **keys, **values;              /* of each decoder layer */
    const int64_t *last, *sentences;     /* of each row */
    const int32_t *paths;                /* (rows, position + 1) */
    int64_t rows, position;
    float *hidden, *logits;              /* (rows, d_model), (rows, vocab padded); null: not asked for */
} Group;

/* `Transformer.decode_steps` for groups of rows. */
void decode_steps(const Model *m, const Group *groups, int64_t num_groups) {
    int64_t count = 0, layers = m->decoder.num_layers, d = PADDED(m->d_model);
    for (int64_t g = 0; g < num_groups; g++) count += groups[g].rows;
    Row *rows = room(count * sizeof(Row)), *row = rows;
    for (int64_t g = 0; g < num_groups; g++)
        for (int64_t r = 0; r < groups[g].rows; r++)
            *row++ = (Row){groups[g].read->memories + groups[g].sentences[r] * layers,
                           groups[g].keys,
                           groups[g].values,
                           groups[g].paths + r * (groups[g].position + 1),
                           groups[g].position,
                           (int32_t)groups[g].last[r]};
    Work *w = &groups[0].read->work;
    decode_step(w, rows, count);
    const float *y = w->y;
    for (int64_t g = 0; g < num_groups; y += groups[g++].rows * d) {
        for (int64_t r = 0; r < groups[g].rows && groups[g].hidden; r++)
            memcpy(groups[g].hidden + r * m->d_model, y + r * d, m->d_model * 4);
        if (groups[g].logits)
            linear(&m->output, y, d, groups[g].rows, groups[g].logits, PADDED(m->vocab), SET, w);
    }
    free(rows);
}

/* -- given translations -------------------------------------------------------------------------------------------- */

/* The log probability of each token of translations, whose last is </s> (`inference/scoring.py`, token_log_probs). The
   rows of one decoder step are all positions of all of them, in their order: each finds the cells of those before. */
void forced_log_probs(const Model *m, int64_t count, const int32_t *src, const int64_t *src_offsets,
                      const int32_t *tgt, const int64_t *tgt_offsets, int64_t bos, float *log_probs) {
    int64_t layers = m->decoder.num_layers, width = cache_width(m), d = PADDED(m->d_model), wide = PADDED(m->vocab);
    int64_t total = tgt_offsets[count], n = 0;
    Read *read = read_new(m, count, src, src_offsets);
    float *cells = zeros(2 * layers * total * width * 4), *logits = room(4 * ROWS * wide * 4);
    float **keys = room(count * layers * sizeof(float *)), **values = room(count * layers * sizeof(float *));
    int32_t *path = room(total * 4);
    for (int64_t j = 0; j < total; j++) path[j] = (int32_t)j;
    Row *rows = room(total * sizeof(Row));
    for (int64_t i = 0; i < count; i++) {
        for (int64_t l = 0; l < layers; l++) {
            keys[i * layers + l] = cells + (l * total + tgt_offsets[i]) * width;
            values[i * layers + l] = keys[i * layers + l] + layers * total * width;
        }
        for (int64_t j = 0; n < tgt_offsets[i + 1]; j++, n++)
            rows[n] = (Row){read->memories + i * layers, keys + i * layers, values + i * layers, path, j,
                            j ? tgt[n - 1] : (int32_t)bos};
    }
    decode_step(&read->work, rows, total);
    for (int64_t start = 0; start < total; start += 4 * ROWS) {
        int64_t some = MIN(4 * ROWS, total - start);
        linear(&m->output, read->work.y + start * d, d, some, logits, wide, SET, &read->work);
        for (int64_t r = 0; r < some; r++)
            log_probs[start + r] = logits[r * wide + tgt[start + r]] - normaliser(logits + r * wide, m->vocab);
    }
    free(cells), free(logits), free(keys), free(values), free(path), free(rows), read_free(read);
}
