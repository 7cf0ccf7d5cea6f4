/* The matrix products of a training step on a CPU and what stands between them, in bfloat16 or, with FLOAT32, in float32.

   Each function is the fast implementation of a few lines of PyTorch, which `kernels.py` names and tests/unit/test_kernels.py holds
   it to: it walks its numbers once where those walk them operation by operation. Numbers are read and written in
   this type where a matrix product makes or takes them, and computed in float32. `rows` are positions of a batch, one
   below the other.

   The order in which numbers are added up does not depend on the number of threads: nor do the results. */

#include <immintrin.h>
#include <math.h>
#include <omp.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* FLOAT32, LANES, BLOCKS, PANEL, SHORT and WIDEST_HEAD are given by kernels.py, where they are explained. */

/* ------------------------------------------------------------------------------------------------------- vectors -- */

/* LANES numbers that are computed at once; +, -, * and / are the compiler's own. A `mask` says which of them are there. */

#if LANES == 16 /* AVX-512 */

typedef __m512 vec;
typedef __mmask16 mask;

static inline vec all(float x) { return _mm512_set1_ps(x); }

static inline vec get(const float *from) { return _mm512_loadu_ps(from); }

static inline void put(float *to, vec x) { _mm512_storeu_ps(to, x); }

/* The larger ones; the second of the two where one is NaN. */
static inline vec larger(vec x, vec y) { return _mm512_max_ps(x, y); }

static inline float sum_of(vec x) { return _mm512_reduce_add_ps(x); }

static inline float largest_of(vec x) { return _mm512_reduce_max_ps(x); }

/* The lanes where so many numbers are left. */
static inline mask of_last(int64_t left) { return left >= LANES ? 0xffff : (1 << left) - 1; }

static inline mask greater(vec x, vec y) { return _mm512_cmp_ps_mask(x, y, _CMP_GT_OQ); }

/* The lanes among `there` whose byte is not zero. */
static inline mask not_zero(mask there, const uint8_t *bytes) {
    return _mm_mask_test_epi8_mask(there, _mm_maskz_loadu_epi8(there, bytes), _mm_set1_epi8(-1));
}

/* The lanes whose byte is `least` or more. */
static inline mask at_least(const uint8_t *bytes, int64_t least) {
    return _mm512_cmpge_epi32_mask(_mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)bytes)), _mm512_set1_epi32(least));
}

/* `x` in these lanes, `rest` in the others. */
static inline vec where(mask there, vec x, vec rest) { return _mm512_mask_mov_ps(rest, there, x); }

/* Only these lanes are read and written. */
static inline vec get_masked(mask there, const float *from) { return _mm512_maskz_loadu_ps(there, from); }

static inline void put_masked(float *to, mask there, vec x) { _mm512_mask_storeu_ps(to, there, x); }

static inline vec rounded(vec x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }

/* x times 2^k, for whole k. */
static inline vec scaled(vec x, vec k) { return _mm512_scalef_ps(x, k); }

/* Numbers at even and at odd places, each twice; neighbours exchanged. */
static inline vec evens(vec x) { return _mm512_moveldup_ps(x); }

static inline vec odds(vec x) { return _mm512_movehdup_ps(x); }

static inline vec exchanged(vec x) { return _mm512_permute_ps(x, 0xb1); }

/* x y - z at even places and x y + z at odd ones; and the other way round. */
static inline vec minus_plus(vec x, vec y, vec z) { return _mm512_fmaddsub_ps(x, y, z); }

static inline vec plus_minus(vec x, vec y, vec z) { return _mm512_fmsubadd_ps(x, y, z); }

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

#else /* AVX2, the same functions */

typedef __m256 vec;
typedef __m256i mask; /* all bits of a number, or none */

static inline vec all(float x) { return _mm256_set1_ps(x); }

static inline vec get(const float *from) { return _mm256_loadu_ps(from); }

static inline void put(float *to, vec x) { _mm256_storeu_ps(to, x); }

static inline vec larger(vec x, vec y) { return _mm256_max_ps(x, y); }

static inline float sum_of(vec x) {
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}

static inline float largest_of(vec x) {
    __m128 half = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
}

static inline mask of_last(int64_t left) {
    const int32_t count = left < LANES ? left : LANES;
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

static inline mask greater(vec x, vec y) { return (mask)_mm256_cmp_ps(x, y, _CMP_GT_OQ); }

static inline mask not_zero(mask there, const uint8_t *bytes) {
    const int count = __builtin_popcount(_mm256_movemask_ps((vec)there));
    uint64_t found = 0;
    if (count == LANES) memcpy(&found, bytes, LANES);
    else for (int i = 0; i < count; i++) found |= (uint64_t)bytes[i] << 8 * i;
    return _mm256_and_si256(there, _mm256_cmpgt_epi32(_mm256_cvtepu8_epi32(_mm_cvtsi64_si128(found)), _mm256_setzero_si256()));
}

static inline mask at_least(const uint8_t *bytes, int64_t least) {
    return _mm256_cmpgt_epi32(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)bytes)), _mm256_set1_epi32(least - 1));
}

static inline vec where(mask there, vec x, vec rest) { return _mm256_blendv_ps(rest, x, (vec)there); }

static inline vec get_masked(mask there, const float *from) { return _mm256_maskload_ps(from, there); }

static inline void put_masked(float *to, mask there, vec x) { _mm256_maskstore_ps(to, there, x); }

static inline vec rounded(vec x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }

static inline vec scaled(vec x, vec k) { /* by the exponent's bits; below 2^-126 it is 0 */
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(larger(all(-127.0f), k)), _mm256_set1_epi32(127));
    return x * (vec)_mm256_slli_epi32(exponent, 23);
}

static inline vec evens(vec x) { return _mm256_moveldup_ps(x); }

static inline vec odds(vec x) { return _mm256_movehdup_ps(x); }

static inline vec exchanged(vec x) { return _mm256_permute_ps(x, 0xb1); }

static inline vec minus_plus(vec x, vec y, vec z) { return _mm256_fmaddsub_ps(x, y, z); }

static inline vec plus_minus(vec x, vec y, vec z) { return _mm256_fmsubadd_ps(x, y, z); }

static inline void transpose(const vec rows[LANES], float *to, int64_t stride) {
    vec singles[LANES];
    for (int i = 0; i < LANES; i += 4) {
        const vec low = _mm256_unpacklo_ps(rows[i], rows[i + 1]), high = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
        const vec low2 = _mm256_unpacklo_ps(rows[i + 2], rows[i + 3]), high2 = _mm256_unpackhi_ps(rows[i + 2], rows[i + 3]);
        singles[i] = (vec)_mm256_unpacklo_pd((__m256d)low, (__m256d)low2);
        singles[i + 1] = (vec)_mm256_unpackhi_pd((__m256d)low, (__m256d)low2);
        singles[i + 2] = (vec)_mm256_unpacklo_pd((__m256d)high, (__m256d)high2);
        singles[i + 3] = (vec)_mm256_unpackhi_pd((__m256d)high, (__m256d)high2);
    }
    for (int i = 0; i < 4; i++) {
        put(to + i * stride, _mm256_permute2f128_ps(singles[i], singles[i + 4], 0x20));
        put(to + (i + 4) * stride, _mm256_permute2f128_ps(singles[i], singles[i + 4], 0x31));
    }
}

#endif

/* exp(x) for x <= 0, to two units in the last place: 2^k exp(r), r = x - k log 2, |r| <= log(2) / 2. */
static inline vec exp_negative(vec x) {
    const vec clamped = larger(all(-200.0f), x); /* where the result is 0 */
    const vec k = rounded(clamped * 1.44269504f);
    const vec r = (clamped - k * 0.693359375f) + k * 2.12194440e-4f;
    vec p = 1.0f / 720 + r * (1.0f / 5040);
    p = 1.0f / 120 + r * p;
    p = 1.0f / 24 + r * p;
    p = 1.0f / 6 + r * p;
    p = 0.5f + r * p;
    p = 1.0f + r * p;
    p = 1.0f + r * p;
    return scaled(p, k);
}

/* ------------------------------------------------------------------------------------------------------- numbers -- */

/* The type that products take. A cell, of 32 bits, holds CELL of them that follow on each other downwards in a
   column: what the processor multiplies and adds up at once. */

#ifdef FLOAT32

typedef float number;
typedef float cell;
enum { CELL = 1 /* numbers in a cell */ };

static inline vec get_numbers(const number *from) { return get(from); }

static inline void put_numbers(number *to, vec x) { put(to, x); }

static inline void copy(number *to, const number *from) { put(to, get(from)); }

/* Numbers of a row, of which so many are left; `rest` stands for those that are not there. */
static inline vec get_some(const number *from, int64_t left, float rest) {
    return left >= LANES ? get(from) : where(of_last(left), get_masked(of_last(left), from), all(rest));
}

static inline void put_some(number *to, int64_t left, vec x) {
    if (left >= LANES) put(to, x);
    else put_masked(to, of_last(left), x);
}

static inline vec all_cells(cell x) { return all(x); }

static inline vec ones(void) { return all(1.0f); }

/* sums + left right */
static inline vec add_cells(vec sums, vec left, vec right) { return sums + left * right; }

/* Cells of a row and of the one below it, of which `there` are there. */
static inline vec cells_of(const number *from, int64_t width, int64_t there) {
    (void)width;
    return there > 0 ? get(from) : all(0.0f);
}

#else

typedef uint16_t number; /* bfloat16: the upper half of float32 */
typedef uint32_t cell;
enum { CELL = 2 };

static inline vec widened(__m256i x) { return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16)); }

static inline vec get_numbers(const number *from) { return widened(_mm256_loadu_si256((const __m256i *)from)); }

static inline void put_numbers(number *to, vec x) { _mm256_storeu_si256((__m256i *)to, (__m256i)_mm512_cvtneps_pbh(x)); }

static inline void copy(number *to, const number *from) {
    _mm256_storeu_si256((__m256i *)to, _mm256_loadu_si256((const __m256i *)from));
}

static inline vec get_some(const number *from, int64_t left, float rest) {
    const mask there = of_last(left);
    return where(there, widened(_mm256_maskz_loadu_epi16(there, from)), all(rest));
}

static inline void put_some(number *to, int64_t left, vec x) {
    _mm256_mask_storeu_epi16(to, of_last(left), (__m256i)_mm512_cvtneps_pbh(x));
}

static inline vec all_cells(cell x) { return (vec)_mm512_set1_epi32(x); }

static inline vec ones(void) { return (vec)_mm512_set1_epi16(0x3f80); }

static inline vec add_cells(vec sums, vec left, vec right) { return _mm512_dpbf16_ps(sums, (__m512bh)left, (__m512bh)right); }

static inline vec cells_of(const number *from, int64_t width, int64_t there) {
    const __m512i upper = (__m512i)(there > 0 ? get_numbers(from) : all(0.0f));
    const __m512i lower = (__m512i)(there > 1 ? get_numbers(from + width) : all(0.0f));
    return (vec)_mm512_or_si512(_mm512_srli_epi32(upper, 16), lower);
}

#endif

/* ------------------------------------------------------------------------------------------------- sums over rows -- */

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
                  number *out, float *moments) {
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; row++) {
        const float *from = x + row * width;
        vec sum = all(0.0f), squares = all(0.0f);
        for (int64_t i = 0; i < width; i += LANES) sum += get(from + i);
        const float mean = sum_of(sum) / width;
        for (int64_t i = 0; i < width; i += LANES) {
            const vec apart = get(from + i) - mean;
            squares += apart * apart;
        }
        const float inverse = 1.0f / sqrtf(sum_of(squares) / width + eps);
        moments[2 * row] = mean, moments[2 * row + 1] = inverse;
        for (int64_t i = 0; i < width; i += LANES)
            put_numbers(out + row * width + i, (get(from + i) - mean) * inverse * get(gain + i) + get(bias + i));
    }
}

/* Backward: grad_x = residual (the gradient of the path around the sublayer) + the gradient by x, where `grad_output` is
   that by `out`. `buffer`: 2 x BLOCKS x width. */
void norm_backward(int64_t rows, int64_t width, const number *grad_output, const float *x, const float *gain,
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
                const vec here = get_numbers(grad_output + at + i), normal = (get(x + at + i) - mean) * inverse;
                const vec weighted = here * get(gain + i);
                put(of_bias + i, get(of_bias + i) + here);
                put(of_gain + i, get(of_gain + i) + here * normal);
                sums += weighted;
                products += weighted * normal;
            }
            const float sum = sum_of(sums) / width, product = sum_of(products) / width;
            for (int64_t i = 0; i < width; i += LANES) {
                const vec here = get_numbers(grad_output + at + i), normal = (get(x + at + i) - mean) * inverse;
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
    return where(at_least(bytes, dropped), x * (256.0f / (256 - dropped)), all(0.0f));
}

/* The bytes themselves, for who wants to look at them. */
void dropout_bytes(int64_t count, uint64_t seed, uint8_t *bytes) { random_bytes(seed, 0, count, bytes); }

/* Backward of dropout. */
void dropout_backward(int64_t rows, int64_t width, const float *grad_output, uint64_t seed, int64_t dropped,
                      number *grad_x) {
    const int64_t count = rows * width;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < count; i += PANEL) {
        uint8_t bytes[PANEL];
        random_bytes(seed, i, PANEL, bytes);
        for (int64_t j = 0; j < PANEL && i + j < count; j += LANES)
            put_numbers(grad_x + i + j, kept(get(grad_output + i + j), bytes + j, dropped));
    }
}

/* ----------------------------------------------------------------------------------------------- matrix products -- */

/* A product's right side is laid out in cells, and in panels of PANEL columns that are read from end to end:
   panels[column / PANEL][row / CELL][column % PANEL]. Columns that fill up the last panel may be anything. */

enum { VECTORS = PANEL / LANES, TALL = 6 /* rows at once: TALL x VECTORS sums, a row of a panel and a number fill the registers */ };

typedef vec tile[TALL][VECTORS];

#if defined(__AMX_BF16__) && !defined(FLOAT32)
#define HAS_TILES
#endif

#ifdef HAS_TILES

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
        _tile_loadd(of_left, left, (row) * sizeof(cell));                 \
        _tile_loadd(of_right, right, PANEL * sizeof(cell));               \
        _tile_dpbf16ps(SUMS_0, of_left, of_right);                        \
        _tile_loadd(of_right, (right) + LANES, PANEL * sizeof(cell));     \
        _tile_dpbf16ps(SUMS_1, of_left, of_right);                        \
        _tile_loadd(of_right, (right) + 2 * LANES, PANEL * sizeof(cell)); \
        _tile_dpbf16ps(SUMS_2, of_left, of_right);                        \
        _tile_loadd(of_right, (right) + 3 * LANES, PANEL * sizeof(cell)); \
        _tile_dpbf16ps(SUMS_3, of_left, of_right);                        \
    } while (0)

/* sums += left right, for so many pairs: `left` has 16 rows, `row` pairs apart; from one LANES pairs of it to the next are
   `next` pairs. The right side is a panel. */
static inline void add_matrix_products(int64_t pairs, const cell *left, int64_t row, int64_t next, const cell *panel) {
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

/* sums[i] += the sum over cells of left[i] panel, in so many vectors of it; from one row of the left side to the next,
   and from a cell to the next, so many cells; the panel is `width` wide. The compiler has to know `tall` and `vectors`,
   or sums would not stay in registers. */
static inline __attribute__((always_inline)) void add_products(const int tall, const int vectors, int64_t depth,
                                                               const cell *left, int64_t row, int64_t next,
                                                               const cell *panel, const int64_t width, tile sums) {
    tile found;
    for (int i = 0; i < tall; i++)
        for (int lane = 0; lane < vectors; lane++) found[i][lane] = sums[i][lane];
    for (int64_t p = 0; p < depth; p++) {
        vec right[VECTORS];
        for (int lane = 0; lane < vectors; lane++) right[lane] = get((const float *)(panel + p * width + lane * LANES));
        for (int i = 0; i < tall; i++) {
            const vec here = all_cells(left[i * row + p * next]);
            for (int lane = 0; lane < vectors; lane++) found[i][lane] = add_cells(found[i][lane], here, right[lane]);
        }
    }
    for (int i = 0; i < tall; i++)
        for (int lane = 0; lane < vectors; lane++) sums[i][lane] = found[i][lane];
}

/* A weight (n x k) becomes rows `first` to `first` + n of a matrix, in panels for x matrix^T (`across`) and for y matrix
   (`down`), both of `height` rows in all. n, k and `first` are multiples of LANES. */
void pack(int64_t n, int64_t k, int64_t first, int64_t height, const float *weight, cell *across, cell *down) {
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < n; i += LANES) {
#ifdef FLOAT32
        for (int64_t j = 0; j < k; j += LANES) {
            vec rows[LANES];
            for (int row = 0; row < LANES; row++) rows[row] = get(weight + (i + row) * k + j);
            transpose(rows, across + ((first + i) / PANEL * k + j) * PANEL + (first + i) % PANEL, PANEL);
            for (int row = 0; row < LANES; row++)
                put(down + (j / PANEL * height + first + i + row) * PANEL + j % PANEL, rows[row]);
        }
#else
        for (int64_t j = 0; j < k; j += 2 * LANES) { /* pairs of a row's neighbours, transposed */
            const mask second = of_last(at_most(LANES, k - j - LANES));
            vec pairs[LANES];
            _Alignas(64) float columns[LANES * LANES];
            for (int row = 0; row < LANES; row++) {
                const float *from = weight + (i + row) * k + j;
                pairs[row] = (vec)_mm512_cvtne2ps_pbh(get_masked(second, from + LANES), get(from));
            }
            transpose(pairs, columns, LANES);
            cell *to = across + ((first + i) / PANEL * (k / 2) + j / 2) * PANEL + (first + i) % PANEL;
            for (int64_t p = 0; p < at_most(LANES, (k - j) / 2); p++) put((float *)(to + p * PANEL), get(columns + p * LANES));
        }
        for (int64_t row = i; row < i + LANES; row += 2) /* pairs of a number and the one below it */
            for (int64_t j = 0; j < k; j += LANES) {
                const __m512i upper = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(get(weight + row * k + j)));
                const __m512i lower = _mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh(get(weight + (row + 1) * k + j)));
                cell *to = down + (j / PANEL * (height / 2) + (first + row) / 2) * PANEL + j % PANEL;
                _mm512_storeu_si512(to, _mm512_or_si512(upper, _mm512_slli_epi32(lower, 16)));
            }
#endif
    }
}

/* What becomes of a product before it is written. */
typedef struct {
    const float *bias; /* is added to each row; NULL: none */
    int64_t relu;
    const number *gate; /* zero where this is not greater than zero, (rows x n); NULL: none */
    const float *residual; /* residual + dropout(product) is written, in float32; NULL: the product, in bfloat16 */
    uint64_t seed;
    int64_t dropped; /* of 256 */
} ending;

/* The bytes of a panel's columns, drawn at once. */
static inline void dropout_of(const ending *end, int64_t at, uint8_t bytes[PANEL]) {
    if (end->residual) random_bytes(end->seed, at, PANEL, bytes);
}

static inline void finish(const ending *end, int64_t at, vec x, const uint8_t *bytes, void *out) {
    if (end->relu) x = larger(all(0.0f), x);
    if (end->gate) x = where(greater(get_numbers(end->gate + at), all(0.0f)), x, all(0.0f));
    if (end->residual) {
        put((float *)out + at, get(end->residual + at) + kept(x, bytes, end->dropped));
    } else {
        put_numbers((number *)out + at, x);
    }
}

/* `tall` rows of a product, from `row` on, in the columns of a panel. */
static inline __attribute__((always_inline)) void multiply_tile(const int tall, int64_t row, int64_t column, int64_t k,
                                                                int64_t n, const number *x, const cell *panel,
                                                                const ending *end, void *out) {
    const int64_t lanes = at_most(VECTORS, (n - column) / LANES);
    tile sums;
    for (int lane = 0; lane < VECTORS; lane++) {
        const vec first = end->bias && lane < lanes ? get(end->bias + column + lane * LANES) : all(0.0f);
        for (int i = 0; i < tall; i++) sums[i][lane] = first;
    }
    add_products(tall, VECTORS, k / CELL, (const cell *)(x + row * k), k / CELL, 1, panel, PANEL, sums);
    for (int i = 0; i < tall; i++) {
        const int64_t at = (row + i) * n + column;
        uint8_t bytes[PANEL];
        dropout_of(end, at, bytes);
        for (int lane = 0; lane < VECTORS; lane++)
            if (lane < lanes) finish(end, at + lane * LANES, sums[i][lane], bytes + lane * LANES, out);
    }
}

#ifdef HAS_TILES

/* STEP rows of a product, from `row` on, in the columns of a panel. */
static void multiply_step(int64_t row, int64_t column, int64_t k, int64_t n, const number *x, const cell *panel,
                          const ending *end, void *out) {
    const int64_t lanes = at_most(VECTORS, (n - column) / LANES);
    _Alignas(64) float sums[STEP * PANEL], first[PANEL] = {0};
    if (end->bias) memcpy(first, end->bias + column, lanes * LANES * sizeof(float));
    load_sums(first, 0);
    add_matrix_products(k / 2, (const cell *)(x + row * k), k / 2, LANES, panel);
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
static void multiply_rows(int64_t row, int64_t last, int64_t column, int64_t k, int64_t n, const number *x,
                          const cell *panel, const ending *end, void *out) {
#ifdef HAS_TILES
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
enum { BLOCK = (CELL == 1 ? 2 : 16) * STEP };

/* out (rows x n) = x (rows x k) matrix (k x n), which lies in panels. */
void multiply(int64_t rows, int64_t k, int64_t n, const number *x, const cell *panels, const ending *end, void *out) {
    const int64_t steps = (rows + STEP - 1) / STEP;
#pragma omp parallel
    {
        const int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
        const int64_t first = steps * thread / threads * STEP, last = at_most(rows, steps * (thread + 1) / threads * STEP);
        begin_products();
        for (int64_t block = first; block < last; block += BLOCK)
            for (int64_t column = 0; column < n; column += PANEL) {
                const cell *panel = panels + column * (k / CELL);
                for (int64_t row = block; row < at_most(last, block + BLOCK); row += STEP)
                    multiply_rows(row, at_most(last, row + STEP), column, k, n, x, panel, end, out);
            }
        end_products();
    }
}

/* So many vectors of columns of x (rows x width), in cells from `first` to `last`, become a panel `wide` columns wide.
   Below the last row are zeros. */
static inline void pack_cells(int64_t rows, int64_t width, const number *x, int64_t vectors, int64_t first, int64_t last,
                              const int64_t wide, cell *panel) {
    for (int64_t p = first; p < last; p++)
        for (int64_t i = 0; i < vectors * LANES; i += LANES) {
            const number *from = x + CELL * p * width + i;
            __builtin_prefetch(from + LANES * width); /* rows that are needed soon, and lie apart */
            put((float *)(panel + p * wide + i), cells_of(from, width, rows - CELL * p));
        }
}

/* Columns from `column` on as one panel. */
static void pack_columns(int64_t rows, int64_t width, const number *x, int64_t column, int64_t first, int64_t last,
                         cell *panel) {
    pack_cells(rows, width, x + column, at_most(VECTORS, (width - column) / LANES), first, last, PANEL, panel);
}

#ifdef HAS_TILES

/* `pack_columns` for the left side of a gradient: each square of LANES pairs and columns is turned round, as the left side
   of a product has its pairs side by side. */
static void pack_left(int64_t rows, int64_t width, const number *x, int64_t column, int64_t first, int64_t last, cell *panel) {
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
static void sum_columns(int64_t pairs, int64_t width, const cell *panel, int64_t beginning, float *sum) {
    (void)beginning; /* there is one chunk */
    for (int64_t i = 0; i < width; i++) {
        vec total = all(0.0f);
        for (int64_t p = i % LANES; p < pairs; p += LANES)
            total = add_cells(total, ones(), get((const float *)(panel + p * PANEL + i / LANES * LANES)));
        sum[i] = sum_of(total);
    }
}

/* STEP rows of a gradient, from `to` on: what they are already (nothing, if this is the beginning) and `pairs` more. */
static void gradient_step(int64_t rows, int64_t pairs, const cell *left, const cell *right, int64_t beginning, int64_t lanes,
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

static void pack_left(int64_t rows, int64_t width, const number *x, int64_t column, int64_t first, int64_t last, cell *panel) {
    pack_columns(rows, width, x, column, first, last, panel);
}

/* The sum of each of `width` columns of a panel, added to what is there already unless this is the beginning. */
static void sum_columns(int64_t pairs, int64_t width, const cell *panel, int64_t beginning, float *sum) {
    vec totals[VECTORS]; /* side by side, as each waits for its last sum */
    for (int i = 0; i < VECTORS; i++) totals[i] = beginning || i * LANES >= width ? all(0.0f) : get(sum + i * LANES);
    for (int64_t p = 0; p < pairs; p++)
        for (int i = 0; i < VECTORS; i++)
            totals[i] = add_cells(totals[i], ones(), get((const float *)(panel + p * PANEL + i * LANES)));
    for (int i = 0; i < VECTORS; i++)
        if (i * LANES < width) put(sum + i * LANES, totals[i]);
}

/* `tall` rows of a gradient, from `to` on: what they are already (nothing, if this is the beginning) and `pairs` more. */
static inline __attribute__((always_inline)) void gradient_tile(const int tall, int64_t pairs, const cell *left,
                                                                const cell *right, int64_t beginning, int64_t lanes,
                                                                int64_t k, float *to) {
    tile sums;
    for (int i = 0; i < tall; i++)
        for (int lane = 0; lane < VECTORS; lane++)
            sums[i][lane] = beginning || lane >= lanes ? all(0.0f) : get(to + i * k + lane * LANES);
    add_products(tall, VECTORS, pairs, left, 1, PANEL, right, PANEL, sums);
    for (int i = 0; i < tall; i++)
        for (int lane = 0; lane < VECTORS; lane++)
            if (lane < lanes) put(to + i * k + lane * LANES, sums[i][lane]);
}

static void gradient_step(int64_t rows, int64_t pairs, const cell *left, const cell *right, int64_t beginning, int64_t lanes,
                          int64_t k, float *to) {
    switch (rows) {
    case 1: gradient_tile(1, pairs, left, right, beginning, lanes, k, to); break;
    case 2: gradient_tile(2, pairs, left, right, beginning, lanes, k, to); break;
    case 3: gradient_tile(3, pairs, left, right, beginning, lanes, k, to); break;
    case 4: gradient_tile(4, pairs, left, right, beginning, lanes, k, to); break;
    case 5: gradient_tile(5, pairs, left, right, beginning, lanes, k, to); break;
    case 6: gradient_tile(6, pairs, left, right, beginning, lanes, k, to); break;
    }
}

#endif

/* Cells of rows which are added up for a whole panel before the next ones: they stay in the cache meanwhile. And those
   for which both sides are laid out before the next ones: all of them, where two numbers share a cell. */
enum { DEEP = 256, CHUNK = CELL == 1 ? 2 * DEEP : 1 << 30 };

/* Panels of the wider side that are laid out at once. */
enum { GROUP = SHORT / PANEL };

/* `count` panels, each `height` cells high, of columns from `column` on. Both sides of a gradient lie as right sides do but
   for the left one's squares. */
static void pack_panels(int64_t is_left, int64_t rows, int64_t width, const number *x, int64_t column, int64_t count,
                        int64_t first, int64_t last, int64_t height, cell *to) {
    for (int64_t p = first; p < last; p += LANES)
        for (int64_t panel = 0; panel < count; panel++)
            (is_left ? pack_left : pack_columns)(rows, width, x, column + panel * PANEL, p, p + LANES,
                                                 to + panel * height * PANEL);
}

/* grad_weight (n x k) = grad_output (rows x n)^T x (rows x k), grad_bias = the sum of `grad_output` over rows.

   The narrower of the two sides is laid out by all threads together, panels of the wider one by the thread that needs them.
   Units of work are tiles of the result: those of a panel's columns follow on each other. `buffer`: the panels of the
   narrower side, and GROUP for each thread. */
void weight_gradient(int64_t rows, int64_t n, int64_t k, const number *grad_output, const number *x, float *grad_weight,
                     float *grad_bias, cell *buffer) {
    const int64_t depth = (rows + CELL * LANES - 1) / (CELL * LANES) * LANES, steps = (PANEL + STEP - 1) / STEP;
    const int64_t is_tall = n >= k, wide = is_tall ? n : k, narrow = is_tall ? k : n, shared = panels_of(narrow);
    const number *wider = is_tall ? grad_output : x, *narrower = is_tall ? x : grad_output;
#pragma omp parallel
    for (int64_t start = 0; start == 0 || start < depth; start += CHUNK) { /* once at least: no rows have a gradient of zero */
        const int64_t threads = omp_get_num_threads(), thread = omp_get_thread_num();
        const int64_t height = at_most(CHUNK, depth - start), blocks = height / LANES, below = rows - CELL * start;
        pack_panels(!is_tall, below, narrow, narrower + CELL * start * narrow, 0, shared, blocks * thread / threads * LANES,
                    blocks * (thread + 1) / threads * LANES, height, buffer);
#pragma omp barrier
        cell *own = buffer + (shared + thread * GROUP) * height * PANEL;
        int64_t packed = -1; /* which group of panels lies there */
        const int64_t units = panels_of(wide) * shared * steps, last = units * (thread + 1) / threads;
        begin_products();
        for (int64_t unit = units * thread / threads, next; unit < last; unit = next) {
            const int64_t outer = unit / steps / shared, inner = unit / steps % shared, group = outer / GROUP;
            next = at_most(last, (unit / steps + 1) * steps);
            if (packed != group)
                pack_panels(is_tall, below, wide, wider + CELL * start * wide, group * GROUP * PANEL,
                            at_most(GROUP, panels_of(wide) - group * GROUP), 0, height, height, own);
            packed = group;
            const cell *of_wider = own + outer % GROUP * height * PANEL, *of_narrower = buffer + inner * height * PANEL;
            const cell *left = is_tall ? of_wider : of_narrower, *right = is_tall ? of_narrower : of_wider;
            const int64_t at_n = (is_tall ? outer : inner) * PANEL, at_k = (is_tall ? inner : outer) * PANEL;
            const int64_t width = at_most(PANEL, n - at_n), lanes = at_most(VECTORS, (k - at_k) / LANES);
            const int64_t top = unit % steps, bottom = top + next - unit; /* steps of about as many rows each */
            if (at_k == 0 && top == 0) sum_columns(height, width, left, start == 0, grad_bias + at_n);
            for (int64_t p = 0; p == 0 || p < height; p += DEEP)
                for (int64_t step = top, row; step < bottom && (row = step * PANEL / steps) < width; step++)
                    gradient_step(at_most(width, (step + 1) * PANEL / steps) - row, at_most(DEEP, height - p),
                                  left + p * PANEL + row, right + p * PANEL, start + p == 0, lanes, k,
                                  grad_weight + (at_n + row) * k + at_k);
        }
        end_products();
#pragma omp barrier
    }
}

/* ----------------------------------------------------------------------------------------------------- attention -- */

/* Where the heads of all sentences stand in rows, and how they are masked. */
typedef struct {
    int64_t batch, heads, width, query_len, key_len; /* `width` of a head, in whole vectors */
    int64_t query_stride, key_stride, context_stride; /* from a row to the next, in numbers */
    const number *query, *key, *value;
    const uint8_t *allowed; /* whether a query may look at a key; NULL: all may */
    int64_t allowed_batch, allowed_query; /* from one to the next; 0 where all have the same */
    const float *phase; /* cosine and sine of each cell of dimensions at each position, or NULL */
} attention;

/* One head's queries, keys or values of a sentence. */
typedef number head_rows[SHORT * WIDEST_HEAD] __attribute__((aligned(64)));

/* The right side of a product, and the left side of one that is transposed, of a sentence's head. */
enum { WIDE = SHORT > WIDEST_HEAD ? SHORT : WIDEST_HEAD /* columns of such a panel */ };

typedef cell head_panel[WIDE / CELL * WIDE] __attribute__((aligned(64)));

/* Columns of out (m x width), in float32, = left times panel, as in `add_products`. Four rows at once: where those of the
   left side end, whatever is there is multiplied, and `out` is large enough for it. */
static inline __attribute__((always_inline)) void product_of(const int vectors, int64_t m, int64_t depth,
                                                             const cell *left, int64_t row, int64_t next,
                                                             const cell *panel, int64_t width, float *out) {
    for (int64_t i = 0; i < m; i += 4) {
        tile sums = {{{0}}};
        add_products(4, vectors, depth, left + i * row, row, next, panel, WIDE, sums);
        for (int j = 0; j < 4; j++)
            for (int lane = 0; lane < vectors; lane++) put(out + (i + j) * width + lane * LANES, sums[j][lane]);
    }
}

static void product(int64_t width, int64_t m, int64_t depth, const cell *left, int64_t row, int64_t next,
                    const cell *panel, float *out) {
    for (int64_t i = 0; i < width; i += PANEL)
        switch (at_most(VECTORS, (width - i) / LANES)) {
        case 1: product_of(1, m, depth, left, row, next, panel + i, width, out + i); break;
        case 2: product_of(2, m, depth, left, row, next, panel + i, width, out + i); break;
#if PANEL > 2 * LANES
        case 3: product_of(3, m, depth, left, row, next, panel + i, width, out + i); break;
        case 4: product_of(4, m, depth, left, row, next, panel + i, width, out + i); break;
#endif
        }
}

_Static_assert(VECTORS <= 4, "as many cases as above");

/* Pairs of dimensions rotated by cosine and sine, forward and backward. */
static inline vec rotated(vec x, const float *phase) {
    return minus_plus(x, evens(get(phase)), exchanged(x) * odds(get(phase)));
}

static inline vec rotated_back(vec x, const float *phase) {
    return plus_minus(x, evens(get(phase)), exchanged(x) * odds(get(phase)));
}

static inline int64_t in_lanes(int64_t len) { return (len + LANES - 1) / LANES * LANES; }

/* Rows of a head, rotated if `phase` is given, and zeros below them. */
static inline void load(int64_t len, int64_t width, const number *from, int64_t stride, const float *phase, number *to) {
    for (int64_t row = 0; row < len; row++)
        for (int64_t i = 0; i < width; i += LANES) {
            const int64_t at = row * width + i;
            if (phase) put_numbers(to + at, rotated(get_numbers(from + row * stride + i), phase + at));
            else copy(to + at, from + row * stride + i);
        }
    memset(to + len * width, 0, (in_lanes(len) - len) * width * sizeof(number));
}

/* The inverse of `load`, rounded. */
static inline void store(int64_t len, int64_t width, const float *from, const float *phase, number *to, int64_t stride) {
    for (int64_t row = 0; row < len; row++)
        for (int64_t i = 0; i < width; i += LANES) {
            const vec x = get(from + row * width + i);
            put_numbers(to + row * stride + i, phase ? rotated_back(x, phase + row * width + i) : x);
        }
}

/* Rows, as `load` leaves them, become the columns of a panel. */
static inline void pack_rows(int64_t len, int64_t width, const number *rows, cell *panel) {
    const int64_t depth = width / CELL;
    for (int64_t row = 0; row < len; row += LANES)
        for (int64_t p = 0; p < depth; p += LANES) {
            const mask there = of_last(depth - p);
            vec found[LANES];
            for (int lane = 0; lane < LANES; lane++)
                found[lane] = get_masked(there, (const float *)(rows + (row + lane) * width) + p);
            transpose(found, (float *)(panel + p * WIDE + row), WIDE);
        }
}

/* softmax(scale x scores), rounded; where not allowed, and from `len` on, 0. The scores are overwritten. */
static inline void softmax(int64_t len, int64_t columns, float scale, const uint8_t *allowed, float *scores, number *out) {
    vec most = all(-INFINITY), sums = all(0.0f);
    for (int64_t j = 0; j < columns; j += LANES) {
        mask there = of_last(len - j);
        if (allowed) there = not_zero(there, allowed + j);
        const vec row = where(there, get(scores + j), all(-INFINITY));
        put(scores + j, row);
        most = larger(most, row);
    }
    const vec largest = all(largest_of(most));
    for (int64_t j = 0; j < columns; j += LANES) {
        const vec power = exp_negative((get(scores + j) - largest) * scale);
        put(scores + j, power);
        sums += power;
    }
    const vec share = all(1.0f / sum_of(sums));
    for (int64_t j = 0; j < columns; j += LANES) put_numbers(out + j, get(scores + j) * share);
}

/* softmax(Q K^T / sqrt(width) where allowed) V for each sentence and head; the weights (sentences x heads x query_len
   x key_len in whole vectors) are kept for the backward pass. */
void attention_forward(const attention *of, number *context, number *weights) {
    const attention a = *of;
    const int64_t columns = in_lanes(a.key_len), key_cells = (a.key_len + CELL - 1) / CELL;
    const float scale = 1.0f / sqrtf((float)a.width);
#pragma omp parallel for schedule(static)
    for (int64_t one = 0; one < a.batch * a.heads; one++) {
        const int64_t sentence = one / a.heads, head = one % a.heads * a.width;
        const int64_t at_query = sentence * a.query_len, at_key = sentence * a.key_len;
        head_rows q, k, v;
        head_panel right;
        _Alignas(64) float scores[SHORT * SHORT], found[SHORT * WIDEST_HEAD];
        _Alignas(64) number attn_weights[SHORT * SHORT];
        load(a.query_len, a.width, a.query + at_query * a.query_stride + head, a.query_stride, a.phase, q);
        load(a.key_len, a.width, a.key + at_key * a.key_stride + head, a.key_stride, a.phase, k);
        load(a.key_len, a.width, a.value + at_key * a.key_stride + head, a.key_stride, NULL, v);
        pack_rows(a.key_len, a.width, k, right);
        product(columns, a.query_len, a.width / CELL, (const cell *)q, a.width / CELL, 1, right, scores);
        for (int64_t i = 0; i < a.query_len; i++) {
            const uint8_t *allowed = a.allowed ? a.allowed + sentence * a.allowed_batch + i * a.allowed_query : NULL;
            softmax(a.key_len, columns, scale, allowed, scores + i * columns, attn_weights + i * columns);
        }
        memcpy(weights + one * a.query_len * columns, attn_weights, a.query_len * columns * sizeof(number));
        pack_cells(a.key_len, a.width, v, a.width / LANES, 0, key_cells, WIDE, right);
        product(a.width, a.query_len, key_cells, (const cell *)attn_weights, columns / CELL, 1, right, found);
        store(a.query_len, a.width, found, NULL, context + at_query * a.context_stride + head, a.context_stride);
    }
}

/* Gradients by queries, keys and values, in the layout of those, from `grad_output`, the gradient by the context. */
void attention_backward(const attention *of, const number *weights, const number *grad_output, number *grad_query,
                        number *grad_key,
                        number *grad_value) {
    const attention a = *of;
    const int64_t columns = in_lanes(a.key_len);
    const int64_t query_cells = (a.query_len + CELL - 1) / CELL, key_cells = (a.key_len + CELL - 1) / CELL;
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
        _Alignas(64) number grad_scores[SHORT * SHORT];
        load(a.query_len, a.width, a.query + at_query, a.query_stride, a.phase, q);
        load(a.key_len, a.width, a.key + at_key, a.key_stride, a.phase, k);
        load(a.key_len, a.width, a.value + at_key, a.key_stride, NULL, v);
        load(a.query_len, a.width, grad_output + at_context, a.context_stride, NULL, up);
        const number *attn_weights = weights + one * a.query_len * columns;
        pack_rows(a.key_len, a.width, v, right);
        product(columns, a.query_len, a.width / CELL, (const cell *)up, a.width / CELL, 1, right, scores);
        for (int64_t i = 0; i < a.query_len * columns; i += columns) {
            vec sums = all(0.0f);
            for (int64_t j = i; j < i + columns; j += LANES) sums += get(scores + j) * get_numbers(attn_weights + j);
            const float sum = sum_of(sums);
            for (int64_t j = i; j < i + columns; j += LANES)
                put_numbers(grad_scores + j, (get(scores + j) - sum) * get_numbers(attn_weights + j) * scale);
        }
        pack_cells(a.key_len, a.width, k, a.width / LANES, 0, key_cells, WIDE, right);
        product(a.width, a.query_len, key_cells, (const cell *)grad_scores, columns / CELL, 1, right, found);
        store(a.query_len, a.width, found, a.phase, grad_query + at_query, a.query_stride);
        pack_cells(a.query_len, columns, grad_scores, columns / LANES, 0, query_cells, WIDE, left);
        pack_cells(a.query_len, a.width, q, a.width / LANES, 0, query_cells, WIDE, right);
        product(a.width, a.key_len, query_cells, left, 1, WIDE, right, found);
        store(a.key_len, a.width, found, a.phase, grad_key + at_key, a.key_stride);
        pack_cells(a.query_len, columns, attn_weights, columns / LANES, 0, query_cells, WIDE, left);
        pack_cells(a.query_len, a.width, up, a.width / LANES, 0, query_cells, WIDE, right);
        product(a.width, a.key_len, query_cells, left, 1, WIDE, right, found);
        store(a.key_len, a.width, found, NULL, grad_value + at_key, a.key_stride);
    }
}

/* ---------------------------------------------------------------------------------------------------------- loss -- */

/* The loss of each row, and its gradient in the place of the logits (`training/loss.py`): softmax - everywhere / vocab,
   less at_target at the target, and zero where the row is not real. `buffer`: a row of whole vectors for each thread. */
void cross_entropy(int64_t rows, int64_t vocab, number *logits, const int64_t *targets, const uint8_t *real,
                   float at_target, float everywhere, float *losses, float *buffer) {
#pragma omp parallel for schedule(static)
    for (int64_t row = 0; row < rows; row++) {
        number *here = logits + row * vocab;
        if (!real[row]) {
            losses[row] = 0.0f;
            memset(here, 0, vocab * sizeof(number));
            continue;
        }
        float *powers = buffer + omp_get_thread_num() * in_lanes(vocab);
        vec most = all(-INFINITY), totals = all(0.0f), sums = all(0.0f);
        for (int64_t i = 0; i < vocab; i += LANES) {
            most = larger(most, get_some(here + i, vocab - i, -INFINITY));
            totals += get_some(here + i, vocab - i, 0.0f);
        }
        const float largest = largest_of(most), right = get_some(here + targets[row], 1, 0.0f)[0];
        for (int64_t i = 0; i < vocab; i += LANES) {
            const vec power = exp_negative(get_some(here + i, vocab - i, -INFINITY) - largest);
            put(powers + i, power);
            sums += power;
        }
        const float sum = sum_of(sums), share = 1.0f / sum, less = everywhere / vocab;
        losses[row] = largest + logf(sum) - at_target * right;
        if (everywhere != 0.0f) losses[row] -= everywhere * (sum_of(totals) / vocab); /* 0 x infinity is none */
        for (int64_t i = 0; i < vocab; i += LANES) put_some(here + i, vocab - i, get(powers + i) * share - less);
        put_some(here + targets[row], 1, all(powers[targets[row]] * share - less - at_target));
    }
}
