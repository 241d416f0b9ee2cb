"""C prelude of generated files: vector types, and operations that GCC's vectors lack.

Only `stdint.h` and `math.h` are included: the header of intrinsics takes longer to compile than a
kernel. Masked loads and stores use compiler builtins where they exist; otherwise lanes are copied
one by one.
"""

from __future__ import annotations

from .machine import Machine

_HEAD = """\
#include <math.h>
#include <stdint.h>
#define TC_INLINE static inline __attribute__((always_inline, unused))
#define TC_UNROLL _Pragma("GCC unroll 16")
typedef uint16_t tc_bfloat;
"""

_HALF = """\
#ifdef __FLT16_MANT_DIG__
typedef _Float16 tc_half;
#else
typedef uint16_t tc_half;
#endif
TC_INLINE float tc_from_bfloat(tc_bfloat x) {
  union { uint32_t u; float f; } v = {(uint32_t)x << 16};
  return v.f;
}
TC_INLINE tc_bfloat tc_to_bfloat(float x) {  // to the nearest, ties to even; a NaN stays one
  union { float f; uint32_t u; } v = {x};
  if (x != x) return (tc_bfloat)((v.u >> 16) | 64);
  return (tc_bfloat)((v.u + 0x7fff + ((v.u >> 16) & 1)) >> 16);
}
"""

INTEGERS = """\
#define TC_FLOOR(T, name) \\
  TC_INLINE T tc_div_##name(T a, T b) { \\
    if (b == 0) return 0; \\
    if ((T)-1 < 0 && b == (T)-1) return (T)-a; \\
    T q = (T)(a / b); \\
    return (T)(q - (a % b != 0 && (a < 0) != (b < 0))); \\
  } \\
  TC_INLINE T tc_mod_##name(T a, T b) { \\
    if (b == 0 || ((T)-1 < 0 && b == (T)-1)) return 0; \\
    T r = (T)(a % b); \\
    return (T)(r != 0 && (r < 0) != (b < 0) ? r + b : r); \\
  }
TC_FLOOR(int8_t, int8) TC_FLOOR(int16_t, int16) TC_FLOOR(int32_t, int32) TC_FLOOR(int64_t, int64)
TC_FLOOR(uint8_t, uint8) TC_FLOOR(uint16_t, uint16) TC_FLOOR(uint32_t, uint32)
TC_FLOOR(uint64_t, uint64)
TC_INLINE float tc_mod_float32(float a, float b) {
  float r = fmodf(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
TC_INLINE double tc_mod_float64(double a, double b) {
  double r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
TC_INLINE int64_t tc_clamp(int64_t i, int64_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }
"""

# F: element, V: vector of L lanes, M: the integers of the same width as masks.
_VECTORS = """\
typedef {F} {V} __attribute__((vector_size({B})));
typedef {F} {V}u __attribute__((vector_size({B}), aligned({A}), may_alias));
typedef {I} {V}m __attribute__((vector_size({B}), may_alias));
#define {V}_iota (({V}m){{{IOTA}}})
TC_INLINE {V} {V}_select({V}m m, {V} a, {V} b) {{
  return ({V})((({V}m)a & m) | (({V}m)b & ~m));
}}
TC_INLINE {V} {V}_some(const {F} *p, long s, {V}m m, int n) {{
  {V} v = {{0}};
  for (int l = 0; l < n; ++l) if (m[l]) v[l] = p[l * s];
  return v;
}}
TC_INLINE {V} {V}_strided(const {F} *p, long s, int n) {{
  {V} v = {{0}};
  for (int l = 0; l < n; ++l) v[l] = p[l * s];
  return v;
}}
TC_INLINE void {V}_scatter({F} *p, long s, {V} v, int n) {{
  for (int l = 0; l < n; ++l) p[l * s] = v[l];
}}
TC_INLINE {F} {V}_sum({V} v) {{
  {F} s[{L}];
  __builtin_memcpy(s, &v, {B});
  for (int w = {L} / 2; w; w /= 2) for (int l = 0; l < w; ++l) s[l] += s[l + w];
  return s[0];
}}
TC_INLINE {F} {V}_product({V} v) {{
  {F} s = v[0];
  for (int l = 1; l < {L}; ++l) s *= v[l];
  return s;
}}
TC_INLINE {F} {V}_least({V} v) {{
  {F} s = v[0];
  for (int l = 1; l < {L}; ++l) s = s < v[l] ? s : v[l];
  return s;
}}
TC_INLINE {F} {V}_greatest({V} v) {{
  {F} s = v[0];
  for (int l = 1; l < {L}; ++l) s = s > v[l] ? s : v[l];
  return s;
}}
TC_INLINE {F} {V}_min1({F} a, {F} b) {{ return a < b ? a : b; }}
TC_INLINE {F} {V}_max1({F} a, {F} b) {{ return a > b ? a : b; }}
"""

_PLAIN = """\
TC_INLINE {V} {V}_load(const {F} *p, int n) {{
  {V} v = {{0}};
  __builtin_memcpy(&v, p, n * sizeof({F}));
  return v;
}}
TC_INLINE void {V}_store({F} *p, {V} v, int n) {{ __builtin_memcpy(p, &v, n * sizeof({F})); }}
TC_INLINE {V} {V}_min({V} a, {V} b) {{ return {V}_select(a < b, a, b); }}
TC_INLINE {V} {V}_max({V} a, {V} b) {{ return {V}_select(a > b, a, b); }}
"""

_AVX512 = """\
TC_INLINE {V} {V}_load(const {F} *p, int n) {{
  return __builtin_ia32_loadup{s}512_mask(p, ({V}){{0}}, ({K})((1u << n) - 1));
}}
TC_INLINE void {V}_store({F} *p, {V} v, int n) {{
  __builtin_ia32_storeup{s}512_mask(p, v, ({K})((1u << n) - 1));
}}
#ifdef __clang__
TC_INLINE {V} {V}_min({V} a, {V} b) {{ return {V}_select(a < b, a, b); }}
TC_INLINE {V} {V}_max({V} a, {V} b) {{ return {V}_select(a > b, a, b); }}
#else
TC_INLINE {V} {V}_min({V} a, {V} b) {{
  return __builtin_ia32_minp{s}512_mask(a, b, a, ({K})-1, 4);
}}
TC_INLINE {V} {V}_max({V} a, {V} b) {{
  return __builtin_ia32_maxp{s}512_mask(a, b, a, ({K})-1, 4);
}}
#endif
"""

_AVX2 = """\
TC_INLINE {V}m {V}_first(int n) {{
  {V}m m;
  for (int l = 0; l < {L}; ++l) m[l] = l < n ? -1 : 0;
  return m;
}}
TC_INLINE {V} {V}_load(const {F} *p, int n) {{
  return ({V})__builtin_ia32_maskloadp{s}256((const void *)p, (tc_mask{s}){V}_first(n));
}}
TC_INLINE void {V}_store({F} *p, {V} v, int n) {{
  __builtin_ia32_maskstorep{s}256((void *)p, (tc_mask{s}){V}_first(n), v);
}}
TC_INLINE {V} {V}_min({V} a, {V} b) {{ return __builtin_ia32_minp{s}256(a, b); }}
TC_INLINE {V} {V}_max({V} a, {V} b) {{ return __builtin_ia32_maxp{s}256(a, b); }}
"""

_AVX2_MASKS = """\
typedef int tc_masks __attribute__((vector_size(32)));
typedef long long tc_maskd __attribute__((vector_size(32)));
"""

_TRANSPOSE = """\
// Transposes an L by L block in log2(L) rounds of interleaving.
TC_INLINE void tc_transpose(const float *p, long s, float *q, long r) {{
  vf a[{L}], b[{L}];
  TC_UNROLL for (int i = 0; i < {L}; ++i) a[i] = *(const vfu *)(p + i * s);
  TC_UNROLL for (int round = 1; round < {L}; round *= 2) {{
    TC_UNROLL for (int i = 0; i < {L} / 2; ++i) {{
      b[2 * i] = __builtin_shufflevector(a[i], a[i + {L} / 2], {LOW});
      b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + {L} / 2], {HIGH});
    }}
    TC_UNROLL for (int i = 0; i < {L}; ++i) a[i] = b[i];
  }}
  TC_UNROLL for (int i = 0; i < {L}; ++i) *(vfu *)(q + i * r) = a[i];
}}
"""


# Vectors of float32 whose lanes lie in memory as 16-bit floats. T: the type there, N: its name.
_STORED_HALVES = """\
typedef uint16_t tc_words __attribute__((vector_size({H})));
typedef uint16_t tc_wordsu __attribute__((vector_size({H}), aligned(2), may_alias));
typedef uint32_t vfw __attribute__((vector_size({B})));
TC_INLINE vf vf_from_bfloat(tc_words x) {{
  return (vf)(__builtin_convertvector(x, vfw) << 16);
}}
TC_INLINE tc_words vf_to_bfloat(vf x) {{
  vfw u = (vfw)x, is_nan = (vfw)(x != x);
  vfw r = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
  r = (r & ~is_nan) | (((u >> 16) | 64) & is_nan);
  return __builtin_convertvector(r, tc_words);
}}
TC_INLINE tc_words vf_narrow_bfloat(vf x) {{  // of lanes that are rounded
  return __builtin_convertvector((vfw)x >> 16, tc_words);
}}
{CONVERSIONS}
#define vf_narrow_half vf_to_half
#define TC_STORED(T, N) \\
  TC_INLINE vf vf_round_##N(vf x) {{ return vf_from_##N(vf_to_##N(x)); }} \\
  TC_INLINE vf vf_##N##_whole(const T *p) {{ return vf_from_##N(*(const tc_wordsu *)p); }} \\
  TC_INLINE vf vf_##N##_load(const T *p, int n) {{ \\
    tc_words w = {{0}}; \\
    __builtin_memcpy(&w, p, n * 2); \\
    return vf_from_##N(w); \\
  }} \\
  TC_INLINE vf vf_##N##_some(const T *p, long s, vfm m, int n) {{ \\
    tc_words w = {{0}}; \\
    for (int l = 0; l < n; ++l) if (m[l]) __builtin_memcpy((char *)&w + 2 * l, p + l * s, 2); \\
    return vf_from_##N(w); \\
  }} \\
  TC_INLINE vf vf_##N##_strided(const T *p, long s, int n) {{ \\
    tc_words w = {{0}}; \\
    for (int l = 0; l < n; ++l) __builtin_memcpy((char *)&w + 2 * l, p + l * s, 2); \\
    return vf_from_##N(w); \\
  }} \\
  TC_INLINE void vf_##N##_put(T *p, vf v) {{ *(tc_wordsu *)p = vf_narrow_##N(v); }} \\
  TC_INLINE void vf_##N##_store(T *p, vf v, int n) {{ \\
    tc_words w = vf_narrow_##N(v); \\
    __builtin_memcpy(p, &w, n * 2); \\
  }} \\
  TC_INLINE void vf_##N##_scatter(T *p, long s, vf v, int n) {{ \\
    tc_words w = vf_narrow_##N(v); \\
    for (int l = 0; l < n; ++l) __builtin_memcpy(p + l * s, (char *)&w + 2 * l, 2); \\
  }}
TC_STORED(tc_bfloat, bfloat)
TC_STORED(tc_half, half)
"""

_HALVES_BY_LANES = """\
typedef tc_half tc_halves __attribute__((vector_size({H})));
TC_INLINE vf vf_from_half(tc_words x) {{ return __builtin_convertvector((tc_halves)x, vf); }}
TC_INLINE tc_words vf_to_half(vf x) {{ return (tc_words)__builtin_convertvector(x, tc_halves); }}"""

# GCC 12 converts such vectors lane by lane unless the code names the instruction.
_HALVES_BY_INSTRUCTION = """\
#if defined(__F16C__) && !defined(__clang__)
typedef short tc_shorts __attribute__((vector_size({H})));
TC_INLINE vf vf_from_half(tc_words x) {{ return {FROM}; }}
TC_INLINE tc_words vf_to_half(vf x) {{ return (tc_words){TO}; }}
#else
{LANES}
#endif"""

_HALF_INSTRUCTIONS = {
    "avx512": (
        "__builtin_ia32_vcvtph2ps512_mask((tc_shorts)x, (vf){0}, (unsigned short)-1, 4)",
        "__builtin_ia32_vcvtps2ph512_mask(x, 4, (tc_shorts){0}, (unsigned short)-1)",
    ),
    "avx2": (
        "__builtin_ia32_vcvtph2ps256((tc_shorts)x)",
        "__builtin_ia32_vcvtps2ph256(x, 4)",
    ),
}


def prelude(machine: Machine) -> str:
    """Return the C prelude for a machine."""
    parts = [_HEAD, _HALF, INTEGERS]
    if machine.isa == "avx2":
        parts.append(_AVX2_MASKS)
    for name, element, integer, size, suffix in (
        ("vf", "float", "int32_t", 4, "s"),
        ("vd", "double", "int64_t", 8, "d"),
    ):
        lanes = machine.lanes(size)
        words = {
            "F": element,
            "V": name,
            "I": integer,
            "B": machine.vector_bytes,
            "A": size,
            "L": lanes,
            "s": suffix,
            "IOTA": ", ".join(map(str, range(lanes))),
            "K": "unsigned short" if size == 4 else "unsigned char",
        }
        kind = {"avx512": _AVX512, "avx2": _AVX2}.get(machine.isa, _PLAIN)
        parts.append((_VECTORS + kind).format(**words))
    parts += [_stored_halves(machine), transpose(machine)]
    return "".join(parts)


def _stored_halves(machine: Machine) -> str:
    """Return C functions that load and store float32 vectors as 16-bit floats."""
    sizes = {"H": machine.vector_bytes // 2, "B": machine.vector_bytes}
    conversions = _HALVES_BY_LANES.format(**sizes)
    if machine.isa in _HALF_INSTRUCTIONS:
        up, down = _HALF_INSTRUCTIONS[machine.isa]
        conversions = _HALVES_BY_INSTRUCTION.format(**sizes, FROM=up, TO=down, LANES=conversions)
    return _STORED_HALVES.format(**sizes, CONVERSIONS=conversions)


def transpose(machine: Machine) -> str:
    """Return a C function that transposes a square block with one row per lane."""
    lanes = machine.lanes(4)
    low = ", ".join(f"{lane}, {lane + lanes}" for lane in range(lanes // 2))
    high = ", ".join(f"{lane}, {lane + lanes}" for lane in range(lanes // 2, lanes))
    return _TRANSPOSE.format(L=lanes, LOW=low, HIGH=high)
