/* What stands between the matrix products of a training step, in bfloat16 on a CPU.

   Each function is the fast twin of a few lines of PyTorch, which `kernels.py` names and tests/unit/test_kernels.py holds
   it to: it walks its numbers once where those walk them operation by operation. Numbers are read and written in
   bfloat16 where a matrix product makes or takes them, and computed in float32. `rows` are positions of a batch, one
   below the other; those from `rows` to `padded` are filled up with zeros (`nn/projection.py`).

   Sums over rows are taken block by block, in blocks that do not depend on the number of threads: nor do the results. */

#include <immintrin.h>
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <string.h>

/* LANES, BLOCKS, SHORT, WIDEST_HEAD and WIDEST are given by kernels.py, where they are explained. */

typedef uint16_t bf16;
typedef __m512 vec; /* LANES numbers that are computed at once; +, -, * and / are the compiler's own */

static inline vec all(float x) { return _mm512_set1_ps(x); }

static inline vec get(const float *from) { return _mm512_loadu_ps(from); }

static inline void put(float *to, vec x) { _mm512_storeu_ps(to, x); }

/* Which of LANES numbers there are where only so many are left. */
static inline __mmask16 of_last(int64_t left) { return left >= LANES ? 0xffff : (1 << left) - 1; }

/* bfloat16 is the upper half of float32. */
static inline vec widened(__m256i x) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16)); }

static inline vec get_bf16(const bf16 *from) { return widened(_mm256_loadu_si256((const __m256i *)from)); }

static inline void put_bf16(bf16 *to, vec x) { _mm256_storeu_si256((__m256i *)to, (__m256i)_mm512_cvtneps_pbh(x)); }

/* exp(x) for x <= 0, to two units in the last place: 2^k exp(r), r = x - k log 2, |r| <= log(2) / 2. */
static inline vec exp_negative(vec x) {
    const vec above = _mm512_max_ps(all(-200.0f), x); /* where the result is 0; the second of the two where one is NaN */
    const vec k = _mm512_roundscale_ps(above * 1.44269504f, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const vec r = (above - k * 0.693359375f) + k * 2.12194440e-4f;
    vec p = 1.0f / 720 + r * (1.0f / 5040);
    p = 1.0f / 120 + r * p;
    p = 1.0f / 24 + r * p;
    p = 1.0f / 6 + r * p;
    p = 0.5f + r * p;
    p = 1.0f + r * p;
    p = 1.0f + r * p;
    return _mm512_scalef_ps(p, k);
}

/* How many threads a loop will have at most. */
int64_t most_threads(void) { return omp_get_max_threads(); }

/* The rows of one of BLOCKS blocks begin here, and those of the next one end them. */
static inline int64_t first_of(int64_t block, int64_t rows) { return block * rows / BLOCKS; }

/* total[i] = the sum over blocks of parts[block][i]. */
static void add_blocks(int64_t width, const float *parts, float *total) {
    for (int64_t i = 0; i < width; i += LANES) {
        vec sum = get(parts + i);
        for (int64_t block = 1; block < BLOCKS; block++) sum += get(parts + block * width + i);
        put(total + i, sum);
    }
}

/* ---------------------------------------------------------------------------------------------------- layer norm -- */

/* out = (x - mean) / sqrt(variance + eps) * gain + bias; moments: mean and 1 / sqrt(variance + eps) of each row. */
void norm_forward(int64_t rows, int64_t padded, int64_t width, const float *x, const float *gain, const float *bias,
                  float eps, bf16 *out, float *moments) {
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; row++) {
        const float *from = x + row * width;
        vec sum = all(0.0f), squares = all(0.0f);
        for (int64_t i = 0; i < width; i += LANES) sum += get(from + i);
        const float mean = _mm512_reduce_add_ps(sum) / width;
        for (int64_t i = 0; i < width; i += LANES) {
            const vec apart = get(from + i) - mean;
            squares += apart * apart;
        }
        const float inverse = 1.0f / sqrtf(_mm512_reduce_add_ps(squares) / width + eps);
        moments[2 * row] = mean, moments[2 * row + 1] = inverse;
        for (int64_t i = 0; i < width; i += LANES)
            put_bf16(out + row * width + i, (get(from + i) - mean) * inverse * get(gain + i) + get(bias + i));
    }
    memset(out + rows * width, 0, (padded - rows) * width * sizeof(bf16));
}

/* The way back: to_x = past (what goes round the sublayer) + what `above`, the gradient by `out`, says of x.
   `room`: 2 x BLOCKS x width. */
void norm_backward(int64_t rows, int64_t width, const bf16 *above, const float *x, const float *gain,
                   const float *moments, const float *past, float *to_x, float *to_gain, float *to_bias, float *room) {
    float *gains = room, *biases = room + BLOCKS * width;
    memset(room, 0, 2 * BLOCKS * width * sizeof(float));
#pragma omp parallel for schedule(static)
    for (int64_t block = 0; block < BLOCKS; block++) {
        float *of_gain = gains + block * width, *of_bias = biases + block * width;
        for (int64_t row = first_of(block, rows); row < first_of(block + 1, rows); row++) {
            const int64_t at = row * width;
            const float mean = moments[2 * row], inverse = moments[2 * row + 1];
            vec sums = all(0.0f), products = all(0.0f);
            for (int64_t i = 0; i < width; i += LANES) {
                const vec here = get_bf16(above + at + i), normal = (get(x + at + i) - mean) * inverse;
                const vec weighted = here * get(gain + i);
                put(of_bias + i, get(of_bias + i) + here);
                put(of_gain + i, get(of_gain + i) + here * normal);
                sums += weighted;
                products += weighted * normal;
            }
            const float sum = _mm512_reduce_add_ps(sums) / width, product = _mm512_reduce_add_ps(products) / width;
            for (int64_t i = 0; i < width; i += LANES) {
                const vec here = get_bf16(above + at + i), normal = (get(x + at + i) - mean) * inverse;
                put(to_x + at + i, get(past + at + i) + inverse * (here * get(gain + i) - sum - normal * product));
            }
        }
    }
    add_blocks(width, gains, to_gain);
    add_blocks(width, biases, to_bias);
}

/* ------------------------------------------------------------------------------------------------------- dropout -- */

/* A random byte for each of `width` numbers of a row: SplitMix64 (Steele et al. 2014), whose state is a counter, so that
   any row's bytes can be had at any time, here and on the way back. */
static inline void random_bytes(uint64_t seed, int64_t row, int64_t width, uint8_t *bytes) {
    const uint64_t first = seed + ((uint64_t)(row * width / 8) + 1) * 0x9e3779b97f4a7c15u;
    for (int64_t i = 0; i < width / 8; i++) {
        uint64_t z = first + (uint64_t)i * 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        z = z ^ (z >> 31);
        memcpy(bytes + 8 * i, &z, 8);
    }
}

/* The numbers of `x` whose byte is not below `dropped`, scaled; zero for the others. */
static inline vec kept(vec x, const uint8_t *bytes, int32_t dropped) {
    const __m512i decisions = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)bytes));
    const __mmask16 is_kept = _mm512_cmpge_epi32_mask(decisions, _mm512_set1_epi32(dropped));
    return _mm512_maskz_mul_ps(is_kept, x, all(256.0f / (256 - dropped)));
}

/* The bytes themselves, for who wants to look at them. */
void dropout_bytes(int64_t rows, int64_t width, uint64_t seed, uint8_t *bytes) {
    for (int64_t row = 0; row < rows; row++) random_bytes(seed, row, width, bytes + row * width);
}

/* out = x + dropout(y) at a rate of dropped / 256. */
void dropout_add(int64_t rows, int64_t width, const float *x, const bf16 *y, uint64_t seed, int32_t dropped, float *out) {
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; row++) {
        _Alignas(64) uint8_t bytes[WIDEST];
        random_bytes(seed, row, width, bytes);
        for (int64_t i = 0; i < width; i += LANES) {
            const int64_t at = row * width + i;
            put(out + at, get(x + at) + kept(get_bf16(y + at), bytes + i, dropped));
        }
    }
}

/* The way back to y, and to a bias that was added to every row of it: the sum over rows. `room`: BLOCKS x width. */
void dropout_backward(int64_t rows, int64_t padded, int64_t width, const float *above, uint64_t seed, int32_t dropped,
                      bf16 *to_y, float *to_bias, float *room) {
    memset(room, 0, BLOCKS * width * sizeof(float));
#pragma omp parallel for schedule(static)
    for (int64_t block = 0; block < BLOCKS; block++) {
        float *sum = room + block * width;
        for (int64_t row = first_of(block, rows); row < first_of(block + 1, rows); row++) {
            _Alignas(64) uint8_t bytes[WIDEST];
            random_bytes(seed, row, width, bytes);
            for (int64_t i = 0; i < width; i += LANES) {
                const vec here = kept(get(above + row * width + i), bytes + i, dropped);
                put(sum + i, get(sum + i) + here);
                put_bf16(to_y + row * width + i, here);
            }
        }
    }
    memset(to_y + rows * width, 0, (padded - rows) * width * sizeof(bf16));
    add_blocks(width, room, to_bias);
}

/* ---------------------------------------------------------------------------------------------------------- ReLU -- */

/* The way back through ReLU, in the place of the gradient, and to the bias before it. `room`: BLOCKS x width. */
void relu_backward(int64_t rows, int64_t width, bf16 *gradient, const bf16 *hidden, float *to_bias, float *room) {
    memset(room, 0, BLOCKS * width * sizeof(float));
#pragma omp parallel for schedule(static)
    for (int64_t block = 0; block < BLOCKS; block++) {
        float *sum = room + block * width;
        for (int64_t row = first_of(block, rows); row < first_of(block + 1, rows); row++)
            for (int64_t i = 0; i < width; i += LANES) {
                const int64_t at = row * width + i;
                const __mmask16 positive = _mm512_cmp_ps_mask(get_bf16(hidden + at), all(0.0f), _CMP_GT_OQ);
                const vec here = _mm512_maskz_mov_ps(positive, get_bf16(gradient + at));
                put(sum + i, get(sum + i) + here);
                put_bf16(gradient + at, here);
            }
    }
    add_blocks(width, room, to_bias);
}

/* The sum over rows. `room`: BLOCKS x width. */
void column_sums(int64_t rows, int64_t width, const bf16 *x, float *total, float *room) {
    memset(room, 0, BLOCKS * width * sizeof(float));
#pragma omp parallel for schedule(static)
    for (int64_t block = 0; block < BLOCKS; block++) {
        float *sum = room + block * width;
        for (int64_t row = first_of(block, rows); row < first_of(block + 1, rows); row++)
            for (int64_t i = 0; i < width; i += LANES) put(sum + i, get(sum + i) + get_bf16(x + row * width + i));
    }
    add_blocks(width, room, total);
}

/* ----------------------------------------------------------------------------------------------------- attention -- */

/* Where the heads of all sentences stand in rows, and how they are masked. */
typedef struct {
    int64_t batch, heads, width, query_len, key_len; /* `width` of a head, in whole vectors */
    int64_t query_stride, key_stride, context_stride; /* from a row to the next, in numbers */
    const bf16 *query, *key, *value;
    const uint8_t *allowed; /* whether a query may look at a key; NULL: all may */
    int64_t allowed_batch, allowed_query; /* from one to the next; 0 where all have the same */
    const float *turns; /* cosine and sine of each pair of dimensions at each position, or NULL */
} attention;

/* One head's queries, keys or values of a sentence. */
typedef float head_rows[SHORT * WIDEST_HEAD] __attribute__((aligned(64)));

/* out (m x n) = a (m x k) b (k x n), n in vectors. A row and a column of `a` are so many numbers apart. Four rows at
   once, whose sums stay in registers: so `n` has to be known to the compiler. */
static inline __attribute__((always_inline)) void product_of(const int n, int64_t m, int64_t k, const float *a,
                                                             int64_t a_row, int64_t a_column, const float *b,
                                                             float *out) {
    for (int64_t i = 0; i < m; i += 4) {
        const int64_t at_once = m - i < 4 ? m - i : 4;
        const float *rows[4];
        for (int row = 0; row < 4; row++) rows[row] = a + (i + (row < at_once ? row : 0)) * a_row;
        vec sums[4][4] = {{{0}}};
        for (int64_t j = 0; j < k; j++)
            for (int lane = 0; lane < n; lane++) {
                const vec here = get(b + (j * n + lane) * LANES);
                for (int row = 0; row < 4; row++) sums[row][lane] += rows[row][j * a_column] * here;
            }
        for (int row = 0; row < 4; row++)
            for (int lane = 0; lane < n && row < at_once; lane++) put(out + ((i + row) * n + lane) * LANES, sums[row][lane]);
    }
}

static void product(int64_t n, int64_t m, int64_t k, const float *a, int64_t a_row, int64_t a_column, const float *b,
                    float *out) {
    switch (n) {
    case 1: product_of(1, m, k, a, a_row, a_column, b, out); break;
    case 2: product_of(2, m, k, a, a_row, a_column, b, out); break;
    case 3: product_of(3, m, k, a, a_row, a_column, b, out); break;
    case 4: product_of(4, m, k, a, a_row, a_column, b, out); break;
    }
}

/* Rows of a head in float32, turned if there are turns. */
static inline void load(int64_t len, int64_t width, const bf16 *from, int64_t stride, const float *turns, float *to) {
    for (int64_t row = 0; row < len; row++)
        for (int64_t i = 0; i < width; i += LANES) put(to + row * width + i, get_bf16(from + row * stride + i));
    for (int64_t i = 0; turns && i < len * width; i += 2) {
        const float real = to[i], imaginary = to[i + 1], cosine = turns[i], sine = turns[i + 1];
        to[i] = real * cosine - imaginary * sine;
        to[i + 1] = real * sine + imaginary * cosine;
    }
}

/* The way back: turned the other way, and rounded. */
static inline void store(int64_t len, int64_t width, float *from, const float *turns, bf16 *to, int64_t stride) {
    for (int64_t i = 0; turns && i < len * width; i += 2) {
        const float real = from[i], imaginary = from[i + 1], cosine = turns[i], sine = turns[i + 1];
        from[i] = real * cosine + imaginary * sine;
        from[i + 1] = imaginary * cosine - real * sine;
    }
    for (int64_t row = 0; row < len; row++)
        for (int64_t i = 0; i < width; i += LANES) put_bf16(to + row * stride + i, get(from + row * width + i));
}

/* LANES rows of LANES numbers to as many columns, in four rounds: each puts together what stands so far apart, singles,
   pairs, fours and eights. */
static inline void turn_over(const vec rows[LANES], float *to, int64_t stride) {
    vec singles[LANES], fours[LANES];
    for (int i = 0; i < LANES; i += 4) {
        const vec low = _mm512_unpacklo_ps(rows[i], rows[i + 1]), high = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
        const vec low2 = _mm512_unpacklo_ps(rows[i + 2], rows[i + 3]), high2 = _mm512_unpackhi_ps(rows[i + 2], rows[i + 3]);
        singles[i] = (vec)_mm512_unpacklo_pd((__m512d)low, (__m512d)low2);
        singles[i + 1] = (vec)_mm512_unpackhi_pd((__m512d)low, (__m512d)low2);
        singles[i + 2] = (vec)_mm512_unpacklo_pd((__m512d)high, (__m512d)high2);
        singles[i + 3] = (vec)_mm512_unpackhi_pd((__m512d)high, (__m512d)high2);
    }
    for (int i = 0; i < 4; i++) {
        fours[i] = _mm512_shuffle_f32x4(singles[i], singles[i + 4], 0x88);
        fours[i + 4] = _mm512_shuffle_f32x4(singles[i], singles[i + 4], 0xdd);
        fours[i + 8] = _mm512_shuffle_f32x4(singles[i + 8], singles[i + 12], 0x88);
        fours[i + 12] = _mm512_shuffle_f32x4(singles[i + 8], singles[i + 12], 0xdd);
    }
    for (int i = 0; i < 8; i++) {
        put(to + i * stride, _mm512_shuffle_f32x4(fours[i], fours[i + 8], 0x88));
        put(to + (i + 8) * stride, _mm512_shuffle_f32x4(fours[i], fours[i + 8], 0xdd));
    }
}

/* (len x width) to (width x columns), where columns from `len` on are zero. */
static inline void transpose(int64_t len, int64_t width, int64_t columns, const float *from, float *to) {
    for (int64_t row = 0; row < columns; row += LANES)
        for (int64_t i = 0; i < width; i += LANES) {
            vec rows[LANES];
            for (int lane = 0; lane < LANES; lane++)
                rows[lane] = row + lane < len ? get(from + (row + lane) * width + i) : all(0.0f);
            turn_over(rows, to + i * columns + row, columns);
        }
}

static inline int64_t in_lanes(int64_t len) { return (len + LANES - 1) / LANES * LANES; }

/* softmax(scale x scores), in the place of the scores; where not allowed, and from `len` on, 0. */
static inline void softmax(int64_t len, int64_t columns, float scale, const uint8_t *allowed, float *scores) {
    vec most = all(-INFINITY), sums = all(0.0f);
    for (int64_t j = 0; j < columns; j += LANES) {
        __mmask16 there = of_last(len - j);
        if (allowed) there = _mm_mask_test_epi8_mask(there, _mm_maskz_loadu_epi8(there, allowed + j), _mm_set1_epi8(-1));
        const vec row = _mm512_mask_mov_ps(all(-INFINITY), there, get(scores + j));
        put(scores + j, row);
        most = _mm512_max_ps(most, row);
    }
    const vec largest = all(_mm512_reduce_max_ps(most));
    for (int64_t j = 0; j < columns; j += LANES) {
        const vec power = exp_negative((get(scores + j) - largest) * scale);
        put(scores + j, power);
        sums += power;
    }
    const vec share = all(1.0f / _mm512_reduce_add_ps(sums));
    for (int64_t j = 0; j < columns; j += LANES) put(scores + j, get(scores + j) * share);
}

/* softmax(Q K^T / sqrt(width) where allowed) V for each sentence and head; the weights (sentences x heads x query_len
   x key_len in whole vectors) are kept for the way back. Rows of `context` up to `padded` become zero. */
void attention_forward(const attention *of, int64_t padded, bf16 *context, float *weights) {
    const attention a = *of;
    const int64_t columns = in_lanes(a.key_len), rows = a.batch * a.query_len;
    const float scale = 1.0f / sqrtf((float)a.width);
#pragma omp parallel for schedule(static)
    for (int64_t one = 0; one < a.batch * a.heads; one++) {
        const int64_t sentence = one / a.heads, head = one % a.heads * a.width;
        const int64_t at_query = sentence * a.query_len, at_key = sentence * a.key_len;
        head_rows q, k, v, columns_of_k, found;
        load(a.query_len, a.width, a.query + at_query * a.query_stride + head, a.query_stride, a.turns, q);
        load(a.key_len, a.width, a.key + at_key * a.key_stride + head, a.key_stride, a.turns, k);
        load(a.key_len, a.width, a.value + at_key * a.key_stride + head, a.key_stride, NULL, v);
        transpose(a.key_len, a.width, columns, k, columns_of_k);
        float *shares = weights + one * a.query_len * columns;
        product(columns / LANES, a.query_len, a.width, q, a.width, 1, columns_of_k, shares);
        for (int64_t i = 0; i < a.query_len; i++) {
            const uint8_t *allowed = a.allowed ? a.allowed + sentence * a.allowed_batch + i * a.allowed_query : NULL;
            softmax(a.key_len, columns, scale, allowed, shares + i * columns);
        }
        product(a.width / LANES, a.query_len, a.key_len, shares, columns, 1, v, found);
        store(a.query_len, a.width, found, NULL, context + at_query * a.context_stride + head, a.context_stride);
    }
    memset(context + rows * a.context_stride, 0, (padded - rows) * a.context_stride * sizeof(bf16));
}

/* The way back from `above`, the gradient by the context, to queries, keys and values, which stand as those do. */
void attention_backward(const attention *of, const float *weights, const bf16 *above, bf16 *to_query, bf16 *to_key,
                        bf16 *to_value) {
    const attention a = *of;
    const int64_t columns = in_lanes(a.key_len), lanes = a.width / LANES;
    const float scale = 1.0f / sqrtf((float)a.width);
#pragma omp parallel for schedule(static)
    for (int64_t one = 0; one < a.batch * a.heads; one++) {
        const int64_t sentence = one / a.heads, head = one % a.heads * a.width;
        const int64_t at_query = sentence * a.query_len * a.query_stride + head;
        const int64_t at_key = sentence * a.key_len * a.key_stride + head;
        const int64_t at_context = sentence * a.query_len * a.context_stride + head;
        head_rows q, k, v, up, columns_of_v, found;
        _Alignas(64) float to_scores[SHORT * SHORT];
        load(a.query_len, a.width, a.query + at_query, a.query_stride, a.turns, q);
        load(a.key_len, a.width, a.key + at_key, a.key_stride, a.turns, k);
        load(a.key_len, a.width, a.value + at_key, a.key_stride, NULL, v);
        load(a.query_len, a.width, above + at_context, a.context_stride, NULL, up);
        transpose(a.key_len, a.width, columns, v, columns_of_v);
        const float *shares = weights + one * a.query_len * columns;
        product(columns / LANES, a.query_len, a.width, up, a.width, 1, columns_of_v, to_scores);
        for (int64_t i = 0; i < a.query_len * columns; i += columns) {
            vec sums = all(0.0f);
            for (int64_t j = i; j < i + columns; j += LANES) sums += get(to_scores + j) * get(shares + j);
            const float sum = _mm512_reduce_add_ps(sums);
            for (int64_t j = i; j < i + columns; j += LANES)
                put(to_scores + j, (get(to_scores + j) - sum) * get(shares + j) * scale);
        }
        product(lanes, a.query_len, a.key_len, to_scores, columns, 1, k, found);
        store(a.query_len, a.width, found, a.turns, to_query + at_query, a.query_stride);
        product(lanes, a.key_len, a.query_len, to_scores, 1, columns, q, found);
        store(a.key_len, a.width, found, a.turns, to_key + at_key, a.key_stride);
        product(lanes, a.key_len, a.query_len, shares, 1, columns, up, found);
        store(a.key_len, a.width, found, NULL, to_value + at_key, a.key_stride);
    }
}

/* ---------------------------------------------------------------------------------------------------------- loss -- */

/* Numbers of a row, of which so many are left; `rest` stands for those that are not there. */
static inline vec get_some(const bf16 *from, int64_t left, float rest) {
    const __mmask16 there = of_last(left);
    return _mm512_mask_mov_ps(all(rest), there, widened(_mm256_maskz_loadu_epi16(there, from)));
}

static inline void put_some(bf16 *to, int64_t left, vec x) {
    _mm256_mask_storeu_epi16(to, of_last(left), (__m256i)_mm512_cvtneps_pbh(x));
}

/* The loss of each row, and its gradient in the place of the logits (`training/loss.py`): softmax - everywhere / vocab,
   less at_target at the target, and zero where the row is not real. `room`: a row of whole vectors for each thread. */
void cross_entropy(int64_t rows, int64_t vocab, bf16 *logits, const int64_t *targets, const uint8_t *real,
                   float at_target, float everywhere, float *losses, float *room) {
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; row++) {
        bf16 *here = logits + row * vocab;
        if (!real[row]) {
            losses[row] = 0.0f;
            memset(here, 0, vocab * sizeof(bf16));
            continue;
        }
        float *powers = room + omp_get_thread_num() * in_lanes(vocab);
        vec most = all(-INFINITY), totals = all(0.0f), sums = all(0.0f);
        for (int64_t i = 0; i < vocab; i += LANES) {
            most = _mm512_max_ps(most, get_some(here + i, vocab - i, -INFINITY));
            totals += get_some(here + i, vocab - i, 0.0f);
        }
        const float largest = _mm512_reduce_max_ps(most), right = get_some(here + targets[row], 1, 0.0f)[0];
        for (int64_t i = 0; i < vocab; i += LANES) {
            const vec power = exp_negative(get_some(here + i, vocab - i, -INFINITY) - largest);
            put(powers + i, power);
            sums += power;
        }
        const float sum = _mm512_reduce_add_ps(sums), share = 1.0f / sum, less = everywhere / vocab;
        losses[row] = largest + logf(sum) - at_target * right;
        if (everywhere != 0.0f) losses[row] -= everywhere * (_mm512_reduce_add_ps(totals) / vocab); /* 0 x infinity is none */
        for (int64_t i = 0; i < vocab; i += LANES) put_some(here + i, vocab - i, get(powers + i) * share - less);
        put_some(here + targets[row], 1, all(powers[targets[row]] * share - less - at_target));
    }
}
