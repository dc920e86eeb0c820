# Compiles a kernel for the oldest and the newest architectures, with either assembler. It needs
# neither a device nor a driver. The argument is the directory that contains the package.
import sys

sys.path.insert(0, sys.argv[1])

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def double(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


source = ASTSource(
    fn=double,
    signature={"x": "*fp32", "n": "i32", "BLOCK": "constexpr"},
    constexprs={"BLOCK": 128},
)
for architecture in (80, 90, 100):
    made = triton.compile(source, target=GPUTarget("cuda", architecture, 32)).asm
    assert ".entry double" in made["ptx"] and made["cubin"].startswith(b"\x7fELF")
print("compiled")
