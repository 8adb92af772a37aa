// Coefficients of the math library. Written by ir/loop/math/fit.py; do not edit.
#pragma once

// clang-format off
namespace backcast::loop {

// (e^r - 1 - r) / r^2, |r| <= ln(2)/2
inline constexpr double kExp32[] = {0x1.fffffe0000000p-2, 0x1.5554a80000000p-3, 0x1.55565a0000000p-5, 0x1.122df60000000p-7, 0x1.6c15260000000p-10};
// (log((1+s)/(1-s)) - 2s) / s^3 over s^2, |s| <= 3 - 2 sqrt(2)
inline constexpr double kLog32[] = {0x1.55557a0000000p-1, 0x1.995ec80000000p-2, 0x1.31e2f20000000p-2};
// ((log((1+s)/(1-s)) - 2s) / s^3 - 2/3) / s^2 over s^2
inline constexpr double kPow32[] = {0x1.999a000000000p-2, 0x1.2452780000000p-2, 0x1.dfa3ca0000000p-3};
// (sin r - r) / r^3 over r^2, |r| <= pi/4
inline constexpr double kSin32[] = {-0x1.5555440000000p-3, 0x1.1106ba0000000p-7, -0x1.9915420000000p-13};
// (cos r - 1 + r^2/2) / r^4 over r^2, |r| <= pi/4
inline constexpr double kCos32[] = {0x1.55554a0000000p-5, -0x1.6c0c140000000p-10, 0x1.99de6a0000000p-16};
// (atan t - t) / t^3 over t^2, |t| <= tan(pi/8)
inline constexpr double kAtan32[] = {-0x1.55554a0000000p-2, 0x1.9991e60000000p-3, -0x1.23ba060000000p-3, 0x1.b22a6e0000000p-4, -0x1.f303b60000000p-5};
// (asin t - t) / t^3 over t^2, |t| <= 1/2
inline constexpr double kAsin32[] = {0x1.5555ca0000000p-3, 0x1.3301620000000p-4, 0x1.748b780000000p-5, 0x1.8ba4920000000p-6, 0x1.59dd660000000p-5};
// (sinh x - x) / x^3 over x^2, |x| <= 1
inline constexpr double kSinh32[] = {0x1.5555560000000p-3, 0x1.1110e20000000p-7, 0x1.a021560000000p-13, 0x1.75a6f60000000p-19};
// 2 (1 - sqrt(erfc(x)))/x - 1, 0 <= x <= 3.95
inline constexpr double kErf32[] = {0x1.06eba80000000p-3, 0x1.45f2fa0000000p-2, -0x1.92810a0000000p-3, -0x1.5e8a360000000p-4, 0x1.1139be0000000p-5, 0x1.e4e8c60000000p-7, -0x1.4939640000000p-8, -0x1.3e5cda0000000p-10, -0x1.3406820000000p-13, 0x1.6b18b40000000p-11, -0x1.42dbea0000000p-12, 0x1.0b537e0000000p-14, -0x1.c183e00000000p-18, 0x1.37de5c0000000p-22};
// ln 2, high part short and the rest
inline constexpr double kLn232[] = {0x1.62e0000000000p-1, 0x1.0bfbe80000000p-15};
// 1 / ln 2, nearest and the rest
inline constexpr double kLog2e32[] = {0x1.7154760000000p+0, 0x1.4ae0c00000000p-26};
// 2/3, nearest and the rest
inline constexpr double kTwoThirds32[] = {0x1.5555560000000p-1, -0x1.5555560000000p-26};
// ln 2, nearest and the rest
inline constexpr double kLn2Full32[] = {0x1.62e4300000000p-1, -0x1.05c6100000000p-29};
// pi/2, nearest and twice the rest
inline constexpr double kHalfPi32[] = {0x1.921fb60000000p+0, -0x1.777a5c0000000p-25, -0x1.ee59da0000000p-50};
// pi/2 in parts of 8 bits and the rest
inline constexpr double kHalfPiParts32[] = {0x1.9200000000000p+0, 0x1.e000000000000p-12, 0x1.b400000000000p-16, 0x1.4400000000000p-24, 0x1.0800000000000p-34, 0x1.a000000000000p-41, 0x1.84698a0000000p-48};

// (e^r - 1 - r) / r^2, |r| <= ln(2)/2
inline constexpr double kExp64[] = {0x1.0000000000005p-1, 0x1.555555555553ap-3, 0x1.5555555551daap-5, 0x1.1111111118445p-7, 0x1.6c16c1803e85bp-10, 0x1.a01a017c64f40p-13, 0x1.a019a30ee59e9p-16, 0x1.71de6f82bd2a7p-19, 0x1.28a664c4067c2p-22, 0x1.ae9fc751c39d4p-26};
// (log((1+s)/(1-s)) - 2s) / s^3 over s^2, |s| <= 3 - 2 sqrt(2)
inline constexpr double kLog64[] = {0x1.5555555555593p-1, 0x1.999999997f9f4p-2, 0x1.249249422aa07p-2, 0x1.c71c51d76e8adp-3, 0x1.746649c771a9ep-3, 0x1.39a092c53bfa3p-3, 0x1.2f119eb12ff91p-3};
// ((log((1+s)/(1-s)) - 2s) / s^3 - 2/3) / s^2 over s^2
inline constexpr double kPow64[] = {0x1.9999999999b34p-2, 0x1.2492492457589p-2, 0x1.c71c722e1d22fp-3, 0x1.745ce9a244e86p-3, 0x1.3b1ef8327cd3dp-3, 0x1.0f7ec4ed55fc0p-3, 0x1.0e4d9cec21f5ap-3};
// (sin r - r) / r^3 over r^2, |r| <= pi/4
inline constexpr double kSin64[] = {-0x1.5555555555547p-3, 0x1.111111110f579p-7, -0x1.a01a019bade3bp-13, 0x1.71de351e95263p-19, -0x1.ae5e1e9d05807p-26, 0x1.5d7dc5f83440dp-33};
// (cos r - 1 + r^2/2) / r^4 over r^2, |r| <= pi/4
inline constexpr double kCos64[] = {0x1.5555555555549p-5, -0x1.6c16c16c14bcfp-10, 0x1.a01a019c24ec6p-16, -0x1.27e4f7a4eb966p-22, 0x1.1ee9a7a69bff1p-29, -0x1.8f8b72d41d4bep-37};
// (atan t - t) / t^3 over t^2, |t| <= tan(pi/8)
inline constexpr double kAtan64[] = {-0x1.5555555555554p-2, 0x1.9999999999583p-3, -0x1.249249246f49fp-3, 0x1.c71c71b44eb28p-4, -0x1.745d144e873abp-4, 0x1.3b1364c2cc205p-4, -0x1.110be89a3a1b6p-4, 0x1.e1678007dcf6cp-5, -0x1.ab3a688a907bcp-5, 0x1.6fde916065083p-5, -0x1.0fc684c72e59fp-5, 0x1.e81180fbdc220p-7};
// (asin t - t) / t^3 over t^2, |t| <= 1/2
inline constexpr double kAsin64[] = {0x1.5555555555578p-3, 0x1.333333332df02p-4, 0x1.6db6db722c336p-5, 0x1.f1c71a8b576cdp-6, 0x1.6e8bdfed7dafdp-6, 0x1.1c49dd908c31bp-6, 0x1.ca214e012091fp-7, 0x1.757743d9a58ebp-7, 0x1.618c374c58f69p-7, 0x1.e14656a126df6p-9, 0x1.6507f46eb98dcp-6, -0x1.59fe6b36caf30p-6, 0x1.0be6bad0de90ep-5};
// (sinh x - x) / x^3 over x^2, |x| <= 1
inline constexpr double kSinh64[] = {0x1.5555555555556p-3, 0x1.1111111111020p-7, 0x1.a01a01a036c6cp-13, 0x1.71de3a3b6a090p-19, 0x1.ae646f983f9f0p-26, 0x1.61171cbe2d3f4p-33, 0x1.b5bb88b9dc431p-41};
// log(erfc(x))/x + 1, 0 <= x <= 5.95
inline constexpr double kErf64[] = {-0x1.06eba8214db69p-3, -0x1.45f306dc9c881p-1, -0x1.a4f4e2a1b4ee7p-4, 0x1.3966859510d8bp-6, 0x1.b6b6834375a76p-13, -0x1.bca67277d9f11p-10, 0x1.3564e4574af5ap-11, -0x1.b1f58629b73a5p-16, -0x1.0ea7e79e7897bp-14, 0x1.f41a7db52136ap-16, -0x1.dd0f6fb47384dp-19, -0x1.617133309945dp-19, 0x1.983f768f7f3b5p-20, -0x1.312c4ceb6cfebp-23, -0x1.27f969cfc48c6p-22, 0x1.dcb89e9d77dd0p-23, -0x1.bcd2b86a424d4p-24, 0x1.30a7c3e62f8a2p-25, -0x1.4662d80c0c853p-27, 0x1.17231d8bfa7a4p-29, -0x1.7de58d8c71045p-32, 0x1.9dc6f8b5750f0p-35, -0x1.5b9a86d8d4bf6p-38, 0x1.b4db17e2965fdp-42, -0x1.826e0d012539bp-46, 0x1.acf880a3a444bp-51, -0x1.c1497b5bc285fp-57};
// ln 2, high part short and the rest
inline constexpr double kLn264[] = {0x1.62e42fefa3000p-1, 0x1.3de6af278ece6p-42};
// 1 / ln 2, nearest and the rest
inline constexpr double kLog2e64[] = {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};
// 2/3, nearest and the rest
inline constexpr double kTwoThirds64[] = {0x1.5555555555555p-1, 0x1.5555555555555p-55};
// ln 2, nearest and the rest
inline constexpr double kLn2Full64[] = {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
// pi/2, nearest and twice the rest
inline constexpr double kHalfPi64[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110};
// pi/2 in parts of 36 bits and the rest
inline constexpr double kHalfPiParts64[] = {0x1.921fb54440000p+0, 0x1.68c234c400000p-39, 0x1.8cc51701a0000p-72, 0x1.839a252049c11p-108};

}  // namespace backcast::loop
