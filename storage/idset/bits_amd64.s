#include "textflag.h"

// func commonBitsWide(a, b *[1024]uint64) int
//
// 32 rounds of four times 8 words, each quarter with a sum of its own in Z4 to Z7.
TEXT ·commonBitsWide(SB), NOSPLIT, $0-24
	MOVQ a+0(FP), SI
	MOVQ b+8(FP), DI
	MOVQ $32, CX
	VPXORQ Z4, Z4, Z4
	VPXORQ Z5, Z5, Z5
	VPXORQ Z6, Z6, Z6
	VPXORQ Z7, Z7, Z7

round:
	VMOVDQU64 0(SI), Z0
	VPANDQ    0(DI), Z0, Z0
	VPOPCNTQ  Z0, Z0
	VPADDQ    Z0, Z4, Z4
	VMOVDQU64 64(SI), Z1
	VPANDQ    64(DI), Z1, Z1
	VPOPCNTQ  Z1, Z1
	VPADDQ    Z1, Z5, Z5
	VMOVDQU64 128(SI), Z2
	VPANDQ    128(DI), Z2, Z2
	VPOPCNTQ  Z2, Z2
	VPADDQ    Z2, Z6, Z6
	VMOVDQU64 192(SI), Z3
	VPANDQ    192(DI), Z3, Z3
	VPOPCNTQ  Z3, Z3
	VPADDQ    Z3, Z7, Z7
	ADDQ $256, SI
	ADDQ $256, DI
	DECQ CX
	JNZ  round

	// One sum of the four, and of the eight words in it.
	VPADDQ        Z5, Z4, Z4
	VPADDQ        Z7, Z6, Z6
	VPADDQ        Z6, Z4, Z4
	VEXTRACTI64X4 $1, Z4, Y0
	VPADDQ        Y0, Y4, Y4
	VEXTRACTI128  $1, Y4, X0
	VPADDQ        X0, X4, X4
	VPSRLDQ       $8, X4, X0
	VPADDQ        X0, X4, X4
	VMOVQ         X4, AX
	VZEROUPPER
	MOVQ AX, ret+16(FP)
	RET
