//! Event counts of a launch.
//!
//! Instructions are those of the PTX, before `ptxas` optimises them. Floating-point operations are
//! those that the hardware executes for them (`arithmetic`). Memory traffic is computed from the
//! addresses. All counts depend only on the program and its data, so they are the same in every run
//! and on every machine. The only exception is a loop that waits for another block, whose number of
//! iterations varies.

mod arithmetic;
mod each;
mod fold;
mod traffic;

pub(crate) use each::{Accesses, of_instructions};
pub use each::{INSTRUCTION_VALUES, InstructionCounts};
pub(crate) use fold::Executed;
pub(crate) use traffic::{Traffic, distinct, turns, wavefronts};

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Event counts of one launch.
        ///
        /// Every field is a sum over blocks, so it does not depend on the order in which blocks
        /// run.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Counts {
            /// Adds the counts of another launch, or of another worker.
            pub fn add(&mut self, other: &Counts) {
                $(self.$name += other.$name;)*
            }

            /// Returns all counts with their names, in the order of the fields.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

counts! {
    /// Number of instructions issued, counted once per warp.
    warp_instructions,
    /// Number of instructions executed, counted once per thread whose guard was true.
    thread_instructions,
    /// Number of active threads at the issued instructions, whether or not the guard was true.
    active_threads,
    /// Instructions for integer arithmetic, comparison and logic, counted once per warp.
    warp_integer,
    /// Instructions for f16 and bf16 arithmetic, counted once per warp.
    warp_fp16,
    /// Instructions for f32 arithmetic, counted once per warp.
    warp_fp32,
    /// Instructions for f64 arithmetic, counted once per warp.
    warp_fp64,
    /// Instructions for approximated functions (`ex2`, `rsqrt`, `sin`, …), counted once per warp.
    warp_special,
    /// Conversion instructions, counted once per warp.
    warp_conversion,
    /// Moves, selections, reads of special registers, and address conversions between state spaces,
    /// counted once per warp.
    warp_move,
    /// Branches, calls, returns and exits, counted once per warp.
    warp_control,
    /// Loads, stores and copies, counted once per warp.
    warp_memory,
    /// Atomics and reductions on memory, counted once per warp.
    warp_atomic,
    /// Shuffles, votes, matches and reductions within a warp, counted once per warp.
    warp_exchange,
    /// Barriers and fences, counted once per warp.
    warp_synchronisation,
    /// Matrix instructions, counted once per warp.
    warp_tensor,
    /// Instructions for integer arithmetic, comparison and logic, counted once per thread.
    thread_integer,
    /// Instructions for f16 and bf16 arithmetic, counted once per thread.
    thread_fp16,
    /// Instructions for f32 arithmetic, counted once per thread.
    thread_fp32,
    /// Instructions for f64 arithmetic, counted once per thread.
    thread_fp64,
    /// Instructions for approximated functions, counted once per thread.
    thread_special,
    /// Conversion instructions, counted once per thread.
    thread_conversion,
    /// Moves, selections, reads of special registers, and address conversions between state spaces,
    /// counted once per thread.
    thread_move,
    /// Branches, calls, returns and exits, counted once per thread.
    thread_control,
    /// Loads, stores and copies, counted once per thread.
    thread_memory,
    /// Atomics and reductions on memory, counted once per thread.
    thread_atomic,
    /// Shuffles, votes, matches and reductions within a warp, counted once per thread.
    thread_exchange,
    /// Barriers and fences, counted once per thread.
    thread_synchronisation,
    /// Matrix instructions, counted once per thread.
    thread_tensor,
    /// f32 additions and subtractions executed by threads, including those in divisions and similar
    /// operations.
    fadd,
    /// f32 multiplications executed by threads, including those in divisions and similar
    /// operations.
    fmul,
    /// f32 fused multiply-adds executed by threads, including those in divisions and similar
    /// operations; each is two operations.
    ffma,
    /// f64 additions and subtractions executed by threads, including those in divisions and similar
    /// operations.
    dadd,
    /// f64 multiplications executed by threads, including those in divisions and similar
    /// operations.
    dmul,
    /// f64 fused multiply-adds executed by threads, including those in divisions and similar
    /// operations; each is two operations.
    dfma,
    /// f16 instructions executed by threads that add or subtract, on single numbers or pairs, and
    /// conversions of f16 to f32, which are additions in hardware.
    hadd,
    /// f16 and bf16 instructions executed by threads that multiply, on single numbers or pairs.
    hmul,
    /// f16 and bf16 instructions executed by threads that multiply and add, on single numbers or
    /// pairs. Additions of bf16 are multiply-adds in hardware.
    hfma,
    /// Operations on f16 and bf16 numbers, outside matrix instructions.
    half_ops,
    /// Operations (multiplications and additions) of matrix instructions on f16 and bf16.
    tensor_half_ops,
    /// Operations of matrix instructions on tf32.
    tensor_tf32_ops,
    /// Operations of matrix instructions on f64.
    tensor_double_ops,
    /// Operations of matrix instructions on 8-bit floats.
    tensor_fp8_ops,
    /// Operations of matrix instructions on integers and bits.
    tensor_integer_ops,
    /// Branch instructions executed by warps, taken or not.
    branches,
    /// Branches at which the lanes of a warp diverged.
    divergent_branches,
    /// Barrier instructions, counted once per warp.
    barriers,
    /// Loads from global memory, counted once per warp.
    global_load_requests,
    /// Number of 32-byte sectors that loads from global memory touch, each counted once per load.
    global_load_sectors,
    /// Number of sectors that loads from global memory would touch if their threads used adjacent
    /// addresses.
    global_load_ideal_sectors,
    /// Bytes that threads requested with loads from global memory.
    global_load_bytes,
    /// Number of 128-byte lines that loads from global memory touch, each counted once per load.
    global_load_lines,
    /// Stores to global memory, counted once per warp.
    global_store_requests,
    /// Number of 32-byte sectors that stores to global memory touch, each counted once per store.
    global_store_sectors,
    /// Number of sectors that stores to global memory would touch if their threads used adjacent
    /// addresses.
    global_store_ideal_sectors,
    /// Bytes that threads wrote with stores to global memory.
    global_store_bytes,
    /// Number of 128-byte lines that stores to global memory touch, each counted once per store.
    global_store_lines,
    /// Atomics on global memory that return the old value, counted once per warp.
    global_atomic_requests,
    /// Atomics on global memory that return the old value, counted once per thread.
    global_atomic_operations,
    /// Number of sector accesses of atomics on global memory that return the old value. Threads
    /// with the same address access it one after another.
    global_atomic_sectors,
    /// Atomics on global memory whose old value is unused, which the hardware executes as
    /// reductions. They are counted once per warp.
    global_reduction_requests,
    /// Atomics on global memory whose old value is unused, counted once per thread.
    global_reduction_operations,
    /// Number of sector accesses of atomics on global memory whose old value is unused. Threads
    /// with the same address access it one after another.
    global_reduction_sectors,
    /// Number of sectors that atomics and reductions on global memory touch, each counted once per
    /// instruction.
    global_atomic_touched_sectors,
    /// Number of sectors that atomics and reductions on global memory would touch if their threads
    /// used adjacent addresses.
    global_atomic_ideal_sectors,
    /// Loads from constant memory, counted once per warp.
    constant_requests,
    /// Bytes of the distinct sectors that the launch reads. This would be the traffic with a
    /// perfect cache.
    ideal_read_bytes,
    /// Bytes of the distinct sectors that the launch writes. This would be the traffic with a
    /// perfect cache.
    ideal_write_bytes,
    /// Loads from shared memory, counted once per warp.
    shared_load_requests,
    /// Number of passes of loads from shared memory. Each pass delivers a set of words without a
    /// bank conflict.
    shared_load_wavefronts,
    /// Number of passes of loads from shared memory beyond those that the access width requires.
    shared_load_conflicts,
    /// Stores to shared memory, counted once per warp.
    shared_store_requests,
    /// Number of passes of stores to shared memory.
    shared_store_wavefronts,
    /// Number of passes of stores to shared memory beyond those that the access width requires.
    shared_store_conflicts,
    /// Atomics on shared memory, counted once per warp.
    shared_atomic_requests,
    /// Loads from local memory, counted once per warp and word. An access of 16 bytes counts as 4,
    /// since local memory is interleaved by words.
    local_load_requests,
    /// Stores to local memory, counted once per warp and word.
    local_store_requests,
    /// Bytes that threads read from and wrote to local memory.
    local_bytes,
}

impl Counts {
    /// Returns the average number of active threads per instruction, out of the 32 of a warp.
    pub fn threads_per_instruction(&self) -> f64 {
        self.active_threads as f64 / self.warp_instructions.max(1) as f64
    }
}
