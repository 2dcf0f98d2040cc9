/** OIP, Tensor Data Types, with their sizes in bytes; BF16 is named in the text, not in the table. */
enum Datatype {
    BOOL(1), UINT8(1), UINT16(2), UINT32(4), UINT64(8), INT8(1), INT16(2), INT32(4), INT64(8),
    FP16(2), BF16(2), FP32(4), FP64(8), BYTES(0);

    final int size;
    final boolean integral = name().contains("INT");
    final boolean signed = name().startsWith("INT");

    Datatype(int size) {
        this.size = size;
    }

    /**
     * No: "fp16 and bf16 are problematic to communicate explicitly since there is not a standard
     * fp16/bf16 representation" (OIP), FP16 "lacks proper JSON representation" (KServe).
     */
    boolean hasJson() {
        return this != FP16 && this != BF16;
    }
}
