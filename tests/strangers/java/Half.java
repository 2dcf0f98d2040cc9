/** The 16-bit floating-point datatypes; conversions to them round to nearest, ties to even. */
final class Half {
    static float fromFp16(short half) {
        int sign = (half & 0x8000) << 16;
        int exponent = half >>> 10 & 0x1f;
        int fraction = half & 0x3ff;
        if (exponent == 0) return Float.intBitsToFloat(sign | Float.floatToRawIntBits(fraction * 0x1p-24f));
        return Float.intBitsToFloat(sign | (exponent == 0x1f ? 0xff : exponent + 112) << 23 | fraction << 13);
    }

    static short toFp16(float value) {
        int bits = Float.floatToRawIntBits(value);
        int sign = bits >>> 16 & 0x8000;
        int magnitude = bits & 0x7fffffff;
        int half;
        if (magnitude > 0x7f800000) half = 0x7e00 | magnitude >>> 13 & 0x3ff;   // NaN stays NaN
        else if (magnitude >= 0x477ff000) half = 0x7c00;                        // 65520 and above
        else if (magnitude < 0x38800000)                                        // below 2^-14: subnormal;
            // the spacing of FP32 above 0.5 is that of FP16 subnormals, so the addition rounds
            half = Float.floatToRawIntBits(Float.intBitsToFloat(magnitude) + 0.5f) - 0x3f000000;
        else half = magnitude - (112 << 23) + 0xfff + (magnitude >>> 13 & 1) >>> 13;
        return (short) (sign | half);
    }

    static float fromBf16(short half) {
        return Float.intBitsToFloat(half << 16);
    }

    static short toBf16(float value) {
        int bits = Float.floatToRawIntBits(value);
        return (short) (Float.isNaN(value) ? bits >>> 16 | 0x40 : bits + 0x7fff + (bits >>> 16 & 1) >>> 16);
    }
}
