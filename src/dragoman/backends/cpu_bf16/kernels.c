/* The matrix products of a training step and what stands between them, in bfloat16 on a CPU.

   Each function is the fast implementation of a few lines of PyTorch, which `kernels.py` names and tests/unit/test_kernels.py holds
   it to: it walks its numbers once where those walk them operation by operation. Numbers are read and written in
   bfloat16 where a matrix product makes or takes them, and computed in float32. `rows` are positions of a batch, one
   below the other.

   The order in which numbers are added up does not depend on the number of threads: nor do the results. */

#include <immintrin.h>
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* LANES, BLOCKS, PANEL, SHORT and WIDEST_HEAD are given by kernels.py, where they are explained. */

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
    const vec clamped = _mm512_max_ps(all(-200.0f), x); /* where the result is 0; the second of the two where one is NaN */
    const vec k = _mm512_roundscale_ps(clamped * 1.44269504f, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const vec r = (clamped - k * 0.693359375f) + k * 2.12194440e-4f;
    vec p = 1.0f / 720 + r * (1.0f / 5040);
    p = 1.0f / 120 + r * p;
    p = 1.0f / 24 + r * p;
    p = 1.0f / 6 + r * p;
    p = 0.5f + r * p;
    p = 1.0f + r * p;
    p = 1.0f + r * p;
    return _mm512_scalef_ps(p, k);
}

/* LANES rows of LANES numbers to as many columns, in four rounds: each puts together what stands so far apart, singles,
   pairs, fours and eights. */
static inline void transpose(const vec rows[LANES], float *to, int64_t stride) {
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
void norm_forward(int64_t rows, int64_t width, const float *x, const float *gain, const float *bias, float eps,
                  bf16 *out, float *moments) {
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
}

/* Backward: grad_x = residual (the gradient of the path around the sublayer) + the gradient by x, where `grad_output` is
   that by `out`. `buffer`: 2 x BLOCKS x width. */
void norm_backward(int64_t rows, int64_t width, const bf16 *grad_output, const float *x, const float *gain,
                   const float *moments, const float *residual, float *grad_x, float *grad_gain, float *grad_bias,
                   float *buffer) {
    float *gains = buffer, *biases = buffer + BLOCKS * width;
    memset(buffer, 0, 2 * BLOCKS * width * sizeof(float));
#pragma omp parallel for schedule(static)
    for (int64_t block = 0; block < BLOCKS; block++) {
        float *of_gain = gains + block * width, *of_bias = biases + block * width;
        for (int64_t row = first_of(block, rows); row < first_of(block + 1, rows); row++) {
            const int64_t at = row * width;
            const float mean = moments[2 * row], inverse = moments[2 * row + 1];
            vec sums = all(0.0f), products = all(0.0f);
            for (int64_t i = 0; i < width; i += LANES) {
                const vec here = get_bf16(grad_output + at + i), normal = (get(x + at + i) - mean) * inverse;
                const vec weighted = here * get(gain + i);
                put(of_bias + i, get(of_bias + i) + here);
                put(of_gain + i, get(of_gain + i) + here * normal);
                sums += weighted;
                products += weighted * normal;
            }
            const float sum = _mm512_reduce_add_ps(sums) / width, product = _mm512_reduce_add_ps(products) / width;
            for (int64_t i = 0; i < width; i += LANES) {
                const vec here = get_bf16(grad_output + at + i), normal = (get(x + at + i) - mean) * inverse;
                put(grad_x + at + i, get(residual + at + i) + inverse * (here * get(gain + i) - sum - normal * product));
            }
        }
    }
    add_blocks(width, gains, grad_gain);
    add_blocks(width, biases, grad_bias);
}

/* ------------------------------------------------------------------------------------------------------- dropout -- */

/* A random byte for each of `count` numbers from the one called `first` on, both multiples of 8: SplitMix64 (Steele et
   al. 2014), whose state is a counter, so that any number's byte can be had at any time, forward and backward. */
static inline void random_bytes(uint64_t seed, int64_t first, int64_t count, uint8_t *bytes) {
    const uint64_t state = seed + ((uint64_t)(first / 8) + 1) * 0x9e3779b97f4a7c15u;
    for (int64_t i = 0; i < count / 8; i++) {
        uint64_t z = state + (uint64_t)i * 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        z = z ^ (z >> 31);
        memcpy(bytes + 8 * i, &z, 8);
    }
}

/* The numbers of `x` whose byte is not below `dropped`, scaled; zero for the others. */
static inline vec kept(vec x, const uint8_t *bytes, int64_t dropped) {
    const __m512i decisions = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)bytes));
    const __mmask16 is_kept = _mm512_cmpge_epi32_mask(decisions, _mm512_set1_epi32(dropped));
    return _mm512_maskz_mul_ps(is_kept, x, all(256.0f / (256 - dropped)));
}

/* The bytes themselves, for who wants to look at them. */
void dropout_bytes(int64_t count, uint64_t seed, uint8_t *bytes) { random_bytes(seed, 0, count, bytes); }

/* Backward of dropout. */
void dropout_backward(int64_t rows, int64_t width, const float *grad_output, uint64_t seed, int64_t dropped,
                      bf16 *grad_x) {
    const int64_t count = rows * width;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i += PANEL) {
        uint8_t bytes[PANEL];
        random_bytes(seed, i, PANEL, bytes);
        for (int64_t j = 0; j < PANEL && i + j < count; j += LANES)
            put_bf16(grad_x + i + j, kept(get(grad_output + i + j), bytes + j, dropped));
    }
}

/* ----------------------------------------------------------------------------------------------- matrix products -- */

/* The processor multiplies pairs of bfloat16 numbers and adds up in float32. So a product's right side is laid out in
   pairs of numbers that follow on each other downwards, and in panels of PANEL columns that are read from end to end:
   panels[column / PANEL][row / 2][column % PANEL]. Columns that fill up the last panel may be anything. */

typedef uint32_t pair;

enum { VECTORS = PANEL / LANES, TALL = 6 /* rows at once: TALL x VECTORS sums, a row of a panel and a number fill the registers */ };

typedef vec tile[TALL][VECTORS];

#ifdef __AMX_BF16__

/* Newer processors multiply whole matrices (AMX): 16 rows of up to 16 pairs on the left, up to 16 rows of 16 pairs on
   the right, 16 x 16 sums. Each thread says first which of its eight tiles has which shape. */
enum { STEP = 16 /* rows of a result at once */, HALF = 8 /* pairs of the last tiles, where a width is an odd number of LANES */ };

/* The tiles' numbers, which the compiler writes into the instructions' names. */
#define SUMS_0 0
#define SUMS_1 1
#define SUMS_2 2
#define SUMS_3 3
#define LEFT 4
#define RIGHT 5
#define LEFT_HALF 6
#define RIGHT_HALF 7

static const struct {
    uint8_t palette, start_row, reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} shapes = {
    .palette = 1,
    .row_bytes = {64, 64, 64, 64, 64, 64, [LEFT_HALF] = 4 * HALF, [RIGHT_HALF] = 64},
    .rows = {16, 16, 16, 16, 16, 16, [LEFT_HALF] = 16, [RIGHT_HALF] = HALF},
};

static inline void begin_products(void) { _tile_loadconfig(&shapes); }

static inline void end_products(void) { _tile_release(); }

/* Before tiles are loaded: the compiler does not know that these instructions read memory. */
static inline void all_is_written(void) { __asm__ volatile("" ::: "memory"); }

/* The pairs that one tile of the left side holds, times as many rows of a panel. A macro, as tiles have no addresses. */
#define ADD_TILES(of_left, of_right, left, row, right)                    \
    do {                                                                  \
        _tile_loadd(of_left, left, (row) * sizeof(pair));                 \
        _tile_loadd(of_right, right, PANEL * sizeof(pair));               \
        _tile_dpbf16ps(SUMS_0, of_left, of_right);                        \
        _tile_loadd(of_right, (right) + LANES, PANEL * sizeof(pair));     \
        _tile_dpbf16ps(SUMS_1, of_left, of_right);                        \
        _tile_loadd(of_right, (right) + 2 * LANES, PANEL * sizeof(pair)); \
        _tile_dpbf16ps(SUMS_2, of_left, of_right);                        \
        _tile_loadd(of_right, (right) + 3 * LANES, PANEL * sizeof(pair)); \
        _tile_dpbf16ps(SUMS_3, of_left, of_right);                        \
    } while (0)

/* sums += left right, for so many pairs: `left` has 16 rows, `row` pairs apart; from one LANES pairs of it to the next are
   `next` pairs. The right side is a panel. */
static inline void add_matrix_products(int64_t pairs, const pair *left, int64_t row, int64_t next, const pair *panel) {
    int64_t p = 0;
    all_is_written();
    for (; p + LANES <= pairs; p += LANES, left += next) ADD_TILES(LEFT, RIGHT, left, row, panel + p * PANEL);
    if (p < pairs) ADD_TILES(LEFT_HALF, RIGHT_HALF, left, row, panel + p * PANEL);
}

/* The sums begin with numbers from here on, `row` apart. */
static inline void load_sums(const float *from, int64_t row) {
    all_is_written();
    _tile_loadd(SUMS_0, from, row * sizeof(float));
    _tile_loadd(SUMS_1, from + LANES, row * sizeof(float));
    _tile_loadd(SUMS_2, from + 2 * LANES, row * sizeof(float));
    _tile_loadd(SUMS_3, from + 3 * LANES, row * sizeof(float));
}

static inline void store_sums(float *to, int64_t row) {
    _tile_stored(SUMS_0, to, row * sizeof(float));
    _tile_stored(SUMS_1, to + LANES, row * sizeof(float));
    _tile_stored(SUMS_2, to + 2 * LANES, row * sizeof(float));
    _tile_stored(SUMS_3, to + 3 * LANES, row * sizeof(float));
}

/* Linux lets a process have tiles if it asks. */
int64_t may_multiply_matrices(void) { return syscall(SYS_arch_prctl, 0x1023 /* ARCH_REQ_XCOMP_PERM */, 18 /* tiles */) == 0; }

#else

enum { STEP = TALL };

static inline void begin_products(void) {}

static inline void end_products(void) {}

int64_t may_multiply_matrices(void) { return 0; }

#endif

static inline int64_t at_most(int64_t most, int64_t x) { return x < most ? x : most; }

/* How many panels for so many columns. */
static inline int64_t panels_of(int64_t width) { return (width + PANEL - 1) / PANEL; }

/* sums[i] += the sum over pairs of left[i] panel, in so many vectors of it; from one row of the left side to the next,
   and from a pair to the next, so many pairs. The compiler has to know `tall` and `vectors`, or sums would not stay in
   registers. */
static inline __attribute__((always_inline)) void add_products(const int tall, const int vectors, int64_t pairs,
                                                               const pair *left, int64_t row, int64_t next,
                                                               const pair *panel, tile sums) {
    tile found;
    for (int i = 0; i < tall; i++)
        for (int lane = 0; lane < vectors; lane++) found[i][lane] = sums[i][lane];
    for (int64_t p = 0; p < pairs; p++) {
        __m512bh right[VECTORS];
        for (int lane = 0; lane < vectors; lane++)
            right[lane] = (__m512bh)_mm512_loadu_si512(panel + p * PANEL + lane * LANES);
        for (int i = 0; i < tall; i++) {
            const __m512bh here = (__m512bh)_mm512_set1_epi32(left[i * row + p * next]);
            for (int lane = 0; lane < vectors; lane++)
                found[i][lane] = _mm512_dpbf16_ps(found[i][lane], here, right[lane]);
        }
    }
    for (int i = 0; i < tall; i++)
        for (int lane = 0; lane < vectors; lane++) sums[i][lane] = found[i][lane];
}

/* A weight (n x k) becomes rows `first` to `first` + n of a matrix, in panels for x matrix^T (`across`) and for y matrix
   (`down`), both of `height` rows in all. n, k and `first` are multiples of LANES. */
void pack(int64_t n, int64_t k, int64_t first, int64_t height, const float *weight, pair *across, pair *down) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i += LANES) {
        for (int64_t j = 0; j < k; j += 2 * LANES) { /* pairs of a row's neighbours, transposed */
            const __mmask16 second = of_last(at_most(LANES, k - j - LANES));
            vec pairs[LANES];
            _Alignas(64) float columns[LANES * LANES];
            for (int row = 0; row < LANES; row++) {
                const float *from = weight + (i + row) * k + j;
                pairs[row] = (vec)_mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps(second, from + LANES), get(from));
            }
            transpose(pairs, columns, LANES);
            pair *to = across + ((first + i) / PANEL * (k / 2) + j / 2) * PANEL + (first + i) % PANEL;
            for (int64_t p = 0; p < at_most(LANES, (k - j) / 2); p++) put((float *)(to + p * PANEL), get(columns + p * LANES));
        }
        for (int64_t row = i; row < i + LANES; row += 2) /* pairs of a number and the one below it */
            for (int64_t j = 0; j < k; j += LANES) {
                const __m512i upper = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(get(weight + row * k + j)));
                const __m512i lower = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(get(weight + (row + 1) * k + j)));
                pair *to = down + (j / PANEL * (height / 2) + (first + row) / 2) * PANEL + j % PANEL;
                _mm512_storeu_si512(to, _mm512_or_si512(upper, _mm512_slli_epi32(lower, 16)));
            }
    }
}

/* What becomes of a product before it is written. */
typedef struct {
    const float *bias; /* is added to each row; NULL: none */
    int64_t relu;
    const bf16 *gate; /* zero where this is not greater than zero, (rows x n); NULL: none */
    const float *residual; /* residual + dropout(product) is written, in float32; NULL: the product, in bfloat16 */
    uint64_t seed;
    int64_t dropped; /* of 256 */
} ending;

/* The bytes of a panel's columns, drawn at once. */
static inline void dropout_of(const ending *end, int64_t at, uint8_t bytes[PANEL]) {
    if (end->residual) random_bytes(end->seed, at, PANEL, bytes);
}

static inline void finish(const ending *end, int64_t at, vec x, const uint8_t *bytes, void *out) {
    if (end->relu) x = _mm512_max_ps(all(0.0f), x); /* the second of the two where one is NaN */
    if (end->gate) x = _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(get_bf16(end->gate + at), all(0.0f), _CMP_GT_OQ), x);
    if (end->residual) {
        put((float *)out + at, get(end->residual + at) + kept(x, bytes, end->dropped));
    } else {
        put_bf16((bf16 *)out + at, x);
    }
}

/* `tall` rows of a product, from `row` on, in the columns of a panel. */
static inline __attribute__((always_inline)) void multiply_tile(const int tall, int64_t row, int64_t column, int64_t k,
                                                                int64_t n, const bf16 *x, const pair *panel,
                                                                const ending *end, void *out) {
    const int64_t lanes = at_most(VECTORS, (n - column) / LANES);
    tile sums;
    for (int lane = 0; lane < VECTORS; lane++) {
        const vec first = end->bias && lane < lanes ? get(end->bias + column + lane * LANES) : all(0.0f);
        for (int i = 0; i < tall; i++) sums[i][lane] = first;
    }
    add_products(tall, VECTORS, k / 2, (const pair *)(x + row * k), k / 2, 1, panel, sums);
    for (int i = 0; i < tall; i++) {
        const int64_t at = (row + i) * n + column;
        uint8_t bytes[PANEL];
        dropout_of(end, at, bytes);
        for (int lane = 0; lane < VECTORS; lane++)
            if (lane < lanes) finish(end, at + lane * LANES, sums[i][lane], bytes + lane * LANES, out);
    }
}

#ifdef __AMX_BF16__

/* STEP rows of a product, from `row` on, in the columns of a panel. */
static void multiply_step(int64_t row, int64_t column, int64_t k, int64_t n, const bf16 *x, const pair *panel,
                          const ending *end, void *out) {
    const int64_t lanes = at_most(VECTORS, (n - column) / LANES);
    _Alignas(64) float sums[STEP * PANEL], first[PANEL] = {0};
    if (end->bias) memcpy(first, end->bias + column, lanes * LANES * sizeof(float));
    load_sums(first, 0);
    add_matrix_products(k / 2, (const pair *)(x + row * k), k / 2, LANES, panel);
    store_sums(sums, PANEL);
    for (int64_t i = 0; i < STEP; i++) {
        const int64_t at = (row + i) * n + column;
        uint8_t bytes[PANEL];
        dropout_of(end, at, bytes);
        for (int64_t j = 0; j < lanes * LANES; j += LANES) finish(end, at + j, get(sums + i * PANEL + j), bytes + j, out);
    }
}

#endif

/* The rows of a product from `row` to `last`, STEP of them or what is left, in the columns of a panel. */
static void multiply_rows(int64_t row, int64_t last, int64_t column, int64_t k, int64_t n, const bf16 *x,
                          const pair *panel, const ending *end, void *out) {
#ifdef __AMX_BF16__
    if (last - row == STEP) {
        multiply_step(row, column, k, n, x, panel, end, out);
        return;
    }
#endif
    for (; row < last; row += TALL)
        switch (at_most(TALL, last - row)) {
        case 1: multiply_tile(1, row, column, k, n, x, panel, end, out); break;
        case 2: multiply_tile(2, row, column, k, n, x, panel, end, out); break;
        case 3: multiply_tile(3, row, column, k, n, x, panel, end, out); break;
        case 4: multiply_tile(4, row, column, k, n, x, panel, end, out); break;
        case 5: multiply_tile(5, row, column, k, n, x, panel, end, out); break;
        case 6: multiply_tile(6, row, column, k, n, x, panel, end, out); break;
        }
}

/* The rows of a product which are computed for all panels before the next ones: they stay in the cache meanwhile. */
enum { BLOCK = 16 * STEP };

/* out (rows x n) = x (rows x k) matrix (k x n), which lies in panels. */
void multiply(int64_t rows, int64_t k, int64_t n, const bf16 *x, const pair *panels, const ending *end, void *out) {
    const int64_t steps = (rows + STEP - 1) / STEP;
#pragma omp parallel
    {
        const int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
        const int64_t first = steps * thread / threads * STEP, last = at_most(rows, steps * (thread + 1) / threads * STEP);
        begin_products();
        for (int64_t block = first; block < last; block += BLOCK)
            for (int64_t column = 0; column < n; column += PANEL) {
                const pair *panel = panels + column * (k / 2);
                for (int64_t row = block; row < at_most(last, block + BLOCK); row += STEP)
                    multiply_rows(row, at_most(last, row + STEP), column, k, n, x, panel, end, out);
            }
        end_products();
    }
}

/* Columns of x (rows x width) from `column` on as one panel, in pairs from `first` to `last`. Below the last row are zeros. */
static void pack_columns(int64_t rows, int64_t width, const bf16 *x, int64_t column, int64_t first, int64_t last,
                         pair *panel) {
    const int64_t lanes = at_most(VECTORS, (width - column) / LANES);
    for (int64_t p = first; p < last; p++)
        for (int64_t lane = 0; lane < lanes; lane++) {
            const bf16 *here = x + 2 * p * width + column + lane * LANES;
            const __m512i upper = (__m512i)(2 * p < rows ? get_bf16(here) : all(0.0f));
            const __m512i lower = (__m512i)(2 * p + 1 < rows ? get_bf16(here + width) : all(0.0f));
            _mm512_storeu_si512(panel + p * PANEL + lane * LANES, _mm512_or_si512(_mm512_srli_epi32(upper, 16), lower));
        }
}

#ifdef __AMX_BF16__

/* `pack_columns` for the left side of a gradient: each square of LANES pairs and columns is turned round, as the left side
   of a product has its pairs side by side. */
static void pack_left(int64_t rows, int64_t width, const bf16 *x, int64_t column, int64_t first, int64_t last, pair *panel) {
    for (int64_t p = first; p < last; p += LANES) {
        pack_columns(rows, width, x, column, p, p + LANES, panel);
        for (int64_t i = 0; i < PANEL; i += LANES) {
            float *square = (float *)(panel + p * PANEL + i);
            vec found[LANES];
            for (int j = 0; j < LANES; j++) found[j] = get(square + j * PANEL);
            transpose(found, square, PANEL);
        }
    }
}

/* The sum of each of `width` columns of a panel whose squares are turned. */
static void sum_columns(int64_t pairs, int64_t width, const pair *panel, float *sum) {
    const __m512bh one = (__m512bh)_mm512_set1_epi16(0x3f80);
    for (int64_t i = 0; i < width; i++) {
        vec total = all(0.0f);
        for (int64_t p = i % LANES; p < pairs; p += LANES)
            total = _mm512_dpbf16_ps(total, one, (__m512bh)_mm512_loadu_si512(panel + p * PANEL + i / LANES * LANES));
        sum[i] = _mm512_reduce_add_ps(total);
    }
}

/* STEP rows of a gradient, from `to` on: what they are already (nothing, if this is the beginning) and `pairs` more. */
static void gradient_step(int64_t rows, int64_t pairs, const pair *left, const pair *right, int64_t beginning, int64_t lanes,
                          int64_t k, float *to) {
    _Alignas(64) float sums[STEP * PANEL] = {0};
    const int64_t in_place = lanes == VECTORS; /* else some columns of the panel are not there */
    if (beginning) load_sums(sums, 0);
    else if (in_place) load_sums(to, k);
    else {
        for (int64_t i = 0; i < rows; i++) memcpy(sums + i * PANEL, to + i * k, lanes * LANES * sizeof(float));
        load_sums(sums, PANEL);
    }
    add_matrix_products(pairs, left, PANEL, LANES * PANEL, right);
    if (in_place) store_sums(to, k);
    else {
        store_sums(sums, PANEL);
        for (int64_t i = 0; i < rows; i++) memcpy(to + i * k, sums + i * PANEL, lanes * LANES * sizeof(float));
    }
}

#else

static void pack_left(int64_t rows, int64_t width, const bf16 *x, int64_t column, int64_t first, int64_t last, pair *panel) {
    pack_columns(rows, width, x, column, first, last, panel);
}

/* The sum of each of `width` columns of a panel. */
static void sum_columns(int64_t pairs, int64_t width, const pair *panel, float *sum) {
    const __m512bh one = (__m512bh)_mm512_set1_epi16(0x3f80);
    for (int64_t i = 0; i < width; i += LANES) {
        vec total = all(0.0f);
        for (int64_t p = 0; p < pairs; p++)
            total = _mm512_dpbf16_ps(total, one, (__m512bh)_mm512_loadu_si512(panel + p * PANEL + i));
        put(sum + i, total);
    }
}

/* `tall` rows of a gradient, from `to` on: what they are already (nothing, if this is the beginning) and `pairs` more. */
static inline __attribute__((always_inline)) void gradient_tile(const int tall, int64_t pairs, const pair *left,
                                                                const pair *right, int64_t beginning, int64_t lanes,
                                                                int64_t k, float *to) {
    tile sums;
    for (int i = 0; i < tall; i++)
        for (int lane = 0; lane < VECTORS; lane++)
            sums[i][lane] = beginning || lane >= lanes ? all(0.0f) : get(to + i * k + lane * LANES);
    add_products(tall, VECTORS, pairs, left, 1, PANEL, right, sums);
    for (int i = 0; i < tall; i++)
        for (int lane = 0; lane < VECTORS; lane++)
            if (lane < lanes) put(to + i * k + lane * LANES, sums[i][lane]);
}

static void gradient_step(int64_t rows, int64_t pairs, const pair *left, const pair *right, int64_t beginning, int64_t lanes,
                          int64_t k, float *to) {
    switch (rows) { /* PANEL rows and all widths are even: so are these */
    case 2: gradient_tile(2, pairs, left, right, beginning, lanes, k, to); break;
    case 4: gradient_tile(4, pairs, left, right, beginning, lanes, k, to); break;
    case 6: gradient_tile(6, pairs, left, right, beginning, lanes, k, to); break;
    }
}

#endif

/* Pairs of rows which are added up for a whole panel before the next ones: they stay in the cache meanwhile. */
enum { DEEP = 256 };

/* grad_weight (n x k) = grad_output (rows x n)^T x (rows x k), grad_bias = the sum of `grad_output` over rows.

   The narrower of the two sides is laid out by all threads together, a panel of the wider one by the thread that needs it.
   Units of work are tiles of the result: those of a panel's columns follow on each other. `buffer`: the panels of the
   narrower side, and one for each thread. */
void weight_gradient(int64_t rows, int64_t n, int64_t k, const bf16 *grad_output, const bf16 *x, float *grad_weight,
                     float *grad_bias, pair *buffer) {
    const int64_t blocks = (rows + 2 * LANES - 1) / (2 * LANES), pairs = blocks * LANES, steps = (PANEL + STEP - 1) / STEP;
    const int64_t is_tall = n >= k, wide = is_tall ? n : k, narrow = is_tall ? k : n, shared = panels_of(narrow);
    const bf16 *wider = is_tall ? grad_output : x, *narrower = is_tall ? x : grad_output;
#pragma omp parallel
    {
        const int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
        const int64_t first = blocks * thread / threads * LANES, end = blocks * (thread + 1) / threads * LANES;
        for (int64_t panel = 0; panel < shared; panel++)
            (is_tall ? pack_columns : pack_left)(rows, narrow, narrower, panel * PANEL, first, end,
                                                 buffer + panel * pairs * PANEL);
#pragma omp barrier
        pair *own = buffer + (shared + thread) * pairs * PANEL;
        int64_t packed = -1; /* which panel lies there */
        const int64_t units = panels_of(wide) * shared * steps, last = units * (thread + 1) / threads;
        begin_products();
        for (int64_t unit = units * thread / threads, next; unit < last; unit = next) {
            const int64_t outer = unit / steps / shared, inner = unit / steps % shared;
            next = at_most(last, (unit / steps + 1) * steps);
            if (packed != outer) (is_tall ? pack_left : pack_columns)(rows, wide, wider, outer * PANEL, 0, pairs, own);
            packed = outer;
            const pair *of_narrower = buffer + inner * pairs * PANEL;
            const pair *left = is_tall ? own : of_narrower, *right = is_tall ? of_narrower : own;
            const int64_t at_n = (is_tall ? outer : inner) * PANEL, at_k = (is_tall ? inner : outer) * PANEL;
            const int64_t height = at_most(PANEL, n - at_n), lanes = at_most(VECTORS, (k - at_k) / LANES);
            const int64_t top = unit % steps * STEP, bottom = at_most(height, top + (next - unit) * STEP);
            if (at_k == 0 && top == 0) sum_columns(pairs, height, left, grad_bias + at_n);
            for (int64_t p = 0; p == 0 || p < pairs; p += DEEP) /* once at least: no rows have a gradient of zero */
                for (int64_t row = top; row < bottom; row += STEP)
                    gradient_step(at_most(STEP, bottom - row), at_most(DEEP, pairs - p), left + p * PANEL + row,
                                  right + p * PANEL, p == 0, lanes, k, grad_weight + (at_n + row) * k + at_k);
        }
        end_products();
    }
}

/* ----------------------------------------------------------------------------------------------------- attention -- */

/* Where the heads of all sentences stand in rows, and how they are masked. */
typedef struct {
    int64_t batch, heads, width, query_len, key_len; /* `width` of a head, in whole vectors */
    int64_t query_stride, key_stride, context_stride; /* from a row to the next, in numbers */
    const bf16 *query, *key, *value;
    const uint8_t *allowed; /* whether a query may look at a key; NULL: all may */
    int64_t allowed_batch, allowed_query; /* from one to the next; 0 where all have the same */
    const float *phase; /* cosine and sine of each pair of dimensions at each position, or NULL */
} attention;

/* One head's queries, keys or values of a sentence. */
typedef bf16 head_rows[SHORT * WIDEST_HEAD] __attribute__((aligned(64)));

/* The right side of a product, and the left side of one that is transposed, of a sentence's head. */
typedef pair head_panel[PANEL / 2 * PANEL] __attribute__((aligned(64)));

_Static_assert(SHORT <= PANEL && WIDEST_HEAD <= PANEL, "one panel");

/* out (m x vectors), in float32, = left times panel, as in `add_products`. Four rows at once: where those of the left
   side end, whatever is there is multiplied, and `out` is large enough for it. */
static inline __attribute__((always_inline)) void product_of(const int vectors, int64_t m, int64_t pairs,
                                                             const pair *left, int64_t row, int64_t next,
                                                             const pair *panel, float *out) {
    for (int64_t i = 0; i < m; i += 4) {
        tile sums = {{{0}}};
        add_products(4, vectors, pairs, left + i * row, row, next, panel, sums);
        for (int j = 0; j < 4; j++)
            for (int lane = 0; lane < vectors; lane++) put(out + ((i + j) * vectors + lane) * LANES, sums[j][lane]);
    }
}

static void product(int64_t vectors, int64_t m, int64_t pairs, const pair *left, int64_t row, int64_t next,
                    const pair *panel, float *out) {
    switch (vectors) {
    case 1: product_of(1, m, pairs, left, row, next, panel, out); break;
    case 2: product_of(2, m, pairs, left, row, next, panel, out); break;
    case 3: product_of(3, m, pairs, left, row, next, panel, out); break;
    case 4: product_of(4, m, pairs, left, row, next, panel, out); break;
    }
}

/* Pairs of dimensions rotated by cosine and sine, forward and backward. */
static inline vec rotated(vec x, const float *phase) {
    const vec cosine = _mm512_moveldup_ps(get(phase)), sine = _mm512_movehdup_ps(get(phase));
    return _mm512_fmaddsub_ps(x, cosine, _mm512_permute_ps(x, 0xb1) * sine);
}

static inline vec rotated_back(vec x, const float *phase) {
    const vec cosine = _mm512_moveldup_ps(get(phase)), sine = _mm512_movehdup_ps(get(phase));
    return _mm512_fmsubadd_ps(x, cosine, _mm512_permute_ps(x, 0xb1) * sine);
}

static inline int64_t in_lanes(int64_t len) { return (len + LANES - 1) / LANES * LANES; }

/* Rows of a head, rotated if `phase` is given, and zeros below them. */
static inline void load(int64_t len, int64_t width, const bf16 *from, int64_t stride, const float *phase, bf16 *to) {
    for (int64_t row = 0; row < len; row++)
        for (int64_t i = 0; i < width; i += LANES) {
            const int64_t at = row * width + i;
            if (phase) put_bf16(to + at, rotated(get_bf16(from + row * stride + i), phase + at));
            else _mm256_store_si256((__m256i *)(to + at), _mm256_loadu_si256((const __m256i *)(from + row * stride + i)));
        }
    memset(to + len * width, 0, (in_lanes(len) - len) * width * sizeof(bf16));
}

/* The inverse of `load`, rounded. */
static inline void store(int64_t len, int64_t width, const float *from, const float *phase, bf16 *to, int64_t stride) {
    for (int64_t row = 0; row < len; row++)
        for (int64_t i = 0; i < width; i += LANES) {
            const vec x = get(from + row * width + i);
            put_bf16(to + row * stride + i, phase ? rotated_back(x, phase + row * width + i) : x);
        }
}

/* Rows, as `load` leaves them, become the columns of a panel. */
static inline void pack_rows(int64_t len, int64_t width, const bf16 *rows, pair *panel) {
    const int64_t pairs = width / 2;
    for (int64_t row = 0; row < len; row += LANES)
        for (int64_t p = 0; p < pairs; p += LANES) {
            const __mmask16 there = of_last(pairs - p);
            vec found[LANES];
            for (int lane = 0; lane < LANES; lane++)
                found[lane] = _mm512_maskz_loadu_ps(there, (const float *)(rows + (row + lane) * width) + p);
            transpose(found, (float *)(panel + p * PANEL + row), PANEL);
        }
}

/* softmax(scale x scores), rounded; where not allowed, and from `len` on, 0. The scores are overwritten. */
static inline void softmax(int64_t len, int64_t columns, float scale, const uint8_t *allowed, float *scores, bf16 *out) {
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
    for (int64_t j = 0; j < columns; j += LANES) put_bf16(out + j, get(scores + j) * share);
}

/* softmax(Q K^T / sqrt(width) where allowed) V for each sentence and head; the weights (sentences x heads x query_len
   x key_len in whole vectors) are kept for the backward pass. */
void attention_forward(const attention *of, bf16 *context, bf16 *weights) {
    const attention a = *of;
    const int64_t columns = in_lanes(a.key_len), key_pairs = (a.key_len + 1) / 2;
    const float scale = 1.0f / sqrtf((float)a.width);
#pragma omp parallel for schedule(static)
    for (int64_t one = 0; one < a.batch * a.heads; one++) {
        const int64_t sentence = one / a.heads, head = one % a.heads * a.width;
        const int64_t at_query = sentence * a.query_len, at_key = sentence * a.key_len;
        head_rows q, k, v;
        head_panel right;
        _Alignas(64) float scores[SHORT * SHORT], found[SHORT * WIDEST_HEAD];
        _Alignas(64) bf16 attn_weights[SHORT * SHORT];
        load(a.query_len, a.width, a.query + at_query * a.query_stride + head, a.query_stride, a.phase, q);
        load(a.key_len, a.width, a.key + at_key * a.key_stride + head, a.key_stride, a.phase, k);
        load(a.key_len, a.width, a.value + at_key * a.key_stride + head, a.key_stride, NULL, v);
        pack_rows(a.key_len, a.width, k, right);
        product(columns / LANES, a.query_len, a.width / 2, (const pair *)q, a.width / 2, 1, right, scores);
        for (int64_t i = 0; i < a.query_len; i++) {
            const uint8_t *allowed = a.allowed ? a.allowed + sentence * a.allowed_batch + i * a.allowed_query : NULL;
            softmax(a.key_len, columns, scale, allowed, scores + i * columns, attn_weights + i * columns);
        }
        memcpy(weights + one * a.query_len * columns, attn_weights, a.query_len * columns * sizeof(bf16));
        pack_columns(a.key_len, a.width, v, 0, 0, key_pairs, right);
        product(a.width / LANES, a.query_len, key_pairs, (const pair *)attn_weights, columns / 2, 1, right, found);
        store(a.query_len, a.width, found, NULL, context + at_query * a.context_stride + head, a.context_stride);
    }
}

/* Gradients by queries, keys and values, in the layout of those, from `grad_output`, the gradient by the context. */
void attention_backward(const attention *of, const bf16 *weights, const bf16 *grad_output, bf16 *grad_query,
                        bf16 *grad_key,
                        bf16 *grad_value) {
    const attention a = *of;
    const int64_t columns = in_lanes(a.key_len), vectors = a.width / LANES;
    const int64_t query_pairs = (a.query_len + 1) / 2, key_pairs = (a.key_len + 1) / 2;
    const float scale = 1.0f / sqrtf((float)a.width);
#pragma omp parallel for schedule(static)
    for (int64_t one = 0; one < a.batch * a.heads; one++) {
        const int64_t sentence = one / a.heads, head = one % a.heads * a.width;
        const int64_t at_query = sentence * a.query_len * a.query_stride + head;
        const int64_t at_key = sentence * a.key_len * a.key_stride + head;
        const int64_t at_context = sentence * a.query_len * a.context_stride + head;
        head_rows q, k, v, up;
        head_panel left, right;
        _Alignas(64) float scores[SHORT * SHORT], found[SHORT * WIDEST_HEAD];
        _Alignas(64) bf16 grad_scores[SHORT * SHORT];
        load(a.query_len, a.width, a.query + at_query, a.query_stride, a.phase, q);
        load(a.key_len, a.width, a.key + at_key, a.key_stride, a.phase, k);
        load(a.key_len, a.width, a.value + at_key, a.key_stride, NULL, v);
        load(a.query_len, a.width, grad_output + at_context, a.context_stride, NULL, up);
        const bf16 *attn_weights = weights + one * a.query_len * columns;
        pack_rows(a.key_len, a.width, v, right);
        product(columns / LANES, a.query_len, a.width / 2, (const pair *)up, a.width / 2, 1, right, scores);
        for (int64_t i = 0; i < a.query_len * columns; i += columns) {
            vec sums = all(0.0f);
            for (int64_t j = i; j < i + columns; j += LANES) sums += get(scores + j) * get_bf16(attn_weights + j);
            const float sum = _mm512_reduce_add_ps(sums);
            for (int64_t j = i; j < i + columns; j += LANES)
                put_bf16(grad_scores + j, (get(scores + j) - sum) * get_bf16(attn_weights + j) * scale);
        }
        pack_columns(a.key_len, a.width, k, 0, 0, key_pairs, right);
        product(vectors, a.query_len, key_pairs, (const pair *)grad_scores, columns / 2, 1, right, found);
        store(a.query_len, a.width, found, a.phase, grad_query + at_query, a.query_stride);
        pack_columns(a.query_len, columns, grad_scores, 0, 0, query_pairs, left);
        pack_columns(a.query_len, a.width, q, 0, 0, query_pairs, right);
        product(vectors, a.key_len, query_pairs, left, 1, PANEL, right, found);
        store(a.key_len, a.width, found, a.phase, grad_key + at_key, a.key_stride);
        pack_columns(a.query_len, columns, attn_weights, 0, 0, query_pairs, left);
        pack_columns(a.query_len, a.width, up, 0, 0, query_pairs, right);
        product(vectors, a.key_len, query_pairs, left, 1, PANEL, right, found);
        store(a.key_len, a.width, found, NULL, grad_value + at_key, a.key_stride);
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
   less at_target at the target, and zero where the row is not real. `buffer`: a row of whole vectors for each thread. */
void cross_entropy(int64_t rows, int64_t vocab, bf16 *logits, const int64_t *targets, const uint8_t *real,
                   float at_target, float everywhere, float *losses, float *buffer) {
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; row++) {
        bf16 *here = logits + row * vocab;
        if (!real[row]) {
            losses[row] = 0.0f;
            memset(here, 0, vocab * sizeof(bf16));
            continue;
        }
        float *powers = buffer + omp_get_thread_num() * in_lanes(vocab);
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
