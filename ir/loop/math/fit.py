#!/usr/bin/env python3
"""Derives every coefficient of the math library and prints ../math_coefficients.h.

Polynomials are weighted minimax fits (Remez exchange in 50 digits), so that the error that counts is
the relative error of the whole function. Coefficients are rounded to the target's precision one after
the other, lowest power first, and the remaining ones are fitted again around what was rounded.
Needs mpmath.   ./fit.py > ../math_coefficients.h     (the achieved errors go to stderr)
"""
import sys
from mpmath import mp, mpf, cos, pi, exp, expm1, log, sin, atan, asin, erf, erfc, sinh, sqrt, ln

mp.dps = 50


def round_to(value, bits):
    """Nearest number with `bits` significant bits."""
    value = mpf(value)
    if value == 0:
        return value
    _, exponent = mp.frexp(value)
    scale = mpf(2) ** (bits - exponent)
    return mp.nint(value * scale) / scale


def cut(value, lsb):
    """Truncates towards minus infinity to a multiple of 2^lsb."""
    return mp.floor(value * mpf(2) ** -lsb) / mpf(2) ** -lsb


def remez(f, weight, lo, hi, powers):
    """Coefficients c of sum(c_k x^k) minimising max |(f - sum) * weight| on [lo, hi]; the maximum."""
    n = len(powers)
    nodes = [(lo + hi) / 2 - (hi - lo) / 2 * cos(pi * (2 * i + 1) / (2 * (n + 1))) for i in range(n + 1)]
    grid = [(lo + hi) / 2 - (hi - lo) / 2 * cos(pi * (i + mpf(1) / 2) / 400) for i in range(400)]
    f_grid = [(x, f(x), weight(x)) for x in grid]
    for _ in range(8):
        a = mp.matrix(n + 1, n + 1)
        b = mp.matrix(n + 1, 1)
        for row, x in enumerate(nodes):
            for col, p in enumerate(powers):
                a[row, col] = x ** p
            a[row, n] = (-1) ** row / weight(x)
            b[row] = f(x)
        solution = mp.lu_solve(a, b)
        c = [solution[i] for i in range(n)]
        error = [(fx - sum(ck * x ** p for ck, p in zip(c, powers))) * w for x, fx, w in f_grid]
        # One extremum per run of equal signs.
        extrema, best = [], 0
        for i in range(1, len(error)):
            if error[i] * error[best] < 0:
                extrema.append(best)
                best = i
            elif abs(error[i]) > abs(error[best]):
                best = i
        extrema.append(best)
        worst = max(abs(e) for e in error)
        while len(extrema) > n + 1:  # drop the smaller end
            extrema.pop(0 if abs(error[extrema[0]]) < abs(error[extrema[-1]]) else -1)
        if len(extrema) < n + 1 or worst < abs(solution[n]) * mpf("1.02"):
            break
        nodes = [grid[i] for i in extrema]
    return c, worst


def fit(name, f, weight, lo, hi, terms, bits):
    """Rounded coefficients, lowest power first: the better of rounding all at once and one by one."""
    lo, hi = mpf(lo), mpf(hi)
    points = [lo + (hi - lo) * mpf(2 * i + 1) / 2000 for i in range(1000)]
    samples = [(x, f(x), weight(x)) for x in points]

    def worst(c):
        return max(abs((fx - mp.polyval(c[::-1], x)) * w) for x, fx, w in samples)

    ideal, bound = remez(f, weight, lo, hi, list(range(terms)))
    best = [round_to(c, bits) for c in ideal]
    if lo > 0:  # powers from x up are a Haar system on one side of 0 only
        done = []
        for k in range(terms):
            def rest(x, done=tuple(done)):
                return f(x) - sum(c * x ** i for i, c in enumerate(done))
            done.append(round_to(remez(rest, weight, lo, hi, list(range(k, terms)))[0][0], bits))
        best = min(best, done, key=worst)
    print(f"{name:6} {terms:2} terms, minimax 2^{float(log(bound, 2)):.1f},"
          f" rounded 2^{float(log(worst(best), 2)):.1f}", file=sys.stderr)
    return best


def emit(name, values, comment=None):
    if comment:
        print(f"// {comment}")
    text = ", ".join(float(v).hex().replace("0x1.0000000000000p", "0x1p") for v in values)
    print(f"inline constexpr double {name}[] = {{{text}}};")


tiny = mpf(10) ** -12


def z_fit(f, power):
    """f(x)/x^power as a function of z = x^2."""
    return lambda z: f(sqrt(z)) / sqrt(z) ** power


def fit_all(suffix, bits, n):
    r = ln(2) / 2 * mpf("1.01")
    emit(f"kExp{suffix}", fit("exp", lambda x: (expm1(x) - x) / x ** 2,
                              lambda x: abs(x ** 2 / expm1(x)) + mpf("1e-4"), -r, r * mpf("1.003"), n["exp"], bits),
         "(e^r - 1 - r) / r^2, |r| <= ln(2)/2")
    s = mpf("0.1717")
    emit(f"kLog{suffix}", fit("log", z_fit(lambda x: 2 * mp.atanh(x) - 2 * x, 3),
                              lambda z: z / 2, tiny, s * s, n["log"], bits),
         "(log((1+s)/(1-s)) - 2s) / s^3 over s^2, |s| <= 3 - 2 sqrt(2)")
    emit(f"kPow{suffix}", fit("pow", lambda z: ((2 * mp.atanh(sqrt(z)) / sqrt(z) - 2) / z
                                                - mpf(2) / 3) / z,
                              lambda z: z * z / 2, mpf(10) ** -8, s * s, n["pow"], bits),
         "((log((1+s)/(1-s)) - 2s) / s^3 - 2/3) / s^2 over s^2")
    q = (pi / 4 * mpf("1.01")) ** 2
    emit(f"kSin{suffix}", fit("sin", z_fit(lambda x: sin(x) - x, 3), lambda z: z, tiny, q,
                              n["sin"], bits), "(sin r - r) / r^3 over r^2, |r| <= pi/4")
    emit(f"kCos{suffix}", fit("cos", z_fit(lambda x: cos(x) - 1 + x * x / 2, 4),
                              lambda z: z * z / cos(sqrt(z)), tiny, q, n["cos"], bits),
         "(cos r - 1 + r^2/2) / r^4 over r^2, |r| <= pi/4")
    t = mpf("0.4143") ** 2
    emit(f"kAtan{suffix}", fit("atan", z_fit(lambda x: atan(x) - x, 3), lambda z: z, tiny, t,
                               n["atan"], bits), "(atan t - t) / t^3 over t^2, |t| <= tan(pi/8)")
    emit(f"kAsin{suffix}", fit("asin", z_fit(lambda x: asin(x) - x, 3), lambda z: z, tiny,
                               mpf("0.2501"), n["asin"], bits),
         "(asin t - t) / t^3 over t^2, |t| <= 1/2")
    emit(f"kSinh{suffix}", fit("sinh", z_fit(lambda x: sinh(x) - x, 3), lambda z: z, tiny, mpf(1),
                               n["sinh"], bits), "(sinh x - x) / x^3 over x^2, |x| <= 1")
    end = n["erf_end"]
    if bits == 24:
        value, weight = lambda x: 2 * (1 - sqrt(erfc(x))) / x - 1, lambda x: x * sqrt(erfc(x)) / erf(x)
    else:
        value, weight = lambda x: log(erfc(x)) / x + 1, lambda x: x * erfc(x) / erf(x)
    emit(f"kErf{suffix}", fit("erf", value, weight, tiny, mpf(end), n["erf"], bits),
         f"{'2 (1 - sqrt(erfc(x)))/x - 1' if bits == 24 else 'log(erfc(x))/x + 1'}, 0 <= x <= {end}")


def constants(suffix, bits, ln2_hi_lsb, part_bits, parts):
    """ln2 = hi + lo, with n * hi exact; pi/2 in parts of `part_bits` bits, n * part exact."""
    hi = cut(ln(2), ln2_hi_lsb)
    emit(f"kLn2{suffix}", [hi, round_to(ln(2) - hi, bits)], "ln 2, high part short and the rest")
    inv = 1 / ln(2)
    hi = round_to(inv, bits)
    emit(f"kLog2e{suffix}", [hi, round_to(inv - hi, bits)], "1 / ln 2, nearest and the rest")
    hi = round_to(mpf(2) / 3, bits)
    emit(f"kTwoThirds{suffix}", [hi, round_to(mpf(2) / 3 - hi, bits)], "2/3, nearest and the rest")
    hi = round_to(ln(2), bits)
    emit(f"kLn2Full{suffix}", [hi, round_to(ln(2) - hi, bits)], "ln 2, nearest and the rest")
    hi = round_to(pi / 2, bits)
    mid = round_to(pi / 2 - hi, bits)
    emit(f"kHalfPi{suffix}", [hi, mid, round_to(pi / 2 - hi - mid, bits)],
         "pi/2, nearest and twice the rest")
    rest, values = pi / 2, []
    for i in range(parts):
        part = cut(rest, -(part_bits - 1) - part_bits * i)
        values.append(part)
        rest -= part
    values.append(round_to(rest, bits))
    emit(f"kHalfPiParts{suffix}", values, f"pi/2 in parts of {part_bits} bits and the rest")


print("""// Coefficients of the math library. Written by ir/loop/math/fit.py; do not edit.
#pragma once

// clang-format off
namespace backcast::loop {
""")
fit_all("32", 24, dict(exp=5, log=3, pow=3, sin=3, cos=3, atan=5, asin=5, sinh=4, erf=14,
                       erf_end="3.95"))
constants("32", 24, -14, 8, 6)
print()
fit_all("64", 53, dict(exp=10, log=7, pow=7, sin=6, cos=6, atan=12, asin=13, sinh=7, erf=27,
                       erf_end="5.95"))
constants("64", 53, -41, 36, 3)
print("""
}  // namespace backcast::loop""")
